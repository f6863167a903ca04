/* The stub driver (stub_cuda.h): devices, contexts, memory, and what fails. */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stub_cuda_internal.h"

enum { CALLS_MAX = 128 };

typedef struct block { /* of device memory */
    struct block *next;
    char *bytes;
    size_t size;
    bool of_host;
} block;

unsigned long stub_live;

static bool initialised;
static cb__cu_result stuck; /* what a failed kernel leaves behind */
static struct cb__cu_context_st contexts[16];
static _Thread_local cb__cu_context current;
static block *blocks;
static size_t persisting_bytes;

unsigned long long stub_number(const char *variable, unsigned long long preset)
{
    const char *text = getenv(variable);
    return text && text[0] ? strtoull(text, NULL, 0) : preset;
}

/* ---- scripted failures ---- */

static struct {
    const char *symbol;
    unsigned long n;
} calls[CALLS_MAX];

static unsigned long *calls_of(const char *symbol)
{
    int i = 0;
    while (i < CALLS_MAX - 1 && calls[i].symbol && strcmp(calls[i].symbol, symbol) != 0)
        i++;
    if (!calls[i].symbol)
        calls[i].symbol = symbol;
    return &calls[i].n;
}

unsigned long stub_cuda_calls(const char *symbol)
{
    for (int i = 0; i < CALLS_MAX && calls[i].symbol; i++)
        if (strcmp(calls[i].symbol, symbol) == 0)
            return calls[i].n;
    return 0;
}

unsigned long stub_cuda_live(void)
{
    return stub_live;
}

static cb__cu_result scripted(const char *symbol)
{
    unsigned long nth = ++*calls_of(symbol);
    const size_t length = strlen(symbol);
    for (const char *at = getenv("STUB_CUDA_FAIL"); at && *at;) {
        char *end;
        if (strncmp(at, symbol, length) == 0 && at[length] == ':') {
            long result = strtol(at + length + 1, &end, 10);
            if (*end != '@' || strtoul(end + 1, NULL, 10) == nth)
                return (cb__cu_result)result;
        }
        at = strchr(at, ',');
        at = at ? at + 1 : NULL;
    }
    return OK;
}

void stub_spoil(cb__cu_result result)
{
    stuck = result;
}

cb__cu_result stub_begin(const char *symbol, bool needs_context)
{
    cb__cu_result result = scripted(symbol);
    if (result >= 700 && result <= 719)
        stuck = result;
    if (result != OK)
        return result;
    if (!initialised)
        return NOT_INITIALIZED;
    if (needs_context && stuck)
        return stuck;
    return needs_context && !current ? INVALID_CONTEXT : OK;
}

/* ---- driver and devices ---- */

cb__cu_result cuInit(unsigned flags)
{
    cb__cu_result result = scripted(__func__);
    if (result == OK && flags)
        result = INVALID_VALUE;
    if (result == OK && !stub_number("STUB_CUDA_DEVICES", 1))
        result = NO_DEVICE;
    if (result == OK && !initialised)
        persisting_bytes = stub_number("STUB_CUDA_PERSISTING", 0);
    initialised = initialised || result == OK;
    return result;
}

cb__cu_result cuDriverGetVersion(int *version)
{
    cb__cu_result result = scripted(__func__);
    *version = (int)stub_number("STUB_CUDA_VERSION", 13000);
    return result;
}

