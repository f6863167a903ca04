/* main.c: measures a decode step, and says how well its parts predict it. scripts/decode_step.sh
 * runs it together with `coldbench run`. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/options.h"
#include "coldbench/random.h"
#include "host/clock.h"
#include "measured.h"
#include "prediction.h"
#include "record/envelope.h"

enum { RECORDS_MAX = 16, RECORD_BYTES_MAX = 16 << 20 };

typedef struct options {
    const char *model, *device, *kernel, *json;
    int64_t threads, rounds, seed;
    bool help;
} options;

static const cb__option table[] = {
    {.name = "model",
     .kind = CB__OPT_TEXT,
     .offset = offsetof(options, model),
     .arg = "NAME",
     .preset = "llama-3-8b",
     .help = "llama-3-8b, or tiny, which is for tests"},
    {.name = "device",
     .kind = CB__OPT_TEXT,
     .offset = offsetof(options, device),
     .arg = "NAME",
     .preset = "cuda:0",
     .help = "measure: cuda:N, cpu, or fake:key=value,..."},
    {.name = "threads",
     .kind = CB__OPT_INT,
     .offset = offsetof(options, threads),
     .arg = "N",
     .min = 1,
     .max = 65536,
     .help = "measure: threads of the cpu; left out: one a physical core"},
    {.name = "kernel",
     .kind = CB__OPT_TEXT,
     .offset = offsetof(options, kernel),
     .arg = "FILE.so",
     .help = "measure: load a kernel module of your own"},
    {.name = "rounds",
     .kind = CB__OPT_INT,
     .offset = offsetof(options, rounds),
     .arg = "N",
     .preset = "6",
     .min = 1,
     .max = ROUNDS_MAX,
     .help = "measure: fresh processes, of 40 steps each"},
    {.name = "seed",
     .kind = CB__OPT_INT,
     .offset = offsetof(options, seed),
     .arg = "N",
     .preset = "1",
     .min = 0,
     .max = 9007199254740992.0,
     .help = "measure: of the data"},
    {.name = "json",
     .kind = CB__OPT_TEXT,
     .offset = offsetof(options, json),
     .arg = "FILE",
     .help = "write the record"},
    {.name = "help",
     .letter = 'h',
     .kind = CB__OPT_FLAG,
     .offset = offsetof(options, help),
     .help = "this page"},
};

enum { OPTIONS = sizeof table / sizeof *table };

static const char usage[] =
    "decode_step measure [VARIANT] [options]      one decode step as one batch, verified\n"
    "decode_step compare STEP.json PARTS.json...  beside its parts, as coldbench run measured "
    "them\n"
    "decode_step shapes [options]                 its shapes, as options of coldbench run\n\n"
    "VARIANT is gemv_q4@act=bf16 where it is left out.\n\n";

/* ---- files ---- */

static cb_status write_file(const char *path, const cb__buf *text, cb_error *err)
{
    if (text->failed)
        return cb_error_set(err, CB_NO_MEMORY, "%s: no memory for the record", path);
    FILE *file = fopen(path, "w");
    size_t written = file ? fwrite(cb__buf_text(text), 1, text->size, file) : 0;
    if (!file || (fclose(file) != 0) | (written != text->size))
        return cb_error_set(err, CB_IO, "%s: %s", path, strerror(errno));
    return CB_OK;
}

/* A pipe or a device of that name may have no end. */
static cb_status open_record(const char *path, FILE **out, cb_error *err)
{
    struct stat facts;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return cb_error_set(err, CB_IO, "%s: %s", path, strerror(errno));
    cb_status status = CB_OK;
    if (fstat(fd, &facts) != 0 || !S_ISREG(facts.st_mode))
        status = cb_error_set(err, CB_USAGE, "%s is not a file", path);
    else if (!(*out = fdopen(fd, "r")))
        status = cb_error_set(err, CB_NO_MEMORY, "%s: no memory to read it", path);
    if (status != CB_OK)
        close(fd);
    return status;
}

