#include "lines_portable.h"

#include "run.h"

int cb__twin_read_portable(const cb_launch *launch)
{
    return run_read(launch);
}

int cb__twin_write_portable(const cb_launch *launch)
{
    return run_write(launch);
}

int cb__twin_copy_portable(const cb_launch *launch)
{
    return run_copy(launch);
}
