#include "probe/sweep.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coldbench/random.h"
#include "host/clock.h"
#include "host/environment.h"
#include "probe/sweep_internal.h"
#include "stats/order.h"

enum {
    CHUNK_BYTES = 65536,
    CHUNK_WORDS = CHUNK_BYTES / 8,
    SMALL_BYTES = 131072,
    SAMPLED_WORDS = 4096,
    FLOOR_READINGS = CB__SWEEP_READINGS_MAX,
    EMPTY_READINGS = 21,
    FLOOR_LAUNCHES = 32,  /* of a batch */
    STREAM_LAUNCHES = 256 /* that are queued before the host waits */
};

/* ---- the set ---- */

static uint64_t words_key(const cb__sweeping *s)
{
    return cb_random_key(s->sweep->seed, 0x73776570u, 0);
}

static uint32_t xor_of(uint64_t key, uint64_t first, uint64_t n)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; i++)
        sum ^= cb_random_word(key, first + i);
    return (uint32_t)(sum ^ (sum >> 32));
}

/* The xor of what lies before every chunk of the words that the set gets. */
static void sum_words(cb__sweeping *s)
{
    uint32_t sum = 0;
    for (uint64_t at = 0; at < s->set_bytes; at += CHUNK_BYTES) {
        uint64_t n = s->set_bytes - at < CHUNK_BYTES ? s->set_bytes - at : CHUNK_BYTES;
        s->prefix[at / CHUNK_BYTES] = sum;
        sum ^= xor_of(words_key(s), at / 8, n / 8);
        if (at % (1024 * CHUNK_BYTES) == 0)
            cb__sweep_say(s, 0);
    }
    s->summed = true;
}

static cb_status write_words(cb__sweeping *s, cb_error *err)
{
    uint64_t words[CHUNK_WORDS], key = words_key(s);
    cb_status status = CB_OK;
    for (uint64_t at = 0; at < s->set_bytes && status == CB_OK; at += CHUNK_BYTES) {
        uint64_t n = s->set_bytes - at < CHUNK_BYTES ? s->set_bytes - at : CHUNK_BYTES;
        for (uint64_t i = 0; i < n / 8; i++)
            words[i] = cb_random_word(key, at / 8 + i);
        status = s->target.ops->write(s->target.device, (char *)s->set + at, words, n, err);
        if (at % (64 * CHUNK_BYTES) == 0)
            cb__sweep_say(s, 0);
    }
    return status;
}

cb_status cb__sweep_fill(cb__sweeping *s, cb_error *err)
{
    const cb__backend *ops = s->target.ops;
    if (s->random || s->sweep->pages == CB__PAGES_UNTOUCHED)
        return CB_OK;
    if (!s->summed)
        sum_words(s);
    cb_status status = ops->fill_words ? ops->fill_words(s->target.device, s->set, s->set_bytes / 8,
                                                         words_key(s), err)
                                       : write_words(s, err);
    s->random = status == CB_OK;
    return status;
}

