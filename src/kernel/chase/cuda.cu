/* cuda.cu: chase for NVIDIA GPUs, on one thread of one multiprocessor. */
typedef unsigned long long u64;

enum { LINE = 64, PAGE_LINES = 4096 / LINE, KEY_WORD = 1, THREADS = 1024, PLACED_NS = 4000 };

/* The caches that a load may be served from: all, or all but the first. */
#if CB_CACHE == 0
#define LOAD "ld.global.ca"
#else
#define LOAD "ld.global.cg"
#endif

/* coldbench/random.h */
__device__ u64 random_mix(u64 z)
{
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

__device__ u64 random_word(u64 key, u64 index)
{
    return random_mix(key + (index + 1) * 0x9E3779B97F4A7C15ull);
}

/* cb__chase_permute and cb__chase_line of chase.h. */
__device__ u64 permute(u64 key, u64 n, u64 x)
{
    int bits = n > 1 ? 64 - __clzll((long long)(n - 1)) : 0;
    int low_bits = bits / 2;
    u64 low_mask = (1ull << low_bits) - 1, high_mask = (1ull << (bits - low_bits)) - 1;
    do {
        u64 low = x & low_mask, high = x >> low_bits;
        for (u64 round = 0; round < 4; round += 2) {
            high ^= random_word(key, 4 * low + round) & high_mask;
            low ^= random_word(key, 4 * high + round + 1) & low_mask;
        }
        x = high << low_bits | low;
    } while (x >= n);
    return x;
}

__device__ u64 line_of(u64 key, u64 lines, u64 hop)
{
#if CB_PATTERN == 0
    return permute(key, lines, hop);
#else
    u64 page = permute(key, lines / PAGE_LINES, hop / PAGE_LINES);
    return page * PAGE_LINES + permute(random_mix(key + page), PAGE_LINES, hop % PAGE_LINES);
#endif
}

/* Where the upper halves of all addresses are equal, one addition makes an address of an offset;
 * its latency (some 4 cycles) is part of a step. Chains across a multiple of 4 GiB take two. */
__device__ __forceinline__ unsigned next_near(unsigned low, unsigned high, unsigned offset)
{
    asm volatile("{ .reg .u64 at; .reg .u32 l; add.u32 l, %1, %3; mov.b64 at, {l, %2};\n" LOAD
                 ".u32 %0, [at]; }"
                 : "=r"(offset)
                 : "r"(low), "r"(high), "r"(offset));
    return offset;
}

__device__ __forceinline__ u64 next_far(u64 chain, u64 offset)
{
    asm volatile(LOAD ".u64 %0, [%1];" : "=l"(offset) : "l"(chain + offset));
    return offset;
}

__device__ __forceinline__ u64 follow_near(u64 chain, unsigned offset, int steps)
{
    unsigned low = (unsigned)chain, high = (unsigned)(chain >> 32);
#pragma unroll 1
    for (int turns = steps / 16; turns > 0; turns--)
#pragma unroll
        for (int i = 0; i < 16; i++)
            offset = next_near(low, high, offset);
#pragma unroll 1
    for (int rest = steps % 16; rest > 0; rest--)
        offset = next_near(low, high, offset);
    return offset;
}

__device__ __forceinline__ u64 follow_far(u64 chain, u64 offset, int steps)
{
#pragma unroll 1
    for (int turns = steps / 16; turns > 0; turns--)
#pragma unroll
        for (int i = 0; i < 16; i++)
            offset = next_far(chain, offset);
#pragma unroll 1
    for (int rest = steps % 16; rest > 0; rest--)
        offset = next_far(chain, offset);
    return offset;
}

/* The hops before `start`, by all threads of the block. What comes of them is used, or the loads
 * would be left out: volatile says that to the compiler, and not to the assembler. */
__device__ __forceinline__ u64 lead_in(u64 chain, u64 key, u64 lines, u64 hops, u64 start)
{
    u64 first = (start + lines - hops % lines) % lines, met = 0;
    for (u64 i = threadIdx.x; i < hops; i += THREADS) {
        u64 hop = first + i;
        met |= next_far(chain, line_of(key, lines, hop < lines ? hop : hop - lines) * LINE);
    }
    return met;
}

/* With `place` there is a block for each multiprocessor, and each of them gets one: none is done
 * before all are placed. Where their numbers are not all in use, a block is as good. */
__device__ __forceinline__ bool is_at(long long place)
{
    unsigned at, numbers;
    if (place == 0)
        return true;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(at));
    asm volatile("mov.u32 %0, %%nsmid;" : "=r"(numbers));
    __nanosleep(PLACED_NS);
    return (numbers == gridDim.x ? at : blockIdx.x) == (unsigned)((place - 1) % gridDim.x);
}

extern "C" __global__ __launch_bounds__(THREADS) void chase(const u64 *chain, u64 *end,
                                                            long long bytes, long long steps,
                                                            long long start, long long lead,
                                                            long long place)
{
    if (!is_at(place))
        return;
    u64 key = chain[KEY_WORD], lines = (u64)bytes / LINE, first = (u64)chain;
    u64 hops = (u64)lead < lines ? (u64)lead : lines;
    u64 met = lead_in(first, key, lines, hops, (u64)start % lines);
    if (met % LINE != 0) /* never: offsets are of lines */
        *end = met;
    __syncthreads();
    if (threadIdx.x != 0)
        return;
    u64 offset = line_of(key, lines, (u64)start % lines) * LINE;
    u64 last = first + (u64)bytes - 1;
    /* The lower half of an offset is all of one that stays within 4 GiB. */
    *end = first >> 32 == last >> 32 ? follow_near(first, (unsigned)offset, (int)steps)
                                     : follow_far(first, offset, (int)steps);
}
