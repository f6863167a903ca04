/* compile.h: CUDA C becomes code for one device: embedded, from the cache folder, or by NVRTC.
 *
 *     cb__cuda_compiler compiler = {.driver = cuda.version, .capability = 90};
 *     cb__buf image = CB__BUF_INIT;
 *     status = cb__cuda_compile(&compiler, &source, &image, err);
 *     status = cb__cuda_module_load(&cuda, source.name, image.text, &module, err);
 *
 * The cache is $XDG_CACHE_HOME/coldbench/cuda or ~/.cache/coldbench/cuda. A file there holds what
 * was compiled (source, macros, options, architecture, compiler version) beside the image, and
 * serves only where all of it is the same; one that is damaged, or that somebody else could have
 * written, is compiled anew. A folder that cannot be written costs time and is no error.
 */
#ifndef CB_DEVICE_CUDA_COMPILE_H
#define CB_DEVICE_CUDA_COMPILE_H

#include "base/buf.h"
#include "coldbench/status.h"
#include "device/cuda/nvrtc.h"

/* One text with its constants; all borrowed. */
typedef struct cb__cuda_source {
    const char *name; /* in messages, NAME.cu(line): "gemv_q4" */
    const char *text;
    const char *const *macros; /* "CB_BLOCK_ROWS=4", ..., NULL; or NULL */
} cb__cuda_source;

/* An image that the program carries, so that a machine with only a driver has it: a cubin, for
 * devices of just that capability, or PTX, for those from it on. It serves a source with the same
 * text and macros, macros in the same order. */
typedef struct cb__cuda_embedded {
    const char *text;
    const char *const *macros;
    int capability;
    const void *image;
    size_t size; /* of PTX: without the NUL */
} cb__cuda_embedded;

typedef struct cb__cuda_compiler {
    int driver;                        /* cb__cuda.version; 0: no driver here, any NVRTC will do */
    int capability;                    /* of the device, 90 for 9.0 */
    const cb__cuda_embedded *embedded; /* looked through first; borrowed */
    int nembedded;
    cb__nvrtc nvrtc; /* loaded when it is first needed; zero before */
} cb__cuda_compiler;

/* Appends the image to an empty `image`: a cubin for the device's exact architecture where NVRTC
 * knows it, else PTX; a NUL follows it. CB_UNAVAILABLE: there is no NVRTC that this driver
 * understands, or none that knows the architecture. CB_USAGE: the source does not compile, with
 * the errors of NVRTC's log. */
cb_status cb__cuda_compile(cb__cuda_compiler *compiler, const cb__cuda_source *source,
                           cb__buf *image, cb_error *err);

#endif
