/* The writer is checked by reading what it wrote with jansson, the reader by texts of every kind.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <float.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "coldbench/random.h"
#include "comma_locale.h"

static cb__buf out;
static cb__json_writer w;

static int begin(void **state)
{
    (void)state;
    out = (cb__buf)CB__BUF_INIT;
    cb__json_begin(&w, &out, false);
    return 0;
}

static int end(void **state)
{
    (void)state;
    cb__buf_fini(&out);
    return 0;
}

static void write_sample(void)
{
    static const double numbers[] = {1, 0.5, (double)NAN, 1e300};
    static const int64_t ints[] = {1, INT64_MIN};
    cb__json_object(&w);
    cb__json_key(&w, "name");
    cb__json_string(&w, "gemv");
    cb__json_key(&w, "none");
    cb__json_string(&w, NULL);
    cb__json_key(&w, "empty");
    cb__json_object(&w);
    cb__json_end(&w);
    cb__json_key(&w, "list");
    cb__json_array(&w);
    cb__json_int(&w, INT64_MIN);
    cb__json_uint(&w, UINT64_MAX);
    cb__json_bool(&w, true);
    cb__json_null(&w);
    cb__json_array(&w);
    cb__json_end(&w);
    cb__json_end(&w);
    cb__json_key(&w, "samples_ns");
    cb__json_numbers(&w, numbers, 4);
    cb__json_key(&w, "order");
    cb__json_ints(&w, ints, 2);
    cb__json_key(&w, "raw");
    cb__json_raw(&w, "{\"a\":1}");
    cb__json_key(&w, "none_yet");
    cb__json_numbers(&w, NULL, 0);
    cb__json_end(&w);
}

static void one_line(void **state)
{
    (void)state;
    write_sample();
    assert_string_equal(
        cb__buf_text(&out),
        "{\"name\":\"gemv\",\"none\":null,\"empty\":{},\"list\":[-9223372036854775808,"
        "18446744073709551615,true,null,[]],\"samples_ns\":[1,0.5,null,1e300],"
        "\"order\":[1,-9223372036854775808],\"raw\":{\"a\":1},\"none_yet\":[]}");
}

static void pretty(void **state)
{
    (void)state;
    w.pretty = true;
    write_sample();
    assert_string_equal(cb__buf_text(&out), "{\n"
                                            "  \"name\": \"gemv\",\n"
                                            "  \"none\": null,\n"
                                            "  \"empty\": {},\n"
                                            "  \"list\": [\n"
                                            "    -9223372036854775808,\n"
                                            "    18446744073709551615,\n"
                                            "    true,\n"
                                            "    null,\n"
                                            "    []\n"
                                            "  ],\n"
                                            "  \"samples_ns\": [1, 0.5, null, 1e300],\n"
                                            "  \"order\": [1, -9223372036854775808],\n"
                                            "  \"raw\": {\"a\":1},\n"
                                            "  \"none_yet\": []\n"
                                            "}");
}

static const struct {
    double value;
    const char *text;
} doubles[] = {
    {0.0, "0"},
    {-0.0, "-0.0"},
    {1.0, "1"},
    {7.6, "7.6"},
    {0.1, "0.1"},
    {-1.5, "-1.5"},
    {1.0 / 3, "0.3333333333333333"},
    {2.0 / 3, "0.6666666666666666"},
    {0.1 + 0.2, "0.30000000000000004"},
    {100000, "100000"},
    {123456789012345, "123456789012345"},
    {1e15, "1e15"},
    {1e22, "1e22"},
    {1e-5, "1e-5"},
    {1.5e-7, "1.5e-7"},
    {9007199254740993.0, "9007199254740992"},
    {DBL_MAX, "1.7976931348623157e308"},
    {DBL_MIN, "2.2250738585072014e-308"},
    {5e-324, "5e-324"},
    {-1.5e-323, "-1.5e-323"},
    {5e-310, "5e-310"},
};

static void check_doubles(void)
{
    for (size_t i = 0; i < sizeof doubles / sizeof *doubles; i++) {
        char text[32];
        cb__double_text(doubles[i].value, text);
        assert_string_equal(text, doubles[i].text);
    }
}

static void doubles_have_their_shortest_text(void **state)
{
    (void)state;
    check_doubles();
}

static double any_double(uint64_t i)
{
    uint64_t bits = cb_random(11, 0, 0, i);
    double value;
    memcpy(&value, &bits, sizeof value);
    if (i % 3 == 1)
        value = (double)(int64_t)(bits >> 40) / 1000; /* what samples look like */
    if (i % 16 == 2)
        value = (double)(bits >> 12) * 5e-324;
    return isfinite(value) ? value : 1;
}

