#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "host/clock.h"
#include "host/pool.h"

enum { WORKERS_MAX = 9 };

/* Plain on purpose: the pool alone must order these accesses, and the thread sanitizer watches. */
typedef struct tally {
    cb__pool *pool;
    struct {
        _Alignas(64) long calls;
        long phase;
    } worker[WORKERS_MAX];
    int workers;
    long behind; /* phases of others seen from before a barrier; written by worker 0 */
} tally;

static void count_call(void *arg, int worker, int workers)
{
    tally *t = arg;
    t->worker[worker].calls++;
    if (worker == 0)
        t->workers = workers;
}

static cb__pool *pool_of(int workers)
{
    cb_error err = CB_ERROR_INIT;
    cb__pool *pool = NULL;
    assert_int_equal(cb__pool_new(NULL, workers, &pool, &err), CB_OK);
    assert_int_equal(cb__pool_workers(pool), workers);
    return pool;
}

static const int worker_counts[] = {1, 2, 3, WORKERS_MAX};
enum { COUNTS = sizeof worker_counts / sizeof *worker_counts };

static void every_worker_runs_once_a_run(void **state)
{
    (void)state;
    for (int c = 0; c < COUNTS; c++) {
        for (int hold = 0; hold < 2; hold++) {
            tally t = {0};
            cb__pool *pool = pool_of(worker_counts[c]);
            cb__pool_hold(pool, hold);
            for (long run = 1; run <= 200; run++) {
                cb__pool_run(pool, count_call, &t);
                for (int w = 0; w < worker_counts[c]; w++)
                    assert_int_equal(t.worker[w].calls, run);
            }
            assert_int_equal(t.workers, worker_counts[c]);
            cb__pool_free(pool);
        }
    }
}

static void run_wakes_sleepers(void **state)
{
    (void)state;
    tally t = {0};
    cb__pool *pool = pool_of(3);
    for (long run = 1; run <= 20; run++) {
        usleep(run % 2 ? 4000 : 1000); /* past, and near, the moment of falling asleep */
        if (run == 10)
            cb__pool_hold(pool, true);
        if (run == 15)
            cb__pool_hold(pool, false);
        cb__pool_run(pool, count_call, &t);
        for (int w = 0; w < 3; w++)
            assert_int_equal(t.worker[w].calls, run);
    }
    usleep(4000);
    cb__pool_free(pool); /* of a sleeping pool */
}

static void note_sleeps(void *arg, int worker, int workers)
{
    (void)workers;
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    ((long *)arg)[worker] = usage.ru_nvcsw;
}

/* Giving up the CPU counts as an involuntary switch, sleeping as a voluntary one. */
static void held_workers_do_not_sleep(void **state)
{
    (void)state;
    for (int hold = 0; hold < 2; hold++) {
        long before[2], after[2];
        cb__pool *pool = pool_of(2);
        usleep(4000);
        cb__pool_hold(pool, hold);
        cb__pool_run(pool, note_sleeps, before);
        usleep(50000);
        cb__pool_run(pool, note_sleeps, after);
        assert_int_equal(after[1] > before[1], !hold);
        cb__pool_free(pool);
    }
}

enum { PHASES = 100 };

static void run_phases(void *arg, int worker, int workers)
{
    tally *t = arg;
    for (long phase = 1; phase <= PHASES; phase++) {
        t->worker[worker].phase = phase;
        cb__pool_barrier(t->pool, worker);
        for (int w = 0; worker == 0 && w < workers; w++)
            t->behind += t->worker[w].phase != phase;
        cb__pool_barrier(t->pool, worker);
    }
}

static void barrier_holds_all_until_the_last(void **state)
{
    (void)state;
    for (int c = 0; c < COUNTS; c++) {
        tally t = {.pool = pool_of(worker_counts[c])};
        for (int run = 0; run < 3; run++)
            cb__pool_run(t.pool, run_phases, &t);
        assert_int_equal(t.behind, 0);
        cb__pool_free(t.pool);
    }
}

typedef struct masks {
    cpu_set_t of[WORKERS_MAX];
} masks;

static void note_mask(void *arg, int worker, int workers)
{
    (void)workers;
    masks *m = arg;
    sched_getaffinity(0, sizeof m->of[worker], &m->of[worker]);
}

static int allowed_cpus(int cpus[WORKERS_MAX])
{
    cpu_set_t set;
    int n = 0;
    assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
    for (int cpu = 0; cpu < CPU_SETSIZE && n < WORKERS_MAX; cpu++)
        if (CPU_ISSET(cpu, &set))
            cpus[n++] = cpu;
    return n;
}

