/* driver.h: NVIDIA's driver, libcuda.so.1, opened at run time.
 *
 * One table of the functions used, with prototypes and constants of our own: nothing here needs
 * CUDA's headers, and tests/test_cuda_abi.c holds them against the real ones where those are
 * installed. Members have the function's plain name; the symbol looked up is the one that cuda.h
 * maps that name to.
 *
 *     status = CB__CUDA_TRY(cuda, err, cuMemAlloc, &address, bytes);
 */
#ifndef CB_DEVICE_CUDA_DRIVER_H
#define CB_DEVICE_CUDA_DRIVER_H

#include <stddef.h>
#include <stdint.h>

#include "base/dl.h"
#include "coldbench/status.h"

/* A result, an enum of the driver's and a device are an int each. */
typedef int cb__cu_result, cb__cu_device, cb__cu_attribute, cb__cu_limit, cb__cu_func_attribute,
    cb__cu_jit_option, cb__cu_capture_mode, cb__cu_launch_attribute_id;
typedef unsigned long long cb__cu_address; /* in device memory */
typedef struct cb__cu_context_st *cb__cu_context;
typedef struct cb__cu_module_st *cb__cu_module;
typedef struct cb__cu_function_st *cb__cu_function;
typedef struct cb__cu_stream_st *cb__cu_stream;
typedef struct cb__cu_event_st *cb__cu_event;
typedef struct cb__cu_graph_st *cb__cu_graph;
typedef struct cb__cu_graph_exec_st *cb__cu_graph_exec;
typedef struct cb__cu_uuid {
    char bytes[16];
} cb__cu_uuid;

/* How cuLaunchKernelEx is to launch. */
typedef struct cb__cu_launch_attribute {
    cb__cu_launch_attribute_id id;
    char gap[8 - sizeof(cb__cu_launch_attribute_id)];
    union {
        char bytes[64];
        int allowed; /* of CB__CU_PROGRAMMATIC_SERIALIZATION */
    } value;
} cb__cu_launch_attribute;
typedef struct cb__cu_launch_config {
    unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
    cb__cu_stream stream;
    cb__cu_launch_attribute *attributes;
    unsigned count; /* of them */
} cb__cu_launch_config;

enum {
    CB__CU_CTX_SCHED_SPIN = 1,      /* cuDevicePrimaryCtxSetFlags */
    CB__CU_STREAM_NON_BLOCKING = 1, /* cuStreamCreate: apart from the default stream */
    CB__CU_EVENT_DEFAULT = 0,       /* cuEventCreate: one that keeps time */
    CB__CU_EVENT_DISABLE_TIMING = 2,
    CB__CU_EVENT_RECORD_EXTERNAL = 1, /* cuEventRecordWithFlags: in a graph, a node that records */
    CB__CU_CAPTURE_THREAD_LOCAL = 1,  /* cuStreamBeginCapture */
    CB__CU_LIMIT_PERSISTING_L2_BYTES = 6, /* cuCtxGetLimit */
    CB__CU_PROGRAMMATIC_SERIALIZATION = 6 /* cuLaunchKernelEx: may begin before what is ahead of it
                                             in the stream has ended */
};

/* Options of cuModuleLoadDataEx. */
enum { CB__CU_JIT_ERROR_LOG = 5, CB__CU_JIT_ERROR_LOG_BYTES = 6 };

/* What cuDeviceGetAttribute tells. */
enum {
    CB__CU_MAX_THREADS_PER_BLOCK = 1,
    CB__CU_WARP_SIZE = 10,
    CB__CU_CLOCK_KHZ = 13,
    CB__CU_PROCESSORS = 16, /* multiprocessors */
    CB__CU_KERNEL_TIMEOUT = 17,
    CB__CU_COMPUTE_MODE = 20,
    CB__CU_ECC = 32,
    CB__CU_MEMORY_CLOCK_KHZ = 36,
    CB__CU_MEMORY_BUS_BITS = 37,
    CB__CU_L2_BYTES = 38,
    CB__CU_MAX_THREADS_PER_PROCESSOR = 39,
    CB__CU_CAPABILITY_MAJOR = 75,
    CB__CU_CAPABILITY_MINOR = 76,
    CB__CU_SHARED_BYTES_PER_PROCESSOR = 81,
    CB__CU_MAX_SHARED_BYTES_PER_BLOCK = 97, /* what a function may be allowed to take */
    CB__CU_MAX_PERSISTING_L2_BYTES = 108
};

