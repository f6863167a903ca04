/* The public queries. Refusals say what the model has instead. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "model/query.h"

/* ---- what was measured ---- */

typedef enum table { MIXES, PATTERNS, CEILINGS, FLOORS, TYPES } table;

/* How a row is asked for. */
typedef struct row {
    const char *name; /* NULL: it is of another table */
    int workers;
} row;

static int rows_of(const cb_model *m, table t)
{
    const int counts[] = {m->nseries, m->nseries, m->nceilings, m->nfloors, m->ncomputes};
    return counts[t];
}

static row row_at(const cb_model *m, table t, int i)
{
    switch (t) {
    case MIXES:
    case PATTERNS:
        if (m->series[i].n == 0 || (t == MIXES) != (m->series[i].kind == CB__BANDWIDTH))
            break;
        return (row){m->series[i].what, m->series[i].workers};
    case CEILINGS:
        return (row){m->ceilings[i].mix, m->ceilings[i].workers};
    case FLOORS:
        return (row){m->floors[i].submit, m->floors[i].threads};
    case TYPES:
        return (row){m->computes[i].type, m->computes[i].threads};
    }
    return (row){0};
}

static cb_status refuse_name(const cb_model *m, table t, const char *name, cb_error *err)
{
    static const char *const words[] = {"curve of mix", "latency of pattern", "ceiling of mix",
                                        "floor of submit mode", "compute ceiling of type"};
    const char *known[CB__SERIES_MAX];
    size_t n = 0;
    cb__buf list = CB__BUF_INIT;
    for (int i = 0; i < rows_of(m, t); i++) {
        const char *other = row_at(m, t, i).name;
        bool seen = !other || n == CB__SERIES_MAX;
        for (size_t k = 0; !seen && k < n; k++)
            seen = strcmp(known[k], other) == 0;
        if (seen)
            continue;
        cb__buf_printf(&list, "%s%s", n ? ", " : "", other);
        known[n++] = other;
    }
    const char *nearest = cb__nearest(name, known, n);
    cb_status status =
        cb_error_set(err, CB_UNDECIDED, "the model has no %s '%.60s'; measured: %.400s%s%s%s%s",
                     words[t], name, n ? cb__buf_text(&list) : "none",
                     nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "",
                     !m->complete  ? " (the probe was cut short)"
                     : *m->dropped ? " (the probe had no room for everything)"
                                   : "");
    cb__buf_fini(&list);
    return status;
}

/* The smallest number of workers above `after` that the name was measured with; 0: none. */
static int next_workers(const cb_model *m, table t, const char *name, int after)
{
    int next = 0;
    for (int i = 0; i < rows_of(m, t); i++) {
        row r = row_at(m, t, i);
        if (r.name && strcmp(r.name, name) == 0 && r.workers > after && (!next || r.workers < next))
            next = r.workers;
    }
    return next;
}

/* The row is not there: the name is not, or not with so many workers. */
static cb_status refuse(const cb_model *m, table t, const char *name, int workers, cb_error *err)
{
    int first = next_workers(m, t, name, 0);
    if (!first)
        return refuse_name(m, t, name, err);
    cb__buf list = CB__BUF_INIT;
    for (int next = first; next; next = next_workers(m, t, name, next))
        cb__buf_printf(&list, "%s%d", next == first ? "" : ", ", next);
    cb_status status =
        cb_error_set(err, CB_UNDECIDED, "%s was not measured with %d workers, but with %.400s",
                     name, workers, cb__buf_text(&list));
    cb__buf_fini(&list);
    return status;
}

static int or_all(const cb_model *m, int workers)
{
    return workers == 0 ? cb_model_workers(m) : workers;
}

int cb_model_workers(const cb_model *model)
{
    int most = 0;
    for (int i = 0; i < model->nseries; i++)
        if (model->series[i].kind == CB__BANDWIDTH && model->series[i].workers > most)
            most = model->series[i].workers;
    return most;
}

const cb__series *cb__model_series(const cb_model *model, cb__series_kind kind, const char *what,
                                   int workers)
{
    const cb__series *best = NULL;
    for (int i = 0; i < model->nseries; i++) {
        const cb__series *s = &model->series[i];
        if (s->kind != kind || strcmp(s->what, what) != 0 || s->workers != workers || s->n == 0)
            continue;
        if (!best || s->page_bytes > best->page_bytes ||
            (kind == CB__BANDWIDTH && strcmp(s->placement, "compact") == 0))
            best = s;
    }
    return best;
}

cb_status cb__model_find_series(const cb_model *model, cb__series_kind kind, const char *what,
                                int workers, const cb__series **out, cb_error *err)
{
    int asked = kind == CB__LATENCY && workers == 0 ? 1 : or_all(model, workers);
    *out = cb__model_series(model, kind, what, asked);
    return *out ? CB_OK : refuse(model, kind == CB__BANDWIDTH ? MIXES : PATTERNS, what, asked, err);
}

/* ---- curves ---- */

/* "24 MiB" where that is exact. */
static void size_text(uint64_t bytes, char text[32])
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB"};
    int unit = 0;
    while (unit < 3 && bytes && bytes % 1024 == 0) {
        bytes /= 1024;
        unit++;
    }
    snprintf(text, 32, "%llu %s", (unsigned long long)bytes, units[unit]);
}

static cb_figure figure_of(cb__interval x, cb_verdict verdict)
{
    return (cb_figure){x.lo, x.mid, x.hi, verdict};
}

/* Wherever on a chip it is waited for. */
static cb_figure figure_at(const cb__point *p)
{
    cb_figure x = figure_of(p->value, p->verdict);
    if (p->high > 0) {
        x.lo = fmin(x.lo, p->low);
        x.hi = fmax(x.hi, p->high);
    }
    return x;
}

