/* fault_read.h: what kernel.c and the cpu_*.c files of fault_read share. */
#ifndef COLDBENCH_KERNEL_FAULT_READ_H
#define COLDBENCH_KERNEL_FAULT_READ_H

#include "coldbench/kernel.h"

/* The parameters, in the order of the table in kernel.c. */
enum { FAULT_PASSES, FAULT_FAULT };
enum { FAULT_FOLDED, FAULT_UNDERDRIVEN, FAULT_SHRUNK, FAULT_MISALIGNED };

int cb__fault_read_avx512(const cb_launch *launch);
int cb__fault_read_avx2(const cb_launch *launch);
int cb__fault_read_portable(const cb_launch *launch);

#endif
