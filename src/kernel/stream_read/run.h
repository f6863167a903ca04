/* run.h: one worker's share of a stream_read launch; include one twin/lines_*.h first. */
#ifndef COLDBENCH_KERNEL_STREAM_READ_RUN_H
#define COLDBENCH_KERNEL_STREAM_READ_RUN_H

#include "kernel/twin/read_loop.h"
#include "stream_read.h"

static inline int run_stream_read(const cb_launch *launch)
{
    if (launch->workers > CB__TWIN_WORKERS_MAX)
        return CB__TWIN_TOO_MANY_WORKERS;
    cb__share share =
        cb__share_of(cb__stream_read_bytes(&launch->problem), launch->worker, launch->workers);
    const char *src = launch->operands[SRC];
    uint32_t own = cb__read_checksum(src + share.offset, share.lines, 1, launch->tunables[0]);
    cb__finish_checksum(launch->operands[PARTIAL], launch->operands[CHECKSUM], own, launch->worker,
                        launch->workers);
    return 0;
}

#endif
