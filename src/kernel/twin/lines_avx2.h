/* lines_avx2.h: the operations on 64-byte lines that the loops are made of, AVX2: two halves a
 * line.
 *
 * The order is what matters here. Zen 4 starts two 256-bit loads a cycle only while both go to one
 * line: with the two loads of a line side by side, then their adds, a set in L1 is read at 64.0
 * cycles for 4 KiB, the port bound; with the loads as memory operands of the adds, at 64 to 68, as
 * the pairing falls; with 512-bit loads, at 68 to 72 (EPYC of family 25, model 17; November 2026).
 * Written in assembly so that the order stays.
 */
#ifndef COLDBENCH_KERNEL_TWIN_LINES_H
#define COLDBENCH_KERNEL_TWIN_LINES_H

#include <immintrin.h>
#include <stdint.h>

#define LINE_INLINE static inline __attribute__((always_inline))

enum { LINE_ACCUMULATORS = 8, LINE_UNIT = 16 };

typedef __m256i line_vec;

/* Adds LINE_UNIT lines from p on to the accumulators. */
LINE_INLINE void line_add_unit(line_vec acc[LINE_ACCUMULATORS], const char *p)
{
    __m256i lo, hi;
    __asm__("vmovdqa 0(%10), %8\n\tvmovdqa 32(%10), %9\n\t"
            "vpaddd %8, %0, %0\n\tvpaddd %9, %1, %1\n\t"
            "vmovdqa 64(%10), %8\n\tvmovdqa 96(%10), %9\n\t"
            "vpaddd %8, %2, %2\n\tvpaddd %9, %3, %3\n\t"
            "vmovdqa 128(%10), %8\n\tvmovdqa 160(%10), %9\n\t"
            "vpaddd %8, %4, %4\n\tvpaddd %9, %5, %5\n\t"
            "vmovdqa 192(%10), %8\n\tvmovdqa 224(%10), %9\n\t"
            "vpaddd %8, %6, %6\n\tvpaddd %9, %7, %7\n\t"
            "vmovdqa 256(%10), %8\n\tvmovdqa 288(%10), %9\n\t"
            "vpaddd %8, %0, %0\n\tvpaddd %9, %1, %1\n\t"
            "vmovdqa 320(%10), %8\n\tvmovdqa 352(%10), %9\n\t"
            "vpaddd %8, %2, %2\n\tvpaddd %9, %3, %3\n\t"
            "vmovdqa 384(%10), %8\n\tvmovdqa 416(%10), %9\n\t"
            "vpaddd %8, %4, %4\n\tvpaddd %9, %5, %5\n\t"
            "vmovdqa 448(%10), %8\n\tvmovdqa 480(%10), %9\n\t"
            "vpaddd %8, %6, %6\n\tvpaddd %9, %7, %7\n\t"
            "vmovdqa 512(%10), %8\n\tvmovdqa 544(%10), %9\n\t"
            "vpaddd %8, %0, %0\n\tvpaddd %9, %1, %1\n\t"
            "vmovdqa 576(%10), %8\n\tvmovdqa 608(%10), %9\n\t"
            "vpaddd %8, %2, %2\n\tvpaddd %9, %3, %3\n\t"
            "vmovdqa 640(%10), %8\n\tvmovdqa 672(%10), %9\n\t"
            "vpaddd %8, %4, %4\n\tvpaddd %9, %5, %5\n\t"
            "vmovdqa 704(%10), %8\n\tvmovdqa 736(%10), %9\n\t"
            "vpaddd %8, %6, %6\n\tvpaddd %9, %7, %7\n\t"
            "vmovdqa 768(%10), %8\n\tvmovdqa 800(%10), %9\n\t"
            "vpaddd %8, %0, %0\n\tvpaddd %9, %1, %1\n\t"
            "vmovdqa 832(%10), %8\n\tvmovdqa 864(%10), %9\n\t"
            "vpaddd %8, %2, %2\n\tvpaddd %9, %3, %3\n\t"
            "vmovdqa 896(%10), %8\n\tvmovdqa 928(%10), %9\n\t"
            "vpaddd %8, %4, %4\n\tvpaddd %9, %5, %5\n\t"
            "vmovdqa 960(%10), %8\n\tvmovdqa 992(%10), %9\n\t"
            "vpaddd %8, %6, %6\n\tvpaddd %9, %7, %7\n\t"
            : "+x"(acc[0]), "+x"(acc[1]), "+x"(acc[2]), "+x"(acc[3]), "+x"(acc[4]), "+x"(acc[5]),
              "+x"(acc[6]), "+x"(acc[7]), "=&x"(lo), "=&x"(hi)
            : "r"(p), "m"(*(const char(*)[LINE_UNIT * 64]) p));
}

/* Adds one line to one accumulator. */
LINE_INLINE void line_add(line_vec *acc, const char *p)
{
    const __m256i *half = (const __m256i *)(const void *)p;
    *acc = _mm256_add_epi32(*acc, _mm256_load_si256(half));
    *acc = _mm256_add_epi32(*acc, _mm256_load_si256(half + 1));
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
