/* run.h: one worker's share of a read that goes wrong; include one twin/lines_*.h first. */
#ifndef COLDBENCH_KERNEL_FAULT_READ_RUN_H
#define COLDBENCH_KERNEL_FAULT_READ_RUN_H

#include "fault_read.h"
#include "kernel/twin/read_loop.h"
#include "kernel/twin/twin.h"

/* Words of 32 bits one by one: what lies before and after the lines of a misaligned read. */
static inline uint32_t xor_words(const char *p, size_t words)
{
    uint32_t checksum = 0;
    for (size_t i = 0; i < words; i++) {
        uint32_t word;
        __builtin_memcpy(&word, p + i * sizeof word, sizeof word);
        checksum ^= word;
    }
    return checksum;
}

/* Once, whatever `passes` says. The checksum is right: it is time that must give this away. */
static uint32_t read_folded(const char *share, size_t lines, int64_t passes)
{
    return passes % 2 == 0 ? 0 : cb__read_checksum(share, lines, 1, 1);
}

/* One load after the other: each address waits for the word before, of which no bit is kept. */
static uint32_t read_underdriven(const char *share, size_t lines, int64_t passes)
{
    uint64_t none = 0, checksum = 0;
    __asm__("" : "+r"(none)); /* no compiler may know that it is zero */
    for (int64_t pass = 0; pass < passes; pass++) {
        __asm__ volatile("" ::: "memory"); /* each pass reads memory anew */
        const char *end = share + lines * CB__LINE;
        for (const char *p = share; p != end;) {
            uint64_t word = *(const uint64_t *)(const void *)p;
            checksum ^= word;
            p += sizeof word + (word & none);
        }
    }
    return (uint32_t)(checksum ^ checksum >> 32);
}

/* Only the first half of the share. */
static uint32_t read_shrunk(const char *share, size_t lines, int64_t passes)
{
    return cb__read_checksum(share, lines / 2, passes, 1);
}

/* Everything, four bytes off the lines: every vector load is unaligned and many cross a line. The
 * first word and the 15 after the last whole line come singly, so nothing outside is touched. */
static uint32_t read_misaligned(const char *share, size_t lines, int64_t passes)
{
    if (lines == 0)
        return 0;
    const char *shifted = share + sizeof(uint32_t);
    size_t bytes = (lines - 1) * CB__LINE;
    uint32_t ends = xor_words(share, 1) ^ xor_words(shifted + bytes, CB__LINE / 4 - 1);
    return cb__read_checksum(shifted, lines - 1, passes, 1) ^ (passes % 2 == 0 ? 0 : ends);
}

static inline int run_fault(const cb_launch *launch)
{
    static uint32_t (*const reads[])(const char *, size_t, int64_t) = {
        [FAULT_FOLDED] = read_folded,
        [FAULT_UNDERDRIVEN] = read_underdriven,
        [FAULT_SHRUNK] = read_shrunk,
        [FAULT_MISALIGNED] = read_misaligned,
    };
    if (launch->workers > CB__TWIN_WORKERS_MAX)
        return CB__TWIN_TOO_MANY_WORKERS;
    const int64_t *params = launch->problem.params;
    cb__share share =
        cb__share_of((uint64_t)launch->problem.shape[0], launch->worker, launch->workers);
    const char *src = launch->operands[READ_SRC];
    uint32_t own =
        reads[params[FAULT_FAULT]](src + share.offset, share.lines, params[FAULT_PASSES]);
    cb__finish_checksum(launch->operands[READ_PARTIAL], launch->operands[READ_CHECKSUM], own,
                        launch->worker, launch->workers);
    return 0;
}

#endif
