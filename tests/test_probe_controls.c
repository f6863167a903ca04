/* The controls of a probe: one machine that passes every one, and what each fault seeded into its
 * sweeps does to checks, points and ceilings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sweeps.h"

static const double nan_value = (double)NAN;

static const char *const names[] = {"drive",        "folding",    "saturation", "monotonicity",
                                    "coverage",     "port bound", "content",    "pages",
                                    "interference", "clock"};
enum { NAMES = sizeof names / sizeof *names };

/* ---- faults ---- */

CHANGE(none, (void)p)
CHANGE(folded_up, READS(p, SWEEPS_ONE, K(16), K(16), ALL, r->folded = 1.5))
CHANGE(folded_down, READS(p, SWEEPS_ONE, K(16), K(16), ALL, r->folded = 0.34))
CHANGE(folded_whole,
       READS(p, SWEEPS_ONE, K(16), K(16), ALL, r->value = nan_value; r->folded = 0.34))
CHANGE(folded_some, READS(p, SWEEPS_ONE, K(16), K(16), ALL, r->folded = 0.85))
CHANGE(folded_near, READS(p, SWEEPS_ONE, K(16), K(16), ALL, r->folded = 1.09))
CHANGE(folded_twice, READS(p, SWEEPS_ONE, K(16), K(16), 2, r->folded = 1.5))
CHANGE(folded_once, READS(p, SWEEPS_ONE, K(16), K(16), 1, r->folded = 1.5))
CHANGE(folded_both_ways,
       READS(p, SWEEPS_ONE, K(16), K(16), ALL, r->folded = sweep == 1 ? 0.5 : 1.5))
CHANGE(never_folded, EVERY(p, 0, ALL, r->folded = nan_value))
CHANGE(shrunk, READS(p, SWEEPS_TWO, M(64), M(64), 1, r->covered = 0))
CHANGE(not_looked, EVERY(p, 0, ALL, r->covered = -1))
CHANGE(not_looked_there, READS(p, SWEEPS_TWO, 0, M(256), ALL, r->covered = -1))
CHANGE(bump, READS(p, SWEEPS_ONE, K(256), K(256), ALL, r->value *= 1.3))
CHANGE(bump_twice, READS(p, SWEEPS_ONE, K(256), K(256), 2, r->value *= 1.3))
CHANGE(small_bump, READS(p, SWEEPS_ONE, K(256), K(256), ALL, r->value *= 1.06))
CHANGE(latency_dip,
       SWEEPS_EACH(p, CB__LATENCY, "random", SWEEPS_BASE, K(256), K(256), ALL, r->value *= 0.7))
CHANGE(slow_start, READS(p, SWEEPS_ONE, K(4), K(4), ALL, r->value *= 0.7))
CHANGE(slower_start, READS(p, SWEEPS_ONE, K(4), K(4), ALL, r->value *= 0.4);
       READS(p, SWEEPS_ONE, K(5), K(6), ALL, r->value *= 0.6);
       READS(p, SWEEPS_ONE, K(8), K(8), ALL, r->value *= 0.8))
CHANGE(gentle_start, READS(p, SWEEPS_ONE, K(4), K(4), ALL, r->value *= 0.95))
CHANGE(under_driven, READS(p, SWEEPS_ONE, K(4), K(32), ALL, r->value *= 0.84))
CHANGE(under_driven_within, READS(p, SWEEPS_ONE, K(4), K(23), ALL, r->value *= 0.84))
CHANGE(under_driven_twice, READS(p, SWEEPS_ONE, K(4), K(32), 2, r->value *= 0.93))
CHANGE(over_driven, READS(p, SWEEPS_ONE, K(4), K(32), ALL, r->value *= 1.1))
CHANGE(faster_than_one_core, READS(p, SWEEPS_ONE, K(4), K(4), ALL, r->value *= 1.1))
CHANGE(faster_than_two_cores, READS(p, SWEEPS_TWO, K(4), K(64), ALL, r->value *= 1.1))
CHANGE(faster_twice, READS(p, SWEEPS_TWO, K(4), K(64), 2, r->value *= 1.1))
CHANGE(copy_past_the_load_ports,
       SWEEPS_EACH(p, CB__BANDWIDTH, "copy", SWEEPS_ONE, K(4), K(32), ALL, r->value *= 2))
