#include "run/run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "coldbench/random.h"
#include "host/clock.h"
#include "measure/fill.h"
#include "model/query.h"
#include "run/session.h"
#include "run/twins.h"

enum { PROOF_PAIRS = 1, PROOF_PAIRS_WHEN_SETTLED = 5 }; /* a round; the interval is over rounds */
#define BUDGET_MIN_S 1.0
#define MEASURE_OVER_STARTUP 1.5 /* a round measures for this many times what it costs to start */

double cb__run_budget_min(const cb__run_case *c)
{
    /* Filling the ring at 1 GB/s; six rounds and their processes take most of a second. */
    return floor(BUDGET_MIN_S + (double)c->plan.file_bytes / 1e9 + 0.5);
}

static void say(const cb__run_request *r, const char *what, int round)
{
    if (r->phase)
        r->phase(r->arg, what, round);
}

/* The knee behind which these threads stream from memory; the model of another number of threads
 * says nothing about them. */
static cb_status last_knee(const cb__run_request *r, int threads, uint64_t bytes,
                           cb_resident *resident, cb_figure *knee)
{
    if (!r->model)
        return CB_UNDECIDED;
    return cb_model_resident(r->model, bytes, CB_STREAM_PATTERN,
                             threads ? threads : r->model->threads, resident, knee, NULL);
}

static cb__work common_work(const cb__run_request *r, const char *op)
{
    return (cb__work){.op = op,
                      .device = r->device,
                      .threads = r->threads,
                      .module = r->module,
                      .shape = r->shape,
                      .variant = r->variant,
                      .cold = r->caches[CB__COLD],
                      .ring_fd = -1,
                      .reference_fd = -1,
                      .exchange_fd = -1,
                      .beyond_bytes = cb__model_beyond_bytes(r->model, r->threads),
                      .seed = r->seed};
}

cb_status cb__run_describe(const cb__run_request *request, cb__device_info *info, cb_error *err)
{
    return cb__describe(&request->asker, request->device, request->threads, info, err);
}

cb_status cb__run_plan(const cb__run_request *r, const cb__device_info *info, cb__run_case *out,
                       cb_error *err)
{
    memset(out, 0, sizeof *out);
    out->device = *info;
    out->device.beyond_bytes = cb__model_beyond_bytes(r->model, r->threads);
    cb_status status =
        cb__case_parse(r->suite, r->variant, r->shape, cb__isa_of(info, r->isa), &out->c, err);
    return status == CB_OK
               ? cb__plan_make(&out->c, &out->device, r->caches[CB__COLD], &out->plan, err)
               : status;
}

/* ---- before the first round ---- */

static void rows(cb__session *s)
{
    const cb__run_request *r = s->request;
    for (int cache = 0; cache < 2; cache++)
        for (int submit = 0; submit < 2; submit++) {
            if (!r->caches[cache] || !r->submits[submit])
                continue;
            cb__evidence *e = &s->out->rows[s->nmodes].evidence;
            e->c = &s->out->c;
            e->plan = &s->out->plan;
            e->device = &s->out->device;
            e->cache = (cb__cache_state)cache;
            e->submit = (cb__submit)submit;
            e->complete = true;
            e->has_knee = last_knee(r, s->out->device.threads, s->out->plan.touched_bytes,
                                    &e->resident, &e->knee) == CB_OK;
            s->modes[s->nmodes++] = (cb__mode){e->cache, e->submit, CB__BLOCKS_MIN};
        }
    s->out->nrows = s->nmodes;
}

/* As many slots as a worker hands over at most: three phases of each mode. */
static uint64_t exchange_bytes(const cb__plan *plan, int nmodes)
{
    return (uint64_t)nmodes * 3 * (uint64_t)cb__plan_handed_slots(plan) * plan->slot_bytes;
}

