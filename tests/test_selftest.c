/* The selftest: what it makes of its counts; on a scripted device the whole of it; its load. */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json.h"
#include "coldbench/worker.h"
#include "record/record.h"
#include "report/report.h"
#include "run/load.h"
#include "run/selftest.h"
#include "scripted.h"

/* ---- what counts say ---- */

typedef struct counts {
    int runs, slower, faster, undecided, broken;
} counts;

static void set(cb__tally *tally, counts c)
{
    *tally = (cb__tally){.runs = c.runs,
                         .slower = c.slower,
                         .faster = c.faster,
                         .undecided = c.undecided,
                         .broken = c.broken,
                         .ties = c.runs - c.slower - c.faster - c.undecided};
}

/* At a rate of 0.01: 2 or more of 20 are seen with a chance of 1.7 %, 3 or more with 0.1 %. */
static const struct {
    const char *name;
    counts aa, aa_loaded;
    counts five, five_loaded; /* a planted 5 % */
    counts shown;             /* planted, not judged */
    const char *why;          /* NULL: no contradiction */
} verdicts[] = {
    {.name = "nothing was tried"},
    {.name = "all right",
     .aa = {.runs = 20},
     .five = {.runs = 5, .slower = 5},
     .shown = {.runs = 5}},
    {.name = "two alarms of 20", .aa = {.runs = 20, .slower = 1, .faster = 1}},
    {.name = "three of 20",
     .aa = {.runs = 20, .slower = 1, .faster = 2},
     .why = "different in 3 of 20, idle"},
    {.name = "three of 200", .aa = {.runs = 200, .slower = 2, .faster = 1}},
    {.name = "undecided is no alarm", .aa = {.runs = 20, .undecided = 20}},
    {.name = "loaded",
     .aa = {.runs = 20},
     .aa_loaded = {.runs = 20, .slower = 3},
     .why = "3 of 20, under load"},
    {.name = "conditions are not pooled",
     .aa = {.runs = 20, .slower = 2},
     .aa_loaded = {.runs = 20, .slower = 2}},
    {.name = "half found", .five = {.runs = 10, .slower = 5, .undecided = 5}},
    {.name = "fewer", .five = {.runs = 10, .slower = 4}, .why = "was found in 4 of 10"},
    {.name = "fewer under load",
     .five = {.runs = 10, .slower = 10},
     .five_loaded = {.runs = 10, .slower = 0}},
    {.name = "the wrong way",
     .five = {.runs = 20, .slower = 17, .faster = 3},
     .why = "called faster in 3 of 20, idle"},
    {.name = "the wrong way, loaded",
     .five_loaded = {.runs = 20, .slower = 17, .faster = 3},
     .why = "called faster in 3 of 20, under load"},
    {.name = "shown only", .shown = {.runs = 20, .slower = 0, .faster = 20}},
    {.name = "wrong outputs",
     .aa = {.runs = 20, .undecided = 1, .broken = 1},
     .why = "wrong or impossible in 1 of 20"},
    {.name = "wrong outputs of what is shown",
     .shown = {.runs = 20, .broken = 1},
     .why = "in 1 of 20"},
};

static cb__selftest selftest;

static void fill_trials(size_t row)
{
    memset(&selftest, 0, sizeof selftest);
    selftest.ntrials = 3;
    selftest.complete = true;
    cb__trial *t = selftest.trials;
    t[0] = (cb__trial){.a = "alu_chain", .b = "alu_chain", .judged = true};
    t[1] = (cb__trial){
        .a = "alu_chain@work=1000", .b = "alu_chain@work=1050", .effect = 0.05, .judged = true};
    t[2] = (cb__trial){.a = "stream_read@work=1000",
                       .b = "stream_read@work=1050",
                       .shape = "256KiB",
                       .effect = 0.05};
    set(&t[0].tally[CB__IDLE], verdicts[row].aa);
    set(&t[0].tally[CB__LOADED], verdicts[row].aa_loaded);
    set(&t[1].tally[CB__IDLE], verdicts[row].five);
    set(&t[1].tally[CB__LOADED], verdicts[row].five_loaded);
    set(&t[2].tally[CB__IDLE], verdicts[row].shown);
}

static void only_more_than_chance_contradicts(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(verdicts); i++) {
        char why[160] = "";
        fill_trials(i);
        bool contradicts = cb__trials_contradict(selftest.trials, 3, why, sizeof why);
        if (contradicts != (verdicts[i].why != NULL))
            fail_msg("%s: %s", verdicts[i].name, contradicts ? why : "no contradiction");
        if (contradicts && !strstr(why, verdicts[i].why))
            fail_msg("%s: %s", verdicts[i].name, why);
        assert_int_equal(cb__selftest_passed(&selftest), !contradicts);
    }
}