/* What cuFuncGetAttribute tells; the last two can be set. */
enum {
    CB__CU_FUNC_MAX_THREADS_PER_BLOCK = 0,
    CB__CU_FUNC_SHARED_BYTES = 1,
    CB__CU_FUNC_LOCAL_BYTES = 3,
    CB__CU_FUNC_REGISTERS = 4,
    CB__CU_FUNC_MAX_DYNAMIC_SHARED_BYTES = 8,
    CB__CU_FUNC_SHARED_PERCENT = 9 /* of the memory that shared memory and first cache have */
};

/* X(name, symbol, (parameters)). All of them are in drivers from CUDA 11.4 on. */
#define CB__CUDA_TABLE(X)                                                                          \
    X(cuInit, cuInit, (unsigned flags))                                                            \
    X(cuDriverGetVersion, cuDriverGetVersion, (int *version))                                      \
    X(cuGetErrorName, cuGetErrorName, (cb__cu_result result, const char **name))                   \
    X(cuGetErrorString, cuGetErrorString, (cb__cu_result result, const char **words))              \
    X(cuDeviceGetCount, cuDeviceGetCount, (int *count))                                            \
    X(cuDeviceGet, cuDeviceGet, (cb__cu_device * device, int ordinal))                             \
    X(cuDeviceGetName, cuDeviceGetName, (char *name, int size, cb__cu_device device))              \
    X(cuDeviceGetUuid, cuDeviceGetUuid_v2, (cb__cu_uuid * uuid, cb__cu_device device))             \
    X(cuDeviceGetPCIBusId, cuDeviceGetPCIBusId, (char *id, int size, cb__cu_device device))        \
    X(cuDeviceGetAttribute, cuDeviceGetAttribute,                                                  \
      (int *value, cb__cu_attribute attribute, cb__cu_device device))                              \
    X(cuDeviceTotalMem, cuDeviceTotalMem_v2, (size_t * bytes, cb__cu_device device))               \
    X(cuDevicePrimaryCtxSetFlags, cuDevicePrimaryCtxSetFlags_v2,                                   \
      (cb__cu_device device, unsigned flags))                                                      \
    X(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain,                                          \
      (cb__cu_context * context, cb__cu_device device))                                            \
    X(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, (cb__cu_device device))             \
    X(cuCtxSetCurrent, cuCtxSetCurrent, (cb__cu_context context))                                  \
    X(cuCtxGetLimit, cuCtxGetLimit, (size_t * value, cb__cu_limit limit))                          \
    X(cuCtxSetLimit, cuCtxSetLimit, (cb__cu_limit limit, size_t value))                            \
    X(cuMemGetInfo, cuMemGetInfo_v2, (size_t * free_bytes, size_t * total_bytes))                  \
    X(cuMemAlloc, cuMemAlloc_v2, (cb__cu_address * address, size_t bytes))                         \
    X(cuMemFree, cuMemFree_v2, (cb__cu_address address))                                           \
    X(cuMemAllocHost, cuMemAllocHost_v2, (void **address, size_t bytes))                           \
    X(cuMemFreeHost, cuMemFreeHost, (void *address))                                               \
    X(cuMemHostRegister, cuMemHostRegister_v2, (void *address, size_t bytes, unsigned flags))      \
    X(cuMemHostUnregister, cuMemHostUnregister, (void *address))                                   \
    X(cuMemcpyHtoD, cuMemcpyHtoD_v2, (cb__cu_address to, const void *from, size_t bytes))          \
    X(cuMemcpyDtoH, cuMemcpyDtoH_v2, (void *to, cb__cu_address from, size_t bytes))                \
    X(cuMemcpyDtoD, cuMemcpyDtoD_v2, (cb__cu_address to, cb__cu_address from, size_t bytes))       \
    X(cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2,                                                     \
      (cb__cu_address to, const void *from, size_t bytes, cb__cu_stream stream))                   \
    X(cuMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2,                                                     \
      (void *to, cb__cu_address from, size_t bytes, cb__cu_stream stream))                         \
    X(cuMemsetD8, cuMemsetD8_v2, (cb__cu_address to, unsigned char value, size_t bytes))           \
    X(cuMemsetD8Async, cuMemsetD8Async,                                                            \
      (cb__cu_address to, unsigned char value, size_t bytes, cb__cu_stream stream))                \
    X(cuModuleLoadDataEx, cuModuleLoadDataEx,                                                      \
      (cb__cu_module * module, const void *image, unsigned count, cb__cu_jit_option *options,      \
       void **values))                                                                             \
    X(cuModuleUnload, cuModuleUnload, (cb__cu_module module))                                      \
    X(cuModuleGetFunction, cuModuleGetFunction,                                                    \
      (cb__cu_function * function, cb__cu_module module, const char *name))                        \
    X(cuModuleGetGlobal, cuModuleGetGlobal_v2,                                                     \
      (cb__cu_address * address, size_t * bytes, cb__cu_module module, const char *name))          \
    X(cuFuncGetAttribute, cuFuncGetAttribute,                                                      \
      (int *value, cb__cu_func_attribute attribute, cb__cu_function function))                     \
    X(cuFuncSetAttribute, cuFuncSetAttribute,                                                      \
      (cb__cu_function function, cb__cu_func_attribute attribute, int value))                      \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessor, cuOccupancyMaxActiveBlocksPerMultiprocessor,    \
      (int *blocks, cb__cu_function function, int threads, size_t shared_bytes))                   \
    X(cuLaunchKernel, cuLaunchKernel,                                                              \
      (cb__cu_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,                \
       unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,                \
       cb__cu_stream stream, void **arguments, void **extra))                                      \
    X(cuStreamCreate, cuStreamCreate, (cb__cu_stream * stream, unsigned flags))                    \
    X(cuStreamDestroy, cuStreamDestroy_v2, (cb__cu_stream stream))                                 \
    X(cuStreamSynchronize, cuStreamSynchronize, (cb__cu_stream stream))                            \
    X(cuStreamQuery, cuStreamQuery, (cb__cu_stream stream))                                        \
    X(cuStreamWaitEvent, cuStreamWaitEvent,                                                        \
      (cb__cu_stream stream, cb__cu_event event, unsigned flags))                                  \
    X(cuStreamBeginCapture, cuStreamBeginCapture_v2,                                               \
      (cb__cu_stream stream, cb__cu_capture_mode mode))                                            \
    X(cuStreamEndCapture, cuStreamEndCapture, (cb__cu_stream stream, cb__cu_graph * graph))        \
    X(cuEventCreate, cuEventCreate, (cb__cu_event * event, unsigned flags))                        \
    X(cuEventDestroy, cuEventDestroy_v2, (cb__cu_event event))                                     \
    X(cuEventRecord, cuEventRecord, (cb__cu_event event, cb__cu_stream stream))                    \
    X(cuEventRecordWithFlags, cuEventRecordWithFlags,                                              \
      (cb__cu_event event, cb__cu_stream stream, unsigned flags))                                  \
    X(cuEventSynchronize, cuEventSynchronize, (cb__cu_event event))                                \
    X(cuEventElapsedTime, cuEventElapsedTime,                                                      \
      (float *milliseconds, cb__cu_event from, cb__cu_event to))                                   \
    X(cuGraphInstantiate, cuGraphInstantiateWithFlags,                                             \
      (cb__cu_graph_exec * exec, cb__cu_graph graph, unsigned long long flags))                    \
    X(cuGraphLaunch, cuGraphLaunch, (cb__cu_graph_exec exec, cb__cu_stream stream))                \
    X(cuGraphExecDestroy, cuGraphExecDestroy, (cb__cu_graph_exec exec))                            \
    X(cuGraphDestroy, cuGraphDestroy, (cb__cu_graph graph))

