#include "probe/controls.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define FLAT_WITHIN 0.10     /* of the largest sets, over two octaves */
#define DISTINCT_SHARE 0.99  /* of the sampled words */
#define BASE_HUGE_SHARE 0.05 /* of a set on base pages that may be on huge ones */
#define HUGE_SHARE 0.90      /* of a set that may be called one on huge pages */
#define STEAL_SHARE 0.02     /* of the threads' time */
#define SWITCHES_A_SECOND 100.0
#define CLOCK_SPREAD 0.10

cb__agreement cb__agree(cb__swept x, double lo, double hi)
{
    if (x.over.mid >= lo && x.over.mid <= hi)
        return CB__HOLDS;
    return x.n >= 2 && (x.over.hi < lo || x.over.lo > hi) ? CB__BROKEN : CB__DISPUTED;
}

void cb__control_add(cb__judging *j, const char *name, cb_verdict verdict, bool required,
                     cb__check_status status, const char *format, ...)
{
    cb__check *check = &j->model->checks[j->model->nchecks++];
    *check = (cb__check){name, status, required, verdict, {0}};
    va_list args;
    va_start(args, format);
    vsnprintf(check->detail, sizeof check->detail, format, args);
    va_end(args);
}

const cb__group *cb__group_of(const cb__judging *j, int series)
{
    return &j->probe->groups[j->probe->series[series].group];
}

bool cb__is_read(const cb__judging *j, int series)
{
    const cb__probe_series *s = &j->probe->series[series];
    return s->kind == CB__BANDWIDTH && strcmp(s->what, "read") == 0;
}

bool cb__is_lone_read(const cb__judging *j, int series)
{
    const cb__group *g = cb__group_of(j, series);
    return cb__is_read(j, series) && g->threads == 1 && !g->scattered;
}

double cb__first_cache(const cb__device_info *device, int threads)
{
    for (int i = 0; i < device->ncaches; i++)
        if (device->caches[i].level == 1) {
            int most = device->caches[i].instances;
            return (double)device->caches[i].bytes * (most > 0 && most < threads ? most : threads);
        }
    return 0;
}

void cb__worsen(cb__judging *j, int series, int size, cb_verdict verdict)
{
    cb_verdict *point = &j->points[series][size];
    *point = cb__verdict_worse(*point, verdict);
}

void cb__worsen_series(cb__judging *j, int series, double up_to_bytes, cb_verdict verdict)
{
    for (int i = 0; i < j->probe->series[series].n; i++)
        if ((double)j->probe->series[series].bytes[i] <= up_to_bytes)
            cb__worsen(j, series, i, verdict);
}

void cb__worsen_kind(cb__judging *j, int group, cb__series_kind kind, cb_verdict verdict)
{
    for (int s = 0; s < j->probe->nseries; s++)
        if (j->probe->series[s].group == group && j->probe->series[s].kind == kind)
            cb__worsen_series(j, s, HUGE_VAL, verdict);
}

static void worsen_group(cb__judging *j, int group, cb_verdict verdict)
{
    j->groups[group] = cb__verdict_worse(j->groups[group], verdict);
    cb__worsen_kind(j, group, CB__BANDWIDTH, verdict);
    cb__worsen_kind(j, group, CB__LATENCY, verdict);
}

static void worsen_everything(cb__judging *j, cb_verdict verdict)
{
    for (int g = 0; g < j->probe->ngroups; g++)
        worsen_group(j, g, verdict);
}

static bool group_has(const cb__judging *j, int group, cb__series_kind kind)
{
    for (int s = 0; s < j->probe->nseries; s++)
        if (j->probe->series[s].group == group && j->probe->series[s].kind == kind)
            return true;
    return false;
}

static bool group_measured(const cb__judging *j, int group)
{
    for (int s = 0; s < j->probe->nseries; s++)
        for (int i = 0; i < j->probe->series[s].n; i++)
            if (j->probe->series[s].group == group && j->values[s][i].n)
                return true;
    return false;
}

