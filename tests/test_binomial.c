/* What counts say of a rate, against exact rational arithmetic to 15 digits. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "stats/binomial.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static void near(const char *what, int k, int n, double value, double expected)
{
    if (!(fabs(value / expected - 1) < 1e-10))
        fail_msg("%s of %d in %d: %.15g, expected %.15g", what, k, n, value, expected);
}

static void upper_bounds_are_exact(void **state)
{
    static const struct {
        int k, n;
        double confidence, bound;
    } table[] = {
        {0, 1, 0.95, 0.95},
        {0, 20, 0.95, 0.139108340668265},
        {1, 20, 0.95, 0.216106164206847},
        {3, 20, 0.95, 0.343663804314282},
        {0, 40, 0.99, 0.108749061866254},
        {5, 10, 0.975, 0.812913971552601},
        {0, 1000, 0.95, 0.0029912495450953},
        {1, 1000, 0.95, 0.00473499357549978},
        {10, 1000, 0.975, 0.0183132430551125},
        {999, 1000, 0.95, 0.999948708021091},
        {7, 7, 0.95, 1},
        {0, 0, 0.95, 1},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++)
        near("upper bound", table[i].k, table[i].n,
             cb__binomial_upper(table[i].k, table[i].n, table[i].confidence), table[i].bound);
}

static void tails_are_exact(void **state)
{
    static const struct {
        int k, n;
        double rate, chance;
    } table[] = {
        {1, 20, 0.01, 0.182093062402769},
        {3, 20, 0.01, 0.00100357616810012},
        {7, 200, 0.01, 0.00429554232885157},
        {1, 1000, 0.01, 0.999956828752589},
        {25, 1000, 0.01, 4.20292084483674e-05},
        {600, 1000, 0.5, 1.36423207803301e-10},
        {1000, 1000, 0.5, 9.33263618503219e-302},
        {0, 5, 0.01, 1},
        {0, 0, 0.01, 1},
        {5, 5, 1, 1},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(table); i++)
        near("tail", table[i].k, table[i].n,
             cb__binomial_tail(table[i].k, table[i].n, table[i].rate), table[i].chance);
    assert_true(cb__binomial_tail(6, 5, 0.5) == 0);
    assert_true(cb__binomial_tail(1, 5, 0) == 0);
}

static void what_is_no_count_has_no_bound(void **state)
{
    (void)state;
    assert_true(isnan(cb__binomial_upper(-1, 5, 0.95)));
    assert_true(isnan(cb__binomial_upper(6, 5, 0.95)));
    assert_true(isnan(cb__binomial_upper(1, 5, 0)));
    assert_true(isnan(cb__binomial_upper(1, 5, 1)));
    assert_true(isnan(cb__binomial_upper(1, 5, (double)NAN)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(upper_bounds_are_exact),
        cmocka_unit_test(tails_are_exact),
        cmocka_unit_test(what_is_no_count_has_no_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
