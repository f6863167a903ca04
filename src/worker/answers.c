/* Answers. 64-bit digests travel as hexadecimal text: a JSON number loses bits in many readers. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/work.h"

static void begin(cb__json_writer *w, cb__buf *line, const char *type)
{
    cb__json_begin(w, line, false);
    cb__json_object(w);
    cb__json_key(w, "type");
    cb__json_string(w, type);
}

static void end(cb__json_writer *w, cb__buf *line)
{
    cb__json_end(w);
    cb__buf_puts(line, "\n");
}

static void put_text(cb__json_writer *w, const char *key, const char *value)
{
    cb__json_key(w, key);
    cb__json_string(w, value);
}

static void put_real(cb__json_writer *w, const char *key, double value)
{
    cb__json_key(w, key);
    cb__json_number(w, value);
}

static void put_int(cb__json_writer *w, const char *key, int64_t value)
{
    cb__json_key(w, key);
    cb__json_int(w, value);
}

static void put_hex(cb__json_writer *w, const char *key, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%016" PRIx64, value);
    put_text(w, key, text);
}

static cb_status garbage(cb_error *err, const char *what)
{
    return cb_error_set(err, CB_GARBAGE, "the worker's answer is not one: %s", what);
}

static double real(const cb__json *json, const char *key)
{
    return cb__json_real(cb__json_get(json, key), (double)NAN);
}

static int64_t integer(const cb__json *json, const char *key, int64_t otherwise)
{
    return cb__json_i64(cb__json_get(json, key), otherwise);
}

static cb_status hex(const cb__json *json, const char *key, uint64_t *value, cb_error *err)
{
    const char *text = cb__json_text(cb__json_get(json, key), "");
    char *rest = NULL;
    *value = strtoull(text, &rest, 16);
    return *text && !*rest ? CB_OK : garbage(err, key);
}

/* ---- describe ---- */

void cb__describe_answer_write(const cb__device_info *info, cb__buf *line)
{
    cb__json_writer w;
    begin(&w, line, "describe");
    put_text(&w, "name", info->name);
    put_text(&w, "identity", info->identity);
    put_text(&w, "clock", info->clock);
    put_int(&w, "threads", info->threads);
    put_int(&w, "llc_bytes", (int64_t)info->llc_bytes);
    put_int(&w, "memory_bytes", (int64_t)info->memory_bytes);
    put_real(&w, "peak_bytes_per_s", info->peak_bytes_per_s);
    put_real(&w, "peak_bytes_per_cycle", info->peak_bytes_per_cycle);
    put_real(&w, "peak_dram_bytes_per_s", info->peak_dram_bytes_per_s);
    cb__json_key(&w, "has_counters");
    cb__json_bool(&w, info->has_counters);
    end(&w, line);
}

cb_status cb__describe_answer_read(const cb__json *json, cb__device_info *info, cb_error *err)
{
    *info = (cb__device_info){0};
    snprintf(info->name, sizeof info->name, "%s", cb__json_text(cb__json_get(json, "name"), ""));
    snprintf(info->identity, sizeof info->identity, "%s",
             cb__json_text(cb__json_get(json, "identity"), ""));
    snprintf(info->clock, sizeof info->clock, "%s", cb__json_text(cb__json_get(json, "clock"), ""));
    int64_t threads = integer(json, "threads", 0), llc = integer(json, "llc_bytes", -1);
    int64_t memory = integer(json, "memory_bytes", -1);
    if (threads < 1 || threads > 65536 || llc < 0 || memory < 0)
        return garbage(err, "the device's threads, caches or memory");
    info->threads = (int)threads;
    info->llc_bytes = (uint64_t)llc;
    info->memory_bytes = (uint64_t)memory;
    info->peak_bytes_per_s = fmax(real(json, "peak_bytes_per_s"), 0);
    info->peak_bytes_per_cycle = fmax(real(json, "peak_bytes_per_cycle"), 0);
    info->peak_dram_bytes_per_s = fmax(real(json, "peak_dram_bytes_per_s"), 0);
    info->has_counters = cb__json_truth(cb__json_get(json, "has_counters"), false);
    return CB_OK;
}

/* ---- fill ---- */

void cb__fill_answer_write(const cb__fill_answer *a, cb__buf *line)
{
    cb__json_writer w;
    begin(&w, line, "fill");
    put_hex(&w, "digest", a->digest);
    put_int(&w, "sampled_words", (int64_t)a->sampled_words);
    put_int(&w, "distinct_words", (int64_t)a->distinct_words);
    put_real(&w, "prepare_ns", a->prepare_ns);
    cb__json_key(&w, "checksums");
    cb__json_array(&w);
    for (int i = 0; i < a->sets; i++)
        cb__json_int(&w, a->checksums[i]);
    cb__json_end(&w);
    end(&w, line);
}

