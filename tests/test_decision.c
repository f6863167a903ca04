#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coldbench/random.h"
#include "stats/decision.h"
#include "stats/order.h"

static const double inf = (double)INFINITY;

/* Margin 1 % but where said: log 0.00995. */
static void the_first_that_applies(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        bool invalid, gate;
        double lower, upper, estimate;
        int rounds;
        bool spent;
        const char *decision;
    } rows[] = {
        {"slower", false, false, 0.001, 0.05, 0.02, 6, false, "slower"},
        {"faster", false, false, -0.05, -0.001, -0.02, 6, false, "faster"},
        {"tie", false, false, -0.005, 0.005, 0.001, 6, false, "tie"},
        {"a side is wrong", true, false, 0.001, 0.05, 0.02, 6, false, "incomparable"},
        {"wrong before unstable", true, false, 0.02, 0.01, 0.02, 6, false, "incomparable"},
        {"unstable before the gate", false, true, 0.02, 0.01, 0.02, 6, false, "unstable"},
        {"unstable before slower", false, false, 0.02, 0.01, 0.02, 6, false, "unstable"},
        {"a point is an interval", false, false, 0.02, 0.02, 0.02, 6, false, "slower"},
        {"the gate before slower", false, true, 0.001, 0.05, 0.02, 6, false, "incomparable"},
        {"the gate before tie", false, true, -0.005, 0.005, 0.001, 6, false, "incomparable"},
        {"0 is the end", false, false, 0, 0.05, 0.02, 6, false, "another round"},
        {"0 is the other end", false, false, -0.05, 0, -0.02, 6, false, "another round"},
        {"sure, but small", false, false, 0.001, 0.05, 0.009, 6, false, "another round"},
        {"an estimate above its interval", false, false, 0.001, 0.05, 0.051, 24, false,
         "another round"},
        {"below it", false, false, -0.05, -0.011, -0.06, 24, false, "another round"},
        {"none is left", false, false, 0.001, 0.05, 0.051, 24, true, "unstable"},
        {"the last one", false, false, -0.05, -0.011, -0.06, 40, false, "unstable"},
        {"a tie's", false, false, -0.005, 0.001, 0.002, 24, false, "another round"},
        {"the gate before that", false, true, 0.001, 0.05, 0.051, 24, true, "incomparable"},
        {"sure, small and within", false, false, 0.001, 0.009, 0.009, 6, false, "tie"},
        {"estimate against interval", false, false, 0.001, 0.05, -0.02, 6, false, "another round"},
        {"the other way round", false, false, -0.05, -0.001, 0.02, 6, false, "another round"},
        {"log(1.01) < 0.00996", false, false, -0.005, 0.00996, 0.001, 6, false, "another round"},
        {"log(1.01) > 0.00995", false, false, -0.00995, 0.00995, 0.001, 6, false, "tie"},
        {"one end open", false, false, -0.02, 0.005, 0.001, 6, false, "another round"},
        {"no rounds", false, false, -HUGE_VAL, HUGE_VAL, (double)NAN, 0, false, "another round"},
        {"no rounds, no budget", false, false, -HUGE_VAL, HUGE_VAL, (double)NAN, 0, true,
         "inconclusive"},
        {"budget", false, false, -0.02, 0.005, 0.001, 9, true, "inconclusive"},
        {"decided as the budget ends", false, false, -0.005, 0.005, 0.001, 9, true, "tie"},
        {"the last round", false, false, -0.02, 0.005, 0.001, 40, false, "inconclusive"},
        {"the last but one", false, false, -0.02, 0.005, 0.001, 39, false, "another round"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cb__decision_facts facts = {
            .side_invalid = rows[i].invalid,
            .gate_closed = rows[i].gate,
            .claim = {.interval = {rows[i].lower, rows[i].upper},
                      .alarm = {rows[i].lower, rows[i].upper},
                      .estimate = rows[i].estimate,
                      .rounds = rows[i].rounds},
            .margin = 0.01,
            .spent = rows[i].spent,
        };
        print_message("%s\n", rows[i].what);
        assert_string_equal(cb__decision_name(cb__decide(&facts)), rows[i].decision);
    }
}

