/* activations.cuh: x in shared memory, as multiply.cuh reads it. Part of cuda.cu. */
#ifndef COLDBENCH_KERNEL_GEMV_Q4_ACTIVATIONS_CUH
#define COLDBENCH_KERNEL_GEMV_Q4_ACTIVATIONS_CUH

/* Volatile, so that no load is moved up over the wait for the launch before, and plain ones, since
 * x may be written while this launch runs already. */
#if CB_ACT == 1
static __device__ __forceinline__ uint2 load8(const void *p)
{
    uint2 v;
    asm volatile("ld.global.v2.u32 {%0,%1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(p));
    return v;
}
#else
static __device__ __forceinline__ uint4 load16(const void *p)
{
    uint4 v;
    asm volatile("ld.global.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(p));
    return v;
}
#endif

/* From one plane of x to the next. */
static __device__ __forceinline__ int plane_bytes(const job &j)
{
    return CB_WARPS * j.turns * STEP + PLANE_GAP;
}

/* From the scales of one token to those of the next. A step has [GROUPS][SLOTS] of them. */
static __device__ __forceinline__ int token_scales(const job &j)
{
    return CB_WARPS * j.turns * STEP_GROUPS;
}

/* Where in a step of a plane eight columns of a group lie: a lane's slots side by side, in twos. */
static __device__ __forceinline__ int place(int group, int quarter)
{
    int slot = group / GROUPS;
    return ((group % GROUPS * (SLOTS / 2) + slot / 2) * 4 + quarter) * 16 + slot % 2 * 8;
}

/* Eight columns of x as they come. */
struct raw {
#if CB_ACT == 0
    uint4 a, b;
#elif CB_ACT == 1
    uint2 a;
    float scale;
#else
    uint4 a;
#endif
};

struct activations {
    const char *x; /* elements of act's type */
    const float *x_scale;
    long long cols;
};

/* This lane's eight columns of step `at` of the rows; zeros past the last column. */
static __device__ __forceinline__ raw ask(const activations &a, int token, int at)
{
    raw v = {};
    const long long column = (long long)at * STEP + threadIdx.x % LANES * 8;
    const long long element = token * a.cols + column;
    if (column < a.cols) {
#if CB_ACT == 0
        v.a = load16(a.x + element * 4);
        v.b = load16(a.x + element * 4 + 16);
#elif CB_ACT == 1
        v.a = load8(a.x + element);
        v.scale = a.x_scale[element / GROUP];
#else
        v.a = load16(a.x + element * 2);
#endif
    }
    return v;
}

#if CB_ACT != 1
static __device__ __forceinline__ u32 larger(u32 a, u32 b)
{
    return a > b ? a : b;
}

/* The lower halves of four words, byte by byte: the upper bytes to out[0], the lower to out[1]. */
static __device__ __forceinline__ void bytes_of(const float v[4], u32 out[2])
{
    u32 a = __byte_perm(__float_as_uint(v[0]), __float_as_uint(v[1]), 0x5140);
    u32 b = __byte_perm(__float_as_uint(v[2]), __float_as_uint(v[3]), 0x5140);
    out[0] = __byte_perm(a, b, 0x7632) ^ 0x80808080u;
    out[1] = __byte_perm(a, b, 0x5410) ^ 0x80808080u;
}

/* Four values below 2^29 / up as four signed digits each, the highest first. An integer that is
 * added to 1.5 * 2^23 stands in the low bits of the sum; with 0x8080 more, the bytes there are its
 * two signed digits, each plus 128. */
static __device__ __forceinline__ void digits(const float x[4], float up, u32 out[4])
{
    const float magic = 12582912.0f + 32896.0f;
    float upper[4], lower[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        float v = x[i] * up; /* exact */
        upper[i] = v * 0x1p-15f + magic;
        lower[i] = (v - (upper[i] - magic) * 0x1p15f) + magic;
    }
    bytes_of(upper, out);
    bytes_of(lower, out + 2);
}

static __device__ __forceinline__ void values(const raw &v, float x[8])
{
#if CB_ACT == 0
    const u32 bits[8] = {v.a.x, v.a.y, v.a.z, v.a.w, v.b.x, v.b.y, v.b.z, v.b.w};
#else
    const u32 bits[8] = {v.a.x << 16, v.a.x & 0xffff0000u, v.a.y << 16, v.a.y & 0xffff0000u,
                         v.a.z << 16, v.a.z & 0xffff0000u, v.a.w << 16, v.a.w & 0xffff0000u};
#endif
#pragma unroll
    for (int i = 0; i < 8; i++)
        x[i] = __uint_as_float(bits[i]);
}
#endif

/* Brings a lane's eight columns of the warp's step `turn` to shared memory. Four lanes have a
 * group. */
static __device__ __forceinline__ void store(const job &j, const raw &v, int token, int turn)
{
    const int group = threadIdx.x % LANES / 4, quarter = threadIdx.x % 4;
    char *to = j.x + token * DIGITS * plane_bytes(j) + turn * STEP + place(group, quarter);
    float scale;
#if CB_ACT == 1
    *(uint2 *)to = v.a;
    scale = v.scale * 0.0625f; /* a byte of w is 16 times what it stands for */
#else
    float x[8];
    u32 most = 0;
    values(v, x);
#pragma unroll
    for (int i = 0; i < 8; i++)
        most = larger(most, __float_as_uint(x[i]) & 0x7fffffffu);
    most = larger(most, __shfl_xor_sync(0xffffffffu, most, 1));
    most = larger(most, __shfl_xor_sync(0xffffffffu, most, 2));
    /* x < 2^(exponent - 126) becomes an integer below 2^29. Groups below 2^-91 are taken as if
     * their largest were that, so that both factors are normal. */
    u32 exponent = larger(most >> 23, 35);
    float up = __uint_as_float((282 - exponent) << 23);
    scale = exponent == 255 ? __uint_as_float(0x7fffffffu) /* not finite in, not finite out */
                            : __uint_as_float((exponent - 32) << 23); /* and a sixteenth */
    u32 left[4], right[4];
    digits(x, up, left);
    digits(x + 4, up, right);
#pragma unroll
    for (int d = 0; d < 4; d++)
        *(uint2 *)(to + d * plane_bytes(j)) = make_uint2(left[d], right[d]);
#endif
    if (quarter == 0)
        j.xs[token * token_scales(j) + turn * STEP_GROUPS + group % GROUPS * SLOTS +
             group / GROUPS] = scale;
}

/* Steps of x that a lane has on their way, as far as registers go: a launch that waited for the one
 * ahead has nothing else to do meanwhile. */
#if defined(CB_RING) && CB_ACT == 1
#define X_AHEAD 4
#elif defined(CB_RING) && CB_ACT == 2
#define X_AHEAD 2
#else
#define X_AHEAD 1
#endif

/* Brings x of a warp's `turns` steps from step `from` on to shared memory. */
static __device__ __forceinline__ void bring(const job &j, const activations &a, int from,
                                             int turns)
{
#pragma unroll
    for (int token = 0; token < TOKENS; token++) {
#pragma unroll 1
        for (int turn = 0; turn < turns; turn += X_AHEAD) {
            raw v[X_AHEAD];
#pragma unroll
            for (int i = 0; i < X_AHEAD; i++)
                if (turn + i < turns)
                    v[i] = ask(a, token, from + (turn + i) * CB_WARPS + j.warp);
#pragma unroll
            for (int i = 0; i < X_AHEAD; i++)
                if (turn + i < turns)
                    store(j, v[i], token, turn + i);
        }
    }
}

#endif
