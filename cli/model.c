#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "cli.h"
#include "model/model.h"
#include "record/envelope.h"
#include "report/model_summary.h"
#include "report/report.h"

typedef struct model_options {
    cb__common_options common; /* device, json and help are offered */
    int64_t workers;           /* 0: the most */
    const char *mix, *file;    /* NULL: not given */
    int pattern;               /* -1: not given */
} model_options;

static const char *const patterns[] = {"stream", "random", NULL};

static const cb__option options[] = {
    {.name = "workers",
     .kind = CB__OPT_INT,
     .offset = offsetof(model_options, workers),
     .arg = "N",
     .min = 1,
     .max = 65536,
     .help = "threads that do it together; left out: the most that were measured"},
    {.name = "mix",
     .kind = CB__OPT_TEXT,
     .offset = offsetof(model_options, mix),
     .arg = "MIX",
     .help = "of bandwidth and ceiling: read, write, write_nt, copy, copy_nt (nt: non-temporal "
             "stores), read_l1 (a GPU's first caches); left out: read"},
    {.name = "pattern",
     .kind = CB__OPT_CHOICE,
     .offset = offsetof(model_options, pattern),
     .arg = "PATTERN",
     .choices = patterns,
     .help = "of resident and capacity: by bandwidth (stream, what left out means) or by latency "
             "(random)."},
    {.name = "device",
     .kind = CB__OPT_TEXT,
     .offset = offsetof(cb__common_options, device),
     .arg = "NAME",
     .preset = "cpu",
     .help = "whose model; cuda:all: of every NVIDIA GPU, --json then writes an array"},
    {.name = "model",
     .kind = CB__OPT_TEXT,
     .offset = offsetof(model_options, file),
     .arg = "FILE",
     .help = "a model of this machine; left out: the one that coldbench probe stored"},
    {.name = "json",
     .kind = CB__OPT_TEXT,
     .offset = offsetof(cb__common_options, json),
     .arg = "FILE|-",
     .help = "write the answer; with - the text moves to standard error"},
    {.name = "help",
     .letter = 'h',
     .kind = CB__OPT_FLAG,
     .offset = offsetof(cb__common_options, help),
     .help = "this page"},
};

/* ---- questions ---- */

typedef struct question {
    const struct query *query;
    const cb_model *model;
    const char *mix;
    cb_pattern pattern;
    int workers;
    uint64_t bytes[2];
    const char *word; /* submit mode or type */
    int level;
} question;

typedef struct answer {
    cb_figure x;
    const char *resident; /* "yes", "no", "maybe"; NULL: the answer is x */
    char why[160];
} answer;

enum { MIX = 1, PATTERN = 2, WORKERS = 4 };

typedef struct query {
    const char *name;
    const char *arguments[2]; /* as the help names them; [...]: may be left out */
    const char *unit;
    const char *mix; /* what it is of; NULL: as asked */
    unsigned takes;  /* options */
    cb_status (*ask)(const question *q, answer *a, cb_error *err);
} query;

static const char *workers_text(const question *q)
{
    return q->workers == 1 ? "worker" : "workers";
}

static void size_text(uint64_t bytes, char text[24])
{
    cb__bytes_text((double)bytes, text);
}

static cb_status bandwidth(const question *q, answer *a, cb_error *err)
{
    char size[24];
    size_text(q->bytes[0], size);
    snprintf(a->why, sizeof a->why, "%.40s, %d %s, %s in all", q->mix, q->workers, workers_text(q),
             size);
    return cb_model_bandwidth(q->model, q->mix, q->bytes[0], q->workers, &a->x, err);
}

static cb_status latency(const question *q, answer *a, cb_error *err)
{
    char size[24];
    size_text(q->bytes[0], size);
    snprintf(a->why, sizeof a->why, "a dependent load, in random order over %s", size);
    return cb_model_latency(q->model, q->bytes[0], &a->x, err);
}

