/* One process of a comparison: what it is asked, what its outputs are worth, and whose fault it is
 * when it does not come back. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "coldbench/random.h"
#include "compare/session.h"
#include "host/clock.h"

bool cb__side_in(const cb__comparing *s, int side)
{
    const cb__evidence *e = &s->out->sides[side].evidence;
    const cb__findings *f = &e->findings;
    return e->launch.status == CB_OK && e->worker.status == CB_OK && e->unclear.status == CB_OK &&
           !e->inputs_changed && !f->unwritten && !f->guard_bytes && !f->nonfinite && !f->beyond;
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

cb__work cb__round_work(const cb__comparing *s, const cb__stage *stage, bool copies,
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

void cb__round_findings(cb__comparing *s, cb__stage *stage, const cb__work *work,
                        const cb__duel_result *r, const int *side)
{
    if (!edited(s, work, r, side) && !failed(s, stage, work, r, side))
        verify(s, stage, work, r, side);
}

/* ---- asking ---- */

static volatile int32_t *at_work(const cb__stage *stage)
{
    return (volatile int32_t *)((char *)stage->exchange.base + CB__EXCHANGE_AT_WORK);
}

int cb__round_at_work(const cb__stage *stage)
{
    return *at_work(stage);
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
        /* Those too of sides that are out, whose operands others may share; who shares whose is not
         * known yet where a process starts before they are filled. */
        for (int side = 0; side < s->request->nsides; side++) {
            add_fd(s->module_fds[side], fds, &n);
            add_fd(stages[i].cold ? s->rings[side].fd : stages[i].heads[side].fd, fds, &n);
        }
    }
    const cb__round_process *process = s->request->process;
    char **environment = padded_environment(s, seed);
    return process ? process->start(process->arg, asker, environment, fds, n, worker, err)
                   : cb__worker_start(asker, environment, fds, n, worker, err);
}

/* What it left running would disturb all that is measured after it. */
static cb_status ended_well(const cb__worker *worker, int left, cb_error *err)
{
    char fate[64];
    int status = worker->child.wait_status;
    cb__child_fate(&worker->child, fate, sizeof fate);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return cb_error_set(err, CB_CRASHED, "answered, and then %s", fate);
    return left == 0 ? CB_OK
                     : cb_error_set(err, CB_CRASHED, "left %d process%s behind", left,
                                    left > 1 ? "es" : "");
}

cb_status cb__round_end(cb__comparing *s, cb__worker *worker, cb_status status, cb_error *err)
{
    const cb__round_process *process = s->request->process;
    if (process) {
        process->end(process->arg, worker, status == CB_OK);
        return status;
    }
    cb__worker_end(worker, status == CB_OK);
    int left = cb__orphans_end();
    return status == CB_OK ? ended_well(worker, left, err) : status;
}

