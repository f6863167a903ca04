#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measure/bench_internal.h"
#include "measure/poison.h"
#include "stats/order.h"

enum {
    POISONED_MAX = 64 << 20, /* bytes of slots that are poisoned before timing */
    WARM_UP_NS = 2000000,
    WARM_UP_LAUNCHES = 8,
    WARM_UP_MOST = 4096,
    FLOOR_READINGS = 41
};

/* ---- handing outputs over ---- */

static cb_status hand_over(cb__bench *bench, cb__cache_state state, int slot, int phase,
                           cb__exchange *exchange, cb_error *err)
{
    const cb__plan *plan = bench->plan;
    if (exchange->n == exchange->capacity || exchange->used + plan->slot_bytes > exchange->bytes)
        return cb_error_set(err, CB_INTERNAL, "worker: the exchange of %llu bytes is full",
                            (unsigned long long)exchange->bytes);
    const unsigned char *from = bench->slots + (uint64_t)slot * plan->slot_bytes;
    cb_status status = bench->target.ops->read(
        bench->target.device, exchange->base + exchange->used, from, plan->slot_bytes, err);
    exchange->entries[exchange->n++] =
        (cb__entry){phase, slot, state == CB__COLD ? slot : 0, exchange->used};
    exchange->used += plan->slot_bytes;
    return status;
}

static cb_status poison(cb__bench *bench, int slot, int phase, cb_error *err)
{
    cb__bench_alive(bench);
    cb__poison_slot(bench->c, bench->plan, bench->request.seed, slot, phase, bench->staging);
    for (int i = 0; i < bench->c->kernel->noperands; i++) {
        if (bench->c->kernel->operands[i].role != CB_INOUT)
            continue;
        cb_status status = bench->target.ops->read(
            bench->target.device, bench->staging + bench->plan->offset[i],
            bench->ring + bench->plan->static_offset + bench->plan->initial[i],
            bench->c->packed_bytes[i], err);
        if (status != CB_OK)
            return status;
    }
    return bench->target.ops->write(bench->target.device,
                                    bench->slots + (uint64_t)slot * bench->plan->slot_bytes,
                                    bench->staging, bench->plan->slot_bytes, err);
}

static int slots_at_a_time(const cb__bench *bench)
{
    return cb__plan_handed_slots(bench->plan);
}

static cb_status run_first_batch(cb__bench *bench, const cb__arm *arm, cb__submit submit,
                                 cb_error *err)
{
    const cb__backend *ops = bench->target.ops;
    cb_status status = CB_OK;
    if (submit == CB__BATCHED) {
        ops->batch_run(bench->target.device, arm->batches[0]);
        return ops->sync(bench->target.device, err);
    }
    for (int i = 0; i < arm->batch_launches && status == CB_OK; i++) {
        cb__bench_alive(bench);
        ops->launch(bench->target.device, &arm->launches[i]);
        status = ops->sync(bench->target.device, err);
    }
    return status;
}

cb_status cb__bench_verify(cb__bench *bench, cb__cache_state state, cb__submit submit,
                           cb__exchange *exchange, cb_error *err)
{
    int handed = slots_at_a_time(bench);
    int poisoned = bench->plan->restores ? bench->plan->batch : handed;
    cb_status status = CB_OK;
    for (int phase = 0; phase < 2 && status == CB_OK; phase++) {
        for (int i = 0; i < poisoned && status == CB_OK; i++)
            status = poison(bench, i, phase, err);
        if (status == CB_OK)
            status = run_first_batch(bench, &bench->kernel.arms[state], submit, err);
        for (int i = 0; i < handed && status == CB_OK; i++)
            status = hand_over(bench, state, i, phase, exchange, err);
    }
    return status;
}

/* ---- blocks ---- */

