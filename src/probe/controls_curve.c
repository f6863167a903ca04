#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "probe/controls.h"
#include "stats/isotonic.h"

#define FOLDED_WITHIN 0.10 /* three times the traffic takes three times as long ... */
#define FOLDED_CLEAR                                                                               \
    0.20                    /* ... and a loop that folds is off by far more: honest ones near the  \
                               edge of a shared cache were seen at 0.86 */
#define ORDER_WITHIN 1.08   /* of the monotone fit; as small a step is no knee either */
#define LEAST_SPREAD 0.02   /* of sweeps, log(hi / lo), however well they agree */
#define LONE_SPREAD 0.30    /* of one sweep, which could lie anywhere */
#define EDGE_GAIN 1.08      /* the variant with most in flight gains: a lower bound ... */
#define EDGE_CLEAR 1.25     /* ... and this much says that the search is at fault */
#define DISPUTED_SHARE 0.10 /* of the points: beyond it the sweeps say nothing of all of them */
#define FEWER_FASTER 1.10   /* fewer workers drive it better */

/* What a rule found over many points. */
typedef struct tally {
    int seen, broken, disputed;
    int series, size; /* the worst */
    double mid;
    cb__agreement worst;
    double distance;
} tally;

/* The range that a figure is allowed, and what it means to lie outside. */
typedef struct rule {
    double lo, hi;
    cb_verdict verdict;
    double clear_lo, clear_hi; /* only what lies outside of this is accused; 0: of the range */
} rule;

static void weigh(cb__judging *j, tally *t, int series, int size, cb__swept x, rule r)
{
    if (x.n == 0)
        return;
    cb__agreement a = cb__agree(x, r.lo, r.hi);
    if (a == CB__BROKEN && r.clear_hi > 0 && cb__agree(x, r.clear_lo, r.clear_hi) != CB__BROKEN)
        a = CB__DISPUTED;
    if (a != CB__HOLDS)
        cb__worsen(j, series, size, a == CB__BROKEN ? r.verdict : CB_VERDICT_UNSTABLE);
    t->broken += a == CB__BROKEN;
    t->disputed += a == CB__DISPUTED && x.n >= 2;
    double distance = fmax(x.over.mid / r.hi, r.lo / x.over.mid);
    if (t->distance == 0 || a > t->worst || (a == t->worst && distance > t->distance)) {
        t->series = series;
        t->size = size;
        t->mid = x.over.mid;
        t->worst = a;
        t->distance = distance;
    }
    /* A lone sweep cannot accuse, so it cannot acquit. */
    t->seen += x.n >= 2;
}

static cb__check_status tally_status(const tally *t)
{
    bool decided = t->seen && t->disputed <= DISPUTED_SHARE * t->seen;
    return t->broken ? CB__FAIL : decided ? CB__PASS : CB__SKIP;
}

static cb__swept field(const cb__probe_series *s, int size, size_t offset)
{
    double values[CB__SWEEPS];
    for (int sweep = 0; sweep < CB__SWEEPS; sweep++) {
        const cb__reading *r = &s->readings[sweep][size];
        double value;
        memcpy(&value, (const char *)r + offset, sizeof value);
        /* A loop that folds has no bandwidth to speak of, and this is what says so. */
        values[sweep] = value > 0 ? value : (double)NAN;
    }
    return cb__over_sweeps(values);
}

static cb__label size_label(double bytes)
{
    cb__label l;
    if (bytes >= 1 << 20)
        snprintf(l.text, sizeof l.text, "%.4g MiB", bytes / (1 << 20));
    else
        snprintf(l.text, sizeof l.text, "%.4g KiB", bytes / 1024);
    return l;
}

cb__label cb__point_label(const cb__judging *j, int series, int size)
{
    cb__label l;
    char name[48];
    cb__series head = cb__series_of(j, series);
    cb__series_name(&head, name);
    snprintf(l.text, sizeof l.text, "%s at %.20s", name,
             size_label((double)j->probe->series[series].bytes[size]).text);
    return l;
}

