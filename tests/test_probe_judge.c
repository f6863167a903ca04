/* From raw sweeps to a model: what it holds, and what is missing from it. */
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

enum { NAMES = 10 };

CHANGE(none, (void)p)

static void the_model_holds_what_was_measured(void **state)
{
    probe *p = *state;
    cb_model *m = sweeps_judged(p, none);
    assert_int_equal(m->threads, 2);
    assert_int_equal(m->sweeps, SWEEPS_MADE);
    assert_true(m->complete && !m->quick);
    assert_int_equal(m->nlevels, 3);
    assert_int_equal(m->levels[2].bytes, M(32));
    assert_int_equal(m->levels[0].instances, 2);
    assert_int_equal(m->nseries, 8);
    assert_int_equal(m->series[0].n, SWEEPS_CURVE);
    assert_string_equal(m->series[0].placement, "compact");
    assert_int_equal(m->series[0].page_bytes, 0);
    assert_int_equal(m->series[6].page_bytes, 2097152);
    assert_int_equal(m->series[7].page_bytes, 4096);
    const cb__point *point = sweeps_point(m, "read/2", M(8));
    assert_true(point->value.lo >= 118 * 0.989 && point->value.lo < point->value.mid &&
                point->value.mid < point->value.hi && point->value.hi <= 118 * 1.011);
    assert_int_equal(m->nceilings, 6);
    const cb__model_ceiling *ceiling = sweeps_ceiling(m, "copy", 2);
    assert_true(fabs(ceiling->gb_per_s.mid - 15) < 0.3);
    assert_int_equal(ceiling->verdict, CB_VERDICT_OK);
    assert_int_equal(m->nfloors, 2);
    assert_string_equal(m->floors[1].submit, "batched");
    assert_int_equal(m->floors[1].threads, 2);
    assert_true(fabs(m->floors[0].ns.mid - 1200) < 12);
    assert_int_equal(m->ncomputes, 1);
    assert_string_equal(m->computes[0].type, "f32");
    assert_int_equal(m->computes[0].verdict, CB_VERDICT_OK);
    assert_true(p->clock_hz == 3e9);
    assert_true(fabs(p->port_bound_gb_per_s - 192) < 1e-9);
    cb_model_free(m);
}

/* Knees of series `index` of the model. */
static int knees_of(const cb_model *m, int index, const cb__model_knee *out[CB__SERIES_MAX])
{
    int n = 0;
    for (int k = 0; k < m->nknees; k++)
        if (m->knees[k].series == index)
            out[n++] = &m->knees[k];
    return n;
}

static void knees_end_the_levels(void **state)
{
    const cb__model_knee *knees[CB__SERIES_MAX];
    static const int64_t ends[][3] = {{K(32), K(512), M(32)}, {K(64), M(1), M(32)}};
    cb_model *m = sweeps_judged(*state, none);
    for (int c = 0; c < 2; c++) {
        assert_int_equal(knees_of(m, 3 * c, knees), 3);
        for (int k = 0; k < 3; k++) {
            assert_int_equal(knees[k]->lo_bytes, ends[c][k]);
            assert_true((double)knees[k]->hi_bytes < 1.5 * (double)ends[c][k]);
            assert_int_equal(knees[k]->verdict, CB_VERDICT_OK);
            assert_int_equal(knees[k]->last, k == 2);
            assert_true(knees[k]->from > knees[k]->to);
        }
    }
    assert_int_equal(knees_of(m, 6, knees), 3);
    assert_true(knees[2]->last && knees[2]->from < knees[2]->to);
    cb_model_free(m);
    /* 2.8x the caches are not yet memory. */
    m = sweeps_judged(*state, sweeps_short_range);
    assert_int_equal(knees_of(m, 0, knees), 3);
    assert_true(!knees[2]->last);
    cb_model_free(m);
    m = sweeps_judged(*state, sweeps_one_sweep);
    assert_int_equal(knees_of(m, 0, knees), 3);
    assert_int_equal(knees[0]->verdict, CB_VERDICT_UNKNOWN);
    cb_model_free(m);
}

