/* The machine model: what is written reads back equal, what is not whole is refused, and queries
 * answer from what was measured and from nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coldbench/random.h"
#include "model/model.h"

#define FIXTURES CB_SOURCE_DIR "/tests/fixtures/models/"
#define KIB UINT64_C(1024)
#define MIB (KIB * 1024)
#define GIB (MIB * 1024)

static char *fixture_text; /* of fake.json */
static cb_model *fixture;

static char *slurp(const char *path)
{
    FILE *file = fopen(path, "rb");
    char *text = calloc(1, 1 << 20);
    if (!file || !text || !fread(text, 1, (1 << 20) - 1, file))
        abort();
    fclose(file);
    return text;
}

static int open_fixture(void **state)
{
    (void)state;
    cb_error err = CB_ERROR_INIT;
    fixture_text = slurp(FIXTURES "fake.json");
    return cb_model_open_file(FIXTURES "fake.json", "fake", &fixture, &err);
}

static int close_fixture(void **state)
{
    (void)state;
    free(fixture_text);
    cb_model_free(fixture);
    return 0;
}

static void says(const cb_error *err, const char *part)
{
    if (!strstr(err->message, part))
        fail_msg("'%s' does not say '%s'", err->message, part);
}

/* ---- the file ---- */

static void what_is_written_reads_back_equal(void **state)
{
    (void)state;
    cb_error err = CB_ERROR_INIT;
    cb__buf text = CB__BUF_INIT, again = CB__BUF_INIT;
    cb_model *second = NULL;
    cb__model_write_text(fixture, &text);
    assert_false(text.failed);
    assert_string_equal(text.text, fixture_text);
    assert_int_equal(cb__model_read_text(text.text, text.size, "it", "fake", &second, &err), CB_OK);
    cb__model_write_text(second, &again);
    assert_string_equal(again.text, text.text);
    cb__buf_fini(&text);
    cb__buf_fini(&again);
    cb_model_free(second);
}

/* Figures that lose something in fewer digits, bandwidth and latency mixed, a row without a figure.
 */
static cb__point awkward[] = {
    {1, {0.1, 0.1 + 0.2, 7.6, 1.0 / 3}, CB_VERDICT_WRONG},
    {INT64_MAX - 1, {1e-9, 1e-9, 1e15, 0}, CB_VERDICT_OK},
    {INT64_MAX, {5e-5, 1.7976931348623157, 2, 1}, CB_VERDICT_UNKNOWN},
};
static cb__point halves[] = {
    {64, {1, 2, 3, 0}, CB_VERDICT_OK},
    {128, {(double)NAN, (double)NAN, (double)NAN, 0}, CB_VERDICT_UNKNOWN},
    {256, {2, 2, 2, 0}, CB_VERDICT_OK},
};
static cb__series awkward_series[] = {
    {CB__LATENCY, "random", 1, "compact", INT64_C(1) << 30, awkward, 3},
    {CB__BANDWIDTH, "copy_nt", 65536, "scattered", 0, halves, 3},
    {CB__LATENCY, "local", 1, "compact", 4096, awkward, 2},
};
static cb__model_knee awkward_knee = {1, 65, 66, 1e-9, 1e15, true, CB_VERDICT_CONTAMINATED};
static cb__check awkward_check = {"a \"name\"", CB__SKIP, true, CB_VERDICT_IMPOSSIBLE,
                                  "\\ \xC3\xA9"};

static void awkward_model(cb_model *m)
{
    *m = (cb_model){.identity = "a.B_9-z",
                    .device = "fake",
                    .name = "caf\xC3\xA9 / \"7\"",
                    .seed = INT64_MAX,
                    .quick = true,
                    .threads = 65536,
                    .sweeps = 1,
                    .series = awkward_series,
                    .nseries = 3,
                    .knees = &awkward_knee,
                    .nknees = 1,
                    .checks = &awkward_check,
                    .nchecks = 1};
}

