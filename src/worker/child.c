/* The measuring process: one request a line, one answer a line, progress between. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/clock.h"
#include "host/environment.h"
#include "host/topology.h"
#include "measure/fill.h"
#include "probe/sweep.h"
#include "worker/arms.h"
#include "worker/worker.h"

/* A device that is slow to get hold of is kept from one request to the next. */
typedef struct held {
    char name[64]; /* "": none */
    int threads;
    cb__target target;
} held;

typedef struct serving {
    int out;
    held *held;
    const cb__work *work;
    cb__arena arena;
    cb__suite suite;
    cb__arms arms;            /* of a comparison */
    cb__functions *functions; /* of this program, where they are what it compares */
    unsigned isa;
    cb__target target;
    cb__device_info info;
    cb__case c;
    cb__plan plan;
    uint64_t last_progress_ns;
} serving;

/* ---- lines out ---- */

static void send_line(int out, const cb__buf *line)
{
    const char *bytes = cb__buf_text(line);
    size_t left = line->size;
    while (left) {
        ssize_t n = write(out, bytes, left);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            _exit(3); /* nobody listens any more */
        bytes += n;
        left -= (size_t)n;
    }
}

static void say_progress(void *arg, double done)
{
    serving *s = arg;
    uint64_t now = cb__clock_ns();
    if (now - s->last_progress_ns < 100000000)
        return;
    s->last_progress_ns = now;
    cb__buf line = CB__BUF_INIT;
    cb__buf_printf(&line, "{\"type\":\"progress\",\"done\":%.3f}\n", done);
    send_line(s->out, &line);
    cb__buf_fini(&line);
}

static void say_error(int out, const cb_error *err)
{
    cb__buf line = CB__BUF_INIT;
    cb__json_writer w;
    cb__json_begin(&w, &line, false);
    cb__json_object(&w);
    cb__json_key(&w, "type");
    cb__json_string(&w, "error");
    cb__json_key(&w, "status");
    cb__json_string(&w, cb_status_name(err->status));
    cb__json_key(&w, "message");
    cb__json_string(&w, err->message);
    cb__json_end(&w);
    cb__buf_puts(&line, "\n");
    send_line(out, &line);
    cb__buf_fini(&line);
}

/* ---- what every request begins with ---- */

static bool is_known(const cb__work *work)
{
    return work->known.processors && *work->known.processors;
}

/* Where everything lies in the ring of a comparison is part of the request. */
static bool needs_device(const cb__work *work)
{
    return strcmp(work->op, "fill") != 0 || work->duel.narms == 0;
}

static void release_held(held *h)
{
    if (*h->name)
        h->target.ops->close(h->target.device);
    *h = (held){0};
}

static bool take_held(serving *s)
{
    held *h = s->held;
    bool same = *h->name && strcmp(h->name, s->work->device) == 0 && h->threads == s->work->threads;
    if (same)
        s->target = h->target;
    if (same)
        *h = (held){0};
    release_held(h);
    return same;
}

static cb_status open_device(serving *s, cb_error *err)
{
    const char *script = NULL;
    cb_status status = cb__backend_find(s->work->device, &s->target.ops, &script, err);
    const cb__backend *ops = s->target.ops;
    if (status != CB_OK || !needs_device(s->work))
        return status;
    if (take_held(s)) {
        ops->info(s->target.device, &s->info);
        return CB_OK;
    }
    if (is_known(s->work) && ops->open_on) {
        status = ops->open_on(s->work->known.processors, &s->target.device, err);
        s->info.threads = s->work->threads;
        return status;
    }
    status = ops->open(script, s->work->threads, s->work->placement, &s->target.device, err);
    if (status == CB_OK)
        ops->info(s->target.device, &s->info);
    return status;
}

