/* Processes that start together, wait, are asked one at a time and end together. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "coldbench/worker.h"
#include "worker/crew.h"

enum { PATIENCE_S = 60, STARTED_MAX = 16 };

/* What starts them, and what it is to do. */
typedef struct starter {
    cb__asker asker;
    int refuses; /* the start that fails; 0: none */
    pid_t pids[STARTED_MAX];
    int n;
} starter;

static cb_status start(void *arg, cb__worker *worker, cb_error *err)
{
    starter *s = arg;
    if (s->refuses == s->n + 1)
        return cb_error_set(err, CB_NO_MEMORY, "planted");
    cb_status status = cb__worker_start(&s->asker, NULL, NULL, 0, worker, err);
    if (status == CB_OK)
        s->pids[s->n++] = worker->child.pid;
    return status;
}

/* argv NULL: workers of this program. */
static void prepare(starter *s, cb__crew *crew, char *const *argv)
{
    *s = (starter){.asker = {.command = {argv}, .silence_s = PATIENCE_S}};
    *crew = (cb__crew){
        .start = start,
        .arg = s,
        .open = {
            .op = "open", .device = "fake", .ring_fd = -1, .reference_fd = -1, .exchange_fd = -1}};
}

static void take(cb__crew *crew, int more, cb__worker *worker)
{
    cb_error err = CB_ERROR_INIT;
    if (cb__crew_take(crew, more, worker, &err) != CB_OK)
        fail_msg("%s", err.message);
}

/* Whether it has ended by itself within some seconds; it is still there to be reaped. */
static bool ends(pid_t pid)
{
    for (int tries = 0; tries < PATIENCE_S * 100; tries++) {
        siginfo_t info = {0};
        if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0)
            return false;
        if (info.si_pid == pid)
            return info.si_code == CLD_EXITED && info.si_status == 0;
        usleep(10000);
    }
    return false;
}

static void assert_none_left(void)
{
    assert_int_equal(waitid(P_ALL, 0, &(siginfo_t){0}, WEXITED | WNOHANG | WNOWAIT), -1);
}

static void each_is_taken_once(void **state)
{
    (void)state;
    starter s;
    cb__crew crew;
    pid_t taken[7];
    prepare(&s, &crew, NULL);
    assert_int_equal(cb__crew_begin(&crew, 3, NULL), CB_OK);
    assert_int_equal(s.n, 3);
    for (int i = 0; i < 7; i++) {
        cb__worker worker;
        take(&crew, 2, &worker);
        taken[i] = worker.child.pid;
        for (int j = 0; j < i; j++)
            assert_int_not_equal(taken[j], taken[i]);
        cb__crew_leave(&crew, &worker, true);
    }
    assert_int_equal(s.n, 3 + 2 + 2);
    assert_true(crew.waited_s > 0);
    cb__crew_clear(&crew);
    assert_none_left();
}

static void those_dismissed_end_by_themselves(void **state)
{
    (void)state;
    starter s;
    cb__crew crew;
    cb__worker worker;
    prepare(&s, &crew, NULL);
    take(&crew, 3, &worker);
    cb__crew_leave(&crew, &worker, true);
    cb__crew_dismiss(&crew);
    for (int i = 0; i < 3; i++)
        assert_true(ends(s.pids[i]));
    cb__crew_clear(&crew);
    assert_none_left();
}

/* One beside the crew that is over before the first of it is taken: what waits is not kept waiting.
 */
static void one_that_is_over_ends_with_the_others(void **state)
{
    (void)state;
    starter s;
    cb__crew crew;
    cb__worker beside, worker;
    prepare(&s, &crew, NULL);
    assert_int_equal(start(&s, &beside, NULL), CB_OK);
    assert_int_equal(cb__crew_begin(&crew, 2, NULL), CB_OK);
    cb__crew_leave(&crew, &beside, true);
    take(&crew, 2, &worker);
    assert_int_equal(crew.ndone, 1);
    cb__crew_leave(&crew, &worker, true);
    cb__crew_clear(&crew);
    assert_none_left();
}

static void one_that_is_not_good_ends_all_that_wait(void **state)
{
    (void)state;
    starter s;
    cb__crew crew;
    cb__worker good, bad;
    prepare(&s, &crew, NULL);
    take(&crew, 4, &good);
    cb__crew_leave(&crew, &good, true);
    take(&crew, 4, &bad);
    cb__crew_leave(&crew, &bad, false);
    assert_int_equal(crew.nwaiting, 0);
    assert_int_equal(crew.ndone, 1);
    for (int i = 0; i < 4; i++) /* gone, but for the good one */
        assert_int_equal(kill(s.pids[i], 0), s.pids[i] == good.child.pid ? 0 : -1);
    take(&crew, 1, &good); /* another, of those that follow */
    assert_int_equal(s.n, 5);
    cb__crew_leave(&crew, &good, true);
    cb__crew_clear(&crew);
    assert_none_left();
}

static void after_a_failure_there_are_none(void **state)
{
    (void)state;
    char *const dies[] = {(char *)(uintptr_t)CB_FAKE_WORKER, (char *)(uintptr_t) "crash", NULL};
    starter s;
    cb__crew crew;
    cb__worker worker;
    cb_error err = CB_ERROR_INIT;
    prepare(&s, &crew, dies);
    assert_int_equal(cb__crew_begin(&crew, 3, NULL), CB_OK);
    assert_int_equal(cb__crew_take(&crew, 2, &worker, &err), CB_CRASHED);
    assert_non_null(strstr(err.message, "about to die"));
    assert_int_equal(s.n, 3);
    assert_none_left();

    prepare(&s, &crew, NULL);
    s.refuses = 3;
    assert_int_equal(cb__crew_begin(&crew, 4, NULL), CB_NO_MEMORY);
    assert_int_equal(s.n, 2);
    assert_none_left();
}

static void an_interrupt_ends_the_waiting_for_them(void **state)
{
    (void)state;
    static const volatile int stop = 1;
    starter s;
    cb__crew crew;
    cb__worker worker;
    prepare(&s, &crew, NULL);
    s.asker.stop = &stop;
    assert_int_equal(cb__crew_take(&crew, 3, &worker, NULL), CB_INTERRUPTED);
    assert_none_left();
}

int main(int argc, char **argv)
{
    int status = cb_worker_entry(argc, argv);
    if (status >= 0)
        return status;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_is_taken_once),
        cmocka_unit_test(those_dismissed_end_by_themselves),
        cmocka_unit_test(one_that_is_over_ends_with_the_others),
        cmocka_unit_test(one_that_is_not_good_ends_all_that_wait),
        cmocka_unit_test(after_a_failure_there_are_none),
        cmocka_unit_test(an_interrupt_ends_the_waiting_for_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