/* Until clocks and slot times are flat, in rotation from *cursor on. */
static cb_status warm_up(cb__bench *bench, const cb__arm *arm, int *cursor, cb_error *err)
{
    const cb__backend *ops = bench->target.ops;
    uint64_t start = ops->now_ns(bench->target.device);
    cb_status status = CB_OK;
    for (int i = 0; i < WARM_UP_MOST && status == CB_OK; i++) {
        if (i >= WARM_UP_LAUNCHES && ops->now_ns(bench->target.device) - start >= WARM_UP_NS)
            break;
        cb__bench_alive(bench);
        ops->launch(bench->target.device, &arm->launches[*cursor]);
        status = ops->sync(bench->target.device, err);
        *cursor = *cursor + 1 < arm->n ? *cursor + 1 : 0;
    }
    return status;
}

/* A place in the rotation that is as far from what was touched last as the ring allows: the
 * verified launches were on the first batch, and are met again only when the rest has gone by.
 * Returns a set; both arms are warmed up from there. */
static cb_status enter_rotation(cb__bench *bench, cb__cache_state state, int *set, cb_error *err)
{
    const cb__arm *arm = &bench->kernel.arms[state];
    int after = arm->n > arm->batch_launches ? arm->batch_launches : 0;
    *set = after + (int)(cb__bench_draw(bench) % (unsigned)((arm->n - after + 1) / 2));
    cb_status status = warm_up(bench, arm, set, err);
    if (status == CB_OK && bench->has_twin)
        status = warm_up(bench, &bench->twin[state].arms[state], set, err);
    return status;
}

/* The first batch that begins at `set` or after it. */
static int next_batch(const cb__arm *arm, int set)
{
    return (set + arm->batch_launches - 1) / arm->batch_launches % arm->nbatches;
}

/* What is looked at afterwards is what the last block's slot writes, and no earlier call: poison is
 * laid just before it, where it will write. */
static cb_status poison_last(cb__bench *bench, const cb__arm *arm, cb__slot_shape shape, int start,
                             cb_error *err)
{
    int count = shape.repeats * shape.readings, left = slots_at_a_time(bench);
    int per = shape.submit == CB__SOLO ? 1 : arm->batch_launches;
    int places = shape.submit == CB__SOLO ? arm->n : arm->nbatches;
    cb_status status = CB_OK;
    for (int i = 0; i < count * per && i < places * per && left && status == CB_OK; i++, left--) {
        int slot = (start + i / per) % places * per + i % per;
        if (!bench->plan->restores) /* else restore() has laid it, in every block */
            status = poison(bench, slot, 2, err);
        bench->visited[slot] = true;
    }
    return status;
}

/* What the kernel's slot of this block will write is as it was before, where it is also read. */
static cb_status restore(cb__bench *bench, const cb__arm *arm, cb__slot_shape shape, int start,
                         cb_error *err)
{
    int per = shape.submit == CB__SOLO ? 1 : arm->batch_launches;
    cb_status status = CB_OK;
    for (int i = 0; i < per && bench->plan->restores && status == CB_OK; i++)
        status = poison(bench, start * per + i, 2, err);
    return status;
}

static cb_status one_block(cb__bench *bench, cb__cache_state state, cb__slot_shape shape,
                           bool twin_first, double ns[2], double *host_ns, cb_error *err)
{
    const cb__arm *kernel = &bench->kernel.arms[state];
    const cb__arm *twin = &bench->twin[state].arms[state];
    int places = shape.submit == CB__SOLO ? kernel->n : kernel->nbatches;
    cb_status status = CB_OK;
    ns[1] = (double)NAN;
    for (int turn = 0; turn < 2 && status == CB_OK; turn++) {
        cb__bench_alive(bench);
        double ignored;
        int start = bench->cursor;
        if ((turn == 0) != twin_first) {
            status = restore(bench, kernel, shape, start, err);
            if (status == CB_OK && bench->last_block)
                status = poison_last(bench, kernel, shape, start, err);
            if (status == CB_OK)
                status = cb__slot_run(bench->target, kernel, shape, &bench->cursor, &ns[0], host_ns,
                                      err);
        } else if (bench->has_twin) {
            status =
                cb__slot_run(bench->target, twin, shape, &bench->cursor, &ns[1], &ignored, err);
            int last = bench->cursor ? bench->cursor - 1 : places - 1;
            bench->last_twin_set = state == CB__WARM ? 0
                                   : shape.submit == CB__SOLO
                                       ? last
                                       : last * twin->batch_launches + twin->batch_launches - 1;
        }
    }
    return status;
}

