/* Comparisons on the scripted device: what is planted is what is found, and what is not is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <math.h>

#include "coldbench/worker.h"
#include "compare/compare.h"

#define FAULTS CB_BINARY_DIR "/modules/faults.so"
#define DEVICE "fake:llc=256KiB"
#define WAITING ",queued=1" /* a device that processes take long to get hold of */

static cb__suite suite;
static double margin = 0.01;

typedef struct asked {
    const char *device;
    const char *sides[4];
    const char *shape;
    cb__cache_state cache;
    uint64_t seed;
    const volatile int *stop;
    double silence_s;
} asked;

static cb__compare_request request_of(const asked *a)
{
    cb__compare_request r = {
        .suite = &suite,
        .device = a->device,
        .shape = a->shape,
        .cache = a->cache,
        .submit = CB__BATCHED,
        .budget_s = 10,
        .alpha = 0.01,
        .margin = margin,
        .seed = a->seed,
        .asker = {.silence_s = a->silence_s > 0 ? a->silence_s : 60, .stop = a->stop}};
    while (r.nsides < 4 && a->sides[r.nsides]) {
        r.variants[r.nsides] = a->sides[r.nsides];
        r.nsides++;
    }
    r.claims = r.nsides * (r.nsides - 1) / 2;
    return r;
}

static cb_status describe(const cb__compare_request *r, cb__device_info *info, cb_error *err)
{
    const cb__backend *ops = NULL;
    const char *script = NULL;
    cb__device *device = NULL;
    cb_status status = cb__backend_find(r->device, &ops, &script, err);
    if (status == CB_OK)
        status = ops->open(script, r->threads, CB__COMPACT, &device, err);
    if (status == CB_OK) {
        ops->info(device, info);
        ops->close(device);
    }
    return status;
}

static cb_status compare(const asked *a, cb__arena *arena, cb__comparison *out, cb_error *err)
{
    cb__device_info info;
    cb__compare_request r = request_of(a);
    cb_status status = describe(&r, &info, err);
    if (status == CB_OK)
        status = cb__compare_plan(&r, &info, out, err);
    return status == CB_OK ? cb__compare_measure(&r, arena, out, err) : status;
}

static void good(const asked *a, cb__arena *arena, cb__comparison *out)
{
    cb_error err = CB_ERROR_INIT;
    if (compare(a, arena, out, &err) != CB_OK)
        fail_msg("%s: %s", a->sides[1], err.message);
}

static void decided(const cb__comparison *c, int pair, cb__decision wanted)
{
    const cb__compare_pair *p = &c->pairs[pair];
    if (p->decision != wanted)
        fail_msg("%s, not %s: %.5f [%.5f, %.5f] after %d rounds", cb__decision_name(p->decision),
                 cb__decision_name(wanted), p->claim.estimate, p->claim.interval.lower,
                 p->claim.interval.upper, c->nrounds);
}

/* ---- figures ---- */

static void assert_near(double got, double want, double within)
{
    if (!(fabs(got - want) <= within))
        fail_msg("%.9g, not %.9g", got, want);
}

/* 24 KiB at 200 GB/s, 1.05 times longer, and a dispatch, of 200 ns where nothing else is planted.
 */
static double launch_ns(double work, double dispatch_ns)
{
    return dispatch_ns + 1.05 * (24576 * work + 4) / 200;
}

typedef struct planted {
    const char *name, *device;
    const char *a, *b;
    cb__decision decision;
    double ratio;    /* of times; 0: not exact */
    double position; /* effect that is planted, as a share */
} planted;

#define QUIET DEVICE ",noise=0"
#define SAME "stream_read@work=1000/portable"
#define MORE "stream_read@work=1050/portable"

static const planted table[] = {
    {"the same code", QUIET, SAME, SAME, CB__TIE, 1, 0},
    {"other tunables, which cost nothing here", QUIET, SAME, SAME ":streams=2", CB__TIE, 1, 0},
    {"5 % more bytes", QUIET, SAME, MORE, CB__SLOWER, -1, 0},
    {"5 % fewer bytes", QUIET, MORE, SAME, CB__FASTER, -2, 0},
    {"with noise", DEVICE ",noise=0.05", SAME, SAME, CB__TIE, 0, 0},
    {"everything gets slower", QUIET ",drift=50", SAME, SAME, CB__TIE, 0, 0},
    {"first slots are slow", QUIET ",place=0.05,batched_ns=1", SAME, SAME, CB__TIE, 1, 0.05},
    {"first slots are fast", QUIET ",place=-0.05,batched_ns=1", SAME, SAME, CB__TIE, 1, -0.05},
    {"first slots are slow, and one side", QUIET ",place=0.05,batched_ns=1", SAME, MORE, CB__SLOWER,
     -1, 0.05},
    {"a slow copy of A in some processes", QUIET ",process=0.05,process_arm=1,process_share=0.2",
     SAME, SAME, CB__TIE, 0, 0},
    {"a slow copy of A, always", QUIET ",process=0.05,process_arm=1", SAME, SAME, CB__INCOMPARABLE,
     0, 0},
    {"a slow B, always", QUIET ",process=0.05,process_arm=2", SAME, SAME, CB__SLOWER, 0, 0},
};