static cb_status resident(const question *q, answer *a, cb_error *err)
{
    static const char *const how[] = {"at or above the end of", "within", "at or below"};
    char size[24];
    cb_resident r;
    cb_status status =
        cb_model_resident(q->model, q->bytes[0], q->pattern, q->workers, &r, &a->x, err);
    if (status != CB_OK)
        return status;
    size_text(q->bytes[0], size);
    a->resident = cb_resident_name(r);
    snprintf(a->why, sizeof a->why, "%s is %s the last knee before memory, by %s", size, how[r],
             q->pattern == CB_STREAM_PATTERN ? "bandwidth" : "latency");
    return CB_OK;
}

static cb_status capacity(const question *q, answer *a, cb_error *err)
{
    char size[24];
    int workers = q->pattern == CB_RANDOM_PATTERN ? 1
                  : q->workers                    ? q->workers
                                                  : cb_model_workers(q->model);
    uint64_t nominal = cb__model_nominal_for(q->model, q->level, workers);
    cb_status status = cb_model_capacity(q->model, q->level, q->pattern, q->workers, &a->x, err);
    if (status != CB_OK)
        return status;
    cb__bytes_text(a->x.mid, size);
    int used = snprintf(a->why, sizeof a->why, "%s, the knee by %s", size,
                        q->pattern == CB_STREAM_PATTERN ? "bandwidth" : "latency");
    size_text(nominal, size);
    if (nominal && q->level > 0)
        snprintf(a->why + used, sizeof a->why - (size_t)used, "; the system says %s", size);
    return CB_OK;
}

static cb_status nominal(const question *q, answer *a, cb_error *err)
{
    char size[24];
    uint64_t bytes = cb_model_nominal(q->model, q->level);
    if (!bytes)
        return cb_error_set(err, CB_UNDECIDED, "the system names no cache level %d", q->level);
    size_text(bytes, size);
    snprintf(a->why, sizeof a->why, "%s, what the system says, not what was measured", size);
    a->x = (cb_figure){(double)bytes, (double)bytes, (double)bytes, CB_VERDICT_OK};
    return CB_OK;
}

static cb_status tiling_gain(const question *q, answer *a, cb_error *err)
{
    char full[24], tile[24];
    size_text(q->bytes[0], full);
    size_text(q->bytes[1], tile);
    snprintf(a->why, sizeof a->why, "%s read again and again over all of %s, %d %s", tile, full,
             q->workers, workers_text(q));
    return cb_model_tiling_gain(q->model, q->bytes[0], q->bytes[1], q->workers, &a->x, err);
}

static cb_status scratch_cost(const question *q, answer *a, cb_error *err)
{
    snprintf(a->why, sizeof a->why,
             "lanes %llu bytes apart, %llu bytes each, over the best stride of that width",
             (unsigned long long)q->bytes[0], (unsigned long long)q->bytes[1]);
    return cb_model_scratch_cost(q->model, q->bytes[0], q->bytes[1], &a->x, err);
}

static cb_status best_pad(const question *q, answer *a, cb_error *err)
{
    cb_figure bare, padded;
    cb_status status = cb_model_best_pad(q->model, q->bytes[0], q->bytes[1], &a->x, err);
    uint64_t row = q->bytes[0] + (uint64_t)(status == CB_OK ? a->x.mid : 0);
    if (status == CB_OK)
        status = cb_model_scratch_cost(q->model, q->bytes[0], q->bytes[1], &bare, err);
    if (status == CB_OK)
        status = cb_model_scratch_cost(q->model, row, q->bytes[1], &padded, err);
    if (status != CB_OK)
        return status;
    snprintf(a->why, sizeof a->why,
             "%d banks of %d bytes; timed: rows of %llu bytes %.2fx, of %llu bytes %.2fx the time "
             "of the best",
             q->model->banks.banks, q->model->banks.bank_bytes, (unsigned long long)q->bytes[0],
             bare.mid, (unsigned long long)row, padded.mid);
    return CB_OK;
}

