/* Requests and answers: they come back as they were sent, and a hostile line is refused, never
 * believed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "worker/work.h"

static const double nan_value = (double)NAN;

static cb__json *parsed(const cb__buf *line)
{
    cb__json *json = NULL;
    cb_error err = CB_ERROR_INIT;
    assert_int_equal(line->text[line->size - 1], '\n');
    assert_ptr_equal(strchr(line->text, '\n'), line->text + line->size - 1); /* one line */
    if (cb__json_parse(line->text, line->size, "line", &json, &err) != CB_OK)
        fail_msg("%s", err.message);
    return json;
}

/* ---- a sample of each ---- */

static const cb__job jobs[] = {{.kind = CB__JOB_BANDWIDTH,
                                .what = "read",
                                .variants = {"twin_read/avx2:streams=1", "twin_read/portable"},
                                .nvariants = 2,
                                .bytes = {4096, 1 << 30},
                                .n = 2,
                                .visits = 3},
                               {.kind = CB__JOB_FLOOR, .what = "solo", .visits = 1}};

static const cb__work work = {.op = "round",
                              .device = "fake:llc=1MiB",
                              .threads = 2,
                              .module = "./a \"b\".so",
                              .variant = "toy@act=f32",
                              .shape = "8x64",
                              .cold = true,
                              .digest = true,
                              .ring_fd = 5,
                              .reference_fd = -1,
                              .exchange_fd = 7,
                              .exchange_bytes = 1 << 20,
                              .seed = INT64_MAX,
                              .elapsed_ns = 123456789,
                              .twins = {"twin_read/avx2", "twin_read"},
                              .ntwins = 2,
                              .modes = {{CB__COLD, CB__SOLO, 3}, {CB__WARM, CB__BATCHED, 3}},
                              .nmodes = 2,
                              .proof_pairs = 2,
                              .placement = CB__SCATTERED,
                              .pages = CB__PAGES_BASE,
                              .limit_ns = 1000,
                              .beyond_bytes = 1 << 26,
                              .jobs = jobs,
                              .njobs = 2};

static const cb__plan plan = {.k = 4, .sets = 8, .slots = 8, .slot_bytes = 8192};

enum { BLOCKS = 3 };
static double kernel_ns[BLOCKS] = {100.5, 101, 1e9}, twin_ns[BLOCKS] = {99, 98.25, 97};
static double host_ns[BLOCKS] = {110, 111, 112};
static int64_t order[BLOCKS] = {0, 1, 1};
static cb__entry entries[2] = {{0, 7, 7, 0}, {2, 0, 3, (1 << 20) - 8192}};

static cb__round_answer round_answer(void)
{
    cb__mode_answer mode = {.blocks = {.n = BLOCKS,
                                       .kernel_ns = kernel_ns,
                                       .twin_ns = twin_ns,
                                       .host_ns = host_ns,
                                       .order = order,
                                       .repeats = 4,
                                       .readings = 3},
                            .floor_ns = 55,
                            .entries = entries,
                            .nentries = 2,
                            .twin_set = 3,
                            .twin_sum = UINT32_MAX};
    cb__round_answer a = {.modes = {mode, mode},
                          .nmodes = 2,
                          .has_proof = true,
                          .proof = {1, 2, 3, 4, 2},
                          .asymptote = {40, 41},
                          .has_digest = true,
                          .digest = UINT64_MAX - 1,
                          .pages = {4096, 2048, true},
                          .clock_hz = 3e9,
                          .measured_ns = 1000,
                          .elapsed_ns = 2000,
                          .steal_s = 0.5,
                          .wall_s = 1.5,
                          .involuntary = 7};
    a.modes[1].twin_set = -1;
    return a;
}

static void write_round(cb__buf *line)
{
    cb__round_answer a = round_answer();
    cb__round_answer_write(&a, line);
}

static void write_fill(cb__buf *line)
{
    uint32_t sums[] = {0, 1, UINT32_MAX};
    cb__fill_answer a = {UINT64_C(0xfedcba9876543210), 4096, 4095, 1e6, sums, 3};
    cb__fill_answer_write(&a, line);
}

