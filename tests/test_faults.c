/* Every seeded fault gets the verdict and fails the check that it exists for; no clean twin is
 * accused. Exact: on the scripted device, with fixed seeds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "coldbench/worker.h"
#include "run/run.h"

#define DEVICE "fake:llc=256KiB"
#define WAITING ",queued=1" /* a device that processes take long to get hold of */

typedef struct fault {
    const char *name;
    const char *impl;   /* of the kernel faults, or kernel/implementation */
    const char *device; /* DEVICE with what is scripted */
    const char *check;  /* the one that fails; "" for the clean */
    const char *verdict;
} fault;

static const fault table[] = {
    {"clean", "clean", DEVICE ",noise=0.01", "", "ok"},
    {"unwritten tail", "unwritten_tail", DEVICE, "written", "wrong"},
    {"rows left over, of other shapes", "whole_fours", DEVICE, "written", "wrong"},
    {"never written", "never_written", DEVICE, "written", "wrong"},
    {"write past the end", "past_end", DEVICE, "guards", "wrong"},
    {"write before the start", "before_start", DEVICE, "guards", "wrong"},
    {"edited weight", "edits_weight", DEVICE, "inputs", "wrong"},
    {"edited input", "edits_input", DEVICE, "inputs", "wrong"},
    {"one group wrong", "group_wrong", DEVICE, "bound", "wrong"},
    {"NaN", "not_a_number", DEVICE, "finite", "wrong"},
    {"fewer bits than declared", "fewer_bits", DEVICE, "bound", "wrong"},
    {"stops writing while timed", "tires", DEVICE, "bound", "wrong"},
    {"failed launch, of the kernel", "fails", DEVICE, "launch", "wrong"},
    {"failed launch, of the device", "clean", DEVICE ",fail_launch=300", "launch", "wrong"},
    {"worker crash", "crashes", DEVICE, "worker", "wrong"},
    {"worker leaves", "leaves", DEVICE, "worker", "wrong"},
    {"worker hang", "hangs", DEVICE, "worker", "wrong"},
    {"worker garbage", "garbage", DEVICE, "worker", "wrong"},
    {"undersized ring", "clean", DEVICE ",cache=6MiB", "cold", "contaminated"},
    {"cache of just the right size", "clean", DEVICE ",cache=256KiB", "", "ok"},
    {"everything stays cached", "clean", DEVICE ",cache=1GiB,peak_dram_gbs=50", "cold",
     "contaminated"},
    {"memory under its ceiling", "clean", DEVICE ",peak_dram_gbs=50", "", "ok"},
    {"faster than the ceiling", "clean", DEVICE ",peak_gbs=30", "ceiling", "impossible"},
    {"just under the ceiling", "clean", DEVICE ",peak_gbs=41,kernel_factor=1", "", "ok"},
    {"drift between arms", "clean", DEVICE ",arm_drift=20", "settled", "unstable"},
    {"drift of both arms alike", "clean", DEVICE ",drift=20", "", "ok"},
    {"mostly dispatch", "clean", DEVICE ",solo_ns=20000,batched_ns=20000", "floor", "floor-bound"},
    {"read and written", "inout_sum/clean", DEVICE, "", "ok"},
    {"read and half written", "inout_sum/short", DEVICE, "bound", "wrong"},
    {"faster than the twin on 2k sets", "clean", DEVICE ",kernel_factor=0.8", "cold",
     "contaminated"},
    {"clean, of processes that waited", "clean", DEVICE WAITING ",noise=0.01", "", "ok"},
    {"crash, while others wait", "crashes", DEVICE WAITING, "worker", "wrong"},
    {"crash in a round, while others wait", "crashes_here", DEVICE WAITING, "worker", "wrong"},
    {"failed launch, while others wait", "clean", DEVICE WAITING ",fail_launch=300", "launch",
     "wrong"},
};

static cb__suite suite;

static cb__run_request request_of(const fault *f, const char *variant)
{
    bool sum = strchr(f->impl, '/') != NULL;
    return (cb__run_request){.suite = &suite,
                             .device = f->device,
                             .module = CB_BINARY_DIR "/modules/faults.so",
                             .variant = variant,
                             .shape = sum ? "16384" : "96x512",
                             .caches = {true, false},
                             .submits = {true, true},
                             .budget_s = 5,
                             .seed = 1,
                             .asker = {.silence_s = strcmp(f->impl, "hangs") ? 60 : 2}};
}

static cb_status measure(const cb__run_request *request, cb__arena *arena, cb__run_case *out,
                         cb_error *err)
{
    cb__device_info info;
    cb_status status = cb__run_describe(request, &info, err);
    if (status == CB_OK)
        status = cb__run_plan(request, &info, out, err);
    return status == CB_OK ? cb__run_measure(request, arena, out, err) : status;
}

static void run(const fault *f, cb__arena *arena, cb__run_case *out)
{
    char variant[64];
    snprintf(variant, sizeof variant, "%s%s", strchr(f->impl, '/') ? "" : "faults/", f->impl);
    cb_error err = CB_ERROR_INIT;
    cb__run_request request = request_of(f, variant);
    if (measure(&request, arena, out, &err) != CB_OK)
        fail_msg("%s: %s", f->name, err.message);
}

