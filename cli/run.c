#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "cli.h"
#include "host/clock.h"
#include "report/report.h"

typedef struct run_options {
    cb__common_options common;
    cb__option_list shapes, kernels;
    const char *shape_list;
    int cache, submit;
    double budget_s;
} run_options;

static const char *const cache_words[] = {"cold", "warm", "both", NULL};
static const char *const submit_words[] = {"solo", "batched", "both", NULL};

static const cb__option options[] = {
    CB__SHAPE_OPTION(run_options),
    CB__SHAPES_OPTION(run_options),
    {.name = "kernel",
     .kind = CB__OPT_LIST,
     .offset = offsetof(run_options, kernels),
     .arg = "FILE.so",
     .help = "load a kernel module of your own"},
    {.name = "cache",
     .kind = CB__OPT_CHOICE,
     .offset = offsetof(run_options, cache),
     .arg = "STATE",
     .preset = "both",
     .choices = cache_words,
     .help = "cold: launches rotate through distinct sets; warm: one set again and again"},
    {.name = "submit",
     .kind = CB__OPT_CHOICE,
     .offset = offsetof(run_options, submit),
     .arg = "MODE",
     .preset = "both",
     .choices = submit_words,
     .help = "solo: submit and wait, host clock; batched: many launches in one dispatch"},
    {.name = "budget",
     .kind = CB__OPT_REAL,
     .offset = offsetof(run_options, budget_s),
     .arg = "S",
     .min = 0,
     .max = 86400,
     .help =
         "wall seconds of the whole command, shared by its cases, of which each gets six rounds "
         "in any case; left out: 5 a case"},
    CB__COMMON_OPTIONS,
};

typedef struct running {
    run_options o;
    cb__suite suite;
    unsigned isa;
    uint64_t seed, start_ns;
    const char *variants[32];
    int nvariants;
    const char *shapes[CB__CLI_SHAPES_MAX];
    int nshapes;
    cb__run_request *requests;
    cb__run_case *cases;
    int ncases, measured;
    cb__device_info device;
    bool described;
    cb_model *model;
    cb__progress progress;
    char label[128];
    cb__outputs outputs;
} running;

/* ---- progress ---- */

static void show(void *arg, const char *what, int round)
{
    running *r = arg;
    cb__progress_step(&r->progress, r->label, what, round);
}

/* ---- what is asked ---- */

/* A kernel that streams nothing has no cold state: with the default of both it is measured warm. */
static cb_status choose_states(const running *r, cb__run_request *q, cb_error *err)
{
    cb__case c;
    q->caches[CB__COLD] = r->o.cache != 1;
    q->caches[CB__WARM] = r->o.cache != 0;
    q->submits[CB__SOLO] = r->o.submit != 1;
    q->submits[CB__BATCHED] = r->o.submit != 0;
    cb_status status = cb__case_parse(&r->suite, q->variant, q->shape, r->isa, &c, err);
    if (status != CB_OK)
        return status;
    if (!cb__kernel_streams(c.kernel) && r->o.cache == 2)
        q->caches[CB__COLD] = false;
    q->module = c.module->builtin ? NULL : c.module->origin;
    return CB_OK;
}

static cb_status make_requests(running *r, cb_error *err)
{
    r->ncases = r->nvariants * r->nshapes;
    r->requests = calloc((size_t)r->ncases, sizeof *r->requests);
    r->cases = calloc((size_t)r->ncases, sizeof *r->cases);
    if (!r->requests || !r->cases)
        return cb_error_set(err, CB_NO_MEMORY, "no memory for %d cases", r->ncases);
    cb_status status = CB_OK;
    for (int i = 0; i < r->ncases && status == CB_OK; i++) {
        cb__run_request *q = &r->requests[i];
        *q = (cb__run_request){.suite = &r->suite,
                               .isa = r->isa,
                               .device = r->o.common.device,
                               .threads = (int)r->o.common.threads,
                               .variant = r->variants[i / r->nshapes],
                               .shape = r->shapes[i % r->nshapes],
                               .seed = r->seed,
                               .asker = {.stop = &cb__stop, .silence_s = 10},
                               .phase = show,
                               .arg = r};
        status = choose_states(r, q, err);
    }
    return status;
}

static cb_status plan_with(void *arg, const cb_model *model, cb_error *err)
{
    running *r = arg;
    double minimum = 0;
    for (int i = 0; i < r->ncases; i++) {
        r->requests[i].model = model;
        cb_status status = cb__run_plan(&r->requests[i], &r->device, &r->cases[i], err);
        if (status != CB_OK)
            return status;
        minimum += cb__run_budget_min(&r->cases[i]);
    }
    if (r->o.budget_s >= 0 && r->o.budget_s < minimum)
        return cb_error_set(err, CB_USAGE,
                            "--budget %g is too small for %d case%s; the minimum is %g s",
                            r->o.budget_s, r->ncases, r->ncases > 1 ? "s" : "", minimum);
    return CB_OK;
}