cb__check_status cb__status_of(cb__agreement a, int sweeps)
{
    return a == CB__BROKEN ? CB__FAIL : a == CB__HOLDS && sweeps >= 2 ? CB__PASS : CB__SKIP;
}

const char *cb__doubt_text(cb__agreement a, int sweeps)
{
    return sweeps < 2          ? ": that is one sweep alone"
           : a == CB__DISPUTED ? ": the sweeps disagree"
                               : "";
}

const char *cb__plural(int n)
{
    return n == 1 ? "" : "s";
}

const char *cb__verb(int n)
{
    return n == 1 ? "s" : "";
}

/* ---- saturation ---- */

/* The read series with most workers; -1: none. */
static int widest_read(const cb__judging *j)
{
    int widest = -1;
    for (int s = 0; s < j->probe->nseries; s++)
        if (cb__is_read(j, s) &&
            (widest < 0 || cb__group_of(j, s)->threads > cb__group_of(j, widest)->threads))
            widest = s;
    return widest;
}

/* Value of the largest set over that of one at most a quarter as large, in each sweep. */
static cb__swept two_octaves(const cb__judging *j, const cb__probe_series *s)
{
    int last = s->n - 1, before = last;
    while (before >= 0 && s->bytes[before] > s->bytes[last] / 4)
        before--;
    /* Not what caches still help: a shared one is felt at twice its size. */
    while (before >= 0 && before < last &&
           cb__beyond_caches(&j->probe->device, (double)s->bytes[last]) &&
           !cb__beyond_caches(&j->probe->device, (double)s->bytes[before]))
        before++;
    double ratios[CB__SWEEPS];
    for (int sweep = 0; sweep < CB__SWEEPS; sweep++) {
        const cb__reading *r = s->readings[sweep];
        bool both = before >= 0 && cb__measured(&r[last]) && cb__measured(&r[before]);
        ratios[sweep] = both ? r[last].value / r[before].value : (double)NAN;
    }
    return cb__over_sweeps(ratios);
}

static void worsen_ceilings(cb__judging *j, cb_verdict verdict)
{
    for (int i = 0; i < j->model->nceilings; i++)
        j->model->ceilings[i].verdict = cb__verdict_worse(j->model->ceilings[i].verdict, verdict);
}

/* The first ceiling above what the memory can give; NULL: none, or that is unknown. */
static const cb__model_ceiling *impossible_ceiling(cb__judging *j)
{
    const cb__model_ceiling *first = NULL;
    double peak = j->probe->device.peak_dram_bytes_per_s * 1e-9;
    for (int i = 0; i < j->model->nceilings && peak > 0; i++) {
        cb__model_ceiling *c = &j->model->ceilings[i];
        if (c->gb_per_s.lo <= peak)
            continue;
        c->verdict = cb__verdict_worse(c->verdict, CB_VERDICT_IMPOSSIBLE);
        first = first ? first : c;
    }
    return first;
}

static bool memory_was_read(const cb__judging *j, int workers)
{
    for (int s = 0; s < j->probe->nseries; s++)
        if (cb__is_read(j, s) && cb__group_of(j, s)->threads == workers && cb__reaches_memory(j, s))
            return true;
    return false;
}

/* Where no step to memory is seen, the largest sets may be served by a cache that nobody named. The
 * fewest workers of such a ceiling; 0: none. */
static int without_memory(cb__judging *j)
{
    int workers = 0;
    for (int i = 0; i < j->model->nceilings; i++) {
        cb__model_ceiling *c = &j->model->ceilings[i];
        if (memory_was_read(j, c->workers))
            continue;
        c->verdict = cb__verdict_worse(c->verdict, CB_VERDICT_UNKNOWN);
        workers = workers && workers < c->workers ? workers : c->workers;
    }
    return workers;
}

