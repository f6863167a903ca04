#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "host/clock.h"
#include "model/query.h"
#include "report/report.h"

typedef struct gate_options {
    cb__common_options common;
    cb__option_list shapes, kernels;
    const char *base, *head, *suite, *markdown, *benchmark;
    int cache, submit;
    double budget_s, alpha, margin;
} gate_options;

static const cb__option options[] = {
    {.name = "base",
     .kind = CB__OPT_TEXT,
     .offset = offsetof(gate_options, base),
     .arg = "DIR|FILE",
     .help = "the build that was: a kernel module (NAME.so), a folder that coldbench kernels "
             "--export wrote, a coldbench program or its build folder"},
    {.name = "head",
     .kind = CB__OPT_TEXT,
     .offset = offsetof(gate_options, head),
     .arg = "DIR|FILE",
     .help = "the build that is to be let through, likewise"},
    {.name = "suite",
     .kind = CB__OPT_TEXT,
     .offset = offsetof(gate_options, suite),
     .arg = "NAME",
     .preset = "default",
     .help = "cases where neither --kernel nor --shape is given: gemv_q4 at three shapes of "
             "llama-3-8b cold, stream_read at three sizes warm, as far as both builds have them"},
    {.name = "kernel",
     .kind = CB__OPT_LIST,
     .offset = offsetof(gate_options, kernels),
     .arg = "VARIANT",
     .help = "this kernel, at every --shape; left out: every kernel of the modules"},
    CB__SHAPE_OPTION(gate_options),
    {.name = "cache",
     .kind = CB__OPT_CHOICE,
     .offset = offsetof(gate_options, cache),
     .arg = "STATE",
     .choices = cb__cache_words,
     .help =
         "of every case; left out: as the suite says, else cold where the kernel streams anything"},
    CB__SUBMIT_OPTION(gate_options),
    {.name = "budget",
     .kind = CB__OPT_REAL,
     .offset = offsetof(gate_options, budget_s),
     .arg = "S",
     .min = 0,
     .max = 86400,
     .help = "wall seconds of all cases; left out: 10 a case; a case ends as soon as it is "
             "decided"},
    CB__ALPHA_OPTION(gate_options),
    {.name = "margin",
     .kind = CB__OPT_REAL,
     .offset = offsetof(gate_options, margin),
     .arg = "P",
     .min = 1e-6,
     .max = 10,
     .help = "slower by more than this is a regression; left out: 1% warm, 2% cold"},
    {.name = "markdown",
     .kind = CB__OPT_TEXT,
     .offset = offsetof(gate_options, markdown),
     .arg = "FILE|-",
     .help = "write the summary as a Markdown table, for a pull request"},
    {.name = "json-benchmark",
     .kind = CB__OPT_TEXT,
     .offset = offsetof(gate_options, benchmark),
     .arg = "FILE|-",
     .help = "write the times as Google Benchmark's JSON"},
    CB__COMMON_OPTIONS,
};

typedef struct gating {
    gate_options o;
    cb__gate_request request;
    cb__gate gate;
    cb__suite suite; /* of this program: what a missing machine model is probed with */
    cb__device_info device;
    cb_model *model;
    cb__progress progress;
    cb__outputs outputs, summaries; /* summaries: Markdown and Google Benchmark's */
    uint64_t start_ns;
} gating;

static void show(void *arg, const char *what, int round)
{
    gating *r = arg;
    char label[192];
    const cb__gate_case *c = &r->gate.cases[r->gate.current];
    snprintf(label, sizeof label, "%d/%d %.80s %.40s", r->gate.current + 1, r->gate.ncases,
             c->variant, c->shape ? c->shape : "");
    cb__progress_step(&r->progress, label, what, round);
}

static bool to_stdout(const char *path)
{
    return path && strcmp(path, "-") == 0;
}

static cb_status open_outputs(gating *r, cb_error *err)
{
    const gate_options *o = &r->o;
    int n = to_stdout(o->common.json) + to_stdout(o->common.csv) + to_stdout(o->markdown) +
            to_stdout(o->benchmark);
    if (n > 1)
        return cb_error_set(err, CB_USAGE,
                            "--json, --csv, --markdown and --json-benchmark: only one can go to "
                            "standard output");
    if (o->markdown || o->benchmark) {
        cb_status refused = cb__each_refuses("--markdown or --json-benchmark", err);
        if (refused != CB_OK)
            return refused;
    }
    cb__common_options summaries = {.json = o->markdown, .csv = o->benchmark, .quiet = true};
    cb_status status = cb__outputs_open(&o->common, &r->outputs, err);
    if (status == CB_OK)
        status = cb__outputs_open(&summaries, &r->summaries, err);
    if (status == CB_OK && r->outputs.table && n > 0)
        r->outputs.table = stderr;
    return status;
}

static void make_request(gating *r)
{
    const gate_options *o = &r->o;
    r->request = (cb__gate_request){.base = o->base,
                                    .head = o->head,
                                    .suite = o->suite,
                                    .kernels = o->kernels.items,
                                    .shapes = o->shapes.items,
                                    .nkernels = o->kernels.count,
                                    .nshapes = o->shapes.count,
                                    .cache = o->cache,
                                    .submit = (cb__submit)o->submit,
                                    .budget_s = o->budget_s,
                                    .alpha = o->alpha,
                                    .margin = o->margin,
                                    .device = o->common.device,
                                    .threads = (int)o->common.threads,
                                    .isa = cb__cli_isa(o->common.device),
                                    .seed = cb__cli_seed(o->common.seed),
                                    .asker = {.stop = &cb__stop, .silence_s = 10},
                                    .phase = show,
                                    .arg = r};
}

