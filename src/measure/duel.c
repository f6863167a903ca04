#include "measure/duel.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "coldbench/random.h"
#include "measure/duel_internal.h"

enum { PAGE_BYTES = 4096 };

uint64_t cb__duel_draw(cb__duel *duel)
{
    return cb_random(duel->request->seed, 0x636f696eu, 0, duel->draws++);
}

void cb__duel_shuffle(cb__duel *duel, int *order)
{
    int n = duel->request->narms;
    for (int i = 0; i < n; i++) {
        int j = (int)(cb__duel_draw(duel) % (unsigned)(i + 1));
        order[i] = order[j];
        order[j] = i;
    }
}

void cb__duel_alive(cb__duel *duel)
{
    if (duel->request->alive)
        duel->request->alive(duel->request->alive_arg);
}

void cb__duel_mark(cb__duel *duel, int arm, int place)
{
    if (duel->request->at_work)
        *duel->request->at_work = arm + 1;
    if (duel->target.ops->mark)
        duel->target.ops->mark(duel->target.device, arm, place);
}

cb_status cb__duel_found(cb__duel *duel, int arm, cb_status status, cb_error *err)
{
    if (status != CB_WRONG)
        return status;
    cb_error *launch = &duel->out->arms[arm].launch;
    launch->status = CB_WRONG;
    memcpy(launch->message, err->message, sizeof launch->message);
    duel->failed = arm;
    cb_error_clear(err);
    return CB_OK;
}

static cb_status no_memory(cb_error *err)
{
    return cb_error_set(err, CB_NO_MEMORY, "worker: no memory for its tables");
}

/* ---- memory ---- */

static cb_status map_ring(cb__duel *duel, const cb__duelist *arm, cb__duel_side *side,
                          cb_error *err)
{
    for (side->which = 0; side->which < duel->nrings; side->which++)
        if (duel->ring_fds[side->which] == arm->ring_fd) {
            side->ring = duel->rings[side->which];
            return CB_OK;
        }
    void *ring = NULL;
    cb_status status = duel->target.ops->map(duel->target.device, arm->ring_fd,
                                             arm->plan->file_bytes, &ring, NULL, err);
    if (status != CB_OK)
        return status;
    duel->ring_fds[duel->nrings] = arm->ring_fd;
    duel->ring_digests[duel->nrings] = arm->ring_digest;
    duel->rings[duel->nrings++] = side->ring = ring;
    return CB_OK;
}

static uint64_t scratch_bytes(const cb__duel *duel, int operand)
{
    uint64_t most = 0;
    for (int i = 0; i < duel->request->narms; i++) {
        const cb__case *c = duel->request->arms[i].c;
        if (operand < c->kernel->noperands && c->kernel->operands[operand].role == CB_SCRATCH &&
            c->packed_bytes[operand] > most)
            most = c->packed_bytes[operand];
    }
    return most;
}

/* Where the outputs lie relative to the inputs within a page is drawn anew: some pairs of addresses
 * are slower than others, and that is no property of the code. */
static cb_status shared_memory(cb__duel *duel, cb_error *err)
{
    const cb__plan *plan = duel->plan;
    const cb__backend *ops = duel->target.ops;
    cb__device *device = duel->target.device;
    cb_status status = ops->alloc(device, (size_t)plan->slots * plan->slot_bytes + 4096,
                                  CB__PAGES_HUGE, (void **)&duel->slot_memory, err);
    duel->slots = duel->slot_memory + cb__duel_draw(duel) % 64 * 64;
    for (int i = 0; i < CB_OPERANDS_MAX && status == CB_OK; i++) {
        uint64_t bytes = scratch_bytes(duel, i);
        if (bytes)
            status = ops->alloc(device, bytes, CB__PAGES_HUGE, &duel->scratch[i], err);
    }
    duel->staging = malloc(plan->slot_bytes);
    return status == CB_OK && !duel->staging ? no_memory(err) : status;
}

