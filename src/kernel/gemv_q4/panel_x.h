/* panel_x.h: activations in the form panel_run.h takes, written by every worker for itself.
 *
 * act=f32: dot products take integers, so x becomes fixed point: per group of 32, the integers
 * x * 2^k of up to 30 bits and sign, k from the group's largest value, each as four signed digits
 * of base 256. A value down to 2^-7 of the group's largest is exact, a smaller one is rounded at
 * 2^-31 of the largest, which is 2^-7 of what f32 sums of the same group round. The dot products
 * of the digits are exact; they meet in f32.
 *
 * A step of G groups is an array of words, each of them once a group: for each of the 8 dot
 * products of a group its digits, lowest first (act=q8: just xq); -8 * the sum of x, which takes
 * the offset of q off, of digits 0 and 1 as one number and of digits 2 and 3; the value of a unit,
 * NaN where x is not finite; one unused.
 */
#ifndef CB_GEMV_Q4_PANEL_X_H
#define CB_GEMV_Q4_PANEL_X_H

#include <string.h>

#include "panel.h"
#include "vector.h"

enum { DIGITS_F32 = 4, DIGITS_Q8 = 1, GROUP_VECTORS = GEMV_GROUP / LANES };

/* Words a group has in a step. */
#define PANEL_OFFSET(digits) (PANEL_DOTS * (digits))
#define PANEL_UNIT(digits) (PANEL_OFFSET(digits) + 2)
#define PANEL_WORDS(digits) (PANEL_UNIT(digits) + 2)

GEMV_INLINE __m128i add_halves(__m256i v)
{
    return _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
}

/* Sums of each of the four lanes of the 128-bit parts. */
GEMV_INLINE __m128i add_parts(vec v)
{
#ifdef __AVX512F__
    return add_halves(_mm256_add_epi32(_mm512_castsi512_si256(v), _mm512_extracti64x4_epi64(v, 1)));
#else
    return add_halves(v);
#endif
}

/* The bits of the largest |x| of a group, in every lane; for numbers they order as integers do. */
GEMV_INLINE vec largest_magnitude(const vec x[GROUP_VECTORS])
{
    const vec magnitude = V(set1_epi32)(0x7fffffff);
    vec m = V_BITS(and)(x[0], magnitude);
    GEMV_Q4_UNROLL
    for (int i = 1; i < GROUP_VECTORS; i++)
        m = V(max_epi32)(m, V_BITS(and)(x[i], magnitude));
#ifdef __AVX512F__
    m = _mm512_max_epi32(m, _mm512_shuffle_i32x4(m, m, 0x4e));
    m = _mm512_max_epi32(m, _mm512_shuffle_i32x4(m, m, 0xb1));
#else
    m = _mm256_max_epi32(m, _mm256_permute2x128_si256(m, m, 1));
#endif
    m = V(max_epi32)(m, V(shuffle_epi32)(m, 0x4e));
    return V(max_epi32)(m, V(shuffle_epi32)(m, 0xb1));
}