static cb_status memory_files(cb__session *s, cb_error *err)
{
    const cb__plan *plan = &s->out->plan;
    int sets = cb__fill_reference_sets(&s->out->c, plan);
    uint64_t elements = cb__reference_elements(&s->out->c);
    cb_status status = cb__region_shared("coldbench-ring", plan->file_bytes, &s->ring, err);
    if (status == CB_OK)
        status = cb__region_shared("coldbench-reference", elements * (uint64_t)sets * 16,
                                   &s->reference, err);
    if (status == CB_OK)
        status = cb__region_shared("coldbench-exchange", exchange_bytes(plan, s->nmodes),
                                   &s->exchange, err);
    if (status == CB_OK) {
        const double *values = s->reference.base;
        s->expected = (cb__reference){values, values + elements * (uint64_t)sets, elements, sets};
    }
    return status;
}

cb__work cb__session_filling(const cb__session *s)
{
    cb__work work = common_work(s->request, "fill");
    work.ring_fd = s->ring.fd;
    work.reference_fd = s->reference.fd;
    return work;
}

/* Memory that a virtual machine has never had before comes at 200 MB/s at worst, without a word in
 * between. */
double cb__session_patience_s(const cb__session *s)
{
    return (double)s->out->plan.memory_bytes / 2e8;
}

cb_status cb__session_fill(cb__session *s, cb_error *err)
{
    cb__work work = cb__session_filling(s);
    cb__json *answer = NULL;
    say(s->request, "filling", -1);
    cb_status status = s->ragged ? cb__processes_ask(s->processes, &work, "fill", &answer, err)
                                 : cb__processes_filled(s->processes, &work,
                                                        cb__session_patience_s(s), &answer, err);
    if (status == CB_OK)
        status = cb__fill_answer_read(answer, s->arena, &s->filled, err);
    cb__json_free(answer);
    s->out->prepare_ns = s->filled.prepare_ns;
    return status;
}

static cb_status pick(cb__session *s, cb_error *err)
{
    if (!*s->out->plan.twin_kernel)
        return CB_OK;
    s->ncandidates = cb__twin_candidates(s->request->suite, s->out->plan.twin_kernel,
                                         s->request->isa, s->candidates);
    if (s->ncandidates == 0)
        return cb_error_set(err, CB_INTERNAL, "no implementation of %s runs on this machine",
                            s->out->plan.twin_kernel);
    cb__work work = common_work(s->request, "pick");
    work.ring_fd = s->ring.fd;
    for (int i = 0; i < s->ncandidates; i++)
        work.twins[work.ntwins++] = s->candidates[i];
    cb__json *answer = NULL;
    say(s->request, "choosing the twin", -1);
    cb_status status = cb__processes_ask(s->processes, &work, "pick", &answer, err);
    if (status == CB_OK)
        status = cb__pick_answer_read(answer, &s->picked, err);
    cb__json_free(answer);
    for (int state = 0; state < 2 && status == CB_OK; state++) {
        int best = s->picked.best[state] < s->ncandidates ? s->picked.best[state] : 0;
        snprintf(s->out->twins[state], sizeof s->out->twins[state], "%s", s->candidates[best]);
    }
    return status;
}

/* ---- rounds ---- */

/* Coldness is proven once a case: when enough rounds agree, the rest of the time goes to the
 * figures. */
static bool cold_decided(const cb__session *s)
{
    for (int i = 0; i < s->out->nrows && s->nrounds >= CB__ROUNDS_MIN; i++)
        for (int j = 0; j < s->out->rows[i].nchecks; j++)
            if (strcmp(s->out->rows[i].checks[j].name, "cold") == 0)
                return s->out->rows[i].checks[j].status != CB__SKIP;
    return false;
}

static bool all_settled(const cb__session *s)
{
    for (int i = 0; i < s->out->nrows; i++)
        if (!cb__settled(&s->out->rows[i].evidence))
            return false;
    return true;
}

