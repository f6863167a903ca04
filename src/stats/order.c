#include "stats/order.h"

#include <math.h>
#include <stdbool.h>

static const double nothing = (double)NAN;

static bool before(double a, double b)
{
    return a < b || (isnan(b) && !isnan(a));
}

static void sift_down(double *heap, size_t root, size_t n)
{
    double value = heap[root];
    for (;;) {
        size_t child = 2 * root + 1;
        if (child >= n)
            break;
        if (child + 1 < n && before(heap[child], heap[child + 1]))
            child++;
        if (!before(value, heap[child]))
            break;
        heap[root] = heap[child];
        root = child;
    }
    heap[root] = value;
}

/* Heapsort: qsort may allocate, and is quadratic where it cannot. */
void cb__sort(double *values, size_t n)
{
    for (size_t i = n / 2; i-- > 0;)
        sift_down(values, i, n);
    for (size_t end = n; end > 1; end--) {
        double last = values[end - 1];
        values[end - 1] = values[0];
        values[0] = last;
        sift_down(values, 0, end - 1);
    }
}

static double middle(double a, double b)
{
    double sum = a + b;
    return isfinite(sum) ? sum / 2 : a / 2 + b / 2;
}

static double median_of_sorted(const double *values, size_t n)
{
    return n % 2 ? values[n / 2] : middle(values[n / 2 - 1], values[n / 2]);
}

/* Sorts; false where there is nothing to say: no value, or a NaN (they sort last). */
static bool sort_usable(double *values, size_t n)
{
    cb__sort(values, n);
    return n && !isnan(values[n - 1]);
}

double cb__median(double *values, size_t n)
{
    return sort_usable(values, n) ? median_of_sorted(values, n) : nothing;
}

double cb__quantile(double *values, size_t n, double q)
{
    if (!sort_usable(values, n) || !(q >= 0 && q <= 1))
        return nothing;
    double position = (double)(n - 1) * q;
    size_t below = (size_t)position;
    double fraction = position - (double)below;
    if (fraction <= 0 || values[below] == values[below + 1])
        return values[below];
    return values[below] + fraction * (values[below + 1] - values[below]);
}

/* Binomial weights C(n, m), up to one common factor, walked from m to its neighbours, so that a
 * weight is never a huge number nor a quotient of two. Up to n = 50 every number here is an integer
 * below 2^53 and the coverage is exact; above, rounding stays near 1e-15 * sqrt(n). */
typedef struct {
    size_t n;
    size_t first; /* the smallest m >= 1 whose weight counts; by symmetry the last is n - first */
    double first_weight;
    double total; /* of all weights, m = 0 to n */
} binomial;

static double next_weight(size_t n, size_t m, double weight)
{
    return weight * (double)(n - m) / (double)(m + 1);
}

static double central_weight(size_t n)
{
    double weight = 1;
    for (size_t m = 0; m < n / 2; m++) {
        weight = next_weight(n, m, weight);
        if (weight > 0x1p900)
            weight *= 0x1p-900;
    }
    return weight;
}

static binomial binomial_of(size_t n)
{
    double weight = central_weight(n), half = 0;
    const double centre = weight;
    binomial b = {n, n / 2, weight, 0};
    /* Below this share of the centre a weight changes no sum, and smaller ones would underflow. */
    const double negligible = weight * 0x1p-900;
    for (size_t m = n / 2; weight > negligible; m--) {
        half += weight;
        if (m >= 1) {
            b.first = m;
            b.first_weight = weight;
        }
        if (m == 0)
            break;
        weight = weight * (double)m / (double)(n - m + 1);
    }
    b.total = n % 2 ? 2 * half : 2 * half - centre;
    return b;
}

static double coverage(const binomial *b, size_t i, size_t j)
{
    double weight = b->first_weight, sum = 0;
    for (size_t m = b->first; m < j; m++) {
        if (m >= i)
            sum += weight;
        weight = next_weight(b->n, m, weight);
    }
    return sum / b->total;
}

static const double wanted_coverage = 0.95;

/* The least hi - lo over pairs that cover enough; negative where none does. i and j count
 * from 1, as in the formula. */
static double least_width(const binomial *b, const double *sorted)
{
    const double wanted = wanted_coverage * b->total;
    const size_t last = b->n + 1 - b->first;
    double least = -1, sum = 0, weight_i = b->first_weight, weight_j = b->first_weight;
    for (size_t i = b->first, j = i;; i++) {
        for (; sum < wanted && j < last; j++) {
            sum += weight_j;
            weight_j = next_weight(b->n, j, weight_j);
        }
        if (sum < wanted)
            return least;
        double width = sorted[j - 1] - sorted[i - 1];
        if (least < 0 || width < least)
            least = width;
        sum -= weight_i;
        weight_i = next_weight(b->n, i, weight_i);
    }
}

/* Of the pairs no wider than `width`, the one that covers most; the lower one of equals. Mirrored
 * pairs are equal up to the rounding of the running sum. */
static void widest_coverage(const binomial *b, const double *sorted, double width, size_t *best_i,
                            size_t *best_j)
{
    const size_t last = b->n + 1 - b->first;
    const double rounding = 1e-12 * b->total;
    double best = -b->total, sum = 0, weight_i = b->first_weight, weight_j = b->first_weight;
    for (size_t i = b->first, j = i; i < last; i++) {
        for (; j < last && sorted[j] - sorted[i - 1] <= width; j++) {
            sum += weight_j;
            weight_j = next_weight(b->n, j, weight_j);
        }
        if (sum - best > rounding) {
            best = sum;
            *best_i = i;
            *best_j = j;
        }
        sum -= weight_i;
        weight_i = next_weight(b->n, i, weight_i);
    }
}

cb__interval cb__interval_of(double *values, size_t n)
{
    if (!sort_usable(values, n))
        return (cb__interval){nothing, nothing, nothing, nothing};
    double mid = median_of_sorted(values, n);
    if (n == 1)
        return (cb__interval){mid, mid, mid, 0};
    const binomial b = binomial_of(n);
    size_t i = 1, j = n;
    /* An infinite width would compare with nothing. */
    double width = isfinite(values[n - 1] - values[0]) ? least_width(&b, values) : -1;
    if (width >= 0)
        widest_coverage(&b, values, width, &i, &j);
    return (cb__interval){values[i - 1], mid, values[j - 1], coverage(&b, i, j)};
}
