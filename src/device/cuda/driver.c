#include "device/cuda/driver.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { SUCCESS = 0, JIT_LOG_BYTES = 8192 };

#define TEXT_OF(symbol) #symbol
static const struct {
    size_t member; /* its offset in cb__cuda */
    const char *symbol;
    bool optional;
} entries[] = {
#define ENTRY(name, symbol, parameters) {offsetof(cb__cuda, name), TEXT_OF(symbol), false},
#define OPTIONAL(name, symbol, parameters) {offsetof(cb__cuda, name), TEXT_OF(symbol), true},
    CB__CUDA_TABLE(ENTRY) CB__CUDA_OPTIONAL_TABLE(OPTIONAL)
#undef ENTRY
#undef OPTIONAL
};

static cb_status look_up(cb__dl *library, const char *name, cb__cuda *cuda, cb_error *err)
{
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        void *symbol = cb__dl_symbol(library, entries[i].symbol);
        if (!symbol && !entries[i].optional)
            return cb_error_set(err, CB_UNAVAILABLE,
                                "%s has no %s: the NVIDIA driver is too old (one for CUDA 12.0 or "
                                "later is needed, or 11.4 with its NVRTC)",
                                name, entries[i].symbol);
        memcpy((char *)cuda + entries[i].member, &symbol, sizeof symbol);
    }
    return CB_OK;
}

cb_status cb__cuda_load_from(const char *library, cb__cuda *cuda, cb_error *err)
{
    cb__dl *driver = NULL;
    memset(cuda, 0, sizeof *cuda);
    cb_status status = cb__dl_open(library, &driver, err);
    if (status != CB_OK) {
        cb_error_prefix(err, "no NVIDIA driver");
        return status;
    }
    status = look_up(driver, library, cuda, err);
    if (status != CB_OK) { /* nothing of it has run yet */
        cb__dl_close(driver);
        memset(cuda, 0, sizeof *cuda);
        return status;
    }
    status = CB__CUDA_TRY(cuda, err, cuInit, 0);
    if (status == CB_OK)
        status = CB__CUDA_TRY(cuda, err, cuDriverGetVersion, &cuda->version);
    return status;
}

cb_status cb__cuda_load(cb__cuda *cuda, cb_error *err)
{
    return cb__cuda_load_from("libcuda.so.1", cuda, err);
}

/* ---- errors ---- */

static cb_status meaning(cb__cu_result result)
{
    switch (result) {
#define MEANING(number, name, status)                                                              \
    case number:                                                                                   \
        return status;
        CB__CUDA_MEANINGS(MEANING)
#undef MEANING
    default:
        return CB_INTERNAL;
    }
}

cb_status cb__cuda_check(const cb__cuda *cuda, cb__cu_result result, const char *call,
                         cb_error *err)
{
    const char *name = NULL, *words = NULL;
    if (result == SUCCESS)
        return CB_OK;
    /* A result newer than the driver, or a driver gone wrong: it then has neither. */
    if (cuda->cuGetErrorName(result, &name) != SUCCESS || !name ||
        cuda->cuGetErrorString(result, &words) != SUCCESS || !words)
        return cb_error_set(err, meaning(result), "%s: CUDA error %d", call, result);
    return cb_error_set(err, meaning(result), "%s: %s: %s", call, name, words);
}

cb_status cb__cuda_module_load(const cb__cuda *cuda, const char *name, const void *image,
                               cb__cu_module *out, cb_error *err)
{
    char log[JIT_LOG_BYTES] = "";
    cb__cu_jit_option options[] = {CB__CU_JIT_ERROR_LOG, CB__CU_JIT_ERROR_LOG_BYTES};
    void *values[] = {log, (void *)(uintptr_t)sizeof log};
    cb_error fault = CB_ERROR_INIT;
    *out = NULL;
    cb_status status =
        cb__cuda_check(cuda, cuda->cuModuleLoadDataEx(out, image, 2, options, values),
                       "cuModuleLoadDataEx", &fault);
    if (status == CB_OK)
        return CB_OK;
    log[sizeof log - 1] = '\0';
    for (size_t end = strlen(log); end && strchr(" \n", log[end - 1]);)
        log[--end] = '\0';
    return cb_error_set(err, status, "cannot load the code of %.100s: %s%s%.700s", name,
                        fault.message, log[0] ? ": " : "", log);
}
