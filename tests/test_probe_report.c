/* What `probe` prints and records: table, chart and CSV of a hand-built probe beside golden files,
 * and the same of probes that hold nothing, one point, no figures, or too much. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "probe_fixture.h"
#include "record/record.h"
#include "report/chip.h"
#include "report/report.h"

static cb__probe probe;
static cb_model *model;

static int setup(void **state)
{
    (void)state;
    model = probe_fixture(&probe);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    cb_model_free(model);
    model = NULL;
    return 0;
}

static size_t longest_line(const char *text)
{
    size_t longest = 0;
    for (const char *end; *text; text = *end ? end + 1 : end) {
        end = text + strcspn(text, "\n");
        longest = (size_t)(end - text) > longest ? (size_t)(end - text) : longest;
    }
    return longest;
}

static bool is_plain(const char *text)
{
    for (; *text; text++)
        if (*text != '\n' && (*text < ' ' || *text > '~'))
            return false;
    return true;
}

/* What differs lies beside the build, to be looked at and, where right, copied. */
static void assert_golden(const cb__buf *out, const char *name)
{
    static char golden[1 << 16];
    char path[512], seen[512];
    snprintf(path, sizeof path, CB_SOURCE_DIR "/tests/fixtures/probe_report/%s", name);
    snprintf(seen, sizeof seen, CB_BINARY_DIR "/probe_report_%s", name);
    FILE *file = fopen(path, "rb");
    size_t size = file ? fread(golden, 1, sizeof golden, file) : 0;
    if (file)
        fclose(file);
    if (size != out->size || memcmp(golden, cb__buf_text(out), size) != 0) {
        FILE *other = fopen(seen, "wb");
        assert_non_null(other);
        fwrite(cb__buf_text(out), 1, out->size, other);
        fclose(other);
        print_error("%s is not %s\n", seen, path);
    }
    assert_int_equal(size, out->size);
    assert_memory_equal(golden, cb__buf_text(out), size);
}

static void the_table_is_a_summary(void **state)
{
    (void)state;
    cb__buf out = CB__BUF_INIT;
    cb__report_probe_table(&probe, model, false, false, &out);
    assert_true(longest_line(cb__buf_text(&out)) <= 100);
    assert_golden(&out, "table.txt");
    cb__buf_fini(&out);
}

static void verbose_adds_every_knee_and_point(void **state)
{
    (void)state;
    cb__buf out = CB__BUF_INIT;
    cb__report_probe_table(&probe, model, false, true, &out);
    assert_golden(&out, "table_verbose.txt");
    cb__buf_fini(&out);
}

static void a_knee_that_ends_no_level_is_listed(void **state)
{
    (void)state;
    model->knees[model->nknees++] = (cb__model_knee){.series = 1,
                                                     .lo_bytes = 8 * MIB,
                                                     .hi_bytes = 10 * MIB,
                                                     .from = 130,
                                                     .to = 118,
                                                     .verdict = CB_VERDICT_UNKNOWN};
    cb__buf out = CB__BUF_INIT;
    cb__report_probe_table(&probe, model, false, false, &out);
    assert_non_null(strstr(cb__buf_text(&out), "\nknees that end no level\n  read/2 "));
    assert_non_null(
        strstr(cb__buf_text(&out), " 8..10 MiB              130 -> 118 GB/s, unknown\n"));
    cb__buf_fini(&out);
}

static void a_level_without_a_knee_is_not_resolved(void **state)
{
    (void)state;
    int n = 0;
    for (int i = 0; i < model->nknees; i++)
        if (model->knees[i].series != 4)
            model->knees[n++] = model->knees[i];
    model->nknees = n;
    cb__buf out = CB__BUF_INIT;
    cb__report_probe_table(&probe, model, false, false, &out);
    assert_non_null(strstr(cb__buf_text(&out), "20..50.8 MiB              not resolved "));
    cb__buf_fini(&out);
}

static void colour_is_all_that_colour_adds(void **state)
{
    (void)state;
    cb__buf plain = CB__BUF_INIT, color = CB__BUF_INIT;
    cb__report_probe_table(&probe, model, false, true, &plain);
    cb__report_probe_table(&probe, model, true, true, &color);
    assert_true(is_plain(cb__buf_text(&plain)));
    assert_non_null(strstr(cb__buf_text(&color), "\033[31mfail\033[0m"));
    char *to = color.text;
    for (const char *from = color.text; *from;)
        if (*from == '\033')
            from = strchr(from, 'm') + 1;
        else
            *to++ = *from++;
    *to = '\0';
    assert_string_equal(color.text, cb__buf_text(&plain));
    cb__buf_fini(&plain);
    cb__buf_fini(&color);
}

