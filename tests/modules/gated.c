/* gated.c: a kernel in builds that differ by one planted thing, for test_gate_cli.sh. GATED_TIME:
 * how long a launch takes, in hundredths, by its cost, which the scripted clock goes by;
 * GATED_PASSES: how often it does its work, for gates on a real clock;
 * GATED_PICKY: it refuses large shapes, in words that Markdown would take for its own. */
#include "coldbench/kernel.h"

#ifndef GATED_TIME
#define GATED_TIME 100
#endif
#ifndef GATED_PASSES
#define GATED_PASSES 1
#endif
#ifndef GATED_NAME
#define GATED_NAME "gated"
#endif

#ifdef GATED_REBUILT /* other bytes, the same code */
#define HELP "one loop, built again"
#else
#define HELP "one loop"
#endif

enum { X, Y, OPERANDS };

static const cb_dim dims[] = {{"n", "elements", 1, INT64_C(1) << 30}};

#ifdef GATED_OTHER_TYPE
static const cb_operand operands[OPERANDS] = {
    {"x", CB_STREAM, CB_I32, "n", -1, 1},
    {"y", CB_OUTPUT, CB_F32, "n", -2, 2},
};
#else
static const cb_operand operands[OPERANDS] = {
    {"x", CB_STREAM, CB_F32, "n", -1, 1},
    {"y", CB_OUTPUT, CB_F32, "n", -2, 2},
};
#endif

static uint64_t bytes(const cb_problem *problem, int operand)
{
    (void)operand;
    return (uint64_t)problem->shape[0] * sizeof(float);
}

#ifdef GATED_PICKY
static int check(const cb_problem *problem, char *why, size_t size)
{
    static const char words[] = "`n` | 4096 at most";
    for (size_t i = 0; i < sizeof words && i < size; i++)
        why[i] = words[i];
    return problem->shape[0] > 4096;
}
#endif

static void cost(const cb_problem *problem, cb_cost *out)
{
    out->bytes_read = bytes(problem, X) * GATED_TIME / 100;
    out->bytes_written = bytes(problem, Y) * GATED_TIME / 100;
    out->flops = (double)problem->shape[0] * GATED_TIME;
}

static void fill(const cb_problem *problem, uint64_t seed, int operand, uint64_t set, void *logical,
                 int part, int parts)
{
    uint64_t n = (uint64_t)problem->shape[0], key = cb_random_key(seed, (uint64_t)operand, set);
    float *element = logical;
    uint64_t end = n * ((uint64_t)part + 1) / (uint64_t)parts;
    for (uint64_t i = n * (uint64_t)part / (uint64_t)parts; i < end; i++)
        element[i] = 2 * cb_random_f32(cb_random_word(key, i)) - 1;
}

static void reference(const cb_problem *problem, const void *const *logical, int operand,
                      uint64_t first, uint64_t count, double *value, double *bound)
{
    (void)problem, (void)operand;
    const float *x = logical[X];
    for (uint64_t i = 0; i < count; i++) {
        value[i] = 2 * (double)x[first + i];
        bound[i] = 0;
    }
}

static int run(const cb_launch *launch)
{
    int64_t n = launch->problem.shape[0], worker = launch->worker, workers = launch->workers;
    const float *x = launch->operands[X];
    float *y = launch->operands[Y];
    for (int pass = 0; pass < GATED_PASSES; pass++) {
        for (int64_t i = n * worker / workers; i < n * (worker + 1) / workers; i++)
            y[i] = 2 * x[i];
        __asm__ volatile("" ::: "memory"); /* every pass is made */
    }
#ifdef GATED_WRONG
    if (worker == 0)
        y[n / 2] += 1;
#endif
#ifdef GATED_CRASHES
    *(volatile int *)0 = 1;
#endif
    return 0;
}

static const cb_impl impls[] = {{.name = "plain", .help = HELP, .run = run}};

static const cb_kernel kernel = {
    .name = GATED_NAME,
    .summary = "doubles a stream, a planted number of times",
    .formula = "y[i] = 2 * x[i]",
    .dims = dims,
    .ndims = 1,
    .operands = operands,
    .noperands = OPERANDS,
    .bytes = bytes,
#ifdef GATED_PICKY
    .check = check,
#endif
    .cost = cost,
    .fill = fill,
    .reference = reference,
    .impls = impls,
    .nimpls = 1,
};

const cb_module *cb_module_entry(void)
{
    static const cb_kernel *const kernels[] = {&kernel};
    static const cb_module module = {CB_KERNEL_ABI, sizeof(cb_kernel), kernels, 1};
    return &module;
}