static void the_clock_counts_where_it_was_read(void **state)
{
    (void)state;
    fill_trials(0);
    assert_true(cb__selftest_passed(&selftest));
    selftest.timer = true;
    assert_false(cb__selftest_passed(&selftest));
    selftest.clock_good = true;
    assert_true(cb__selftest_passed(&selftest));
    selftest.complete = false;
    assert_false(cb__selftest_passed(&selftest));
}

static void the_table_says_what_few_runs_prove(void **state)
{
    (void)state;
    static const char *const parts[] = {
        "idle: false alarms 0 of 20: rate below 14 %",
        "under load: false alarms 3 of 20",
        "alu_chain +5 %",
        "5 of 5",
        "missed 0 of 5: rate below 45 %",
        "not judged",
        "identical code was called different in 3 of 20, under load: more than chance",
        "the judge does NOT work here"};
    cb__buf out = CB__BUF_INIT;
    fill_trials(1);
    set(&selftest.trials[0].tally[CB__LOADED], (counts){20, .slower = 3});
    selftest.load = true;
    cb__report_selftest(&selftest, false, &out);
    for (size_t i = 0; i < COUNT(parts); i++)
        if (!strstr(cb__buf_text(&out), parts[i]))
            fail_msg("not said: %s\n%s", parts[i], cb__buf_text(&out));
    assert_null(strstr(cb__buf_text(&out), "nan"));
    assert_null(strstr(cb__buf_text(&out), " \n"));
    cb__buf_fini(&out);
}

/* A whole selftest, less what each row leaves out. */
static void what_was_not_tried_is_said(void **state)
{
    (void)state;
    static const struct {
        const char *left_out, *said;
        int runs;
        bool load;
    } rows[] = {
        {"", "the judge works here; 3 s\n", 20, false},
        {"SLAP",
         "the judge works here, as far as it was tried: no seeded faults, no identical code, no "
         "planted differences; 3 s\n",
         0, false},
        {"TS", "here, as far as it was tried: no timer, no faults in sweeps; 3 s\n", 20, false},
        {"L", "here, as far as it was tried: no faults in launches; 3 s\n", 20, false},
        {"", "here, as far as it was tried: 5 comparisons of a kind instead of 20; 3 s\n", 5,
         false},
        {"P", "tried: no planted differences, 1 comparison of a kind instead of 20; 3 s\n", 1,
         false},
        {"", "here, as far as it was tried: 0 comparisons of a kind instead of 20; 3 s\n", 20,
         true}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        cb__buf out = CB__BUF_INIT;
        fill_trials(0);
        selftest.timer = !strchr(rows[i].left_out, 'T');
        selftest.clock_good = true;
        selftest.sweeps = !strchr(rows[i].left_out, 'S');
        selftest.launches = !strchr(rows[i].left_out, 'L');
        selftest.aa = !strchr(rows[i].left_out, 'A');
        selftest.planted = !strchr(rows[i].left_out, 'P');
        selftest.load = rows[i].load;
        selftest.usual_runs = 20;
        selftest.wall_s = 3;
        selftest.ntrials = selftest.aa ? 1 : 0;
        set(&selftest.trials[0].tally[CB__IDLE], (counts){.runs = rows[i].runs});
        cb__report_selftest(&selftest, false, &out);
        if (!strstr(cb__buf_text(&out), rows[i].said))
            fail_msg("row %zu: not said: %s\n%s", i, rows[i].said, cb__buf_text(&out));
        cb__buf_fini(&out);
    }
}

static void a_rate_of_which_nothing_is_known_is_below_100(void **state)
{
    (void)state;
    cb__buf out = CB__BUF_INIT;
    fill_trials(0);
    cb__report_selftest(&selftest, false, &out);
    assert_non_null(strstr(cb__buf_text(&out), "false alarms 0 of 0: rate below 100 %\n"));
    cb__buf_fini(&out);
}

static void seconds_are_quantiles_of_what_was_seen(void **state)
{
    (void)state;
    static cb__tally tally = {.runs = 5, .wall_s = {5, 1, 4, 2, 3}, .ratio = {1.2, 1.0, 1.1, 1, 9}};
    assert_true(cb__tally_seconds(&tally, 0.5) == 3);
    assert_true(fabs(cb__tally_seconds(&tally, 0.9) - 4.6) < 1e-12);
    assert_true(cb__tally_ratio(&tally) == 1.1);
    tally.runs = 0;
    assert_true(isnan(cb__tally_seconds(&tally, 0.5)) && isnan(cb__tally_ratio(&tally)));
}

