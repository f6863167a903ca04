/* The CUDA backend: NVIDIA's driver, opened at run time. */
#include "device/cuda/cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "coldbench/random.h"
#include "host/clock.h"
#include "host/environment.h"

enum {
    BATCH_MIB = 2048, /* 0.5 ms: the ends of a graph take 2.5 us of it (H200) */
    WARM_UP_NS = 50000000,
    SHARED_BYTES_A_CLOCK = 128 /* of one multiprocessor's first cache */
};

/* ---- the driver ---- */

cb_status cb__cuda_did(cb__device *device, cb__cu_result result, const char *call, cb_error *err)
{
    if (result == 0)
        return CB_OK;
    cb_error own = CB_ERROR_INIT;
    cb_status status = cb__cuda_check(&device->driver, result, call, &own);
    if (status == CB_WRONG && device->lost.status == CB_OK)
        device->lost = own;
    return cb_error_set(err, status, "%s", own.message);
}

/* What the driver says before anything was launched is not the doing of a kernel. */
static cb_status innocent(cb_status status, cb_error *err)
{
    if (status != CB_WRONG)
        return status;
    if (err)
        err->status = CB_UNAVAILABLE;
    return CB_UNAVAILABLE;
}

static cb_status take_context(cb__device *device, cb_error *err)
{
    /* Another part of the program may hold the context already, with a flag of its own. */
    device->driver.cuDevicePrimaryCtxSetFlags(device->handle, CB__CU_CTX_SCHED_SPIN);
    cb_status status =
        CB__CUDA_DID(device, err, cuDevicePrimaryCtxRetain, &device->context, device->handle);
    if (status == CB_OK)
        status = CB__CUDA_DID(device, err, cuCtxSetCurrent, device->context);
    if (status == CB_OK)
        status =
            CB__CUDA_DID(device, err, cuStreamCreate, &device->stream, CB__CU_STREAM_NON_BLOCKING);
    if (status == CB_OK)
        cb__cuda_unkept(device, NULL); /* asks for the first time, so that a change is seen */
    if (status == CB_WRONG)
        cb_error_clear(&device->lost);
    return innocent(status, err);
}

cb_status cb__cuda_enter(cb__device *device, cb_error *err)
{
    device->after_launch = false;
    if (device->lost.status != CB_OK)
        return cb_error_set(err, CB_WRONG, "cuda:%d is of no more use to this process: %s",
                            device->ordinal, device->lost.message);
    return device->context ? CB_OK : take_context(device, err);
}

static int attribute(const cb__device *device, int what)
{
    int value = 0;
    return device->driver.cuDeviceGetAttribute(&value, what, device->handle) == 0 ? value : 0;
}

/* ---- which device ---- */

static cb_status count_of(const cb__cuda *driver, int *count, cb_error *err)
{
    cb_status status = CB__CUDA_TRY(driver, err, cuDeviceGetCount, count);
    if (status == CB_OK && *count < 1)
        return cb_error_set(err, CB_UNAVAILABLE, "the driver shows no device (it counts %d)",
                            *count);
    return innocent(status, err);
}

static cb_status ordinal_of(const cb__cuda *driver, const char *script, int *ordinal, cb_error *err)
{
    int count = 0;
    int64_t number = 0;
    cb_status status = count_of(driver, &count, err);
    if (status != CB_OK)
        return status;
    if (strcmp(script, "all") == 0)
        return cb_error_set(
            err, CB_USAGE, "device 'cuda:all': one device at a time is measured, cuda:0 to cuda:%d",
            count - 1);
    if (*script)
        status = cb__parse_i64(script, "device cuda:N", 0, INT32_MAX, &number, err);
    if (status == CB_OK && number >= count)
        return cb_error_set(err, CB_UNAVAILABLE, "device 'cuda:%s': the driver shows %d device%s",
                            script, count, count == 1 ? "" : "s");
    *ordinal = (int)number;
    return status;
}

