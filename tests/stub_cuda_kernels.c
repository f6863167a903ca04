/* Kernels as host functions, for the stub driver (STUB_CUDA_KERNELS in stub_cuda.h). */
#include "stub_cuda.h"

#include "device/digest.h"

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

/* stub_arguments(u64 *out, void *absent, long long rows, long long cols, long long step): what each
 * launch was given, a row of five after another; the first word counts the launches. */
EXPORTED extern const int stub_arguments_arguments;
EXPORTED void stub_arguments(const stub_launch *launch);
const int stub_arguments_arguments = 5;
void stub_arguments(const stub_launch *launch)
{
    unsigned long long *out = *(unsigned long long **)launch->arguments[0];
    unsigned long long *row = out + 1 + 5 * out[0]++;
    for (int i = 0; i < 5; i++)
        row[i] = *(unsigned long long *)launch->arguments[i];
}

/* The backend's own digest. */
EXPORTED extern const int cb_digest_arguments;
EXPORTED void cb_digest(const stub_launch *launch);
const int cb_digest_arguments = 3;
void cb_digest(const stub_launch *launch)
{
    **(unsigned long long **)launch->arguments[2] +=
        cb__digest(*(void **)launch->arguments[0], *(size_t *)launch->arguments[1]);
}