static void write_pick(cb__buf *line)
{
    cb__pick_answer a = {{1, CB__TWINS_MAX - 1}, {10, 20}, {11, 21}};
    cb__pick_answer_write(&a, line);
}

static void write_sweep(cb__buf *line)
{
    cb__reading readings[] = {{100, 1, 3e9, nan_value, 1, 1, 90, 120},
                              {20.5, 1.01, nan_value, 1.5, 0, 0, nan_value, nan_value}};
    cb__sweep_answer a = {.jobs = {{true, readings, 2}, {false, NULL, 1}},
                          .njobs = 2,
                          .pages = {1 << 21, 1 << 20, true},
                          .sampled_words = 4096,
                          .distinct_words = 4095,
                          .steal_s = 0.25,
                          .wall_s = 1.5,
                          .involuntary = 7};
    cb__sweep_answer_write(&a, line);
}

static void write_describe(cb__buf *line)
{
    cb__device_info info = {.name = "A name",
                            .identity = "cpu-1",
                            .clock = "CLOCK",
                            .code = "NVRTC 13.0, sm_90a",
                            .threads = 16,
                            .llc_bytes = 1 << 25,
                            .memory_bytes = UINT64_C(1) << 40,
                            .peak_bytes_per_s = 1e11,
                            .peak_bytes_per_cycle = 64,
                            .peak_dram_bytes_per_s = 5e10,
                            .has_counters = true,
                            .placements_differ = true,
                            .caches = {{1, 32768, 2}, {3, 1 << 25, 1}},
                            .ncaches = 2};
    cb__describe_answer_write(&info, line);
}

static void write_work(cb__buf *line)
{
    cb__work_write(&work, line);
}

/* ---- round trips ---- */

static void a_request_comes_back(void **state)
{
    (void)state;
    cb__buf line = CB__BUF_INIT;
    cb_error err = CB_ERROR_INIT;
    cb__arena arena = CB__ARENA_INIT;
    cb__work back;
    write_work(&line);
    cb__json *json = parsed(&line);
    if (cb__work_read(json, &arena, &back, &err) != CB_OK)
        fail_msg("%s", err.message);
    assert_string_equal(back.op, work.op);
    assert_string_equal(back.device, work.device);
    assert_string_equal(back.module, work.module);
    assert_string_equal(back.variant, work.variant);
    assert_string_equal(back.shape, work.shape);
    assert_true(back.cold);
    assert_int_equal(back.threads, 2);
    assert_int_equal(back.ring_fd, 5);
    assert_int_equal(back.reference_fd, -1);
    assert_int_equal(back.exchange_fd, 7);
    assert_int_equal(back.exchange_bytes, work.exchange_bytes);
    assert_int_equal(back.seed, work.seed);
    assert_int_equal(back.elapsed_ns, work.elapsed_ns);
    assert_int_equal(back.ntwins, 2);
    assert_string_equal(back.twins[0], work.twins[0]);
    assert_int_equal(back.nmodes, 2);
    assert_memory_equal(back.modes, work.modes, sizeof work.modes);
    assert_int_equal(back.proof_pairs, 2);
    assert_int_equal(back.placement, CB__SCATTERED);
    assert_int_equal(back.pages, CB__PAGES_BASE);
    assert_int_equal(back.limit_ns, 1000);
    assert_int_equal(back.beyond_bytes, 1 << 26);
    assert_int_equal(back.njobs, 2);
    assert_int_equal(back.jobs[0].kind, CB__JOB_BANDWIDTH);
    assert_string_equal(back.jobs[0].what, "read");
    assert_int_equal(back.jobs[0].visits, 3);
    assert_int_equal(back.jobs[0].nvariants, 2);
    assert_string_equal(back.jobs[0].variants[1], "twin_read/portable");
    assert_int_equal(back.jobs[0].n, 2);
    assert_int_equal(back.jobs[0].bytes[1], 1 << 30);
    assert_int_equal(back.jobs[1].kind, CB__JOB_FLOOR);
    assert_int_equal(back.jobs[1].n + back.jobs[1].nvariants, 0);
    cb__arena_fini(&arena);
    cb__json_free(json);
    cb__buf_fini(&line);
}

