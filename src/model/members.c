#include "model/members.h"

#include <string.h>

#include "base/parse.h"

cb_status cb__model_need_text(const cb__json *object, const char *key, char *to, size_t size,
                              cb_error *err)
{
    const char *text;
    cb_status status = cb__json_need_text(object, key, &text, err);
    if (status != CB_OK)
        return status;
    size_t length = strlen(text);
    if (length >= size)
        return cb_error_set(err, CB_USAGE, "'%s' is %zu bytes long, at most %zu", key, length,
                            size - 1);
    /* What is shown on a terminal must not command it. */
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7F)
            return cb_error_set(err, CB_USAGE, "'%s' holds a control character", key);
    memcpy(to, text, length + 1);
    return CB_OK;
}

cb_status cb__model_need_word(const cb__json *object, const char *key, const char *const *words,
                              size_t nwords, char *to, size_t size, cb_error *err)
{
    cb_status status = cb__model_need_text(object, key, to, size, err);
    for (size_t i = 0; status == CB_OK && i < nwords; i++)
        if (strcmp(words[i], to) == 0)
            return CB_OK;
    return status == CB_OK ? cb__unknown(err, key, to, words, nwords) : status;
}

cb_status cb__model_need_int(const cb__json *object, const char *key, int min, int max, int *to,
                             cb_error *err)
{
    int64_t value = 0;
    cb_status status = cb__json_need_i64(object, key, min, max, &value, err);
    *to = (int)value;
    return status;
}

cb_status cb__model_need_bytes(const cb__json *object, const char *key, int64_t max, uint64_t *to,
                               cb_error *err)
{
    int64_t value = 0;
    cb_status status = cb__json_need_i64(object, key, 1, max, &value, err);
    *to = (uint64_t)value;
    return status;
}

cb_status cb__model_need_bool(const cb__json *object, const char *key, bool *to, cb_error *err)
{
    const cb__json *v = cb__json_get(object, key);
    *to = cb__json_truth(v, false);
    if (!v)
        return cb_error_set(err, CB_USAGE, "'%s' is missing", key);
    if (*to != cb__json_truth(v, true))
        return cb_error_set(err, CB_USAGE, "'%s' is neither true nor false", key);
    return CB_OK;
}

cb_status cb__model_need_verdict(const cb__json *object, cb_verdict *to, cb_error *err)
{
    const char *text;
    cb_status status = cb__json_need_text(object, "verdict", &text, err);
    if (status != CB_OK)
        return status;
    int verdict = cb__verdict_named(text);
    if (verdict < 0)
        return cb_error_set(err, CB_USAGE, "'verdict' is '%.60s', which is none", text);
    *to = (cb_verdict)verdict;
    return CB_OK;
}

cb_status cb__model_need_figure(const cb__json *object, const char *key, double min, double *to,
                                cb_error *err)
{
    cb_status status = cb__json_need_real(object, key, to, err);
    if (status == CB_OK && !(*to >= min && *to <= CB__FIGURE_MAX))
        status = cb_error_set(err, CB_USAGE, "'%s' is %g, must be %g to %g", key, *to, min,
                              CB__FIGURE_MAX);
    return status;
}

static cb_status read_interval(const cb__json *v, double min, cb__interval *to, cb_error *err)
{
    cb_status status = cb__model_need_figure(v, "lo", min, &to->lo, err);
    if (status == CB_OK)
        status = cb__model_need_figure(v, "mid", min, &to->mid, err);
    if (status == CB_OK)
        status = cb__model_need_figure(v, "hi", min, &to->hi, err);
    if (status == CB_OK)
        status = cb__json_need_real(v, "coverage", &to->coverage, err);
    if (status != CB_OK)
        return status;
    if (to->lo > to->mid || to->mid > to->hi)
        return cb_error_set(err, CB_USAGE, "lo %g, mid %g, hi %g are out of order", to->lo, to->mid,
                            to->hi);
    if (!(to->coverage >= 0 && to->coverage <= 1))
        return cb_error_set(err, CB_USAGE, "'coverage' is %g, must be 0 to 1", to->coverage);
    return CB_OK;
}

cb_status cb__model_need_interval(const cb__json *object, const char *key, double min,
                                  cb__interval *to, cb_error *err)
{
    const cb__json *v = cb__json_get(object, key);
    if (!cb__json_is_object(v))
        return cb_error_set(err, CB_USAGE, "'%s' is %s", key, v ? "not an interval" : "missing");
    cb_status status = read_interval(v, min, to, err);
    cb_error_prefix(err, "%s", key);
    return status;
}
