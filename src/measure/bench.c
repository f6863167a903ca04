#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coldbench/random.h"
#include "measure/bench_internal.h"

enum { TWIN_SMALL_BYTES = 131072 };

const char *cb__cache_name(cb__cache_state state)
{
    return state == CB__COLD ? "cold" : "warm";
}

void cb__bench_alive(cb__bench *bench)
{
    if (bench->request.alive)
        bench->request.alive(bench->request.alive_arg);
}

uint64_t cb__bench_draw(cb__bench *bench)
{
    return cb_random(bench->request.seed, 0x636f696eu, 0, bench->draws++);
}

static cb_status no_memory(cb_error *err)
{
    return cb_error_set(err, CB_NO_MEMORY, "worker: no memory for its tables");
}

/* ---- arms ---- */

/* Batch after batch, each `passes` times over its launches. */
static cb_status repeat(const cb__arm *arm, cb__launch **again, cb_error *err)
{
    size_t batch = (size_t)arm->batch_launches, n = (size_t)arm->n / batch * batch;
    cb__launch *to = *again = calloc(n * (size_t)arm->passes, sizeof *to);
    if (!to)
        return no_memory(err);
    for (size_t i = 0; i < n; i += batch)
        for (int pass = 0; pass < arm->passes; pass++, to += batch)
            memcpy(to, &arm->launches[i], batch * sizeof *to);
    return CB_OK;
}

/* Batches of `batch` launches, gone over `passes` times; *again: where those of several are kept.
 */
static cb_status arm_make(cb__bench *bench, const cb__launch *launches, int n, int batch,
                          int passes, cb__launch **again, cb__arm *arm, cb_error *err)
{
    *arm = (cb__arm){.launches = launches, .n = n, .batch_launches = batch, .passes = passes};
    if (passes > 1) {
        cb_status status = repeat(arm, again, err);
        if (status != CB_OK)
            return status;
        launches = *again;
        batch *= passes;
        n *= passes;
    }
    arm->batches = calloc((size_t)(n / batch), sizeof *arm->batches);
    if (!arm->batches)
        return no_memory(err);
    cb_status status = CB_OK;
    for (int i = 0; i < n / batch && status == CB_OK; i++) {
        status = bench->target.ops->batch_new(bench->target.device, &launches[i * batch], batch,
                                              &arm->batches[i], err);
        arm->nbatches += status == CB_OK;
    }
    return status;
}

static cb_status side_make(cb__bench *bench, cb__side *side, cb_error *err)
{
    const cb__plan *plan = bench->plan;
    const cb__launch *cold = side->launches[CB__COLD];
    bool several = plan->passes > 1; /* then a batch is a whole rotation, and more */
    cb_status status = arm_make(bench, side->launches[CB__WARM], plan->batch, plan->batch,
                                plan->passes, &side->again[CB__WARM], &side->arms[CB__WARM], err);
    if (status != CB_OK || plan->sets < 2)
        return status;
    status = arm_make(bench, cold, plan->sets, several ? plan->sets : plan->batch,
                      (plan->passes + 1) / 2, &side->again_ring, &side->ring, err);
    if (status == CB_OK && several)
        return arm_make(bench, cold, plan->k, plan->k, plan->passes, &side->again[CB__COLD],
                        &side->arms[CB__COLD], err);
    side->arms[CB__COLD] = side->ring;
    side->arms[CB__COLD].n = plan->k;
    side->arms[CB__COLD].nbatches = plan->k / plan->batch;
    return status;
}

static cb_status side_alloc(cb__bench *bench, cb__side *side, cb_error *err)
{
    side->launches[CB__COLD] = calloc((size_t)bench->plan->sets, sizeof(cb__launch));
    side->launches[CB__WARM] = calloc((size_t)bench->plan->batch, sizeof(cb__launch));
    return side->launches[0] && side->launches[1] ? CB_OK : no_memory(err);
}

void cb__bench_side_fini(cb__bench *bench, cb__side *side)
{
    const cb__backend *ops = bench->target.ops;
    const cb__arm *owned[] = {&side->ring, &side->arms[CB__WARM], &side->arms[CB__COLD]};
    int n = side->again[CB__COLD] ? 3 : 2; /* else the cold arm's batches are the ring's */
    for (int arm = 0; arm < n; arm++) {
        for (int i = 0; i < owned[arm]->nbatches; i++)
            ops->batch_free(bench->target.device, owned[arm]->batches[i]);
        free(owned[arm]->batches);
    }
    for (int state = 0; state < 2; state++) {
        free(side->launches[state]);
        free(side->again[state]);
    }
    free(side->again_ring);
    cb__target_unbuild(bench->target, &side->code);
    memset(side, 0, sizeof *side);
}

