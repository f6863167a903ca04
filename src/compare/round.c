/* One process of a comparison: what it is asked, what its outputs are worth, and whose fault it is
 * when it does not come back. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coldbench/random.h"
#include "compare/session.h"
#include "host/clock.h"

bool cb__side_in(const cb__comparing *s, int side)
{
    const cb__evidence *e = &s->out->sides[side].evidence;
    const cb__findings *f = &e->findings;
    return e->launch.status == CB_OK && e->worker.status == CB_OK && !e->inputs_changed &&
           !f->unwritten && !f->guard_bytes && !f->nonfinite && !f->beyond;
}

int cb__sides_in(const cb__comparing *s)
{
    int n = 0;
    for (int i = 0; i < s->request->nsides; i++)
        n += cb__side_in(s, i);
    return n;
}

/* ---- the request ---- */

int cb__arms_of(const cb__comparing *s, const cb__stage *stage, bool copies, cb__work *work,
                int side[CB__ARMS_MAX])
{
    int n = 0;
    for (int i = 0; i < s->request->nsides; i++)
        for (int copy = 0; copy < (copies && i == 0 ? 2 : 1) && cb__side_in(s, i); copy++) {
            const cb__module *module = s->out->sides[i].c.module;
            side[n] = i;
            work->duel.arms[n++] =
                (cb__work_arm){.variant = s->request->variants[i],
                               .module = module->origin,
                               .module_fd = s->module_fds[i],
                               .ring_fd = cb__ring_fd(s, stage, i),
                               .expects = stage->seen[i],
                               .expected = stage->digests[i],
                               .ring_digest = stage->ring_digests[stage->ring[i]]};
        }
    work->duel.narms = n;
    return n;
}

static cb__work duel_work(const cb__comparing *s, const cb__stage *stage, bool copies,
                          int side[CB__ARMS_MAX])
{
    cb__work work = cb__compare_work(s, stage, "duel");
    cb__arms_of(s, stage, copies, &work, side);
    work.exchange_fd = stage->exchange.fd;
    work.exchange_bytes = stage->exchange.bytes;
    work.elapsed_ns = s->device_ns;
    work.nmodes = 1;
    work.modes[0] = (cb__mode){stage->cold ? CB__COLD : CB__WARM, s->out->submit, 1};
    return work;
}

/* ---- verification ---- */

static const cb__duel_entry *second_phase(const cb__duel_result *r, const cb__duel_entry *first)
{
    for (int i = 0; i < r->nentries; i++) {
        const cb__duel_entry *e = &r->entries[i];
        if (e->arm == first->arm && e->slot == first->slot && e->phase == 1)
            return e;
    }
    return NULL;
}

static void look_at(cb__comparing *s, const cb__stage *stage, const cb__duel_result *r,
                    const cb__duel_entry *e, int side, cb__findings *f)
{
    const unsigned char *base = (const unsigned char *)stage->exchange.base + CB__EXCHANGE_HEAD;
    const cb__case *c = &stage->cases[side];
    const cb__plan *plan = &stage->plans[side];
    cb__verify_slot(c, plan, &stage->expected[side], s->request->seed, e->slot, e->set,
                    base + e->offset, f);
    const cb__duel_entry *second = e->phase == 0 ? second_phase(r, e) : NULL;
    if (second)
        cb__verify_written(c, plan, s->request->seed, e->slot, base + e->offset,
                           base + second->offset, f);
}

static void merge(cb__comparing *s, const cb__stage *stage, int side, const cb__findings *found)
{
    cb__findings *all = &s->out->sides[side].evidence.findings;
    if (stage != &s->stages[0]) {
        cb__findings_merge(all, found, stage->shape);
        return;
    }
    /* On the shape itself the first fault found stays the one that is told. */
    bool bad = all->unwritten || all->guard_bytes || all->nonfinite || all->beyond;
    cb__findings sum = bad ? *all : *found;
    sum.slots = all->slots + found->slots;
    sum.elements = all->elements + found->elements;
    sum.vacuous = all->vacuous + found->vacuous;
    sum.worst = all->worst > found->worst ? all->worst : found->worst;
    sum.ragged = all->ragged;
    *all = sum;
}

