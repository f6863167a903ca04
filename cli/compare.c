#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "host/clock.h"
#include "model/query.h"
#include "report/report.h"

typedef struct compare_options {
    cb__common_options common;
    cb__option_list shapes, kernels;
    const char *shape_list;
    int cache, submit;
    double budget_s, alpha, margin;
} compare_options;

static const cb__option options[] = {
    CB__SHAPE_OPTION(compare_options),
    CB__SHAPES_OPTION(compare_options),
    {.name = "kernel",
     .kind = CB__OPT_LIST,
     .offset = offsetof(compare_options, kernels),
     .arg = "FILE.so",
     .help = "load a kernel module of your own; two files may hold the two sides"},
    {.name = "cache",
     .kind = CB__OPT_CHOICE,
     .offset = offsetof(compare_options, cache),
     .arg = "STATE",
     .choices = cb__cache_words,
     .help =
         "cold: launches rotate through distinct sets; warm: one set again and again; left out: "
         "cold where the kernels stream anything"},
    CB__SUBMIT_OPTION(compare_options),
    {.name = "budget",
     .kind = CB__OPT_REAL,
     .offset = offsetof(compare_options, budget_s),
     .arg = "S",
     .preset = "10",
     .min = 0,
     .max = 86400,
     .help = "wall seconds of the whole command, shared by its shapes; it ends as soon as every "
             "pair is decided"},
    CB__ALPHA_OPTION(compare_options),
    {.name = "margin",
     .kind = CB__OPT_REAL,
     .offset = offsetof(compare_options, margin),
     .arg = "P",
     .min = 1e-6,
     .max = 10,
     .help =
         "slower or faster is said of estimates above this, where the interval leaves 1 out; left "
         "out: 1% warm, 2% cold"},
    CB__COMMON_OPTIONS,
};

typedef struct comparing {
    compare_options o;
    cb__suite suite;
    unsigned isa;
    uint64_t seed, start_ns;
    const char *variants[CB__SIDES_MAX];
    int nvariants;
    const char *shapes[CB__CLI_SHAPES_MAX];
    int nshapes, measured;
    cb__compare_request *requests;
    cb__comparison *comparisons;
    cb__device_info device;
    cb_model *model;
    cb__progress progress;
    char label[128];
    cb__outputs outputs;
} comparing;

static void show(void *arg, const char *what, int round)
{
    comparing *r = arg;
    cb__progress_step(&r->progress, r->label, what, round);
}

/* ---- what is asked ---- */

/* Warm: whether the operands can be in the caches at all. */
static cb_resident resident_of(const cb_model *model, const cb__comparison *c)
{
    cb_resident resident = CB_RESIDENT_MAYBE;
    cb_figure knee;
    uint64_t bytes = c->sides[0].plan.touched_bytes;
    if (model && cb_model_resident(model, bytes, CB_STREAM_PATTERN, c->device.threads, &resident,
                                   &knee, NULL) == CB_OK)
        return resident;
    return bytes > c->sides[0].plan.llc_bytes ? CB_RESIDENT_NO : CB_RESIDENT_MAYBE;
}

/* Without --cache: cold, where there is such a state. Names that are wrong are told when they are
 * planned. */
static void choose_state(comparing *r)
{
    char name[64];
    if (r->o.cache >= 0)
        return;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(r->variants[0], "@/:"), r->variants[0]);
    const cb_kernel *kernel = cb__suite_find(&r->suite, name, NULL);
    bool streams = !kernel || cb__kernel_streams(kernel);
    r->o.cache = streams ? CB__COLD : CB__WARM;
    if (!streams && !r->o.common.quiet)
        fprintf(stderr, "coldbench: %s streams no operand, so it has no cold state: warm\n", name);
}