static cb_status ceiling(const question *q, answer *a, cb_error *err)
{
    int workers = q->workers ? q->workers : cb_model_workers(q->model);
    const cb__model_ceiling *best = cb__model_ceiling_best(q->model, q->mix, workers);
    snprintf(a->why, sizeof a->why, "%.40s, %d %s, far beyond the caches",
             best ? best->mix : q->mix, q->workers, workers_text(q));
    return cb_model_ceiling(q->model, q->mix, q->workers, &a->x, err);
}

static cb_status compute(const question *q, answer *a, cb_error *err)
{
    snprintf(a->why, sizeof a->why, "%.40s, %d %s, a multiply-add is two", q->word, q->workers,
             workers_text(q));
    return cb_model_compute(q->model, q->word, q->workers, &a->x, err);
}

static cb_status floor_of(const question *q, answer *a, cb_error *err)
{
    snprintf(a->why, sizeof a->why, "an empty launch, %.40s, %d %s", q->word, q->workers,
             workers_text(q));
    return cb_model_floor(q->model, q->word, q->workers, &a->x, err);
}

static const query queries[] = {
    {"bandwidth", {"BYTES"}, "GB/s", NULL, MIX | WORKERS, bandwidth},
    {"read_bandwidth", {"BYTES"}, "GB/s", "read", WORKERS, bandwidth},
    {"write_bandwidth", {"BYTES"}, "GB/s", "write", WORKERS, bandwidth},
    {"copy_bandwidth", {"BYTES"}, "GB/s", "copy", WORKERS, bandwidth},
    {"latency", {"BYTES"}, "ns", "read", 0, latency},
    {"resident", {"BYTES"}, "bytes", "read", PATTERN | WORKERS, resident},
    {"capacity", {"LEVEL"}, "bytes", "read", PATTERN | WORKERS, capacity},
    {"nominal", {"LEVEL"}, "bytes", "read", 0, nominal},
    {"tiling_gain", {"FULL", "TILE"}, "x", "read", WORKERS, tiling_gain},
    {"scratch_cost", {"STRIDE", "WIDTH"}, "x", "read", 0, scratch_cost},
    {"best_pad", {"ROW", "WIDTH"}, "bytes", "read", 0, best_pad},
    {"ceiling", {"[MIX]"}, "GB/s", NULL, MIX | WORKERS, ceiling},
    {"compute", {"TYPE"}, "Gop/s", "read", WORKERS, compute},
    {"floor", {"SUBMIT"}, "ns", "read", WORKERS, floor_of},
    {"show", {NULL}, NULL, "read", 0, NULL},
};

enum { QUERIES = sizeof queries / sizeof *queries };

/* best-pad is best_pad. */
static bool is_named(const query *q, const char *name)
{
    const char *own = q->name;
    for (; *own && (*own == *name || (*own == '_' && *name == '-')); own++)
        name++;
    return *own == *name;
}

static cb_status find_query(const char *name, const query **out, cb_error *err)
{
    const char *valid[QUERIES];
    for (int i = 0; i < QUERIES; i++) {
        valid[i] = queries[i].name;
        if (is_named(&queries[i], name)) {
            *out = &queries[i];
            return CB_OK;
        }
    }
    return cb__unknown(err, "query", name, valid, QUERIES);
}

/* ---- arguments ---- */

static cb_status parse_level(const char *text, int *level, cb_error *err)
{
    int64_t number = 0;
    if (strcmp(text, "last") == 0) {
        *level = 0;
        return CB_OK;
    }
    const char *digits = text + (*text == 'L' || *text == 'l');
    if (cb__parse_i64(digits, "LEVEL", 1, 99, &number, NULL) != CB_OK)
        return cb_error_set(err, CB_USAGE,
                            "LEVEL: '%.60s' is no cache level: 1, L1, L2, ... or last", text);
    *level = (int)number;
    return CB_OK;
}