/* Rounds that disagree leave ends that cross, or an estimate outside: no interval of 99 %. */
static void an_unstable_pair_has_no_interval(void **state)
{
    (void)state;
    cb__comparison c = {.alpha = 0.01};
    cb__compare_pair p = {.decision = CB__INCONCLUSIVE,
                          .claim = {.interval = {0.0267, -0.0005}, .estimate = -0.2037}};
    assert_true(cb__compare_ratio(&c, &p).lo > cb__compare_ratio(&c, &p).hi);
    p.decision = CB__UNSTABLE;
    cb__interval ratio = cb__compare_ratio(&c, &p);
    assert_true(ratio.lo == 0 && isinf(ratio.hi) && fabs(ratio.mid - 0.8157) < 1e-4);
    assert_true(isinf(cb__compare_detectable(&p)));
}

static void what_is_planted_is_found(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const planted *p = &table[i];
        cb__arena arena = CB__ARENA_INIT;
        static cb__comparison c;
        print_message("    %s\n", p->name);
        good(&(asked){p->device, {p->a, p->b}, "24KiB", CB__WARM, 1, NULL, 0}, &arena, &c);
        decided(&c, 0, p->decision);
        double ratio = cb__compare_ratio(&c, &c.pairs[0]).mid;
        double dispatch_ns = strstr(p->device, "batched_ns=1") ? 1 : 200;
        double more = launch_ns(1.05, dispatch_ns) / launch_ns(1, dispatch_ns);
        if (p->ratio != 0)
            assert_near(ratio, p->ratio > 0 ? 1 : p->ratio > -2 ? more : 1 / more, 0.001);
        if (strstr(p->device, "noise=0") && !strstr(p->device, "drift"))
            assert_near(c.position_effect, log1p(p->position), 0.005);
        assert_true(c.nrounds >= CB__ROUNDS_MIN);
        assert_true(c.complete);
        assert_int_equal(c.rings, 1);
        cb__arena_fini(&arena);
    }
}

/* One arm slow in a fifth of the processes: no seed makes it a difference. */
static void offsets_of_processes_are_no_alarm(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        cb__arena arena = CB__ARENA_INIT;
        static cb__comparison c;
        good(&(asked){DEVICE ",process=0.05,process_share=0.2",
                      {SAME, SAME},
                      "24KiB",
                      CB__WARM,
                      seed,
                      NULL,
                      0},
             &arena, &c);
        assert_int_not_equal(c.pairs[0].decision, CB__SLOWER);
        assert_int_not_equal(c.pairs[0].decision, CB__FASTER);
        cb__arena_fini(&arena);
    }
}

static void cold_and_warm_are_two_figures(void **state)
{
    (void)state;
    double ns[2];
    for (int cache = 0; cache < 2; cache++) {
        cb__arena arena = CB__ARENA_INIT;
        static cb__comparison c;
        good(&(asked){QUIET, {SAME, SAME}, "24KiB", (cb__cache_state)cache, 3, NULL, 0}, &arena,
             &c);
        decided(&c, 0, CB__TIE);
        ns[cache] = c.sides[0].time_ns.mid;
        cb__arena_fini(&arena);
    }
    assert_near(ns[CB__WARM], launch_ns(1, 200), 1);
    assert_near(ns[CB__COLD], 200 + 1.05 * 24580 / 40, 1);
}

