/* The two measurements of a round that go over the whole ring: the proof of coldness and the
 * ceiling.
 *
 * Both are cut into readings as short as the timer allows and take the mean of the fastest three
 * quarters of them: a neighbour that takes a core away for a while slows a few readings, where it
 * would poison one long one. What a cache does to a rotation it does to all of it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measure/bench_internal.h"
#include "stats/order.h"

enum { PAIRS_MAX = 16, BATCHES = 4, PIECE_BYTES = 16 << 20, SPANS = 8, SPAN_LAUNCHES = 16 };
#define PAIR_MAX_NS 2e9
#define LONG_BATCH_NS 1e7

static double mean_of_fastest(double *values, int n)
{
    int kept = (n * 3 + 3) / 4;
    double sum = 0;
    cb__sort(values, (size_t)n);
    for (int i = 0; i < kept; i++)
        sum += values[i];
    return sum / kept;
}

/* `batches` batches of an arm from `first` on, a slot after the other; ns: a launch. */
static cb_status rotate(cb__bench *bench, const cb__arm *arm, int first, int batches,
                        double *values, double *ns, cb_error *err)
{
    const cb__slot_shape shape = {CB__BATCHED, 1, 1};
    cb_status status = CB_OK;
    int cursor = first;
    double host;
    for (int i = 0; i < batches && status == CB_OK; i++) {
        cb__bench_alive(bench);
        status = cb__slot_run(bench->target, arm, shape, &cursor, &values[i], &host, err);
    }
    *ns = mean_of_fastest(values, batches);
    return status;
}

/* Where a batch is several rotations: one that is not timed, then a few, or one if that is long. */
static cb_status rotate_batches(cb__bench *bench, const cb__arm *arm, double *values, double *ns,
                                cb_error *err)
{
    cb_status status = rotate(bench, arm, 0, 1, values, ns, err);
    int batches = *ns * arm->batch_launches * arm->passes < LONG_BATCH_NS ? BATCHES : 1;
    return status == CB_OK ? rotate(bench, arm, 0, batches, values, ns, err) : status;
}

/* Untimed lead-ins of k sets: the same k, so that what a ring too small leaves in a cache is there
 * to be found; of 2k the other half, which the first evicts before it would be met. Without one,
 * 2k would be slower for what comes first after other code: on an H200, where a multiprocessor's
 * memory is divided anew, 5 to 10 % of 34 launches of 2 us. */
static cb_status rotate_k_or_2k(cb__bench *bench, const cb__side *side, unsigned twice,
                                double *values, double *ns, cb_error *err)
{
    if (bench->plan->passes > 1)
        return rotate_batches(bench, twice ? &side->ring : &side->arms[CB__COLD], values, ns, err);
    int half = side->ring.nbatches / 2;
    cb_status status = rotate(bench, &side->ring, twice ? half : 0, half, values, ns, err);
    return status == CB_OK ? rotate(bench, &side->ring, 0, twice ? 2 * half : half, values, ns, err)
                           : status;
}

/* Whether the rotations of one pair would take longer than anybody waits: small sets of a slow
 * kernel, by the thousand. */
static cb_status too_long(cb__bench *bench, bool *yes, cb_error *err)
{
    const cb__slot_shape shape = {CB__BATCHED, 1, 1};
    double launch_ns = 0, host;
    int cursor = 0;
    cb_status status =
        cb__slot_run(bench->target, &bench->kernel.ring, shape, &cursor, &launch_ns, &host, err);
    *yes = launch_ns * 5 * bench->plan->k * bench->plan->passes > PAIR_MAX_NS;
    return status;
}

cb_status cb__bench_proof(cb__bench *bench, int pairs, cb__proof *proof, cb_error *err)
{
    double ns[4][PAIRS_MAX];
    const cb__side *sides[2] = {&bench->kernel, &bench->twin[CB__COLD]};
    double *values = malloc((size_t)bench->plan->sets * sizeof *values);
    cb_status status = values ? CB_OK : cb_error_set(err, CB_NO_MEMORY, "worker: no memory");
    bool skip = false;
    pairs = pairs < PAIRS_MAX ? pairs : PAIRS_MAX;
    if (status == CB_OK)
        status = too_long(bench, &skip, err);
    for (int p = 0; p < pairs && !skip; p++) {
        unsigned first = (unsigned)(cb__bench_draw(bench) >> 62);
        for (unsigned i = 0; i < 4 && status == CB_OK; i++) {
            unsigned what = first ^ i; /* a random one of four orders */
            ns[what][p] = (double)NAN;
            if (what < 2 || bench->has_twin)
                status =
                    rotate_k_or_2k(bench, sides[what >> 1], what & 1, values, &ns[what][p], err);
        }
    }
    free(values);
    if (status != CB_OK || skip)
        return status;
    proof->pairs = pairs;
    proof->kernel_k_ns = cb__median(ns[0], (size_t)pairs);
    proof->kernel_2k_ns = cb__median(ns[1], (size_t)pairs);
    proof->twin_k_ns = bench->has_twin ? cb__median(ns[2], (size_t)pairs) : (double)NAN;
    proof->twin_2k_ns = bench->has_twin ? cb__median(ns[3], (size_t)pairs) : (double)NAN;
    return CB_OK;
}

/* ---- the ceiling ---- */

