#define LINE_ALIGN 4
#include "kernel/twin/lines_portable.h"

#include "run.h"

int cb__fault_read_portable(const cb_launch *launch)
{
    return run_fault(launch);
}
