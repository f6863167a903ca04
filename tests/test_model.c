/* The machine model's file: what is written reads back equal, what is not whole is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "model_fixture.h"

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
    {1, {0.1, 0.1 + 0.2, 7.6, 1.0 / 3}, CB_VERDICT_WRONG, 0.3, 7.7},
    {INT64_MAX - 1, {1e-9, 1e-9, 1e15, 0}, CB_VERDICT_OK, 0, 0},
    {INT64_MAX, {5e-5, 1.7976931348623157, 2, 1}, CB_VERDICT_UNKNOWN, 0, 0},
};
static cb__point halves[] = {
    {64, {1, 2, 3, 0}, CB_VERDICT_OK, 0, 0},
    {128, {(double)NAN, (double)NAN, (double)NAN, 0}, CB_VERDICT_UNKNOWN, 0, 0},
    {256, {2, 2, 2, 0}, CB_VERDICT_OK, 0, 0},
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
                    .dropped = "1 thread: \"local\" (after 1 sweep)",
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
    assert_string_equal(back->dropped, m.dropped);
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

#define KNEE(lo, hi)                                                                               \
    "{\"curve\":\"write/1\",\"lo_bytes\":" lo ",\"hi_bytes\":" hi                                  \
    ",\"from\":1,\"to\":1,\"last\":false,\"verdict\":\"ok\"},"

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
    {"\"complete\": true,", "\"complete\": true, \"dropped\": 7,", "model X", "'dropped'"},
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
    {"\"knees\": [",
     "\"knees\": [" KNEE("1", "2") KNEE("2", "3") KNEE("3", "4") KNEE("4", "5") KNEE("5", "6")
         KNEE("6", "7") KNEE("7", "8") KNEE("8", "9") KNEE("9", "10"),
     "knees[8]", "more than 8 knees"},
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
    {"\"scratch\": []", "\"scratch\": [{}]", "model", "scratch[0]: 'path' is missing"},
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

static void a_ceiling_without_its_row_is_refused(void **state)
{
    (void)state;
    cb_error err = CB_ERROR_INIT;
    cb__buf text = CB__BUF_INIT;
    cb_model *model = NULL;
    char *bare = slurp(FIXTURES "bare.json"), *at = strstr(bare, "\"copy\": null");
    cb__buf_append(&text, bare, (size_t)(at - bare));
    cb__buf_puts(&text, "\"copy\": {\"lo\":1,\"mid\":1,\"hi\":1,\"coverage\":0}");
    cb__buf_puts(&text, strchr(at, '\n'));
    assert_int_equal(cb__model_read_text(text.text, text.size, "it", NULL, &model, &err),
                     CB_UNAVAILABLE);
    says(&err, "it: model: ceilings: 'copy' is not among 'ceilings_by'");
    cb__buf_fini(&text);
    free(bare);
}

/* The ends over a chip enclose the median. */
static void places_that_do_not_enclose_are_refused(void **state)
{
    (void)state;
    static const struct {
        double low, high;
        const char *reason; /* NULL: fine */
    } table[] = {{1, 4, NULL},
                 {2, 2, NULL},
                 {2.5, 4, "low 2.5, mid 2, high 4 are out of order"},
                 {1, 1.5, "out of order"},
                 {0, 4, "'low' is 0, must be"},
                 {1e16, 4, "'low' is 1e+16"}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        cb__point points[] = {{64, {1, 2, 3, 0}, CB_VERDICT_OK, table[i].low, table[i].high}};
        cb__series series = {CB__LATENCY, "random", 1, "compact", 4096, points, 1};
        cb_error err = CB_ERROR_INIT;
        cb__buf text = CB__BUF_INIT;
        cb_model m, *back = NULL;
        awkward_model(&m);
        m.series = &series;
        m.nseries = 1;
        m.nknees = 0;
        cb__model_write_text(&m, &text);
        cb_status status = cb__model_read_text(text.text, text.size, "it", NULL, &back, &err);
        assert_int_equal(status == CB_OK, table[i].reason == NULL);
        if (table[i].reason &&
            (!strstr(err.message, table[i].reason) || !strstr(err.message, "latency[0]")))
            fail_msg("%s", err.message);
        cb__buf_fini(&text);
        cb_model_free(back);
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
        {"fake.json", "cuda:0", {"cuda:0", "no NVIDIA driver", "", ""}},
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_reads_back_equal),
        cmocka_unit_test(awkward_figures_read_back_equal),
        cmocka_unit_test(damage_is_refused_with_its_place),
        cmocka_unit_test(a_ceiling_without_its_row_is_refused),
        cmocka_unit_test(places_that_do_not_enclose_are_refused),
        cmocka_unit_test(a_cut_file_is_refused),
        cmocka_unit_test(absurd_counts_are_refused),
        cmocka_unit_test(a_huge_text_is_refused_before_it_is_read),
        cmocka_unit_test(other_schemas_and_machines_are_refused_by_name),
    };
    return cmocka_run_group_tests(tests, open_fixture, close_fixture);
}