/* flat: of the widest read, whose sets go far beyond the caches. hidden: of without_memory(). */
static void saturation_beyond(cb__judging *j, int widest, cb__swept flat, int hidden)
{
    const cb__probe_series *s = &j->probe->series[widest];
    const cb_verdict verdict = CB_VERDICT_LOWER_BOUND;
    int threads = cb__group_of(j, widest)->threads;
    cb__agreement a = cb__agree(flat, 1 - FLAT_WITHIN, 1 + FLAT_WITHIN);
    cb__check_status status = cb__status_of(a, flat.n);
    double times = (double)s->bytes[s->n - 1] / (double)j->probe->device.llc_bytes;
    if (status != CB__PASS)
        worsen_ceilings(j, a == CB__BROKEN     ? verdict
                           : a == CB__DISPUTED ? CB_VERDICT_UNSTABLE
                                               : CB_VERDICT_UNKNOWN);
    if (status == CB__PASS && hidden)
        cb__control_add(j, "saturation", verdict, true, CB__SKIP,
                        "up to %.1fx the last-level caches the sweeps show no step to memory where "
                        "%d worker%s read%s: the largest sets may be a cache's",
                        times, hidden, cb__plural(hidden), cb__verb(hidden));
    else
        cb__control_add(j, "saturation", verdict, true, status,
                        "%d worker%s read%s %.3f [%.3f, %.3f] times as fast as at 4x the "
                        "last-level caches or two octaves before, up to %.1fx%s",
                        threads, cb__plural(threads), cb__verb(threads), flat.over.mid,
                        flat.over.lo, flat.over.hi, times, cb__doubt_text(a, flat.n));
}

static void saturation(cb__judging *j)
{
    const cb__device_info *d = &j->probe->device;
    int widest = widest_read(j);
    const cb__probe_series *s = widest < 0 ? NULL : &j->probe->series[widest];
    cb__swept flat = s && s->n ? two_octaves(j, s) : (cb__swept){.n = 0};
    const cb__model_ceiling *impossible = impossible_ceiling(j);
    int hidden = without_memory(j);
    const cb_verdict verdict = CB_VERDICT_LOWER_BOUND;
    if (flat.n == 0)
        worsen_ceilings(j, CB_VERDICT_UNKNOWN);
    if (impossible) {
        cb__control_add(j, "saturation", CB_VERDICT_IMPOSSIBLE, true, CB__FAIL,
                        "the ceiling of %s by %d worker%s, %.1f GB/s, is above the %.1f GB/s of "
                        "the memory",
                        impossible->mix, impossible->workers, cb__plural(impossible->workers),
                        impossible->gb_per_s.mid, d->peak_dram_bytes_per_s * 1e-9);
    } else if (flat.n == 0 || !d->llc_bytes) {
        cb__control_add(j, "saturation", verdict, true, CB__SKIP, "%s",
                        flat.n ? "the size of the last-level caches is unknown"
                               : "no sweep read the largest set and one of a quarter of it");
    } else if (!cb__beyond_caches(d, (double)s->bytes[s->n - 1])) {
        worsen_ceilings(j, verdict);
        cb__control_add(j, "saturation", verdict, true, CB__FAIL,
                        "the largest set is %.1fx the last-level caches; 4x are needed",
                        (double)s->bytes[s->n - 1] / (double)d->llc_bytes);
    } else {
        saturation_beyond(j, widest, flat, hidden);
    }
}

/* ---- content ---- */

/* "; random words read at 10.1 GB/s, a constant at 10.2 GB/s, never written at 40.3 GB/s"; "" where
 * none was measured. */
