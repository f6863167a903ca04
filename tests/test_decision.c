#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stats/decision.h"

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
        {"sure, small and within", false, false, 0.001, 0.009, 0.009, 6, false, "tie"},
        {"estimate against interval", false, false, 0.001, 0.05, -0.02, 6, false, "another round"},
        {"the other way round", false, false, -0.05, -0.001, 0.02, 6, false, "another round"},
        {"log(1.01) < 0.00996", false, false, -0.005, 0.00996, 0.001, 6, false, "another round"},
        {"log(1.01) > 0.00995", false, false, -0.00995, 0.00995, 0.001, 6, false, "tie"},
        {"one end open", false, false, -0.02, 0.005, 0.001, 6, false, "another round"},
        {"no rounds", false, false, -INFINITY, INFINITY, NAN, 0, false, "another round"},
        {"no rounds, no budget", false, false, -INFINITY, INFINITY, NAN, 0, true, "inconclusive"},
        {"budget", false, false, -0.02, 0.005, 0.001, 9, true, "inconclusive"},
        {"decided as the budget ends", false, false, -0.005, 0.005, 0.001, 9, true, "tie"},
        {"the last round", false, false, -0.02, 0.005, 0.001, 40, false, "inconclusive"},
        {"the last but one", false, false, -0.02, 0.005, 0.001, 39, false, "another round"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cb__decision_facts facts = {
            .side_invalid = rows[i].invalid,
            .gate_closed = rows[i].gate,
            .claim = {rows[i].lower, rows[i].upper, rows[i].estimate, rows[i].rounds},
            .margin = 0.01,
            .spent = rows[i].spent,
        };
        print_message("%s\n", rows[i].what);
        assert_string_equal(cb__decision_name(cb__decide(&facts)), rows[i].decision);
    }
}

static void the_gate_closes(void **state)
{
    (void)state;
    static const struct {
        cb__claim aa;
        bool closed;
    } rows[] = {
        {{0.001, 0.05, 0.02, 10}, true},       {{-0.05, -0.001, -0.02, 10}, true},
        {{-0.001, 0.05, 0.02, 10}, false},     {{0.001, 0.05, 0.009, 10}, false},
        {{-0.05, 0, -0.02, 10}, false},        {{-INFINITY, INFINITY, 0.02, 9}, false},
        {{-0.05, -0.001, -0.0099, 10}, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(cb__aa_gate_closed(&rows[i].aa, 0.01), rows[i].closed);
}

static void what_a_run_could_have_seen(void **state)
{
    (void)state;
    assert_true(cb__detectable(&(cb__claim){-0.03, 0.02, 0, 9}) == 0.03);
    assert_true(cb__detectable(&(cb__claim){0.01, 0.02, 0, 9}) == 0.02);
    assert_true(cb__detectable(&(cb__claim){-inf, inf, 0, 3}) == inf);
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

/* Feeds rounds from `first` on until there is a decision; the end of the set ends the budget. */
static cb__decision decide_stream(const char *set, int plant, int first, cb__claim *claim,
                                  double *lost)
{
    cb__rank_rule rule;
    cb__rank_rule_init(&rule, CB__THREE_COPIES, 0.01, 1);
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
        assert_prints(claim.lower, lower, lost);
        assert_prints(claim.upper, upper, lost);
        assert_prints(claim.estimate, estimate, lost);
        rows++;
        streamed += count;
    }
    assert_true(feof(f));
    fclose(f);
    print_message("%d comparisons of %d rounds\n", rows, streamed);
    assert_int_equal(rows, 3663);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_that_applies),
        cmocka_unit_test(the_gate_closes),
        cmocka_unit_test(what_a_run_could_have_seen),
        cmocka_unit_test_setup(recorded_rounds_decide_as_the_independent_program_says, read_rounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
