/* cpu_avx512vnni.c: gemv_q4 by the byte dot products of AVX-512 VNNI. act=q8 is in q8_avx512.h.
 *
 * avx512fixed, act=f32: dot products take integers, so each run writes x as fixed point: per group
 * of 32, the integers x * 2^k of up to 30 bits and sign, k from the group's largest value, each as
 * four signed digits of base 256. A value down to 2^-7 of the group's largest is exact, a smaller
 * one is rounded at 2^-31 of the largest, which is 2^-7 of what f32 sums of the same group round.
 * The dot products of the digits are exact; they meet in f32. 64 weights then cost 5.5 vector
 * operations where conversion to f32 and FMA (cpu_avx512.c) take 15.
 */
#include <string.h>

#include "fixed.h"
#include "q8_avx512.h"

enum { DIGITS = 4, DOTS = 8 /* of a chunk */, ROWS_AT_ONCE = 4 };

/* One chunk of x. Digit d of column 32*g + 4*m + i is byte i of lane g of digit[d][m]. */
typedef struct fixed_chunk {
    __m512i digit[DIGITS][DOTS];
    __m512i offset[DIGITS]; /* -8 * the sum of a group's digits */
    __m512 unit;            /* 2^-k of each group; NaN where x is not finite */
} fixed_chunk;

/* Lane l of vector r becomes lane r of vector l. */
GEMV_INLINE void transpose(__m512i v[16])
{
    __m512i a[16], b[16];
    GEMV_Q4_UNROLL
    for (int i = 0; i < 16; i += 2) {
        a[i] = _mm512_unpacklo_epi32(v[i], v[i + 1]);
        a[i + 1] = _mm512_unpackhi_epi32(v[i], v[i + 1]);
    }
    GEMV_Q4_UNROLL
    for (int i = 0; i < 16; i += 4) { /* b[i + l]: lanes l, l + 4, l + 8, l + 12 of 4 vectors */
        b[i] = _mm512_unpacklo_epi64(a[i], a[i + 2]);
        b[i + 1] = _mm512_unpackhi_epi64(a[i], a[i + 2]);
        b[i + 2] = _mm512_unpacklo_epi64(a[i + 1], a[i + 3]);
        b[i + 3] = _mm512_unpackhi_epi64(a[i + 1], a[i + 3]);
    }
    GEMV_Q4_UNROLL
    for (int l = 0; l < 4; l++) {
        __m512i low_even = _mm512_shuffle_i32x4(b[l], b[4 + l], 0x88);
        __m512i low_odd = _mm512_shuffle_i32x4(b[l], b[4 + l], 0xdd);
        __m512i high_even = _mm512_shuffle_i32x4(b[8 + l], b[12 + l], 0x88);
        __m512i high_odd = _mm512_shuffle_i32x4(b[8 + l], b[12 + l], 0xdd);
        v[l] = _mm512_shuffle_i32x4(low_even, high_even, 0x88);
        v[8 + l] = _mm512_shuffle_i32x4(low_even, high_even, 0xdd);
        v[4 + l] = _mm512_shuffle_i32x4(low_odd, high_odd, 0x88);
        v[12 + l] = _mm512_shuffle_i32x4(low_odd, high_odd, 0xdd);
    }
}

/* The exponent fields of 2^k, one a group. */
static __m512i group_scales(const float *x, __m512 *unit)
{
    const __m512i magnitude = _mm512_set1_epi32(0x7fffffff);
    alignas(64) uint32_t largest[FIXED_LANES];
    for (int g = 0; g < FIXED_LANES; g++) {
        __m512i a = _mm512_and_si512(_mm512_loadu_si512(x + g * GEMV_GROUP), magnitude);
        __m512i b = _mm512_and_si512(_mm512_loadu_si512(x + g * GEMV_GROUP + 16), magnitude);
        largest[g] = _mm512_reduce_max_epu32(_mm512_max_epu32(a, b));
    }
    /* |x| < 2^(e - 126), so k = 30 - (e - 126); 2^k and 2^-k both have to be normal. */
    __m512i e = _mm512_srli_epi32(_mm512_load_si512(largest), 23);
    __m512i field =
        _mm512_min_epi32(_mm512_sub_epi32(_mm512_set1_epi32(127 + 156), e), _mm512_set1_epi32(253));
    __m512i inverse = _mm512_slli_epi32(_mm512_sub_epi32(_mm512_set1_epi32(254), field), 23);
    __mmask16 unbounded = _mm512_cmpeq_epi32_mask(e, _mm512_set1_epi32(255));
    inverse = _mm512_mask_mov_epi32(inverse, unbounded, _mm512_set1_epi32(0x7fc00000));
    *unit = _mm512_castsi512_ps(inverse);
    return _mm512_slli_epi32(field, 23);
}

