/* A comparison's requests and answers. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/members.h"
#include "worker/work.h"

enum { BLOCKS_MAX = 100000 };

/* ---- request ---- */

static void write_arm(cb__json_writer *w, const cb__work_arm *arm)
{
    cb__json_object(w);
    cb__json_key(w, "variant");
    cb__json_string(w, arm->variant);
    cb__json_key(w, "module");
    cb__json_string(w, arm->module);
    cb__json_put_int(w, "module_fd", arm->module_fd);
    cb__json_put_int(w, "ring_fd", arm->ring_fd);
    cb__json_key(w, "ring_digest");
    cb__hex_write(w, arm->ring_digest);
    cb__json_key(w, "expected");
    if (arm->expects)
        cb__hex_write(w, arm->expected);
    else
        cb__json_null(w);
    cb__json_end(w);
}

void cb__duel_work_write(const cb__work *work, cb__json_writer *w)
{
    const cb__duel_work *d = &work->duel;
    if (work->known.processors && *work->known.processors) {
        cb__json_key(w, "known");
        cb__json_object(w);
        cb__json_key(w, "processors");
        cb__json_string(w, work->known.processors);
        cb__json_put_int(w, "isa", work->known.isa);
        cb__json_end(w);
    }
    if (!d->narms)
        return;
    cb__json_key(w, "duel");
    cb__json_object(w);
    cb__json_key(w, "arms");
    cb__json_array(w);
    for (int i = 0; i < d->narms; i++)
        write_arm(w, &d->arms[i]);
    cb__json_end(w);
    const int64_t layout[] = {d->layout.k, d->layout.batch, (int64_t)d->layout.set_bytes,
                              (int64_t)d->layout.slot_bytes, (int64_t)d->layout.static_bytes};
    cb__json_key(w, "layout");
    cb__json_ints(w, layout, 5);
    cb__json_put_int(w, "arm", d->arm);
    cb__json_put_int(w, "head", d->head);
    cb__json_put_int(w, "timed", d->timed);
    cb__json_put_int(w, "floor", d->floor);
    cb__json_put_int(w, "look", d->look);
    cb__json_put_int(w, "poison_seed", (int64_t)d->poison_seed);
    cb__json_put_int(w, "blocks_min", d->blocks_min);
    cb__json_put_int(w, "batch", d->batch);
    cb__json_put_int(w, "repeats", d->repeats);
    cb__json_put_int(w, "readings", d->readings);
    cb__json_end(w);
}

static cb_status read_arm(const cb__json *json, cb__work_arm *arm, cb_error *err)
{
    int64_t module_fd = 0, ring_fd = 0;
    cb_status status = cb__json_need_text(json, "variant", &arm->variant, err);
    if (status == CB_OK)
        status = cb__json_need_text(json, "module", &arm->module, err);
    if (status == CB_OK)
        status = cb__json_need_i64(json, "module_fd", -1, 1 << 20, &module_fd, err);
    if (status == CB_OK)
        status = cb__json_need_i64(json, "ring_fd", -1, 1 << 20, &ring_fd, err);
    arm->module_fd = (int)module_fd;
    arm->ring_fd = (int)ring_fd;
    const cb__json *expected = cb__json_get(json, "expected");
    arm->expects = cb__json_is_string(expected);
    if (status == CB_OK && arm->expects && !cb__hex_read(expected, &arm->expected))
        status = cb_error_set(err, CB_USAGE, "request: 'expected' is no digest");
    if (status == CB_OK && !cb__hex_read(cb__json_get(json, "ring_digest"), &arm->ring_digest))
        status = cb_error_set(err, CB_USAGE, "request: 'ring_digest' is no digest");
    return status;
}

