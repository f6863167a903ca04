#include "measure/plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { SETS_MAX = 1 << 29, SHORT_BATCH_MAX = 32, LAUNCHES_MAX = 1024 };

static uint64_t align(uint64_t value, uint64_t to)
{
    return (value + to - 1) / to * to;
}

static uint64_t max64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

int cb__plan_handed_slots(const cb__plan *plan)
{
    uint64_t n = (UINT64_C(2) << 20) / plan->slot_bytes;
    return n < 1 ? 1 : n < (uint64_t)plan->batch ? (int)n : plan->batch;
}

bool cb__role_is_written(cb_role role)
{
    return role == CB_OUTPUT || role == CB_INOUT;
}

bool cb__role_is_read(cb_role role)
{
    return role == CB_WEIGHT || role == CB_STREAM || role == CB_INPUT || role == CB_INOUT;
}

uint64_t cb__plan_rows(const cb__case *c)
{
    if (!c->kernel->rotates)
        return 0;
    for (int i = 0; i < c->kernel->ndims; i++)
        if (strcmp(c->kernel->dims[i].name, c->kernel->rotates) == 0)
            return (uint64_t)c->shape[i];
    return 0;
}

uint64_t cb__plan_rotation(uint64_t set, uint64_t rows)
{
    uint64_t step = 40503 % rows ? 40503 : 1; /* 3, 23, 587 and their products divide 40503 */
    return set * step % rows;
}

/* The plain kernel with the same traffic: the direction that moves under 5 % of it is left out. */
static void choose_twin(const cb__case *c, cb__plan *plan)
{
    const cb_cost *cost = &c->cost;
    uint64_t all = cost->bytes_read + cost->bytes_written;
    if (c->kernel->no_twin || all == 0)
        return;
    const char *name = "twin_copy";
    uint64_t bytes = all / 2;
    if (cost->bytes_written < (all + 19) / 20) {
        name = "twin_read";
        bytes = cost->bytes_read;
    } else if (cost->bytes_read < (all + 19) / 20) {
        name = "twin_write";
        bytes = cost->bytes_written;
    }
    snprintf(plan->twin_kernel, sizeof plan->twin_kernel, "%s", name);
    plan->twin_bytes = align(max64(bytes, 64), 64);
}

static void lay_out(const cb__case *c, cb__plan *plan)
{
    const cb_kernel *k = c->kernel;
    uint64_t in_set = 0, in_statics = 0, in_slot = CB__GUARD_BYTES;
    for (int i = 0; i < k->noperands; i++) {
        cb_role role = k->operands[i].role;
        uint64_t bytes = c->packed_bytes[i];
        plan->rotating[i] = (role == CB_WEIGHT || role == CB_STREAM) && bytes > 0;
        if (plan->rotating[i]) {
            plan->streams = true;
            plan->offset[i] = in_set;
            in_set = align(in_set + bytes, 64);
        } else if (role == CB_INPUT) {
            plan->offset[i] = in_statics;
            in_statics = align(in_statics + bytes, 4096);
        } else if (cb__role_is_written(role)) {
            plan->offset[i] = in_slot;
            in_slot = align(in_slot + bytes, 64) + CB__GUARD_BYTES;
        }
        if (role == CB_INOUT) {
            plan->restores = true;
            plan->initial[i] = in_statics;
            in_statics = align(in_statics + bytes, 4096);
        }
    }
    uint64_t twin_reads = strcmp(plan->twin_kernel, "twin_write") ? plan->twin_bytes : 0;
    plan->set_bytes = align(max64(in_set, twin_reads), 4096);
    plan->slot_bytes = align(in_slot, 4096);
    plan->file_bytes = in_statics; /* completed when the number of sets is known */
}

static uint64_t touched(const cb__case *c, const cb__plan *plan)
{
    uint64_t moved = c->cost.bytes_read + c->cost.bytes_written;
    /* Without rotating operands and without a twin there is no set at all. */
    return max64(moved < plan->set_bytes ? moved : plan->set_bytes, 1);
}

/* A batch moves about 4 MiB: enough that the dispatch is small in it, short enough for many blocks.
 * A device that asks for more gets the whole rotation in one, as often as it takes. */
static void choose_batch(const cb__device_info *info, bool cold, uint64_t k, cb__plan *plan)
{
    uint64_t move = info->batch_bytes ? info->batch_bytes : UINT64_C(4) << 20;
    uint64_t batch = move / plan->touched_bytes + 1, most = SHORT_BATCH_MAX;
    plan->passes = 1;
    if (info->batch_bytes && cold && batch > k && k <= CB__BATCH_MAX) {
        uint64_t passes = (batch + k - 1) / k;
        most = LAUNCHES_MAX / k;
        plan->passes = plan->restores ? 1 : (int)(passes < most ? passes : most);
        batch = most = k;
    }
    plan->batch = batch < 2 ? 2 : batch > most ? (int)most : (int)batch;
}