static cb__label disputed_label(const tally *t)
{
    cb__label l = {""};
    if (t->disputed)
        snprintf(l.text, sizeof l.text, "; the sweeps disagree at %d of %d", t->disputed, t->seen);
    return l;
}

/* "1 of 5 size|s is", "0 of 1 size| is" */
static const char *are(const tally *t)
{
    if (t->seen == 1)
        return " is";
    return t->broken == 1 ? "s is" : "s are";
}

/* ---- drive ---- */

/* What more in flight gains at a size, of the sweeps that measured it: what two variants are worth
 * to each other says nothing where neither has a figure. */
static cb__swept edge_gain(const cb__probe_series *s, int size)
{
    double values[CB__SWEEPS];
    for (int sweep = 0; sweep < CB__SWEEPS; sweep++) {
        const cb__reading *r = &s->readings[sweep][size];
        values[sweep] = cb__measured(r) && r->edge_gain > 0 ? r->edge_gain : (double)NAN;
    }
    return cb__over_sweeps(values);
}

/* (a) The search for the best variant ended at its edge. The number of points that gain there. */
static int drive_edge(cb__judging *j, tally *t)
{
    const rule inside = {0, EDGE_CLEAR, CB_VERDICT_LOWER_BOUND, 0, 0};
    int gaining = 0;
    for (int s = 0; s < j->probe->nseries; s++)
        for (int i = 0; i < j->probe->series[s].n; i++) {
            cb__swept x = edge_gain(&j->probe->series[s], i);
            weigh(j, t, s, i, x, inside);
            if (x.n == 0 || cb__agree(x, 0, EDGE_GAIN) != CB__BROKEN)
                continue;
            cb__worsen(j, s, i, CB_VERDICT_LOWER_BOUND);
            gaining++;
        }
    return gaining;
}

/* (b) Series `more` against `fewer`, which has fewer workers of the same mix. */
typedef struct outdone {
    int n, compared;
    int more, fewer, size; /* the worst */
    double times;
} outdone;

static void outdone_by(cb__judging *j, outdone *o, int more, int fewer)
{
    const cb__probe_series *m = &j->probe->series[more], *f = &j->probe->series[fewer];
    for (int i = 0, k = 0; i < m->n; i++) {
        while (k < f->n && f->bytes[k] < m->bytes[i])
            k++;
        if (k == f->n || f->bytes[k] != m->bytes[i])
            continue;
        cb__swept a = j->values[more][i], b = j->values[fewer][k];
        if (a.n < 2 || b.n < 2)
            continue;
        o->compared++;
        double times = b.over.mid / a.over.mid;
        if (b.over.lo <= a.over.hi || times <= FEWER_FASTER)
            continue;
        cb__worsen(j, more, i, CB_VERDICT_LOWER_BOUND);
        o->n++;
        if (times > o->times)
            *o = (outdone){o->n, o->compared, more, fewer, i, times};
    }
}

static void drive_workers(cb__judging *j, outdone *o)
{
    const cb__probe *p = j->probe;
    for (int more = 0; more < p->nseries; more++)
        for (int fewer = 0; fewer < p->nseries; fewer++)
            if (p->series[more].kind == CB__BANDWIDTH && p->series[fewer].kind == CB__BANDWIDTH &&
                strcmp(p->series[more].what, p->series[fewer].what) == 0 &&
                cb__group_of(j, more)->base_pages == cb__group_of(j, fewer)->base_pages &&
                cb__group_of(j, more)->threads > cb__group_of(j, fewer)->threads)
                outdone_by(j, o, more, fewer);
}

static double best_of_sweep(const cb__probe_series *s, int sweep)
{
    double best = (double)NAN;
    for (int i = 0; i < s->n; i++)
        if (cb__measured(&s->readings[sweep][i]))
            best = fmax(best, s->readings[sweep][i].value);
    return best;
}

static int single_read(const cb__judging *j)
{
    for (int s = 0; s < j->probe->nseries; s++)
        if (cb__is_read(j, s) && cb__group_of(j, s)->threads == 1 &&
            !cb__group_of(j, s)->base_pages)
            return s;
    return -1;
}

/* (c) What all workers of a series read over what one reads, best against best. */
typedef struct gain {
    int seen, broken, disputed;
    int threads; /* the worst */
    cb__swept times;
} gain;

