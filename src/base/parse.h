/* parse.h: text to numbers, strictly, and the nearest valid word for a mistyped one. */
#ifndef CB_BASE_PARSE_H
#define CB_BASE_PARSE_H

#include <stddef.h>
#include <stdint.h>

#include "coldbench/status.h"

/* A decimal integer with an optional KiB, MiB or GiB suffix (nothing before, between or after).
 * `what` names the value in the message ("--threads"). Out of [min, max], overflow, empty, junk:
 * CB_USAGE with the rule and the text. */
cb_status cb__parse_i64(const char *text, const char *what, int64_t min, int64_t max,
                        int64_t *value, cb_error *err);
/* A decimal number, C locale, with an optional % (divides by 100); finite, in [min, max]. */
cb_status cb__parse_real(const char *text, const char *what, double min, double max, double *value,
                         cb_error *err);
/* The word of `valid` (n entries) closest to `word` by Damerau-Levenshtein distance, if the
 * distance is at most a third of the longer length (at least 1), else, if `word` is a proper prefix
 * of exactly one, that one; else NULL. */
const char *cb__nearest(const char *word, const char *const *valid, size_t n);
/* CB_USAGE "unknown WHAT 'word'; valid: a, b, c; did you mean 'b'?" (the last part only when there
 * is a nearest). */
cb_status cb__unknown(cb_error *err, const char *what, const char *word, const char *const *valid,
                      size_t n);

#endif
