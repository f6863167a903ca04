/* Answers. 64-bit digests travel as hexadecimal text: a JSON number loses bits in many readers. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measure/poison.h"
#include "worker/members.h"
#include "worker/work.h"

/* Sums over rounds and multiples of these do not overflow. */
#define BYTES_MAX (INT64_C(1) << 50)
#define TIME_MAX_NS (INT64_C(1) << 50)

/* err may be NULL; the readers need one that is not. */
static cb_status give(cb_error *err, const cb_error *own)
{
    return own->status == CB_OK ? CB_OK : cb_error_set(err, own->status, "%s", own->message);
}

static void put_hex(cb__json_writer *w, const char *key, uint64_t value)
{
    cb__json_key(w, key);
    cb__hex_write(w, value);
}

static uint64_t hex(const cb__json *json, const char *key, cb_error *err)
{
    uint64_t value;
    if (!cb__hex_read(cb__json_get(json, key), &value))
        cb__garbage(err, key);
    return value;
}

static const cb__json *array(const cb__json *json, const char *key, size_t n, cb_error *err)
{
    const cb__json *v = cb__json_get(json, key);
    if (!cb__json_is_array(v) || cb__json_size(v) != n)
        cb__garbage(err, key);
    return v;
}

/* ---- describe ---- */

void cb__describe_answer_write(const cb__device_info *info, cb__buf *line)
{
    cb__json_writer w;
    cb__answer_begin(&w, line, "describe");
    cb__json_put_text(&w, "name", info->name);
    cb__json_put_text(&w, "identity", info->identity);
    cb__json_put_text(&w, "clock", info->clock);
    cb__json_put_text(&w, "code", info->code);
    cb__json_put_int(&w, "threads", info->threads);
    cb__json_put_int(&w, "isa", info->isa);
    cb__json_put_int(&w, "llc_bytes", (int64_t)info->llc_bytes);
    cb__json_put_int(&w, "memory_bytes", (int64_t)info->memory_bytes);
    cb__json_put_int(&w, "batch_bytes", (int64_t)info->batch_bytes);
    cb__json_put_real(&w, "peak_bytes_per_s", info->peak_bytes_per_s);
    cb__json_put_real(&w, "peak_bytes_per_cycle", info->peak_bytes_per_cycle);
    cb__json_put_real(&w, "peak_dram_bytes_per_s", info->peak_dram_bytes_per_s);
    cb__json_put_text(&w, "processors", info->processors);
    cb__json_put_bool(&w, "has_counters", info->has_counters);
    cb__json_put_bool(&w, "placements_differ", info->placements_differ);
    cb__json_put_bool(&w, "queued", info->queued);
    cb__json_put_bool(&w, "overlaps", info->overlaps);
    cb__json_key(&w, "caches");
    cb__json_array(&w);
    for (int i = 0; i < info->ncaches; i++) {
        const cb__device_cache *c = &info->caches[i];
        int64_t cache[] = {c->level, (int64_t)c->bytes, c->instances};
        cb__json_ints(&w, cache, 3);
    }
    cb__json_end(&w);
    cb__answer_end(&w, line);
}