/* And when the figures have settled first, the rest of the time goes to the proof. */
static void share_time(const cb__session *s, cb__work *work)
{
    if (!s->request->caches[CB__COLD] || cold_decided(s))
        return;
    work->proof_pairs = PROOF_PAIRS;
    if (!all_settled(s))
        return;
    work->proof_pairs = PROOF_PAIRS_WHEN_SETTLED;
    for (int i = 0; i < work->nmodes; i++)
        work->modes[i].blocks = CB__BLOCKS_MIN;
}

cb_status cb__session_round(cb__session *s, cb_error *err)
{
    cb__work work = common_work(s->request, "round");
    work.seed = cb_random(s->request->seed, 0x726f756e64u, 0, (uint64_t)s->nrounds) >> 1;
    work.elapsed_ns = s->device_ns;
    work.ring_fd = s->ring.fd;
    work.exchange_fd = s->exchange.fd;
    work.exchange_bytes = s->exchange.bytes;
    work.digest = s->nrounds == 0 || s->processes->together; /* a GPU's takes no time */
    work.nmodes = s->nmodes;
    memcpy(work.modes, s->modes, sizeof work.modes);
    share_time(s, &work);
    work.ntwins = *s->out->twins[CB__WARM] ? 2 : 0; /* none was picked for a ragged shape */
    work.twins[CB__COLD] = s->out->twins[CB__COLD];
    work.twins[CB__WARM] = s->out->twins[CB__WARM];
    cb__json *answer = NULL;
    cb__round_answer *round = cb__arena_alloc(s->arena, sizeof *round);
    if (!round)
        return cb_error_set(err, CB_NO_MEMORY, "no memory for a round's samples");
    say(s->request, "round", s->nrounds);
    cb_status status = s->ragged ? cb__processes_ask(s->processes, &work, "round", &answer, err)
                                 : cb__processes_round(s->processes, &work, "round", &answer, err);
    if (status == CB_OK)
        status = cb__round_answer_read(answer, &work, &s->out->plan, s->arena, round, err);
    cb__json_free(answer);
    if (status != CB_OK)
        return status;
    s->device_ns += round->elapsed_ns;
    s->out->measure_s += (double)round->measured_ns * 1e-9;
    cb__session_verify(s, round, work.seed);
    /* A round without samples of some mode (its launches failed) is a finding, not a figure. */
    for (int i = 0; i < round->nmodes; i++)
        if (round->modes[i].blocks.n == 0)
            return CB_OK;
    for (int i = 0; i < round->nmodes; i++) {
        cb__run_row *row = &s->out->rows[i];
        const cb__blocks *b = &round->modes[i].blocks;
        row->rounds[row->nrounds++] = (cb__run_round){
            b->kernel_ns, b->twin_ns, b->host_ns, b->order, b->n, b->repeats, b->readings};
    }
    s->rounds[s->nrounds++] = round;
    memcpy(s->out->telemetry, round->telemetry, sizeof s->out->telemetry);
    return CB_OK;
}

/* A scripted clock drives the budget too. */
static bool clock_is_virtual(const cb__session *s)
{
    const cb__backend *backend = NULL;
    const char *script = NULL;
    return cb__backend_find(s->request->device, &backend, &script, NULL) == CB_OK &&
           (backend->capabilities & CB__DEVICE_VIRTUAL_CLOCK);
}

static double elapsed_s(const cb__session *s)
{
    return clock_is_virtual(s) ? (double)s->device_ns * 1e-9
                               : (double)(cb__clock_ns() - s->start_ns) * 1e-9;
}

/* After the first round: as many blocks as let a round measure 1.5 times what it costs to start,
 * while at least CB__ROUNDS_MIN rounds still fit. */
