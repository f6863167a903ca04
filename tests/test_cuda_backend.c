/* The CUDA backend on a stub driver: what it asks of the driver, in which order, and what it says
 * when the driver refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/dl.h"
#include "device/cuda/driver.h"
#include "device/device.h"
#include "device/digest.h"
#include "stub_cuda.h"
#include "worker/worker.h"

static const cb__backend *const ops = &cb__backend_cuda;
static char cache[] = "/tmp/coldbench-test-XXXXXX";
static cb_error err;
static stub_calls_function *calls;
static stub_count_function *live;

static void find_stub(void)
{
    cb__dl *stub = NULL;
    assert_int_equal(cb__dl_open("libcuda.so.1", &stub, &err), CB_OK);
    *(void **)&calls = cb__dl_symbol(stub, "stub_cuda_calls");
    *(void **)&live = cb__dl_symbol(stub, "stub_cuda_live");
}

static int reset(void **state)
{
    (void)state;
    static const char *const variables[] = {
        "STUB_CUDA_DEVICES", "STUB_CUDA_CAPABILITY", "STUB_CUDA_MEMORY", "STUB_CUDA_FAIL",
        "STUB_CUDA_VERSION", "STUB_CUDA_MODE",       "CUDA_HOME"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        unsetenv(variables[i]);
    setenv("STUB_CUDA_KERNELS", STUB_CUDA_FOLDER "/kernels.so", 1);
    setenv("XDG_CACHE_HOME", cache, 1);
    cb_error_clear(&err);
    return 0;
}

static cb__device *opened(void)
{
    cb__device *device = NULL;
    if (ops->open("0", 0, CB__COMPACT, &device, &err) != CB_OK)
        fail_msg("%s", err.message);
    return device;
}

/* ---- a kernel ---- */

static int shared_bytes, threads = 64, no_geometry;
static const cb_geometry *forced; /* NULL: as the others say */

static int geometry(const cb_problem *problem, const int64_t *tunables, int processors,
                    cb_geometry *out)
{
    (void)problem, (void)tunables;
    *out = (cb_geometry){
        {(uint32_t)processors, 1, 1}, {(uint32_t)threads, 1, 1}, (uint32_t)shared_bytes};
    if (forced)
        *out = *forced;
    return no_geometry;
}

static const char *const modes[] = {"plain", "odd", NULL};
static const int64_t widths[] = {4, 8, 16};
static const cb_dim dims[] = {{"rows", "", 1, 1 << 20}, {"cols", "", 1, 1 << 20}};
static const cb_choice params[] = {{.name = "mode", .words = modes},
                                   {.name = "step", .min = 0, .max = 100},
                                   {.name = "width", .values = widths, .count = 3}};
static const cb_choice tunables[] = {{.name = "block_rows", .min = 1, .max = 8}};
static const cb_operand operands[] = {{.name = "out", .role = CB_OUTPUT, .type = CB_U64},
                                      {.name = "absent", .role = CB_INPUT, .type = CB_U64}};
static const cb_device_code code_of = {
    .source = "stub_arguments", .entry = "stub_arguments", .least = 75, .geometry = geometry};
static const cb_device_code of_later = {
    .source = "stub_arguments", .entry = "stub_arguments", .least = 120, .geometry = geometry};
static const cb_device_code without_entry = {
    .source = "stub_arguments", .entry = "elsewhere", .least = 75, .geometry = geometry};
static const cb_device_code wrong_code = {
    .source = "\n#error broken", .entry = "stub_arguments", .least = 75, .geometry = geometry};
static const cb_impl impls[] = {
    {.name = "cuda", .isa = CB_ISA_CUDA, .device = &code_of, .tunables = tunables, .ntunables = 1},
    {.name = "later", .isa = CB_ISA_CUDA, .device = &of_later},
    {.name = "cpu"},
    {.name = "lost", .isa = CB_ISA_CUDA, .device = &without_entry},
    {.name = "wrong", .isa = CB_ISA_CUDA, .device = &wrong_code}};
static const cb_kernel kernel = {.name = "told",
                                 .dims = dims,
                                 .ndims = 2,
                                 .params = params,
                                 .nparams = 3,
                                 .operands = operands,
                                 .noperands = 2};
static const int64_t shape[] = {7, 9}, values[] = {1, 5, 8}, tuned[] = {4};

static cb__code code_with(int impl)
{
    return (cb__code){
        .kernel = &kernel, .impl = &impls[impl], .problem = {shape, values}, .tunables = tuned};
}

/* ---- opening ---- */