static cb_status make_requests(comparing *r, cb_error *err)
{
    choose_state(r);
    r->requests = calloc((size_t)r->nshapes, sizeof *r->requests);
    r->comparisons = calloc((size_t)r->nshapes, sizeof *r->comparisons);
    if (!r->requests || !r->comparisons)
        return cb_error_set(err, CB_NO_MEMORY, "no memory for %d comparisons", r->nshapes);
    double margin = r->o.margin > 0 ? r->o.margin : r->o.cache == CB__WARM ? 0.01 : 0.02;
    for (int i = 0; i < r->nshapes; i++) {
        cb__compare_request *q = &r->requests[i];
        *q = (cb__compare_request){.suite = &r->suite,
                                   .isa = r->isa,
                                   .device = r->o.common.device,
                                   .threads = (int)r->o.common.threads,
                                   .nsides = r->nvariants,
                                   .shape = r->shapes[i],
                                   .cache = (cb__cache_state)r->o.cache,
                                   .submit = (cb__submit)r->o.submit,
                                   .alpha = r->o.alpha,
                                   .margin = margin,
                                   .claims = r->nshapes * r->nvariants * (r->nvariants - 1) / 2,
                                   .seed = r->seed,
                                   .asker = {.stop = &cb__stop, .silence_s = 10},
                                   .phase = show,
                                   .arg = r};
        memcpy(q->variants, r->variants, sizeof q->variants);
    }
    return CB_OK;
}

static cb_status plan_with(void *arg, const cb_model *model, cb_error *err)
{
    comparing *r = arg;
    double minimum = 0;
    for (int i = 0; i < r->nshapes; i++) {
        r->requests[i].beyond_bytes = cb__model_beyond_bytes(model, r->requests[i].threads);
        cb_status status = cb__compare_plan(&r->requests[i], &r->device, &r->comparisons[i], err);
        if (status != CB_OK)
            return status;
        minimum += cb__compare_budget_min(&r->comparisons[i]);
        r->comparisons[i].resident = resident_of(model, &r->comparisons[i]);
    }
    if (r->o.budget_s < minimum)
        return cb_error_set(err, CB_USAGE,
                            "--budget %g is too small for %d shape%s; the minimum is %.1f s",
                            r->o.budget_s, r->nshapes, r->nshapes > 1 ? "s" : "", minimum);
    return CB_OK;
}

static cb_status plan_all(comparing *r, cb_error *err)
{
    const cb__compare_request *q = &r->requests[0];
    cb__planning planning = {&r->o.common, &r->suite, r->seed, &r->device, plan_with, r};
    uint64_t model_ns = 0;
    cb_status status = cb__describe(&q->asker, q->device, q->threads, &r->device, err);
    if (status == CB_OK)
        status = cb__cli_plan(&planning, &r->model, &model_ns, err);
    r->start_ns += model_ns;
    return status;
}

/* ---- measuring ---- */

static double seconds(const comparing *r)
{
    return (double)(cb__clock_ns() - r->start_ns) * 1e-9;
}

static cb_status measure_all(comparing *r, cb__arena *arena, cb_error *err)
{
    cb_status status = CB_OK;
    for (int i = 0; i < r->nshapes && status == CB_OK; i++) {
        cb__compare_request *q = &r->requests[i];
        q->budget_s = fmax((r->o.budget_s - seconds(r)) / (r->nshapes - i), 0);
        snprintf(r->label, sizeof r->label, "%d/%d %.60s %.40s", i + 1, r->nshapes, q->variants[0],
                 q->shape ? q->shape : "");
        status = cb__compare_measure(q, arena, &r->comparisons[i], err);
        r->measured = i + 1;
    }
    return status;
}

static bool bad(const cb__comparison *c, int side)
{
    return c->sides[side].verdict == CB_VERDICT_WRONG ||
           c->sides[side].verdict == CB_VERDICT_IMPOSSIBLE;
}

/* 1 before 4, whatever the order of the pairs. */
static int exit_status(const comparing *r)
{
    bool undecided = false;
    for (int i = 0; i < r->measured; i++)
        for (int p = 0; p < r->comparisons[i].npairs; p++) {
            const cb__comparison *c = &r->comparisons[i];
            cb__decision d = c->pairs[p].decision;
            if (bad(c, c->pairs[p].a) || bad(c, c->pairs[p].b))
                return 1;
            undecided = undecided || d == CB__UNSTABLE || d == CB__INCOMPARABLE ||
                        d == CB__INCONCLUSIVE || d == CB__ANOTHER_ROUND;
        }
    return undecided ? 4 : 0;
}

