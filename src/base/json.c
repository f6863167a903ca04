#include "base/json.h"

#include <float.h>
#include <inttypes.h>
#include <jansson.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- writing ---- */

void cb__json_begin(cb__json_writer *w, cb__buf *out, bool pretty)
{
    *w = (cb__json_writer){.out = out, .pretty = pretty};
}

static void new_line(cb__json_writer *w, int depth)
{
    if (w->pretty)
        cb__buf_printf(w->out, "\n%*s", 2 * depth, "");
}

static void next_item(cb__json_writer *w)
{
    if (w->some[w->depth])
        cb__buf_append(w->out, ",", 1);
    if (w->depth)
        new_line(w, w->depth);
    w->some[w->depth] = true;
}

/* Whether a value may stand here, with what must stand before it. */
static bool begin_value(cb__json_writer *w)
{
    const bool in_object = w->close[w->depth] == '}';
    if (in_object != w->after_key || (!w->depth && w->some[0]))
        w->out->failed = true;
    if (w->out->failed)
        return false;
    if (!w->after_key)
        next_item(w);
    w->after_key = false;
    return true;
}

static void open_container(cb__json_writer *w, const char *open, char close)
{
    if (w->depth + 1 == CB__JSON_DEPTH_MAX)
        w->out->failed = true;
    if (!begin_value(w))
        return;
    cb__buf_append(w->out, open, 1);
    w->depth++;
    w->some[w->depth] = false;
    w->close[w->depth] = close;
}

void cb__json_object(cb__json_writer *w)
{
    open_container(w, "{", '}');
}

void cb__json_array(cb__json_writer *w)
{
    open_container(w, "[", ']');
}

void cb__json_end(cb__json_writer *w)
{
    if (!w->depth || w->after_key)
        w->out->failed = true;
    if (w->out->failed)
        return;
    if (w->some[w->depth])
        new_line(w, w->depth - 1);
    cb__buf_append(w->out, &w->close[w->depth], 1);
    w->depth--;
}

static bool continues(unsigned char byte, unsigned char min, unsigned char max)
{
    return byte >= min && byte <= max;
}

/* Bytes of the well-formed UTF-8 character at s (Unicode 15, table 3-7), 0 where there is none. The
 * terminator of the text is no continuation byte, so nothing is read past it. */