static void a_device_is_opened_by_its_number(void **state)
{
    (void)state;
    static const struct {
        const char *script, *devices;
        int threads;
        cb_status status;
        const char *says;
    } table[] = {
        {"", "2", 0, CB_OK, ""},
        {"0", "2", 4, CB_OK, ""},
        {"1", "2", 0, CB_OK, ""},
        {"2", "2", 0, CB_UNAVAILABLE, "device 'cuda:2': the driver shows 2 devices"},
        {"1", "1", 0, CB_UNAVAILABLE, "the driver shows 1 device"},
        {"0", "0", 0, CB_UNAVAILABLE, "no CUDA-capable device"},
        {"0", "-1", 0, CB_UNAVAILABLE, "the driver shows no device"},
        {"all", "-1", 0, CB_UNAVAILABLE, "the driver shows no device"},
        {"-1", "2", 0, CB_USAGE, "cuda:N"},
        {"one", "2", 0, CB_USAGE, "cuda:N"},
        {"all", "2", 0, CB_USAGE, "one device at a time is measured"},
        {"0", "2", 3, CB_USAGE, "--threads 3: threads are for the cpu; cuda:0 has 4"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        cb__device *device = NULL;
        reset(state);
        setenv("STUB_CUDA_DEVICES", table[i].devices, 1);
        cb_status status = ops->open(table[i].script, table[i].threads, CB__COMPACT, &device, &err);
        if (status != table[i].status || !strstr(err.message, table[i].says))
            fail_msg("cuda:%s of %s: %s, '%s'", table[i].script, table[i].devices,
                     cb_status_name(status), err.message);
        assert_int_equal(device != NULL, status == CB_OK);
        ops->close(device);
    }
}

static void a_device_that_lets_nobody_in_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *mode, *says;
    } table[] = {{"0", NULL},
                 {"1", NULL},
                 {"2", "device 'cuda:1': its compute mode is prohibited; nvidia-smi -i 1 -c"},
                 {"3", "device 'cuda:1': its compute mode is exclusive to one process; "}};
    setenv("STUB_CUDA_DEVICES", "2", 1);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        cb__device *device = NULL;
        setenv("STUB_CUDA_MODE", table[i].mode, 1);
        cb_error_clear(&err);
        cb_status status = ops->open("1", 0, CB__COMPACT, &device, &err);
        assert_int_equal(status, table[i].says ? CB_UNAVAILABLE : CB_OK);
        if (table[i].says && !strstr(err.message, table[i].says))
            fail_msg("%s", err.message);
        ops->close(device);
    }
}

static void devices_are_counted(void **state)
{
    (void)state;
    int n = 0;
    setenv("STUB_CUDA_DEVICES", "3", 1);
    assert_int_equal(ops->count(&n, &err), CB_OK);
    assert_int_equal(n, 3);
    setenv("STUB_CUDA_DEVICES", "0", 1);
    assert_int_equal(ops->count(&n, &err), CB_UNAVAILABLE);
    assert_non_null(strstr(err.message, "no CUDA-capable device"));
    cb_error_clear(&err);
    setenv("STUB_CUDA_DEVICES", "-1", 1);
    assert_int_equal(ops->count(&n, &err), CB_UNAVAILABLE);
    assert_string_equal(err.message, "the driver shows no device (it counts -1)");
}

static void a_device_is_described_without_a_context(void **state)
{
    (void)state;
    unsigned long before = calls("cuDevicePrimaryCtxRetain");
    cb__device *device = opened();
    cb__device_info info;
    char identity[64];
    ops->info(device, &info);
    assert_string_equal(info.name, "Stub GPU");
    assert_string_equal(info.clock, "CUDA events");
    assert_int_equal(info.threads, 4);
    assert_int_equal(info.isa, CB_ISA_CUDA | 90 << CB__ISA_CAPABILITY_SHIFT);
    assert_int_equal(info.llc_bytes, 8 << 20);
    assert_int_equal(info.ncaches, 2);
    assert_int_equal(info.caches[0].instances, 4);
    assert_true(info.batch_bytes > 0 && info.memory_bytes > 0);
    assert_true(fabs(info.peak_bytes_per_s - 4 * 128 * 1.98e9) < 1);
    assert_true(fabs(info.peak_dram_bytes_per_s - 2 * 3.201e9 * 768) < 1);
    assert_int_equal(ops->identify("0", identity, &err), CB_OK);
    assert_string_equal(identity, info.identity);
    /* The driver's number of the device is bytes 00 10 20 ... f0. */
    assert_null(strstr(identity, "102030"));
    setenv("STUB_CUDA_DEVICES", "2", 1);
    assert_int_equal(ops->identify("1", identity, &err), CB_OK);
    assert_string_not_equal(identity, info.identity);
    ops->close(device);
    assert_int_equal(calls("cuDevicePrimaryCtxRetain"), before);
}

/* ---- memory ---- */