static void the_chart_names_levels_and_ceilings(void **state)
{
    (void)state;
    cb__buf out = CB__BUF_INIT;
    cb__report_probe_chart(&probe, model, &out);
    assert_true(is_plain(cb__buf_text(&out)));
    assert_true(longest_line(cb__buf_text(&out)) <= 100);
    assert_golden(&out, "chart.txt");
    cb__buf_fini(&out);
}

static void the_csv_is_a_row_a_point(void **state)
{
    (void)state;
    cb__buf out = CB__BUF_INIT;
    cb__record_sweeps_csv(&probe, model, &out);
    assert_golden(&out, "points.csv");
    cb__buf_fini(&out);
}

static cb__json *parsed(bool complete)
{
    cb__record record = {.kind = "probe",
                         .complete = complete,
                         .seed = 7,
                         .started = "2026-11-30T00:00:00Z",
                         .wall_s = probe.wall_s,
                         .measure_s = probe.measure_s,
                         .device = &probe.device,
                         .device_name = "cpu"};
    cb__buf out = CB__BUF_INIT;
    cb__json *root = NULL;
    cb_error err = CB_ERROR_INIT;
    cb__record_sweeps(&record, &probe, model, &out);
    assert_false(out.failed);
    cb_status status = cb__json_parse(cb__buf_text(&out), out.size, "record", &root, &err);
    if (status != CB_OK)
        print_error("%s\n", err.message);
    assert_int_equal(status, CB_OK);
    cb__buf_fini(&out);
    return root;
}

static const cb__json *series_of(const cb__json *root, size_t i)
{
    return cb__json_at(cb__json_get(cb__json_get(root, "raw"), "series"), i);
}

static double number_at(const cb__json *sweep, const char *key, size_t i)
{
    return cb__json_real(cb__json_at(cb__json_get(sweep, key), i), (double)NAN);
}

static void the_record_holds_every_reading(void **state)
{
    (void)state;
    cb__json *root = parsed(true);
    const cb__json *raw = cb__json_get(root, "raw"), *series = series_of(root, 1);
    assert_int_equal(cb__json_size(cb__json_get(root, "checks")), 3);
    assert_true(cb__json_size(cb__json_get(cb__json_get(root, "model"), "curves")) == 4 * SIZES);
    assert_int_equal(cb__json_size(cb__json_get(root, "results")), 0);
    assert_true(cb__json_is_array(cb__json_get(root, "results")));
    assert_string_equal(cb__json_text(cb__json_get(root, "dropped"), ""), "int8, copy scattered");
    assert_int_equal(cb__json_i64(cb__json_get(root, "sweeps"), -1), FIXTURE_SWEEPS);
    assert_true(cb__json_real(cb__json_get(root, "core_hz"), 0) == 3.31e9);
    assert_true(cb__json_real(cb__json_get(root, "port_bound_gb_per_s"), 0) == 211.8);
    assert_int_equal(cb__json_size(cb__json_get(raw, "variants")), 2);
    assert_int_equal(cb__json_size(cb__json_get(raw, "groups")), CURVES);
    assert_int_equal(cb__json_size(cb__json_get(raw, "series")), CURVES);
    assert_int_equal(cb__json_size(cb__json_get(raw, "scalars")), 1);
    assert_string_equal(cb__json_text(cb__json_get(series, "what"), ""), "read");
    assert_int_equal(cb__json_i64(cb__json_get(series, "group"), -1), 1);
    for (size_t s = 0; s < FIXTURE_SWEEPS; s++) {
        const cb__json *sweep = cb__json_at(cb__json_get(series, "sweeps"), s);
        for (size_t i = 0; i < SIZES; i++) {
            const cb__reading *r = &probe.series[1].readings[s][i];
            assert_true(number_at(sweep, "value", i) == r->value);
            assert_true(number_at(sweep, "folded", i) == r->folded);
            assert_true(number_at(sweep, "clock_hz", i) == r->clock_hz);
            assert_true(isnan(number_at(sweep, "edge_gain", i)));
            assert_true(number_at(sweep, "variant", i) == r->variant);
            assert_true(number_at(sweep, "covered", i) == r->covered);
        }
    }
    cb__json_free(root);
}

