/* hand_in.cuh: how the checksum of all threads comes together. */
#ifndef COLDBENCH_KERNEL_TWIN_HAND_IN_CUH
#define COLDBENCH_KERNEL_TWIN_HAND_IN_CUH

/* Where share.h's cb__partials has its counter, and how many lines of it the blocks share. */
enum { LINE_WORDS = 16, FINISHED_WORD = 1024 * LINE_WORDS, PARTIAL_LINES = 32 };

__device__ __forceinline__ unsigned xor_of_warp(unsigned word)
{
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2)
        word ^= __shfl_xor_sync(0xffffffffu, word, distance);
    return word;
}

/* Hands in what each thread read. The block that comes last joins all and leaves `partial` zero, so
 * no block waits for another. */
__device__ __forceinline__ void hand_in(unsigned own, unsigned *checksum, unsigned *partial)
{
    __shared__ unsigned of_warp[32];
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, is_last = 0;
    own = xor_of_warp(own);
    if (lane == 0)
        of_warp[warp] = own;
    __syncthreads();
    if (warp != 0)
        return;
    own = xor_of_warp(lane < CB_THREADS / 32 ? of_warp[lane] : 0);
    if (lane == 0) {
        atomicXor(partial + blockIdx.x % PARTIAL_LINES * LINE_WORDS, own);
        __threadfence();
        is_last = atomicAdd(partial + FINISHED_WORD, 1u) == gridDim.x - 1;
    }
    if (!__shfl_sync(0xffffffffu, is_last, 0))
        return;
    __threadfence();
    own = xor_of_warp(atomicExch(partial + lane * LINE_WORDS, 0u));
    if (lane == 0) {
        *checksum = own;
        partial[FINISHED_WORD] = 0;
    }
}

#endif
