/* cuda.h: a device of NVIDIA's driver, as the files of this folder share it.
 *
 * Opening one asks the driver for facts alone. Its context is taken by the first call that needs
 * one: describing a device and filling a ring need none, and a context takes a fifth of a second.
 * All calls of one device come from one thread.
 *
 * After a kernel has failed (an illegal address, say) the driver refuses the context for good:
 * every call that needs it then fails with CB_WRONG and what took it down. */
#ifndef CB_DEVICE_CUDA_CUDA_H
#define CB_DEVICE_CUDA_CUDA_H

#include "device/cuda/compile.h"
#include "device/cuda/driver.h"
#include "device/cuda/nvml.h"
#include "device/device.h"

/* An image that was compiled in this process, by its source and macros. */
typedef struct cb__cuda_image {
    struct cb__cuda_image *next;
    char *key;
    cb__buf image;
} cb__cuda_image;

/* What alloc() and map() gave. */
typedef struct cb__cuda_allocation {
    struct cb__cuda_allocation *next;
    void *address;
    cb__cu_address base; /* that the driver knows it by */
} cb__cuda_allocation;

/* Kernels of the backend's own. */
typedef struct cb__cuda_support {
    cb__cu_module module; /* NULL: not loaded */
    cb__cu_function empty, digest, clock, spin, words;
    cb__cu_address result; /* CB__CUDA_RESULT_WORDS words of 64 bits */
} cb__cuda_support;

enum { CB__CUDA_RESULT_WORDS = 2 };

struct cb__device {
    cb__cuda driver;
    cb__cu_device handle;
    int ordinal, processors, capability;
    cb__cu_context context; /* NULL: not taken yet */
    cb__cu_stream stream;
    cb__cuda_compiler compiler;
    cb__cuda_image *images;
    cb__cuda_allocation *allocations;
    cb__cuda_support support;
    bool after_launch; /* the last that was put into the stream is a launch */
    bool plain;        /* this driver takes no launches that overlap into a graph */
    cb_error failure;  /* of the first launch that failed since the last sync */
    cb_error unread;   /* of a batch whose time could not be read, until it is told */
    cb_error lost;     /* what took the context down */
    cb__nvml nvml;
    bool nvml_tried;
    size_t persisting_bytes; /* of L2 that the context sets aside, as it was taken */
    bool persisting_known;   /* the driver could be asked for them */
};

/* cuda.c */
/* Takes the context where that was not done; CB_WRONG where it is lost. First in every call that
 * needs it, so that after_launch is false from here on. */
cb_status cb__cuda_enter(cb__device *device, cb_error *err);
/* As cb__cuda_check, of a call that may be told of a kernel's failure: that one stays. */
cb_status cb__cuda_did(cb__device *device, cb__cu_result result, const char *call, cb_error *err);
#define CB__CUDA_DID(device, err, call, ...)                                                       \
    cb__cuda_did(device, (device)->driver.call(__VA_ARGS__), #call, err)

/* memory.c */
cb_status cb__cuda_alloc(cb__device *device, size_t bytes, cb__page_kind pages, void **out,
                         cb_error *err);
void cb__cuda_free(cb__device *device, void *address);
cb_status cb__cuda_map(cb__device *device, int fd, size_t bytes, void **out, cb__pages *pages,
                       cb_error *err);
cb_status cb__cuda_write(cb__device *device, void *to, const void *from, size_t bytes,
                         cb_error *err);
cb_status cb__cuda_read(cb__device *device, void *to, const void *from, size_t bytes,
                        cb_error *err);
/* All that was allocated. */
void cb__cuda_free_all(cb__device *device);

/* telemetry.c */
void cb__cuda_telemetry(cb__device *device, char *text, size_t size);
/* CB_UNDECIDED where it cannot be asked whether L2 is set aside for lines that are to stay: a
 * rotation may not be cold. */
cb_status cb__cuda_evicts(cb__device *device, cb_error *err);
/* CB_WRONG where more or less of it is than at the start: what was launched has changed it. */
cb_status cb__cuda_unkept(cb__device *device, cb_error *err);

/* build.c */
enum { CB__CUDA_CONSTANTS_MAX = CB_PARAMS_MAX + CB_TUNABLES_MAX };
/* What a code is compiled with, as texts. */
typedef struct cb__cuda_constants {
    cb__buf texts[CB__CUDA_CONSTANTS_MAX];
    const char *macros[CB__CUDA_CONSTANTS_MAX + 1]; /* of them, then NULL */
} cb__cuda_constants;
/* The source borrows from code and constants; these are the caller's to end, even after a failure.
 */
cb_status cb__cuda_source_of(const cb__code *code, cb__cuda_constants *constants,
                             cb__cuda_source *source, cb_error *err);
void cb__cuda_constants_fini(cb__cuda_constants *constants);
cb_status cb__cuda_build(cb__device *device, cb__code *code, cb_error *err);
void cb__cuda_unbuild(cb__device *device, cb__code *code);
/* Puts one launch into the stream: CB_OK, or what the driver says at once. Code that overlaps may
 * begin before the launch ahead of it has ended, where there is one. */
cb_status cb__cuda_enqueue(cb__device *device, const cb__launch *launch, cb_error *err);
/* Whether launches of code that overlaps begin before the one ahead has ended. */
bool cb__cuda_can_overlap(const cb__device *device);
/* Whether any of them can begin like that on this device. */
bool cb__cuda_overlaps(const cb__device *device, const cb__launch *launches, int n);
/* The image of a text, compiled once a process. Borrowed from the device. */
cb_status cb__cuda_image_of(cb__device *device, const cb__cuda_source *source, const void **image,
                            cb_error *err);
void cb__cuda_images_free(cb__device *device);

/* support.c */
extern const cb__cuda_source cb__cuda_support_source;
cb_status cb__cuda_support_load(cb__device *device, cb_error *err);
void cb__cuda_support_unload(cb__device *device);
/* After timing it is asked for: also whether the device was as it was. */
cb_status cb__cuda_digest(cb__device *device, const void *from, size_t bytes, uint64_t *out,
                          cb_error *err);
cb_status cb__cuda_fill_words(cb__device *device, void *to, uint64_t words, uint64_t key,
                              cb_error *err);
/* Keeps every multiprocessor at work for about that long. */
cb_status cb__cuda_spin(cb__device *device, uint64_t ns, cb_error *err);
double cb__cuda_clock_hz(cb__device *device);

/* graph.c */
void cb__cuda_launch(cb__device *device, const cb__launch *launch);
cb_status cb__cuda_sync(cb__device *device, cb_error *err);
cb_status cb__cuda_batch_new(cb__device *device, const cb__launch *launches, int n, cb__batch **out,
                             cb_error *err);
void cb__cuda_batch_run(cb__device *device, cb__batch *batch);
/* NAN where it cannot be read: sync and digest tell. */
double cb__cuda_batch_span_ns(cb__device *device, const cb__batch *batch);
/* What kept a batch's time from being read, told once: of the clock, not of what ran. */
cb_status cb__cuda_clock_read(cb__device *device, cb_error *err);
void cb__cuda_batch_free(cb__device *device, cb__batch *batch);

#endif
