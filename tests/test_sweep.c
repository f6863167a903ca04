/* One process's part of a sweep on the scripted device: with its noise at 0 every figure of every
 * kind of job is known. */
#include "probe/sweep.h"
#include "scripted.h"

typedef struct fixture {
    cb__target target;
    cb__arena arena;
    cb__sweep_answer answer;
    int said;
    double furthest;
} fixture;

static void listen(void *arg, double done)
{
    fixture *f = arg;
    assert_true(done >= 0 && done <= 1 + 1e-9);
    f->furthest = fmax(f->furthest, done);
    f->said++;
}

static void open_device(fixture *f, const char *script)
{
    cb_error err = CB_ERROR_INIT;
    memset(f, 0, sizeof *f);
    f->target.ops = &cb__backend_fake;
    if (cb__backend_fake.open(script, 1, CB__COMPACT, &f->target.device, &err) != CB_OK)
        fail_msg("%s", err.message);
}

static void close_device(fixture *f)
{
    cb__arena_fini(&f->arena);
    f->target.ops->close(f->target.device);
}

static cb_status sweep_with(fixture *f, const cb__sweep *sweep, cb_error *err)
{
    cb__sweep s = *sweep;
    s.suite = &suite;
    s.seed = 7;
    return cb__sweep_run(f->target, &s, &f->arena, &f->answer, listen, f, err);
}

static void sweep(fixture *f, const cb__job *jobs, int n)
{
    cb_error err = CB_ERROR_INIT;
    if (sweep_with(f, &(cb__sweep){.jobs = jobs, .njobs = n}, &err) != CB_OK)
        fail_msg("%s", err.message);
}

/* Sizes in no order. */
static const int64_t sizes[] = {131072, 1048576, 65536, 524288, KNEE};

static cb__job sized(cb__job_kind kind, const char *what, const char *variant)
{
    cb__job job = {.kind = kind, .what = what, .variants = {variant}, .nvariants = 1, .visits = 1};
    memcpy(job.bytes, sizes, sizeof sizes);
    job.n = COUNT(sizes);
    return job;
}

/* A launch moves the set and up to a line more: the checksum, the line that is written. */
static void bandwidth_is_the_script_s(void **state)
{
    (void)state;
    const char *const mixes[][2] = {{"read", "twin_read/portable"},
                                    {"write", "twin_write/portable"},
                                    {"copy", "twin_copy/portable"}};
    for (size_t m = 0; m < COUNT(mixes); m++)
        for (int visits = 1; visits <= 3; visits += 2) {
            fixture f;
            cb__job job = sized(CB__JOB_BANDWIDTH, mixes[m][0], mixes[m][1]);
            job.visits = visits;
            open_device(&f, EXACT);
            sweep(&f, &job, 1);
            assert_true(f.answer.jobs[0].done);
            assert_int_equal(f.answer.jobs[0].n, job.n);
            for (int i = 0; i < job.n; i++) {
                /* With the line that a launch moves beside it, a set of KNEE no longer fits. */
                const cb__reading *r = &f.answer.jobs[0].readings[i];
                double expected = job.bytes[i] < KNEE ? 4 : 1;
                if (job.bytes[i] != KNEE)
                    is_near(mixes[m][0], r->value, expected, 1.1e-3);
                is_near("folding", r->folded, 1, 1e-4);
                assert_int_equal(r->covered, 1);
                assert_int_equal(r->variant, 0);
                assert_true(isnan(r->edge_gain) && isnan(r->clock_hz));
            }
            assert_true(f.said >= job.n && f.furthest > 0.999);
            close_device(&f);
        }
}

static void latency_is_the_script_s(void **state)
{
    (void)state;
    const char *const patterns[] = {"random", "local"};
    for (size_t p = 0; p < COUNT(patterns); p++) {
        fixture f;
        cb__job job = sized(CB__JOB_LATENCY, patterns[p], "chase/portable");
        open_device(&f, EXACT);
        sweep(&f, &job, 1);
        for (int i = 0; i < job.n; i++) {
            const cb__reading *r = &f.answer.jobs[0].readings[i];
            is_near(patterns[p], r->value, job.bytes[i] <= KNEE ? 20 : 400, 1e-5);
            is_near("folding", r->folded, 1, 1e-4);
            assert_int_equal(r->covered, 1);
        }
        /* Chains bring their own contents: nothing was filled or sampled. */
        assert_int_equal(f.answer.sampled_words, 0);
        close_device(&f);
    }
}

