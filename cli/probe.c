#include <stdlib.h>

#include "cli.h"
#include "host/clock.h"
#include "report/report.h"
#include "run/probe.h"

typedef struct probe_options {
    cb__common_options common;
    bool quick;
    double budget;
    const char *model;
} probe_options;

static const cb__option options[] = {
    {.name = "quick",
     .kind = CB__OPT_FLAG,
     .offset = offsetof(probe_options, quick),
     .help = "the same range of sizes with fewer of them, in 20 s"},
    {.name = "budget",
     .kind = CB__OPT_REAL,
     .offset = offsetof(probe_options, budget),
     .arg = "S",
     .min = 5,
     .max = 86400,
     .help = "wall seconds of the whole command, at least 5, most valuable sweeps first; left out: "
             "120, with --quick 20"},
    {.name = "model",
     .kind = CB__OPT_TEXT,
     .offset = offsetof(probe_options, model),
     .arg = "FILE",
     .help = "where to store the model; left out: its place in the data folder, where coldbench "
             "model and run look for it"},
    CB__COMMON_OPTIONS,
};

typedef struct probing {
    probe_options o;
    cb__progress progress;
    char what[96], place[4096];
    double seen;
} probing;

static void show(probing *p)
{
    char text[160];
    snprintf(text, sizeof text, "probe: %s, %.0f %%", p->what, 100 * p->seen);
    cb__progress_show(&p->progress, text);
}

static void show_phase(void *arg, const char *what, int sweep)
{
    probing *p = arg;
    snprintf(p->what, sizeof p->what, "sweep %d of %d, %.64s", sweep + 1,
             p->o.quick ? CB__PROBE_QUICK_SWEEPS : CB__PROBE_SWEEPS, what);
    p->seen = 0;
    show(p);
}

static void show_progress(void *arg, double done)
{
    probing *p = arg;
    p->seen = done;
    show(p);
}

/* 1 before 4, whatever comes first. */
static int worse(int status, cb_verdict v)
{
    if (status == 1 || v == CB_VERDICT_WRONG || v == CB_VERDICT_IMPOSSIBLE)
        return 1;
    return v == CB_VERDICT_OK || v == CB_VERDICT_LOWER_BOUND ? status : 4;
}

/* A probe without a curve has decided nothing, and its controls have no point to tell of. */
static int without_curves(const cb_model *model)
{
    int status = 4;
    for (int i = 0; i < model->nchecks; i++)
        if (model->checks[i].status == CB__FAIL)
            status = worse(status, model->checks[i].verdict);
    return status;
}

static int exit_status(const cb_model *model)
{
    int status = model->nseries ? 0 : without_curves(model);
    for (int i = 0; i < model->nseries; i++)
        for (int j = 0; j < model->series[i].n; j++)
            status = worse(status, model->series[i].points[j].verdict);
    for (int i = 0; i < model->nceilings; i++)
        status = worse(status, model->ceilings[i].verdict);
    for (int i = 0; i < model->nfloors; i++)
        status = worse(status, model->floors[i].verdict);
    for (int i = 0; i < model->ncomputes; i++)
        status = worse(status, model->computes[i].verdict);
    return status;
}

static cb_status write_outputs(cb__outputs *outputs, const probing *p, cb__record *record,
                               const cb__probe *probe, const cb_model *model, cb_error *err)
{
    cb__buf json = CB__BUF_INIT, csv = CB__BUF_INIT, table = CB__BUF_INIT;
    record->complete = probe->complete;
    record->wall_s = probe->wall_s;
    record->measure_s = probe->measure_s;
    record->device = &probe->device;
    cb__record_sweeps(record, probe, model, &json);
    cb__record_sweeps_csv(probe, model, &csv);
    cb__report_probe_chart(probe, model, &table);
    cb__buf_puts(&table, "\n");
    cb__report_probe_table(probe, model, outputs->color, p->o.common.verbose, &table);
    cb_status status = cb__outputs_write(outputs, &json, &csv, &table, err);
    cb__buf_fini(&json);
    cb__buf_fini(&csv);
    cb__buf_fini(&table);
    return status;
}

/* A model of part of the machine, or of a scripted one, goes only where it was asked to go. */
static const char *why_not_stored(const probing *p)
{
    const cb__backend *backend = NULL;
    const char *script = NULL;
    if (p->o.model || cb__backend_find(p->o.common.device, &backend, &script, NULL) != CB_OK)
        return NULL;
    if (backend->capabilities & CB__DEVICE_VIRTUAL_CLOCK)
        return "a scripted device has none of its own";
    return p->o.common.threads ? "--threads makes it one of a part of the machine" : NULL;
}

/* Where it will go; before anything is measured. */
static cb_status find_place(probing *p, cb_error *err)
{
    const cb__backend *backend = NULL;
    const char *script = NULL;
    char identity[64];
    if (why_not_stored(p))
        return CB_OK;
    cb_status status = CB_OK;
    if (p->o.model) {
        snprintf(p->place, sizeof p->place, "%s", p->o.model);
    } else {
        status = cb__backend_find(p->o.common.device, &backend, &script, err);
        if (status == CB_OK)
            status = backend->identify(script, identity, err);
        if (status == CB_OK)
            status = cb__model_path(identity, p->place, sizeof p->place, err);
    }
    return status == CB_OK ? cb__model_place_check(p->place, err) : status;
}

/* The stored model has curves that the new one lacks: it is kept. */
static bool would_lose(const probing *p, const cb_model *model)
{
    cb_model *old = NULL;
    bool fuller = !p->o.model && cb__model_load(p->place, model->identity, &old, NULL) == CB_OK &&
                  old->complete && old->nseries > model->nseries;
    cb_model_free(old);
    return fuller;
}

