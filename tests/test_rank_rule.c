#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "coldbench/random.h"
#include "stats/order.h"
#include "stats/rank_rule.h"

static const double inf = (double)INFINITY;

static void thresholds_at_one_percent(void **state)
{
    (void)state;
    static const struct {
        cb__copies copies;
        int n, k;
    } rows[] = {
        {CB__THREE_COPIES, 5, 0},   {CB__THREE_COPIES, 6, 6},   {CB__THREE_COPIES, 7, 7},
        {CB__THREE_COPIES, 8, 8},   {CB__THREE_COPIES, 9, 8},   {CB__THREE_COPIES, 10, 9},
        {CB__THREE_COPIES, 12, 10}, {CB__THREE_COPIES, 15, 12}, {CB__THREE_COPIES, 20, 15},
        {CB__THREE_COPIES, 30, 20}, {CB__THREE_COPIES, 40, 25}, {CB__TWO_COPIES, 9, 0},
        {CB__TWO_COPIES, 10, 10},   {CB__TWO_COPIES, 12, 12},   {CB__TWO_COPIES, 15, 14},
        {CB__TWO_COPIES, 20, 18},   {CB__TWO_COPIES, 30, 25},   {CB__TWO_COPIES, 40, 32},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(cb__rank_threshold(rows[i].copies, rows[i].n, 2 / 0.01), rows[i].k);
}

static double e_of(int copies, int k, int n)
{
    static const double p[] = {0.5, 0.65, 0.8, 0.93}, w[] = {0.1, 0.2, 0.3, 0.4};
    double e = 0, c = copies;
    for (int i = 0; i < 4; i++)
        e += w[i] * pow(c * p[i], k) * pow(c / (c - 1) * (1 - p[i]), n - k);
    return e;
}

/* Against the formula, term by term, for every number of rounds and many alphas. */
static void a_threshold_is_the_least_count(void **state)
{
    (void)state;
    static const double bars[] = {2 / 0.2, 2 / 0.05, 2 / 0.01, 6 / 0.01, 240 / 0.01, 2 / 1e-9};
    for (int copies = 2; copies <= 3; copies++) {
        for (size_t b = 0; b < sizeof bars / sizeof *bars; b++) {
            for (int n = 1; n <= CB__ROUNDS_MAX; n++) {
                int expected = 0;
                for (int k = n / copies + 1; k <= n && !expected; k++)
                    expected = e_of(copies, k, n) >= bars[b] ? k : 0;
                assert_int_equal(cb__rank_threshold((cb__copies)copies, n, bars[b]), expected);
            }
        }
    }
}

/* The chance that a fair lot among c ever reaches the threshold, summed over all paths. */
static double crossing(cb__copies copies, double bar)
{
    double alive[CB__ROUNDS_MAX + 2] = {1}, crossed = 0;
    for (int n = 1; n <= CB__ROUNDS_MAX; n++) {
        int k = n < CB__ROUNDS_MIN ? 0 : cb__rank_threshold(copies, n, bar);
        for (int hits = n; hits >= 0; hits--) {
            double miss_share = 1 - 1.0 / copies;
            alive[hits] = alive[hits] * miss_share + (hits ? alive[hits - 1] / copies : 0);
            if (k && hits >= k) {
                crossed += alive[hits];
                alive[hits] = 0;
            }
        }
    }
    return crossed;
}

static void looking_after_every_round_is_paid_for(void **state)
{
    (void)state;
    for (int copies = 2; copies <= 3; copies++) {
        for (double alpha = 0.2; alpha > 1e-4; alpha /= 2) {
            double side = crossing((cb__copies)copies, 2 / alpha);
            assert_true(side > 0.1 * alpha / 2 && side <= alpha / 2);
        }
        print_message("%d copies, alpha 0.01: at most %.5f leave 0 out, %.5f raise an alarm\n",
                      copies, 2 * crossing((cb__copies)copies, 200),
                      2 * crossing((cb__copies)copies, 200 * CB__ALARM_SHARE));
    }
}

typedef struct {
    double u[CB__ROUNDS_MAX], v[CB__ROUNDS_MAX], x[CB__ROUNDS_MAX];
} history;

static double kth_largest(const double *values, int n, int k, int sign)
{
    double sorted[CB__ROUNDS_MAX];
    for (int i = 0; i < n; i++)
        sorted[i] = -sign * values[i];
    cb__sort(sorted, (size_t)n);
    return -sign * sorted[k - 1];
}

static void narrow(const history *h, cb__copies copies, int n, double bar, cb__bounds *bounds)
{
    int k = n < 6 ? 0 : cb__rank_threshold(copies, n, bar);
    if (k) {
        bounds->lower = fmax(bounds->lower, kth_largest(h->u, n, k, 1));
        bounds->upper = fmin(bounds->upper, kth_largest(h->v, n, k, -1));
    }
}

static bool same(cb__bounds a, cb__bounds b)
{
    return a.lower == b.lower && a.upper == b.upper;
}

/* The running intervals and the estimate against their definitions, from all rounds anew. */
static void check_against_definition(cb__copies copies, double alpha, int pairs, uint64_t seed)
{
    history h;
    cb__bounds interval = {-inf, inf}, alarm = {-inf, inf};
    cb__rank_rule rule;
    cb__rank_rule_init(&rule, copies, alpha, pairs);
    for (int n = 1; n <= CB__ROUNDS_MAX; n++) {
        double t[3], sorted[CB__ROUNDS_MAX];
        for (uint64_t i = 0; i < 3; i++)
            t[i] = floor(20 * cb_random_f64(cb_random(seed, i, 0, (uint64_t)n))) / 1000 - 0.002;
        h.u[n - 1] = h.v[n - 1] = h.x[n - 1] = t[0];
        if (copies == CB__THREE_COPIES) {
            double xa = -(t[0] + t[1]) / 3, xa2 = (t[0] - t[2]) / 3, xb = (t[1] + t[2]) / 3;
            h.u[n - 1] = xb - (xa > xa2 ? xa : xa2);
            h.v[n - 1] = xb - (xa < xa2 ? xa : xa2);
            h.x[n - 1] = 1.5 * xb;
            assert_true(cb__rank_rule_add(&rule, t[0], t[1], t[2]));
        } else {
            assert_true(cb__rank_rule_add_pair(&rule, t[0]));
        }
        narrow(&h, copies, n, 2 * pairs / alpha, &interval);
        narrow(&h, copies, n, 20 * pairs / alpha, &alarm);
        for (int i = 0; i < n; i++)
            sorted[i] = h.x[i];
        cb__claim claim = cb__rank_rule_claim(&rule);
        assert_int_equal(claim.rounds, n);
        assert_true(same(claim.interval, interval) && same(claim.alarm, alarm));
        assert_true(claim.estimate == cb__median(sorted, (size_t)n));
    }
}

static void the_claim_is_as_defined(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        check_against_definition(CB__THREE_COPIES, 0.01, 1, seed);
        check_against_definition(CB__TWO_COPIES, 0.01, 1, seed);
        check_against_definition(CB__THREE_COPIES, 0.05, 6, seed);
        check_against_definition(CB__TWO_COPIES, 0.3, 1, seed);
    }
}

