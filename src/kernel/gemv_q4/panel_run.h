/* panel_run.h: the loops over the layout of panel.h, for the vectors the file is compiled for. */
#ifndef CB_GEMV_Q4_PANEL_RUN_H
#define CB_GEMV_Q4_PANEL_RUN_H

#include "vector.h"

enum { VECTORS_MAX = LANES / 4 };

typedef struct step_dots {
    vec digit[VECTORS_MAX][GEMV_TOKENS_MAX][DIGITS_F32];
} step_dots;

/* The offset that digit `d` begins with: one for two digits. */
GEMV_INLINE const uint32_t *digit_offset(const uint32_t *x, const int groups, const int digits,
                                         const int d)
{
    return d % 2 == 0 ? x + (PANEL_OFFSET(digits) + d / 2) * groups : NULL;
}

/* The dot products of `vectors` vectors of one step; `stride` of them make the step. Lines are read
 * in their order in memory: with the four lines of a vector after each other, 256 bytes apart from
 * the next vector's, act=q8 had 0.87 of a plain read where it has 0.97 so (cold, Zen 4, 2-core VM,
 * 2026-11-29). */
GEMV_INLINE void dot_all(step_dots *dots, const uint8_t *w,
                         const uint32_t *const x[GEMV_TOKENS_MAX], const int vectors,
                         const int stride, const int groups, const int tokens, const int digits)
{
    const vec mask = V(set1_epi8)(15);
    vec both[VECTORS_MAX], q[VECTORS_MAX];
    GEMV_Q4_UNROLL
    for (int i = 0; i < vectors * tokens * digits; i++) {
        int v = i / digits / tokens, t = i / digits % tokens, d = i % digits;
        dots->digit[v][t][d] = dot_begin(digit_offset(x[t], groups, digits, d), groups);
    }
    GEMV_Q4_UNROLL
    for (int m = 0; m < PANEL_DOTS; m++) {
        GEMV_Q4_UNROLL
        for (int v = 0; v < vectors; v++) {
            if (m % 2 == 0) {
                both[v] = V_BITS(loadu)((const void *)(w + (m / 2 * stride + v) * 4 * LANES));
                GEMV_Q4_OPAQUE_VECTOR(both[v]);
            }
            q[v] = V_BITS(and)(m % 2 == 0 ? both[v] : V(srli_epi16)(both[v], 4), mask);
        }
        GEMV_Q4_UNROLL
        for (int i = 0; i < tokens * digits; i++) {
            int t = i / digits, d = i % digits;
            vec digit = repeat(x[t] + (m * digits + d) * groups, groups);
            GEMV_Q4_UNROLL
            for (int v = 0; v < vectors; v++)
                dots->digit[v][t][d] = dot_add(dots->digit[v][t][d], q[v], digit);
        }
    }
}

/* The dot products of one vector with the digits of one token, as one number of units. */
GEMV_INLINE vecf join_digits(const vec dot[DIGITS_F32], const uint32_t *x, const int groups,
                             const int digits)
{
    vec sum[DIGITS_F32];
    GEMV_Q4_UNROLL
    for (int d = 0; d < digits; d++)
        sum[d] = dot_end(dot[d], digit_offset(x, groups, digits, d), groups);
    if (digits == DIGITS_Q8)
        return V(cvtepi32_ps)(sum[0]);
    vec low = V(add_epi32)(sum[0], V(slli_epi32)(sum[1], 8));
    vec high = V(add_epi32)(sum[2], V(slli_epi32)(sum[3], 8));
    return V(fmadd_ps)(V(cvtepi32_ps)(high), V(set1_ps)(65536.0f), V(cvtepi32_ps)(low));
}

GEMV_INLINE void step_all(vecf acc[VECTORS_MAX][GEMV_TOKENS_MAX], const uint8_t *w,
                          const uint16_t *w_scale, const uint32_t *const x[GEMV_TOKENS_MAX],
                          const int vectors, const int stride, const int groups, const int tokens,
                          const int digits)
{
    step_dots dots;
    dot_all(&dots, w, x, vectors, stride, groups, tokens, digits);
    GEMV_Q4_UNROLL
    for (int v = 0; v < vectors; v++) {
        vecf scale = load_f16(w_scale + v * LANES);
        GEMV_Q4_UNROLL
        for (int t = 0; t < tokens; t++) {
            vecf unit = V_FLOAT(repeat(x[t] + PANEL_UNIT(digits) * groups, groups));
            vecf sum = join_digits(dots.digit[v][t], x[t], groups, digits);
            acc[v][t] = V(fmadd_ps)(sum, V(mul_ps)(scale, unit), acc[v][t]);
        }
    }
}

