/* twin: the plain read, write and copy that other kernels are held against, and whose bandwidth
 * over working sets is the machine's curve.
 */
#include "launch.h"
#include "read_define.h"
#include "twin.h"

#ifndef CB_X86
#define CB_X86 0
#endif

static const cb_dim DIMS[] = {
    {"bytes", "size of the set, in whole 64-byte lines", CB__LINE, CB__BYTES_MAX},
};

static const cb_choice PARAMS[] = {CB__READ_PASSES};

/* Many slices: what many warps read need not come together. */
enum { MANY_SLICES = 4096, SLICE_UNIT = 512 };
static const int64_t SLICE_VALUES[] = {1, MANY_SLICES};
static const cb_choice READ_PARAMS[] = {
    CB__READ_PASSES,
    {.name = "slices",
     .help = "contiguous parts of the set, each with a checksum",
     .values = SLICE_VALUES,
     .count = 2,
     .preset = 1},
};

static const int64_t SWITCH[] = {0, 1};
#define STREAMS(table)                                                                             \
    {                                                                                              \
        .name = "streams",                                                                         \
        .help = "contiguous parts of a worker's share that are walked together", .values = table,  \
        .count = (int)(sizeof(table) / sizeof((table)[0])), .preset = 1,                           \
    }
#define NONTEMPORAL                                                                                \
    {                                                                                              \
        .name = "nontemporal",                                                                     \
        .help = "1: stores go past the caches; better once the set does not fit",                  \
        .values = SWITCH, .count = 2, .preset = 1,                                                 \
    }

/* Four is there to see that it gains nothing. */
static const int64_t READ_STREAM_VALUES[] = {1, 2, 4};
static const int64_t COPY_STREAM_VALUES[] = {1, 2};
static const cb_choice READ_TUNABLES[] = {STREAMS(READ_STREAM_VALUES)};
#if CB_X86
static const cb_choice WRITE_TUNABLES[] = {NONTEMPORAL};
#endif
static const cb_choice COPY_TUNABLES[] = {
    STREAMS(COPY_STREAM_VALUES),
#if CB_X86
    NONTEMPORAL,
#endif
};

static uint64_t set_bytes(const cb_problem *problem)
{
    return (uint64_t)problem->shape[0];
}

/* cuda.cu, of which the tunables say which kernel is compiled */

/* The presets are within 0.5 % of the best on an H200 (copy 2 %: docs/results/cuda-twins.md), and
 * have a launch with any one of them changed. */
static const cb_choice CUDA_READ_TUNABLES[] = {
    CB__LAUNCH_CHOICES(32, 512, 8),
    CB__LAUNCH_CHOICE("l1", "1: the first cache keeps what is read", SWITCH, 0),
};
#define STREAMING(preset)                                                                          \
    CB__LAUNCH_CHOICE("streaming", "1: lines written are the first that caches give up", SWITCH,   \
                      preset)
static const cb_choice CUDA_WRITE_TUNABLES[] = {CB__LAUNCH_CHOICES(0, 512, 2), STREAMING(0)};
static const cb_choice CUDA_COPY_TUNABLES[] = {CB__LAUNCH_CHOICES(0, 512, 2), STREAMING(1)};

static int cuda_geometry(const cb_problem *problem, const int64_t *tunables, int processors,
                         cb_geometry *out)
{
    return cb__launch_geometry(set_bytes(problem), problem->params[0], tunables, processors, out);
}

static const cb_choice CUDA_SLICE_TUNABLES[] = {
    CB__LAUNCH_CHOICE("threads", "threads a block, a slice for every 32", CB__LAUNCH_THREAD_VALUES,
                      128),
    CB__LAUNCH_CHOICE("loads", "16-byte accesses of a thread in flight", CB__LAUNCH_LOAD_VALUES, 4),
};

static int slices_geometry(const cb_problem *problem, const int64_t *tunables, int processors,
                           cb_geometry *out)
{
    (void)processors;
    if (tunables[0] * tunables[1] > CB__LAUNCH_TURN_MAX)
        return CB__LAUNCH_TURN_TOO_LONG;
    *out = (cb_geometry){{(uint32_t)(problem->params[READ_SLICES] * 32 / tunables[0]), 1, 1},
                         {(uint32_t)tunables[0], 1, 1},
                         0};
    return 0;
}

static int one_slice(const cb_problem *problem)
{
    return problem->params[READ_SLICES] == 1;
}

static int many_slices(const cb_problem *problem)
{
    return problem->params[READ_SLICES] > 1;
}

static const cb_device_code CUDA_SLICES = {.source = cb__cuda_source,
                                           .entry = "twin_read",
                                           .least = 75,
                                           .geometry = slices_geometry,
                                           .overlaps = 1};
static const cb_device_code CUDA_READ = {
    .source = cb__cuda_source, .entry = "twin_read", .least = 75, .geometry = cuda_geometry};
static const cb_device_code CUDA_WRITE = {
    .source = cb__cuda_source, .entry = "twin_write", .least = 75, .geometry = cuda_geometry};