static void close_device(serving *s)
{
    if (!s->target.device)
        return;
    if (!(s->target.ops->capabilities & CB__DEVICE_QUEUED) ||
        strlen(s->work->device) >= sizeof s->held->name) {
        s->target.ops->close(s->target.device);
        return;
    }
    memcpy(s->held->name, s->work->device, strlen(s->work->device) + 1);
    s->held->threads = s->work->threads;
    s->held->target = s->target;
}

static cb_status find_isa(serving *s, cb_error *err)
{
    static cb__topology topology;
    s->isa = is_known(s->work)         ? s->work->known.isa
             : s->target.ops->isa != 0 ? s->target.ops->isa
                                       : s->info.isa;
    if (is_known(s->work) || s->isa)
        return CB_OK;
    cb_status status = cb__topology_read("", &topology, err);
    s->isa = topology.isa;
    return status;
}

static cb_status open_suite(serving *s, cb_error *err)
{
    cb_status status = find_isa(s, err);
    const char *files[1] = {s->work->module};
    if (status == CB_OK)
        status = cb__suite_open(files, s->work->module != NULL, false, &s->suite, err);
    return status;
}

static cb_status open_arms(serving *s, cb_error *err)
{
    if (s->functions)
        return cb__functions_arms(s->work, s->functions, &s->arms, err);
    cb_status status = find_isa(s, err);
    if (status == CB_OK)
        status = cb__arms_open(s->work, s->isa, &s->arms, err);
    return status;
}

static cb_status open_case(serving *s, cb_error *err)
{
    cb_status status = open_suite(s, err);
    if (status == CB_OK)
        status = cb__case_parse(&s->suite, s->work->variant ? s->work->variant : "", s->work->shape,
                                s->isa, &s->c, err);
    /* The parent has seen to the memory before it made the ring, which is now part of what is
     * taken. */
    s->info.memory_bytes = UINT64_MAX;
    s->info.beyond_bytes = s->work->beyond_bytes;
    return status == CB_OK ? cb__plan_make(&s->c, &s->info, s->work->cold, &s->plan, err) : status;
}

/* ---- fill ---- */

/* The processors that the cpu device reads from, so that pages lie with their readers. */
static cb_status make_pool(serving *s, cb__pool **pool, cb_error *err)
{
    static cb__topology topology;
    int known[CB__CPUS_MAX];
    if (is_known(s->work)) {
        int n = cb__processors_read(s->work->known.processors, known);
        return cb__pool_new(known, n, pool, err);
    }
    cb_status status = cb__topology_read("", &topology, err);
    int threads = s->work->threads ? s->work->threads : cb__default_threads(&topology);
    if (threads > topology.ncores)
        threads = topology.ncores;
    const int *cores = topology.cores + topology.ncores - threads;
    return status == CB_OK ? cb__pool_new(cores, threads, pool, err) : status;
}

static void touch_share(void *arg, int worker, int workers)
{
    cb__region_touch(arg, worker, workers);
}

/* Chooses what is filled, and how many sets of it have a reference. */
static cb_status open_filled(serving *s, int *sets, cb_error *err)
{
    const cb__duel_work *d = &s->work->duel;
    if (!d->narms) {
        cb_status status = open_case(s, err);
        *sets = cb__fill_reference_sets(&s->c, &s->plan);
        return status;
    }
    cb_status status = open_arms(s, err);
    if (status != CB_OK)
        return status;
    s->c = s->arms.cases[d->arm];
    s->plan = s->arms.plans[d->arm];
    *sets = 0;
    if (d->head) {
        s->plan = cb__plan_head(&s->plan, s->work->cold ? cb__plan_verified(&s->plan) : 1);
        *sets = s->c.kernel->rotates ? 1 : s->plan.sets;
    }
    return CB_OK;
}