static cb_status parse_argument(question *q, int i, const char *text, cb_error *err)
{
    const char *what = q->query->arguments[i];
    int64_t bytes = 0;
    if (strcmp(what, "LEVEL") == 0)
        return parse_level(text, &q->level, err);
    if (strcmp(what, "TYPE") == 0 || strcmp(what, "SUBMIT") == 0) {
        q->word = text;
        return CB_OK;
    }
    if (strcmp(what, "[MIX]") == 0) {
        if (q->mix && strcmp(q->mix, text) != 0)
            return cb_error_set(err, CB_USAGE, "ceiling %.60s and --mix %.60s: which?", text,
                                q->mix);
        q->mix = text;
        return CB_OK;
    }
    cb_status status = cb__parse_i64(text, what, 0, INT64_MAX, &bytes, err);
    q->bytes[i] = (uint64_t)bytes;
    return status;
}

static cb_status parse_question(const model_options *o, const char *const *words, int n,
                                question *q, cb_error *err)
{
    if (n == 0)
        return cb_error_set(err, CB_USAGE,
                            "model needs a query; coldbench model --help lists them");
    *q = (question){.mix = o->mix};
    cb_status status = find_query(words[0], &q->query, err);
    if (status != CB_OK)
        return status;
    const char *const *names = q->query->arguments;
    int most = !names[0] ? 0 : !names[1] ? 1 : 2, least = most && *names[0] == '[' ? 0 : most;
    if (n - 1 < least || n - 1 > most)
        return cb_error_set(err, CB_USAGE, "%s takes %s%s%s, %d arguments were given",
                            q->query->name, most ? names[0] : "no argument", most == 2 ? " " : "",
                            most == 2 ? names[1] : "", n - 1);
    for (int i = 1; i < n && status == CB_OK; i++)
        status = parse_argument(q, i - 1, words[i], err);
    return status;
}

/* Fills in what was left out, and refuses what the query was not measured for. */
static cb_status settle(const model_options *o, const cb_model *model, question *q, cb_error *err)
{
    const char *name = q->query->name, *mix = q->query->mix;
    const bool chase = q->query->ask == latency;
    const cb_pattern own = chase ? CB_RANDOM_PATTERN : CB_STREAM_PATTERN;
    q->model = model;
    q->mix = q->mix ? q->mix : mix ? mix : "read";
    q->pattern = o->pattern < 0 ? own : (cb_pattern)o->pattern;
    const int preset = q->pattern == CB_RANDOM_PATTERN ? 1 : cb_model_workers(model);
    q->workers = o->workers ? (int)o->workers : preset;
    if (mix && strcmp(mix, q->mix) != 0)
        return cb_error_set(err, CB_UNDECIDED, "%s has no answer for --mix %.60s", name, q->mix);
    if (q->pattern != own && !(q->query->takes & PATTERN))
        return cb_error_set(err, CB_UNDECIDED, "%s has no answer for --pattern %s", name,
                            patterns[q->pattern]);
    if (q->workers != preset && !(q->query->takes & WORKERS))
        return cb_error_set(err, CB_UNDECIDED, "%s has no answer for --workers %d, only for %d",
                            name, q->workers, preset);
    return CB_OK;
}

/* ---- answers ---- */

/* Four digits, whole bytes, no exponent: what a shell can go on with. */
static void number_text(double value, const char *unit, char text[32])
{
    double after = value > 0 && strcmp(unit, "bytes") != 0 ? 3 - floor(log10(value)) : 0;
    snprintf(text, 32, "%.*f", (int)fmax(after, 0), value);
}

static void answer_text(const question *q, const answer *a, cb__buf *out)
{
    char lo[32], mid[32], hi[32];
    number_text(a->x.lo, q->query->unit, lo);
    number_text(a->x.mid, q->query->unit, mid);
    number_text(a->x.hi, q->query->unit, hi);
    if (a->resident)
        cb__buf_printf(out, "%s knee ", a->resident);
    cb__buf_printf(out, "%s %s [%s, %s] %s (%s)\n", mid, q->query->unit, lo, hi,
                   cb_verdict_name(a->x.verdict), a->why);
}

