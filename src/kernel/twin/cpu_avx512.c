#include "lines_avx512.h"

#include "run.h"

int cb__twin_read_avx512(const cb_launch *launch)
{
    return run_read(launch);
}

int cb__twin_write_avx512(const cb_launch *launch)
{
    return run_write(launch);
}

int cb__twin_copy_avx512(const cb_launch *launch)
{
    return run_copy(launch);
}
