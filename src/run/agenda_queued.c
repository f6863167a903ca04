/* The agenda of a device that launches are queued to, a GPU: all of its multiprocessors, always. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "run/agenda_internal.h"

/* Chains are made on the host, a line at a time: over 4x the last cache of what there is. */
enum { CHAIN_MAX = 256 << 20, CHAIN_MIN = 4096 };
enum { STRIDE_MAX = 1024 };

/* What is compiled, which takes 0.15 s each the first time, and tried an octave: blocks that stay
 * on the multiprocessors for passes within a launch, and blocks that come and go where each pass is
 * a launch; few in flight for sets that have not more, and more than pay as the edge. Within 1 % of
 * the best of docs/results/cuda-twins.md. */
typedef struct drive {
    const char *what, *kernel, *tunables;
    bool quick;
} drive;

static const drive drives[] = {
    {"read", "twin_read", "blocks=32,threads=512,loads=8,l1=0", true},
    {"read", "twin_read", "blocks=2,threads=512,loads=8,l1=0", true},
    {"read", "twin_read", "blocks=8,threads=128,loads=4,l1=0", true},
    {"read", "twin_read", "blocks=1,threads=512,loads=16,l1=0", true},
    {"read", "twin_read", "blocks=1,threads=1024,loads=8,l1=0", false},
    {"read", "twin_read", "blocks=2,threads=512,loads=4,l1=0", false},
    {"read", "twin_read", "blocks=4,threads=256,loads=8,l1=0", false},
    /* One block, whose warps begin a pass together: of two, one can be passes ahead of the other,
     * and has the cache to itself meanwhile (50 MiB were read at 25 TB/s). */
    {"read_l1", "twin_read", "blocks=1,threads=1024,loads=8,l1=1", true},
    {"read_l1", "twin_read", "blocks=1,threads=1024,loads=4,l1=1", true},
    {"read_l1", "twin_read", "blocks=1,threads=512,loads=16,l1=1", true},
    {"read_l1", "twin_read", "blocks=1,threads=512,loads=8,l1=1", false},
    {"read_l1", "twin_read", "blocks=1,threads=1024,loads=2,l1=1", false},
    {"write", "twin_write", "blocks=0,threads=512,loads=2,streaming=0", true},
    {"write", "twin_write", "blocks=2,threads=512,loads=8,streaming=0", true},
    {"write", "twin_write", "blocks=0,threads=1024,loads=2,streaming=0", false},
    {"write", "twin_write", "blocks=2,threads=512,loads=2,streaming=0", false},
    {"write", "twin_write", "blocks=8,threads=128,loads=4,streaming=0", true},
    {"copy", "twin_copy", "blocks=0,threads=128,loads=2,streaming=1", true},
    {"copy", "twin_copy", "blocks=2,threads=512,loads=4,streaming=0", true},
    {"copy", "twin_copy", "blocks=0,threads=512,loads=16,streaming=1", false},
    {"copy", "twin_copy", "blocks=2,threads=512,loads=8,streaming=0", true},
    {"copy", "twin_copy", "blocks=8,threads=128,loads=4,streaming=0", true},
    {"random", "chase", "cache=all", true},
    {"f32", "peak_fma", "", true},
    {"f64", "peak_fma", "", false},
    {"bf16", "peak_mma", "", true},
    {"tf32", "peak_mma", "", true},
    {"int8", "peak_mma", "", true},
    {"shared/16", "scratch_read", "", true},
    {"shared/8", "scratch_read", "", true},
    {"shared/4", "scratch_read", "", true},
    {"global/16", "scratch_read", "", true},
    {"global/8", "scratch_read", "", false},
    {"global/4", "scratch_read", "", false},
};

/* Whether this device runs the code that the table above is of. */
static bool has_code(const cb__probe_request *request, const char *kernel)
{
    const cb_kernel *k = cb__suite_find(request->suite, kernel, NULL);
    for (int i = 0; k && i < k->nimpls; i++)
        if (strcmp(k->impls[i].name, "cuda") == 0 && cb__impl_runs(&k->impls[i], request->isa))
            return true;
    return false;
}

