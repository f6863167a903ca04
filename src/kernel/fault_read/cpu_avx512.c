#include "kernel/twin/lines_avx512.h"

#include "run.h"

int cb__fault_read_avx512(const cb_launch *launch)
{
    return run_fault(launch);
}
