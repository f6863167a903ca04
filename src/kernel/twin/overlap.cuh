/* overlap.cuh: a launch that begins before the one ahead of it has ended (`overlaps` in kernel.h).
 *
 * Before 9.0, and where a launch is an ordinary one, all of this does nothing. */
#ifndef COLDBENCH_KERNEL_TWIN_OVERLAP_CUH
#define COLDBENCH_KERNEL_TWIN_OVERLAP_CUH

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define OVERLAPS 1
#else
#define OVERLAPS 0
#endif

/* The next launch may begin once all blocks of this one have said so: first of all, since it can
 * only take what processors have left. Until all blocks are there it takes nothing, so that
 * launches cannot wait for each other in a circle. */
__device__ __forceinline__ void let_next_begin(void)
{
#if OVERLAPS
    asm volatile("griddepcontrol.launch_dependents;" : : : "memory");
#endif
}

/* Until the launch ahead has ended and what it wrote is there. It waited in its turn, so that all
 * launches before it have ended too. */
__device__ __forceinline__ void wait_for_last(void)
{
#if OVERLAPS
    asm volatile("griddepcontrol.wait;" : : : "memory");
#endif
}

#endif