static cb_status plan_all(running *r, cb_error *err)
{
    cb__planning planning = {&r->o.common, &r->suite, r->seed, &r->device, plan_with, r};
    uint64_t model_ns = 0;
    cb_status status = cb__run_describe(&r->requests[0], &r->device, err);
    r->described = status == CB_OK;
    if (status == CB_OK)
        status = cb__cli_plan(&planning, &r->model, &model_ns, err);
    r->start_ns += model_ns;
    return status;
}

/* ---- measuring ---- */

static double seconds(const running *r)
{
    return (double)(cb__clock_ns() - r->start_ns) * 1e-9;
}

static cb_status measure_all(running *r, cb__arena *arena, cb_error *err)
{
    double budget = r->o.budget_s >= 0 ? r->o.budget_s : 5.0 * r->ncases;
    cb_status status = CB_OK;
    for (int i = 0; i < r->ncases && status == CB_OK; i++) {
        cb__run_request *q = &r->requests[i];
        q->budget_s = fmax((budget - seconds(r)) / (r->ncases - i), 0);
        snprintf(r->label, sizeof r->label, "%d/%d %.60s %.40s", i + 1, r->ncases, q->variant,
                 q->shape ? q->shape : "");
        status = cb__run_measure(q, arena, &r->cases[i], err);
        r->measured = i + 1;
    }
    return status;
}

/* 1 before 4, whatever the order of the rows. */
static int exit_status(const running *r)
{
    bool undecided = false;
    for (int i = 0; i < r->measured; i++)
        for (int j = 0; j < r->cases[i].nrows; j++) {
            cb_verdict v = r->cases[i].rows[j].verdict;
            if (v == CB_VERDICT_WRONG || v == CB_VERDICT_IMPOSSIBLE)
                return 1;
            undecided = undecided || v == CB_VERDICT_CONTAMINATED || v == CB_VERDICT_UNSTABLE ||
                        v == CB_VERDICT_UNKNOWN;
        }
    return undecided ? 4 : 0;
}

static cb_status write_outputs(running *r, cb__record *record, cb_error *err)
{
    cb__buf json = CB__BUF_INIT, csv = CB__BUF_INIT, table = CB__BUF_INIT;
    record->wall_s = seconds(r);
    for (int i = 0; i < r->measured; i++)
        record->measure_s += r->cases[i].measure_s;
    cb__record_run(record, r->cases, r->measured, &json);
    cb__record_run_csv(r->cases, r->measured, &csv);
    cb__report_run(r->cases, r->measured, r->outputs.color, r->o.common.verbose, &table);
    cb_status status = cb__outputs_write(&r->outputs, &json, &csv, &table, err);
    cb__buf_fini(&json);
    cb__buf_fini(&csv);
    cb__buf_fini(&table);
    return status;
}

static int run_all(running *r)
{
    cb_error err = CB_ERROR_INIT, write_err = CB_ERROR_INIT;
    cb__arena arena = CB__ARENA_INIT;
    cb__record record = {.kind = "run", .seed = r->seed, .device_name = r->o.common.device};
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
    free(r->cases);
    return code;
}

static int run(int argc, char **argv)
{
    running r = {.o = {.common = {.seed = -1}, .budget_s = -1}, .start_ns = cb__clock_ns()};
    const char **positionals = calloc((size_t)argc + 1, sizeof *positionals);
    int n = 0, status = 5;
    bool done = true;
    if (positionals)
        cb__cli_parse(&cb__verb_run, &r.o, argc, argv, positionals, &n, &done, &status);
    if (!done && (n < 1 || n > 32)) {
        cb_error err = CB_ERROR_INIT;
        cb_error_set(&err, CB_USAGE,
                     "run needs 1 to 32 kernels, such as gemv_q4; coldbench kernels lists them");
        status = cb__cli_fail(&err);
    } else if (!done) {
        memcpy(r.variants, positionals, (size_t)n * sizeof *positionals);
        r.nvariants = n;
        r.isa = cb__cli_isa(r.o.common.device);
        r.seed = cb__cli_seed(r.o.common.seed);
        status = run_all(&r);
    }
    free(positionals);
    return status;
}

const cb__verb cb__verb_run = {
    .name = "run",
    .summary = "measure a kernel cold and warm, solo and batched, beside its twin, verified",
    .usage = "KERNEL[@param=value,...][/implementation][:tunable=value,...]... [options]",
    .details = "Each case runs in at least six rounds, every one a fresh process, until the paired "
               "ratio to\n"
               "its twin has settled within 5 % or the budget is spent. Outputs are verified "
               "against an f64\n"
               "reference before and after timing. Every row ends in a verdict.\n\n"
               "example:\n"
               "  coldbench run gemv_q4 --shape 1024x4096 --budget 2\n\n"
               "on an NVIDIA GPU:\n"
               "  coldbench run gemv_q4@act=bf16 --shape 14336x4096 --device cuda:0\n",
    .options = options,
    .noptions = sizeof options / sizeof *options,
    .run = run,
};
