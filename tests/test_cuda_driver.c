/* The driver's table over the stub driver: what is said where there is no driver, an old one, or no
 * device, and of each kind of failure; NVML and NVRTC beside it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda/driver.h"
#include "device/cuda/nvml.h"
#include "device/cuda/nvrtc.h"
#include "stub_cuda.h"

static cb__cuda cuda;
static cb_error err;

static int reset(void **state)
{
    (void)state;
    static const char *const variables[] = {
        "STUB_CUDA_DEVICES", "STUB_CUDA_VERSION", "STUB_CUDA_FAIL",     "STUB_CUDA_MEMORY",
        "STUB_CUDA_KERNELS", "STUB_NVML_FAIL",    "STUB_NVML_THROTTLE", "CUDA_HOME"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        unsetenv(variables[i]);
    cb_error_clear(&err);
    return 0;
}

/* ---- loading ---- */

static void no_driver_is_said_in_one_line(void **state)
{
    (void)state;
    assert_int_equal(cb__cuda_load_from("libcuda-absent.so.1", &cuda, &err), CB_UNAVAILABLE);
    assert_non_null(strstr(err.message, "no NVIDIA driver: cannot load library "
                                        "'libcuda-absent.so.1': "));
    assert_non_null(strstr(err.message, "No such file"));
    assert_null(strchr(err.message, '\n'));
}

static void a_driver_without_a_function_is_too_old(void **state)
{
    (void)state;
    assert_int_equal(cb__cuda_load_from(STUB_CUDA_FOLDER "/old/libcuda.so.1", &cuda, &err),
                     CB_UNAVAILABLE);
    assert_string_equal(
        err.message, STUB_CUDA_FOLDER
        "/old/libcuda.so.1 has no cuEventRecordWithFlags: the NVIDIA driver is too old "
        "(one for CUDA 12.0 or later is needed, or 11.4 with its NVRTC)");
    assert_null(cuda.cuInit);
}

static void a_driver_may_lack_what_is_newer(void **state)
{
    (void)state;
    assert_int_equal(cb__cuda_load_from(STUB_CUDA_FOLDER "/plain/libcuda.so.1", &cuda, &err),
                     CB_OK);
    assert_null(cuda.cuLaunchKernelEx);
    assert_non_null(cuda.cuLaunchKernel);
    assert_int_equal(cb__cuda_load(&cuda, &err), CB_OK);
    assert_non_null(cuda.cuLaunchKernelEx);
}

static void what_is_no_driver_is_refused(void **state)
{
    (void)state;
    assert_int_equal(cb__cuda_load_from("libm.so.6", &cuda, &err), CB_UNAVAILABLE);
    assert_non_null(strstr(err.message, "libm.so.6 has no cuInit"));
}

static void no_device_is_said_in_the_drivers_words(void **state)
{
    (void)state;
    setenv("STUB_CUDA_DEVICES", "0", 1);
    assert_int_equal(cb__cuda_load(&cuda, &err), CB_UNAVAILABLE);
    assert_string_equal(err.message,
                        "cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected");
}

static void the_stub_of_a_toolkit_is_no_driver(void **state)
{
    (void)state;
    setenv("STUB_CUDA_FAIL", "cuInit:34", 1);
    assert_int_equal(cb__cuda_load(&cuda, &err), CB_UNAVAILABLE);
    assert_string_equal(err.message,
                        "cuInit: CUDA_ERROR_STUB_LIBRARY: CUDA driver is a stub library");
}

static void loads(void)
{
    if (cb__cuda_load(&cuda, &err) != CB_OK)
        fail_msg("%s", err.message);
}

static void the_version_is_what_the_driver_serves(void **state)
{
    (void)state;
    setenv("STUB_CUDA_VERSION", "12020", 1);
    loads();
    assert_int_equal(cuda.version, 12020);
    setenv("STUB_CUDA_FAIL", "cuDriverGetVersion:999", 1);
    assert_int_equal(cb__cuda_load(&cuda, &err), CB_INTERNAL);
    assert_string_equal(err.message, "cuDriverGetVersion: CUDA error 999");
}

/* ---- failures ---- */