static void contents_text(const cb__probe *p, char *text, size_t size)
{
    static const char *const contents[][2] = {{"random", "; random words read at"},
                                              {"constant", ", a constant at"},
                                              {"untouched", ", never written at"}};
    size_t used = 0;
    text[0] = '\0';
    for (int c = 0; c < 3; c++)
        for (int i = 0; i < p->nscalars; i++) {
            const cb__scalar *s = &p->scalars[i];
            if (s->kind != CB__CONTENT || strcmp(s->what, contents[c][0]) != 0)
                continue;
            double gb_per_s = cb__over_sweeps(s->values).over.mid;
            if (isfinite(gb_per_s) && used < size)
                used += (size_t)snprintf(text + used, size - used, "%s %.1f GB/s", contents[c][1],
                                         gb_per_s);
            break;
        }
}

/* The smallest share of a sweep; NaN: nothing was sampled. */
static double distinct_share(const cb__group *g)
{
    double least = (double)NAN;
    for (int sweep = 0; sweep < CB__SWEEPS; sweep++)
        if (g->sampled_words[sweep])
            least = fmin(least, (double)g->distinct_words[sweep] / (double)g->sampled_words[sweep]);
    return least;
}

static void content(cb__judging *j)
{
    double least = (double)NAN;
    bool blind = false;
    char contents[120];
    contents_text(j->probe, contents, sizeof contents);
    for (int g = 0; g < j->probe->ngroups; g++) {
        double share = distinct_share(&j->probe->groups[g]);
        if (share < DISTINCT_SHARE)
            worsen_group(j, g, CB_VERDICT_CONTAMINATED);
        /* A chain of loads is its own content. */
        if (isnan(share) && group_has(j, g, CB__BANDWIDTH)) {
            worsen_group(j, g, CB_VERDICT_UNKNOWN);
            blind = true;
        }
        least = fmin(least, share);
    }
    cb__check_status status = least < DISTINCT_SHARE  ? CB__FAIL
                              : blind || isnan(least) ? CB__SKIP
                                                      : CB__PASS;
    if (isnan(least) || status == CB__SKIP)
        cb__control_add(j, "content", CB_VERDICT_CONTAMINATED, true, status,
                        "the contents of %s set were sampled%s", isnan(least) ? "no" : "not every",
                        contents);
    else
        cb__control_add(j, "content", CB_VERDICT_CONTAMINATED, true, status,
                        "%.1f %% of the sampled words of a set are distinct at least; %.0f %% are "
                        "needed%s",
                        100 * least, 100 * DISTINCT_SHARE, contents);
}

/* ---- pages ---- */

/* Share of huge pages, of the sweeps where it is known. */
static cb__swept huge_share(const cb__group *g)
{
    double shares[CB__SWEEPS];
    for (int sweep = 0; sweep < CB__SWEEPS; sweep++) {
        const cb__pages *p = &g->pages[sweep];
        shares[sweep] = p->known && p->resident_bytes
                            ? (double)p->huge_bytes / (double)p->resident_bytes
                            : (double)NAN;
    }
    return cb__over_sweeps(shares);
}

typedef struct paging {
    int base, huge;
    int unmeasured, blind; /* groups of which nothing is known: no reading, no answer */
    int lone, disputed;    /* groups that one sweep knows of; that the sweeps disagree on */
    int mixed;             /* groups on base pages that got huge ones */
    int refused;           /* groups whose latencies lose the label of huge pages */
    double most_base, least_huge;
} paging;

static void page_group(cb__judging *j, int g, paging *p)
{
    const cb__group *group = &j->probe->groups[g];
    cb__swept share = huge_share(group);
    if (share.n == 0) {
        bool measured = group_measured(j, g);
        cb__worsen_kind(j, g, CB__LATENCY, CB_VERDICT_UNKNOWN);
        p->blind += measured;
        p->unmeasured += !measured;
        return;
    }
    cb__agreement a =
        group->base_pages ? cb__agree(share, 0, BASE_HUGE_SHARE) : cb__agree(share, HUGE_SHARE, 1);
    if (a == CB__DISPUTED)
        cb__worsen_kind(j, g, CB__LATENCY, CB_VERDICT_UNSTABLE);
    p->lone += share.n < 2;
    p->disputed += share.n >= 2 && a == CB__DISPUTED;
    if (group->base_pages) {
        p->base++;
        p->most_base = fmax(p->most_base, share.over.mid);
        p->mixed += a == CB__BROKEN;
        if (a == CB__BROKEN)
            cb__worsen_kind(j, g, CB__LATENCY, CB_VERDICT_CONTAMINATED);
        return;
    }
    p->huge++;
    p->least_huge = fmin(p->least_huge, share.over.mid);
    if (share.over.mid < HUGE_SHARE) {
        j->page_bytes[g] = CB__BASE_PAGE_BYTES;
        p->refused += group_has(j, g, CB__LATENCY);
    }
}