static void the_record_holds_what_each_process_met(void **state)
{
    (void)state;
    probe.groups[5].pages[2].known = false;
    cb__json *root = parsed(true);
    const cb__json *group = cb__json_at(cb__json_get(cb__json_get(root, "raw"), "groups"), 5);
    const cb__json *sweeps = cb__json_get(group, "sweeps"), *first = cb__json_at(sweeps, 0),
                   *last = cb__json_at(sweeps, 2);
    assert_int_equal(cb__json_size(sweeps), FIXTURE_SWEEPS);
    assert_string_equal(cb__json_text(cb__json_get(group, "pages"), ""), "base");
    assert_string_equal(cb__json_text(cb__json_get(group, "placement"), ""), "compact");
    assert_int_equal(cb__json_i64(cb__json_get(first, "resident_bytes"), -1), 64 * MIB);
    assert_int_equal(cb__json_i64(cb__json_get(first, "huge_bytes"), -1), 0);
    assert_null(cb__json_get(last, "huge_bytes"));
    assert_int_equal(cb__json_i64(cb__json_get(last, "involuntary_switches"), -1), 14);
    assert_true(cb__json_real(cb__json_get(last, "steal_s"), -1) == 0.02);
    cb__json_free(root);
}

static void a_sweep_that_was_not_made_is_not_recorded(void **state)
{
    (void)state;
    probe.sweeps = 1;
    probe.complete = false;
    for (int i = 0; i < probe.nseries; i++)
        for (int s = i == 0 ? 2 : 1; s < FIXTURE_SWEEPS; s++) { /* the first was in its second */
            probe.groups[i].wall_s[s] = 0;
            for (int j = 0; j < SIZES; j++)
                probe.series[i].readings[s][j].value = (double)NAN;
        }
    cb__json *root = parsed(false);
    assert_int_equal(cb__json_size(cb__json_get(series_of(root, 0), "sweeps")), 2);
    assert_int_equal(cb__json_size(cb__json_get(series_of(root, 1), "sweeps")), 1);
    const cb__json *groups = cb__json_get(cb__json_get(root, "raw"), "groups");
    assert_int_equal(cb__json_size(cb__json_get(cb__json_at(groups, 0), "sweeps")), 2);
    assert_int_equal(cb__json_size(cb__json_get(cb__json_at(groups, 1), "sweeps")), 1);
    cb__json_free(root);
    cb__buf out = CB__BUF_INIT;
    cb__report_probe_table(&probe, model, false, false, &out);
    assert_non_null(strstr(cb__buf_text(&out), "\nincomplete: 1 of 3 sweeps\n"));
    cb__buf_fini(&out);
}

static size_t columns(const char *line)
{
    size_t n = 1;
    for (; *line && *line != '\n'; line++)
        n += *line == ',';
    return n;
}

/* Everything that is printed or recorded, held to what must be true of any probe. */
static void print_all(int rows)
{
    cb__buf out = CB__BUF_INIT;
    cb__report_probe_chart(&probe, model, &out);
    assert_true(is_plain(cb__buf_text(&out)));
    assert_true(longest_line(cb__buf_text(&out)) <= 100);
    cb__report_probe_table(&probe, model, false, false, &out);
    cb__report_probe_table(&probe, model, false, true, &out);
    assert_true(is_plain(cb__buf_text(&out)));
    assert_null(strstr(cb__buf_text(&out), "nan"));
    assert_null(strstr(cb__buf_text(&out), "inf\n"));
    cb__buf_clear(&out);
    cb__record_sweeps_csv(&probe, model, &out);
    int lines = 0;
    for (const char *line = out.text; *line; line = strchr(line, '\n') + 1, lines++)
        assert_int_equal(columns(line), 11);
    assert_int_equal(lines, rows + 1);
    assert_false(out.failed);
    cb__buf_fini(&out);
    cb__json_free(parsed(true));
}

static void nothing_measured_is_said(void **state)
{
    (void)state;
    memset(&probe, 0, sizeof probe);
    probe.planned = FIXTURE_SWEEPS;
    model->nseries = model->nknees = model->nceilings = model->nfloors = model->ncomputes = 0;
    model->nchecks = model->nlevels = 0;
    print_all(0);
    cb__buf out = CB__BUF_INIT;
    cb__report_probe_chart(&probe, model, &out);
    assert_int_equal(out.size, 0);
    cb__report_probe_table(&probe, model, false, false, &out);
    assert_string_equal(cb__buf_text(&out), "unnamed device, 0 threads, 0 sweeps in 0 s\n"
                                            "\nno size was measured\n"
                                            "incomplete: 0 of 3 sweeps\n");
    cb__buf_fini(&out);
}