static void each_failure_has_its_status_and_the_drivers_words(void **state)
{
    (void)state;
    static const struct {
        int result;
        cb_status status;
        const char *words;
    } rows[] = {
        {0, CB_OK, ""},
        {1, CB_INTERNAL, "call: CUDA_ERROR_INVALID_VALUE: invalid argument"},
        {2, CB_NO_MEMORY, "call: CUDA_ERROR_OUT_OF_MEMORY: out of memory"},
        {100, CB_UNAVAILABLE, "call: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected"},
        {209, CB_UNAVAILABLE, "call: CUDA error 209"},
        {700, CB_WRONG,
         "call: CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered"},
        {702, CB_WRONG, "call: CUDA_ERROR_LAUNCH_TIMEOUT: the launch timed out and was terminated"},
        {719, CB_WRONG, "call: CUDA_ERROR_LAUNCH_FAILED: unspecified launch failure"},
        {803, CB_UNAVAILABLE, "call: CUDA error 803"},
        {12345, CB_INTERNAL, "call: CUDA error 12345"},
    };
    loads();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cb_error_clear(&err);
        assert_int_equal(cb__cuda_check(&cuda, rows[i].result, "call", &err), rows[i].status);
        assert_int_equal(err.status, rows[i].status);
        assert_string_equal(err.message, rows[i].words);
    }
}

/* ---- the stub does what a driver does ---- */

static cb__cu_context enter(void)
{
    cb__cu_context context;
    loads();
    assert_int_equal(CB__CUDA_TRY(&cuda, &err, cuDevicePrimaryCtxRetain, &context, 0), CB_OK);
    assert_int_equal(CB__CUDA_TRY(&cuda, &err, cuCtxSetCurrent, context), CB_OK);
    return context;
}

static void leave(void)
{
    assert_int_equal(cuda.cuCtxSetCurrent(NULL), 0);
    assert_int_equal(cuda.cuDevicePrimaryCtxRelease(0), 0);
}

static void a_call_without_a_context_fails(void **state)
{
    (void)state;
    cb__cu_address address;
    loads();
    assert_int_equal(CB__CUDA_TRY(&cuda, &err, cuMemAlloc, &address, 64), CB_INTERNAL);
    assert_string_equal(err.message, "cuMemAlloc: CUDA_ERROR_INVALID_CONTEXT: invalid device "
                                     "context");
}

static void the_nth_call_fails_as_scripted(void **state)
{
    (void)state;
    cb__cu_address address[3];
    stub_calls_function *calls = NULL;
    cb__dl *library;
    enter();
    assert_int_equal(cb__dl_open("libcuda.so.1", &library, &err), CB_OK);
    *(void **)&calls = cb__dl_symbol(library, "stub_cuda_calls");
    char script[64];
    snprintf(script, sizeof script, "cuMemFree_v2:1,cuMemAlloc_v2:2@%lu",
             calls("cuMemAlloc_v2") + 2);
    setenv("STUB_CUDA_FAIL", script, 1);
    for (int i = 0; i < 3; i++)
        assert_int_equal(cuda.cuMemAlloc(&address[i], 64), i == 1 ? 2 : 0);
    assert_int_equal(cuda.cuMemFree(address[0]), 1);
    unsetenv("STUB_CUDA_FAIL");
    assert_int_equal(cuda.cuMemFree(address[0]), 0);
    assert_int_equal(cuda.cuMemFree(address[2]), 0);
    assert_int_equal(cuda.cuMemFree(address[2]), 1); /* a second time */
    cb__dl_close(library);
    leave();
}

static void memory_has_bounds(void **state)
{
    (void)state;
    cb__cu_address address, other;
    char bytes[100] = {0};
    size_t free_bytes, whole;
    setenv("STUB_CUDA_MEMORY", "1000", 1);
    enter();
    assert_int_equal(cuda.cuMemAlloc(&address, 100), 0);
    assert_int_equal(cuda.cuMemAlloc(&other, 901), 2);
    assert_int_equal(cuda.cuMemGetInfo(&free_bytes, &whole), 0);
    assert_int_equal(free_bytes, 900);
    assert_int_equal(whole, 1000);
    assert_int_equal(cuda.cuMemcpyDtoH(bytes, address, 100), 0);
    assert_int_equal((unsigned char)bytes[99], 0xA5); /* not zero, as on a device */
    assert_int_equal(cuda.cuMemcpyHtoD(address, bytes, 101), 1);
    assert_int_equal(cuda.cuMemcpyDtoH(bytes, address + 1, 100), 1);
    assert_int_equal(cuda.cuMemsetD8(address - 1, 0, 1), 1);
    assert_int_equal(cuda.cuMemFree(address), 0);
    leave();
}

static const char ptx[] = ".version 8.0\n.target sm_90\n.visible .entry stub_add(";

