/* built.h: the modules of the suite as the build left them, for tests of kernels. */
#ifndef CB_TESTS_BUILT_H
#define CB_TESTS_BUILT_H

#include "coldbench/kernel.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(table) ((int)(sizeof(table) / sizeof((table)[0])))

static inline const cb_kernel *load(const char *path, const char *name)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        fail_msg("%s: %s", path, dlerror());
    const cb_module *(*entry)(void);
    *(void **)&entry = dlsym(library, "cb_module_entry");
    assert_non_null(entry);
    const cb_module *module = entry();
    assert_int_equal(module->abi, CB_KERNEL_ABI);
    assert_int_equal(module->struct_bytes, sizeof(cb_kernel));
    for (int i = 0; i < module->nkernels; i++)
        if (strcmp(module->kernels[i]->name, name) == 0)
            return module->kernels[i];
    fail_msg("%s has no kernel %s", path, name);
    return NULL;
}

static inline const cb_kernel *load_built(const char *module, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/modules/%s.so", CB_BINARY_DIR, module);
    return load(path, name);
}

static inline int processor_has(unsigned isa)
{
    if (isa & CB_ISA_CUDA) /* code for a GPU has no run function */
        return 0;
#if defined(__x86_64__)
    if ((isa & CB_ISA_AVX2) && !(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")))
        return 0;
    if ((isa & CB_ISA_AVX512) &&
        !(__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")))
        return 0;
    return !(isa & CB_ISA_AVX512_VNNI) || __builtin_cpu_supports("avx512vnni");
#else
    return isa == CB_ISA_PORTABLE;
#endif
}

/* The implementation of that name, or NULL where this build or this processor has none. */
static inline const cb_impl *find_impl(const cb_kernel *kernel, const char *name)
{
    for (int i = 0; i < kernel->nimpls; i++)
        if (strcmp(kernel->impls[i].name, name) == 0 && processor_has(kernel->impls[i].isa))
            return &kernel->impls[i];
    return NULL;
}

/* One launch, the workers in turn, the last first: their order must not matter. */
static inline void launch_all(const cb_impl *impl, cb_problem problem, void *const *operands,
                              int workers)
{
    for (int worker = workers - 1; worker >= 0; worker--) {
        cb_launch share = {problem, NULL, operands, worker, workers, NULL, NULL};
        assert_int_equal(impl->run(&share), 0);
    }
}

#endif
