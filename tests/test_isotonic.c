#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "coldbench/random.h"
#include "stats/isotonic.h"

enum { FEW = 8, MANY = 60 };

static const struct row {
    const char *what;
    bool falling;
    size_t n;
    double values[FEW], weights[FEW], fit[FEW]; /* weights[0] = 0: all equal */
} table[] = {
    {"one value", true, 1, {3}, {0}, {3}},
    {"falls already", true, 4, {4, 3, 3, 1}, {0}, {4, 3, 3, 1}},
    {"rises already", false, 4, {1, 3, 3, 4}, {0}, {1, 3, 3, 4}},
    {"one violator", true, 4, {4, 1, 3, 0}, {0}, {4, 2, 2, 0}},
    {"one violator, rising", false, 4, {0, 3, 1, 4}, {0}, {0, 2, 2, 4}},
    {"pools backwards", true, 4, {3, 2, 1, 6}, {0}, {3, 3, 3, 3}},
    {"all wrong", true, 3, {1, 2, 6}, {0}, {3, 3, 3}},
    {"weights", true, 3, {5, 1, 4}, {1, 2, 1}, {5, 2, 2}},
    {"weights of pools", false, 4, {4, 1, 1, 9}, {1, 1, 4, 1}, {1.5, 1.5, 1.5, 9}},
    {"equal", true, 3, {7, 7, 7}, {0}, {7, 7, 7}},
};

static void known_fits(void **state)
{
    (void)state;
    for (size_t r = 0; r < sizeof table / sizeof table[0]; r++) {
        const struct row *row = &table[r];
        const double *weights = row->weights[0] > 0 ? row->weights : NULL;
        double fit[FEW];
        cb__isotonic(row->values, weights, row->n, row->falling, fit);
        for (size_t i = 0; i < row->n; i++) {
            if (fabs(fit[i] - row->fit[i]) > 1e-12)
                fail_msg("%s: fit[%zu] is %g, not %g", row->what, i, fit[i], row->fit[i]);
        }
    }
}

static double mean(const double *values, const double *weights, size_t first, size_t last)
{
    double sum = 0, weight = 0;
    for (size_t i = first; i <= last; i++) {
        sum += weights[i] * values[i];
        weight += weights[i];
    }
    return sum / weight;
}

/* The fit as a formula: the largest, over starts, of the smallest mean, over ends (Barlow 1.2). */
static double max_min(const double *values, const double *weights, size_t n, size_t i)
{
    double most = -(double)INFINITY;
    for (size_t first = 0; first <= i; first++) {
        double least = (double)INFINITY;
        for (size_t last = i; last < n; last++)
            least = fmin(least, mean(values, weights, first, last));
        most = fmax(most, least);
    }
    return most;
}

static void equals_the_formula(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        double values[MANY], weights[MANY], rising[MANY], falling[MANY], turned[MANY];
        size_t n = 1 + seed % MANY;
        for (size_t i = 0; i < n; i++) {
            values[i] = (double)i / 20 + cb_random_f64(cb_random(seed, 0, 0, i));
            weights[i] = 0.1 + cb_random_f64(cb_random(seed, 1, 0, i));
            turned[i] = -values[i];
        }
        cb__isotonic(values, weights, n, false, rising);
        cb__isotonic(turned, weights, n, true, falling);
        for (size_t i = 0; i < n; i++) {
            assert_true(fabs(rising[i] - max_min(values, weights, n, i)) < 1e-9);
            assert_true(fabs(rising[i] + falling[i]) < 1e-9);
            assert_true(i == 0 || rising[i] >= rising[i - 1]);
        }
    }
}

static void fits_in_place(void **state)
{
    (void)state;
    double values[] = {1, 5, 2, 8, 8, 3}, fit[6];
    cb__isotonic(values, NULL, 6, false, fit);
    cb__isotonic(values, NULL, 6, false, values);
    assert_memory_equal(values, fit, sizeof fit);
}

static void limits(void **state)
{
    (void)state;
    static double values[CB__ISOTONIC_MAX + 1], fit[CB__ISOTONIC_MAX + 1];
    double untouched = 5;
    cb__isotonic(&untouched, NULL, 0, true, &untouched);
    assert_true(untouched == 5);
    for (size_t i = 0; i <= CB__ISOTONIC_MAX; i++)
        values[i] = (double)i;
    cb__isotonic(values, NULL, CB__ISOTONIC_MAX, false, fit);
    assert_memory_equal(values, fit, CB__ISOTONIC_MAX * sizeof fit[0]);
    cb__isotonic(values, NULL, CB__ISOTONIC_MAX, true, fit);
    assert_true(fabs(fit[0] - (CB__ISOTONIC_MAX - 1) / 2.0) < 1e-9);
    cb__isotonic(values, NULL, CB__ISOTONIC_MAX + 1, false, fit);
    for (size_t i = 0; i <= CB__ISOTONIC_MAX; i++)
        assert_true(isnan(fit[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_fits),
        cmocka_unit_test(equals_the_formula),
        cmocka_unit_test(fits_in_place),
        cmocka_unit_test(limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
