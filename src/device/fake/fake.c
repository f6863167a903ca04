#include "device/fake/fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/device.h"
#include "device/digest.h"
#include "device/host_memory.h"

enum { SETS_MAX = 65536 };

typedef struct touched {
    const void *set;
    uint64_t bytes;
} touched;

struct cb__device {
    cb__fake_script script;
    int threads;
    double now_ns;
    uint64_t seed, launches, kernel_launches;
    int failure;
    int arm, place; /* of the slot in work; -1: none was named */
    bool offset;    /* this process is one of those that make process_arm slower */
    cb__host_memory memory;
    touched *recent; /* most recent first, until their bytes pass the cache */
    int nrecent;
};

struct cb__batch {
    const cb__launch *launches;
    int n;
    double span_ns;
};

/* ---- the scripted clock ---- */

static const void *streamed_set(const cb__launch *launch)
{
    const cb_kernel *k = launch->code->kernel;
    for (int i = 0; i < k->noperands; i++)
        if ((k->operands[i].role == CB_WEIGHT || k->operands[i].role == CB_STREAM) &&
            launch->operands[i])
            return launch->operands[i];
    for (int i = 0; i < k->noperands; i++)
        if (launch->operands[i])
            return launch->operands[i];
    return NULL;
}

/* Whether the set was among the last `cache` bytes touched; it is the most recent afterwards. */
static bool touch(cb__device *device, const void *set, uint64_t bytes)
{
    uint64_t since = bytes;
    int at = 0;
    while (at < device->nrecent && device->recent[at].set != set)
        since += device->recent[at++].bytes;
    bool found = at < device->nrecent;
    bool hit = found && since <= (uint64_t)device->script.cache;
    if (!found && device->nrecent < SETS_MAX)
        device->nrecent++;
    if (at == SETS_MAX)
        at--;
    memmove(&device->recent[1], &device->recent[0], (size_t)at * sizeof *device->recent);
    device->recent[0] = (touched){set, bytes};
    return hit;
}

static bool is_twin(const cb__code *code)
{
    return strncmp(code->kernel->name, "twin_", 5) == 0;
}

/* How many times a launch goes over its set, or how many dependent loads it makes: kernels that do
 * have a parameter for it. */
static int64_t param_of(const cb__code *code, const char *name, int64_t otherwise)
{
    for (int i = 0; i < code->kernel->nparams; i++)
        if (strcmp(code->kernel->params[i].name, name) == 0)
            return code->problem.params[i];
    return otherwise;
}

/* Bytes of the set that dependent loads go around. */
static int64_t chain(const cb__launch *launch)
{
    return launch->code->kernel->ndims > 0 ? launch->code->problem.shape[0] : 0;
}

static double slot_factor(const cb__device *device)
{
    const cb__fake_script *s = &device->script;
    double factor = device->place == 0 ? 1 + s->place : 1;
    return device->offset && device->arm == s->process_arm ? factor * (1 + s->process) : factor;
}

static double launch_ns(cb__device *device, const cb__launch *launch, double floor_ns)
{
    const cb__fake_script *s = &device->script;
    if (!launch->code)
        return floor_ns;
    const cb_cost *cost = &launch->code->cost;
    uint64_t set = cost->bytes_read + cost->bytes_written;
    bool hit = touch(device, streamed_set(launch), set);
    double seconds = device->now_ns * 1e-9;
    double factor = 1 + s->drift * seconds;
    if (!is_twin(launch->code))
        factor *= s->kernel_factor * (1 + s->arm_drift * seconds);
    factor *= slot_factor(device);
    uint64_t word = cb_random(device->seed, 0, 0, device->launches++);
    factor *= 1 + s->noise * (2 * cb_random_f64(word) - 1);
    /* The first pass finds what was there; the others, what it left. */
    double again = set <= (uint64_t)s->cache ? s->cache_gbs : s->dram_gbs;
    double first = hit ? s->cache_gbs : s->dram_gbs;
    double passes = (double)param_of(launch->code, "passes", 1);
    double steps = (double)param_of(launch->code, "steps", 0);
    if (steps > 0)
        return floor_ns + factor * steps * (chain(launch) <= s->cache ? s->cache_ns : s->dram_ns);
    return floor_ns + factor * (double)set * (1 / first + (passes - 1) / again);
}

static void run(cb__device *device, const cb__launch *launch)
{
    const cb__code *code = launch->code;
    if (!code)
        return;
    if (!is_twin(code) && ++device->kernel_launches == (uint64_t)device->script.fail_launch) {
        device->failure = 1;
        return;
    }
    cb_launch all = {.problem = code->problem,
                     .tunables = code->tunables,
                     .operands = launch->operands,
                     .worker = 0,
                     .workers = 1};
    int failed = code->impl->run(&all);
    if (failed)
        device->failure = failed;
}

static void fake_launch(cb__device *device, const cb__launch *launch)
{
    device->now_ns += launch_ns(device, launch, device->script.solo_ns);
    run(device, launch);
}

static void fake_batch_run(cb__device *device, cb__batch *batch)
{
    double start = device->now_ns;
    for (int i = 0; i < batch->n; i++) {
        device->now_ns += launch_ns(device, &batch->launches[i], device->script.batched_ns);
        run(device, &batch->launches[i]);
    }
    batch->span_ns = device->now_ns - start;
}

static cb_status fake_sync(cb__device *device, cb_error *err)
{
    int failed = device->failure;
    device->failure = 0;
    return failed ? cb_error_set(err, CB_WRONG, "a launch failed with code %d", failed) : CB_OK;
}

