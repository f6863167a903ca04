/* sweeps.h: the raw sweeps of a machine that does not exist, exact but for a wobble of 1 %: two
 * cores at 3 GHz that read 64 bytes a cycle, 32 KiB and 512 KiB of their own, 32 MiB shared.
 * Included after cmocka.h. */
#ifndef CB_TESTS_SWEEPS_H
#define CB_TESTS_SWEEPS_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probe/probe.h"

enum { SWEEPS_KIB = 1024, SWEEPS_MIB = 1 << 20 };
/* Groups: one thread, two threads, one thread on base pages. */
enum { SWEEPS_ONE, SWEEPS_TWO, SWEEPS_BASE };

/* Half an octave apart, 4 KiB to 8x the last-level cache; in whole lines. */
enum { SWEEPS_MADE = 3 };

static inline int sweeps_sizes(int64_t bytes[CB__SIZES_MAX])
{
    int n = 0;
    for (double size = 4096; size <= 256.1 * SWEEPS_MIB; size *= sqrt(2))
        bytes[n++] = (int64_t)(size / 64 + 0.5) * 64;
    return n;
}

static inline double sweeps_wobble(int sweep, int64_t bytes)
{
    return 1 + 0.005 * (double)((bytes / 64 * 7 + sweep * 3) % 5 - 2);
}

static inline double sweeps_level(int64_t bytes, int threads, const double value[4])
{
    return bytes <= 32 * SWEEPS_KIB * threads    ? value[0]
           : bytes <= 512 * SWEEPS_KIB * threads ? value[1]
           : bytes <= 32 * SWEEPS_MIB            ? value[2]
                                                 : value[3];
}

static inline cb__probe_series *sweeps_series(cb__probe *p, cb__series_kind kind, const char *what,
                                              int group)
{
    for (int s = 0; s < p->nseries; s++)
        if (p->series[s].kind == kind && p->series[s].group == group &&
            strcmp(p->series[s].what, what) == 0)
            return &p->series[s];
    return NULL;
}

static inline void sweeps_curve(cb__probe *p, cb__series_kind kind, const char *what, int group,
                                const double value[4])
{
    cb__probe_series *s = &p->series[p->nseries++];
    int threads = p->groups[group].threads;
    s->kind = kind;
    snprintf(s->what, sizeof s->what, "%s", what);
    s->group = group;
    s->n = sweeps_sizes(s->bytes);
    const cb__reading none = cb__no_reading();
    for (int sweep = SWEEPS_MADE; sweep < CB__SWEEPS; sweep++)
        for (int i = 0; i < s->n; i++)
            s->readings[sweep][i] = none;
    for (int sweep = 0; sweep < SWEEPS_MADE; sweep++)
        for (int i = 0; i < s->n; i++)
            s->readings[sweep][i] = (cb__reading){
                .value =
                    sweeps_level(s->bytes[i], threads, value) * sweeps_wobble(sweep, s->bytes[i]),
                .folded = kind == CB__BANDWIDTH ? 1.01 : (double)NAN,
                .clock_hz = 3e9,
                .edge_gain = kind == CB__BANDWIDTH ? 0.97 : (double)NAN,
                .variant = 0,
                .covered = 1,
            };
}

static inline void sweeps_scalar(cb__probe *p, cb__scalar_kind kind, const char *what, int group,
                                 double value)
{
    cb__scalar *s = &p->scalars[p->nscalars++];
    s->kind = kind;
    snprintf(s->what, sizeof s->what, "%s", what);
    s->group = group;
    for (int sweep = 0; sweep < CB__SWEEPS; sweep++)
        s->values[sweep] = sweep < SWEEPS_MADE ? value * sweeps_wobble(sweep, 4096) : (double)NAN;
}

static inline void sweeps_group(cb__probe *p, int threads, bool base_pages)
{
    cb__group *g = &p->groups[p->ngroups++];
    g->threads = threads;
    g->base_pages = base_pages;
    for (int sweep = 0; sweep < SWEEPS_MADE; sweep++) {
        g->pages[sweep] = (cb__pages){256u << 20, base_pages ? 0 : 255u << 20, true};
        /* Base pages are for latency alone, whose chains nobody samples. */
        g->sampled_words[sweep] = g->distinct_words[sweep] = base_pages ? 0 : 4096;
        g->steal_s[sweep] = 0.001;
        g->wall_s[sweep] = 2;
        g->involuntary[sweep] = 10;
    }
}

