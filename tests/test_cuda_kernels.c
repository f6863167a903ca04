/* The suite's device code without a device: every source through NVRTC for every architecture that
 * it claims, its geometry, and on the host which vectors the blocks of the twins read.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda/nvrtc.h"
#include "kernel/module.h"
#include "kernel/twin/launch.h"

#define COUNT(table) ((int)(sizeof(table) / sizeof((table)[0])))

/* ---- the variants of an implementation ---- */

enum { OPTIONS_MAX = CB_PARAMS_MAX + CB_TUNABLES_MAX + 2, OPTION_BYTES = 64 };

typedef struct variant {
    const cb_kernel *kernel;
    const cb_impl *impl;
    int64_t shape[CB_DIMS_MAX], params[CB_PARAMS_MAX], tunables[CB_TUNABLES_MAX];
} variant;

typedef void variant_fn(const variant *v, void *arg);

static int choice_count(const cb_choice *c)
{
    int n = 0;
    while (c->words && c->words[n])
        n++;
    return c->words ? n : (c->values ? c->count : 2);
}

static int64_t choice_value(const cb_choice *c, int i)
{
    return c->words ? i : (c->values ? c->values[i] : (i ? c->max : c->min));
}

static int geometry_of(const variant *v, int processors, cb_geometry *out)
{
    return v->impl->device->geometry(&(cb_problem){v->shape, v->params}, v->tunables, processors,
                                     out);
}

static bool is_a_case(const variant *v)
{
    cb_problem problem = {v->shape, v->params};
    char why[300];
    return (!v->kernel->check || v->kernel->check(&problem, why, sizeof why) == 0) &&
           (!v->impl->covers || v->impl->covers(&problem));
}

/* The presets, then each other value of each of the choices, the rest at their presets. */
static void each_value(variant *v, const cb_choice *choices, int n, int64_t *values, variant_fn *fn,
                       void *arg)
{
    for (int i = 0; i < n; i++) {
        for (int c = 0; c < choice_count(&choices[i]); c++) {
            values[i] = choice_value(&choices[i], c);
            if (values[i] != choices[i].preset && is_a_case(v))
                fn(v, arg);
        }
        values[i] = choices[i].preset;
    }
}

static void each_variant(const cb_kernel *kernel, const cb_impl *impl, int64_t size, variant_fn *fn,
                         void *arg)
{
    variant v = {.kernel = kernel, .impl = impl};
    for (int i = 0; i < kernel->ndims; i++) {
        const cb_dim *d = &kernel->dims[i];
        int64_t most = d->max / d->multiple_of;
        v.shape[i] = (size < most ? size : most) * d->multiple_of;
    }
    for (int i = 0; i < kernel->nparams; i++)
        v.params[i] = kernel->params[i].preset;
    for (int i = 0; i < impl->ntunables; i++)
        v.tunables[i] = impl->tunables[i].preset;
    if (is_a_case(&v))
        fn(&v, arg);
    each_value(&v, kernel->params, kernel->nparams, v.params, fn, arg);
    each_value(&v, impl->tunables, impl->ntunables, v.tunables, fn, arg);
}

/* Of all embedded modules; returns how many implementations are device code. */
static int each_of_suite(int64_t size, variant_fn *fn, void *arg)
{
    cb__suite suite;
    cb_error err = CB_ERROR_INIT;
    int n = 0;
    if (cb__suite_open(NULL, 0, false, &suite, &err) != CB_OK)
        fail_msg("%s", err.message);
    for (int m = 0; m < suite.nmodules; m++)
        for (int k = 0; k < suite.modules[m]->table->nkernels; k++) {
            const cb_kernel *kernel = suite.modules[m]->table->kernels[k];
            for (int i = 0; i < kernel->nimpls; i++)
                if (kernel->impls[i].device) {
                    each_variant(kernel, &kernel->impls[i], size, fn, arg);
                    n++;
                }
        }
    cb__suite_close(&suite);
    return n;
}

/* ---- NVRTC ---- */

