/* vectors.cuh: moving 16-byte vectors, and who moves which; for the device code of the suite.
 *
 * A block has a contiguous slice of the set, so that no two blocks read the same line. Tunables of
 * whoever includes this: CB_THREADS of a block, CB_LOADS that a thread has in flight.
 */
#ifndef COLDBENCH_KERNEL_TWIN_VECTORS_CUH
#define COLDBENCH_KERNEL_TWIN_VECTORS_CUH

enum {
    VECTOR_BYTES = 16,
    UNIT_VECTORS = 32, /* of a slice: what one instruction of a warp moves, so that it is aligned */
    TURN_VECTORS = CB_LOADS * CB_THREADS
};

typedef struct slice {
    unsigned long long first, end; /* vectors */
} slice;

/* 1 TiB has 2^31 units: the division is one of 32 bits. */
__device__ __forceinline__ slice slice_of(long long bytes)
{
    unsigned long long vectors = (unsigned long long)bytes / VECTOR_BYTES;
    unsigned units = (unsigned)((vectors + UNIT_VECTORS - 1) / UNIT_VECTORS);
    unsigned each = units / gridDim.x, longer = units - each * gridDim.x;
    unsigned long long before = blockIdx.x < longer ? blockIdx.x : longer;
    slice s;
    s.first = ((unsigned long long)each * blockIdx.x + before) * UNIT_VECTORS;
    s.end = s.first + (each + (blockIdx.x < longer)) * (unsigned long long)UNIT_VECTORS;
    s.first = s.first < vectors ? s.first : vectors;
    s.end = s.end < vectors ? s.end : vectors;
    return s;
}

/* Volatile: no pass over memory is dropped for having been made before. CB_L1: whether what was
 * read may be found in the first cache by the next pass. */
#if defined(CB_L1) && CB_L1
#define LOAD "ld.global.nc.v4.u32"
#else
#define LOAD "ld.global.nc.L1::no_allocate.v4.u32"
#endif

__device__ __forceinline__ uint4 load_vector(const uint4 *from)
{
    uint4 v;
    asm volatile(LOAD " {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(from));
    return v;
}

/* Zeros where `there` is 0; a predicate and no branch, so that the loads after it do not wait. */
__device__ __forceinline__ uint4 load_vector_if(const uint4 *from, bool there)
{
    uint4 v = {0, 0, 0, 0};
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %5, 0; @p " LOAD " {%0, %1, %2, %3}, [%4]; }"
                 : "+r"(v.x), "+r"(v.y), "+r"(v.z), "+r"(v.w)
                 : "l"(from), "r"((unsigned)there));
    return v;
}

#endif