/* Without a curve the most workers are those of what has no size. */
static void figures_are_shown_without_a_curve(void **state)
{
    (void)state;
    cb__buf out = CB__BUF_INIT;
    model->nseries = model->nknees = model->nceilings = 0;
    cb__report_probe_table(&probe, model, false, false, &out);
    const char *text = cb__buf_text(&out);
    assert_non_null(strstr(text, "\nfloors          1 thread"
                                 "                                  2 threads\n"));
    assert_non_null(strstr(text, "[117 ns, 120 ns]     ok           1.84 us [1.82 us, 1.88 us]"));
    assert_non_null(strstr(text, "212 ns [210 ns, 216 ns]     unstable\n"));
    assert_non_null(strstr(text, "no size was measured\n"));
    cb__buf_fini(&out);
}

static void one_point_is_no_chart(void **state)
{
    (void)state;
    for (int i = 0; i < CURVES; i++)
        model->series[i].n = probe.series[i].n = 1;
    print_all(CURVES);
    cb__buf out = CB__BUF_INIT;
    model->nknees = 0;
    cb__report_probe_chart(&probe, model, &out);
    assert_int_equal(out.size, 0);
    cb__buf_fini(&out);
}

static void one_thread_has_one_column(void **state)
{
    (void)state;
    model->series[1] = model->series[4]; /* reading with one, latency */
    model->nseries = 2;
    model->threads = 1;
    int n = 0;
    for (int i = 0; i < model->nknees; i++)
        if (model->knees[i].series == 0 || model->knees[i].series == 4) {
            model->knees[n] = model->knees[i];
            model->knees[n].series = model->knees[n].series > 0;
            n++;
        }
    model->nknees = n;
    print_all(2 * SIZES);
    cb__buf out = CB__BUF_INIT;
    cb__report_probe_chart(&probe, model, &out);
    assert_null(strchr(cb__buf_text(&out), 'N'));
    cb__report_probe_table(&probe, model, false, false, &out);
    assert_non_null(strstr(cb__buf_text(&out), "latency knee               GB/s, 1      ns\n"));
    assert_non_null(strstr(cb__buf_text(&out), "ceilings, GB/s  1 thread\n"));
    cb__buf_fini(&out);
}

static void figures_that_are_none_or_huge_fit(void **state)
{
    (void)state;
    static const double values[] = {(double)NAN, (double)INFINITY, -1, 0, 5e-324, 1e-300, 1e300};
    for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
        cb__interval x = {values[v], values[v], values[v], 1};
        for (int i = 0; i < CURVES; i++)
            for (int j = 0; j < SIZES; j++)
                if (v % 2 || j % 2)
                    model->series[i].points[j].value = x;
        for (int i = 0; i < model->nknees; i++)
            model->knees[i].from = model->knees[i].to = values[v];
        for (int i = 0; i < model->nceilings; i++)
            model->ceilings[i].gb_per_s = x;
        for (int i = 0; i < model->nfloors; i++)
            model->floors[i].ns = x;
        for (int i = 0; i < model->ncomputes; i++)
            model->computes[i].gflop_per_s = x;
        for (int i = 0; i < CURVES; i++)
            probe.series[i].readings[1][3].value = probe.series[i].readings[1][3].folded =
                values[v];
        print_all(CURVES * SIZES);
    }
}

static void a_curve_of_any_sizes_fits(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {0, 1, 64, 8192, 1 << 30, INT64_MAX};
    enum { N = sizeof sizes / sizeof *sizes };
    for (int first = 0; first < N; first++)
        for (int last = first; last < N; last++) {
            for (int i = 0; i < CURVES; i++)
                for (int j = 0; j < SIZES; j++)
                    model->series[i].points[j].bytes = j ? sizes[last] : sizes[first];
            for (int i = 0; i < model->nknees; i++) {
                model->knees[i].lo_bytes = sizes[first];
                model->knees[i].hi_bytes = sizes[last];
            }
            print_all(CURVES * SIZES);
        }
}