GEMV_INLINE void store_block(const gemv_q4_work *work, int64_t tile, int64_t row,
                             vecf acc[VECTORS_MAX][GEMV_TOKENS_MAX], const int rows,
                             const int tokens)
{
    const int vectors = panel_vectors(LANES, rows), groups = panel_groups(LANES, rows);
    for (int t = 0; t < tokens; t++) {
        alignas(64) float sums[VECTORS_MAX * LANES];
        for (int v = 0; v < vectors; v++)
            V(store_ps)(sums + v * LANES, add_groups(acc[v][t], groups));
        for (int r = 0; r < rows && row + r < work->rows; r++) {
            float *y = work->y + (row + r) * tokens + t;
            float sum = sums[r * groups];
            *y = tile == 0 ? sum : *y + sum;
        }
    }
}

/* Fetches into L2 what lies `prefetch` bytes ahead of the next `bytes` of w, and the scales that go
 * with it; near `left`, the bytes of w to the end of a grain, its last ones again. */
GEMV_INLINE void prefetch(const gemv_q4_work *work, const uint8_t *w, const uint16_t *w_scale,
                          int64_t left, const int bytes)
{
    int64_t ahead = work->prefetch < left - bytes ? work->prefetch : left - bytes;
    const uint8_t *scale_bytes = (const uint8_t *)w_scale + ahead / 8;
    GEMV_Q4_UNROLL
    for (int i = 0; i < bytes; i += 64)
        __builtin_prefetch(w + ahead + i, 0, 2);
    GEMV_Q4_UNROLL
    for (int i = 0; i < bytes / 8; i += 64)
        __builtin_prefetch(scale_bytes + i, 0, 2);
}

GEMV_INLINE void grain_all(const gemv_q4_work *work, int64_t tile, int64_t first,
                           uint32_t *const x[GEMV_TOKENS_MAX], const int rows, const int tokens,
                           const int digits)
{
    const int vectors = panel_vectors(LANES, rows), groups = panel_groups(LANES, rows);
    /* The sums that grow at once leave half of the registers to the rest. */
    const int fit = LANES / (tokens * digits), at_once = vectors < fit ? vectors : fit;
    const int64_t all = panel_all_groups(work->cols, groups);
    const int64_t steps = panel_tile_groups(all, tile) / groups;
    const int64_t end = gemv_q4__grain_end(work, first);
    const int64_t at = panel_at(work->blocks, all, rows, tile, first);
    const uint8_t *w = work->w + at * PANEL_W;
    const uint16_t *w_scale = work->w_scale + at;
    const uint8_t *w_end = w + (end - first) * steps * groups * rows * PANEL_W;
    for (int64_t block = first; block < end; block++) {
        vecf acc[VECTORS_MAX][GEMV_TOKENS_MAX];
        const uint32_t *step_x[GEMV_TOKENS_MAX];
        for (int t = 0; t < tokens; t++) {
            step_x[t] = x[t];
            for (int v = 0; v < vectors; v++)
                acc[v][t] = V(setzero_ps)();
        }
        for (int64_t s = 0; s < steps; s++) {
            prefetch(work, w, w_scale, w_end - w, groups * rows * PANEL_W);
            GEMV_Q4_UNROLL
            for (int v = 0; v < vectors; v += at_once) {
                for (int t = 0; t < tokens; t++)
                    GEMV_Q4_OPAQUE(step_x[t]);
                step_all(acc + v, w + v * 4 * LANES, w_scale + v * LANES, step_x, at_once, vectors,
                         groups, tokens, digits);
            }
            w += groups * rows * PANEL_W;
            w_scale += groups * rows;
            for (int t = 0; t < tokens; t++)
                step_x[t] += groups * PANEL_WORDS(digits);
        }
        store_block(work, tile, block * rows, acc, rows, tokens);
    }
}

GEMV_INLINE void blocks_all(const gemv_q4_work *work, const int rows, const int tokens,
                            const int digits)
{
    const int groups = panel_groups(LANES, rows);
    const int64_t all = panel_all_groups(work->cols, groups);
    alignas(64) uint32_t buffer[GEMV_TOKENS_MAX][PANEL_TILE * PANEL_WORDS(DIGITS_F32)];
    uint32_t *const x[GEMV_TOKENS_MAX] = {buffer[0], buffer[1]};
    for (int64_t tile = 0; tile * PANEL_TILE < all; tile++) {
        for (int t = 0; t < tokens; t++)
            fix_tile(work, t, tile * PANEL_TILE, panel_tile_groups(all, tile), x[t], groups,
                     digits);
        for (int64_t first = work->first; first < work->blocks; first += work->stride)
            grain_all(work, tile, first, x, rows, tokens, digits);
    }
}

GEMV_INLINE void blocks_f32(const gemv_q4_work *work, const int rows, const int tokens)
{
    blocks_all(work, rows, tokens, DIGITS_F32);
}

GEMV_INLINE void blocks_q8(const gemv_q4_work *work, const int rows, const int tokens)
{
    blocks_all(work, rows, tokens, DIGITS_Q8);
}

GEMV_Q4_LOOPS(blocks_f32)
GEMV_Q4_LOOPS(blocks_q8)

static gemv_q4_loops loops = {GEMV_Q4_TABLE(blocks_f32), GEMV_Q4_TABLE(blocks_q8)};

#endif