static cb_status hand_over_timed(cb__bench *bench, cb__cache_state state, cb__exchange *exchange,
                                 cb_error *err)
{
    cb_status status = CB_OK;
    for (int i = 0; i < bench->plan->slots && status == CB_OK; i++)
        if (bench->visited[i])
            status = hand_over(bench, state, i, 2, exchange, err);
    return status;
}

cb_status cb__bench_blocks(cb__bench *bench, cb__cache_state state, cb__submit submit,
                           cb__blocks *blocks, cb__exchange *exchange, cb_error *err)
{
    const cb__arm *arm = &bench->kernel.arms[state];
    uint64_t fit = POISONED_MAX / bench->plan->slot_bytes;
    int poisoned = (uint64_t)arm->n < fit ? arm->n : (int)fit;
    cb_status status = CB_OK;
    for (int i = 0; i < poisoned && status == CB_OK; i++)
        status = poison(bench, i, 2, err);
    double ns[2], host;
    int set = 0;
    if (status == CB_OK)
        status = enter_rotation(bench, state, &set, err);
    /* From here on the rotation is never left, or a set could be met again too soon. */
    bench->cursor = submit == CB__SOLO ? set : next_batch(arm, set);
    cb__slot_shape shape = {submit, 1, 1};
    if (status == CB_OK) /* the lead-in block, which also says how long a launch takes */
        status = one_block(bench, state, shape, false, ns, &host, err);
    if (status != CB_OK)
        return status;
    shape = cb__slot_shape_for(submit, submit == CB__SOLO ? host : host * bench->plan->batch);
    if (bench->plan->restores) /* one call writes each slot once */
        shape.repeats = shape.readings = 1;
    blocks->repeats = shape.repeats;
    blocks->readings = shape.readings;
    memset(bench->visited, 0, (size_t)bench->plan->slots * sizeof *bench->visited);
    for (int i = 0; i < blocks->n && status == CB_OK; i++) {
        bool twin_first = bench->has_twin && (cb__bench_draw(bench) >> 63);
        bench->last_block = i == blocks->n - 1;
        status = one_block(bench, state, shape, twin_first, ns, &blocks->host_ns[i], err);
        blocks->kernel_ns[i] = ns[0];
        blocks->twin_ns[i] = ns[1];
        blocks->order[i] = twin_first;
    }
    bench->last_block = false;
    if (status == CB_OK)
        status = hand_over_timed(bench, state, exchange, err);
    return status;
}

/* ---- floor, checksum ---- */

cb_status cb__bench_floor(cb__bench *bench, cb__submit submit, double *ns, cb_error *err)
{
    static const cb__launch empty[CB__BATCH_MAX];
    const cb__backend *ops = bench->target.ops;
    int all = bench->plan->batch * bench->plan->passes;
    int n = all < CB__BATCH_MAX ? all : CB__BATCH_MAX;
    cb__batch *batch = NULL;
    cb__arm arm = {
        .launches = empty, .n = n, .batches = &batch, .nbatches = 1, .batch_launches = n};
    cb_status status = ops->batch_new(bench->target.device, empty, n, &batch, err);
    double readings[FLOOR_READINGS], host;
    int cursor = 0;
    cb__slot_shape shape = {submit, submit == CB__SOLO ? 16 : 1, CB__READINGS};
    for (int i = 0; i < FLOOR_READINGS && status == CB_OK; i++)
        status = cb__slot_run(bench->target, &arm, shape, &cursor, &readings[i], &host, err);
    if (status == CB_OK)
        *ns = cb__median(readings, FLOOR_READINGS);
    if (batch)
        ops->batch_free(bench->target.device, batch);
    return status;
}

