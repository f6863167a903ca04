/* stub_cuda.h: a libcuda.so.1 without a GPU, for tests, and beside it stubs of NVML and of
 * NVRTC 12.4 and 13.0. tests/CMakeLists.txt builds them into build/tests/stub, which
 * LD_LIBRARY_PATH then names: the main of a test begins with stub_cuda_use(argv).
 *
 * Device memory is host memory, full of 0xA5 until it is written; streams do their work at once;
 * the clock stands still but for launches. What a real driver refuses, it refuses: calls before
 * cuInit or without a context, addresses outside an allocation, blocks that are too large, shared
 * memory without leave. The environment scripts the rest:
 *
 *   STUB_CUDA_DEVICES=N        how many there are (1)
 *   STUB_CUDA_VERSION=12020    of CUDA that the driver serves (13000)
 *   STUB_CUDA_CAPABILITY=80    (90)
 *   STUB_CUDA_MEMORY=BYTES     of each device (1 GiB)
 *   STUB_CUDA_MODE=2           its compute mode: 2 lets nobody in, 3 one process at a time (0)
 *   STUB_CUDA_PERSISTING=BYTES of the L2 that are set aside (0)
 *   STUB_CUDA_LAUNCH_NS=N      that a launch takes (1000)
 *   STUB_CUDA_FAIL=SYMBOL:RESULT[@N],...   the Nth call, or every one, gives this result. One of
 *                              700 to 719 stays: what follows in the context gives it too
 *   STUB_CUDA_KERNELS=FILE     a shared object with the kernels as host functions: each
 *                                  void NAME(const stub_launch *launch);
 *                                  const int NAME_arguments = how many there are, of 8 bytes each;
 *                              a kernel that is not in it does nothing
 */
#ifndef CB_TESTS_STUB_CUDA_H
#define CB_TESTS_STUB_CUDA_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct stub_launch {
    unsigned grid[3], block[3], shared_bytes;
    void *const *arguments; /* as of cuLaunchKernel */
    int overlaps;
    int *result; /* a kernel that fails sets it: 719, say, which stays */
} stub_launch;

/* Exported by the stub, for a test that has loaded it: how often a function was called; what is
 * allocated and not freed, memory, streams, events, graphs and modules alike; how many kernels have
 * run. */
typedef unsigned long stub_calls_function(const char *symbol);
typedef unsigned long stub_count_function(void);
/* How the kernels were launched that have run since the last call, a character each: '.' plainly,
 * '>' so that they may overlap the one before. */
typedef const char *stub_text_function(void);
__attribute__((visibility("default"))) stub_text_function stub_cuda_overlaps;
/* The percentage of shared memory that the kernel which ran last asked for; -1: it did not. */
typedef int stub_percent_function(void);
__attribute__((visibility("default"))) stub_percent_function stub_cuda_shared_percent;
__attribute__((visibility("default"))) stub_calls_function stub_cuda_calls;
__attribute__((visibility("default"))) stub_count_function stub_cuda_live, stub_cuda_launches;

#ifdef CB_BINARY_DIR
#define STUB_CUDA_FOLDER CB_BINARY_DIR "/tests/stub"

/* Starts this program again with the stubs before all other libraries; the loader reads its paths
 * once, when a program starts. */
static inline void stub_cuda_use(char **argv)
{
    const char *paths = getenv("LD_LIBRARY_PATH");
    if (paths && strncmp(paths, STUB_CUDA_FOLDER, strlen(STUB_CUDA_FOLDER)) == 0)
        return;
    setenv("LD_LIBRARY_PATH", STUB_CUDA_FOLDER, 1);
    unsetenv("COLDBENCH_NVRTC");
    execv("/proc/self/exe", argv);
    perror("/proc/self/exe");
    exit(1);
}
#endif

#endif
