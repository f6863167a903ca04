#include <stdlib.h>

#include "cli.h"
#include "host/clock.h"
#include "report/report.h"

typedef struct probe_options {
    cb__common_options common;
    bool quick;
} probe_options;

static const cb__option options[] = {
    {.name = "quick",
     .kind = CB__OPT_FLAG,
     .offset = offsetof(probe_options, quick),
     .help = "the same range of sizes with half the points"},
    CB__COMMON_OPTIONS,
};

typedef struct probing {
    probe_options o;
    cb__progress progress;
} probing;

static void show(void *arg, const char *what, int round)
{
    probing *p = arg;
    char text[128];
    snprintf(text, sizeof text, "probe: %s, %d of %d", what, round + 1, CB__CURVE_SWEEPS);
    cb__progress_show(&p->progress, text);
}

static int exit_status(const cb__curve *curve)
{
    for (int i = 0; i < curve->n; i++) {
        cb_verdict v = curve->points[i].verdict;
        if (v == CB_VERDICT_CONTAMINATED || v == CB_VERDICT_UNSTABLE || v == CB_VERDICT_UNKNOWN)
            return 4;
    }
    return 0;
}

static cb_status write_outputs(cb__outputs *outputs, cb__record *record, const cb__curve *curve,
                               cb_error *err)
{
    cb__buf json = CB__BUF_INIT, csv = CB__BUF_INIT, table = CB__BUF_INIT;
    record->complete = curve->complete;
    record->wall_s = curve->wall_s;
    record->measure_s = curve->measure_s;
    record->device = &curve->device;
    cb__record_probe(record, curve, &json);
    cb__record_probe_csv(curve, &csv);
    cb__report_curve_table(curve, outputs->color, &table);
    cb__buf_puts(&table, "\n");
    cb__report_curve_chart(curve, &table);
    cb_status status = cb__outputs_write(outputs, &json, &csv, &table, err);
    cb__buf_fini(&json);
    cb__buf_fini(&csv);
    cb__buf_fini(&table);
    return status;
}

static int probe_all(probing *p)
{
    cb_error err = CB_ERROR_INIT, write_err = CB_ERROR_INIT;
    cb__suite suite = {0};
    cb__outputs outputs = {0};
    cb__record record = {
        .kind = "probe", .seed = cb__cli_seed(p->o.common.seed), .device_name = p->o.common.device};
    cb__curve *curve = calloc(1, sizeof *curve);
    cb__record_now(record.started);
    cb_status status = curve ? cb__suite_open(NULL, 0, false, &suite, &err)
                             : cb_error_set(&err, CB_NO_MEMORY, "no memory for a curve");
    if (status == CB_OK)
        status = cb__outputs_open(&p->o.common, &outputs, &err);
    int code = 0;
    if (status == CB_OK) {
        cb__curve_request request = {.suite = &suite,
                                     .isa = cb__cli_isa(),
                                     .device = p->o.common.device,
                                     .threads = (int)p->o.common.threads,
                                     .quick = p->o.quick,
                                     .seed = record.seed,
                                     .asker = {.stop = &cb__stop, .silence_s = 10},
                                     .phase = show,
                                     .arg = p};
        cb__progress_start(&p->progress, &p->o.common);
        status = cb__curve_measure(&request, curve, &err);
        cb__progress_end(&p->progress);
        code = status == CB_OK ? exit_status(curve) : cb__cli_fail(&err);
        bool some = status == CB_OK || status == CB_INTERRUPTED;
        if (some && write_outputs(&outputs, &record, curve, &write_err) != CB_OK)
            code = cb__cli_fail(&write_err);
    } else {
        code = cb__cli_fail(&err);
    }
    cb__outputs_close(&outputs);
    cb__suite_close(&suite);
    free(curve);
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
    .summary = "measure how fast this machine reads, over working sets",
    .usage = "[options]",
    .details = "Reads sets of 8 KiB to 8x the last-level caches (or a quarter of memory) with one "
               "thread and\n"
               "with all, in random order, three whole sweeps in fresh processes.\n\n"
               "example:\n"
               "  coldbench probe --quick\n",
    .options = options,
    .noptions = sizeof options / sizeof *options,
    .run = probe,
};
