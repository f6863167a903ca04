/* From evidence to checks to a verdict: one base case that is ok, and what each change to it means.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "measure/checks.h"

static const double nan_value = (double)NAN;

typedef struct world {
    cb__evidence e;
    cb__plan plan;
    cb__device_info device;
} world;

static cb__interval around(double mid)
{
    return (cb__interval){mid * 0.99, mid, mid * 1.01, 0.97};
}

static cb__interval nothing(void)
{
    return (cb__interval){nan_value, nan_value, nan_value, 0};
}

/* A cold row that is beyond doubt. */
static void clean(world *w)
{
    memset(w, 0, sizeof *w);
    w->plan = (cb__plan){.streams = true,
                         .k = 8,
                         .sets = 16,
                         .touched_bytes = 1 << 20,
                         .llc_bytes = 2 << 20,
                         .needed_bytes = 8 << 20,
                         .file_bytes = 16 << 20};
    w->device = (cb__device_info){.threads = 2, .peak_bytes_per_s = 200e9};
    w->e = (cb__evidence){.plan = &w->plan,
                          .device = &w->device,
                          .cache = CB__COLD,
                          .rounds = 6,
                          .complete = true,
                          .findings = {.slots = 12, .elements = 1200, .worst = 0.4},
                          .sampled_words = 1000,
                          .distinct_words = 1000,
                          .pages = {.resident_bytes = 16 << 20, .known = true},
                          .has_twin = true,
                          .time_ns = around(30000),
                          .of_twin = around(0.97),
                          .gb_per_s = around(40),
                          .peak_gb_per_s = 200,
                          .floor_ns = 1000,
                          .twin_sums_seen = 6,
                          .twin_candidates = 5,
                          .proofs = 6,
                          .kernel_2k_over_k = around(1),
                          .twin_2k_over_k = around(1),
                          .kernel_2k_gb_per_s = around(40),
                          .over_twin_2k = around(0.97),
                          .kernel_over_twin_2k = around(0.97),
                          .asymptote_gb_per_s = around(42),
                          .asymptote_2k_over_k = around(1),
                          .clock_spread = 0.01,
                          .steal_share = 0};
}

#define CHANGE(name, ...)                                                                          \
    static void name(world *w)                                                                     \
    {                                                                                              \
        __VA_ARGS__;                                                                               \
    }

CHANGE(none, (void)w)
CHANGE(launch, cb_error_set(&w->e.launch, CB_WRONG, "code 7"))
CHANGE(worker, cb_error_set(&w->e.worker, CB_CRASHED, "died on signal 11"))
CHANGE(unwritten, w->e.findings.unwritten = 3; w->e.findings.first_unwritten = 93)
CHANGE(guard_past, w->e.findings.guard_bytes = 4; w->e.findings.first_guard = 16)
CHANGE(guard_before, w->e.findings.guard_bytes = 4; w->e.findings.first_guard = -388)
CHANGE(inputs, w->e.inputs_changed = true)
CHANGE(beyond, w->e.findings.beyond = 2; w->e.findings.first_beyond = 5; w->e.findings.got = 1.5;
       w->e.findings.want = 1; w->e.findings.bound = 0.25)
CHANGE(nonfinite, w->e.findings.nonfinite = 1; w->e.findings.first_nonfinite = 95)
CHANGE(vacuous, w->e.findings.vacuous = 3;)
CHANGE(vacuous_elsewhere, beyond(w); vacuous(w))
CHANGE(warm_above_twin, w->e.cache = CB__WARM; w->e.of_twin = around(1.05);)
CHANGE(warm_at_twin, w->e.cache = CB__WARM; w->e.of_twin = around(1.04);)
CHANGE(reading_unseen, strcpy(w->plan.twin_kernel, "twin_read"); w->e.twin_sums_seen = 0;)
CHANGE(no_slots, w->e.findings = (cb__findings){0})
CHANGE(at_peak, w->e.gb_per_s = (cb__interval){200, 210, 220, 0.97};
       w->e.kernel_2k_gb_per_s = w->e.asymptote_gb_per_s = w->e.gb_per_s)