CHANGE(clockless, EVERY(p, 0, ALL, r->clock_hz = nan_value))
CHANGE(above_the_peak, p->device.peak_bytes_per_cycle = 0; p->device.peak_bytes_per_s = 350e9)
CHANGE(below_the_peak, p->device.peak_bytes_per_cycle = 0; p->device.peak_bytes_per_s = 390e9)
CHANGE(ports_beat_the_peak, p->device.peak_bytes_per_s = 10e9)
CHANGE(best_once, READS(p, SWEEPS_ONE, K(4), K(4), ALL, r->value = sweep ? nan_value : 193))
CHANGE(no_ports, p->device.peak_bytes_per_cycle = 0)
CHANGE(edge, READS(p, SWEEPS_ONE, K(64), K(64), ALL, r->edge_gain = 1.3))
CHANGE(edge_twice, READS(p, SWEEPS_ONE, K(64), K(64), 2, r->edge_gain = 1.3))
CHANGE(edge_some, READS(p, SWEEPS_ONE, K(64), K(64), ALL, r->edge_gain = 1.2))
CHANGE(edge_near, READS(p, SWEEPS_ONE, K(64), K(64), ALL, r->edge_gain = 1.07))
CHANGE(fewer_better, READS(p, SWEEPS_TWO, M(8), M(32), ALL, r->value = 45))
CHANGE(fewer_better_size, READS(p, SWEEPS_TWO, M(8), M(8), ALL, r->value = 45))
CHANGE(fewer_better_once, READS(p, SWEEPS_TWO, M(8), M(8), 2, r->value = 45))
CHANGE(fewer_little_better, READS(p, SWEEPS_TWO, M(8), M(32), ALL, r->value = 56.5))
CHANGE(falling, READS(p, SWEEPS_TWO, M(180), M(256), ALL, r->value *= 0.7))
CHANGE(falling_twice, READS(p, SWEEPS_TWO, M(250), M(256), 2, r->value *= 0.8))
CHANGE(falling_alone, READS(p, SWEEPS_ONE, M(180), M(256), ALL, r->value *= 0.7))
/* A cache that nobody named serves the whole range. */
CHANGE(cached_throughout, READS(p, SWEEPS_ONE, 0, M(256), ALL, r->value = 190);
       READS(p, SWEEPS_TWO, 0, M(256), ALL, r->value = 380))
CHANGE(one_cached_throughout, READS(p, SWEEPS_ONE, 0, M(256), ALL, r->value = 190))
CHANGE(folded_in_some_sweeps, READS(p, SWEEPS_TWO, 0, M(128), 2, r->folded = 1.5))
CHANGE(edge_in_some_sweeps, READS(p, SWEEPS_TWO, 0, M(128), 2, r->edge_gain = 1.3))
CHANGE(edge_never_tried, EVERY(p, 0, ALL, r->edge_gain = nan_value))
CHANGE(nothing_measured, EVERY(p, 0, ALL, r->value = 0))
CHANGE(nothing_gains_unmeasured, EVERY(p, 0, ALL, r->value = 0; r->edge_gain = 1.3))
CHANGE(no_llc, p->device.llc_bytes = 0)
CHANGE(above_memory, p->device.peak_dram_bytes_per_s = 18e9)
CHANGE(below_memory, p->device.peak_dram_bytes_per_s = 25e9)
CHANGE(no_samples, GROUPS(p, ALL, if (g->threads == 2) g->sampled_words[sweep] = 0))
CHANGE(huge_in_base, GROUPS(p, ALL, if (g->base_pages) g->pages[sweep].huge_bytes = 100 << 20))
CHANGE(huge_in_base_twice, GROUPS(p, 2, if (g->base_pages) g->pages[sweep].huge_bytes = 100 << 20))
CHANGE(huge_refused, GROUPS(p, ALL, if (!g->base_pages) g->pages[sweep].huge_bytes = 100 << 20))
CHANGE(no_smaps, GROUPS(p, ALL, g->pages[sweep].known = false))
CHANGE(stolen_twice, sweeps_stolen_counted(p); GROUPS(p, 1, g->steal_s[sweep] = 0))
CHANGE(switched, GROUPS(p, ALL, g->involuntary[sweep] = 300))
CHANGE(clocks_move, READS(p, SWEEPS_ONE, K(64), M(256), ALL, r->clock_hz = 2.6e9))
CHANGE(clocks_move_counted, clocks_move(p); p->device.has_counters = true)
CHANGE(drifted, EVERY(p, 2, ALL, r->value *= 0.82))

