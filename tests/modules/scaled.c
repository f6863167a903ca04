/* The example's kernel, in builds that differ: `same` in nothing that counts, `wrong` in what its
 * code for GPUs does, `keeps` in what it does to the cache. test_cuda_verbs lets the gate look at
 * them, on a stub driver whose kernels are host functions, found by the name of the entry
 * (stub_run_kernels.c). */
#define same 1
#define wrong 2
#define keeps 3

#if !defined(SCALED)
#include "skeleton.c"
#elif SCALED == 1
#include "skeleton.c"
const char a_string_that_makes_the_build_another[] = "another";
#else
#include <dlfcn.h>
#define cb_module_entry right_entry
#include "skeleton.c"
#undef cb_module_entry
__attribute__((visibility("default"))) const cb_module *cb_module_entry(void);

static const cb_device_code wrong_code = {
    "extern \"C\" __global__ void scale_wrong(const float *x, const float *coef, float *y, "
    "long long n)\n{\n    y[0] = x[0] * coef[0];\n}\n",
    "scale_wrong", 75, geometry, 0};

/* What runs beside the driver can have L2 set aside. */
static int keep(const cb_problem *problem, const int64_t *tuned, int processors, cb_geometry *out)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    int (*set_limit)(int limit, size_t bytes) = NULL;
    if (driver)
        *(void **)&set_limit = dlsym(driver, "cuCtxSetLimit");
    if (set_limit)
        set_limit(6, 1 << 20);
    return geometry(problem, tuned, processors, out);
}

static const cb_device_code keeping = {cuda_source, "scale_add", 75, keep, 0};

const cb_module *cb_module_entry(void)
{
    static cb_impl gpu[1];
    static cb_kernel kernel;
    static const cb_kernel *const kernels[] = {&kernel};
    static const cb_module module = {CB_KERNEL_ABI, sizeof(cb_kernel), kernels, 1};
    gpu[0] = impls[0];
    gpu[0].device = SCALED == 3 ? &keeping : &wrong_code;
    kernel = scale_add;
    kernel.impls = gpu;
    kernel.nimpls = 1;
    return &module;
}
#endif