CHANGE(wrong_at_a_knee, READS(p, SWEEPS_ONE, K(512), K(512), ALL, r->covered = 0))

static void a_knee_is_no_better_than_its_points(void **state)
{
    const cb__model_knee *knees[CB__SERIES_MAX];
    cb_model *m = sweeps_judged(*state, wrong_at_a_knee);
    assert_int_equal(knees_of(m, 0, knees), 3);
    assert_int_equal(knees[0]->verdict, CB_VERDICT_OK);
    assert_int_equal(knees[1]->verdict, CB_VERDICT_WRONG);
    cb_model_free(m);
}

/* Behind the step to memory, one that two sweeps see and the third denies. */
CHANGE(doubtful_behind, static const double doubtful_behind_by[] = {0.85, 0.8, 1.05};
       READS(p, SWEEPS_ONE, M(120), M(256), ALL, r->value *= doubtful_behind_by[sweep]))
/* The same, but every sweep sees it. */
CHANGE(another_behind, static const double another_behind_by[] = {0.85, 0.8, 0.9};
       READS(p, SWEEPS_ONE, M(120), M(256), ALL, r->value *= another_behind_by[sweep]))
/* The last size of a cache and the first behind it, each off in one sweep; or one of them. */
CHANGE(crossing_ends, READS(p, SWEEPS_ONE, K(512), K(512), ALL, if (sweep == 1) r->value = 50);
       READS(p, SWEEPS_ONE, K(700), K(730), ALL, if (sweep == 2) r->value = 100))
CHANGE(crossing_once, READS(p, SWEEPS_ONE, K(512), K(512), ALL, if (sweep == 1) r->value = 50);
       READS(p, SWEEPS_ONE, K(700), K(730), ALL, if (sweep == 1) r->value = 70))
/* Whole sweeps differ by more than the caches do, but not memory from them. */
CHANGE(restless, static const double restless_by[] = {1, 0.6, 1.4};
       READS(p, SWEEPS_ONE, 0, M(256), ALL, r->value *= restless_by[sweep]))
CHANGE(restless_latency, static const double restless_latency_by[] = {1.25, 1.3, 0.97};
       SWEEPS_EACH(p, CB__LATENCY, "random", SWEEPS_ONE, M(120), M(256), ALL,
                   r->value *= restless_latency_by[sweep]))

/* A knee is not said of where it may be noise, and what may be memory's is not said to be the
 * caches'. */
static void a_step_within_the_spread_is_no_knee(void **state)
{
    const cb__model_knee *knees[CB__SERIES_MAX];
    cb_model *m = sweeps_judged(*state, doubtful_behind);
    cb_resident resident;
    cb_error err;
    assert_int_equal(knees_of(m, 0, knees), 3);
    assert_true(knees[2]->last && knees[2]->verdict == CB_VERDICT_OK);
    assert_int_equal(knees[2]->lo_bytes, M(32));
    assert_true(knees[2]->hi_bytes > M(120) && knees[2]->to < 11);
    static const struct {
        int64_t bytes;
        cb_resident resident;
    } asked[] = {{M(16), CB_RESIDENT_YES}, {M(64), CB_RESIDENT_MAYBE}, {M(200), CB_RESIDENT_NO}};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(cb_model_resident(m, (uint64_t)asked[i].bytes, CB_STREAM_PATTERN, 1,
                                           &resident, NULL, &err),
                         CB_OK);
        assert_int_equal(resident, asked[i].resident);
    }
    cb_model_free(m);
    m = sweeps_judged(*state, another_behind);
    assert_int_equal(knees_of(m, 0, knees), 4);
    assert_true(knees[3]->last && knees[3]->verdict == CB_VERDICT_OK);
    cb_model_free(m);
    m = sweeps_judged(*state, restless_latency);
    assert_int_equal(knees_of(m, 6, knees), 3);
    assert_true(knees[2]->last && knees[2]->hi_bytes > M(120));
    cb_model_free(m);
}

