/* Launches that may begin before the one ahead has ended, on a stub driver: which of them are made
 * so, and what is done where a driver cannot. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dl.h"
#include "device/cuda/cuda.h"
#include "kernel/case.h"
#include "stub_cuda.h"

static const cb__backend *const ops = &cb__backend_cuda;
static char cache[] = "/tmp/coldbench-test-XXXXXX";
static cb_error err;
static stub_calls_function *calls;
static stub_count_function *live;
static stub_text_function *overlaps;
static stub_percent_function *shared_percent;

static void find_stub(void)
{
    cb__dl *stub = NULL;
    assert_int_equal(cb__dl_open("libcuda.so.1", &stub, &err), CB_OK);
    *(void **)&calls = cb__dl_symbol(stub, "stub_cuda_calls");
    *(void **)&live = cb__dl_symbol(stub, "stub_cuda_live");
    *(void **)&overlaps = cb__dl_symbol(stub, "stub_cuda_overlaps");
    *(void **)&shared_percent = cb__dl_symbol(stub, "stub_cuda_shared_percent");
}

static int reset(void **state)
{
    (void)state;
    unsetenv("STUB_CUDA_CAPABILITY");
    unsetenv("STUB_CUDA_FAIL");
    setenv("XDG_CACHE_HOME", cache, 1);
    cb_error_clear(&err);
    return 0;
}

static int shared_bytes;

static int geometry(const cb_problem *problem, const int64_t *tunables, int processors,
                    cb_geometry *out)
{
    (void)problem, (void)tunables;
    *out = (cb_geometry){{(uint32_t)processors, 1, 1}, {64, 1, 1}, (uint32_t)shared_bytes};
    return 0;
}

static const cb_operand operands[] = {{.name = "out", .role = CB_OUTPUT, .type = CB_U64}};
static const cb_device_code plain = {
    .source = "nothing", .entry = "nothing", .least = 75, .geometry = geometry};
static const cb_device_code overlapping = {
    .source = "nothing", .entry = "nothing", .least = 75, .geometry = geometry, .overlaps = 1};
static const cb_impl impls[] = {
    {.name = "plain", .isa = CB_ISA_CUDA, .device = &plain},
    {.name = "overlapping", .isa = CB_ISA_CUDA, .device = &overlapping}};
static const cb_kernel kernel = {.name = "told", .operands = operands, .noperands = 1};

static cb__code code_with(const cb_impl *impl)
{
    return (cb__code){.kernel = &kernel, .impl = impl};
}

static cb__device *opened(void)
{
    cb__device *device = NULL;
    if (ops->open("0", 0, CB__COMPACT, &device, &err) != CB_OK)
        fail_msg("%s", err.message);
    return device;
}

/* Launches by letters: p plain code, o overlapping code, e the empty kernel. */
typedef struct letters {
    cb__device *device;
    cb__code plain, overlapping;
    void *out;
    cb__launch launches[16];
    int n;
} letters;

static void letters_open(letters *l)
{
    *l = (letters){
        .device = opened(), .plain = code_with(&impls[0]), .overlapping = code_with(&impls[1])};
    assert_int_equal(ops->alloc(l->device, 1 << 16, CB__PAGES_HUGE, &l->out, &err), CB_OK);
    assert_int_equal(ops->build(l->device, &l->plain, &err), CB_OK);
    assert_int_equal(ops->build(l->device, &l->overlapping, &err), CB_OK);
    ops->hold(l->device, true); /* the backend's own kernels are loaded */
}

static void letters_close(letters *l)
{
    ops->unbuild(l->device, &l->plain);
    ops->unbuild(l->device, &l->overlapping);
    ops->close(l->device);
}

static cb__launch letter(letters *l, char which)
{
    cb__launch launch = {.operands = {l->out}};
    launch.code = which == 'p' ? &l->plain : which == 'o' ? &l->overlapping : NULL;
    return launch;
}