/* Between two points. The share of the way goes by log1p of differences, which stays exact where
 * the logarithms of two large sizes are equal. */
static cb_figure between(const cb__point *a, const cb__point *b, uint64_t bytes)
{
    const double size = (double)a->bytes;
    const double share =
        log1p((double)(bytes - a->bytes) / size) / log1p((double)(b->bytes - a->bytes) / size);
    const double mid = exp(log(a->value.mid) + share * log(b->value.mid / a->value.mid));
    const double low = fmin(a->value.mid, b->value.mid), high = fmax(a->value.mid, b->value.mid);
    const cb_figure x = figure_at(a), y = figure_at(b);
    return (cb_figure){fmin(x.lo, y.lo), fmin(fmax(mid, low), high), fmax(x.hi, y.hi),
                       cb__verdict_worse(x.verdict, y.verdict)};
}

static cb_status at_size(const cb__series *s, uint64_t bytes, cb_figure *out, cb_error *err)
{
    const cb__point *first = s->points, *last = s->points + s->n - 1;
    if (bytes < first->bytes || bytes > last->bytes) {
        char name[48], from[32], to[32], asked[32];
        cb__series_name(s, name);
        size_text(first->bytes, from);
        size_text(last->bytes, to);
        size_text(bytes, asked);
        return cb_error_set(err, CB_UNDECIDED,
                            "%s was measured from %s to %s; %s is outside, and nothing is "
                            "extrapolated",
                            name, from, to, asked);
    }
    const cb__point *at = first;
    while (at->bytes < bytes)
        at++;
    *out = at->bytes == bytes ? figure_at(at) : between(at - 1, at, bytes);
    return CB_OK;
}

cb_status cb_model_bandwidth(const cb_model *model, const char *mix, uint64_t bytes, int workers,
                             cb_figure *out, cb_error *err)
{
    const cb__series *s;
    cb_status status = cb__model_find_series(model, CB__BANDWIDTH, mix, workers, &s, err);
    return status == CB_OK ? at_size(s, bytes, out, err) : status;
}

cb_status cb_model_latency(const cb_model *model, uint64_t bytes, cb_figure *out, cb_error *err)
{
    const cb__series *s;
    cb_status status = cb__model_find_series(model, CB__LATENCY, "random", 1, &s, err);
    return status == CB_OK ? at_size(s, bytes, out, err) : status;
}

cb_status cb_model_tiling_gain(const cb_model *model, uint64_t full, uint64_t tile, int workers,
                               cb_figure *out, cb_error *err)
{
    cb_figure slow, fast;
    cb_status status = cb_model_bandwidth(model, "read", full, workers, &slow, err);
    if (status == CB_OK)
        status = cb_model_bandwidth(model, "read", tile, workers, &fast, err);
    if (status != CB_OK)
        return status;
    *out = (cb_figure){fast.lo / slow.hi, fast.mid / slow.mid, fast.hi / slow.lo,
                       cb__verdict_worse(fast.verdict, slow.verdict)};
    return CB_OK;
}

/* ---- figures without a size ---- */

static bool is_mix(const char *mix, const char *asked)
{
    size_t length = strlen(asked);
    bool either = strcmp(asked, "write") == 0 || strcmp(asked, "copy") == 0;
    return strcmp(mix, asked) == 0 ||
           (either && !strncmp(mix, asked, length) && !strcmp(mix + length, "_nt"));
}

const cb__model_ceiling *cb__model_ceiling_best(const cb_model *model, const char *mix, int workers)
{
    const cb__model_ceiling *best = NULL;
    for (int i = 0; i < model->nceilings; i++) {
        const cb__model_ceiling *c = &model->ceilings[i];
        if (c->workers == workers && is_mix(c->mix, mix) && isfinite(c->gb_per_s.mid) &&
            (!best || c->gb_per_s.mid > best->gb_per_s.mid))
            best = c;
    }
    return best;
}

cb_status cb_model_ceiling(const cb_model *model, const char *mix, int workers, cb_figure *out,
                           cb_error *err)
{
    workers = or_all(model, workers);
    const cb__model_ceiling *best = cb__model_ceiling_best(model, mix, workers);
    if (!best)
        return refuse(model, CEILINGS, mix, workers, err);
    *out = figure_of(best->gb_per_s, best->verdict);
    return CB_OK;
}

cb_status cb_model_compute(const cb_model *model, const char *type, int workers, cb_figure *out,
                           cb_error *err)
{
    workers = or_all(model, workers);
    for (int i = 0; i < model->ncomputes; i++) {
        const cb__model_compute *c = &model->computes[i];
        if (c->threads == workers && strcmp(c->type, type) == 0) {
            *out = figure_of(c->gflop_per_s, c->verdict);
            return CB_OK;
        }
    }
    return refuse(model, TYPES, type, workers, err);
}

cb_status cb_model_floor(const cb_model *model, const char *submit, int workers, cb_figure *out,
                         cb_error *err)
{
    workers = or_all(model, workers);
    for (int i = 0; i < model->nfloors; i++) {
        const cb__model_floor *f = &model->floors[i];
        if (f->threads == workers && strcmp(f->submit, submit) == 0) {
            *out = figure_of(f->ns, f->verdict);
            return CB_OK;
        }
    }
    return refuse(model, FLOORS, submit, workers, err);
}

uint64_t cb__model_beyond_bytes(const cb_model *model, int threads)
{
    cb_resident resident;
    cb_figure knee;
    if (!model)
        return 0;
    cb_status status = cb_model_resident(
        model, 0, CB_STREAM_PATTERN, threads ? threads : model->threads, &resident, &knee, NULL);
    return status == CB_OK && knee.verdict == CB_VERDICT_OK ? (uint64_t)knee.hi : 0;
}
