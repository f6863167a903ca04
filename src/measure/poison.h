/* poison.h: what lies in an output before a verified launch, and in the guards around it.
 *
 * Poison is random and plausible (drawn from the operand's declared range, never NaN), new for each
 * of the phases of a round. The two verified launches before timing use phases 0 and 1, whose
 * values differ in every element; the timed calls find phase 2. */
#ifndef CB_MEASURE_POISON_H
#define CB_MEASURE_POISON_H

#include <stdint.h>

#include "measure/plan.h"

enum { CB__PHASES = 3 };

/* Writes elements [0, count) of one operand's poison. */
void cb__poison_fill(const cb_operand *operand, uint64_t seed, int index, int slot, int phase,
                     void *to, uint64_t bytes);
/* Writes a whole slot: guards (random bytes, the same in every phase) and poisoned operands. */
void cb__poison_slot(const cb__case *c, const cb__plan *plan, uint64_t seed, int slot, int phase,
                     void *to);
/* The guards alone; what lies between them stays as it is. */
void cb__poison_guards(const cb__case *c, const cb__plan *plan, uint64_t seed, int slot, void *to);
double cb__element_f64(cb_type type, const void *elements, uint64_t i);

#endif
