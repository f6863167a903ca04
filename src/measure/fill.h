/* fill.h: what must be there before the first round: the ring's contents, packed, and the f64
 * reference. Runs in a worker of its own, so that neither can be touched by the code under test. */
#ifndef CB_MEASURE_FILL_H
#define CB_MEASURE_FILL_H

#include <stdint.h>

#include "host/pool.h"
#include "measure/plan.h"
#include "measure/verify.h"

typedef struct cb__filled {
    uint64_t digest;     /* of the whole file */
    uint32_t *checksums; /* [sets]: xor of the u32 words that a reading twin reads; owned by the
                            caller (free) */
    uint64_t sampled_words, distinct_words; /* of the rotating operands: is the content random? */
    double prepare_ns;                      /* packing, all sets */
} cb__filled;

/* Called between sets with the share done, 0 to 1. */
typedef void (*cb__fill_progress)(void *arg, double done);

/* Fills the file of `plan` at `base` for `c` and the reference (values and bounds:
 * [reference_sets][elements] each). */
cb_status cb__fill(const cb__case *c, const cb__plan *plan, cb__pool *pool, uint64_t seed,
                   void *base, double *values, double *bounds, int reference_sets,
                   cb__fill_progress progress, void *arg, cb__filled *out, cb_error *err);

/* Sets that need a reference of their own: 1 where rows rotate, else those that a verified launch
 * can be on. */
int cb__fill_reference_sets(const cb__case *c, const cb__plan *plan);

#endif
