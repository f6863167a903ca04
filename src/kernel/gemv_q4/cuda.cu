/* cuda.cu: gemv_q4 for NVIDIA GPUs, in CUDA C without a vendor's header.
 *
 * Weights are taken in tiles of 16 rows and steps of 256 columns, packed as cuda.c says. The warps
 * of a block share rows: each takes every CB_WARPSth step of the tile. A block stays for several
 * rounds of tiles. Weights are read once, ahead across tiles: CB_LOADS steps in registers, or with
 * CB_RING that many steps in shared memory, where a step is asked for as soon as the one before it
 * in its place is in registers. A warp brings the activations of its own steps to shared memory, so
 * that no warp waits for another before the end; where a row is too long for that, in several
 * windows of columns.
 *
 * All products are of bytes and exact. Weights are 16 * (q - 8). Activations of f32 and bf16 are
 * written, a group of 32 at a time, as integers of 29 bits and sign times a power of two, in four
 * signed digits. In a tensor core 16 rows of one group meet 8 columns: one for each digit and
 * vector. Where these leave columns empty, GROUPS groups one after the other take columns of their
 * own and zeros elsewhere, so that one accumulator holds the sums of several groups and every lane
 * scales sums that no other lane has. */

enum { ACT_F32, ACT_Q8, ACT_BF16 };
enum {
    LANES = 32,
    TILE_ROWS = 16,
    STEP = 256,
    GROUP = 32,
    STEP_GROUPS = STEP / GROUP,
    STEP_W_BYTES = TILE_ROWS * STEP / 2,
    STEP_SCALE_BYTES = TILE_ROWS * STEP_GROUPS * 2
};

#define TOKENS CB_TOKENS
#define DIGITS (CB_ACT == 1 ? 1 : 4)
#define PLANES (DIGITS * TOKENS)
#define COLUMNS (PLANES < 2 ? 2 : PLANES) /* of the tensor core, a group */
#define GROUPS (8 / COLUMNS)              /* that share an accumulator; as in cuda.c */
#define SLOTS (STEP_GROUPS / GROUPS)      /* accumulators a row and step */
#define WINDOW_STEPS ((DIGITS == 1 ? 160 : 44) / TOKENS)
#define WINDOW_TURNS (WINDOW_STEPS < CB_WARPS ? 1 : WINDOW_STEPS / CB_WARPS) /* as in cuda.c */

#define TILES (CB_BLOCK_ROWS / 16)      /* of TILE_ROWS, that a warp takes at once */
#define VALUES (CB_BLOCK_ROWS * TOKENS) /* of y from them */
#define THREADS (CB_WARPS * LANES)

#if __CUDA_ARCH__ >= 800 && !defined(GEMV_Q4_NO_TENSOR)
#define TENSOR 1
#define SCALE_WORDS (SLOTS)
#else
#define TENSOR 0
#define SCALE_WORDS (STEP_GROUPS)
#endif

/* Registers that a lane needs without going to memory, as compiled for 8.0 to 12.0; CB_BLOCKS
 * blocks are asked for only where they have that many. */
#if !TENSOR
#define REGISTERS 256
#elif defined(CB_RING)
#define REGISTERS (40 + 24 * TILES + (__CUDA_ARCH__ >= 1000 ? 16 : 0))
#elif TILES * CB_LOADS == 1
#define REGISTERS 64
#else
#define REGISTERS (40 + 28 * TILES * CB_LOADS)
#endif
#define RESIDENT (THREADS * CB_BLOCKS * REGISTERS <= 65536 ? CB_BLOCKS : 1)

/* Planes of x in shared memory are an odd multiple of 64 bytes apart, so that two of them are read
 * without a bank conflict. */
enum { PLANE_GAP = 64 };

typedef unsigned int u32;
typedef unsigned short u16;