CHANGE(above_peak, w->e.gb_per_s = (cb__interval){200.001, 210, 220, 0.97})
CHANGE(peak_unknown, w->e.peak_gb_per_s = 0; w->device.peak_bytes_per_s = 0)
CHANGE(one_set, w->plan.k = 1; w->plan.touched_bytes = 16 << 20)
CHANGE(ring_short, w->plan.needed_bytes = (8 << 20) + 1)
CHANGE(ratio_at_bound, w->e.kernel_2k_over_k = (cb__interval){1, 1.02, 1.05, 0.97})
CHANGE(ratio_straddles, w->e.kernel_2k_over_k = (cb__interval){1.05, 1.06, 1.0501, 0.97})
CHANGE(ratio_above, w->e.kernel_2k_over_k = (cb__interval){1.0501, 1.06, 1.07, 0.97})
CHANGE(twin_straddles, w->e.twin_2k_over_k = (cb__interval){1.0, 1.06, 1.2, 0.97})
CHANGE(twin_above, w->e.twin_2k_over_k = (cb__interval){1.06, 1.08, 1.2, 0.97})
CHANGE(ratio_nan, w->e.kernel_2k_over_k = nothing())
CHANGE(no_proof, w->e.proofs = 0)
CHANGE(caches_unasked, strcpy(w->e.unasked, "the device does not say"))
CHANGE(warm_and_unasked, strcpy(w->e.unasked, "the device does not say");
       w->e.kernel_2k_over_k = (cb__interval){1.055, 1.06, 1.07, 0.97})
CHANGE(lines_kept, strcpy(w->e.kept, "1 byte is set aside"))
CHANGE(at_twin, w->e.over_twin_2k = (cb__interval){1.03, 1.04, 1.05, 0.97})
CHANGE(over_twin, w->e.over_twin_2k = (cb__interval){1.0301, 1.04, 1.05, 0.97})
CHANGE(over_twin_2k, w->e.kernel_over_twin_2k = (cb__interval){1.0301, 1.04, 1.05, 0.97})
CHANGE(at_memory, w->device.peak_dram_bytes_per_s = 40e9 * 0.99;
       w->e.asymptote_gb_per_s = around(40))
CHANGE(above_memory, w->device.peak_dram_bytes_per_s = 39e9)
CHANGE(content_enough, w->e.distinct_words = 900)
CHANGE(content_few, w->e.distinct_words = 899)
CHANGE(content_unseen, w->e.sampled_words = w->e.distinct_words = 0)
CHANGE(pages_enough, w->e.pages.resident_bytes = (size_t)(0.99 * (16 << 20)) + 1)
CHANGE(pages_few, w->e.pages.resident_bytes = (size_t)(0.9899 * (16 << 20)))
CHANGE(pages_unknown, w->e.pages.known = false)
CHANGE(clock_moves, w->e.clock_spread = 0.2; w->e.steal_share = 0.5)
CHANGE(clock_moves_on_metal, w->device.has_counters = true; w->e.clock_spread = 0.0501)
CHANGE(clock_still_on_metal, w->device.has_counters = true; w->e.clock_spread = 0.05)
CHANGE(clock_unknown_on_metal, w->device.has_counters = true; w->e.clock_spread = nan_value)
CHANGE(stolen_on_metal, w->device.has_counters = true; w->e.steal_share = 0.021)
CHANGE(five_rounds, w->e.rounds = 5)
CHANGE(no_rounds, w->e.rounds = 0; w->e.proofs = 0; w->e.findings = (cb__findings){0};
       w->e.time_ns = w->e.of_twin = w->e.gb_per_s = nothing(); w->e.floor_ns = nan_value)