/* Only all threads together were measured. */
static void only_two(probe *p)
{
    int n = 0;
    for (int s = 0; s < p->nseries; s++)
        if (p->series[s].group == SWEEPS_TWO)
            p->series[n++] = p->series[s];
    p->nseries = n;
}

static void only_one(probe *p)
{
    p->nseries = 3;
    p->device.threads = 1;
}

/* One read curve, one sweep at the first cache and at the largest set, all sweeps elsewhere. */
static void ends_once(probe *p)
{
    READS(p, SWEEPS_TWO, M(256), M(257), ALL, if (sweep > 0) r->value = nan_value);
    READS(p, SWEEPS_ONE, 0, K(24), ALL, if (sweep > 0) r->value = nan_value);
    GROUPS(
        p, ALL, if (sweep > 0) {
            g->pages[sweep].known = false;
            g->wall_s[sweep] = 0;
        });
}

static void nothing_at_all(probe *p)
{
    memset(p, 0, sizeof *p);
}

/* As if the second of two workers slept. */
static void one_worker(probe *p)
{
    const cb__probe_series *one = sweeps_series(p, CB__BANDWIDTH, "read", SWEEPS_ONE);
    cb__probe_series *two = sweeps_series(p, CB__BANDWIDTH, "read", SWEEPS_TWO);
    for (int sweep = 0; sweep < ALL; sweep++)
        for (int i = 0; i < two->n; i++)
            two->readings[sweep][i].value = 1.02 * one->readings[sweep][i].value;
}

/* ---- what becomes of them ---- */

typedef struct row {
    const char *name;
    void (*change)(probe *);
    const char *check; /* the one that does not pass; NULL: none */
    cb__check_status status;
    bool required;
    cb_verdict verdict; /* that it stands for */
    /* a point, and how many points have its verdict; all others are ok */
    const char *curve;
    int64_t bytes;
    cb_verdict point;
    int npoints;
    cb_verdict ceiling; /* of read by two workers */
} row;

#define WRONG CB_VERDICT_WRONG
#define IMPOSSIBLE CB_VERDICT_IMPOSSIBLE
#define CONTAMINATED CB_VERDICT_CONTAMINATED
#define UNSTABLE CB_VERDICT_UNSTABLE
#define LOWER CB_VERDICT_LOWER_BOUND
#define UNKNOWN CB_VERDICT_UNKNOWN
#define OK CB_VERDICT_OK

