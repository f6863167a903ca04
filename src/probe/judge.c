#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probe/controls.h"

#define POINT_WITHIN 0.10 /* hi / lo - 1 over sweeps: of points, ceilings and computes */
#define FLOOR_WITHIN 0.25 /* of dispatch floors */
/* What a host takes to submit differs from process to process. */
#define STREAM_WITHIN 0.50
#define PLATEAU_WITHIN 1.08 /* as small a step is no knee */

cb__swept cb__over_sweeps(const double values[CB__SWEEPS])
{
    double kept[CB__SWEEPS];
    int n = 0;
    for (int sweep = 0; sweep < CB__SWEEPS; sweep++)
        if (isfinite(values[sweep]))
            kept[n++] = values[sweep];
    return (cb__swept){cb__interval_of(kept, (size_t)n), n};
}

cb_verdict cb__steady(cb__swept figure, double within)
{
    if (figure.n < 2)
        return CB_VERDICT_UNKNOWN;
    return figure.over.hi / figure.over.lo - 1 <= within ? CB_VERDICT_OK : CB_VERDICT_UNSTABLE;
}

bool cb__measured(const cb__reading *reading)
{
    return isfinite(reading->value) && reading->value > 0;
}

bool cb__beyond_caches(const cb__device_info *device, double bytes)
{
    /* Sizes are rounded, so the last of a range may fall short of it by a little. */
    return device->llc_bytes && bytes >= 0.99 * 4 * (double)device->llc_bytes;
}

cb__series cb__series_of(const cb__judging *j, int series)
{
    const cb__probe_series *from = &j->probe->series[series];
    const cb__group *group = &j->probe->groups[from->group];
    bool latency = from->kind == CB__LATENCY;
    cb__series to = {.kind = from->kind,
                     .workers = latency ? 1 : group->threads,
                     .page_bytes = latency ? j->page_bytes[from->group] : 0};
    snprintf(to.what, sizeof to.what, "%s", from->what);
    snprintf(to.placement, sizeof to.placement, group->scattered ? "scattered" : "compact");
    return to;
}

static void points(cb__judging *j)
{
    const cb__probe *p = j->probe;
    for (int g = 0; g < p->ngroups; g++) {
        j->groups[g] = CB_VERDICT_OK;
        j->page_bytes[g] = p->groups[g].base_pages ? CB__BASE_PAGE_BYTES : CB__HUGE_PAGE_BYTES;
    }
    for (int s = 0; s < p->nseries; s++)
        for (int i = 0; i < p->series[s].n; i++) {
            double values[CB__SWEEPS];
            for (int sweep = 0; sweep < CB__SWEEPS; sweep++) {
                const cb__reading *r = &p->series[s].readings[sweep][i];
                values[sweep] = cb__measured(r) ? r->value : (double)NAN;
            }
            j->values[s][i] = cb__over_sweeps(values);
            j->points[s][i] = cb__steady(j->values[s][i], POINT_WITHIN);
        }
}

/* ---- where a plateau begins ---- */

static bool is_cached(const cb__judging *j, int series, int size)
{
    const cb__probe_series *s = &j->probe->series[series];
    return s->bytes[size] <= (int64_t)j->probe->device.llc_bytes && j->values[series][size].n;
}

int cb__best_cached(const cb__judging *j, int series)
{
    const cb__probe_series *s = &j->probe->series[series];
    const cb__swept *x = j->values[series];
    int best = 0, last = 0;
    if (!j->probe->device.queued || s->kind != CB__BANDWIDTH)
        return 0;
    for (int i = 1; i < s->n; i++)
        if (is_cached(j, series, i) && !(x[i].over.mid <= x[best].over.mid))
            best = i;
    for (int i = best; i < s->n; i++)
        if (is_cached(j, series, i) && x[i].over.mid >= x[best].over.mid / PLATEAU_WITHIN)
            last = i;
    return last;
}

int cb__plateau_start(const cb__judging *j, int series)
{
    int best = cb__best_cached(j, series), start = best;
    double least = j->values[series][best].over.mid / PLATEAU_WITHIN;
    while (start > 0 && j->values[series][start - 1].over.mid >= least)
        start--;
    return start;
}

/* ---- knees ---- */

/* The sizes of a curve that some sweep measured: what cb__knees_find counts. */
typedef struct curve {
    int at[CB__SIZES_MAX]; /* index among the probe's sizes */
    size_t n;
    double sizes[CB__SIZES_MAX];
    double values[CB__SWEEPS * CB__SIZES_MAX];
} curve;