static cb_status store(const probing *p, const cb__probe *probe, const cb_model *model,
                       cb_error *err)
{
    const char *why_not = why_not_stored(p);
    if (!why_not && !probe->complete)
        why_not = "the probe was not completed";
    if (!why_not && model->nseries == 0)
        why_not = "no size was measured";
    if (!why_not && would_lose(p, model))
        why_not = "the one that is there has more curves (--model FILE puts this one elsewhere)";
    cb_status status = why_not ? CB_OK : cb__model_store(model, p->place, err);
    if (status == CB_OK && !p->o.common.quiet)
        fprintf(stderr, "coldbench: the model is %s%s\n", why_not ? "not stored: " : "stored in ",
                why_not ? why_not : p->place);
    return status;
}

static int finish(probing *p, cb_status status, cb__outputs *outputs, cb__record *record,
                  const cb__probe *probe, const cb_model *model, cb_error *err)
{
    cb_error write_err = CB_ERROR_INIT, store_err = CB_ERROR_INIT;
    int code = status == CB_OK ? exit_status(model) : cb__cli_fail(err);
    if (status != CB_OK && status != CB_INTERRUPTED)
        return code;
    if (probe->failure.status != CB_OK)
        code = cb__cli_fail(&probe->failure);
    if (write_outputs(outputs, p, record, probe, model, &write_err) != CB_OK)
        code = cb__cli_fail(&write_err);
    if (store(p, probe, model, &store_err) != CB_OK)
        code = cb__cli_fail(&store_err);
    return code;
}

static int probe_all(probing *p)
{
    cb_error err = CB_ERROR_INIT;
    cb__suite suite = {0};
    cb__outputs outputs = {0};
    cb__record record = {
        .kind = "probe", .seed = cb__cli_seed(p->o.common.seed), .device_name = p->o.common.device};
    cb__probe *probe = calloc(1, sizeof *probe);
    cb_model *model = cb__model_new();
    int code;
    cb__record_now(record.started);
    cb_status status = probe && model ? cb__suite_open(NULL, 0, false, &suite, &err)
                                      : cb_error_set(&err, CB_NO_MEMORY, "no memory for a model");
    if (status == CB_OK)
        status = cb__outputs_open(&p->o.common, &outputs, &err);
    if (status == CB_OK && p->o.model)
        status = cb__each_refuses("--model FILE", &err);
    if (status == CB_OK)
        status = find_place(p, &err);
    if (status == CB_OK) {
        double preset = p->o.quick ? CB__PROBE_QUICK_BUDGET_S : CB__PROBE_BUDGET_S;
        cb__probe_request request = {
            .suite = &suite,
            .isa = cb__cli_isa(p->o.common.device),
            .device = p->o.common.device,
            .threads = (int)p->o.common.threads,
            .quick = p->o.quick,
            .budget_s = p->o.budget > 0 ? p->o.budget : preset,
            .seed = record.seed,
            .asker = {.stop = &cb__stop, .silence_s = 10, .progress = show_progress, .arg = p},
            .phase = show_phase,
            .arg = p};
        cb__progress_start(&p->progress, &p->o.common);
        status = cb__probe_measure(&request, probe, model, &err);
        cb__progress_end(&p->progress);
        code = finish(p, status, &outputs, &record, probe, model, &err);
    } else {
        code = cb__cli_fail(&err);
    }
    cb__outputs_close(&outputs);
    cb__suite_close(&suite);
    cb_model_free(model);
    free(probe);
    return code;
}

static int probe(int argc, char **argv)
{
    probing p = {.o = {.common = {.seed = -1}}};
    const char **positionals = calloc((size_t)argc + 1, sizeof *positionals);
    int n = 0, status = 5;
    bool done = true;
    if (positionals)
        cb__cli_parse(&cb__verb_probe, &p.o, argc, argv, positionals, &n, &done, &status);
    if (!done && n > 0) {
        cb_error err = CB_ERROR_INIT;
        cb_error_set(&err, CB_USAGE, "probe takes no argument, '%s' was given", positionals[0]);
        status = cb__cli_fail(&err);
    } else if (!done) {
        status = probe_all(&p);
    }
    free(positionals);
    return status;
}

const cb__verb cb__verb_probe = {
    .name = "probe",
    .summary = "measure what this machine can do: caches, memory, floors, ceilings",
    .usage = "[options]",
    .details =
        "Bandwidth of reading, writing and copying and latency of dependent loads over sets of\n"
        "4 KiB to 8x the last-level caches (or a quarter of memory), by one thread, by all and by\n"
        "counts between; dispatch floors; rates of arithmetic. Sizes in random order, six whole\n"
        "sweeps (three with --quick) in fresh processes, ten controls. What was learned is\n"
        "stored as the machine's model.\n\n"
        "Of a GPU: 256 KiB to 4 GiB (--quick: 1 GiB) by all multiprocessors, past and in their\n"
        "first caches; dependent loads; floors of solo, queued and batched launches; tensor\n"
        "cores; shared memory over strides, its banks, and paddings that were timed.\n\n"
        "example:\n"
        "  coldbench probe --quick\n\n"
        "on an NVIDIA GPU, and on every one there is:\n"
        "  coldbench probe --quick --device cuda:0\n"
        "  coldbench probe --device cuda:all --json models.json\n",
    .options = options,
    .noptions = sizeof options / sizeof *options,
    .run = probe,
};