static const row rows[] = {
    {"clean", none, NULL, CB__PASS, true, OK, "read/1", K(16), OK, SWEEPS_POINTS, OK},
    {"folded", folded_up, "folding", CB__FAIL, true, CONTAMINATED, "read/1", K(16), CONTAMINATED, 1,
     OK},
    {"folded down", folded_down, "folding", CB__FAIL, true, CONTAMINATED, "read/1", K(16),
     CONTAMINATED, 1, OK},
    {"folded until nothing is left", folded_whole, "folding", CB__FAIL, true, CONTAMINATED,
     "read/1", K(32), OK, SWEEPS_POINTS - 1, OK},
    {"folded a little", folded_some, NULL, CB__PASS, true, OK, "read/1", K(16), UNSTABLE, 1, OK},
    {"folded within the allowance", folded_near, NULL, CB__PASS, true, OK, "read/1", K(16), OK,
     SWEEPS_POINTS, OK},
    {"folded in two sweeps", folded_twice, NULL, CB__PASS, true, OK, "read/1", K(16), UNSTABLE, 1,
     OK},
    {"folded in one sweep", folded_once, NULL, CB__PASS, true, OK, "read/1", K(16), OK,
     SWEEPS_POINTS, OK},
    {"folded both ways", folded_both_ways, NULL, CB__PASS, true, OK, "read/1", K(16), UNSTABLE, 1,
     OK},
    {"never folded", never_folded, "folding", CB__SKIP, true, CONTAMINATED, "read/1", K(16),
     UNKNOWN, 6 * SWEEPS_CURVE, UNKNOWN},
    {"shrunk in one sweep", shrunk, "coverage", CB__FAIL, true, WRONG, "read/2", M(64), WRONG, 1,
     WRONG},
    {"coverage not looked at", not_looked, "coverage", CB__SKIP, true, WRONG, "read/2", M(64),
     UNKNOWN, SWEEPS_POINTS, UNKNOWN},
    {"coverage of a curve not looked at", not_looked_there, NULL, CB__PASS, true, OK, "read/2",
     M(64), UNKNOWN, SWEEPS_CURVE, UNKNOWN},
    {"bump", bump, "monotonicity", CB__FAIL, true, CONTAMINATED, "read/1", K(256), CONTAMINATED, 1,
     OK},
    {"bump in two sweeps", bump_twice, NULL, CB__PASS, true, OK, "read/1", K(256), UNSTABLE, 1, OK},
    {"small bump", small_bump, NULL, CB__PASS, true, OK, "read/1", K(256), OK, SWEEPS_POINTS, OK},
    {"latency dips", latency_dip, "monotonicity", CB__FAIL, true, CONTAMINATED, "random/4096",
     K(256), CONTAMINATED, 1, OK},
    {"slow start", slow_start, NULL, CB__PASS, true, OK, "read/1", K(4), LOWER, 1, OK},
    {"slower start", slower_start, NULL, CB__PASS, true, OK, "read/1", K(8), LOWER, 3, OK},
    {"gentle start", gentle_start, NULL, CB__PASS, true, OK, "read/1", K(4), OK, SWEEPS_POINTS, OK},
    /* 4 to 32 KiB by one worker, to 64 KiB by two: 7 and 9 sizes. */
    {"under-driven", under_driven, "port bound", CB__FAIL, true, LOWER, "write/1", K(32), LOWER,
     3 * 7 + 3 * 9, OK},
    {"under-driven but at the edge of the cache", under_driven_within, "port bound", CB__FAIL, true,
     LOWER, "write/1", K(32), LOWER, 3 * 7 + 3 * 9, OK},
    {"under-driven in two sweeps", under_driven_twice, NULL, CB__PASS, true, OK, "write/1", K(32),
     OK, SWEEPS_POINTS, OK},
    {"two cores above their ports", faster_than_two_cores, "port bound", CB__FAIL, true, IMPOSSIBLE,
     "read/2", K(4), IMPOSSIBLE, 9, OK},
    {"copies store half", copy_past_the_load_ports, NULL, CB__PASS, true, OK, "copy/1", K(4), OK,
     SWEEPS_POINTS, OK},
    {"above the peak", above_the_peak, "port bound", CB__FAIL, true, IMPOSSIBLE, "read/2", K(4),
     IMPOSSIBLE, 9, OK},
    {"below the peak", below_the_peak, "port bound", CB__SKIP, false, LOWER, "read/2", K(4), OK,
     SWEEPS_POINTS, OK},
    {"ports and clock before the peak", ports_beat_the_peak, NULL, CB__PASS, true, OK, "read/2",
     K(4), OK, SWEEPS_POINTS, OK},
    {"ports unknown", no_ports, "port bound", CB__SKIP, false, LOWER, "read/1", K(4), OK,
     SWEEPS_POINTS, OK},
    {"more in flight gains", edge, "drive", CB__FAIL, true, LOWER, "read/1", K(64), LOWER, 1, OK},
    {"more in flight gains in two sweeps", edge_twice, NULL, CB__PASS, true, OK, "read/1", K(64),
     UNSTABLE, 1, OK},
    {"more in flight gains something", edge_some, NULL, CB__PASS, true, OK, "read/1", K(64), LOWER,
     1, OK},
    {"more in flight gains little", edge_near, NULL, CB__PASS, true, OK, "read/1", K(64), OK,
     SWEEPS_POINTS, OK},
    {"fewer drive it better", fewer_better, "drive", CB__FAIL, true, LOWER, "read/2", M(8), LOWER,
     5, OK},
    {"fewer drive it better in two sweeps", fewer_better_once, NULL, CB__PASS, true, OK, "read/2",
     M(8), UNSTABLE, 1, OK},
    {"fewer drive it little better", fewer_little_better, NULL, CB__PASS, true, OK, "read/2", M(8),
     OK, SWEEPS_POINTS, OK},
    {"the second worker adds nothing", one_worker, "drive", CB__FAIL, true, LOWER, "copy/2", M(8),
     LOWER, 3 * SWEEPS_CURVE, LOWER},
    {"not flat", falling, "saturation", CB__FAIL, true, LOWER, "read/2", M(256), OK, SWEEPS_POINTS,
     LOWER},
    {"not flat in two sweeps", falling_twice, "saturation", CB__SKIP, true, LOWER, "read/2", M(256),
     UNSTABLE, 1, UNSTABLE},
    {"not flat by one worker", falling_alone, NULL, CB__PASS, true, OK, "read/2", M(256), OK,
     SWEEPS_POINTS, OK},
    {"range too short", sweeps_short_range, "saturation", CB__FAIL, true, LOWER, "read/2", M(64),
     OK, SWEEPS_CURVES *(SWEEPS_CURVE - 3), LOWER},
    {"no step to memory", cached_throughout, "saturation", CB__SKIP, true, LOWER, "read/2", M(256),
     OK, SWEEPS_POINTS, UNKNOWN},
    {"folded in two sweeps of a curve", folded_in_some_sweeps, "folding", CB__SKIP, true,
     CONTAMINATED, "read/2", K(4), UNSTABLE, 31, OK},
    {"more in flight gains in two sweeps of a curve", edge_in_some_sweeps, "drive", CB__SKIP, true,
     LOWER, "read/2", K(4), UNSTABLE, 31, OK},
    {"no variants", edge_never_tried, NULL, CB__PASS, true, OK, "read/2", K(4), OK, SWEEPS_POINTS,
     OK},
    {"caches unknown", no_llc, "saturation", CB__SKIP, true, LOWER, "read/2", M(256), OK,
     SWEEPS_POINTS, UNKNOWN},
    {"above the memory", above_memory, "saturation", CB__FAIL, true, IMPOSSIBLE, "read/2", M(256),
     OK, SWEEPS_POINTS, IMPOSSIBLE},
    {"below the memory", below_memory, NULL, CB__PASS, true, OK, "read/2", M(256), OK,
     SWEEPS_POINTS, OK},
    {"zeros in one sweep", sweeps_zeros, "content", CB__FAIL, true, CONTAMINATED, "copy/2", M(256),
     CONTAMINATED, 3 * SWEEPS_CURVE, CONTAMINATED},
    {"contents unknown", no_samples, "content", CB__SKIP, true, CONTAMINATED, "copy/2", M(256),
     UNKNOWN, 3 * SWEEPS_CURVE, UNKNOWN},
    {"huge pages where base ones were asked", huge_in_base, "pages", CB__FAIL, true, CONTAMINATED,
     "random/4096", K(4), CONTAMINATED, SWEEPS_CURVE, OK},
    {"huge pages in two sweeps of the base group", huge_in_base_twice, "pages", CB__SKIP, true,
     CONTAMINATED, "random/4096", K(4), UNSTABLE, SWEEPS_CURVE, OK},
    {"huge pages refused", huge_refused, NULL, CB__PASS, true, OK, "random/4096", K(4), OK,
     SWEEPS_POINTS - SWEEPS_CURVE, OK},
    {"pages unknown", no_smaps, "pages", CB__SKIP, true, CONTAMINATED, "random/2097152", K(4),
     UNKNOWN, 2 * SWEEPS_CURVE, OK},
    {"stolen", sweeps_stolen, "interference", CB__FAIL, false, CONTAMINATED, "read/1", K(4), OK,
     SWEEPS_POINTS, OK},
    {"stolen, with counters", sweeps_stolen_counted, "interference", CB__FAIL, true, CONTAMINATED,
     "read/1", K(4), CONTAMINATED, SWEEPS_POINTS, CONTAMINATED},
    {"stolen in two sweeps, with counters", stolen_twice, "interference", CB__SKIP, true,
     CONTAMINATED, "random/4096", K(4), UNSTABLE, SWEEPS_POINTS, OK},
    {"switched", switched, "interference", CB__FAIL, false, CONTAMINATED, "read/1", K(4), OK,
     SWEEPS_POINTS, OK},
    {"clocks move", clocks_move, "clock", CB__FAIL, false, CONTAMINATED, "read/1", K(4), OK,
     SWEEPS_POINTS, OK},
    {"clocks move, with counters", clocks_move_counted, "clock", CB__FAIL, true, CONTAMINATED,
     "read/1", K(4), CONTAMINATED, SWEEPS_POINTS, CONTAMINATED},
    {"a drifted sweep", drifted, NULL, CB__PASS, true, OK, "read/1", M(8), UNSTABLE, SWEEPS_POINTS,
     UNSTABLE},
};