/* On a device whose kernels have other code, that of processors, their variants as there. */
static void add_variants(const cb__probe_request *request, cb__planned_job *job)
{
    for (size_t i = 0; i < sizeof drives / sizeof *drives; i++) {
        const drive *d = &drives[i];
        if (strcmp(d->what, job->what) != 0 || job->nvariants == CB__JOB_VARIANTS_MAX)
            continue;
        if (!has_code(request, d->kernel)) {
            cb__agenda_variants(request, d->kernel, -1, job);
            return;
        }
        if (request->quick && !d->quick)
            continue;
        snprintf(job->variants[job->nvariants++], sizeof job->variants[0], "%s/cuda%s%s", d->kernel,
                 *d->tunables ? ":" : "", d->tunables);
    }
}

/* Powers of two, half as much again, and a padding of each: what has conflicts and what has not. */
static void strides(cb__planned_job *job)
{
    const char *slash = strchr(job->what, '/');
    int width = slash[1] == '1' ? 16 : slash[1] - '0';
    for (int stride = width; stride <= STRIDE_MAX; stride += width) {
        int base = stride - width;
        bool power = (stride & (stride - 1)) == 0;
        bool padded = base >= width && (base & (base - 1)) == 0;
        bool half_more = stride % 3 == 0 && ((stride / 3) & (stride / 3 - 1)) == 0;
        if (power || padded || half_more)
            job->bytes[job->n++] = stride;
    }
}

static void add(const cb__probe_request *request, cb__planned_group *g, cb__job_kind kind,
                const char *what, double largest, double smallest, double an_octave)
{
    cb__planned_job *job = &g->jobs[g->njobs];
    *job = (cb__planned_job){.kind = kind};
    snprintf(job->what, sizeof job->what, "%s", what);
    add_variants(request, job);
    if (kind == CB__JOB_SCRATCH)
        strides(job);
    else if (largest > 0)
        cb__agenda_sizes(largest, smallest, an_octave, kind == CB__JOB_LATENCY, job);
    if (job->nvariants || kind == CB__JOB_FLOOR)
        g->njobs++;
}

/* All that the multiprocessors' first caches hold, and an octave more. */
static double first_caches(const cb__device_info *device)
{
    double bytes = 0;
    for (int i = 0; i < device->ncaches; i++)
        if (device->caches[i].level == 1)
            bytes = (double)device->caches[i].bytes * device->caches[i].instances;
    return bytes;
}

void cb__agenda_queued(const cb__probe_request *request, const cb__device_info *device,
                       double smallest, cb__agenda *plan)
{
    static const char *const floors[] = {"solo", "stream", "batched"};
    static const char *const types[] = {"f32", "f64", "bf16", "tf32", "int8"};
    static const char *const paths[] = {"shared/16", "shared/8", "shared/4",
                                        "global/16", "global/8", "global/4"};
    bool quick = request->quick;
    double largest = (double)plan->largest_bytes;
    double l1 = fmin(largest, exp2(ceil(log2(fmax(first_caches(device), 1))) + 1));
    cb__planned_group *g = cb__agenda_group(plan, device->threads, false, CB__PAGES_HUGE, 1);
    snprintf(g->name, sizeof g->name, "%d multiprocessors", device->threads);
    add(request, g, CB__JOB_BANDWIDTH, "read", largest, smallest, quick ? 2 : 4);
    if (request->read_only)
        return;
    for (int i = 0; i < 3; i++)
        add(request, g, CB__JOB_FLOOR, floors[i], 0, 0, 0);
    add(request, g, CB__JOB_BANDWIDTH, "write", largest, smallest, quick ? 1 : 2);
    add(request, g, CB__JOB_BANDWIDTH, "copy", largest, smallest, quick ? 1 : 2);
    add(request, g, CB__JOB_LATENCY, "random", fmin(largest, CHAIN_MAX), CHAIN_MIN, quick ? 2 : 3);
    for (int i = 0; i < 6 && has_code(request, "scratch_read"); i++)
        add(request, g, CB__JOB_SCRATCH, paths[i], 0, 0, 0);
    for (int i = 0; i < 5; i++)
        add(request, g, CB__JOB_COMPUTE, types[i], 0, 0, 0);
    if (l1 > smallest)
        add(request, g, CB__JOB_BANDWIDTH, "read_l1", l1, smallest, quick ? 1 : 3);
}