static void the_best_of_three_has_its_ties(void **state)
{
    (void)state;
    cb__arena arena = CB__ARENA_INIT;
    static cb__comparison c;
    good(&(asked){QUIET, {MORE, SAME, SAME ":streams=2"}, "24KiB", CB__WARM, 5, NULL, 0}, &arena,
         &c);
    assert_int_equal(c.npairs, 3);
    decided(&c, 0, CB__FASTER);
    decided(&c, 1, CB__FASTER);
    decided(&c, 2, CB__TIE);
    assert_int_not_equal(c.best, 0);
    assert_false(c.tied[0]);
    assert_true(c.tied[c.best == 1 ? 2 : 1]);
    cb__arena_fini(&arena);
}

/* ---- sides that are wrong ---- */

typedef struct seeded {
    const char *fault, *check;
} seeded;

static const seeded faults[] = {
    {"unwritten_tail", "written"}, {"whole_fours", "written"}, {"never_written", "written"},
    {"past_end", "guards"},        {"before_start", "guards"}, {"edits_weight", "inputs"},
    {"edits_input", "inputs"},     {"group_wrong", "bound"},   {"not_a_number", "finite"},
    {"fewer_bits", "bound"},       {"tires", "bound"},         {"fails", "launch"},
    {"crashes", "worker"},         {"leaves", "worker"},       {"garbage", "worker"},
    {"hangs", "worker"},           {"closes", "worker"},       {"edits_later", "inputs"},
    {"scribbles", "worker"},       {"pretends", "worker"},     {"aborts_at_exit", "worker"},
    {"lets_go", "worker"},
};

static cb__check_status status_of(const cb__compare_side *side, const char *name)
{
    for (int i = 0; i < side->nchecks; i++)
        if (strcmp(side->checks[i].name, name) == 0)
            return side->checks[i].status;
    return CB__SKIP;
}

/* The faulty side is named, first or second; the pair without it goes on. */
static void name_wrong_sides(const char *device, const seeded *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char variant[64];
        cb__arena arena = CB__ARENA_INIT;
        static cb__comparison c;
        bool first = i % 4 == 3;
        snprintf(variant, sizeof variant, "faults/%s", rows[i].fault);
        asked a = {device, {"faults/clean", variant, "faults/clean"}, "96x512", CB__COLD, 1, NULL,
                   5}; /* a busy machine may keep an innocent side waiting for a second */
        if (first) {
            a.sides[0] = variant;
            a.sides[1] = "faults/clean";
        }
        good(&a, &arena, &c);
        const cb__compare_side *bad = &c.sides[!first];
        if (bad->verdict != CB_VERDICT_WRONG || status_of(bad, rows[i].check) != CB__FAIL)
            fail_msg("%s: %s, and %s is %s", rows[i].fault, cb_verdict_name(bad->verdict),
                     rows[i].check, cb__check_status_name(status_of(bad, rows[i].check)));
        for (int p = 0; p < c.npairs; p++) {
            bool with_it = c.pairs[p].a == !first || c.pairs[p].b == !first;
            decided(&c, p, with_it ? CB__INCOMPARABLE : CB__TIE);
        }
        for (int s = 0; s < c.nsides; s++)
            if (s != !first)
                assert_int_equal(c.sides[s].verdict, CB_VERDICT_OK);
        cb__arena_fini(&arena);
    }
}

static void a_wrong_side_is_named_and_the_others_go_on(void **state)
{
    (void)state;
    name_wrong_sides(DEVICE, faults, sizeof faults / sizeof *faults);
}

/* ---- processes that start together and wait ---- */

static void those_that_waited_decide_alike(void **state)
{
    (void)state;
    const struct {
        const char *b;
        cb__decision decision;
        double margin;
        int blocks;
    } rows[] = {
        {SAME, CB__TIE, 0.01, 300}, {SAME, CB__TIE, 0.005, 400}, {MORE, CB__SLOWER, 0.01, 300}};
    for (size_t i = 0; i < 2 * (sizeof rows / sizeof *rows); i++) {
        cb__arena arena = CB__ARENA_INIT;
        static cb__comparison c;
        const int row = (int)i / 2;
        asked a = {
            QUIET WAITING, {SAME, rows[row].b}, "24KiB", (cb__cache_state)(i % 2), 1, NULL, 0};
        margin = rows[row].margin;
        good(&a, &arena, &c);
        decided(&c, 0, rows[row].decision);
        assert_int_equal(c.rounds[0]->answer.result.blocks, rows[row].blocks);
        assert_int_equal(c.why[0], 0);
        cb__arena_fini(&arena);
    }
    margin = 0.01;
}

/* What a worker of these tests tells: the length of its environment's padding, a line each. */
#define PADDINGS "TEST_COMPARE_PADDINGS"