/* One launch as a warp sees it. */
struct job {
    const char *w, *w_scale;
    int steps, end; /* of a tile, of the matrix */
    int stride;     /* steps between this block's rounds */
    int turns;      /* steps of a warp whose x is held at once, at most */
    int warp;
    char *x;           /* this warp's first step in the first plane */
    float *xs;         /* and its scales */
    const char *reads; /* of them, what this lane needs of the first step */
    const float *reads_scales;
};

/* Where in its walk a warp is: rounds, and in each its `turns` steps of this window. */
struct cursor {
    int index; /* step of the matrix */
    int turn, turns;
};

/* What a lane holds of a step: of each half, of its row and the row 8 below, a word of each of four
 * groups; and pairs of scales. */
struct step {
    u32 w[TILES][2][2][4];
    u32 s[TILES][SCALE_WORDS];
};

/* ---- memory ---- */

#ifndef CB_RING
static __device__ __forceinline__ void stream16(u32 *v, const char *p)
{
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
                 : "l"(p));
}

#if TENSOR && GROUPS == 4
static __device__ __forceinline__ void stream8(u32 *v, const char *p)
{
    asm volatile("ld.global.nc.L1::no_allocate.v2.u32 {%0,%1}, [%2];"
                 : "=r"(v[0]), "=r"(v[1])
                 : "l"(p));
}
#endif
#endif

/* Volatile, as what streams is: x is asked for first and does not wait behind it. */
#if CB_ACT == 1
static __device__ __forceinline__ uint2 load8(const void *p)
{
    uint2 v;
    asm volatile("ld.global.nc.v2.u32 {%0,%1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(p));
    return v;
}
#else
static __device__ __forceinline__ uint4 load16(const void *p)
{
    uint4 v;
    asm volatile("ld.global.nc.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(p));
    return v;
}
#endif

/* ---- the walk ---- */

/* The first of this warp's steps in the window from step `from` of a tile on; past the end if it
 * has none. */
static __device__ __forceinline__ cursor cursor_at(const job &j, int from)
{
    int turns = (j.steps - from - j.warp + CB_WARPS - 1) / CB_WARPS;
    turns = turns < j.turns ? turns : j.turns;
    cursor c = {turns > 0 ? (int)blockIdx.x * TILES * j.steps + from + j.warp : j.end, 0, turns};
    return c;
}

static __device__ __forceinline__ void move(const job &j, cursor &c)
{
    c.index += CB_WARPS;
    if (++c.turn == c.turns) {
        c.turn = 0;
        c.index += j.stride - c.turns * CB_WARPS;
    }
}

#ifndef CB_RING
static __device__ __forceinline__ void fetch_tile(const char *w, const char *s, u32 into[2][2][4],
                                                  u32 *scales)
{
    const int lane = threadIdx.x % LANES;
#pragma unroll
    for (int i = 0; i < 4; i++)
        stream16(into[i / 2][i % 2], w + (i * LANES + lane) * 16);
#if !TENSOR || GROUPS == 1
    stream16(scales, s + lane / 4 * 32);
    stream16(scales + 4, s + lane / 4 * 32 + 16);
#elif GROUPS == 2
    stream16(scales, s + lane / 2 * 16);
#else
    stream8(scales, s + lane * 8);
#endif
}

static __device__ __forceinline__ void fetch(const job &j, const cursor &c, step &out)
{
    if (c.index >= j.end)
        return;
#pragma unroll
    for (int r = 0; r < TILES; r++) {
        int index = c.index + r * j.steps;
        if (r > 0 && index >= j.end) /* no second tile: the first again */
            index = c.index;
        fetch_tile(j.w + (long long)index * STEP_W_BYTES,
                   j.w_scale + (long long)index * STEP_SCALE_BYTES, out.w[r], out.s[r]);
    }
}

#else /* through shared memory, by the engine that copies whole steps */

#if __CUDA_ARCH__ < 900
#error "CB_RING needs compute capability 9.0"
#endif

#define RING_TILE (STEP_W_BYTES + STEP_SCALE_BYTES)
#define RING_STAGE (TILES * RING_TILE)

/* A warp's stages of weights on their way, and one barrier each that counts bytes. */
struct ring {
    char *stages;
    u32 barriers; /* address in shared memory */
    int next;     /* stage that is read next */
    u32 phase;
};

static __device__ __forceinline__ u32 shared_address(const void *p)
{
    return (u32)__cvta_generic_to_shared(p);
}

static __device__ __forceinline__ void ring_init(ring &r, char *stages, char *barriers)
{
    r.stages = stages;
    r.barriers = shared_address(barriers);
    r.next = 0;
    r.phase = 0;
    if (threadIdx.x % LANES < CB_RING)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;"
                     :
                     : "r"(r.barriers + threadIdx.x % LANES * 8)
                     : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" : : : "memory");
    __syncwarp();
}

static __device__ __forceinline__ void copy(u32 to, const char *from, int bytes, u32 barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];"
                 :
                 : "r"(to), "l"(from), "r"(bytes), "r"(barrier)
                 : "memory");
}