/* The interval leaves 0 out, the alarm's bounds do not yet. */
static void an_alarm_is_surer_than_a_tie(void **state)
{
    (void)state;
    cb__decision_facts facts = {.margin = 0.01,
                                .claim = {{0.001, 0.05}, {0, 0.06}, .estimate = 0.02, .rounds = 8}};
    assert_int_equal(cb__decide(&facts), CB__ANOTHER_ROUND);
    facts.spent = true;
    assert_int_equal(cb__decide(&facts), CB__INCONCLUSIVE);
    facts.claim.alarm.lower = 0.0001;
    assert_int_equal(cb__decide(&facts), CB__SLOWER);
    facts.claim = (cb__claim){{-0.009, 0.009}, {-0.02, 0.02}, .estimate = 0.001, .rounds = 6};
    assert_int_equal(cb__decide(&facts), CB__TIE);
}

/* Runs of rounds cut off one side after the other: log(0.8088) to log(0.8102) of 0.80 to 1.05. */
static void a_sliver_is_no_interval(void **state)
{
    (void)state;
    cb__decision_facts facts = {.margin = 0.02,
                                .claim = {{-0.2122, -0.2105},
                                          {-0.2122, -0.2},
                                          {-0.223, 0.049},
                                          .estimate = -0.2113,
                                          .rounds = 31}};
    assert_int_equal(cb__decide(&facts), CB__ANOTHER_ROUND);
    facts.spent = true;
    assert_int_equal(cb__decide(&facts), CB__UNSTABLE);
    facts.claim.look.upper = -0.1; /* a seventieth of it */
    assert_int_equal(cb__decide(&facts), CB__FASTER);
    facts.claim.look = (cb__bounds){-0.2122, -0.2105}; /* all rounds alike */
    assert_int_equal(cb__decide(&facts), CB__FASTER);
    facts.claim.interval = (cb__bounds){0.03, 0.03};
    facts.claim.alarm = facts.claim.interval;
    facts.claim.look = (cb__bounds){0.025, 0.04}; /* less than the margin is at stake */
    facts.claim.estimate = 0.03;
    assert_int_equal(cb__decide(&facts), CB__SLOWER);
    facts.claim.look = (cb__bounds){-HUGE_VAL, HUGE_VAL};
    assert_int_equal(cb__decide(&facts), CB__SLOWER);
}