static void put_arguments(cb__json_writer *w, const question *q)
{
    cb__json_key(w, "args");
    cb__json_object(w);
    for (int i = 0; i < 2 && q->query->arguments[i]; i++) {
        char key[16] = "";
        for (const char *s = q->query->arguments[i]; *s; s++)
            if (*s != '[' && *s != ']')
                key[strlen(key)] = (char)(*s - 'A' + 'a');
        if (strcmp(key, "mix") == 0)
            continue;
        if (strcmp(key, "level") == 0)
            cb__json_put_int(w, key, q->level);
        else if (q->word)
            cb__json_put_text(w, key, q->word);
        else
            cb__json_put_int(w, key, (int64_t)q->bytes[i]);
    }
    if (q->query->takes & MIX || q->query->ask == bandwidth)
        cb__json_put_text(w, "mix", q->mix);
    if (q->query->takes & PATTERN)
        cb__json_put_text(w, "pattern", patterns[q->pattern]);
    if (q->query->takes & WORKERS)
        cb__json_put_int(w, "workers", q->workers);
    cb__json_end(w);
}

/* a NULL: refused with that reason; a query without a unit answers with `text`, JSON. */
static void put_answer(cb__json_writer *w, const question *q, const answer *a, const char *text,
                       const char *reason)
{
    const bool figure = a && q->query->unit;
    const double none = (double)NAN;
    cb__json_put_text(w, "query", q->query->name);
    put_arguments(w, q);
    cb__json_key(w, "answer");
    if (!a)
        cb__json_null(w);
    else if (!figure)
        cb__json_raw(w, text);
    else if (a->resident)
        cb__json_string(w, a->resident);
    else
        cb__json_number(w, a->x.mid);
    cb__json_put_real(w, "lo", figure ? a->x.lo : none);
    cb__json_put_real(w, "mid", figure ? a->x.mid : none);
    cb__json_put_real(w, "hi", figure ? a->x.hi : none);
    cb__json_put_text(w, "unit", q->query->unit);
    cb__json_put_text(w, "verdict", figure ? cb_verdict_name(a->x.verdict) : NULL);
    cb__json_put_text(w, a ? "detail" : "reason", a ? a->why : reason);
}

static void put_record(const question *q, const answer *a, const char *reason,
                       const char *device_name, cb__buf *out)
{
    const cb_model *m = q->model;
    cb__record record = {
        .kind = "model", .complete = true, .seed = m->seed, .device_name = device_name};
    cb__buf text = CB__BUF_INIT;
    cb__json_writer w;
    cb__record_now(record.started);
    if (!q->query->unit)
        cb__model_write_text(m, &text);
    cb__json_begin(&w, out, true);
    cb__envelope_begin(&w, &record);
    cb__put_checks(&w, m->checks, m->nchecks);
    cb__json_key(&w, "source");
    cb__json_object(&w);
    cb__json_put_text(&w, "identity", m->identity);
    cb__json_put_text(&w, "written", m->written);
    cb__json_put_text(&w, "version", m->version);
    cb__json_end(&w);
    put_answer(&w, q, a, cb__buf_text(&text), reason);
    cb__json_key(&w, "results");
    cb__json_array(&w);
    if (q->query->unit) {
        cb__json_object(&w);
        put_answer(&w, q, a, NULL, reason);
        cb__json_end(&w);
    }
    cb__json_end(&w);
    cb__json_end(&w);
    cb__buf_puts(out, "\n");
    out->failed |= text.failed;
    cb__buf_fini(&text);
}

/* An answer that is not to be relied on is given, and said in the status too. */
static int exit_status(const answer *a)
{
    switch (a->x.verdict) {
    case CB_VERDICT_WRONG:
    case CB_VERDICT_IMPOSSIBLE:
        return 1;
    case CB_VERDICT_CONTAMINATED:
    case CB_VERDICT_UNSTABLE:
    case CB_VERDICT_UNKNOWN:
        return 4;
    case CB_VERDICT_FLOOR_BOUND:
    case CB_VERDICT_LOWER_BOUND:
    case CB_VERDICT_OK:
        break;
    }
    return 0;
}