static cb_status read_record(const char *path, cb__json **out, cb_error *err)
{
    cb__buf text = CB__BUF_INIT;
    char bytes[65536];
    size_t n = 0;
    FILE *file = NULL;
    cb_status status = open_record(path, &file, err);
    if (status != CB_OK)
        return status;
    while (text.size <= RECORD_BYTES_MAX && (n = fread(bytes, 1, sizeof bytes, file)) > 0)
        cb__buf_append(&text, bytes, n);
    if (ferror(file))
        status = cb_error_set(err, CB_IO, "%s: %s", path, strerror(errno));
    else if (text.failed)
        status = cb_error_set(err, CB_NO_MEMORY, "%s: no memory to read it", path);
    else if (text.size > RECORD_BYTES_MAX)
        status =
            cb_error_set(err, CB_USAGE, "%s: it is over %d MiB long", path, RECORD_BYTES_MAX >> 20);
    else
        status = cb__json_parse(cb__buf_text(&text), text.size, path, out, err);
    fclose(file);
    cb__buf_fini(&text);
    return status;
}

/* Where nobody reads the text the record is kept all the same. The first thing that went wrong is
 * told. */
static cb_status hand_out(const options *o, const cb__buf *text, const cb__buf *json, cb_error *err)
{
    cb_status status = CB_OK, kept = CB_OK;
    if (fputs(cb__buf_text(text), stdout) == EOF || fflush(stdout) != 0)
        status = cb_error_set(err, CB_IO, "standard output: %s", strerror(errno));
    if (o->json)
        kept = write_file(o->json, json, err);
    return status != CB_OK ? status : kept;
}

/* ---- measure ---- */

static cb_status all_rounds(const step *s, const options *o, round_answer *answers, double *spent_s,
                            cb_error *err)
{
    uint64_t start = cb__clock_ns();
    cb_status status = CB_OK;
    for (int i = 0; i < o->rounds && status == CB_OK; i++)
        status =
            round_run(s, o->device, (int)o->threads,
                      cb_random((uint64_t)o->seed, 0x726f756eu, 0, (uint64_t)i), &answers[i], err);
    *spent_s = (double)(cb__clock_ns() - start) * 1e-9;
    return status;
}

static cb_status tell(const measured *m, const options *o, cb__record *record, cb_error *err)
{
    cb__buf text = CB__BUF_INIT, json = CB__BUF_INIT;
    record->device = m->info;
    record->complete = true;
    measured_text(m, &text);
    measured_record(m, record, &json);
    cb_status status = hand_out(o, &text, &json, err);
    if (status == CB_OK && m->verdict <= CB_VERDICT_IMPOSSIBLE)
        status = cb_error_set(err, CB_WRONG, "the step is %s", cb_verdict_name(m->verdict));
    cb__buf_fini(&text);
    cb__buf_fini(&json);
    return status;
}

static cb_status measure(const options *o, const char *const *arguments, int n, cb_error *err)
{
    static step s;
    static measured m;
    const step_model *model = NULL;
    const char *variant = n ? arguments[0] : "gemv_q4@act=bf16";
    unsigned isa = 0;
    uint64_t start = cb__clock_ns();
    cb__record record = {
        .kind = "decode_step", .seed = (uint64_t)o->seed, .device_name = o->device};
    int nanswers = (int)o->rounds + 1; /* and one of what the device is */
    round_answer *answers = NULL;
    cb__record_now(record.started);
    if (n > 1)
        return cb_error_set(err, CB_USAGE, "measure takes one variant, and '%s' is another",
                            arguments[1]);
    cb_status status = model_find(o->model, &model, err);
    if (status == CB_OK && !(answers = round_answers_new(nanswers)))
        status = cb_error_set(err, CB_NO_MEMORY, "no memory for %d rounds", nanswers);
    if (status == CB_OK)
        status = round_describe(o->device, (int)o->threads, &answers[o->rounds], &isa, err);
    if (status == CB_OK)
        status = step_open(&s, model, variant, o->kernel, &answers[o->rounds].info, isa,
                           (uint64_t)o->seed, err);
    if (status == CB_OK)
        status = step_fill(&s, err);
    if (status == CB_OK)
        status = all_rounds(&s, o, answers, &record.measure_s, err);
    if (status == CB_OK) {
        measured_make(&s, &answers[o->rounds].info, answers, (int)o->rounds, &m);
        record.wall_s = (double)(cb__clock_ns() - start) * 1e-9;
        status = tell(&m, o, &record, err);
    }
    step_close(&s);
    round_answers_free(answers, nanswers);
    return status;
}

/* ---- compare ---- */