static void knee_verdicts_are(probe *p, void (*change)(probe *), const cb_verdict wanted[3])
{
    const cb__model_knee *knees[CB__SERIES_MAX];
    cb_model *m = sweeps_judged(p, change);
    assert_int_equal(knees_of(m, 0, knees), 3);
    for (int k = 0; k < 3; k++) {
        assert_int_equal(knees[k]->verdict, wanted[k]);
        assert_int_equal(knees[k]->last, k == 2);
    }
    cb_model_free(m);
}

static void ends_that_cross_are_unstable(void **state)
{
    knee_verdicts_are(*state, crossing_ends,
                      (const cb_verdict[]){CB_VERDICT_OK, CB_VERDICT_UNSTABLE, CB_VERDICT_OK});
    static void (*const others[])(probe *) = {crossing_once, restless};
    for (int i = 0; i < 2; i++)
        knee_verdicts_are(*state, others[i],
                          (const cb_verdict[]){CB_VERDICT_OK, CB_VERDICT_OK, CB_VERDICT_OK});
}

CHANGE(huge_refused, GROUPS(p, ALL, if (!g->base_pages) g->pages[sweep].huge_bytes = 100 << 20);
       SWEEPS_EACH(p, CB__LATENCY, "random", SWEEPS_ONE, 0, M(256), ALL, r->value *= 0.5))

/* Where huge pages were refused there are two curves of base pages: that of the group which asked
 * for them stays. A pattern that it did not measure keeps its curve, under the right label. */
static void refused_huge_pages_are_not_claimed(void **state)
{
    probe *p = *state;
    cb_model *m = sweeps_judged(p, huge_refused);
    assert_int_equal(m->nseries, SWEEPS_CURVES - 1);
    assert_int_equal(m->series[6].page_bytes, 4096);
    assert_true(sweeps_point(m, "random/4096", K(64))->value.mid > 4);
    cb_model_free(m);
    m = cb__model_new();
    assert_non_null(m);
    cb_error err;
    strcpy(p->series[6].what, "local");
    assert_int_equal(cb__probe_judge(p, m, &err), CB_OK);
    assert_int_equal(m->nseries, SWEEPS_CURVES);
    assert_int_equal(m->series[6].page_bytes, 4096);
    cb_model_free(m);
}

CHANGE(moving_scalars, p->scalars[0].values[0] *= 1.35; p->scalars[1].values[0] *= 1.2;
       p->scalars[2].values[0] *= 1.2; sweeps_scalar(p, CB__COMPUTE, "f64", SWEEPS_ONE, 0))

static void scalars_have_verdicts(void **state)
{
    cb_model *m = sweeps_judged(*state, moving_scalars);
    assert_int_equal(m->floors[0].verdict, CB_VERDICT_UNSTABLE);
    assert_int_equal(m->floors[1].verdict, CB_VERDICT_OK);
    assert_int_equal(m->computes[0].verdict, CB_VERDICT_UNSTABLE);
    assert_int_equal(m->ncomputes, 1); /* nothing is no figure */
    cb_model_free(m);
    m = sweeps_judged(*state, sweeps_stolen_counted);
    assert_int_equal(m->floors[0].verdict, CB_VERDICT_CONTAMINATED);
    assert_int_equal(m->computes[0].verdict, CB_VERDICT_CONTAMINATED);
    cb_model_free(m);
    m = sweeps_judged(*state, sweeps_zeros);
    assert_int_equal(m->floors[0].verdict, CB_VERDICT_OK);
    assert_int_equal(m->floors[1].verdict, CB_VERDICT_CONTAMINATED);
    cb_model_free(m);
}

CHANGE(one_bad_sweep, sweeps_one_sweep(p);
       READS(p, SWEEPS_ONE, K(16), K(16), 1, r->folded = 1.5; r->edge_gain = 1.2);
       READS(p, SWEEPS_ONE, K(256), K(256), 1, r->value *= 1.3))

