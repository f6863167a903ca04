#include "chain.h"

/* Each step needs the one before, so a step takes the latency of a fused multiply-add (4 cycles on
 * Zen 2 to 5 and Golden Cove) and the loop's own work hides behind it. */
int cb__alu_chain_avx2(const cb_launch *launch)
{
    if (launch->worker != 0)
        return 0;
    const float *start = launch->operands[START];
    float x = start[0], a = start[1], b = start[2];
    for (int64_t i = 0; i < launch->problem.params[0]; i++)
#pragma GCC unroll 8
        for (int step = 0; step < 8; step++)
            x = __builtin_fmaf(x, a, b);
    *(float *)launch->operands[RESULT] = x;
    return 0;
}