static cb_status read_numbers(const cb__json *json, cb__duel_work *d, cb_error *err)
{
    int64_t n[10];
    const struct {
        const char *key;
        int64_t min, max;
    } numbers[] = {{"arm", 0, d->narms - 1},
                   {"head", 0, 1},
                   {"timed", 0, 1},
                   {"floor", 0, 1},
                   {"look", 0, 1},
                   {"poison_seed", INT64_MIN, INT64_MAX},
                   {"blocks_min", 0, BLOCKS_MAX},
                   {"batch", 0, CB__BATCH_MAX},
                   {"repeats", 0, CB__REPEATS_MAX},
                   {"readings", 0, CB__READINGS}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        cb_status status =
            cb__json_need_i64(json, numbers[i].key, numbers[i].min, numbers[i].max, &n[i], err);
        if (status != CB_OK)
            return status;
    }
    d->arm = (int)n[0];
    d->head = n[1];
    d->timed = n[2];
    d->floor = n[3];
    d->look = n[4];
    d->poison_seed = (uint64_t)n[5];
    d->blocks_min = (int)n[6];
    d->batch = (int)n[7];
    d->repeats = (int)n[8];
    d->readings = (int)n[9];
    if (d->readings == 2)
        return cb_error_set(err, CB_USAGE, "request: a slot has 1 or %d readings", CB__READINGS);
    return CB_OK;
}

static cb_status read_layout(const cb__json *json, cb__layout *layout, cb_error *err)
{
    const int64_t most[] = {1 << 29, CB__BATCH_MAX, INT64_C(1) << 46, INT64_C(1) << 46,
                            INT64_C(1) << 46};
    int64_t v[5];
    for (size_t i = 0; i < 5; i++) {
        v[i] = cb__json_i64(cb__json_at(json, i), -1);
        if (v[i] < (i < 2) || v[i] > most[i])
            return cb_error_set(err, CB_USAGE,
                                "request: a layout is [k, batch, set, slot, static]");
    }
    *layout = (cb__layout){(int)v[0], (int)v[1], (uint64_t)v[2], (uint64_t)v[3], (uint64_t)v[4]};
    return CB_OK;
}

static cb_status read_known(const cb__json *json, cb__known *known, cb_error *err)
{
    int64_t isa = 0;
    cb_status status = cb__json_need_text(json, "processors", &known->processors, err);
    if (status == CB_OK)
        status = cb__json_need_i64(json, "isa", 0, INT32_MAX, &isa, err);
    known->isa = (unsigned)isa;
    return status;
}

cb_status cb__duel_work_read(const cb__json *json, cb__work *work, cb_error *err)
{
    const cb__json *known = cb__json_get(json, "known"), *duel = cb__json_get(json, "duel");
    const cb__json *arms = cb__json_get(duel, "arms");
    cb_status status = known ? read_known(known, &work->known, err) : CB_OK;
    if (status != CB_OK || !duel)
        return status;
    size_t n = cb__json_size(arms);
    if (n < 1 || n > CB__DUEL_ARMS_MAX)
        return cb_error_set(err, CB_USAGE, "request: 1 to %d arms are compared, not %zu",
                            CB__DUEL_ARMS_MAX, n);
    work->duel.narms = (int)n;
    for (size_t i = 0; i < n && status == CB_OK; i++)
        status = read_arm(cb__json_at(arms, i), &work->duel.arms[i], err);
    if (status == CB_OK)
        status = read_layout(cb__json_get(duel, "layout"), &work->duel.layout, err);
    return status == CB_OK ? read_numbers(duel, &work->duel, err) : status;
}

/* ---- answer ---- */

cb_status cb__duel_result_alloc(const cb__work *work, const cb__plan *plan, cb__arena *arena,
                                cb__duel_result *r, cb_error *err)
{
    size_t blocks = work->nmodes ? (size_t)work->modes[0].blocks : 0;
    size_t arms = (size_t)work->duel.narms;
    *r = (cb__duel_result){
        .entries = cb__arena_array(arena, (size_t)cb__duel_entries(plan, work->duel.narms),
                                   sizeof *r->entries),
        .ns = cb__arena_array(arena, blocks * arms + 1, sizeof *r->ns),
        .order = cb__arena_array(arena, blocks * arms + 1, sizeof *r->order),
        .involuntary = cb__arena_array(arena, blocks + 1, sizeof *r->involuntary)};
    bool there = r->entries && r->ns && r->order && r->involuntary;
    return there ? CB_OK : cb_error_set(err, CB_NO_MEMORY, "no memory for %zu blocks", blocks);
}