static void memory_is_zeroed_aligned_and_given_back(void **state)
{
    (void)state;
    unsigned long before = live();
    cb__device *device = opened();
    unsigned char *at = NULL, bytes[5000];
    assert_int_equal(ops->alloc(device, 5000, CB__PAGES_HUGE, (void **)&at, &err), CB_OK);
    assert_int_equal((uintptr_t)at % 4096, 0);
    memset(bytes, 1, sizeof bytes);
    assert_int_equal(ops->read(device, bytes, at, sizeof bytes, &err), CB_OK);
    for (size_t i = 0; i < sizeof bytes; i++)
        assert_int_equal(bytes[i], 0);
    assert_int_equal(ops->write(device, at + 3, "told", 4, &err), CB_OK);
    assert_int_equal(ops->read(device, bytes, at, 8, &err), CB_OK);
    assert_memory_equal(bytes, "\0\0\0told\0", 8);
    ops->free(device, at);
    ops->free(device, NULL);
    void *left = NULL;
    assert_int_equal(ops->alloc(device, 100, CB__PAGES_UNTOUCHED, &left, &err), CB_OK);
    ops->close(device);
    assert_int_equal(live(), before);
}

static void too_little_memory_says_how_much_was_asked(void **state)
{
    (void)state;
    setenv("STUB_CUDA_MEMORY", "1000000", 1);
    unsigned long before = live();
    cb__device *device = opened();
    void *at = NULL;
    assert_int_equal(ops->alloc(device, 8 << 20, CB__PAGES_HUGE, &at, &err), CB_NO_MEMORY);
    assert_null(at);
    assert_non_null(strstr(err.message, "8.0 MiB on cuda:0: cuMemAlloc"));
    ops->close(device);
    assert_int_equal(live(), before);
}

static void a_file_is_copied_to_the_device(void **state)
{
    (void)state;
    enum { SIZE = 3 << 20 };
    static const char *const scripts[] = {"", "cuMemHostRegister_v2:801"};
    unsigned char *back = malloc(SIZE), *file;
    int fd = memfd_create("ring", 0);
    assert_int_equal(ftruncate(fd, SIZE), 0);
    file = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    for (size_t i = 0; i < SIZE; i++)
        file[i] = (unsigned char)(i * 31 + i / 4096);
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
        setenv("STUB_CUDA_FAIL", scripts[i], 1);
        unsigned long before = live();
        cb__device *device = opened();
        void *ring = NULL;
        cb__pages pages = {1, 1, true};
        uint64_t digest = 0;
        assert_int_equal(ops->map(device, fd, SIZE, &ring, &pages, &err), CB_OK);
        assert_false(pages.known);
        assert_int_equal(ops->read(device, back, ring, SIZE, &err), CB_OK);
        assert_memory_equal(back, file, SIZE);
        assert_int_equal(ops->digest(device, ring, SIZE - 5, &digest, &err), CB_OK);
        assert_true(digest == cb__digest(file, SIZE - 5));
        /* Another launch of it begins at nothing. */
        assert_int_equal(ops->digest(device, ring, 9, &digest, &err), CB_OK);
        assert_true(digest == cb__digest(file, 9));
        ops->unmap(device, ring);
        ring = NULL;
        assert_int_equal(ops->map(device, fd, SIZE + 1, &ring, NULL, &err), CB_IO);
        assert_null(ring);
        cb_error_clear(&err);
        assert_int_equal(ops->map(device, -1, SIZE, &ring, NULL, &err), CB_IO);
        cb_error_clear(&err);
        ops->close(device);
        assert_int_equal(live(), before);
    }
    munmap(file, SIZE);
    close(fd);
    free(back);
}

/* ---- code ---- */

static bool cache_holds(const char *text)
{
    char folder[128], path[512], bytes[4096];
    bool found = false;
    snprintf(folder, sizeof folder, "%s/coldbench/cuda", cache);
    DIR *files = opendir(folder);
    for (struct dirent *e = files ? readdir(files) : NULL; e; e = readdir(files)) {
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        FILE *file = fopen(path, "rb");
        size_t n = file ? fread(bytes, 1, sizeof bytes, file) : 0;
        found = found || memmem(bytes, n, text, strlen(text));
        if (file)
            fclose(file);
    }
    if (files)
        closedir(files);
    return found;
}

static void every_build_is_an_image_of_its_own(void **state)
{
    (void)state;
    unsigned long before = live();
    cb__device *device = opened();
    cb__code a = code_with(0), b = code_with(0);
    unsigned long loaded = calls("cuModuleLoadDataEx");
    assert_int_equal(ops->build(device, &a, &err), CB_OK);
    assert_int_equal(ops->build(device, &b, &err), CB_OK);
    assert_non_null(a.built);
    assert_ptr_not_equal(a.built, b.built);
    assert_int_equal(calls("cuModuleLoadDataEx"), loaded + 2);
    static const char *const constants[] = {"CB_MODE 1", "CB_WIDTH 8", "CB_BLOCK_ROWS 4"};
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
        if (!cache_holds(constants[i]))
            fail_msg("compiled without %s", constants[i]);
    assert_false(cache_holds("CB_STEP"));
    ops->unbuild(device, &a);
    ops->unbuild(device, &a);
    ops->unbuild(device, &b);
    ops->close(device);
    assert_int_equal(live(), before);
}

