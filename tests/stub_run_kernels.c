/* Kernels as host functions, for the stub driver (STUB_CUDA_KERNELS in stub_cuda.h): what a case of
 * the example's kernel and of fault_scale launches. */
#include <math.h>
#include <string.h>

#include "coldbench/random.h"
#include "device/digest.h"
#include "stub_cuda.h"

#define KERNEL(name, n)                                                                            \
    __attribute__((visibility("default"))) extern const int name##_arguments;                      \
    __attribute__((visibility("default"))) void name(const stub_launch *launch);                   \
    const int name##_arguments = n;                                                                \
    void name(const stub_launch *launch)

#define ARGUMENT(type, i) (*(type *)launch->arguments[i])

/* ---- the backend's own ---- */

KERNEL(cb_digest, 3)
{
    *ARGUMENT(uint64_t *, 2) += cb__digest(ARGUMENT(void *, 0), ARGUMENT(size_t, 1));
}

KERNEL(cb_words, 3)
{
    for (uint64_t i = 0; i < ARGUMENT(uint64_t, 1); i++)
        ARGUMENT(uint64_t *, 0)[i] = cb_random_word(ARGUMENT(uint64_t, 2), i);
}

/* ---- the example; what its twin copies nobody looks at ---- */

KERNEL(scale_add, 4)
{
    const float *x = ARGUMENT(float *, 0), *coef = ARGUMENT(float *, 1);
    for (long long i = 0; i < ARGUMENT(long long, 3); i++)
        ARGUMENT(float *, 2)[i] = coef[0] * x[i] + coef[1];
}

KERNEL(scale_wrong, 4)
{
    const float *x = ARGUMENT(float *, 0), *coef = ARGUMENT(float *, 1);
    for (long long i = 0; i < ARGUMENT(long long, 3); i++)
        ARGUMENT(float *, 2)[i] = coef[0] * x[i];
}

/* ---- fault_scale: cuda.cu, a thread after another ---- */

typedef struct scaled {
    float *x, *factor, *y;
    long long n, threads;
} scaled;

static scaled scale(const stub_launch *launch, long long leave)
{
    scaled s = {ARGUMENT(float *, 0), ARGUMENT(float *, 1), ARGUMENT(float *, 2),
                ARGUMENT(long long, 3), (long long)launch->grid[0] * launch->block[0]};
    for (long long i = 0; i < s.threads && i < s.n - leave; i++)
        s.y[i] = *s.factor * s.x[i];
    return s;
}

KERNEL(fault_scale_clean, 4)
{
    scale(launch, 0);
}

KERNEL(fault_scale_unwritten, 4)
{
    scale(launch, (ARGUMENT(long long, 3) + 7) / 8);
}

KERNEL(fault_scale_short_grid, 4)
{
    scale(launch, 0);
}

KERNEL(fault_scale_beyond, 4)
{
    scaled s = scale(launch, 0);
    s.y[s.n] = *s.factor;
}

KERNEL(fault_scale_before, 4)
{
    scaled s = scale(launch, 0);
    s.y[-1] = *s.factor;
}

KERNEL(fault_scale_wrong, 4)
{
    scaled s = scale(launch, 0);
    s.y[s.n - 1] *= 1.01f;
}

KERNEL(fault_scale_imprecise, 4)
{
    scaled s = scale(launch, 0);
    for (long long i = 0; i < s.n; i++)
        s.y[i] = roundf(s.y[i] * 256) / 256;
}

KERNEL(fault_scale_nan, 4)
{
    scaled s = scale(launch, 0);
    s.y[s.n - 1] = NAN;
}

KERNEL(fault_scale_edits, 4)
{
    scaled s = scale(launch, 0);
    s.x[s.n - 1] = 0.5f;
}

KERNEL(fault_scale_fails, 4)
{
    scale(launch, 0);
    *launch->result = 719;
}
