#include "kernel/twin/lines_avx2.h"

#include "run.h"

int cb__stream_read_avx2(const cb_launch *launch)
{
    return run_stream_read(launch);
}