static void code_that_cannot_run_here_says_why(void **state)
{
    (void)state;
    static const struct {
        int impl, shared, threads, no_geometry;
        cb_status status;
        const char *says;
    } table[] = {
        {0, 100000, 64, 0, CB_OK, ""},
        {1, 0, 64, 0, CB_UNAVAILABLE, "told/later needs compute capability 12.0; cuda:0 has 9.0"},
        {2, 0, 64, 0, CB_USAGE, "told/cpu is no code for a GPU"},
        {3, 0, 64, 0, CB_USAGE, "told/lost: its source has no extern \"C\" __global__ 'elsewhere'"},
        {4, 0, 64, 0, CB_USAGE, "broken"},
        {0, 0, 64, 1, CB_USAGE,
         "told/cuda cannot be launched for shape 7x9: its geometry() refuses it with block_rows=4"},
        {0, 0, 0, 0, CB_USAGE, "no threads"},
        {0, 0, 2048, 0, CB_USAGE, "a block of 2048 x 1 x 1 threads, and none is past"},
        {0, 1 << 20, 64, 0, CB_USAGE, "1048576 bytes of shared memory a block"},
    };
    cb__device *device = opened();
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        cb__code code = code_with(table[i].impl);
        unsigned long before = live();
        shared_bytes = table[i].shared;
        threads = table[i].threads;
        no_geometry = table[i].no_geometry;
        cb_error_clear(&err);
        cb_status status = ops->build(device, &code, &err);
        if (status != table[i].status || !strstr(err.message, table[i].says))
            fail_msg("case %zu: %s, '%s'", i, cb_status_name(status), err.message);
        assert_int_equal(code.built != NULL, status == CB_OK);
        if (i > 0)
            assert_int_equal(live(), before);
        ops->unbuild(device, &code);
    }
    shared_bytes = no_geometry = 0;
    threads = 64;
    ops->close(device);
}

static void a_geometry_past_every_device_is_told(void **state)
{
    (void)state;
    enum { HALF = 1u << 31, ALL = UINT32_MAX };
    static const struct {
        cb_geometry geometry;
        const char *says; /* NULL: it can be launched */
    } table[] = {
        {{{HALF - 1, 65535, 65535}, {1024, 1, 1}, 0}, NULL},
        {{{1, 1, 1}, {16, 1, 64}, 0}, NULL},
        {{{1, 1, 1}, {512, 4, 1}, 0}, "2048 threads a block, and this code can have 1024"},
        {{{HALF, 1, 1}, {64, 1, 1}, 0}, "a grid of 2147483648 x 1 x 1 blocks"},
        {{{1, 65536, 1}, {64, 1, 1}, 0}, "a grid of 1 x 65536 x 1 blocks"},
        {{{1, 1, 65536}, {64, 1, 1}, 0}, "and none is past 2147483647 x 65535 x 65535"},
        {{{1, 1, 1}, {1025, 1, 1}, 0}, "a block of 1025 x 1 x 1 threads"},
        {{{1, 1, 1}, {1, 1025, 1}, 0}, "a block of 1 x 1025 x 1 threads"},
        {{{1, 1, 1}, {1, 1, 65}, 0}, "and none is past 1024 x 1024 x 64"},
        {{{1, 1, 1}, {HALF, HALF, 4}, 0}, "a block of 2147483648 x 2147483648 x 4 threads"},
        {{{ALL, ALL, ALL}, {64, 1, 1}, 0}, "a grid of 4294967295 x 4294967295 x 4294967295"},
        {{{1, 0, 1}, {64, 1, 1}, 0}, "its geometry has no threads"},
    };
    cb__device *device = opened();
    cb__code first = code_with(0);
    assert_int_equal(ops->build(device, &first, &err), CB_OK);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        cb__code code = code_with(0);
        forced = &table[i].geometry;
        cb_error_clear(&err);
        cb_status status = ops->build(device, &code, &err);
        ops->unbuild(device, &code);
        if (status != (table[i].says ? CB_USAGE : CB_OK) ||
            !strstr(err.message, table[i].says ? table[i].says : ""))
            fail_msg("case %zu: %s, '%s'", i, cb_status_name(status), err.message);
        /* What was built for another shape. */
        const cb__launch launch = {.code = &first};
        cb_error_clear(&err);
        if (table[i].says && !strstr(table[i].says, "this code")) {
            ops->launch(device, &launch);
            assert_int_equal(ops->sync(device, &err), CB_WRONG);
            if (!strstr(err.message, table[i].says))
                fail_msg("case %zu, launched: '%s'", i, err.message);
        }
    }
    forced = NULL;
    ops->unbuild(device, &first);
    ops->close(device);
}