static uint64_t fake_now_ns(cb__device *device)
{
    return (uint64_t)device->now_ns;
}

static void fake_begin(cb__device *device, uint64_t seed, uint64_t elapsed_ns)
{
    device->seed = seed;
    device->now_ns = (double)elapsed_ns;
    device->offset =
        cb_random_f64(cb_random(seed, 0x6f66667365u, 0, 0)) < device->script.process_share;
}

static void fake_mark(cb__device *device, int arm, int place)
{
    device->arm = arm;
    device->place = place;
}

static cb_status fake_batch_new(cb__device *device, const cb__launch *launches, int n,
                                cb__batch **out, cb_error *err)
{
    (void)device;
    *out = malloc(sizeof **out);
    if (!*out)
        return cb_error_set(err, CB_NO_MEMORY, "batch of %d launches: no memory", n);
    **out = (cb__batch){launches, n, 0};
    return CB_OK;
}

static double fake_batch_span_ns(cb__device *device, const cb__batch *batch)
{
    (void)device;
    return batch->span_ns;
}

static void fake_batch_free(cb__device *device, cb__batch *batch)
{
    (void)device;
    free(batch);
}

/* ---- memory: the host's ---- */

static cb_status fake_alloc(cb__device *device, size_t bytes, cb__page_kind pages, void **out,
                            cb_error *err)
{
    return cb__host_memory_alloc(&device->memory, bytes, pages == CB__PAGES_BASE, out, err);
}

static cb__pages fake_pages(cb__device *device, const void *address)
{
    return cb__host_memory_pages(&device->memory, address);
}

static cb_status fake_map(cb__device *device, int fd, size_t bytes, void **out, cb__pages *pages,
                          cb_error *err)
{
    return cb__host_memory_map(&device->memory, fd, bytes, out, pages, err);
}

static void fake_free(cb__device *device, void *address)
{
    cb__host_memory_free(&device->memory, address);
}

static cb_status fake_copy(cb__device *device, void *to, const void *from, size_t bytes,
                           cb_error *err)
{
    (void)device;
    (void)err;
    memcpy(to, from, bytes);
    return CB_OK;
}

static cb_status fake_digest(cb__device *device, const void *from, size_t bytes, uint64_t *out,
                             cb_error *err)
{
    (void)device;
    (void)err;
    *out = cb__digest(from, bytes);
    return CB_OK;
}

/* ---- the device ---- */

static void fake_close(cb__device *device)
{
    if (!device)
        return;
    cb__host_memory_fini(&device->memory);
    free(device->recent);
    free(device);
}

static cb_status fake_identify(const char *script, char identity[64], cb_error *err)
{
    (void)script;
    (void)err;
    snprintf(identity, 64, "fake");
    return CB_OK;
}

static cb_status fake_open(const char *script, int threads, cb__placement placement,
                           cb__device **out, cb_error *err)
{
    (void)placement;
    *out = NULL;
    cb__device *device = calloc(1, sizeof *device);
    if (!device)
        return cb_error_set(err, CB_NO_MEMORY, "fake device: no memory");
    cb__host_memory_init(&device->memory, "fake");
    device->threads = threads ? threads : 1;
    device->arm = device->place = -1;
    cb_status status = cb__fake_parse(script, &device->script, err);
    device->recent = calloc(SETS_MAX, sizeof *device->recent);
    if (status == CB_OK && !device->recent)
        status = cb_error_set(err, CB_NO_MEMORY, "fake device: no memory");
    if (status != CB_OK)
        fake_close(device);
    else
        *out = device;
    return status;
}

static void fake_info(cb__device *device, cb__device_info *out)
{
    const cb__fake_script *s = &device->script;
    *out = (cb__device_info){.threads = device->threads,
                             .queued = s->queued != 0,
                             .llc_bytes = (uint64_t)s->llc,
                             .memory_bytes = (uint64_t)s->memory,
                             .peak_bytes_per_s = s->peak_gbs * 1e9,
                             .peak_dram_bytes_per_s = s->peak_dram_gbs * 1e9};
    out->caches[out->ncaches++] = (cb__device_cache){1, (uint64_t)s->llc, 1};
    snprintf(out->name, sizeof out->name, "scripted device");
    snprintf(out->identity, sizeof out->identity, "fake");
    snprintf(out->clock, sizeof out->clock, "scripted");
}

const cb__backend cb__backend_fake = {
    .version = CB__BACKEND_VERSION,
    .capabilities = CB__DEVICE_MAPS_FILES | CB__DEVICE_VIRTUAL_CLOCK,
    .name = "fake",
    .help = "kernels run for real, time is scripted: fake:key=value,... (docs/fake.md)",
    .open = fake_open,
    .close = fake_close,
    .identify = fake_identify,
    .info = fake_info,
    .alloc = fake_alloc,
    .pages = fake_pages,
    .free = fake_free,
    .map = fake_map,
    .unmap = fake_free,
    .write = fake_copy,
    .read = fake_copy,
    .digest = fake_digest,
    .launch = fake_launch,
    .sync = fake_sync,
    .now_ns = fake_now_ns,
    .batch_new = fake_batch_new,
    .batch_run = fake_batch_run,
    .batch_span_ns = fake_batch_span_ns,
    .batch_free = fake_batch_free,
    .begin = fake_begin,
    .mark = fake_mark,
};
