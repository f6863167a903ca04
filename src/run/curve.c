#include "run/curve.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "coldbench/random.h"
#include "host/clock.h"
#include "run/twins.h"

enum { SMALLEST_BYTES = 8192, READING_NS = 3000000, SIZES_MAX = 80 };
#define FOLDED_WITHIN 0.10 /* three times the traffic takes three times as long, within this */
#define STEADY_WITHIN 0.10 /* between sweeps */
#define PORT_SHARE 0.95    /* of the port bound that the first cache must be driven to */
#define FLAT_WITHIN 0.10   /* over the last octave */

typedef struct curving {
    const cb__curve_request *request;
    cb__curve *out;
    int64_t sizes[SIZES_MAX];
    int nsizes;
    int threads[2];
    int nthreads;
    char twins[CB__TWINS_MAX][96];
    int ntwins;
    double values[2][CB__CURVE_SWEEPS][SIZES_MAX], folded[2][CB__CURVE_SWEEPS][SIZES_MAX];
    double clocks[2][CB__CURVE_SWEEPS][SIZES_MAX];
} curving;

static cb__work sweep_work(const curving *c, const char *op, int threads)
{
    return (cb__work){.op = op,
                      .device = c->request->device,
                      .threads = threads,
                      .ring_fd = -1,
                      .reference_fd = -1,
                      .exchange_fd = -1,
                      .seed = c->request->seed,
                      .passes_ns = READING_NS};
}

static cb_status describe(curving *c, cb_error *err)
{
    cb__work work = sweep_work(c, "describe", c->request->threads);
    cb__json *answer = NULL;
    cb_status status = cb__ask(&c->request->asker, &work, "describe", &answer, err);
    if (status == CB_OK)
        status = cb__describe_answer_read(answer, &c->out->device, err);
    cb__json_free(answer);
    return status;
}

/* 8 KiB to 8x the last-level caches, or a quarter of what memory can be taken. */
static void choose_sizes(curving *c)
{
    const cb__device_info *d = &c->out->device;
    double largest = 8.0 * (d->llc_bytes ? (double)d->llc_bytes : 64 << 20);
    if (largest > (double)d->memory_bytes / 4)
        largest = (double)d->memory_bytes / 4;
    double step = c->request->quick ? 2 : sqrt(2);
    for (double size = SMALLEST_BYTES; size <= largest * 1.01 && c->nsizes < SIZES_MAX;
         size *= step)
        c->sizes[c->nsizes++] = (int64_t)(size / 64 + 0.5) * 64;
    c->threads[c->nthreads++] = 1;
    if (d->threads > 1)
        c->threads[c->nthreads++] = d->threads;
}

/* Fisher and Yates by the counter-based generator. */
static void shuffle(int *order, int n, uint64_t seed, int sweep)
{
    for (int i = 0; i < n; i++)
        order[i] = i;
    for (int i = n - 1; i > 0; i--) {
        uint64_t word = cb_random(seed, 0x6f72646572u, (uint64_t)sweep, (uint64_t)i);
        int j = (int)(word % (uint64_t)(i + 1));
        int t = order[i];
        order[i] = order[j];
        order[j] = t;
    }
}

static cb_status one_sweep(curving *c, int t, int sweep, cb_error *err)
{
    cb__work work = sweep_work(c, "sweep", c->threads[t]);
    int order[SIZES_MAX];
    for (int i = 0; i < c->ntwins; i++)
        work.twins[work.ntwins++] = c->twins[i];
    shuffle(order, c->nsizes, c->request->seed + (uint64_t)t, sweep);
    for (int i = 0; i < c->nsizes; i++)
        work.sweep_bytes[work.nsweep++] = c->sizes[order[i]];
    if (c->request->phase)
        c->request->phase(c->request->arg,
                          c->threads[t] == 1 ? "sweep, 1 thread" : "sweep, all threads", sweep);
    cb__arena arena = CB__ARENA_INIT;
    cb__json *answer = NULL;
    cb__sweep_answer a = {0};
    uint64_t start = cb__clock_ns();
    cb_status status = cb__ask(&c->request->asker, &work, "sweep", &answer, err);
    if (status == CB_OK)
        status = cb__sweep_answer_read(answer, work.nsweep, &arena, &a, err);
    for (int i = 0; i < work.nsweep && status == CB_OK; i++) {
        c->values[t][sweep][order[i]] = a.points[i].gb_per_s;
        c->folded[t][sweep][order[i]] = a.points[i].folded;
        c->clocks[t][sweep][order[i]] = a.points[i].clock_hz;
    }
    c->out->measure_s += (double)(cb__clock_ns() - start) * 1e-9;
    cb__json_free(answer);
    cb__arena_fini(&arena);
    return status;
}

static cb__interval over_sweeps(double (*values)[SIZES_MAX], int sweeps, int size)
{
    double v[CB__CURVE_SWEEPS];
    for (int i = 0; i < sweeps; i++)
        v[i] = values[i][size];
    return cb__interval_of(v, (size_t)sweeps);
}

static void points(curving *c)
{
    cb__curve *out = c->out;
    out->n = 0;
    if (out->sweeps == 0)
        return;
    for (int t = 0; t < c->nthreads; t++)
        for (int i = 0; i < c->nsizes; i++) {
            cb__curve_point *p = &out->points[out->n++];
            p->threads = c->threads[t];
            p->bytes = c->sizes[i];
            p->gb_per_s = over_sweeps(c->values[t], out->sweeps, i);
            p->folded = over_sweeps(c->folded[t], out->sweeps, i);
            bool folds = fabs(p->folded.mid - 1) <= FOLDED_WITHIN;
            bool steady = p->gb_per_s.hi / p->gb_per_s.lo - 1 <= STEADY_WITHIN;
            p->verdict = !folds    ? CB_VERDICT_CONTAMINATED
                         : !steady ? CB_VERDICT_UNSTABLE
                                   : CB_VERDICT_OK;
        }
    out->ceiling = out->points[out->n - 1].gb_per_s;
}

