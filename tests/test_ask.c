/* The parent's side of the protocol, against workers that misbehave. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "worker/worker.h"

static int steps;

static void count(void *arg, double done)
{
    (void)arg;
    steps += done == 0.5;
}

static cb_status ask(const char *mode, double silence_s, cb__json **answer, cb_error *err)
{
    char *argv[] = {(char *)(uintptr_t)CB_FAKE_WORKER, (char *)(uintptr_t)mode, NULL};
    const cb__asker asker = {.command = {.argv = argv}, .silence_s = silence_s, .progress = count};
    const cb__work work = {.op = "describe", .device = "cpu", .ring_fd = -1, .reference_fd = -1};
    return cb__ask(&asker, &work, "describe", answer, err);
}

static const struct {
    const char *mode;
    double silence_s;
    cb_status status;
    const char *part;
} table[] = {
    {"answer", 10, CB_OK, ""},
    {"answer_crash", 10, CB_OK, ""},
    {"progress", 1, CB_OK, ""},
    {"crash_first", 10, CB_CRASHED, "signal 11"},
    {"crash", 10, CB_CRASHED, "about to die"},
    {"exit_first", 10, CB_CRASHED, "exited with status 0"},
    {"exit", 10, CB_CRASHED, "exited with status 0"},
    {"exit3", 10, CB_CRASHED, "exited with status 3"},
    {"half", 10, CB_CRASHED, "exited with status 0"},
    {"silence", 0.5, CB_TIMEOUT, "said nothing"},
    {"forever", 0.05, CB_TIMEOUT, "no answer in 3 s"},
    {"half_stay", 0.5, CB_TIMEOUT, "said nothing"},
    {"garbage", 10, CB_GARBAGE, "a worker's line"},
    {"binary", 10, CB_GARBAGE, "a worker's line"},
    {"empty", 10, CB_GARBAGE, "a worker's line"},
    {"array", 10, CB_GARBAGE, "where 'describe' was asked"},
    {"no_type", 10, CB_GARBAGE, "type ''"},
    {"type_number", 10, CB_GARBAGE, "type ''"},
    {"wrong_type", 10, CB_GARBAGE, "type 'round' where 'describe'"},
    {"twice", 10, CB_GARBAGE, "duplicate"},
    {"endless", 10, CB_GARBAGE, "16777216 bytes"},
    {"error", 10, CB_NO_MEMORY, "words of its own"},
    {"error_unknown", 10, CB_GARBAGE, "m"},
    {"error_ok", 10, CB_GARBAGE, "a worker's error"},
    {"error_bare", 10, CB_GARBAGE, "a worker's error"},
};

static void every_way_to_misbehave_has_its_status(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        cb__json *answer = NULL;
        cb_error err = CB_ERROR_INIT;
        cb_status status = ask(table[i].mode, table[i].silence_s, &answer, &err);
        /* A busy machine may keep a worker that speaks all the time from its first word. */
        for (int more = 5;
             more && strcmp(table[i].mode, "forever") == 0 && strstr(err.message, "said nothing");
             more--) {
            cb_error_clear(&err);
            status = ask(table[i].mode, table[i].silence_s, &answer, &err);
        }
        if (status != table[i].status || err.status != status ||
            !strstr(err.message, table[i].part))
            fail_msg("%s: %s, '%s'", table[i].mode, cb_status_name(status), err.message);
        assert_int_equal(answer != NULL, status == CB_OK);
        if (answer)
            assert_int_equal(cb__json_i64(cb__json_get(answer, "ok"), 0), 1);
        cb__json_free(answer);
    }
    assert_true(steps >= 8);
}

static void an_error_need_not_be_asked_for(void **state)
{
    (void)state;
    cb__json *answer = NULL;
    assert_int_equal(ask("garbage", 10, &answer, NULL), CB_GARBAGE);
    assert_int_equal(ask("wrong_type", 10, &answer, NULL), CB_GARBAGE);
    assert_int_equal(ask("silence", 0.2, &answer, NULL), CB_TIMEOUT);
    assert_null(answer);
}

static void a_worker_that_is_not_there_is_said(void **state)
{
    (void)state;
    char *argv[] = {(char *)(uintptr_t) "/no/such/worker", NULL};
    const cb__asker asker = {.command = {.argv = argv}, .silence_s = 10};
    const cb__work work = {.op = "describe", .device = "cpu"};
    cb__json *answer = NULL;
    cb_error err = CB_ERROR_INIT;
    assert_int_not_equal(cb__ask(&asker, &work, "describe", &answer, &err), CB_OK);
    assert_non_null(strstr(err.message, "/no/such/worker"));
    assert_null(answer);
}

static void a_stop_is_obeyed(void **state)
{
    (void)state;
    static const volatile int stop = 1;
    char *argv[] = {(char *)(uintptr_t)CB_FAKE_WORKER, (char *)(uintptr_t) "silence", NULL};
    const cb__asker asker = {.command = {.argv = argv}, .silence_s = 60, .stop = &stop};
    const cb__work work = {.op = "describe", .device = "cpu"};
    cb__json *answer = NULL;
    cb_error err = CB_ERROR_INIT;
    assert_int_equal(cb__ask(&asker, &work, "describe", &answer, &err), CB_INTERRUPTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_way_to_misbehave_has_its_status),
        cmocka_unit_test(an_error_need_not_be_asked_for),
        cmocka_unit_test(a_worker_that_is_not_there_is_said),
        cmocka_unit_test(a_stop_is_obeyed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