typedef struct compiling {
    cb__nvrtc nvrtc;
    const char *arch;
    char done[64][OPTIONS_MAX * OPTION_BYTES]; /* constants compiled of the source at hand */
    const char *source, *entry;
    int ndone, compiled;
} compiling;

static void add_option(char *options, const char *source, const cb_choice *c, int64_t value)
{
    char option[OPTION_BYTES] = "CB_";
    for (size_t i = 0; c->name[i] && i < OPTION_BYTES - 30; i++)
        option[3 + i] = (char)toupper((unsigned char)c->name[i]);
    if (!strstr(source, option)) /* makes no other code */
        return;
    size_t end = strlen(options);
    snprintf(options + end, OPTIONS_MAX * OPTION_BYTES - end, "-D%s=%lld ", option,
             (long long)value);
}

/* The first line of the log that is no report of registers, or one of local memory; or NULL. */
static const char *complaint(char *log)
{
    for (char *line; (line = strsep(&log, "\n"));) {
        if (strspn(line, " ") == strlen(line))
            continue;
        if (strncmp(line, "ptxas", 5) != 0 || strstr(line, "warning"))
            return line;
        if (strstr(line, "bytes stack frame") &&
            !strstr(line, " 0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads"))
            return line;
    }
    return NULL;
}

/* Compiles; a warning is a failure too, and so is an array or a register in local memory. */
static void compile(compiling *c, const variant *v, char *options)
{
    const char *source = v->impl->device->source, *list[OPTIONS_MAX];
    char arch[48], whole[OPTIONS_MAX * OPTION_BYTES], *next = options;
    snprintf(arch, sizeof arch, "--gpu-architecture=sm_%s", c->arch);
    snprintf(whole, sizeof whole, "%s", options);
    int n = 0;
    list[n++] = arch;
    list[n++] = "--ptxas-options=-v";
    for (char *option; (option = strsep(&next, " ")) && *option;)
        list[n++] = option;
    cb__nvrtc_program program;
    size_t bytes = 0;
    assert_int_equal(c->nvrtc.nvrtcCreateProgram(&program, source, "cuda.cu", 0, NULL, NULL), 0);
    int failed = c->nvrtc.nvrtcCompileProgram(program, n, list);
    assert_int_equal(c->nvrtc.nvrtcGetProgramLogSize(program, &bytes), 0);
    char *log = calloc(1, bytes + 1);
    assert_int_equal(c->nvrtc.nvrtcGetProgramLog(program, log), 0);
    if (failed)
        fail_msg("%s/%s for sm_%s with %s: %s", v->kernel->name, v->impl->name, c->arch, whole,
                 log);
    const char *wrong = complaint(log);
    if (wrong)
        fail_msg("%s/%s for sm_%s with %s: %s", v->kernel->name, v->impl->name, c->arch, whole,
                 wrong);
    free(log);
    size_t image = 0;
    assert_int_equal(c->nvrtc.nvrtcGetCUBINSize(program, &image), 0);
    char *cubin = malloc(image);
    assert_int_equal(c->nvrtc.nvrtcGetCUBIN(program, cubin), 0);
    if (!memmem(cubin, image, v->impl->device->entry, strlen(v->impl->device->entry) + 1))
        fail_msg("%s/%s has no entry %s", v->kernel->name, v->impl->name, v->impl->device->entry);
    free(cubin);
    c->nvrtc.nvrtcDestroyProgram(&program);
    c->compiled++;
}

static void compile_once(const variant *v, void *arg)
{
    compiling *c = arg;
    const cb_device_code *device = v->impl->device;
    char options[OPTIONS_MAX * OPTION_BYTES] = "";
    cb_geometry geometry;
    if (atoi(c->arch) < device->least || geometry_of(v, 132, &geometry) != 0)
        return;
    if (c->source != device->source || c->entry != device->entry)
        c->ndone = 0;
    c->source = device->source;
    c->entry = device->entry;
    for (int i = 0; i < v->kernel->nparams; i++)
        if (v->kernel->params[i].words || v->kernel->params[i].values)
            add_option(options, device->source, &v->kernel->params[i], v->params[i]);
    for (int i = 0; i < v->impl->ntunables; i++)
        add_option(options, device->source, &v->impl->tunables[i], v->tunables[i]);
    for (int i = 0; i < c->ndone; i++)
        if (strcmp(c->done[i], options) == 0)
            return;
    assert_true(c->ndone < COUNT(c->done));
    memcpy(c->done[c->ndone++], options, sizeof options);
    compile(c, v, options);
}

