/* panel_x.h: activations in the form panel_run.h takes, written by every worker for itself.
 *
 * act=f32: dot products take integers, so x becomes fixed point: per group of 32, the integers
 * x * 2^k of up to 30 bits and sign, k from the group's largest value, each as four signed digits
 * of base 256. A value down to 2^-7 of the group's largest is exact, a smaller one is rounded at
 * 2^-31 of the largest, which is 2^-7 of what f32 sums of the same group round. The dot products of
 * the digits are exact; they meet in f32.
 *
 * A step of G groups is an array of words, each of them once a group: for each of the 8 dot
 * products of a group its digits, lowest first (act=q8: just xq); -8 * the sum of x, which takes
 * the offset of q off, of digits 0 and 1 as one number and of digits 2 and 3; the value of a unit,
 * NaN where x is not finite; one unused.
 */
#ifndef CB_GEMV_Q4_PANEL_X_H
#define CB_GEMV_Q4_PANEL_X_H

#include <immintrin.h>

#include "panel.h"

#define GEMV_INLINE static inline __attribute__((always_inline))

enum { DIGITS_F32 = 4, DIGITS_Q8 = 1 };

/* Words a group has in a step. */
#define PANEL_OFFSET(digits) (PANEL_DOTS * (digits))
#define PANEL_UNIT(digits) (PANEL_OFFSET(digits) + 2)
#define PANEL_WORDS(digits) (PANEL_UNIT(digits) + 2)

GEMV_INLINE __m128i add_halves(__m256i v)
{
    return _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
}

/* The bits of the largest |x| of a group: those of numbers order as integers do. */
GEMV_INLINE uint32_t largest_magnitude(const float *group)
{
    __m256i a = _mm256_setzero_si256();
    GEMV_Q4_UNROLL
    for (int i = 0; i < 4; i++) {
        __m256i x = _mm256_loadu_si256((const void *)(group + 8 * i));
        a = _mm256_max_epi32(a, _mm256_and_si256(x, _mm256_set1_epi32(0x7fffffff)));
    }
    __m128i m = _mm_max_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
    m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0x4e));
    m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0xb1));
    return (uint32_t)_mm_cvtsi128_si32(m);
}

/* Four words each of four groups, from group `at` of a tile on, to their places in its steps. */
GEMV_INLINE void spread_four(uint32_t *out, int64_t at, int word, const __m128i v[4],
                             const int groups, const int words)
{
    GEMV_Q4_UNROLL
    for (int i = 0; i < 4; i++) {
        uint32_t *to = out + (at & -groups) * words + (word + i) * groups;
        if (groups >= 4) {
            _mm_storeu_si128((void *)(to + (at & (groups - 1))), v[i]);
        } else {
            _mm_storel_epi64((void *)to, v[i]);
            _mm_storeh_pd((void *)(to + groups * words), _mm_castsi128_pd(v[i]));
        }
    }
}

/* The same for eight words, one group a vector. */
GEMV_INLINE void spread_eight(uint32_t *out, int64_t at, int word, const __m256i v[4],
                              const int groups, const int words)
{
    __m256i ab = _mm256_unpacklo_epi32(v[0], v[1]), high_ab = _mm256_unpackhi_epi32(v[0], v[1]);
    __m256i cd = _mm256_unpacklo_epi32(v[2], v[3]), high_cd = _mm256_unpackhi_epi32(v[2], v[3]);
    const __m256i by_word[4] = {_mm256_unpacklo_epi64(ab, cd), _mm256_unpackhi_epi64(ab, cd),
                                _mm256_unpacklo_epi64(high_ab, high_cd),
                                _mm256_unpackhi_epi64(high_ab, high_cd)};
    __m128i low[4], high[4];
    GEMV_Q4_UNROLL
    for (int i = 0; i < 4; i++) {
        low[i] = _mm256_castsi256_si128(by_word[i]);
        high[i] = _mm256_extracti128_si256(by_word[i], 1);
    }
    spread_four(out, at, word, low, groups, words);
    if (word + 4 < words)
        spread_four(out, at, word + 4, high, groups, words);
}

