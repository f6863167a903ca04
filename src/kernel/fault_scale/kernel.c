/* fault_scale: products of a stream and a factor, right and with one fault each. `coldbench
 * selftest` runs it to see that each check finds the fault it is for; nothing else should. A fault
 * is an implementation: the definition is the same. */
#include "fault_scale.h"

static const cb_dim DIMS[] = {{"n", "elements of x and y", 1, INT64_C(1) << 30}};

static const cb_operand TABLE[OPERANDS] = {
    {"x", CB_STREAM, CB_F32, "n", -1, 1},
    {"factor", CB_INPUT, CB_F32, "one number", 1, 2},
    {"y", CB_OUTPUT, CB_F32, "n", -2, 2},
};

static uint64_t bytes(const cb_problem *problem, int operand)
{
    return operand == FACTOR ? sizeof(float) : (uint64_t)problem->shape[0] * sizeof(float);
}

static void cost(const cb_problem *problem, cb_cost *out)
{
    *out = (cb_cost){bytes(problem, X) + bytes(problem, FACTOR), bytes(problem, Y),
                     (double)problem->shape[0]};
}

/* No x is so small that a hundredth of its product would be within a bound, nor the 0.5 of what
 * edits it. */
static void fill(const cb_problem *problem, uint64_t seed, int operand, uint64_t set, void *logical,
                 int part, int parts)
{
    uint64_t count = bytes(problem, operand) / sizeof(float);
    uint64_t key = cb_random_key(seed, (uint64_t)operand, set);
    uint64_t end = count * ((uint64_t)part + 1) / (uint64_t)parts;
    float *element = logical;
    for (uint64_t i = count * (uint64_t)part / (uint64_t)parts; i < end; i++) {
        float unit = cb_random_f32(cb_random_word(key, i));
        element[i] = operand == FACTOR ? 1.25f + unit / 2 : 0.5625f + unit / 4;
    }
}

/* One rounding. */
static void reference(const cb_problem *problem, const void *const *logical, int operand,
                      uint64_t first, uint64_t count, double *value, double *bound)
{
    (void)problem;
    (void)operand;
    const float *x = logical[X], *factor = logical[FACTOR];
    for (uint64_t i = 0; i < count; i++) {
        value[i] = (double)*factor * (double)x[first + i];
        bound[i] = 1.01 / (1 << 24) * value[i];
    }
}

extern const char cb__cuda_source[];

enum { THREADS = 128 };

static int whole(const cb_problem *problem, const int64_t *tunables, int processors,
                 cb_geometry *out)
{
    (void)tunables;
    (void)processors;
    uint32_t blocks = (uint32_t)((problem->shape[0] + THREADS - 1) / THREADS);
    *out = (cb_geometry){{blocks, 1, 1}, {THREADS, 1, 1}, 0};
    return 0;
}

static int half(const cb_problem *problem, const int64_t *tunables, int processors,
                cb_geometry *out)
{
    whole(problem, tunables, processors, out);
    out->grid[0] = (out->grid[0] + 1) / 2;
    return 0;
}

#define CUDA(is, geometry, says)                                                                   \
    static const cb_device_code cuda_##is = {cb__cuda_source, "fault_scale_" #is, 75, geometry, 0};
FAULT_SCALE_TABLE(CUDA)

#define ON_CPU(is, geometry, says) {.name = #is, .help = says, .run = cb__fault_scale_##is},
#define ON_CUDA(is, geometry, says)                                                                \
    {.name = "cuda_" #is, .help = says, .isa = CB_ISA_CUDA, .device = &cuda_##is},
static const cb_impl IMPLS[] = {FAULT_SCALE_TABLE(ON_CUDA) FAULT_SCALE_TABLE(ON_CPU)};

static const cb_kernel KERNEL = {
    .name = "fault_scale",
    .summary = "scales a stream rightly and wrongly, faults seeded for coldbench selftest",
    .formula = "y[i] = factor * x[i]",
    .dims = DIMS,
    .ndims = 1,
    .operands = TABLE,
    .noperands = OPERANDS,
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
