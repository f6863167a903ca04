#include "kernel/twin/lines_avx2.h"

#include "run.h"

int cb__fault_read_avx2(const cb_launch *launch)
{
    return run_fault(launch);
}