static cb_status tell_prediction(const prediction *p, const options *o, cb_error *err)
{
    cb__buf text = CB__BUF_INIT, json = CB__BUF_INIT;
    cb__record record = {.kind = "decode_prediction", .complete = true};
    cb__json_writer w;
    cb__record_now(record.started);
    prediction_text(p, &text);
    cb__json_begin(&w, &json, true);
    cb__envelope_begin(&w, &record);
    cb__json_key(&w, "results");
    cb__json_array(&w);
    cb__json_object(&w);
    prediction_put(p, &w);
    cb__json_end(&w);
    cb__json_end(&w);
    cb__json_end(&w);
    cb__buf_puts(&json, "\n");
    cb_status status = hand_out(o, &text, &json, err);
    if (status == CB_OK && prediction_undecided(p))
        status = cb_error_set(err, CB_UNDECIDED, "a part could not be decided on, as told above");
    cb__buf_fini(&text);
    cb__buf_fini(&json);
    return status;
}

static cb_status compare(const options *o, const char *const *paths, int n, cb_error *err)
{
    cb__json *records[RECORDS_MAX] = {0};
    prediction p;
    cb_status status = CB_OK;
    if (n < 2 || n > RECORDS_MAX)
        return cb_error_set(err, CB_USAGE,
                            "compare takes the record of a step and 1 to %d of its parts",
                            RECORDS_MAX - 1);
    for (int i = 0; i < n && status == CB_OK; i++)
        status = read_record(paths[i], &records[i], err);
    if (status == CB_OK)
        status = prediction_make(records[0], (const cb__json *const *)records + 1, paths, n - 1, &p,
                                 err);
    if (status == CB_OK)
        status = tell_prediction(&p, o, err);
    for (int i = 0; i < RECORDS_MAX; i++)
        cb__json_free(records[i]);
    return status;
}

/* ---- shapes ---- */

static cb_status shapes(const options *o, const char *const *arguments, int n, cb_error *err)
{
    const step_model *m = NULL;
    if (n)
        return cb_error_set(err, CB_USAGE, "shapes takes options alone, not '%s'", arguments[0]);
    cb_status status = model_find(o->model, &m, err);
    for (int i = 0; status == CB_OK && i < model_matrices(m); i++) {
        int before = 0;
        while (strcmp(m->matrices[before].shape, m->matrices[i].shape) != 0)
            before++;
        if (before == i)
            printf("--shape %s\n", m->matrices[i].shape);
    }
    return status;
}

/* ---- main ---- */

static cb_status dispatch(int argc, char **argv, cb_error *err)
{
    static const struct {
        const char *name;
        cb_status (*run)(const options *o, const char *const *arguments, int n, cb_error *err);
    } verbs[] = {{"measure", measure}, {"compare", compare}, {"shapes", shapes}};
    options o = {0};
    int n = 0;
    const char **arguments = calloc((size_t)argc + 1, sizeof *arguments);
    if (!arguments)
        return cb_error_set(err, CB_NO_MEMORY, "no memory for the arguments");
    cb_status status =
        cb__options_parse(table, OPTIONS, &o, argc - 1, argv + 1, arguments, &n, err);
    size_t verb = 0;
    while (n && verb < sizeof verbs / sizeof *verbs && strcmp(verbs[verb].name, arguments[0]) != 0)
        verb++;
    if (status == CB_OK && o.help) {
        cb__buf help = CB__BUF_INIT;
        cb__options_help(table, OPTIONS, &help);
        printf("%s%s", usage, cb__buf_text(&help));
        cb__buf_fini(&help);
    } else if (status == CB_OK && (n == 0 || verb == sizeof verbs / sizeof *verbs)) {
        status = cb_error_set(err, CB_USAGE, "%s%s%s: measure, compare or shapes; see --help",
                              n ? "no verb '" : "no verb", n ? arguments[0] : "", n ? "'" : "");
    } else if (status == CB_OK) {
        status = verbs[verb].run(&o, arguments + 1, n - 1, err);
    }
    free(arguments);
    return status;
}

int main(int argc, char **argv)
{
    cb_error err = CB_ERROR_INIT;
    cb_status status = dispatch(argc, argv, &err);
    if (status == CB_OK && fflush(stdout) != 0)
        status = cb_error_set(&err, CB_IO, "standard output: %s", strerror(errno));
    if (status != CB_OK)
        fprintf(stderr, "decode_step: %s\n", err.message);
    return cb_status_exit(status);
}