static const cb_device_code CUDA_COPY = {
    .source = cb__cuda_source, .entry = "twin_copy", .least = 75, .geometry = cuda_geometry};

/* twin_write */

static const cb_operand WRITE_TABLE[WRITE_OPERANDS] = {
    {"seed", CB_INPUT, CB_U32, "the 16 words of one line", 0, 4294967295.0},
    {"dst", CB_OUTPUT, CB_U32, "bytes/4 words", 0, 4294967295.0},
};

static uint64_t write_bytes(const cb_problem *problem, int operand)
{
    return operand == WRITE_SEED ? CB__LINE : set_bytes(problem);
}

static void write_cost(const cb_problem *problem, cb_cost *cost)
{
    *cost = (cb_cost){CB__LINE, set_bytes(problem), 0};
}

static void write_fill(const cb_problem *problem, uint64_t seed, int operand, uint64_t set,
                       void *logical, int part, int parts)
{
    cb__fill_words(seed, operand, set, logical, write_bytes(problem, operand), part, parts);
}

static void write_reference(const cb_problem *problem, const void *const *logical, int operand,
                            uint64_t first, uint64_t count, double *value, double *bound)
{
    (void)problem;
    (void)operand;
    const uint32_t *seed = logical[WRITE_SEED];
    for (uint64_t i = 0; i < count; i++) {
        value[i] = (double)seed[(first + i) % 16];
        bound[i] = 0;
    }
}

/* twin_copy */

static const cb_operand COPY_TABLE[COPY_OPERANDS] = {
    {"src", CB_STREAM, CB_U32, "bytes/4 words", 0, 4294967295.0},
    {"dst", CB_OUTPUT, CB_U32, "bytes/4 words", 0, 4294967295.0},
};

static uint64_t copy_bytes(const cb_problem *problem, int operand)
{
    (void)operand;
    return set_bytes(problem);
}

static void copy_cost(const cb_problem *problem, cb_cost *cost)
{
    uint64_t moved = set_bytes(problem);
    *cost = (cb_cost){moved, moved, 0};
}

static void copy_fill(const cb_problem *problem, uint64_t seed, int operand, uint64_t set,
                      void *logical, int part, int parts)
{
    cb__fill_words(seed, operand, set, logical, copy_bytes(problem, operand), part, parts);
}

static void copy_reference(const cb_problem *problem, const void *const *logical, int operand,
                           uint64_t first, uint64_t count, double *value, double *bound)
{
    (void)problem;
    (void)operand;
    const uint32_t *src = logical[COPY_SRC];
    for (uint64_t i = 0; i < count; i++) {
        value[i] = (double)src[first + i];
        bound[i] = 0;
    }
}

/* twin_read with slices */

static const cb_operand READ_TABLE[READ_OPERANDS] = {
    {"src", CB_STREAM, CB_U32, "bytes/4 words", 0, 4294967295.0},
    {"checksum", CB_OUTPUT, CB_U32,
     "a word a slice: of u pieces of 512 bytes, slice s has u*s/slices up to u*(s+1)/slices", 0,
     4294967295.0},
    {"partial", CB_SCRATCH, CB_U32, "a line a worker and one that counts them; starts as zero", 0,
     4294967295.0},
};

static uint64_t read_bytes(const cb_problem *problem, int operand)
{
    return operand == READ_CHECKSUM ? (uint64_t)problem->params[READ_SLICES] * sizeof(uint32_t)
                                    : cb__read_bytes(problem, operand);
}

static void read_cost(const cb_problem *problem, cb_cost *cost)
{
    *cost = (cb_cost){set_bytes(problem), read_bytes(problem, READ_CHECKSUM), 0};
}

static void read_reference(const cb_problem *problem, const void *const *logical, int operand,
                           uint64_t first, uint64_t count, double *value, double *bound)
{
    uint64_t bytes = set_bytes(problem), slices = (uint64_t)problem->params[READ_SLICES];
    uint64_t units = (bytes + SLICE_UNIT - 1) / SLICE_UNIT;
    const char *src = logical[READ_SRC];
    (void)operand;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t from = units * (first + i) / slices * SLICE_UNIT;
        uint64_t end = units * (first + i + 1) / slices * SLICE_UNIT;
        end = end < bytes ? end : bytes;
        uint32_t once = from < end ? cb__reference_checksum(src + from, end - from) : 0;
        value[i] = problem->params[READ_PASSES] % 2 == 0 ? 0 : (double)once;
        bound[i] = 0;
    }
}

#define COUNT(table) ((int)(sizeof(table) / sizeof((table)[0])))