/* No shorter %.*g reads back equal, and jansson reads the same number. */
static void random_doubles_read_back_equal_and_no_shorter_text_does(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 20000; i++) {
        double value = any_double(i);
        char text[32], other[320], array[48];
        cb__double_text(value, text);
        assert_true(strtod(text, NULL) == value);
        int digits = 0;
        for (const char *c = text; *c && *c != 'e'; c++)
            digits += *c >= '0' && *c <= '9' && (digits || *c != '0');
        while (digits > 1 && strlen(text) < 16 && !strpbrk(text, ".e") && value != 0)
            digits--; /* a whole number: nothing to be said of its zeros */
        for (int fewer = 1; fewer < digits; fewer++) {
            snprintf(other, sizeof other, "%.*g", fewer, value);
            assert_false(strtod(other, NULL) == value);
        }
        snprintf(array, sizeof array, "[%s]", text);
        cb__json *root;
        assert_int_equal(cb__json_parse(array, strlen(array), "double", &root, NULL), CB_OK);
        assert_true(cb__json_real(cb__json_at(root, 0), 99) == value);
        cb__json_free(root);
    }
}

static void what_is_no_number_is_null(void **state)
{
    (void)state;
    const double values[] = {(double)NAN, (double)INFINITY, -(double)INFINITY};
    cb__json_array(&w);
    for (int i = 0; i < 3; i++)
        cb__json_number(&w, values[i]);
    cb__json_numbers(&w, values, 3);
    cb__json_end(&w);
    assert_string_equal(cb__buf_text(&out), "[null,null,null,[null,null,null]]");
}

#define BAD "\xEF\xBF\xBD"

static void strings_are_escaped_and_repaired(void **state)
{
    (void)state;
    static const struct {
        const char *text, *written;
    } rows[] = {
        {"", ""},
        {"a/b", "a/b"},
        {"\"\\", "\\\"\\\\"},
        {"\b\f\n\r\t", "\\b\\f\\n\\r\\t"},
        {"\x01\x1f\x7f", "\\u0001\\u001f\x7f"},
        {"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80", "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"},
        {"\xF4\x8F\xBF\xBF\xEF\xBF\xBF\xED\x9F\xBF", "\xF4\x8F\xBF\xBF\xEF\xBF\xBF\xED\x9F\xBF"},
        {"\xE9t\xE9", BAD "t" BAD},            /* Latin-1 */
        {"\x80\xBF", BAD BAD},                 /* continuations alone */
        {"\xC3", BAD},                         /* cut */
        {"\xE2\x82", BAD BAD},                 /* cut */
        {"\xF0\x9F\x98", BAD BAD BAD},         /* cut */
        {"\xF0\x9F\x98x", BAD BAD BAD "x"},    /* cut, then text */
        {"\xC0\xAF", BAD BAD},                 /* overlong */
        {"\xC1\x81", BAD BAD},                 /* overlong */
        {"\xE0\x9F\xBF", BAD BAD BAD},         /* overlong */
        {"\xF0\x8F\xBF\xBF", BAD BAD BAD BAD}, /* overlong */
        {"\xED\xA0\x80", BAD BAD BAD},         /* surrogate */
        {"\xF4\x90\x80\x80", BAD BAD BAD BAD}, /* past U+10FFFF */
        {"\xF5\x80\x80\x80\xFF", BAD BAD BAD BAD BAD},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char expected[100];
        cb__buf_clear(&out);
        cb__json_begin(&w, &out, false);
        cb__json_object(&w);
        cb__json_key(&w, rows[i].text);
        cb__json_string(&w, rows[i].text);
        cb__json_end(&w);
        snprintf(expected, sizeof expected, "{\"%s\":\"%s\"}", rows[i].written, rows[i].written);
        assert_string_equal(cb__buf_text(&out), expected);
        json_t *read = json_loads(cb__buf_text(&out), JSON_REJECT_DUPLICATES, NULL);
        assert_non_null(read);
        json_decref(read);
    }
}