static void counts_are(const row *r, const cb_model *m)
{
    int same = 0;
    for (int s = 0; s < m->nseries; s++)
        for (int i = 0; i < m->series[s].n; i++) {
            cb_verdict verdict = m->series[s].points[i].verdict;
            same += verdict == r->point;
            if (verdict != r->point && verdict != CB_VERDICT_OK)
                fail_msg("%s: %s/%d at %llu is %s", r->name, m->series[s].what,
                         m->series[s].workers, (unsigned long long)m->series[s].points[i].bytes,
                         cb_verdict_name(verdict));
        }
    if (same != r->npoints)
        fail_msg("%s: %d points are %s, not %d", r->name, same, cb_verdict_name(r->point),
                 r->npoints);
}

static void checks_are(const row *r, const cb_model *m)
{
    assert_int_equal(m->nchecks, NAMES);
    for (int i = 0; i < NAMES; i++) {
        const cb__check *k = &m->checks[i];
        assert_string_equal(k->name, names[i]);
        assert_true(strlen(k->detail) > 20 && strlen(k->detail) < sizeof k->detail - 1);
        bool is_it = r->check && strcmp(r->check, names[i]) == 0;
        if (k->status != (is_it ? r->status : CB__PASS))
            fail_msg("%s: %s is %s: %s", r->name, k->name, cb__check_status_name(k->status),
                     k->detail);
        if (is_it && (k->required != r->required || k->verdict != r->verdict))
            fail_msg("%s: %s is required %d, stands for %s", r->name, k->name, k->required,
                     cb_verdict_name(k->verdict));
    }
}