static void awkward_figures_read_back_equal(void **state)
{
    (void)state;
    cb_error err = CB_ERROR_INIT;
    cb_model m, *back = NULL;
    cb__buf text = CB__BUF_INIT;
    awkward_model(&m);
    cb__model_write_text(&m, &text);
    if (cb__model_read_text(text.text, text.size, "it", NULL, &back, &err) != CB_OK)
        fail_msg("%s", err.message);
    assert_string_equal(back->identity, m.identity);
    assert_string_equal(back->name, m.name);
    assert_true(back->seed == m.seed && back->quick && !back->complete && back->threads == 65536);
    assert_int_equal(back->nseries, 3);
    const cb__series *random = cb__model_series(back, CB__LATENCY, "random", 1);
    assert_int_equal(random->n, 3);
    assert_memory_equal(random->points, awkward, sizeof awkward);
    const cb__series *copy = cb__model_series(back, CB__BANDWIDTH, "copy_nt", 65536);
    assert_int_equal(copy->n, 2); /* the row without a figure is not there */
    assert_memory_equal(&copy->points[1], &halves[2], sizeof *halves);
    assert_ptr_equal(&back->series[back->knees[0].series], copy);
    assert_int_equal(back->knees[0].verdict, CB_VERDICT_CONTAMINATED);
    assert_int_equal(back->checks[0].status, CB__SKIP);
    assert_string_equal(back->checks[0].name, awkward_check.name);
    assert_string_equal(back->checks[0].detail, awkward_check.detail);
    cb__buf_fini(&text);
    cb_model_free(back);
}

/* Seeds each kind of damage: the first `find` becomes `put`. */
static const struct {
    const char *find, *put, *place, *reason;
} damages[] = {
    {"{", "[", "model X: 2:", "expected"},
    {"\"identity\": \"fake\",", "", "model X", "'identity' is missing"},
    {"\"fake\"", "\"../fake\"", "model X", "'../fake', must be letters"},
    {"\"fake\"", "\"\"", "model X", "must be letters"},
    {"\"fake\"", "7", "model X", "'identity' is not a text"},
    {"\"device\": \"fake\"", "\"device\": null", "model X", "'device' is not a text"},
    {"A machine", "A \\u001b[2J machine", "model X", "'name' holds a control character"},
    {"0123456789abcdef", "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef01234567",
     "model X: tool", "72 bytes long, at most 71"},
    {"\"tool\"", "\"tools\"", "model X", "'tool' is missing"},
    {"\"seed\": 7", "\"seed\": -1", "model X", "'seed' is -1"},
    {"\"seed\": 7", "\"seed\": 7.5", "model X", "'seed' is not an integer"},
    {"\"seed\": 7", "\"seed\": 9223372036854775808", "model X", "too big"},
    {"\"quick\": false", "\"quick\": 0", "model X", "'quick' is neither true nor false"},
    {"\"complete\": true,", "", "model X", "'complete' is missing"},
    {"\"threads\": 2", "\"threads\": 0", "model X", "'threads' is 0, must be 1 to 65536"},
    {"\"sweeps\": 3", "\"sweeps\": 1e9", "model X", "'sweeps' is not an integer"},
    {"\"levels\": [", "\"levels\": {},\"old\": [", "model X", "'levels' is not an array"},
    {"{\"level\":1,", "7,{\"level\":1,", "levels[0]", "not an object"},
    {"\"level\":2", "\"level\":1", "levels[1]", "does not rise"},
    {"\"level\":3", "\"level\":9", "levels[2]", "'level' is 9"},
    {"\"bytes\":32768,\"instances\"", "\"bytes\":0,\"instances\"", "levels[0]", "'bytes' is 0"},
    {"\"instances\":2", "\"instances\":1000000", "levels[0]", "'instances' is 1000000"},
    {"\"status\":\"pass\"", "\"status\":\"passed\"", "checks[0]", "did you mean 'pass'"},
    {"\"required\":true", "\"required\":\"true\"", "checks[0]", "neither true nor false"},
    {"\"model\": {", "\"modell\": {", "model X", "'model' is missing"},
    {"\"mix\":\"read\"", "\"mix\":\"raed\"", "model: curves[0]", "did you mean 'read'"},
    {"\"workers\":1", "\"workers\":0", "model: curves[0]", "'workers' is 0"},
    {"\"placement\":\"compact\"", "\"placement\":\"near\"", "curves[0]", "unknown placement"},
    {"\"bytes\":4096", "\"bytes\":4096.5", "curves[0]", "'bytes' is not an integer"},
    {"\"bytes\":8192", "\"bytes\":4096", "curves[1]", "'bytes' of read/1 do not rise"},
    {"\"bytes\":4096", "\"bytes\":-4096", "curves[0]", "'bytes' is -4096"},
    {"\"gb_per_s\":{", "\"gb_per_s\":[],\"x\":{", "curves[0]", "'gb_per_s' is not an interval"},
    {"\"gb_per_s\":{", "\"mb_per_s\":{", "curves[0]", "'gb_per_s' is missing"},
    {"\"lo\":225.4", "\"lo\":231", "curves[0]: gb_per_s", "out of order"},
    {"\"hi\":234.6", "\"hi\":229", "curves[0]: gb_per_s", "out of order"},
    {"\"mid\":230", "\"mid\":NaN", "model X", "near 'NaN'"},
    {"\"mid\":230", "\"mid\":null", "curves[0]: gb_per_s", "'mid' is not a number"},
    {"\"mid\":230", "\"mid\":\"230\"", "curves[0]: gb_per_s", "'mid' is not a number"},
    {"\"lo\":225.4", "\"lo\":-225.4", "curves[0]: gb_per_s", "'lo' is -225.4"},
    {"\"lo\":225.4", "\"lo\":0", "curves[0]: gb_per_s", "'lo' is 0"},
    {"\"hi\":234.6", "\"hi\":1e300", "curves[0]: gb_per_s", "'hi' is 1e+300"},
    {"\"hi\":234.6", "\"hi\":1e999", "model X", "overflow"},
    {"\"coverage\":0.75", "\"coverage\":1.5", "curves[0]: gb_per_s", "'coverage' is 1.5"},
    {"\"verdict\":\"ok\"", "\"verdict\":\"fine\"", "curves[0]", "'fine', which is none"},
    {"\"verdict\":\"ok\"", "\"verdict\":true", "curves[0]", "'verdict' is not a text"},
    /* a curve that is left and taken up again */
    {"\"mix\":\"read\",\"workers\":1,\"placement\":\"compact\",\"bytes\":16384",
     "\"mix\":\"write\",\"workers\":9,\"placement\":\"compact\",\"bytes\":16384", "curves[3]",
     "the points of read/1 are not in one place"},
    {"\"pattern\":\"local\"", "\"pattern\":\"odd\"", "latency[0]", "unknown pattern"},
    {"\"page_bytes\":4096", "\"page_bytes\":0", "latency[0]", "'page_bytes' is 0"},
    {"\"curve\":\"read/1\"", "\"curve\":\"read/3\"", "knees[0]", "which is no curve"},
    {"\"lo_bytes\":32768", "\"lo_bytes\":131072", "knees[0]", "not below 'hi_bytes'"},
    {"\"lo_bytes\":524288", "\"lo_bytes\":131071", "knees[1]", "overlaps"},
    {"\"from\":230", "\"from\":0", "knees[0]", "'from' is 0"},
    {"\"last\":false", "\"last\":true", "knees[1]", "follows the last knee"},
    {"\"ceilings\": {", "\"ceilings\": 7, \"x\": {", "model", "'ceilings' is no object"},
    {"\"read\": {\n        \"lo\": 29.4", "\"read\": {\n        \"lo\": 29.3", "ceilings",
     "'read' is not the best"},
    {"\"mix\":\"copy_nt\",\"workers\":2,\"gb_per_s\":{\"lo\":24.5,\"mid\":25,",
     "\"mix\":\"copy_nt\",\"workers\":2,\"gb_per_s\":{\"lo\":18,\"mid\":19,", "ceilings",
     "'copy' is not the best"},
    {"\"submit\":\"solo\"", "\"submit\":\"alone\"", "floors[0]", "unknown submit"},
    {"\"type\":\"f32\"", "\"type\":\"a_very_long_type\"", "compute[0]", "at most 11"},
    {"\"scratch\": []", "\"scratch\": [{}]", "model", "'scratch' is not an empty array"},
    {"\"scratch\": []", "\"scratch\": [], \"scratch\": []", "model X", "duplicate"},
    {"\n}\n", "\n} x\n", "model X", "end of file expected"},
};