static const struct {
    cb__cu_result result;
    const char *name, *words;
} results[] = {
    {INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {NO_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {34, "CUDA_ERROR_STUB_LIBRARY", "CUDA driver is a stub library"},
    {NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {INVALID_PTX, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "the PTX was made by an unsupported toolchain"},
    {INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {600, "CUDA_ERROR_NOT_READY", "device not ready"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {702, "CUDA_ERROR_LAUNCH_TIMEOUT", "the launch timed out and was terminated"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
};

static cb__cu_result describe(cb__cu_result result, const char **name, const char **words)
{
    for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
        if (results[i].result != result)
            continue;
        if (name)
            *name = results[i].name;
        if (words)
            *words = results[i].words;
        return OK;
    }
    return INVALID_VALUE;
}

cb__cu_result cuGetErrorName(cb__cu_result result, const char **name)
{
    return describe(result, name, NULL);
}

cb__cu_result cuGetErrorString(cb__cu_result result, const char **words)
{
    return describe(result, NULL, words);
}

static int devices(void)
{
    int n = (int)stub_number("STUB_CUDA_DEVICES", 1), most = sizeof contexts / sizeof *contexts;
    return n < most ? n : most;
}

static bool is_device(cb__cu_device device)
{
    return device >= 0 && device < devices();
}

cb__cu_result cuDeviceGetCount(int *count)
{
    BEGIN(false);
    *count = devices();
    return OK;
}

cb__cu_result cuDeviceGet(cb__cu_device *device, int ordinal)
{
    BEGIN(false);
    *device = ordinal;
    return is_device(ordinal) ? OK : INVALID_DEVICE;
}

cb__cu_result cuDeviceGetName(char *name, int size, cb__cu_device device)
{
    BEGIN(false);
    snprintf(name, (size_t)size, "Stub GPU");
    return is_device(device) ? OK : INVALID_DEVICE;
}

cb__cu_result cuDeviceGetUuid_v2(cb__cu_uuid *uuid, cb__cu_device device)
{
    BEGIN(false);
    for (int i = 0; i < 16; i++)
        uuid->bytes[i] = (char)(i * 16 + device);
    return is_device(device) ? OK : INVALID_DEVICE;
}

cb__cu_result cuDeviceGetPCIBusId(char *id, int size, cb__cu_device device)
{
    BEGIN(false);
    snprintf(id, (size_t)size, "0000:%02X:00.0", device + 1);
    return is_device(device) ? OK : INVALID_DEVICE;
}

cb__cu_result cuDeviceGetAttribute(int *value, cb__cu_attribute attribute, cb__cu_device device)
{
    BEGIN(false);
    const int capability = (int)stub_number("STUB_CUDA_CAPABILITY", 90);
    const int values[][2] = {
        {CB__CU_MAX_THREADS_PER_BLOCK, MAX_THREADS},
        {CB__CU_WARP_SIZE, 32},
        {CB__CU_CLOCK_KHZ, 1980000},
        {CB__CU_PROCESSORS, 4},
        {CB__CU_KERNEL_TIMEOUT, 0},
        {CB__CU_COMPUTE_MODE, (int)stub_number("STUB_CUDA_MODE", 0)},
        {CB__CU_ECC, 1},
        {CB__CU_MEMORY_CLOCK_KHZ, 3201000},
        {CB__CU_MEMORY_BUS_BITS, 6144},
        {CB__CU_L2_BYTES, 8 << 20},
        {CB__CU_MAX_THREADS_PER_PROCESSOR, 2048},
        {CB__CU_CAPABILITY_MAJOR, capability / 10},
        {CB__CU_CAPABILITY_MINOR, capability % 10},
        {CB__CU_SHARED_BYTES_PER_PROCESSOR, 228 << 10},
        {CB__CU_MAX_SHARED_BYTES_PER_BLOCK, MAX_SHARED},
        {CB__CU_MAX_PERSISTING_L2_BYTES, 5 << 20},
    };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        if (values[i][0] == attribute && is_device(device)) {
            *value = values[i][1];
            return OK;
        }
    }
    return is_device(device) ? INVALID_VALUE : INVALID_DEVICE;
}

static size_t total_bytes(void)
{
    return stub_number("STUB_CUDA_MEMORY", 1u << 30);
}

cb__cu_result cuDeviceTotalMem_v2(size_t *bytes, cb__cu_device device)
{
    BEGIN(false);
    *bytes = total_bytes();
    return is_device(device) ? OK : INVALID_DEVICE;
}

/* ---- contexts ---- */

cb__cu_result cuDevicePrimaryCtxSetFlags_v2(cb__cu_device device, unsigned flags)
{
    BEGIN(false);
    (void)flags;
    return is_device(device) ? OK : INVALID_DEVICE;
}

cb__cu_result cuDevicePrimaryCtxRetain(cb__cu_context *context, cb__cu_device device)
{
    BEGIN(false);
    if (!is_device(device))
        return INVALID_DEVICE;
    *context = &contexts[device];
    (*context)->retained++;
    return OK;
}

cb__cu_result cuDevicePrimaryCtxRelease_v2(cb__cu_device device)
{
    BEGIN(false);
    if (!is_device(device) || contexts[device].retained < 1)
        return INVALID_CONTEXT;
    contexts[device].retained--;
    return OK;
}

cb__cu_result cuCtxSetCurrent(cb__cu_context context)
{
    BEGIN(false);
    if (context && context->retained < 1)
        return INVALID_CONTEXT;
    current = context;
    return OK;
}

cb__cu_result cuCtxGetLimit(size_t *value, cb__cu_limit limit)
{
    BEGIN(true);
    *value = persisting_bytes;
    return limit == CB__CU_LIMIT_PERSISTING_L2_BYTES ? OK : INVALID_VALUE;
}

cb__cu_result cuCtxSetLimit(cb__cu_limit limit, size_t value)
{
    BEGIN(true);
    persisting_bytes = value;
    return limit == CB__CU_LIMIT_PERSISTING_L2_BYTES ? OK : INVALID_VALUE;
}

/* ---- memory ---- */

static cb__cu_result allocate(size_t bytes, bool of_host, char **out)
{
    size_t used = 0;
    for (block *one = blocks; one; one = one->next)
        used += one->of_host ? 0 : one->size;
    if (!bytes)
        return INVALID_VALUE;
    if (!of_host && (bytes > total_bytes() || used > total_bytes() - bytes))
        return NO_MEMORY;
    block *made = calloc(1, sizeof *made);
    size_t whole = (bytes + 511) / 512 * 512; /* to what drivers align, and no better */
    *made = (block){blocks, (char *)aligned_alloc(4096, (whole + 512 + 4095) / 4096 * 4096) + 512,
                    bytes, of_host};
    memset(made->bytes, 0xA5, bytes);
    blocks = made;
    stub_live++;
    *out = made->bytes;
    return OK;
}

static cb__cu_result release(const void *address, bool of_host)
{
    block **at = &blocks;
    while (*at && ((*at)->bytes != address || (*at)->of_host != of_host))
        at = &(*at)->next;
    if (!*at)
        return INVALID_VALUE;
    block *gone = *at;
    *at = gone->next;
    free(gone->bytes - 512);
    free(gone);
    stub_live--;
    return OK;
}

/* Inside one allocation of the device. */
bool stub_holds(cb__cu_address address, size_t bytes)
{
    for (block *one = blocks; one; one = one->next) {
        cb__cu_address first = (cb__cu_address)(uintptr_t)one->bytes;
        if (!one->of_host && address >= first && address - first <= one->size &&
            bytes <= one->size - (address - first))
            return true;
    }
    return !bytes;
}

static void *memory_at(cb__cu_address address)
{
    return (void *)(uintptr_t)address;
}

cb__cu_result cuMemGetInfo_v2(size_t *free_bytes, size_t *whole)
{
    BEGIN(true);
    *whole = *free_bytes = total_bytes();
    for (block *one = blocks; one; one = one->next)
        *free_bytes -= one->of_host ? 0 : one->size;
    return OK;
}

cb__cu_result cuMemAlloc_v2(cb__cu_address *address, size_t bytes)
{
    BEGIN(true);
    char *memory = NULL;
    cb__cu_result result = allocate(bytes, false, &memory);
    *address = (cb__cu_address)(uintptr_t)memory;
    return result;
}

cb__cu_result cuMemFree_v2(cb__cu_address address)
{
    BEGIN(true);
    return release(memory_at(address), false);
}

cb__cu_result cuMemAllocHost_v2(void **address, size_t bytes)
{
    BEGIN(true);
    return allocate(bytes, true, (char **)address);
}

cb__cu_result cuMemFreeHost(void *address)
{
    BEGIN(true);
    return release(address, true);
}

cb__cu_result cuMemHostRegister_v2(void *address, size_t bytes, unsigned flags)
{
    BEGIN(true);
    (void)flags;
    stub_live += address && bytes;
    return address && bytes ? OK : INVALID_VALUE;
}

cb__cu_result cuMemHostUnregister(void *address)
{
    BEGIN(true);
    stub_live -= address != NULL;
    return address ? OK : INVALID_VALUE;
}

static cb__cu_result copy(void *to, const void *from, size_t bytes, bool inside)
{
    if (!inside)
        return INVALID_VALUE;
    memcpy(to, from, bytes);
    return OK;
}

cb__cu_result cuMemcpyHtoD_v2(cb__cu_address to, const void *from, size_t bytes)
{
    BEGIN(true);
    return copy(memory_at(to), from, bytes, stub_holds(to, bytes));
}

cb__cu_result cuMemcpyDtoH_v2(void *to, cb__cu_address from, size_t bytes)
{
    BEGIN(true);
    return copy(to, memory_at(from), bytes, stub_holds(from, bytes));
}

cb__cu_result cuMemcpyDtoD_v2(cb__cu_address to, cb__cu_address from, size_t bytes)
{
    BEGIN(true);
    return copy(memory_at(to), memory_at(from), bytes,
                stub_holds(from, bytes) && stub_holds(to, bytes));
}

cb__cu_result cuMemcpyHtoDAsync_v2(cb__cu_address to, const void *from, size_t bytes,
                                   cb__cu_stream stream)
{
    BEGIN(true);
    if (stream && stream->capturing)
        return CAPTURE_UNSUPPORTED; /* a real one records it */
    return copy(memory_at(to), from, bytes, stub_holds(to, bytes));
}

cb__cu_result cuMemcpyDtoHAsync_v2(void *to, cb__cu_address from, size_t bytes,
                                   cb__cu_stream stream)
{
    BEGIN(true);
    if (stream && stream->capturing)
        return CAPTURE_UNSUPPORTED;
    return copy(to, memory_at(from), bytes, stub_holds(from, bytes));
}

cb__cu_result cuMemsetD8_v2(cb__cu_address to, unsigned char value, size_t bytes)
{
    BEGIN(true);
    if (!stub_holds(to, bytes))
        return INVALID_VALUE;
    memset(memory_at(to), value, bytes);
    return OK;
}