static void plan_blocks(cb__session *s, double round_s)
{
    const cb__round_answer *first = s->rounds[0];
    double measured = (double)first->measured_ns * 1e-9;
    double overhead = fmax(round_s - measured, 1e-4);
    double left = (s->request->budget_s - elapsed_s(s)) / CB__ROUNDS_MIN - overhead;
    double wanted = fmin(fmax(MEASURE_OVER_STARTUP * overhead, measured), left);
    double blocks = measured > 0 ? CB__BLOCKS_MIN * wanted / measured : CB__BLOCKS_MIN;
    int n = blocks < CB__BLOCKS_MIN   ? CB__BLOCKS_MIN
            : blocks > CB__BLOCKS_MAX ? CB__BLOCKS_MAX
                                      : (int)blocks;
    for (int i = 0; i < s->nmodes; i++)
        s->modes[i].blocks = n;
}

static bool any_wrong(const cb__session *s)
{
    for (int i = 0; i < s->out->nrows; i++)
        if (s->out->rows[i].verdict == CB_VERDICT_WRONG)
            return true;
    return false;
}

/* Every row knows what it is going to say: broken beyond repair, or settled and its coldness
 * decided. */
static bool done(const cb__session *s)
{
    if (any_wrong(s))
        return true;
    bool cold = !s->request->caches[CB__COLD] || cold_decided(s);
    return s->nrounds >= CB__ROUNDS_MIN && cold && all_settled(s);
}

static cb_status rounds(cb__session *s, cb_error *err)
{
    for (;;) {
        double before = elapsed_s(s);
        cb_status status = cb__session_round(s, err);
        if (status != CB_OK)
            return status;
        cb__session_judge(s);
        double round_s = elapsed_s(s) - before;
        if (done(s) || s->nrounds == CB__ROUNDS_MAX || s->nrounds == 0)
            return CB_OK;
        if (s->nrounds == 1)
            plan_blocks(s, round_s);
        if (s->nrounds >= CB__ROUNDS_MIN && elapsed_s(s) + round_s > s->request->budget_s)
            return CB_OK;
    }
}

/* Nothing has written into the ring since it was filled. The first round looks too, so that an edit
 * is found before its figures are many. */
static cb_status digest(cb__session *s, cb_error *err)
{
    cb__work work = common_work(s->request, "digest");
    work.ring_fd = s->ring.fd;
    cb__json *answer = NULL;
    uint64_t found = 0;
    cb_status status = cb__processes_ask(s->processes, &work, "digest", &answer, err);
    if (status == CB_OK)
        status = cb__digest_answer_read(answer, &found, err);
    cb__json_free(answer);
    bool kept = status == CB_WRONG; /* no launch was made */
    for (int i = 0; i < s->out->nrows && kept; i++)
        snprintf(s->out->rows[i].evidence.kept, sizeof s->out->rows[i].evidence.kept, "%.*s",
                 (int)sizeof s->out->rows[i].evidence.kept - 1, err->message);
    if (kept) {
        cb_error_clear(err);
        return CB_OK;
    }
    for (int i = 0; i < s->out->nrows && status == CB_OK; i++)
        if (found != s->filled.digest)
            s->out->rows[i].evidence.inputs_changed = true;
    return status;
}

/* What a worker did to its own case is that case's verdict. */
static cb_status absorb(cb__session *s, cb_status status, cb_error *err)
{
    bool own =
        status == CB_CRASHED || status == CB_TIMEOUT || status == CB_GARBAGE || status == CB_WRONG;
    bool stopped = status == CB_INTERRUPTED;
    if (!own && !stopped) {
        if (status != CB_OK && s->nrounds == 0)
            s->out->nrows = 0; /* the failure is all there is to say */
        return status;
    }
    for (int i = 0; i < s->out->nrows; i++) {
        cb__evidence *e = &s->out->rows[i].evidence;
        e->complete = false;
        if (status == CB_WRONG)
            e->launch = *err;
        else if (own)
            e->worker = *err;
    }
    s->out->complete = !stopped;
    if (own)
        cb_error_clear(err);
    return own ? CB_OK : status;
}

