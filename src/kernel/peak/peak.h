/* peak.h: what kernel.c and the cpu_*.c files of peak share.
 *
 * A block is a number of lanes, each a chain of CB__PEAK_STEPS dependent steps. Lanes are taken in
 * groups of CB__PEAK_VECTORS vectors that stay in registers: twelve chains cover a latency of 5
 * cycles on two pipes, and fit the 16 registers of AVX2 beside the constants.
 */
#ifndef COLDBENCH_KERNEL_PEAK_H
#define COLDBENCH_KERNEL_PEAK_H

#include "coldbench/kernel.h"

enum { CB__PEAK_STEPS = 256, CB__PEAK_VECTORS = 12 };
enum { CB__PEAK_F32_LANES = 192, CB__PEAK_F64_LANES = 96, CB__PEAK_DOT_LANES = 192 };

/* Of a thread block: whole lanes of any type, and as many warps for each scheduler. */
enum { CB__PEAK_CUDA_THREADS = 384 };

/* Step t of the dot products takes line t mod CB__PEAK_DOT_LINES of u. */
enum { CB__PEAK_DOT_LINES = 16, CB__PEAK_DOT_LINE = 64 };

/* The operands and the parameter, in the order of the tables in kernel.c. */
enum { FMA_F32_START, FMA_F32_RESULT, FMA_F64_START, FMA_F64_RESULT, FMA_OPERANDS };
enum { DOT_START, DOT_U, DOT_S, DOT_RESULT, DOT_OPERANDS };
enum { FMA_TYPE };
enum { FMA_F32, FMA_F64 };

/* The starts of peak_fma come after a and b. */
enum { FMA_A, FMA_B, FMA_STARTS };

typedef struct cb__peak_share {
    int64_t first, end; /* blocks */
} cb__peak_share;

static inline cb__peak_share cb__peak_share_of(const cb_launch *launch)
{
    int64_t blocks = launch->problem.shape[0];
    return (cb__peak_share){blocks * launch->worker / launch->workers,
                            blocks * (launch->worker + 1) / launch->workers};
}

/* In mma.c. */
extern const cb_kernel cb__peak_mma;

int cb__peak_fma_avx512(const cb_launch *launch);
int cb__peak_fma_avx2(const cb_launch *launch);
int cb__peak_fma_portable(const cb_launch *launch);
int cb__peak_dot_avx512vnni(const cb_launch *launch);
int cb__peak_dot_avx2(const cb_launch *launch);
int cb__peak_dot_portable(const cb_launch *launch);

#endif
