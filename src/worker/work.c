/* Requests. */
#include <stdio.h>
#include <string.h>

#include "worker/work.h"

#define BYTES_MAX (INT64_C(1) << 40) /* of one size */

static void write_job(cb__json_writer *w, const cb__job *job)
{
    cb__json_object(w);
    cb__json_key(w, "kind");
    cb__json_int(w, job->kind);
    cb__json_key(w, "what");
    cb__json_string(w, job->what);
    cb__json_key(w, "visits");
    cb__json_int(w, job->visits);
    cb__json_key(w, "variants");
    cb__json_array(w);
    for (int i = 0; i < job->nvariants; i++)
        cb__json_string(w, job->variants[i]);
    cb__json_end(w);
    cb__json_key(w, "bytes");
    cb__json_ints(w, job->bytes, (size_t)job->n);
    cb__json_end(w);
}

void cb__work_write(const cb__work *work, cb__buf *line)
{
    cb__json_writer w;
    cb__json_begin(&w, line, false);
    cb__json_object(&w);
    const struct {
        const char *key, *value;
    } texts[] = {{"op", work->op},
                 {"device", work->device},
                 {"module", work->module},
                 {"variant", work->variant},
                 {"shape", work->shape}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        cb__json_key(&w, texts[i].key);
        cb__json_string(&w, texts[i].value);
    }
    cb__json_key(&w, "cold");
    cb__json_bool(&w, work->cold);
    cb__json_key(&w, "digest");
    cb__json_bool(&w, work->digest);
    const struct {
        const char *key;
        int64_t value;
    } numbers[] = {{"protocol", CB__PROTOCOL},
                   {"threads", work->threads},
                   {"ring_fd", work->ring_fd},
                   {"reference_fd", work->reference_fd},
                   {"exchange_fd", work->exchange_fd},
                   {"exchange_bytes", (int64_t)work->exchange_bytes},
                   {"seed", (int64_t)work->seed},
                   {"elapsed_ns", (int64_t)work->elapsed_ns},
                   {"proof_pairs", work->proof_pairs},
                   {"placement", work->placement},
                   {"pages", work->pages},
                   {"limit_ns", (int64_t)work->limit_ns},
                   {"beyond_bytes", (int64_t)work->beyond_bytes}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        cb__json_key(&w, numbers[i].key);
        cb__json_int(&w, numbers[i].value);
    }
    cb__json_key(&w, "twins");
    cb__json_array(&w);
    for (int i = 0; i < work->ntwins; i++)
        cb__json_string(&w, work->twins[i]);
    cb__json_end(&w);
    cb__json_key(&w, "modes");
    cb__json_array(&w);
    for (int i = 0; i < work->nmodes; i++) {
        int64_t mode[] = {work->modes[i].cache, work->modes[i].submit, work->modes[i].blocks};
        cb__json_ints(&w, mode, 3);
    }
    cb__json_end(&w);
    cb__json_key(&w, "jobs");
    cb__json_array(&w);
    for (int i = 0; i < work->njobs; i++)
        write_job(&w, &work->jobs[i]);
    cb__json_end(&w);
    cb__duel_work_write(work, &w);
    cb__json_end(&w);
    cb__buf_puts(line, "\n");
}

static cb_status read_numbers(const cb__json *json, cb__work *work, cb_error *err)
{
    int64_t n[13];
    const struct {
        const char *key;
        int64_t min, max;
    } numbers[] = {{"protocol", CB__PROTOCOL, CB__PROTOCOL},
                   {"threads", 0, 65536},
                   {"ring_fd", -1, 1 << 20},
                   {"reference_fd", -1, 1 << 20},
                   {"exchange_fd", -1, 1 << 20},
                   {"exchange_bytes", 0, INT64_MAX},
                   {"seed", INT64_MIN, INT64_MAX},
                   {"elapsed_ns", 0, INT64_MAX},
                   {"proof_pairs", 0, 64},
                   {"placement", CB__COMPACT, CB__SCATTERED},
                   {"pages", CB__PAGES_HUGE, CB__PAGES_UNTOUCHED},
                   {"limit_ns", 0, INT64_MAX},
                   {"beyond_bytes", 0, BYTES_MAX}};
    cb_status status = CB_OK;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers && status == CB_OK; i++)
        status =
            cb__json_need_i64(json, numbers[i].key, numbers[i].min, numbers[i].max, &n[i], err);
    if (status != CB_OK)
        return status;
    work->threads = (int)n[1];
    work->ring_fd = (int)n[2];
    work->reference_fd = (int)n[3];
    work->exchange_fd = (int)n[4];
    work->exchange_bytes = (uint64_t)n[5];
    work->seed = (uint64_t)n[6];
    work->elapsed_ns = (uint64_t)n[7];
    work->proof_pairs = (int)n[8];
    work->placement = (cb__placement)n[9];
    work->pages = (cb__page_kind)n[10];
    work->limit_ns = (uint64_t)n[11];
    work->beyond_bytes = (uint64_t)n[12];
    return CB_OK;
}

static cb_status read_mode(const cb__json *json, cb__mode *mode, cb_error *err)
{
    int64_t cache = cb__json_i64(cb__json_at(json, 0), -1);
    int64_t submit = cb__json_i64(cb__json_at(json, 1), -1);
    int64_t blocks = cb__json_i64(cb__json_at(json, 2), -1);
    if (cb__json_size(json) != 3 || cache < 0 || cache > CB__WARM || submit < 0 ||
        submit > CB__BATCHED || blocks < 1 || blocks > 100000)
        return cb_error_set(err, CB_USAGE, "request: a mode is not [cache, submit, blocks]");
    *mode = (cb__mode){(cb__cache_state)cache, (cb__submit)submit, (int)blocks};
    return CB_OK;
}

