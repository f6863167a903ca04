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
        cmocka_unit_test(every_row_of_csv_has_the_columns_of_its_head),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