static bool knows(const cb__nvrtc *nvrtc, int arch)
{
    for (int i = 0; i < nvrtc->narchs; i++)
        if (nvrtc->archs[i] == arch)
            return true;
    return false;
}

static void every_source_compiles_for_every_architecture(void **state)
{
    (void)state;
    static const char *const archs[] = {"75", "80", "86", "89", "90", "90a", "100", "120"};
    static compiling c;
    cb_error err = CB_ERROR_INIT;
    if (cb__nvrtc_load(0, &c.nvrtc, &err) != CB_OK) {
        print_message("%s\n", err.message);
        skip();
    }
    for (int i = 0; i < COUNT(archs); i++) {
        if (!knows(&c.nvrtc, atoi(archs[i])))
            continue;
        c.arch = archs[i];
        c.source = NULL;
        c.compiled = 0;
        assert_true(each_of_suite(1024, compile_once, &c) > 0);
        assert_true(c.compiled > 0);
        print_message("sm_%s: %d sources\n", c.arch, c.compiled);
    }
}

/* ---- geometry ---- */

static const int PROCESSORS[] = {1, 2, 46, 132, 160};

static void check_geometry(const variant *v, void *arg)
{
    int *checked = arg;
    for (int p = 0; p < COUNT(PROCESSORS); p++) {
        cb_geometry g = {{0}, {0}, 0};
        if (geometry_of(v, PROCESSORS[p], &g) != 0)
            continue;
        uint64_t threads = (uint64_t)g.block[0] * g.block[1] * g.block[2];
        bool ok = threads >= 1 && threads <= 1024 && g.block[2] <= 64 && g.grid[0] >= 1 &&
                  g.grid[0] <= INT32_MAX && g.grid[1] >= 1 && g.grid[1] <= 65535 &&
                  g.grid[2] >= 1 && g.grid[2] <= 65535 && g.shared_bytes <= 227 << 10;
        if (!ok)
            fail_msg("%s/%s shape %lld processors %d: grid %u,%u,%u block %u,%u,%u",
                     v->kernel->name, v->impl->name, (long long)v->shape[0], PROCESSORS[p],
                     g.grid[0], g.grid[1], g.grid[2], g.block[0], g.block[1], g.block[2]);
        (*checked)++;
    }
}

/* From one element to the largest shape: the grid is never empty, and nothing is past a limit that
 * all devices share. */
static void a_geometry_can_be_launched(void **state)
{
    (void)state;
    int checked = 0;
    for (int64_t size = 1; size <= INT64_C(1) << 34; size *= 8)
        each_of_suite(size, check_geometry, &checked);
    assert_true(checked > 1000);
}

static void the_twins_use_every_processor_and_stay_for_every_pass(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {64, 262144, 1000000, 9437184, 67108864, UINT64_C(1) << 32};
    for (int s = 0; s < COUNT(sizes); s++)
        for (int b = 0; b < COUNT(CB__LAUNCH_BLOCK_VALUES); b++)
            for (int t = 0; t < COUNT(CB__LAUNCH_THREAD_VALUES); t++)
                for (int l = 0; l < COUNT(CB__LAUNCH_LOAD_VALUES); l++) {
                    int64_t loads = CB__LAUNCH_LOAD_VALUES[l],
                            threads = CB__LAUNCH_THREAD_VALUES[t];
                    const int64_t tunables[] = {CB__LAUNCH_BLOCK_VALUES[b], threads, loads};
                    cb_geometry one, more;
                    int refused = cb__launch_geometry(sizes[s], 1, tunables, 132, &one);
                    assert_int_equal(refused != 0, threads * loads > 8192);
                    if (refused)
                        continue;
                    assert_int_equal(cb__launch_geometry(sizes[s], 2, tunables, 132, &more), 0);
                    assert_true(one.grid[0] >= 132 && one.grid[0] % 132 == 0);
                    assert_true(more.grid[0] >= 132 && more.grid[0] <= one.grid[0]);
                    assert_true(more.grid[0] / 132 * threads <= (loads > 8 ? 512 : 1024));
                }
}

