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

#define CB__LAUNCH_CHOICE(is, says, table, at)                                                     \
    {                                                                                              \
        .name = is, .help = says, .values = table,                                                 \
        .count = (int)(sizeof(table) / sizeof(table)[0]), .preset = at,                            \
    }
#define CB__LAUNCH_CHOICES(blocks_preset, threads_preset, loads_preset)                            \
    CB__LAUNCH_CHOICE("blocks", "blocks a multiprocessor, where the set has a turn for each",      \
                      CB__LAUNCH_BLOCK_VALUES, blocks_preset),                                     \
        CB__LAUNCH_CHOICE("threads", "threads a block", CB__LAUNCH_THREAD_VALUES, threads_preset), \
        CB__LAUNCH_CHOICE("loads", "16-byte accesses of a thread in flight",                       \
                          CB__LAUNCH_LOAD_VALUES, loads_preset)

static const int64_t CB__LAUNCH_BLOCK_VALUES[] = {1, 2, 4, 8, 16, 32};
static const int64_t CB__LAUNCH_THREAD_VALUES[] = {256, 512, 1024};
static const int64_t CB__LAUNCH_LOAD_VALUES[] = {4, 8, 16};

/* Every processor has a block, also of a set that is small; a block more for each turn (what all
 * its threads have in flight at once) that the set has for all processors. */
static inline int cb__launch_geometry(uint64_t bytes, const int64_t *tunables, int processors,
                                      cb_geometry *out)
{
    uint64_t threads = (uint64_t)tunables[CB__LAUNCH_THREADS];
    uint64_t turn = threads * (uint64_t)tunables[CB__LAUNCH_LOADS] * CB__LAUNCH_VECTOR_BYTES;
    uint64_t turns = bytes / (turn * (uint64_t)processors);
    uint64_t most = (uint64_t)tunables[CB__LAUNCH_BLOCKS];
    uint64_t blocks = turns < 1 ? 1 : (turns < most ? turns : most);
    *out = (cb_geometry){
        {(uint32_t)(blocks * (uint64_t)processors), 1, 1}, {(uint32_t)threads, 1, 1}, 0};
    return 0;
}

#endif