static const cb__check *find(const cb__run_row *row, const char *name)
{
    for (int i = 0; i < row->nchecks; i++)
        if (strcmp(row->checks[i].name, name) == 0)
            return &row->checks[i];
    return NULL;
}

static void judged(const fault *f, const cb__run_row *row)
{
    if (strcmp(cb_verdict_name(row->verdict), f->verdict) == 0 && !*f->check)
        return;
    const cb__check *check = find(row, f->check);
    if (check && check->status == CB__FAIL &&
        strcmp(cb_verdict_name(row->verdict), f->verdict) == 0)
        return;
    for (int i = 0; i < row->nchecks; i++)
        print_message("  %-12s %s: %s\n", row->checks[i].name,
                      cb__check_status_name(row->checks[i].status), row->checks[i].detail);
    fail_msg("%s: %s, expected %s by the check '%s'", f->name, cb_verdict_name(row->verdict),
             f->verdict, f->check);
}

/* The scripted device runs on one thread: under the thread sanitizer, fifteen times slower, a few
 * rows of the table show what there is to see. */
#ifdef __SANITIZE_THREAD__
enum { STEP = 9 };
#else
enum { STEP = 1 };
#endif

static void every_fault_gets_its_verdict(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i += STEP) {
        cb__arena arena = CB__ARENA_INIT;
        cb__run_case out = {0};
        run(&table[i], &arena, &out);
        print_message("%-34s -> %-13s %s\n", table[i].name, table[i].verdict, table[i].check);
        assert_int_equal(out.nrows, 2);
        for (int row = 0; row < out.nrows; row++)
            judged(&table[i], &out.rows[row]);
        cb__arena_fini(&arena);
    }
}

/* A fault of one case costs that case its verdict and nothing else: the next one is measured as if
 * nothing had been. */
static void a_fault_does_not_touch_the_next_case(void **state)
{
    (void)state;
    const fault crash = {"crash", "crashes", DEVICE, "worker", "wrong"}, clean = table[0];
    cb__arena arena = CB__ARENA_INIT;
    cb__run_case first = {0}, second = {0};
    run(&crash, &arena, &first);
    run(&clean, &arena, &second);
    judged(&crash, &first.rows[0]);
    judged(&clean, &second.rows[0]);
    assert_true(second.rows[0].evidence.rounds >= CB__ROUNDS_MIN);
    cb__arena_fini(&arena);
}

static volatile int stop;

static void stop_after_three(void *arg, const char *what, int round)
{
    (void)arg, (void)what;
    stop = round >= 3;
}

static void an_interrupt_keeps_what_was_measured(void **state)
{
    (void)state;
    static const char *const devices[] = {DEVICE, DEVICE WAITING};
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
        const fault clean = {"interrupted", "clean", devices[i], "", ""};
        cb__arena arena = CB__ARENA_INIT;
        cb__run_case out = {0};
        cb_error err = CB_ERROR_INIT;
        cb__run_request request = request_of(&clean, "faults/clean");
        request.asker.stop = &stop;
        request.phase = stop_after_three;
        stop = 0;
        assert_int_equal(measure(&request, &arena, &out, &err), CB_INTERRUPTED);
        assert_false(out.complete);
        assert_int_equal(out.nrows, 2);
        for (int row = 0; row < out.nrows; row++) {
            assert_int_equal(out.rows[row].nrounds, 3);
            assert_false(out.rows[row].evidence.complete);
        }
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* nobody is left waiting */
        cb__arena_fini(&arena);
    }
}

static int open_suite(void **state)
{
    (void)state;
    const char *files[] = {CB_BINARY_DIR "/modules/faults.so"};
    cb_error err = CB_ERROR_INIT;
    if (cb__suite_open(files, 1, true, &suite, &err) == CB_OK)
        return 0;
    print_error("%s\n", err.message);
    return -1;
}

static int close_suite(void **state)
{
    (void)state;
    cb__suite_close(&suite);
    return 0;
}

/* What earlier calls wrote says nothing of timed ones: here only those leave their outputs. */
static void outputs_are_of_timed_calls(void **state)
{
    (void)state;
    static const fault late = {"stops writing after warm-up", "tires_late", DEVICE, "bound",
                               "wrong"};
    cb_error err = CB_ERROR_INIT;
    cb__arena arena = CB__ARENA_INIT;
    cb__run_case out;
    cb__run_request request = request_of(&late, "faults/tires_late");
    request.submits[CB__SOLO] = false;
    assert_int_equal(measure(&request, &arena, &out, &err), CB_OK);
    assert_int_equal(out.nrows, 1);
    judged(&late, &out.rows[0]);
    cb__arena_fini(&arena);
}

int main(int argc, char **argv)
{
    int status = cb_worker_entry(argc, argv);
    if (status >= 0)
        return status;
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_fault_gets_its_verdict),
                                       cmocka_unit_test(a_fault_does_not_touch_the_next_case),
                                       cmocka_unit_test(an_interrupt_keeps_what_was_measured),
                                       cmocka_unit_test(outputs_are_of_timed_calls)};
    return cmocka_run_group_tests(tests, open_suite, close_suite);
}
