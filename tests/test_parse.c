#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/parse.h"
#include "comma_locale.h"

static void an_integer_is_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t value;
    } rows[] = {
        {"0", 0},
        {"-0", 0},
        {"7", 7},
        {"007", 7},
        {"-5", -5},
        {"11008", 11008},
        {"1KiB", 1024},
        {"24MiB", INT64_C(25165824)},
        {"3GiB", INT64_C(3221225472)},
        {"-2KiB", -2048},
        {"9223372036854775807", INT64_MAX},
        {"-9223372036854775808", INT64_MIN},
        {"9007199254740991KiB", INT64_MAX - 1023},
        {"-9007199254740992KiB", INT64_MIN},
        {"8589934591GiB", INT64_MAX - 1073741823},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t value = 99;
        cb_error err = CB_ERROR_INIT;
        assert_int_equal(cb__parse_i64(rows[i].text, "--n", INT64_MIN, INT64_MAX, &value, &err),
                         CB_OK);
        assert_int_equal(value, rows[i].value);
        assert_string_equal(err.message, "");
    }
}

static void what_is_no_integer_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",      " ",       " 5",      "5 ",    "+5",     "--5", "-",   "0x10",
        "1e3",   "1.0",     "1,0",     "5\n",   "5kib",   "5KB", "5K",  "5Kib",
        "5 KiB", "KiB",     "-KiB",    "5KiBx", "5KiB ",  "nan", "inf", "٣",
        "1_0",   "8193PiB", "1KiBKiB", "5%",    "99\x80", "0b1", "1u",  "1MiB0"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        int64_t value = 99;
        cb_error err = CB_ERROR_INIT;
        assert_int_equal(cb__parse_i64(texts[i], "--n", INT64_MIN, INT64_MAX, &value, &err),
                         CB_USAGE);
        assert_int_equal(value, 99);
        assert_non_null(strstr(err.message, "is not an integer"));
        assert_memory_equal(err.message, "--n: '", 6);
        assert_memory_equal(err.message + 6, texts[i], strlen(texts[i]));
    }
}

static void an_integer_out_of_range_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t min, max;
        const char *words;
    } rows[] = {
        {"9223372036854775808", INT64_MIN, INT64_MAX, "out of range"},
        {"-9223372036854775809", INT64_MIN, INT64_MAX, "out of range"},
        {"9007199254740992KiB", INT64_MIN, INT64_MAX, "out of range"},
        {"8589934592GiB", INT64_MIN, INT64_MAX, "out of range"},
        {"-8589934593GiB", INT64_MIN, INT64_MAX, "out of range"},
        {"18446744073709551616", INT64_MIN, INT64_MAX, "out of range"},
        {"18446744073709551617", 0, 10, "out of range"},
        {"99999999999999999999999999999999999999", 0, 10, "out of range"},
        {"0", 1, 64, "--threads: '0' is out of range, must be 1 to 64"},
        {"65", 1, 64, "--threads: '65' is out of range, must be 1 to 64"},
        {"1KiB", 1, 64, "--threads: '1KiB' is out of range, must be 1 to 64"},
        {"-1", 0, 64, "out of range"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t value = 99;
        cb_error err = CB_ERROR_INIT;
        assert_int_equal(
            cb__parse_i64(rows[i].text, "--threads", rows[i].min, rows[i].max, &value, &err),
            CB_USAGE);
        assert_int_equal(value, 99);
        assert_non_null(strstr(err.message, rows[i].words));
    }
}

static void a_long_text_does_not_crowd_out_the_rule(void **state)
{
    (void)state;
    char text[5000];
    memset(text, '9', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    int64_t value;
    double real;
    cb_error err = CB_ERROR_INIT;
    assert_int_equal(cb__parse_i64(text, "--n", 1, 64, &value, &err), CB_USAGE);
    assert_non_null(strstr(err.message, "must be 1 to 64"));
    cb_error_clear(&err);
    assert_int_equal(cb__parse_real(text, "--n", 1, 64, &real, &err), CB_USAGE);
    assert_non_null(strstr(err.message, "must be 1 to 64"));
}

static const struct {
    const char *text;
    double value;
} reals[] = {
    {"0", 0},       {"0.01", 0.01},  {"1e3", 1000},   {"1E-2", 0.01}, {"1%", 0.01},
    {"5%", 0.05},   {"35%", 0.35},   {"2.5%", 0.025}, {".5", 0.5},    {"5.", 5},
    {"-1.5", -1.5}, {"-2e+3%", -20}, {"1e-999", 0},   {"0.1", 0.1},   {"1000000.5", 1000000.5},
};

static void check_reals(void)
{
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++) {
        double value = 99;
        cb_error err = CB_ERROR_INIT;
        assert_int_equal(cb__parse_real(reals[i].text, "--margin", -DBL_MAX, DBL_MAX, &value, &err),
                         CB_OK);
        assert_true(value == reals[i].value);
    }
    double value = 99;
    cb_error err = CB_ERROR_INIT;
    assert_int_equal(cb__parse_real("0,5", "--margin", 0, 1, &value, &err), CB_USAGE);
}

static void a_real_is_read(void **state)
{
    (void)state;
    check_reals();
}

static void what_is_no_real_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"",      " 5",   "5 ",       "+5",    "0x10", "0x1p3",
                                        "nan",   "inf",  "-inf",     ".",     "-",    "%",
                                        "5%%",   "5 %",  "1e",       "1e+",   "e5",   "1,5",
                                        "1.2.3", "5MiB", "infinity", "1e5.0", "-.e1"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        double value = 99;
        cb_error err = CB_ERROR_INIT;
        assert_int_equal(cb__parse_real(texts[i], "--margin", -DBL_MAX, DBL_MAX, &value, &err),
                         CB_USAGE);
        assert_true(value == 99);
        assert_non_null(strstr(err.message, "is not a decimal number"));
    }
}