/* A lone sweep neither accuses nor acquits. */
static void one_sweep_is_unknown(void **state)
{
    static void (*const changes[])(probe *) = {sweeps_one_sweep, one_bad_sweep};
    for (int c = 0; c < 2; c++) {
        cb_model *m = sweeps_judged(*state, changes[c]);
        assert_int_equal(m->nchecks, NAMES);
        assert_true(!m->complete);
        for (int i = 0; i < NAMES; i++)
            if (m->checks[i].status == CB__FAIL)
                fail_msg("%s: %s", m->checks[i].name, m->checks[i].detail);
        assert_int_equal(sweeps_check(m, "folding")->status, CB__SKIP);
        assert_int_equal(sweeps_check(m, "monotonicity")->status, CB__SKIP);
        assert_int_equal(sweeps_check(m, "drive")->status, CB__SKIP);
        assert_int_equal(sweeps_point(m, "read/2", M(8))->verdict, CB_VERDICT_UNKNOWN);
        assert_int_equal(sweeps_point(m, "read/1", K(16))->verdict,
                         c ? CB_VERDICT_UNSTABLE : CB_VERDICT_UNKNOWN);
        assert_int_equal(sweeps_ceiling(m, "read", 2)->verdict, CB_VERDICT_UNKNOWN);
        assert_int_equal(m->floors[0].verdict, CB_VERDICT_UNKNOWN);
        assert_int_equal(m->computes[0].verdict, CB_VERDICT_UNKNOWN);
        cb_model_free(m);
    }
}

CHANGE(nothing, memset(p, 0, sizeof *p))
CHANGE(no_sizes, for (int s = 0; s < p->nseries; s++) p->series[s].n = 0)
CHANGE(no_series, p->nseries = 0)

/* Planned, and interrupted before the first reading. */
static void planned(probe *p)
{
    EVERY(p, 0, ALL, *r = (cb__reading){.value = nan_value});
    for (int g = 0; g < p->ngroups; g++)
        p->groups[g] = (cb__group){.threads = 1};
    p->nscalars = 0;
    p->sweeps = 0;
}

static void nothing_measured_is_no_fault(void **state)
{
    static void (*const changes[])(probe *) = {nothing, planned, no_sizes, no_series};
    for (int c = 0; c < 4; c++) {
        cb_model *m = sweeps_judged(*state, changes[c]);
        assert_int_equal(m->nseries + m->nknees + m->nceilings, 0);
        assert_int_equal(m->nchecks, NAMES);
        for (int i = 0; i < NAMES; i++)
            if (m->checks[i].status == CB__FAIL)
                fail_msg("%s: %s", m->checks[i].name, m->checks[i].detail);
        assert_int_equal(sweeps_check(m, "coverage")->status, CB__SKIP);
        assert_true(sweeps_check(m, "coverage")->required);
        cb_model_free(m);
    }
}

CHANGE(gaps, READS(p, SWEEPS_ONE, M(8), M(8), 1, r->value = nan_value);
       READS(p, SWEEPS_ONE, K(256), K(256), ALL, r->value = nan_value))

static void gaps_are_left_out(void **state)
{
    cb_model *m = sweeps_judged(*state, gaps);
    assert_int_equal(m->series[0].n, SWEEPS_CURVE - 1);
    assert_int_equal(sweeps_point(m, "read/1", M(8))->verdict, CB_VERDICT_OK);
    for (int i = 1; i < m->series[0].n; i++)
        assert_true(m->series[0].points[i].bytes > m->series[0].points[i - 1].bytes);
    const cb__model_knee *knees[CB__SERIES_MAX];
    assert_int_equal(knees_of(m, 0, knees), 3);
    assert_int_equal(knees[2]->lo_bytes, M(32));
    for (int i = 0; i < NAMES; i++)
        assert_int_equal(m->checks[i].status, CB__PASS);
    cb_model_free(m);
}