uint32_t cb__sweep_expected(const cb__sweeping *s, uint64_t bytes)
{
    uint64_t chunk = bytes / CHUNK_BYTES, first = chunk * CHUNK_BYTES;
    uint32_t before = first < s->set_bytes ? s->prefix[chunk] : 0;
    if (first >= s->set_bytes) { /* the whole set, in whole chunks: its end has no entry */
        chunk--;
        first = chunk * CHUNK_BYTES;
        before = s->prefix[chunk];
    }
    return before ^ xor_of(words_key(s), first / 8, (bytes - first) / 8);
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Words read back from places drawn by lot: pages that nobody wrote show. */
static cb_status sample(cb__sweeping *s, cb__sweep_answer *answer, cb_error *err)
{
    uint64_t words[SAMPLED_WORDS], all = s->set_bytes / 8;
    uint64_t n = all < SAMPLED_WORDS ? all : SAMPLED_WORDS;
    cb_status status = CB_OK;
    for (uint64_t i = 0; i < n && status == CB_OK; i++) {
        /* One word of each of n stretches, so that no word comes twice. */
        uint64_t from = all * i / n, to = all * (i + 1) / n;
        uint64_t at = from + cb_random(s->sweep->seed, 0x73616d70u, 1, i) % (to - from);
        status = s->target.ops->read(s->target.device, &words[i], (char *)s->set + at * 8, 8, err);
    }
    if (status != CB_OK)
        return status;
    qsort(words, n, sizeof *words, by_value);
    answer->sampled_words = n;
    for (uint64_t i = 0; i < n; i++)
        answer->distinct_words += i == 0 || words[i] != words[i - 1];
    return CB_OK;
}

/* ---- floors ---- */

/* What submitting and waiting cost the host, of `launches` empty launches that wait for no other:
 * of each. */
static cb_status host_floor(cb__sweeping *s, int launches, double *ns, cb_error *err)
{
    static const cb__launch nothing;
    const cb__backend *ops = s->target.ops;
    cb_status status = CB_OK;
    for (int i = 0; i < FLOOR_READINGS && status == CB_OK; i++) {
        uint64_t start = ops->now_ns(s->target.device);
        for (int k = 0; k < launches; k++)
            ops->launch(s->target.device, &nothing);
        status = ops->sync(s->target.device, err);
        ns[i] = (double)(ops->now_ns(s->target.device) - start) / launches;
    }
    return status;
}

static int by_length(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static cb_status batch_floor(cb__sweeping *s, double *ns, cb_error *err)
{
    cb__launch launches[FLOOR_LAUNCHES] = {0};
    cb__batch *batch = NULL;
    const cb__backend *ops = s->target.ops;
    cb_status status = ops->batch_new(s->target.device, launches, FLOOR_LAUNCHES, &batch, err);
    for (int i = 0; i < FLOOR_READINGS && status == CB_OK; i++) {
        ops->batch_run(s->target.device, batch);
        status = ops->sync(s->target.device, err);
        ns[i] = ops->batch_span_ns(s->target.device, batch) / FLOOR_LAUNCHES;
    }
    if (batch)
        ops->batch_free(s->target.device, batch);
    return status;
}

cb_status cb__sweep_floor(cb__sweeping *s, const cb__job *job, cb__reading *out, cb_error *err)
{
    double ns[FLOOR_READINGS];
    cb_status status = strcmp(job->what, "solo") == 0     ? host_floor(s, 1, ns, err)
                       : strcmp(job->what, "stream") == 0 ? host_floor(s, STREAM_LAUNCHES, ns, err)
                                                          : batch_floor(s, ns, err);
    /* A host that is kept from submitting is slower, and never faster. */
    bool least = s->info.queued && strcmp(job->what, "batched") != 0;
    qsort(ns, FLOOR_READINGS, sizeof *ns, by_length);
    out->value = least ? ns[FLOOR_READINGS / 10] : cb__median(ns, FLOOR_READINGS);
    return status;
}

/* ---- the jobs ---- */

int cb__job_readings(const cb__job *job)
{
    return job->kind == CB__JOB_FLOOR || job->kind == CB__JOB_COMPUTE ? 1 : job->n;
}

void cb__sweep_say(cb__sweeping *s, double of_job)
{
    s->progress(s->arg, s->done + s->share * of_job);
}

static uint64_t largest(const cb__sweep *sweep)
{
    uint64_t most = SMALL_BYTES;
    for (int j = 0; j < sweep->njobs; j++)
        for (int i = 0; i < sweep->jobs[j].n; i++)
            if (sweep->jobs[j].kind != CB__JOB_SCRATCH && (uint64_t)sweep->jobs[j].bytes[i] > most)
                most = (uint64_t)sweep->jobs[j].bytes[i];
    return most;
}

/* Chains and arithmetic bring their own contents. */
static bool needs_words(const cb__sweep *sweep)
{
    for (int j = 0; j < sweep->njobs; j++)
        if (sweep->jobs[j].kind == CB__JOB_BANDWIDTH || sweep->jobs[j].kind == CB__JOB_CONTENT)
            return true;
    return false;
}

static cb_status open_sets(cb__sweeping *s, cb_error *err)
{
    const cb__backend *ops = s->target.ops;
    s->set_bytes = largest(s->sweep);
    s->prefix = cb__arena_array(s->arena, s->set_bytes / CHUNK_BYTES + 2, sizeof *s->prefix);
    if (!s->prefix)
        return cb_error_set(err, CB_NO_MEMORY, "sweep: no memory for checksums");
    cb_status status = ops->alloc(s->target.device, s->set_bytes, s->sweep->pages, &s->set, err);
    if (status == CB_OK)
        status = ops->alloc(s->target.device, SMALL_BYTES, CB__PAGES_HUGE, &s->output, err);
    if (status == CB_OK)
        status = ops->alloc(s->target.device, SMALL_BYTES, CB__PAGES_HUGE, &s->scratch, err);
    if (status == CB_OK)
        status = ops->alloc(s->target.device, SMALL_BYTES, CB__PAGES_HUGE, &s->input, err);
    return status == CB_OK && needs_words(s->sweep) ? cb__sweep_fill(s, err) : status;
}

static void close_sets(cb__sweeping *s)
{
    s->target.ops->free(s->target.device, s->set);
    s->target.ops->free(s->target.device, s->output);
    s->target.ops->free(s->target.device, s->scratch);
    s->target.ops->free(s->target.device, s->input);
}

static cb_status run_job(cb__sweeping *s, const cb__job *job, cb__job_answer *a, cb_error *err)
{
    static cb_status (*const kinds[])(cb__sweeping *, const cb__job *, cb__reading *,
                                      cb_error *) = {
        [CB__JOB_BANDWIDTH] = cb__sweep_bandwidth, [CB__JOB_LATENCY] = cb__sweep_latency,
        [CB__JOB_FLOOR] = cb__sweep_floor,         [CB__JOB_COMPUTE] = cb__sweep_compute,
        [CB__JOB_CONTENT] = cb__sweep_content,     [CB__JOB_SCRATCH] = cb__sweep_scratch,
    };
    static const cb__bound nothing;
    cb_status status = cb__sweep_time_median(s, &nothing, EMPTY_READINGS, &s->empty_ns, err);
    if (status == CB_OK)
        status = kinds[job->kind](s, job, a->readings, err);
    a->done = status == CB_OK;
    return status;
}

static cb_status room(cb__sweeping *s, cb__sweep_answer *answer, cb_error *err)
{
    answer->njobs = s->sweep->njobs;
    for (int j = 0; j < answer->njobs; j++) {
        cb__job_answer *a = &answer->jobs[j];
        a->n = cb__job_readings(&s->sweep->jobs[j]);
        a->readings = cb__arena_array(s->arena, (size_t)a->n + 1, sizeof *a->readings);
        if (!a->readings)
            return cb_error_set(err, CB_NO_MEMORY, "sweep: no memory for %d readings", a->n);
        for (int i = 0; i < a->n; i++)
            a->readings[i] = cb__no_reading();
    }
    return CB_OK;
}

cb_status cb__sweep_run(cb__target target, const cb__sweep *sweep, cb__arena *arena,
                        cb__sweep_answer *answer, void (*progress)(void *, double), void *arg,
                        cb_error *err)
{
    cb__sweeping s = {
        .target = target, .sweep = sweep, .arena = arena, .progress = progress, .arg = arg};
    uint64_t start = cb__clock_ns();
    memset(answer, 0, sizeof *answer);
    target.ops->info(target.device, &s.info);
    cb_status status = room(&s, answer, err);
    if (status == CB_OK)
        status = open_sets(&s, err);
    if (status == CB_OK && needs_words(sweep))
        status = sample(&s, answer, err);
    if (target.ops->hold)
        target.ops->hold(target.device, true);
    cb__interference before = cb__interference_now();
    s.share = 1.0 / (sweep->njobs ? sweep->njobs : 1);
    for (int j = 0; j < sweep->njobs && status == CB_OK; j++) {
        if (j > 0 && sweep->limit_ns && cb__clock_ns() - start > sweep->limit_ns)
            break;
        status = run_job(&s, &sweep->jobs[j], &answer->jobs[j], err);
        s.done = s.share * (j + 1);
        cb__sweep_say(&s, 0);
    }
    cb__interference spent = cb__interference_since(&before);
    if (target.ops->hold)
        target.ops->hold(target.device, false);
    answer->steal_s = spent.steal_s;
    answer->involuntary = spent.involuntary;
    answer->wall_s = (double)(cb__clock_ns() - start) * 1e-9;
    if (target.ops->pages && s.set)
        answer->pages = target.ops->pages(target.device, s.set);
    cb__sweep_unbuild(&s);
    close_sets(&s);
    return status;
}
