/* Queries about knees: what stays in the caches, and which knee ends which level. */
#include <math.h>
#include <stdio.h>

#include "model/query.h"
#include "stats/knees.h"

static int index_of(const cb_model *m, const cb__series *series)
{
    return (int)(series - m->series);
}

/* Geometric: a knee lies between two sizes on a logarithmic scale. Rounding may leave the interval
 * of two neighbouring sizes. */
static double middle(const cb__model_knee *k)
{
    const double lo = (double)k->lo_bytes, hi = (double)k->hi_bytes;
    return fmin(fmax(sqrt(lo * hi), lo), hi);
}

static cb_figure figure_of(const cb__model_knee *k)
{
    return (cb_figure){(double)k->lo_bytes, middle(k), (double)k->hi_bytes, k->verdict};
}

/* The knees of a curve, as they rise. */
static int knees_of(const cb_model *m, const cb__series *series,
                    const cb__model_knee *knees[CB__KNEES_MAX])
{
    int n = 0;
    for (int i = 0; i < m->nknees && n < CB__KNEES_MAX; i++)
        if (m->knees[i].series == index_of(m, series))
            knees[n++] = &m->knees[i];
    return n;
}

const cb__model_knee *cb__model_last_knee(const cb_model *model, const cb__series *series)
{
    for (int i = 0; i < model->nknees; i++)
        if (model->knees[i].last && model->knees[i].series == index_of(model, series))
            return &model->knees[i];
    return NULL;
}

/* The curve on which a pattern's knees are looked for. */
static cb_status pattern_series(const cb_model *m, cb_pattern pattern, int workers,
                                const cb__series **out, cb_error *err)
{
    if (pattern == CB_RANDOM_PATTERN)
        return cb__model_find_series(m, CB__LATENCY, "random", workers ? workers : 1, out, err);
    return cb__model_find_series(m, CB__BANDWIDTH, "read", workers, out, err);
}

/* Says which knees there are instead. */
static cb_status no_knee(const cb_model *m, const cb__series *s, const char *wanted, cb_error *err)
{
    char name[48];
    const cb__model_knee *knees[CB__KNEES_MAX];
    cb__buf list = CB__BUF_INIT;
    int n = knees_of(m, s, knees);
    cb__series_name(s, name);
    for (int i = 0; i < n; i++)
        cb__buf_printf(&list, "%s%llu to %llu bytes", i ? ", " : "",
                       (unsigned long long)knees[i]->lo_bytes,
                       (unsigned long long)knees[i]->hi_bytes);
    cb_status status = cb_error_set(err, CB_UNDECIDED, "no knee of %s was resolved %s; knees: %s",
                                    name, wanted, n ? cb__buf_text(&list) : "none");
    cb__buf_fini(&list);
    return status;
}

static cb_status last_knee(const cb_model *m, cb_pattern pattern, int workers,
                           const cb__model_knee **out, cb_error *err)
{
    const cb__series *s;
    cb_status status = pattern_series(m, pattern, workers, &s, err);
    if (status != CB_OK)
        return status;
    *out = cb__model_last_knee(m, s);
    return *out ? CB_OK : no_knee(m, s, "before memory", err);
}

cb_status cb_model_resident(const cb_model *model, uint64_t bytes, cb_pattern pattern, int workers,
                            cb_resident *out, cb_figure *knee, cb_error *err)
{
    const cb__model_knee *last;
    cb_status status = last_knee(model, pattern, workers, &last, err);
    if (status != CB_OK)
        return status;
    *out = bytes <= last->lo_bytes   ? CB_RESIDENT_YES
           : bytes >= last->hi_bytes ? CB_RESIDENT_NO
                                     : CB_RESIDENT_MAYBE;
    if (knee)
        *knee = figure_of(last);
    return CB_OK;
}

static const cb__level *level_at(const cb_model *m, int level)
{
    if (level == 0)
        return m->nlevels ? &m->levels[m->nlevels - 1] : NULL;
    for (int i = 0; i < m->nlevels; i++)
        if (m->levels[i].level == level)
            return &m->levels[i];
    return NULL;
}