static int reply(const model_options *o, question *q, const cb_model *model)
{
    cb_error err = CB_ERROR_INIT, write_err = CB_ERROR_INIT;
    answer a = {.x = {.verdict = CB_VERDICT_OK}};
    cb__outputs outputs = {0};
    cb__buf text = CB__BUF_INIT, json = CB__BUF_INIT;
    if (cb__outputs_open(&o->common, &outputs, &err) != CB_OK)
        return cb__cli_fail(&err);
    cb_status status = settle(o, model, q, &err);
    if (status == CB_OK && q->query->ask)
        status = q->query->ask(q, &a, &err);
    const bool answered = status == CB_OK;
    if (answered && q->query->ask)
        answer_text(q, &a, &text);
    else if (answered)
        cb__report_model(model, outputs.color, &text);
    int code = answered ? exit_status(&a) : cb__cli_fail(&err);
    if (o->common.json && (answered || status == CB_UNDECIDED))
        put_record(q, answered ? &a : NULL, err.message, o->common.device, &json);
    if (cb__outputs_write(&outputs, &json, NULL, &text, &write_err) != CB_OK)
        code = cb__cli_fail(&write_err);
    cb__outputs_close(&outputs);
    cb__buf_fini(&text);
    cb__buf_fini(&json);
    return code;
}

static int model_verb(int argc, char **argv)
{
    model_options o = {.pattern = -1};
    cb_error err = CB_ERROR_INIT;
    cb_model *model = NULL;
    question q = {0};
    const char **words = calloc((size_t)argc + 1, sizeof *words);
    int n = 0, code = 5;
    bool done = true;
    if (words)
        cb__cli_parse(&cb__verb_model, &o, argc, argv, words, &n, &done, &code);
    if (!done) {
        cb_status status = parse_question(&o, words, n, &q, &err);
        if (status == CB_OK && o.file)
            status = cb__each_refuses("--model FILE", &err);
        if (status == CB_OK)
            status = o.file ? cb_model_open_file(o.file, o.common.device, &model, &err)
                            : cb_model_open(o.common.device, &model, &err);
        code = status == CB_OK ? reply(&o, &q, model) : cb__cli_fail(&err);
    }
    cb_model_free(model);
    free(words);
    return code;
}

const cb__verb cb__verb_model = {
    .name = "model",
    .summary = "ask the machine model one question",
    .usage = "QUERY [ARGUMENTS] [options]",
    .details =
        "  bandwidth BYTES            GB/s over a set of that size in all; --mix, or\n"
        "                             read_bandwidth, write_bandwidth, copy_bandwidth\n"
        "  latency BYTES              ns of a dependent load, in random order\n"
        "  resident BYTES             yes, no or maybe: does a set stay in the caches\n"
        "  capacity LEVEL             bytes at which that level ends, as measured: L1, L2, last\n"
        "  nominal LEVEL              what the system says\n"
        "  tiling_gain FULL TILE      how many times faster a tile is read than the full set\n"
        "  ceiling [MIX]              GB/s far beyond the caches, of the better stores\n"
        "  compute TYPE               Gop/s of f32, f64, int8; a GPU's tensor cores: bf16, tf32\n"
        "  floor SUBMIT               ns of an empty launch: solo, batched; a GPU's: stream\n"
        "  scratch_cost STRIDE WIDTH  a GPU's shared memory: time of lanes STRIDE bytes apart\n"
        "                             that read WIDTH bytes each, over that of the best stride\n"
        "  best_pad ROW WIDTH         bytes behind rows of ROW bytes that avoid bank conflicts\n"
        "  show                       all of it\n\n"
        "Sizes take KiB, MiB, GiB. An answer is an interval with a verdict; nothing is\n"
        "extrapolated. Exit status: 0 answered, 3 no model of this machine (coldbench probe\n"
        "makes one), 4 refused, or the answer's verdict is unknown, unstable or contaminated,\n"
        "1 impossible or wrong.\n\n"
        "examples:\n"
        "  coldbench model resident 24MiB\n"
        "  coldbench model bandwidth 1MiB --mix copy --workers 1\n"
        "  coldbench model capacity L2 --pattern random\n"
        "  coldbench model show\n"
        "  coldbench model best_pad 128 16 --device cuda:0\n",
    .options = options,
    .noptions = sizeof options / sizeof *options,
    .run = model_verb,
};