static void misuse_fails_the_buffer(void **state)
{
    (void)state;
    /* o object, a array, e end, k key, v value */
    static const char *const calls[] = {"vv", "oeoe", "ov",   "oke", "okk",  "k",  "ak",
                                        "e",  "oee",  "avee", "oa",  "okvv", "ooe"};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        cb__buf_clear(&out);
        cb__json_begin(&w, &out, i % 2);
        for (const char *c = calls[i]; *c; c++) {
            if (*c == 'o')
                cb__json_object(&w);
            if (*c == 'a')
                cb__json_array(&w);
            if (*c == 'e')
                cb__json_end(&w);
            if (*c == 'k')
                cb__json_key(&w, "k");
            if (*c == 'v')
                cb__json_int(&w, 1);
        }
        if (!out.failed)
            fail_msg("%s gave %s", calls[i], cb__buf_text(&out));
    }
}

static void depth_has_a_limit(void **state)
{
    (void)state;
    for (int i = 0; i < CB__JSON_DEPTH_MAX - 1; i++)
        cb__json_array(&w);
    assert_false(out.failed);
    cb__json_array(&w);
    assert_true(out.failed);
}

/* ---- random trees: the same calls build text and a jansson tree ---- */

static uint64_t seed, step;

static uint64_t pick(uint64_t n)
{
    return cb_random(seed, 1, 2, step++) % n;
}

static json_t *random_value(int depth, bool root);

static void random_text(char text[24])
{
    static const char *const pieces[] = {"a",    "\"",       "\\", "\n",
                                         "\x01", "\xC3\xA9", "/",  "\xE2\x82\xAC"};
    text[0] = '\0';
    for (uint64_t n = pick(6); n > 0; n--)
        strcat(text, pieces[pick(8)]);
}

static json_t *random_container(int depth, bool object)
{
    json_t *tree = object ? json_object() : json_array();
    if (object)
        cb__json_object(&w);
    else
        cb__json_array(&w);
    uint64_t n = pick(6);
    for (uint64_t i = 0; i < n; i++) {
        if (!object) {
            json_array_append_new(tree, random_value(depth + 1, false));
            continue;
        }
        char key[48], text[24];
        random_text(text);
        snprintf(key, sizeof key, "%d%s", (int)i, text);
        cb__json_key(&w, key);
        json_object_set_new(tree, key, random_value(depth + 1, false));
    }
    cb__json_end(&w);
    return tree;
}

static json_t *random_value(int depth, bool root)
{
    char text[24];
    double number = any_double(pick(100000)) + 0.1;
    int64_t integer = (int64_t)cb_random(seed, 3, 3, step++);
    uint64_t kind = root || pick(3) == 0 ? 6 + pick(2) : pick(6);
    if (depth > 20)
        kind = pick(6);
    switch (kind) {
    case 0:
        cb__json_null(&w);
        return json_null();
    case 1:
        cb__json_bool(&w, integer & 1);
        return json_boolean(integer & 1);
    case 2:
        cb__json_int(&w, integer);
        return json_integer(integer);
    case 3:
        cb__json_uint(&w, (uint64_t)integer >> 1);
        return json_integer((int64_t)((uint64_t)integer >> 1));
    case 4:
        cb__json_number(&w, number);
        return json_real(number);
    case 5:
        random_text(text);
        cb__json_string(&w, text);
        return json_string(text);
    default:
        return random_container(depth, kind == 6);
    }
}

/* json_equal, but a whole double may come back as an integer. */
static bool same(const json_t *a, const json_t *b)
{
    if (json_is_number(a) && json_is_number(b))
        return json_is_integer(a) ? json_equal(a, b) : json_number_value(a) == json_number_value(b);
    if (json_is_array(a) && json_is_array(b) && json_array_size(a) == json_array_size(b)) {
        for (size_t i = 0; i < json_array_size(a); i++)
            if (!same(json_array_get(a, i), json_array_get(b, i)))
                return false;
        return true;
    }
    if (json_is_object(a) && json_is_object(b) && json_object_size(a) == json_object_size(b)) {
        const char *key;
        json_t *value;
        json_object_foreach((json_t *)(uintptr_t)a, key,
                            value) if (!same(value, json_object_get(b, key))) return false;
        return true;
    }
    return json_equal(a, b);
}

