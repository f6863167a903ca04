/* members.h: members of answers, written, and read with suspicion: an answer may be a stranger's.
 * The first fault stays in err, so that a reader asks once at its end. */
#ifndef CB_WORKER_MEMBERS_H
#define CB_WORKER_MEMBERS_H

#include "base/json.h"

/* One line: an object with its `type` first. */
void cb__answer_begin(cb__json_writer *w, cb__buf *line, const char *type);
void cb__answer_end(cb__json_writer *w, cb__buf *line);

/* 64 bits as 16 hexadecimal digits: a JSON number loses some in many readers. */
void cb__hex_write(cb__json_writer *w, uint64_t value);
bool cb__hex_read(const cb__json *v, uint64_t *value);

/* CB_GARBAGE: `what` of the answer is not as it must be. */
cb_status cb__garbage(cb_error *err, const char *what);
/* Of an element, named `key`; and of a member. What is no such integer is `min`, and garbage. */
int64_t cb__answer_int_of(const cb__json *v, const char *key, int64_t min, int64_t max,
                          cb_error *err);
int64_t cb__answer_int(const cb__json *json, const char *key, int64_t min, int64_t max,
                       cb_error *err);
/* Not negative; null, where it may be, is NaN. */
double cb__answer_real_of(const cb__json *v, const char *key, bool may_be_null, cb_error *err);
double cb__answer_real(const cb__json *json, const char *key, cb_error *err);
bool cb__answer_truth(const cb__json *json, const char *key, cb_error *err);
/* Cut where it is longer. */
void cb__answer_text(const cb__json *json, const char *key, char *out, size_t size, cb_error *err);
bool cb__answer_is_null(const cb__json *v);

#endif
