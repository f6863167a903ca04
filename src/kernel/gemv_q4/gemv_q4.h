/* gemv_q4.h: what the files of this module share: operand numbers, the walk, and the packed layout
 * of `portable` (that of the others: panel.h).
 *
 * Rows are taken in blocks of `block_rows`, columns in chunks of 256; the last block and chunk are
 * filled up with q = 8 and scale 0, which add nothing. Blocks follow each other, in a block its
 * chunks, in a chunk its rows, so a worker reads its share of `w` and of `w_scale` from first to
 * last byte:
 *
 *     w        128 bytes a row and chunk, from column c of the chunk
 *              act=f32, bf16: 32-bit word d (0..31) holds column 32*k + d in its bits 4*k .. 4*k+3
 *              act=q8:  byte e (0..63) of line j (0, 1) holds column 128*j + e in its low nibble
 *                       and column 128*j + 64 + e in its high nibble
 *     w_scale  8 f16 a row and chunk, in the order of the groups
 */
#ifndef CB_GEMV_Q4_H
#define CB_GEMV_Q4_H

#include <stdalign.h>
#include <stdint.h>

#include "coldbench/kernel.h"

enum { GEMV_ROWS, GEMV_COLS, GEMV_DIMS };
enum { GEMV_ACT, GEMV_TOKENS, GEMV_PARAMS };
enum { GEMV_ACT_F32, GEMV_ACT_Q8, GEMV_ACT_BF16, GEMV_ACTS };
enum { GEMV_W, GEMV_W_SCALE, GEMV_X, GEMV_XQ, GEMV_X_SCALE, GEMV_XB, GEMV_Y, GEMV_OPERANDS };
enum { GEMV_BLOCK_ROWS, GEMV_GRAIN_ROWS, GEMV_PREFETCH, GEMV_TUNABLES };
enum {
    GEMV_CUDA_BLOCK_ROWS,
    GEMV_CUDA_WARPS,
    GEMV_CUDA_AHEAD, /* loads, ring */
    GEMV_CUDA_BLOCKS,
    GEMV_CUDA_TUNABLES
};
enum {
    GEMV_GROUP = 32,
    GEMV_CHUNK = 256,
    GEMV_CHUNK_GROUPS = GEMV_CHUNK / GEMV_GROUP,
    GEMV_CHUNK_BYTES = GEMV_CHUNK / 2,
    GEMV_BLOCK_MAX = 8,
    GEMV_BLOCK_SIZES = 4, /* 1, 2, 4, 8 */
    GEMV_TOKENS_MAX = 2
};

/* One chunk of activations of every token, padded with zeros: what the last, partial chunk of a row
 * is multiplied with, as the operand itself ends at `cols`. */
typedef struct gemv_q4_tail {
    alignas(64) float x[GEMV_TOKENS_MAX][GEMV_CHUNK];
    alignas(64) int8_t xq[GEMV_TOKENS_MAX][GEMV_CHUNK];
    alignas(64) float x_scale[GEMV_TOKENS_MAX][GEMV_CHUNK_GROUPS];
    alignas(64) uint16_t xb[GEMV_TOKENS_MAX][GEMV_CHUNK];
} gemv_q4_tail;

/* One worker's view of a launch. */
typedef struct gemv_q4_work {
    int64_t rows, cols;
    int tokens, block_rows;
    int64_t blocks, chunks; /* padding included */
    int64_t full_chunks;    /* chunks that lie inside `cols` */
    /* This worker's blocks: `grain` of them from `first`, from first + stride, ... below `blocks`.
     */
    int64_t first, grain, stride;
    int64_t prefetch; /* bytes ahead in w */
    const uint8_t *w;
    const uint16_t *w_scale;
    const float *x;
    const int8_t *xq;
    const float *x_scale;
    const uint16_t *xb;
    float *y;
    gemv_q4_tail tail;
} gemv_q4_work;

/* Does a worker's blocks: an implementation's loop for one block size and number of tokens. */
typedef void gemv_q4_blocks(const gemv_q4_work *work);