static void check_random_trees(int trees)
{
    for (seed = 0; seed < (uint64_t)trees; seed++) {
        json_error_t error;
        step = 0;
        cb__buf_clear(&out);
        cb__json_begin(&w, &out, seed % 2);
        json_t *tree = random_value(0, true);
        assert_false(out.failed);
        json_t *read = json_loadb(out.text, out.size, JSON_REJECT_DUPLICATES, &error);
        if (!read)
            fail_msg("%s in %s", error.text, cb__buf_text(&out));
        if (!same(tree, read))
            fail_msg("not what was written: %s", cb__buf_text(&out));
        json_decref(read);
        json_decref(tree);
    }
}

static void random_trees_read_back_equal(void **state)
{
    (void)state;
    check_random_trees(3000);
}

/* Whatever the calls, text that is closed and has not failed is JSON. */
static void random_calls_never_give_invalid_json(void **state)
{
    (void)state;
    int valid = 0;
    for (seed = 0; seed < 20000; seed++) {
        step = 0;
        cb__buf_clear(&out);
        cb__json_begin(&w, &out, seed % 2);
        for (uint64_t n = 1 + pick(8), key = 0; n > 0; n--)
            switch (pick(6)) {
            case 0:
                cb__json_object(&w);
                break;
            case 1:
                cb__json_array(&w);
                break;
            case 2:
                cb__json_end(&w);
                break;
            case 3:
                cb__json_number(&w, any_double(step));
                break;
            default:
                cb__json_key(&w,
                             (const char *const[]){"a", "b", "c", "d", "e", "f", "g", "h"}[key++]);
            }
        if (out.failed || w.depth || w.after_key)
            continue;
        json_t *read =
            json_loadb(out.text, out.size, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, NULL);
        if (!read)
            fail_msg("invalid: '%s'", cb__buf_text(&out));
        json_decref(read);
        valid++;
    }
    assert_true(valid > 500);
}

static void nothing_follows_the_locale(void **state)
{
    (void)state;
    assert_true(uselocale((locale_t)0) == LC_GLOBAL_LOCALE); /* no test so far left another */
    if (!comma_locale_set())
        skip();
    check_doubles();
    check_random_trees(200);
    static const char text[] = "[0.5,1e-3]";
    cb__json *root;
    assert_int_equal(cb__json_parse(text, strlen(text), "t", &root, NULL), CB_OK);
    assert_true(cb__json_real(cb__json_at(root, 0), 9) == 0.5);
    cb__json_free(root);
    assert_int_equal(*localeconv()->decimal_point, ','); /* the caller's locale is back */
    setlocale(LC_ALL, "C");
}

/* ---- reading ---- */

static void what_is_not_json_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t size; /* 0: strlen */
        const char *words;
    } rows[] = {
        {"", 0, "line: 1:0: "},
        {"{", 0, "line: 1:1: "},
        {"{\"a\":1}\n{\"b\":2}", 0, "line: 2:1: end of file expected"},
        {"{\"a\":1} x", 0, "end of file expected"},
        {"{\"a\":1,\"a\":2}", 0, "duplicate object key"},
        {"{\n\"a\": tru\n}", 0, "line: 2:8: "},
        {"5", 0, "'[' or '{' expected"},
        {"\"text\"", 0, "'[' or '{' expected"},
        {"null", 0, "'[' or '{' expected"},
        {"[1,]", 0, "unexpected token"},
        {"[01]", 0, "line: 1:"},
        {"[+1]", 0, "line: 1:"},
        {"[.5]", 0, "line: 1:"},
        {"[NaN]", 0, "line: 1:"},
        {"[1e999]", 0, "real number overflow"},
        {"[9223372036854775808]", 0, "too big integer"},
        {"[\"\\u0000\"]", 0, "\\u0000"},
        {"{\"a\\u0000b\":1}", 0, "\\u0000"},
        {"[\"a\0b\"]", 7, "line: 1:"},
        {"[1]\0", 4, "line: 1:"},
        {"[\"\xFF\"]", 0, "line: 1:"},
        {"[\"\xED\xA0\x80\"]", 0, "line: 1:"},
        {"[\"\\ud800\"]", 0, "line: 1:"},
        {"[\"a\nb\"]", 0, "line: 1:"},
        {"\xEF\xBB\xBF[]", 0, "line: 1:"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cb_error err = CB_ERROR_INIT;
        cb__json *root = (cb__json *)&err;
        size_t size = rows[i].size ? rows[i].size : strlen(rows[i].text);
        assert_int_equal(cb__json_parse(rows[i].text, size, "line", &root, &err), CB_USAGE);
        assert_null(root);
        if (!strstr(err.message, rows[i].words))
            fail_msg("row %d: '%s' lacks '%s'", (int)i, err.message, rows[i].words);
    }
}