static void check_row(const uint64_t *row, const void *out)
{
    const uint64_t expected[] = {(uint64_t)(uintptr_t)out, 0, 7, 9, 5};
    assert_memory_equal(row, expected, sizeof expected);
}

static void a_launch_has_operands_dimensions_and_numbers(void **state)
{
    (void)state;
    cb__device *device = opened();
    cb__code code = code_with(0);
    void *out = NULL;
    uint64_t words[6];
    assert_int_equal(ops->alloc(device, 4096, CB__PAGES_HUGE, &out, &err), CB_OK);
    assert_int_equal(ops->build(device, &code, &err), CB_OK);
    cb__launch launch = {.code = &code, .operands = {out}};
    ops->launch(device, &launch);
    assert_int_equal(ops->sync(device, &err), CB_OK);
    assert_int_equal(ops->read(device, words, out, sizeof words, &err), CB_OK);
    assert_int_equal(words[0], 1);
    check_row(words + 1, out);
    cb__launch nothing = {0};
    ops->launch(device, &nothing);
    assert_int_equal(ops->sync(device, &err), CB_OK);
    ops->unbuild(device, &code);
    ops->launch(device, &launch);
    assert_int_equal(ops->sync(device, &err), CB_WRONG);
    assert_non_null(strstr(err.message, "told was not built"));
    ops->close(device);
}

static void a_batch_is_one_graph_that_reads_the_clock_itself(void **state)
{
    (void)state;
    enum { N = 5 };
    unsigned long before = live();
    cb__device *device = opened();
    cb__code code = code_with(0);
    cb__batch *batch = NULL;
    void *out = NULL;
    uint64_t words[1 + 5 * N * 2];
    assert_int_equal(ops->alloc(device, 4096, CB__PAGES_HUGE, &out, &err), CB_OK);
    assert_int_equal(ops->build(device, &code, &err), CB_OK);
    cb__launch launches[N];
    for (int i = 0; i < N; i++)
        launches[i] = (cb__launch){.code = &code, .operands = {out}};
    assert_int_equal(ops->batch_new(device, launches, N, &batch, &err), CB_OK);
    assert_int_equal(ops->read(device, words, out, 8, &err), CB_OK);
    assert_int_equal(words[0], 0); /* made, and not run */
    for (int run = 1; run <= 2; run++) {
        ops->batch_run(device, batch);
        assert_int_equal(ops->sync(device, &err), CB_OK);
        assert_true(fabs(ops->batch_span_ns(device, batch) - 1000 * N) < 1);
        assert_int_equal(ops->read(device, words, out, sizeof words, &err), CB_OK);
        assert_int_equal(words[0], N * run);
    }
    for (int i = 0; i < 2 * N; i++)
        check_row(words + 1 + 5 * i, out);
    ops->batch_free(device, batch);
    ops->batch_free(device, NULL);
    ops->unbuild(device, &code);
    ops->close(device);
    assert_int_equal(live(), before);
}

static void a_batch_that_cannot_be_made_leaves_nothing(void **state)
{
    (void)state;
    /* The last one leaves a stream that is of no more use. */
    static const char *const symbols[] = {
        "cuEventCreate",  "cuStreamBeginCapture_v2",     "cuEventRecordWithFlags",
        "cuLaunchKernel", "cuGraphInstantiateWithFlags", "cuStreamEndCapture"};
    static const cb__launch nothing[3];
    cb__device *device = opened();
    cb__batch *batch = NULL;
    assert_int_equal(ops->batch_new(device, nothing, 3, &batch, &err), CB_OK);
    ops->batch_free(device, batch);
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        char script[64];
        unsigned long before = live();
        snprintf(script, sizeof script, "%s:1", symbols[i]);
        setenv("STUB_CUDA_FAIL", script, 1);
        cb_error_clear(&err);
        assert_int_equal(ops->batch_new(device, nothing, 3, &batch, &err), CB_INTERNAL);
        assert_null(batch);
        assert_non_null(strstr(err.message, "CUDA_ERROR_INVALID_VALUE"));
        unsetenv("STUB_CUDA_FAIL");
        if (live() != before)
            fail_msg("%s: %lu things are left", symbols[i], live() - before);
    }
    ops->close(device);
}