cb_status cb__describe_answer_read(const cb__json *json, cb__device_info *info, cb_error *err)
{
    cb_error own = CB_ERROR_INIT;
    *info = (cb__device_info){0};
    cb__answer_text(json, "name", info->name, sizeof info->name, &own);
    cb__answer_text(json, "identity", info->identity, sizeof info->identity, &own);
    cb__answer_text(json, "clock", info->clock, sizeof info->clock, &own);
    cb__answer_text(json, "code", info->code, sizeof info->code, &own);
    info->threads = (int)cb__answer_int(json, "threads", 1, 65536, &own);
    info->isa = (unsigned)cb__answer_int(json, "isa", 0, INT32_MAX, &own);
    info->llc_bytes = (uint64_t)cb__answer_int(json, "llc_bytes", 0, BYTES_MAX, &own);
    info->memory_bytes = (uint64_t)cb__answer_int(json, "memory_bytes", 0, INT64_MAX, &own);
    info->batch_bytes = (uint64_t)cb__answer_int(json, "batch_bytes", 0, BYTES_MAX, &own);
    info->peak_bytes_per_s = fmax(cb__answer_real(json, "peak_bytes_per_s", &own), 0);
    info->peak_bytes_per_cycle = fmax(cb__answer_real(json, "peak_bytes_per_cycle", &own), 0);
    info->peak_dram_bytes_per_s = fmax(cb__answer_real(json, "peak_dram_bytes_per_s", &own), 0);
    cb__answer_text(json, "processors", info->processors, sizeof info->processors, &own);
    info->has_counters = cb__answer_truth(json, "has_counters", &own);
    info->placements_differ = cb__answer_truth(json, "placements_differ", &own);
    info->queued = cb__answer_truth(json, "queued", &own);
    info->overlaps = cb__answer_truth(json, "overlaps", &own);
    const cb__json *caches = cb__json_get(json, "caches");
    size_t n = cb__json_size(caches);
    if (!cb__json_is_array(caches) || n > CB__DEVICE_CACHES_MAX)
        cb__garbage(&own, "caches");
    for (size_t i = 0; i < n && own.status == CB_OK; i++) {
        const cb__json *v = cb__json_at(caches, i);
        if (cb__json_size(v) != 3)
            cb__garbage(&own, "caches");
        info->caches[info->ncaches++] = (cb__device_cache){
            (int)cb__answer_int_of(cb__json_at(v, 0), "caches", 1, 16, &own),
            (uint64_t)cb__answer_int_of(cb__json_at(v, 1), "caches", 1, BYTES_MAX, &own),
            (int)cb__answer_int_of(cb__json_at(v, 2), "caches", 1, 65536, &own)};
    }
    return give(err, &own);
}

/* ---- digest ---- */

void cb__digest_answer_write(uint64_t digest, cb__buf *line)
{
    cb__json_writer w;
    cb__answer_begin(&w, line, "digest");
    put_hex(&w, "digest", digest);
    cb__answer_end(&w, line);
}

cb_status cb__digest_answer_read(const cb__json *json, uint64_t *digest, cb_error *err)
{
    cb_error own = CB_ERROR_INIT;
    *digest = hex(json, "digest", &own);
    return give(err, &own);
}

/* ---- fill ---- */

void cb__fill_answer_write(const cb__fill_answer *a, cb__buf *line)
{
    cb__json_writer w;
    cb__answer_begin(&w, line, "fill");
    put_hex(&w, "digest", a->digest);
    cb__json_put_int(&w, "sampled_words", (int64_t)a->sampled_words);
    cb__json_put_int(&w, "distinct_words", (int64_t)a->distinct_words);
    cb__json_put_real(&w, "prepare_ns", a->prepare_ns);
    cb__json_key(&w, "checksums");
    cb__json_array(&w);
    for (int i = 0; i < a->sets; i++)
        cb__json_int(&w, a->checksums[i]);
    cb__json_end(&w);
    cb__answer_end(&w, line);
}

cb_status cb__fill_answer_read(const cb__json *json, cb__arena *arena, cb__fill_answer *a,
                               cb_error *err)
{
    cb_error own = CB_ERROR_INIT;
    const cb__json *sums = cb__json_get(json, "checksums");
    *a = (cb__fill_answer){.sets = (int)cb__json_size(sums)};
    a->sampled_words = (uint64_t)cb__answer_int(json, "sampled_words", 0, BYTES_MAX, &own);
    a->distinct_words =
        (uint64_t)cb__answer_int(json, "distinct_words", 0, (int64_t)a->sampled_words, &own);
    a->prepare_ns = cb__answer_real(json, "prepare_ns", &own);
    a->digest = hex(json, "digest", &own);
    if (!cb__json_is_array(sums))
        cb__garbage(&own, "checksums");
    a->checksums = cb__arena_array(arena, cb__json_size(sums) + 1, sizeof *a->checksums);
    if (!a->checksums)
        return cb_error_set(err, CB_NO_MEMORY, "fill: no memory");
    for (int i = 0; i < a->sets; i++)
        a->checksums[i] = (uint32_t)cb__answer_int_of(cb__json_at(sums, (size_t)i), "checksums", 0,
                                                      UINT32_MAX, &own);
    return give(err, &own);
}

/* ---- pick ---- */

