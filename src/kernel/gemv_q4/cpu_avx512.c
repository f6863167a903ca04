/* cpu_avx512.c: gemv_q4 with 512-bit vectors.
 *
 * act=f32, per group k of a chunk: a masked nibble, left where it lies, is the integer q * 2^(4k),
 * which converts exactly; so a vector of 16 weights costs an AND, a conversion and an FMA, and the
 * power of two goes into the group's scale. The sum starts from -8 * 2^(4k) * x instead of zero:
 * that takes the offset off once for all rows of a block.
 */
#include <immintrin.h>

#include "q8_avx512.h"

/* 2^(4k) of the nibbles as they are read: nibble 7 is shifted down, as bit 31 is a sign. */
GEMV_INLINE float nibble_unit(int k)
{
    return k == 7 ? 1.0f : (float)(1u << (4 * k));
}

GEMV_INLINE __m512 nibbles(__m512i words, int k)
{
    if (k == 7)
        return _mm512_cvtepi32_ps(_mm512_srli_epi32(words, 28));
    return _mm512_cvtepi32_ps(_mm512_and_si512(words, _mm512_set1_epi32(15 << (4 * k))));
}

GEMV_INLINE void chunk_f32(__m512 acc[GEMV_BLOCK_MAX][GEMV_TOKENS_MAX], const uint8_t *w,
                           const uint16_t *w_scale, const float *const x[GEMV_TOKENS_MAX],
                           const int rows, const int tokens)
{
    const __m256 units =
        _mm256_setr_ps(1.0f, 0x1p-4f, 0x1p-8f, 0x1p-12f, 0x1p-16f, 0x1p-20f, 0x1p-24f, 1.0f);
    alignas(32) float scale[GEMV_BLOCK_MAX][GEMV_CHUNK_GROUPS];
    __m512i low[GEMV_BLOCK_MAX], high[GEMV_BLOCK_MAX];
    GEMV_Q4_UNROLL
    for (int r = 0; r < rows; r++) {
        __m128i f16 = _mm_loadu_si128((const void *)(w_scale + r * GEMV_CHUNK_GROUPS));
        _mm256_store_ps(scale[r], _mm256_mul_ps(_mm256_cvtph_ps(f16), units));
        low[r] = _mm512_loadu_si512(w + r * GEMV_CHUNK_BYTES);
        high[r] = _mm512_loadu_si512(w + r * GEMV_CHUNK_BYTES + 64);
    }
    GEMV_Q4_OPAQUE_MEMORY(scale);
    GEMV_Q4_UNROLL
    for (int k = 0; k < GEMV_CHUNK_GROUPS; k++) {
        __m512 xa[GEMV_TOKENS_MAX], xb[GEMV_TOKENS_MAX], offset[GEMV_TOKENS_MAX];
        GEMV_Q4_UNROLL
        for (int t = 0; t < tokens; t++) {
            xa[t] = _mm512_loadu_ps(x[t] + k * GEMV_GROUP);
            xb[t] = _mm512_loadu_ps(x[t] + k * GEMV_GROUP + 16);
            offset[t] =
                _mm512_mul_ps(_mm512_add_ps(xa[t], xb[t]), _mm512_set1_ps(-8.0f * nibble_unit(k)));
        }
        GEMV_Q4_UNROLL
        for (int r = 0; r < rows; r++) {
            __m512 qa = nibbles(low[r], k), qb = nibbles(high[r], k);
            GEMV_Q4_UNROLL
            for (int t = 0; t < tokens; t++) {
                __m512 sum = _mm512_fmadd_ps(qa, xa[t], offset[t]);
                sum = _mm512_fmadd_ps(qb, xb[t], sum);
                acc[r][t] = _mm512_fmadd_ps(sum, _mm512_set1_ps(scale[r][k]), acc[r][t]);
            }
        }
    }
}

GEMV_INLINE void grain_f32(const gemv_q4_work *work, int64_t first, int64_t end, const int rows,
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
            const float *x[GEMV_TOKENS_MAX];
            for (int t = 0; t < tokens; t++) {
                x[t] = c < work->full_chunks ? work->x + t * work->cols + c * GEMV_CHUNK
                                             : work->tail.x[t];
                GEMV_Q4_OPAQUE(x[t]);
            }
            gemv_q4__prefetch(work, w, w_scale, w_end - w, rows * GEMV_CHUNK_BYTES, 1);
            chunk_f32(acc, w, w_scale, x, rows, tokens);
            w += rows * GEMV_CHUNK_BYTES;
            w_scale += rows * GEMV_CHUNK_GROUPS;
        }
        gemv_q4__store_avx512(work, block, acc, rows, tokens);
    }
}

GEMV_INLINE void blocks_f32(const gemv_q4_work *work, const int rows, const int tokens)
{
    for (int64_t first = work->first; first < work->blocks; first += work->stride)
        grain_f32(work, first, gemv_q4__grain_end(work, first), rows, tokens);
}

GEMV_Q4_LOOPS(blocks_f32)
GEMV_Q4_LOOPS(blocks_q8)

int gemv_q4__run_avx512(const cb_launch *launch)
{
    static gemv_q4_loops loops = {GEMV_Q4_TABLE(blocks_f32), GEMV_Q4_TABLE(blocks_q8)};
    return gemv_q4__run(launch, loops, launch->tunables[GEMV_PREFETCH]);
}