static void drive_gain(cb__judging *j, gain *g)
{
    const cb__probe *p = j->probe;
    int one = single_read(j);
    for (int s = 0; s < p->nseries && one >= 0; s++) {
        int threads = cb__group_of(j, s)->threads;
        if (!cb__is_read(j, s) || threads < 2)
            continue;
        double times[CB__SWEEPS], all = (double)NAN, alone = (double)NAN;
        for (int sweep = 0; sweep < CB__SWEEPS; sweep++) {
            double of_all = best_of_sweep(&p->series[s], sweep);
            double of_one = best_of_sweep(&p->series[one], sweep);
            times[sweep] = of_all / of_one;
            all = fmax(all, of_all);
            alone = fmax(alone, of_one);
        }
        cb__swept x = cb__over_sweeps(times);
        double least = 1 + (threads - 1) / 4.0;
        /* Neighbours slow workers down and never speed them up: the best of all sweeps counts. */
        cb__agreement a = x.n && all / alone < least ? cb__agree(x, least, HUGE_VAL) : CB__HOLDS;
        g->seen += x.n >= 2;
        /* The threads are the same for every mix that this group did. */
        if (a != CB__HOLDS)
            cb__worsen_kind(j, p->series[s].group, CB__BANDWIDTH,
                            a == CB__BROKEN ? CB_VERDICT_LOWER_BOUND : CB_VERDICT_UNSTABLE);
        g->disputed += a == CB__DISPUTED && x.n >= 2;
        if (a != CB__BROKEN)
            continue;
        if (!g->broken++ || x.over.mid / threads < g->times.over.mid / g->threads) {
            g->threads = threads;
            g->times = x;
        }
    }
}

/* Nothing is broken: whether that was looked at. */
static void drive_holds(cb__judging *j, const tally *edge, int gaining, const outdone *o,
                        const gain *g)
{
    const cb_verdict verdict = CB_VERDICT_LOWER_BOUND;
    int threads = j->probe->device.threads;
    bool all_work = j->probe->device.queued;
    char search[112] = "there were no variants to search";
    char workers[64] = "there is one thread, so no other worker count";
    if (threads > 1 && !all_work)
        snprintf(workers, sizeof workers, "fewer workers are nowhere better at %d size%s",
                 o->compared, cb__plural(o->compared));
    if (all_work)
        snprintf(workers, sizeof workers, "fewer workers: not applicable, all of a device work");
    if (edge->seen)
        snprintf(search, sizeof search,
                 "at %d of %d size%s the best variant is inside the search, the others are lower "
                 "bounds",
                 edge->seen - gaining, edge->seen, cb__plural(edge->seen));
    if (edge->seen + o->compared + g->seen == 0)
        cb__control_add(
            j, "drive", verdict, true, CB__SKIP,
            "there were no two variants or worker counts to choose from, or no two sweeps");
    else if (threads > 1 && !all_work && o->compared + g->seen == 0)
        cb__control_add(j, "drive", verdict, true, CB__SKIP,
                        "of %d threads no two worker counts were compared in two sweeps: only the "
                        "search at %d size%s says anything",
                        threads, edge->seen, cb__plural(edge->seen));
    else if (g->disputed)
        cb__control_add(j, "drive", verdict, true, CB__SKIP,
                        "the sweeps disagree on what more workers add");
    else if (edge->seen && tally_status(edge) == CB__SKIP)
        cb__control_add(j, "drive", verdict, true, CB__SKIP,
                        "the sweeps disagree at %d of %d sizes on whether the variant with most in "
                        "flight gains",
                        edge->disputed, edge->seen);
    else
        cb__control_add(j, "drive", verdict, true, CB__PASS, "%s; %s%s", search, workers,
                        disputed_label(edge).text);
}

