/* lines_avx2.h: the operations on 64-byte lines that the loops are made of, AVX2: two halves a
 * line.
 *
 * The order is what matters here. Zen 4 starts two 256-bit loads a cycle only while both go to one
 * line: with the two loads of a line side by side, then their xors, a set in L1 is read at 64.0
 * cycles for 4 KiB, the port bound; with the loads as memory operands of the operations, at 64 to
 * 68, as the pairing falls; with 512-bit loads, at 68 to 72 (EPYC of family 25, model 17; November
 * 2026). Written in assembly so that the order stays. The xors take any address, at no cost where
 * it is aligned: fault_read gives them others.
 */
#ifndef COLDBENCH_KERNEL_TWIN_LINES_H
#define COLDBENCH_KERNEL_TWIN_LINES_H

#include <immintrin.h>
#include <stdint.h>

#define LINE_INLINE static inline __attribute__((always_inline))

enum { LINE_ACCUMULATORS = 8, LINE_UNIT = 16 };

typedef __m256i line_vec;

/* clang-format off */
#define LINE_ONE(at, acc_lo, acc_hi) \
    "vmovdqu " #at "(%[p]), %[lo]\n\t" \
    "vmovdqu " #at "+32(%[p]), %[hi]\n\t" \
    "vpxor %[lo], %[" #acc_lo "], %[" #acc_lo "]\n\t" \
    "vpxor %[hi], %[" #acc_hi "], %[" #acc_hi "]\n\t"
#define LINE_FOUR(at) \
    LINE_ONE(at, a, b) LINE_ONE(at+64, c, d) LINE_ONE(at+128, e, f) LINE_ONE(at+192, g, h)
/* clang-format on */

/* Xors LINE_UNIT lines from p on into the accumulators. */
LINE_INLINE void line_xor_unit(line_vec acc[LINE_ACCUMULATORS], const char *p)
{
    __m256i lo, hi;
    __asm__(
        LINE_FOUR(0) LINE_FOUR(256) LINE_FOUR(512) LINE_FOUR(768)
        : [a] "+x"(acc[0]), [b] "+x"(acc[1]), [c] "+x"(acc[2]), [d] "+x"(acc[3]), [e] "+x"(acc[4]),
          [f] "+x"(acc[5]), [g] "+x"(acc[6]), [h] "+x"(acc[7]), [lo] "=&x"(lo), [hi] "=&x"(hi)
        : [p] "r"(p), "m"(*(const char(*)[LINE_UNIT * 64]) p));
}

/* Xors one line into two of the accumulators. */
LINE_INLINE void line_xor(line_vec acc[LINE_ACCUMULATORS], const char *p)
{
    const __m256i *half = (const __m256i *)(const void *)p;
    acc[0] = _mm256_xor_si256(acc[0], _mm256_loadu_si256(half));
    acc[1] = _mm256_xor_si256(acc[1], _mm256_loadu_si256(half + 1));
}

typedef struct line_value {
    __m256i lo, hi;
} line_value;

LINE_INLINE line_value line_load(const char *p)
{
    const __m256i *half = (const __m256i *)(const void *)p;
    return (line_value){_mm256_load_si256(half), _mm256_load_si256(half + 1)};
}

LINE_INLINE void line_store(char *p, line_value value)
{
    __m256i *half = (__m256i *)(void *)p;
    _mm256_store_si256(half, value.lo);
    _mm256_store_si256(half + 1, value.hi);
}

#define LINE_NONTEMPORAL 1

LINE_INLINE void line_store_nontemporal(char *p, line_value value)
{
    __m256i *half = (__m256i *)(void *)p;
    _mm256_stream_si256(half, value.lo);
    _mm256_stream_si256(half + 1, value.hi);
}

/* Makes non-temporal stores visible before whatever tells another thread that they are done. */
LINE_INLINE void line_fence(void)
{
    _mm_sfence();
}

#endif
