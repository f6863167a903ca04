/* device.h: what a backend is: one table of functions, the same for cpu, fake and cuda.
 *
 * The timed path is launch, batch_run, sync, span, now. Nothing in it allocates or logs. Addresses
 * are the device's own; a memory file is mapped where the backend says CB__DEVICE_MAPS_FILES, and
 * else map() gives a copy of it. */
#ifndef CB_DEVICE_DEVICE_H
#define CB_DEVICE_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "coldbench/kernel.h"
#include "coldbench/status.h"
#include "host/memory.h"

#define CB__BACKEND_VERSION 2u

enum {
    CB__DEVICE_MAPS_FILES = 1 << 0, /* map() works: host memory is device memory */
    CB__DEVICE_VIRTUAL_CLOCK =
        1 << 1, /* now() is scripted; budgets follow it, tests on it are exact */
    /* Launches are queued to a device with a clock of its own: submitting one costs microseconds
     * that its span has not, and a process takes long to get hold of the device. */
    CB__DEVICE_QUEUED = 1 << 2
};

/* isa of a GPU: CB_ISA_CUDA, and from this bit on its compute capability, 90 for 9.0; 0 there: not
 * known, and any code for such a device will do. */
enum { CB__ISA_CAPABILITY_SHIFT = 16 };

typedef struct cb__device cb__device; /* a backend's own state */
typedef struct cb__batch cb__batch;

/* A data cache as the system names it. */
typedef struct cb__device_cache {
    int level;
    uint64_t bytes; /* of one instance */
    int instances;  /* that the threads in use reach */
} cb__device_cache;

enum { CB__DEVICE_CACHES_MAX = 8 };

/* Which of its processors a device's threads take: neighbours, or spread over all of them. */
typedef enum cb__placement { CB__COMPACT, CB__SCATTERED } cb__placement;

/* The pages behind an allocation: huge ones where they are granted, or none of them; or pages that
 * nobody has written, which all read as one page of zeros: what never to measure on. */
typedef enum cb__page_kind { CB__PAGES_HUGE, CB__PAGES_BASE, CB__PAGES_UNTOUCHED } cb__page_kind;

typedef struct cb__device_info {
    char name[128];
    char identity[64];      /* what a model file is keyed by */
    char clock[32];         /* which clock spans are read from */
    char code[256];         /* what compiles its code; "": it came compiled */
    int threads;            /* in use; of a GPU: its multiprocessors */
    unsigned isa;           /* CB_ISA_* of code that runs here; 0: as this machine's processor */
    bool placements_differ; /* a few threads can lie close together or apart */
    bool queued;            /* as CB__DEVICE_QUEUED: its launches are timed by a clock of its own */
    bool overlaps;          /* code that overlaps (kernel.h) begins early in batches and streams */
    cb__device_cache caches[CB__DEVICE_CACHES_MAX]; /* of data, by level */
    int ncaches;
    uint64_t beyond_bytes; /* a set this large is in memory, as probed; 0: not known */
    uint64_t llc_bytes;    /* sum of the last-level caches that those threads reach; 0: unknown */
    uint64_t memory_bytes; /* that can be taken now */
    uint64_t batch_bytes;  /* that one batch should move, so that its clock sees it; 0: a few MiB */
    double peak_bytes_per_s;      /* physical, of the first cache: load ports x width x clock; 0:
                                     unknown */
    double peak_bytes_per_cycle;  /* of one thread, where peak_bytes_per_s moves with the clock; 0:
                                     it does not */
    double peak_dram_bytes_per_s; /* physical ceiling of the memory behind the caches; 0: unknown */
    char processors[512]; /* that the threads stand on, "1 0"; "": unknown, or too many to name */
    bool has_counters;    /* bare metal with counters: clock and interference checks are required */
} cb__device_info;

/* Code with its problem and tunables: what a kernel's case is to a device. Borrowed throughout but
 * for what build() made of it. */
typedef struct cb__code {
    const cb_kernel *kernel;
    const cb_impl *impl;
    cb_problem problem;
    const int64_t *tunables;
    cb_cost cost;
    void *built; /* by build(); the device's own */
} cb__code;

/* One launch: code bound to addresses. */
typedef struct cb__launch {
    const cb__code *code; /* borrowed; NULL: the empty kernel, the dispatch floor */
    void *operands[CB_OPERANDS_MAX];
} cb__launch;