/* Four values a 128-bit lane to their digits: dword d holds digit d of the four. */
GEMV_INLINE __m512i split_digits(__m512 x, __m512 scale)
{
    /* Adding and taking off 128 in the lower three bytes makes their digits signed, the carries
     * included. */
    const __m512i half = _mm512_set1_epi32(0x00808080);
    const __m512i order =
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    __m512i value = _mm512_cvtps_epi32(_mm512_mul_ps(x, scale));
    value = _mm512_xor_si512(_mm512_add_epi32(value, half), half);
    return _mm512_shuffle_epi8(value, order);
}

static void fix_chunk(fixed_chunk *out, const float *x)
{
    alignas(64) float scale[FIXED_LANES];
    _mm512_store_si512(scale, group_scales(x, &out->unit));
    for (int half = 0; half < 2; half++) {
        __m512i v[FIXED_LANES];
        GEMV_Q4_UNROLL
        for (int g = 0; g < FIXED_LANES; g++)
            v[g] = split_digits(_mm512_loadu_ps(x + g * GEMV_GROUP + half * 16),
                                _mm512_set1_ps(scale[g]));
        transpose(v);
        GEMV_Q4_UNROLL
        for (int m = 0; m < 4; m++)
            GEMV_Q4_UNROLL
        for (int d = 0; d < DIGITS; d++)
            out->digit[d][half * 4 + m] = v[4 * m + d];
    }
    for (int d = 0; d < DIGITS; d++) {
        __m512i sum = _mm512_setzero_si512();
        for (int m = 0; m < DOTS; m++)
            sum = _mm512_dpbusd_epi32(sum, _mm512_set1_epi8(8), out->digit[d][m]);
        out->offset[d] = _mm512_sub_epi32(_mm512_setzero_si512(), sum);
    }
}

/* x of one tile; columns past the end are zero. */
static void fix_tile(const gemv_q4_work *work, int64_t tile, int64_t chunks,
                     fixed_chunk out[GEMV_TOKENS_MAX][FIXED_TILE])
{
    for (int t = 0; t < work->tokens; t++) {
        for (int64_t c = 0; c < chunks; c++) {
            int64_t col = (tile * FIXED_TILE + c) * FIXED_CHUNK;
            const float *x = work->x + t * work->cols + col;
            alignas(64) float padded[FIXED_CHUNK];
            if (work->cols - col < FIXED_CHUNK) {
                memset(padded, 0, sizeof padded);
                memcpy(padded, x, (size_t)(work->cols - col) * sizeof(float));
                x = padded;
            }
            fix_chunk(&out[t][c], x);
        }
    }
}

GEMV_INLINE void chunk_f32(__m512 *acc, const uint8_t *w, const uint16_t *w_scale,
                           const fixed_chunk *x, const int rows)
{
    const __m512i mask = _mm512_set1_epi8(15);
    __m512i dot[ROWS_AT_ONCE][DIGITS];
    GEMV_Q4_UNROLL
    for (int r = 0; r < rows; r++)
        GEMV_Q4_UNROLL
    for (int d = 0; d < DIGITS; d++)
        dot[r][d] = x->offset[d];
    GEMV_Q4_UNROLL
    for (int m = 0; m < DOTS; m++) {
        __m512i q[ROWS_AT_ONCE];
        GEMV_Q4_UNROLL
        for (int r = 0; r < rows; r++) {
            q[r] = _mm512_loadu_si512(w + r * FIXED_CHUNK_BYTES + m / 2 * 64);
            if (m % 2 == 1)
                q[r] = _mm512_srli_epi16(q[r], 4);
            q[r] = _mm512_and_si512(q[r], mask);
        }
        GEMV_Q4_UNROLL
        for (int d = 0; d < DIGITS; d++)
            GEMV_Q4_UNROLL
        for (int r = 0; r < rows; r++)
            dot[r][d] = _mm512_dpbusd_epi32(dot[r][d], q[r], x->digit[d][m]);
    }
    const __m512 base = _mm512_set1_ps(256.0f);
    GEMV_Q4_UNROLL
    for (int r = 0; r < rows; r++) {
        __m512 sum = _mm512_cvtepi32_ps(dot[r][DIGITS - 1]);
        GEMV_Q4_UNROLL
        for (int d = DIGITS - 2; d >= 0; d--)
            sum = _mm512_fmadd_ps(sum, base, _mm512_cvtepi32_ps(dot[r][d]));
        __m512 scale =
            _mm512_cvtph_ps(_mm256_loadu_si256((const void *)(w_scale + r * FIXED_LANES)));
        acc[r] = _mm512_fmadd_ps(sum, _mm512_mul_ps(scale, x->unit), acc[r]);
    }
}