/* Where the blocks from `first` end. */
static inline int64_t gemv_q4__grain_end(const gemv_q4_work *work, int64_t first)
{
    int64_t left = work->blocks - first;
    return first + (left < work->grain ? left : work->grain);
}

/* By act, log2 of block_rows, tokens - 1. NULL where the implementation does not cover `act`. */
typedef gemv_q4_blocks *const gemv_q4_loops[GEMV_ACTS][GEMV_BLOCK_SIZES][GEMV_TOKENS_MAX];

/* Does this worker's share of a launch with `loops`. */
int gemv_q4__run(const cb_launch *launch, gemv_q4_loops loops, int64_t prefetch);

uint64_t gemv_q4__packed_bytes(const cb_problem *problem, const int64_t *tunables, int operand);
void gemv_q4__prepare(const cb_problem *problem, const int64_t *tunables, int operand,
                      const void *logical, void *packed, int part, int parts);

uint64_t gemv_q4__bytes(const cb_problem *problem, int operand);
void gemv_q4__fill(const cb_problem *problem, uint64_t seed, int operand, uint64_t set,
                   void *logical, int part, int parts);
void gemv_q4__reference(const cb_problem *problem, const void *const *logical, int operand,
                        uint64_t first, uint64_t count, double *value, double *bound);

/* The value of an f16, exact. */
float gemv_q4__f16(uint16_t bits);

/* The value of a bf16, exact. */
static inline float gemv_q4__bf16(uint16_t bits)
{
    union {
        uint32_t word;
        float value;
    } f32 = {.word = (uint32_t)bits << 16};
    return f32.value;
}

int gemv_q4__run_portable(const cb_launch *launch);
int gemv_q4__run_avx2(const cb_launch *launch);
int gemv_q4__run_avx512(const cb_launch *launch);
int gemv_q4__run_avx512vnni(const cb_launch *launch);

/* For cuda.cu: the layout is in cuda.c, and no tunable changes it. */
uint64_t gemv_q4__cuda_packed_bytes(const cb_problem *problem, const int64_t *tunables,
                                    int operand);
void gemv_q4__cuda_prepare(const cb_problem *problem, const int64_t *tunables, int operand,
                           const void *logical, void *packed, int part, int parts);
int gemv_q4__cuda_geometry(const cb_problem *problem, const int64_t *tunables, int processors,
                           cb_geometry *out);
int gemv_q4__cuda_bulk_geometry(const cb_problem *problem, const int64_t *tunables, int processors,
                                cb_geometry *out);

/* Before a loop whose trip count is constant once inlined: arrays of vectors have to end up in
 * registers. */
#ifdef __clang__
#define GEMV_Q4_UNROLL _Pragma("clang loop unroll(full)")
#else
#define GEMV_Q4_UNROLL _Pragma("GCC unroll 32")
#endif

/* One loop function a block size and number of tokens, from `body`, an always-inline function with
 * both as constant arguments; and the two-level initialiser that names them. */
#define GEMV_Q4_LOOP(body, rows, tokens)                                                           \
    static void body##_##rows##_##tokens(const gemv_q4_work *work)                                 \
    {                                                                                              \
        body(work, rows, tokens);                                                                  \
    }
#define GEMV_Q4_LOOPS(body)                                                                        \
    GEMV_Q4_LOOP(body, 1, 1)                                                                       \
    GEMV_Q4_LOOP(body, 1, 2)                                                                       \
    GEMV_Q4_LOOP(body, 2, 1)                                                                       \
    GEMV_Q4_LOOP(body, 2, 2)                                                                       \
    GEMV_Q4_LOOP(body, 4, 1)                                                                       \
    GEMV_Q4_LOOP(body, 4, 2)                                                                       \
    GEMV_Q4_LOOP(body, 8, 1)                                                                       \
    GEMV_Q4_LOOP(body, 8, 2)
#define GEMV_Q4_TABLE(body)                                                                        \
    {                                                                                              \
        {body##_1_1, body##_1_2}, {body##_2_1, body##_2_2}, {body##_4_1, body##_4_2},              \
        {                                                                                          \
            body##_8_1, body##_8_2                                                                 \
        }                                                                                          \
    }

#endif
