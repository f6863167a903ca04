/* What a person and a spreadsheet read: sizes, times, CSV, the chart at its extremes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "record/record.h"
#include "report/report.h"
#include "toy.h"

static void sizes_and_times_are_short(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *text;
    } bytes[] = {{0, "0 B"},
                 {1023, "1023 B"},
                 {1024, "1 KiB"},
                 {1536, "1.5 KiB"},
                 {102400, "100 KiB"},
                 {2.5 * 1048576, "2.5 MiB"},
                 {1073741824, "1 GiB"},
                 {1e15, "931323 GiB"}},
      times[] = {{0, "0.00 ns"},      {3.14159, "3.14 ns"}, {31.4159, "31.4 ns"},
                 {314.159, "314 ns"}, {3214, "3.21 us"},    {9.5e9, "9.50 s"},
                 {1e13, "10000 s"},   {(double)NAN, "-"},   {(double)INFINITY, "-"}};
    char text[24];
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++) {
        cb__bytes_text(bytes[i].value, text);
        assert_string_equal(text, bytes[i].text);
    }
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        cb__time_text(times[i].value, text);
        assert_string_equal(text, times[i].text);
    }
}

static cb__interval same(double value)
{
    return (cb__interval){value, value, value, 1};
}

static void the_chart_holds_any_curve(void **state)
{
    (void)state;
    static const double gb[] = {0, 1e-300, 1e-3, 1, 1e3, 1e300, (double)NAN, (double)INFINITY};
    static const int64_t sizes[] = {1, 64, 8192, 1 << 30, INT64_MAX};
    enum { GB = sizeof gb / sizeof *gb, SIZES = sizeof sizes / sizeof *sizes };
    static cb__curve c;
    for (int n = 0; n <= CB__CURVE_POINTS_MAX; n = n < 4 ? n + 1 : n * 2)
        for (int low = 0; low < GB; low++)
            for (int high = 0; high < GB; high++)
                for (int first = 0; first < SIZES; first++)
                    for (int last = first; last < SIZES; last++) {
                        cb__buf out = CB__BUF_INIT;
                        memset(&c, 0, sizeof c);
                        c.n = n;
                        for (int i = 0; i < n; i++) {
                            c.points[i].bytes = i == n - 1 ? sizes[last] : sizes[first];
                            c.points[i].threads = i % 2 + 1;
                            c.points[i].gb_per_s = same(i % 2 ? gb[high] : gb[low]);
                        }
                        cb__report_curve_chart(&c, &out);
                        cb__report_curve_table(&c, true, &out);
                        assert_false(out.failed);
                        size_t longest = 0, length = 0;
                        for (size_t i = 0; i < out.size; i++) {
                            length = out.text[i] == '\n' ? 0 : length + 1;
                            longest = length > longest ? length : longest;
                        }
                        assert_true(longest < 2000);
                        cb__buf_fini(&out);
                    }
}

static size_t columns(const char *line)
{
    size_t n = 1;
    bool quoted = false;
    for (; *line && *line != '\n'; line++) {
        quoted ^= *line == '"';
        n += *line == ',' && !quoted;
    }
    return n;
}

static void every_row_of_csv_has_the_columns_of_its_head(void **state)
{
    (void)state;
    static cb__run_case c;
    cb_error err = CB_ERROR_INIT;
    assert_int_equal(cb__case_parse(&toy_suite, "toy", "8x64", CB_ISA_AVX2, &c.c, &err), CB_OK);
    c.nrows = 3;
    for (int i = 0; i < c.nrows; i++) { /* without figures, and with */
        cb__run_row *r = &c.rows[i];
        r->evidence.plan = &c.plan;
        r->evidence.device = &c.device;
        double value = i == 1 ? (double)NAN : i == 2 ? 1e300 : 2.5;
        r->evidence.time_ns = r->evidence.gb_per_s = r->evidence.of_twin = r->of_ceiling =
            same(value);
    }
    cb__buf out = CB__BUF_INIT;
    cb__record_run_csv(&c, 1, &out);
    size_t head = columns(out.text);
    int lines = 0;
    for (const char *line = out.text; *line; line = strchr(line, '\n') + 1, lines++)
        assert_int_equal(columns(line), head);
    assert_int_equal(lines, 4);
    cb__buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_and_times_are_short),
        cmocka_unit_test(the_chart_holds_any_curve),
        cmocka_unit_test(every_row_of_csv_has_the_columns_of_its_head),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