static inline void sweeps_clean(cb__probe *p)
{
    static const double read[] = {190, 90, 60, 12}, write[] = {95, 60, 40, 8},
                        copy[] = {120, 70, 45, 9}, chase[] = {1.3, 4.5, 16, 90},
                        read2[] = {380, 180, 118, 20}, write2[] = {190, 120, 79, 10},
                        copy2[] = {240, 140, 88, 15};
    memset(p, 0, sizeof *p);
    p->device = (cb__device_info){
        .name = "a machine of two cores",
        .threads = 2,
        .caches = {{1, 32 * SWEEPS_KIB, 2}, {2, 512 * SWEEPS_KIB, 2}, {3, 32 * SWEEPS_MIB, 1}},
        .ncaches = 3,
        .llc_bytes = 32 * SWEEPS_MIB,
        .peak_bytes_per_cycle = 64};
    p->planned = p->sweeps = SWEEPS_MADE;
    p->complete = true;
    sweeps_group(p, 1, false);
    sweeps_group(p, 2, false);
    sweeps_group(p, 1, true);
    sweeps_curve(p, CB__BANDWIDTH, "read", SWEEPS_ONE, read);
    sweeps_curve(p, CB__BANDWIDTH, "write", SWEEPS_ONE, write);
    sweeps_curve(p, CB__BANDWIDTH, "copy", SWEEPS_ONE, copy);
    sweeps_curve(p, CB__BANDWIDTH, "read", SWEEPS_TWO, read2);
    sweeps_curve(p, CB__BANDWIDTH, "write", SWEEPS_TWO, write2);
    sweeps_curve(p, CB__BANDWIDTH, "copy", SWEEPS_TWO, copy2);
    sweeps_curve(p, CB__LATENCY, "random", SWEEPS_ONE, chase);
    sweeps_curve(p, CB__LATENCY, "random", SWEEPS_BASE, chase);
    sweeps_scalar(p, CB__FLOOR, "solo", SWEEPS_ONE, 1200);
    sweeps_scalar(p, CB__FLOOR, "batched", SWEEPS_TWO, 400);
    sweeps_scalar(p, CB__COMPUTE, "f32", SWEEPS_ONE, 96);
    sweeps_scalar(p, CB__CONTENT, "random", SWEEPS_TWO, 20);
    sweeps_scalar(p, CB__CONTENT, "constant", SWEEPS_TWO, 21);
    sweeps_scalar(p, CB__CONTENT, "untouched", SWEEPS_TWO, 80);
}

/* ---- changes to it ---- */

typedef cb__probe probe; /* what a change works on */

/* One expression on each reading of a curve's sizes within a range; `r` is the reading. */
#define SWEEPS_EACH(p, kind_, what_, group_, from, to, sweeps_, expression)                        \
    do {                                                                                           \
        cb__probe_series *s_ = sweeps_series(p, kind_, what_, group_);                             \
        for (int sweep = 0; sweep < (sweeps_); sweep++)                                            \
            for (int i_ = 0; i_ < s_->n; i_++) {                                                   \
                cb__reading *r = &s_->readings[sweep][i_];                                         \
                if (s_->bytes[i_] >= (from) && s_->bytes[i_] <= (to)) {                            \
                    expression;                                                                    \
                }                                                                                  \
            }                                                                                      \
    } while (0)
#define READS(p, group, from, to, sweeps_, expression)                                             \
    SWEEPS_EACH(p, CB__BANDWIDTH, "read", group, from, to, sweeps_, expression)
/* On every reading of the probe in these sweeps. */
#define EVERY(p, first, end, expression)                                                           \
    do {                                                                                           \
        for (int s_ = 0; s_ < (p)->nseries; s_++)                                                  \
            for (int sweep = (first); sweep < (end); sweep++)                                      \
                for (int i_ = 0; i_ < (p)->series[s_].n; i_++) {                                   \
                    cb__reading *r = &(p)->series[s_].readings[sweep][i_];                         \
                    expression;                                                                    \
                }                                                                                  \
    } while (0)