cb_status cb__fill_answer_read(const cb__json *json, cb__arena *arena, cb__fill_answer *a,
                               cb_error *err)
{
    const cb__json *sums = cb__json_get(json, "checksums");
    *a = (cb__fill_answer){0};
    a->sampled_words = (uint64_t)integer(json, "sampled_words", 0);
    a->distinct_words = (uint64_t)integer(json, "distinct_words", 0);
    a->prepare_ns = real(json, "prepare_ns");
    a->sets = (int)cb__json_size(sums);
    a->checksums = cb__arena_array(arena, cb__json_size(sums) + 1, sizeof *a->checksums);
    if (!a->checksums)
        return cb_error_set(err, CB_NO_MEMORY, "fill: no memory");
    for (int i = 0; i < a->sets; i++)
        a->checksums[i] = (uint32_t)cb__json_i64(cb__json_at(sums, (size_t)i), 0);
    return hex(json, "digest", &a->digest, err);
}

/* ---- pick ---- */

void cb__pick_answer_write(const cb__pick_answer *a, cb__buf *line)
{
    cb__json_writer w;
    int64_t best[2] = {a->best[0], a->best[1]};
    begin(&w, line, "pick");
    cb__json_key(&w, "best");
    cb__json_ints(&w, best, 2);
    cb__json_key(&w, "kernel_ns");
    cb__json_numbers(&w, a->kernel_ns, 2);
    cb__json_key(&w, "twin_ns");
    cb__json_numbers(&w, a->twin_ns, 2);
    end(&w, line);
}

cb_status cb__pick_answer_read(const cb__json *json, cb__pick_answer *a, cb_error *err)
{
    *a = (cb__pick_answer){0};
    for (size_t i = 0; i < 2; i++) {
        int64_t best = cb__json_i64(cb__json_at(cb__json_get(json, "best"), i), -1);
        if (best < 0 || best >= CB__TWINS_MAX)
            return garbage(err, "best");
        a->best[i] = (int)best;
        a->kernel_ns[i] =
            cb__json_real(cb__json_at(cb__json_get(json, "kernel_ns"), i), (double)NAN);
        a->twin_ns[i] = cb__json_real(cb__json_at(cb__json_get(json, "twin_ns"), i), (double)NAN);
    }
    return CB_OK;
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
    put_int(w, "repeats", m->blocks.repeats);
    put_int(w, "readings", m->blocks.readings);
    put_real(w, "floor_ns", m->floor_ns);
    put_text(w, "launch", m->launch.status == CB_OK ? NULL : m->launch.message);
    put_int(w, "twin_set", m->twin_set);
    put_int(w, "twin_sum", m->twin_sum);
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
    begin(&w, line, "round");
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
    put_hex(&w, "digest", a->digest);
    put_int(&w, "resident_bytes", a->pages.known ? (int64_t)a->pages.resident_bytes : -1);
    put_int(&w, "huge_bytes", (int64_t)a->pages.huge_bytes);
    put_real(&w, "clock_hz", a->clock_hz);
    put_int(&w, "measured_ns", (int64_t)a->measured_ns);
    put_int(&w, "elapsed_ns", (int64_t)a->elapsed_ns);
    put_real(&w, "steal_s", a->steal_s);
    put_real(&w, "wall_s", a->wall_s);
    put_int(&w, "involuntary", a->involuntary);
    end(&w, line);
}

static double *numbers(const cb__json *array, int n, cb__arena *arena)
{
    double *values = cb__arena_array(arena, (size_t)n + 1, sizeof *values);
    for (int i = 0; i < n && values; i++)
        values[i] = cb__json_real(cb__json_at(array, (size_t)i), (double)NAN);
    return values;
}

static cb_status read_blocks(const cb__json *json, int blocks, cb__arena *arena, cb__blocks *out,
                             cb_error *err)
{
    const cb__json *kernel = cb__json_get(json, "kernel_ns");
    const cb__json *order = cb__json_get(json, "order");
    out->n = (int)cb__json_size(kernel);
    if (out->n != blocks && out->n != 0)
        return garbage(err, "the number of blocks");
    out->kernel_ns = numbers(kernel, out->n, arena);
    out->twin_ns = numbers(cb__json_get(json, "twin_ns"), out->n, arena);
    out->host_ns = numbers(cb__json_get(json, "host_ns"), out->n, arena);
    out->order = cb__arena_array(arena, (size_t)out->n + 1, sizeof *out->order);
    if (!out->kernel_ns || !out->twin_ns || !out->host_ns || !out->order)
        return cb_error_set(err, CB_NO_MEMORY, "round: no memory");
    for (int i = 0; i < out->n; i++) {
        out->order[i] = cb__json_i64(cb__json_at(order, (size_t)i), 0);
        if (!(out->kernel_ns[i] > 0) || !isfinite(out->kernel_ns[i]))
            return garbage(err, "a time that is not positive");
    }
    out->repeats = (int)integer(json, "repeats", 0);
    out->readings = (int)integer(json, "readings", 0);
    return CB_OK;
}