static cb_status find(const char *script, cb__device *device, cb_error *err)
{
    cb_status status = cb__cuda_load(&device->driver, err);
    if (status != CB_OK)
        return err ? cb_error_prefix(err, "device 'cuda:%s'", *script ? script : "0") : status;
    status = ordinal_of(&device->driver, script, &device->ordinal, err);
    if (status == CB_OK)
        status = CB__CUDA_TRY(&device->driver, err, cuDeviceGet, &device->handle, device->ordinal);
    device->capability = 0;
    if (status == CB_OK) {
        device->capability = attribute(device, CB__CU_CAPABILITY_MAJOR) * 10 +
                             attribute(device, CB__CU_CAPABILITY_MINOR);
        device->processors = attribute(device, CB__CU_PROCESSORS);
        if (device->capability < 1 || device->processors < 1)
            status = cb_error_set(err, CB_UNAVAILABLE,
                                  "cuda:%d: the driver does not say its compute capability or how "
                                  "many multiprocessors it has (cuDeviceGetAttribute)",
                                  device->ordinal);
    }
    return innocent(status, err);
}

/* The device's own number is not for records: half of it, mixed, tells two devices apart as well.
 */
static cb_status identity_of(const cb__device *device, char identity[64], cb_error *err)
{
    cb__cu_uuid uuid;
    uint64_t halves[2];
    cb_status status = CB__CUDA_TRY(&device->driver, err, cuDeviceGetUuid, &uuid, device->handle);
    if (status != CB_OK)
        return status;
    memcpy(halves, uuid.bytes, sizeof halves);
    snprintf(identity, 64, "cuda-sm%d-%d-%016llx", device->capability, device->processors,
             (unsigned long long)cb_random(halves[0], halves[1], 0x75756964u, 0));
    return CB_OK;
}

static cb_status cuda_count(int *n, cb_error *err)
{
    cb__cuda driver;
    cb_status status = cb__cuda_load(&driver, err);
    if (status == CB_OK)
        status = count_of(&driver, n, err);
    return status;
}

static cb_status cuda_identify(const char *script, char identity[64], cb_error *err)
{
    cb__device *device = calloc(1, sizeof *device);
    if (!device)
        return cb_error_set(err, CB_NO_MEMORY, "cuda device: no memory");
    cb_status status = find(script, device, err);
    if (status == CB_OK)
        status = identity_of(device, identity, err);
    free(device);
    return status;
}

/* ---- opening ---- */

enum { MODE_PROHIBITED = 2, MODE_EXCLUSIVE_PROCESS = 3 };

/* Rounds take hold of the device together, which a device for one process refuses. */
static cb_status lets_in(const cb__device *device, cb_error *err)
{
    int mode = attribute(device, CB__CU_COMPUTE_MODE);
    if (mode != MODE_PROHIBITED && mode != MODE_EXCLUSIVE_PROCESS)
        return CB_OK;
    return cb_error_set(err, CB_UNAVAILABLE,
                        "device 'cuda:%d': its compute mode is %s; nvidia-smi -i %d -c DEFAULT, as "
                        "root, lets the processes of a measurement in",
                        device->ordinal,
                        mode == MODE_PROHIBITED ? "prohibited" : "exclusive to one process",
                        device->ordinal);
}

static void cuda_close(cb__device *device)
{
    if (!device)
        return;
    const cb__cuda *driver = &device->driver;
    cb__cuda_support_unload(device);
    cb__cuda_free_all(device);
    if (device->stream)
        driver->cuStreamDestroy(device->stream);
    if (device->context)
        driver->cuDevicePrimaryCtxRelease(device->handle);
    cb__cuda_images_free(device);
    cb__nvml_close(&device->nvml);
    free(device);
}

static cb_status cuda_open(const char *script, int threads, cb__placement placement,
                           cb__device **out, cb_error *err)
{
    (void)placement;
    *out = NULL;
    cb__device *device = calloc(1, sizeof *device);
    if (!device)
        return cb_error_set(err, CB_NO_MEMORY, "cuda device: no memory");
    /* There is one stream: a context with one queue is made and taken down in half the time (H200,
     * six processes at once: 0.38 and 0.18 s, against 0.80 and 0.41). */
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "1", false);
    cb_status status = find(script, device, err);
    if (status == CB_OK)
        status = lets_in(device, err);
    if (status == CB_OK && threads != 0 && threads != device->processors)
        status = cb_error_set(err, CB_USAGE,
                              "--threads %d: threads are for the cpu; cuda:%d has %d "
                              "multiprocessors and uses all of them",
                              threads, device->ordinal, device->processors);
    device->compiler = (cb__cuda_compiler){.driver = device->driver.version,
                                           .capability = device->capability,
                                           .embedded = cb__cuda_embedded()};
    if (status != CB_OK)
        cuda_close(device);
    else
        *out = device;
    return status;
}

/* ---- what it is ---- */