static void tell_padding(void)
{
    const char *path = getenv(PADDINGS), *padding = getenv("COLDBENCH_PADDING");
    FILE *file = path && padding ? fopen(path, "a") : NULL;
    if (!file)
        return;
    fprintf(file, "%zu\n", strlen(padding));
    fclose(file);
}

static void each_that_waited_has_its_own_environment(void **state)
{
    (void)state;
    enum { PADDINGS_MAX = 64 };
    char path[] = "/tmp/test_compare-XXXXXX";
    unsigned lengths[PADDINGS_MAX];
    int fd = mkstemp(path), n = 0;
    cb__arena arena = CB__ARENA_INIT;
    static cb__comparison c;
    assert_true(fd >= 0);
    close(fd);
    setenv(PADDINGS, path, 1);
    good(&(asked){QUIET WAITING, {SAME, SAME}, "24KiB", CB__WARM, 1, NULL, 0}, &arena, &c);
    unsetenv(PADDINGS);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (n < PADDINGS_MAX && fscanf(file, "%u", &lengths[n]) == 1)
        for (int i = n++; i-- > 0;)
            assert_int_not_equal(lengths[i], lengths[n - 1]); /* exact: the seed is fixed */
    fclose(file);
    unlink(path);
    assert_true(n >= CB__ROUNDS_MIN);
    cb__arena_fini(&arena);
}

static void those_that_waited_name_a_wrong_side(void **state)
{
    (void)state;
    static const seeded some[] = {{"past_end", "guards"},
                                  {"edits_weight", "inputs"},
                                  {"fails", "launch"},
                                  {"crashes", "worker"}};
    name_wrong_sides(DEVICE WAITING, some, sizeof some / sizeof *some);
}

/* Asking for another size fails, and that is all. */
static void a_side_cannot_take_memory_away(void **state)
{
    (void)state;
    cb__arena arena = CB__ARENA_INIT;
    static cb__comparison c;
    good(&(asked){DEVICE, {"faults/clean", "faults/shortens"}, "96x512", CB__WARM, 1, NULL, 1},
         &arena, &c);
    decided(&c, 0, CB__TIE);
    cb__arena_fini(&arena);
}

/* On the machine's clock. What is told is the budget's end, and of nobody that he is wrong. */
static void a_budget_that_is_too_short_is_said(void **state)
{
    (void)state;
    static const char *const sides[] = {"faults/naps", "faults/hangs"};
    for (size_t i = 0; i < 2; i++) {
        cb__arena arena = CB__ARENA_INIT;
        static cb__comparison c;
        cb__device_info info;
        cb_error err = CB_ERROR_INIT;
        asked a = {"cpu", {"faults/clean", sides[i]}, "96x512", CB__WARM, 1, NULL, 60};
        cb__compare_request r = request_of(&a);
        r.budget_s = 2;
        assert_int_equal(describe(&r, &info, &err), CB_OK);
        assert_int_equal(cb__compare_plan(&r, &info, &c, &err), CB_OK);
        assert_int_equal(cb__compare_measure(&r, &arena, &c, &err), CB_OK);
        decided(&c, 0, CB__INCONCLUSIVE);
        assert_int_equal(c.sides[1].verdict, CB_VERDICT_UNKNOWN);
        print_message("    %s: %s; %s\n", sides[i], c.why, c.sides[1].evidence.unclear.message);
        assert_int_equal(c.nrounds, 0);
        assert_true(c.why[0] && (i == 0 || c.sides[1].evidence.unclear.message[0]));
        cb__arena_fini(&arena);
    }
}

static void bits_are_compared(void **state)
{
    (void)state;
    static cb__comparison c;
    cb__arena arena = CB__ARENA_INIT;
    good(&(asked){DEVICE, {"faults/clean", "faults/clean"}, "96x512", CB__WARM, 1, NULL, 0}, &arena,
         &c);
    assert_true(c.pairs[0].bit_identical);
    good(&(asked){DEVICE, {SAME, MORE}, "24KiB", CB__WARM, 1, NULL, 0}, &arena, &c);
    assert_false(c.pairs[0].bit_identical);
    cb__arena_fini(&arena);
}

static void dispatch_is_said(void **state)
{
    (void)state;
    static cb__comparison c;
    cb__arena arena = CB__ARENA_INIT;
    good(&(asked){DEVICE ",batched_ns=5000", {SAME, SAME}, "24KiB", CB__WARM, 1, NULL, 0}, &arena,
         &c);
    assert_true(c.pairs[0].dispatch);
    good(&(asked){DEVICE, {SAME, SAME}, "96KiB", CB__WARM, 1, NULL, 0}, &arena, &c);
    assert_false(c.pairs[0].dispatch);
    cb__arena_fini(&arena);
}