static cb_status do_fill(serving *s, cb__buf *line, cb_error *err)
{
    cb__region ring = CB__REGION_INIT, reference = CB__REGION_INIT;
    cb__pool *pool = NULL;
    cb__filled filled = {0};
    int sets = 0;
    cb_status status = open_filled(s, &sets, err);
    if (status != CB_OK)
        return status;
    uint64_t n = cb__reference_elements(&s->c) * (uint64_t)sets;
    /* The device's own threads are at rest; the filling threads stand on the same processors. */
    status = make_pool(s, &pool, err);
    if (status == CB_OK)
        status = cb__region_map_untouched(s->work->ring_fd, s->plan.file_bytes, &ring, err);
    if (status == CB_OK && sets)
        status = cb__region_map_untouched(s->work->reference_fd, n * 16, &reference, err);
    if (status == CB_OK && s->work->pages == CB__PAGES_BASE)
        cb__region_base_pages(&ring);
    else if (status == CB_OK)
        cb__pool_run(pool, touch_share, &ring);
    double *values = reference.base;
    if (status == CB_OK)
        status = cb__fill(&s->c, &s->plan, pool, s->work->seed, ring.base, values,
                          values ? values + n : NULL, sets, say_progress, s, &filled, err);
    if (status == CB_OK) {
        cb__fill_answer answer = {filled.digest,     filled.sampled_words, filled.distinct_words,
                                  filled.prepare_ns, filled.checksums,     s->plan.sets};
        cb__fill_answer_write(&answer, line);
    }
    free(filled.checksums);
    cb__pool_free(pool);
    cb__region_fini(&ring);
    cb__region_fini(&reference);
    return status;
}

/* ---- pick the twin ---- */

static void alive(void *arg)
{
    say_progress(arg, 0.5);
}

/* One block of each mode makes no figure. */
static bool looks(const cb__work *work)
{
    for (int i = 0; i < work->nmodes; i++)
        if (work->modes[i].blocks > 1)
            return false;
    return work->nmodes > 0;
}

static cb__bench_request bench_request(serving *s)
{
    return (cb__bench_request){.suite = &s->suite,
                               .c = &s->c,
                               .plan = &s->plan,
                               .ring_fd = s->work->ring_fd,
                               .seed = s->work->seed,
                               .elapsed_ns = s->work->elapsed_ns,
                               .isa = s->isa,
                               .looks = looks(s->work),
                               .alive = alive,
                               .alive_arg = s};
}

enum { PICK_ROUNDS = 9 };

static cb_status do_pick(serving *s, cb__buf *line, cb_error *err)
{
    cb__pick_answer answer = {0};
    cb_status status = open_case(s, err);
    cb__bench_request request = bench_request(s);
    for (int state = 0; state < 2 && status == CB_OK; state++) {
        if (state == CB__COLD && s->plan.sets < 2)
            continue;
        status = cb__bench_pick_twin(s->target, &request, (cb__cache_state)state, s->work->twins,
                                     s->work->ntwins, PICK_ROUNDS, &answer.best[state],
                                     &answer.kernel_ns[state], &answer.twin_ns[state], err);
        say_progress(s, (state + 1) / 2.0);
    }
    if (status == CB_OK)
        cb__pick_answer_write(&answer, line);
    return status;
}

/* ---- one round ---- */

static cb_status mode_memory(serving *s, cb__mode_answer *m, int blocks, cb_error *err)
{
    size_t n = (size_t)blocks;
    m->blocks = (cb__blocks){.n = blocks,
                             .kernel_ns = cb__arena_array(&s->arena, n, sizeof(double)),
                             .twin_ns = cb__arena_array(&s->arena, n, sizeof(double)),
                             .host_ns = cb__arena_array(&s->arena, n, sizeof(double)),
                             .order = cb__arena_array(&s->arena, n, sizeof(int64_t))};
    bool there = m->blocks.kernel_ns && m->blocks.twin_ns && m->blocks.host_ns && m->blocks.order;
    return there ? CB_OK
                 : cb_error_set(err, CB_NO_MEMORY, "worker: no memory for %d blocks", blocks);
}

