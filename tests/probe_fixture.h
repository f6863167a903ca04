/* probe_fixture.h: a probe of a 2-core machine and its model, by hand, for what prints and records
 * them. */
#ifndef CB_TESTS_PROBE_FIXTURE_H
#define CB_TESTS_PROBE_FIXTURE_H

#include <math.h>
#include <string.h>

#include "probe/probe.h"
#include "stats/knees.h"

#define KIB ((uint64_t)1024)
#define MIB (1024 * KIB)

enum { SIZES = 49 }; /* three an octave, 4 KiB to 256 MiB */

/* A level: its plateau, and the knee that ends it. */
typedef struct step {
    double value;
    uint64_t lo_kib, hi_kib;
} step;

typedef struct curve {
    const char *what; /* "random": latency */
    int threads;
    const char *how; /* "compact", "scattered"; on "base" pages */
    int last;        /* index of memory's step */
    step steps[4];
} curve;

enum { FIXTURE_SWEEPS = 3 };

static const curve curves[] = {
    {"read", 1, "compact", 3, {{204, 32, 51}, {96, 813, 1290}, {61, 21504, 40960}, {18.1, 0, 0}}},
    {"read",
     2,
     "compact",
     3,
     {{406, 64, 102}, {190, 2048, 2580}, {118, 20480, 52013}, {23.8, 0, 0}}},
    {"read", 2, "scattered", 1, {{400, 64, 102}, {24.5, 0, 0}}},
    {"write_nt", 2, "compact", 0, {{15.5, 0, 0}}},
    {"random",
     1,
     "compact",
     3,
     {{1.14, 32, 41}, {3.98, 1024, 1290}, {13.2, 26007, 40960}, {96, 0, 0}}},
    {"random", 1, "base", 3, {{1.14, 32, 41}, {4.05, 512, 1290}, {17, 20480, 52013}, {128, 0, 0}}},
};
enum { CURVES = sizeof curves / sizeof *curves };

static uint64_t size_at(int i)
{
    return (uint64_t)(4096 * pow(2, i / 3.0) / 64) * 64;
}

static double value_at(const curve *c, uint64_t bytes)
{
    for (int i = 0; i < c->last; i++) {
        const step *s = &c->steps[i];
        double lo = (double)(s->lo_kib * KIB), hi = (double)(s->hi_kib * KIB), at = (double)bytes;
        if (at <= lo)
            return s->value;
        if (at < hi)
            return s->value * pow(s[1].value / s->value, log(at / lo) / log(hi / lo));
    }
    return c->steps[c->last].value;
}

static cb__interval around(double value)
{
    return (cb__interval){value * 0.99, value, value * 1.02, 0.75};
}

static void add_curve(cb__probe *probe, cb_model *model, int at, const curve *c)
{
    cb__group *g = &probe->groups[at];
    cb__probe_series *p = &probe->series[at];
    cb__series *s = &model->series[at];
    cb__series_kind kind = strcmp(c->what, "random") == 0 ? CB__LATENCY : CB__BANDWIDTH;
    bool scattered = strcmp(c->how, "scattered") == 0, base = strcmp(c->how, "base") == 0;
    *g = (cb__group){.threads = c->threads, .scattered = scattered, .base_pages = base};
    *p = (cb__probe_series){.kind = kind, .group = at, .n = SIZES};
    *s = (cb__series){.kind = kind, .workers = c->threads, .n = SIZES};
    strcpy(p->what, c->what);
    strcpy(s->what, c->what);
    strcpy(s->placement, scattered ? "scattered" : "compact");
    s->page_bytes = kind == CB__BANDWIDTH ? 0 : base ? 4096 : 2 << 20;
    s->points = cb__arena_array(&model->arena, SIZES, sizeof *s->points);
    for (int i = 0; i < SIZES; i++) {
        double value = value_at(c, size_at(i)), folded = kind == CB__BANDWIDTH ? 1 : (double)NAN;
        p->bytes[i] = (int64_t)size_at(i);
        s->points[i] = (cb__point){size_at(i), around(value), CB_VERDICT_OK, 0, 0};
        for (int sweep = FIXTURE_SWEEPS; sweep < CB__SWEEPS; sweep++)
            p->readings[sweep][i].value = (double)NAN;
        for (int sweep = 0; sweep < FIXTURE_SWEEPS; sweep++)
            p->readings[sweep][i] = (cb__reading){.value = value * (1 + 0.01 * (sweep - 1)),
                                                  .folded = folded + 0.001 * sweep,
                                                  .clock_hz = 3.5e9,
                                                  .edge_gain = (double)NAN,
                                                  .variant = at % 2,
                                                  .covered = 1};
    }
    for (int sweep = 0; sweep < FIXTURE_SWEEPS; sweep++) {
        g->pages[sweep] = (cb__pages){64 * MIB, base ? 0 : 64 * MIB, true};
        g->wall_s[sweep] = 1.5;
        g->steal_s[sweep] = 0.01 * sweep;
        g->involuntary[sweep] = 12 + sweep;
    }
    for (int i = 0; i < c->last; i++)
        model->knees[model->nknees++] = (cb__model_knee){.series = at,
                                                         .lo_bytes = c->steps[i].lo_kib * KIB,
                                                         .hi_bytes = c->steps[i].hi_kib * KIB,
                                                         .from = c->steps[i].value,
                                                         .to = c->steps[i + 1].value,
                                                         .last = i == c->last - 1,
                                                         .verdict = CB_VERDICT_OK};
}

