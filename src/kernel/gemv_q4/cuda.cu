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
 * Launches overlap (kernel.h): a block asks for its first weights, which no launch writes, then
 * waits for the launch ahead, and only then reads x and later writes y, each in a thread that has
 * waited. So where two launches share a y, as those a rotation apart do, the first has ended before
 * the second writes. All else that is written lies in the block's own shared memory.
 *
 * All products are of bytes and exact. Weights are 16 * (q - 8). Activations of f32 and bf16 are
 * written, a group of 32 at a time, as integers of 29 bits and sign times a power of two, in four
 * signed digits. In a tensor core 16 rows of one group meet 8 columns: one for each digit and
 * vector. Where these leave columns empty, GROUPS groups one after the other take columns of their
 * own and zeros elsewhere, so that one accumulator holds the sums of several groups and every lane
 * scales sums that no other lane has. */

#include "kernel/twin/overlap.cuh"

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

#if __CUDA_ARCH__ >= 800
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
#define REGISTERS (64 + (__CUDA_ARCH__ >= 1000 && PLANES == 8 ? 16 : 0))
#else
#define REGISTERS (40 + 28 * TILES * CB_LOADS)
#endif
#define FIT(blocks) (THREADS * (blocks)*REGISTERS <= 65536)
/* Where launches overlap, those of the next one are there beside them. */
#define RESIDENT (OVERLAPS && FIT(2 * CB_BLOCKS) ? 2 * CB_BLOCKS : FIT(CB_BLOCKS) ? CB_BLOCKS : 1)

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
    char *x;   /* this warp's first step in the first plane */
    float *xs; /* and its scales */
    /* Of them, what this lane needs of the first step: addresses in shared memory. */
    u32 reads, reads_scales;
    u32 mine; /* of two groups: all bits where this lane brings a column of the first */
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

#include "kernel/gemv_q4/shared.cuh"

#include "kernel/gemv_q4/activations.cuh"
#include "kernel/gemv_q4/multiply.cuh"
#include "kernel/gemv_q4/weights.cuh"

/* ---- sums ---- */

/* Where among the VALUES of a tile this lane's sums go. */
static __device__ __forceinline__ int place_of_sums(void)
{
    const int lane = threadIdx.x % LANES;
    return (lane % 2 * 8 + lane / 4) * TOKENS + lane / 2 % TOKENS;
}

/* Ends a warp's part of a tile in this window: its sums go to `out`, and are zero again. */
static __device__ __forceinline__ void put(sums acc, float *out, bool add)
{
#pragma unroll
    for (int r = 0; r < TILES; r++) {
        float sum = over_lanes(acc[r]);
        if (threadIdx.x % 4 < 2 * TOKENS)
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
    let_next_begin();
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
    if (rounds == 0) { /* holds its place until then: cuda.c */
        wait_for_last();
        return;
    }
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
    const u32 puts = kept(place_of_sums());

    const activations a = {CB_ACT == ACT_F32 ? x32 : CB_ACT == ACT_Q8 ? xq : xb, x_scale, cols};
    sums acc = {};
    for (int from = 0; from < j.steps; from += CB_WARPS * j.turns) {
        cursor at = cursor_at(j, from), ahead = at;
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
        if (from == 0)
            wait_for_last();
        __syncwarp();
        bring(j, a, from, at.turns);
        __syncwarp();
        float *out = all + j.warp * VALUES + puts;
        while (at.index < j.end) {
#ifdef CB_RING
            step b;
            const int stage = r.next;
            take(r, b);
            turn_ring(r);
            if (ahead.index < j.end) { /* else nothing has to be waited for */
                released();
                fetch(j, ahead, r, stage);
                move(j, ahead);
            }
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