static void a_refused_launch_is_told_once(void **state)
{
    (void)state;
    static const cb__launch nothing;
    cb__device *device = opened();
    ops->launch(device, &nothing);
    assert_int_equal(ops->sync(device, &err), CB_OK);
    setenv("STUB_CUDA_FAIL", "cuLaunchKernel:1", 1);
    ops->launch(device, &nothing);
    unsetenv("STUB_CUDA_FAIL");
    ops->launch(device, &nothing);
    assert_int_equal(ops->sync(device, &err), CB_WRONG);
    assert_string_equal(err.message, "a launch failed: cuLaunchKernel: CUDA_ERROR_INVALID_VALUE: "
                                     "invalid argument");
    cb_error_clear(&err);
    assert_int_equal(ops->sync(device, &err), CB_OK);
    ops->close(device);
}

/* Only what the device lacks is no fault of the code that was launched. */
static void a_launch_that_failed_is_told_for_what_it_is(void **state)
{
    (void)state;
    static const struct {
        int result;
        cb_status want;
    } all[] = {{2, CB_NO_MEMORY}, {46, CB_UNAVAILABLE}, {807, CB_UNAVAILABLE},
               {1, CB_WRONG},     {98, CB_WRONG},       {400, CB_WRONG}};
    static const cb__launch nothing;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (int batched = 0; batched < 2; batched++) {
            char fails[64];
            cb__device *device = opened();
            cb__batch *batch = NULL;
            const char *call = batched ? "cuGraphLaunch" : "cuLaunchKernel";
            assert_int_equal(ops->batch_new(device, &nothing, 1, &batch, &err), CB_OK);
            snprintf(fails, sizeof fails, "%s:%d", call, all[i].result);
            setenv("STUB_CUDA_FAIL", fails, 1);
            if (batched)
                ops->batch_run(device, batch);
            else
                ops->launch(device, &nothing);
            unsetenv("STUB_CUDA_FAIL");
            assert_int_equal(ops->sync(device, &err), all[i].want);
            assert_non_null(strstr(err.message, call));
            cb_error_clear(&err);
            assert_int_equal(ops->sync(device, &err), CB_OK);
            ops->batch_free(device, batch);
            ops->close(device);
        }
}

/* No fault of the launches: the next call that tells of anything tells it, and once. */
static void a_clock_that_cannot_be_read_is_told_as_such(void **state)
{
    (void)state;
    static const cb__launch nothing[2];
    static const char says[] = "the time of a batch cannot be read: cuEventElapsedTime: "
                               "CUDA_ERROR_INVALID_VALUE: invalid argument";
    cb__device *device = opened();
    cb__batch *batch = NULL;
    void *at = NULL;
    uint64_t digest = 0;
    assert_int_equal(ops->alloc(device, 64, CB__PAGES_HUGE, &at, &err), CB_OK);
    assert_int_equal(ops->batch_new(device, nothing, 2, &batch, &err), CB_OK);
    for (int call = 0; call < 2; call++) {
        setenv("STUB_CUDA_FAIL", "cuEventElapsedTime:1", 1);
        ops->batch_run(device, batch);
        assert_int_equal(ops->sync(device, &err), CB_OK);
        assert_true(isnan(ops->batch_span_ns(device, batch)));
        unsetenv("STUB_CUDA_FAIL");
        cb_status status =
            call ? ops->sync(device, &err) : ops->digest(device, at, 64, &digest, &err);
        assert_int_equal(status, CB_INTERNAL);
        assert_string_equal(err.message, says);
        cb_error_clear(&err);
        assert_int_equal(ops->sync(device, &err), CB_OK);
    }
    ops->batch_free(device, batch);
    ops->close(device);
}

/* ---- a worker ---- */

/* What a worker answers to these requests, a line each. */
static void served(const cb__work *works, int n, char *answers, size_t size)
{
    cb__buf requests = CB__BUF_INIT;
    int out = memfd_create("answers", 0);
    for (int i = 0; i < n; i++)
        cb__work_write(&works[i], &requests);
    FILE *in = fmemopen(requests.text, requests.size, "r");
    assert_int_equal(cb__worker_serve(in, out, NULL), 0);
    fclose(in);
    cb__buf_fini(&requests);
    ssize_t got = pread(out, answers, size - 1, 0);
    answers[got < 0 ? 0 : got] = '\0';
    close(out);
}

static int count(const char *text, const char *word)
{
    int n = 0;
    while ((text = strstr(text, word)) && *text++)
        n++;
    return n;
}