static size_t character_bytes(const unsigned char *s)
{
    static const struct {
        unsigned char first, last, second_min, second_max, bytes;
    } table[] = {
        {0x01, 0x7F, 0, 0xFF, 1},    {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3},
        {0xE1, 0xEC, 0x80, 0xBF, 3}, {0xED, 0xED, 0x80, 0x9F, 3}, {0xEE, 0xEF, 0x80, 0xBF, 3},
        {0xF0, 0xF0, 0x90, 0xBF, 4}, {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (*s < table[i].first || *s > table[i].last)
            continue;
        if (!continues(s[1], table[i].second_min, table[i].second_max))
            return 0;
        for (size_t k = 2; k < table[i].bytes; k++)
            if (!continues(s[k], 0x80, 0xBF))
                return 0;
        return table[i].bytes;
    }
    return 0;
}

static void put_character(cb__buf *out, const unsigned char *s, size_t bytes)
{
    static const char escaped[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    const char *found = bytes == 1 ? strchr(escaped, *s) : NULL;
    if (found)
        cb__buf_printf(out, "\\%c", letters[found - escaped]);
    else if (*s < 0x20)
        cb__buf_printf(out, "\\u%04x", *s);
    else
        cb__buf_append(out, (const char *)s, bytes);
}

static void put_string(cb__buf *out, const char *text)
{
    cb__buf_append(out, "\"", 1);
    for (const unsigned char *s = (const unsigned char *)text; *s;) {
        size_t bytes = character_bytes(s);
        if (bytes)
            put_character(out, s, bytes);
        else
            cb__buf_puts(out, "\xEF\xBF\xBD");
        s += bytes ? bytes : 1;
    }
    cb__buf_append(out, "\"", 1);
}

void cb__json_key(cb__json_writer *w, const char *key)
{
    if (w->close[w->depth] != '}' || w->after_key)
        w->out->failed = true;
    if (w->out->failed)
        return;
    next_item(w);
    put_string(w->out, key);
    cb__buf_puts(w->out, w->pretty ? ": " : ":");
    w->after_key = true;
}

void cb__json_string(cb__json_writer *w, const char *text)
{
    if (!text)
        cb__json_null(w);
    else if (begin_value(w))
        put_string(w->out, text);
}

void cb__json_raw(cb__json_writer *w, const char *text)
{
    if (begin_value(w))
        cb__buf_puts(w->out, text);
}

void cb__json_int(cb__json_writer *w, int64_t value)
{
    if (begin_value(w))
        cb__buf_printf(w->out, "%" PRId64, value);
}

void cb__json_uint(cb__json_writer *w, uint64_t value)
{
    if (begin_value(w))
        cb__buf_printf(w->out, "%" PRIu64, value);
}

void cb__json_bool(cb__json_writer *w, bool value)
{
    cb__json_raw(w, value ? "true" : "false");
}

void cb__json_null(cb__json_writer *w)
{
    cb__json_raw(w, "null");
}

/* "1e+05" to "1e5", in place. */
static void shorten_exponent(char *text)
{
    char *to = strchr(text, 'e');
    if (!to)
        return;
    to++;
    const char *from = to;
    if (*from == '-')
        to++;
    from++;
    while (*from == '0')
        from++;
    memmove(to, from, strlen(from) + 1);
}

void cb__double_text(double value, char text[32])
{
    /* glibc and musl answer "C" with a constant: no allocation, no failure. */
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    locale_t callers = uselocale(c);
    if (fpclassify(value) == FP_ZERO) { /* "-0" would be read as the integer 0 */
        snprintf(text, 32, signbit(value) ? "-0.0" : "0");
    } else {
        /* Any decimal of up to DBL_DIG digits survives a normal double, and %g drops trailing
         * zeros, so DBL_DIG finds every shorter text too; subnormals hold fewer digits. */
        int digits = fpclassify(value) == FP_SUBNORMAL ? 1 : DBL_DIG;
        char longest[64] = {0};
        do
            snprintf(longest, sizeof longest, "%.*g", digits, value);
        while (digits++ < DBL_DECIMAL_DIG && strtod(longest, NULL) != value);
        memcpy(text, longest, 31); /* at most 24 bytes are in use */
        text[31] = '\0';
        shorten_exponent(text);
    }
    uselocale(callers);
    freelocale(c);
}

static void put_number(cb__buf *out, double value)
{
    char text[32] = "null";
    if (isfinite(value))
        cb__double_text(value, text);
    cb__buf_puts(out, text);
}

void cb__json_number(cb__json_writer *w, double value)
{
    if (begin_value(w))
        put_number(w->out, value);
}

static const char *separator(const cb__json_writer *w, size_t i)
{
    if (!i)
        return "";
    return w->pretty ? ", " : ",";
}

void cb__json_numbers(cb__json_writer *w, const double *values, size_t n)
{
    if (!begin_value(w))
        return;
    cb__buf_append(w->out, "[", 1);
    for (size_t i = 0; i < n; i++) {
        cb__buf_puts(w->out, separator(w, i));
        put_number(w->out, values[i]);
    }
    cb__buf_append(w->out, "]", 1);
}

void cb__json_ints(cb__json_writer *w, const int64_t *values, size_t n)
{
    if (!begin_value(w))
        return;
    cb__buf_append(w->out, "[", 1);
    for (size_t i = 0; i < n; i++)
        cb__buf_printf(w->out, "%s%" PRId64, separator(w, i), values[i]);
    cb__buf_append(w->out, "]", 1);
}

void cb__json_put_text(cb__json_writer *w, const char *key, const char *value)
{
    cb__json_key(w, key);
    cb__json_string(w, value);
}

void cb__json_put_int(cb__json_writer *w, const char *key, int64_t value)
{
    cb__json_key(w, key);
    cb__json_int(w, value);
}

void cb__json_put_bool(cb__json_writer *w, const char *key, bool value)
{
    cb__json_key(w, key);
    cb__json_bool(w, value);
}

void cb__json_put_real(cb__json_writer *w, const char *key, double value)
{
    cb__json_key(w, key);
    cb__json_number(w, value);
}

/* ---- reading ---- */

/* Objects and arrays only at the root, no \u0000 inside strings: those are jansson's defaults, and
 * they make every text of the tree an ordinary C string. */
cb_status cb__json_parse(const char *text, size_t size, const char *what, cb__json **root,
                         cb_error *err)
{
    json_error_t error;
    /* jansson puts one byte of the locale's decimal point where the text has '.'. */
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    locale_t callers = uselocale(c);
    *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
    uselocale(callers);
    freelocale(c);
    if (*root)
        return CB_OK;
    if (!error.text[0]) /* how jansson says that it had no memory */
        return cb_error_set(err, CB_NO_MEMORY, "%s: no memory for %zu bytes of JSON", what, size);
    return cb_error_set(err, CB_USAGE, "%s: %d:%d: %s", what, error.line, error.column, error.text);
}

void cb__json_free(cb__json *root)
{
    json_decref(root);
}

bool cb__json_is_object(const cb__json *v)
{
    return json_is_object(v);
}

bool cb__json_is_array(const cb__json *v)
{
    return json_is_array(v);
}

bool cb__json_is_string(const cb__json *v)
{
    return json_is_string(v);
}

bool cb__json_is_number(const cb__json *v)
{
    return json_is_number(v);
}

const cb__json *cb__json_get(const cb__json *object, const char *key)
{
    return json_object_get(object, key);
}

size_t cb__json_size(const cb__json *array)
{
    return json_array_size(array);
}

const cb__json *cb__json_at(const cb__json *array, size_t i)
{
    return json_array_get(array, i);
}

const char *cb__json_text(const cb__json *v, const char *otherwise)
{
    return json_is_string(v) ? json_string_value(v) : otherwise;
}

double cb__json_real(const cb__json *v, double otherwise)
{
    return json_is_number(v) ? json_number_value(v) : otherwise;
}

int64_t cb__json_i64(const cb__json *v, int64_t otherwise)
{
    return json_is_integer(v) ? json_integer_value(v) : otherwise;
}

bool cb__json_truth(const cb__json *v, bool otherwise)
{
    return json_is_boolean(v) ? json_is_true(v) : otherwise;
}

static cb_status need(const cb__json *object, const char *key, const cb__json **value,
                      cb_error *err)
{
    *value = cb__json_get(object, key);
    if (!*value)
        return cb_error_set(err, CB_USAGE, "'%s' is missing", key);
    return CB_OK;
}

cb_status cb__json_need_i64(const cb__json *object, const char *key, int64_t min, int64_t max,
                            int64_t *value, cb_error *err)
{
    const cb__json *v;
    cb_status status = need(object, key, &v, err);
    if (status != CB_OK)
        return status;
    if (!json_is_integer(v))
        return cb_error_set(err, CB_USAGE, "'%s' is not an integer", key);
    int64_t given = json_integer_value(v);
    if (given < min || given > max)
        return cb_error_set(err, CB_USAGE, "'%s' is %" PRId64 ", must be %" PRId64 " to %" PRId64,
                            key, given, min, max);
    *value = given;
    return CB_OK;
}

cb_status cb__json_need_real(const cb__json *object, const char *key, double *value, cb_error *err)
{
    const cb__json *v;
    cb_status status = need(object, key, &v, err);
    if (status != CB_OK)
        return status;
    if (!json_is_number(v))
        return cb_error_set(err, CB_USAGE, "'%s' is not a number", key);
    *value = json_number_value(v);
    return CB_OK;
}

cb_status cb__json_need_text(const cb__json *object, const char *key, const char **value,
                             cb_error *err)
{
    const cb__json *v;
    cb_status status = need(object, key, &v, err);
    if (status != CB_OK)
        return status;
    if (!json_is_string(v))
        return cb_error_set(err, CB_USAGE, "'%s' is not a text", key);
    *value = json_string_value(v);
    return CB_OK;
}

bool cb__json_next(const cb__json *object, void **iter, const char **key, const cb__json **value)
{
    /* jansson's iterators want a mutable object; they change nothing. */
    cb__json *o = (cb__json *)(uintptr_t)object;
    *iter = *iter ? json_object_iter_next(o, *iter) : json_object_iter(o);
    if (!*iter)
        return false;
    *key = json_object_iter_key(*iter);
    *value = json_object_iter_value(*iter);
    return true;
}