static void a_hundred_series_fit(void **state)
{
    (void)state;
    int n = 100;
    for (int i = CURVES; i < n; i++) {
        model->series[i] = model->series[i % CURVES];
        model->series[i].workers = i;
        probe.series[i] = probe.series[i % CURVES];
        probe.series[i].group = i % CB__GROUPS_MAX;
    }
    for (int i = CURVES; i < CB__GROUPS_MAX; i++)
        probe.groups[i] = (cb__group){.threads = i};
    model->nknees = 0;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < CB__KNEES_MAX; k++)
            model->knees[model->nknees++] =
                (cb__model_knee){.series = i,
                                 .lo_bytes = size_at(5 * k + 3),
                                 .hi_bytes = size_at(5 * k + (k % 2 ? 4 : 6)),
                                 .from = 400 - 40 * k,
                                 .to = 360 - 40 * k,
                                 .last = k == CB__KNEES_MAX - 1,
                                 .verdict = (cb_verdict)(k % (CB_VERDICT_OK + 1))};
    model->nseries = probe.nseries = n;
    probe.ngroups = CB__GROUPS_MAX;
    print_all(n * SIZES);
    cb__buf out = CB__BUF_INIT;
    cb__report_probe_chart(&probe, model, &out);
    assert_golden(&out, "chart_crowded.txt");
    cb__buf_fini(&out);
}

/* What only a GPU has: levels between knees over its multiprocessors, plateaus, banks. */
static void a_chip_shows_its_levels_and_plateaus(void **state)
{
    (void)state;
    cb__point chase[] = {{4096, {19, 19.1, 19.2, 0}, CB_VERDICT_OK, 18.9, 19.4},
                         {65536, {19, 19.3, 19.5, 0}, CB_VERDICT_OK, 19, 19.6},
                         {1 << 20, {145, 148, 149, 0}, CB_VERDICT_OK, 142, 154},
                         {8 << 20, {146, 148, 149, 0}, CB_VERDICT_OK, 143, 153},
                         {256 << 20, {320, 338, 341, 0}, CB_VERDICT_OK, 310, 350}};
    cb__point read[] = {{1 << 20, {1, 2, 3, 0}, CB_VERDICT_OK, 0, 0}};
    cb__series series[] = {{CB__LATENCY, "random", 1, "compact", 2097152, chase, 5},
                           {CB__BANDWIDTH, "read", 132, "compact", 0, read, 1}};
    cb__model_knee knees[] = {{0, 65536, 1 << 20, 19, 148, false, CB_VERDICT_OK},
                              {0, 8 << 20, 256 << 20, 148, 338, true, CB_VERDICT_OK}};
    cb__model_start start = {1, 3 << 20, 4 << 20, 9030};
    cb_model m = {.series = series, .nseries = 2, .knees = knees, .nknees = 2};
    cb__buf out = CB__BUF_INIT;
    m.starts = &start;
    m.nstarts = 1;
    cb__report_chip(&m, &out);
    assert_string_equal(cb__buf_text(&out),
                        "\nlatency, ns           median [over multiprocessors and sweeps]\n"
                        "  4..64 KiB                 19.2 [18.9, 19.6]\n"
                        "  1..8 MiB                   148 [142, 154]\n"
                        "  256 MiB                    338 [310, 350]\n"
                        "\nplateaus begin at\n"
                        "  read/132     3..4 MiB             9030 GB/s\n");
    cb__buf_fini(&out);
    for (int i = 0; i < 5; i++)
        chase[i].low = chase[i].high = 0;
    m.nstarts = 0;
    cb__report_chip(&m, &out);
    assert_string_equal(cb__buf_text(&out), "");
    cb__buf_fini(&out);
}

int main(void)
{
#define WITH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chip_shows_its_levels_and_plateaus),
        WITH(the_table_is_a_summary),
        WITH(verbose_adds_every_knee_and_point),
        WITH(a_knee_that_ends_no_level_is_listed),
        WITH(a_level_without_a_knee_is_not_resolved),
        WITH(colour_is_all_that_colour_adds),
        WITH(the_chart_names_levels_and_ceilings),
        WITH(the_csv_is_a_row_a_point),
        WITH(the_record_holds_every_reading),
        WITH(the_record_holds_what_each_process_met),
        WITH(a_sweep_that_was_not_made_is_not_recorded),
        WITH(nothing_measured_is_said),
        WITH(figures_are_shown_without_a_curve),
        WITH(one_point_is_no_chart),
        WITH(one_thread_has_one_column),
        WITH(figures_that_are_none_or_huge_fit),
        WITH(a_curve_of_any_sizes_fits),
        WITH(a_hundred_series_fit),
    };
#undef WITH
    return cmocka_run_group_tests(tests, NULL, NULL);
}
