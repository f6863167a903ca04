#include <immintrin.h>

#include "peak.h"

#define FMA_RUN run_f32
#define FMA_NUMBER float
#define FMA_VECTOR __m256
#define FMA_STEP _mm256_fmadd_ps
#define FMA_LANES CB__PEAK_F32_LANES
#define FMA_OPERAND FMA_F32_START
#include "fma.h"

#define FMA_RUN run_f64
#define FMA_NUMBER double
#define FMA_VECTOR __m256d
#define FMA_STEP _mm256_fmadd_pd
#define FMA_LANES CB__PEAK_F64_LANES
#define FMA_OPERAND FMA_F64_START
#include "fma.h"

int cb__peak_fma_avx2(const cb_launch *launch)
{
    (launch->problem.params[FMA_TYPE] == FMA_F32 ? run_f32 : run_f64)(launch);
    return 0;
}

/* Products of pairs in 16 bits, which the ranges of u and s never fill; pairs of those in 32; the
 * sum. In assembly so that s stays in memory and v in registers: left to themselves, gcc 12 and
 * clang 14 load all of s before the loop and spill v in every step. */
/* clang-format off */
#define DOT_ONE(at, v) \
    "vpmaddubsw " #at "(%[s]), %[u], %[pairs]\n\t" \
    "vpmaddwd %[pairs], %[ones], %[pairs]\n\t" \
    "vpaddd %[pairs], %[" #v "], %[" #v "]\n\t"
/* clang-format on */

/* A step of six vectors of lanes; each has its half of a line of s. */
static inline void dot_six(__m256i v[6], __m256i u, const __m256i *s)
{
    __m256i pairs;
    __asm__(
        DOT_ONE(0, a) DOT_ONE(64, b) DOT_ONE(128, c) DOT_ONE(192, d) DOT_ONE(256, e) DOT_ONE(320, f)
        : [a] "+x"(v[0]), [b] "+x"(v[1]), [c] "+x"(v[2]), [d] "+x"(v[3]), [e] "+x"(v[4]),
          [f] "+x"(v[5]), [pairs] "=&x"(pairs)
        : [u] "x"(u), [ones] "x"(_mm256_set1_epi16(1)), [s] "r"(s), "m"(*(const __m256i(*)[11])s));
}

/* The lanes of one half of each line: a step takes half a line of u for all of them. */
static void dot_half(const int32_t *from, int32_t *to, const __m256i *u, const __m256i *s)
{
    __m256i v[CB__PEAK_VECTORS];
#pragma GCC unroll 12
    for (int i = 0; i < CB__PEAK_VECTORS; i++)
        v[i] = _mm256_loadu_si256((const __m256i *)(const void *)(from + 16 * i));
    for (int turn = 0; turn < CB__PEAK_STEPS / CB__PEAK_DOT_LINES; turn++)
        for (int line = 0; line < CB__PEAK_DOT_LINES; line++) {
            __m256i u_step = u[2 * line];
            dot_six(v, u_step, s);
            dot_six(v + 6, u_step, s + 12);
        }
#pragma GCC unroll 12
    for (int i = 0; i < CB__PEAK_VECTORS; i++)
        _mm256_store_si256((__m256i *)(void *)(to + 16 * i), v[i]);
}

int cb__peak_dot_avx2(const cb_launch *launch)
{
    const int32_t *start = launch->operands[DOT_START];
    const __m256i *u = launch->operands[DOT_U], *s = launch->operands[DOT_S];
    cb__peak_share share = cb__peak_share_of(launch);
    for (int64_t block = share.first; block < share.end; block++)
        for (int half = 0; half < 2; half++) {
            const int32_t *from = start + block % CB__PEAK_DOT_LANES + 8 * half;
            int32_t *to = (int32_t *)launch->operands[DOT_RESULT] + block * CB__PEAK_DOT_LANES;
            dot_half(from, to + 8 * half, u + half, s + half);
        }
    return 0;
}
