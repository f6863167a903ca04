/* multiply.cuh: a step of weights times x, by tensor cores or without. Part of cuda.cu. */
#ifndef COLDBENCH_KERNEL_GEMV_Q4_MULTIPLY_CUH
#define COLDBENCH_KERNEL_GEMV_Q4_MULTIPLY_CUH

/* acc[tile][row, row below][token, where a lane has several] */
typedef float sums[TILES][2][2];

static __device__ __forceinline__ float f16(u32 word, int upper)
{
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"((u16)(upper ? word >> 16 : word)));
    return value;
}

static __device__ __forceinline__ u32 low_nibbles(u32 word)
{
    return word << 4 & 0xf0f0f0f0u;
}

static __device__ __forceinline__ u32 high_nibbles(u32 word)
{
    return word & 0xf0f0f0f0u;
}

#if TENSOR
static __device__ __forceinline__ void mma(int c[4], u32 up, u32 down, u32 b0, u32 b1)
{
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(low_nibbles(up)), "r"(low_nibbles(down)), "r"(high_nibbles(up)),
          "r"(high_nibbles(down)), "r"(b0), "r"(b1));
}

/* Sums of one slot, of row or row below, to where they belong. */
static __device__ __forceinline__ void add(float acc[2], int c0, int c1, float w_scale,
                                           const float x_scale[2])
{
#if CB_ACT == 1
    acc[0] += (w_scale * x_scale[0]) * (float)c0;
    if (TOKENS == 2)
        acc[1] += (w_scale * x_scale[1]) * (float)c1;
#else
    acc[0] += (w_scale * x_scale[0]) * (float)(c0 * 256 + c1);
#endif
}

/* As the tensor core has it, lane l brings column l / 4 of the second operand, and gets columns
 * 2 * (l % 4) and the next of the sums. */
static __device__ __forceinline__ int brought(void)
{
    return threadIdx.x % LANES / 4;
}

static __device__ __forceinline__ void find(job &j)
{
    const int quarter = threadIdx.x % 4, gets = quarter * 2 / COLUMNS;
    const int plane = PLANES == 1 ? 0 : brought() % COLUMNS;
    const int token = DIGITS == 4 && TOKENS == 2 ? quarter / 2 : 0;
    const char *reads = j.x + plane * plane_bytes(j) + place(brought() / COLUMNS, quarter);
    j.reads = kept(shared_address(reads));
    j.reads_scales = kept(shared_address(j.xs + token * token_scales(j) + gets * SLOTS));
    j.mine = kept(brought() / COLUMNS == 0 ? ~0u : 0);
}

/* What of this lane's bytes counts where group n of a slot is multiplied: all, or nothing. */
static __device__ __forceinline__ u32 of_group(const job &j, int n, u32 bytes)
{
    if (GROUPS == 1)
        return bytes;
    if (GROUPS == 2)
        return bytes & (n == 0 ? j.mine : ~j.mine);
    return brought() / COLUMNS == n ? bytes : 0;
}

/* Adds up the groups of a slot, of which this lane's column has one. */
static __device__ __forceinline__ void slot_sums(const job &j, const u32 w[2][2][4], int slot,
                                                 u32 b0, u32 b1, int c[4])
{
#pragma unroll
    for (int i = 0; i < 4; i++)
        c[i] = 0;
#pragma unroll
    for (int n = 0; n < GROUPS; n++) {
        const int g = slot * GROUPS + n;
        mma(c, w[g / 4][0][g % 4], w[g / 4][1][g % 4], of_group(j, n, b0), of_group(j, n, b1));
    }
}

/* Slots on their way through the tensor core together: more where a step's registers are few. */
#ifdef CB_RING
#define BATCH (SLOTS < 4 ? SLOTS : 4)
#else
#define BATCH 2
#endif

static __device__ __forceinline__ void read_scales(u32 at, float to[BATCH])
{
    if (BATCH == 2) {
        const uint2 q = shared8(at);
        to[0] = __uint_as_float(q.x), to[1] = __uint_as_float(q.y);
    } else {
        const uint4 q = shared16(at);
        to[0] = __uint_as_float(q.x), to[1] = __uint_as_float(q.y);
        to[2 % BATCH] = __uint_as_float(q.z), to[3 % BATCH] = __uint_as_float(q.w);
    }
}