static void damage_is_refused_with_its_place(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        cb_error err = CB_ERROR_INIT;
        cb__buf text = CB__BUF_INIT;
        cb_model *model = NULL;
        const char *at = strstr(fixture_text, damages[i].find);
        if (!at)
            fail_msg("the fixture holds no %s", damages[i].find);
        cb__buf_append(&text, fixture_text, (size_t)(at - fixture_text));
        cb__buf_puts(&text, damages[i].put);
        cb__buf_puts(&text, at + strlen(damages[i].find));
        if (cb__model_read_text(text.text, text.size, "model X", "fake", &model, &err) !=
                CB_UNAVAILABLE ||
            model)
            fail_msg("let through: %s for %s", damages[i].put, damages[i].find);
        says(&err, damages[i].place);
        says(&err, damages[i].reason);
        says(&err, "model X");
        says(&err, "; run coldbench probe");
        cb__buf_fini(&text);
    }
}

/* A file cut anywhere is refused, and nothing is read past its end. */
static void a_cut_file_is_refused(void **state)
{
    (void)state;
    size_t size = strlen(fixture_text);
    for (size_t cut = 0; cut < size - 2; cut += cut < 3000 ? 7 : 997) {
        cb_error err = CB_ERROR_INIT;
        cb_model *model = NULL;
        char *exact = malloc(cut + !cut);
        memcpy(exact, fixture_text, cut);
        assert_int_equal(cb__model_read_text(exact, cut, "cut", NULL, &model, &err),
                         CB_UNAVAILABLE);
        free(exact);
    }
}