void cb__control_drive(cb__judging *j)
{
    tally edge = {0};
    outdone o = {0};
    gain g = {0};
    int gaining = drive_edge(j, &edge);
    drive_workers(j, &o);
    drive_gain(j, &g);
    const cb_verdict verdict = CB_VERDICT_LOWER_BOUND;
    if (g.broken)
        cb__control_add(j, "drive", verdict, true, CB__FAIL,
                        "%d workers read at most %.2fx what one reads: the %s nothing", g.threads,
                        g.times.over.hi, g.threads == 2 ? "second adds" : "others add next to");
    else if (o.n)
        cb__control_add(j, "drive", verdict, true, CB__FAIL,
                        "fewer workers drive it better at %d size%s: %s is %.2fx as fast with %d; "
                        "%d size%s gain%s at the edge of the search",
                        o.n, cb__plural(o.n), cb__point_label(j, o.more, o.size).text, o.times,
                        cb__group_of(j, o.fewer)->threads, edge.broken, cb__plural(edge.broken),
                        cb__verb(edge.broken));
    else if (edge.broken)
        cb__control_add(j, "drive", verdict, true, CB__FAIL,
                        "at %d size%s the variant with most in flight still gains over the others, "
                        "%.2fx for %s: the search ended too early",
                        edge.broken, cb__plural(edge.broken), edge.mid,
                        cb__point_label(j, edge.series, edge.size).text);
    else
        drive_holds(j, &edge, gaining, &o, &g);
}

/* ---- folding, monotonicity, coverage ---- */

void cb__control_folding(cb__judging *j)
{
    const rule folds = {1 - FOLDED_WITHIN, 1 + FOLDED_WITHIN, CB_VERDICT_CONTAMINATED,
                        1 - FOLDED_CLEAR, 1 + FOLDED_CLEAR};
    tally t = {0};
    for (int s = 0; s < j->probe->nseries; s++) {
        const cb__probe_series *of = &j->probe->series[s];
        int seen = 0;
        for (int i = 0; i < of->n && of->kind == CB__BANDWIDTH; i++) {
            cb__swept x = field(of, i, offsetof(cb__reading, folded));
            weigh(j, &t, s, i, x, folds);
            seen += x.n > 0;
        }
        if (of->kind == CB__BANDWIDTH && seen == 0)
            cb__worsen_series(j, s, HUGE_VAL, CB_VERDICT_UNKNOWN);
    }
    cb__check_status status = tally_status(&t);
    if (t.seen == 0)
        cb__control_add(j, "folding", CB_VERDICT_CONTAMINATED, true, status,
                        "three times the traffic was not timed in two sweeps");
    else
        cb__control_add(
            j, "folding", CB_VERDICT_CONTAMINATED, true, status,
            "%d of %d size%s off: three times the traffic takes %.3f of three times the time "
            "at worst (%s); %.0f %% are steady, %.0f %% are allowed%s",
            t.broken, t.seen, are(&t), t.mid, cb__point_label(j, t.series, t.size).text,
            100 * FOLDED_WITHIN, 100 * FOLDED_CLEAR, disputed_label(&t).text);
}

/* Sets too small to show more than what a pass over them costs: those before the best one within
 * the first cache. They are one regime: how they rise towards it says nothing about memory.
 * Returns how many; log values of `fit` are set to the best one's. */
static int tiny(const cb__judging *j, int series, const int *at, double *fit, int n)
{
    const cb__probe_series *s = &j->probe->series[series];
    double held = cb__first_cache(&j->probe->device, cb__group_of(j, series)->threads);
    int best = 0, cached = cb__best_cached(j, series);
    while (best + 1 < n && at[best] < cached)
        best++;
    for (int k = 1; k < n && cached == 0 && (double)s->bytes[at[k]] <= held; k++)
        if (s->kind == CB__BANDWIDTH ? fit[k] > fit[best] : fit[k] < fit[best])
            best = k;
    for (int k = 0; k < best; k++)
        fit[k] = fit[best];
    return best;
}

/* A point that the sweeps do not agree on must not bend the fit until its neighbours look wrong:
 * the inverse of its variance, which nothing makes smaller than that of a 2 % spread. */
static double weight_of(cb__swept x)
{
    double spread = x.n < 2 ? LONE_SPREAD : log(x.over.hi / x.over.lo);
    return 1 / (LEAST_SPREAD * LEAST_SPREAD + spread * spread);
}

