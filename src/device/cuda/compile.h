/* compile.h: CUDA C becomes code for one device: by NVRTC or from the cache folder, and where there
 * is no NVRTC that serves this driver and device, from what the program carries compiled.
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
#include "device/cuda/embedded.h"
#include "device/cuda/nvrtc.h"

typedef struct cb__cuda_compiler {
    int driver;              /* cb__cuda.version; 0: no driver here, any NVRTC will do */
    int capability;          /* of the device, 90 for 9.0 */
    cb__cuda_table embedded; /* what serves without NVRTC */
    cb__nvrtc nvrtc;         /* loaded when it is first needed; zero before */
    cb_error missing;        /* why it could not be loaded; it is not tried again */
} cb__cuda_compiler;

/* Appends the image to an empty `image`: a cubin for the device's exact architecture where NVRTC
 * knows it, else PTX; a NUL follows it. CB_UNAVAILABLE: there is no NVRTC that this driver
 * understands, or none that knows the architecture, and the source with these macros is not carried
 * compiled. CB_USAGE: the source does not compile, with the errors of NVRTC's log. */
cb_status cb__cuda_compile(cb__cuda_compiler *compiler, const cb__cuda_source *source,
                           cb__buf *image, cb_error *err);

/* Who compiles, for the record: NVRTC, or the driver what came as PTX; figures may differ. */
void cb__cuda_compiler_text(cb__cuda_compiler *compiler, char *text, size_t size);

/* What NVRTC is given: the macros as lines before the text, whose own lines keep their numbers. */
void cb__cuda_source_text(const cb__cuda_source *source, cb__buf *out);

#endif