static const cb_impl READ_IMPLS[] = {
    {.name = "cuda_slices",
     .help = "a slice a warp, 16-byte loads past the first cache",
     .isa = CB_ISA_CUDA,
     .tunables = CUDA_SLICE_TUNABLES,
     .ntunables = COUNT(CUDA_SLICE_TUNABLES),
     .covers = many_slices,
     .device = &CUDA_SLICES},
    {.name = "cuda",
     .help = "16-byte loads past the first cache",
     .covers = one_slice,
     .isa = CB_ISA_CUDA,
     .tunables = CUDA_READ_TUNABLES,
     .ntunables = COUNT(CUDA_READ_TUNABLES),
     .device = &CUDA_READ},
#if CB_X86
    {.name = "avx512",
     .help = "512-bit loads: the bound of Intel's and Zen 5's L1",
     .covers = one_slice,
     .isa = CB_ISA_AVX512,
     .tunables = READ_TUNABLES,
     .ntunables = 1,
     .run = cb__twin_read_avx512},
    {.name = "avx2",
     .help = "256-bit loads in pairs: the bound of Zen 2 to 4's L1",
     .covers = one_slice,
     .isa = CB_ISA_AVX2,
     .tunables = READ_TUNABLES,
     .ntunables = 1,
     .run = cb__twin_read_avx2},
#endif
    {.name = "portable",
     .help = "16-byte vectors in C",
     .covers = one_slice,
     .tunables = READ_TUNABLES,
     .ntunables = 1,
     .run = cb__twin_read_portable},
};

static const cb_impl WRITE_IMPLS[] = {
    {.name = "cuda",
     .help = "16-byte stores",
     .isa = CB_ISA_CUDA,
     .tunables = CUDA_WRITE_TUNABLES,
     .ntunables = COUNT(CUDA_WRITE_TUNABLES),
     .device = &CUDA_WRITE},
#if CB_X86
    {.name = "avx512",
     .help = "512-bit stores",
     .isa = CB_ISA_AVX512,
     .tunables = WRITE_TUNABLES,
     .ntunables = 1,
     .run = cb__twin_write_avx512},
    {.name = "avx2",
     .help = "256-bit stores",
     .isa = CB_ISA_AVX2,
     .tunables = WRITE_TUNABLES,
     .ntunables = 1,
     .run = cb__twin_write_avx2},
#endif
    {.name = "portable", .help = "16-byte vectors in C", .run = cb__twin_write_portable},
};

static const cb_impl COPY_IMPLS[] = {
    {.name = "cuda",
     .help = "16-byte loads and stores",
     .isa = CB_ISA_CUDA,
     .tunables = CUDA_COPY_TUNABLES,
     .ntunables = COUNT(CUDA_COPY_TUNABLES),
     .device = &CUDA_COPY},
#if CB_X86
    {.name = "avx512",
     .help = "512-bit loads and stores",
     .isa = CB_ISA_AVX512,
     .tunables = COPY_TUNABLES,
     .ntunables = 2,
     .run = cb__twin_copy_avx512},
    {.name = "avx2",
     .help = "256-bit loads and stores",
     .isa = CB_ISA_AVX2,
     .tunables = COPY_TUNABLES,
     .ntunables = 2,
     .run = cb__twin_copy_avx2},
#endif
    {.name = "portable",
     .help = "16-byte vectors in C",
     .tunables = COPY_TUNABLES,
     .ntunables = 1,
     .run = cb__twin_copy_portable},
};

static const cb_kernel READ = {
    .name = "twin_read",
    .summary = "reads a set, pass after pass",
    .formula = CB__READ_FORMULA,
    .dims = DIMS,
    .ndims = 1,
    .params = READ_PARAMS,
    .nparams = COUNT(READ_PARAMS),
    .operands = READ_TABLE,
    .noperands = READ_OPERANDS,
    .bytes = read_bytes,
    .cost = read_cost,
    .fill = cb__read_fill,
    .reference = read_reference,
    .impls = READ_IMPLS,
    .nimpls = COUNT(READ_IMPLS),
};

static const cb_kernel WRITE = {
    .name = "twin_write",
    .summary = "writes a set, pass after pass",
    .formula = "dst[i] = seed[i mod 16]",
    .dims = DIMS,
    .ndims = 1,
    .params = PARAMS,
    .nparams = 1,
    .operands = WRITE_TABLE,
    .noperands = WRITE_OPERANDS,
    .bytes = write_bytes,
    .cost = write_cost,
    .fill = write_fill,
    .reference = write_reference,
    .impls = WRITE_IMPLS,
    .nimpls = COUNT(WRITE_IMPLS),
};

static const cb_kernel COPY = {
    .name = "twin_copy",
    .summary = "copies a set, pass after pass",
    .formula = "dst[i] = src[i]",
    .dims = DIMS,
    .ndims = 1,
    .params = PARAMS,
    .nparams = 1,
    .operands = COPY_TABLE,
    .noperands = COPY_OPERANDS,
    .bytes = copy_bytes,
    .cost = copy_cost,
    .fill = copy_fill,
    .reference = copy_reference,
    .impls = COPY_IMPLS,
    .nimpls = COUNT(COPY_IMPLS),
};

const cb_module *cb_module_entry(void)
{
    static const cb_kernel *const kernels[] = {&READ, &WRITE, &COPY};
    static const cb_module module = {CB_KERNEL_ABI, sizeof(cb_kernel), kernels, COUNT(kernels)};
    return &module;
}