static void a_request_without_texts_comes_back(void **state)
{
    (void)state;
    cb__buf line = CB__BUF_INIT;
    cb_error err = CB_ERROR_INIT;
    cb__work back, small = {.op = "describe", .device = "cpu", .ring_fd = -1};
    cb__work_write(&small, &line);
    cb__json *json = parsed(&line);
    cb__arena arena = CB__ARENA_INIT;
    assert_int_equal(cb__work_read(json, &arena, &back, &err), CB_OK);
    cb__arena_fini(&arena);
    assert_null(back.module);
    assert_null(back.variant);
    assert_null(back.shape);
    assert_int_equal(back.nmodes + back.ntwins + back.njobs, 0);
    cb__json_free(json);
    cb__buf_fini(&line);
}

static void a_round_comes_back(void **state)
{
    (void)state;
    cb__buf line = CB__BUF_INIT;
    cb__arena arena = CB__ARENA_INIT;
    cb_error err = CB_ERROR_INIT;
    cb__round_answer sent = round_answer(), back;
    write_round(&line);
    cb__json *json = parsed(&line);
    if (cb__round_answer_read(json, &work, &plan, &arena, &back, &err) != CB_OK)
        fail_msg("%s", err.message);
    assert_int_equal(back.nmodes, 2);
    for (int i = 0; i < 2; i++) {
        const cb__mode_answer *m = &back.modes[i];
        assert_int_equal(m->blocks.n, BLOCKS);
        assert_memory_equal(m->blocks.kernel_ns, kernel_ns, sizeof kernel_ns);
        assert_memory_equal(m->blocks.twin_ns, twin_ns, sizeof twin_ns);
        assert_memory_equal(m->blocks.host_ns, host_ns, sizeof host_ns);
        assert_memory_equal(m->blocks.order, order, sizeof order);
        assert_int_equal(m->blocks.repeats, 4);
        assert_int_equal(m->nentries, 2);
        for (int j = 0; j < m->nentries; j++) { /* member by member: there are bytes between them */
            assert_int_equal(m->entries[j].phase, entries[j].phase);
            assert_int_equal(m->entries[j].slot, entries[j].slot);
            assert_int_equal(m->entries[j].set, entries[j].set);
            assert_int_equal(m->entries[j].offset, entries[j].offset);
        }
        assert_int_equal(m->twin_set, i ? -1 : 3);
        assert_int_equal(m->twin_sum, UINT32_MAX);
        assert_int_equal(m->launch.status, CB_OK);
    }
    assert_true(back.has_proof);
    assert_memory_equal(&back.proof, &sent.proof, sizeof sent.proof);
    assert_memory_equal(&back.asymptote, &sent.asymptote, sizeof sent.asymptote);
    assert_int_equal(back.digest, sent.digest);
    assert_true(back.pages.known);
    assert_int_equal(back.pages.resident_bytes, 4096);
    assert_int_equal(back.measured_ns, 1000);
    assert_int_equal(back.elapsed_ns, 2000);
    assert_true(back.steal_s == 0.5 && back.wall_s == 1.5 && back.clock_hz == 3e9);
    assert_int_equal(back.involuntary, 7);
    cb__json_free(json);
    cb__buf_fini(&line);
    cb__arena_fini(&arena);
}

