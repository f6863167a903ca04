/* Any bytes: either they are refused with a message, or the tree is written, read again and found
 * equal. And the same bytes as a string: whatever they are, JSON comes out. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static bool is_integer(const cb__json *v)
{
    return cb__json_i64(v, 0) == cb__json_i64(v, 1);
}

static void write_value(cb__json_writer *w, const cb__json *v)
{
    if (cb__json_is_object(v)) {
        void *iter = NULL;
        const char *key;
        const cb__json *member;
        cb__json_object(w);
        while (cb__json_next(v, &iter, &key, &member)) {
            cb__json_key(w, key);
            write_value(w, member);
        }
        cb__json_end(w);
    } else if (cb__json_is_array(v)) {
        cb__json_array(w);
        for (size_t i = 0; i < cb__json_size(v); i++)
            write_value(w, cb__json_at(v, i));
        cb__json_end(w);
    } else if (cb__json_is_string(v)) {
        cb__json_string(w, cb__json_text(v, NULL));
    } else if (is_integer(v)) {
        cb__json_int(w, cb__json_i64(v, 0));
    } else if (cb__json_is_number(v)) {
        cb__json_number(w, cb__json_real(v, 0));
    } else if (cb__json_truth(v, true) == cb__json_truth(v, false)) {
        cb__json_bool(w, cb__json_truth(v, true));
    } else {
        cb__json_null(w);
    }
}

static bool equal(const cb__json *a, const cb__json *b)
{
    if (cb__json_is_object(a)) {
        void *ia = NULL, *ib = NULL;
        const char *ka, *kb;
        const cb__json *va, *vb;
        while (cb__json_next(a, &ia, &ka, &va))
            if (!cb__json_next(b, &ib, &kb, &vb) || strcmp(ka, kb) || !equal(va, vb))
                return false;
        return cb__json_is_object(b) && !cb__json_next(b, &ib, &kb, &vb);
    }
    if (cb__json_is_array(a)) {
        if (!cb__json_is_array(b) || cb__json_size(a) != cb__json_size(b))
            return false;
        for (size_t i = 0; i < cb__json_size(a); i++)
            if (!equal(cb__json_at(a, i), cb__json_at(b, i)))
                return false;
        return true;
    }
    if (cb__json_is_string(a))
        return cb__json_is_string(b) && !strcmp(cb__json_text(a, ""), cb__json_text(b, ""));
    if (is_integer(a))
        return is_integer(b) && cb__json_i64(a, 0) == cb__json_i64(b, 1);
    if (cb__json_is_number(a)) /* a whole double may come back as an integer */
        return cb__json_is_number(b) && cb__json_real(a, 0) == cb__json_real(b, 1);
    return !cb__json_is_object(b) && !cb__json_is_array(b) && !cb__json_is_string(b) &&
           !cb__json_is_number(b) && cb__json_truth(a, true) == cb__json_truth(b, true) &&
           cb__json_truth(a, false) == cb__json_truth(b, false);
}

static void round_trip(const cb__json *root, bool pretty)
{
    cb__buf out = CB__BUF_INIT;
    cb__json_writer w;
    cb__json *again = NULL;
    cb__json_begin(&w, &out, pretty);
    write_value(&w, root);
    if (!out.failed) { /* deeper than the writer goes */
        require(cb__json_parse(out.text, out.size, "again", &again, NULL) == CB_OK);
        require(equal(root, again));
    }
    cb__json_free(again);
    cb__buf_fini(&out);
}

static void as_string(const uint8_t *data, size_t size)
{
    cb__buf out = CB__BUF_INIT;
    cb__json_writer w;
    cb__json *root = NULL;
    char *text = calloc(size + 1, 1);
    require(text);
    if (size)
        memcpy(text, data, size);
    cb__json_begin(&w, &out, false);
    cb__json_object(&w);
    cb__json_key(&w, text);
    cb__json_string(&w, text);
    cb__json_end(&w);
    require(cb__json_parse(out.text, out.size, "string", &root, NULL) == CB_OK);
    cb__json_free(root);
    cb__buf_fini(&out);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cb__json *root;
    cb_error err = CB_ERROR_INIT;
    cb_status status = cb__json_parse((const char *)data, size, "fuzz", &root, &err);
    require((status == CB_OK) == (root != NULL) && status == err.status);
    if (root) {
        round_trip(root, false);
        round_trip(root, true);
    } else {
        require(strlen(err.message) > 0);
    }
    cb__json_free(root);
    as_string(data, size);
    return 0;
}