static void workers_are_pinned_and_the_caller_released(void **state)
{
    (void)state;
    int cpus[WORKERS_MAX], order[WORKERS_MAX];
    int n = allowed_cpus(cpus);
    for (int w = 0; w < n; w++)
        order[w] = cpus[n - 1 - w];
    cpu_set_t before, after;
    sched_getaffinity(0, sizeof before, &before);
    cb_error err = CB_ERROR_INIT;
    cb__pool *pool = NULL;
    masks m;
    assert_int_equal(cb__pool_new(order, n, &pool, &err), CB_OK);
    cb__pool_run(pool, note_mask, &m);
    for (int w = 0; w < n; w++) {
        assert_int_equal(CPU_COUNT(&m.of[w]), 1);
        assert_true(CPU_ISSET(order[w], &m.of[w]));
    }
    cb__pool_free(pool);
    sched_getaffinity(0, sizeof after, &after);
    assert_true(CPU_EQUAL(&before, &after));
}

static void many_workers_share_one_cpu(void **state)
{
    (void)state;
    int cpus[WORKERS_MAX];
    allowed_cpus(cpus);
    for (int w = 1; w < WORKERS_MAX; w++)
        cpus[w] = cpus[0];
    cb_error err = CB_ERROR_INIT;
    tally t = {0};
    assert_int_equal(cb__pool_new(cpus, WORKERS_MAX, &t.pool, &err), CB_OK);
    cb__pool_hold(t.pool, true);
    cb__pool_run(t.pool, run_phases, &t);
    assert_int_equal(t.behind, 0);
    cb__pool_free(t.pool);
}

static void refusals_name_the_value(void **state)
{
    (void)state;
    static const int past_set[] = {CPU_SETSIZE, 0}, negative[] = {0, -1}, absent[] = {0, 1000};
    const struct {
        const int *cpus;
        int workers;
        cb_status status;
        const char *words;
    } rows[] = {
        {NULL, 0, CB_USAGE, "at least 1 worker, not 0"},
        {past_set, 2, CB_USAGE, "worker 0: no such CPU: 1024"},
        {negative, 2, CB_USAGE, "worker 1: no such CPU: -1"},
        {absent, 2, CB_UNAVAILABLE, "cannot pin worker 1 to CPU 1000: Invalid argument"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cb_error err = CB_ERROR_INIT;
        cb__pool *pool = NULL;
        assert_int_equal(cb__pool_new(rows[i].cpus, rows[i].workers, &pool, &err), rows[i].status);
        assert_non_null(strstr(err.message, rows[i].words));
        assert_null(pool);
    }
    cb__pool_free(NULL);
}

static void nothing(void *arg, int worker, int workers)
{
    (void)arg;
    (void)worker;
    (void)workers;
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Printed, never asserted. */
static void what_an_empty_run_costs(void **state)
{
    (void)state;
    enum { READINGS = 201, RUNS = 20 };
    int cpus[WORKERS_MAX];
    int n = allowed_cpus(cpus);
    cb_error err = CB_ERROR_INIT;
    cb__pool *pool = NULL;
    uint64_t ns[READINGS];
    assert_int_equal(cb__pool_new(cpus, n, &pool, &err), CB_OK);
    cb__pool_hold(pool, true);
    for (int i = 0; i < READINGS; i++) {
        uint64_t start = cb__clock_ns();
        for (int run = 0; run < RUNS; run++)
            cb__pool_run(pool, nothing, NULL);
        ns[i] = (cb__clock_ns() - start) / RUNS;
    }
    qsort(ns, READINGS, sizeof *ns, by_value);
    print_message("empty run, %d workers held: median %llu ns, best %llu, worst %llu\n", n,
                  (unsigned long long)ns[READINGS / 2], (unsigned long long)ns[0],
                  (unsigned long long)ns[READINGS - 1]);
    cb__pool_free(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_worker_runs_once_a_run),
        cmocka_unit_test(run_wakes_sleepers),
        cmocka_unit_test(held_workers_do_not_sleep),
        cmocka_unit_test(barrier_holds_all_until_the_last),
        cmocka_unit_test(workers_are_pinned_and_the_caller_released),
        cmocka_unit_test(many_workers_share_one_cpu),
        cmocka_unit_test(refusals_name_the_value),
        cmocka_unit_test(what_an_empty_run_costs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