/* One group to its words in order, unspread. */
GEMV_INLINE void fix_group(const float *from, uint32_t *out)
{
    const vec order = V_PARTS(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    /* Adding and taking off 128 in the lower three bytes makes their digits signed, the carries
     * included. */
    const vec half = V(set1_epi32)(0x00808080);
    vec x[GROUP_VECTORS], sum = V_BITS(setzero)();
    GEMV_Q4_UNROLL
    for (int i = 0; i < GROUP_VECTORS; i++)
        x[i] = V_BITS(loadu)((const void *)(from + LANES * i));
    /* |x| < 2^(e - 126), so k = 30 - (e - 126); 2^k and 2^-k both have to be normal. */
    vec e = V(srli_epi32)(largest_magnitude(x), 23);
    vec field = V(min_epi32)(V(sub_epi32)(V(set1_epi32)(127 + 156), e), V(set1_epi32)(253));
    vecf scale = V_FLOAT(V(slli_epi32)(field, 23));
    GEMV_Q4_UNROLL
    for (int i = 0; i < GROUP_VECTORS; i++) {
        vec v = V(cvtps_epi32)(V(mul_ps)(V_FLOAT(x[i]), scale));
        v = V_BITS(xor)(V(add_epi32)(v, half), half);
        v = V(shuffle_epi8)(v, order);
        V_BITS(storeu)((void *)(out + LANES * i), v);
        sum = V(sub_epi16)(sum, V(maddubs_epi16)(V(set1_epi8)(8), v));
    }
    __m128i sums = add_parts(V(madd_epi16)(sum, V(set1_epi16)(1)));
    sums = _mm_add_epi32(sums, _mm_slli_epi32(_mm_shuffle_epi32(sums, 0xf5), 8));
    __m128i unit = _mm_slli_epi32(_mm_sub_epi32(_mm_set1_epi32(254), V_LOW(field)), 23);
    /* Not finite: a NaN. */
    unit = _mm_or_si128(unit, _mm_cmpeq_epi32(V_LOW(e), _mm_set1_epi32(255)));
    sums = _mm_shuffle_epi32(sums, 0x08);
    _mm_storeu_si128((void *)(out + PANEL_OFFSET(DIGITS_F32)), _mm_unpacklo_epi64(sums, unit));
}

GEMV_INLINE void take_group(const int8_t *xq, float x_scale, uint32_t *out)
{
    __m256i x = _mm256_loadu_si256((const void *)xq);
    _mm256_storeu_si256((void *)out, x);
    __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(8), x);
    __m128i sum = add_halves(_mm256_madd_epi16(pairs, _mm256_set1_epi16(-1)));
    sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4e));
    sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0xb1));
    __m128i unit = _mm_castps_si128(_mm_set_ss(x_scale));
    _mm_storeu_si128((void *)(out + PANEL_OFFSET(DIGITS_Q8)), _mm_unpacklo_epi64(sum, unit));
}

/* Word i of group g, at in[g][i], to out[i * groups + g]. */
GEMV_INLINE void spread_words(uint32_t in[][PANEL_WORDS(DIGITS_F32)], uint32_t *out,
                              const int groups, const int words)
{
    GEMV_Q4_UNROLL
    for (int g = 0; g < groups; g += groups < 4 ? 2 : 4) {
        for (int i = 0; i < words; i += 4) {
            uint32_t *to = out + i * groups + g;
            __m128i a = _mm_load_si128((const void *)(in[g] + i));
            __m128i b = _mm_load_si128((const void *)(in[g + 1] + i));
            __m128i ab = _mm_unpacklo_epi32(a, b), high_ab = _mm_unpackhi_epi32(a, b);
            if (groups < 4) {
                _mm_storeu_si128((void *)to, ab);
                _mm_storeu_si128((void *)(to + 4), high_ab);
                continue;
            }
            a = _mm_load_si128((const void *)(in[g + 2] + i));
            b = _mm_load_si128((const void *)(in[g + 3] + i));
            __m128i cd = _mm_unpacklo_epi32(a, b), high_cd = _mm_unpackhi_epi32(a, b);
            _mm_storeu_si128((void *)to, _mm_unpacklo_epi64(ab, cd));
            _mm_storeu_si128((void *)(to + groups), _mm_unpackhi_epi64(ab, cd));
            _mm_storeu_si128((void *)(to + 2 * groups), _mm_unpacklo_epi64(high_ab, high_cd));
            _mm_storeu_si128((void *)(to + 3 * groups), _mm_unpackhi_epi64(high_ab, high_cd));
        }
    }
}

/* Activations of one token, `groups` groups from `first`; those past the end of x are zero. */
GEMV_INLINE void fix_tile(const gemv_q4_work *work, int token, int64_t first, int64_t groups,
                          uint32_t *out, const int step, const int digits)
{
    const int64_t row_groups = work->cols / GEMV_GROUP;
    for (int64_t at = 0; at < groups; at += step) {
        alignas(64) uint32_t words[16][PANEL_WORDS(DIGITS_F32)];
        for (int g = 0; g < step; g++) {
            int64_t group = token * row_groups + first + at + g;
            if (first + at + g >= row_groups)
                memset(words[g], 0, sizeof words[g]);
            else if (digits == DIGITS_F32)
                fix_group(work->x + group * GEMV_GROUP, words[g]);
            else
                take_group(work->xq + group * GEMV_GROUP, work->x_scale[group], words[g]);
        }
        spread_words(words, out + at * PANEL_WORDS(digits), step, PANEL_WORDS(digits));
    }
}

#endif
