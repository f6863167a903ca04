/* The CPU backend: a pinned pool, host memory, implementations called in place. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device/device.h"
#include "device/digest.h"
#include "device/host_memory.h"
#include "host/clock.h"
#include "host/environment.h"
#include "host/memory.h"
#include "host/pool.h"
#include "host/topology.h"

struct cb__device {
    cb__pool *pool;
    cb__topology topology;
    cb__environment environment;
    int threads;
    int cpus[CB__CPUS_MAX]; /* of the threads */
    double clock_hz;
    _Atomic int failure; /* first nonzero code since the last sync */
    cb__host_memory memory;
};

struct cb__batch {
    const cb__launch *launches;
    int n;
    double span_ns;
};

/* ---- running ---- */

static void barrier(void *team, int worker)
{
    cb__device *device = team;
    cb__pool_barrier(device->pool, worker);
}

static void run_share(cb__device *device, const cb__launch *launch, int worker, int workers)
{
    if (!launch->code)
        return;
    const cb__code *code = launch->code;
    cb_launch share = {.problem = code->problem,
                       .tunables = code->tunables,
                       .operands = launch->operands,
                       .worker = worker,
                       .workers = workers,
                       .barrier = barrier,
                       .team = device};
    int failed = code->impl->run(&share);
    if (failed)
        atomic_store_explicit(&device->failure, failed, memory_order_relaxed);
}

typedef struct dispatch {
    cb__device *device;
    const cb__launch *launch;
    cb__batch *batch;
} dispatch;

static void one_launch(void *arg, int worker, int workers)
{
    dispatch *d = arg;
    run_share(d->device, d->launch, worker, workers);
}

static void cpu_launch(cb__device *device, const cb__launch *launch)
{
    dispatch d = {device, launch, NULL};
    cb__pool_run(device->pool, one_launch, &d);
}

static void whole_batch(void *arg, int worker, int workers)
{
    dispatch *d = arg;
    cb__batch *batch = d->batch;
    cb__pool_barrier(d->device->pool, worker);
    uint64_t start = worker == 0 ? cb__clock_ns() : 0;
    for (int i = 0; i < batch->n; i++) {
        run_share(d->device, &batch->launches[i], worker, workers);
        cb__pool_barrier(d->device->pool, worker);
    }
    if (worker == 0)
        batch->span_ns = (double)(cb__clock_ns() - start);
}

static void cpu_batch_run(cb__device *device, cb__batch *batch)
{
    dispatch d = {device, NULL, batch};
    cb__pool_run(device->pool, whole_batch, &d);
}

static cb_status cpu_sync(cb__device *device, cb_error *err)
{
    int failed = atomic_load_explicit(&device->failure, memory_order_relaxed);
    if (!failed)
        return CB_OK;
    atomic_store_explicit(&device->failure, 0, memory_order_relaxed);
    return cb_error_set(err, CB_WRONG, "a launch failed with code %d of the implementation's own",
                        failed);
}

static uint64_t cpu_now_ns(cb__device *device)
{
    (void)device;
    return cb__clock_ns();
}

static cb_status cpu_batch_new(cb__device *device, const cb__launch *launches, int n,
                               cb__batch **out, cb_error *err)
{
    (void)device;
    *out = malloc(sizeof **out);
    if (!*out)
        return cb_error_set(err, CB_NO_MEMORY, "batch of %d launches: no memory", n);
    **out = (cb__batch){launches, n, 0};
    return CB_OK;
}

static double cpu_batch_span_ns(cb__device *device, const cb__batch *batch)
{
    (void)device;
    return batch->span_ns;
}

static void cpu_batch_free(cb__device *device, cb__batch *batch)
{
    (void)device;
    free(batch);
}

static void cpu_hold(cb__device *device, bool awake)
{
    cb__pool_hold(device->pool, awake);
}

/* ---- memory ---- */

typedef struct touch {
    unsigned char *base;
    size_t bytes;
} touch;

/* The page goes to the node of the thread that touches it first, the one that will read this share.
 */
static void first_touch(void *arg, int worker, int workers)
{
    touch *t = arg;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t pages = (t->bytes + page - 1) / page;
    size_t end = pages * (size_t)(worker + 1) / (size_t)workers;
    for (size_t i = pages * (size_t)worker / (size_t)workers; i < end; i++)
        *(volatile unsigned char *)(t->base + i * page) = 0;
}

static cb_status cpu_alloc(cb__device *device, size_t bytes, cb__page_kind pages, void **out,
                           cb_error *err)
{
    cb_status status =
        cb__host_memory_alloc(&device->memory, bytes, pages == CB__PAGES_BASE, out, err);
    if (status != CB_OK || pages == CB__PAGES_UNTOUCHED)
        return status;
    touch t = {*out, bytes};
    cb__pool_run(device->pool, first_touch, &t);
    return CB_OK;
}

