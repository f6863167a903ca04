/* The port bound: one core drives its first cache to what its load ports give, and nothing is
 * faster than what the machine can give at all. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "probe/controls.h"

#define PORT_SHARE 0.95   /* of the port bound that the first cache is driven to */
#define CLOCK_WITHIN 1.05 /* what a clock may have been read too low by */

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

/* Of shares: two sweeps before one, then the larger. */
static bool nearer(cb__swept a, cb__swept b)
{
    if (a.n == 0 || b.n == 0 || (a.n >= 2) != (b.n >= 2))
        return b.n == 0 || (a.n >= 2 && b.n < 2);
    return a.over.mid > b.over.mid;
}

/* The size that comes nearest to the ports. One core, a set that fits with room to spare.
 * `reached`: the largest share of any sweep of any size that the ports can give. */
static cb__swept best_port_share(cb__judging *j, double *reached)
{
    cb__probe *p = j->probe;
    cb__swept best = {.n = 0};
    *reached = 0;
    for (int s = 0; s < p->nseries; s++)
        for (int i = 0; i < p->series[s].n && cb__is_lone_read(j, s); i++) {
            double clock_hz;
            cb__swept share = port_share(j, s, i, &clock_hz);
            if ((double)p->series[s].bytes[i] > 0.75 * cb__first_cache(&p->device, 1) ||
                share.n == 0)
                continue;
            if (share.over.hi <= 2 - PORT_SHARE)
                *reached = fmax(*reached, share.over.hi);
            if (!nearer(share, best))
                continue;
            best = share;
            p->clock_hz = clock_hz;
        }
    return best;
}

/* Why there is no bound, or nothing to hold against it. */
static const char *missing(const cb__judging *j)
{
    bool measured = false;
    for (int s = 0; s < j->probe->nseries; s++)
        for (int i = 0; i < j->probe->series[s].n && cb__is_lone_read(j, s); i++)
            measured |= j->values[s][i].n > 0 && (double)j->probe->series[s].bytes[i] <=
                                                     0.75 * cb__first_cache(&j->probe->device, 1);
    return !(j->probe->device.peak_bytes_per_cycle > 0)   ? "the load ports of this processor are "
                                                            "unknown"
           : !(cb__first_cache(&j->probe->device, 1) > 0) ? "the size of the first cache is unknown"
           : measured                                     ? "the clock of the cores is unknown"
                      : "reading within the first cache was not measured on one thread";
}

/* ---- what nothing can exceed ---- */

/* Of one core: the highest of any reading, which accuses the fewest. 0: unknown. */
static double highest_clock(const cb__judging *j)
{
    double highest = 0;
    for (int s = 0; s < j->probe->nseries; s++)
        for (int i = 0; i < j->probe->series[s].n; i++)
            for (int sweep = 0; sweep < CB__SWEEPS; sweep++) {
                const cb__reading *r = &j->probe->series[s].readings[sweep][i];
                if (cb__measured(r) && r->clock_hz > highest)
                    highest = r->clock_hz;
            }
    return highest;
}

/* GB/s that a size of a curve cannot exceed; 0: unknown. Beyond the caches of a device that is what
 * its memory gives; of others the ceilings are held against it. */
static double limit_of(const cb__judging *j, int series, int size, double clock_hz)
{
    const cb__device_info *d = &j->probe->device;
    const cb__probe_series *s = &j->probe->series[series];
    if (s->kind != CB__BANDWIDTH)
        return 0;
    if (d->queued && d->peak_dram_bytes_per_s > 0 && cb__beyond_caches(d, (double)s->bytes[size]))
        return d->peak_dram_bytes_per_s * 1e-9;
    if (!(d->peak_bytes_per_cycle > 0))
        return d->peak_bytes_per_s * 1e-9;
    /* Half of what a copy moves is stored, past the load ports. */
    int ways = strncmp(s->what, "copy", 4) == 0 ? 2 : 1;
    return ways * d->peak_bytes_per_cycle * clock_hz * cb__group_of(j, series)->threads *
           CLOCK_WITHIN * 1e-9;
}

/* Points above it in every sweep, and of those the worst. */
typedef struct excess {
    int n;
    int series, size;
    double limit, times;
} excess;

static excess above_limits(cb__judging *j)
{
    excess e = {0};
    double clock_hz = highest_clock(j);
    for (int s = 0; s < j->probe->nseries; s++) {
        for (int i = 0; i < j->probe->series[s].n; i++) {
            cb__swept x = j->values[s][i];
            double limit = limit_of(j, s, i, clock_hz);
            if (!(limit > 0) || x.n == 0 || cb__agree(x, 0, limit) != CB__BROKEN)
                continue;
            cb__worsen(j, s, i, CB_VERDICT_IMPOSSIBLE);
            e.n++;
            if (x.over.mid / limit > e.times)
                e = (excess){e.n, s, i, limit, x.over.mid / limit};
        }
    }
    return e;
}

