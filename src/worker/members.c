#include "worker/members.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void cb__answer_begin(cb__json_writer *w, cb__buf *line, const char *type)
{
    cb__json_begin(w, line, false);
    cb__json_object(w);
    cb__json_put_text(w, "type", type);
}

void cb__answer_end(cb__json_writer *w, cb__buf *line)
{
    cb__json_end(w);
    cb__buf_puts(line, "\n");
}

void cb__hex_write(cb__json_writer *w, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%016" PRIx64, value);
    cb__json_string(w, text);
}

bool cb__hex_read(const cb__json *v, uint64_t *value)
{
    const char *digits = cb__json_text(v, "");
    *value = strtoull(digits, NULL, 16);
    return strlen(digits) == 16 && strspn(digits, "0123456789abcdef") == 16;
}

cb_status cb__garbage(cb_error *err, const char *what)
{
    return cb_error_set(err, CB_GARBAGE, "the worker's answer is not one: %s", what);
}

int64_t cb__answer_int_of(const cb__json *v, const char *key, int64_t min, int64_t max,
                          cb_error *err)
{
    int64_t value = cb__json_i64(v, min);
    if (value == cb__json_i64(v, max) && value >= min && value <= max)
        return value;
    cb__garbage(err, key);
    return min;
}

int64_t cb__answer_int(const cb__json *json, const char *key, int64_t min, int64_t max,
                       cb_error *err)
{
    return cb__answer_int_of(cb__json_get(json, key), key, min, max, err);
}

bool cb__answer_is_null(const cb__json *v)
{
    return v && !cb__json_is_object(v) && !cb__json_is_array(v) && !cb__json_is_string(v) &&
           !cb__json_is_number(v) && cb__json_truth(v, true) && !cb__json_truth(v, false);
}

double cb__answer_real_of(const cb__json *v, const char *key, bool may_be_null, cb_error *err)
{
    double value = cb__json_real(v, (double)NAN);
    bool good = cb__answer_is_null(v) ? may_be_null : isfinite(value) && value >= 0;
    if (!good)
        cb__garbage(err, key);
    return value;
}

double cb__answer_real(const cb__json *json, const char *key, cb_error *err)
{
    return cb__answer_real_of(cb__json_get(json, key), key, true, err);
}

bool cb__answer_truth(const cb__json *json, const char *key, cb_error *err)
{
    const cb__json *v = cb__json_get(json, key);
    if (cb__json_truth(v, false) != cb__json_truth(v, true))
        cb__garbage(err, key);
    return cb__json_truth(v, false);
}

void cb__answer_text(const cb__json *json, const char *key, char *out, size_t size, cb_error *err)
{
    const cb__json *v = cb__json_get(json, key);
    if (!cb__json_is_string(v))
        cb__garbage(err, key);
    snprintf(out, size, "%s", cb__json_text(v, ""));
}
