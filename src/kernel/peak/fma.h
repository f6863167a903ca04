/* fma.h: a worker's blocks of multiply-adds. A template: include it once for each type, with
 *
 *     FMA_RUN       the name of the function it defines
 *     FMA_NUMBER    float or double
 *     FMA_VECTOR    a vector of them
 *     FMA_STEP      (v, a, b): v*a + b
 *     FMA_LANES     of a block, whole groups of CB__PEAK_VECTORS vectors
 *     FMA_OPERAND   of the starts; the results are the next one
 */
static void FMA_RUN(const cb_launch *launch)
{
    enum { WIDTH = sizeof(FMA_VECTOR) / sizeof(FMA_NUMBER) };
    const FMA_NUMBER *start = launch->operands[FMA_OPERAND];
    const FMA_VECTOR a = start[FMA_A] - (FMA_VECTOR){0}, b = start[FMA_B] - (FMA_VECTOR){0};
    cb__peak_share share = cb__peak_share_of(launch);
    for (int64_t group = share.first * FMA_LANES; group < share.end * FMA_LANES;
         group += WIDTH * CB__PEAK_VECTORS) {
        const FMA_NUMBER *from =
            start + FMA_STARTS + group / FMA_LANES % FMA_LANES + group % FMA_LANES;
        FMA_NUMBER *to = (FMA_NUMBER *)launch->operands[FMA_OPERAND + 1] + group;
        FMA_VECTOR v[CB__PEAK_VECTORS];
#pragma GCC unroll 12
        for (int i = 0; i < CB__PEAK_VECTORS; i++)
            __builtin_memcpy(&v[i], from + i * WIDTH, sizeof v[i]);
#pragma GCC unroll 4
        for (int t = 0; t < CB__PEAK_STEPS; t++)
#pragma GCC unroll 12
            for (int i = 0; i < CB__PEAK_VECTORS; i++)
                v[i] = FMA_STEP(v[i], a, b);
#pragma GCC unroll 12
        for (int i = 0; i < CB__PEAK_VECTORS; i++)
            __builtin_memcpy(to + i * WIDTH, &v[i], sizeof v[i]);
    }
}

#undef FMA_RUN
#undef FMA_NUMBER
#undef FMA_VECTOR
#undef FMA_STEP
#undef FMA_LANES
#undef FMA_OPERAND