uint64_t cb_model_nominal(const cb_model *model, int level)
{
    const cb__level *at = level_at(model, level);
    return at ? at->bytes * (uint64_t)at->instances : 0;
}

/* What `workers` threads reach of a level. */
static double nominal_for(const cb__level *level, int workers)
{
    return (double)level->bytes * (level->instances < workers ? level->instances : workers);
}

uint64_t cb__model_nominal_for(const cb_model *model, int level, int workers)
{
    const cb__level *at = level_at(model, level);
    return at ? (uint64_t)nominal_for(at, workers) : 0;
}

/* Of the pairings of the first knees with the first levels. */
typedef struct pairing {
    int pairs;
    double distance; /* sum of |log(knee / nominal)| */
    bool paired;     /* the last knee with the last level */
} pairing;

static bool better(pairing a, pairing b)
{
    return a.pairs > b.pairs || (a.pairs == b.pairs && a.distance < b.distance);
}

/* How far a knee is from a level; one that only one sweep saw gives way to others. */
static double off(const cb__model_knee *knee, double nominal)
{
    return fabs(log(middle(knee) / nominal)) + (knee->verdict == CB_VERDICT_UNKNOWN ? log(4) : 0);
}

/* The knee of each level, in order, as many as can be and then as close as can be; NULL: none.
 * best[i][j] is about the first i knees and j levels. */
static void pair_up(const cb__model_knee *const *knees, int nknees, const cb_model *m, int workers,
                    const cb__model_knee *of_level[CB__LEVELS_MAX])
{
    pairing best[CB__KNEES_MAX + 1][CB__LEVELS_MAX + 1] = {0};
    for (int i = 1; i <= nknees; i++)
        for (int j = 1; j <= m->nlevels; j++) {
            double nominal = nominal_for(&m->levels[j - 1], workers);
            pairing both = {best[i - 1][j - 1].pairs + 1,
                            best[i - 1][j - 1].distance + off(knees[i - 1], nominal), true};
            pairing rest = better(best[i - 1][j], best[i][j - 1]) ? best[i - 1][j] : best[i][j - 1];
            rest.paired = false;
            best[i][j] = better(rest, both) ? rest : both;
        }
    for (int j = 0; j < m->nlevels; j++)
        of_level[j] = NULL;
    for (int i = nknees, j = m->nlevels; i > 0 && j > 0;) {
        if (best[i][j].paired) {
            of_level[--j] = knees[--i];
        } else if (better(best[i - 1][j], best[i][j - 1])) {
            i--;
        } else {
            j--;
        }
    }
}

static cb_status no_level(const cb_model *m, int level, cb_error *err)
{
    char list[CB__LEVELS_MAX * 8] = "";
    for (int i = 0, at = 0; i < m->nlevels; i++)
        at += snprintf(list + at, sizeof list - (size_t)at, "%sL%d", i ? ", " : "",
                       m->levels[i].level);
    return cb_error_set(err, CB_UNDECIDED, "the system names no cache level %d; it names %s", level,
                        m->nlevels ? list : "none");
}

cb_status cb_model_capacity(const cb_model *model, int level, cb_pattern pattern, int workers,
                            cb_figure *out, cb_error *err)
{
    const cb__series *s;
    const cb__model_knee *knee = NULL;
    char wanted[32] = "before memory";
    cb_status status = pattern_series(model, pattern, workers, &s, err);
    if (status != CB_OK)
        return status;
    if (level == 0) {
        knee = cb__model_last_knee(model, s);
    } else {
        const cb__model_knee *knees[CB__KNEES_MAX], *of_level[CB__LEVELS_MAX];
        const cb__level *at = level_at(model, level);
        if (!at)
            return no_level(model, level, err);
        pair_up(knees, knees_of(model, s, knees), model, s->workers, of_level);
        knee = of_level[at - model->levels];
        snprintf(wanted, sizeof wanted, "for L%d", level);
    }
    if (!knee)
        return no_knee(model, s, wanted, err);
    *out = figure_of(knee);
    return CB_OK;
}
