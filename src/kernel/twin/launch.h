/* launch.h: on how many threads the device code of vectors.cuh is launched, for whoever includes
 * it.
 */
#ifndef COLDBENCH_KERNEL_TWIN_LAUNCH_H
#define COLDBENCH_KERNEL_TWIN_LAUNCH_H

#include "coldbench/kernel.h"

/* The text of this module's cuda.cu. */
extern const char cb__cuda_source[];

/* The first tunables of all such code, in this order. */
enum { CB__LAUNCH_BLOCKS, CB__LAUNCH_THREADS, CB__LAUNCH_LOADS, CB__LAUNCH_TUNABLES };
enum { CB__LAUNCH_VECTOR_BYTES = 16 };

/* Returned where a block's registers cannot hold what its threads would have in flight. */
enum { CB__LAUNCH_TURN_MAX = 1024 * 8, CB__LAUNCH_TURN_TOO_LONG = 1 };

#define CB__LAUNCH_CHOICE(is, says, table, at)                                                     \
    {                                                                                              \
        .name = is, .help = says, .values = table,                                                 \
        .count = (int)(sizeof(table) / sizeof(table)[0]), .preset = at,                            \
    }
#define CB__LAUNCH_CHOICES(blocks_preset, threads_preset, loads_preset)                            \
    CB__LAUNCH_CHOICE("blocks",                                                                    \
                      "blocks a multiprocessor, no more than the set has turns (what a block "     \
                      "has in flight at once); 0: a block a turn",                                 \
                      CB__LAUNCH_BLOCK_VALUES, blocks_preset),                                     \
        CB__LAUNCH_CHOICE("threads", "threads a block", CB__LAUNCH_THREAD_VALUES, threads_preset), \
        CB__LAUNCH_CHOICE("loads", "16-byte accesses of a thread in flight",                       \
                          CB__LAUNCH_LOAD_VALUES, loads_preset)

static const int64_t CB__LAUNCH_BLOCK_VALUES[] = {0, 1, 2, 4, 8, 16, 32, 64, 256};
static const int64_t CB__LAUNCH_THREAD_VALUES[] = {128, 256, 512, 1024};
static const int64_t CB__LAUNCH_LOAD_VALUES[] = {2, 4, 8, 16};

/* Threads that are resident on a processor of every device, with the registers that they need. */
static inline uint64_t cb__launch_resident(const int64_t *tunables)
{
    return tunables[CB__LAUNCH_LOADS] > 8 ? 512 : 1024;
}

/* Every processor has a block, also of a set that is small; a block more for each turn (what all
 * its threads have in flight at once) that the set has for all processors. With more than one pass
 * no more blocks than are resident: one that comes later goes over its slice again and again while
 * the rest of the set is left alone, so that with four times as many a set of 123 MB was read at
 * 8.6 TB/s on an H200, whose caches hold 30 MB at that speed (docs/results/cuda-twins.md). */
static inline int cb__launch_geometry(uint64_t bytes, int64_t passes, const int64_t *tunables,
                                      int processors, cb_geometry *out)
{
    uint64_t threads = (uint64_t)tunables[CB__LAUNCH_THREADS];
    uint64_t turn = threads * (uint64_t)tunables[CB__LAUNCH_LOADS] * CB__LAUNCH_VECTOR_BYTES;
    if (turn > CB__LAUNCH_TURN_MAX * CB__LAUNCH_VECTOR_BYTES)
        return CB__LAUNCH_TURN_TOO_LONG;
    uint64_t blocks = (uint64_t)tunables[CB__LAUNCH_BLOCKS];
    uint64_t turns = bytes / (turn * (uint64_t)processors);
    uint64_t resident = cb__launch_resident(tunables) / threads;
    if (blocks == 0 || blocks > turns)
        blocks = turns;
    if (passes > 1 && blocks > resident)
        blocks = resident;
    if (blocks < 1)
        blocks = 1;
    *out = (cb_geometry){
        {(uint32_t)(blocks * (uint64_t)processors), 1, 1}, {(uint32_t)threads, 1, 1}, 0};
    return 0;
}

#endif