static cb_status read_entries(const cb__json *json, const cb__work *work, const cb__plan *plan,
                              cb__arena *arena, cb__mode_answer *m, cb_error *err)
{
    m->nentries = (int)cb__json_size(json);
    m->entries = cb__arena_array(arena, (size_t)m->nentries + 1, sizeof *m->entries);
    if (!m->entries)
        return cb_error_set(err, CB_NO_MEMORY, "round: no memory");
    for (int i = 0; i < m->nentries; i++) {
        const cb__json *e = cb__json_at(json, (size_t)i);
        int64_t v[4];
        for (size_t j = 0; j < 4; j++)
            v[j] = cb__json_i64(cb__json_at(e, j), -1);
        if (v[0] < 0 || v[0] > 2 || v[1] < 0 || v[1] >= plan->slots || v[2] < 0 ||
            v[2] >= plan->sets || v[3] < 0 ||
            (uint64_t)v[3] + plan->slot_bytes > work->exchange_bytes)
            return garbage(err, "an output outside the exchange");
        m->entries[i] = (cb__entry){(int)v[0], (int)v[1], (int)v[2], (uint64_t)v[3]};
    }
    return CB_OK;
}

static cb_status read_mode(const cb__json *json, const cb__work *work, const cb__plan *plan,
                           int blocks, cb__arena *arena, cb__mode_answer *m, cb_error *err)
{
    *m = (cb__mode_answer){0};
    cb_status status = read_blocks(json, blocks, arena, &m->blocks, err);
    if (status == CB_OK)
        status = read_entries(cb__json_get(json, "entries"), work, plan, arena, m, err);
    const char *launch = cb__json_text(cb__json_get(json, "launch"), NULL);
    if (launch)
        cb_error_set(&m->launch, CB_WRONG, "%s", launch);
    m->floor_ns = real(json, "floor_ns");
    m->twin_set = (int)integer(json, "twin_set", -1);
    m->twin_sum = (uint32_t)integer(json, "twin_sum", 0);
    if (status == CB_OK && m->twin_set >= plan->sets)
        return garbage(err, "twin_set");
    if (status == CB_OK && !launch && m->blocks.n != blocks)
        return garbage(err, "no blocks, and no failed launch either");
    return status;
}

cb_status cb__round_answer_read(const cb__json *json, const cb__work *work, const cb__plan *plan,
                                cb__arena *arena, cb__round_answer *a, cb_error *err)
{
    *a = (cb__round_answer){0};
    const cb__json *modes = cb__json_get(json, "modes");
    const cb__json *proof = cb__json_get(json, "proof");
    if (cb__json_size(modes) != (size_t)work->nmodes)
        return garbage(err, "the number of modes");
    cb_status status = hex(json, "digest", &a->digest, err);
    for (int i = 0; i < work->nmodes && status == CB_OK; i++)
        status = read_mode(cb__json_at(modes, (size_t)i), work, plan, work->modes[i].blocks, arena,
                           &a->modes[i], err);
    a->nmodes = work->nmodes;
    a->has_proof = cb__json_size(proof) == 6;
    if (a->has_proof) {
        double v[6];
        for (size_t i = 0; i < 6; i++)
            v[i] = cb__json_real(cb__json_at(proof, i), (double)NAN);
        a->proof = (cb__proof){v[0], v[1], v[2], v[3], work->proof_pairs};
        a->asymptote = (cb__asymptote){v[4], v[5]};
    }
    int64_t resident = integer(json, "resident_bytes", -1);
    a->pages.known = resident >= 0;
    a->pages.resident_bytes = resident > 0 ? (size_t)resident : 0;
    a->pages.huge_bytes = (size_t)integer(json, "huge_bytes", 0);
    a->clock_hz = real(json, "clock_hz");
    a->measured_ns = (uint64_t)integer(json, "measured_ns", 0);
    a->elapsed_ns = (uint64_t)integer(json, "elapsed_ns", 0);
    a->steal_s = real(json, "steal_s");
    a->wall_s = real(json, "wall_s");
    a->involuntary = integer(json, "involuntary", 0);
    return status;
}

/* ---- sweep ---- */

void cb__sweep_answer_write(const cb__sweep_answer *a, cb__buf *line)
{
    cb__json_writer w;
    begin(&w, line, "sweep");
    cb__json_key(&w, "gb_per_s");
    cb__json_numbers(&w, a->gb_per_s, (size_t)a->n);
    cb__json_key(&w, "folded");
    cb__json_numbers(&w, a->folded, (size_t)a->n);
    put_real(&w, "clock_hz", a->clock_hz);
    end(&w, line);
}

cb_status cb__sweep_answer_read(const cb__json *json, int n, cb__arena *arena, cb__sweep_answer *a,
                                cb_error *err)
{
    const cb__json *gb = cb__json_get(json, "gb_per_s");
    if (cb__json_size(gb) != (size_t)n)
        return garbage(err, "the number of sizes");
    a->n = n;
    a->gb_per_s = numbers(gb, n, arena);
    a->folded = numbers(cb__json_get(json, "folded"), n, arena);
    a->clock_hz = real(json, "clock_hz");
    if (!a->gb_per_s || !a->folded)
        return cb_error_set(err, CB_NO_MEMORY, "sweep: no memory");
    return CB_OK;
}
