/* nvrtc.h: NVIDIA's run-time compiler, opened at run time. */
#ifndef CB_DEVICE_CUDA_NVRTC_H
#define CB_DEVICE_CUDA_NVRTC_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "coldbench/status.h"

typedef int cb__nvrtc_result;
typedef struct cb__nvrtc_program_st *cb__nvrtc_program;

/* X(name, (parameters)) */
#define CB__NVRTC_TABLE(X)                                                                         \
    X(nvrtcVersion, (int *major, int *minor))                                                      \
    X(nvrtcGetNumSupportedArchs, (int *count))                                                     \
    X(nvrtcGetSupportedArchs, (int *archs))                                                        \
    X(nvrtcCreateProgram, (cb__nvrtc_program * program, const char *text, const char *name,        \
                           int count, const char *const *headers, const char *const *names))       \
    X(nvrtcDestroyProgram, (cb__nvrtc_program * program))                                          \
    X(nvrtcCompileProgram, (cb__nvrtc_program program, int count, const char *const *options))     \
    X(nvrtcGetProgramLogSize, (cb__nvrtc_program program, size_t * bytes))                         \
    X(nvrtcGetProgramLog, (cb__nvrtc_program program, char *log))                                  \
    X(nvrtcGetCUBINSize, (cb__nvrtc_program program, size_t * bytes))                              \
    X(nvrtcGetCUBIN, (cb__nvrtc_program program, char *image))                                     \
    X(nvrtcGetPTXSize, (cb__nvrtc_program program, size_t * bytes))                                \
    X(nvrtcGetPTX, (cb__nvrtc_program program, char *image))

enum { CB__NVRTC_NO_MEMORY = 1, CB__NVRTC_DOES_NOT_COMPILE = 6 }; /* of cb__nvrtc_result */

enum { CB__NVRTC_ARCHS_MAX = 64 };

typedef struct cb__nvrtc {
    bool is_loaded;
    char path[256];                         /* that it came from */
    int version;                            /* 12090 for 12.9, as the driver counts */
    int archs[CB__NVRTC_ARCHS_MAX], narchs; /* 90 for compute capability 9.0, ascending */
#define CB__NVRTC_MEMBER(name, parameters) cb__nvrtc_result(*name) parameters;
    CB__NVRTC_TABLE(CB__NVRTC_MEMBER)
#undef CB__NVRTC_MEMBER
    const char *(*nvrtcGetErrorString)(cb__nvrtc_result result);
} cb__nvrtc;

/* The newest NVRTC whose code a driver of this CUDA version loads (0: any): the file that the
 * environment variable COLDBENCH_NVRTC names, or libnvrtc.so.13, .12 and .11.2 by the loader's
 * paths, $CUDA_HOME, $CUDA_PATH and /usr/local/cuda*. CB_UNAVAILABLE in one line when there is
 * none: what was looked for, or what is there and newer than the driver. It stays in the process:
 * what it allocates when it is loaded, it does not free when it is closed. */
cb_status cb__nvrtc_load(int driver, cb__nvrtc *nvrtc, cb_error *err);

/* What to ask this NVRTC for. */
typedef struct cb__nvrtc_target {
    char arch[24]; /* "sm_90a", "compute_89" */
    bool cubin;    /* else PTX, which the driver compiles */
} cb__nvrtc_target;

/* The exact architecture, with the instructions that only it has (9.0 and later: sm_90a), where
 * NVRTC knows it; else PTX of the highest below, which needs a driver at least as new as NVRTC. */
cb_status cb__nvrtc_choose(const cb__nvrtc *nvrtc, int driver, int capability,
                           cb__nvrtc_target *out, cb_error *err);

/* Compiles `text` with these options into an empty `image`. CB_USAGE with the log's errors where
 * it does not compile. */
cb_status cb__nvrtc_compile(const cb__nvrtc *nvrtc, const char *name, const char *text,
                            const char *const *options, int noptions, bool cubin, cb__buf *image,
                            cb_error *err);

#endif
