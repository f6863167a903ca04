/* scratch.h: what scratch_read does, for who turns its time into a bandwidth.
 *
 * Each of the lanes of each of the warps of each group reads `width` bytes at
 * lane*stride + i*128, for i below CB__SCRATCH_READS, and that `passes` times.
 */
#ifndef COLDBENCH_KERNEL_SCRATCH_H
#define COLDBENCH_KERNEL_SCRATCH_H

#include "coldbench/kernel.h"

enum { CB__SCRATCH_LANES = 32, CB__SCRATCH_WARPS = 32, CB__SCRATCH_READS = 64 };
enum { CB__SCRATCH_STEP = 128, CB__SCRATCH_STRIDE_MAX = 1024, CB__SCRATCH_BYTES = 40960 };

/* The parameters, in the order of the table in kernel.c. */
enum { SCRATCH_WIDTH, SCRATCH_STRIDE, SCRATCH_PATH, SCRATCH_PASSES };
enum { SCRATCH_SHARED, SCRATCH_GLOBAL };

#endif
