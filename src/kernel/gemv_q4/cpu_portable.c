/* cpu_portable.c: gemv_q4 in plain C, written so that a compiler can use the vectors it has. */
#include <string.h>

#include "gemv_q4.h"

enum { LANES = 8 };

static void chunk_f32(float *restrict acc, const uint8_t *w, const uint16_t *scale,
                      const float *restrict x)
{
    uint32_t words[GEMV_GROUP];
    memcpy(words, w, sizeof words);
    for (int k = 0; k < GEMV_CHUNK_GROUPS; k++) {
        float sum[LANES] = {0}, s = gemv_q4__f16(scale[k]);
        for (int i = 0; i < GEMV_GROUP; i += LANES)
            for (int l = 0; l < LANES; l++)
                sum[l] +=
                    (float)((int)(words[i + l] >> (4 * k) & 15u) - 8) * x[k * GEMV_GROUP + i + l];
        for (int l = 0; l < LANES; l++)
            acc[l] += s * sum[l];
    }
}

static void chunk_bf16(float *restrict acc, const uint8_t *w, const uint16_t *scale,
                       const uint16_t *xb)
{
    float x[GEMV_CHUNK];
    for (int i = 0; i < GEMV_CHUNK; i++)
        x[i] = gemv_q4__bf16(xb[i]);
    chunk_f32(acc, w, scale, x);
}

static void chunk_q8(float *restrict acc, const uint8_t *w, const uint16_t *scale, const int8_t *xq,
                     const float *x_scale)
{
    for (int k = 0; k < GEMV_CHUNK_GROUPS; k++) {
        /* Groups 0, 1 of a line are its low nibbles, 2, 3 its high ones. */
        const uint8_t *bytes = w + k / 4 * 64 + k % 2 * GEMV_GROUP;
        int shift = k % 4 / 2 * 4;
        int32_t sum = 0;
        for (int i = 0; i < GEMV_GROUP; i++)
            sum += ((bytes[i] >> shift & 15) - 8) * xq[k * GEMV_GROUP + i];
        acc[k] += gemv_q4__f16(scale[k]) * x_scale[k] * (float)sum;
    }
}

static void chunk_all(const gemv_q4_work *work, int64_t block, int64_t c,
                      float acc[GEMV_BLOCK_MAX][GEMV_TOKENS_MAX][LANES])
{
    int full = c < work->full_chunks;
    for (int r = 0; r < work->block_rows; r++) {
        int64_t at = (block * work->chunks + c) * work->block_rows + r;
        const uint8_t *w = work->w + at * GEMV_CHUNK_BYTES;
        const uint16_t *scale = work->w_scale + at * GEMV_CHUNK_GROUPS;
        for (int t = 0; t < work->tokens; t++) {
            int64_t col = t * work->cols + c * GEMV_CHUNK;
            if (work->x != NULL)
                chunk_f32(acc[r][t], w, scale, full ? work->x + col : work->tail.x[t]);
            else if (work->xb != NULL)
                chunk_bf16(acc[r][t], w, scale, full ? work->xb + col : work->tail.xb[t]);
            else
                chunk_q8(acc[r][t], w, scale, full ? work->xq + col : work->tail.xq[t],
                         full ? work->x_scale + col / GEMV_GROUP : work->tail.x_scale[t]);
        }
    }
}

static void block_all(const gemv_q4_work *work, int64_t block)
{
    float acc[GEMV_BLOCK_MAX][GEMV_TOKENS_MAX][LANES] = {0};
    for (int64_t c = 0; c < work->chunks; c++)
        chunk_all(work, block, c, acc);
    for (int r = 0; r < work->block_rows; r++) {
        int64_t row = block * work->block_rows + r;
        if (row >= work->rows)
            break;
        for (int t = 0; t < work->tokens; t++) {
            const float *a = acc[r][t];
            work->y[row * work->tokens + t] =
                ((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7]));
        }
    }
}

static void blocks_all(const gemv_q4_work *work)
{
    for (int64_t first = work->first; first < work->blocks; first += work->stride)
        for (int64_t block = first; block < gemv_q4__grain_end(work, first); block++)
            block_all(work, block);
}

int gemv_q4__run_portable(const cb_launch *launch)
{
#define ALL_TOKENS                                                                                 \
    {                                                                                              \
        blocks_all, blocks_all                                                                     \
    }
#define ALL_SIZES                                                                                  \
    {                                                                                              \
        ALL_TOKENS, ALL_TOKENS, ALL_TOKENS, ALL_TOKENS                                             \
    }
    static gemv_q4_loops loops = {ALL_SIZES, ALL_SIZES, ALL_SIZES};
    return gemv_q4__run(launch, loops, 0);
}
