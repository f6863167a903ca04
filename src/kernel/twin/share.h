/* share.h: who reads which lines, and how the checksum of all workers comes together.
 *
 * Everything here moves whole 64-byte lines. Worker w of n has the contiguous lines
 * [lines*w/n, lines*(w+1)/n).
 */
#ifndef COLDBENCH_KERNEL_TWIN_SHARE_H
#define COLDBENCH_KERNEL_TWIN_SHARE_H

#include "coldbench/kernel.h"

#include <stdatomic.h>

enum { CB__LINE = 64, CB__TWIN_WORKERS_MAX = 1024 };

/* Returned by run() where `partial` has no room for so many workers. */
enum { CB__TWIN_TOO_MANY_WORKERS = 1 };

typedef struct cb__share {
    uint64_t offset; /* bytes from the start of the operand */
    uint64_t lines;
} cb__share;

/* The share of one worker in `bytes` (a multiple of 64); lines * workers must not overflow. */
static inline cb__share cb__share_of(uint64_t bytes, int worker, int workers)
{
    uint64_t lines = bytes / CB__LINE;
    uint64_t first = lines * (uint64_t)worker / (uint64_t)workers;
    uint64_t end = lines * ((uint64_t)worker + 1) / (uint64_t)workers;
    return (cb__share){first * CB__LINE, end - first};
}

/* The scratch operand of the reading kernels: zero before the first launch, and left with
 * `finished` zero by every launch. A line a worker, so that no two workers write the same one. */
typedef struct cb__partials {
    struct {
        _Alignas(CB__LINE) uint32_t checksum;
    } worker[CB__TWIN_WORKERS_MAX];
    _Alignas(CB__LINE) _Atomic uint32_t finished;
} cb__partials;

/* Hands in one worker's checksum. The last to come joins them, so no worker waits for another. */
static inline void cb__finish_checksum(cb__partials *partials, uint32_t *checksum, uint32_t own,
                                       int worker, int workers)
{
    partials->worker[worker].checksum = own;
    uint32_t before = atomic_fetch_add_explicit(&partials->finished, 1, memory_order_acq_rel);
    if (before + 1 != (uint32_t)workers)
        return;
    uint32_t all = 0;
    for (int i = 0; i < workers; i++)
        all ^= partials->worker[i].checksum;
    *checksum = all;
    atomic_store_explicit(&partials->finished, 0, memory_order_relaxed);
}

#endif
