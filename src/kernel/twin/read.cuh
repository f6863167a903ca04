/* read.cuh: reading a set, for the kernels that hand in a checksum of it. */
#ifndef COLDBENCH_KERNEL_TWIN_READ_CUH
#define COLDBENCH_KERNEL_TWIN_READ_CUH

#include "kernel/twin/vectors.cuh"

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

/* In the first cache the warps of a block begin a pass together: where one runs ahead, what it reads
 * again is all that the cache holds meanwhile, and 50 MiB were read at 29 TB/s by caches of 30 MiB
 * (H200, 2026-11). The second one does not see it: 21 passes are as fast there as 201. */
__device__ __forceinline__ unsigned read_passes(const uint4 *src, slice s, long long passes)
{
    unsigned checksum = read_pass(src, s);
#pragma unroll 1
    for (; passes > 1; passes--) {
#if defined(CB_L1) && CB_L1
        __syncthreads();
#endif
        checksum ^= read_pass(src, s);
    }
    return checksum;
}

#endif