static void a_real_out_of_range_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double min, max;
    } rows[] = {{"1e999", -DBL_MAX, DBL_MAX},
                {"1e999", 0, (double)INFINITY},
                {"-1e999%", -DBL_MAX, DBL_MAX},
                {"0", 0.001, 1},
                {"101%", 0, 1},
                {"-0.1", 0, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double value = 99;
        cb_error err = CB_ERROR_INIT;
        assert_int_equal(
            cb__parse_real(rows[i].text, "--alpha", rows[i].min, rows[i].max, &value, &err),
            CB_USAGE);
        assert_true(value == 99);
        assert_non_null(strstr(err.message, "out of range, must be"));
    }
}

static void the_nearest_word_is_found(void **state)
{
    (void)state;
    static const char *const words[] = {"gemv_q4",   "stream_read", "alu_chain", "cold", "warm",
                                        "twin_read", "twin_write",  "shape",     "ABC"};
    static const struct {
        const char *word, *nearest;
    } rows[] = {
        {"gemv_q4", "gemv_q4"},  {"gmev_q4", "gemv_q4"}, /* a swap is one edit */
        {"gemvq4", "gemv_q4"},                           /* one missing */
        {"gemv__q4", "gemv_q4"},                         /* one too many */
        {"gemm_q8", "gemv_q4"},                          /* two of seven */
        {"gexx_q8", NULL},                               /* three of seven */
        {"shpae", "shape"},      {"shap", "shape"},
        {"clod", "cold"},        {"CA", NULL}, /* two edits of three with the swap edited again */
        {"alu", "alu_chain"},                  /* a proper prefix of one */
        {"twin_", NULL},                       /* of two */
        {"str", "stream_read"},  {"", NULL},
        {"zzzz", NULL},          {"Cold", "cold"},
        {"xhot", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *found = cb__nearest(rows[i].word, words, sizeof words / sizeof *words);
        if (rows[i].nearest) {
            assert_non_null(found);
            assert_string_equal(found, rows[i].nearest);
        } else {
            assert_null(found);
        }
    }
    assert_null(cb__nearest("cold", words, 0));
    /* "ca" to "abc" is 2 (swap, then insert between), 3 where a swapped pair is left alone. */
    assert_string_equal(cb__nearest("ca....", (const char *const[]){"abc...."}, 1), "abc....");
    /* Of two equally near the first. */
    assert_string_equal(cb__nearest("bold", (const char *const[]){"cold", "gold"}, 2), "cold");
}

static void a_very_long_word_has_no_nearest(void **state)
{
    (void)state;
    char longest[65], longer[66], one_off[65];
    memset(longest, 'a', 64);
    memset(longer, 'a', 65);
    longest[64] = longer[65] = '\0';
    memcpy(one_off, longest, sizeof one_off);
    one_off[63] = 'b';
    assert_ptr_equal(cb__nearest(one_off, (const char *const[]){longest}, 1), longest);
    assert_null(cb__nearest(longer, (const char *const[]){"a"}, 1));
}

static void an_unknown_word_names_the_valid_and_the_nearest(void **state)
{
    (void)state;
    static const char *const words[] = {"cold", "warm", "both"};
    cb_error err = CB_ERROR_INIT;
    assert_int_equal(cb__unknown(&err, "--cache", "clod", words, 3), CB_USAGE);
    assert_string_equal(err.message,
                        "unknown --cache 'clod'; valid: cold, warm, both; did you mean 'cold'?");
    cb_error_clear(&err);
    assert_int_equal(cb__unknown(&err, "--cache", "zzzzzz", words, 3), CB_USAGE);
    assert_string_equal(err.message, "unknown --cache 'zzzzzz'; valid: cold, warm, both");
}

static void a_long_list_does_not_crowd_out_the_nearest(void **state)
{
    (void)state;
    char text[200][24], word[3000];
    const char *words[200];
    for (int i = 0; i < 200; i++) {
        snprintf(text[i], sizeof text[i], "variant_%03d", i);
        words[i] = text[i];
    }
    cb_error err = CB_ERROR_INIT;
    cb__unknown(&err, "variant", "variatn_199", words, 200);
    assert_non_null(strstr(err.message, ", ...; did you mean 'variant_199'?"));
    cb_error_clear(&err);
    memset(word, 'w', sizeof word - 1);
    word[sizeof word - 1] = '\0';
    cb__unknown(&err, "variant", word, words, 3);
    assert_non_null(strstr(err.message, "; valid: variant_000, variant_001, variant_002"));
}

static void numbers_do_not_follow_the_locale(void **state)
{
    (void)state;
    if (!comma_locale_set())
        skip();
    check_reals();
    setlocale(LC_ALL, "C");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_integer_is_read),
        cmocka_unit_test(what_is_no_integer_is_refused),
        cmocka_unit_test(an_integer_out_of_range_is_refused),
        cmocka_unit_test(a_long_text_does_not_crowd_out_the_rule),
        cmocka_unit_test(a_real_is_read),
        cmocka_unit_test(what_is_no_real_is_refused),
        cmocka_unit_test(a_real_out_of_range_is_refused),
        cmocka_unit_test(the_nearest_word_is_found),
        cmocka_unit_test(a_very_long_word_has_no_nearest),
        cmocka_unit_test(an_unknown_word_names_the_valid_and_the_nearest),
        cmocka_unit_test(a_long_list_does_not_crowd_out_the_nearest),
        cmocka_unit_test(numbers_do_not_follow_the_locale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