GEMV_INLINE void store_tile(const gemv_q4_work *work, int64_t tile, int64_t block,
                            __m512 acc[GEMV_TOKENS_MAX][GEMV_BLOCK_MAX], const int rows,
                            const int tokens)
{
    for (int r = 0; r < rows && block * rows + r < work->rows; r++) {
        for (int t = 0; t < tokens; t++) {
            float *y = work->y + (block * rows + r) * tokens + t;
            float sum = _mm512_reduce_add_ps(acc[t][r]);
            *y = tile == 0 ? sum : *y + sum;
        }
    }
}

GEMV_INLINE void grain_f32(const gemv_q4_work *work, int64_t tile, int64_t all_chunks,
                           int64_t first, const fixed_chunk x[GEMV_TOKENS_MAX][FIXED_TILE],
                           const int rows, const int tokens)
{
    const int64_t chunks = gemv_q4__fixed_tile_chunks(all_chunks, tile);
    const int64_t end = gemv_q4__grain_end(work, first);
    const int step = rows < ROWS_AT_ONCE ? rows : ROWS_AT_ONCE;
    int64_t at = gemv_q4__fixed_at(work->blocks, all_chunks, rows, tile, first);
    const uint8_t *w = work->w + at * FIXED_CHUNK_BYTES;
    const uint16_t *w_scale = work->w_scale + at * FIXED_LANES;
    const uint8_t *w_end = w + (end - first) * chunks * rows * FIXED_CHUNK_BYTES;
    for (int64_t block = first; block < end; block++) {
        __m512 acc[GEMV_TOKENS_MAX][GEMV_BLOCK_MAX];
        for (int t = 0; t < tokens; t++)
            for (int r = 0; r < rows; r++)
                acc[t][r] = _mm512_setzero_ps();
        for (int64_t c = 0; c < chunks; c++) {
            gemv_q4__prefetch(work, w, w_scale, w_end - w, rows * FIXED_CHUNK_BYTES, 0);
            GEMV_Q4_UNROLL
            for (int t = 0; t < tokens; t++)
                GEMV_Q4_UNROLL
            for (int r = 0; r < rows; r += step)
                chunk_f32(&acc[t][r], w + r * FIXED_CHUNK_BYTES, w_scale + r * FIXED_LANES,
                          &x[t][c], step);
            w += rows * FIXED_CHUNK_BYTES;
            w_scale += rows * FIXED_LANES;
        }
        store_tile(work, tile, block, acc, rows, tokens);
    }
}

GEMV_INLINE void blocks_f32(const gemv_q4_work *work, const int rows, const int tokens)
{
    fixed_chunk x[GEMV_TOKENS_MAX][FIXED_TILE];
    int64_t all_chunks = (work->cols + FIXED_CHUNK - 1) / FIXED_CHUNK;
    for (int64_t tile = 0; tile * FIXED_TILE < all_chunks; tile++) {
        int64_t chunks = gemv_q4__fixed_tile_chunks(all_chunks, tile);
        fix_tile(work, tile, chunks, x);
        for (int64_t first = work->first; first < work->blocks; first += work->stride)
            grain_f32(work, tile, all_chunks, first, x, rows, tokens);
    }
}

GEMV_Q4_LOOPS(blocks_f32)

int gemv_q4__run_avx512fixed(const cb_launch *launch)
{
    static gemv_q4_loops loops = {[GEMV_ACT_F32] = GEMV_Q4_TABLE(blocks_f32)};
    return gemv_q4__run(launch, loops, launch->tunables[GEMV_PREFETCH]);
}

GEMV_Q4_LOOPS(blocks_q8)

int gemv_q4__run_avx512vnni(const cb_launch *launch)
{
    static gemv_q4_loops loops = {[GEMV_ACT_Q8] = GEMV_Q4_TABLE(blocks_q8)};
    return gemv_q4__run(launch, loops, launch->tunables[GEMV_PREFETCH]);
}