/* On every group in these sweeps; `g` is the group. */
#define GROUPS(p, end, expression)                                                                 \
    do {                                                                                           \
        for (int g_ = 0; g_ < (p)->ngroups; g_++)                                                  \
            for (int sweep = 0; sweep < (end); sweep++) {                                          \
                cb__group *g = &(p)->groups[g_];                                                   \
                expression;                                                                        \
            }                                                                                      \
    } while (0)
#define K(n) ((int64_t)(n)*SWEEPS_KIB)
#define M(n) ((int64_t)(n)*SWEEPS_MIB)
#define ALL SWEEPS_MADE

#define CHANGE(name, ...)                                                                          \
    static void name(probe *p)                                                                     \
    {                                                                                              \
        __VA_ARGS__;                                                                               \
    }

/* Three curves of each of two groups, two latencies. */
enum { SWEEPS_CURVE = 33, SWEEPS_CURVES = 8, SWEEPS_POINTS = SWEEPS_CURVES * SWEEPS_CURVE };

/* Up to 2.8x the caches: three sizes less. */
static inline void sweeps_short_range(probe *p)
{
    for (int s = 0; s < p->nseries; s++)
        while (p->series[s].bytes[p->series[s].n - 1] > M(100))
            p->series[s].n--;
}

static inline void sweeps_one_sweep(probe *p)
{
    EVERY(p, 1, ALL, r->value = r->folded = r->edge_gain = (double)NAN);
    for (int i = 0; i < p->nscalars; i++)
        p->scalars[i].values[1] = p->scalars[i].values[2] = (double)NAN;
    for (int g = 0; g < p->ngroups; g++)
        for (int sweep = 1; sweep < ALL; sweep++) {
            p->groups[g].wall_s[sweep] = 0;
            p->groups[g].pages[sweep].known = false;
        }
    p->sweeps = 1;
    p->complete = false;
}

static inline void sweeps_zeros(probe *p)
{
    p->groups[SWEEPS_TWO].distinct_words[1] = 1;
}

static inline void sweeps_stolen(probe *p)
{
    GROUPS(p, ALL, g->steal_s[sweep] = 0.03 * g->wall_s[sweep] * g->threads);
}

static inline void sweeps_stolen_counted(probe *p)
{
    sweeps_stolen(p);
    p->device.has_counters = true;
}

static inline cb_model *sweeps_judged(probe *p, void (*change)(probe *))
{
    cb_error err;
    cb_model *m = cb__model_new();
    sweeps_clean(p);
    change(p);
    assert_non_null(m);
    assert_int_equal(cb__probe_judge(p, m, &err), CB_OK);
    return m;
}

static inline const cb__point *sweeps_point(const cb_model *m, const char *curve, int64_t bytes)
{
    for (int s = 0; s < m->nseries; s++) {
        char name[48];
        cb__series_name(&m->series[s], name);
        for (int i = 0; i < m->series[s].n && strcmp(name, curve) == 0; i++)
            if (m->series[s].points[i].bytes == (uint64_t)bytes)
                return &m->series[s].points[i];
    }
    fail_msg("no point of %s at %lld", curve, (long long)bytes);
    return NULL;
}

static inline const cb__model_ceiling *sweeps_ceiling(const cb_model *m, const char *mix,
                                                      int workers)
{
    for (int i = 0; i < m->nceilings; i++)
        if (strcmp(m->ceilings[i].mix, mix) == 0 && m->ceilings[i].workers == workers)
            return &m->ceilings[i];
    fail_msg("no ceiling of %s by %d", mix, workers);
    return NULL;
}

static inline const cb__check *sweeps_check(const cb_model *m, const char *name)
{
    for (int i = 0; i < m->nchecks; i++)
        if (strcmp(m->checks[i].name, name) == 0)
            return &m->checks[i];
    fail_msg("no check %s", name);
    return NULL;
}

static inline int sweeps_new(void **state)
{
    *state = malloc(sizeof(probe));
    return *state ? 0 : -1;
}

static inline int sweeps_free(void **state)
{
    free(*state);
    return 0;
}

#endif
