/* stub_cuda_internal.h: what the files of the stub driver share. */
#ifndef CB_TESTS_STUB_CUDA_INTERNAL_H
#define CB_TESTS_STUB_CUDA_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "device/cuda/driver.h"
#include "stub_cuda.h"

/* Results that the stub gives of itself. */
enum {
    OK = 0,
    INVALID_VALUE = 1,
    NO_MEMORY = 2,
    NOT_INITIALIZED = 3,
    NO_DEVICE = 100,
    INVALID_DEVICE = 101,
    INVALID_IMAGE = 200,
    INVALID_CONTEXT = 201,
    INVALID_PTX = 218,
    INVALID_HANDLE = 400,
    NOT_FOUND = 500,
    CAPTURE_UNSUPPORTED = 900
};

enum { FREE_SHARED = 48 << 10, MAX_SHARED = 227 << 10, MAX_THREADS = 1024 };

#define EXPORTED __attribute__((visibility("default")))
#define DECLARE(name, symbol, parameters) EXPORTED cb__cu_result symbol parameters;
CB__CUDA_TABLE(DECLARE)
CB__CUDA_OPTIONAL_TABLE(DECLARE)
#undef DECLARE

struct cb__cu_context_st {
    int retained;
};
struct cb__cu_stream_st {
    cb__cu_graph capturing; /* NULL: not */
};

extern unsigned long stub_live; /* what stub_cuda_live tells */

/* A number of the environment. */
unsigned long long stub_number(const char *variable, unsigned long long preset);
/* Whether the range lies inside one allocation of the device. */
bool stub_holds(cb__cu_address address, size_t bytes);

/* A kernel failed: what follows in its context gives that too. */
void stub_spoil(cb__cu_result result);
/* What every function begins with: scripted failures, and whether it may be called at all.
 * `needs_context` also tells those that a failed kernel spoils. */
cb__cu_result stub_begin(const char *symbol, bool needs_context);
#define BEGIN(needs_context)                                                                       \
    do {                                                                                           \
        cb__cu_result begun_ = stub_begin(__func__, needs_context);                                \
        if (begun_ != OK)                                                                          \
            return begun_;                                                                         \
    } while (0)

#endif