/* ---- on a scripted device ---- */

static int phases;
static volatile int stop, stop_at;

static void count_phase(void *arg, const char *what, int turn)
{
    (void)arg;
    assert_true(*what && turn >= 0);
    if (++phases == stop_at)
        stop = 1;
}

/* No noise, slow, and a floor too small to be seen: what is planted in bytes is all there is. */
static cb__selftest_request request_of(int runs)
{
    phases = stop = stop_at = 0;
    return (cb__selftest_request){.common = {.suite = &suite,
                                             .device = "fake:" EXACT ",batched_ns=1",
                                             .seed = 11,
                                             .asker = {.silence_s = 60, .stop = &stop},
                                             .phase = count_phase},
                                  .runs = runs,
                                  .aa = true,
                                  .planted = true};
}

static void run(const cb__selftest_request *request)
{
    cb_error err = CB_ERROR_INIT;
    if (cb__selftest_run(request, &selftest, &err) != CB_OK)
        fail_msg("%s", err.message);
    assert_true(selftest.complete);
}

static void a_scripted_device_is_judged_exactly(void **state)
{
    (void)state;
    cb__selftest_request request = request_of(1);
    run(&request);
    assert_int_equal(selftest.nfaults, 0);
    assert_int_equal(selftest.ntrials, 3);
    assert_int_equal(phases, 3);
    for (int i = 0; i < selftest.ntrials; i++) {
        const cb__trial *trial = &selftest.trials[i];
        const cb__tally *tally = &trial->tally[CB__IDLE];
        assert_int_equal(tally->runs, 1);
        assert_int_equal(trial->tally[CB__LOADED].runs, 0);
        assert_int_equal(trial->effect > 0 ? tally->slower : tally->ties, 1);
        is_near(trial->b, cb__tally_ratio(tally), 1 + trial->effect, 3e-3);
        assert_true(tally->wall_s[0] > 0 && tally->measure_s > 0);
    }
    assert_true(cb__selftest_passed(&selftest));
}

static void a_judge_that_is_wrong_does_not_pass(void **state)
{
    (void)state;
    cb__selftest_request request = request_of(1);
    /* B is always a tenth faster: identical code is not, and what is planted slower is faster. */
    request.common.device = "fake:" EXACT ",batched_ns=1,process=-0.1";
    run(&request);
    assert_int_equal(cb__trials_aa(selftest.trials, selftest.ntrials, CB__IDLE).false_alarms, 1);
    assert_false(cb__selftest_passed(&selftest));
}

static void parts_can_be_left_out(void **state)
{
    (void)state;
    cb__selftest_request request = request_of(1);
    request.planted = false;
    run(&request);
    assert_int_equal(selftest.ntrials, 1);
    assert_true(selftest.trials[0].effect == 0);
    request.aa = false;
    request.timer = true;
    run(&request);
    assert_int_equal(selftest.ntrials, 0);
    assert_true(selftest.timer && selftest.clock.cost_ns > 0);
}

static const cb__json *key(const cb__json *object, const char *name)
{
    const cb__json *value = cb__json_get(object, name);
    if (!value)
        fail_msg("the record has no %s", name);
    return value;
}

static void the_record_holds_both_conditions(void **state)
{
    (void)state;
    cb__selftest_request request = request_of(1);
    cb__record record = {.kind = "selftest", .complete = true, .device_name = "fake"};
    cb__buf out = CB__BUF_INIT;
    cb__json *json = NULL;
    cb_error err = CB_ERROR_INIT;
    int64_t number = -1;
    request.load = true;
    run(&request);
    cb__record_selftest(&record, &selftest, &out);
    if (cb__json_parse(out.text, out.size, "record", &json, &err) != CB_OK)
        fail_msg("%s", err.message);
    for (int c = 0; c < CB__CONDITIONS; c++) {
        const cb__json *half = c == CB__LOADED ? key(json, "loaded") : json;
        const cb__json *aa = key(half, "aa"), *planted = key(half, "planted");
        assert_int_equal(cb__json_need_i64(aa, "runs", 0, 1000, &number, &err), CB_OK);
        assert_int_equal(number, 1);
        assert_int_equal(cb__json_need_i64(aa, "false_alarms", 0, 1000, &number, &err), CB_OK);
        assert_int_equal(number, 0);
        key(aa, "undecided");
        for (const char *const *name =
                 (const char *const[]){"effect", "found", "runs", "measure_s", NULL};
             *name; name++)
            key(cb__json_at(planted, 1), *name);
    }
    cb__json_free(json);
    cb__buf_fini(&out);
}