/* A tiny set that reads slower is bound by its passes, not served by something slower: how far, the
 * sweeps need not agree on. */
static void weigh_tiny(cb__judging *j, tally *t, int series, int size, cb__swept x)
{
    if (x.n && (x.over.mid < 1 / ORDER_WITHIN || x.over.mid > ORDER_WITHIN))
        cb__worsen(j, series, size, CB_VERDICT_LOWER_BOUND);
    t->seen += x.n >= 2;
}

static void order_series(cb__judging *j, int series, tally *t)
{
    const cb__probe_series *s = &j->probe->series[series];
    double fit[CB__SIZES_MAX], weights[CB__SIZES_MAX];
    int at[CB__SIZES_MAX], n = 0;
    for (int i = 0; i < s->n; i++)
        if (j->values[series][i].n) {
            at[n] = i;
            weights[n] = weight_of(j->values[series][i]);
            fit[n++] = log(j->values[series][i].over.mid);
        }
    if (n < 2)
        return;
    int ntiny = tiny(j, series, at, fit, n);
    cb__isotonic(fit, weights, (size_t)n, s->kind == CB__BANDWIDTH, fit);
    const rule in_order = {1 / ORDER_WITHIN, ORDER_WITHIN, CB_VERDICT_CONTAMINATED, 0, 0};
    for (int k = 0; k < n; k++) {
        cb__swept x = j->values[series][at[k]];
        double expected = exp(fit[k]);
        x.over.lo /= expected;
        x.over.mid /= expected;
        x.over.hi /= expected;
        if (k < ntiny)
            weigh_tiny(j, t, series, at[k], x);
        else
            weigh(j, t, series, at[k], x, in_order);
    }
}

void cb__control_monotonicity(cb__judging *j)
{
    tally t = {0};
    for (int s = 0; s < j->probe->nseries; s++)
        order_series(j, s, &t);
    cb__check_status status = tally_status(&t);
    if (t.seen == 0)
        cb__control_add(j, "monotonicity", CB_VERDICT_CONTAMINATED, true, status,
                        "no curve has two sizes that two sweeps measured");
    else
        cb__control_add(
            j, "monotonicity", CB_VERDICT_CONTAMINATED, true, status,
            "%d of %d size%s out of order: the worst lies %+.1f %% from the monotone fit (%s); "
            "%.0f %% are allowed%s",
            t.broken, t.seen, are(&t), 100 * (t.mid - 1), cb__point_label(j, t.series, t.size).text,
            100 * (ORDER_WITHIN - 1), disputed_label(&t).text);
}

void cb__control_coverage(cb__judging *j)
{
    int looked = 0, missed = 0, blind = 0, series = 0, size = 0;
    for (int s = 0; s < j->probe->nseries; s++) {
        const cb__probe_series *of = &j->probe->series[s];
        int before = looked;
        for (int i = 0; i < of->n; i++)
            for (int sweep = 0; sweep < CB__SWEEPS; sweep++) {
                const cb__reading *r = &of->readings[sweep][i];
                if (!cb__measured(r) || r->covered < 0)
                    continue;
                looked++;
                if (r->covered)
                    continue;
                cb__worsen(j, s, i, CB_VERDICT_WRONG);
                if (!missed++) {
                    series = s;
                    size = i;
                }
            }
        if (looked == before) {
            cb__worsen_series(j, s, HUGE_VAL, CB_VERDICT_UNKNOWN);
            blind++;
        }
    }
    if (missed)
        cb__control_add(j, "coverage", CB_VERDICT_WRONG, true, CB__FAIL,
                        "%d of %d reading%s did not meet every line, first %s", missed, looked,
                        cb__plural(looked), cb__point_label(j, series, size).text);
    else if (!looked)
        cb__control_add(j, "coverage", CB_VERDICT_WRONG, true, CB__SKIP,
                        "of no reading it was looked at whether it met every line");
    else
        cb__control_add(j, "coverage", CB_VERDICT_WRONG, true, CB__PASS,
                        "every line was met in %d reading%s; %d curve%s not looked at", looked,
                        cb__plural(looked), blind, blind == 1 ? " was" : "s were");
}