static void count_sets(const cb__case *c, const cb__device_info *info, bool cold, cb__plan *plan)
{
    plan->touched_bytes = touched(c, plan);
    /* An unknown last level is taken as 64 MiB; the proof of coldness is what decides. */
    plan->llc_bytes = info->llc_bytes ? info->llc_bytes : UINT64_C(64) << 20;
    plan->needed_bytes = max64(4 * plan->llc_bytes, info->beyond_bytes);
    /* A quarter more than needed: of a rotation through 4x a cache that does not evict the oldest
     * first, 2 % are still there when their turn comes again (exp(-4)); of 5x, 0.7 %. */
    uint64_t ring = plan->needed_bytes / 4 * 5;
    uint64_t k = max64((ring + plan->touched_bytes - 1) / plan->touched_bytes, 2);
    choose_batch(info, cold, k, plan);
    k = align(k, (uint64_t)plan->batch);
    if (k > SETS_MAX) /* refused for memory: such a ring is smaller than what is needed */
        k = SETS_MAX;
    plan->k = cold ? (int)k : 1;
    plan->sets = cold ? 2 * plan->k : 1;
    plan->slots = cold ? plan->sets : plan->batch;
}

#define MIB 1048576.0

/* Of a set and its two slots, what is not data: alignment and guards, which a larger shape has no
 * more of. */
static uint64_t padding(const cb__case *c, const cb__plan *plan)
{
    uint64_t data = 0;
    for (int i = 0; i < c->kernel->noperands; i++)
        data += plan->rotating[i]                                  ? c->packed_bytes[i]
                : cb__role_is_written(c->kernel->operands[i].role) ? 2 * c->packed_bytes[i]
                                                                   : 0;
    uint64_t taken = plan->set_bytes + 2 * plan->slot_bytes;
    return taken > data ? taken - data : 0;
}

/* Where the padding is most of it, that is the reason; of a set that two of leave the caches
 * behind, its own size; else the caches. */
static cb_status no_memory(const cb__case *c, const cb__device_info *info, bool cold,
                           const cb__plan *plan, cb_error *err)
{
    uint64_t taken = plan->set_bytes + 2 * plan->slot_bytes;
    double needed = (double)plan->memory_bytes / MIB, there = (double)info->memory_bytes / MIB;
    double cache = (double)plan->llc_bytes / MIB;
    bool large = plan->touched_bytes >= plan->needed_bytes / 2;
    const char *advice = !large                       ? "--cache warm needs one set"
                         : taken > info->memory_bytes ? "use a smaller shape"
                                                      : "use a smaller shape, or --cache warm, "
                                                        "which needs one set";
    if (cold && padding(c, plan) > plan->touched_bytes)
        return cb_error_set(
            err, CB_NO_MEMORY,
            "%s is too small here to be cold: a launch touches %" PRIu64 " bytes, so %d sets must "
            "be rotated to leave %.0f MiB of last-level cache behind, and each takes %.0f KiB with "
            "its alignment and guards: %.0f MiB, and %.0f MiB are available; use --cache warm or a "
            "larger shape",
            c->kernel->name, plan->touched_bytes, plan->sets, cache, (double)taken / 1024, needed,
            there);
    if (!cold)
        return cb_error_set(err, CB_NO_MEMORY,
                            "%s needs %.1f MiB (operands, %d slots of outputs with their guards, "
                            "the reference) and %.1f MiB are available",
                            c->kernel->name, needed, plan->slots, there);
    return cb_error_set(err, CB_NO_MEMORY,
                        "%s needs %.1f MiB (a ring of %d sets of %.1f MiB, each with %.1f MiB of "
                        "outputs: %.0f MiB of last-level cache must be left behind) and %.1f MiB "
                        "are available; %s",
                        c->kernel->name, needed, plan->sets, (double)plan->set_bytes / MIB,
                        2 * (double)plan->slot_bytes / MIB, cache, there, advice);
}