/* `n` rows of a curve or of knees, of the same curve or each of another. */
static cb_status read_many(const char *key, const char *format, int n, cb_error *err)
{
    cb__buf text = CB__BUF_INIT;
    cb_model *model = NULL;
    char find[32];
    snprintf(find, sizeof find, "\"%s\": []", key);
    char *bare = slurp(FIXTURES "bare.json"), *at = strstr(bare, find);
    cb__buf_append(&text, bare, (size_t)(at - bare));
    cb__buf_printf(&text, "\"%s\": [", key);
    for (int i = 0; i < n; i++) {
        cb__buf_puts(&text, i ? "," : "");
/* The format is one of the test's own. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        cb__buf_printf(&text, format, i + 1, i + 2);
#pragma GCC diagnostic pop
    }
    cb__buf_puts(&text, "]");
    cb__buf_puts(&text, at + strlen(find));
    cb_status status = cb__model_read_text(text.text, text.size, "many", NULL, &model, err);
    cb_model_free(model);
    cb__buf_fini(&text);
    free(bare);
    return status;
}

static void absurd_counts_are_refused(void **state)
{
    (void)state;
#define FIGURES "\"ns\":{\"lo\":1,\"mid\":1,\"hi\":1,\"coverage\":0},\"verdict\":\"ok\"}"
    static const struct {
        const char *key, *format, *reason;
        int good, bad;
    } table[] = {
        {"latency", "{\"pattern\":\"local\",\"page_bytes\":4096,\"bytes\":%d," FIGURES,
         "more than 128 points", 128, 129},
        {"latency", "{\"pattern\":\"local\",\"page_bytes\":%d,\"bytes\":%d," FIGURES,
         "one curve too many", 128, 129},
        {"floors", "{\"submit\":\"solo\",\"threads\":%d," FIGURES, "1025 rows, at most 1024", 1024,
         1025},
        {"latency", "%d", "16385 rows, at most 16384", 0, 16385},
        {"levels", "{\"level\":%d,\"bytes\":1,\"instances\":1}", "9 rows, at most 8", 8, 9},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        cb_error err = CB_ERROR_INIT;
        if (read_many(table[i].key, table[i].format, table[i].good, &err) != CB_OK)
            fail_msg("%s", err.message);
        assert_int_equal(read_many(table[i].key, table[i].format, table[i].bad, &err),
                         CB_UNAVAILABLE);
        says(&err, table[i].reason);
    }
}

static void a_huge_text_is_refused_before_it_is_read(void **state)
{
    (void)state;
    cb_error err = CB_ERROR_INIT;
    cb_model *model = NULL;
    size_t size = (16 << 20) + 1;
    char *text = malloc(size);
    memset(text, ' ', size);
    assert_int_equal(cb__model_read_text(text, size, "huge", NULL, &model, &err), CB_UNAVAILABLE);
    says(&err, "huge: it is over 16 MiB long; run coldbench probe");
    cb_error_clear(&err);
    assert_int_equal(cb__model_read_text(text, size - 1, "huge", NULL, &model, &err),
                     CB_UNAVAILABLE);
    says(&err, "huge: 1:");
    free(text);
}

static void other_schemas_and_machines_are_refused_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *file, *device, *parts[4];
    } table[] = {
        {"old-schema.json",
         "fake",
         {"old-schema.json", "'coldbench-model/0'", "'coldbench-model/1'", "run coldbench probe"}},
        {"other-machine.json",
         "fake",
         {"other-machine.json", "'cpu-GenuineIntel-6-207-16-0011223344556677'", "'fake'",
          "run coldbench probe"}},
        {"fake.json", "cpu", {"fake.json", "'fake'", "'cpu-", "run coldbench probe"}},
        {"cut.json", "fake", {"cut.json", ": 48:", "end of file", "run coldbench probe"}},
        {"none.json", "fake", {"none.json", "there is no model", "", "run coldbench probe"}},
        {"", "fake", {"models/", "is not a file", "", "run coldbench probe"}},
        {"fake.json/x", "fake", {"fake.json/x", "there is no model", "", "run coldbench probe"}},
        {"fake.json", "cuda:0", {"cuda:0", "no cuda backend", "", ""}},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        cb_error err = CB_ERROR_INIT;
        cb_model *model = NULL;
        char path[1024];
        snprintf(path, sizeof path, FIXTURES "%s", table[i].file);
        assert_int_equal(cb_model_open_file(path, table[i].device, &model, &err), CB_UNAVAILABLE);
        assert_null(model);
        for (int k = 0; k < 4; k++)
            says(&err, table[i].parts[k]);
    }
    cb_error err = CB_ERROR_INIT;
    cb_model *model = NULL;
    assert_int_equal(cb_model_open_file(FIXTURES "fake.json", "fkae", &model, &err), CB_USAGE);
    says(&err, "did you mean 'fake'");
}

/* ---- queries ---- */

typedef enum query { BW, LAT, RES, CAP, GAIN, CEIL, COMP, FLOOR, SCRATCH, PAD } query;

typedef struct question {
    query query;
    const char *what; /* mix, type or submit; "stream" or "random" */
    uint64_t a, b;    /* sizes, or a level */
    int workers;
    const char *refusal; /* NULL: answered */
    double lo, mid, hi;
    cb_verdict verdict;
    cb_resident resident;
} question;

static cb_status ask(const cb_model *m, const question *q, cb_figure *x, cb_resident *r,
                     cb_error *err)
{
    cb_pattern pattern =
        q->what && strcmp(q->what, "random") == 0 ? CB_RANDOM_PATTERN : CB_STREAM_PATTERN;
    switch (q->query) {
    case BW:
        return cb_model_bandwidth(m, q->what, q->a, q->workers, x, err);
    case LAT:
        return cb_model_latency(m, q->a, x, err);
    case RES:
        return cb_model_resident(m, q->a, pattern, q->workers, r, x, err);
    case CAP:
        return cb_model_capacity(m, (int)q->a, pattern, q->workers, x, err);
    case GAIN:
        return cb_model_tiling_gain(m, q->a, q->b, q->workers, x, err);
    case CEIL:
        return cb_model_ceiling(m, q->what, q->workers, x, err);
    case COMP:
        return cb_model_compute(m, q->what, q->workers, x, err);
    case FLOOR:
        return cb_model_floor(m, q->what, q->workers, x, err);
    case SCRATCH:
        return cb_model_scratch_cost(m, q->a, q->b, x, err);
    case PAD:
        return cb_model_best_pad(m, q->a, q->b, x, err);
    }
    return CB_INTERNAL;
}

#define OK CB_VERDICT_OK
#define KNEE3 (double)(16 * MIB), (double)(32 * MIB), (double)(64 * MIB)

static const question questions[] = {
    /* at a measured size, the default workers, compact before scattered */
    {BW, "read", 4 * KIB, 0, 0, NULL, 450.8, 460, 469.2, OK, 0},
    {BW, "read", 256 * MIB, 0, 1, NULL, 17.64, 18, 18.36, OK, 0},
    /* halfway by logarithm: the geometric mean; the interval encloses both */
    {BW, "read", 2965821, 0, 2, NULL, 115.64, 140.919197, 171.656, OK, 0},
    {BW, "copy", 8 * KIB, 0, 1, NULL, 176.4, 180, 183.6, OK, 0},
    {BW, "read", 200 * MIB, 0, 2, NULL, 29.4, 30, 30.6, CB_VERDICT_CONTAMINATED, 0},
    {BW, "read", 256 * MIB, 0, 2, NULL, 29.4, 30, 30.6, CB_VERDICT_CONTAMINATED, 0},
    {BW, "read", 4 * KIB - 1, 0, 2, "read/2 was measured from 4 KiB to 256 MiB; 4095 bytes is", 0,
     0, 0, 0, 0},
    {BW, "read", 256 * MIB + 1, 0, 0, "nothing is extrapolated", 0, 0, 0, 0, 0},
    {BW, "read", UINT64_MAX, 0, 0, "outside", 0, 0, 0, 0, 0},
    {BW, "read", 0, 0, 0, "0 bytes is outside", 0, 0, 0, 0, 0},
    {BW, "read", MIB, 0, 3, "read was not measured with 3 workers, but with 1, 2", 0, 0, 0, 0, 0},
    {BW, "read", MIB, 0, -1, "-1 workers", 0, 0, 0, 0, 0},
    {BW, "raed", MIB, 0, 2, "measured: read, write, write_nt, copy, copy_nt; did you mean 'read'?",
     0, 0, 0, 0, 0},
    {BW, "random", MIB, 0, 2, "no curve of mix 'random'", 0, 0, 0, 0, 0},
    /* huge pages before small ones */
    {LAT, NULL, 256 * MIB, 0, 0, NULL, 91.08, 92, 92.92, OK, 0},
    {LAT, NULL, GIB, 0, 0, "random/2097152 was measured from 4 KiB to 256 MiB; 1 GiB", 0, 0, 0, 0,
     0},
    {RES, "stream", 16 * MIB, 0, 2, NULL, KNEE3, OK, CB_RESIDENT_YES},
    {RES, "stream", 16 * MIB + 1, 0, 2, NULL, KNEE3, OK, CB_RESIDENT_MAYBE},
    {RES, "stream", 64 * MIB - 1, 0, 2, NULL, KNEE3, OK, CB_RESIDENT_MAYBE},
    {RES, "stream", 64 * MIB, 0, 0, NULL, KNEE3, OK, CB_RESIDENT_NO},
    {RES, "stream", UINT64_MAX, 0, 0, NULL, KNEE3, OK, CB_RESIDENT_NO},
    {RES, "stream", 0, 0, 1, NULL, KNEE3, OK, CB_RESIDENT_YES},
    {RES, "random", UINT64_MAX, 0, 0, NULL, KNEE3, OK, CB_RESIDENT_NO},
    {RES, "random", 1, 0, 1, NULL, KNEE3, OK, CB_RESIDENT_YES},
    {RES, "random", 1, 0, 2, "random was not measured with 2 workers, but with 1", 0, 0, 0, 0, 0},
    {RES, "stream", 1, 0, 8, "read was not measured with 8 workers", 0, 0, 0, 0, 0},
    /* knees 64K..256K, 1M..4M, 16M..64M for 2 workers on 64 KiB, 2 MiB, 32 MiB */
    {CAP, "stream", 1, 0, 2, NULL, 65536, 131072, 262144, OK, 0},
    {CAP, "stream", 2, 0, 2, NULL, 1048576, 2097152, 4194304, OK, 0},
    {CAP, "stream", 3, 0, 2, NULL, KNEE3, OK, 0},
    {CAP, "stream", 0, 0, 0, NULL, KNEE3, OK, 0},
    {CAP, "random", 1, 0, 0, NULL, 32768, 65536, 131072, OK, 0},
    {CAP, "random", 3, 0, 0, NULL, KNEE3, OK, 0},
    {CAP, "random", 2, 0, 0,
     "no knee of random/2097152 was resolved for L2; knees: 32768 to 131072", 0, 0, 0, 0, 0},
    {CAP, "stream", 4, 0, 0, "no cache level 4; it names L1, L2, L3", 0, 0, 0, 0, 0},
    {GAIN, NULL, 128 * MIB, MIB, 2, NULL, 235.2 / 30.6, 240 / 30.0, 244.8 / 29.4, OK, 0},
    {GAIN, NULL, 256 * MIB, MIB, 2, NULL, 235.2 / 30.6, 8, 244.8 / 29.4, CB_VERDICT_CONTAMINATED,
     0},
    {GAIN, NULL, GIB, MIB, 2, "1 GiB is outside", 0, 0, 0, 0, 0},
    {GAIN, NULL, MIB, 1, 2, "1 bytes is outside", 0, 0, 0, 0, 0},
    {CEIL, "read", 0, 0, 0, NULL, 29.4, 30, 30.6, OK, 0},
    {CEIL, "write", 0, 0, 0, NULL, 21.56, 22, 22.44, OK, 0},
    {CEIL, "write_nt", 0, 0, 1, NULL, 13.72, 14, 14.28, OK, 0},
    {CEIL, "copy", 0, 0, 1, NULL, 14.7, 15, 15.3, OK, 0},
    {CEIL, "writ", 0, 0, 0, "did you mean 'write'?", 0, 0, 0, 0, 0},
    {CEIL, "write_", 0, 0, 0, "no ceiling of mix 'write_'", 0, 0, 0, 0, 0},
    {CEIL, "read", 0, 0, 5, "not measured with 5 workers, but with 1, 2", 0, 0, 0, 0, 0},
    {COMP, "f64", 0, 0, 0, NULL, 109.89, 111, 112.11, OK, 0},
    {COMP, "f32", 0, 0, 1, NULL, 110.88, 112, 113.12, OK, 0},
    {COMP, "int8", 0, 0, 1, "no compute ceiling of type 'int8'; measured: f32, f64", 0, 0, 0, 0, 0},
    {FLOOR, "solo", 0, 0, 1, NULL, 58.8, 60, 61.2, OK, 0},
    {FLOOR, "batched", 0, 0, 0, NULL, 162, 180, 198, CB_VERDICT_UNSTABLE, 0},
    {FLOOR, "batch", 0, 0, 0, "measured: solo, batched; did you mean 'batched'?", 0, 0, 0, 0, 0},
    {SCRATCH, NULL, 4, 4, 0, "not applicable", 0, 0, 0, 0, 0},
    {PAD, NULL, 128, 4, 0, "not applicable", 0, 0, 0, 0, 0},
};

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-6 * fabs(b);
}

static void queries_answer_from_what_was_measured(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++) {
        const question *q = &questions[i];
        cb_error err = CB_ERROR_INIT;
        cb_figure x = {0};
        cb_resident r = CB_RESIDENT_NO;
        cb_status status = ask(fixture, q, &x, &r, &err);
        if (q->refusal) {
            if (status != CB_UNDECIDED)
                fail_msg("question %zu: %s, not refused", i, cb_status_name(status));
            says(&err, q->refusal);
        } else if (status != CB_OK || !near(x.lo, q->lo) || !near(x.mid, q->mid) ||
                   !near(x.hi, q->hi) || x.verdict != q->verdict || r != q->resident) {
            fail_msg("question %zu: %s %g [%g, %g] %s %s", i, err.message, x.mid, x.lo, x.hi,
                     cb_verdict_name(x.verdict), cb_resident_name(r));
        }
    }
    assert_int_equal(cb_model_workers(fixture), 2);
    assert_int_equal(cb_model_nominal(fixture, 1), 64 * KIB);
    assert_int_equal(cb_model_nominal(fixture, 3), 32 * MIB);
    assert_int_equal(cb_model_nominal(fixture, 0), 32 * MIB);
    assert_int_equal(cb_model_nominal(fixture, 4), 0);
    assert_int_equal(cb_model_nominal(fixture, -1), 0);
    assert_int_equal(
        cb_model_resident(fixture, 1, CB_STREAM_PATTERN, 0, &(cb_resident){0}, NULL, NULL), CB_OK);
}