static void curve_of(const cb__judging *j, int series, curve *c)
{
    const cb__probe_series *s = &j->probe->series[series];
    int from = cb__best_cached(j, series); /* a set below is worth no less, and no rise is a knee */
    c->n = 0;
    for (int i = 0; i < s->n; i++)
        if (j->values[series][i].n) {
            c->sizes[c->n] = (double)s->bytes[i];
            c->at[c->n++] = i;
        }
    for (int sweep = 0; sweep < CB__SWEEPS; sweep++)
        for (size_t i = 0; i < c->n; i++)
            c->values[(size_t)sweep * c->n + i] =
                s->readings[sweep][c->at[i] < from ? from : c->at[i]].value;
}

static double plateau_of(const curve *c, const cb__plateau *p, int sweep)
{
    double points[CB__SIZES_MAX];
    size_t n = 0;
    for (size_t i = p->first; i <= p->last; i++) {
        double value = c->values[(size_t)sweep * c->n + i];
        if (isfinite(value) && value > 0)
            points[n++] = value;
    }
    return cb__median(points, n);
}

/* How far apart the plateaus on both sides lie, each sweep by itself: what a whole sweep is off by
 * cancels. */
static cb__swept step_of(const cb__judging *j, int series, const curve *c, int knee)
{
    const cb__plateau *p = &j->knees[series].plateaus[knee];
    bool falling = j->probe->series[series].kind == CB__BANDWIDTH;
    double times[CB__SWEEPS];
    for (int sweep = 0; sweep < CB__SWEEPS; sweep++) {
        double before = plateau_of(c, &p[0], sweep), behind = plateau_of(c, &p[1], sweep);
        times[sweep] = falling ? before / behind : behind / before;
    }
    return cb__over_sweeps(times);
}

/* Whether two sweeps have the ends of the plateaus the wrong way round; one may have met a
 * neighbour at either of them. Intervals that overlap are no reason by themselves: at the edges of
 * steps of 10x they did, for one reading in twelve. */
static bool ends_cross(const cb__probe_series *s, int before, int behind)
{
    int crossed = 0;
    for (int sweep = 0; sweep < CB__SWEEPS; sweep++) {
        const cb__reading *a = &s->readings[sweep][before], *b = &s->readings[sweep][behind];
        if (cb__measured(a) && cb__measured(b))
            crossed += s->kind == CB__BANDWIDTH ? a->value <= b->value : a->value >= b->value;
    }
    return crossed >= 2;
}

static cb_verdict step_verdict(const cb__judging *j, int series, const curve *c, int knee)
{
    const cb__knee *k = &j->knees[series].knees[knee];
    int before = c->at[k->lo], behind = c->at[k->hi];
    cb__swept step = step_of(j, series, c, knee);
    if (j->points[series][before] == CB_VERDICT_UNSTABLE &&
        j->points[series][behind] == CB_VERDICT_UNSTABLE &&
        ends_cross(&j->probe->series[series], before, behind))
        return CB_VERDICT_UNSTABLE;
    if (k->seen < 2 || step.n < 2 || step.over.lo < 1 + CB__KNEE_STEP / 2)
        return CB_VERDICT_UNKNOWN;
    return CB_VERDICT_OK;
}

/* Before the controls: they ask for memory, and what they find moves no step. */
static void find_knees(cb__judging *j)
{
    curve c;
    for (int s = 0; s < j->probe->nseries; s++) {
        curve_of(j, s, &c);
        cb__knees_find(c.sizes, c.n, c.values, CB__SWEEPS,
                       j->probe->series[s].kind == CB__BANDWIDTH, &j->knees[s]);
        for (int k = 0; k < j->knees[s].nknees; k++)
            j->steps[s][k] = step_verdict(j, s, &c, k);
    }
}

/* ---- what need not agree ---- */

static bool within(cb__interval x, double lo, double hi)
{
    return x.lo >= lo / PLATEAU_WITHIN && x.hi <= hi * PLATEAU_WITHIN;
}

/* Inside of a knee all sweeps lie between its plateaus; where is the luck of which lines stay. */
static void settle_knee(cb__judging *j, int series, const curve *c, int knee)
{
    const cb__knee *k = &j->knees[series].knees[knee];
    double lo = fmin(k->from, k->to), hi = fmax(k->from, k->to);
    for (size_t i = k->lo + 1; i < k->hi && j->steps[series][knee] == CB_VERDICT_OK; i++) {
        cb_verdict *point = &j->points[series][c->at[i]];
        if (*point == CB_VERDICT_UNSTABLE && within(j->values[series][c->at[i]].over, lo, hi))
            *point = CB_VERDICT_LOWER_BOUND;
    }
}