static void add_ceiling(cb_model *model, const char *mix, int workers, double value,
                        cb_verdict verdict)
{
    cb__model_ceiling *c = &model->ceilings[model->nceilings++];
    *c = (cb__model_ceiling){.workers = workers, .gb_per_s = around(value), .verdict = verdict};
    strcpy(c->mix, mix);
}

static void add_scalars(cb__probe *probe, cb_model *model)
{
    static const struct {
        const char *mix;
        double one, two;
    } ceilings[] = {{"read", 18.1, 23.8},
                    {"write", 9.2, 11.9},
                    {"write_nt", 14.9, 15.5},
                    {"copy", 12.7, 16.1},
                    {"copy_nt", 16.8, 19.9}};
    for (size_t i = 0; i < sizeof ceilings / sizeof *ceilings; i++) {
        add_ceiling(model, ceilings[i].mix, 1, ceilings[i].one, CB_VERDICT_OK);
        add_ceiling(model, ceilings[i].mix, 2, ceilings[i].two,
                    i == 1 ? CB_VERDICT_LOWER_BOUND : CB_VERDICT_OK);
    }
    model->floors[0] = (cb__model_floor){"solo", 1, around(118), CB_VERDICT_OK};
    model->floors[1] = (cb__model_floor){"solo", 2, around(1840), CB_VERDICT_OK};
    model->floors[2] = (cb__model_floor){"batched", 2, around(212), CB_VERDICT_UNSTABLE};
    model->nfloors = 3;
    model->computes[0] = (cb__model_compute){"f32", 1, around(111.5), CB_VERDICT_OK};
    model->computes[1] = (cb__model_compute){"f32", 2, around(222.7), CB_VERDICT_OK};
    model->ncomputes = 2;
    probe->scalars[0] = (cb__scalar){CB__FLOOR, "solo", 0, {117, 118, (double)NAN}};
    probe->nscalars = 1;
}

static void add_checks(cb_model *model)
{
    model->checks[0] = (cb__check){"drive", CB__PASS, true, CB_VERDICT_LOWER_BOUND,
                                   "most loads in flight gain 0.4 % at the edge"};
    model->checks[1] = (cb__check){"saturation", CB__FAIL, true, CB_VERDICT_LOWER_BOUND,
                                   "write/2 still falls 12 % over the last two octaves"};
    model->checks[2] = (cb__check){"interference", CB__SKIP, false, CB_VERDICT_CONTAMINATED,
                                   "a virtual machine has no counters"};
    model->nchecks = 3;
}

/* A 2-core machine whose probe went as planned, but for three points and one knee. */
static cb_model *probe_fixture(cb__probe *probe)
{
    memset(probe, 0, sizeof *probe);
    cb_model *model = cb__model_new();
    assert_non_null(model);
    cb__arena *arena = &model->arena;
    model->series = cb__arena_array(arena, CB__SERIES_MAX, sizeof *model->series);
    model->knees = cb__arena_array(arena, CB__SERIES_MAX * CB__KNEES_MAX, sizeof *model->knees);
    model->ceilings = cb__arena_array(arena, 16, sizeof *model->ceilings);
    model->floors = cb__arena_array(arena, 4, sizeof *model->floors);
    model->computes = cb__arena_array(arena, 4, sizeof *model->computes);
    model->checks = cb__arena_array(arena, 4, sizeof *model->checks);
    model->levels[0] = (cb__level){1, 32 * KIB, 2};
    model->levels[1] = (cb__level){2, 1 * MIB, 2};
    model->levels[2] = (cb__level){3, 32 * MIB, 1};
    model->nlevels = 3;
    model->threads = 2;
    model->sweeps = FIXTURE_SWEEPS;
    model->complete = true;
    for (int i = 0; i < CURVES; i++)
        add_curve(probe, model, i, &curves[i]);
    probe->ngroups = probe->nseries = model->nseries = CURVES;
    add_scalars(probe, model);
    add_checks(model);
    model->series[0].points[9].verdict = CB_VERDICT_UNSTABLE;
    model->series[1].points[10].verdict = CB_VERDICT_UNSTABLE;
    model->series[3].points[48].verdict = CB_VERDICT_LOWER_BOUND;
    for (int i = 0; i < model->nknees; i++)
        if (model->knees[i].series == 4 && model->knees[i].last)
            model->knees[i].verdict = CB_VERDICT_UNKNOWN;
    strcpy(probe->device.name, "Example CPU 2-Core");
    probe->device.threads = 2;
    strcpy(probe->variants[0], "twin_read/avx512:loads=8");
    strcpy(probe->variants[1], "twin_read/avx512:loads=16");
    probe->nvariants = 2;
    probe->planned = probe->sweeps = FIXTURE_SWEEPS;
    probe->complete = true;
    probe->clock_hz = 3.31e9;
    probe->port_bound_gb_per_s = 211.8;
    probe->wall_s = 87.3;
    probe->measure_s = 71;
    strcpy(probe->dropped, "int8, copy scattered");
    return model;
}

#endif