/* ---- the kernel's operands ---- */

static void *operand_address(const cb__bench *bench, int i, int set, int slot)
{
    const cb__plan *plan = bench->plan;
    if (bench->c->packed_bytes[i] == 0)
        return NULL;
    if (plan->rotating[i])
        return bench->ring + (uint64_t)set * plan->set_bytes + plan->offset[i];
    if (cb__role_is_written(bench->c->kernel->operands[i].role))
        return bench->slots + (uint64_t)slot * plan->slot_bytes + plan->offset[i];
    if (bench->c->kernel->operands[i].role == CB_SCRATCH)
        return bench->scratch[i];
    return bench->ring + plan->static_offset + plan->offset[i];
}

static void kernel_bind(cb__bench *bench, int set, int slot, cb__launch *launch)
{
    launch->code = &bench->kernel.code;
    for (int i = 0; i < bench->c->kernel->noperands; i++)
        launch->operands[i] = operand_address(bench, i, set, slot);
}

static cb_status kernel_side(cb__bench *bench, cb_error *err)
{
    cb__side *side = &bench->kernel;
    side->code = cb__case_code(bench->c);
    cb_status status = cb__target_build(bench->target, &side->code, err);
    if (status == CB_OK)
        status = side_alloc(bench, side, err);
    if (status != CB_OK)
        return status;
    for (int set = 0; set < bench->plan->sets; set++)
        kernel_bind(bench, set, set, &side->launches[CB__COLD][set]);
    for (int i = 0; i < bench->plan->batch; i++)
        kernel_bind(bench, 0, i, &side->launches[CB__WARM][i]);
    return side_make(bench, side, err);
}

/* ---- the twin's ---- */

void cb__bench_twin_bind(cb__bench *bench, const cb__code *twin, void *src, uint64_t offset,
                         cb__launch *launch)
{
    launch->code = twin;
    for (int i = 0; i < twin->kernel->noperands; i++) {
        switch (twin->kernel->operands[i].role) {
        case CB_WEIGHT:
        case CB_STREAM:
            launch->operands[i] = src;
            break;
        case CB_OUTPUT:
        case CB_INOUT:
            launch->operands[i] = bench->twin_dst ? bench->twin_dst + offset : bench->twin_small[0];
            break;
        case CB_INPUT:
            launch->operands[i] = bench->twin_small[1];
            break;
        case CB_SCRATCH:
            launch->operands[i] = bench->twin_small[2];
            break;
        }
    }
}

cb_status cb__bench_twin_side(cb__bench *bench, const char *variant, cb__side *side, cb_error *err)
{
    const cb__plan *plan = bench->plan;
    char shape[32];
    snprintf(shape, sizeof shape, "%llu", (unsigned long long)plan->twin_bytes);
    cb_status status =
        cb__case_parse(bench->request.suite, variant, shape, bench->request.isa, &side->c, err);
    if (status == CB_OK)
        status = side_alloc(bench, side, err);
    if (status == CB_OK) {
        side->code = cb__case_code(&side->c);
        status = cb__target_build(bench->target, &side->code, err);
    }
    if (status != CB_OK)
        return status;
    for (int i = 0; i < plan->sets; i++)
        cb__bench_twin_bind(bench, &side->code, bench->ring + (uint64_t)i * plan->set_bytes,
                            (uint64_t)i * plan->twin_bytes, &side->launches[CB__COLD][i]);
    for (int i = 0; i < plan->batch; i++)
        cb__bench_twin_bind(bench, &side->code, bench->ring, (uint64_t)i * plan->twin_bytes,
                            &side->launches[CB__WARM][i]);
    return side_make(bench, side, err);
}