/* ---- which vectors are read: the device's own code, on the host ---- */

#define __device__ static
#define __forceinline__ inline
#define CB_THREADS 64
#define CB_LOADS 4

typedef struct uint4 {
    unsigned x, y, z, w;
} uint4;

static struct {
    unsigned x;
} gridDim, blockIdx, threadIdx;

enum { VECTORS_MAX = 1 << 16 };
static uint4 set[VECTORS_MAX];
static unsigned loaded[VECTORS_MAX];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunknown-pragmas"
/* In place of the two loads, which no host can assemble. */
#define load_vector device_load_vector
#define load_vector_if device_load_vector_if
#include "kernel/twin/vectors.cuh"
#undef load_vector
#undef load_vector_if

static uint4 load_vector_if(const uint4 *from, bool there)
{
    if (there)
        loaded[from - set]++;
    return there ? *from : (uint4){0, 0, 0, 0};
}

static uint4 load_vector(const uint4 *from)
{
    return load_vector_if(from, true);
}

/* One thread after the other: a barrier has nobody to wait for, and each lane keeps its own sum. */
#define __syncthreads() (void)0

static unsigned __shfl_xor_sync(unsigned mask, unsigned word, int distance)
{
    (void)mask;
    (void)word;
    (void)distance;
    return 0;
}

#define CB_SLICES 64
#include "kernel/twin/read.cuh"
#include "kernel/twin/slices.cuh"
#pragma GCC diagnostic pop

/* Slices follow each other without a gap and start at a unit; every vector is read once a pass. */
static void check_read(uint64_t vectors, unsigned blocks, int passes)
{
    unsigned long long next = 0;
    unsigned checksum = 0, expected = 0;
    memset(loaded, 0, sizeof loaded);
    gridDim.x = blocks;
    for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++) {
        slice s = slice_of((long long)vectors * VECTOR_BYTES);
        assert_true(s.first == next && s.end >= s.first);
        assert_true(s.first % UNIT_VECTORS == 0 || s.first == s.end);
        next = s.end;
        for (threadIdx.x = 0; threadIdx.x < CB_THREADS; threadIdx.x++)
            checksum ^= read_passes(set, s, passes);
    }
    assert_int_equal(next, vectors);
    for (uint64_t i = 0; i < VECTORS_MAX; i++) {
        if (loaded[i] != (i < vectors ? (unsigned)passes : 0u))
            fail_msg("%llu vectors, %u blocks: vector %llu was read %u times",
                     (unsigned long long)vectors, blocks, (unsigned long long)i, loaded[i]);
        if (i < vectors && passes % 2)
            expected ^= xor_of(set[i]);
    }
    assert_int_equal(checksum, expected);
}

/* The same of a slice a warp, and that slice s has what the definition says. */
static void check_slices(uint64_t vectors, int passes)
{
    uint64_t units = (vectors + UNIT_VECTORS - 1) / UNIT_VECTORS;
    unsigned sums[CB_SLICES];
    for (unsigned s = 0; s < CB_SLICES; s++) {
        unsigned warps = CB_THREADS / 32;
        uint64_t first = units * s / CB_SLICES * UNIT_VECTORS;
        uint64_t end = units * (s + 1) / CB_SLICES * UNIT_VECTORS;
        memset(loaded, 0, sizeof loaded);
        blockIdx.x = s / warps;
        for (unsigned lane = 0; lane < 32; lane++) {
            threadIdx.x = s % warps * 32 + lane;
            read_slice(set, sums, (long long)vectors * VECTOR_BYTES, passes);
        }
        for (uint64_t i = 0; i < VECTORS_MAX; i++)
            assert_int_equal(loaded[i],
                             i >= first && i < end && i < vectors ? (unsigned)passes : 0u);
    }
}