static void write_findings(cb__json_writer *w, const cb__duelist_result *arm)
{
    cb__json_object(w);
    cb__json_key(w, "digests");
    cb__json_array(w);
    for (int i = 0; i < CB__PHASES; i++)
        cb__hex_write(w, arm->digests[i]);
    cb__json_end(w);
    cb__json_key(w, "edits");
    cb__json_bool(w, arm->edits);
    cb__json_key(w, "launch");
    cb__json_string(w, arm->launch.status == CB_OK ? NULL : arm->launch.message);
    cb__json_end(w);
}

void cb__duel_answer_write(const cb__duel_answer *a, int narms, cb__buf *line)
{
    const cb__duel_result *r = &a->result;
    size_t slots = (size_t)r->blocks * (size_t)narms;
    cb__json_writer w;
    cb__answer_begin(&w, line, "duel");
    cb__json_key(&w, "arms");
    cb__json_array(&w);
    for (int i = 0; i < narms; i++)
        write_findings(&w, &r->arms[i]);
    cb__json_end(&w);
    cb__json_key(&w, "entries");
    cb__json_array(&w);
    for (int i = 0; i < r->nentries; i++) {
        const cb__duel_entry *e = &r->entries[i];
        int64_t entry[] = {e->arm, e->phase, e->slot, e->set, (int64_t)e->offset};
        cb__json_ints(&w, entry, 5);
    }
    cb__json_end(&w);
    cb__json_key(&w, "ns");
    cb__json_numbers(&w, r->ns, slots);
    cb__json_key(&w, "order");
    cb__json_ints(&w, r->order, slots);
    cb__json_key(&w, "block_involuntary");
    cb__json_ints(&w, r->involuntary, (size_t)r->blocks);
    cb__json_put_int(&w, "batch", r->batch);
    cb__json_put_int(&w, "repeats", r->repeats);
    cb__json_put_int(&w, "readings", r->readings);
    cb__json_put_real(&w, "gap_ns", r->gap_ns);
    cb__json_put_real(&w, "floor_ns", r->floor_ns);
    cb__json_put_real(&w, "launch_ns", r->launch_ns);
    cb__json_put_int(&w, "measured_ns", (int64_t)r->measured_ns);
    cb__json_put_int(&w, "elapsed_ns", (int64_t)r->elapsed_ns);
    cb__json_put_real(&w, "clock_hz", a->clock_hz);
    cb__json_put_text(&w, "telemetry", a->telemetry);
    cb__json_put_real(&w, "steal_s", a->steal_s);
    cb__json_put_real(&w, "wall_s", a->wall_s);
    cb__json_put_int(&w, "involuntary", a->involuntary);
    cb__answer_end(&w, line);
}

/* Not negative. */
static int64_t integer(const cb__json *json, const char *key, int64_t max, cb_error *err)
{
    return cb__answer_int(json, key, 0, max, err);
}

static void read_findings(const cb__json *json, cb__duelist_result *arm, cb_error *err)
{
    const cb__json *digests = cb__json_get(json, "digests");
    const cb__json *launch = cb__json_get(json, "launch");
    for (int i = 0; i < CB__PHASES; i++)
        if (!cb__hex_read(cb__json_at(digests, (size_t)i), &arm->digests[i]))
            cb__garbage(err, "digests");
    arm->edits = cb__answer_truth(json, "edits", err);
    if (cb__json_is_string(launch))
        cb_error_set(&arm->launch, CB_WRONG, "%s", cb__json_text(launch, ""));
}

static void read_entries(const cb__json *json, const cb__work *work, const cb__plan *plan,
                         cb__duel_result *r, cb_error *err)
{
    size_t n = cb__json_size(json);
    if (n > (size_t)cb__duel_entries(plan, work->duel.narms) ||
        plan->slot_bytes + CB__EXCHANGE_HEAD > work->exchange_bytes)
        n = 0, cb__garbage(err, "entries");
    const int64_t max[] = {work->duel.narms - 1, CB__PHASES - 1, plan->slots - 1, plan->sets - 1,
                           (int64_t)(work->exchange_bytes - CB__EXCHANGE_HEAD - plan->slot_bytes)};
    for (size_t i = 0; i < n && err->status == CB_OK; i++) {
        int64_t v[5];
        for (size_t j = 0; j < 5; j++)
            v[j] = cb__answer_int_of(cb__json_at(cb__json_at(json, i), j),
                                     "an output outside the exchange", 0, max[j], err);
        r->entries[i] =
            (cb__duel_entry){(int)v[0], (int)v[1], (int)v[2], (int)v[3], (uint64_t)v[4]};
    }
    r->nentries = (int)n;
}