static cb_status plan_with(void *arg, const cb_model *model, cb_error *err)
{
    gating *r = arg;
    return cb__gate_plan(&r->request, &r->device, cb__model_beyond_bytes(model, r->device.threads),
                         &r->gate, err);
}

/* The device is asked for identical builds too: one that is not there is said either way. */
static cb_status plan(gating *r, cb_error *err)
{
    const cb__gate_request *q = &r->request;
    cb__planning planning = {&r->o.common, &r->suite, q->seed, &r->device, plan_with, r};
    uint64_t model_ns = 0;
    cb_status status = cb__describe(&q->asker, q->device, q->threads, &r->device, err);
    if (status != CB_OK || cb__gate_to_measure(&r->gate) == 0)
        return status;
    status = cb__suite_open(NULL, 0, false, &r->suite, err);
    return status == CB_OK ? cb__cli_plan(&planning, &r->model, &model_ns, err) : status;
}

static cb_status write_outputs(gating *r, cb__record *record, cb_error *err)
{
    cb__buf text[5] = {CB__BUF_INIT, CB__BUF_INIT, CB__BUF_INIT, CB__BUF_INIT, CB__BUF_INIT};
    record->wall_s = (double)(cb__clock_ns() - r->start_ns) * 1e-9;
    for (int i = 0; i < r->gate.ncases; i++)
        record->measure_s += r->gate.cases[i].comparison.measure_s;
    if (r->o.common.json)
        cb__record_gate(record, &r->gate, &text[0]);
    if (r->o.common.csv)
        cb__record_gate_csv(&r->gate, &text[1]);
    cb__report_gate(&r->gate, r->outputs.color, r->o.common.verbose, &text[2]);
    if (r->o.markdown)
        cb__report_gate_markdown(&r->gate, &text[3]);
    if (r->o.benchmark)
        cb__record_gate_benchmark(record, &r->gate, &text[4]);
    cb_status first = cb__outputs_write(&r->outputs, &text[0], &text[1], &text[2], err);
    cb_status second = cb__outputs_write(&r->summaries, &text[3], &text[4], NULL, err);
    for (int i = 0; i < 5; i++)
        cb__buf_fini(&text[i]);
    return first != CB_OK ? first : second;
}

static cb_status gate_all(gating *r, int *code, cb_error *err)
{
    cb_error write_err = CB_ERROR_INIT;
    cb__arena arena = CB__ARENA_INIT;
    cb__record record = {
        .kind = "gate", .seed = r->request.seed, .device_name = r->o.common.device};
    cb__record_now(record.started);
    cb_status status = open_outputs(r, err);
    if (status == CB_OK)
        status = cb__gate_open(&r->request, &r->gate, err);
    if (status == CB_OK)
        status = plan(r, err);
    if (status != CB_OK)
        return status;
    record.device = &r->device;
    cb__progress_start(&r->progress, &r->o.common);
    status = cb__gate_measure(&arena, &r->gate, err);
    cb__progress_end(&r->progress);
    record.complete = status == CB_OK;
    *code = cb__gate_exit(&r->gate);
    bool some = status == CB_OK || status == CB_INTERRUPTED || r->gate.nmeasured > 1;
    if (some && write_outputs(r, &record, &write_err) != CB_OK)
        *code = cb__cli_fail(&write_err);
    cb__arena_fini(&arena);
    return status;
}

static cb_status check_usage(const gate_options *o, int npositionals, const char *first,
                             cb_error *err)
{
    if (npositionals > 0)
        return cb_error_set(err, CB_USAGE,
                            "gate takes no argument, '%s'; a kernel is named with "
                            "--kernel",
                            first);
    if (!o->base || !o->head)
        return cb_error_set(err, CB_USAGE,
                            "gate needs --base and --head: two kernel modules, two folders of "
                            "coldbench kernels --export, or two coldbench programs");
    return CB_OK;
}

static int run(int argc, char **argv)
{
    gating *r = calloc(1, sizeof *r);
    const char **positionals = calloc((size_t)argc + 1, sizeof *positionals);
    int n = 0, code = 5;
    bool done = true;
    if (r && positionals) {
        r->o.common.seed = -1;
        r->o.cache = -1;
        r->start_ns = cb__clock_ns();
        cb__cli_parse(&cb__verb_gate, &r->o, argc, argv, positionals, &n, &done, &code);
    }
    if (!done) {
        cb_error err = CB_ERROR_INIT;
        cb_status status = check_usage(&r->o, n, positionals[0], &err);
        if (status == CB_OK) {
            make_request(r);
            status = gate_all(r, &code, &err);
        }
        if (status != CB_OK)
            code = cb__cli_fail(&err);
        cb__outputs_close(&r->outputs);
        cb__outputs_close(&r->summaries);
        cb__suite_close(&r->suite);
        cb_model_free(r->model);
        cb__gate_close(&r->gate);
    }
    free(positionals);
    free(r);
    return code;
}

const cb__verb cb__verb_gate = {
    .name = "gate",
    .summary = "did this change make a kernel slower, on this machine, now",
    .usage = "--base DIR|FILE --head DIR|FILE [options]",
    .details = "Both builds run beside each other, as compare does it; nothing is compared with a "
               "figure from earlier.\n"
               "Modules of the same bytes are not measured; kernels on one side only are named.\n"
               "Exit status: 0 no regression, 1 a regression or a wrong head, 4 when it could not "
               "tell.\n\n"
               "example:\n"
               "  coldbench gate --base old --head new --markdown summary.md\n\n"
               "on an NVIDIA GPU, modules with CUDA code (examples/skeleton.c):\n"
               "  coldbench gate --base old.so --head new.so --shape 16777216 --device cuda:0\n",
    .options = options,
    .noptions = sizeof options / sizeof *options,
    .run = run,
};