void cb__pick_answer_write(const cb__pick_answer *a, cb__buf *line)
{
    cb__json_writer w;
    int64_t best[2] = {a->best[0], a->best[1]};
    cb__answer_begin(&w, line, "pick");
    cb__json_key(&w, "best");
    cb__json_ints(&w, best, 2);
    cb__json_key(&w, "kernel_ns");
    cb__json_numbers(&w, a->kernel_ns, 2);
    cb__json_key(&w, "twin_ns");
    cb__json_numbers(&w, a->twin_ns, 2);
    cb__answer_end(&w, line);
}

cb_status cb__pick_answer_read(const cb__json *json, cb__pick_answer *a, cb_error *err)
{
    cb_error own = CB_ERROR_INIT;
    const cb__json *best = array(json, "best", 2, &own);
    const cb__json *kernel = array(json, "kernel_ns", 2, &own);
    const cb__json *twin = array(json, "twin_ns", 2, &own);
    *a = (cb__pick_answer){0};
    for (size_t i = 0; i < 2; i++) {
        a->best[i] =
            (int)cb__answer_int_of(cb__json_at(best, i), "best", 0, CB__TWINS_MAX - 1, &own);
        a->kernel_ns[i] = cb__answer_real_of(cb__json_at(kernel, i), "kernel_ns", true, &own);
        a->twin_ns[i] = cb__answer_real_of(cb__json_at(twin, i), "twin_ns", true, &own);
    }
    return give(err, &own);
}

/* ---- round ---- */

static void write_mode(cb__json_writer *w, const cb__mode_answer *m)
{
    size_t n = (size_t)m->blocks.n;
    cb__json_object(w);
    cb__json_key(w, "kernel_ns");
    cb__json_numbers(w, m->blocks.kernel_ns, n);
    cb__json_key(w, "twin_ns");
    cb__json_numbers(w, m->blocks.twin_ns, n);
    cb__json_key(w, "host_ns");
    cb__json_numbers(w, m->blocks.host_ns, n);
    cb__json_key(w, "order");
    cb__json_ints(w, m->blocks.order, n);
    cb__json_put_int(w, "repeats", m->blocks.repeats);
    cb__json_put_int(w, "readings", m->blocks.readings);
    cb__json_put_real(w, "floor_ns", m->floor_ns);
    cb__json_put_text(w, "launch", m->launch.status == CB_OK ? NULL : m->launch.message);
    cb__json_put_int(w, "twin_set", m->twin_set);
    cb__json_put_int(w, "twin_sum", m->twin_sum);
    cb__json_key(w, "entries");
    cb__json_array(w);
    for (int i = 0; i < m->nentries; i++) {
        const cb__entry *e = &m->entries[i];
        int64_t entry[] = {e->phase, e->slot, e->set, (int64_t)e->offset};
        cb__json_ints(w, entry, 4);
    }
    cb__json_end(w);
    cb__json_end(w);
}

void cb__round_answer_write(const cb__round_answer *a, cb__buf *line)
{
    cb__json_writer w;
    cb__answer_begin(&w, line, "round");
    cb__json_key(&w, "modes");
    cb__json_array(&w);
    for (int i = 0; i < a->nmodes; i++)
        write_mode(&w, &a->modes[i]);
    cb__json_end(&w);
    if (a->has_proof) {
        double proof[] = {a->proof.kernel_k_ns, a->proof.kernel_2k_ns,   a->proof.twin_k_ns,
                          a->proof.twin_2k_ns,  a->asymptote.k_gb_per_s, a->asymptote.all_gb_per_s};
        cb__json_key(&w, "proof");
        cb__json_numbers(&w, proof, 6);
    }
    if (a->has_digest)
        put_hex(&w, "digest", a->digest);
    cb__json_put_int(&w, "resident_bytes", a->pages.known ? (int64_t)a->pages.resident_bytes : -1);
    cb__json_put_int(&w, "huge_bytes", (int64_t)a->pages.huge_bytes);
    cb__json_put_real(&w, "clock_hz", a->clock_hz);
    cb__json_put_text(&w, "telemetry", a->telemetry);
    cb__json_put_text(&w, "kept", a->kept);
    cb__json_put_text(&w, "unasked", a->unasked);
    cb__json_put_int(&w, "measured_ns", (int64_t)a->measured_ns);
    cb__json_put_int(&w, "elapsed_ns", (int64_t)a->elapsed_ns);
    cb__json_put_real(&w, "steal_s", a->steal_s);
    cb__json_put_real(&w, "wall_s", a->wall_s);
    cb__json_put_int(&w, "involuntary", a->involuntary);
    cb__answer_end(&w, line);
}

