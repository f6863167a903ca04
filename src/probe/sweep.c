#include "probe/sweep.h"

#include <inttypes.h>
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
    READINGS_MAX = 5,
    SAMPLED_WORDS = 4096,
    FLOOR_READINGS = 101,
    EMPTY_READINGS = 21
};
#define RESOLVED_NS 500 /* twenty reads of the clock */

/* ---- launches ---- */

cb_status cb__sweep_bind(cb__sweeping *s, const char *variant, const char *params, uint64_t shape,
                         void *stream, void *input, void *output, cb__bound *to, cb_error *err)
{
    char text[240], size[24];
    size_t name = strcspn(variant, "@/:");
    bool more = variant[name] == '@';
    const char *rest = variant + name + more;
    if (!*params)
        snprintf(text, sizeof text, "%s", variant);
    else
        snprintf(text, sizeof text, "%.*s@%s%s%s", (int)name, variant, params, more ? "," : "",
                 rest);
    snprintf(size, sizeof size, "%" PRIu64, shape);
    cb_status status = cb__case_parse(s->sweep->suite, text, size, s->sweep->isa, &to->c, err);
    if (status != CB_OK)
        return status;
    to->code = cb__case_code(&to->c);
    to->launch = (cb__launch){.code = &to->code};
    for (int i = 0; i < to->c.kernel->noperands; i++) {
        cb_role role = to->c.kernel->operands[i].role;
        to->launch.operands[i] = role == CB_STREAM   ? stream
                                 : role == CB_INPUT  ? input
                                 : role == CB_OUTPUT ? output
                                                     : s->scratch;
    }
    return CB_OK;
}

cb_status cb__sweep_time(cb__sweeping *s, const cb__launch *launch, double *ns, cb_error *err)
{
    const cb__backend *ops = s->target.ops;
    uint64_t start = ops->now_ns(s->target.device);
    ops->launch(s->target.device, launch);
    cb_status status = ops->sync(s->target.device, err);
    *ns = (double)(ops->now_ns(s->target.device) - start);
    return status;
}

cb_status cb__sweep_time_median(cb__sweeping *s, const cb__launch *launch, int n, double *ns,
                                cb_error *err)
{
    double readings[FLOOR_READINGS];
    cb_status status = CB_OK;
    for (int i = 0; i < n && status == CB_OK; i++)
        status = cb__sweep_time(s, launch, &readings[i], err);
    *ns = cb__median(readings, (size_t)n);
    return status;
}

cb_status cb__sweep_pair(cb__sweeping *s, const cb__launch *few, const cb__launch *many, int n,
                         cb__pair *pair, cb_error *err)
{
    double a[READINGS_MAX], b[READINGS_MAX], hz[READINGS_MAX];
    bool has_clock = s->target.ops->clock_hz != NULL;
    cb_status status = CB_OK;
    for (int i = 0; i < n && status == CB_OK; i++) {
        /* While the clock is read, neighbours take what they can of a shared cache. */
        status = cb__sweep_time(s, few, &a[i], err);
        if (status == CB_OK)
            status = cb__sweep_time(s, few, &a[i], err);
        if (status == CB_OK)
            status = cb__sweep_time(s, many, &b[i], err);
        hz[i] = has_clock ? s->target.ops->clock_hz(s->target.device) : (double)NAN;
    }
    *pair = (cb__pair){cb__median(a, (size_t)n), cb__median(b, (size_t)n),
                       has_clock ? cb__median(hz, (size_t)n) : (double)NAN};
    return status;
}

int cb__sweep_pairs(double few_ns, int visits)
{
    double worth = CB__WORTH_NS / (4 * few_ns * visits);
    return worth >= READINGS_MAX && visits == 1 ? READINGS_MAX : worth >= 3 ? 3 : 1;
}

int64_t cb__sweep_repeats(double ns, double unit_ns, int64_t max)
{
    double wanted = ns / unit_ns;
    return !(wanted > 1) ? 1 : wanted > (double)max ? max : (int64_t)wanted;
}

