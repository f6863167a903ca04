/* cuda.cu: alu_chain for NVIDIA GPUs, on one thread. */
extern "C" __global__ void alu_chain(const float *start, float *result, long long work)
{
    float x = start[0], a = start[1], b = start[2];
#pragma unroll 1
    for (int i = 0; i < (int)work; i++)
#pragma unroll
        for (int step = 0; step < 8; step++)
            x = __fmaf_rn(x, a, b);
    *result = x;
}
