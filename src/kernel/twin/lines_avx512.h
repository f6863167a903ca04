/* lines_avx512.h: the operations on 64-byte lines that the loops are made of, AVX-512.
 *
 * Two lines take one vector operation, a three-way xor: the first line is loaded, the second is the
 * memory operand. Golden Cove and Zen 5 start two loads a cycle (128 B), Zen 4 one. Golden Cove has
 * two ports for 512-bit arithmetic: with an operation a line both would have to be given work in
 * every cycle, and a set in L1 was read at 84 % of what plain loads reach (Emerald Rapids; November
 * 2026). Written in assembly with a plain base register, so that the operand stays fused and no
 * compiler can split, reassociate or drop it. The xors take any address, at no cost where it is
 * aligned: fault_read gives them others.
 */
#ifndef COLDBENCH_KERNEL_TWIN_LINES_H
#define COLDBENCH_KERNEL_TWIN_LINES_H

#include <immintrin.h>
#include <stdint.h>

#define LINE_INLINE static inline __attribute__((always_inline))

enum { LINE_ACCUMULATORS = 8, LINE_UNIT = 32 };

typedef __m512i line_vec;

/* clang-format off */
#define LINE_PAIR(at, acc) \
    "vmovdqu64 " #at "(%[p]), %[line]\n\t" \
    "vpternlogd $0x96, " #at "+64(%[p]), %[line], %[" #acc "]\n\t"
#define LINE_PAIRS(at) \
    LINE_PAIR(at, a) LINE_PAIR(at+128, b) LINE_PAIR(at+256, c) LINE_PAIR(at+384, d) \
    LINE_PAIR(at+512, e) LINE_PAIR(at+640, f) LINE_PAIR(at+768, g) LINE_PAIR(at+896, h)
/* clang-format on */

/* Xors LINE_UNIT lines from p on into the accumulators. */
LINE_INLINE void line_xor_unit(line_vec acc[LINE_ACCUMULATORS], const char *p)
{
    __m512i line;
    __asm__(
        LINE_PAIRS(0) LINE_PAIRS(1024)
        : [a] "+v"(acc[0]), [b] "+v"(acc[1]), [c] "+v"(acc[2]), [d] "+v"(acc[3]), [e] "+v"(acc[4]),
          [f] "+v"(acc[5]), [g] "+v"(acc[6]), [h] "+v"(acc[7]), [line] "=&v"(line)
        : [p] "r"(p), "m"(*(const char(*)[LINE_UNIT * 64]) p));
}

/* Xors one line into an accumulator. */
LINE_INLINE void line_xor(line_vec acc[LINE_ACCUMULATORS], const char *p)
{
    acc[0] = _mm512_xor_si512(acc[0], _mm512_loadu_si512(p));
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