static cb_status read_job(const cb__json *json, cb__job *job, cb_error *err)
{
    const cb__json *variants = cb__json_get(json, "variants"), *bytes = cb__json_get(json, "bytes");
    int64_t kind = 0, visits = 0;
    cb_status status =
        cb__json_need_i64(json, "kind", CB__JOB_BANDWIDTH, CB__JOB_KINDS - 1, &kind, err);
    if (status == CB_OK)
        status = cb__json_need_i64(json, "visits", 1, CB__VISITS_MAX, &visits, err);
    if (status == CB_OK)
        status = cb__json_need_text(json, "what", &job->what, err);
    if (status != CB_OK)
        return status;
    if (cb__json_size(variants) > CB__JOB_VARIANTS_MAX || cb__json_size(bytes) > CB__SIZES_MAX)
        return cb_error_set(err, CB_USAGE, "request: a job with too many variants or sizes");
    job->kind = (cb__job_kind)kind;
    job->visits = (int)visits;
    for (size_t i = 0; i < cb__json_size(variants); i++) {
        job->variants[job->nvariants] = cb__json_text(cb__json_at(variants, i), "");
        if (!*job->variants[job->nvariants++])
            return cb_error_set(err, CB_USAGE, "request: a job's variant is not a text");
    }
    if (job->nvariants == 0 && job->kind != CB__JOB_FLOOR)
        return cb_error_set(err, CB_USAGE, "request: job %.16s without variants", job->what);
    for (size_t i = 0; i < cb__json_size(bytes); i++) {
        int64_t size = cb__json_i64(cb__json_at(bytes, i), 0);
        int64_t unit = job->kind == CB__JOB_LATENCY ? 4096 : job->kind == CB__JOB_SCRATCH ? 4 : 128;
        if (size < unit || size > BYTES_MAX || size % unit)
            return cb_error_set(err, CB_USAGE, "request: a size that no job has");
        job->bytes[job->n++] = size;
    }
    return CB_OK;
}

static cb_status read_jobs(const cb__json *json, cb__arena *arena, cb__work *work, cb_error *err)
{
    size_t n = cb__json_size(json);
    if (n > CB__JOBS_MAX)
        return cb_error_set(err, CB_USAGE, "request: too many jobs");
    cb__job *jobs = cb__arena_array(arena, n + 1, sizeof *jobs);
    if (!jobs)
        return cb_error_set(err, CB_NO_MEMORY, "request: no memory for %zu jobs", n);
    cb_status status = CB_OK;
    for (size_t i = 0; i < n && status == CB_OK; i++)
        status = read_job(cb__json_at(json, i), &jobs[i], err);
    work->jobs = jobs;
    work->njobs = (int)n;
    return status;
}

static bool text_or_null(const cb__json *json, const char *key)
{
    const cb__json *v = cb__json_get(json, key);
    bool is_bool = cb__json_truth(v, true) == cb__json_truth(v, false);
    return cb__json_is_string(v) ||
           (!is_bool && !cb__json_is_number(v) && !cb__json_is_object(v) && !cb__json_is_array(v));
}

cb_status cb__work_read(const cb__json *json, cb__arena *arena, cb__work *work, cb_error *err)
{
    memset(work, 0, sizeof *work);
    cb_status status = cb__json_need_text(json, "op", &work->op, err);
    if (status == CB_OK)
        status = cb__json_need_text(json, "device", &work->device, err);
    if (status == CB_OK)
        status = read_numbers(json, work, err);
    if (status != CB_OK)
        return status;
    if (!text_or_null(json, "module") || !text_or_null(json, "variant") ||
        !text_or_null(json, "shape"))
        return cb_error_set(err, CB_USAGE, "request: module, variant or shape is not a text");
    work->module = cb__json_text(cb__json_get(json, "module"), NULL);
    work->variant = cb__json_text(cb__json_get(json, "variant"), NULL);
    work->shape = cb__json_text(cb__json_get(json, "shape"), NULL);
    work->cold = cb__json_truth(cb__json_get(json, "cold"), false);
    work->digest = cb__json_truth(cb__json_get(json, "digest"), false);
    const cb__json *twins = cb__json_get(json, "twins");
    const cb__json *modes = cb__json_get(json, "modes");
    if (cb__json_size(twins) > CB__TWINS_MAX || cb__json_size(modes) > CB__MODES_MAX)
        return cb_error_set(err, CB_USAGE, "request: too many twins or modes");
    for (size_t i = 0; i < cb__json_size(twins); i++)
        work->twins[work->ntwins++] = cb__json_text(cb__json_at(twins, i), "");
    for (size_t i = 0; i < cb__json_size(modes) && status == CB_OK; i++)
        status = read_mode(cb__json_at(modes, i), &work->modes[work->nmodes++], err);
    for (int i = 0; i < work->ntwins && status == CB_OK; i++)
        if (!*work->twins[i])
            status = cb_error_set(err, CB_USAGE, "request: a twin is not a variant");
    if (status == CB_OK)
        status = cb__duel_work_read(json, work, err);
    return status == CB_OK ? read_jobs(cb__json_get(json, "jobs"), arena, work, err) : status;
}