cb_status cb__round_ask(cb__comparing *s, cb__stage *stage, cb__worker *worker,
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

/* What was known of the sides before an answer, so that it can be taken back. */
typedef struct snapshot {
    cb__evidence evidence[CB__SIDES_MAX];
    bool steady[CB__SIDES_MAX], seen[CB__SIDES_MAX];
    uint64_t digests[CB__SIDES_MAX];
    int in;
} snapshot;

static void remember(const cb__comparing *s, const cb__stage *stage, snapshot *b)
{
    for (int i = 0; i < s->request->nsides; i++) {
        b->evidence[i] = s->out->sides[i].evidence;
        b->steady[i] = s->out->sides[i].steady;
        b->seen[i] = stage->seen[i];
        b->digests[i] = stage->digests[i];
    }
    b->in = cb__sides_in(s);
}

static void take_back(cb__comparing *s, cb__stage *stage, const snapshot *b)
{
    for (int i = 0; i < s->request->nsides; i++) {
        s->out->sides[i].evidence = b->evidence[i];
        s->out->sides[i].steady = b->steady[i];
        stage->seen[i] = b->seen[i];
        stage->digests[i] = b->digests[i];
    }
}

/* Outputs that are wrong because another side has spoilt what all read are not their side's fault.
 * `first`: the stages that this process has seen. */
static cb_status verify_fairly(cb__comparing *s, int first, int last, const cb__work *work,
                               const cb__duel_result *r, const int *side, cb_error *err)
{
    cb__stage *stage = &s->stages[last];
    snapshot b;
    remember(s, stage, &b);
    verify(s, stage, work, r, side);
    int out = b.in - cb__sides_in(s);
    if (out == 0 || (out == 1 && cb__rings_intact(s, stage)))
        return CB_OK;
    take_back(s, stage, &b);
    cb_error_set(err, CB_WRONG, "%s",
                 out > 1 ? "the outputs of several sides were wrong"
                         : "the digest of the inputs changed");
    return cb__alone(s, first, last, work, -1, err);
}

/* ---- ragged shapes ---- */

typedef struct ragged {
    cb__asker asker;
    cb__worker worker;
    bool running;
    cb__work work; /* the last request, for: */
    int side[CB__ARMS_MAX];
} ragged;

static cb_status ragged_start(cb__comparing *s, ragged *r, cb_error *err)
{
    if (r->running)
        return CB_OK;
    r->asker = cb__asker_within(s, 0);
    cb_status status = CB_OK;
    if (!cb__park_take_early(s, &r->worker))
        status = cb__round_start(s, &s->stages[1], s->nstages - 1, s->request->seed, &r->asker,
                                 &r->worker, err);
    r->worker.asker = &r->asker;
    r->running = status == CB_OK;
    return status;
}

/* *again: without a side that is out. */
static cb_status ragged_one(cb__comparing *s, int i, ragged *r, bool *again, cb_error *err)
{
    cb__stage *stage = &s->stages[i];
    cb__duel_answer answer = {0};
    cb_status status = ragged_start(s, r, err);
    if (status != CB_OK)
        return status;
    int before = cb__sides_in(s);
    r->work = cb__round_work(s, stage, false, r->side);
    r->work.duel.look = true;
    status = cb__round_ask(s, stage, &r->worker, &r->work, &answer, err);
    if (status != CB_OK) {
        cb__round_end(s, &r->worker, status, NULL);
        r->running = false;
        cb_error_prefix(err, "one of the other shapes that are verified, %s", stage->shape);
        status = cb__blame(s, 1, i, &r->work, r->side, &r->asker, err);
    } else if (edited(s, &r->work, &answer.result, r->side)) {
        cb__round_end(s, &r->worker, CB_WRONG,
                      NULL); /* whoever has a ring now: it lacks the file */
        r->running = false;
        status = cb__stages_refill(s, 1, s->nstages - 1, err);
    } else if (!failed(s, stage, &r->work, &answer.result, r->side)) {
        status = verify_fairly(s, 1, i, &r->work, &answer.result, r->side, err);
        *again = false;
        cb__budget_holds(s, &answer.result);
    }
    if (cb__sides_in(s) == before)
        *again = false;
    return status;
}

cb_status cb__verify_ragged(cb__comparing *s, cb_error *err)
{
    ragged r = {.running = false};
    cb_status status = CB_OK;
    for (int i = 1; i < s->nstages && status == CB_OK && cb__sides_in(s) > 0 && !s->spent;) {
        bool again = true;
        status = ragged_one(s, i, &r, &again, err);
        i += !again;
    }
    if (!r.running)
        return status;
    if (cb__parks(s)) {
        cb__crew_leave(&s->crew, &r.worker, status == CB_OK);
        return status;
    }
    cb_status ended = cb__round_end(s, &r.worker, status, err);
    return status == CB_OK && ended != CB_OK
               ? cb__blame(s, 1, s->nstages - 1, &r.work, r.side, &r.asker, err)
               : status;
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

/* *asked: the process was there; what goes wrong then may be a side's doing. */
static cb_status ask_round(cb__comparing *s, const cb__work *work, cb__compare_round *round,
                           const cb__asker *asker, bool *asked, cb_error *err)
{
    cb__worker worker;
    bool parks = cb__parks(s);
    cb_status status = parks ? cb__park_take(s, &worker, err)
                             : cb__round_start(s, s->stages, 1, work->seed, asker, &worker, err);
    *asked = status == CB_OK;
    if (status != CB_OK)
        return status;
    worker.asker = asker;
    status = cb__round_ask(s, &s->stages[0], &worker, work, &round->answer, err);
    if (!parks)
        return cb__round_end(s, &worker, status, err);
    cb__crew_leave(&s->crew, &worker, status == CB_OK);
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
    cb__work work = cb__round_work(s, &s->stages[0], true, round->side);
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
    s->last = work;
    cb__asker asker =
        cb__asker_within(s, (double)out->sides[0].plan.file_bytes / CB__SLOWEST_BYTES_PER_S);
    asker.silence_s += (double)limit_ns * 1e-9;
    bool asked = false;
    cb_status status = ask_round(s, &work, round, &asker, &asked, err);
    if (status != CB_OK)
        return asked ? cb__blame(s, 0, 0, &work, round->side, &asker, err) : status;
    const cb__duel_result *r = &round->answer.result;
    s->device_ns += r->elapsed_ns;
    if (edited(s, &work, r, round->side)) {
        cb__park_clear(s);
        return cb__stage_refill(s, &s->stages[0], err);
    }
    if (failed(s, &s->stages[0], &work, r, round->side))
        return CB_OK;
    status = verify_fairly(s, 0, 0, &work, r, round->side, err);
    if (status != CB_OK || cb__sides_in(s) < before || r->blocks == 0)
        return status;
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