/* Of CUDA 11.8 and later; NULL where the driver is older. */
#define CB__CUDA_OPTIONAL_TABLE(X)                                                                 \
    X(cuLaunchKernelEx, cuLaunchKernelEx,                                                          \
      (const cb__cu_launch_config *config, cb__cu_function function, void **arguments,             \
       void **extra))

/* Results that are not CB_INTERNAL: X(number, name in cuda.h, status). */
#define CB__CUDA_MEANINGS(X)                                                                       \
    X(2, CUDA_ERROR_OUT_OF_MEMORY, CB_NO_MEMORY)                                                   \
    X(34, CUDA_ERROR_STUB_LIBRARY, CB_UNAVAILABLE)                                                 \
    X(46, CUDA_ERROR_DEVICE_UNAVAILABLE, CB_UNAVAILABLE)                                           \
    X(100, CUDA_ERROR_NO_DEVICE, CB_UNAVAILABLE)                                                   \
    X(101, CUDA_ERROR_INVALID_DEVICE, CB_UNAVAILABLE)                                              \
    X(102, CUDA_ERROR_DEVICE_NOT_LICENSED, CB_UNAVAILABLE)                                         \
    X(209, CUDA_ERROR_NO_BINARY_FOR_GPU, CB_UNAVAILABLE)                                           \
    X(214, CUDA_ERROR_ECC_UNCORRECTABLE, CB_WRONG)                                                 \
    X(221, CUDA_ERROR_JIT_COMPILER_NOT_FOUND, CB_UNAVAILABLE)                                      \
    X(222, CUDA_ERROR_UNSUPPORTED_PTX_VERSION, CB_UNAVAILABLE)                                     \
    X(223, CUDA_ERROR_JIT_COMPILATION_DISABLED, CB_UNAVAILABLE)                                    \
    X(700, CUDA_ERROR_ILLEGAL_ADDRESS, CB_WRONG)                                                   \
    X(702, CUDA_ERROR_LAUNCH_TIMEOUT, CB_WRONG)                                                    \
    X(710, CUDA_ERROR_ASSERT, CB_WRONG)                                                            \
    X(714, CUDA_ERROR_HARDWARE_STACK_ERROR, CB_WRONG)                                              \
    X(715, CUDA_ERROR_ILLEGAL_INSTRUCTION, CB_WRONG)                                               \
    X(716, CUDA_ERROR_MISALIGNED_ADDRESS, CB_WRONG)                                                \
    X(717, CUDA_ERROR_INVALID_ADDRESS_SPACE, CB_WRONG)                                             \
    X(718, CUDA_ERROR_INVALID_PC, CB_WRONG)                                                        \
    X(719, CUDA_ERROR_LAUNCH_FAILED, CB_WRONG)                                                     \
    X(802, CUDA_ERROR_SYSTEM_NOT_READY, CB_UNAVAILABLE)                                            \
    X(803, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, CB_UNAVAILABLE)                                      \
    X(804, CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, CB_UNAVAILABLE)                              \
    X(805, CUDA_ERROR_MPS_CONNECTION_FAILED, CB_UNAVAILABLE)                                       \
    X(806, CUDA_ERROR_MPS_RPC_FAILURE, CB_UNAVAILABLE)                                             \
    X(807, CUDA_ERROR_MPS_SERVER_NOT_READY, CB_UNAVAILABLE)                                        \
    X(808, CUDA_ERROR_MPS_MAX_CLIENTS_REACHED, CB_UNAVAILABLE)                                     \
    X(809, CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED, CB_UNAVAILABLE)

