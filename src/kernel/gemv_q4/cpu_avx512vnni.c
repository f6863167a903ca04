/* cpu_avx512vnni.c: gemv_q4 with 512-bit vectors, by the byte dot products of AVX-512 VNNI. */
#include "panel_run.h"

int gemv_q4__run_avx512vnni(const cb_launch *launch)
{
    return gemv_q4__run(launch, loops, launch->tunables[GEMV_PREFETCH]);
}
