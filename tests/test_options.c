#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/options.h"

struct settings {
    bool quiet;
    const char *device;
    int64_t threads, bytes;
    double margin, budget;
    int cache;
    cb__option_list shapes;
};

#define AT(field) offsetof(struct settings, field)

static const char *const caches[] = {"cold", "warm", "both", NULL};

static const cb__option table[] = {
    {"quiet", 'q', CB__OPT_FLAG, AT(quiet), NULL, NULL, NULL, 0, 0, "Prints the result only."},
    {"device", 'd', CB__OPT_TEXT, AT(device), "NAME", "cpu", NULL, 0, 0, "Where to measure."},
    {"threads", 0, CB__OPT_INT, AT(threads), "N", NULL, NULL, 1, 64, "Workers."},
    {"bytes", 0, CB__OPT_INT, AT(bytes), "SIZE", "1MiB", NULL, 0, 0, "Size."},
    {"margin", 0, CB__OPT_REAL, AT(margin), "SHARE", "2%", NULL, 0, 0.5, "Margin."},
    {"budget", 0, CB__OPT_REAL, AT(budget), "S", NULL, NULL, 0, 0, "Seconds."},
    {"cache", 0, CB__OPT_CHOICE, AT(cache), "MODE", "both", caches, 0, 0, "Cache state."},
    {"shape", 's', CB__OPT_LIST, AT(shapes), "SHAPE", NULL, NULL, 0, 0,
     "A shape in the kernel's own order, or by name as in rows=11008,cols=4096, with KiB, MiB and "
     "GiB as suffixes."},
};

enum { N = sizeof table / sizeof *table, ARGS_MAX = 80 };

static struct settings given;
static const char *positionals[ARGS_MAX];
static int npositionals;
static cb_error err;

/* Parses a NULL-terminated list. */
static cb_status parse(const char *const *args)
{
    char *argv[ARGS_MAX];
    int argc = 0;
    for (; args[argc]; argc++)
        argv[argc] = (char *)(uintptr_t)args[argc];
    memset(&given, 0, sizeof given);
    given.threads = 7;
    cb_error_clear(&err);
    return cb__options_parse(table, N, &given, argc, argv, positionals, &npositionals, &err);
}

#define PARSE(...) parse((const char *const[]){__VA_ARGS__, NULL})

static void defaults_come_from_the_table(void **state)
{
    (void)state;
    assert_int_equal(parse((const char *const[]){NULL}), CB_OK);
    assert_false(given.quiet);
    assert_string_equal(given.device, "cpu");
    assert_int_equal(given.threads, 7);
    assert_int_equal(given.bytes, 1048576);
    assert_true(given.margin == 0.02);
    assert_int_equal(given.cache, 2);
    assert_int_equal(given.shapes.count, 0);
    assert_int_equal(npositionals, 0);
}

static void every_kind_is_read_in_both_spellings(void **state)
{
    (void)state;
    for (int joined = 0; joined < 2; joined++) {
        assert_int_equal(joined ? PARSE("--quiet", "--device=cuda:0", "--threads=3", "--bytes=2KiB",
                                        "--margin=1%", "--cache=warm", "--shape=4x4", "--budget=1")
                                : PARSE("-q", "-d", "cuda:0", "--threads", "3", "--bytes", "2KiB",
                                        "--margin", "1%", "--cache", "warm", "-s", "4x4",
                                        "--budget", "1"),
                         CB_OK);
        assert_true(given.quiet);
        assert_string_equal(given.device, "cuda:0");
        assert_int_equal(given.threads, 3);
        assert_int_equal(given.bytes, 2048);
        assert_true(given.margin == 0.01 && given.budget == 1);
        assert_int_equal(given.cache, 1);
        assert_int_equal(given.shapes.count, 1);
        assert_string_equal(given.shapes.items[0], "4x4");
    }
}

static void positionals_and_options_mix(void **state)
{
    (void)state;
    assert_int_equal(PARSE("gemv_q4", "--threads", "2", "-", "--", "-q", "--threads"), CB_OK);
    assert_int_equal(npositionals, 4);
    assert_string_equal(positionals[0], "gemv_q4");
    assert_string_equal(positionals[1], "-");
    assert_string_equal(positionals[2], "-q");
    assert_string_equal(positionals[3], "--threads");
    assert_false(given.quiet);
    assert_int_equal(given.threads, 2);
}

static void the_last_of_a_repeated_option_wins_and_lists_grow(void **state)
{
    (void)state;
    assert_int_equal(PARSE("--threads=2", "--threads=5", "--shape=1", "-s", "2", "--shape", "3"),
                     CB_OK);
    assert_int_equal(given.threads, 5);
    assert_int_equal(given.shapes.count, 3);
    assert_string_equal(given.shapes.items[2], "3");
}

static void values_may_look_like_options(void **state)
{
    (void)state;
    assert_int_equal(PARSE("--device", "-", "--bytes", "-5"), CB_OK);
    assert_string_equal(given.device, "-");
    assert_int_equal(given.bytes, -5);
    assert_int_equal(PARSE("--device=--quiet"), CB_OK);
    assert_string_equal(given.device, "--quiet");
    assert_int_equal(PARSE("--device="), CB_OK);
    assert_string_equal(given.device, "");
    assert_int_equal(PARSE("--device=a=b"), CB_OK);
    assert_string_equal(given.device, "a=b");
}

