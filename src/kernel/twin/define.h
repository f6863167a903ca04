/* define.h: what the definitions of the reading, writing and copying kernels have in common. */
#ifndef COLDBENCH_KERNEL_TWIN_DEFINE_H
#define COLDBENCH_KERNEL_TWIN_DEFINE_H

#include "kernel/twin/share.h"

/* 1 TiB: times 4096 passes it stays far below 2^64. */
#define CB__BYTES_MAX (INT64_C(1) << 40)

/* Random words everywhere; `bytes` is a multiple of 64 and a part is whole lines. */
static inline void cb__fill_words(uint64_t seed, int operand, uint64_t set, void *logical,
                                  uint64_t bytes, int part, int parts)
{
    cb__share share = cb__share_of(bytes, part, parts);
    uint64_t key = cb_random_key(seed, (uint64_t)operand, set);
    uint64_t first = share.offset / sizeof(uint64_t);
    uint64_t end = first + share.lines * CB__LINE / sizeof(uint64_t);
    uint64_t *words = logical;
    for (uint64_t i = first; i < end; i++)
        words[i] = cb_random_word(key, i);
}

/* The checksum of `bytes` bytes: the xor of their words. */
static inline uint32_t cb__reference_checksum(const void *logical, uint64_t bytes)
{
    const uint32_t *words = logical;
    uint32_t checksum = 0;
    for (uint64_t i = 0; i < bytes / sizeof(uint32_t); i++)
        checksum ^= words[i];
    return checksum;
}

#endif