static void nesting_has_a_limit(void **state)
{
    (void)state;
    enum { DEPTH = 1000000 };
    char *text = malloc(DEPTH);
    memset(text, '[', DEPTH);
    cb__json *root;
    cb_error err = CB_ERROR_INIT;
    assert_int_equal(cb__json_parse(text, DEPTH, "deep", &root, &err), CB_USAGE);
    assert_non_null(strstr(err.message, "depth"));
    free(text);
}

static cb__json *read(const char *text)
{
    cb__json *root;
    cb_error err = CB_ERROR_INIT;
    if (cb__json_parse(text, strlen(text), "test", &root, &err) != CB_OK)
        fail_msg("%s", err.message);
    return root;
}

static void values_are_found(void **state)
{
    (void)state;
    cb__json *root = read("{\"t\":\"x\",\"i\":-7,\"r\":2.5,\"w\":5.0,\"b\":true,\"n\":null,"
                          "\"l\":[1,[2],{}]}");
    const cb__json *list = cb__json_get(root, "l");
    assert_true(cb__json_is_object(root) && cb__json_is_array(list));
    assert_true(cb__json_is_string(cb__json_get(root, "t")));
    assert_true(cb__json_is_number(cb__json_get(root, "r")));
    assert_false(cb__json_is_number(cb__json_get(root, "t")));
    assert_string_equal(cb__json_text(cb__json_get(root, "t"), "no"), "x");
    assert_string_equal(cb__json_text(cb__json_get(root, "i"), "no"), "no");
    assert_int_equal(cb__json_i64(cb__json_get(root, "i"), 9), -7);
    assert_int_equal(cb__json_i64(cb__json_get(root, "w"), 9), 9);
    assert_true(cb__json_real(cb__json_get(root, "i"), 9) == -7);
    assert_true(cb__json_real(cb__json_get(root, "n"), 9) == 9);
    assert_true(cb__json_truth(cb__json_get(root, "b"), false));
    assert_true(cb__json_truth(cb__json_get(root, "n"), true));
    assert_int_equal(cb__json_size(list), 3);
    assert_int_equal(cb__json_i64(cb__json_at(list, 0), 9), 1);
    assert_null(cb__json_at(list, 3));
    assert_null(cb__json_at(root, 0));
    assert_null(cb__json_get(list, "t"));
    assert_null(cb__json_get(root, "absent"));
    assert_int_equal(cb__json_size(root), 0);
    cb__json_free(root);
}

static void every_reader_takes_null(void **state)
{
    (void)state;
    cb__json_free(NULL);
    assert_false(cb__json_is_object(NULL) || cb__json_is_array(NULL) || cb__json_is_string(NULL) ||
                 cb__json_is_number(NULL));
    assert_null(cb__json_get(NULL, "a"));
    assert_null(cb__json_at(NULL, 0));
    assert_int_equal(cb__json_size(NULL), 0);
    assert_null(cb__json_text(NULL, NULL));
    assert_int_equal(cb__json_i64(NULL, 3), 3);
    assert_true(cb__json_real(NULL, 3) == 3);
    assert_true(cb__json_truth(NULL, true));
    void *iter = NULL;
    const char *key;
    const cb__json *value;
    assert_false(cb__json_next(NULL, &iter, &key, &value));
}