CHANGE(settled_at, w->e.of_twin = (cb__interval){1, 1.02, 1.0499, 0.97})
CHANGE(unsettled, w->e.of_twin = (cb__interval){1, 1.02, 1.051, 0.97})
CHANGE(unsettled_time, w->e.time_ns = (cb__interval){20000, 30000, 40000, 0.97})
CHANGE(unsettled_alone, w->e.has_twin = false;
       w->e.time_ns = (cb__interval){20000, 30000, 40000, 0.97})
CHANGE(ratio_of_nan, w->e.of_twin = nothing())
CHANGE(trend_at, w->e.trend = -0.05)
CHANGE(trend_above, w->e.trend = -0.0501)
CHANGE(two_floors, w->e.floor_ns = 15000)
CHANGE(under_two_floors, w->e.floor_ns = 15001)
CHANGE(floor_nan, w->e.floor_ns = nan_value)
CHANGE(sums_wrong, w->e.twin_sums_wrong = 1)
CHANGE(one_candidate, w->e.twin_candidates = 1)
CHANGE(ceiling_rises, w->e.asymptote_2k_over_k = (cb__interval){1.051, 1.1, 1.2, 0.97})
CHANGE(ceiling_falls, w->e.asymptote_2k_over_k = (cb__interval){0.8, 0.9, 0.951, 0.97})
CHANGE(ceiling_straddles, w->e.asymptote_2k_over_k = (cb__interval){0.8, 1, 1.2, 0.97})
CHANGE(at_ceiling, w->e.asymptote_gb_per_s = (cb__interval){30, 31, 31.68, 0.97}) /* 1.25 of it */
CHANGE(above_ceiling, w->e.asymptote_gb_per_s = (cb__interval){30, 31, 31.67, 0.97})
CHANGE(ceiling_at_memory, w->device.peak_dram_bytes_per_s = 42e9 * 0.99)
CHANGE(ceiling_above_memory, w->device.peak_dram_bytes_per_s = 42e9 * 0.9899)
CHANGE(ceiling_nan, w->e.asymptote_2k_over_k = nothing())
CHANGE(no_twin, w->e.has_twin = false; w->e.of_twin = w->e.twin_2k_over_k = nothing();
       w->e.over_twin_2k = w->e.kernel_over_twin_2k = nothing(); w->e.twin_candidates = 0)
CHANGE(warm, w->e.cache = CB__WARM; w->e.proofs = 0; w->plan.k = 1)
CHANGE(warm_above_memory, warm(w); w->device.peak_dram_bytes_per_s = 1e9)
CHANGE(no_stream, warm(w); w->plan.streams = false; w->e.sampled_words = 0;
       w->e.pages.known = false)
CHANGE(incomplete, w->e.complete = false)
CHANGE(no_trend, w->e.trend = nan_value)

typedef struct row {
    const char *name;
    void (*change)(world *w);
    const char *check; /* the one that does not pass; "" when none */
    cb__check_status status;
    cb_verdict verdict;
} row;

#define FAILS(change, check, verdict)                                                              \
    {                                                                                              \
#change, change, check, CB__FAIL, CB_VERDICT_##verdict                                     \
    }
#define SKIPS(change, check, verdict)                                                              \
    {                                                                                              \
#change, change, check, CB__SKIP, CB_VERDICT_##verdict                                     \
    }
#define PASSES(change)                                                                             \
    {                                                                                              \
#change, change, "", CB__PASS, CB_VERDICT_OK                                               \
    }