static void a_module_that_cannot_be_loaded_has_the_compilers_words(void **state)
{
    (void)state;
    cb__cu_module module = NULL;
    cb__cu_function function;
    enter();
    assert_int_equal(cb__cuda_module_load(&cuda, "add", "nonsense", &module, &err), CB_INTERNAL);
    assert_string_equal(err.message, "cannot load the code of add: cuModuleLoadDataEx: "
                                     "CUDA_ERROR_INVALID_IMAGE: device kernel image is invalid");
    cb_error_clear(&err);
    assert_int_equal(cb__cuda_module_load(&cuda, "add", ".version 8.0", &module, &err),
                     CB_INTERNAL);
    assert_string_equal(err.message,
                        "cannot load the code of add: cuModuleLoadDataEx: CUDA_ERROR_INVALID_PTX: "
                        "a PTX JIT compilation failed: ptxas application ptx input, line 2; fatal  "
                        " : Missing .target directive");
    cb_error_clear(&err);
    setenv("STUB_CUDA_FAIL", "cuModuleLoadDataEx:222", 1);
    assert_int_equal(cb__cuda_module_load(&cuda, "add", ptx, &module, &err), CB_UNAVAILABLE);
    assert_null(module);
    unsetenv("STUB_CUDA_FAIL");
    cb_error_clear(&err);
    assert_int_equal(cb__cuda_module_load(&cuda, "add", ptx, &module, &err), CB_OK);
    assert_int_equal(cuda.cuModuleGetFunction(&function, module, "absent"), 500);
    assert_int_equal(cuda.cuModuleUnload(module), 0);
    leave();
}

