/* slices.cuh: reading a set a slice a warp, with a checksum of each.
 *
 * Nothing comes together at the end, as it does in hand_in.cuh, which costs a launch 2 us: as much
 * as reading 9 MB (H200, 2026-11). Launches overlap: the set is read before the launch ahead has
 * ended, and the checksums, which that one may write too, are written after.
 */
#ifndef COLDBENCH_KERNEL_TWIN_SLICES_CUH
#define COLDBENCH_KERNEL_TWIN_SLICES_CUH

#include "kernel/twin/overlap.cuh"
#include "kernel/twin/read.cuh"

__device__ __forceinline__ unsigned xor_of_lanes(unsigned word)
{
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2)
        word ^= __shfl_xor_sync(0xffffffffu, word, distance);
    return word;
}

/* One lane's share of the units from `p` to `end`, CB_LOADS in flight; see read_pass for the order.
 */
__device__ __forceinline__ unsigned read_units(const uint4 *p, const uint4 *end)
{
    unsigned checksum = 0;
    uint4 v[CB_LOADS];
#pragma unroll 1
    for (; p + (CB_LOADS - 1) * UNIT_VECTORS < end; p += CB_LOADS * UNIT_VECTORS) {
#pragma unroll
        for (int i = 0; i < CB_LOADS; i++)
            v[i] = load_vector(p + i * UNIT_VECTORS);
#pragma unroll
        for (int i = CB_LOADS - 1; i >= 0; i--)
            checksum ^= xor_of(v[i]);
    }
#pragma unroll
    for (int i = 0; i < CB_LOADS; i++)
        v[i] = load_vector_if(p + i * UNIT_VECTORS, p + i * UNIT_VECTORS < end);
#pragma unroll
    for (int i = CB_LOADS - 1; i >= 0; i--)
        checksum ^= xor_of(v[i]);
    return checksum;
}

/* Slice s of CB_SLICES: units u*s/CB_SLICES up to u*(s+1)/CB_SLICES of all u; as read_define.h. */
__device__ __forceinline__ void read_slice(const uint4 *src, unsigned *checksum, long long bytes,
                                           long long passes)
{
    unsigned lane = threadIdx.x % 32, warp = blockIdx.x * (CB_THREADS / 32) + threadIdx.x / 32;
    unsigned long long vectors = (unsigned long long)bytes / VECTOR_BYTES;
    unsigned long long units = (vectors + UNIT_VECTORS - 1) / UNIT_VECTORS;
    unsigned long long first = units * warp / CB_SLICES * UNIT_VECTORS;
    unsigned long long end = units * (warp + 1) / CB_SLICES * UNIT_VECTORS;
    unsigned own = 0;
    let_next_begin();
    end = end < vectors ? end : vectors;
#pragma unroll 1
    for (; passes > 0; passes--)
        own ^= read_units(src + first + lane, src + end);
    own = xor_of_lanes(own);
    wait_for_last();
    if (lane == 0)
        checksum[warp] = own;
}

#endif