static void floors_are_the_script_s(void **state)
{
    (void)state;
    fixture f;
    cb__job jobs[] = {{.kind = CB__JOB_FLOOR, .what = "solo", .visits = 1},
                      {.kind = CB__JOB_FLOOR, .what = "batched", .visits = 1}};
    open_device(&f, EXACT ",batched_ns=150");
    sweep(&f, jobs, 2);
    assert_true(f.answer.jobs[0].done && f.answer.jobs[1].done);
    is_near("solo", f.answer.jobs[0].readings[0].value, 1000, 1e-9);
    is_near("batched", f.answer.jobs[1].readings[0].value, 150, 1e-9);
    close_device(&f);
}

/* Operations a byte written times the bytes a nanosecond: what one block adds to a launch. */
static double scripted_rate(const char *variant)
{
    cb__case few, many;
    cb_error err = CB_ERROR_INIT;
    assert_int_equal(cb__case_parse(&suite, variant, "1000", 0, &few, &err), CB_OK);
    assert_int_equal(cb__case_parse(&suite, variant, "3000", 0, &many, &err), CB_OK);
    double bytes = (double)(many.cost.bytes_read + many.cost.bytes_written) -
                   (double)(few.cost.bytes_read + few.cost.bytes_written);
    return (many.cost.flops - few.cost.flops) / bytes;
}

static void arithmetic_is_of_the_operations_that_were_done(void **state)
{
    (void)state;
    const char *const types[][3] = {{"f32", "peak_fma/portable", "peak_fma@type=f32/portable"},
                                    {"f64", "peak_fma/portable", "peak_fma@type=f64/portable"},
                                    {"int8", "peak_dot/portable", "peak_dot/portable"}};
    for (size_t t = 0; t < COUNT(types); t++) {
        fixture f;
        cb__job job = {.kind = CB__JOB_COMPUTE,
                       .what = types[t][0],
                       .variants = {types[t][1]},
                       .nvariants = 1,
                       .visits = 1};
        open_device(&f, "llc=256KiB,noise=0,cache_gbs=0.1,dram_gbs=0.1,kernel_factor=1,solo_ns=10");
        sweep(&f, &job, 1);
        const cb__reading *r = &f.answer.jobs[0].readings[0];
        is_near(types[t][0], r->value, 0.1 * scripted_rate(types[t][2]), 1e-4);
        assert_int_equal(r->variant, 0);
        close_device(&f);
    }
}

static int launched, wrong_inputs;

/* Counts inputs that do not hold what the kernel's definition puts there. */
static void launch_looking(cb__device *device, const cb__launch *launch)
{
    for (int i = 0; launch->code && i < launch->code->kernel->noperands; i++) {
        const cb_kernel *k = launch->code->kernel;
        _Alignas(64) char expected[4096];
        uint64_t bytes = k->bytes(&launch->code->problem, i);
        if (k->operands[i].role != CB_INPUT || bytes == 0)
            continue;
        k->fill(&launch->code->problem, 7, i, 0, expected, 0, 1);
        wrong_inputs += memcmp(expected, launch->operands[i], bytes) != 0;
        launched++;
    }
    cb__backend_fake.launch(device, launch);
}

static void arithmetic_is_on_what_its_definition_says(void **state)
{
    (void)state;
    cb__backend looking = cb__backend_fake;
    cb__job jobs[] = {{.kind = CB__JOB_COMPUTE, .what = "f32", .variants = {"peak_fma/portable"}},
                      {.kind = CB__JOB_COMPUTE, .what = "f64", .variants = {"peak_fma/portable"}},
                      {.kind = CB__JOB_COMPUTE, .what = "int8", .variants = {"peak_dot/portable"}}};
    fixture f;
    for (size_t j = 0; j < COUNT(jobs); j++)
        jobs[j].nvariants = jobs[j].visits = 1;
    launched = wrong_inputs = 0;
    looking.launch = launch_looking;
    open_device(&f, EXACT);
    f.target.ops = &looking;
    sweep(&f, jobs, COUNT(jobs));
    assert_true(launched > 10 * (int)COUNT(jobs));
    assert_int_equal(wrong_inputs, 0);
    close_device(&f);
}

static void contents_are_all_read_alike(void **state)
{
    (void)state;
    fixture f;
    cb__job jobs[] = {sized(CB__JOB_BANDWIDTH, "read", "twin_read/portable"),
                      sized(CB__JOB_CONTENT, "constant", "twin_read/portable"),
                      sized(CB__JOB_CONTENT, "untouched", "twin_read/portable"),
                      sized(CB__JOB_CONTENT, "random", "twin_read/portable"),
                      sized(CB__JOB_BANDWIDTH, "read", "twin_read/portable")};
    for (int j = 1; j <= 3; j++)
        jobs[j].bytes[0] = 1048576, jobs[j].n = 1;
    open_device(&f, EXACT);
    sweep(&f, jobs, COUNT(jobs));
    for (int j = 1; j <= 3; j++)
        is_near(jobs[j].what, f.answer.jobs[j].readings[0].value, 1, 1e-4);
    /* What came between left the set as it was. */
    for (int i = 0; i < jobs[4].n; i++)
        assert_int_equal(f.answer.jobs[4].readings[i].covered, 1);
    assert_int_equal(f.answer.sampled_words, 4096);
    assert_true(f.answer.distinct_words >= 4090);
    close_device(&f);
}

