/* prediction.h: the record of a step beside the records of its parts, as `coldbench run` wrote
 * them.
 *
 * A part's figure is that of all records given: the mean of their medians, in an interval from the
 * lowest end to the highest, so that drift from one to the next is in it. The interval of a sum
 * runs from the sum of the lower ends to that of the upper ones: what shifts one part (clock,
 * temperature, where memory lies) shifts them all, so their errors must not be taken to cancel. */
#ifndef DECODE_STEP_PREDICTION_H
#define DECODE_STEP_PREDICTION_H

#include "base/json.h"
#include "coldbench/verdict.h"
#include "measure/bench.h"
#include "stats/order.h"
#include "step.h"

typedef struct predicted_part {
    char names[64], shape[64];
    int64_t count, bytes_read;
    cb__interval ns[2];    /* a launch, by cb__cache_state */
    double drift[2];       /* last record over the first, - 1 */
    cb_verdict verdict[2]; /* the worst of the records' */
    cb__interval alone_ns;
} predicted_part;

typedef struct prediction {
    char model[64], variant[256], device[128], identity[64];
    predicted_part parts[PARTS_MAX];
    int nparts, nrecords;
    int64_t launches, bytes_read;
    cb__interval time_ns;    /* of the step */
    cb__interval over_alone; /* the step over its own matrices by shape */
    cb__interval sum_ns[2];
    cb__interval error[2]; /* sum over step, - 1 */
} prediction;

/* `whole` (of the step) and `parts` are parsed records, `names` what messages call them, the step
 * first. CB_USAGE: they do not belong together. CB_WRONG: one of them is of wrong or impossible
 * figures, or the parts do not add up to the step. */
cb_status prediction_make(const cb__json *whole, const cb__json *const *parts,
                          const char *const *names, int nparts, prediction *out, cb_error *err);
void prediction_text(const prediction *p, cb__buf *out);
/* The members of a result. */
void prediction_put(const prediction *p, cb__json_writer *w);
/* Whether a part's figure is one that `run` could not decide on. */
bool prediction_undecided(const prediction *p);

#endif