/* On a device that launches are queued to two kinds of sizes differ between sweeps that are alike:
 * those that are bound by what a pass costs, before a plateau begins, and those inside of a knee.
 * They are worth what all sweeps saw at least. */
static void settle(cb__judging *j)
{
    curve c;
    for (int s = 0; s < j->probe->nseries && j->probe->device.queued; s++) {
        int start = cb__plateau_start(j, s);
        for (int i = 0; i < start; i++)
            if (j->points[s][i] == CB_VERDICT_UNSTABLE)
                j->points[s][i] = CB_VERDICT_LOWER_BOUND;
        curve_of(j, s, &c);
        for (int k = 0; k < j->knees[s].nknees; k++)
            settle_knee(j, s, &c, k);
    }
}

/* The last knee that the sweeps tell apart; where there is none, the last of all; -1: no knee. */
static int last_told(const cb__judging *j, int series)
{
    int last = j->knees[series].nknees - 1;
    for (int k = last; k >= 0; k--)
        if (j->steps[series][k] == CB_VERDICT_OK)
            return k;
    return last;
}

bool cb__reaches_memory(const cb__judging *j, int series)
{
    const cb__probe_series *s = &j->probe->series[series];
    int last = last_told(j, series), end = s->n - 1;
    while (end >= 0 && j->values[series][end].n == 0)
        end--;
    return last >= 0 && j->steps[series][last] == CB_VERDICT_OK &&
           cb__beyond_caches(&j->probe->device, (double)s->bytes[end]);
}

/* ---- ceilings ---- */

/* The median of a sweep's points in the last two octaves. */
static cb__swept asymptote(const cb__probe_series *s)
{
    double values[CB__SWEEPS];
    for (int sweep = 0; sweep < CB__SWEEPS; sweep++) {
        double last[CB__SIZES_MAX];
        size_t n = 0;
        for (int i = 0; i < s->n; i++)
            if (s->bytes[i] >= s->bytes[s->n - 1] / 4 && cb__measured(&s->readings[sweep][i]))
                last[n++] = s->readings[sweep][i].value;
        values[sweep] = cb__median(last, n);
    }
    return cb__over_sweeps(values);
}

static cb__model_ceiling *ceiling_of(cb_model *model, const char *mix, int workers)
{
    for (int i = 0; i < model->nceilings; i++)
        if (strcmp(model->ceilings[i].mix, mix) == 0 && model->ceilings[i].workers == workers)
            return &model->ceilings[i];
    return NULL;
}

/* Of two placements the better one: a ceiling is what can be had. */
static cb_status ceilings(cb__judging *j, int best[CB__PROBE_SERIES_MAX])
{
    const cb__probe *p = j->probe;
    cb_model *m = j->model;
    m->ceilings = cb__arena_array(&m->arena, (size_t)p->nseries, sizeof *m->ceilings);
    if (!m->ceilings)
        return CB_NO_MEMORY;
    for (int s = 0; s < p->nseries; s++) {
        cb__series head = cb__series_of(j, s);
        cb__swept figure = asymptote(&p->series[s]);
        /* What is kept in the first caches is never far beyond them. */
        if (head.kind != CB__BANDWIDTH || figure.n == 0 || strcmp(head.what, "read_l1") == 0)
            continue;
        cb__model_ceiling *c = ceiling_of(m, head.what, head.workers);
        if (!c)
            c = &m->ceilings[m->nceilings++];
        else if (c->gb_per_s.mid >= figure.over.mid)
            continue;
        *c = (cb__model_ceiling){.workers = head.workers,
                                 .gb_per_s = figure.over,
                                 .verdict = cb__steady(figure, POINT_WITHIN)};
        memcpy(c->mix, head.what, sizeof c->mix);
        best[c - m->ceilings] = s;
    }
    return CB_OK;
}

/* A ceiling is no better than the points it is made of. That one of them moved is no fault of a
 * median over them, which has its own interval. */
static void ceilings_inherit(cb__judging *j, const int best[CB__PROBE_SERIES_MAX])
{
    for (int c = 0; c < j->model->nceilings; c++) {
        const cb__probe_series *s = &j->probe->series[best[c]];
        cb_verdict *verdict = &j->model->ceilings[c].verdict;
        for (int i = 0; i < s->n; i++) {
            cb_verdict point = j->points[best[c]][i];
            if (s->bytes[i] >= s->bytes[s->n - 1] / 4 && j->values[best[c]][i].n &&
                point != CB_VERDICT_UNSTABLE)
                *verdict = cb__verdict_worse(*verdict, point);
        }
    }
}