/* A failed launch is this mode's finding, not the worker's failure. */
static cb_status found(cb__mode_answer *m, cb_status status, cb_error *err)
{
    if (status != CB_WRONG)
        return status;
    m->launch = *err;
    m->blocks.n = 0;
    cb_error_clear(err);
    return CB_OK;
}

static cb_status run_mode(serving *s, cb__bench *bench, const cb__mode *mode, cb__mode_answer *m,
                          cb__exchange *exchange, uint64_t *measured_ns, cb_error *err)
{
    int first = exchange->n;
    cb_status status = mode_memory(s, m, mode->blocks, err);
    if (status == CB_OK)
        status = cb__bench_verify(bench, mode->cache, mode->submit, exchange, err);
    uint64_t start = s->target.ops->now_ns(s->target.device);
    if (status == CB_OK)
        status = cb__bench_blocks(bench, mode->cache, mode->submit, &m->blocks, exchange, err);
    *measured_ns += s->target.ops->now_ns(s->target.device) - start;
    if (status == CB_OK)
        status = cb__bench_twin_checksum(bench, &m->twin_set, &m->twin_sum, err);
    if (status == CB_OK && !looks(s->work))
        status = cb__bench_floor(bench, mode->submit, &m->floor_ns, err);
    m->entries = exchange->entries + first;
    m->nentries = exchange->n - first;
    return found(m, status, err);
}

static cb_status run_proof(serving *s, cb__bench *bench, cb__round_answer *answer, cb_error *err)
{
    answer->proof = (cb__proof){(double)NAN, (double)NAN, (double)NAN, (double)NAN, 0};
    answer->asymptote = (cb__asymptote){(double)NAN, (double)NAN};
    if (s->plan.sets < 2)
        return CB_OK;
    cb_status status = CB_OK;
    if (s->work->proof_pairs)
        status = cb__bench_proof(bench, s->work->proof_pairs, &answer->proof, err);
    if (status == CB_OK && *s->plan.twin_kernel)
        status = cb__bench_asymptote(bench, &answer->asymptote, err);
    answer->has_proof = status == CB_OK;
    /* The modes have said already that launches fail. */
    if (status == CB_WRONG) {
        cb_error_clear(err);
        return CB_OK;
    }
    return status;
}

/* What was read by a rotation is cold only where caches do not keep it. */
static void ask_caches(serving *s, cb__round_answer *answer)
{
    cb_error own = CB_ERROR_INIT;
    if (s->target.ops->evicts && s->target.ops->evicts(s->target.device, &own) != CB_OK)
        snprintf(answer->unasked, sizeof answer->unasked, "%.*s", (int)sizeof answer->unasked - 1,
                 own.message);
}

enum { ENTRIES_MAX = CB__MODES_MAX * 3 * CB__BATCH_MAX };

