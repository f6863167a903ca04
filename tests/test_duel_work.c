/* A comparison's requests and answers: what is written is read back, and what is none is garbage.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "worker/work.h"

static const cb__plan plan = {.sets = 4, .slots = 4, .batch = 2, .slot_bytes = 8192};

static cb__work example(void)
{
    cb__work w = {.op = "duel",
                  .device = "cpu",
                  .threads = 2,
                  .shape = "64",
                  .cold = true,
                  .ring_fd = -1,
                  .reference_fd = -1,
                  .exchange_fd = 9,
                  .exchange_bytes = CB__EXCHANGE_HEAD + 16 * 8192,
                  .seed = 77,
                  .limit_ns = 123456789,
                  .nmodes = 1,
                  .modes = {{CB__COLD, CB__BATCHED, 2}},
                  .known = {"1 0", 3}};
    w.duel = (cb__duel_work){.narms = 2,
                             .arms = {{"k:t=1", "k", -1, 5, true, 0xfedcba9876543210u, 17},
                                      {"k:t=2", "./mine.so", 7, 6, false, 0, 18}},
                             .layout = {8, 2, 4096, 8192, 64},
                             .arm = 1,
                             .head = true,
                             .timed = true,
                             .floor = true,
                             .look = true,
                             .poison_seed = UINT64_MAX,
                             .blocks_min = 10,
                             .batch = 2,
                             .repeats = 5,
                             .readings = 3};
    return w;
}

static void a_request_is_read_back(void **state)
{
    (void)state;
    cb__work written = example(), read;
    cb__buf line = CB__BUF_INIT;
    cb__arena arena = CB__ARENA_INIT;
    cb__json *json = NULL;
    cb_error err = CB_ERROR_INIT;
    cb__work_write(&written, &line);
    assert_int_equal(cb__json_parse(line.text, line.size, "line", &json, &err), CB_OK);
    if (cb__work_read(json, &arena, &read, &err) != CB_OK)
        fail_msg("%s", err.message);
    assert_string_equal(read.known.processors, "1 0");
    assert_int_equal(read.known.isa, 3);
    assert_true(read.limit_ns == written.limit_ns);
    const cb__duel_work *a = &written.duel, *b = &read.duel;
    assert_int_equal(b->narms, a->narms);
    for (int i = 0; i < a->narms; i++) {
        assert_string_equal(b->arms[i].variant, a->arms[i].variant);
        assert_string_equal(b->arms[i].module, a->arms[i].module);
        assert_int_equal(b->arms[i].module_fd, a->arms[i].module_fd);
        assert_int_equal(b->arms[i].ring_fd, a->arms[i].ring_fd);
        assert_int_equal(b->arms[i].expects, a->arms[i].expects);
        assert_true(b->arms[i].expected == a->arms[i].expected);
        assert_true(b->arms[i].ring_digest == a->arms[i].ring_digest);
    }
    assert_memory_equal(&b->layout, &a->layout, sizeof a->layout);
    assert_int_equal(b->arm, a->arm);
    assert_true(b->head && b->timed && b->floor && b->look);
    assert_true(b->poison_seed == a->poison_seed);
    assert_int_equal(b->blocks_min, a->blocks_min);
    assert_int_equal(b->batch, a->batch);
    assert_int_equal(b->repeats, a->repeats);
    assert_int_equal(b->readings, a->readings);
    cb__json_free(json);
    cb__arena_fini(&arena);
    cb__buf_fini(&line);
}

/* The text of `line` with the first `from` replaced by `to`. */
static void replace(const char *line, const char *from, const char *to, cb__buf *out)
{
    const char *at = strstr(line, from);
    if (!at)
        fail_msg("no %s in %s", from, line);
    cb__buf_append(out, line, (size_t)(at - line));
    cb__buf_puts(out, to);
    cb__buf_puts(out, at + strlen(from));
}

static const struct {
    const char *from, *to;
} bad_requests[] = {
    {"\"arms\":[{", "\"arms\":[7,{"},
    {"\"module_fd\":-1", "\"module_fd\":-2"},
    {"\"expected\":\"fedcba9876543210\"", "\"expected\":\"fedcba987654321\""},
    {"\"ring_digest\":\"0000000000000011\"", "\"ring_digest\":17"},
    {"\"layout\":[8,2,", "\"layout\":[0,2,"},
    {"\"layout\":[8,2,4096,8192,64]", "\"layout\":[8,2,4096,8192]"},
    {"\"arm\":1", "\"arm\":2"},
    {"\"readings\":3", "\"readings\":2"},
    {"\"batch\":2", "\"batch\":257"},
    {"\"isa\":3", "\"isa\":-1"},
};

static void a_bad_request_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad_requests / sizeof *bad_requests; i++) {
        cb__work written = example(), read;
        cb__buf line = CB__BUF_INIT, bad = CB__BUF_INIT;
        cb__arena arena = CB__ARENA_INIT;
        cb__json *json = NULL;
        cb_error err = CB_ERROR_INIT;
        cb__work_write(&written, &line);
        replace(cb__buf_text(&line), bad_requests[i].from, bad_requests[i].to, &bad);
        assert_int_equal(cb__json_parse(bad.text, bad.size, "line", &json, &err), CB_OK);
        if (cb__work_read(json, &arena, &read, &err) != CB_USAGE)
            fail_msg("%s was read", bad_requests[i].to);
        cb__json_free(json);
        cb__arena_fini(&arena);
        cb__buf_fini(&line);
        cb__buf_fini(&bad);
    }
}

