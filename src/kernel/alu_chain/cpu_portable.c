#include "chain.h"

/* As cpu_avx2.c, with a multiplication and an addition (modules are built without contraction). */
int cb__alu_chain_portable(const cb_launch *launch)
{
    if (launch->worker != 0)
        return 0;
    const float *start = launch->operands[START];
    float x = start[0], a = start[1], b = start[2];
    for (int64_t i = 0; i < launch->problem.params[0]; i++)
#pragma GCC unroll 8
        for (int step = 0; step < 8; step++)
            x = x * a + b;
    *(float *)launch->operands[RESULT] = x;
    return 0;
}