static void what_is_wrong_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *args[3];
        const char *words;
    } rows[] = {
        {{"--thraeds=3"}, "unknown option '--thraeds'; valid: --quiet, --device, --threads"},
        {{"--thraeds", "3"}, "did you mean '--threads'?"},
        {{"--QUIET"}, "unknown option '--QUIET'"},
        {{"-x"}, "unknown option '-x'"},
        {{"-qq"}, "unknown option '-qq'"},
        {{"--=3"}, "unknown option '--'"},
        {{"---"}, "unknown option '---'"},
        {{"--threads"}, "--threads needs a value (N)"},
        {{"-d"}, "--device needs a value (NAME)"},
        {{"--threads", "--quiet"}, "--threads needs a value (N)"},
        {{"--quiet=yes"}, "--quiet takes no value, got 'yes'"},
        {{"--quiet="}, "--quiet takes no value"},
        {{"--threads", "0"}, "--threads: '0' is out of range, must be 1 to 64"},
        {{"--threads", "65"}, "--threads: '65' is out of range, must be 1 to 64"},
        {{"--threads="}, "--threads: '' is not an integer"},
        {{"--threads=1e3"}, "--threads: '1e3' is not an integer"},
        {{"--bytes=9223372036854775808"}, "--bytes: '9223372036854775808' is out of range"},
        {{"--margin=51%"}, "--margin: '51%' is out of range, must be 0 to 0.5"},
        {{"--margin=x"}, "--margin: 'x' is not a decimal number"},
        {{"--cache=clod"}, "unknown --cache 'clod'; valid: cold, warm, both; did you mean 'cold'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(parse(rows[i].args), CB_USAGE);
        if (!strstr(err.message, rows[i].words))
            fail_msg("'%s' lacks '%s'", err.message, rows[i].words);
    }
}

static void a_list_has_an_end(void **state)
{
    (void)state;
    const char *args[CB__OPTION_LIST_MAX + 2] = {0};
    for (int i = 0; i < CB__OPTION_LIST_MAX; i++)
        args[i] = "--shape=1";
    assert_int_equal(parse(args), CB_OK);
    assert_int_equal(given.shapes.count, CB__OPTION_LIST_MAX);
    args[CB__OPTION_LIST_MAX] = "--shape=last";
    assert_int_equal(parse(args), CB_USAGE);
    assert_non_null(strstr(err.message, "'last' is one too many, at most 64"));
}

static void a_default_that_does_not_parse_is_found(void **state)
{
    (void)state;
    static const cb__option bad = {"n", 0, CB__OPT_INT, AT(threads), "N", "ten", NULL, 0, 0, ""};
    cb_error_clear(&err);
    assert_int_equal(cb__options_parse(&bad, 1, &given, 0, NULL, positionals, &npositionals, &err),
                     CB_USAGE);
    assert_non_null(strstr(err.message, "default: --n: 'ten'"));
}

static void limits_at_the_edge_of_the_type_are_kept(void **state)
{
    (void)state;
    static const cb__option wide = {"n", 0, CB__OPT_INT, AT(threads), "N", NULL, NULL, 0, 1e30, ""};
    char *argv[] = {(char[]){"--n=9223372036854775807"}};
    cb_error_clear(&err);
    assert_int_equal(cb__options_parse(&wide, 1, &given, 1, argv, positionals, &npositionals, &err),
                     CB_OK);
    assert_int_equal(given.threads, INT64_MAX);
}

static void the_help_is_two_wrapped_columns(void **state)
{
    (void)state;
    cb__buf out = CB__BUF_INIT;
    cb__options_help(table, N, &out);
    assert_string_equal(
        cb__buf_text(&out),
        "  -q, --quiet        Prints the result only.\n"
        "  -d, --device NAME  Where to measure. Default: cpu.\n"
        "  --threads N        Workers.\n"
        "  --bytes SIZE       Size. Default: 1MiB.\n"
        "  --margin SHARE     Margin. Default: 2%.\n"
        "  --budget S         Seconds.\n"
        "  --cache MODE       Cache state. One of: cold, warm, both. Default: both.\n"
        "  -s, --shape SHAPE  A shape in the kernel's own order, or by name as in "
        "rows=11008,cols=4096, with\n"
        "                     KiB, MiB and GiB as suffixes. May be repeated.\n");
    cb__buf_fini(&out);
}

static void a_wide_name_has_a_line_of_its_own(void **state)
{
    (void)state;
    static const cb__option wide[] = {{"a", 0, CB__OPT_FLAG, 0, NULL, NULL, NULL, 0, 0, "Short."},
                                      {"a-name-that-is-much-too-long", 0, CB__OPT_TEXT, 0,
                                       "WITH-VALUE", NULL, NULL, 0, 0, "Long."}};
    cb__buf out = CB__BUF_INIT;
    cb__options_help(wide, 2, &out);
    assert_string_equal(cb__buf_text(&out), "  --a  Short.\n"
                                            "  --a-name-that-is-much-too-long WITH-VALUE\n"
                                            "       Long.\n");
    cb__buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_come_from_the_table),
        cmocka_unit_test(every_kind_is_read_in_both_spellings),
        cmocka_unit_test(positionals_and_options_mix),
        cmocka_unit_test(the_last_of_a_repeated_option_wins_and_lists_grow),
        cmocka_unit_test(values_may_look_like_options),
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(a_list_has_an_end),
        cmocka_unit_test(a_default_that_does_not_parse_is_found),
        cmocka_unit_test(limits_at_the_edge_of_the_type_are_kept),
        cmocka_unit_test(the_help_is_two_wrapped_columns),
        cmocka_unit_test(a_wide_name_has_a_line_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