/* One lane of the warp, in a way that leaves the addresses uniform for the compiler. */
static __device__ __forceinline__ bool elected(void)
{
    u32 yes;
    asm volatile("{\n"
                 ".reg .pred chosen;\n"
                 "elect.sync _|chosen, 0xffffffff;\n"
                 "selp.u32 %0, 1, 0, chosen;\n"
                 "}"
                 : "=r"(yes));
    return yes != 0;
}

/* Asks for a step into a stage that no lane reads any more. */
static __device__ __forceinline__ void fetch(const job &j, const cursor &c, const ring &ring,
                                             int stage)
{
    if (c.index >= j.end || !elected())
        return;
    const u32 barrier = ring.barriers + stage * 8;
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 :
                 : "r"(barrier), "r"(RING_STAGE)
                 : "memory");
#pragma unroll
    for (int r = 0; r < TILES; r++) {
        int index = c.index + r * j.steps;
        if (r > 0 && index >= j.end) /* no second tile: the first again */
            index = c.index;
        const u32 to = shared_address(ring.stages + stage * RING_STAGE + r * RING_TILE);
        copy(to, j.w + (long long)index * STEP_W_BYTES, STEP_W_BYTES, barrier);
        copy(to + STEP_W_BYTES, j.w_scale + (long long)index * STEP_SCALE_BYTES, STEP_SCALE_BYTES,
             barrier);
    }
}

static __device__ __forceinline__ void read16(u32 *v, const char *p)
{
    uint4 q = *(const uint4 *)p;
    v[0] = q.x, v[1] = q.y, v[2] = q.z, v[3] = q.w;
}

/* Waits for the next stage and takes it to registers. All reads are done when it returns: the copy
 * that fills the stage again is not ordered behind reads that are still on their way. */
static __device__ __forceinline__ void take(ring &ring, step &out)
{
    const int lane = threadIdx.x % LANES;
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again;\n"
                 "}"
                 :
                 : "r"(ring.barriers + ring.next * 8), "r"(ring.phase)
                 : "memory");
#pragma unroll
    for (int r = 0; r < TILES; r++) {
        const char *from = ring.stages + ring.next * RING_STAGE + r * RING_TILE;
#pragma unroll
        for (int i = 0; i < 4; i++)
            read16(out.w[r][i / 2][i % 2], from + (i * LANES + lane) * 16);
        from += STEP_W_BYTES;
#if !TENSOR || GROUPS == 1
        read16(out.s[r], from + lane / 4 * 32);
        read16(out.s[r] + 4, from + lane / 4 * 32 + 16);
#elif GROUPS == 2
        read16(out.s[r], from + lane / 2 * 16);
#else
        uint2 q = *(const uint2 *)(from + lane * 8);
        out.s[r][0] = q.x, out.s[r][1] = q.y;
#endif
    }
    asm volatile("fence.proxy.async.shared::cta;" : : : "memory");
    __syncwarp();
}

