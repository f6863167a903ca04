/* lines_avx512.h: the operations on 64-byte lines that the loops are made of, AVX-512.
 *
 * A load is the memory operand of the add that consumes it, written in assembly with a plain base
 * register: one fused operation a line, and no compiler can split, reassociate or drop it. Golden
 * Cove and Zen 5 start two of them a cycle (128 B), Zen 4 one (64 B): sixteen lines take eight
 * cycles of both load ports and of both 512-bit adders, and seventeen of the 48 dispatch slots.
 */
#ifndef COLDBENCH_KERNEL_TWIN_LINES_H
#define COLDBENCH_KERNEL_TWIN_LINES_H

#include <immintrin.h>
#include <stdint.h>

#define LINE_INLINE static inline __attribute__((always_inline))

enum { LINE_ACCUMULATORS = 8, LINE_UNIT = 16 };

typedef __m512i line_vec;

/* Adds LINE_UNIT lines from p on to the accumulators. */
LINE_INLINE void line_add_unit(line_vec acc[LINE_ACCUMULATORS], const char *p)
{
    __asm__("vpaddd 0(%8), %0, %0\n\t"
            "vpaddd 64(%8), %1, %1\n\t"
            "vpaddd 128(%8), %2, %2\n\t"
            "vpaddd 192(%8), %3, %3\n\t"
            "vpaddd 256(%8), %4, %4\n\t"
            "vpaddd 320(%8), %5, %5\n\t"
            "vpaddd 384(%8), %6, %6\n\t"
            "vpaddd 448(%8), %7, %7\n\t"
            "vpaddd 512(%8), %0, %0\n\t"
            "vpaddd 576(%8), %1, %1\n\t"
            "vpaddd 640(%8), %2, %2\n\t"
            "vpaddd 704(%8), %3, %3\n\t"
            "vpaddd 768(%8), %4, %4\n\t"
            "vpaddd 832(%8), %5, %5\n\t"
            "vpaddd 896(%8), %6, %6\n\t"
            "vpaddd 960(%8), %7, %7\n\t"
            : "+v"(acc[0]), "+v"(acc[1]), "+v"(acc[2]), "+v"(acc[3]), "+v"(acc[4]), "+v"(acc[5]),
              "+v"(acc[6]), "+v"(acc[7])
            : "r"(p), "m"(*(const char(*)[LINE_UNIT * 64]) p));
}

/* Adds one line to one accumulator. */
LINE_INLINE void line_add(line_vec *acc, const char *p)
{
    *acc = _mm512_add_epi32(*acc, _mm512_load_si512(p));
}

typedef struct line_value {
    __m512i v;
} line_value;

LINE_INLINE line_value line_load(const char *p)
{
    return (line_value){_mm512_load_si512(p)};
}

LINE_INLINE void line_store(char *p, line_value value)
{
    _mm512_store_si512(p, value.v);
}

#define LINE_NONTEMPORAL 1

LINE_INLINE void line_store_nontemporal(char *p, line_value value)
{
    _mm512_stream_si512((void *)p, value.v);
}

/* Makes non-temporal stores visible before whatever tells another thread that they are done. */
LINE_INLINE void line_fence(void)
{
    _mm_sfence();
}

#endif
