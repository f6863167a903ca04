#include <stdlib.h>

#include "cli.h"
#include "report/report.h"
#include "run/selftest.h"

typedef struct selftest_options {
    cb__common_options common;
    int64_t runs;
    int only; /* -1: everything */
    bool quick, load;
} selftest_options;

static const char *const part_words[] = {"faults", "launches", "timer", "aa", "planted", NULL};
enum { PART_FAULTS, PART_LAUNCHES, PART_TIMER, PART_AA, PART_PLANTED };

static const cb__option options[] = {
    {.name = "runs",
     .kind = CB__OPT_INT,
     .offset = offsetof(selftest_options, runs),
     .arg = "N",
     .min = 1,
     .max = CB__SELFTEST_RUNS_MAX,
     .help = "comparisons of each kind, and how many times each fault is seeded; left out: 100 (5 "
             "with --quick; of a GPU 10, 1 with --quick; 1 on a scripted device) and once"},
    {.name = "only",
     .kind = CB__OPT_CHOICE,
     .offset = offsetof(selftest_options, only),
     .arg = "PART",
     .choices = part_words,
     .help = "one part: seeded faults, those of launches alone, the timer, comparisons of "
             "identical code, planted differences."},
    {.name = "load",
     .kind = CB__OPT_FLAG,
     .offset = offsetof(selftest_options, load),
     .help = "each comparison under load too: a process a core, that computes and streams, "
             "started and ended here"},
    {.name = "quick",
     .kind = CB__OPT_FLAG,
     .offset = offsetof(selftest_options, quick),
     .help = "under 60 s, of a GPU under 45; says what so few runs can prove"},
    CB__COMMON_OPTIONS,
};

typedef struct selftesting {
    selftest_options o;
    cb__progress progress;
} selftesting;

static void show_phase(void *arg, const char *what, int run)
{
    selftesting *s = arg;
    char text[128];
    (void)run;
    snprintf(text, sizeof text, "selftest: %.110s", what);
    cb__progress_show(&s->progress, text);
}

static cb_status write_outputs(cb__outputs *outputs, const selftesting *s, cb__record *record,
                               const cb__selftest *found, cb_error *err)
{
    cb__buf json = CB__BUF_INIT, csv = CB__BUF_INIT, table = CB__BUF_INIT;
    record->complete = found->complete;
    record->wall_s = found->wall_s;
    record->measure_s = found->measure_s;
    record->device = &found->device;
    cb__record_selftest(record, found, &json);
    cb__record_selftest_csv(found, &csv);
    cb__report_selftest(found, s->o.common.verbose, &table);
    cb_status status = cb__outputs_write(outputs, &json, &csv, &table, err);
    cb__buf_fini(&json);
    cb__buf_fini(&csv);
    cb__buf_fini(&table);
    return status;
}

static cb__selftest_request request_of(selftesting *s, const cb__suite *suite, uint64_t seed)
{
    int only = s->o.only;
    return (cb__selftest_request){.common = {.suite = suite,
                                             .isa = cb__cli_isa(s->o.common.device),
                                             .device = s->o.common.device,
                                             .threads = (int)s->o.common.threads,
                                             .seed = seed,
                                             .asker = {.stop = &cb__stop, .silence_s = 10},
                                             .phase = show_phase,
                                             .arg = s},
                                  .runs = (int)s->o.runs,
                                  .timer = only < 0 || only == PART_TIMER,
                                  .sweeps = only < 0 || only == PART_FAULTS,
                                  .launches =
                                      only < 0 || only == PART_FAULTS || only == PART_LAUNCHES,
                                  .aa = only < 0 || only == PART_AA,
                                  .planted = only < 0 || only == PART_PLANTED,
                                  .quick = s->o.quick,
                                  .load = s->o.load};
}

static int selftest_all(selftesting *s)
{
    cb_error err = CB_ERROR_INIT, write_err = CB_ERROR_INIT;
    cb__suite suite = {0};
    cb__outputs outputs = {0};
    cb__record record = {.kind = "selftest",
                         .seed = cb__cli_seed(s->o.common.seed),
                         .device_name = s->o.common.device};
    cb__selftest *found = calloc(1, sizeof *found);
    int code;
    cb__record_now(record.started);
    cb_status status = found ? cb__suite_open(NULL, 0, false, &suite, &err)
                             : cb_error_set(&err, CB_NO_MEMORY, "no memory for a selftest");
    if (status == CB_OK)
        status = cb__outputs_open(&s->o.common, &outputs, &err);
    if (status == CB_OK) {
        cb__selftest_request request = request_of(s, &suite, record.seed);
        cb__progress_start(&s->progress, &s->o.common);
        status = cb__selftest_run(&request, found, &err);
        cb__progress_end(&s->progress);
        code = status != CB_OK ? cb__cli_fail(&err) : cb__selftest_passed(found) ? 0 : 1;
        bool some = status == CB_OK || status == CB_INTERRUPTED;
        if (some && write_outputs(&outputs, s, &record, found, &write_err) != CB_OK)
            code = cb__cli_fail(&write_err);
    } else {
        code = cb__cli_fail(&err);
    }
    cb__outputs_close(&outputs);
    cb__suite_close(&suite);
    free(found);
    return code;
}

static int selftest(int argc, char **argv)
{
    selftesting s = {.o = {.common = {.seed = -1}, .only = -1}};
    const char **positionals = calloc((size_t)argc + 1, sizeof *positionals);
    int n = 0, status = 5;
    bool done = true;
    if (positionals)
        cb__cli_parse(&cb__verb_selftest, &s.o, argc, argv, positionals, &n, &done, &status);
    if (!done && n > 0) {
        cb_error err = CB_ERROR_INIT;
        cb_error_set(&err, CB_USAGE, "selftest takes no argument, '%s' was given", positionals[0]);
        status = cb__cli_fail(&err);
    } else if (!done && s.o.load && s.o.only >= 0 && s.o.only < PART_AA) {
        cb_error err = CB_ERROR_INIT;
        cb_error_set(&err, CB_USAGE, "--load is for comparisons, and --only %s has none",
                     part_words[s.o.only]);
        status = cb__cli_fail(&err);
    } else if (!done) {
        status = selftest_all(&s);
    }
    free(positionals);
    return status;
}

const cb__verb cb__verb_selftest = {
    .name = "selftest",
    .summary = "does the judge itself work here: the timer, seeded faults, comparisons",
    .usage = "[options]",
    .details =
        "Reads the clock for resolution, cost and steps back. Seeds faults into real sweeps of the "
        "first cache (a\n"
        "folded loop, an under-driven one, a shrunk buffer, pages that nobody wrote, a misaligned "
        "base, too few\n"
        "workers) and says which of the probe's controls caught each; then into real launches "
        "(rows never written,\n"
        "a short grid, writes outside, wrong and coarse values, edited inputs, a failed launch), "
        "which the checks of\n"
        "every kernel must catch. Clean twins must not be accused. Then compares identical code "
        "many times (false\n"
        "alarms) and differences planted in time (misses, seconds), each as coldbench compare does "
        "it, warm, on one\n"
        "thread or the whole GPU. About 2 minutes on a quiet machine, 8 with --load, 4 on a GPU. "
        "Status 1 where a\n"
        "fault was missed, or what was seen contradicts what is promised of a comparison by more "
        "than chance.\n\n"
        "example:\n"
        "  coldbench selftest --quick\n\n"
        "on an NVIDIA GPU:\n"
        "  coldbench selftest --quick --device cuda:0\n",
    .options = options,
    .noptions = sizeof options / sizeof *options,
    .run = selftest,
};