typedef struct cb__cuda {
    int version; /* of CUDA, that the driver serves: 13000 for 13.0 */
#define CB__CUDA_MEMBER(name, symbol, parameters) cb__cu_result(*name) parameters;
    CB__CUDA_TABLE(CB__CUDA_MEMBER)
    CB__CUDA_OPTIONAL_TABLE(CB__CUDA_MEMBER)
#undef CB__CUDA_MEMBER
} cb__cuda;

/* Opens the driver, looks up the table, and calls cuInit. CB_UNAVAILABLE in one line: what was
 * looked for, and the loader's or the driver's words. The driver stays in the process: it has
 * threads of its own, which must not lose their code. */
cb_status cb__cuda_load(cb__cuda *cuda, cb_error *err);
/* The same from a library of another name. */
cb_status cb__cuda_load_from(const char *library, cb__cuda *cuda, cb_error *err);

/* CB_OK for CUDA_SUCCESS; else a status and "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY: out of memory".
 * CB_NO_MEMORY: no memory. CB_WRONG: a kernel failed (an illegal address or instruction, a launch
 * that failed or took too long). CB_UNAVAILABLE: no such device, a driver that is too old or not
 * ready, or code that it cannot load. CB_INTERNAL: anything else. */
cb_status cb__cuda_check(const cb__cuda *cuda, cb__cu_result result, const char *call,
                         cb_error *err);
#define CB__CUDA_TRY(cuda, err, call, ...)                                                         \
    cb__cuda_check(cuda, (cuda)->call(__VA_ARGS__), #call, err)

/* Loads a cubin, or PTX (with its terminating NUL), into the current context. An error has the
 * words of the driver's own compiler. `name` appears in messages. */
cb_status cb__cuda_module_load(const cb__cuda *cuda, const char *name, const void *image,
                               cb__cu_module *out, cb_error *err);

#endif
