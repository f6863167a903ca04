/* read.cuh: reading a set and handing in its checksum: of twin_read, stream_read and fault_read.
 */
#include "kernel/twin/vectors.cuh"

/* Where share.h's cb__partials has its counter, and how many lines of it the blocks share. */
enum { LINE_WORDS = 16, FINISHED_WORD = 1024 * LINE_WORDS, PARTIAL_LINES = 32 };

__device__ __forceinline__ unsigned xor_of(uint4 v)
{
    return v.x ^ v.y ^ v.z ^ v.w;
}

/* The xor of what one thread reads of its block's slice. What was loaded last is taken first: the
 * other way round the compiler moves loads down to save registers, and four are in flight whatever
 * CB_LOADS says (NVRTC 13.0). */
__device__ __forceinline__ unsigned read_pass(const uint4 *src, slice s)
{
    const uint4 *p = src + s.first + threadIdx.x, *end = src + s.end;
    unsigned checksum = 0;
#pragma unroll 1
    for (; p + (TURN_VECTORS - CB_THREADS) < end; p += TURN_VECTORS) {
        uint4 v[CB_LOADS];
#pragma unroll
        for (int i = 0; i < CB_LOADS; i++)
            v[i] = load_vector(p + i * CB_THREADS);
#pragma unroll
        for (int i = CB_LOADS - 1; i >= 0; i--)
            checksum ^= xor_of(v[i]);
    }
    uint4 v[CB_LOADS];
#pragma unroll
    for (int i = 0; i < CB_LOADS; i++)
        v[i] = load_vector_if(p + i * CB_THREADS, p + i * CB_THREADS < end);
#pragma unroll
    for (int i = CB_LOADS - 1; i >= 0; i--)
        checksum ^= xor_of(v[i]);
    return checksum;
}

__device__ __forceinline__ unsigned read_passes(const uint4 *src, slice s, long long passes)
{
    unsigned checksum = 0;
#pragma unroll 1
    for (; passes > 0; passes--)
        checksum ^= read_pass(src, s);
    return checksum;
}

__device__ __forceinline__ unsigned xor_of_warp(unsigned word)
{
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2)
        word ^= __shfl_xor_sync(0xffffffffu, word, distance);
    return word;
}

/* Hands in what each thread read. The block that comes last joins all and leaves `partial` zero, so
 * no block waits for another. */
__device__ __forceinline__ void hand_in(unsigned own, unsigned *checksum, unsigned *partial)
{
    __shared__ unsigned of_warp[32];
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, is_last = 0;
    own = xor_of_warp(own);
    if (lane == 0)
        of_warp[warp] = own;
    __syncthreads();
    if (warp != 0)
        return;
    own = xor_of_warp(lane < CB_THREADS / 32 ? of_warp[lane] : 0);
    if (lane == 0) {
        atomicXor(partial + blockIdx.x % PARTIAL_LINES * LINE_WORDS, own);
        __threadfence();
        is_last = atomicAdd(partial + FINISHED_WORD, 1u) == gridDim.x - 1;
    }
    if (!__shfl_sync(0xffffffffu, is_last, 0))
        return;
    __threadfence();
    own = xor_of_warp(atomicExch(partial + lane * LINE_WORDS, 0u));
    if (lane == 0) {
        *checksum = own;
        partial[FINISHED_WORD] = 0;
    }
}