static double *numbers(const cb__json *json, const char *key, int n, bool may_be_null,
                       cb__arena *arena, cb_error *err)
{
    const cb__json *from = array(json, key, (size_t)n, err);
    double *values = cb__arena_array(arena, (size_t)n + 1, sizeof *values);
    for (int i = 0; i < n && values; i++)
        values[i] = cb__answer_real_of(cb__json_at(from, (size_t)i), key, may_be_null, err);
    return values;
}

static cb_status read_blocks(const cb__json *json, int blocks, cb__arena *arena, cb__blocks *out,
                             cb_error *err)
{
    out->n = (int)cb__json_size(cb__json_get(json, "kernel_ns"));
    if (out->n != blocks && out->n != 0)
        return cb__garbage(err, "the number of blocks");
    const cb__json *order = array(json, "order", (size_t)out->n, err);
    out->kernel_ns = numbers(json, "kernel_ns", out->n, false, arena, err);
    out->twin_ns = numbers(json, "twin_ns", out->n, true, arena, err);
    out->host_ns = numbers(json, "host_ns", out->n, true, arena, err);
    out->order = cb__arena_array(arena, (size_t)out->n + 1, sizeof *out->order);
    if (!out->kernel_ns || !out->twin_ns || !out->host_ns || !out->order)
        return cb_error_set(err, CB_NO_MEMORY, "round: no memory");
    for (int i = 0; i < out->n; i++) {
        out->order[i] = cb__answer_int_of(cb__json_at(order, (size_t)i), "order", 0, 1, err);
        if (!(out->kernel_ns[i] > 0) || out->twin_ns[i] == 0)
            return cb__garbage(err, "a time that is not positive");
    }
    out->repeats = (int)cb__answer_int(json, "repeats", 0, INT32_MAX, err);
    out->readings = (int)cb__answer_int(json, "readings", 0, INT32_MAX, err);
    return err->status;
}

static cb_status read_entries(const cb__json *json, const cb__work *work, const cb__plan *plan,
                              cb__arena *arena, cb__mode_answer *m, cb_error *err)
{
    if (!cb__json_is_array(json) || plan->slot_bytes > work->exchange_bytes)
        return cb__garbage(err, "entries");
    m->nentries = (int)cb__json_size(json);
    m->entries = cb__arena_array(arena, (size_t)m->nentries + 1, sizeof *m->entries);
    if (!m->entries)
        return cb_error_set(err, CB_NO_MEMORY, "round: no memory");
    const int64_t max[] = {CB__PHASES - 1, plan->slots - 1, plan->sets - 1,
                           (int64_t)(work->exchange_bytes - plan->slot_bytes)};
    for (int i = 0; i < m->nentries; i++) {
        const cb__json *e = cb__json_at(json, (size_t)i);
        int64_t v[4];
        if (cb__json_size(e) != 4)
            return cb__garbage(err, "an entry is not [phase, slot, set, offset]");
        for (size_t j = 0; j < 4; j++)
            v[j] = cb__answer_int_of(cb__json_at(e, j), "an output outside the exchange", 0, max[j],
                                     err);
        m->entries[i] = (cb__entry){(int)v[0], (int)v[1], (int)v[2], (uint64_t)v[3]};
    }
    return err->status;
}

static cb_status read_mode(const cb__json *json, const cb__work *work, const cb__plan *plan,
                           int blocks, cb__arena *arena, cb__mode_answer *m, cb_error *err)
{
    *m = (cb__mode_answer){0};
    const cb__json *launch = cb__json_get(json, "launch");
    cb_status status = read_blocks(json, blocks, arena, &m->blocks, err);
    if (status == CB_OK)
        status = read_entries(cb__json_get(json, "entries"), work, plan, arena, m, err);
    if (status != CB_OK)
        return status;
    if (cb__json_is_string(launch))
        cb_error_set(&m->launch, CB_WRONG, "%s", cb__json_text(launch, ""));
    else if (!cb__answer_is_null(launch))
        return cb__garbage(err, "launch");
    m->floor_ns = cb__answer_real(json, "floor_ns", err);
    m->twin_set = (int)cb__answer_int(json, "twin_set", -1, plan->sets - 1, err);
    m->twin_sum = (uint32_t)cb__answer_int(json, "twin_sum", 0, UINT32_MAX, err);
    if (cb__answer_is_null(launch) && m->blocks.n != blocks)
        return cb__garbage(err, "no blocks, and no failed launch either");
    return err->status;
}

