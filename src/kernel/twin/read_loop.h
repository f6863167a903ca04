/* read_loop.h: reading lines as fast as the machine gives them. The one read loop of the suite: of
 * twin_read and of stream_read.
 *
 * Include one lines_*.h first. A share is cut into `streams` contiguous sub-streams that are walked
 * together. One turn of the loop takes BLOCK lines (4 KiB) of all of them, or a unit of each where
 * that is more, so that a 16 KiB set is four turns a pass: the turn costs little, and the processor
 * predicts how many there are.
 *
 * No software prefetch: at 512 B to 8 KiB ahead, of each line or of the start of the next page,
 * into L1 or L2, it changed nothing in the caches and cost 5 to 40 % of the memory's bandwidth
 * (EPYC of family 25, model 17; November 2026).
 */
#ifndef COLDBENCH_KERNEL_TWIN_READ_LOOP_H
#define COLDBENCH_KERNEL_TWIN_READ_LOOP_H

#include "kernel/twin/share.h"

enum { CB__READ_BLOCK = 64, CB__STREAMS_MAX = 4 };

/* Whatever is left of a sub-stream, fewer lines than a turn takes. */
LINE_INLINE void cb__read_rest(line_vec acc[LINE_ACCUMULATORS], const char *p, size_t lines)
{
    for (; lines >= LINE_UNIT; lines -= LINE_UNIT, p += LINE_UNIT * CB__LINE)
        line_xor_unit(acc, p);
    for (; lines > 0; lines--, p += CB__LINE)
        line_xor(acc, p);
}

/* `streams` is a constant where this is inlined. */
LINE_INLINE void cb__read_pass(line_vec acc[LINE_ACCUMULATORS], const char *share, size_t lines,
                               size_t streams)
{
    const size_t block = CB__READ_BLOCK / streams;
    const size_t visit = block < LINE_UNIT ? LINE_UNIT : block;
    const size_t each = lines / streams, left = each % visit;
    const char *p[CB__STREAMS_MAX];
    for (size_t k = 0; k < streams; k++)
        p[k] = share + k * each * CB__LINE;
    /* The first pointer is also the counter. */
    for (const char *end = share + (each - left) * CB__LINE; p[0] != end;)
#pragma GCC unroll 4
        for (size_t k = 0; k < streams; k++)
#pragma GCC unroll 4
            for (size_t i = 0; i < visit; i += LINE_UNIT) {
                line_xor_unit(acc, p[k]);
                p[k] += LINE_UNIT * CB__LINE;
                __asm__("" : "+r"(p[k])); /* one pointer a sub-stream, not one a unit */
            }
    for (size_t k = 0; k < streams; k++)
        cb__read_rest(acc, p[k], left);
    cb__read_rest(acc, share + each * streams * CB__LINE, lines - each * streams);
}

LINE_INLINE uint32_t cb__read_passes(const char *share, size_t lines, int64_t passes,
                                     size_t streams)
{
    line_vec acc[LINE_ACCUMULATORS] = {0};
    for (int64_t pass = 0; pass < passes; pass++) {
        __asm__ volatile("" ::: "memory"); /* each pass reads memory anew */
        cb__read_pass(acc, share, lines, streams);
    }
    uint32_t words[LINE_ACCUMULATORS * sizeof(line_vec) / 4], checksum = 0;
    __builtin_memcpy(words, acc, sizeof words);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        checksum ^= words[i];
    return checksum;
}

/* The xor of all 32-bit words of `lines` lines, taken `passes` times: 0 where that is even. */
static inline uint32_t cb__read_checksum(const char *share, size_t lines, int64_t passes,
                                         int64_t streams)
{
    if (streams == 4)
        return cb__read_passes(share, lines, passes, 4);
    return streams == 2 ? cb__read_passes(share, lines, passes, 2)
                        : cb__read_passes(share, lines, passes, 1);
}

#endif
