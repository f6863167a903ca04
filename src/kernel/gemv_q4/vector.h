/* vector.h: the vectors of panel_run.h, as wide as the file is compiled for, and dot products of
 * unsigned nibbles with signed bytes: with VNNI where there, else by 16-bit pairs.
 *
 * Those pairs cannot overflow: a lane adds 8 times two products, and what is added up of
 * (q - 8) * x stays within 16 * 8 * 128, while sums beyond wrap back.
 */
#ifndef CB_GEMV_Q4_VECTOR_H
#define CB_GEMV_Q4_VECTOR_H

#include <immintrin.h>

#include "panel_x.h"

#ifdef __AVX512F__
enum { LANES = 16 };
typedef __m512i vec;
typedef __m512 vecf;
#define V(name) _mm512_##name
#define V_BITS(name) _mm512_##name##_si512
#define V_FLOAT _mm512_castsi512_ps
#else
enum { LANES = 8 };
typedef __m256i vec;
typedef __m256 vecf;
#define V(name) _mm256_##name
#define V_BITS(name) _mm256_##name##_si256
#define V_FLOAT _mm256_castsi256_ps
#endif

/* Keep the compiler from looking through a value: gcc 12 otherwise loads lines twice, adds products
 * up as a tree that does not fit the registers, and keeps all of x for the next vectors on the
 * stack. */
#define GEMV_Q4_OPAQUE_VECTOR(vector) __asm__("" : "+v"(vector))
#define GEMV_Q4_OPAQUE(pointer) __asm__("" : "+r"(pointer))

/* `groups` words, repeated: a load. */
GEMV_INLINE vec repeat(const uint32_t *words, const int groups)
{
#ifdef __AVX512F__
    if (groups == 16)
        return _mm512_loadu_si512(words);
    if (groups == 8)
        return _mm512_broadcast_i32x8(_mm256_loadu_si256((const void *)words));
    return _mm512_broadcast_i32x4(_mm_loadu_si128((const void *)words));
#else
    if (groups == 8)
        return _mm256_loadu_si256((const void *)words);
    if (groups == 4)
        return _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)words));
    return _mm256_castpd_si256(_mm256_broadcast_sd((const void *)words));
#endif
}

GEMV_INLINE vecf load_f16(const uint16_t *from)
{
#ifdef __AVX512F__
    return _mm512_cvtph_ps(_mm256_loadu_si256((const void *)from));
#else
    return _mm256_cvtph_ps(_mm_loadu_si128((const void *)from));
#endif
}

/* A sum of dot products starts, grows by one, and ends as 32-bit integers, `offset` included: as
 * words to repeat, or NULL. Where it is included is where it costs least. */
#ifdef __AVX512VNNI__
GEMV_INLINE vec dot_begin(const uint32_t *offset, const int groups)
{
    return offset != NULL ? repeat(offset, groups) : V_BITS(setzero)();
}
GEMV_INLINE vec dot_add(vec dot, vec q, vec x)
{
    return V(dpbusd_epi32)(dot, q, x);
}
GEMV_INLINE vec dot_end(vec dot, const uint32_t *offset, const int groups)
{
    (void)offset;
    (void)groups;
    return dot;
}
#else
GEMV_INLINE vec dot_begin(const uint32_t *offset, const int groups)
{
    (void)offset;
    (void)groups;
    return V_BITS(setzero)();
}
GEMV_INLINE vec dot_add(vec dot, vec q, vec x)
{
    dot = V(add_epi16)(dot, V(maddubs_epi16)(q, x));
    GEMV_Q4_OPAQUE_VECTOR(dot);
    return dot;
}
GEMV_INLINE vec dot_end(vec dot, const uint32_t *offset, const int groups)
{
    dot = V(madd_epi16)(dot, V(set1_epi16)(1));
    return offset != NULL ? V(add_epi32)(repeat(offset, groups), dot) : dot;
}
#endif

/* Sums of each `groups` lanes that follow each other, in the first of them. */
GEMV_INLINE vecf add_groups(vecf v, const int groups)
{
    v = V(add_ps)(v, V(permute_ps)(v, 0xb1));
    if (groups >= 4)
        v = V(add_ps)(v, V(permute_ps)(v, 0x4e));
#ifdef __AVX512F__
    if (groups >= 8)
        v = _mm512_add_ps(v, _mm512_shuffle_f32x4(v, v, 0xb1));
    if (groups >= 16)
        v = _mm512_add_ps(v, _mm512_shuffle_f32x4(v, v, 0x4e));
#else
    if (groups >= 8)
        v = _mm256_add_ps(v, _mm256_permute2f128_ps(v, v, 1));
#endif
    return v;
}

#endif