static void read_proof(const cb__json *json, int pairs, cb__round_answer *a, cb_error *err)
{
    double v[6];
    array(json, "proof", 6, err);
    for (size_t i = 0; i < 6; i++)
        v[i] = cb__answer_real_of(cb__json_at(cb__json_get(json, "proof"), i), "proof", true, err);
    a->has_proof = true;
    a->proof = (cb__proof){v[0], v[1], v[2], v[3], pairs};
    a->asymptote = (cb__asymptote){v[4], v[5]};
}

/* A launch that took its device down leaves nothing to look at, and a device that keeps lines in
 * its caches says that instead. */
static bool has_excuse(const cb__round_answer *a)
{
    if (*a->kept)
        return true;
    for (int i = 0; i < a->nmodes; i++)
        if (a->modes[i].launch.status != CB_OK)
            return true;
    return false;
}

cb_status cb__round_answer_read(const cb__json *json, const cb__work *work, const cb__plan *plan,
                                cb__arena *arena, cb__round_answer *a, cb_error *err)
{
    cb_error own = CB_ERROR_INIT;
    *a = (cb__round_answer){0};
    const cb__json *modes = array(json, "modes", (size_t)work->nmodes, &own);
    for (int i = 0; i < work->nmodes && own.status == CB_OK; i++)
        read_mode(cb__json_at(modes, (size_t)i), work, plan, work->modes[i].blocks, arena,
                  &a->modes[i], &own);
    a->nmodes = work->nmodes;
    if (cb__json_get(json, "proof"))
        read_proof(json, work->proof_pairs, a, &own);
    int64_t resident = cb__answer_int(json, "resident_bytes", -1, INT64_MAX, &own);
    a->pages.known = resident >= 0;
    a->pages.resident_bytes = resident > 0 ? (size_t)resident : 0;
    a->pages.huge_bytes = (size_t)cb__answer_int(json, "huge_bytes", 0, INT64_MAX, &own);
    a->clock_hz = cb__answer_real(json, "clock_hz", &own);
    cb__answer_text(json, "telemetry", a->telemetry, sizeof a->telemetry, &own);
    cb__answer_text(json, "kept", a->kept, sizeof a->kept, &own);
    cb__answer_text(json, "unasked", a->unasked, sizeof a->unasked, &own);
    a->has_digest = cb__json_get(json, "digest") != NULL;
    if (a->has_digest || (work->digest && !has_excuse(a)))
        a->digest = hex(json, "digest", &own);
    a->measured_ns = (uint64_t)cb__answer_int(json, "measured_ns", 0, TIME_MAX_NS, &own);
    a->elapsed_ns = (uint64_t)cb__answer_int(json, "elapsed_ns", 0, TIME_MAX_NS, &own);
    a->steal_s = cb__answer_real(json, "steal_s", &own);
    a->wall_s = cb__answer_real(json, "wall_s", &own);
    a->involuntary = cb__answer_int(json, "involuntary", 0, BYTES_MAX, &own);
    return give(err, &own);
}

/* ---- sweep ---- */

enum { READING_NUMBERS = 8 }; /* the members of cb__reading, in order */

static void put_job(cb__json_writer *w, const cb__job_answer *job)
{
    if (!job->done) {
        cb__json_null(w);
        return;
    }
    cb__json_array(w);
    for (int i = 0; i < job->n; i++) {
        const cb__reading *r = &job->readings[i];
        double reading[READING_NUMBERS] = {r->value,   r->folded,  r->clock_hz, r->edge_gain,
                                           r->variant, r->covered, r->low,      r->high};
        cb__json_numbers(w, reading, READING_NUMBERS);
    }
    cb__json_end(w);
}