static void each_fault_fails_its_check(void **state)
{
    probe *p = *state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const row *r = &rows[i];
        cb_model *m = sweeps_judged(p, r->change);
        checks_are(r, m);
        cb_verdict point = sweeps_point(m, r->curve, r->bytes)->verdict;
        if (point != r->point)
            fail_msg("%s: the point is %s", r->name, cb_verdict_name(point));
        counts_are(r, m);
        cb_verdict ceiling = sweeps_ceiling(m, "read", 2)->verdict;
        if (ceiling != r->ceiling)
            fail_msg("%s: the ceiling is %s", r->name, cb_verdict_name(ceiling));
        cb_model_free(m);
    }
}

static void details_name_the_worst(void **state)
{
    static const struct {
        void (*change)(probe *);
        const char *check, *words;
    } table[] = {
        {folded_up, "folding", "takes 1.500 of three times the time at worst (read/1 at 16 KiB)"},
        {folded_up, "folding", "1 of 198 sizes is off"},
        {folded_twice, "folding", "are allowed; the sweeps disagree at 1 of 198"},
        {folded_in_some_sweeps, "folding", "the sweeps disagree at 31 of 198"},
        {edge_in_some_sweeps, "drive", "the sweeps disagree at 31 of 198 sizes"},
        {edge_never_tried, "drive",
         "no variants to search; fewer workers are nowhere better at 99"},
        {edge, "drive", "at 1 size the variant"},
        {fewer_better_size, "drive", "at 1 size: read/2"},
        {only_two, "drive", "of 2 threads no two worker counts were compared"},
        {only_two, "port bound", "was not measured on one thread"},
        {only_two, "clock", "one thread by itself was not measured"},
        {clockless, "port bound", "the clock of the cores is unknown"},
        {clockless, "clock", "the clock of the cores is unknown"},
        {no_ports, "port bound", "the load ports of this processor are unknown"},
        {only_one, "drive", "there is one thread, so no other worker count"},
        {only_one, "saturation", "1 worker reads 0.99"},
        {cached_throughout, "saturation", "no step to memory where 1 worker reads"},
        {no_llc, "saturation", "the size of the last-level caches is unknown"},
        {nothing_at_all, "saturation", "no sweep read the largest set"},
        {nothing_at_all, "pages", "no set was measured"},
        {not_looked_there, "coverage", "1 curve was not looked at"},
        {faster_than_one_core, "port bound", "1 size is read or written faster"},
        {faster_than_one_core, "port bound", "above all read/1 at 4 KiB: 21"},
        {huge_in_base_twice, "pages", "the sweeps disagree on the pages granted to 1 of 3 groups"},
        {ends_once, "saturation", "that is one sweep alone"},
        {ends_once, "port bound", "that is one sweep alone"},
        {ends_once, "pages", "one sweep alone says which pages were granted to 3 groups"},
        {ends_once, "interference", "that is one sweep alone"},
        {none, "folding", "0 of 198 sizes"},
        {bump, "monotonicity", "(read/1 at 256 KiB)"},
        {small_bump, "monotonicity", "0 of 264 sizes"},
        {shrunk, "coverage", "first read/2 at 64 MiB"},
        {none, "coverage", "every line was met in 792 readings"},
        {edge, "drive", "1.30x for read/1 at 64 KiB"},
        {fewer_better, "drive", "x as fast with 1"},
        {one_worker, "drive", "2 workers read at most 1.02x what one reads: the second adds"},
        {falling, "saturation", "2 workers read 0.697"},
        {sweeps_short_range, "saturation", "the largest set is 2.8x the last-level caches"},
        {above_memory, "saturation", "above the 18.0 GB/s of the memory"},
        {none, "port bound", "192.0 GB/s of its load ports at 3.00 GHz"},
        {none, "content",
         "random words read at 20.1 GB/s, a constant at 21.1 GB/s, never written at 80.4 GB/s"},
        {sweeps_zeros, "content", "0.0 % of the sampled words"},
        {none, "pages", "at most 0.0 % are on huge ones; where huge ones were asked for at least"},
        {huge_refused, "pages", "at least 39.1 % are, too few to call"},
        {huge_in_base, "pages", "at most 39.1 %"},
        {sweeps_stolen, "interference", "3.0 % of the time stolen, 5 involuntary"},
        {switched, "interference", "150 involuntary switches a second"},
        {clocks_move, "clock", "between 2.60 and 3.00 GHz"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        cb_model *m = sweeps_judged(*state, table[i].change);
        const char *detail = sweeps_check(m, table[i].check)->detail;
        if (!strstr(detail, table[i].words))
            fail_msg("%s does not say \"%s\": %s", table[i].check, table[i].words, detail);
        cb_model_free(m);
    }
}

static void the_status_is(probe *p, void (*change)(probe *), const char *check,
                          cb__check_status status)
{
    cb_model *m = sweeps_judged(p, change);
    const cb__check *k = sweeps_check(m, check);
    if (k->status != status)
        fail_msg("%s is %s: %s", check, cb__check_status_name(k->status), k->detail);
    cb_model_free(m);
}

/* What was looked at in one sweep, or by half of what there is, is not passed. */
static void half_a_look_is_no_pass(void **state)
{
    static const char *const once[] = {"saturation", "port bound", "pages", "interference"};
    for (int i = 0; i < 4; i++) {
        the_status_is(*state, ends_once, once[i], CB__SKIP);
        the_status_is(*state, sweeps_one_sweep, once[i], CB__SKIP);
    }
    the_status_is(*state, only_two, "drive", CB__SKIP);
    the_status_is(*state, only_one, "drive", CB__PASS);
    the_status_is(*state, best_once, "port bound", CB__PASS);
    the_status_is(*state, faster_twice, "port bound", CB__PASS);
}

/* A size that has no figure has no best variant either, whatever its variants are to each other. */
static void sizes_that_were_dropped_are_no_pass(void **state)
{
    the_status_is(*state, nothing_measured, "drive", CB__SKIP);
    the_status_is(*state, nothing_gains_unmeasured, "drive", CB__SKIP);
}

/* The table of load ports is wrong, or the clock: what the first cache gives is not known either.
 */
static void above_the_ports_nothing_is_proven(void **state)
{
    cb_model *m = sweeps_judged(*state, over_driven);
    assert_int_equal(sweeps_check(m, "port bound")->status, CB__FAIL);
    assert_int_equal(sweeps_check(m, "port bound")->verdict, IMPOSSIBLE);
    assert_int_equal(sweeps_point(m, "read/1", K(32))->verdict, IMPOSSIBLE);
    assert_int_equal(sweeps_point(m, "read/2", K(32))->verdict, LOWER);
    assert_int_equal(sweeps_point(m, "write/1", K(32))->verdict, LOWER);
    assert_int_equal(sweeps_point(m, "read/1", K(64))->verdict, OK);
    cb_model_free(m);
}

/* Of each worker count by itself. */
static void a_ceiling_needs_a_step_to_memory(void **state)
{
    cb_model *m = sweeps_judged(*state, one_cached_throughout);
    assert_int_equal(sweeps_check(m, "saturation")->status, CB__SKIP);
    assert_int_equal(sweeps_ceiling(m, "read", 1)->verdict, UNKNOWN);
    assert_int_equal(sweeps_ceiling(m, "copy", 1)->verdict, UNKNOWN);
    assert_int_equal(sweeps_ceiling(m, "copy", 2)->verdict, OK);
    cb_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_fault_fails_its_check),
        cmocka_unit_test(details_name_the_worst),
        cmocka_unit_test(half_a_look_is_no_pass),
        cmocka_unit_test(sizes_that_were_dropped_are_no_pass),
        cmocka_unit_test(above_the_ports_nothing_is_proven),
        cmocka_unit_test(a_ceiling_needs_a_step_to_memory),
    };
    return cmocka_run_group_tests(tests, sweeps_new, sweeps_free);
}
