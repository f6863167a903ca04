#include "lines_avx2.h"

#include "run.h"

int cb__twin_read_avx2(const cb_launch *launch)
{
    return run_read(launch);
}

int cb__twin_write_avx2(const cb_launch *launch)
{
    return run_write(launch);
}

int cb__twin_copy_avx2(const cb_launch *launch)
{
    return run_copy(launch);
}