static void a_round_without_twin_proof_or_pages_comes_back(void **state)
{
    (void)state;
    cb__buf line = CB__BUF_INIT;
    cb__arena arena = CB__ARENA_INIT;
    cb_error err = CB_ERROR_INIT;
    cb__round_answer sent = round_answer(), back;
    double none[BLOCKS] = {nan_value, nan_value, nan_value};
    sent.modes[0].blocks.twin_ns = none;
    sent.modes[1] = (cb__mode_answer){.twin_set = -1};
    cb_error_set(&sent.modes[1].launch, CB_WRONG, "a launch failed with code 3");
    sent.has_proof = false;
    sent.pages.known = false;
    sent.steal_s = nan_value;
    cb__round_answer_write(&sent, &line);
    cb__json *json = parsed(&line);
    if (cb__round_answer_read(json, &work, &plan, &arena, &back, &err) != CB_OK)
        fail_msg("%s", err.message);
    assert_true(isnan(back.modes[0].blocks.twin_ns[2]));
    assert_int_equal(back.modes[1].blocks.n, 0);
    assert_int_equal(back.modes[1].launch.status, CB_WRONG);
    assert_string_equal(back.modes[1].launch.message, "a launch failed with code 3");
    assert_false(back.has_proof);
    assert_false(back.pages.known);
    assert_true(isnan(back.steal_s));
    cb__json_free(json);
    cb__buf_fini(&line);
    cb__arena_fini(&arena);
}

static void the_other_answers_come_back(void **state)
{
    (void)state;
    cb__buf line = CB__BUF_INIT;
    cb__arena arena = CB__ARENA_INIT;
    cb_error err = CB_ERROR_INIT;
    cb__fill_answer fill;
    write_fill(&line);
    cb__json *json = parsed(&line);
    assert_int_equal(cb__fill_answer_read(json, &arena, &fill, &err), CB_OK);
    assert_int_equal(fill.digest, UINT64_C(0xfedcba9876543210));
    assert_int_equal(fill.sets, 3);
    assert_int_equal(fill.checksums[2], UINT32_MAX);
    assert_int_equal(fill.distinct_words, 4095);
    cb__json_free(json);
    cb__buf_clear(&line);
    cb__pick_answer pick;
    write_pick(&line);
    json = parsed(&line);
    assert_int_equal(cb__pick_answer_read(json, &pick, &err), CB_OK);
    assert_int_equal(pick.best[1], CB__TWINS_MAX - 1);
    assert_true(pick.twin_ns[1] == 21);
    cb__json_free(json);
    cb__buf_clear(&line);
    cb__sweep_answer sweep;
    write_sweep(&line);
    json = parsed(&line);
    assert_int_equal(cb__sweep_answer_read(json, &work, &arena, &sweep, &err), CB_OK);
    assert_true(sweep.jobs[0].done && !sweep.jobs[1].done);
    const cb__reading *r = sweep.jobs[0].readings;
    assert_true(r[1].value == 20.5 && r[1].folded == 1.01 && r[1].edge_gain == 1.5);
    assert_true(r[0].clock_hz == 3e9 && isnan(r[1].clock_hz) && isnan(r[0].edge_gain));
    assert_true(r[0].variant == 1 && r[0].covered == 1 && r[1].covered == 0);
    assert_true(r[0].low >= 90 && r[0].low <= 90 && r[0].high >= 120 && r[0].high <= 120);
    assert_true(isnan(r[1].low) && isnan(r[1].high));
    assert_true(sweep.pages.known && sweep.pages.huge_bytes == 1 << 20);
    assert_int_equal(sweep.distinct_words, 4095);
    assert_true(sweep.steal_s == 0.25 && sweep.wall_s == 1.5 && sweep.involuntary == 7);
    cb__work other = work;
    other.njobs = 1;
    assert_int_equal(cb__sweep_answer_read(json, &other, &arena, &sweep, &err), CB_GARBAGE);
    cb__json_free(json);
    cb_error_clear(&err);
    cb__buf_clear(&line);
    cb__device_info info;
    write_describe(&line);
    json = parsed(&line);
    assert_int_equal(cb__describe_answer_read(json, &info, &err), CB_OK);
    assert_string_equal(info.identity, "cpu-1");
    assert_string_equal(info.code, "NVRTC 13.0, sm_90a");
    assert_int_equal(info.threads, 16);
    assert_int_equal(info.memory_bytes, UINT64_C(1) << 40);
    assert_true(info.has_counters);
    assert_true(info.peak_bytes_per_s == 1e11 && info.peak_bytes_per_cycle == 64 &&
                info.peak_dram_bytes_per_s == 5e10);
    cb__json_free(json);
    cb__buf_fini(&line);
    cb__arena_fini(&arena);
}