/* The digests are equal in all phases, all copies and all rounds unless the code gives other bits
 * from time to time; it may, within its bound. */
static void take_digests(cb__comparing *s, cb__stage *stage, const cb__duel_result *r, int arm,
                         int side)
{
    const uint64_t *digests = r->arms[arm].digests;
    if (!stage->seen[side]) {
        stage->seen[side] = true;
        stage->digests[side] = digests[0];
    }
    for (int phase = 0; phase < (r->blocks ? CB__PHASES : 2); phase++)
        if (digests[phase] != stage->digests[side])
            s->out->sides[side].steady = false;
}

/* A launch that fails ends the process's work: of those that came after it nothing was seen. */
static bool failed(cb__comparing *s, const cb__stage *stage, const cb__work *work,
                   const cb__duel_result *r, const int side[CB__ARMS_MAX])
{
    bool any = false;
    for (int arm = 0; arm < work->duel.narms; arm++) {
        if (r->arms[arm].launch.status == CB_OK)
            continue;
        cb_error *launch = &s->out->sides[side[arm]].evidence.launch;
        *launch = r->arms[arm].launch;
        if (stage != &s->stages[0])
            cb_error_prefix(launch, "shape %s", stage->shape);
        any = true;
    }
    return any;
}

static void verify(cb__comparing *s, cb__stage *stage, const cb__work *work,
                   const cb__duel_result *r, const int side[CB__ARMS_MAX])
{
    for (int arm = 0; arm < work->duel.narms; arm++) {
        cb__findings found = {0};
        for (int i = 0; i < r->nentries; i++)
            if (r->entries[i].arm == arm)
                look_at(s, stage, r, &r->entries[i], side[arm], &found);
        if (found.slots)
            merge(s, stage, side[arm], &found);
        take_digests(s, stage, r, arm, side[arm]);
    }
}

/* A side that edits its operands spoils them for all that come after it: it is out, and what this
 * process brought home says nothing of the others. */
static bool edited(cb__comparing *s, const cb__work *work, const cb__duel_result *r,
                   const int side[CB__ARMS_MAX])
{
    bool any = false;
    for (int arm = 0; arm < work->duel.narms; arm++) {
        any = any || r->arms[arm].edits;
        if (r->arms[arm].edits)
            s->out->sides[side[arm]].evidence.inputs_changed = true;
    }
    return any;
}

/* ---- asking ---- */

static bool own(cb_status status)
{
    return status == CB_CRASHED || status == CB_TIMEOUT || status == CB_GARBAGE ||
           status == CB_WRONG;
}

static int32_t *at_work(const cb__stage *stage)
{
    return (int32_t *)((char *)stage->exchange.base + CB__EXCHANGE_AT_WORK);
}

/* Who was at work when the process ended; a death in between (while loading, say) is everyone's. */
static void blame(cb__comparing *s, const cb__stage *stage, int narms, const int side[CB__ARMS_MAX],
                  cb_error *err)
{
    int arm = *at_work(stage) - 1;
    for (int i = 0; i < narms; i++)
        if (arm < 0 || arm >= narms || i == arm)
            s->out->sides[side[i]].evidence.worker = *err;
    cb_error_clear(err);
}

extern char **environ;

enum { PADDING_MAX = 4096 };
#define PADDING "COLDBENCH_PADDING="

/* The program's own environment and one variable of a random length, which moves the stack. */
static char **padded_environment(const cb__comparing *s, uint64_t seed)
{
    size_t n = 0, length = cb_random(seed, 0x656e76u, 0, 0) % PADDING_MAX;
    while (environ && environ[n]) /* none at all after clearenv */
        n++;
    char **padded = cb__arena_array(s->arena, n + 2, sizeof *padded);
    char *variable = cb__arena_alloc(s->arena, sizeof PADDING + length);
    if (!padded || !variable)
        return NULL;
    memcpy(variable, PADDING, sizeof PADDING - 1);
    memset(variable + sizeof PADDING - 1, 'x', length);
    if (n > 0)
        memcpy(padded, environ, n * sizeof *padded);
    padded[n] = variable;
    return padded;
}