static const row rows[] = {
    PASSES(none),
    FAILS(launch, "launch", WRONG),
    FAILS(worker, "worker", WRONG),
    FAILS(unwritten, "written", WRONG),
    FAILS(guard_past, "guards", WRONG),
    FAILS(guard_before, "guards", WRONG),
    FAILS(inputs, "inputs", WRONG),
    FAILS(beyond, "bound", WRONG),
    FAILS(nonfinite, "finite", WRONG),
    SKIPS(no_slots, "bound", UNKNOWN),
    SKIPS(vacuous, "bound", UNKNOWN),
    FAILS(vacuous_elsewhere, "bound", WRONG),
    FAILS(warm_above_twin, "drive", LOWER_BOUND),
    PASSES(warm_at_twin),
    SKIPS(reading_unseen, "drive", UNKNOWN),
    PASSES(at_peak),
    FAILS(above_peak, "ceiling", IMPOSSIBLE),
    SKIPS(peak_unknown, "ceiling", OK),
    FAILS(one_set, "ring", CONTAMINATED),
    FAILS(ring_short, "ring", CONTAMINATED),
    PASSES(ratio_at_bound),
    SKIPS(ratio_straddles, "cold", UNKNOWN),
    FAILS(ratio_above, "cold", CONTAMINATED),
    SKIPS(twin_straddles, "cold", UNKNOWN),
    FAILS(twin_above, "cold", CONTAMINATED),
    SKIPS(ratio_nan, "cold", UNKNOWN),
    SKIPS(no_proof, "cold", UNKNOWN),
    SKIPS(caches_unasked, "cold", UNKNOWN),
    FAILS(warm_and_unasked, "cold", CONTAMINATED),
    FAILS(lines_kept, "cold", CONTAMINATED),
    PASSES(at_twin),
    FAILS(over_twin, "cold", CONTAMINATED),
    FAILS(over_twin_2k, "cold", CONTAMINATED),
    PASSES(at_memory),
    FAILS(above_memory, "cold", CONTAMINATED),
    PASSES(at_ceiling),
    FAILS(above_ceiling, "cold", CONTAMINATED),
    PASSES(content_enough),
    FAILS(content_few, "content", CONTAMINATED),
    SKIPS(content_unseen, "content", UNKNOWN),
    PASSES(pages_enough),
    FAILS(pages_few, "pages", CONTAMINATED),
    SKIPS(pages_unknown, "pages", OK),
    FAILS(clock_moves, "clock", OK),
    FAILS(clock_moves, "interference", OK),
    FAILS(clock_moves_on_metal, "clock", CONTAMINATED),
    PASSES(clock_still_on_metal),
    SKIPS(clock_unknown_on_metal, "clock", UNKNOWN),
    FAILS(stolen_on_metal, "interference", CONTAMINATED),
    FAILS(five_rounds, "settled", UNSTABLE),
    SKIPS(no_rounds, "settled", UNKNOWN),
    PASSES(settled_at),
    FAILS(unsettled, "settled", UNSTABLE),
    PASSES(unsettled_time),
    FAILS(unsettled_alone, "settled", UNSTABLE),
    FAILS(ratio_of_nan, "settled", UNSTABLE),
    PASSES(trend_at),
    FAILS(trend_above, "settled", UNSTABLE),
    PASSES(no_trend),
    PASSES(two_floors),
    FAILS(under_two_floors, "floor", FLOOR_BOUND),
    FAILS(floor_nan, "floor", FLOOR_BOUND),
    FAILS(sums_wrong, "drive", LOWER_BOUND),
    FAILS(one_candidate, "drive", LOWER_BOUND),
    FAILS(ceiling_rises, "saturation", LOWER_BOUND),
    FAILS(ceiling_falls, "saturation", LOWER_BOUND),
    PASSES(ceiling_straddles),
    FAILS(ceiling_nan, "saturation", LOWER_BOUND),
    PASSES(ceiling_at_memory),
    FAILS(ceiling_above_memory, "saturation", CONTAMINATED),
    PASSES(no_twin),
    PASSES(warm),
    PASSES(warm_above_memory),
    PASSES(no_stream),
    SKIPS(incomplete, "inputs", UNKNOWN),
};

static cb_verdict judge(world *w, cb__check *checks, int *n)
{
    w->e.plan = &w->plan;
    w->e.device = &w->device;
    return cb__judge(&w->e, checks, n);
}

