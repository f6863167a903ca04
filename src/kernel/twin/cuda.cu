/* cuda.cu: the twins for NVIDIA GPUs. The one that writes or copies has the tunable CB_STREAMING.
 */
#include "kernel/twin/vectors.cuh"

#if defined(CB_SLICES) && CB_SLICES > 1
#include "kernel/twin/slices.cuh"

extern "C" __global__
__launch_bounds__(CB_THREADS) void twin_read(const uint4 *src, unsigned *checksum,
                                             unsigned *partial, long long bytes, long long passes)
{
    (void)partial;
    read_slice(src, checksum, bytes, passes);
}

#elif !defined(CB_STREAMING)
#include "kernel/twin/hand_in.cuh"
#include "kernel/twin/read.cuh"

extern "C" __global__
__launch_bounds__(CB_THREADS) void twin_read(const uint4 *src, unsigned *checksum,
                                             unsigned *partial, long long bytes, long long passes)
{
    hand_in(read_passes(src, slice_of(bytes), passes), checksum, partial);
}

#else

/* Streaming: the lines written are the first that a cache gives up. */
#if CB_STREAMING
#define STORE "st.global.cs.v4.u32"
#else
#define STORE "st.global.v4.u32"
#endif

__device__ __forceinline__ void store_vector(uint4 *to, uint4 v)
{
    asm volatile(STORE " [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
                 : "memory");
}

extern "C" __global__ __launch_bounds__(CB_THREADS) void twin_write(const uint4 *seed, uint4 *dst,
                                                                    long long bytes,
                                                                    long long passes)
{
    slice s = slice_of(bytes);
    uint4 *end = dst + s.end;
    /* Slices and turns are whole lines: a thread writes the same quarter of each. */
    uint4 v = seed[threadIdx.x % 4];
#pragma unroll 1
    for (; passes > 0; passes--) {
        uint4 *p = dst + s.first + threadIdx.x;
#pragma unroll 1
        for (; p + (TURN_VECTORS - CB_THREADS) < end; p += TURN_VECTORS)
#pragma unroll
            for (int i = 0; i < CB_LOADS; i++)
                store_vector(p + i * CB_THREADS, v);
#pragma unroll 1
        for (; p < end; p += CB_THREADS)
            store_vector(p, v);
    }
}

extern "C" __global__ __launch_bounds__(CB_THREADS) void twin_copy(const uint4 *src, uint4 *dst,
                                                                   long long bytes,
                                                                   long long passes)
{
    slice s = slice_of(bytes);
#pragma unroll 1
    for (; passes > 0; passes--) {
        unsigned long long at = s.first + threadIdx.x;
        uint4 v[CB_LOADS];
#pragma unroll 1
        for (; at + (TURN_VECTORS - CB_THREADS) < s.end; at += TURN_VECTORS) {
#pragma unroll
            for (int i = 0; i < CB_LOADS; i++)
                v[i] = load_vector(src + at + i * CB_THREADS);
#pragma unroll
            for (int i = CB_LOADS - 1; i >= 0; i--) /* as in read.cuh */
                store_vector(dst + at + i * CB_THREADS, v[i]);
        }
#pragma unroll
        for (int i = 0; i < CB_LOADS; i++)
            v[i] = load_vector_if(src + at + i * CB_THREADS, at + i * CB_THREADS < s.end);
#pragma unroll
        for (int i = CB_LOADS - 1; i >= 0; i--)
            if (at + i * CB_THREADS < s.end)
                store_vector(dst + at + i * CB_THREADS, v[i]);
    }
}
#endif
