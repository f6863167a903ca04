/* run.h: one worker's share of a twin launch, in terms of the lines_*.h included before it. */
#ifndef COLDBENCH_KERNEL_TWIN_RUN_H
#define COLDBENCH_KERNEL_TWIN_RUN_H

#include "read_loop.h"
#include "share.h"
#include "twin.h"
#include "write_loop.h"

static inline int run_read(const cb_launch *launch)
{
    if (launch->workers > CB__TWIN_WORKERS_MAX)
        return CB__TWIN_TOO_MANY_WORKERS;
    cb__share share =
        cb__share_of((uint64_t)launch->problem.shape[0], launch->worker, launch->workers);
    const char *src = launch->operands[READ_SRC];
    uint32_t own = cb__read_checksum(src + share.offset, share.lines, launch->problem.params[0],
                                     launch->tunables[READ_STREAMS]);
    cb__finish_checksum(launch->operands[READ_PARTIAL], launch->operands[READ_CHECKSUM], own,
                        launch->worker, launch->workers);
    return 0;
}

static inline int run_write(const cb_launch *launch)
{
    cb__share share =
        cb__share_of((uint64_t)launch->problem.shape[0], launch->worker, launch->workers);
    int64_t passes = launch->problem.params[0];
    char *to = (char *)launch->operands[WRITE_DST] + share.offset;
    line_value value = line_load(launch->operands[WRITE_SEED]);
#if LINE_NONTEMPORAL
    if (launch->tunables[WRITE_NONTEMPORAL]) {
        cb__move_passes(to, NULL, value, share.lines, passes, 1, line_store_nontemporal);
        line_fence();
        return 0;
    }
#endif
    cb__move_passes(to, NULL, value, share.lines, passes, 1, line_store);
    return 0;
}

/* `store` is a constant where this is inlined. */
LINE_INLINE void run_copy_with(const cb_launch *launch, line_store_fn *store)
{
    cb__share share =
        cb__share_of((uint64_t)launch->problem.shape[0], launch->worker, launch->workers);
    int64_t passes = launch->problem.params[0];
    const char *from = (const char *)launch->operands[COPY_SRC] + share.offset;
    char *to = (char *)launch->operands[COPY_DST] + share.offset;
    line_value none = line_load(launch->operands[COPY_SRC]);
    if (launch->tunables[COPY_STREAMS] == 2)
        cb__move_passes(to, from, none, share.lines, passes, 2, store);
    else
        cb__move_passes(to, from, none, share.lines, passes, 1, store);
}

static inline int run_copy(const cb_launch *launch)
{
#if LINE_NONTEMPORAL
    if (launch->tunables[COPY_NONTEMPORAL]) {
        run_copy_with(launch, line_store_nontemporal);
        line_fence();
        return 0;
    }
#endif
    run_copy_with(launch, line_store);
    return 0;
}

#endif