/* Four groups at `from` to the steps of a tile, as its groups `at` to at + 3. */
GEMV_INLINE void fix_four(const float *const from[4], uint32_t *out, int64_t at, const int groups)
{
    const int words = PANEL_WORDS(DIGITS_F32);
    const __m256i order = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    /* Adding and taking off 128 in the lower three bytes makes their digits signed, the carries
     * included. */
    const __m256i half = _mm256_set1_epi32(0x00808080);
    __m256 scale[4];
    __m256i sum[4], last[4];
    int32_t unit[4];
    GEMV_Q4_UNROLL
    for (int g = 0; g < 4; g++) {
        /* |x| < 2^(e - 126), so k = 30 - (e - 126); 2^k and 2^-k both have to be normal. */
        int32_t e = (int32_t)(largest_magnitude(from[g]) >> 23);
        int32_t field = 127 + 156 - e < 253 ? 127 + 156 - e : 253;
        scale[g] = _mm256_castsi256_ps(_mm256_set1_epi32(field << 23));
        unit[g] = e == 255 ? 0x7fc00000 : (254 - field) << 23;
        sum[g] = _mm256_setzero_si256();
    }
    GEMV_Q4_UNROLL
    for (int i = 0; i < 4; i++) {
        __m256i v[4];
        GEMV_Q4_UNROLL
        for (int g = 0; g < 4; g++) {
            __m256 x = _mm256_loadu_ps(from[g] + 8 * i);
            v[g] = _mm256_cvtps_epi32(_mm256_mul_ps(x, scale[g]));
            v[g] = _mm256_xor_si256(_mm256_add_epi32(v[g], half), half);
            v[g] = _mm256_shuffle_epi8(v[g], order);
            sum[g] = _mm256_sub_epi16(sum[g], _mm256_maddubs_epi16(_mm256_set1_epi8(8), v[g]));
        }
        spread_eight(out, at, 8 * i, v, groups, words);
    }
    GEMV_Q4_UNROLL
    for (int g = 0; g < 4; g++) {
        __m128i sums = add_halves(_mm256_madd_epi16(sum[g], _mm256_set1_epi16(1)));
        sums = _mm_add_epi32(sums, _mm_slli_epi32(_mm_shuffle_epi32(sums, 0xf5), 8));
        last[g] =
            _mm256_castsi128_si256(_mm_insert_epi32(_mm_shuffle_epi32(sums, 0x08), unit[g], 2));
    }
    spread_eight(out, at, PANEL_OFFSET(DIGITS_F32), last, groups, words);
}

GEMV_INLINE void take_four(const int8_t *const xq[4], const float x_scale[4], uint32_t *out,
                           int64_t at, const int groups)
{
    const int words = PANEL_WORDS(DIGITS_Q8);
    __m256i x[4], last[4];
    GEMV_Q4_UNROLL
    for (int g = 0; g < 4; g++) {
        x[g] = _mm256_loadu_si256((const void *)xq[g]);
        __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(8), x[g]);
        __m128i sum = add_halves(_mm256_madd_epi16(pairs, _mm256_set1_epi16(-1)));
        sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4e));
        sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0xb1));
        __m128i unit = _mm_castps_si128(_mm_set_ss(x_scale[g]));
        last[g] = _mm256_castsi128_si256(_mm_unpacklo_epi64(sum, unit));
    }
    spread_eight(out, at, 0, x, groups, words);
    spread_eight(out, at, PANEL_OFFSET(DIGITS_Q8), last, groups, words);
}

/* Activations of one token, `groups` groups from `first`; those past the end of x are zero.
 * Groups are taken by fours, so that `out` is written to the next multiple of 4. */
GEMV_INLINE void fix_tile(const gemv_q4_work *work, int token, int64_t first, int64_t groups,
                          uint32_t *out, const int step, const int digits)
{
    static const float zeros[GEMV_GROUP];
    const int64_t row_groups = work->cols / GEMV_GROUP;
    for (int64_t at = 0; at < groups; at += 4) {
        const float *x[4];
        const int8_t *xq[4];
        float x_scale[4];
        GEMV_Q4_UNROLL
        for (int g = 0; g < 4; g++) {
            int64_t group = token * row_groups + first + at + g;
            int inside = first + at + g < row_groups;
            if (digits == DIGITS_F32) {
                x[g] = inside ? work->x + group * GEMV_GROUP : zeros;
            } else {
                xq[g] = inside ? work->xq + group * GEMV_GROUP : (const int8_t *)zeros;
                x_scale[g] = inside ? work->x_scale[group] : 0;
            }
        }
        if (digits == DIGITS_F32)
            fix_four(x, out, at, step);
        else
            take_four(xq, x_scale, out, at, step);
    }
}

#endif