static void an_empty_model_refuses_every_question(void **state)
{
    (void)state;
    cb_error err = CB_ERROR_INIT;
    cb_model *bare = NULL;
    assert_int_equal(cb_model_open_file(FIXTURES "bare.json", "fake", &bare, &err), CB_OK);
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++) {
        cb_figure x;
        cb_resident r;
        cb_error_clear(&err);
        assert_int_equal(ask(bare, &questions[i], &x, &r, &err), CB_UNDECIDED);
        assert_true(*err.message);
    }
    cb_error_clear(&err);
    cb_model_ceiling(bare, "read", 0, &(cb_figure){0}, &err);
    says(&err, "measured: none (the probe was cut short)");
    assert_int_equal(cb_model_workers(bare), 0);
    assert_int_equal(cb_model_nominal(bare, 0), 0);
    cb_model_free(bare);
}

/* A curve with several last knees is refused by the reader; one with none answers no residence. */
static void a_curve_without_a_last_knee_is_undecided(void **state)
{
    (void)state;
    cb_error err = CB_ERROR_INIT;
    cb__buf text = CB__BUF_INIT;
    cb_model *model = NULL;
    cb_resident r;
    for (const char *from = fixture_text, *at; *from; from = at + !!*at) {
        at = strstr(from, "\"last\":true");
        at = at ? at + 7 : from + strlen(from);
        cb__buf_append(&text, from, (size_t)(at - from));
        if (*at) {
            cb__buf_puts(&text, "false");
            at += 3;
        }
    }
    if (cb__model_read_text(text.text, text.size, "it", NULL, &model, &err) != CB_OK)
        fail_msg("%s", err.message);
    assert_int_equal(cb_model_resident(model, 1, CB_STREAM_PATTERN, 0, &r, NULL, &err),
                     CB_UNDECIDED);
    says(&err, "no knee of read/2 was resolved before memory; knees: 65536 to 262144 bytes, ");
    cb_error_clear(&err);
    assert_int_equal(cb_model_capacity(model, 0, CB_RANDOM_PATTERN, 0, &(cb_figure){0}, &err),
                     CB_UNDECIDED);
    cb_model_free(model);
    cb__buf_fini(&text);
}