static void cpu_free(cb__device *device, void *address)
{
    cb__host_memory_free(&device->memory, address);
}

static cb__pages cpu_pages(cb__device *device, const void *address)
{
    return cb__host_memory_pages(&device->memory, address);
}

static cb_status cpu_map(cb__device *device, int fd, size_t bytes, void **out, cb__pages *pages,
                         cb_error *err)
{
    return cb__host_memory_map(&device->memory, fd, bytes, out, pages, err);
}

static cb_status cpu_copy(cb__device *device, void *to, const void *from, size_t bytes,
                          cb_error *err)
{
    (void)device;
    (void)err;
    memcpy(to, from, bytes);
    return CB_OK;
}

typedef struct digesting {
    const void *from;
    size_t bytes;
    _Atomic uint64_t sum;
} digesting;

static void digest_share(void *arg, int worker, int workers)
{
    digesting *d = arg;
    uint64_t share = cb__digest_part(d->from, d->bytes, worker, workers);
    atomic_fetch_add_explicit(&d->sum, share, memory_order_relaxed);
}

static cb_status cpu_digest(cb__device *device, const void *from, size_t bytes, uint64_t *out,
                            cb_error *err)
{
    (void)err;
    digesting d = {from, bytes, 0};
    cb__pool_run(device->pool, digest_share, &d);
    *out = atomic_load(&d.sum);
    return CB_OK;
}

/* ---- the device ---- */

static double cpu_clock_hz(cb__device *device)
{
    (void)device;
    return cb__core_hz(100000, 1);
}

static void cpu_close(cb__device *device)
{
    if (!device)
        return;
    cb__host_memory_fini(&device->memory);
    cb__pool_free(device->pool);
    free(device);
}

static cb_status only_one(const char *script, cb_error *err)
{
    if (!*script || strcmp(script, "0") == 0)
        return CB_OK;
    return cb_error_set(err, CB_UNAVAILABLE, "device 'cpu:%s': there is one cpu device, 'cpu'",
                        script);
}

/* The last cores of the mask first: the first ones serve interrupts and whatever else a system pins
 * there. Scattered: at equal distances over all of them. More threads than cores: their siblings,
 * in the order of the mask. */
static int processors(const cb__topology *t, int threads, cb__placement placement, int *cpus)
{
    int n = 0, first = t->ncores > threads ? t->ncores - threads : 0;
    for (; n < threads && n < t->ncores; n++)
        cpus[n] =
            t->cores[placement == CB__COMPACT ? first + n : (n + 1) * t->ncores / threads - 1];
    for (int i = 0; n < threads && i < t->ncpus; i++) {
        bool used = false;
        for (int j = 0; j < t->ncores; j++)
            used = used || t->cores[j] == t->cpus[i];
        if (!used)
            cpus[n++] = t->cpus[i];
    }
    return n;
}

static cb_status cpu_open(const char *script, int threads, cb__placement placement,
                          cb__device **out, cb_error *err)
{
    *out = NULL;
    cb_status status = only_one(script, err);
    if (status != CB_OK)
        return status;
    cb__device *device = calloc(1, sizeof *device);
    if (!device)
        return cb_error_set(err, CB_NO_MEMORY, "cpu device: no memory");
    cb__host_memory_init(&device->memory, "cpu");
    status = cb__topology_read("", &device->topology, err);
    if (status != CB_OK)
        goto out;
    cb__environment_read("", &device->environment);
    const cb__topology *t = &device->topology;
    int limit = t->ncpus;
    if (t->quota > 0 && t->quota < limit)
        limit = t->quota < 1 ? 1 : (int)t->quota;
    device->threads = threads ? threads : cb__default_threads(t);
    if (device->threads > limit) {
        status = cb_error_set(err, CB_USAGE,
                              "--threads %d: the affinity mask and the container's quota allow %d",
                              device->threads, limit);
        goto out;
    }
    if (device->threads > t->ncores)
        placement = CB__COMPACT;
    processors(t, device->threads, placement, device->cpus);
    status = cb__pool_new(device->cpus, device->threads, &device->pool, err);
    if (status == CB_OK)
        device->clock_hz = cb__core_hz(200000, 5);
out:
    if (status != CB_OK)
        cpu_close(device);
    else
        *out = device;
    return status;
}