/* ---- refusals ---- */

static const struct {
    const char *a, *b, *shape, *words;
    cb__cache_state cache;
} refused[] = {
    {"stream_read", "stream_read@work=900", "24KiB", "spell work on both sides", CB__WARM},
    {"stream_read@work=900", "stream_read", "24KiB", "spell work on both sides", CB__WARM},
    {"stream_read", "alu_chain", NULL, "their dimensions differ", CB__WARM},
    {"stream_read", "stream_read", NULL, "needs a shape", CB__WARM},
    {"gemv_q4/portable", "stream_read/portable", "4096", "their dimensions differ", CB__WARM},
    {"faults/clean", "renamed/clean", "96x512", "their operands differ", CB__WARM},
    {"faults/clean", "gemv_q4/portable", "64x64", "parameters differ", CB__WARM},
    {"faults/clean", "twin_copy/portable", "64", "their dimensions differ", CB__WARM},
    {"alu_chain/portable", "alu_chain/portable", NULL, "no cold state", CB__COLD},
    {"stream_reed", "stream_read", "24KiB", "did you mean 'stream_read'", CB__WARM},
};

static void what_cannot_be_compared_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        cb__arena arena = CB__ARENA_INIT;
        static cb__comparison c;
        cb_error err = CB_ERROR_INIT;
        asked a = {
            DEVICE, {refused[i].a, refused[i].b}, refused[i].shape, refused[i].cache, 1, NULL, 0};
        assert_int_equal(compare(&a, &arena, &c, &err), CB_USAGE);
        if (!strstr(err.message, refused[i].words))
            fail_msg("%s against %s: %s", refused[i].a, refused[i].b, err.message);
        cb__arena_fini(&arena);
    }
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
    static cb__comparison c;
    cb__arena arena = CB__ARENA_INIT;
    cb_error err = CB_ERROR_INIT;
    cb__device_info info;
    asked a = {DEVICE, {SAME, SAME}, "24KiB", CB__WARM, 1, &stop, 0};
    cb__compare_request r = request_of(&a);
    r.phase = stop_after_three;
    assert_int_equal(describe(&r, &info, &err), CB_OK);
    assert_int_equal(cb__compare_plan(&r, &info, &c, &err), CB_OK);
    assert_int_equal(cb__compare_measure(&r, &arena, &c, &err), CB_INTERRUPTED);
    assert_int_equal(c.nrounds, 3);
    assert_false(c.complete);
    assert_int_equal(c.pairs[0].decision, CB__INCONCLUSIVE);
    cb__arena_fini(&arena);
}

static int open_suite(void **state)
{
    (void)state;
    const char *files[] = {FAULTS};
    cb_error err = CB_ERROR_INIT;
    if (cb__suite_open(files, 1, true, &suite, &err) == CB_OK)
        return 0;
    print_message("%s\n", err.message);
    return -1;
}

static int close_suite(void **state)
{
    (void)state;
    cb__suite_close(&suite);
    return 0;
}

int main(int argc, char **argv)
{
    tell_padding();
    int status = cb_worker_entry(argc, argv);
    if (status >= 0)
        return status;
    cb__orphans_adopt();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_unstable_pair_has_no_interval),
        cmocka_unit_test(what_is_planted_is_found),
        cmocka_unit_test(offsets_of_processes_are_no_alarm),
        cmocka_unit_test(cold_and_warm_are_two_figures),
        cmocka_unit_test(the_best_of_three_has_its_ties),
        cmocka_unit_test(a_wrong_side_is_named_and_the_others_go_on),
        cmocka_unit_test(those_that_waited_decide_alike),
        cmocka_unit_test(each_that_waited_has_its_own_environment),
        cmocka_unit_test(those_that_waited_name_a_wrong_side),
        cmocka_unit_test(a_side_cannot_take_memory_away),
        cmocka_unit_test(a_budget_that_is_too_short_is_said),
        cmocka_unit_test(bits_are_compared),
        cmocka_unit_test(dispatch_is_said),
        cmocka_unit_test(what_cannot_be_compared_is_refused),
        cmocka_unit_test(an_interrupt_keeps_what_was_measured),
    };
    return cmocka_run_group_tests(tests, open_suite, close_suite);
}
