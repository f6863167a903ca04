#include "kernel/twin/lines_portable.h"

#include "run.h"

int cb__stream_read_portable(const cb_launch *launch)
{
    return run_stream_read(launch);
}