static cb_status do_round(serving *s, cb__buf *line, cb_error *err)
{
    cb__round_answer answer = {.nmodes = s->work->nmodes};
    cb__region memory = CB__REGION_INIT;
    cb__bench *bench = NULL;
    cb_status status = open_case(s, err);
    cb__bench_request request = bench_request(s);
    if (s->work->ntwins == 2) {
        request.twin_variants[CB__COLD] = s->work->twins[0];
        request.twin_variants[CB__WARM] = s->work->twins[1];
    }
    cb__exchange exchange = {.capacity = ENTRIES_MAX, .bytes = s->work->exchange_bytes};
    exchange.entries = cb__arena_array(&s->arena, ENTRIES_MAX, sizeof *exchange.entries);
    if (status == CB_OK && !exchange.entries)
        status = cb_error_set(err, CB_NO_MEMORY, "worker: no memory");
    if (status == CB_OK)
        status = cb__region_map(s->work->exchange_fd, s->work->exchange_bytes, &memory, err);
    exchange.base = memory.base;
    if (status == CB_OK)
        status = cb__bench_open(s->target, &request, &bench, err);
    if (status != CB_OK)
        goto out;
    uint64_t wall = cb__clock_ns(), start = s->target.ops->now_ns(s->target.device);
    cb__interference before = cb__interference_now();
    if (s->target.ops->clock_hz)
        answer.clock_hz = s->target.ops->clock_hz(s->target.device);
    for (int i = 0; i < s->work->nmodes && status == CB_OK; i++) {
        status = run_mode(s, bench, &s->work->modes[i], &answer.modes[i], &exchange,
                          &answer.measured_ns, err);
        say_progress(s, (i + 1.0) / s->work->nmodes);
    }
    if (status == CB_OK)
        status = run_proof(s, bench, &answer, err);
    if (status != CB_OK)
        goto out;
    if (s->target.ops->telemetry)
        s->target.ops->telemetry(s->target.device, answer.telemetry, sizeof answer.telemetry);
    cb__interference spent = cb__interference_since(&before);
    answer.steal_s = spent.steal_s;
    answer.involuntary = spent.involuntary;
    answer.wall_s = (double)(cb__clock_ns() - wall) * 1e-9;
    answer.elapsed_ns = s->target.ops->now_ns(s->target.device) - start;
    answer.pages = cb__bench_pages(bench);
    ask_caches(s, &answer);
    answer.has_digest = s->work->digest;
    if (answer.has_digest)
        status = cb__bench_digest(bench, &answer.digest, err);
    if (status == CB_WRONG) { /* a launch took the device down, as the modes have said */
        bool failed = false;
        for (int i = 0; i < answer.nmodes; i++)
            failed = failed || answer.modes[i].launch.status != CB_OK;
        if (!failed)
            snprintf(answer.kept, sizeof answer.kept, "%.*s", (int)sizeof answer.kept - 1,
                     err->message);
        answer.has_digest = false;
        cb_error_clear(err);
        status = CB_OK;
    }
    if (status == CB_OK)
        cb__round_answer_write(&answer, line);
out:
    cb__bench_close(bench);
    cb__region_fini(&memory);
    return status;
}

/* ---- one round of a comparison ---- */

static cb_status do_duel(serving *s, cb__buf *line, cb_error *err)
{
    cb__duel_answer answer = {0};
    cb_status status = open_arms(s, err);
    if (status == CB_OK)
        status = cb__arms_duel(s->work, s->target, &s->arms, &s->arena, alive, s, &answer, err);
    if (status == CB_OK)
        cb__duel_answer_write(&answer, s->work->duel.narms, line);
    return status;
}

/* ---- digest ---- */

/* The ring is one file for all processes: what any of them wrote into it is there at the end. */
static cb_status do_digest(serving *s, cb__buf *line, cb_error *err)
{
    void *ring = NULL;
    uint64_t digest = 0;
    cb_status status = open_case(s, err);
    if (status == CB_OK)
        status = s->target.ops->map(s->target.device, s->work->ring_fd, s->plan.file_bytes, &ring,
                                    NULL, err);
    if (status == CB_OK)
        status = s->target.ops->digest(s->target.device, ring, s->plan.file_bytes, &digest, err);
    if (ring)
        s->target.ops->unmap(s->target.device, ring);
    if (status == CB_OK)
        cb__digest_answer_write(digest, line);
    return status;
}

/* ---- open, describe, sweep ---- */

/* Whatever the first use of the device takes is over: what is asked next is measured at once. */
static cb_status do_open(serving *s, cb__buf *line, cb_error *err)
{
    void *memory = NULL;
    uint64_t digest = 0; /* its code is not compiled where nothing can be */
    const cb__backend *ops = s->target.ops;
    cb_status status = ops->alloc(s->target.device, 1, CB__PAGES_HUGE, &memory, err);
    if (status == CB_OK)
        status = ops->digest(s->target.device, memory, 1, &digest, err);
    ops->free(s->target.device, memory);
    if (status == CB_OK && ops->clock_hz)
        ops->clock_hz(s->target.device);
    if (status == CB_OK && ops->telemetry) {
        char ignored[sizeof((cb__duel_answer *)NULL)->telemetry];
        ops->telemetry(s->target.device, ignored, sizeof ignored);
    }
    cb__buf_puts(line, "{\"type\":\"open\"}\n");
    return status;
}