enum { FDS_MAX = 2 * CB__ARMS_MAX * (1 + CB__RAGGED_MAX) + 1 + CB__RAGGED_MAX };

static void add_fd(int fd, int *fds, int *n)
{
    for (int i = 0; i < *n; i++)
        if (fds[i] == fd)
            return;
    if (fd >= 0)
        fds[(*n)++] = fd;
}

cb_status cb__round_start(cb__comparing *s, cb__stage *stages, int nstages, uint64_t seed,
                          const cb__asker *asker, cb__worker *worker, cb_error *err)
{
    int fds[FDS_MAX], n = 0;
    for (int i = 0; i < nstages; i++) {
        add_fd(stages[i].exchange.fd, fds, &n);
        for (int side = 0; side < s->request->nsides; side++) {
            add_fd(s->module_fds[side], fds, &n);
            if (cb__side_in(s, side))
                add_fd(cb__ring_fd(s, &stages[i], side), fds, &n);
        }
    }
    const cb__round_process *process = s->request->process;
    char **environment = padded_environment(s, seed);
    return process ? process->start(process->arg, asker, environment, fds, n, worker, err)
                   : cb__worker_start(asker, environment, fds, n, worker, err);
}

static void end(const cb__comparing *s, cb__worker *worker, bool good)
{
    const cb__round_process *process = s->request->process;
    if (process)
        process->end(process->arg, worker, good);
    else
        cb__worker_end(worker, good);
}

static cb_status ask_duel(cb__comparing *s, cb__stage *stage, cb__worker *worker,
                          const cb__work *work, cb__duel_answer *answer, cb_error *err)
{
    cb__json *json = NULL;
    *at_work(stage) = 0;
    cb_status status = cb__worker_ask(worker, work, "duel", &json, err);
    if (status == CB_OK)
        status = cb__duel_answer_read(json, work, &stage->plans[0], s->arena, answer, err);
    cb__json_free(json);
    return status;
}

/* ---- ragged shapes ---- */

cb_status cb__verify_ragged(cb__comparing *s, cb_error *err)
{
    cb__worker worker;
    bool running = false;
    cb_status status = CB_OK;
    for (int i = 1; i < s->nstages && status == CB_OK && cb__sides_in(s) > 0; i++) {
        cb__stage *stage = &s->stages[i];
        cb__duel_answer answer = {0};
        int side[CB__ARMS_MAX];
        if (!running)
            status = cb__round_start(s, &s->stages[1], s->nstages - 1, s->request->seed,
                                     &s->request->asker, &worker, err);
        if (status != CB_OK)
            return status;
        running = true;
        cb__work work = duel_work(s, stage, false, side);
        work.duel.look = true;
        status = ask_duel(s, stage, &worker, &work, &answer, err);
        if (status == CB_OK && edited(s, &work, &answer.result, side)) {
            status = cb__stage_refill(s, stage, err);
            i--;
        } else if (status == CB_OK && failed(s, stage, &work, &answer.result, side)) {
            i--;
        } else if (status == CB_OK) {
            verify(s, stage, &work, &answer.result, side);
        } else if (own(status)) {
            cb__worker_end(&worker, false);
            running = false;
            cb_error_prefix(err, "shape %s", stage->shape);
            blame(s, stage, work.duel.narms, side, err);
            status = cb__stages_refill(s, 1, s->nstages - 1, err);
            i--; /* the others, on the same shape */
        }
    }
    if (running)
        cb__worker_end(&worker, status == CB_OK);
    return status;
}

/* ---- a round ---- */