/* How the launches of a batch are made; "!" where there is none. */
static const char *batch_of(letters *l, const char *which)
{
    cb__batch *batch = NULL;
    for (l->n = 0; which[l->n]; l->n++)
        l->launches[l->n] = letter(l, which[l->n]);
    cb_error_clear(&err);
    if (ops->batch_new(l->device, l->launches, l->n, &batch, &err) != CB_OK)
        return "!";
    overlaps();
    ops->batch_run(l->device, batch);
    assert_int_equal(ops->sync(l->device, &err), CB_OK);
    ops->batch_free(l->device, batch);
    return overlaps();
}

static void only_a_launch_after_another_overlaps(void **state)
{
    (void)state;
    static const struct {
        const char *batch, *made;
    } table[] = {{"ooo", ".>>"}, {"o", "."},     {"ppp", "..."},
                 {"poo", ".>>"}, {"opo", "..>"}, {"eoeo", ".>.>"}};
    letters l;
    letters_open(&l);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        for (int again = 0; again < 2; again++)
            assert_string_equal(batch_of(&l, table[i].batch), table[i].made);
    letters_close(&l);
}

static void what_comes_between_launches_keeps_them_apart(void **state)
{
    (void)state;
    letters l;
    letters_open(&l);
    const cb__launch o = letter(&l, 'o'), e = letter(&l, 'e');
    cb__batch *batch = NULL, *second = NULL;
    uint64_t word = 0;
    assert_int_equal(ops->batch_new(l.device, &o, 1, &batch, &err), CB_OK);
    overlaps();
    for (int between = 0; between < 8; between++) {
        assert_int_equal(ops->sync(l.device, &err), CB_OK);
        ops->launch(l.device, &o);
        ops->launch(l.device, &o);
        assert_string_equal(overlaps(), ".>");
        switch (between) {
        case 0:
            assert_int_equal(ops->sync(l.device, &err), CB_OK);
            break;
        case 1:
            assert_int_equal(ops->write(l.device, l.out, &word, sizeof word, &err), CB_OK);
            break;
        case 2:
            assert_int_equal(ops->digest(l.device, l.out, 8, &word, &err), CB_OK);
            break;
        case 3:
            ops->batch_run(l.device, batch);
            break;
        case 4:
            assert_int_equal(ops->fill_words(l.device, l.out, 1, 1, &err), CB_OK);
            break;
        case 5:
            ops->hold(l.device, true);
            break;
        case 6:
            assert_int_equal(ops->batch_new(l.device, &o, 1, &second, &err), CB_OK);
            ops->batch_free(l.device, second);
            break;
        default:
            setenv("STUB_CUDA_FAIL", "cuLaunchKernel:1", 1);
            ops->launch(l.device, &e);
            unsetenv("STUB_CUDA_FAIL");
        }
        overlaps();
        ops->launch(l.device, &o);
        assert_string_equal(overlaps(), ".");
    }
    assert_int_equal(ops->sync(l.device, &err), CB_WRONG); /* the refused one */
    ops->launch(l.device, &e);
    ops->launch(l.device, &o);
    assert_string_equal(overlaps(), ".>");
    ops->batch_free(l.device, batch);
    letters_close(&l);
}

static void old_drivers_and_devices_launch_plainly(void **state)
{
    (void)state;
    letters l;
    setenv("STUB_CUDA_CAPABILITY", "80", 1);
    letters_open(&l);
    assert_string_equal(batch_of(&l, "ooo"), "...");
    letters_close(&l);
    reset(state);
    letters_open(&l);
    l.device->driver.cuLaunchKernelEx = NULL;
    assert_string_equal(batch_of(&l, "ooo"), "...");
    letters_close(&l);
}

/* Launches that overlap have their shared memory beside each other, or all of it as a cache. */
static void code_that_overlaps_says_how_memory_is_split(void **state)
{
    (void)state;
    static const struct {
        int bytes, impl, percent;
    } table[] = {{0, 0, -1}, {0, 1, 0}, {4096, 0, -1}, {4096, 1, 100}};
    cb__device *device = opened();
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        cb__code code = code_with(&impls[table[i].impl]);
        cb__launch launch = {.code = &code};
        shared_bytes = table[i].bytes;
        assert_int_equal(ops->build(device, &code, &err), CB_OK);
        ops->launch(device, &launch);
        assert_int_equal(shared_percent(), table[i].percent);
        ops->unbuild(device, &code);
    }
    shared_bytes = 0;
    ops->close(device);
}