/* ---- hostile lines ---- */

typedef cb_status (*reader)(const cb__json *json);

static cb_status read_work(const cb__json *json)
{
    cb__arena arena = CB__ARENA_INIT;
    cb__work back;
    cb_error err = CB_ERROR_INIT;
    cb_status status = cb__work_read(json, &arena, &back, &err);
    cb__arena_fini(&arena);
    return status;
}

static cb_status read_round(const cb__json *json)
{
    cb__arena arena = CB__ARENA_INIT;
    cb__round_answer back;
    cb_error err = CB_ERROR_INIT;
    cb_status status = cb__round_answer_read(json, &work, &plan, &arena, &back, &err);
    assert_int_equal(status, err.status);
    if (status == CB_OK)
        for (int i = 0; i < back.nmodes; i++)
            for (int j = 0; j < back.modes[i].nentries; j++) {
                const cb__entry *e = &back.modes[i].entries[j];
                assert_true(e->offset + plan.slot_bytes <= work.exchange_bytes);
                assert_true(e->slot < plan.slots && e->set < plan.sets && e->phase < 3);
            }
    cb__arena_fini(&arena);
    return status;
}

static cb_status read_fill(const cb__json *json)
{
    cb__arena arena = CB__ARENA_INIT;
    cb__fill_answer back;
    cb_error err = CB_ERROR_INIT;
    cb_status status = cb__fill_answer_read(json, &arena, &back, &err);
    cb__arena_fini(&arena);
    return status;
}

static cb_status read_pick(const cb__json *json)
{
    cb__pick_answer back;
    cb_error err = CB_ERROR_INIT;
    return cb__pick_answer_read(json, &back, &err);
}

static cb_status read_sweep(const cb__json *json)
{
    cb__arena arena = CB__ARENA_INIT;
    cb__sweep_answer back;
    cb_error err = CB_ERROR_INIT;
    cb_status status = cb__sweep_answer_read(json, &work, &arena, &back, &err);
    cb__arena_fini(&arena);
    return status;
}

static cb_status read_describe(const cb__json *json)
{
    cb__device_info back;
    return cb__describe_answer_read(json, &back, NULL);
}

static const struct {
    const char *name;
    void (*write)(cb__buf *line);
    reader read;
    cb_status refused;
    const char *optional; /* members that may be missing or null */
} kinds[] = {
    {"request", write_work, read_work, CB_USAGE,
     "cold digest module variant shape twins modes jobs variants bytes"},
    {"round", write_round, read_round, CB_GARBAGE, "proof digest type"},
    {"fill", write_fill, read_fill, CB_GARBAGE, "type"},
    {"pick", write_pick, read_pick, CB_GARBAGE, "type"},
    {"sweep", write_sweep, read_sweep, CB_GARBAGE, "type"},
    {"describe", write_describe, read_describe, CB_GARBAGE, "type"},
};

static const char *const never[] = {
    "{}", "[1,2,3,4,5,6,7,8,9]", "[[[]]]", "-9223372036854775808", "-2.5", "-1e300"};
static const char *const often[] = {"null",   "true", "\"\"", "\"text\"", "9223372036854775807",
                                    "1e300",  "0",    "-1",   "2.5",      "[]",
                                    "[null]", "[-1]"};

/* One member of `root` or of an object within it, replaced: refused where it must be, never a
 * crash. */