/* The twin on `sets` sets at once. */
static cb_status piece_case(cb__bench *bench, int sets, cb__case *piece, cb_error *err)
{
    const cb__plan *plan = bench->plan;
    bool reads = strcmp(plan->twin_kernel, "twin_read") == 0;
    uint64_t bytes = (uint64_t)sets * (reads ? plan->set_bytes : plan->twin_bytes) / 64 * 64;
    char shape[32];
    snprintf(shape, sizeof shape, "%llu", (unsigned long long)bytes);
    return cb__case_parse(bench->request.suite, bench->request.twin_variants[CB__COLD], shape,
                          bench->request.isa, piece, err);
}

static cb_status time_pieces(cb__bench *bench, const cb__code *code, int sets, int pieces,
                             double *ns, cb_error *err)
{
    const cb__backend *ops = bench->target.ops;
    cb_status status = CB_OK;
    for (int i = 0; i < pieces && status == CB_OK; i++) {
        cb__bench_alive(bench);
        cb__launch launch = {0};
        uint64_t first = (uint64_t)i * (uint64_t)sets;
        cb__bench_twin_bind(bench, code, bench->ring + first * bench->plan->set_bytes,
                            first * bench->plan->twin_bytes, &launch);
        uint64_t start = ops->now_ns(bench->target.device);
        ops->launch(bench->target.device, &launch);
        status = ops->sync(bench->target.device, err);
        ns[i] = (double)(ops->now_ns(bench->target.device) - start);
    }
    return status;
}

/* Pieces of some MiB, over k and over all sets, by the host's clock. */
static cb_status by_pieces(cb__bench *bench, cb__asymptote *out, cb_error *err)
{
    const cb__plan *plan = bench->plan;
    uint64_t each = PIECE_BYTES / plan->set_bytes + 1;
    int sets = each < (uint64_t)plan->k ? (int)each : plan->k;
    int half = plan->k / sets, pieces = plan->sets / sets;
    cb__case piece;
    double *ns = malloc((size_t)(pieces + half) * sizeof *ns);
    cb_status status = ns ? piece_case(bench, sets, &piece, err)
                          : cb_error_set(err, CB_NO_MEMORY, "worker: no memory");
    if (status == CB_OK) {
        cb__code code = cb__case_code(&piece);
        status = cb__target_build(bench->target, &code, err);
        if (status == CB_OK)
            status = time_pieces(bench, &code, sets, pieces, ns, err);
        cb__target_unbuild(bench->target, &code);
    }
    if (status == CB_OK) {
        double bytes = (double)(piece.cost.bytes_read + piece.cost.bytes_written);
        memcpy(ns + pieces, ns, (size_t)half * sizeof *ns);
        out->k_gb_per_s = bytes / mean_of_fastest(ns + pieces, half);
        out->all_gb_per_s = bytes / mean_of_fastest(ns, pieces);
    }
    free(ns);
    return status;
}

/* A rotation through `sets` sets in two long launches, by the device's own clock: submitting them,
 * and what a short launch loses at its ends, would hide a ceiling that is reached in microseconds.
 * Several rotations in a batch: its own ends are 4 us (H200), 6 % of one launch on 300 MB. Two
 * halves in turn: of launches that overlap, the next one on the same sets reads behind the one
 * ahead what that has just brought to the cache, and makes a ceiling above the memory's. */
static cb_status by_span(cb__bench *bench, int sets, double *gb_per_s, cb_error *err)
{
    const cb__backend *ops = bench->target.ops;
    const cb__slot_shape shape = {CB__BATCHED, 1, 1};
    double ns[SPANS], host;
    int cursor = 0;
    cb__case piece;
    cb__batch *batch = NULL;
    cb__launch launches[SPAN_LAUNCHES] = {{0}};
    const int half = sets / 2;
    cb_status status = piece_case(bench, half, &piece, err);
    if (status != CB_OK)
        return status;
    cb__code code = cb__case_code(&piece);
    status = cb__target_build(bench->target, &code, err);
    for (int i = 0; i < SPAN_LAUNCHES; i++) {
        uint64_t first = (uint64_t)(i % 2) * (uint64_t)half;
        cb__bench_twin_bind(bench, &code, bench->ring + first * bench->plan->set_bytes,
                            first * bench->plan->twin_bytes, &launches[i]);
    }
    if (status == CB_OK)
        status = ops->batch_new(bench->target.device, launches, SPAN_LAUNCHES, &batch, err);
    cb__arm arm = {.launches = launches,
                   .n = SPAN_LAUNCHES,
                   .batches = &batch,
                   .nbatches = 1,
                   .batch_launches = SPAN_LAUNCHES};
    for (int i = 0; i < SPANS && status == CB_OK; i++) {
        cb__bench_alive(bench);
        status = cb__slot_run(bench->target, &arm, shape, &cursor, &ns[i], &host, err);
    }
    if (status == CB_OK)
        *gb_per_s =
            (double)(piece.cost.bytes_read + piece.cost.bytes_written) / mean_of_fastest(ns, SPANS);
    if (batch)
        ops->batch_free(bench->target.device, batch);
    cb__target_unbuild(bench->target, &code);
    return status;
}

cb_status cb__bench_asymptote(cb__bench *bench, cb__asymptote *out, cb_error *err)
{
    if (!(bench->target.ops->capabilities & CB__DEVICE_QUEUED))
        return by_pieces(bench, out, err);
    cb_status status = by_span(bench, bench->plan->k, &out->k_gb_per_s, err);
    return status == CB_OK ? by_span(bench, bench->plan->sets, &out->all_gb_per_s, err) : status;
}