/* ---- curves ---- */

static bool has_points(const cb__judging *j, int series)
{
    for (int i = 0; i < j->probe->series[series].n; i++)
        if (j->values[series][i].n)
            return true;
    return false;
}

/* Whether the pages that its label names, or huge ones where there is no label, were asked for. */
static bool is_by_request(const cb__judging *j, int series)
{
    const cb__probe_series *s = &j->probe->series[series];
    bool base = s->kind == CB__LATENCY && j->page_bytes[s->group] == CB__BASE_PAGE_BYTES;
    return j->probe->groups[s->group].base_pages == base;
}

/* A model has one curve of a name. Where huge pages were refused, two curves claim to be those of
 * base pages: the one that asked for them stays. */
static bool is_superseded(const cb__judging *j, int series)
{
    char name[48], other[48];
    cb__series head = cb__series_of(j, series);
    cb__series_name(&head, name);
    for (int s = 0; s < j->probe->nseries; s++) {
        head = cb__series_of(j, s);
        cb__series_name(&head, other);
        if (s == series || strcmp(name, other) != 0 || !has_points(j, s))
            continue;
        int better = is_by_request(j, s) - is_by_request(j, series);
        if (better > 0 || (better == 0 && s < series))
            return true;
    }
    return false;
}

/* A size of the model: a level of latency is an interval over the chip. */
static cb__point point_of(const cb__judging *j, int series, int size)
{
    const cb__probe_series *s = &j->probe->series[series];
    cb__point p = {.bytes = (uint64_t)s->bytes[size],
                   .value = j->values[series][size].over,
                   .verdict = j->points[series][size]};
    for (int sweep = 0; sweep < CB__SWEEPS; sweep++) {
        const cb__reading *r = &s->readings[sweep][size];
        if (!cb__measured(r) || !(r->low > 0) || !(r->high > 0))
            continue;
        p.low = p.low > 0 ? fmin(p.low, r->low) : r->low;
        p.high = fmax(p.high, r->high);
    }
    return p;
}

static cb_status series_add(cb__judging *j, int from)
{
    const cb__probe_series *s = &j->probe->series[from];
    cb_model *m = j->model;
    cb__series to = cb__series_of(j, from);
    to.points = cb__arena_array(&m->arena, (size_t)s->n, sizeof *to.points);
    if (!to.points)
        return CB_NO_MEMORY;
    for (int i = 0; i < s->n; i++)
        if (j->values[from][i].n)
            to.points[to.n++] = point_of(j, from, i);
    m->series[m->nseries++] = to;
    return CB_OK;
}

/* A knee is what its sweeps make of it, unless the very points around it are not what they say. */
static cb_verdict knee_verdict(const cb__series *series, size_t lo, size_t hi, cb_verdict step)
{
    cb_verdict verdict = step;
    for (size_t i = lo; i <= hi; i++)
        if (series->points[i].verdict < CB_VERDICT_UNSTABLE)
            verdict = cb__verdict_worse(verdict, series->points[i].verdict);
    return verdict;
}

/* The steps behind the last one that the sweeps tell apart may be memory's or nothing: the last
 * knee then reaches to the end of them. */
static void knees_add(cb__judging *j, int from, int index)
{
    const cb__series *to = &j->model->series[index];
    const cb__knees *found = &j->knees[from];
    /* A set of 2x the caches is still partly served by them. */
    bool memory =
        to->n && cb__beyond_caches(&j->probe->device, (double)to->points[to->n - 1].bytes);
    int last = memory ? last_told(j, from) : found->nknees - 1;
    for (int k = 0; k <= last; k++) {
        const cb__knee *start = &found->knees[k];
        const cb__knee *end = k == last ? &found->knees[found->nknees - 1] : start;
        j->model->knees[j->model->nknees++] = (cb__model_knee){
            .series = index,
            .lo_bytes = to->points[start->lo].bytes,
            .hi_bytes = to->points[end->hi].bytes,
            .from = start->from,
            .to = end->to,
            .last = memory && k == last,
            .verdict = knee_verdict(to, start->lo, end->hi, j->steps[from][k]),
        };
    }
}

static void start_add(cb__judging *j, int from, int index)
{
    cb_model *m = j->model;
    int start = cb__plateau_start(j, from);
    const cb__series *to = &m->series[index];
    int64_t bytes = j->probe->series[from].bytes[start];
    for (int i = 1; i < to->n && start > 0; i++)
        if ((int64_t)to->points[i].bytes == bytes)
            m->starts[m->nstarts++] =
                (cb__model_start){index, to->points[i - 1].bytes, to->points[i].bytes,
                                  j->values[from][cb__best_cached(j, from)].over.mid};
}

