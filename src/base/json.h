/* json.h: writing JSON by hand, reading it through jansson (this is the only user of it). */
#ifndef CB_BASE_JSON_H
#define CB_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "coldbench/status.h"

/* ---- writing: keys and values in order, commas and nesting kept by the writer ----
 *
 * Calls that would not give one JSON value (a value without a key in an object, a key outside one,
 * a second root, an end too many, a container too deep) set the buffer's `failed` and write
 * nothing: a buffer that has not failed holds valid JSON once every container has its end. Equal
 * keys are the caller's to avoid. */

enum { CB__JSON_DEPTH_MAX = 32 };

typedef struct cb__json_writer {
    cb__buf *out; /* borrowed */
    int depth;
    bool some[CB__JSON_DEPTH_MAX];  /* whether a value was written at this level */
    char close[CB__JSON_DEPTH_MAX]; /* what ends the container of this level */
    bool after_key;
    bool pretty; /* two-space indent; else everything on one line */
} cb__json_writer;

void cb__json_begin(cb__json_writer *w, cb__buf *out, bool pretty);
void cb__json_object(cb__json_writer *w);
void cb__json_array(cb__json_writer *w);
void cb__json_end(cb__json_writer *w); /* of the innermost object or array */
void cb__json_key(cb__json_writer *w, const char *key);
void cb__json_string(cb__json_writer *w,
                     const char *text); /* NULL: null; invalid UTF-8 bytes become U+FFFD */
void cb__json_int(cb__json_writer *w, int64_t value);
/* Past INT64_MAX jansson refuses to read it back: such values (digests, seeds) go out as strings.
 */
void cb__json_uint(cb__json_writer *w, uint64_t value);
void cb__json_bool(cb__json_writer *w, bool value);
void cb__json_null(cb__json_writer *w);
/* The shortest decimal that reads back to the same double; null for NaN and infinities. */
void cb__json_number(cb__json_writer *w, double value);
/* Arrays of numbers stay on one line, pretty or not. */
void cb__json_numbers(cb__json_writer *w, const double *values, size_t n);
void cb__json_ints(cb__json_writer *w, const int64_t *values, size_t n);
/* The shortest round-trip text of a finite double into text[32]. */
void cb__double_text(double value, char text[32]);

/* A key and its value. */
void cb__json_put_text(cb__json_writer *w, const char *key, const char *value); /* NULL: null */
void cb__json_put_int(cb__json_writer *w, const char *key, int64_t value);
void cb__json_put_bool(cb__json_writer *w, const char *key, bool value);
void cb__json_put_real(cb__json_writer *w, const char *key, double value);

/* Splices text that is already one complete JSON value. */
void cb__json_raw(cb__json_writer *w, const char *text);

/* ---- reading: a tree of borrowed nodes under one root that is freed ---- */

typedef struct json_t cb__json;

/* Rejects duplicate keys, trailing junk, nesting over jansson's limit; CB_USAGE with line:column
 * and jansson's words, prefixed by `what` ("worker line", a file name). */
cb_status cb__json_parse(const char *text, size_t size, const char *what, cb__json **root,
                         cb_error *err);
void cb__json_free(cb__json *root);

bool cb__json_is_object(const cb__json *v);
bool cb__json_is_array(const cb__json *v);
bool cb__json_is_string(const cb__json *v);
bool cb__json_is_number(const cb__json *v);
const cb__json *cb__json_get(const cb__json *object,
                             const char *key); /* NULL when absent or not an object */
size_t cb__json_size(const cb__json *array);   /* 0 when not an array */
const cb__json *cb__json_at(const cb__json *array, size_t i); /* NULL when out of range */
const char *cb__json_text(const cb__json *v, const char *otherwise);
double cb__json_real(const cb__json *v, double otherwise);
int64_t cb__json_i64(const cb__json *v,
                     int64_t otherwise); /* `otherwise` too when not an integer */
bool cb__json_truth(const cb__json *v, bool otherwise);

/* Required members: CB_USAGE "what: 'key' is missing / is not a number". */
cb_status cb__json_need_i64(const cb__json *object, const char *key, int64_t min, int64_t max,
                            int64_t *value, cb_error *err);
cb_status cb__json_need_real(const cb__json *object, const char *key, double *value, cb_error *err);
cb_status cb__json_need_text(const cb__json *object, const char *key, const char **value,
                             cb_error *err);
/* Iterates the members of an object in order: start with *iter NULL; false at the end. */
bool cb__json_next(const cb__json *object, void **iter, const char **key, const cb__json **value);

#endif