static void *operand_address(const cb__duel *duel, int arm, int i, int set, int slot)
{
    const cb__duelist *a = &duel->request->arms[arm];
    const cb__plan *plan = a->plan;
    cb_role role = a->c->kernel->operands[i].role;
    if (a->c->packed_bytes[i] == 0)
        return NULL;
    if (plan->rotating[i])
        return duel->sides[arm].ring + (uint64_t)set * plan->set_bytes + plan->offset[i];
    if (cb__role_is_written(role))
        return duel->slots + (uint64_t)slot * plan->slot_bytes + plan->offset[i];
    if (role == CB_SCRATCH)
        return duel->scratch[i];
    return duel->sides[arm].ring + plan->static_offset + plan->offset[i];
}

static cb_status make_tables(cb__duel_side *side, const cb__case *c, cb_error *err)
{
    size_t bytes = sizeof *side->tables + (size_t)side->n * sizeof side->tables->launches[0];
    bytes = (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    side->tables = aligned_alloc(PAGE_BYTES, bytes);
    side->batches = calloc((size_t)side->n, sizeof(cb__batch *));
    if (!side->tables || !side->batches)
        return no_memory(err);
    memset(side->tables, 0, bytes);
    side->tables->c = *c;
    side->tables->code = cb__case_code(&side->tables->c);
    return CB_OK;
}

static cb_status open_side(cb__duel *duel, int arm, cb_error *err)
{
    const cb__duelist *a = &duel->request->arms[arm];
    cb__duel_side *side = &duel->sides[arm];
    bool cold = duel->request->cache == CB__COLD;
    side->n = cold ? a->plan->sets : a->plan->batch;
    cb_status status = map_ring(duel, a, side, err);
    if (status == CB_OK)
        status = make_tables(side, a->c, err);
    if (status == CB_OK)
        status = cb__target_build(duel->target, &side->tables->code, err);
    if (status != CB_OK)
        return status;
    for (int i = 0; i < side->n; i++) {
        cb__launch *launch = &side->tables->launches[i];
        launch->code = &side->tables->code;
        for (int o = 0; o < a->c->kernel->noperands; o++)
            launch->operands[o] = operand_address(duel, arm, o, cold ? i : 0, i);
    }
    return duel->target.ops->batch_new(duel->target.device, side->tables->launches, duel->verified,
                                       &side->first, err);
}

/* Arms of identical code differed by 0.3 % where a launch takes 3.5 us (H200), in the order in
 * which their images and batches had been made. So that order is drawn anew in each round. */
static cb_status duel_open(cb__duel *duel, cb_error *err)
{
    const cb__backend *ops = duel->target.ops;
    if (ops->begin)
        ops->begin(duel->target.device, duel->request->seed, duel->request->elapsed_ns);
    cb_status status = shared_memory(duel, err);
    cb__duel_shuffle(duel, duel->made);
    for (int i = 0; i < duel->request->narms && status == CB_OK; i++) {
        duel->restores = duel->restores || duel->request->arms[i].plan->restores;
        status = open_side(duel, duel->made[i], err);
    }
    if (status == CB_OK && ops->hold && duel->request->blocks > 0)
        ops->hold(duel->target.device, true);
    return status;
}

static void duel_close(cb__duel *duel)
{
    const cb__backend *ops = duel->target.ops;
    cb__device *device = duel->target.device;
    if (ops->hold && duel->request->blocks > 0)
        ops->hold(device, false);
    for (int i = 0; i < duel->request->narms; i++) {
        cb__duel_side *side = &duel->sides[i];
        for (int b = 0; b < side->arm.nbatches; b++)
            ops->batch_free(device, side->batches[b]);
        if (side->first)
            ops->batch_free(device, side->first);
        if (side->tables)
            cb__target_unbuild(duel->target, &side->tables->code);
        free(side->batches);
        free(side->tables);
    }
    for (int i = 0; i < CB_OPERANDS_MAX; i++)
        ops->free(device, duel->scratch[i]);
    ops->free(device, duel->slot_memory);
    for (int i = 0; i < duel->nrings; i++)
        ops->unmap(device, duel->rings[i]);
    free(duel->staging);
}

/* ---- verified launches ---- */

cb_status cb__duel_poison(cb__duel *duel, int arm, int slot, int phase, cb_error *err)
{
    const cb__duelist *a = &duel->request->arms[arm];
    const cb__backend *ops = duel->target.ops;
    cb__device *device = duel->target.device;
    cb__poison_slot(a->c, a->plan, duel->request->poison_seed, slot, phase, duel->staging);
    cb_status status = CB_OK;
    for (int i = 0; i < a->c->kernel->noperands && status == CB_OK; i++)
        if (a->c->kernel->operands[i].role == CB_INOUT)
            status = ops->read(device, duel->staging + a->plan->offset[i],
                               duel->sides[arm].ring + a->plan->static_offset + a->plan->initial[i],
                               a->c->packed_bytes[i], err);
    if (status == CB_OK)
        status = ops->write(device, duel->slots + (uint64_t)slot * a->plan->slot_bytes,
                            duel->staging, a->plan->slot_bytes, err);
    return status;
}

static cb_status launch_each(cb__duel *duel, int arm, cb_error *err)
{
    const cb__backend *ops = duel->target.ops;
    cb__device *device = duel->target.device;
    const cb__duel_side *side = &duel->sides[arm];
    if (duel->request->submit == CB__BATCHED) {
        ops->batch_run(device, side->first);
        return ops->sync(device, err);
    }
    cb_status status = CB_OK;
    for (int i = 0; i < duel->verified && status == CB_OK; i++) {
        ops->launch(device, &side->tables->launches[i]);
        status = ops->sync(device, err);
    }
    return status;
}

static cb_status launch_first(cb__duel *duel, int arm, cb_error *err)
{
    cb__duel_side *side = &duel->sides[arm];
    uint64_t start = duel->target.ops->now_ns(duel->target.device);
    cb_status status = launch_each(duel, arm, err);
    uint64_t took = duel->target.ops->now_ns(duel->target.device) - start;
    double ns = (double)took / duel->verified;
    side->launch_ns = side->launch_ns > 0 ? fmin(side->launch_ns, ns) : ns;
    return status;
}

static cb_status digest_slots(cb__duel *duel, uint64_t *digest, cb_error *err)
{
    cb_status status = CB_OK;
    *digest = 0;
    for (int i = 0; i < duel->verified && status == CB_OK; i++) {
        uint64_t one = 0;
        status = duel->target.ops->digest(duel->target.device,
                                          duel->slots + (uint64_t)i * duel->plan->slot_bytes,
                                          duel->plan->slot_bytes, &one, err);
        *digest = cb_random_mix(*digest + one);
    }
    return status;
}

static cb_status hand_over(cb__duel *duel, int arm, int phase, cb_error *err)
{
    const cb__duel_request *q = duel->request;
    cb__duel_result *out = duel->out;
    uint64_t bytes = duel->plan->slot_bytes;
    cb_status status = CB_OK;
    for (int i = 0; i < duel->verified && status == CB_OK; i++) {
        uint64_t offset = (uint64_t)out->nentries * bytes;
        if (offset + bytes > q->exchange_bytes)
            return cb_error_set(err, CB_INTERNAL, "worker: the exchange of %llu bytes is full",
                                (unsigned long long)q->exchange_bytes);
        status = duel->target.ops->read(duel->target.device, q->exchange + offset,
                                        duel->slots + (uint64_t)i * bytes, bytes, err);
        out->entries[out->nentries++] =
            (cb__duel_entry){arm, phase, i, q->cache == CB__COLD ? i : 0, offset};
    }
    return status;
}

int cb__duel_entries(const cb__plan *plan, int narms)
{
    return narms * CB__PHASES * cb__plan_verified(plan);
}

uint64_t cb__duel_exchange_bytes(const cb__plan *plan, int narms)
{
    return (uint64_t)cb__duel_entries(plan, narms) * plan->slot_bytes;
}

static cb_status verify_own(cb__duel *duel, int arm, int phase, cb_error *err)
{
    const cb__duel_own *own = duel->request->arms[arm].own;
    cb__duel_alive(duel);
    cb__duel_mark(duel, arm, -1);
    own->before(own->arg, phase);
    cb_status status = launch_first(duel, arm, err);
    if (status == CB_OK)
        status = own->after(own->arg, phase, &duel->out->arms[arm].digests[phase], err);
    cb__duel_mark(duel, -1, -1);
    return status;
}

/* One launch of every verified slot, over poison, through the path that is timed. */
static cb_status verify_phase(cb__duel *duel, int arm, int phase, cb_error *err)
{
    cb__duelist_result *r = &duel->out->arms[arm];
    cb_status status = CB_OK;
    if (duel->request->arms[arm].own)
        return verify_own(duel, arm, phase, err);
    cb__duel_alive(duel);
    for (int i = 0; i < duel->verified && status == CB_OK; i++)
        status = cb__duel_poison(duel, arm, i, phase, err);
    cb__duel_mark(duel, arm, -1);
    if (status == CB_OK)
        status = launch_first(duel, arm, err);
    cb__duel_mark(duel, -1, -1);
    if (status == CB_OK)
        status = digest_slots(duel, &r->digests[phase], err);
    const uint64_t *expected = duel->request->expected;
    if (status != CB_OK || (expected && expected[arm] == r->digests[phase]))
        return status;
    return hand_over(duel, arm, phase, err);
}

static cb_status look_at_ring(cb__duel *duel, int arm, cb_error *err)
{
    const cb__duel_side *side = &duel->sides[arm];
    uint64_t now = 0;
    cb_status status = duel->target.ops->digest(
        duel->target.device, side->ring, duel->request->arms[arm].plan->file_bytes, &now, err);
    duel->out->arms[arm].edits = now != duel->ring_digests[side->which];
    duel->ring_digests[side->which] = now;
    return status;
}

static cb_status verify_arm(cb__duel *duel, int arm, int first, int last, cb_error *err)
{
    cb_status status = CB_OK;
    for (int phase = first; phase <= last && status == CB_OK; phase++)
        status = verify_phase(duel, arm, phase, err);
    if (status == CB_OK && duel->request->digest && first == 0)
        status = look_at_ring(duel, arm, err);
    return cb__duel_found(duel, arm, status, err);
}

static cb_status verify_all(cb__duel *duel, int first, int last, cb_error *err)
{
    int order[CB__DUEL_ARMS_MAX];
    cb_status status = CB_OK;
    cb__duel_shuffle(duel, order);
    for (int i = 0; i < duel->request->narms && status == CB_OK && duel->failed < 0; i++)
        status = verify_arm(duel, order[i], first, last, err);
    return status;
}

cb_status cb__duel_run(cb__target target, const cb__duel_request *request, cb__duel_result *out,
                       cb_error *err)
{
    cb__duel *duel = calloc(1, sizeof *duel);
    if (!duel)
        return no_memory(err);
    *duel =
        (cb__duel){.target = target,
                   .request = request,
                   .plan = request->arms[0].plan,
                   .out = out,
                   .verified = request->arms[0].own ? 1 : cb__plan_verified(request->arms[0].plan),
                   .failed = -1};
    out->floor_ns = (double)NAN;
    cb_status status = duel_open(duel, err);
    uint64_t start = target.ops->now_ns(target.device);
    if (status == CB_OK)
        status = verify_all(duel, 0, 1, err);
    if (status == CB_OK && duel->failed < 0 && request->blocks > 0)
        status = cb__duel_time(duel, err);
    if (status == CB_OK && duel->failed < 0 && request->blocks > 0)
        status = verify_all(duel, 2, 2, err);
    if (duel->failed >= 0)
        out->blocks = 0;
    out->elapsed_ns = target.ops->now_ns(target.device) - start;
    for (int i = 0; i < request->narms; i++)
        out->launch_ns = fmax(out->launch_ns, duel->sides[i].launch_ns);
    duel_close(duel);
    free(duel);
    return status;
}