/* Sizes that are one double. */
static void a_knee_of_neighbouring_sizes_keeps_its_order(void **state)
{
    (void)state;
    cb__point point = {1, {1, 1, 1, 1}, CB_VERDICT_OK};
    cb__series s = {CB__BANDWIDTH, "read", 1, "compact", 0, &point, 1};
    cb__model_knee knee = {.last = true};
    cb_model m = {.series = &s, .nseries = 1, .knees = &knee, .nknees = 1};
    for (int shift = 1; shift < 63; shift++) {
        cb_figure x;
        cb_resident r;
        knee.hi_bytes = (UINT64_C(1) << shift) + 1;
        knee.lo_bytes = knee.hi_bytes - 1;
        assert_int_equal(cb_model_resident(&m, knee.lo_bytes, CB_STREAM_PATTERN, 1, &r, &x, NULL),
                         CB_OK);
        assert_int_equal(r, CB_RESIDENT_YES);
        assert_true(x.lo <= x.mid && x.mid <= x.hi);
    }
}

/* ---- which knee ends which level, against every pairing there is ---- */

typedef struct pairing {
    int pairs;
    double distance;
} pairing;

static pairing best_of_all(const double *knees, int nknees, const double *levels, int nlevels)
{
    pairing best = {0};
    for (int k = 0; k < nknees; k++)
        for (int l = 0; l < nlevels; l++) {
            pairing p = best_of_all(knees + k + 1, nknees - k - 1, levels + l + 1, nlevels - l - 1);
            p.pairs++;
            p.distance += fabs(log(knees[k] / levels[l]));
            if (p.pairs > best.pairs || (p.pairs == best.pairs && p.distance < best.distance))
                best = p;
        }
    return best;
}

