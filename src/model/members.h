/* members.h: members of an object of the model's file, of a type and within a range; else CB_USAGE
 * with the key and what is there instead.
 */
#ifndef CB_MODEL_MEMBERS_H
#define CB_MODEL_MEMBERS_H

#include "model/model.h"

/* No machine comes near these; within them no quotient or product of figures overflows. */
#define CB__FIGURE_MIN 1e-9
#define CB__FIGURE_MAX 1e15

cb_status cb__model_need_text(const cb__json *object, const char *key, char *to, size_t size,
                              cb_error *err);
cb_status cb__model_need_word(const cb__json *object, const char *key, const char *const *words,
                              size_t nwords, char *to, size_t size, cb_error *err);
cb_status cb__model_need_int(const cb__json *object, const char *key, int min, int max, int *to,
                             cb_error *err);
cb_status cb__model_need_bytes(const cb__json *object, const char *key, int64_t max, uint64_t *to,
                               cb_error *err);
cb_status cb__model_need_bool(const cb__json *object, const char *key, bool *to, cb_error *err);
cb_status cb__model_need_verdict(const cb__json *object, cb_verdict *to, cb_error *err);
cb_status cb__model_need_figure(const cb__json *object, const char *key, double min, double *to,
                                cb_error *err);
cb_status cb__model_need_interval(const cb__json *object, const char *key, double min,
                                  cb__interval *to, cb_error *err);

#endif
