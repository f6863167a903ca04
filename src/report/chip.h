/* chip.h: what is known of a GPU alone: the levels of latency over its multiprocessors, where
 * bandwidth reaches its plateau, the banks of its shared memory.
 */
#ifndef CB_REPORT_CHIP_H
#define CB_REPORT_CHIP_H

#include "model/model.h"

/* "40..64 KiB", "512 KiB..2 MiB" */
void cb__range_text(double lo, double hi, char text[56]);
/* Nothing of a model that has none of it. */
void cb__report_chip(const cb_model *model, cb__buf *out);

#endif