static void replace_each(json_t *root, json_t *object, size_t kind)
{
    char names[32][64];
    size_t n = 0;
    const char *key;
    json_t *member;
    json_object_foreach(object, key, member) snprintf(names[n++], sizeof names[0], "%s", key);
    for (size_t m = 0; m < n; m++) {
        const char *name = names[m];
        json_t *kept = json_deep_copy(json_object_get(object, name));
        bool optional = strstr(kinds[kind].optional, name) != NULL;
        json_object_del(object, name);
        cb_status status = kinds[kind].read(root);
        if (status != kinds[kind].refused && !optional)
            fail_msg("%s without %s: %s", kinds[kind].name, name, cb_status_name(status));
        for (size_t i = 0; i < sizeof never / sizeof *never; i++) {
            json_object_set_new(object, name, json_loads(never[i], JSON_DECODE_ANY, NULL));
            status = kinds[kind].read(root);
            bool may = strcmp(name, "type") == 0 || strcmp(name, "checksums") == 0 ||
                       strcmp(name, "cold") == 0 || (kind == 0 && strcmp(name, "digest") == 0) ||
                       (kind == 0 && (json_is_array(kept) || strcmp(name, "seed") == 0));
            if (status != kinds[kind].refused && !may)
                fail_msg("%s with %s %s: %s", kinds[kind].name, name, never[i],
                         cb_status_name(status));
        }
        for (size_t i = 0; i < sizeof often / sizeof *often; i++) {
            json_object_set_new(object, name, json_loads(often[i], JSON_DECODE_ANY, NULL));
            status = kinds[kind].read(root);
            assert_true(status == CB_OK || status == kinds[kind].refused);
        }
        json_object_set_new(object, name, kept);
    }
}

/* One element of every array. */
static void replace_elements(json_t *root, json_t *array, size_t kind)
{
    for (size_t at = 0; at < json_array_size(array); at++) {
        json_t *kept = json_deep_copy(json_array_get(array, at));
        for (size_t i = 0; i < sizeof never / sizeof *never; i++) {
            json_array_set_new(array, at, json_loads(never[i], JSON_DECODE_ANY, NULL));
            cb_status status = kinds[kind].read(root);
            if (status != kinds[kind].refused)
                fail_msg("%s with element %zu %s: %s", kinds[kind].name, at, never[i],
                         cb_status_name(status));
        }
        for (size_t i = 0; i < sizeof often / sizeof *often; i++) {
            json_array_set_new(array, at, json_loads(often[i], JSON_DECODE_ANY, NULL));
            cb_status status = kinds[kind].read(root);
            assert_true(status == CB_OK || status == kinds[kind].refused);
        }
        json_array_set_new(array, at, kept);
    }
    json_t *last = json_deep_copy(json_array_get(array, json_array_size(array) - 1));
    json_array_remove(array, json_array_size(array) - 1);
    cb_status status = kinds[kind].read(root);
    assert_true(status == CB_OK || status == kinds[kind].refused);
    json_array_append_new(array, last);
}

static void walk(json_t *root, json_t *at, size_t kind)
{
    if (json_is_object(at)) {
        const char *key;
        json_t *member;
        replace_each(root, at, kind);
        json_object_foreach(at, key, member) walk(root, member, kind);
    } else if (json_is_array(at) && json_array_size(at)) {
        replace_elements(root, at, kind);
        for (size_t i = 0; i < json_array_size(at); i++)
            walk(root, json_array_get(at, i), kind);
    }
}

static void every_member_is_looked_at(void **state)
{
    (void)state;
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
        cb__buf line = CB__BUF_INIT;
        kinds[kind].write(&line);
        json_t *root = json_loads(line.text, JSON_DECODE_ANY, NULL);
        assert_non_null(root);
        assert_int_equal(kinds[kind].read(root), CB_OK);
        walk(root, root, kind);
        assert_int_equal(kinds[kind].read(root), CB_OK); /* every one was put back */
        json_decref(root);
        cb__buf_fini(&line);
        static const char *const others[] = {"null", "[]", "{}", "1", "\"round\"", "true"};
        for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
            root = json_loads(others[i], JSON_DECODE_ANY, NULL);
            assert_int_equal(kinds[kind].read(root), kinds[kind].refused);
            json_decref(root);
        }
    }
}

