/* cuda.cu: products that go wrong, for NVIDIA GPUs. */
#define ENTRY(name)                                                                                \
    extern "C" __global__ void name(const float *x, const float *factor, float *y,   \
                                                  long long n)

__device__ __forceinline__ long long thread_of_all()
{
    return blockIdx.x * (long long)blockDim.x + threadIdx.x;
}

/* A thread an element; the last has a fault to do too. */
__device__ __forceinline__ bool scale(const float *x, const float *factor, float *y, long long n)
{
    const long long i = thread_of_all();
    if (i < n)
        y[i] = *factor * x[i];
    return i == n - 1;
}

ENTRY(fault_scale_clean)
{
    scale(x, factor, y, n);
}

ENTRY(fault_scale_unwritten)
{
    const long long i = thread_of_all();
    if (i < n - (n + 7) / 8)
        y[i] = *factor * x[i];
}

/* The geometry is short, not the code. */
ENTRY(fault_scale_short_grid)
{
    scale(x, factor, y, n);
}

ENTRY(fault_scale_beyond)
{
    if (scale(x, factor, y, n))
        y[n] = *factor;
}

ENTRY(fault_scale_before)
{
    if (scale(x, factor, y, n))
        y[-1] = *factor;
}

ENTRY(fault_scale_wrong)
{
    if (scale(x, factor, y, n))
        y[n - 1] *= 1.01f;
}

ENTRY(fault_scale_imprecise)
{
    const long long i = thread_of_all();
    if (i < n)
        y[i] = __uint_as_float((__float_as_uint(*factor * x[i]) + 0x8000) & 0xffff0000u);
}

ENTRY(fault_scale_nan)
{
    if (scale(x, factor, y, n))
        y[n - 1] = __uint_as_float(0x7fc00000u);
}

ENTRY(fault_scale_edits)
{
    if (scale(x, factor, y, n))
        const_cast<float *>(x)[n - 1] = 0.5f;
}

ENTRY(fault_scale_fails)
{
    if (scale(x, factor, y, n))
        asm volatile("trap;");
}
