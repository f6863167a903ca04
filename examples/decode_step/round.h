/* round.h: a round: a fresh process that has the matrices on the device, verifies the step,
 * measures it, and verifies it again. */
#ifndef DECODE_STEP_ROUND_H
#define DECODE_STEP_ROUND_H

#include "step.h"

enum { BLOCKS = 40 };

/* What a process says; it lies in memory that the process shares with its parent. */
typedef struct round_answer {
    bool answered;
    cb_error err;
    cb__device_info info;
    cb__findings findings[PARTS_MAX];
    bool edited[PARTS_MAX];
    int warm_up_steps;
    bool flat; /* times were flat when the warm-up ended */
    double warm_up_ns;
    /* A block: the step, then the matrices of each shape as a batch of their own. */
    double step_ns[BLOCKS], host_ns[BLOCKS];
    double alone_ns[PARTS_MAX][BLOCKS]; /* of the whole batch */
    char telemetry[160];
} round_answer;

/* Zeroed, and shared with what is forked later; NULL: no memory. */
round_answer *round_answers_new(int n);
void round_answers_free(round_answer *answers, int n);

/* Takes hold of the device in a process of its own and says what it is, and which code it runs. */
cb_status round_describe(const char *device, int threads, round_answer *answer, unsigned *isa,
                         cb_error *err);
/* One round of a filled step. CB_CRASHED, CB_WRONG (a launch failed) or what the device said. */
cb_status round_run(const step *s, const char *device, int threads, uint64_t seed,
                    round_answer *answer, cb_error *err);

#endif