static cb_status cpu_open_on(const char *names, cb__device **out, cb_error *err)
{
    cb__device *device = calloc(1, sizeof *device);
    *out = NULL;
    if (!device)
        return cb_error_set(err, CB_NO_MEMORY, "cpu device: no memory");
    cb__host_memory_init(&device->memory, "cpu");
    device->threads = cb__processors_read(names, device->cpus);
    cb_status status =
        device->threads
            ? cb__pool_new(device->cpus, device->threads, &device->pool, err)
            : cb_error_set(err, CB_USAGE, "processors '%s' are not a list of numbers", names);
    if (status != CB_OK)
        cpu_close(device);
    else
        *out = device;
    return status;
}

/* Caches above the last level belong to a core; what the pool's threads reach of the last level is
 * what the mask reaches, at most one instance a thread. */
static void reachable_caches(const cb__device *device, cb__device_info *out)
{
    const cb__topology *t = &device->topology;
    for (int i = 0; i < t->ncaches; i++) {
        const cb__cache *c = &t->caches[i];
        if (!c->data)
            continue;
        int instances = c->instances < device->threads ? c->instances : device->threads;
        instances = instances < 1 ? 1 : instances;
        out->caches[out->ncaches++] = (cb__device_cache){c->level, c->bytes, instances};
        out->llc_bytes = c->bytes * (uint64_t)instances;
    }
}

/* Neighbours and spread threads meet other caches or memories where there is more than one last
 * level or node. */
static bool placements_differ(const cb__topology *t)
{
    int last = 1;
    for (int i = 0; i < t->ncaches; i++)
        if (t->caches[i].data)
            last = t->caches[i].instances; /* sorted by level */
    return last > 1 || t->numa_nodes > 1;
}

static void identity_of(const cb__topology *t, const cb__environment *e, char identity[64])
{
    snprintf(identity, 64, "cpu-%.15s-%d-%d-%d-%.16s", t->vendor, t->family, t->model, t->ncores,
             e->machine_id_hash);
}

static cb_status cpu_identify(const char *script, char identity[64], cb_error *err)
{
    cb__topology *t = calloc(1, sizeof *t);
    cb__environment e;
    if (!t)
        return cb_error_set(err, CB_NO_MEMORY, "cpu device: no memory");
    cb_status status = only_one(script, err);
    if (status == CB_OK)
        status = cb__topology_read("", t, err);
    cb__environment_read("", &e);
    if (status == CB_OK)
        identity_of(t, &e, identity);
    free(t);
    return status;
}

static void name_processors(const cb__device *device, cb__device_info *out)
{
    size_t at = 0, size = sizeof out->processors;
    for (int i = 0; i < device->threads && at < size; i++)
        at += (size_t)snprintf(out->processors + at, size - at, "%s%d", i ? " " : "",
                               device->cpus[i]);
    if (at >= size)
        out->processors[0] = '\0';
}

static void cpu_info(cb__device *device, cb__device_info *out)
{
    const cb__topology *t = &device->topology;
    *out = (cb__device_info){.threads = device->threads,
                             .isa = t->isa,
                             .placements_differ = placements_differ(t),
                             .memory_bytes = cb__memory_available("")};
    reachable_caches(device, out);
    snprintf(out->name, sizeof out->name, "%s", t->model_name);
    identity_of(t, &device->environment, out->identity);
    snprintf(out->clock, sizeof out->clock, "CLOCK_MONOTONIC");
    out->peak_bytes_per_s = t->load_bytes_per_cycle * device->clock_hz * device->threads;
    out->peak_bytes_per_cycle = t->load_bytes_per_cycle;
    name_processors(device, out);
    out->has_counters = !device->environment.virtual_machine && !device->environment.container;
}

const cb__backend cb__backend_cpu = {
    .version = CB__BACKEND_VERSION,
    .capabilities = CB__DEVICE_MAPS_FILES,
    .name = "cpu",
    .help = "this machine's processors, one pinned thread a physical core",
    .open = cpu_open,
    .open_on = cpu_open_on,
    .close = cpu_close,
    .identify = cpu_identify,
    .info = cpu_info,
    .alloc = cpu_alloc,
    .pages = cpu_pages,
    .free = cpu_free,
    .map = cpu_map,
    .unmap = cpu_free,
    .write = cpu_copy,
    .read = cpu_copy,
    .digest = cpu_digest,
    .launch = cpu_launch,
    .sync = cpu_sync,
    .now_ns = cpu_now_ns,
    .batch_new = cpu_batch_new,
    .batch_run = cpu_batch_run,
    .batch_span_ns = cpu_batch_span_ns,
    .batch_free = cpu_batch_free,
    .hold = cpu_hold,
    .clock_hz = cpu_clock_hz,
};
