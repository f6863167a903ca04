/* stream_read.h: what kernel.c and the cpu_*.c files of stream_read share. */
#ifndef COLDBENCH_KERNEL_STREAM_READ_H
#define COLDBENCH_KERNEL_STREAM_READ_H

#include "kernel/twin/share.h"

/* The operands, in the order of the table in kernel.c. */
enum { SRC, CHECKSUM, PARTIAL, OPERANDS };

/* The distinct bytes that one launch reads: floor(bytes * work / 1000 / 64) * 64. */
static inline uint64_t cb__stream_read_bytes(const cb_problem *problem)
{
    uint64_t wanted = (uint64_t)problem->shape[0] * (uint64_t)problem->params[0] / 1000;
    return wanted / CB__LINE * CB__LINE;
}

int cb__stream_read_avx512(const cb_launch *launch);
int cb__stream_read_avx2(const cb_launch *launch);
int cb__stream_read_portable(const cb_launch *launch);

#endif
