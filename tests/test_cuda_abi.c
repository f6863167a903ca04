/* The CUDA backend's own prototypes and constants are those of the real headers. The tables are
 * expanded a second time here, with each type of ours replaced by the real one: a function then has
 * exactly the real type, or this file does not compile. Headers that are not installed are
 * reported as skipped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdbool.h>
#include <string.h>

#include "device/cuda/driver.h"
#include "device/cuda/nvml.h"
#include "device/cuda/nvrtc.h"
#include "toolkit.h"

#define SAME_TYPE(a, b) _Static_assert(__builtin_types_compatible_p(__typeof__(a), b), #a)
#define SAME_VALUE(ours, real) _Static_assert((int)(ours) == (int)(real), #ours)
/* Passed in the same way: the size, and whether it is a number or a pointer. */
#define SAME_CLASS(ours, real)                                                                     \
    _Static_assert(sizeof(ours) == sizeof(real) &&                                                 \
                       __builtin_classify_type(*(ours *)0) == __builtin_classify_type(*(real *)0), \
                   #ours)

#if __has_include(<cuda.h>)
#include <cuda.h>
SAME_CLASS(cb__cu_device, CUdevice);
SAME_CLASS(cb__cu_address, CUdeviceptr);
SAME_CLASS(cb__cu_context, CUcontext);
SAME_CLASS(cb__cu_module, CUmodule);
SAME_CLASS(cb__cu_function, CUfunction);
SAME_CLASS(cb__cu_stream, CUstream);
SAME_CLASS(cb__cu_event, CUevent);
SAME_CLASS(cb__cu_graph, CUgraph);
SAME_CLASS(cb__cu_graph_exec, CUgraphExec);
SAME_CLASS(cb__cu_uuid, CUuuid);
/* The enums. */
_Static_assert(sizeof(cb__cu_result) == sizeof(CUresult), "CUresult");
_Static_assert(sizeof(cb__cu_attribute) == sizeof(CUdevice_attribute), "CUdevice_attribute");
_Static_assert(sizeof(cb__cu_limit) == sizeof(CUlimit), "CUlimit");
_Static_assert(sizeof(cb__cu_func_attribute) == sizeof(CUfunction_attribute), "CUfunction_...");
_Static_assert(sizeof(cb__cu_jit_option) == sizeof(CUjit_option), "CUjit_option");
_Static_assert(sizeof(cb__cu_capture_mode) == sizeof(CUstreamCaptureMode), "CUstreamCaptureMode");

/* cuLaunchKernelEx and its structs came with 11.8. */
#if CUDA_VERSION >= 11080
#define SAME_PLACE(ours, member, real, theirs)                                                     \
    _Static_assert(offsetof(ours, member) == offsetof(real, theirs) &&                             \
                       sizeof(((ours *)0)->member) == sizeof(((real *)0)->theirs),                 \
                   #member)
_Static_assert(sizeof(cb__cu_launch_attribute_id) == sizeof(CUlaunchAttributeID), "CUlaunch...ID");
_Static_assert(sizeof(cb__cu_launch_attribute) == sizeof(CUlaunchAttribute), "CUlaunchAttribute");
_Static_assert(sizeof(cb__cu_launch_config) == sizeof(CUlaunchConfig), "CUlaunchConfig");
SAME_PLACE(cb__cu_launch_attribute, id, CUlaunchAttribute, id);
SAME_PLACE(cb__cu_launch_attribute, value, CUlaunchAttribute, value);
SAME_PLACE(cb__cu_launch_attribute, value.allowed, CUlaunchAttribute,
           value.programmaticStreamSerializationAllowed);
SAME_PLACE(cb__cu_launch_config, grid_x, CUlaunchConfig, gridDimX);
SAME_PLACE(cb__cu_launch_config, grid_y, CUlaunchConfig, gridDimY);
SAME_PLACE(cb__cu_launch_config, grid_z, CUlaunchConfig, gridDimZ);
SAME_PLACE(cb__cu_launch_config, block_x, CUlaunchConfig, blockDimX);
SAME_PLACE(cb__cu_launch_config, block_y, CUlaunchConfig, blockDimY);
SAME_PLACE(cb__cu_launch_config, block_z, CUlaunchConfig, blockDimZ);
SAME_PLACE(cb__cu_launch_config, shared_bytes, CUlaunchConfig, sharedMemBytes);
SAME_PLACE(cb__cu_launch_config, stream, CUlaunchConfig, hStream);
SAME_PLACE(cb__cu_launch_config, attributes, CUlaunchConfig, attrs);
SAME_PLACE(cb__cu_launch_config, count, CUlaunchConfig, numAttrs);
SAME_VALUE(CB__CU_PROGRAMMATIC_SERIALIZATION,
           CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
#endif

#define cb__cu_result CUresult
#define cb__cu_device CUdevice
#define cb__cu_attribute CUdevice_attribute
#define cb__cu_limit CUlimit
#define cb__cu_func_attribute CUfunction_attribute
#define cb__cu_jit_option CUjit_option
#define cb__cu_capture_mode CUstreamCaptureMode
#define cb__cu_address CUdeviceptr
#define cb__cu_context CUcontext
#define cb__cu_module CUmodule
#define cb__cu_function CUfunction
#define cb__cu_stream CUstream
#define cb__cu_event CUevent
#define cb__cu_graph CUgraph
#define cb__cu_graph_exec CUgraphExec
#define cb__cu_uuid CUuuid
#define CHECK(name, symbol, parameters) SAME_TYPE(symbol, CUresult parameters);
CB__CUDA_TABLE(CHECK)
#if CUDA_VERSION >= 11080
#define cb__cu_launch_config CUlaunchConfig
CB__CUDA_OPTIONAL_TABLE(CHECK)
#endif
#undef CHECK

/* cuda.h maps the plain name to the symbol that is looked up. Headers differ in these: _v2 of
 * cuEventElapsedTime came with 12.8, that of cuDeviceGetUuid was plain before 13.0, and
 * cuGraphInstantiate was another function before 12.0. */
static const char *const differ[] = {"cuEventElapsedTime", "cuDeviceGetUuid", "cuGraphInstantiate"};
#define TEXT_OF(symbol) #symbol
#define MAPPED(name) TEXT_OF(name)
#define NAMES(name, symbol, parameters) {#name, MAPPED(name), #symbol},
static const struct {
    const char *name, *mapped, *symbol;
} names[] = {CB__CUDA_TABLE(NAMES)};
#undef NAMES

static void the_driver_is_called_by_the_names_that_cuda_h_maps_to(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        bool exempt = false;
        for (size_t k = 0; k < sizeof differ / sizeof *differ; k++)
            exempt = exempt || strcmp(names[i].name, differ[k]) == 0;
        if (!exempt && strcmp(names[i].mapped, names[i].symbol) != 0)
            fail_msg("%s is %s in cuda.h, and %s here", names[i].name, names[i].mapped,
                     names[i].symbol);
    }
}

SAME_VALUE(CB__CU_CTX_SCHED_SPIN, CU_CTX_SCHED_SPIN);
SAME_VALUE(CB__CU_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
SAME_VALUE(CB__CU_EVENT_DEFAULT, CU_EVENT_DEFAULT);
SAME_VALUE(CB__CU_EVENT_DISABLE_TIMING, CU_EVENT_DISABLE_TIMING);
SAME_VALUE(CB__CU_EVENT_RECORD_EXTERNAL, CU_EVENT_RECORD_EXTERNAL);
SAME_VALUE(CB__CU_CAPTURE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
SAME_VALUE(CB__CU_LIMIT_PERSISTING_L2_BYTES, CU_LIMIT_PERSISTING_L2_CACHE_SIZE);
SAME_VALUE(CB__CU_JIT_ERROR_LOG, CU_JIT_ERROR_LOG_BUFFER);
SAME_VALUE(CB__CU_JIT_ERROR_LOG_BYTES, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
SAME_VALUE(CB__CU_MAX_THREADS_PER_BLOCK, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
SAME_VALUE(CB__CU_WARP_SIZE, CU_DEVICE_ATTRIBUTE_WARP_SIZE);
SAME_VALUE(CB__CU_CLOCK_KHZ, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
SAME_VALUE(CB__CU_PROCESSORS, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
SAME_VALUE(CB__CU_KERNEL_TIMEOUT, CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT);
SAME_VALUE(CB__CU_COMPUTE_MODE, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE);
SAME_VALUE(CB__CU_ECC, CU_DEVICE_ATTRIBUTE_ECC_ENABLED);
SAME_VALUE(CB__CU_MEMORY_CLOCK_KHZ, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
SAME_VALUE(CB__CU_MEMORY_BUS_BITS, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
SAME_VALUE(CB__CU_L2_BYTES, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
SAME_VALUE(CB__CU_MAX_THREADS_PER_PROCESSOR, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
SAME_VALUE(CB__CU_CAPABILITY_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME_VALUE(CB__CU_CAPABILITY_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME_VALUE(CB__CU_SHARED_BYTES_PER_PROCESSOR,
           CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
SAME_VALUE(CB__CU_MAX_SHARED_BYTES_PER_BLOCK,
           CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
SAME_VALUE(CB__CU_MAX_PERSISTING_L2_BYTES, CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE);
SAME_VALUE(CB__CU_FUNC_MAX_THREADS_PER_BLOCK, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
SAME_VALUE(CB__CU_FUNC_SHARED_BYTES, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
SAME_VALUE(CB__CU_FUNC_LOCAL_BYTES, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
SAME_VALUE(CB__CU_FUNC_REGISTERS, CU_FUNC_ATTRIBUTE_NUM_REGS);
SAME_VALUE(CB__CU_FUNC_MAX_DYNAMIC_SHARED_BYTES, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
SAME_VALUE(CB__CU_FUNC_SHARED_PERCENT, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
#define RESULT(number, name, status) SAME_VALUE(number, name);
CB__CUDA_MEANINGS(RESULT)
#else
static void the_driver_is_called_by_the_names_that_cuda_h_maps_to(void **state)
{
    (void)state;
    SKIP_WITHOUT_TOOLKIT("cuda.h");
}
#endif

#if __has_include(<nvrtc.h>)
#include <nvrtc.h>
SAME_CLASS(cb__nvrtc_program, nvrtcProgram);
_Static_assert(sizeof(cb__nvrtc_result) == sizeof(nvrtcResult), "nvrtcResult");
SAME_VALUE(CB__NVRTC_NO_MEMORY, NVRTC_ERROR_OUT_OF_MEMORY);
SAME_VALUE(CB__NVRTC_DOES_NOT_COMPILE, NVRTC_ERROR_COMPILATION);
#define cb__nvrtc_result nvrtcResult
#define cb__nvrtc_program nvrtcProgram
#define CHECK(name, parameters) SAME_TYPE(name, nvrtcResult parameters);
CB__NVRTC_TABLE(CHECK)
#undef CHECK
SAME_TYPE(nvrtcGetErrorString, const char *(nvrtcResult));

static void nvrtc_is_as_nvrtc_h_says(void **state)
{
    (void)state; /* it was, when this file was compiled */
}
#else
static void nvrtc_is_as_nvrtc_h_says(void **state)
{
    (void)state;
    SKIP_WITHOUT_TOOLKIT("nvrtc.h");
}
#endif

#if __has_include(<nvml.h>)
#include <nvml.h>
/* Newer headers deprecate what older libraries have alone. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
SAME_CLASS(cb__nvml_device, nvmlDevice_t);
_Static_assert(sizeof(cb__nvml_result) == sizeof(nvmlReturn_t), "nvmlReturn_t");
_Static_assert(sizeof(cb__nvml_clock) == sizeof(nvmlClockType_t), "nvmlClockType_t");
_Static_assert(sizeof(cb__nvml_sensor) == sizeof(nvmlTemperatureSensors_t), "nvmlTemperature...");
SAME_VALUE(CB__NVML_CLOCK_SM, NVML_CLOCK_SM);
SAME_VALUE(CB__NVML_CLOCK_MEMORY, NVML_CLOCK_MEM);
SAME_VALUE(CB__NVML_SENSOR_GPU, NVML_TEMPERATURE_GPU);
SAME_VALUE(CB__NVML_IDLE, nvmlClocksThrottleReasonGpuIdle);
SAME_VALUE(CB__NVML_APPLICATION_CLOCKS, nvmlClocksThrottleReasonApplicationsClocksSetting);
SAME_VALUE(CB__NVML_POWER_CAP, nvmlClocksThrottleReasonSwPowerCap);
SAME_VALUE(CB__NVML_HW_SLOWDOWN, nvmlClocksThrottleReasonHwSlowdown);
SAME_VALUE(CB__NVML_SYNC_BOOST, nvmlClocksThrottleReasonSyncBoost);
SAME_VALUE(CB__NVML_SW_THERMAL, nvmlClocksThrottleReasonSwThermalSlowdown);
SAME_VALUE(CB__NVML_HW_THERMAL, nvmlClocksThrottleReasonHwThermalSlowdown);
SAME_VALUE(CB__NVML_POWER_BRAKE, nvmlClocksThrottleReasonHwPowerBrakeSlowdown);
SAME_VALUE(CB__NVML_DISPLAY_CLOCKS, nvmlClocksThrottleReasonDisplayClockSetting);
#define cb__nvml_result nvmlReturn_t
#define cb__nvml_clock nvmlClockType_t
#define cb__nvml_sensor nvmlTemperatureSensors_t
#define cb__nvml_device nvmlDevice_t
#define CHECK(need, name, symbol, parameters) SAME_TYPE(symbol, nvmlReturn_t parameters);
CB__NVML_TABLE(CHECK)
#undef CHECK
SAME_TYPE(nvmlErrorString, const char *(nvmlReturn_t));

static void nvml_is_as_nvml_h_says(void **state)
{
    (void)state; /* it was, when this file was compiled */
}
#else
static void nvml_is_as_nvml_h_says(void **state)
{
    (void)state;
    skip(); /* nvml.h is a package of its own */
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_driver_is_called_by_the_names_that_cuda_h_maps_to),
        cmocka_unit_test(nvrtc_is_as_nvrtc_h_says),
        cmocka_unit_test(nvml_is_as_nvml_h_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