static void answer_line(cb__buf *line)
{
    static double ns[] = {10, 11, 12.5, 13};
    static int64_t order[] = {0, 1, 1, 0}, involuntary[] = {0, 3};
    static cb__duel_entry entries[] = {{1, 0, 1, 1, 8192}};
    cb__duel_answer a = {.clock_hz = 3e9, .steal_s = 0, .wall_s = 0.5, .involuntary = 4};
    a.result =
        (cb__duel_result){.arms = {{.digests = {1, 1, 1}}, {.digests = {2, 2, 2}, .edits = true}},
                          .entries = entries,
                          .nentries = 1,
                          .blocks = 2,
                          .ns = ns,
                          .order = order,
                          .involuntary = involuntary,
                          .gap_ns = 30,
                          .batch = 2,
                          .repeats = 5,
                          .readings = 3,
                          .floor_ns = (double)NAN,
                          .measured_ns = 1000,
                          .elapsed_ns = 2000};
    cb__duel_answer_write(&a, 2, line);
}

static cb_status read_answer(const cb__buf *line, cb__arena *arena, cb__duel_answer *a,
                             cb_error *err)
{
    cb__work work = example();
    cb__json *json = NULL;
    assert_int_equal(cb__json_parse(line->text, line->size, "line", &json, err), CB_OK);
    cb_status status = cb__duel_answer_read(json, &work, &plan, arena, a, err);
    cb__json_free(json);
    return status;
}

static void an_answer_is_read_back(void **state)
{
    (void)state;
    cb__buf line = CB__BUF_INIT;
    cb__arena arena = CB__ARENA_INIT;
    cb__duel_answer a;
    cb_error err = CB_ERROR_INIT;
    answer_line(&line);
    if (read_answer(&line, &arena, &a, &err) != CB_OK)
        fail_msg("%s", err.message);
    assert_int_equal(a.result.blocks, 2);
    assert_true(a.result.ns[2] == 12.5);
    assert_int_equal(a.result.order[3], 0);
    assert_int_equal(a.result.involuntary[1], 3);
    assert_int_equal(a.result.nentries, 1);
    assert_int_equal(a.result.entries[0].offset, 8192);
    assert_true(a.result.arms[1].digests[2] == 2);
    assert_true(a.result.arms[1].edits && !a.result.arms[0].edits);
    assert_true(isnan(a.result.floor_ns));
    assert_int_equal(a.result.readings, 3);
    cb__arena_fini(&arena);
    cb__buf_fini(&line);
}

static const struct {
    const char *from, *to;
} bad_answers[] = {
    {"\"ns\":[10,11,12.5,13]", "\"ns\":[10,11,12.5]"},
    {"\"ns\":[10,11,12.5,13]", "\"ns\":[10,11,12.5,0]"},
    {"\"ns\":[10,11,12.5,13]", "\"ns\":[10,11,null,13]"},
    {"\"ns\":[10,11,12.5,13]", "\"ns\":[1,1,1,1,1,1]"},
    {"\"ns\":[10,11,12.5,13]", "\"ns\":[]"},
    {"\"order\":[0,1,1,0]", "\"order\":[0,0,1,0]"},
    {"\"order\":[0,1,1,0]", "\"order\":[0,1,2,0]"},
    {"\"entries\":[[1,0,1,1,8192]]", "\"entries\":[[2,0,1,1,8192]]"},
    {"\"entries\":[[1,0,1,1,8192]]", "\"entries\":[[1,3,1,1,8192]]"},
    {"\"entries\":[[1,0,1,1,8192]]", "\"entries\":[[1,0,4,1,8192]]"},
    {"\"entries\":[[1,0,1,1,8192]]", "\"entries\":[[1,0,1,1,131072]]"},
    {"\"entries\":[[1,0,1,1,8192]]", "\"entries\":[[1,0,1,1]]"},
    {"0000000000000001", "000000000000001"},
    {"\"edits\":false", "\"edits\":0"},
    {"\"batch\":2", "\"batch\":512"},
    {"\"gap_ns\":30", "\"gap_ns\":-1"},
    {"\"elapsed_ns\":2000", "\"elapsed_ns\":-1"},
    {"\"arms\":[{", "\"arms\":[{},{"},
    {"\"block_involuntary\":[0,3]", "\"block_involuntary\":[0]"},
};

static void a_bad_answer_is_garbage(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad_answers / sizeof *bad_answers; i++) {
        cb__buf line = CB__BUF_INIT, bad = CB__BUF_INIT;
        cb__arena arena = CB__ARENA_INIT;
        cb__duel_answer a;
        cb_error err = CB_ERROR_INIT;
        answer_line(&line);
        replace(cb__buf_text(&line), bad_answers[i].from, bad_answers[i].to, &bad);
        if (read_answer(&bad, &arena, &a, &err) != CB_GARBAGE)
            fail_msg("%s was believed", bad_answers[i].to);
        cb__arena_fini(&arena);
        cb__buf_fini(&line);
        cb__buf_fini(&bad);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_is_read_back),
        cmocka_unit_test(a_bad_request_is_refused),
        cmocka_unit_test(an_answer_is_read_back),
        cmocka_unit_test(a_bad_answer_is_garbage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