static void show(const char *name, const cb__check *checks, int n)
{
    for (int i = 0; i < n; i++)
        print_message("  %s: %-12s %s %s\n", name, checks[i].name,
                      cb__check_status_name(checks[i].status), checks[i].detail);
}

static void every_change_fails_its_check_and_gets_its_verdict(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        world w;
        cb__check checks[CB__CHECKS_MAX];
        int n = 0;
        bool found = !*rows[i].check;
        clean(&w);
        rows[i].change(&w);
        cb_verdict verdict = judge(&w, checks, &n);
        assert_true(n <= CB__CHECKS_MAX);
        for (int j = 0; j < n; j++) {
            assert_true(*checks[j].detail != '\0');
            if (strcmp(checks[j].name, rows[i].check) == 0)
                found = checks[j].status == rows[i].status;
        }
        if (verdict != rows[i].verdict || !found)
            show(rows[i].name, checks, n);
        if (verdict != rows[i].verdict || !found)
            fail_msg("%s: %s, expected %s by '%s'", rows[i].name, cb_verdict_name(verdict),
                     cb_verdict_name(rows[i].verdict), rows[i].check);
    }
}

/* ---- precedence: the first of the table that applies ---- */

static void the_first_verdict_that_applies_is_given(void **state)
{
    (void)state;
    /* What was not seen and could have contaminated it; and what could only have bounded it. */
    static void (*const order[])(world *) = {beyond,     above_peak,     over_twin,
                                             unsettled,  content_unseen, under_two_floors,
                                             sums_wrong, reading_unseen};
    static const cb_verdict verdicts[] = {
        CB_VERDICT_WRONG,   CB_VERDICT_IMPOSSIBLE,  CB_VERDICT_CONTAMINATED, CB_VERDICT_UNSTABLE,
        CB_VERDICT_UNKNOWN, CB_VERDICT_FLOOR_BOUND, CB_VERDICT_LOWER_BOUND,  CB_VERDICT_UNKNOWN};
    enum { N = sizeof order / sizeof *order };
    for (unsigned set = 1; set < 1u << N; set++) {
        world w;
        cb__check checks[CB__CHECKS_MAX];
        int n = 0, first = -1;
        clean(&w);
        for (int i = 0; i < N; i++)
            if (set & (1u << i)) {
                order[i](&w);
                first = first < 0 ? i : first;
            }
        assert_int_equal(judge(&w, checks, &n), verdicts[first]);
    }
}

/* ---- NaN anywhere never makes a figure good ---- */

static void a_figure_that_is_no_number_is_never_ok(void **state)
{
    (void)state;
    static const size_t figures[] = {
        offsetof(cb__evidence, of_twin),        offsetof(cb__evidence, time_ns),
        offsetof(cb__evidence, gb_per_s),       offsetof(cb__evidence, kernel_2k_over_k),
        offsetof(cb__evidence, twin_2k_over_k), offsetof(cb__evidence, asymptote_2k_over_k),
    };
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        world w;
        cb__check checks[CB__CHECKS_MAX];
        int n = 0;
        clean(&w);
        cb__interval x = nothing();
        memcpy((char *)&w.e + figures[i], &x, sizeof x);
        if (judge(&w, checks, &n) == CB_VERDICT_OK) {
            show("no number", checks, n);
            fail_msg("figure %zu that is NaN is ok", i);
        }
    }
}

/* ---- what is said ---- */

static const char *detail_of(void (*change)(world *), const char *name)
{
    static cb__check checks[CB__CHECKS_MAX];
    world w;
    int n = 0;
    clean(&w);
    change(&w);
    judge(&w, checks, &n);
    for (int i = 0; i < n; i++)
        if (strcmp(checks[i].name, name) == 0)
            return checks[i].detail;
    return "";
}

