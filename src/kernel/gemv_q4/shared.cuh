/* shared.cuh: loads from shared memory by addresses that stay in registers. Part of cuda.cu. */
#ifndef COLDBENCH_KERNEL_GEMV_Q4_SHARED_CUH
#define COLDBENCH_KERNEL_GEMV_Q4_SHARED_CUH

/* The same value, of which the assembler does not know how to make it again: else it does so in
 * each step, which took a tenth of the loop's instructions. */
static __device__ __forceinline__ u32 kept(u32 value)
{
    return __shfl_sync(0xffffffffu, value, threadIdx.x % LANES);
}

#if TENSOR
static __device__ __forceinline__ u32 shared_address(const void *p)
{
    return (u32)__cvta_generic_to_shared(p);
}

/* Volatile, so that none is moved over the barrier that says what is there. */
static __device__ __forceinline__ uint2 shared8(u32 at)
{
    uint2 v;
    asm volatile("ld.shared.v2.u32 {%0,%1}, [%2];" : "=r"(v.x), "=r"(v.y) : "r"(at));
    return v;
}

static __device__ __forceinline__ uint4 shared16(u32 at)
{
    uint4 v;
    asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "r"(at));
    return v;
}
#endif

#endif