static void a_read_takes_every_vector_of_ragged_sets(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {4, 8, 28, 32, 36, 256, 260, 4160, 16380, 16384, 16388, 65532};
    static const unsigned grids[] = {1, 2, 3, 13, 132, 300};
    for (int i = 0; i < VECTORS_MAX; i++)
        set[i] = (uint4){(unsigned)i * 2654435761u, (unsigned)i, ~(unsigned)i * 40503u, 77};
    for (int s = 0; s < COUNT(sizes); s++)
        for (int g = 0; g < COUNT(grids); g++)
            for (int passes = 1; passes <= 2; passes++)
                check_read(sizes[s], grids[g], passes);
    for (int s = 0; s < COUNT(sizes); s++)
        for (int passes = 1; passes <= 2; passes++)
            check_slices(sizes[s], passes);
}

/* 1 TiB and 64 bytes less, where 32 bits are just enough for the units. */
static void the_largest_set_is_cut_without_overflow(void **state)
{
    (void)state;
    const long long bytes[] = {1ll << 40, (1ll << 40) - 64};
    for (int b = 0; b < COUNT(bytes); b++) {
        unsigned long long next = 0;
        gridDim.x = 160 * 256;
        for (blockIdx.x = 0; blockIdx.x < gridDim.x; blockIdx.x++) {
            slice s = slice_of(bytes[b]);
            assert_true(s.first == next && s.end > s.first);
            next = s.end;
        }
        assert_int_equal(next, bytes[b] / VECTOR_BYTES);
    }
}

/* ---- stale builds ---- */

/* The source id of a module, as its build computes it from the sources under `tree`. */
static void source_id(const char *tree, char id[80])
{
    char command[2048];
    snprintf(command, sizeof command,
             "cd '%s' && cmake -DCB_ROOT=\"$PWD\" -DCB_CC=cc -DCB_X86=0 -DCB_NOTE_SOURCES=\"$PWD\""
             "/src/kernel/stream_read/kernel.c,\"$PWD\"/src/kernel/stream_read/cuda.cu "
             "-DCB_NOTE=note.S -P cmake/source_note.cmake && grep ascii note.S | tail -1",
             tree);
    FILE *out = popen(command, "r");
    assert_non_null(out);
    assert_non_null(fgets(id, 80, out));
    assert_int_equal(pclose(out), 0);
}

/* What a device source includes belongs to it, as its own text does. */
static void an_edited_device_source_is_another_source(void **state)
{
    (void)state;
    static const char *const edited[] = {"stream_read/cuda.cu", "twin/read.cuh",
                                         "twin/vectors.cuh"};
    char tree[] = "/tmp/coldbench-source-XXXXXX", command[1024], first[80], again[80];
    assert_non_null(mkdtemp(tree));
    snprintf(command, sizeof command,
             "mkdir -p '%s/src/kernel' && cp -R '%s/cmake' '%s/include' '%s' && "
             "cp -R '%s/src/kernel/twin' '%s/src/kernel/stream_read' '%s/src/kernel'",
             tree, CB_SOURCE_DIR, CB_SOURCE_DIR, tree, CB_SOURCE_DIR, CB_SOURCE_DIR, tree);
    assert_int_equal(system(command), 0);
    source_id(tree, first);
    source_id(tree, again);
    assert_string_equal(first, again);
    for (int i = 0; i < COUNT(edited); i++) {
        snprintf(command, sizeof command, "echo '/* edited */' >>'%s/src/kernel/%s'", tree,
                 edited[i]);
        assert_int_equal(system(command), 0);
        source_id(tree, again);
        assert_string_not_equal(first, again);
        memcpy(first, again, sizeof first);
    }
    snprintf(command, sizeof command, "rm -r '%s'", tree);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_source_compiles_for_every_architecture),
        cmocka_unit_test(a_geometry_can_be_launched),
        cmocka_unit_test(the_twins_use_every_processor_and_stay_for_every_pass),
        cmocka_unit_test(a_read_takes_every_vector_of_ragged_sets),
        cmocka_unit_test(the_largest_set_is_cut_without_overflow),
        cmocka_unit_test(an_edited_device_source_is_another_source),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