static void a_worker_keeps_the_device_between_requests(void **state)
{
    (void)state;
    char answers[8192];
    const cb__work open = {.op = "open", .device = "cuda", .ring_fd = -1},
                   same = {.op = "describe", .device = "cuda", .ring_fd = -1},
                   other = {.op = "open", .device = "cuda:1", .ring_fd = -1};
    const cb__work twice[] = {open, same, open}, both[] = {open, other, open};
    unsigned long before = live(), taken = calls("cuDevicePrimaryCtxRetain"),
                  given = calls("cuDevicePrimaryCtxRelease_v2");
    served(twice, 3, answers, sizeof answers);
    assert_int_equal(count(answers, "\"type\":\"open\""), 2);
    assert_int_equal(count(answers, "\"type\":\"describe\""), 1);
    assert_int_equal(calls("cuDevicePrimaryCtxRetain"), taken + 1);
    assert_int_equal(calls("cuDevicePrimaryCtxRelease_v2"), given + 1);
    setenv("STUB_CUDA_DEVICES", "2", 1);
    served(both, 3, answers, sizeof answers);
    assert_int_equal(count(answers, "\"type\":\"open\""), 3);
    assert_int_equal(calls("cuDevicePrimaryCtxRetain"), taken + 4);
    assert_int_equal(calls("cuDevicePrimaryCtxRelease_v2"), given + 4);
    assert_int_equal(live(), before);
}

/* ---- what a device says of itself ---- */

static void sensors_are_read_as_one_text(void **state)
{
    (void)state;
    char text[160];
    cb__device *device = opened();
    ops->telemetry(device, text, sizeof text);
    if (!strstr(text, "sm ") || !strstr(text, " MHz, memory ") || !strstr(text, " W, ") ||
        !strstr(text, "held back by: "))
        fail_msg("'%s'", text);
    ops->close(device);
    /* Without the library that reads them it says nothing. */
    setenv("STUB_NVML_FAIL", "nvmlInit_v2", 1);
    device = opened();
    ops->telemetry(device, text, sizeof text);
    unsetenv("STUB_NVML_FAIL");
    assert_string_equal(text, "");
    ops->close(device);
}

static void cache_that_was_set_aside_since_is_told(void **state)
{
    (void)state;
    cb__cuda driver;
    cb__device *device = opened();
    void *at = NULL;
    uint64_t digest = 0;
    assert_int_equal(cb__cuda_load(&driver, &err), CB_OK);
    assert_int_equal(ops->alloc(device, 64, CB__PAGES_HUGE, &at, &err), CB_OK);
    assert_int_equal(ops->digest(device, at, 64, &digest, &err), CB_OK);
    assert_int_equal(driver.cuCtxSetLimit(CB__CU_LIMIT_PERSISTING_L2_BYTES, 1 << 20), 0);
    assert_int_equal(ops->digest(device, at, 64, &digest, &err), CB_WRONG);
    assert_non_null(strstr(err.message, "1048576 bytes of L2 are set aside for lines that stay"));
    ops->close(device);

    /* And where less of it is left than there was. */
    err = (cb_error)CB_ERROR_INIT;
    device = opened();
    assert_int_equal(ops->alloc(device, 64, CB__PAGES_HUGE, &at, &err), CB_OK);
    assert_int_equal(ops->digest(device, at, 64, &digest, &err), CB_OK);
    assert_int_equal(driver.cuCtxSetLimit(CB__CU_LIMIT_PERSISTING_L2_BYTES, 1 << 19), 0);
    assert_int_equal(ops->digest(device, at, 64, &digest, &err), CB_WRONG);
    assert_non_null(strstr(err.message, "524288 bytes of L2 are set aside"));
    assert_int_equal(driver.cuCtxSetLimit(CB__CU_LIMIT_PERSISTING_L2_BYTES, 0), 0);
    ops->close(device);
}

static void cache_that_cannot_be_asked_for_is_told(void **state)
{
    (void)state;
    static const struct {
        const char *fails;
        size_t bytes;
        cb_status want;
        const char *says;
    } all[] = {
        {"", 0, CB_OK, ""},
        {"", 4 << 20, CB_OK, ""}, /* the proof of coldness is made in that state */
        {"cuCtxGetLimit:1", 0, CB_UNDECIDED, "cannot be asked: cuCtxGetLimit: CUDA_ERROR_INVALID"},
        /* There are no such lines. */
        {"cuCtxGetLimit:215", 0, CB_OK, ""},
        {"cuCtxGetLimit:500", 0, CB_OK, ""},
        {"cuCtxGetLimit:801", 0, CB_OK, ""},
    };
    cb__cuda driver;
    assert_int_equal(cb__cuda_load(&driver, &err), CB_OK);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        cb__device *device = opened();
        void *at = NULL;
        uint64_t digest = 0;
        /* The stub's limit is the process's: it is there before this device is first used. */
        cb__device *first = opened();
        assert_int_equal(ops->alloc(first, 64, CB__PAGES_HUGE, &at, &err), CB_OK);
        assert_int_equal(driver.cuCtxSetLimit(CB__CU_LIMIT_PERSISTING_L2_BYTES, all[i].bytes), 0);
        setenv("STUB_CUDA_FAIL", all[i].fails, 1);
        assert_int_equal(ops->alloc(device, 64, CB__PAGES_HUGE, &at, &err), CB_OK);
        /* Of lines that were there before it no digest is wrong. */
        assert_int_equal(ops->digest(device, at, 64, &digest, &err), CB_OK);
        assert_int_equal(ops->evicts(device, &err), all[i].want);
        assert_non_null(strstr(err.message, all[i].says));
        char text[256];
        ops->telemetry(device, text, sizeof text);
        assert_int_equal(strstr(text, "; 4194304 bytes of L2 allowed") != NULL, all[i].bytes > 0);
        unsetenv("STUB_CUDA_FAIL");
        err = (cb_error)CB_ERROR_INIT;
        assert_int_equal(driver.cuCtxSetLimit(CB__CU_LIMIT_PERSISTING_L2_BYTES, 0), 0);
        ops->close(first);
        ops->close(device);
    }
}