cb_status cb__bench_twin_checksum(cb__bench *bench, int *set, uint32_t *sum, cb_error *err)
{
    *set = strcmp(bench->plan->twin_kernel, "twin_read") == 0 ? bench->last_twin_set : -1;
    *sum = 0;
    if (*set < 0)
        return CB_OK;
    uint32_t words[CB__TWIN_SUMS_MAX];
    const cb__side *twin = &bench->twin[bench->twin[CB__COLD].c.kernel ? CB__COLD : CB__WARM];
    uint64_t bytes = twin->c.logical_bytes[1]; /* the words whose xor is the checksum */
    if (bytes > sizeof words)
        return cb_error_set(err, CB_INTERNAL, "the twin's checksums take %" PRIu64 " bytes", bytes);
    cb_status status =
        bench->target.ops->read(bench->target.device, words, bench->twin_small[0], bytes, err);
    for (uint64_t i = 0; i < bytes / sizeof *words && status == CB_OK; i++)
        *sum ^= words[i];
    return status;
}

/* ---- choosing the twin ---- */

enum { CANDIDATES_MAX = 16, PICK_ROUNDS_MAX = 64 };

static cb_status pick_round(cb__bench *bench, cb__side *sides, int n, cb__cache_state state,
                            double (*ns)[PICK_ROUNDS_MAX], int round, cb_error *err)
{
    cb__slot_shape shape = {CB__BATCHED, 1, 1};
    int first = (int)(cb__bench_draw(bench) % (unsigned)n);
    cb_status status = CB_OK;
    for (int i = 0; i < n && status == CB_OK; i++) {
        cb__bench_alive(bench);
        int which = (first + i) % n;
        const cb__arm *arm = &sides[which].arms[state];
        double host;
        /* Warm is what it left itself: stores of the one before it may have gone past the caches.
         */
        for (int slot = state == CB__WARM ? 0 : 1; slot < 2 && status == CB_OK; slot++)
            status = cb__slot_run(bench->target, arm, shape, &bench->cursor, &ns[which][round],
                                  &host, err);
    }
    return status;
}

cb_status cb__bench_pick_twin(cb__target target, const cb__bench_request *request,
                              cb__cache_state state, const char *const *candidates, int n,
                              int rounds, int *best, double *kernel_ns, double *twin_ns,
                              cb_error *err)
{
    cb__side sides[CANDIDATES_MAX] = {0};
    double ns[CANDIDATES_MAX][PICK_ROUNDS_MAX];
    cb__bench *bench = NULL;
    int set = 0;
    cb__bench_request own = *request;
    own.twin_variants[0] = own.twin_variants[1] = NULL;
    n = n < CANDIDATES_MAX ? n : CANDIDATES_MAX;
    rounds = rounds < PICK_ROUNDS_MAX ? rounds : PICK_ROUNDS_MAX;
    cb_status status = cb__bench_open(target, &own, &bench, err);
    for (int i = 0; i < n && status == CB_OK; i++)
        status = cb__bench_twin_side(bench, candidates[i], &sides[i], err);
    if (status == CB_OK)
        status = warm_up(bench, &bench->kernel.arms[state], &set, err);
    if (status == CB_OK)
        bench->cursor = next_batch(&bench->kernel.arms[state], set);
    for (int round = 0; round < rounds && status == CB_OK; round++)
        status = pick_round(bench, sides, n, state, ns, round, err);
    *best = 0;
    *twin_ns = (double)NAN;
    for (int i = 0; i < n && status == CB_OK; i++) {
        double median = cb__median(ns[i], (size_t)rounds);
        if (i == 0 || median < *twin_ns) {
            *best = i;
            *twin_ns = median;
        }
    }
    if (status == CB_OK) {
        int cursor = 0;
        double host;
        cb__slot_shape shape = {CB__BATCHED, 1, 1};
        status =
            cb__slot_run(target, &bench->kernel.arms[state], shape, &cursor, kernel_ns, &host, err);
    }
    for (int i = 0; i < n && bench; i++)
        cb__bench_side_fini(bench, &sides[i]);
    cb__bench_close(bench);
    return status;
}