static void the_best_variant_is_named_and_what_the_edge_gains(void **state)
{
    (void)state;
    fixture f;
    cb__job job = sized(CB__JOB_BANDWIDTH, "read", "twin_read/portable:streams=1");
    job.variants[job.nvariants++] = "twin_read/portable:streams=2";
    open_device(&f, EXACT);
    sweep(&f, &job, 1);
    for (int i = 0; i < job.n; i++) {
        const cb__reading *r = &f.answer.jobs[0].readings[i];
        assert_in_range(r->variant, 0, 1);
        is_near("gain", r->edge_gain, 1, 1e-3);
    }
    close_device(&f);
}

/* ---- what is to be noticed ---- */

static void a_shrunk_read_is_not_covered(void **state)
{
    (void)state;
    fixture f;
    cb__job job = sized(CB__JOB_BANDWIDTH, "read", "fault_read@fault=shrunk/portable");
    job.visits = 3;
    open_device(&f, EXACT);
    sweep(&f, &job, 1);
    for (int i = 0; i < job.n; i++)
        assert_int_equal(f.answer.jobs[0].readings[i].covered, 0);
    close_device(&f);
}

static void launch_nothing(cb__device *device, const cb__launch *launch)
{
    static const cb__launch nothing;
    (void)launch;
    cb__backend_fake.launch(device, &nothing);
}

static void work_that_is_not_done_is_not_covered(void **state)
{
    (void)state;
    const cb__job jobs[] = {sized(CB__JOB_BANDWIDTH, "read", "twin_read/portable"),
                            sized(CB__JOB_BANDWIDTH, "write", "twin_write/portable"),
                            sized(CB__JOB_BANDWIDTH, "copy", "twin_copy/portable"),
                            sized(CB__JOB_LATENCY, "random", "chase/portable"),
                            sized(CB__JOB_LATENCY, "local", "chase/portable")};
    cb__backend idle = cb__backend_fake;
    idle.launch = launch_nothing;
    for (size_t j = 0; j < COUNT(jobs); j++) {
        fixture f;
        open_device(&f, EXACT);
        f.target.ops = &idle;
        sweep(&f, &jobs[j], 1);
        for (int i = 0; i < jobs[j].n; i++) {
            assert_int_equal(f.answer.jobs[0].readings[i].covered, 0);
            assert_true(isnan(f.answer.jobs[0].readings[i].folded));
        }
        close_device(&f);
    }
}

static void pages_that_nobody_wrote_are_one_word(void **state)
{
    (void)state;
    fixture f;
    cb_error err = CB_ERROR_INIT;
    cb__job job = sized(CB__JOB_BANDWIDTH, "read", "twin_read/portable");
    open_device(&f, EXACT);
    assert_int_equal(
        sweep_with(&f, &(cb__sweep){.jobs = &job, .njobs = 1, .pages = CB__PAGES_UNTOUCHED}, &err),
        CB_OK);
    assert_int_equal(f.answer.sampled_words, 4096);
    assert_int_equal(f.answer.distinct_words, 1);
    /* All of it was read; that it is worth nothing, the contents say. */
    assert_int_equal(f.answer.jobs[0].readings[0].covered, 1);
    close_device(&f);
}

static void the_first_job_runs_whatever_the_limit(void **state)
{
    (void)state;
    fixture f;
    cb_error err = CB_ERROR_INIT;
    cb__job jobs[] = {sized(CB__JOB_LATENCY, "random", "chase/portable"),
                      {.kind = CB__JOB_FLOOR, .what = "solo", .visits = 1},
                      sized(CB__JOB_BANDWIDTH, "read", "twin_read/portable")};
    open_device(&f, EXACT);
    assert_int_equal(sweep_with(&f, &(cb__sweep){.jobs = jobs, .njobs = 3, .limit_ns = 1}, &err),
                     CB_OK);
    assert_int_equal(f.answer.njobs, 3);
    assert_true(f.answer.jobs[0].done);
    assert_false(f.answer.jobs[1].done);
    assert_false(f.answer.jobs[2].done);
    assert_true(isnan(f.answer.jobs[2].readings[0].value));
    assert_int_equal(f.answer.jobs[2].readings[0].covered, -1);
    close_device(&f);
}

/* Batches are timed by the device's clock: what submitting and waiting costs is in no figure but
 * those of the host. */