/* Why it cannot be said which pages were granted; "" where it can. */
static void pages_doubt(const paging *p, char *text, size_t size)
{
    text[0] = '\0';
    if (p->blind)
        snprintf(text, size, "the system does not say which pages were granted to %d group%s",
                 p->blind, cb__plural(p->blind));
    else if (p->base + p->huge == 0)
        snprintf(text, size, "no set was measured");
    else if (p->disputed)
        snprintf(text, size, "the sweeps disagree on the pages granted to %d of %d groups",
                 p->disputed, p->base + p->huge);
    else if (p->lone)
        snprintf(text, size, "one sweep alone says which pages were granted to %d group%s", p->lone,
                 cb__plural(p->lone));
    else if (p->unmeasured)
        snprintf(text, size, "%d group%s not measured", p->unmeasured,
                 p->unmeasured == 1 ? " was" : "s were");
}

static void pages(cb__judging *j)
{
    if (j->probe->device.queued) {
        cb__control_add(j, "pages", CB_VERDICT_CONTAMINATED, false, CB__SKIP,
                        "not applicable: a device has pages of its driver's choice alone, and it "
                        "names none");
        return;
    }
    paging p = {.most_base = (double)NAN, .least_huge = (double)NAN};
    char base[72] = "no set was on base pages", huge[120] = "", doubt[96];
    for (int g = 0; g < j->probe->ngroups; g++)
        page_group(j, g, &p);
    if (p.base)
        snprintf(base, sizeof base, "of sets on base pages at most %.1f %% are on huge ones",
                 100 * p.most_base);
    if (p.huge)
        snprintf(huge, sizeof huge, "; where huge ones were asked for at least %.1f %% are%s",
                 100 * p.least_huge,
                 p.refused ? ", too few to call latencies those of huge pages" : "");
    pages_doubt(&p, doubt, sizeof doubt);
    if (doubt[0] && !p.mixed)
        cb__control_add(j, "pages", CB_VERDICT_CONTAMINATED, true, CB__SKIP, "%s", doubt);
    else
        cb__control_add(j, "pages", CB_VERDICT_CONTAMINATED, true, p.mixed ? CB__FAIL : CB__PASS,
                        "%s%s", base, huge);
}

/* ---- interference, clock: required where there are counters ---- */

static void surroundings(cb__judging *j, const char *name, cb__agreement a, int sweeps,
                         const char *detail)
{
    bool required = j->probe->device.has_counters;
    if (required && a != CB__HOLDS)
        worsen_everything(j, a == CB__BROKEN ? CB_VERDICT_CONTAMINATED : CB_VERDICT_UNSTABLE);
    cb__control_add(j, name, CB_VERDICT_CONTAMINATED, required, cb__status_of(a, sweeps), "%s%s",
                    detail, cb__doubt_text(a, sweeps));
}