/* Every block names each arm once. */
static void read_blocks(const cb__json *json, const cb__work *work, cb__duel_result *r,
                        cb_error *err)
{
    const cb__json *ns = cb__json_get(json, "ns"), *order = cb__json_get(json, "order");
    const cb__json *involuntary = cb__json_get(json, "block_involuntary");
    size_t arms = (size_t)work->duel.narms, blocks = cb__json_size(ns) / arms;
    int64_t most = work->nmodes ? work->modes[0].blocks : 0;
    if ((int64_t)blocks > most || cb__json_size(ns) != blocks * arms ||
        cb__json_size(order) != blocks * arms || cb__json_size(involuntary) != blocks)
        blocks = 0, cb__garbage(err, "the number of blocks");
    for (size_t b = 0; b < blocks && err->status == CB_OK; b++) {
        unsigned seen = 0;
        for (size_t i = b * arms; i < (b + 1) * arms; i++) {
            r->ns[i] = cb__json_real(cb__json_at(ns, i), 0);
            r->order[i] =
                cb__answer_int_of(cb__json_at(order, i), "order", 0, work->duel.narms - 1, err);
            seen |= 1u << r->order[i];
            if (!(r->ns[i] > 0) || !isfinite(r->ns[i]))
                cb__garbage(err, "a time that is not positive");
        }
        if (seen != (1u << arms) - 1)
            cb__garbage(err, "an order that leaves an arm out");
        r->involuntary[b] =
            cb__answer_int_of(cb__json_at(involuntary, b), "block_involuntary", 0, INT32_MAX, err);
    }
    r->blocks = (int)blocks;
}

cb_status cb__duel_answer_read(const cb__json *json, const cb__work *work, const cb__plan *plan,
                               cb__arena *arena, cb__duel_answer *a, cb_error *err)
{
    const int64_t time_max = INT64_C(1) << 50;
    cb_error own = CB_ERROR_INIT;
    *a = (cb__duel_answer){0};
    cb_status status = cb__duel_result_alloc(work, plan, arena, &a->result, err);
    if (status != CB_OK)
        return status;
    cb__duel_result *r = &a->result;
    const cb__json *arms = cb__json_get(json, "arms");
    if (cb__json_size(arms) != (size_t)work->duel.narms)
        cb__garbage(&own, "arms");
    bool failed = false;
    for (int i = 0; i < work->duel.narms; i++) {
        read_findings(cb__json_at(arms, (size_t)i), &r->arms[i], &own);
        failed = failed || r->arms[i].launch.status != CB_OK;
    }
    read_entries(cb__json_get(json, "entries"), work, plan, r, &own);
    read_blocks(json, work, r, &own);
    if (work->duel.timed && r->blocks == 0 && !failed)
        cb__garbage(&own, "no blocks, and no failed launch either");
    r->batch = (int)integer(json, "batch", CB__BATCH_MAX, &own);
    r->repeats = (int)integer(json, "repeats", CB__REPEATS_MAX, &own);
    r->readings = (int)integer(json, "readings", CB__READINGS, &own);
    r->gap_ns = cb__answer_real(json, "gap_ns", &own);
    r->floor_ns = cb__answer_real(json, "floor_ns", &own);
    r->launch_ns = cb__answer_real(json, "launch_ns", &own);
    r->measured_ns = (uint64_t)integer(json, "measured_ns", time_max, &own);
    r->elapsed_ns = (uint64_t)integer(json, "elapsed_ns", time_max, &own);
    a->clock_hz = cb__answer_real(json, "clock_hz", &own);
    cb__answer_text(json, "telemetry", a->telemetry, sizeof a->telemetry, &own);
    a->steal_s = cb__answer_real(json, "steal_s", &own);
    a->wall_s = cb__answer_real(json, "wall_s", &own);
    a->involuntary = integer(json, "involuntary", time_max, &own);
    return own.status == CB_OK ? CB_OK : cb_error_set(err, own.status, "%s", own.message);
}