typedef struct cb__backend {
    unsigned version; /* CB__BACKEND_VERSION */
    unsigned capabilities;
    const char *name;
    const char *help;
    unsigned isa; /* CB_ISA_* of code for it; 0: the host's processor decides */
    /* `script`: what follows ':' in the device name ("" when nothing does). threads 0: the default.
     * CB_UNAVAILABLE with the reason when there is no such device. */
    cb_status (*open)(const char *script, int threads, cb__placement placement, cb__device **out,
                      cb_error *err);
    void (*close)(cb__device *device);
    /* Optional: how many there are, NAME:0 on (default: one). */
    cb_status (*count)(int *n, cb_error *err);
    /* What cb__device_info.identity will be, without taking hold of anything. */
    cb_status (*identify)(const char *script, char identity[64], cb_error *err);
    void (*info)(cb__device *device, cb__device_info *out);

    /* Memory. alloc gives zeroed memory aligned to 4096, first touched by the device's own threads.
     */
    cb_status (*alloc)(cb__device *device, size_t bytes, cb__page_kind pages, void **out,
                       cb_error *err);
    void (*free)(cb__device *device, void *address);
    cb_status (*map)(cb__device *device, int fd, size_t bytes, void **out, cb__pages *pages,
                     cb_error *err);
    void (*unmap)(cb__device *device, void *address);
    cb_status (*write)(cb__device *device, void *to, const void *from, size_t bytes, cb_error *err);
    cb_status (*read)(cb__device *device, void *to, const void *from, size_t bytes, cb_error *err);
    /* cb__digest of a range (device/digest.h), computed on the device. */
    cb_status (*digest)(cb__device *device, const void *from, size_t bytes, uint64_t *out,
                        cb_error *err);

    /* Timed path. A launch that failed is reported by the next sync: CB_WRONG with the code;
     * CB_NO_MEMORY or CB_UNAVAILABLE where the device, and not what was launched, is at fault. */
    void (*launch)(cb__device *device, const cb__launch *launch);
    cb_status (*sync)(cb__device *device, cb_error *err);
    uint64_t (*now_ns)(cb__device *device);
    /* n launches submitted as one: a graph, or one pool dispatch with only barriers between. Made
     * outside the timed region; `launches` is borrowed until batch_free. */
    cb_status (*batch_new)(cb__device *device, const cb__launch *launches, int n, cb__batch **out,
                           cb_error *err);
    void (*batch_run)(cb__device *device, cb__batch *batch);
    /* Nanoseconds the device (or pool) spent on the batch that ran last; after sync. */
    double (*batch_span_ns)(cb__device *device, const cb__batch *batch);
    void (*batch_free)(cb__device *device, cb__batch *batch);

    /* Optional: makes code ready to be launched, every time an image of its own; unbuild() takes
     * it away again, and takes code that was not built (default: nothing to make). What was built
     * also serves code that differs in its shape and in parameters that are numbers.
     * CB_UNAVAILABLE: it cannot be compiled here. */
    cb_status (*build)(cb__device *device, cb__code *code, cb_error *err);
    void (*unbuild)(cb__device *device, cb__code *code);
    /* Optional: to[i] = cb_random_word(key, i), made on the device (default: they are made on the
     * host and written). */
    cb_status (*fill_words)(cb__device *device, void *to, uint64_t words, uint64_t key,
                            cb_error *err);
    /* Optional: keep the device's threads awake while timing (default: nothing to keep). */
    void (*hold)(cb__device *device, bool awake);
    /* Optional: the pages that an allocation lies on (default: unknown). */
    cb__pages (*pages)(cb__device *device, const void *address);
    /* Optional: a new round begins: its seed, and the device time that earlier rounds took
     * (default: nothing to set). */
    void (*begin)(cb__device *device, uint64_t seed, uint64_t elapsed_ns);
    /* Optional: core clock in Hz, measured now (default: 0, unknown). */
    double (*clock_hz)(cb__device *device);
    /* Optional: what its sensors say now, for the record: clocks, power, temperature, what holds
     * the clocks back; takes milliseconds, so never between slots (default: it says nothing). */
    void (*telemetry)(cb__device *device, char *text, size_t size);
    /* Optional, asked after timing: whether it can tell of a part of its caches that is set aside
     * for lines that stay; digest() tells of one. CB_UNDECIDED: it cannot (default: there is none).
     */
    cb_status (*evicts)(cb__device *device, cb_error *err);
    /* Optional: what cb__device_info.code says, which info() leaves empty, since to know it may
     * take a compiler's loading (default: nothing). */
    void (*compiler)(cb__device *device, char *text, size_t size);
    /* Optional: the next slot is arm `arm`'s, at place `place` of its block (default: nothing to
     * know). For scripts; called between slots. */
    void (*mark)(cb__device *device, int arm, int place);
    /* Optional: a device on the processors that an earlier process named in
     * cb__device_info.processors: nothing of the machine is read again, and info() knows only the
     * threads (default: open). */
    cb_status (*open_on)(const char *processors, cb__device **out, cb_error *err);
} cb__backend;

/* "cpu", "fake:SCRIPT", "cuda:0" ... -> backend and the text after ':'. Unknown names are CB_USAGE
 * with the nearest; known ones without a backend in this version CB_UNAVAILABLE with the reason. */
cb_status cb__backend_find(const char *device, const cb__backend **out, const char **script,
                           cb_error *err);
/* Every field a backend must have; CB_INTERNAL names the missing one. Run on the whole registry by
 * a test. */
cb_status cb__backend_validate(const cb__backend *backend, cb_error *err);
const cb__backend *const *cb__backends(int *n);

extern const cb__backend cb__backend_cpu;
extern const cb__backend cb__backend_fake;
extern const cb__backend cb__backend_cuda;

#endif