/* What is measured on the device is made on the host first. */
static uint64_t memory_of(const cb__device *device)
{
    size_t free_bytes = 0, total = 0;
    uint64_t host = cb__memory_available("");
    if (!device->context || device->driver.cuMemGetInfo(&free_bytes, &total) != 0)
        device->driver.cuDeviceTotalMem(&free_bytes, device->handle);
    return free_bytes < host ? free_bytes : host;
}

/* The attributes are in kHz and bits; a memory clock moves data at both of its edges. */
static void peaks(const cb__device *device, cb__device_info *out)
{
    double clock_hz = attribute(device, CB__CU_CLOCK_KHZ) * 1e3;
    double memory_hz = attribute(device, CB__CU_MEMORY_CLOCK_KHZ) * 1e3;
    out->peak_bytes_per_s = (double)device->processors * SHARED_BYTES_A_CLOCK * clock_hz;
    out->peak_dram_bytes_per_s = 2 * memory_hz * attribute(device, CB__CU_MEMORY_BUS_BITS) / 8;
}

static void caches(const cb__device *device, cb__device_info *out)
{
    int l1 = attribute(device, CB__CU_SHARED_BYTES_PER_PROCESSOR);
    int l2 = attribute(device, CB__CU_L2_BYTES);
    if (l1 > 0)
        out->caches[out->ncaches++] = (cb__device_cache){1, (uint64_t)l1, device->processors};
    if (l2 > 0)
        out->caches[out->ncaches++] = (cb__device_cache){2, (uint64_t)l2, 1};
    out->llc_bytes = l2 > 0 ? (uint64_t)l2 : 0;
}

static void cuda_info(cb__device *device, cb__device_info *out)
{
    cb__environment environment;
    *out = (cb__device_info){.threads = device->processors,
                             .isa = cb__backend_cuda.isa | (unsigned)device->capability
                                                               << CB__ISA_CAPABILITY_SHIFT,
                             .queued = true,
                             .overlaps = cb__cuda_can_overlap(device),
                             .memory_bytes = memory_of(device),
                             .batch_bytes = (uint64_t)BATCH_MIB << 20};
    cb__environment_read("", &environment);
    device->driver.cuDeviceGetName(out->name, sizeof out->name, device->handle);
    identity_of(device, out->identity, NULL);
    snprintf(out->clock, sizeof out->clock, "CUDA events");
    caches(device, out);
    peaks(device, out);
    out->has_counters = !environment.virtual_machine && !environment.container;
}

static uint64_t cuda_now_ns(cb__device *device)
{
    (void)device;
    return cb__clock_ns();
}

/* An idle device has slow clocks. A failure is told by the call that needs the device next. */
static void cuda_hold(cb__device *device, bool awake)
{
    cb_error ignored = CB_ERROR_INIT;
    if (awake)
        cb__cuda_spin(device, WARM_UP_NS, &ignored);
}

static void cuda_compiler(cb__device *device, char *text, size_t size)
{
    cb__cuda_compiler_text(&device->compiler, text, size);
}

const cb__backend cb__backend_cuda = {
    .version = CB__BACKEND_VERSION,
    .capabilities = CB__DEVICE_QUEUED,
    .name = "cuda",
    .help = "an NVIDIA GPU: cuda:N, the first one without a number",
    .isa = CB_ISA_CUDA,
    .open = cuda_open,
    .close = cuda_close,
    .count = cuda_count,
    .identify = cuda_identify,
    .info = cuda_info,
    .alloc = cb__cuda_alloc,
    .free = cb__cuda_free,
    .map = cb__cuda_map,
    .unmap = cb__cuda_free,
    .write = cb__cuda_write,
    .read = cb__cuda_read,
    .digest = cb__cuda_digest,
    .launch = cb__cuda_launch,
    .sync = cb__cuda_sync,
    .now_ns = cuda_now_ns,
    .batch_new = cb__cuda_batch_new,
    .batch_run = cb__cuda_batch_run,
    .batch_span_ns = cb__cuda_batch_span_ns,
    .batch_free = cb__cuda_batch_free,
    .build = cb__cuda_build,
    .unbuild = cb__cuda_unbuild,
    .fill_words = cb__cuda_fill_words,
    .hold = cuda_hold,
    .clock_hz = cb__cuda_clock_hz,
    .telemetry = cb__cuda_telemetry,
    .evicts = cb__cuda_evicts,
    .compiler = cuda_compiler,
};