/* ---- what does not fit the request ---- */

static void what_does_not_fit_the_request_is_garbage(void **state)
{
    (void)state;
    static const struct {
        const char *path, *value; /* of the first mode */
    } table[] = {
        {"kernel_ns", "[1,2]"},
        {"kernel_ns", "[1,2,3,4]"},
        {"kernel_ns", "[1,0,3]"},
        {"kernel_ns", "[1,null,3]"},
        {"kernel_ns", "[]"},
        {"twin_ns", "[1,2]"},
        {"twin_ns", "[1,0,2]"},
        {"order", "[0,2,0]"},
        {"order", "[0,1]"},
        {"entries", "[[3,0,0,0]]"},
        {"entries", "[[0,8,0,0]]"},
        {"entries", "[[0,0,8,0]]"},
        {"entries", "[[0,0,0,1040385]]"},
        {"entries", "[[0,0,0]]"},
        {"entries", "[0]"},
        {"entries", "[[0,0,0,9223372036854775807]]"},
        {"twin_set", "8"},
        {"twin_set", "4294967296"},
        {"twin_set", "-2"},
        {"twin_sum", "4294967296"},
        {"twin_sum", "-1"},
        {"repeats", "4294967296"},
        {"launch", "7"},
        {"floor_ns", "-1"},
    };
    cb__buf line = CB__BUF_INIT;
    write_round(&line);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        json_t *root = json_loads(line.text, 0, NULL);
        json_t *mode = json_array_get(json_object_get(root, "modes"), 0);
        json_object_set_new(mode, table[i].path, json_loads(table[i].value, JSON_DECODE_ANY, NULL));
        if (read_round(root) != CB_GARBAGE)
            fail_msg("%s = %s is believed", table[i].path, table[i].value);
        json_decref(root);
    }
    static const char *const digests[] = {
        "", "0", "-000000000000001", "00000000000000000", "000000000000000g", " 00000000000000a"};
    for (size_t i = 0; i < sizeof digests / sizeof *digests; i++) {
        json_t *root = json_loads(line.text, 0, NULL);
        json_object_set_new(root, "digest", json_string(digests[i]));
        assert_int_equal(read_round(root), CB_GARBAGE);
        json_decref(root);
    }
    /* An exchange smaller than a slot has room for none. */
    cb__arena arena = CB__ARENA_INIT;
    cb__work small = work;
    cb__round_answer back;
    cb_error err = CB_ERROR_INIT;
    json_t *root = json_loads(line.text, 0, NULL);
    small.exchange_bytes = 100;
    assert_int_equal(cb__round_answer_read(root, &small, &plan, &arena, &back, &err), CB_GARBAGE);
    json_decref(root);
    cb__arena_fini(&arena);
    cb__buf_fini(&line);
}

static void too_much_is_refused(void **state)
{
    (void)state;
    static const char *const keys[] = {"twins", "modes", "jobs"};
    for (size_t i = 0; i < 3; i++) {
        cb__buf line = CB__BUF_INIT;
        write_work(&line);
        json_t *root = json_loads(line.text, 0, NULL), *many = json_array();
        json_t *one = json_array_get(json_object_get(root, keys[i]), 0);
        for (int n = 0; n < 100; n++)
            json_array_append(many, one);
        json_object_set_new(root, keys[i], many);
        assert_int_equal(read_work(root), CB_USAGE);
        json_decref(root);
        cb__buf_fini(&line);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_comes_back),
        cmocka_unit_test(a_request_without_texts_comes_back),
        cmocka_unit_test(a_round_comes_back),
        cmocka_unit_test(a_round_without_twin_proof_or_pages_comes_back),
        cmocka_unit_test(the_other_answers_come_back),
        cmocka_unit_test(every_member_is_looked_at),
        cmocka_unit_test(what_does_not_fit_the_request_is_garbage),
        cmocka_unit_test(too_much_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