/* A graph keeps the arguments of its launches, and the events that it records. */
static void launches_run_at_once_or_in_a_graph(void **state)
{
    (void)state;
    enum { THREADS = 8 };
    cb__cu_module module;
    cb__cu_function function;
    cb__cu_stream stream;
    cb__cu_event from, to;
    cb__cu_graph graph;
    cb__cu_graph_exec exec;
    cb__cu_address sums;
    long long step = 5;
    void *arguments[] = {&sums, &step};
    int got[THREADS];
    float milliseconds;
    setenv("STUB_CUDA_KERNELS", STUB_CUDA_FOLDER "/kernels.so", 1);
    enter();
    assert_int_equal(cb__cuda_module_load(&cuda, "add", ptx, &module, &err), CB_OK);
    assert_int_equal(cuda.cuModuleGetFunction(&function, module, "stub_add"), 0);
    assert_int_equal(cuda.cuStreamCreate(&stream, 0), 0);
    assert_int_equal(cuda.cuEventCreate(&from, 0), 0);
    assert_int_equal(cuda.cuEventCreate(&to, 0), 0);
    assert_int_equal(cuda.cuMemAlloc(&sums, sizeof got), 0);
    assert_int_equal(cuda.cuMemsetD8(sums, 0, sizeof got), 0);
#define LAUNCH(threads, shared)                                                                    \
    cuda.cuLaunchKernel(function, 2, 1, 1, threads, 1, 1, shared, stream, arguments, NULL)
    assert_int_equal(LAUNCH(THREADS / 2, 0), 0);
    assert_int_equal(LAUNCH(1025, 0), 1);
    assert_int_equal(LAUNCH(0, 0), 1);
    assert_int_equal(LAUNCH(4, 49153), 1);
    assert_int_equal(cuda.cuFuncSetAttribute(function, CB__CU_FUNC_MAX_DYNAMIC_SHARED_BYTES, 65536),
                     0);
    assert_int_equal(LAUNCH(4, 49153), 0);
    assert_int_equal(cuda.cuEventElapsedTime(&milliseconds, from, to), 400);

    assert_int_equal(cuda.cuStreamBeginCapture(stream, CB__CU_CAPTURE_THREAD_LOCAL), 0);
    assert_int_equal(cuda.cuEventRecordWithFlags(from, stream, CB__CU_EVENT_RECORD_EXTERNAL), 0);
    for (step = 100; step <= 200; step += 100)
        assert_int_equal(LAUNCH(THREADS / 2, 0), 0);
    assert_int_equal(cuda.cuEventRecordWithFlags(to, stream, CB__CU_EVENT_RECORD_EXTERNAL), 0);
    assert_int_equal(cuda.cuStreamSynchronize(stream), 900);
    assert_int_equal(cuda.cuStreamEndCapture(stream, &graph), 0);
    assert_int_equal(cuda.cuGraphInstantiate(&exec, graph, 0), 0);
    assert_int_equal(cuda.cuGraphDestroy(graph), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(cuda.cuGraphLaunch(exec, stream), 0);
    assert_int_equal(cuda.cuStreamSynchronize(stream), 0);
    assert_int_equal(cuda.cuMemcpyDtoH(got, sums, sizeof got), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(got[i], 2 * 5 + 3 * (100 + 200));
    assert_int_equal(cuda.cuEventElapsedTime(&milliseconds, from, to), 0);
    assert_int_equal((int)(milliseconds * 1e6f + 0.5f), 2000);

    assert_int_equal(cuda.cuGraphExecDestroy(exec), 0);
    assert_int_equal(cuda.cuMemFree(sums), 0);
    assert_int_equal(cuda.cuEventDestroy(from), 0);
    assert_int_equal(cuda.cuEventDestroy(to), 0);
    assert_int_equal(cuda.cuStreamDestroy(stream), 0);
    assert_int_equal(cuda.cuModuleUnload(module), 0);
    leave();
}

/* ---- NVML ---- */

static void nvml_tells_what_it_can_read(void **state)
{
    (void)state;
    cb__nvml nvml;
    cb__nvml_reading reading;
    setenv("STUB_NVML_THROTTLE", "0x44", 1);
    setenv("STUB_NVML_FAIL", "nvmlDeviceGetPowerUsage", 1);
    assert_int_equal(cb__nvml_open("0000:01:00.0", &nvml, &err), CB_OK);
    cb__nvml_read(&nvml, &reading);
    assert_int_equal(reading.sm_mhz, 1980);
    assert_int_equal(reading.sm_max_mhz, 1980);
    assert_int_equal(reading.memory_mhz, 3201);
    assert_int_equal(reading.memory_max_mhz, 3201);
    assert_int_equal(reading.celsius, 41);
    assert_int_equal(reading.power_milliwatts, -1);
    assert_int_equal(reading.throttle, CB__NVML_POWER_CAP | CB__NVML_HW_THERMAL);
    unsetenv("STUB_NVML_FAIL");
    cb__nvml_read(&nvml, &reading);
    assert_int_equal(reading.power_milliwatts, 123456);
    cb__nvml_close(&nvml);
    cb__nvml_close(&nvml);
}

static void without_nvml_all_is_unknown(void **state)
{
    (void)state;
    static const struct {
        const char *file, *id, *fail, *words;
    } rows[] = {
        {"libnvidia-ml-absent.so.1", "0000:01:00.0", "", "'libnvidia-ml-absent.so.1'"},
        {"libm.so.6", "0000:01:00.0", "", "libm.so.6 has no nvmlInit_v2"},
        {"libnvidia-ml.so.1", "0000:01:00.0", "nvmlInit_v2", "nvmlInit: Insufficient Permissions"},
        {"libnvidia-ml.so.1", "0000:77:00.0", "", "nvmlDeviceGetHandleByPciBusId: Not Found"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cb__nvml nvml;
        cb__nvml_reading reading;
        cb_error_clear(&err);
        setenv("STUB_NVML_FAIL", rows[i].fail, 1);
        assert_int_equal(cb__nvml_open_from(rows[i].file, rows[i].id, &nvml, &err), CB_UNAVAILABLE);
        assert_non_null(strstr(err.message, rows[i].words));
        cb__nvml_read(&nvml, &reading);
        const cb__nvml_reading unknown = {-1, -1, -1, -1, -1, -1, -1};
        assert_memory_equal(&reading, &unknown, sizeof unknown);
        cb__nvml_close(&nvml);
    }
}

static void what_throttles_is_named(void **state)
{
    (void)state;
    static const struct {
        int64_t throttle;
        const char *words;
    } rows[] = {
        {-1, "unknown"},
        {0, "none"},
        {CB__NVML_IDLE, "idle"},
        {CB__NVML_POWER_CAP | CB__NVML_HW_THERMAL, "power cap, thermal slowdown by the hardware"},
        {0x80000, "0x80000"},
        {0x80004, "power cap, 0x80000"},
    };
    char text[200];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cb__nvml_throttle_text(rows[i].throttle, text, sizeof text);
        assert_string_equal(text, rows[i].words);
    }
    cb__nvml_throttle_text(0x1ff, text, 12);
    assert_string_equal(text, "idle, clock");
}

/* ---- a driver and its compiler ---- */

static void the_newest_nvrtc_that_the_driver_understands_is_taken(void **state)
{
    (void)state;
    static const struct {
        int driver, version;
    } rows[] = {{0, 13000},     {13000, 13000}, {13020, 13000},
                {14000, 13000}, {12090, 12040}, {12000, 12040}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cb__nvrtc nvrtc;
        if (cb__nvrtc_load(rows[i].driver, &nvrtc, &err) != CB_OK)
            fail_msg("%s", err.message);
        assert_int_equal(nvrtc.version, rows[i].version);
        assert_non_null(strstr(nvrtc.path, STUB_CUDA_FOLDER));
        const int archs[] = {75, 80, 86, 90};
        assert_int_equal(nvrtc.narchs, 4);
        assert_memory_equal(nvrtc.archs, archs, sizeof archs);
    }
}

static void a_driver_older_than_its_compiler_is_told(void **state)
{
    (void)state;
    cb__nvrtc nvrtc;
    setenv("COLDBENCH_NVRTC", STUB_CUDA_FOLDER "/libnvrtc.so.13", 1);
    cb_status status = cb__nvrtc_load(12020, &nvrtc, &err);
    unsetenv("COLDBENCH_NVRTC");
    assert_int_equal(status, CB_UNAVAILABLE);
    assert_string_equal(err.message,
                        "NVRTC 13.0 (" STUB_CUDA_FOLDER
                        "/libnvrtc.so.13) is newer than the NVIDIA driver, which serves CUDA 12.2: "
                        "a newer driver is needed, or NVRTC 12 (COLDBENCH_NVRTC=FILE)");
}

static void a_log_is_cut_down_to_its_errors(void **state)
{
    (void)state;
    cb__nvrtc nvrtc;
    cb__buf image = CB__BUF_INIT;
    const char *options[] = {"--gpu-architecture=sm_90a"};
    assert_int_equal(cb__nvrtc_load(0, &nvrtc, &err), CB_OK);
    assert_int_equal(
        cb__nvrtc_compile(&nvrtc, "gemv", "\n#error no\n", options, 1, true, &image, &err),
        CB_USAGE);
    assert_string_equal(err.message,
                        "cannot compile gemv with NVRTC 13.0: NVRTC_ERROR_COMPILATION: "
                        "gemv.cu(1): error: #error directive: no");
    assert_int_equal(cb__nvrtc_compile(&nvrtc, "gemv", "f()", options, 1, true, &image, NULL),
                     CB_OK);
    assert_string_equal(image.text, ".version 8.0\n.target sm_90a\nf()");
    cb__buf_fini(&image);
}

/* Last: what a kernel did to the context stays. */
static void a_failed_kernel_spoils_what_follows(void **state)
{
    (void)state;
    cb__cu_address address;
    enter();
    setenv("STUB_CUDA_FAIL", "cuStreamSynchronize:700", 1);
    assert_int_equal(cuda.cuStreamSynchronize(NULL), 700);
    unsetenv("STUB_CUDA_FAIL");
    assert_int_equal(CB__CUDA_TRY(&cuda, &err, cuMemAlloc, &address, 64), CB_WRONG);
    assert_string_equal(err.message, "cuMemAlloc: CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory "
                                     "access was encountered");
}

#define CHECK(test) cmocka_unit_test_setup(test, reset)

int main(int argc, char **argv)
{
    (void)argc;
    stub_cuda_use(argv);
    const struct CMUnitTest tests[] = {
        CHECK(no_driver_is_said_in_one_line),
        CHECK(a_driver_without_a_function_is_too_old),
        CHECK(a_driver_may_lack_what_is_newer),
        CHECK(what_is_no_driver_is_refused),
        CHECK(no_device_is_said_in_the_drivers_words),
        CHECK(the_stub_of_a_toolkit_is_no_driver),
        CHECK(the_version_is_what_the_driver_serves),
        CHECK(each_failure_has_its_status_and_the_drivers_words),
        CHECK(a_call_without_a_context_fails),
        CHECK(the_nth_call_fails_as_scripted),
        CHECK(memory_has_bounds),
        CHECK(a_module_that_cannot_be_loaded_has_the_compilers_words),
        CHECK(launches_run_at_once_or_in_a_graph),
        CHECK(nvml_tells_what_it_can_read),
        CHECK(without_nvml_all_is_unknown),
        CHECK(what_throttles_is_named),
        CHECK(the_newest_nvrtc_that_the_driver_understands_is_taken),
        CHECK(a_driver_older_than_its_compiler_is_told),
        CHECK(a_log_is_cut_down_to_its_errors),
        CHECK(a_failed_kernel_spoils_what_follows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