/* ---- a kernel that fails ---- */

static cb_status nth_call(cb__device *device, int n, void *at)
{
    static const cb__launch nothing;
    cb__code code = code_with(0);
    cb__batch *batch = NULL;
    uint64_t digest = 0;
    char byte = 0;
    switch (n) {
    case 0:
        return ops->sync(device, &err);
    case 1:
        return ops->read(device, &byte, at, 1, &err);
    case 2:
        return ops->write(device, at, &byte, 1, &err);
    case 3:
        return ops->digest(device, at, 1, &digest, &err);
    case 4:
        return ops->build(device, &code, &err);
    default:
        return ops->batch_new(device, &nothing, 1, &batch, &err);
    }
}

/* What every call says after a kernel has failed; the number of the first that does not. */
static int after_a_failed_kernel(void)
{
    static const cb__launch nothing;
    cb__device *device = opened();
    void *at = NULL;
    ops->alloc(device, 100, CB__PAGES_HUGE, &at, &err);
    ops->launch(device, &nothing);
    setenv("STUB_CUDA_FAIL", "cuStreamQuery:700", 1);
    if (ops->sync(device, &err) != CB_WRONG || !strstr(err.message, "CUDA_ERROR_ILLEGAL_ADDRESS"))
        return 1;
    unsetenv("STUB_CUDA_FAIL");
    for (int call = 0; call < 6; call++) {
        cb_error_clear(&err);
        if (nth_call(device, call, at) != CB_WRONG ||
            !strstr(err.message, "cuda:0 is of no more use to this process: cuStreamQuery: "
                                 "CUDA_ERROR_ILLEGAL_ADDRESS"))
            return 2 + call;
    }
    ops->close(device);
    return 0;
}

/* In a process of its own: what a kernel did to the context stays, and nothing in it can be given
 * back. */
static void a_failed_kernel_is_told_by_every_call_after_it(void **state)
{
    (void)state;
    int fate = 0;
    pid_t pid = fork();
    if (pid == 0)
        _exit(after_a_failed_kernel());
    assert_int_equal(waitpid(pid, &fate, 0), pid);
    assert_int_equal(fate, 0);
}

static int last(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", cache);
    return system(command);
}

#define CHECK(test) cmocka_unit_test_setup(test, reset)

int main(int argc, char **argv)
{
    (void)argc;
    stub_cuda_use(argv);
    if (!mkdtemp(cache))
        return 1;
    find_stub();
    const struct CMUnitTest tests[] = {
        CHECK(a_device_is_opened_by_its_number),
        CHECK(a_device_that_lets_nobody_in_is_named),
        CHECK(devices_are_counted),
        CHECK(a_device_is_described_without_a_context),
        CHECK(memory_is_zeroed_aligned_and_given_back),
        CHECK(too_little_memory_says_how_much_was_asked),
        CHECK(a_file_is_copied_to_the_device),
        CHECK(every_build_is_an_image_of_its_own),
        CHECK(code_that_cannot_run_here_says_why),
        CHECK(a_geometry_past_every_device_is_told),
        CHECK(a_launch_has_operands_dimensions_and_numbers),
        CHECK(a_batch_is_one_graph_that_reads_the_clock_itself),
        CHECK(a_batch_that_cannot_be_made_leaves_nothing),
        CHECK(a_refused_launch_is_told_once),
        CHECK(a_launch_that_failed_is_told_for_what_it_is),
        CHECK(a_clock_that_cannot_be_read_is_told_as_such),
        CHECK(a_worker_keeps_the_device_between_requests),
        CHECK(sensors_are_read_as_one_text),
        CHECK(cache_that_was_set_aside_since_is_told),
        CHECK(cache_that_cannot_be_asked_for_is_told),
        CHECK(a_failed_kernel_is_told_by_every_call_after_it),
    };
    return cmocka_run_group_tests(tests, NULL, last);
}