double cb__pair_rate(const cb__pair *pair, double amount)
{
    double slope = pair->many_ns - pair->few_ns;
    return slope > 0 ? 2 * amount / slope : (double)NAN;
}

double cb__pair_folded(const cb__sweeping *s, const cb__pair *pair)
{
    double once = pair->few_ns - s->empty_ns;
    /* What a launch costs must be small in it, and a tick of the clock. */
    return once > 3 * s->empty_ns + RESOLVED_NS ? (pair->many_ns - s->empty_ns) / (3 * once)
                                                : (double)NAN;
}

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

cb_status cb__sweep_fill(cb__sweeping *s, cb_error *err)
{
    uint64_t words[CHUNK_WORDS], key = words_key(s);
    uint32_t sum = 0;
    cb_status status = CB_OK;
    if (s->random || s->sweep->pages == CB__PAGES_UNTOUCHED)
        return CB_OK;
    for (uint64_t at = 0; at < s->set_bytes && status == CB_OK; at += CHUNK_BYTES) {
        uint64_t n = s->set_bytes - at < CHUNK_BYTES ? s->set_bytes - at : CHUNK_BYTES, all = 0;
        for (uint64_t i = 0; i < n / 8; i++)
            all ^= words[i] = cb_random_word(key, at / 8 + i);
        s->prefix[at / CHUNK_BYTES] = sum;
        sum ^= (uint32_t)(all ^ (all >> 32));
        status = s->target.ops->write(s->target.device, (char *)s->set + at, words, n, err);
        if (at % (64 * CHUNK_BYTES) == 0)
            cb__sweep_say(s, 0);
    }
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

cb_status cb__sweep_floor(cb__sweeping *s, const cb__job *job, cb__reading *out, cb_error *err)
{
    static const cb__launch nothing;
    enum { LAUNCHES = 32 };
    double ns[FLOOR_READINGS];
    if (strcmp(job->what, "solo") == 0)
        return cb__sweep_time_median(s, &nothing, FLOOR_READINGS, &out->value, err);
    cb__launch launches[LAUNCHES] = {0};
    cb__batch *batch = NULL;
    const cb__backend *ops = s->target.ops;
    cb_status status = ops->batch_new(s->target.device, launches, LAUNCHES, &batch, err);
    for (int i = 0; i < FLOOR_READINGS && status == CB_OK; i++) {
        ops->batch_run(s->target.device, batch);
        status = ops->sync(s->target.device, err);
        ns[i] = ops->batch_span_ns(s->target.device, batch) / LAUNCHES;
    }
    if (batch)
        ops->batch_free(s->target.device, batch);
    out->value = cb__median(ns, FLOOR_READINGS);
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
            if ((uint64_t)sweep->jobs[j].bytes[i] > most)
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
    return status == CB_OK && needs_words(s->sweep) ? cb__sweep_fill(s, err) : status;
}

static void close_sets(cb__sweeping *s)
{
    s->target.ops->free(s->target.device, s->set);
    s->target.ops->free(s->target.device, s->output);
    s->target.ops->free(s->target.device, s->scratch);
}

static cb_status run_job(cb__sweeping *s, const cb__job *job, cb__job_answer *a, cb_error *err)
{
    static cb_status (*const kinds[])(cb__sweeping *, const cb__job *, cb__reading *,
                                      cb_error *) = {
        [CB__JOB_BANDWIDTH] = cb__sweep_bandwidth, [CB__JOB_LATENCY] = cb__sweep_latency,
        [CB__JOB_FLOOR] = cb__sweep_floor,         [CB__JOB_COMPUTE] = cb__sweep_compute,
        [CB__JOB_CONTENT] = cb__sweep_content,
    };
    static const cb__launch nothing;
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
            a->readings[i] =
                (cb__reading){(double)NAN, (double)NAN, (double)NAN, (double)NAN, -1, -1};
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
    close_sets(&s);
    return status;
}
