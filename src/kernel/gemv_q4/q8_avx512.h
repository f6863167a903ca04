/* q8_avx512.h: act=q8 with 512-bit vectors, for both files that have them: with VNNI byte dot
 * products where the file is compiled for them, else by 16-bit pairs.
 *
 * The integer dot of a group is exact in either: -8 * x is taken off first (shared by the rows of a
 * block), and 15 * 127 * 2 fits 16 bits.
 */
#ifndef CB_GEMV_Q4_Q8_AVX512_H
#define CB_GEMV_Q4_Q8_AVX512_H

#include <immintrin.h>

#include "gemv_q4.h"

#define GEMV_INLINE static inline __attribute__((always_inline))

GEMV_INLINE void gemv_q4__store_avx512(const gemv_q4_work *work, int64_t block,
                                       __m512 acc[GEMV_BLOCK_MAX][GEMV_TOKENS_MAX], const int rows,
                                       const int tokens)
{
    for (int r = 0; r < rows && block * rows + r < work->rows; r++)
        for (int t = 0; t < tokens; t++)
            work->y[(block * rows + r) * tokens + t] = _mm512_reduce_add_ps(acc[r][t]);
}

/* -8 * x, summed as dot_q8 wants to start from it. */
GEMV_INLINE __m512i offset_q8(__m512i x)
{
    const __m512i eight = _mm512_set1_epi8(8);
#ifdef __AVX512VNNI__
    const __m512i zero = _mm512_setzero_si512();
    return _mm512_sub_epi32(zero, _mm512_dpbusd_epi32(zero, eight, x));
#else
    return _mm512_maddubs_epi16(eight, x);
#endif
}

/* Dot products of q - 8 and x over each 32-bit lane. */
GEMV_INLINE __m512i dot_q8(__m512i q, __m512i x, __m512i offset)
{
#ifdef __AVX512VNNI__
    return _mm512_dpbusd_epi32(offset, q, x);
#else
    __m512i pairs = _mm512_sub_epi16(_mm512_maddubs_epi16(q, x), offset);
    return _mm512_madd_epi16(pairs, _mm512_set1_epi16(1));
#endif
}

GEMV_INLINE void chunk_q8(__m512 acc[GEMV_BLOCK_MAX][GEMV_TOKENS_MAX], const uint8_t *w,
                          const uint16_t *w_scale, const int8_t *const xq[GEMV_TOKENS_MAX],
                          const float *const x_scale[GEMV_TOKENS_MAX], const int rows,
                          const int tokens)
{
    const __m512i mask = _mm512_set1_epi8(15);
    __m512 scale[GEMV_BLOCK_MAX][GEMV_TOKENS_MAX];
    GEMV_Q4_UNROLL
    for (int r = 0; r < rows; r++) {
        __m128i f16 = _mm_loadu_si128((const void *)(w_scale + r * GEMV_CHUNK_GROUPS));
        __m256 s = _mm256_cvtph_ps(f16);
        GEMV_Q4_UNROLL
        for (int t = 0; t < tokens; t++)
            scale[r][t] = _mm512_castps256_ps512(_mm256_mul_ps(s, _mm256_loadu_ps(x_scale[t])));
    }
    GEMV_Q4_UNROLL
    for (int half = 0; half < 4; half++) { /* 64 columns: two groups */
        const __m512i lanes =
            _mm512_add_epi32(_mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1),
                             _mm512_set1_epi32(2 * half));
        __m512i x[GEMV_TOKENS_MAX], offset[GEMV_TOKENS_MAX];
        GEMV_Q4_UNROLL
        for (int t = 0; t < tokens; t++) {
            x[t] = _mm512_loadu_si512(xq[t] + 64 * half);
            offset[t] = offset_q8(x[t]);
        }
        GEMV_Q4_UNROLL
        for (int r = 0; r < rows; r++) {
            __m512i q = _mm512_loadu_si512(w + r * GEMV_CHUNK_BYTES + half / 2 * 64);
            if (half % 2 == 1)
                q = _mm512_srli_epi16(q, 4);
            q = _mm512_and_si512(q, mask);
            GEMV_Q4_UNROLL
            for (int t = 0; t < tokens; t++) {
                __m512 dot = _mm512_cvtepi32_ps(dot_q8(q, x[t], offset[t]));
                acc[r][t] =
                    _mm512_fmadd_ps(dot, _mm512_permutexvar_ps(lanes, scale[r][t]), acc[r][t]);
            }
        }
    }
}

GEMV_INLINE void grain_q8(const gemv_q4_work *work, int64_t first, int64_t end, const int rows,
                          const int tokens)
{
    const uint8_t *w = work->w + first * work->chunks * rows * GEMV_CHUNK_BYTES;
    const uint16_t *w_scale = work->w_scale + first * work->chunks * rows * GEMV_CHUNK_GROUPS;
    const uint8_t *w_end = w + (end - first) * work->chunks * rows * GEMV_CHUNK_BYTES;
    for (int64_t block = first; block < end; block++) {
        __m512 acc[GEMV_BLOCK_MAX][GEMV_TOKENS_MAX];
        for (int r = 0; r < rows; r++)
            for (int t = 0; t < tokens; t++)
                acc[r][t] = _mm512_setzero_ps();
        for (int64_t c = 0; c < work->chunks; c++) {
            int full = c < work->full_chunks;
            const int8_t *xq[GEMV_TOKENS_MAX];
            const float *x_scale[GEMV_TOKENS_MAX];
            for (int t = 0; t < tokens; t++) {
                int64_t col = t * work->cols + c * GEMV_CHUNK;
                xq[t] = full ? work->xq + col : work->tail.xq[t];
                x_scale[t] = full ? work->x_scale + col / GEMV_GROUP : work->tail.x_scale[t];
                GEMV_Q4_OPAQUE(xq[t]);
                GEMV_Q4_OPAQUE(x_scale[t]);
            }
            gemv_q4__prefetch(work, w, w_scale, w_end - w, rows * GEMV_CHUNK_BYTES, 1);
            chunk_q8(acc, w, w_scale, xq, x_scale, rows, tokens);
            w += rows * GEMV_CHUNK_BYTES;
            w_scale += rows * GEMV_CHUNK_GROUPS;
        }
        gemv_q4__store_avx512(work, block, acc, rows, tokens);
    }
}

GEMV_INLINE void blocks_q8(const gemv_q4_work *work, const int rows, const int tokens)
{
    for (int64_t first = work->first; first < work->blocks; first += work->stride)
        grain_q8(work, first, gemv_q4__grain_end(work, first), rows, tokens);
}

#endif
