/* Kernels as host functions, for the stub driver (STUB_CUDA_KERNELS in stub_cuda.h). */
#include "stub_cuda.h"

#define EXPORTED __attribute__((visibility("default")))
EXPORTED extern const int stub_add_arguments;
EXPORTED void stub_add(const stub_launch *launch);

/* stub_add(int *sums, long long step): every thread adds step to its own sum. */
const int stub_add_arguments = 2;
void stub_add(const stub_launch *launch)
{
    int *sums = *(int **)launch->arguments[0];
    long long step = *(long long *)launch->arguments[1];
    for (unsigned i = 0; i < launch->grid[0] * launch->block[0]; i++)
        sums[i] += (int)step;
}