static cb_status twin_memory(cb__bench *bench, cb_error *err)
{
    const cb__plan *plan = bench->plan;
    const cb__backend *ops = bench->target.ops;
    cb__device *device = bench->target.device;
    cb_status status = CB_OK;
    for (int i = 0; i < 3 && status == CB_OK; i++)
        status = ops->alloc(device, TWIN_SMALL_BYTES, CB__PAGES_HUGE,
                            (void **)&bench->twin_small[i], err);
    if (status == CB_OK && strcmp(plan->twin_kernel, "twin_read") != 0)
        status = ops->alloc(device, (size_t)plan->slots * plan->twin_bytes + 4096, CB__PAGES_HUGE,
                            (void **)&bench->twin_dst, err);
    if (status != CB_OK)
        return status;
    uint64_t words[64];
    for (uint64_t i = 0; i < 64; i++)
        words[i] = cb_random(bench->request.seed, 0x7477696eu, 0, i);
    return ops->write(device, bench->twin_small[1], words, sizeof words, err);
}

static cb_status twin_sides(cb__bench *bench, cb_error *err)
{
    cb_status status = CB_OK;
    for (int state = 0; state < 2 && status == CB_OK; state++) {
        const char *variant = bench->request.twin_variants[state];
        if (!variant || !*variant)
            continue;
        status = cb__bench_twin_side(bench, variant, &bench->twin[state], err);
        bench->has_twin = true;
    }
    return status;
}

/* ---- the whole ---- */

static cb_status bench_memory(cb__bench *bench, cb_error *err)
{
    const cb__plan *plan = bench->plan;
    const cb__backend *ops = bench->target.ops;
    cb__device *device = bench->target.device;
    cb_status status = ops->map(device, bench->request.ring_fd, plan->file_bytes,
                                (void **)&bench->ring, &bench->pages, err);
    if (status == CB_OK)
        status = ops->alloc(device, (size_t)plan->slots * plan->slot_bytes, CB__PAGES_HUGE,
                            (void **)&bench->slots, err);
    for (int i = 0; i < bench->c->kernel->noperands && status == CB_OK; i++)
        if (bench->c->kernel->operands[i].role == CB_SCRATCH && bench->c->packed_bytes[i])
            status = ops->alloc(device, bench->c->packed_bytes[i], CB__PAGES_HUGE,
                                &bench->scratch[i], err);
    bench->visited = calloc((size_t)plan->slots, sizeof *bench->visited);
    bench->staging = malloc(plan->slot_bytes);
    if (status == CB_OK && (!bench->visited || !bench->staging))
        status = no_memory(err);
    if (status == CB_OK && *plan->twin_kernel)
        status = twin_memory(bench, err);
    return status;
}

cb_status cb__bench_open(cb__target target, const cb__bench_request *request, cb__bench **out,
                         cb_error *err)
{
    *out = NULL;
    cb__bench *bench = calloc(1, sizeof *bench);
    if (!bench)
        return no_memory(err);
    bench->target = target;
    bench->request = *request;
    bench->c = request->c;
    bench->plan = request->plan;
    bench->last_twin_set = -1;
    if (target.ops->begin)
        target.ops->begin(target.device, request->seed, request->elapsed_ns);
    cb_status status = bench_memory(bench, err);
    if (status == CB_OK)
        status = kernel_side(bench, err);
    if (status == CB_OK)
        status = twin_sides(bench, err);
    if (status == CB_OK && target.ops->hold && !request->looks)
        target.ops->hold(target.device, true);
    if (status != CB_OK)
        cb__bench_close(bench);
    else
        *out = bench;
    return status;
}

void cb__bench_close(cb__bench *bench)
{
    if (!bench)
        return;
    const cb__backend *ops = bench->target.ops;
    cb__device *device = bench->target.device;
    if (ops->hold && !bench->request.looks)
        ops->hold(device, false);
    cb__bench_side_fini(bench, &bench->kernel);
    cb__bench_side_fini(bench, &bench->twin[0]);
    cb__bench_side_fini(bench, &bench->twin[1]);
    for (int i = 0; i < CB_OPERANDS_MAX; i++)
        ops->free(device, bench->scratch[i]);
    for (int i = 0; i < 3; i++)
        ops->free(device, bench->twin_small[i]);
    ops->free(device, bench->twin_dst);
    ops->free(device, bench->slots);
    if (bench->ring)
        ops->unmap(device, bench->ring);
    free(bench->visited);
    free(bench->staging);
    free(bench);
}

cb__pages cb__bench_pages(const cb__bench *bench)
{
    return bench->pages;
}

cb_status cb__bench_digest(cb__bench *bench, uint64_t *digest, cb_error *err)
{
    return bench->target.ops->digest(bench->target.device, bench->ring, bench->plan->file_bytes,
                                     digest, err);
}
