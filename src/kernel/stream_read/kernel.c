/* stream_read: the control kernel of memory. Its bytes follow `work`, in steps of a permille at
 * constant allocation, so a planted difference in traffic changes nothing else.
 */
#include "kernel/twin/define.h"
#include "kernel/twin/launch.h"
#include "stream_read.h"

#include <inttypes.h>
#include <stdio.h>

#ifndef CB_X86
#define CB_X86 0
#endif

static const cb_dim DIMS[] = {
    {"bytes", "bytes read at work=1000, in whole 64-byte lines", CB__LINE, CB__BYTES_MAX},
};

static const cb_choice PARAMS[] = {
    {.name = "work",
     .help = "permille of the bytes that are read",
     .min = 1,
     .max = 2000,
     .preset = 1000},
};

static const int64_t STREAM_VALUES[] = {1, 2};
static const cb_choice TUNABLES[] = {
    {.name = "streams",
     .help = "contiguous parts of a worker's share that are walked together",
     .values = STREAM_VALUES,
     .count = 2,
     .preset = 1},
};

static const cb_operand TABLE[OPERANDS] = {
    {"src", CB_STREAM, CB_U32, "2*bytes/4 words, of which the first bytes*work/1000 are read", 0,
     4294967295.0},
    {"checksum", CB_OUTPUT, CB_U32, "one word", 0, 4294967295.0},
    {"partial", CB_SCRATCH, CB_U32, "a line a worker and one that counts them; starts as zero", 0,
     4294967295.0},
};

static int check(const cb_problem *problem, char *why, size_t why_bytes)
{
    if (cb__stream_read_bytes(problem) >= CB__LINE)
        return 0;
    snprintf(why, why_bytes,
             "bytes * work / 1000 must be at least 64: bytes=%" PRId64 " and work=%" PRId64
             " make %" PRId64,
             problem->shape[0], problem->params[0], problem->shape[0] * problem->params[0] / 1000);
    return 1;
}

static uint64_t bytes(const cb_problem *problem, int operand)
{
    const uint64_t sizes[OPERANDS] = {2 * (uint64_t)problem->shape[0], sizeof(uint32_t),
                                      sizeof(cb__partials)};
    return sizes[operand];
}

static void cost(const cb_problem *problem, cb_cost *out)
{
    *out = (cb_cost){cb__stream_read_bytes(problem), sizeof(uint32_t), 0};
}

static void fill(const cb_problem *problem, uint64_t seed, int operand, uint64_t set, void *logical,
                 int part, int parts)
{
    cb__fill_words(seed, operand, set, logical, bytes(problem, operand), part, parts);
}

static void reference(const cb_problem *problem, const void *const *logical, int operand,
                      uint64_t first, uint64_t count, double *value, double *bound)
{
    (void)operand;
    (void)first; /* one element: 0 */
    if (count == 0)
        return;
    value[0] = (double)cb__reference_checksum(logical[SRC], cb__stream_read_bytes(problem));
    bound[0] = 0;
}

static const cb_choice CUDA_TUNABLES[] = {CB__LAUNCH_CHOICES(32, 512, 8)};

static int cuda_geometry(const cb_problem *problem, const int64_t *tunables, int processors,
                         cb_geometry *out)
{
    return cb__launch_geometry(cb__stream_read_bytes(problem), 1, tunables, processors, out);
}

static const cb_device_code CUDA = {
    .source = cb__cuda_source, .entry = "stream_read", .least = 75, .geometry = cuda_geometry};

static const cb_impl IMPLS[] = {
    {.name = "cuda",
     .help = "16-byte loads past the first cache",
     .isa = CB_ISA_CUDA,
     .tunables = CUDA_TUNABLES,
     .ntunables = CB__LAUNCH_TUNABLES,
     .device = &CUDA},
#if CB_X86
    {.name = "avx512",
     .help = "512-bit loads",
     .isa = CB_ISA_AVX512,
     .tunables = TUNABLES,
     .ntunables = 1,
     .run = cb__stream_read_avx512},
    {.name = "avx2",
     .help = "256-bit loads in pairs",
     .isa = CB_ISA_AVX2,
     .tunables = TUNABLES,
     .ntunables = 1,
     .run = cb__stream_read_avx2},
#endif
    {.name = "portable",
     .help = "16-byte vectors in C",
     .tunables = TUNABLES,
     .ntunables = 1,
     .run = cb__stream_read_portable},
};

static const cb_kernel KERNEL = {
    .name = "stream_read",
    .summary = "reads a stream; the traffic follows work (control kernel)",
    .formula = "checksum = xor of src[0 .. n/4), n = floor(bytes*work/1000/64)*64",
    .dims = DIMS,
    .ndims = 1,
    .params = PARAMS,
    .nparams = 1,
    .operands = TABLE,
    .noperands = OPERANDS,
    .check = check,
    .bytes = bytes,
    .cost = cost,
    .fill = fill,
    .reference = reference,
    .impls = IMPLS,
    .nimpls = (int)(sizeof IMPLS / sizeof IMPLS[0]),
};

const cb_module *cb_module_entry(void)
{
    static const cb_kernel *const kernels[] = {&KERNEL};
    static const cb_module module = {CB_KERNEL_ABI, sizeof(cb_kernel), kernels, 1};
    return &module;
}