void cb__sweep_answer_write(const cb__sweep_answer *a, cb__buf *line)
{
    cb__json_writer w;
    cb__answer_begin(&w, line, "sweep");
    cb__json_key(&w, "jobs");
    cb__json_array(&w);
    for (int i = 0; i < a->njobs; i++)
        put_job(&w, &a->jobs[i]);
    cb__json_end(&w);
    cb__json_put_int(&w, "resident_bytes", a->pages.known ? (int64_t)a->pages.resident_bytes : -1);
    cb__json_put_int(&w, "huge_bytes", (int64_t)a->pages.huge_bytes);
    cb__json_put_int(&w, "sampled_words", (int64_t)a->sampled_words);
    cb__json_put_int(&w, "distinct_words", (int64_t)a->distinct_words);
    cb__json_put_real(&w, "steal_s", a->steal_s);
    cb__json_put_real(&w, "wall_s", a->wall_s);
    cb__json_put_int(&w, "involuntary", a->involuntary);
    cb__answer_end(&w, line);
}

static cb__reading reading_of(const cb__json *v, const cb__job *job, cb_error *err)
{
    if (cb__json_size(v) != READING_NUMBERS)
        cb__garbage(err, "jobs");
    return (cb__reading){
        cb__answer_real_of(cb__json_at(v, 0), "jobs", true, err),
        cb__answer_real_of(cb__json_at(v, 1), "jobs", true, err),
        cb__answer_real_of(cb__json_at(v, 2), "jobs", true, err),
        cb__answer_real_of(cb__json_at(v, 3), "jobs", true, err),
        (int)cb__answer_int_of(cb__json_at(v, 4), "jobs", -1, job->nvariants - 1, err),
        (int)cb__answer_int_of(cb__json_at(v, 5), "jobs", -1, 1, err),
        cb__answer_real_of(cb__json_at(v, 6), "jobs", true, err),
        cb__answer_real_of(cb__json_at(v, 7), "jobs", true, err)};
}

static cb_status read_job_answer(const cb__json *json, const cb__job *job, cb__arena *arena,
                                 cb__job_answer *a, cb_error *own)
{
    a->n = cb__job_readings(job);
    a->done = !cb__answer_is_null(json);
    a->readings = cb__arena_array(arena, (size_t)a->n + 1, sizeof *a->readings);
    if (!a->readings)
        return cb_error_set(own, CB_NO_MEMORY, "sweep: no memory");
    if (a->done && cb__json_size(json) != (size_t)a->n)
        return cb__garbage(own, "jobs");
    for (int i = 0; i < a->n && a->done && own->status == CB_OK; i++)
        a->readings[i] = reading_of(cb__json_at(json, (size_t)i), job, own);
    return own->status;
}

cb_status cb__sweep_answer_read(const cb__json *json, const cb__work *work, cb__arena *arena,
                                cb__sweep_answer *a, cb_error *err)
{
    cb_error own = CB_ERROR_INIT;
    memset(a, 0, sizeof *a);
    const cb__json *jobs = array(json, "jobs", (size_t)work->njobs, &own);
    a->njobs = own.status == CB_OK ? work->njobs : 0;
    for (int i = 0; i < a->njobs && own.status == CB_OK; i++)
        read_job_answer(cb__json_at(jobs, (size_t)i), &work->jobs[i], arena, &a->jobs[i], &own);
    int64_t resident = cb__answer_int(json, "resident_bytes", -1, INT64_MAX, &own);
    a->pages =
        (cb__pages){resident < 0 ? 0 : (size_t)resident,
                    (size_t)cb__answer_int(json, "huge_bytes", 0, INT64_MAX, &own), resident >= 0};
    a->sampled_words = (uint64_t)cb__answer_int(json, "sampled_words", 0, BYTES_MAX, &own);
    a->distinct_words =
        (uint64_t)cb__answer_int(json, "distinct_words", 0, (int64_t)a->sampled_words, &own);
    a->steal_s = cb__answer_real(json, "steal_s", &own);
    a->wall_s = cb__answer_real(json, "wall_s", &own);
    a->involuntary = cb__answer_int(json, "involuntary", 0, INT64_MAX, &own);
    return give(err, &own);
}