static void the_gate_closes(void **state)
{
    (void)state;
    static const struct {
        double lower, upper, median;
        bool closed;
    } rows[] = {
        {0.001, 0.05, 0.02, true},       {-0.05, -0.001, -0.02, true},
        {-0.001, 0.05, 0.02, false},     {0.001, 0.05, 0.009, false},
        {-0.05, 0, -0.02, false},        {-HUGE_VAL, HUGE_VAL, 0.02, false},
        {-0.05, -0.001, -0.0099, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cb__claim aa = {.interval = {rows[i].lower, rows[i].upper}, .estimate = rows[i].median};
        assert_int_equal(cb__aa_gate_closed(&aa, 0.01), rows[i].closed);
    }
}

static void what_a_run_could_have_seen(void **state)
{
    (void)state;
    assert_true(cb__detectable(&(cb__claim){.interval = {-0.03, 0.02}}) == 0.03);
    assert_true(cb__detectable(&(cb__claim){.interval = {0.01, 0.02}}) == 0.02);
    assert_true(cb__detectable(&(cb__claim){.interval = {-inf, inf}}) == inf);
}

/* The recorded rounds, and what an independent program made of them. */

enum { ROUNDS = 30000, NAME = 32 };

static struct {
    char set[NAME];
    int plant, round;
    double aa2, ab, a2b;
} recorded[ROUNDS];
static int rounds_read;

static FILE *open_fixture(const char *name)
{
    char path[4096], header[256];
    snprintf(path, sizeof path, "%s/tests/fixtures/compare/%s", CB_SOURCE_DIR, name);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    assert_non_null(fgets(header, sizeof header, f));
    return f;
}

static int read_rounds(void **state)
{
    (void)state;
    FILE *f = open_fixture("rounds.csv");
    while (rounds_read < ROUNDS &&
           fscanf(f, "%31[^,],%d,%d,%lf,%lf,%lf,%*f\n", recorded[rounds_read].set,
                  &recorded[rounds_read].plant, &recorded[rounds_read].round,
                  &recorded[rounds_read].aa2, &recorded[rounds_read].ab,
                  &recorded[rounds_read].a2b) == 6)
        rounds_read++;
    assert_true(feof(f));
    fclose(f);
    return 0;
}

static int find_round(const char *set, int plant, int round)
{
    for (int i = 0; i < rounds_read; i++) {
        if (recorded[i].plant == plant && recorded[i].round == round &&
            strcmp(recorded[i].set, set) == 0)
            return i;
    }
    return -1;
}

/* The rounds were printed with six digits after the program had used them in full: a figure may
 * differ by half a unit of the last digit of each theta of a round, and of its own. */
static double digits_lost(double value)
{
    return value == 0 ? 0 : 0.5 * pow(10, floor(log10(fabs(value))) - 5);
}

static void assert_prints(double got, const char *expected, double lost)
{
    double value = strtod(expected, NULL);
    if (!(fabs(got - value) <= lost + 1.001 * digits_lost(value)))
        fail_msg("%.9g, expected %s (within %.2g)", got, expected, lost);
}

/* The recorded decisions are of a rule whose alarms take no more than its intervals.
 * Feeds rounds from `first` on until there is a decision; the end of the set ends the budget. */
static cb__decision decide_stream(const char *set, int plant, int first, cb__claim *claim,
                                  double *lost)
{
    cb__rank_rule rule;
    cb__rank_rule_init(&rule, CB__THREE_COPIES, 0.01, 1);
    rule.alarm_bar = rule.bar;
    cb__decision decision = CB__ANOTHER_ROUND;
    int at = find_round(set, plant, first), next = at;
    for (int n = 0; decision == CB__ANOTHER_ROUND; n++, at = next) {
        assert_true(at >= 0);
        assert_true(cb__rank_rule_add(&rule, recorded[at].aa2, recorded[at].ab, recorded[at].a2b));
        *claim = cb__rank_rule_claim(&rule);
        *lost = fmax(*lost, digits_lost(recorded[at].aa2) + digits_lost(recorded[at].ab) +
                                digits_lost(recorded[at].a2b));
        next = find_round(set, plant, first + n + 1);
        decision =
            cb__decide(&(cb__decision_facts){.claim = *claim, .margin = 0.01, .spent = next < 0});
    }
    return decision;
}

static void recorded_rounds_decide_as_the_independent_program_says(void **state)
{
    (void)state;
    FILE *f = open_fixture("expected.csv");
    char set[NAME], lower[NAME], upper[NAME], estimate[NAME], text[NAME];
    int plant, first, count, rows = 0, streamed = 0;
    while (fscanf(f, "%31[^,],%d,%d,%d,%31[^,],%31[^,],%31[^,],%31s\n", set, &plant, &first, &count,
                  lower, upper, estimate, text) == 8) {
        cb__claim claim;
        double lost = 0;
        cb__decision decision = decide_stream(set, plant, first, &claim, &lost);
        assert_string_equal(cb__decision_name(decision), text);
        assert_int_equal(claim.rounds, count);
        assert_prints(claim.interval.lower, lower, lost);
        assert_prints(claim.interval.upper, upper, lost);
        assert_prints(claim.estimate, estimate, lost);
        rows++;
        streamed += count;
    }
    assert_true(feof(f));
    fclose(f);
    print_message("%d comparisons of %d rounds\n", rows, streamed);
    assert_int_equal(rows, 3663);
}

/* Recorded rounds of one set and plant drawn anew, with replacement; identical arms also change
 * their names by lot, so that what is found is the rule's and not the record's. */
typedef struct {
    int of[CB__ANOTHER_ROUND + 1];
    int at_alpha; /* alarms at alpha, or at a tenth of it */
    double rounds_median, rounds_90;
} drawn;

static void draw_thetas(int first, int count, uint64_t key, uint64_t *next, double *t)
{
    int at = first + (int)(cb_random_word(key, (*next)++) % (uint64_t)count);
    /* The three need not agree exactly: B's place is the mean of its two. */
    double level[3] = {0, recorded[at].aa2,
                       (recorded[at].ab + recorded[at].aa2 + recorded[at].a2b) / 2};
    for (int i = recorded[at].plant == 0 ? 2 : 0; i > 0; i--) {
        int j = (int)(cb_random_word(key, (*next)++) % (uint64_t)(i + 1));
        double last = level[i];
        level[i] = level[j];
        level[j] = last;
    }
    t[0] = level[1] - level[0];
    t[1] = level[2] - level[0];
    t[2] = level[2] - level[1];
}

enum { DRAWN_RUNS = 1000 };

static drawn draw_comparisons(int first, int count, double margin)
{
    drawn d = {0};
    double rounds[DRAWN_RUNS];
    for (uint64_t run = 0; run < DRAWN_RUNS; run++) {
        cb__rank_rule rule, aa;
        cb__rank_rule_init(&rule, CB__THREE_COPIES, 0.01, 1);
        cb__rank_rule_init(&aa, CB__TWO_COPIES, 0.01, 1);
        uint64_t key = cb_random_key(9, (uint64_t)first, run), next = 0;
        cb__decision decision = CB__ANOTHER_ROUND;
        cb__claim claim = {.rounds = 0};
        bool at_alpha = false;
        while (decision == CB__ANOTHER_ROUND) {
            double t[3];
            draw_thetas(first, count, key, &next, t);
            assert_true(cb__rank_rule_add(&rule, t[0], t[1], t[2]));
            assert_true(cb__rank_rule_add_pair(&aa, t[0]));
            cb__claim gate = cb__rank_rule_claim(&aa);
            claim = cb__rank_rule_claim(&rule);
            at_alpha |= (claim.interval.lower > 0 || claim.interval.upper < 0) &&
                        fabs(claim.estimate) > log1p(margin);
            decision =
                cb__decide(&(cb__decision_facts){.claim = claim,
                                                 .gate_closed = cb__aa_gate_closed(&gate, margin),
                                                 .margin = margin});
        }
        d.of[decision]++;
        d.at_alpha += at_alpha;
        rounds[run] = claim.rounds;
    }
    d.rounds_median = cb__median(rounds, DRAWN_RUNS);
    d.rounds_90 = cb__quantile(rounds, DRAWN_RUNS, 0.9);
    return d;
}

static void print_drawn(const char *set, int plant, const drawn *d)
{
    print_message("| %s | +%g %% | %d | %d | %d | %d | %d | %d | %g, %g |\n", set, plant / 10.0,
                  d->of[CB__SLOWER], d->of[CB__FASTER], d->at_alpha, d->of[CB__TIE],
                  d->of[CB__INCOMPARABLE], d->of[CB__INCONCLUSIVE], d->rounds_median, d->rounds_90);
}

/* The margin is 1 % warm, 2 % cold. */
static void recorded_rounds_drawn_anew_keep_the_promises(void **state)
{
    (void)state;
    print_message("| of %d | planted | slower | faster | at alpha | tie | incomparable | "
                  "inconclusive | rounds, 90 %% |\n|---|---|---|---|---|---|---|---|---|\n",
                  DRAWN_RUNS);
    for (int first = 0, end; first < rounds_read; first = end) {
        for (end = first; end < rounds_read && recorded[end].plant == recorded[first].plant &&
                          strcmp(recorded[end].set, recorded[first].set) == 0;)
            end++;
        bool cold = strstr(recorded[first].set, "mc") != NULL;
        int plant = recorded[first].plant;
        drawn d = draw_comparisons(first, end - first, cold ? 0.02 : 0.01);
        print_drawn(recorded[first].set, plant, &d);
        if (plant == 0) {
            assert_true(d.of[CB__SLOWER] + d.of[CB__FASTER] <= 1);
            assert_true(cold || d.of[CB__TIE] >= DRAWN_RUNS * 99 / 100);
        }
        if (plant >= 20 && !cold)
            assert_true(d.of[CB__SLOWER] >= DRAWN_RUNS * 98 / 100);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_that_applies),
        cmocka_unit_test(an_alarm_is_surer_than_a_tie),
        cmocka_unit_test(a_sliver_is_no_interval),
        cmocka_unit_test(the_gate_closes),
        cmocka_unit_test(what_a_run_could_have_seen),
        cmocka_unit_test(recorded_rounds_decide_as_the_independent_program_says),
        cmocka_unit_test(recorded_rounds_drawn_anew_keep_the_promises),
    };
    return cmocka_run_group_tests(tests, read_rounds, NULL);
}
