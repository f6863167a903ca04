/* cuda.cu: scratch_read for NVIDIA GPUs. */
enum { LANES = 32, WARPS = 32, SRC_BYTES = 40960, LOADS = 8, LOAD_STRIDE = 1024, SHIFT = 128 };

/* The address changes from turn to turn, so that no load can be taken out of the loop; within a
 * turn it is one register and a constant. */
#if CB_PATH == 0
#define SPACE "ld.shared"
#define ADDRESS "r"
typedef unsigned address;
#else
#define SPACE "ld.global.ca"
#define ADDRESS "l"
typedef unsigned long long address;
#endif

__device__ __forceinline__ unsigned load(address from)
{
#if CB_WIDTH == 4
    unsigned x;
    asm volatile(SPACE ".u32 %0, [%1];" : "=r"(x) : ADDRESS(from));
    return x;
#elif CB_WIDTH == 8
    uint2 v;
    asm volatile(SPACE ".v2.u32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : ADDRESS(from));
    return v.x + v.y;
#else
    uint4 v;
    asm volatile(SPACE ".v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : ADDRESS(from));
    return v.x + v.y + v.z + v.w;
#endif
}

__device__ __forceinline__ address start_of(const unsigned *src)
{
#if CB_PATH == 0
    __shared__ __align__(128) unsigned scratch[SRC_BYTES / 4];
    for (int i = threadIdx.x; i < SRC_BYTES / 4; i += WARPS * LANES)
        scratch[i] = src[i];
    __syncthreads();
    return (address)__cvta_generic_to_shared(scratch);
#else
    return (address)src;
#endif
}

/* What all threads of the block found, in thread 0. */
__device__ __forceinline__ unsigned sum_of_block(unsigned own)
{
    __shared__ unsigned sum;
    if (threadIdx.x == 0)
        sum = 0;
    __syncthreads();
    atomicAdd(&sum, own);
    __syncthreads();
    return sum;
}

extern "C" __global__ __launch_bounds__(WARPS *LANES) void scratch_read(
    const unsigned *src, unsigned *result, long long groups, long long stride, long long passes)
{
    address from = start_of(src) + threadIdx.x % LANES * (unsigned)stride;
    unsigned sum = 0, shift = 0;
    int turns = (int)passes * (LOAD_STRIDE / SHIFT);
#pragma unroll 1
    for (; turns > 0; turns--) {
        unsigned x[LOADS];
#pragma unroll
        for (int i = 0; i < LOADS; i++)
            x[i] = load(from + shift + i * LOAD_STRIDE);
#pragma unroll
        for (int i = LOADS - 1; i >= 0; i--) /* last first: all are in flight at once */
            sum += x[i];
        shift = (shift + SHIFT) % LOAD_STRIDE;
    }
    sum = sum_of_block(sum);
    if (threadIdx.x == 0)
        result[blockIdx.x] = sum;
}
