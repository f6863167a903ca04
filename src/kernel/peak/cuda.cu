/* cuda.cu: the ceilings of arithmetic for NVIDIA GPUs. peak_fma has the parameter CB_TYPE, peak_mma
 * CB_INPUTS, peak_dot none.
 *
 * A thread keeps its lane and takes CB_CHAINS blocks at once.
 */
enum { STEPS = 256 };

#if defined(CB_INPUTS)
#include "kernel/peak/mma.cuh"
#else

#if defined(CB_TYPE)
#if CB_TYPE == 0
typedef float number;
enum { LANES = 192 };
#define FMA __fmaf_rn
#else
typedef double number;
enum { LANES = 96 };
#define FMA __fma_rn
#endif
#else
enum { LANES = 192 };
#endif

enum { THREADS = 384, ROWS = THREADS / LANES, TURN_BLOCKS = ROWS * CB_CHAINS };

/* What a thread has of the blocks from `first` on, a result of each chain; whole turns without a
 * question. */
template <typename type>
__device__ __forceinline__ void put(type *to, const type *x, unsigned first, unsigned blocks)
{
    if (first + TURN_BLOCKS - ROWS < blocks) {
#pragma unroll
        for (int i = 0; i < CB_CHAINS; i++)
            to[i * ROWS * LANES] = x[i];
        return;
    }
#pragma unroll
    for (int i = 0; i < CB_CHAINS; i++)
        if (first + i * ROWS < blocks)
            to[i * ROWS * LANES] = x[i];
}

#if defined(CB_TYPE)

/* A turn's starts never wrap: the number of lanes is a multiple of its blocks. */
__device__ __forceinline__ void multiply_add(const number *start, number *result, unsigned blocks)
{
    const number a = start[0], b = start[1];
    unsigned lane = threadIdx.x % LANES, row = threadIdx.x / LANES;
    for (unsigned first = blockIdx.x * TURN_BLOCKS; first < blocks;
         first += gridDim.x * TURN_BLOCKS) {
        const number *from = start + 2 + first % LANES + row + lane;
        number *to = result + ((unsigned long long)first + row) * LANES + lane;
        number x[CB_CHAINS];
#pragma unroll
        for (int i = 0; i < CB_CHAINS; i++)
            x[i] = from[i * ROWS];
#pragma unroll 1
        for (int turn = 0; turn < STEPS; turn += 32)
#pragma unroll
            for (int step = 0; step < 32; step++)
#pragma unroll
                for (int i = 0; i < CB_CHAINS; i++)
                    x[i] = FMA(x[i], a, b);
        put(to, x, first + row, blocks);
    }
}

extern "C" __global__ __launch_bounds__(THREADS) void peak_fma(const float *start_f32,
                                                               float *result_f32,
                                                               const double *start_f64,
                                                               double *result_f64, long long blocks)
{
#if CB_TYPE == 0
    multiply_add(start_f32, result_f32, (unsigned)blocks);
#else
    multiply_add(start_f64, result_f64, (unsigned)blocks);
#endif
}

#else

/* u has 16 lines of 16 lanes: a thread has its lane's word of each. */
enum { LINES = 16 };

extern "C" __global__ __launch_bounds__(THREADS) void peak_dot(const int *start, const unsigned *u,
                                                               const int *s, int *result,
                                                               long long blocks)
{
    unsigned lane = threadIdx.x % LANES, row = threadIdx.x / LANES, end = (unsigned)blocks;
    unsigned line[LINES];
    int signs = s[lane];
#pragma unroll
    for (int i = 0; i < LINES; i++)
        line[i] = u[i * 16 + lane % 16];
    for (unsigned first = blockIdx.x * TURN_BLOCKS; first < end; first += gridDim.x * TURN_BLOCKS) {
        const int *from = start + first % LANES + row + lane;
        int *to = result + ((unsigned long long)first + row) * LANES + lane;
        int x[CB_CHAINS];
#pragma unroll
        for (int i = 0; i < CB_CHAINS; i++)
            x[i] = from[i * ROWS];
#pragma unroll 1
        for (int turn = 0; turn < STEPS / LINES; turn++)
#pragma unroll
            for (int step = 0; step < LINES; step++)
#pragma unroll
                for (int i = 0; i < CB_CHAINS; i++)
                    asm("dp4a.u32.s32 %0, %1, %2, %0;" : "+r"(x[i]) : "r"(line[step]), "r"(signs));
        put(to, x, first + row, end);
    }
}
#endif
#endif
