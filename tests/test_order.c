#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "coldbench/random.h"
#include "stats/order.h"

enum { N_MAX = 10000 };

static double values[N_MAX], copy[N_MAX];

static double linear(int i)
{
    return i;
}

static double square(int i)
{
    return (double)i * i;
}

static double steps(int i)
{
    return i / 4;
}

static double all_equal(int i)
{
    (void)i;
    return 3;
}

/* Fills in an order that is not sorted, the same each time. */
static void fill(int n, double (*value)(int))
{
    for (int i = 0; i < n; i++)
        values[i] = value(i + 1);
    for (int i = n; i > 1; i--) {
        uint64_t j = cb_random(5, 0, 0, (uint64_t)i) % (uint64_t)i;
        double last = values[i - 1];
        values[i - 1] = values[j];
        values[j] = last;
    }
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void sorting_is_sorting(void **state)
{
    (void)state;
    for (size_t n = 0; n < 300; n++) {
        for (size_t i = 0; i < n; i++)
            copy[i] = values[i] = (double)(cb_random(3, n, 0, i) % (n / (1 + n % 3) + 1)) - 7;
        cb__sort(values, n);
        qsort(copy, n, sizeof *copy, compare);
        assert_memory_equal(values, copy, n * sizeof *copy);
    }
}

static void a_nan_sorts_last(void **state)
{
    (void)state;
    double v[] = {(double)NAN, 2, (double)INFINITY, (double)NAN, -(double)INFINITY, 1};
    cb__sort(v, 6);
    assert_true(v[0] == -(double)INFINITY && v[1] == 1 && v[2] == 2 && v[3] == (double)INFINITY);
    assert_true(isnan(v[4]) && isnan(v[5]));
}

/* Medians and type-7 quantiles, as R's quantile() gives them. */
static void quantiles_are_of_type_7(void **state)
{
    (void)state;
    static const struct {
        int n;
        double v[6], q, expected;
    } rows[] = {
        {1, {7}, 0.3, 7},
        {2, {2, 1}, 0.5, 1.5},
        {3, {3, 1, 2}, 0.5, 2},
        {4, {4, 1, 3, 2}, 0.25, 1.75},
        {4, {4, 1, 3, 2}, 0.5, 2.5},
        {5, {50, 40, 10, 20, 30}, 0.25, 20},
        {5, {50, 40, 10, 20, 30}, 0.9, 46},
        {6, {1, 2, 4, 8, 16, 32}, 0, 1},
        {6, {1, 2, 4, 8, 16, 32}, 1, 32},
        {6, {1, 2, 4, 8, 16, 32}, 0.1, 1.5},
        {6, {1, 2, 4, 8, 16, 32}, 0.75, 14},
        {3, {-(double)INFINITY, -(double)INFINITY, 1}, 0.25, -(double)INFINITY},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double v[6];
        for (int k = 0; k < 6; k++)
            v[k] = rows[i].v[k];
        assert_true(cb__quantile(v, (size_t)rows[i].n, rows[i].q) == rows[i].expected);
        if (rows[i].q == 0.5)
            assert_true(cb__median(v, (size_t)rows[i].n) == rows[i].expected);
    }
}

static void a_median_does_not_overflow(void **state)
{
    (void)state;
    double large[] = {DBL_MAX, DBL_MAX}, far[] = {-DBL_MAX, DBL_MAX}, tiny[] = {5e-324, 5e-324};
    double infinite[] = {(double)INFINITY, (double)INFINITY};
    assert_true(cb__median(large, 2) == DBL_MAX);
    assert_true(cb__median(far, 2) == 0);
    assert_true(cb__median(tiny, 2) == 5e-324);
    assert_true(cb__median(infinite, 2) == (double)INFINITY);
}

static void nothing_and_nan_have_no_figure(void **state)
{
    (void)state;
    double v[] = {1, 2, (double)NAN, 4, 5, 6, 7, 8};
    for (size_t n = 0; n <= 8; n += 8) {
        cb__interval x = cb__interval_of(v, n);
        assert_true(isnan(cb__median(v, n)) && isnan(cb__quantile(v, n, 0)));
        assert_true(isnan(x.lo) && isnan(x.mid) && isnan(x.hi) && isnan(x.coverage));
    }
    assert_true(isnan(cb__quantile(v, 2, -0.01)) && isnan(cb__quantile(v, 2, 1.01)) &&
                isnan(cb__quantile(v, 2, (double)NAN)));
}

static void infinite_values_give_min_and_max(void **state)
{
    (void)state;
    double v[] = {1, 2, (double)INFINITY, 4, 5, 6, 7, 8};
    cb__interval x = cb__interval_of(v, 8);
    assert_true(x.lo == 1 && x.hi == (double)INFINITY && x.mid == 5.5);
    assert_true(x.coverage == 254.0 / 256);
}

/* lo, hi and coverage from exact rational arithmetic over every pair (Python integers). */
static void intervals_are_the_narrowest_that_cover(void **state)
{
    (void)state;
    static const struct {
        int n;
        double (*value)(int);
        double lo, hi, coverage;
    } rows[] = {
        {2, linear, 1, 2, 0.5},
        {2, square, 1, 4, 0.5},
        {2, steps, 0, 0, 0.5},
        {2, all_equal, 3, 3, 0.5},
        {3, linear, 1, 3, 0.75},
        {3, square, 1, 9, 0.75},
        {3, steps, 0, 0, 0.75},
        {3, all_equal, 3, 3, 0.75},
        {5, linear, 1, 5, 0.9375},
        {5, square, 1, 25, 0.9375},
        {5, steps, 0, 1, 0.9375},
        {5, all_equal, 3, 3, 0.9375},
        {6, linear, 1, 6, 0.96875},
        {6, square, 1, 36, 0.96875},
        {6, steps, 0, 1, 0.96875},
        {6, all_equal, 3, 3, 0.96875},
        {7, linear, 1, 7, 0.984375},
        {7, square, 1, 49, 0.984375},
        {7, steps, 0, 1, 0.984375},
        {7, all_equal, 3, 3, 0.984375},
        {8, linear, 1, 7, 0.9609375},
        {8, square, 1, 49, 0.9609375},
        {8, steps, 0, 1, 0.9609375},
        {8, all_equal, 3, 3, 0.9921875},
        {9, linear, 2, 8, 0.9609375},
        {9, square, 4, 64, 0.9609375},
        {9, steps, 0, 2, 0.99609375},
        {9, all_equal, 3, 3, 0.99609375},
        {10, linear, 2, 9, 0.978515625},
        {10, square, 4, 81, 0.978515625},
        {10, steps, 0, 2, 0.998046875},
        {10, all_equal, 3, 3, 0.998046875},
        {12, linear, 3, 10, 0.96142578125},
        {12, square, 9, 100, 0.96142578125},
        {12, steps, 0, 2, 0.99658203125},
        {12, all_equal, 3, 3, 0.99951171875},
        {20, linear, 6, 15, 0.9586105346679688},
        {20, square, 36, 225, 0.9586105346679688},
        {20, steps, 1, 3, 0.9780168533325195},
        {20, all_equal, 3, 3, 0.9999980926513672},
        {25, linear, 8, 18, 0.9567147493362427},
        {25, square, 64, 324, 0.9567147493362427},
        {25, steps, 2, 4, 0.9710407257080078},
        {25, all_equal, 3, 3, 0.9999999403953552},
        {50, linear, 18, 32, 0.9511261076817297},
        {50, square, 324, 1024, 0.9511261076817297},
        {50, steps, 4, 8, 0.9933995520331891},
        {50, all_equal, 3, 3, 0.9999999999999982},
        {51, linear, 19, 33, 0.9511261076817297},
        {51, square, 361, 1089, 0.9511261076817297},
        {51, steps, 4, 8, 0.9922125636942565},
        {51, all_equal, 3, 3, 0.9999999999999991},
        {99, linear, 40, 60, 0.9561247064129847},
        {99, square, 1521, 3481, 0.9517871597283296},
        {99, steps, 10, 15, 0.9737455597347834},
        {99, all_equal, 3, 3, 1.0},
        {100, linear, 40, 60, 0.9539559330706572},
        {100, square, 1600, 3600, 0.9539559330706572},
        {100, steps, 10, 15, 0.9763834120284659},
        {100, all_equal, 3, 3, 1.0},
        {1000, linear, 469, 531, 0.9500154764972458},
        {1000, square, 219961, 281961, 0.9500154764972458},
        {1000, steps, 117, 132, 0.9532714350700242},
        {1000, all_equal, 3, 3, 1.0},
        {1030, linear, 484, 547, 0.9504073726628092},
        {1030, square, 234256, 299209, 0.9504073726628092},
        {1030, steps, 121, 136, 0.9504073726628092},
        {1030, all_equal, 3, 3, 1.0},
        {10000, linear, 4902, 5099, 0.9511670501036181},
        {10000, square, 23980609, 25948836, 0.9500372739906017},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const int n = rows[i].n;
        fill(n, rows[i].value);
        cb__interval x = cb__interval_of(values, (size_t)n);
        assert_true(x.lo == rows[i].lo && x.hi == rows[i].hi);
        assert_true(x.mid == (rows[i].value((n + 1) / 2) + rows[i].value(n / 2 + 1)) / 2);
        if (n <= 50)
            assert_true(x.coverage == rows[i].coverage);
        else
            assert_true(fabs(x.coverage - rows[i].coverage) < 1e-13);
    }
}

static void one_value_covers_nothing(void **state)
{
    (void)state;
    double v = 4;
    cb__interval x = cb__interval_of(&v, 1);
    assert_true(x.lo == 4 && x.mid == 4 && x.hi == 4 && x.coverage == 0);
}

/* C(n, m) / 2^n by logarithms: another way to the same sum, good to 1e-10 at n = 10,000. */
static double coverage_by_logarithms(int n, int i, int j)
{
    double sum = 0;
    for (int m = i; m < j; m++)
        sum += exp(lgamma(n + 1.0) - lgamma(m + 1.0) - lgamma(n - m + 1.0) - n * log(2.0));
    return sum;
}

static void every_n_up_to_ten_thousand_covers(void **state)
{
    (void)state;
    for (int n = 6; n <= N_MAX; n += 1 + n / 20) {
        for (int i = 0; i < n; i++)
            values[i] = i + 1;
        cb__interval x = cb__interval_of(values, (size_t)n);
        double expected = coverage_by_logarithms(n, (int)x.lo, (int)x.hi);
        assert_true(x.coverage >= 0.95 && x.coverage < 1);
        assert_true(x.lo + x.hi <= n + 1); /* of a pair and its mirror image the lower */
        assert_true(fabs(x.coverage - expected) < 1e-9);
    }
}

/* By simulation with a fixed seed: a pair of ranks chosen beforehand has the median of the
 * distribution between it as often as stated, within 4 sd. The data is fixed: it cannot flicker. */
static void a_pair_of_ranks_covers_as_often_as_stated(void **state)
{
    (void)state;
    enum { RUNS = 4000 };
    static const int sizes[] = {5, 6, 9, 20, 61};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        const size_t n = (size_t)sizes[s];
        for (size_t i = 0; i < n; i++)
            values[i] = (double)i;
        const cb__interval x = cb__interval_of(values, n); /* the values are the ranks */
        int inside = 0;
        for (uint64_t run = 0; run < RUNS; run++) {
            const uint64_t key = cb_random_key(17, n, run);
            for (size_t i = 0; i < n; i++)
                values[i] = cb_random_f64(cb_random_word(key, i));
            cb__sort(values, n);
            inside += values[(int)x.lo] <= 0.5 && 0.5 <= values[(int)x.hi];
        }
        const double sd = sqrt(RUNS * x.coverage * (1 - x.coverage));
        assert_true(fabs(inside - RUNS * x.coverage) < 4 * sd);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sorting_is_sorting),
        cmocka_unit_test(a_nan_sorts_last),
        cmocka_unit_test(quantiles_are_of_type_7),
        cmocka_unit_test(a_median_does_not_overflow),
        cmocka_unit_test(nothing_and_nan_have_no_figure),
        cmocka_unit_test(infinite_values_give_min_and_max),
        cmocka_unit_test(intervals_are_the_narrowest_that_cover),
        cmocka_unit_test(one_value_covers_nothing),
        cmocka_unit_test(every_n_up_to_ten_thousand_covers),
        cmocka_unit_test(a_pair_of_ranks_covers_as_often_as_stated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