static __device__ __forceinline__ void turn_ring(ring &ring)
{
    if (++ring.next == CB_RING) {
        ring.next = 0;
        ring.phase ^= 1;
    }
}
#endif

/* ---- activations ---- */

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

/* ---- one step ---- */

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
    j.reads = j.x + plane * plane_bytes(j) + place(brought() / COLUMNS, quarter);
    j.reads_scales = j.xs + token * token_scales(j) + gets * SLOTS;
}

/* Adds up the groups of a slot, of which this lane's column has one. */
static __device__ __forceinline__ void slot_sums(const u32 w[2][2][4], int slot, u32 b0, u32 b1,
                                                 int c[4])
{
#pragma unroll
    for (int i = 0; i < 4; i++)
        c[i] = 0;
#pragma unroll
    for (int n = 0; n < GROUPS; n++) {
        const int g = slot * GROUPS + n;
        const bool mine = GROUPS == 1 || brought() / COLUMNS == n;
        mma(c, w[g / 4][0][g % 4], w[g / 4][1][g % 4], mine ? b0 : 0, mine ? b1 : 0);
    }
}

/* Slots on their way through the tensor core together: more where a step's registers are few. */
#ifdef CB_RING
#define BATCH (SLOTS < 4 ? SLOTS : 4)
#else
#define BATCH 2
#endif