static cb_status thetas(cb__comparing *s, cb__compare_round *round, cb_error *err)
{
    const cb__duel_result *r = &round->answer.result;
    size_t arms = (size_t)round->arms, blocks = (size_t)r->blocks;
    unsigned char *position = cb__arena_array(s->arena, blocks * arms + 1, 1);
    double *scratch = cb__arena_array(s->arena, blocks + 1, sizeof *scratch);
    if (!position || !scratch)
        return cb_error_set(err, CB_NO_MEMORY, "no memory for a round");
    for (size_t b = 0; b < blocks; b++)
        for (size_t place = 0; place < arms; place++)
            position[b * arms + (size_t)r->order[b * arms + place]] = (unsigned char)place;
    cb__round_slots slots = {round->arms, blocks, r->ns, position};
    cb__thetas_of(&slots, scratch, &round->estimate);
    return CB_OK;
}

static cb_status ask_round(cb__comparing *s, const cb__work *work, cb__compare_round *round,
                           double silence_s, cb_error *err)
{
    cb__asker asker = s->request->asker;
    cb__worker worker;
    bool parks = cb__parks(s);
    asker.silence_s += silence_s;
    cb_status status = parks ? cb__park_take(s, &worker, err)
                             : cb__round_start(s, s->stages, 1, work->seed, &asker, &worker, err);
    if (status != CB_OK)
        return status;
    worker.asker = &asker;
    status = ask_duel(s, &s->stages[0], &worker, work, &round->answer, err);
    if (parks)
        cb__park_leave(s, &worker, status == CB_OK);
    else
        end(s, &worker, status == CB_OK);
    return status;
}

static void take_shape(cb__comparing *s, const cb__duel_result *r)
{
    if (s->batch)
        return;
    s->batch = r->batch;
    s->repeats = r->repeats;
    s->readings = r->readings;
    s->out->floor_ns = r->floor_ns;
}

cb_status cb__compare_one_round(cb__comparing *s, uint64_t limit_ns, int blocks, int blocks_min,
                                bool *done, cb_error *err)
{
    cb__comparison *out = s->out;
    cb__compare_round *round = cb__arena_alloc(s->arena, sizeof *round);
    if (!round)
        return cb_error_set(err, CB_NO_MEMORY, "no memory for a round");
    uint64_t start_ns = cb__clock_ns();
    int before = cb__sides_in(s);
    bool first = s->batch == 0;
    cb__work work = duel_work(s, &s->stages[0], true, round->side);
    work.seed = cb_random(s->request->seed, 0x726f756e64u, 0, (uint64_t)s->attempts++) >> 1;
    work.limit_ns = limit_ns;
    work.modes[0].blocks = blocks;
    work.duel.timed = true;
    work.duel.blocks_min = blocks_min;
    work.duel.floor = work.duel.look = first;
    work.duel.batch = s->batch;
    work.duel.repeats = s->repeats;
    work.duel.readings = s->readings;
    round->arms = work.duel.narms;
    round->seed = work.seed;
    *done = false;
    double patience_s = (double)limit_ns * 1e-9 + (double)out->sides[0].plan.file_bytes / 2e8;
    cb_status status = ask_round(s, &work, round, patience_s, err);
    if (own(status)) {
        blame(s, &s->stages[0], round->arms, round->side, err);
        return cb__stages_refill(s, 0, 0, err);
    }
    if (status != CB_OK)
        return status;
    const cb__duel_result *r = &round->answer.result;
    s->device_ns += r->elapsed_ns;
    if (edited(s, &work, r, round->side)) {
        cb__park_clear(s);
        return cb__stage_refill(s, &s->stages[0], err);
    }
    if (failed(s, &s->stages[0], &work, r, round->side))
        return CB_OK;
    verify(s, &s->stages[0], &work, r, round->side);
    if (cb__sides_in(s) < before || r->blocks == 0)
        return CB_OK;
    take_shape(s, r);
    out->measure_s += (double)r->measured_ns * 1e-9;
    status = thetas(s, round, err);
    if (status != CB_OK)
        return status;
    round->wall_s = (double)(cb__clock_ns() - start_ns) * 1e-9;
    out->rounds[out->nrounds++] = round;
    cb__pairs_add(s, round);
    *done = true;
    return CB_OK;
}
