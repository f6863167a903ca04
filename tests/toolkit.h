/* toolkit.h: tests that need CUDA's headers or NVRTC are skipped where there is no CUDA toolkit,
 * and fail where there is one. */
#ifndef CB_TESTS_TOOLKIT_H
#define CB_TESTS_TOOLKIT_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline bool has_nvcc(const char *folder)
{
    char path[4096];
    if (!folder)
        return false;
    snprintf(path, sizeof path, "%s/bin/nvcc", folder);
    return access(path, X_OK) == 0;
}

static inline bool toolkit_is_installed(void)
{
    return has_nvcc("/usr/local/cuda") || has_nvcc("/usr") || has_nvcc(getenv("CUDA_HOME")) ||
           has_nvcc(getenv("CUDA_PATH"));
}

#define SKIP_WITHOUT_TOOLKIT(what)                                                                 \
    do {                                                                                           \
        if (toolkit_is_installed())                                                                \
            fail_msg("a CUDA toolkit is installed, but %s was not found", what);                   \
        skip();                                                                                    \
    } while (0)

#endif
