/* cpu_avx2.c: gemv_q4 with 256-bit vectors, dot products by 16-bit pairs. */
#include "panel_run.h"

int gemv_q4__run_avx2(const cb_launch *launch)
{
    return gemv_q4__run(launch, loops, launch->tunables[GEMV_PREFETCH]);
}