static cb_status check_memory(const cb__case *c, const cb__device_info *info, bool cold,
                              cb__plan *plan, cb_error *err)
{
    uint64_t largest = 0;
    for (int i = 0; i < c->kernel->noperands; i++)
        largest += c->logical_bytes[i];
    uint64_t twin_dst = strcmp(plan->twin_kernel, "twin_read") == 0 ? 0 : plan->twin_bytes;
    /* The ring and the slots, two logical sets while packing, f64 reference and bound, the
     * exchange. */
    unsigned __int128 all = (unsigned __int128)plan->slots * (2 * plan->slot_bytes + twin_dst) +
                            plan->file_bytes + 2 * largest + 16 * plan->slot_bytes;
    bool too_many = cold && (uint64_t)plan->k * plan->touched_bytes < plan->needed_bytes;
    plan->memory_bytes = too_many || all > UINT64_MAX ? UINT64_MAX : (uint64_t)all;
    if (plan->memory_bytes <= info->memory_bytes && !too_many)
        return CB_OK;
    return no_memory(c, info, cold, plan, err);
}

static cb_status no_cold_state(const cb__case *c, cb_error *err)
{
    return cb_error_set(err, CB_USAGE,
                        "%s streams no operand, so it has no cold state; use --cache warm",
                        c->kernel->name);
}

/* `statics`: bytes of the inputs. */
static void close_file(cb__plan *plan, uint64_t statics)
{
    plan->static_offset = (uint64_t)plan->sets * plan->set_bytes;
    plan->file_bytes = align(plan->static_offset + statics + 4096, 4096);
}

cb_status cb__plan_make(const cb__case *c, const cb__device_info *info, bool cold, cb__plan *plan,
                        cb_error *err)
{
    *plan = (cb__plan){0};
    choose_twin(c, plan);
    lay_out(c, plan);
    if (cold && !plan->streams)
        return no_cold_state(c, err);
    count_sets(c, info, cold, plan);
    close_file(plan, plan->file_bytes);
    return check_memory(c, info, cold, plan, err);
}

/* ---- side by side ---- */

enum { VERIFIED_MAX = 8 };

cb_status cb__plan_lay(const cb__case *c, const cb__layout *layout, bool cold, cb__plan *plan,
                       cb_error *err)
{
    *plan = (cb__plan){0};
    lay_out(c, plan);
    if (plan->set_bytes > layout->set_bytes || plan->slot_bytes > layout->slot_bytes ||
        plan->file_bytes > layout->static_bytes || layout->batch < 1 || layout->k < 1)
        return cb_error_set(err, CB_USAGE, "%s does not fit the layout of the comparison",
                            c->kernel->name);
    plan->touched_bytes = touched(c, plan);
    plan->batch = layout->batch;
    plan->passes = 1;
    plan->k = plan->sets = cold ? layout->k : 1;
    plan->slots = cold ? plan->k : plan->batch;
    plan->set_bytes = layout->set_bytes;
    plan->slot_bytes = layout->slot_bytes;
    close_file(plan, layout->static_bytes);
    return CB_OK;
}

static void unite(cb__layout *all, const cb__plan *one)
{
    all->k = one->k > all->k ? one->k : all->k;
    all->batch = one->batch > all->batch ? one->batch : all->batch;
    all->set_bytes = max64(all->set_bytes, one->set_bytes);
    all->slot_bytes = max64(all->slot_bytes, one->slot_bytes);
    all->static_bytes = max64(all->static_bytes, one->file_bytes);
}

cb_status cb__plan_arms(const cb__case *cases, int n, const cb__device_info *info, bool cold,
                        cb__plan *plans, cb__layout *layout, cb_error *err)
{
    *layout = (cb__layout){0};
    for (int i = 0; i < n; i++) {
        plans[i] = (cb__plan){0};
        lay_out(&cases[i], &plans[i]);
        if (cold && !plans[i].streams)
            return no_cold_state(&cases[i], err);
        count_sets(&cases[i], info, cold, &plans[i]);
        unite(layout, &plans[i]);
    }
    layout->k = (int)align((uint64_t)layout->k, (uint64_t)layout->batch);
    cb_status status = CB_OK;
    for (int i = 0; i < n && status == CB_OK; i++) {
        uint64_t llc_bytes = plans[i].llc_bytes, needed_bytes = plans[i].needed_bytes;
        status = cb__plan_lay(&cases[i], layout, cold, &plans[i], err);
        plans[i].llc_bytes = llc_bytes;
        plans[i].needed_bytes = needed_bytes;
        if (status == CB_OK)
            status = check_memory(&cases[i], info, cold, &plans[i], err);
    }
    return status;
}

int cb__plan_verified(const cb__plan *plan)
{
    int n = cb__plan_handed_slots(plan);
    return n < VERIFIED_MAX ? n : VERIFIED_MAX;
}

cb__plan cb__plan_head(const cb__plan *plan, int sets)
{
    cb__plan head = *plan;
    head.sets = sets < plan->sets ? sets : plan->sets;
    head.static_offset = (uint64_t)head.sets * plan->set_bytes;
    head.file_bytes = plan->file_bytes - plan->static_offset + head.static_offset;
    return head;
}
