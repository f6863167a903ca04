/* alu_chain: the control kernel of arithmetic: a chain of dependent operations and no memory, so
 * its time is proportional to `work` by construction.
 */
#include "chain.h"

#include <float.h>

#ifndef CB_X86
#define CB_X86 0
#endif

static const cb_choice PARAMS[] = {
    {.name = "work",
     .help = "eighths of the dependent multiply-adds",
     .min = 1,
     .max = 2000,
     .preset = 1000},
};

static const cb_operand TABLE[OPERANDS] = {
    {"start", CB_INPUT, CB_F32, "x0, a, b", 0, 2},
    {"x", CB_OUTPUT, CB_F32, "one number", 0, 2},
};

static uint64_t bytes(const cb_problem *problem, int operand)
{
    (void)problem;
    return operand == START ? 3 * sizeof(float) : sizeof(float);
}

static void cost(const cb_problem *problem, cb_cost *out)
{
    *out = (cb_cost){3 * sizeof(float), sizeof(float), 16.0 * (double)problem->params[0]};
}

/* x0 in [1, 2), a in [0.9998, 0.9999), b in [1e-5, 2e-5): x falls slowly towards b / (1 - a), which
 * is at most 0.2, and has not arrived after the longest chain. So the result depends on how many
 * steps were done: a chain that is 1 % short is outside the bound. */
static void fill(const cb_problem *problem, uint64_t seed, int operand, uint64_t set, void *logical,
                 int part, int parts)
{
    (void)problem;
    (void)parts;
    if (part != 0)
        return;
    uint64_t key = cb_random_key(seed, (uint64_t)operand, set);
    float *start = logical;
    start[0] = 1.0f + cb_random_f32(cb_random_word(key, 0));
    start[1] = 0.9998f + 0.0001f * cb_random_f32(cb_random_word(key, 1));
    start[2] = 1e-5f + 1e-5f * cb_random_f32(cb_random_word(key, 2));
}

static double power(double base, uint64_t exponent)
{
    double result = 1;
    for (; exponent > 0; exponent >>= 1, base *= base)
        if (exponent & 1)
            result *= base;
    return result;
}

/* x_n = a^n (x0 - x*) + x*, x* = b / (1 - a), in closed form. Every x lies between x0 and x*, so
 * with X = max(|x0|, |x*|) and u = 2^-24 one step adds at most u (a X + X) < 2 u X (two roundings;
 * fused: one), and the steps after it contract that by a: in all at most 2 u X (1 - a^n) / (1 - a).
 * 1 % more covers the second order and the closed form's own rounding (n u64 X, 1e-5 of the bound).
 */
static void reference(const cb_problem *problem, const void *const *logical, int operand,
                      uint64_t first, uint64_t count, double *value, double *bound)
{
    (void)operand;
    (void)first; /* one element: 0 */
    if (count == 0)
        return;
    const float *start = logical[START];
    double x0 = (double)start[0], a = (double)start[1], b = (double)start[2];
    double limit = b / (1 - a), decay = power(a, 8 * (uint64_t)problem->params[0]);
    double largest = x0 > limit ? x0 : limit;
    value[0] = decay * (x0 - limit) + limit;
    bound[0] = 1.01 * (double)FLT_EPSILON * largest * (1 - decay) / (1 - a);
}

extern const char cb__cuda_source[];

static int cuda_geometry(const cb_problem *problem, const int64_t *tunables, int processors,
                         cb_geometry *out)
{
    (void)problem;
    (void)tunables;
    (void)processors;
    *out = (cb_geometry){{1, 1, 1}, {1, 1, 1}, 0};
    return 0;
}

static const cb_device_code CUDA = {
    .source = cb__cuda_source, .entry = "alu_chain", .least = 75, .geometry = cuda_geometry};

static const cb_impl IMPLS[] = {
    {.name = "cuda", .help = "one thread", .isa = CB_ISA_CUDA, .device = &CUDA},
#if CB_X86
    {.name = "avx2", .help = "fused multiply-add", .isa = CB_ISA_AVX2, .run = cb__alu_chain_avx2},
#endif
    {.name = "portable", .help = "multiply, then add", .run = cb__alu_chain_portable},
};

static const cb_kernel KERNEL = {
    .name = "alu_chain",
    .summary = "8*work dependent multiply-adds on one worker (control kernel)",
    .formula = "x = x*a + b, 8*work times from x0",
    .params = PARAMS,
    .nparams = 1,
    .operands = TABLE,
    .noperands = OPERANDS,
    .bytes = bytes,
    .cost = cost,
    .fill = fill,
    .reference = reference,
    .no_twin = 1,
    .impls = IMPLS,
    .nimpls = (int)(sizeof IMPLS / sizeof IMPLS[0]),
};

const cb_module *cb_module_entry(void)
{
    static const cb_kernel *const kernels[] = {&KERNEL};
    static const cb_module module = {CB_KERNEL_ABI, sizeof(cb_kernel), kernels, 1};
    return &module;
}