static void knees_and_levels_are_paired_as_close_as_they_come(void **state)
{
    (void)state;
    cb__point point = {4096, {1, 1, 1, 1}, CB_VERDICT_OK};
    for (uint64_t seed = 0; seed < 400; seed++) {
        cb__series s = {CB__BANDWIDTH, "read", 4, "compact", 0, &point, 1};
        cb__model_knee knees[5] = {0};
        cb_model m = {.series = &s, .nseries = 1, .knees = knees};
        double mids[5], nominals[5], sum = 0, at = 3e4;
        m.nknees = (int)(cb_random_mix(seed) % 6);
        m.nlevels = (int)(cb_random_mix(seed + 1000) % 6);
        for (int i = 0; i < m.nknees; i++) {
            at *= 1 + (double)(cb_random_mix(seed * 7 + (uint64_t)i) % 1000) / 60;
            knees[i].lo_bytes = (uint64_t)at;
            knees[i].hi_bytes = knees[i].lo_bytes * 2;
            mids[i] = sqrt((double)knees[i].lo_bytes * (double)knees[i].hi_bytes);
        }
        at = 3e4;
        for (int i = 0; i < m.nlevels; i++) {
            at *= 1 + (double)(cb_random_mix(seed * 11 + (uint64_t)i) % 1000) / 60;
            m.levels[i] = (cb__level){i + 1, (uint64_t)at, 1 + (int)(seed + (uint64_t)i) % 6};
            nominals[i] =
                (double)m.levels[i].bytes * (m.levels[i].instances < 4 ? m.levels[i].instances : 4);
        }
        int pairs = 0;
        double before = 0;
        for (int i = 0; i < m.nlevels; i++) {
            cb_figure x;
            if (cb_model_capacity(&m, i + 1, CB_STREAM_PATTERN, 0, &x, NULL) != CB_OK)
                continue;
            assert_true(x.mid > before); /* in order, each knee once */
            before = x.mid;
            sum += fabs(log(x.mid / nominals[i]));
            pairs++;
        }
        pairing best = best_of_all(mids, m.nknees, nominals, m.nlevels);
        assert_int_equal(pairs, best.pairs);
        assert_true(fabs(sum - best.distance) < 1e-9);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_reads_back_equal),
        cmocka_unit_test(awkward_figures_read_back_equal),
        cmocka_unit_test(damage_is_refused_with_its_place),
        cmocka_unit_test(a_cut_file_is_refused),
        cmocka_unit_test(absurd_counts_are_refused),
        cmocka_unit_test(a_huge_text_is_refused_before_it_is_read),
        cmocka_unit_test(other_schemas_and_machines_are_refused_by_name),
        cmocka_unit_test(queries_answer_from_what_was_measured),
        cmocka_unit_test(an_empty_model_refuses_every_question),
        cmocka_unit_test(a_curve_without_a_last_knee_is_undecided),
        cmocka_unit_test(a_knee_of_neighbouring_sizes_keeps_its_order),
        cmocka_unit_test(knees_and_levels_are_paired_as_close_as_they_come),
    };
    return cmocka_run_group_tests(tests, open_fixture, close_fixture);
}
