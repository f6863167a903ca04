/* cpu_avx2.c: gemv_q4 with 256-bit vectors.
 *
 * act=f32 as in cpu_avx512.c: nibbles are converted where they lie, the power of two goes into the
 * scale, and a group's sum starts from -8 * 2^(4k) * x, shared by the rows of a block.
 */
#include <immintrin.h>

#include "gemv_q4.h"

#define GEMV_INLINE static inline __attribute__((always_inline))

GEMV_INLINE float nibble_unit(int k)
{
    return k == 7 ? 1.0f : (float)(1u << (4 * k));
}

GEMV_INLINE __m256 nibbles(const uint8_t *w, int i, int k)
{
    __m256i words = _mm256_loadu_si256((const void *)(w + 32 * i));
    if (k == 7)
        return _mm256_cvtepi32_ps(_mm256_srli_epi32(words, 28));
    return _mm256_cvtepi32_ps(_mm256_and_si256(words, _mm256_set1_epi32(15 << (4 * k))));
}

GEMV_INLINE void chunk_f32(__m256 acc[GEMV_BLOCK_MAX][GEMV_TOKENS_MAX], const uint8_t *w,
                           const uint16_t *w_scale, const float *const x[GEMV_TOKENS_MAX],
                           const int rows, const int tokens)
{
    const __m256 units =
        _mm256_setr_ps(1.0f, 0x1p-4f, 0x1p-8f, 0x1p-12f, 0x1p-16f, 0x1p-20f, 0x1p-24f, 1.0f);
    alignas(32) float scale[GEMV_BLOCK_MAX][GEMV_CHUNK_GROUPS];
    GEMV_Q4_UNROLL
    for (int r = 0; r < rows; r++) {
        __m128i f16 = _mm_loadu_si128((const void *)(w_scale + r * GEMV_CHUNK_GROUPS));
        _mm256_store_ps(scale[r], _mm256_mul_ps(_mm256_cvtph_ps(f16), units));
    }
    GEMV_Q4_OPAQUE_MEMORY(scale);
    GEMV_Q4_UNROLL
    for (int k = 0; k < GEMV_CHUNK_GROUPS; k++) {
        __m256 offset[GEMV_TOKENS_MAX];
        GEMV_Q4_UNROLL
        for (int t = 0; t < tokens; t++) {
            const float *a = x[t] + k * GEMV_GROUP;
            __m256 sum =
                _mm256_add_ps(_mm256_add_ps(_mm256_loadu_ps(a), _mm256_loadu_ps(a + 8)),
                              _mm256_add_ps(_mm256_loadu_ps(a + 16), _mm256_loadu_ps(a + 24)));
            offset[t] = _mm256_mul_ps(sum, _mm256_set1_ps(-8.0f * nibble_unit(k)));
        }
        GEMV_Q4_UNROLL
        for (int r = 0; r < rows; r++) {
            __m256 sum[GEMV_TOKENS_MAX];
            GEMV_Q4_UNROLL
            for (int t = 0; t < tokens; t++)
                sum[t] = offset[t];
            GEMV_Q4_UNROLL
            for (int i = 0; i < 4; i++) {
                __m256 q = nibbles(w + r * GEMV_CHUNK_BYTES, i, k);
                GEMV_Q4_UNROLL
                for (int t = 0; t < tokens; t++)
                    sum[t] =
                        _mm256_fmadd_ps(q, _mm256_loadu_ps(x[t] + k * GEMV_GROUP + 8 * i), sum[t]);
            }
            GEMV_Q4_UNROLL
            for (int t = 0; t < tokens; t++)
                acc[r][t] = _mm256_fmadd_ps(sum[t], _mm256_set1_ps(scale[r][k]), acc[r][t]);
        }
    }
}

GEMV_INLINE float reduce_add(__m256 v)
{
    __m128 sum = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    sum = _mm_add_ps(sum, _mm_movehl_ps(sum, sum));
    return _mm_cvtss_f32(_mm_add_ss(sum, _mm_movehdup_ps(sum)));
}

GEMV_INLINE void clear(__m256 acc[GEMV_BLOCK_MAX][GEMV_TOKENS_MAX], const int rows,
                       const int tokens)
{
    for (int r = 0; r < rows; r++)
        for (int t = 0; t < tokens; t++)
            acc[r][t] = _mm256_setzero_ps();
}

GEMV_INLINE void store(const gemv_q4_work *work, int64_t block,
                       __m256 acc[GEMV_BLOCK_MAX][GEMV_TOKENS_MAX], const int rows,
                       const int tokens)
{
    for (int r = 0; r < rows && block * rows + r < work->rows; r++)
        for (int t = 0; t < tokens; t++)
            work->y[(block * rows + r) * tokens + t] = reduce_add(acc[r][t]);
}