static cb__check *check(cb__curve *out, const char *name, bool required, cb__check_status status,
                        cb_verdict verdict)
{
    cb__check *k = &out->checks[out->nchecks++];
    *k = (cb__check){name, status, required, verdict, {0}};
    return k;
}

static void check_folding(curving *c)
{
    cb__curve *out = c->out;
    double worst = 0;
    for (int i = 0; i < out->n; i++)
        if (fabs(out->points[i].folded.mid - 1) > fabs(worst))
            worst = out->points[i].folded.mid - 1;
    cb__check *k = check(out, "folding", true, fabs(worst) <= FOLDED_WITHIN ? CB__PASS : CB__FAIL,
                         CB_VERDICT_CONTAMINATED);
    snprintf(k->detail, sizeof k->detail,
             "time of three times the traffic is off 3x by %.1f %% at worst; %.0f %% are allowed",
             100 * fabs(worst), 100 * FOLDED_WITHIN);
}

/* One core on a set that fits its first cache with room to spare, against its load ports at the
 * clock that was measured between the very readings: it moves with load and neighbours. Of each
 * size the median sweep counts, of the sizes the best. */
static void check_port_bound(curving *c)
{
    cb__curve *out = c->out;
    double best = 0;
    for (int i = 0; i < c->nsizes && c->sizes[i] <= 24576; i++) {
        double shares[CB__CURVE_SWEEPS], clocks[CB__CURVE_SWEEPS];
        for (int sweep = 0; sweep < out->sweeps; sweep++) {
            clocks[sweep] = c->clocks[0][sweep][i];
            shares[sweep] =
                c->values[0][sweep][i] / (out->device.peak_bytes_per_cycle * clocks[sweep] * 1e-9);
        }
        double share = cb__median(shares, (size_t)out->sweeps);
        if (isfinite(share) && share > best) {
            best = share;
            out->clock_hz = cb__median(clocks, (size_t)out->sweeps);
            out->port_bound_gb_per_s = out->device.peak_bytes_per_cycle * out->clock_hz * 1e-9;
        }
    }
    if (best == 0) {
        cb__check *k = check(out, "port bound", false, CB__SKIP, CB_VERDICT_LOWER_BOUND);
        snprintf(k->detail, sizeof k->detail,
                 "the load ports or the clock of this processor are unknown");
        return;
    }
    /* Above the bound the clock was read too low, or the table of load ports is wrong. */
    bool good = best >= PORT_SHARE && best <= 2 - PORT_SHARE;
    cb__check *k =
        check(out, "port bound", true, good ? CB__PASS : CB__FAIL, CB_VERDICT_LOWER_BOUND);
    snprintf(k->detail, sizeof k->detail,
             "one core reads its first cache at %.1f GB/s, %.1f %% of the %.1f GB/s of its load "
             "ports at %.2f GHz",
             best * out->port_bound_gb_per_s, 100 * best, out->port_bound_gb_per_s,
             out->clock_hz * 1e-9);
    for (int i = 0; i < out->n && !good; i++)
        if (out->points[i].bytes <= 32768 && out->points[i].verdict == CB_VERDICT_OK)
            out->points[i].verdict = CB_VERDICT_LOWER_BOUND;
}

static void check_saturation(curving *c)
{
    cb__curve *out = c->out;
    int octave = c->request->quick ? 1 : 2;
    if (c->nsizes <= octave || out->n == 0)
        return;
    const cb__curve_point *last = &out->points[out->n - 1], *before = last - octave;
    double ratio = last->gb_per_s.mid / before->gb_per_s.mid;
    bool flat = fabs(ratio - 1) <= FLAT_WITHIN;
    cb__check *k =
        check(out, "saturation", true, flat ? CB__PASS : CB__FAIL, CB_VERDICT_LOWER_BOUND);
    snprintf(k->detail, sizeof k->detail, "all threads, the last octave: %.1f then %.1f GB/s",
             before->gb_per_s.mid, last->gb_per_s.mid);
    if (!flat && out->points[out->n - 1].verdict == CB_VERDICT_OK)
        out->points[out->n - 1].verdict = CB_VERDICT_LOWER_BOUND;
}

cb_status cb__curve_measure(const cb__curve_request *request, cb__curve *out, cb_error *err)
{
    curving c = {0};
    memset(out, 0, sizeof *out);
    c.request = request;
    c.out = out;
    uint64_t start = cb__clock_ns();
    c.ntwins = cb__twin_candidates(request->suite, "twin_read", request->isa, c.twins);
    if (c.ntwins < 1)
        return cb_error_set(err, CB_INTERNAL, "no reading twin runs on this machine");
    cb_status status = describe(&c, err);
    if (status != CB_OK)
        return status;
    choose_sizes(&c);
    for (int sweep = 0; sweep < CB__CURVE_SWEEPS && status == CB_OK; sweep++) {
        for (int t = 0; t < c.nthreads && status == CB_OK; t++)
            status = one_sweep(&c, t, sweep, err);
        out->sweeps += status == CB_OK;
    }
    out->complete = status == CB_OK;
    points(&c);
    check_folding(&c);
    check_port_bound(&c);
    check_saturation(&c);
    out->wall_s = (double)(cb__clock_ns() - start) * 1e-9;
    return status;
}