static cb_status curves(cb__judging *j)
{
    const cb__probe *p = j->probe;
    cb_model *m = j->model;
    m->starts = cb__arena_array(&m->arena, (size_t)p->nseries, sizeof *m->starts);
    if (!m->starts)
        return CB_NO_MEMORY;
    m->series = cb__arena_array(&m->arena, (size_t)p->nseries, sizeof *m->series);
    m->knees = cb__arena_array(&m->arena, (size_t)p->nseries * CB__KNEES_MAX, sizeof *m->knees);
    if (!m->series || !m->knees)
        return CB_NO_MEMORY;
    for (int s = 0; s < p->nseries; s++) {
        if (!has_points(j, s) || is_superseded(j, s))
            continue;
        cb_status status = series_add(j, s);
        if (status != CB_OK)
            return status;
        knees_add(j, s, m->nseries - 1);
        start_add(j, s, m->nseries - 1);
    }
    return CB_OK;
}

/* ---- figures without a size ---- */

static cb_status scalars(cb__judging *j)
{
    const cb__probe *p = j->probe;
    cb_model *m = j->model;
    m->floors = cb__arena_array(&m->arena, (size_t)p->nscalars, sizeof *m->floors);
    m->computes = cb__arena_array(&m->arena, (size_t)p->nscalars, sizeof *m->computes);
    if (!m->floors || !m->computes)
        return CB_NO_MEMORY;
    for (int i = 0; i < p->nscalars; i++) {
        const cb__scalar *s = &p->scalars[i];
        double values[CB__SWEEPS];
        for (int sweep = 0; sweep < CB__SWEEPS; sweep++)
            values[sweep] = s->values[sweep] > 0 ? s->values[sweep] : (double)NAN;
        cb__swept figure = cb__over_sweeps(values);
        int threads = p->groups[s->group].threads;
        if (figure.n == 0)
            continue;
        bool is_floor = s->kind == CB__FLOOR;
        cb_verdict verdict =
            cb__verdict_worse(j->groups[s->group],
                              cb__steady(figure, !is_floor                        ? POINT_WITHIN
                                                 : strcmp(s->what, "stream") == 0 ? STREAM_WITHIN
                                                                                  : FLOOR_WITHIN));
        if (is_floor) {
            cb__model_floor *f = &m->floors[m->nfloors++];
            *f = (cb__model_floor){.threads = threads, .ns = figure.over, .verdict = verdict};
            snprintf(f->submit, sizeof f->submit, "%.11s", s->what);
        } else if (s->kind == CB__COMPUTE) {
            cb__model_compute *c = &m->computes[m->ncomputes++];
            *c = (cb__model_compute){
                .threads = threads, .gflop_per_s = figure.over, .verdict = verdict};
            snprintf(c->type, sizeof c->type, "%.11s", s->what);
        }
    }
    return CB_OK;
}

static void head(const cb__probe *probe, cb_model *model)
{
    const cb__device_info *d = &probe->device;
    model->threads = d->threads;
    model->sweeps = probe->sweeps;
    model->quick = probe->quick;
    model->complete = probe->complete;
    for (int i = 0; i < d->ncaches && model->nlevels < CB__LEVELS_MAX; i++)
        model->levels[model->nlevels++] =
            (cb__level){d->caches[i].level, d->caches[i].bytes, d->caches[i].instances};
}

cb_status cb__probe_judge(cb__probe *probe, cb_model *model, cb_error *err)
{
    int best[CB__PROBE_SERIES_MAX]; /* series of a ceiling */
    cb_status status = CB_NO_MEMORY;
    cb__judging *j = calloc(1, sizeof *j);
    model->checks = cb__arena_array(&model->arena, CB__CONTROLS, sizeof *model->checks);
    if (!j || !model->checks)
        goto out;
    j->probe = probe;
    j->model = model;
    head(probe, model);
    points(j);
    find_knees(j);
    settle(j);
    status = ceilings(j, best);
    if (status != CB_OK)
        goto out;
    cb__controls_run(j);
    ceilings_inherit(j, best);
    status = curves(j);
    if (status == CB_OK)
        status = scalars(j);
    if (status == CB_OK)
        status = cb__judge_scratch(j);
out:
    free(j);
    return status == CB_OK
               ? CB_OK
               : cb_error_set(err, status, "no memory for the model of %s", probe->device.name);
}