static void nothing_is_claimed_before_there_are_rounds_enough(void **state)
{
    (void)state;
    cb__rank_rule rule;
    cb__rank_rule_init(&rule, CB__THREE_COPIES, 0.5, 1);
    cb__claim claim = cb__rank_rule_claim(&rule);
    assert_true(isnan(claim.estimate) && same(claim.interval, (cb__bounds){-inf, inf}));
    for (int n = 1; n <= CB__ROUNDS_MIN; n++) {
        assert_true(cb__rank_rule_add(&rule, 0, 0.02, 0.02));
        claim = cb__rank_rule_claim(&rule);
        assert_true((claim.interval.lower > 0) == (n == CB__ROUNDS_MIN));
        assert_true(fabs(claim.estimate - 0.02) < 1e-15);
    }
}

/* The fewest rounds, all on one side, that bound the effect, and that raise an alarm. */
static void how_many_rounds_it_takes(void **state)
{
    (void)state;
    static const struct {
        cb__copies copies;
        double alpha;
        int pairs, bound, alarm;
    } rows[] = {
        {CB__THREE_COPIES, 0.01, 1, 6, 9}, {CB__THREE_COPIES, 0.01, 6, 8, 10},
        {CB__THREE_COPIES, 0.05, 1, 6, 7}, {CB__TWO_COPIES, 0.01, 1, 10, 14},
        {CB__TWO_COPIES, 0.01, 6, 13, 17},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cb__rank_rule rule;
        cb__rank_rule_init(&rule, rows[i].copies, rows[i].alpha, rows[i].pairs);
        for (int n = 1; n <= CB__ROUNDS_MAX; n++) {
            assert_true(rows[i].copies == CB__TWO_COPIES
                            ? cb__rank_rule_add_pair(&rule, -0.01)
                            : cb__rank_rule_add(&rule, 0, -0.01, -0.01));
            cb__claim claim = cb__rank_rule_claim(&rule);
            assert_int_equal(claim.interval.upper < 0, n >= rows[i].bound);
            assert_int_equal(claim.alarm.upper < 0, n >= rows[i].alarm);
        }
    }
}

static void a_round_that_is_no_number_is_refused(void **state)
{
    (void)state;
    cb__rank_rule three, two;
    cb__rank_rule_init(&three, CB__THREE_COPIES, 0.01, 1);
    cb__rank_rule_init(&two, CB__TWO_COPIES, 0.01, 1);
    const double bad[] = {(double)NAN, inf, -inf};
    for (size_t i = 0; i < 3; i++) {
        assert_false(cb__rank_rule_add(&three, bad[i], 0, 0));
        assert_false(cb__rank_rule_add(&three, 0, bad[i], 0));
        assert_false(cb__rank_rule_add(&three, 0, 0, bad[i]));
        assert_false(cb__rank_rule_add_pair(&two, bad[i]));
    }
    assert_int_equal(cb__rank_rule_claim(&three).rounds, 0);
    for (int n = 0; n < CB__ROUNDS_MAX; n++)
        assert_true(cb__rank_rule_add_pair(&two, 0));
    assert_false(cb__rank_rule_add_pair(&two, 0));
    assert_int_equal(cb__rank_rule_claim(&two).rounds, CB__ROUNDS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(thresholds_at_one_percent),
        cmocka_unit_test(a_threshold_is_the_least_count),
        cmocka_unit_test(looking_after_every_round_is_paid_for),
        cmocka_unit_test(the_claim_is_as_defined),
        cmocka_unit_test(nothing_is_claimed_before_there_are_rounds_enough),
        cmocka_unit_test(how_many_rounds_it_takes),
        cmocka_unit_test(a_round_that_is_no_number_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
