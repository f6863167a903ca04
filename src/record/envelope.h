/* envelope.h: what every record begins with, and small writers that its kinds share. */
#ifndef CB_RECORD_ENVELOPE_H
#define CB_RECORD_ENVELOPE_H

#include "record/record.h"

void cb__envelope_begin(cb__json_writer *w, const cb__record *record);
/* {"lo","mid","hi","coverage"}; null where there is no figure. */
void cb__put_interval(cb__json_writer *w, const char *key, cb__interval x);
/* "shape": {"rows": 4096, ...} */
void cb__put_shape(cb__json_writer *w, const cb__case *c);
/* A result of a comparison: one pair. */
void cb__put_pair(cb__json_writer *w, const cb__comparison *c, const cb__compare_pair *pair);
/* An object; side: "a", "b" or NULL. */
void cb__put_check(cb__json_writer *w, const char *side, const cb__check *check);
void cb__put_checks(cb__json_writer *w, const cb__check *checks, int n);
/* ",1.5"; "," where there is no figure. */
void cb__csv_number(cb__buf *out, double value);

#endif