static __device__ __forceinline__ void multiply(const job &j, const step &b, int turn, sums acc)
{
    const float *scales = j.reads_scales + turn * STEP_GROUPS;
#pragma unroll
    for (int first = 0; first < SLOTS; first += BATCH) {
        u32 v[BATCH][2];
#pragma unroll
        for (int i = 0; i < BATCH; i += 2) {
            const uint4 q = *(const uint4 *)(j.reads + turn * STEP + (first + i) * 32);
            v[i][0] = q.x, v[i][1] = q.y, v[i + 1][0] = q.z, v[i + 1][1] = q.w;
        }
#pragma unroll
        for (int r = 0; r < TILES; r++) {
            int c[BATCH][4];
#pragma unroll
            for (int i = 0; i < BATCH; i++)
                slot_sums(b.w[r], first + i, v[i][0], v[i][1], c[i]);
#pragma unroll
            for (int i = 0; i < BATCH; i++) {
                const int slot = first + i;
                const float x_scale[2] = {
                    scales[slot], DIGITS == 1 && TOKENS == 2 ? scales[token_scales(j) + slot] : 0};
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

/* ---- sums ---- */

/* Ends a warp's part of a tile in this window: its sums go to `out`, and are zero again. */
static __device__ __forceinline__ void put(sums acc, float *out, bool add)
{
    const int lane = threadIdx.x % LANES;
    out += (lane % 2 * 8 + lane / 4) * TOKENS + lane / 2 % TOKENS;
#pragma unroll
    for (int r = 0; r < TILES; r++) {
        float sum = over_lanes(acc[r]);
        if (lane % 4 < 2 * TOKENS)
            out[r * TILE_ROWS * TOKENS] = add ? out[r * TILE_ROWS * TOKENS] + sum : sum;
#pragma unroll
        for (int i = 0; i < 4; i++)
            acc[r][i / 2][i % 2] = 0;
    }
}

/* Adds up what the warps have, all[round][warp][value], and writes y. */
static __device__ __forceinline__ void finish(const job &j, const float *all, int rounds, float *y,
                                              long long rows)
{
    for (int i = threadIdx.x; i < rounds * VALUES; i += THREADS) {
        int round = i / VALUES, value = i % VALUES;
        float part[4] = {0, 0, 0, 0};
#pragma unroll
        for (int m = 0; m < CB_WARPS; m++)
            if (m < j.steps) /* others had nothing to do */
                part[m % 4] += all[(round * CB_WARPS + m) * VALUES + value];
        const float sum = (part[0] + part[1]) + (part[2] + part[3]);
        long long row = (long long)(blockIdx.x + round * gridDim.x) * CB_BLOCK_ROWS;
        row += value / TOKENS;
        if (row < rows)
            y[row * TOKENS + value % TOKENS] = sum;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
    gemv_q4(const char *w, const char *w_scale, const char *x32, const char *xq,
            const float *x_scale, const char *xb, float *y, long long rows, long long cols)
{
    extern __shared__ uint4 shared[];
    const int tiles = (int)((rows + TILE_ROWS - 1) / TILE_ROWS);
    job j;
    j.w = w;
    j.w_scale = w_scale;
    j.steps = (int)((cols + STEP - 1) / STEP);
    j.end = tiles * j.steps;
    j.stride = gridDim.x * TILES * j.steps;
    j.warp = __shfl_sync(0xffffffffu, threadIdx.x / LANES, 0); /* uniform, and known to be */
    j.turns = (j.steps + CB_WARPS - 1) / CB_WARPS;
    j.turns = j.turns < WINDOW_TURNS ? j.turns : WINDOW_TURNS;
    char *x = (char *)shared;
    const int rounds = (tiles + TILES * (gridDim.x - blockIdx.x) - 1) / (TILES * gridDim.x);
#ifdef CB_RING
    ring r;
    char *barriers = x + CB_WARPS * CB_RING * RING_STAGE;
    ring_init(r, x + j.warp * CB_RING * RING_STAGE, barriers + j.warp * CB_RING * 8);
    x = barriers + CB_WARPS * CB_RING * 8;
#else
    step buffer[CB_LOADS];
#endif
    j.x = x + j.warp * j.turns * STEP;
    float *scales = (float *)(x + PLANES * plane_bytes(j));
    j.xs = scales + j.warp * j.turns * STEP_GROUPS;
    float *all = scales + TOKENS * token_scales(j);
    find(j);

    const activations a = {CB_ACT == ACT_F32 ? x32 : CB_ACT == ACT_Q8 ? xq : xb, x_scale, cols};
    sums acc = {};
    for (int from = 0; from < j.steps; from += CB_WARPS * j.turns) {
        cursor at = cursor_at(j, from), ahead = at;
        /* x first, then weights, then all that takes time. */
        raw early = ask(a, 0, from + j.warp);
#ifdef CB_RING
        for (int i = 0; i < CB_RING; i++) {
            int stage = r.next + i;
            fetch(j, ahead, r, stage < CB_RING ? stage : stage - CB_RING);
            move(j, ahead);
        }
#else
#pragma unroll
        for (int i = 0; i < CB_LOADS; i++) {
            fetch(j, ahead, buffer[i]);
            move(j, ahead);
        }
#endif
        __syncwarp();
#pragma unroll
        for (int token = 0; token < TOKENS; token++)
            for (int turn = 0; turn < at.turns; turn++)
                store(j,
                      token == 0 && turn == 0 ? early
                                              : ask(a, token, from + turn * CB_WARPS + j.warp),
                      token, turn);
        __syncwarp();
        float *out = all + j.warp * VALUES;
        while (at.index < j.end) {
#ifdef CB_RING
            step b;
            take(r, b);
            fetch(j, ahead, r, r.next);
            turn_ring(r);
            move(j, ahead);
            multiply(j, b, at.turn, acc);
            if (at.turn == at.turns - 1) {
                put(acc, out, from > 0);
                out += CB_WARPS * VALUES;
            }
            move(j, at);
#else
#pragma unroll
            for (int i = 0; i < CB_LOADS; i++) {
                if (at.index < j.end)
                    multiply(j, buffer[i], at.turn, acc);
                fetch(j, ahead, buffer[i]);
                move(j, ahead);
                if (at.index < j.end && at.turn == at.turns - 1) {
                    put(acc, out, from > 0);
                    out += CB_WARPS * VALUES;
                }
                move(j, at);
            }
#endif
        }
    }
    __syncthreads();
    finish(j, all, rounds, y, rows);
}