/* ---- a device of many multiprocessors ---- */

/* The median of all readings; 0: unknown. */
static double clock_of(cb__judging *j)
{
    size_t n = 0;
    for (int s = 0; s < j->probe->nseries; s++)
        for (int i = 0; i < j->probe->series[s].n; i++)
            for (int sweep = 0; sweep < CB__SWEEPS; sweep++) {
                const cb__reading *r = &j->probe->series[s].readings[sweep][i];
                if (cb__measured(r) && r->clock_hz > 0)
                    j->clocks[n++] = r->clock_hz;
            }
    return n ? cb__median(j->clocks, n) : 0;
}

/* The best size of a mix that the caches can hold. */
static double best_of_mix(const cb__judging *j, const char *mix)
{
    double best = 0;
    for (int s = 0; s < j->probe->nseries; s++)
        for (int i = 0; i < j->probe->series[s].n; i++)
            if (strcmp(j->probe->series[s].what, mix) == 0 && j->values[s][i].n &&
                j->probe->series[s].bytes[i] <= (int64_t)j->probe->device.llc_bytes)
                best = fmax(best, j->values[s][i].over.mid);
    return best;
}

/* No set is small enough for one multiprocessor and large enough for its passes to be long: what
 * its ports give is not reached, so it is said and proves nothing. */
static void device_ports(cb__judging *j, double clock_hz)
{
    cb__probe *p = j->probe;
    double first = best_of_mix(j, "read_l1"), last = best_of_mix(j, "read");
    double each = p->device.threads * clock_hz * 1e-9;
    if (!(each > 0) || !(last > 0)) {
        cb__control_add(j, "port bound", CB_VERDICT_LOWER_BOUND, false, CB__SKIP,
                        "reading within the caches was not measured, or not the clock");
        return;
    }
    p->clock_hz = clock_hz;
    p->port_bound_gb_per_s = p->device.peak_bytes_per_s * 1e-9;
    cb__control_add(j, "port bound", CB_VERDICT_LOWER_BOUND, false, CB__PASS,
                    "nothing is above the %.1f GB/s of %d first caches; at %.2f GHz each is read "
                    "at %.1f bytes a cycle, and what lies behind them at %.1f",
                    p->port_bound_gb_per_s, p->device.threads, clock_hz * 1e-9, first / each,
                    last / each);
}

/* ---- the control ---- */

static void port_bound(cb__judging *j, cb__swept best, double reached, const excess *e)
{
    cb__probe *p = j->probe;
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
    if (e->n)
        return;
    char best_text[48] = "";
    if (once)
        snprintf(best_text, sizeof best_text, "; in its best sweep %.1f %%", 100 * reached);
    cb__control_add(j, "port bound", CB_VERDICT_LOWER_BOUND, true, cb__status_of(a, best.n),
                    "one core reads its first cache at %.1f GB/s, %.1f %% of the %.1f GB/s of its "
                    "load ports at %.2f GHz%s%s",
                    best.over.mid * p->port_bound_gb_per_s, 100 * best.over.mid,
                    p->port_bound_gb_per_s, p->clock_hz * 1e-9, cb__doubt_text(a, best.n),
                    best_text);
}

void cb__control_port_bound(cb__judging *j)
{
    cb__probe *p = j->probe;
    double reached = 0;
    cb__swept best = {.n = 0};
    excess e = above_limits(j);
    if (p->device.peak_bytes_per_cycle > 0)
        best = best_port_share(j, &reached);
    if (best.n) {
        p->port_bound_gb_per_s = p->device.peak_bytes_per_cycle * p->clock_hz * 1e-9;
        port_bound(j, best, reached, &e);
    }
    if (e.n)
        cb__control_add(j, "port bound", CB_VERDICT_IMPOSSIBLE, true, CB__FAIL,
                        "%d size%s read or written faster than the machine can, above all %s: %.1f "
                        "GB/s, and %.1f GB/s is the most there is",
                        e.n, e.n == 1 ? " is" : "s are", cb__point_label(j, e.series, e.size).text,
                        e.times * e.limit, e.limit);
    else if (p->device.queued)
        device_ports(j, clock_of(j));
    else if (best.n == 0)
        cb__control_add(j, "port bound", CB_VERDICT_LOWER_BOUND, false, CB__SKIP, "%s", missing(j));
}
