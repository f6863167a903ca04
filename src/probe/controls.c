#include "probe/controls.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define PORT_SHARE 0.95      /* of the port bound that the first cache is driven to */
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

/* What a rule about the whole probe comes to; where the sweeps disagree nothing is claimed. */
static cb__check_status status_of(cb__agreement a)
{
    return a == CB__HOLDS ? CB__PASS : a == CB__BROKEN ? CB__FAIL : CB__SKIP;
}

static const char *disputed_text(cb__agreement a)
{
    return a == CB__DISPUTED ? ": the sweeps disagree" : "";
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
static cb__swept two_octaves(const cb__probe_series *s)
{
    int last = s->n - 1, before = last;
    while (before >= 0 && s->bytes[before] > s->bytes[last] / 4)
        before--;
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

static void saturation(cb__judging *j)
{
    const cb__device_info *d = &j->probe->device;
    int widest = widest_read(j);
    const cb__probe_series *s = widest < 0 ? NULL : &j->probe->series[widest];
    cb__swept flat = s && s->n ? two_octaves(s) : (cb__swept){.n = 0};
    const cb__model_ceiling *impossible = impossible_ceiling(j);
    const cb_verdict verdict = CB_VERDICT_LOWER_BOUND;
    if (impossible) {
        cb__control_add(j, "saturation", CB_VERDICT_IMPOSSIBLE, true, CB__FAIL,
                        "the ceiling of %s by %d workers, %.1f GB/s, is above the %.1f GB/s of the "
                        "memory",
                        impossible->mix, impossible->workers, impossible->gb_per_s.mid,
                        d->peak_dram_bytes_per_s * 1e-9);
    } else if (!d->llc_bytes || flat.n == 0) {
        worsen_ceilings(j, CB_VERDICT_UNKNOWN);
        cb__control_add(j, "saturation", verdict, true, CB__SKIP, "%s",
                        d->llc_bytes ? "no sweep read the largest set and one of a quarter of it"
                                     : "the size of the last-level caches is unknown");
    } else if (!cb__beyond_caches(d, (double)s->bytes[s->n - 1])) {
        worsen_ceilings(j, verdict);
        cb__control_add(j, "saturation", verdict, true, CB__FAIL,
                        "the largest set is %.1fx the last-level caches; 4x are needed",
                        (double)s->bytes[s->n - 1] / (double)d->llc_bytes);
    } else {
        cb__agreement a = cb__agree(flat, 1 - FLAT_WITHIN, 1 + FLAT_WITHIN);
        if (a != CB__HOLDS)
            worsen_ceilings(j, a == CB__BROKEN ? verdict : CB_VERDICT_UNSTABLE);
        cb__control_add(j, "saturation", verdict, true, status_of(a),
                        "%d workers read %.3f [%.3f, %.3f] times as fast as two octaves before, up "
                        "to %.1fx the last-level caches%s",
                        cb__group_of(j, widest)->threads, flat.over.mid, flat.over.lo, flat.over.hi,
                        (double)s->bytes[s->n - 1] / (double)d->llc_bytes, disputed_text(a));
    }
}

/* ---- port bound ---- */

/* One size: its share of what the load ports give at the clock between the very readings, which
 * moves with load and neighbours. */
static cb__swept port_share(const cb__judging *j, int series, int size, double *clock_hz)
{
    double shares[CB__SWEEPS], clocks[CB__SWEEPS];
    for (int sweep = 0; sweep < CB__SWEEPS; sweep++) {
        const cb__reading *r = &j->probe->series[series].readings[sweep][size];
        bool known = cb__measured(r) && r->clock_hz > 0;
        clocks[sweep] = known ? r->clock_hz : (double)NAN;
        shares[sweep] = r->value / (j->probe->device.peak_bytes_per_cycle * clocks[sweep] * 1e-9);
    }
    *clock_hz = cb__over_sweeps(clocks).over.mid;
    return cb__over_sweeps(shares);
}

/* The size that comes nearest to the ports. One core, a set that fits with room to spare.
 * `reached`: the largest share of any sweep of any size that the ports can give. */
static cb__swept best_port_share(cb__judging *j, double *reached)
{
    cb__probe *p = j->probe;
    cb__swept best = {.n = 0};
    *reached = 0;
    for (int s = 0; s < p->nseries; s++) {
        const cb__group *g = cb__group_of(j, s);
        if (!cb__is_read(j, s) || g->threads != 1 || g->scattered)
            continue;
        for (int i = 0; i < p->series[s].n; i++) {
            double clock_hz;
            cb__swept share = port_share(j, s, i, &clock_hz);
            if ((double)p->series[s].bytes[i] > 0.75 * cb__first_cache(&p->device, 1) ||
                share.n == 0)
                continue;
            if (share.over.hi <= 2 - PORT_SHARE)
                *reached = fmax(*reached, share.over.hi);
            if (best.n && share.over.mid <= best.over.mid)
                continue;
            best = share;
            p->clock_hz = clock_hz;
        }
    }
    return best;
}

static void port_bound(cb__judging *j)
{
    cb__probe *p = j->probe;
    bool known = p->device.peak_bytes_per_cycle > 0;
    double reached = 0;
    cb__swept best = known ? best_port_share(j, &reached) : (cb__swept){.n = 0};
    if (best.n == 0) {
        cb__control_add(j, "port bound", CB_VERDICT_LOWER_BOUND, false, CB__SKIP,
                        "the load ports or the clock of this processor are unknown, or one core "
                        "read nothing");
        return;
    }
    p->port_bound_gb_per_s = p->device.peak_bytes_per_cycle * p->clock_hz * 1e-9;
    /* Above the bound the clock was read too low, or the table of load ports is wrong: either way
     * the bound proves nothing about the first cache. */
    cb__agreement a = cb__agree(best, PORT_SHARE, 2 - PORT_SHARE);
    /* Neighbours slow a loop down and never speed it up: one sweep shows what it can do. */
    bool once = a != CB__HOLDS && best.over.mid < PORT_SHARE && reached >= PORT_SHARE;
    if (once)
        a = CB__HOLDS;
    for (int s = 0; s < p->nseries && a != CB__HOLDS; s++)
        if (p->series[s].kind == CB__BANDWIDTH)
            cb__worsen_series(j, s, cb__first_cache(&p->device, cb__group_of(j, s)->threads),
                              a == CB__BROKEN ? CB_VERDICT_LOWER_BOUND : CB_VERDICT_UNSTABLE);
    char best_text[48] = "";
    if (once)
        snprintf(best_text, sizeof best_text, "; in its best sweep %.1f %%", 100 * reached);
    cb__control_add(j, "port bound", CB_VERDICT_LOWER_BOUND, true, status_of(a),
                    "one core reads its first cache at %.1f GB/s, %.1f %% of the %.1f GB/s of its "
                    "load ports at %.2f GHz%s%s",
                    best.over.mid * p->port_bound_gb_per_s, 100 * best.over.mid,
                    p->port_bound_gb_per_s, p->clock_hz * 1e-9, disputed_text(a), best_text);
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
    int base, huge, blind; /* groups */
    int mixed;             /* groups on base pages that got huge ones */
    int refused;           /* groups whose latencies lose the label of huge pages */
    double most_base, least_huge;
} paging;

static void page_group(cb__judging *j, int g, paging *p)
{
    const cb__group *group = &j->probe->groups[g];
    cb__swept share = huge_share(group);
    if (share.n == 0) {
        if (group_has(j, g, CB__LATENCY))
            cb__worsen_kind(j, g, CB__LATENCY, CB_VERDICT_UNKNOWN);
        p->blind += group_has(j, g, CB__LATENCY) || group_has(j, g, CB__BANDWIDTH);
        return;
    }
    cb__agreement a =
        group->base_pages ? cb__agree(share, 0, BASE_HUGE_SHARE) : cb__agree(share, HUGE_SHARE, 1);
    if (a == CB__DISPUTED)
        cb__worsen_kind(j, g, CB__LATENCY, CB_VERDICT_UNSTABLE);
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

static void pages(cb__judging *j)
{
    paging p = {.most_base = (double)NAN, .least_huge = (double)NAN};
    char base[72] = "no set was on base pages", huge[120] = "";
    for (int g = 0; g < j->probe->ngroups; g++)
        page_group(j, g, &p);
    if (p.base)
        snprintf(base, sizeof base, "of sets on base pages at most %.1f %% are on huge ones",
                 100 * p.most_base);
    if (p.huge)
        snprintf(huge, sizeof huge, "; where huge ones were asked for at least %.1f %% are%s",
                 100 * p.least_huge,
                 p.refused ? ", too few to call latencies those of huge pages" : "");
    cb__check_status status = p.mixed                           ? CB__FAIL
                              : p.blind || p.base + p.huge == 0 ? CB__SKIP
                                                                : CB__PASS;
    if (status == CB__SKIP)
        cb__control_add(j, "pages", CB_VERDICT_CONTAMINATED, true, status,
                        "the system does not say which pages were granted to %d groups", p.blind);
    else
        cb__control_add(j, "pages", CB_VERDICT_CONTAMINATED, true, status, "%s%s", base, huge);
}

/* ---- interference, clock: required where there are counters ---- */

static void surroundings(cb__judging *j, const char *name, cb__agreement a, const char *detail)
{
    bool required = j->probe->device.has_counters;
    if (required && a != CB__HOLDS)
        worsen_everything(j, a == CB__BROKEN ? CB_VERDICT_CONTAMINATED : CB_VERDICT_UNSTABLE);
    cb__control_add(j, name, CB_VERDICT_CONTAMINATED, required, status_of(a), "%s%s", detail,
                    disputed_text(a));
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
    cb__agreement stolen = cb__agree(s, 0, STEAL_SHARE);
    cb__agreement switched = cb__agree(c, 0, SWITCHES_A_SECOND);
    char detail[160];
    snprintf(detail, sizeof detail,
             "%.1f %% of the time stolen, %.0f involuntary switches a second; %.0f %% and %.0f are "
             "allowed",
             100 * s.over.mid, c.over.mid, 100 * STEAL_SHARE, SWITCHES_A_SECOND);
    surroundings(j, "interference", stolen > switched ? stolen : switched, detail);
}

static void clock_spread(cb__judging *j)
{
    size_t n = 0;
    for (int s = 0; s < j->probe->nseries; s++)
        for (int i = 0; i < j->probe->series[s].n && cb__group_of(j, s)->threads == 1; i++)
            for (int sweep = 0; sweep < CB__SWEEPS; sweep++) {
                const cb__reading *r = &j->probe->series[s].readings[sweep][i];
                if (cb__measured(r) && r->clock_hz > 0)
                    j->clocks[n++] = r->clock_hz;
            }
    if (n == 0) {
        cb__control_add(j, "clock", CB_VERDICT_CONTAMINATED, false, CB__SKIP,
                        "the clock of the cores is unknown");
        return;
    }
    double lo = cb__quantile(j->clocks, n, 0.05), hi = cb__quantile(j->clocks, n, 0.95);
    double mid = cb__median(j->clocks, n), spread = (hi - lo) / mid;
    char detail[160];
    snprintf(detail, sizeof detail,
             "the clock of one core lies between %.2f and %.2f GHz in 90 of 100 readings, %.1f %% "
             "of its median; %.0f %% are allowed",
             lo * 1e-9, hi * 1e-9, 100 * spread, 100 * CLOCK_SPREAD);
    surroundings(j, "clock", spread > CLOCK_SPREAD ? CB__BROKEN : CB__HOLDS, detail);
}

void cb__controls_run(cb__judging *j)
{
    cb__control_drive(j);
    cb__control_folding(j);
    saturation(j);
    cb__control_monotonicity(j);
    cb__control_coverage(j);
    port_bound(j);
    content(j);
    pages(j);
    interference(j);
    clock_spread(j);
}