static cb_status do_describe(serving *s, cb__buf *line, cb_error *err)
{
    (void)err;
    if (s->target.ops->compiler)
        s->target.ops->compiler(s->target.device, s->info.code, sizeof s->info.code);
    cb__describe_answer_write(&s->info, line);
    return CB_OK;
}

static cb_status do_sweep(serving *s, cb__buf *line, cb_error *err)
{
    cb__sweep_answer *answer = cb__arena_alloc(&s->arena, sizeof *answer);
    if (!answer)
        return cb_error_set(err, CB_NO_MEMORY, "worker: no memory for a sweep");
    cb_status status = open_suite(s, err);
    cb__sweep sweep = {.suite = &s->suite,
                       .isa = s->isa,
                       .jobs = s->work->jobs,
                       .njobs = s->work->njobs,
                       .pages = s->work->pages,
                       .limit_ns = s->work->limit_ns,
                       .seed = s->work->seed};
    if (status == CB_OK)
        status = cb__sweep_run(s->target, &sweep, &s->arena, answer, say_progress, s, err);
    if (status == CB_OK)
        cb__sweep_answer_write(answer, line);
    return status;
}

/* ---- serving ---- */

static const struct {
    const char *op;
    cb_status (*run)(serving *s, cb__buf *line, cb_error *err);
} operations[] = {{"describe", do_describe}, {"fill", do_fill},     {"pick", do_pick},
                  {"round", do_round},       {"digest", do_digest}, {"sweep", do_sweep},
                  {"duel", do_duel},         {"open", do_open}};

static cb_status serve(int out, held *before, cb__functions *functions, const char *text,
                       size_t size, cb__buf *line, cb_error *err)
{
    cb__json *json = NULL;
    cb__work work;
    serving s = {
        .out = out, .held = before, .work = &work, .arena = CB__ARENA_INIT, .functions = functions};
    cb_status status = cb__json_parse(text, size, "request", &json, err);
    if (status == CB_OK)
        status = cb__work_read(json, &s.arena, &work, err);
    if (status == CB_OK)
        status = open_device(&s, err);
    size_t i = 0, n = sizeof operations / sizeof *operations;
    while (status == CB_OK && i < n && strcmp(operations[i].op, work.op) != 0)
        i++;
    if (status == CB_OK && i == n)
        status = cb_error_set(err, CB_USAGE, "request: unknown op '%s'", work.op);
    if (status == CB_OK)
        status = operations[i].run(&s, line, err);
    cb__suite_close(&s.suite);
    cb__arms_close(&s.arms);
    close_device(&s);
    cb__arena_fini(&s.arena);
    cb__json_free(json);
    return status;
}

int cb__worker_serve(FILE *in, int out, cb__functions *functions)
{
    char *text = NULL;
    size_t capacity = 0;
    ssize_t size;
    held before = {0};
    while ((size = getline(&text, &capacity, in)) > 0) {
        cb__buf line = CB__BUF_INIT;
        cb_error err = CB_ERROR_INIT;
        cb_status status = serve(out, &before, functions, text, (size_t)size, &line, &err);
        if (status == CB_OK && line.failed)
            status = cb_error_set(&err, CB_NO_MEMORY, "worker: no memory for its answer");
        if (status == CB_OK)
            send_line(out, &line);
        else
            say_error(out, &err);
        cb__buf_fini(&line);
    }
    release_held(&before);
    free(text);
    return 0;
}