static void launches_that_are_queued_are_timed_as_batches(void **state)
{
    (void)state;
    fixture f;
    cb__job jobs[] = {sized(CB__JOB_BANDWIDTH, "read", "twin_read/portable"),
                      sized(CB__JOB_BANDWIDTH, "write", "twin_write/portable"),
                      sized(CB__JOB_BANDWIDTH, "copy", "twin_copy/portable"),
                      sized(CB__JOB_LATENCY, "random", "chase/portable"),
                      {.kind = CB__JOB_FLOOR, .what = "solo", .visits = 1},
                      {.kind = CB__JOB_FLOOR, .what = "stream", .visits = 1},
                      {.kind = CB__JOB_FLOOR, .what = "batched", .visits = 1}};
    open_device(&f, EXACT ",queued=1,batched_ns=20,solo_ns=3000");
    sweep(&f, jobs, COUNT(jobs));
    for (int j = 0; j < 4; j++)
        for (int i = 0; i < jobs[j].n; i++) {
            const cb__reading *r = &f.answer.jobs[j].readings[i];
            bool cached = jobs[j].bytes[i] < KNEE;
            assert_int_equal(r->covered, 1);
            if (jobs[j].bytes[i] == KNEE)
                continue;
            is_near(jobs[j].what, r->value, j == 3 ? (cached ? 20 : 400) : cached ? 4 : 1, 0.01);
            if (j < 3)
                is_near("folded", r->folded, 1, 0.01);
            assert_int_equal(isfinite(r->low), j == 3);
            if (j == 3) /* of each place, of which all are alike here */
                assert_true(r->low <= r->value && r->value <= r->high && r->low >= r->high / 1.01);
        }
    is_near("solo", f.answer.jobs[4].readings[0].value, 3000, 1e-9);
    is_near("stream", f.answer.jobs[5].readings[0].value, 3000, 1e-9);
    is_near("batched", f.answer.jobs[6].readings[0].value, 20, 1e-9);
    close_device(&f);
}

static void run_nothing(cb__device *device, cb__batch *batch)
{
    (void)device;
    (void)batch;
}

/* As above where nothing is queued, of which halves are looked at by digests here. */
static void queued_work_that_is_not_done_is_not_covered(void **state)
{
    (void)state;
    fixture f;
    cb__job job = sized(CB__JOB_BANDWIDTH, "write", "twin_write/portable");
    job.bytes[0] = 1048576;
    job.n = 1;
    cb__backend ops = cb__backend_fake;
    open_device(&f, EXACT ",queued=1");
    ops.batch_run = run_nothing;
    f.target.ops = &ops;
    sweep(&f, &job, 1);
    assert_int_equal(f.answer.jobs[0].readings[0].covered, 0);
    close_device(&f);
}

static void failures_end_a_sweep(void **state)
{
    (void)state;
    const struct {
        const char *variant, *script, *words;
        cb_status status;
    } bad[] = {
        {"chase/portable", EXACT ",fail_launch=3", "failed with code", CB_WRONG},
        {"chase/portabel", EXACT, "did you mean 'portable'", CB_USAGE},
        {"chaes", EXACT, "unknown kernel 'chaes'", CB_USAGE},
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        fixture f;
        cb_error err = CB_ERROR_INIT;
        cb__job job = sized(CB__JOB_LATENCY, "random", bad[i].variant);
        open_device(&f, bad[i].script);
        cb_status status = sweep_with(&f, &(cb__sweep){.jobs = &job, .njobs = 1}, &err);
        assert_int_equal(status, bad[i].status);
        if (!strstr(err.message, bad[i].words))
            fail_msg("%s: %s", bad[i].variant, err.message);
        assert_false(f.answer.jobs[0].done);
        close_device(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bandwidth_is_the_script_s),
        cmocka_unit_test(latency_is_the_script_s),
        cmocka_unit_test(floors_are_the_script_s),
        cmocka_unit_test(arithmetic_is_of_the_operations_that_were_done),
        cmocka_unit_test(arithmetic_is_on_what_its_definition_says),
        cmocka_unit_test(contents_are_all_read_alike),
        cmocka_unit_test(the_best_variant_is_named_and_what_the_edge_gains),
        cmocka_unit_test(a_shrunk_read_is_not_covered),
        cmocka_unit_test(work_that_is_not_done_is_not_covered),
        cmocka_unit_test(pages_that_nobody_wrote_are_one_word),
        cmocka_unit_test(the_first_job_runs_whatever_the_limit),
        cmocka_unit_test(launches_that_are_queued_are_timed_as_batches),
        cmocka_unit_test(queued_work_that_is_not_done_is_not_covered),
        cmocka_unit_test(failures_end_a_sweep),
    };
    return cmocka_run_group_tests(tests, open_suite, close_suite);
}
