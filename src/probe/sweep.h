/* sweep.h: bandwidth of plain reading over working sets, in one process. Runs in a worker. */
#ifndef CB_PROBE_SWEEP_H
#define CB_PROBE_SWEEP_H

#include "kernel/case.h"
#include "timing/slot.h"

typedef struct cb__sweep {
    const cb__suite *suite;
    /* Variants of twin_read without `passes`; the fastest at each size counts. */
    const char *const *twins;
    int ntwins;
    unsigned isa;
    const int64_t *bytes; /* sizes in the order in which they are measured */
    int n;
    double reading_ns; /* a reading reads its set again and again for about this long */
    uint64_t seed;
} cb__sweep;

/* gb_per_s: of one size, from the slope between p and 3p passes in one launch, so that neither the
 * dispatch nor the start of a pass is in it. folded: time of 3p passes over 3 times that of p
 * passes, dispatch taken off: 1 when three times the traffic takes three times as long. Nothing is
 * measured on untouched pages: the set is filled with random words first. */
typedef struct cb__sweep_point {
    double gb_per_s, folded;
    double
        clock_hz; /* of the core, median between the readings; NaN where the device does not say */
} cb__sweep_point;

cb_status cb__sweep_run(cb__target target, const cb__sweep *sweep, cb__sweep_point *points,
                        void (*progress)(void *, double), void *arg, cb_error *err);

#endif
