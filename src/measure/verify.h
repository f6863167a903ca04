/* verify.h: is what a launch left behind right? Pure: looks at memory that a worker has handed
 * over. */
#ifndef CB_MEASURE_VERIFY_H
#define CB_MEASURE_VERIFY_H

#include <stdint.h>

#include "measure/plan.h"

/* f64 values and bounds of every written operand, for `sets` sets (1 where the kernel rotates
 * rows). */
typedef struct cb__reference {
    const double *values; /* [sets][elements], operands one after the other */
    const double *bounds;
    uint64_t elements; /* of one set, all written operands together */
    int sets;
} cb__reference;

uint64_t cb__reference_elements(const cb__case *c);

/* What was found over all slots looked at; indices are elements of the output (guards: bytes from
 * its end). */
typedef struct cb__findings {
    uint64_t slots, elements;
    int ragged;      /* other shapes that are among them */
    char where[112]; /* " with shape 3x224" where a fault was found on one of those; else "" */
    uint64_t unwritten, first_unwritten;
    uint64_t guard_bytes; /* changed */
    int64_t first_guard;
    uint64_t nonfinite, first_nonfinite;
    uint64_t beyond, first_beyond; /* outside the bound */
    uint64_t vacuous;              /* bounds as wide as the operand's whole plausible range */
    double worst;                  /* largest |error| / bound */
    double got, want, bound;       /* at first_beyond */
} cb__findings;

/* One launch: `slot_bytes` as read back after it ran on set `set` over poison of (seed, slot).
 */
void cb__verify_slot(const cb__case *c, const cb__plan *plan, const cb__reference *reference,
                     uint64_t seed, int slot, int set, const void *after, cb__findings *findings);

/* The guards alone, of a slot whose outputs are known to be right. */
void cb__verify_guards(const cb__case *c, const cb__plan *plan, uint64_t seed, int slot,
                       const void *after, cb__findings *findings);
/* Of what the outputs of a slot hold, whatever lies around them. */
uint64_t cb__outputs_digest(const cb__case *c, const cb__plan *plan, const void *after);

/* Two launches over poisons 0 and 1 on the same set: elements still equal to their poison both
 * times were never written. */
void cb__verify_written(const cb__case *c, const cb__plan *plan, uint64_t seed, int slot,
                        const void *after0, const void *after1, cb__findings *findings);

/* Adds what was found on another shape. */
void cb__findings_merge(cb__findings *into, const cb__findings *from, const char *shape);

#endif
