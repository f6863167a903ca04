/* The backend's own kernels: nothing, a digest, random words, the clock, and something to do. */
#include "device/cuda/cuda.h"
#include "device/digest.h"

enum { THREADS = 256, BLOCKS_PER_PROCESSOR = 8, CLOCK_NS = 200000, SPIN_NS = 1000000 };

/* One text, which the preprocessor makes of what is written here. The digest is that of
 * device/digest.h; words at odd addresses, and the last one, are read byte by byte. */
#define TEXT(...) #__VA_ARGS__
/* clang-format off */
static const char text[] = TEXT(
typedef unsigned long long u64;

extern "C" __global__ void cb_empty() {}

__device__ u64 mix(u64 z)
{
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

__device__ u64 word_of(const unsigned char *bytes, u64 size, u64 i)
{
    u64 word = 0;
    if ((u64)bytes % 8 == 0 && (i + 1) * 8 <= size)
        return ((const u64 *)bytes)[i];
    for (u64 j = 0; j < 8 && i * 8 + j < size; j++)
        word |= (u64)bytes[i * 8 + j] << (8 * j);
    return word;
}

extern "C" __global__ void cb_digest(const unsigned char *bytes, u64 size, u64 *sum)
{
    u64 words = (size + 7) / 8;
    u64 own = 0;
    for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < words;
         i += (u64)gridDim.x * blockDim.x)
        own += mix(word_of(bytes, size, i) + (i + 1) * 0x9E3779B97F4A7C15ull);
    for (int lane = 16; lane > 0; lane /= 2)
        own += __shfl_down_sync(0xFFFFFFFFu, own, lane);
    if (threadIdx.x % 32 == 0)
        atomicAdd(sum, own);
}

extern "C" __global__ void cb_words(u64 *to, u64 words, u64 key)
{
    for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < words;
         i += (u64)gridDim.x * blockDim.x)
        to[i] = mix(key + (i + 1) * 0x9E3779B97F4A7C15ull);
}

__device__ u64 now()
{
    u64 ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
}

extern "C" __global__ void cb_clock(u64 ns, u64 *out)
{
    u64 before = now();
    u64 start = before;
    while (start == before)
        start = now();
    long long first = clock64();
    u64 end = start;
    while (end - start < ns)
        end = now();
    out[0] = (u64)(clock64() - first);
    out[1] = end - start;
}

extern "C" __global__ void cb_spin(u64 ns)
{
    u64 start = now();
    while (now() - start < ns)
        ;
}
);
/* clang-format on */

const cb__cuda_source cb__cuda_support_source = {"coldbench", text, NULL};

cb_status cb__cuda_support_load(cb__device *device, cb_error *err)
{
    cb__cuda_support *s = &device->support;
    if (s->module)
        return CB_OK;
    const struct {
        const char *name;
        cb__cu_function *function;
    } all[] = {{"cb_empty", &s->empty},
               {"cb_digest", &s->digest},
               {"cb_clock", &s->clock},
               {"cb_spin", &s->spin},
               {"cb_words", &s->words}};
    const void *image = NULL;
    cb_status status = cb__cuda_image_of(device, &cb__cuda_support_source, &image, err);
    if (status == CB_OK)
        status = cb__cuda_module_load(&device->driver, cb__cuda_support_source.name, image,
                                      &s->module, err);
    for (size_t i = 0; i < sizeof all / sizeof *all && status == CB_OK; i++)
        status =
            CB__CUDA_DID(device, err, cuModuleGetFunction, all[i].function, s->module, all[i].name);
    if (status == CB_OK)
        status = CB__CUDA_DID(device, err, cuMemAlloc, &s->result,
                              CB__CUDA_RESULT_WORDS * sizeof(uint64_t));
    if (status != CB_OK)
        cb__cuda_support_unload(device);
    return status;
}

void cb__cuda_support_unload(cb__device *device)
{
    cb__cuda_support *s = &device->support;
    if (s->result)
        device->driver.cuMemFree(s->result);
    if (s->module)
        device->driver.cuModuleUnload(s->module);
    *s = (cb__cuda_support){0};
}

static cb_status enter(cb__device *device, cb_error *err)
{
    cb_status status = cb__cuda_enter(device, err);
    return status == CB_OK ? cb__cuda_support_load(device, err) : status;
}

static cb_status run(cb__device *device, cb__cu_function function, int blocks, int threads,
                     void **arguments, cb_error *err)
{
    return CB__CUDA_DID(device, err, cuLaunchKernel, function, (unsigned)blocks, 1, 1,
                        (unsigned)threads, 1, 1, 0, device->stream, arguments, NULL);
}

static void *result_of(const cb__device *device)
{
    return (void *)(uintptr_t)device->support.result;
}

cb_status cb__cuda_digest(cb__device *device, const void *from, size_t bytes, uint64_t *out,
                          cb_error *err)
{
    unsigned long long size = bytes;
    cb_status status = enter(device, err);
    if (status == CB_OK)
        status = cb__cuda_clock_read(device, err);
    if (status == CB_OK)
        status = CB__CUDA_DID(device, err, cuMemsetD8Async, device->support.result, 0, sizeof *out,
                              device->stream);
    void *arguments[] = {(void *)(uintptr_t)&from, &size, &device->support.result};
    if (status == CB_OK)
        status = run(device, device->support.digest, device->processors * BLOCKS_PER_PROCESSOR,
                     THREADS, arguments, err);
    if (status == CB_OK)
        status = cb__cuda_read(device, out, result_of(device), sizeof *out, err);
    return status == CB_OK ? cb__cuda_unkept(device, err) : status;
}

cb_status cb__cuda_fill_words(cb__device *device, void *to, uint64_t words, uint64_t key,
                              cb_error *err)
{
    unsigned long long count = words, of = key;
    cb_status status = enter(device, err);
    void *arguments[] = {&to, &count, &of};
    if (status == CB_OK)
        status = run(device, device->support.words, device->processors * BLOCKS_PER_PROCESSOR,
                     THREADS, arguments, err);
    return status == CB_OK ? CB__CUDA_DID(device, err, cuStreamSynchronize, device->stream)
                           : status;
}

cb_status cb__cuda_spin(cb__device *device, uint64_t ns, cb_error *err)
{
    cb_status status = enter(device, err);
    unsigned long long piece = SPIN_NS;
    void *arguments[] = {&piece};
    for (uint64_t done = 0; done < ns && status == CB_OK; done += SPIN_NS)
        status = run(device, device->support.spin, device->processors, THREADS, arguments, err);
    return status == CB_OK ? CB__CUDA_DID(device, err, cuStreamSynchronize, device->stream)
                           : status;
}

/* One multiprocessor's cycles over the timer that all share, from one of its ticks to another. */
double cb__cuda_clock_hz(cb__device *device)
{
    cb_error ignored = CB_ERROR_INIT;
    unsigned long long ns = CLOCK_NS;
    uint64_t words[CB__CUDA_RESULT_WORDS] = {0};
    cb_status status = enter(device, &ignored);
    void *arguments[] = {&ns, &device->support.result};
    if (status == CB_OK)
        status = run(device, device->support.clock, 1, 1, arguments, &ignored);
    if (status == CB_OK)
        status = cb__cuda_read(device, words, result_of(device), sizeof words, &ignored);
    return status == CB_OK && words[1] ? (double)words[0] * 1e9 / (double)words[1] : 0;
}