/* Of a shape with a greater need than that which code was built for, once. */
static void shared_memory_is_asked_for_by_shape(void **state)
{
    (void)state;
    cb__device *device = opened();
    cb__code code = code_with(&impls[0]);
    cb__launch launch = {.code = &code};
    shared_bytes = 1000;
    assert_int_equal(ops->build(device, &code, &err), CB_OK);
    ops->launch(device, &launch);
    unsigned long before = calls("cuFuncSetAttribute");
    shared_bytes = 100 << 10;
    ops->launch(device, &launch);
    ops->launch(device, &launch);
    assert_int_equal(calls("cuFuncSetAttribute"), before + 1);
    assert_int_equal(ops->sync(device, &err), CB_OK);
    shared_bytes = 1 << 30;
    ops->launch(device, &launch);
    assert_int_equal(ops->sync(device, &err), CB_WRONG);
    assert_non_null(strstr(err.message, "bytes of shared memory a block"));
    ops->unbuild(device, &code);
    shared_bytes = 0;
    ops->close(device);
}

/* What records are told: by capability, driver and what was refused before. */
static void a_device_says_whether_launches_overlap(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        cb__device *device = opened();
        static cb__device_info info;
        device->plain = i == 1;
        device->capability = i == 2 ? 89 : device->capability;
        device->driver.version = i == 3 ? 12020 : device->driver.version;
        ops->info(device, &info);
        assert_int_equal(info.overlaps, i == 0);
        const cb__case cases[] = {{.impl = &impls[0]}, {.impl = &impls[1]}};
        assert_false(cb__case_overlaps(&cases[0], &info));
        assert_int_equal(cb__case_overlaps(&cases[1], &info), i == 0);
        ops->close(device);
    }
}

/* Once refused, by itself or with its graph, it is not asked for again. */
static void a_driver_that_takes_none_into_a_graph_is_asked_once(void **state)
{
    (void)state;
    static const char *const symbols[] = {"cuLaunchKernelEx", "cuGraphInstantiateWithFlags"};
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        letters l;
        char script[64];
        letters_open(&l);
        snprintf(script, sizeof script, "%s:801@%lu", symbols[i], calls(symbols[i]) + 1);
        setenv("STUB_CUDA_FAIL", script, 1);
        unsigned long before = live();
        assert_string_equal(batch_of(&l, "ooo"), "...");
        assert_int_equal(live(), before);
        unsetenv("STUB_CUDA_FAIL");
        unsigned long asked = calls("cuLaunchKernelEx");
        assert_string_equal(batch_of(&l, "ooo"), "...");
        ops->launch(l.device, &l.launches[0]);
        ops->launch(l.device, &l.launches[0]);
        assert_string_equal(overlaps(), "..");
        assert_int_equal(calls("cuLaunchKernelEx"), asked);
        letters_close(&l);
    }
}

/* What is refused for another reason is told, and changes nothing. */
static void a_batch_that_fails_either_way_says_why(void **state)
{
    (void)state;
    letters l;
    letters_open(&l);
    setenv("STUB_CUDA_FAIL", "cuGraphInstantiateWithFlags:1", 1);
    unsigned long before = live();
    assert_string_equal(batch_of(&l, "ooo"), "!");
    assert_non_null(strstr(err.message, "cuGraphInstantiate: CUDA_ERROR_INVALID_VALUE"));
    assert_int_equal(live(), before);
    unsetenv("STUB_CUDA_FAIL");
    assert_string_equal(batch_of(&l, "ooo"), ".>>");
    letters_close(&l);
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
        CHECK(only_a_launch_after_another_overlaps),
        CHECK(what_comes_between_launches_keeps_them_apart),
        CHECK(code_that_overlaps_says_how_memory_is_split),
        CHECK(old_drivers_and_devices_launch_plainly),
        CHECK(shared_memory_is_asked_for_by_shape),
        CHECK(a_device_says_whether_launches_overlap),
        CHECK(a_driver_that_takes_none_into_a_graph_is_asked_once),
        CHECK(a_batch_that_fails_either_way_says_why),
    };
    return cmocka_run_group_tests(tests, NULL, last);
}