/* Two threads apart: the caches are the same, the memory gives more. */
static void scattered(probe *p)
{
    static const double read[] = {380, 180, 118, 24};
    sweeps_group(p, 2, false);
    p->groups[p->ngroups - 1].scattered = true;
    sweeps_curve(p, CB__BANDWIDTH, "read", p->ngroups - 1, read);
}

static void the_better_placement_is_the_ceiling(void **state)
{
    cb_model *m = sweeps_judged(*state, scattered);
    assert_int_equal(m->nseries, 9);
    assert_string_equal(m->series[8].placement, "scattered");
    assert_int_equal(m->nceilings, 6);
    assert_true(fabs(sweeps_ceiling(m, "read", 2)->gb_per_s.mid - 24) < 0.5);
    cb_model_free(m);
}

CHANGE(no_clock_counted, EVERY(p, 0, ALL, r->clock_hz = nan_value); p->device.has_counters = true)

/* What was judged can be stored: the reader of models takes back what the writer wrote. */
static void every_model_can_be_read_back(void **state)
{
    static void (*const changes[])(probe *) = {
        none,      huge_refused,   sweeps_one_sweep, planned,          no_sizes,        gaps,
        scattered, moving_scalars, wrong_at_a_knee,  no_clock_counted, doubtful_behind, restless};
    for (size_t c = 0; c < sizeof changes / sizeof *changes; c++) {
        cb_error err;
        cb_model *back = NULL, *m = sweeps_judged(*state, changes[c]);
        cb__buf text = CB__BUF_INIT;
        strcpy(m->identity, "fake-1");
        strcpy(m->device, "cpu");
        strcpy(m->name, "a machine of two cores");
        strcpy(m->written, "2020-01-01T00:00:00Z");
        strcpy(m->version, "1");
        strcpy(m->source_id, "none");
        cb__model_write_text(m, &text);
        if (cb__model_read_text(cb__buf_text(&text), text.size, "it", "fake-1", &back, &err) !=
            CB_OK)
            fail_msg("change %zu: %s", c, err.message);
        assert_int_equal(back->nseries, m->nseries);
        assert_int_equal(back->nknees, m->nknees);
        assert_int_equal(back->nchecks, m->nchecks);
        cb__buf_fini(&text);
        cb_model_free(back);
        cb_model_free(m);
    }
}

/* An unknown clock is no fault, counters or not; the ports are then unknown too. */
static void an_unknown_clock_is_skipped(void **state)
{
    cb_model *m = sweeps_judged(*state, no_clock_counted);
    for (int i = 0; i < NAMES; i++) {
        const cb__check *k = &m->checks[i];
        bool of_clock = strcmp(k->name, "clock") == 0 || strcmp(k->name, "port bound") == 0;
        assert_int_equal(k->status, of_clock ? CB__SKIP : CB__PASS);
        if (of_clock)
            assert_true(!k->required);
    }
    assert_int_equal(sweeps_point(m, "read/1", K(16))->verdict, CB_VERDICT_OK);
    assert_true(((probe *)*state)->port_bound_gb_per_s == 0);
    cb_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_model_holds_what_was_measured),
        cmocka_unit_test(knees_end_the_levels),
        cmocka_unit_test(a_knee_is_no_better_than_its_points),
        cmocka_unit_test(a_step_within_the_spread_is_no_knee),
        cmocka_unit_test(ends_that_cross_are_unstable),
        cmocka_unit_test(refused_huge_pages_are_not_claimed),
        cmocka_unit_test(scalars_have_verdicts),
        cmocka_unit_test(one_sweep_is_unknown),
        cmocka_unit_test(nothing_measured_is_no_fault),
        cmocka_unit_test(gaps_are_left_out),
        cmocka_unit_test(the_better_placement_is_the_ceiling),
        cmocka_unit_test(every_model_can_be_read_back),
        cmocka_unit_test(an_unknown_clock_is_skipped),
    };
    return cmocka_run_group_tests(tests, sweeps_new, sweeps_free);
}