GEMV_INLINE void grain_f32(const gemv_q4_work *work, int64_t first, int64_t end, const int rows,
                           const int tokens)
{
    const uint8_t *w = work->w + first * work->chunks * rows * GEMV_CHUNK_BYTES;
    const uint16_t *w_scale = work->w_scale + first * work->chunks * rows * GEMV_CHUNK_GROUPS;
    const uint8_t *w_end = w + (end - first) * work->chunks * rows * GEMV_CHUNK_BYTES;
    for (int64_t block = first; block < end; block++) {
        __m256 acc[GEMV_BLOCK_MAX][GEMV_TOKENS_MAX];
        clear(acc, rows, tokens);
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
        store(work, block, acc, rows, tokens);
    }
}

GEMV_INLINE void blocks_f32(const gemv_q4_work *work, const int rows, const int tokens)
{
    for (int64_t first = work->first; first < work->blocks; first += work->stride)
        grain_f32(work, first, gemv_q4__grain_end(work, first), rows, tokens);
}

/* The integer dot of a group is exact: 2 * 15 * 127 fits 16 bits, and -8 * x is taken off there. */
GEMV_INLINE void chunk_q8(__m256 acc[GEMV_BLOCK_MAX][GEMV_TOKENS_MAX], const uint8_t *w,
                          const uint16_t *w_scale, const int8_t *const xq[GEMV_TOKENS_MAX],
                          const float *const x_scale[GEMV_TOKENS_MAX], const int rows,
                          const int tokens)
{
    alignas(32) float scale[GEMV_BLOCK_MAX][GEMV_TOKENS_MAX][GEMV_CHUNK_GROUPS];
    GEMV_Q4_UNROLL
    for (int r = 0; r < rows; r++) {
        __m128i f16 = _mm_loadu_si128((const void *)(w_scale + r * GEMV_CHUNK_GROUPS));
        __m256 s = _mm256_cvtph_ps(f16);
        GEMV_Q4_UNROLL
        for (int t = 0; t < tokens; t++)
            _mm256_store_ps(scale[r][t], _mm256_mul_ps(s, _mm256_loadu_ps(x_scale[t])));
    }
    GEMV_Q4_OPAQUE_MEMORY(scale);
    GEMV_Q4_UNROLL
    for (int k = 0; k < GEMV_CHUNK_GROUPS; k++) {
        __m256i x[GEMV_TOKENS_MAX], offset[GEMV_TOKENS_MAX];
        GEMV_Q4_UNROLL
        for (int t = 0; t < tokens; t++) {
            x[t] = _mm256_loadu_si256((const void *)(xq[t] + k * GEMV_GROUP));
            offset[t] = _mm256_maddubs_epi16(_mm256_set1_epi8(8), x[t]);
        }
        GEMV_Q4_UNROLL
        for (int r = 0; r < rows; r++) {
            const uint8_t *bytes = w + r * GEMV_CHUNK_BYTES + k / 4 * 64 + k % 2 * 32;
            __m256i q = _mm256_loadu_si256((const void *)bytes);
            if (k % 4 >= 2)
                q = _mm256_srli_epi16(q, 4);
            q = _mm256_and_si256(q, _mm256_set1_epi8(15));
            GEMV_Q4_UNROLL
            for (int t = 0; t < tokens; t++) {
                __m256i pairs = _mm256_sub_epi16(_mm256_maddubs_epi16(q, x[t]), offset[t]);
                __m256 dot = _mm256_cvtepi32_ps(_mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
                acc[r][t] = _mm256_fmadd_ps(dot, _mm256_set1_ps(scale[r][t][k]), acc[r][t]);
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
        __m256 acc[GEMV_BLOCK_MAX][GEMV_TOKENS_MAX];
        clear(acc, rows, tokens);
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
        store(work, block, acc, rows, tokens);
    }
}

GEMV_INLINE void blocks_q8(const gemv_q4_work *work, const int rows, const int tokens)
{
    for (int64_t first = work->first; first < work->blocks; first += work->stride)
        grain_q8(work, first, gemv_q4__grain_end(work, first), rows, tokens);
}

GEMV_Q4_LOOPS(blocks_f32)
GEMV_Q4_LOOPS(blocks_q8)

int gemv_q4__run_avx2(const cb_launch *launch)
{
    static gemv_q4_loops loops = {GEMV_Q4_TABLE(blocks_f32), GEMV_Q4_TABLE(blocks_q8)};
    return gemv_q4__run(launch, loops, launch->tunables[GEMV_PREFETCH]);
}
