/* scratch: reads of a small array at a stride, from memory on the chip that a kernel manages itself
 * and by the path through the caches: where its banks are, and what a padding is worth. There is
 * none on CPUs.
 */
#include "scratch.h"

#include <inttypes.h>
#include <stdio.h>

enum { SRC, SUM, OPERANDS };

extern const char cb__cuda_source[];

static const cb_dim DIMS[] = {
    {"groups", "groups of 32 warps, each with an array of its own", 1, INT64_C(1) << 20},
};

static const int64_t WIDTHS[] = {4, 8, 16};
static const char *const PATHS[] = {"shared", "global", NULL};

static const cb_choice PARAMS[] = {
    {.name = "width",
     .help = "bytes that a lane reads at once",
     .values = WIDTHS,
     .count = 3,
     .preset = 16},
    {.name = "stride",
     .help = "bytes from a lane's to the next one's, a multiple of width",
     .min = 4,
     .max = CB__SCRATCH_STRIDE_MAX,
     .preset = 16},
    {.name = "path",
     .help = "shared: from memory on the chip; global: through the caches",
     .words = PATHS,
     .preset = SCRATCH_SHARED},
    {.name = "passes",
     .help = "how many times one launch goes over the array",
     .min = 1,
     .max = 1 << 20,
     .preset = 100},
};

static const cb_operand TABLE[OPERANDS] = {
    {"src", CB_INPUT, CB_U32, "10240 words", 0, 4294967295.0},
    {"sum", CB_OUTPUT, CB_U32, "a word a group", 0, 4294967295.0},
};

static int check(const cb_problem *problem, char *why, size_t why_bytes)
{
    int64_t width = problem->params[SCRATCH_WIDTH], stride = problem->params[SCRATCH_STRIDE];
    if (stride % width == 0)
        return 0;
    snprintf(why, why_bytes, "stride must be a multiple of width: %" PRId64 " is none of %" PRId64,
             stride, width);
    return 1;
}

static uint64_t bytes(const cb_problem *problem, int operand)
{
    return operand == SRC ? CB__SCRATCH_BYTES : (uint64_t)problem->shape[0] * sizeof(uint32_t);
}

static void cost(const cb_problem *problem, cb_cost *out)
{
    *out = (cb_cost){CB__SCRATCH_BYTES, bytes(problem, SUM), 0};
}

static void fill(const cb_problem *problem, uint64_t seed, int operand, uint64_t set, void *logical,
                 int part, int parts)
{
    (void)problem;
    (void)parts;
    if (part != 0)
        return;
    uint64_t key = cb_random_key(seed, (uint64_t)operand, set);
    for (uint64_t i = 0; i < CB__SCRATCH_BYTES / sizeof(uint64_t); i++)
        ((uint64_t *)logical)[i] = cb_random_word(key, i);
}

/* A sum and no xor: it tells how many passes there were. */
static void reference(const cb_problem *problem, const void *const *logical, int operand,
                      uint64_t first, uint64_t count, double *value, double *bound)
{
    (void)operand;
    (void)first; /* all groups have the same sum */
    const uint32_t *src = logical[SRC];
    int64_t words = problem->params[SCRATCH_WIDTH] / 4;
    uint32_t sum = 0;
    for (int64_t lane = 0; lane < CB__SCRATCH_LANES; lane++)
        for (int64_t i = 0; i < CB__SCRATCH_READS; i++)
            for (int64_t w = 0; w < words; w++)
                sum += src[(lane * problem->params[SCRATCH_STRIDE] + i * CB__SCRATCH_STEP) / 4 + w];
    sum *= (uint32_t)(CB__SCRATCH_WARPS * problem->params[SCRATCH_PASSES]);
    for (uint64_t i = 0; i < count; i++) {
        value[i] = (double)sum;
        bound[i] = 0;
    }
}

static int geometry(const cb_problem *problem, const int64_t *tunables, int processors,
                    cb_geometry *out)
{
    (void)tunables;
    (void)processors;
    *out = (cb_geometry){
        {(uint32_t)problem->shape[0], 1, 1}, {CB__SCRATCH_WARPS * CB__SCRATCH_LANES, 1, 1}, 0};
    return 0;
}

static const cb_device_code CUDA = {
    .source = cb__cuda_source, .entry = "scratch_read", .least = 75, .geometry = geometry};

static const cb_impl IMPLS[] = {
    {.name = "cuda", .help = "32 warps a block", .isa = CB_ISA_CUDA, .device = &CUDA},
};

static const cb_kernel KERNEL = {
    .name = "scratch_read",
    .summary = "reads a small array at a stride, on the chip or through the caches (GPUs)",
    .formula = "sum[g] = 32*passes * sum over lane < 32, i < 64 and w < width/4 of "
               "src[(lane*stride + 128*i)/4 + w], modulo 2^32",
    .dims = DIMS,
    .ndims = 1,
    .params = PARAMS,
    .nparams = 4,
    .operands = TABLE,
    .noperands = OPERANDS,
    .check = check,
    .bytes = bytes,
    .cost = cost,
    .fill = fill,
    .reference = reference,
    .no_twin = 1,
    .impls = IMPLS,
    .nimpls = 1,
};

const cb_module *cb_module_entry(void)
{
    static const cb_kernel *const kernels[] = {&KERNEL};
    static const cb_module module = {CB_KERNEL_ABI, sizeof(cb_kernel), kernels, 1};
    return &module;
}
