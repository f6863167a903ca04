/* lines_portable.h: the operations on 64-byte lines that the loops are made of, in C with the
 * compilers' 16-byte vectors: SSE2, NEON, VSX, or scalar code where there is nothing.
 */
#ifndef COLDBENCH_KERNEL_TWIN_LINES_H
#define COLDBENCH_KERNEL_TWIN_LINES_H

#include <stdint.h>

#define LINE_INLINE static inline __attribute__((always_inline))

#define LINE_NONTEMPORAL 0 /* there is no portable non-temporal store */

enum { LINE_ACCUMULATORS = 8, LINE_UNIT = 16 };

typedef uint32_t line_vec __attribute__((vector_size(16), may_alias));

/* What the xors read; fault_read has them take any address. */
#ifndef LINE_ALIGN
#define LINE_ALIGN 16
#endif
typedef uint32_t line_source __attribute__((vector_size(16), may_alias, aligned(LINE_ALIGN)));

/* Xors LINE_UNIT lines from p on into the accumulators. */
LINE_INLINE void line_xor_unit(line_vec acc[LINE_ACCUMULATORS], const char *p)
{
    const line_source *quarter = (const line_source *)(const void *)p;
#pragma GCC unroll 64
    for (int i = 0; i < LINE_UNIT * 4; i++)
        acc[i % LINE_ACCUMULATORS] ^= quarter[i];
}

/* Xors one line into four of the accumulators. */
LINE_INLINE void line_xor(line_vec acc[LINE_ACCUMULATORS], const char *p)
{
    const line_source *quarter = (const line_source *)(const void *)p;
    for (int i = 0; i < 4; i++)
        acc[i] ^= quarter[i];
}

typedef struct line_value {
    line_vec quarter[4];
} line_value;

LINE_INLINE line_value line_load(const char *p)
{
    const line_vec *quarter = (const line_vec *)(const void *)p;
    return (line_value){{quarter[0], quarter[1], quarter[2], quarter[3]}};
}

LINE_INLINE void line_store(char *p, line_value value)
{
    line_vec *quarter = (line_vec *)(void *)p;
    for (int i = 0; i < 4; i++)
        quarter[i] = value.quarter[i];
}

#endif
