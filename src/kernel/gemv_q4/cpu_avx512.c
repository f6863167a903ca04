/* cpu_avx512.c: gemv_q4 with 512-bit vectors, dot products by 16-bit pairs. */
#include "panel_run.h"

int gemv_q4__run_avx512(const cb_launch *launch)
{
    return gemv_q4__run(launch, loops, launch->tunables[GEMV_PREFETCH]);
}
