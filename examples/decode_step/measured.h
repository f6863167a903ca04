/* measured.h: what the rounds of a step add up to, and its record. */
#ifndef DECODE_STEP_MEASURED_H
#define DECODE_STEP_MEASURED_H

#include "record/record.h"
#include "round.h"
#include "stats/order.h"

enum { ROUNDS_MAX = 32 };

typedef struct measured {
    const step *step;
    const cb__device_info *info;
    const round_answer *rounds;
    int nrounds;
    /* Over rounds, of the medians of their blocks. */
    cb__interval time_ns, host_ns;
    cb__interval alone_ns[PARTS_MAX]; /* a launch */
    cb__interval over_alone;          /* the step over all matrices by shape, paired by block */
    cb__check checks[PARTS_MAX][CB__CHECKS_MAX];
    int nchecks[PARTS_MAX];
    bool above_memory; /* faster than the memory can be */
    cb_verdict verdict;
} measured;

void measured_make(const step *s, const cb__device_info *info, const round_answer *rounds,
                   int nrounds, measured *out);
void measured_record(const measured *m, const cb__record *record, cb__buf *out);
/* A line for a person, and one a required check that did not pass. */
void measured_text(const measured *m, cb__buf *out);

#endif
