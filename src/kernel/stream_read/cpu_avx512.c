#include "kernel/twin/lines_avx512.h"

#include "run.h"

int cb__stream_read_avx512(const cb_launch *launch)
{
    return run_stream_read(launch);
}
