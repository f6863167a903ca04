/* cuda.cu: reads that go wrong, for NVIDIA GPUs. */
#include "kernel/twin/hand_in.cuh"
#include "kernel/twin/read.cuh"

enum { VECTOR_WORDS = VECTOR_BYTES / 4 };

#if CB_FAULT == 0
/* Folded: once, whatever `passes` says. The checksum is right: it is time that must give this away.
 */
__device__ __forceinline__ unsigned read_wrongly(const uint4 *src, slice s, long long passes)
{
    return passes % 2 == 0 ? 0 : read_pass(src, s);
}

#elif CB_FAULT == 1
/* Underdriven: one warp of the block, and each address waits for the word before, of which no bit
 * is kept. */
__device__ __forceinline__ unsigned read_wrongly(const uint4 *src, slice s, long long passes)
{
    const unsigned *words = (const unsigned *)src;
    unsigned none = 0, checksum = 0;
    asm volatile("" : "+r"(none)); /* no compiler may know that it is zero */
    for (; threadIdx.x < 32 && passes > 0; passes--)
        for (unsigned long long at = s.first * VECTOR_WORDS + threadIdx.x;
             at < s.end * VECTOR_WORDS; at += 32) {
            unsigned word;
            asm volatile("ld.global.u32 %0, [%1];" : "=r"(word) : "l"(words + at));
            checksum ^= word;
            at += word & none;
        }
    return checksum;
}

#elif CB_FAULT == 2
/* Shrunk: only the first half of the slice. */
__device__ __forceinline__ unsigned read_wrongly(const uint4 *src, slice s, long long passes)
{
    s.end = s.first + (s.end - s.first) / 2;
    return read_passes(src, s, passes);
}

#else
/* Misaligned: everything, four bytes off the lines, which only words can be. */
__device__ __forceinline__ unsigned read_wrongly(const uint4 *src, slice s, long long passes)
{
    const unsigned *words = (const unsigned *)src + s.first * VECTOR_WORDS;
    const unsigned *end = (const unsigned *)src + s.end * VECTOR_WORDS;
    unsigned checksum = 0;
    for (; passes > 0; passes--) {
        if (threadIdx.x == 0 && words < end)
            checksum ^= *(const volatile unsigned *)words;
#pragma unroll 1
        for (const unsigned *p = words + 1 + threadIdx.x; p < end; p += TURN_VECTORS) {
            unsigned v[CB_LOADS];
#pragma unroll
            for (int i = 0; i < CB_LOADS; i++) {
                unsigned there = p + i * CB_THREADS < end;
                v[i] = 0;
                asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; @p ld.global.u32 %0, [%1]; }"
                             : "+r"(v[i])
                             : "l"(p + i * CB_THREADS), "r"(there));
            }
#pragma unroll
            for (int i = CB_LOADS - 1; i >= 0; i--)
                checksum ^= v[i];
        }
    }
    return checksum;
}
#endif

extern "C" __global__
__launch_bounds__(CB_THREADS) void fault_read(const uint4 *src, unsigned *checksum,
                                              unsigned *partial, long long bytes, long long passes)
{
    hand_in(read_wrongly(src, slice_of(bytes), passes), checksum, partial);
}