static void interference(cb__judging *j)
{
    double steal[CB__SWEEPS], switches[CB__SWEEPS];
    for (int sweep = 0; sweep < CB__SWEEPS; sweep++) {
        double stolen_s = 0, thread_s = 0, wall_s = 0, involuntary = 0;
        for (int g = 0; g < j->probe->ngroups; g++) {
            const cb__group *group = &j->probe->groups[g];
            if (!(group->wall_s[sweep] > 0))
                continue;
            stolen_s += group->steal_s[sweep];
            thread_s += group->wall_s[sweep] * group->threads;
            wall_s += group->wall_s[sweep];
            involuntary += (double)group->involuntary[sweep];
        }
        steal[sweep] = stolen_s / thread_s;
        switches[sweep] = involuntary / wall_s;
    }
    cb__swept s = cb__over_sweeps(steal), c = cb__over_sweeps(switches);
    if (s.n == 0 || c.n == 0) {
        cb__control_add(j, "interference", CB_VERDICT_CONTAMINATED, j->probe->device.has_counters,
                        CB__SKIP, "nothing is known of steal or switches");
        return;
    }
    if (j->probe->device.queued) {
        cb__control_add(j, "interference", CB_VERDICT_CONTAMINATED, false, CB__SKIP,
                        "not applicable: launches are timed by the device; of the host, which "
                        "submits them, %.1f %% of the time was stolen, with %.0f involuntary "
                        "switches a second",
                        100 * s.over.mid * j->probe->device.threads, c.over.mid);
        return;
    }
    cb__agreement stolen = cb__agree(s, 0, STEAL_SHARE);
    cb__agreement switched = cb__agree(c, 0, SWITCHES_A_SECOND);
    char detail[160];
    snprintf(detail, sizeof detail,
             "%.1f %% of the time stolen, %.0f involuntary switches a second; %.0f %% and %.0f are "
             "allowed",
             100 * s.over.mid, c.over.mid, 100 * STEAL_SHARE, SWITCHES_A_SECOND);
    surroundings(j, "interference", stolen > switched ? stolen : switched, s.n < c.n ? s.n : c.n,
                 detail);
}

/* Whether the clock beside its readings is one worker's: on a device it always is. */
static bool is_one_core(const cb__judging *j, int series)
{
    return cb__group_of(j, series)->threads == 1 || j->probe->device.queued;
}

static void clock_spread(cb__judging *j)
{
    size_t n = 0;
    bool seen = false;
    for (int s = 0; s < j->probe->nseries; s++)
        for (int i = 0; i < j->probe->series[s].n && is_one_core(j, s); i++)
            for (int sweep = 0; sweep < CB__SWEEPS; sweep++) {
                const cb__reading *r = &j->probe->series[s].readings[sweep][i];
                seen |= cb__measured(r);
                if (cb__measured(r) && r->clock_hz > 0)
                    j->clocks[n++] = r->clock_hz;
            }
    if (n == 0) {
        cb__control_add(j, "clock", CB_VERDICT_CONTAMINATED, false, CB__SKIP, "%s",
                        seen ? "the clock of the cores is unknown"
                             : "one thread by itself was not measured");
        return;
    }
    double lo = cb__quantile(j->clocks, n, 0.05), hi = cb__quantile(j->clocks, n, 0.95);
    double mid = cb__median(j->clocks, n), spread = (hi - lo) / mid;
    char detail[160];
    snprintf(detail, sizeof detail,
             "the clock of one %s lies between %.2f and %.2f GHz in 90 of 100 readings, %.1f %% "
             "of its median; %.0f %% are allowed",
             j->probe->device.queued ? "multiprocessor" : "core", lo * 1e-9, hi * 1e-9,
             100 * spread, 100 * CLOCK_SPREAD);
    /* Of the spread within sweeps as well: their number is beside the point. */
    surroundings(j, "clock", spread > CLOCK_SPREAD ? CB__BROKEN : CB__HOLDS, CB__SWEEPS, detail);
}

void cb__controls_run(cb__judging *j)
{
    cb__control_drive(j);
    cb__control_folding(j);
    saturation(j);
    cb__control_monotonicity(j);
    cb__control_coverage(j);
    cb__control_port_bound(j);
    content(j);
    pages(j);
    interference(j);
    clock_spread(j);
}