static void required_members_are_named(void **state)
{
    (void)state;
    cb__json *root = read("{\"i\":5,\"r\":0.5,\"t\":\"x\"}");
    int64_t i = 0;
    double r = 0;
    const char *t = NULL;
    cb_error err = CB_ERROR_INIT;
    assert_int_equal(cb__json_need_i64(root, "i", 1, 5, &i, &err), CB_OK);
    assert_int_equal(cb__json_need_real(root, "r", &r, &err), CB_OK);
    assert_int_equal(cb__json_need_text(root, "t", &t, &err), CB_OK);
    assert_int_equal(i, 5);
    assert_true(r == 0.5);
    assert_string_equal(t, "x");
    assert_int_equal(cb__json_need_real(root, "i", &r, &err), CB_OK);
    assert_true(r == 5);
#define REFUSED(call, words)                                                                       \
    do {                                                                                           \
        assert_int_equal(call, CB_USAGE);                                                          \
        assert_string_equal(err.message, words);                                                   \
        cb_error_clear(&err);                                                                      \
    } while (0)
    REFUSED(cb__json_need_i64(root, "x", 0, 9, &i, &err), "'x' is missing");
    REFUSED(cb__json_need_i64(root, "r", 0, 9, &i, &err), "'r' is not an integer");
    REFUSED(cb__json_need_i64(root, "i", 6, 9, &i, &err), "'i' is 5, must be 6 to 9");
    REFUSED(cb__json_need_i64(root, "i", 0, 4, &i, &err), "'i' is 5, must be 0 to 4");
    REFUSED(cb__json_need_real(root, "x", &r, &err), "'x' is missing");
    REFUSED(cb__json_need_real(root, "t", &r, &err), "'t' is not a number");
    REFUSED(cb__json_need_text(root, "x", &t, &err), "'x' is missing");
    REFUSED(cb__json_need_text(root, "i", &t, &err), "'i' is not a text");
    REFUSED(cb__json_need_text(NULL, "i", &t, &err), "'i' is missing");
    cb__json_free(root);
}

static void members_come_in_order(void **state)
{
    (void)state;
    cb__json *root = read("{\"z\":0,\"a\":1,\"m\":2}");
    void *iter = NULL;
    const char *key;
    const cb__json *value;
    int n = 0;
    while (cb__json_next(root, &iter, &key, &value)) {
        assert_int_equal(*key, "zam"[n]);
        assert_int_equal(cb__json_i64(value, 9), n++);
    }
    assert_int_equal(n, 3);
    cb__json_free(root);
}

static int allocations_left;

static void *limited_malloc(size_t size)
{
    return allocations_left-- > 0 ? malloc(size) : NULL;
}

/* jansson takes a token that it could not store for a wrong one, so some of these are CB_USAGE. */
static void without_memory_parsing_fails_cleanly(void **state)
{
    (void)state;
    static const char text[] = "{\"a\":[1,2.5,\"text\",{\"b\":null}]}";
    cb_status status = CB_NO_MEMORY;
    int no_memory = 0;
    json_set_alloc_funcs(limited_malloc, free);
    for (int n = 0; n < 100 && status != CB_OK; n++) {
        cb__json *root;
        cb_error err = CB_ERROR_INIT;
        allocations_left = n;
        status = cb__json_parse(text, strlen(text), "line", &root, &err);
        if (status == CB_OK)
            cb__json_free(root);
        else
            no_memory += status == CB_NO_MEMORY;
    }
    json_set_alloc_funcs(malloc, free);
    assert_int_equal(status, CB_OK);
    assert_true(no_memory >= 10);
}

#define WRITES(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WRITES(one_line),
        WRITES(pretty),
        cmocka_unit_test(doubles_have_their_shortest_text),
        cmocka_unit_test(random_doubles_read_back_equal_and_no_shorter_text_does),
        WRITES(what_is_no_number_is_null),
        WRITES(strings_are_escaped_and_repaired),
        WRITES(misuse_fails_the_buffer),
        WRITES(depth_has_a_limit),
        WRITES(random_trees_read_back_equal),
        WRITES(random_calls_never_give_invalid_json),
        WRITES(nothing_follows_the_locale),
        cmocka_unit_test(what_is_not_json_is_refused),
        cmocka_unit_test(nesting_has_a_limit),
        cmocka_unit_test(values_are_found),
        cmocka_unit_test(every_reader_takes_null),
        cmocka_unit_test(required_members_are_named),
        cmocka_unit_test(members_come_in_order),
        cmocka_unit_test(without_memory_parsing_fails_cleanly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