static cb_status measure(cb__session *s, cb_error *err)
{
    cb_status (*const steps[])(cb__session *, cb_error *) = {cb__session_fill, pick, rounds,
                                                             digest};
    const cb__stage_name names[] = {CB__STAGE_FILL, CB__STAGE_TWIN, CB__STAGE_ROUNDS,
                                    CB__STAGE_INPUTS};
    cb_status status = CB_OK;
    for (size_t i = 0; i < sizeof steps / sizeof *steps && status == CB_OK; i++) {
        uint64_t start_ns = cb__clock_ns();
        status = steps[i](s, err);
        s->out->stages_s[names[i]] = (double)(cb__clock_ns() - start_ns) * 1e-9;
    }
    return status;
}

cb_status cb__session_open(cb__session *s, const cb__run_request *request, cb__arena *arena,
                           cb__processes *processes, cb__run_case *out, cb_error *err)
{
    s->request = request;
    s->processes = processes;
    s->out = out;
    s->arena = arena;
    s->start_ns = cb__clock_ns();
    s->ring = s->reference = s->exchange = (cb__region)CB__REGION_INIT;
    out->complete = true;
    rows(s);
    cb_status status = memory_files(s, err);
    cb__processes_knows(processes, s->ring.fd);
    cb__processes_knows(processes, s->reference.fd);
    cb__processes_knows(processes, s->exchange.fd);
    return status;
}

void cb__session_close(cb__session *s)
{
    cb__region_fini(&s->ring);
    cb__region_fini(&s->reference);
    cb__region_fini(&s->exchange);
}

/* Other shapes are looked at while operands are filled. */
static cb_status verify_others(cb__session *s, cb__ragged *ragged, bool timed, cb_error *err)
{
    uint64_t start_ns = cb__clock_ns();
    cb__work fill = cb__session_filling(s);
    cb_status status = cb__ragged_open(s, ragged, err);
    if (status == CB_OK && timed)
        status = cb__processes_begin(s->processes, &fill, cb__session_patience_s(s), err);
    if (status == CB_OK)
        status = cb__ragged_verify(s, ragged, err);
    s->out->stages_s[CB__STAGE_SHAPES] = (double)(cb__clock_ns() - start_ns) * 1e-9;
    return status;
}

static cb_status work(cb__session *s, bool timed, cb_error *err)
{
    cb__ragged ragged = {.n = 0};
    cb_status status = verify_others(s, &ragged, timed, err);
    cb__session_judge(s);
    if (status == CB_OK && timed && !any_wrong(s)) /* what is wrong already is not timed */
        status = measure(s, err);
    cb__processes_fini(s->processes);
    cb__ragged_close(&ragged);
    return status;
}

static cb_status run_case(const cb__run_request *request, cb__arena *arena, bool timed,
                          cb__run_case *out, cb_error *err)
{
    cb__session *s = cb__arena_alloc(arena, sizeof *s);
    cb__processes *processes = cb__arena_alloc(arena, sizeof *processes);
    if (!s || !processes)
        return cb_error_set(err, CB_NO_MEMORY, "no memory for a case");
    cb__processes_init(processes, &request->asker, request->device, request->threads,
                       out->device.queued);
    cb_status status = cb__session_open(s, request, arena, processes, out, err);
    if (status == CB_OK)
        status = work(s, timed, err);
    status = absorb(s, status, err);
    cb__session_judge(s);
    out->wall_s = (double)(cb__clock_ns() - s->start_ns) * 1e-9;
    cb__session_close(s);
    return status;
}

cb_status cb__run_measure(const cb__run_request *request, cb__arena *arena, cb__run_case *out,
                          cb_error *err)
{
    return run_case(request, arena, true, out, err);
}

cb_status cb__run_verify(const cb__run_request *request, cb__arena *arena, cb__run_case *out,
                         cb_error *err)
{
    return run_case(request, arena, false, out, err);
}