static void an_interrupt_keeps_what_was_found(void **state)
{
    (void)state;
    cb__selftest_request request = request_of(1000);
    cb_error err = CB_ERROR_INIT;
    request.load = true;
    stop_at = 5; /* the second comparison under load */
    assert_int_equal(cb__selftest_run(&request, &selftest, &err), CB_INTERRUPTED);
    assert_false(selftest.complete);
    assert_int_equal(selftest.trials[0].tally[CB__LOADED].runs, 1);
    assert_int_equal(selftest.trials[1].tally[CB__LOADED].runs, 0);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left */
}

static void nothing_is_begun_after_its_time(void **state)
{
    (void)state;
    cb__selftest_request request = request_of(2);
    cb__trials_request late = {
        .common = &request.common, .runs = 2, .aa = true, .planted = true, .before_ns = 1};
    cb_error err = CB_ERROR_INIT;
    int n = 0;
    assert_int_equal(cb__trials_run(&late, selftest.trials, &n, &err), CB_OK);
    assert_int_equal(n, 3);
    assert_int_equal(phases, 0);
}

/* ---- the load ---- */

static void a_load_runs_until_it_is_stopped(void **state)
{
    (void)state;
    cb__load load;
    cb_error err = CB_ERROR_INIT;
    int ends[2];
    char byte;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(cb__load_start(20, &load, &err), CB_OK);
    assert_true(load.n >= 1);
    /* It keeps no file of ours open: the pipe ends with our own end. */
    close(ends[1]);
    assert_int_equal(read(ends[0], &byte, 1), 0);
    close(ends[0]);
    assert_int_equal(cb__load_stop(&load, &err), CB_OK);
    assert_int_equal(load.n, 0);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void a_load_that_is_over_is_told(void **state)
{
    (void)state;
    cb__load load;
    cb_error err = CB_ERROR_INIT;
    siginfo_t info;
    assert_int_equal(cb__load_start(0.01, &load, &err), CB_OK);
    for (int i = 0; i < load.n; i++)
        assert_int_equal(waitid(P_PID, (id_t)load.pids[i], &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(cb__load_stop(&load, &err), CB_CRASHED);
    assert_non_null(strstr(err.message, "ended by themselves"));
}

/* Starts a load, waits until each part of it stands, and dies. */
static _Noreturn void short_life(void)
{
    static cb__load load;
    cb_error err = CB_ERROR_INIT;
    int ends[2];
    char byte;
    if (pipe(ends) != 0 || cb__load_start(20, &load, &err) != CB_OK)
        _exit(0);
    close(ends[1]);
    _exit(read(ends[0], &byte, 1) == 0 ? load.n : 0);
}

/* What it leaves behind comes to us. */
static void a_load_dies_with_its_parent(void **state)
{
    (void)state;
    int status, killed = 0, others = 0;
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    pid_t parent = fork();
    if (parent == 0)
        short_life();
    assert_int_equal(waitpid(parent, &status, 0), parent);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) > 0);
    int started = WEXITSTATUS(status);
    while (waitpid(-1, &status, 0) > 0)
        if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
            killed++;
        else
            others++;
    assert_int_equal(killed, started);
    assert_int_equal(others, 0);
}

int main(int argc, char **argv)
{
    int status = cb_worker_entry(argc, argv);
    if (status >= 0)
        return status;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_more_than_chance_contradicts),
        cmocka_unit_test(the_clock_counts_where_it_was_read),
        cmocka_unit_test(the_table_says_what_few_runs_prove),
        cmocka_unit_test(what_was_not_tried_is_said),
        cmocka_unit_test(a_rate_of_which_nothing_is_known_is_below_100),
        cmocka_unit_test(seconds_are_quantiles_of_what_was_seen),
        cmocka_unit_test(a_scripted_device_is_judged_exactly),
        cmocka_unit_test(a_judge_that_is_wrong_does_not_pass),
        cmocka_unit_test(parts_can_be_left_out),
        cmocka_unit_test(the_record_holds_both_conditions),
        cmocka_unit_test(an_interrupt_keeps_what_was_found),
        cmocka_unit_test(nothing_is_begun_after_its_time),
        cmocka_unit_test(a_load_runs_until_it_is_stopped),
        cmocka_unit_test(a_load_that_is_over_is_told),
        cmocka_unit_test(a_load_dies_with_its_parent),
    };
    return cmocka_run_group_tests(tests, open_suite, close_suite);
}