static void details_name_the_place_and_the_values(void **state)
{
    (void)state;
    static const struct {
        void (*change)(world *);
        const char *check, *part;
    } table[] = {
        {launch, "launch", "code 7"},
        {worker, "worker", "died on signal 11"},
        {unwritten, "written", "3 never written, first at 93"},
        {guard_past, "guards", "first 16 bytes past its end"},
        {guard_before, "guards", "first 388 bytes before its end"},
        {beyond, "bound", "2 of 1200 elements"},
        {beyond, "bound", "first at 5: got 1.5, want 1 +- 0.25"},
        {nonfinite, "finite", "1 NaN or Inf, first at 95"},
        {above_peak, "ceiling", "200.0 GB/s"},
        {ring_short, "ring", "8 sets, 8.0 MiB"},
        {ratio_above, "cold", "kernel 1.060 [1.050, 1.070]"},
        {content_few, "content", "899 of 1000"},
        {unsettled, "settled", "ratio to the twin within 5.1 % over 6 rounds"},
        {under_two_floors, "floor", "30000 ns a launch, an empty kernel takes 15001 ns solo"},
        {sums_wrong, "drive", "wrong 1 of 6 times"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (!strstr(detail_of(table[i].change, table[i].check), table[i].part))
            fail_msg("no '%s' in '%s'", table[i].part, detail_of(table[i].change, table[i].check));
}

static void long_words_of_a_worker_are_cut(void **state)
{
    (void)state;
    world w;
    cb__check checks[CB__CHECKS_MAX];
    int n = 0;
    char words[900];
    clean(&w);
    memset(words, 'w', sizeof words - 1);
    words[sizeof words - 1] = '\0';
    cb_error_set(&w.e.worker, CB_CRASHED, "%s", words);
    assert_int_equal(judge(&w, checks, &n), CB_VERDICT_WRONG);
    assert_int_equal(strlen(checks[1].detail), sizeof checks[1].detail - 1);
}

static void the_share_of_dispatch_is_at_most_one(void **state)
{
    (void)state;
    world w;
    clean(&w);
    w.e.floor_ns = 7500;
    assert_true(cb__floor_share(&w.e) == 0.25);
    w.e.floor_ns = 90000;
    assert_true(cb__floor_share(&w.e) == 1);
}

static void a_warm_figure_says_whether_its_set_fits(void **state)
{
    (void)state;
    char text[160];
    world w;
    clean(&w);
    w.e.plan = &w.plan;
    cb__residency_text(&w.e, text, sizeof text);
    assert_string_equal(text, "");
    warm(&w);
    w.plan.llc_bytes = UINT64_C(8) << 20;
    w.plan.needed_bytes = 4 * (UINT64_C(8) << 20);
    w.plan.touched_bytes = 1 << 20;
    cb__residency_text(&w.e, text, sizeof text);
    assert_non_null(strstr(text, "fit: this measures the cache"));
    w.plan.touched_bytes = 64 << 20;
    cb__residency_text(&w.e, text, sizeof text);
    assert_non_null(strstr(text, "do not fit"));
    w.plan.streams = false;
    cb__residency_text(&w.e, text, sizeof text);
    assert_string_equal(text, "");
}

static void every_verdict_and_status_has_a_name(void **state)
{
    (void)state;
    assert_string_equal(cb_verdict_name(CB_VERDICT_WRONG), "wrong");
    assert_string_equal(cb_verdict_name(CB_VERDICT_FLOOR_BOUND), "floor-bound");
    assert_string_equal(cb_verdict_name(CB_VERDICT_OK), "ok");
    assert_string_equal(cb__check_status_name(CB__SKIP), "skip");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_change_fails_its_check_and_gets_its_verdict),
        cmocka_unit_test(the_first_verdict_that_applies_is_given),
        cmocka_unit_test(a_figure_that_is_no_number_is_never_ok),
        cmocka_unit_test(details_name_the_place_and_the_values),
        cmocka_unit_test(long_words_of_a_worker_are_cut),
        cmocka_unit_test(the_share_of_dispatch_is_at_most_one),
        cmocka_unit_test(a_warm_figure_says_whether_its_set_fits),
        cmocka_unit_test(every_verdict_and_status_has_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