static __device__ __forceinline__ void multiply(const job &j, const step &b, int turn, sums acc)
{
    const bool second = DIGITS == 1 && TOKENS == 2; /* a lane has sums of both */
    const u32 scales = j.reads_scales + turn * STEP_GROUPS * 4;
#pragma unroll
    for (int first = 0; first < SLOTS; first += BATCH) {
        float xs[2][BATCH];
        read_scales(scales + first * 4, xs[0]);
        if (second)
            read_scales(scales + (token_scales(j) + first) * 4, xs[1]);
        u32 v[BATCH][2];
#pragma unroll
        for (int i = 0; i < BATCH; i += 2) {
            const uint4 q = shared16(j.reads + turn * STEP + (first + i) * 32);
            v[i][0] = q.x, v[i][1] = q.y, v[i + 1][0] = q.z, v[i + 1][1] = q.w;
        }
#pragma unroll
        for (int r = 0; r < TILES; r++) {
            int c[BATCH][4];
#pragma unroll
            for (int i = 0; i < BATCH; i++)
                slot_sums(j, b.w[r], first + i, v[i][0], v[i][1], c[i]);
#pragma unroll
            for (int i = 0; i < BATCH; i++) {
                const int slot = first + i;
                const float x_scale[2] = {xs[0][i], second ? xs[1][i] : 0};
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    const int number = h * SLOTS + slot;
                    add(acc[r][h], c[i][2 * h], c[i][2 * h + 1],
                        f16(b.s[r][number / 2], number % 2), x_scale);
                }
            }
        }
    }
}

/* Of a row and the one 8 below: even lanes get the sum of two lanes for the first, odd ones for the
 * second. */
static __device__ __forceinline__ float halve(float up, float down)
{
    const bool odd = threadIdx.x % 2;
    return (odd ? down : up) + __shfl_xor_sync(0xffffffffu, odd ? up : down, 1);
}

/* Adds up over the lanes that have parts of the sums. Lane l of four gets those of row l % 2, token
 * l / 2. */
static __device__ __forceinline__ float over_lanes(const float acc[2][2])
{
#if CB_ACT == 1 && TOKENS == 2
    const bool second = threadIdx.x / 2 % 2;
    const float a = halve(acc[0][0], acc[1][0]), b = halve(acc[0][1], acc[1][1]);
    return (second ? b : a) + __shfl_xor_sync(0xffffffffu, second ? a : b, 2);
#elif CB_ACT == 1
    const float sum = halve(acc[0][0], acc[1][0]);
    return sum + __shfl_xor_sync(0xffffffffu, sum, 2);
#else
    const float up = threadIdx.x % 2 ? 1.0f : 0x1p15f; /* even lanes have the upper two digits */
    const float sum = halve(acc[0][0] * up, acc[1][0] * up);
    return TOKENS == 2 ? sum : sum + __shfl_xor_sync(0xffffffffu, sum, 2);
#endif
}

#else /* without tensor cores: a lane's own eight columns of every group */

static __device__ __forceinline__ int dot8(u32 word, uint2 x)
{
    int sum = 0;
    asm("dp4a.s32.s32 %0, %1, %2, %0;" : "+r"(sum) : "r"(low_nibbles(word)), "r"(x.x));
    asm("dp4a.s32.s32 %0, %1, %2, %0;" : "+r"(sum) : "r"(high_nibbles(word)), "r"(x.y));
    return sum;
}

static __device__ __forceinline__ float dot(u32 word, const uint2 x[DIGITS])
{
#if CB_ACT == 1
    return (float)dot8(word, x[0]);
#else
    float upper = (float)(dot8(word, x[0]) * 256 + dot8(word, x[1]));
    return upper * 0x1p15f + (float)(dot8(word, x[2]) * 256 + dot8(word, x[3]));
#endif
}

static __device__ __forceinline__ void multiply(const job &j, const step &b, int turn, sums acc)
{
    const int lane = threadIdx.x % LANES;
#pragma unroll
    for (int g = 0; g < STEP_GROUPS; g++) {
        asm volatile("" : : : "memory"); /* the groups' loads one after the other: registers */
        const int place_of_scale = g % GROUPS * SLOTS + g / GROUPS;
#pragma unroll
        for (int token = 0; token < TOKENS; token++) {
            const char *from =
                j.x + token * DIGITS * plane_bytes(j) + turn * STEP + place(g, lane % 4);
            uint2 v[DIGITS];
#pragma unroll
            for (int d = 0; d < DIGITS; d++)
                v[d] = *(const uint2 *)(from + d * plane_bytes(j));
            const float x_scale =
                j.xs[token * token_scales(j) + turn * STEP_GROUPS + place_of_scale];
#pragma unroll
            for (int r = 0; r < TILES; r++)
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    int number = (g % GROUPS * 2 + h) * SLOTS + g / GROUPS;
                    acc[r][h][token] += f16(b.s[r][number / 2], number % 2) * x_scale *
                                        dot(b.w[r][g / 4][h][g % 4], v);
                }
        }
    }
}

static __device__ __forceinline__ void find(job &)
{
}

static __device__ __forceinline__ float over_lanes(const float acc[2][2])
{
    float mine = 0;
#pragma unroll
    for (int i = 0; i < 2 * TOKENS; i++) {
        float sum = acc[i % 2][i / 2];
        sum += __shfl_xor_sync(0xffffffffu, sum, 1);
        sum += __shfl_xor_sync(0xffffffffu, sum, 2);
        if (threadIdx.x % (2 * TOKENS) == i)
            mine = sum;
    }
    return mine;
}
#endif

#endif