static cb_status write_outputs(comparing *r, cb__record *record, cb_error *err)
{
    cb__buf json = CB__BUF_INIT, csv = CB__BUF_INIT, table = CB__BUF_INIT;
    record->wall_s = seconds(r);
    for (int i = 0; i < r->measured; i++)
        record->measure_s += r->comparisons[i].measure_s;
    if (r->o.common.json)
        cb__record_compare(record, r->comparisons, r->measured, &json);
    if (r->o.common.csv)
        cb__record_compare_csv(r->comparisons, r->measured, &csv);
    cb__report_compare(r->comparisons, r->measured, r->outputs.color, r->o.common.verbose, &table);
    cb_status status = cb__outputs_write(&r->outputs, &json, &csv, &table, err);
    cb__buf_fini(&json);
    cb__buf_fini(&csv);
    cb__buf_fini(&table);
    return status;
}

static int compare_all(comparing *r)
{
    cb_error err = CB_ERROR_INIT, write_err = CB_ERROR_INIT;
    cb__arena arena = CB__ARENA_INIT;
    cb__record record = {.kind = "compare", .seed = r->seed, .device_name = r->o.common.device};
    int code = 0;
    cb__record_now(record.started);
    cb_status status = cb__cli_shapes(&r->o.shapes, r->o.shape_list, r->shapes, &r->nshapes, &err);
    if (status == CB_OK)
        status = cb__suite_open(r->o.kernels.items, r->o.kernels.count, true, &r->suite, &err);
    if (status == CB_OK)
        status = make_requests(r, &err);
    if (status == CB_OK)
        status = cb__outputs_open(&r->o.common, &r->outputs, &err);
    if (status == CB_OK)
        status = plan_all(r, &err);
    if (status != CB_OK) {
        code = cb__cli_fail(&err);
        goto out;
    }
    cb__progress_start(&r->progress, &r->o.common);
    status = measure_all(r, &arena, &err);
    cb__progress_end(&r->progress);
    record.complete = status == CB_OK;
    record.device = &r->device;
    code = status == CB_OK ? exit_status(r) : cb__cli_fail(&err);
    if (write_outputs(r, &record, &write_err) != CB_OK)
        code = cb__cli_fail(&write_err);
out:
    cb__outputs_close(&r->outputs);
    cb__suite_close(&r->suite);
    cb_model_free(r->model);
    cb__arena_fini(&arena);
    free(r->requests);
    free(r->comparisons);
    return code;
}

static int run(int argc, char **argv)
{
    comparing r = {.o = {.common = {.seed = -1}, .cache = -1}, .start_ns = cb__clock_ns()};
    const char **positionals = calloc((size_t)argc + 1, sizeof *positionals);
    int n = 0, status = 5;
    bool done = true;
    if (positionals)
        cb__cli_parse(&cb__verb_compare, &r.o, argc, argv, positionals, &n, &done, &status);
    if (!done && (n < 2 || n > CB__SIDES_MAX)) {
        cb_error err = CB_ERROR_INIT;
        cb_error_set(&err, CB_USAGE,
                     "compare needs 2 to %d variants, such as gemv_q4:block_rows=1 "
                     "gemv_q4:block_rows=4; coldbench kernels lists them",
                     CB__SIDES_MAX);
        status = cb__cli_fail(&err);
    } else if (!done) {
        memcpy(r.variants, positionals, (size_t)n * sizeof *positionals);
        r.nvariants = n;
        r.isa = cb__cli_isa(r.o.common.device);
        r.seed = cb__cli_seed(r.o.common.seed);
        status = compare_all(&r);
    }
    free(positionals);
    return status;
}

const cb__verb cb__verb_compare = {
    .name = "compare",
    .summary = "which variant is faster, by how much, how sure, on a noisy machine too",
    .usage = "A B [C ...] [options]      each KERNEL[@param=value,...][/implementation]"
             "[:tunable=value,...]",
    .details = "Each round is a fresh process: A, a second copy of A, B and every other side on "
               "the same operands, in\n"
               "random order. Rounds go on until every pair is decided: slower, faster or a tie, "
               "within the margin.\n"
               "The ratio is the time of B over the time of A, with an interval that holds however "
               "often one looks.\n"
               "Outputs are verified against an f64 reference before and after timing.\n\n"
               "example:\n"
               "  coldbench compare gemv_q4:block_rows=1 gemv_q4:block_rows=4 --shape 256x1024 "
               "--cache warm\n\n"
               "on an NVIDIA GPU:\n"
               "  coldbench compare gemv_q4:block_rows=16 gemv_q4:block_rows=32 --shape 14336x4096 "
               "--device cuda:0\n",
    .options = options,
    .noptions = sizeof options / sizeof *options,
    .run = run,
};
