/* peak: chains of multiply-adds and of byte dot products in registers, many enough to fill the
 * pipes: the ceilings of arithmetic. That of tensor cores is in mma.c.
 */
#include "peak.h"

#include <float.h>

#ifndef CB_X86
#define CB_X86 0
#endif

static const cb_dim DIMS[] = {
    {"blocks", "blocks of 256 steps of all lanes, shared over the workers", 1, INT64_C(1) << 30},
};

static const char *const TYPES[] = {"f32", "f64", NULL};

static const cb_choice FMA_PARAMS[] = {
    {.name = "type", .help = "of the numbers", .words = TYPES, .preset = FMA_F32},
};

static uint64_t blocks(const cb_problem *problem)
{
    return (uint64_t)problem->shape[0];
}

/* peak_fma */

static const cb_operand FMA_TABLE[FMA_OPERANDS] = {
    {"start_f32", CB_INPUT, CB_F32, "a, b, then 2*192 starts; block k begins with the k mod 192nd",
     0, 2},
    {"result_f32", CB_OUTPUT, CB_F32, "blocks x 192", 0, 2},
    {"start_f64", CB_INPUT, CB_F64, "a, b, then 2*96 starts; block k begins with the k mod 96th", 0,
     2},
    {"result_f64", CB_OUTPUT, CB_F64, "blocks x 96", 0, 2},
};

static uint64_t fma_lanes(const cb_problem *problem)
{
    return problem->params[FMA_TYPE] == FMA_F32 ? CB__PEAK_F32_LANES : CB__PEAK_F64_LANES;
}

static uint64_t fma_bytes(const cb_problem *problem, int operand)
{
    uint64_t starts = FMA_STARTS + 2 * fma_lanes(problem);
    uint64_t results = blocks(problem) * fma_lanes(problem);
    int is_f32 = problem->params[FMA_TYPE] == FMA_F32;
    const uint64_t bytes[FMA_OPERANDS] = {
        is_f32 ? starts * sizeof(float) : 0, is_f32 ? results * sizeof(float) : 0,
        is_f32 ? 0 : starts * sizeof(double), is_f32 ? 0 : results * sizeof(double)};
    return bytes[operand];
}

static void fma_cost(const cb_problem *problem, cb_cost *out)
{
    *out = (cb_cost){fma_bytes(problem, FMA_F32_START) + fma_bytes(problem, FMA_F64_START),
                     fma_bytes(problem, FMA_F32_RESULT) + fma_bytes(problem, FMA_F64_RESULT),
                     2.0 * CB__PEAK_STEPS * (double)fma_lanes(problem) * (double)blocks(problem)};
}

/* a in [0.998, 0.999), b in [1e-5, 2e-5), starts in [1, 2): a chain falls towards b / (1 - a), at
 * most 0.02, and has gone less than half the way after its 256 steps. So no number leaves (0, 2),
 * and a step too few is outside the bound. */
static double fma_number(uint64_t key, uint64_t index)
{
    double random = cb_random_f64(cb_random_word(key, index));
    return index == FMA_A ? 0.998 + 0.001 * random
                          : (index == FMA_B ? 1e-5 + 1e-5 * random : 1 + random);
}

static void fma_fill(const cb_problem *problem, uint64_t seed, int operand, uint64_t set,
                     void *logical, int part, int parts)
{
    (void)parts;
    if (part != 0)
        return;
    uint64_t key = cb_random_key(seed, (uint64_t)operand, set);
    uint64_t count = FMA_STARTS + 2 * fma_lanes(problem);
    for (uint64_t i = 0; i < count; i++)
        if (operand == FMA_F32_START)
            ((float *)logical)[i] = (float)fma_number(key, i);
        else
            ((double *)logical)[i] = fma_number(key, i);
}

static long double fma_input(const void *const *logical, int operand, uint64_t index)
{
    return operand == FMA_F32_START ? (long double)((const float *)logical[operand])[index]
                                    : (long double)((const double *)logical[operand])[index];
}

/* x_n = a^n (x0 - x*) + x*, x* = b / (1 - a), in closed form. Every x lies between x0 and x*, which
 * is below it; one step adds at most 2 u x0 (two roundings; fused: one), and the steps after it
 * contract that by a: in all at most 2 u x0 (1 - a^n) / (1 - a), as in alu_chain. 1 % more covers
 * the second order and the closed form's own rounding, which is that of a wider type. */
static void fma_reference(const cb_problem *problem, const void *const *logical, int operand,
                          uint64_t first, uint64_t count, double *value, double *bound)
{
    int start = operand == FMA_F32_RESULT ? FMA_F32_START : FMA_F64_START;
    double epsilon = operand == FMA_F32_RESULT ? (double)FLT_EPSILON : DBL_EPSILON;
    uint64_t lanes = fma_lanes(problem);
    long double a = fma_input(logical, start, FMA_A), b = fma_input(logical, start, FMA_B);
    long double limit = b / (1 - a), decay = a;
    for (int steps = 1; steps < CB__PEAK_STEPS; steps *= 2)
        decay *= decay;
    double growth = 1.01 * epsilon * (double)((1 - decay) / (1 - a));
    for (uint64_t i = 0; i < count; i++) {
        uint64_t block = (first + i) / lanes, lane = (first + i) % lanes;
        long double x0 = fma_input(logical, start, FMA_STARTS + block % lanes + lane);
        value[i] = (double)(decay * (x0 - limit) + limit);
        bound[i] = growth * (double)x0;
    }
}

/* peak_dot */

static const cb_operand DOT_TABLE[DOT_OPERANDS] = {
    {"start", CB_INPUT, CB_I32, "2*192 starts; block k begins with the k mod 192nd", -1048576,
     1048575},
    {"u", CB_INPUT, CB_U8, "16 lines x 16 lanes x 4; lane l takes l mod 16", 0, 127},
    {"s", CB_INPUT, CB_I8, "192 lanes x 4", -127, 127},
    {"result", CB_OUTPUT, CB_I32, "blocks x 192", -20000000, 20000000},
};

static uint64_t dot_bytes(const cb_problem *problem, int operand)
{
    const uint64_t bytes[DOT_OPERANDS] = {
        2 * CB__PEAK_DOT_LANES * sizeof(int32_t), CB__PEAK_DOT_LINES * CB__PEAK_DOT_LINE,
        4 * CB__PEAK_DOT_LANES, blocks(problem) * CB__PEAK_DOT_LANES * sizeof(int32_t)};
    return bytes[operand];
}

static void dot_cost(const cb_problem *problem, cb_cost *out)
{
    *out = (cb_cost){dot_bytes(problem, DOT_START) + dot_bytes(problem, DOT_U) +
                         dot_bytes(problem, DOT_S),
                     dot_bytes(problem, DOT_RESULT),
                     8.0 * CB__PEAK_STEPS * CB__PEAK_DOT_LANES * (double)blocks(problem)};
}

/* 7 bits of u and -127 to 127 of s: two products are at most 32258, which 16 bits hold. */
static void dot_fill(const cb_problem *problem, uint64_t seed, int operand, uint64_t set,
                     void *logical, int part, int parts)
{
    (void)parts;
    if (part != 0)
        return;
    uint64_t key = cb_random_key(seed, (uint64_t)operand, set);
    uint64_t bytes = dot_bytes(problem, operand);
    uint64_t count = operand == DOT_START ? bytes / sizeof(int32_t) : bytes;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t word = cb_random_word(key, i);
        if (operand == DOT_START)
            ((int32_t *)logical)[i] = (int32_t)(word >> 43) - (1 << 20);
        else if (operand == DOT_U)
            ((uint8_t *)logical)[i] = (uint8_t)(word >> 57);
        else
            ((int8_t *)logical)[i] = (int8_t)((int)(word % 255) - 127);
    }
}

/* Every line of u comes as often as every other one. Exact: all sums are far below 2^53. */
static void dot_reference(const cb_problem *problem, const void *const *logical, int operand,
                          uint64_t first, uint64_t count, double *value, double *bound)
{
    (void)problem;
    (void)operand;
    const int32_t *start = logical[DOT_START];
    const uint8_t *u = logical[DOT_U];
    const int8_t *s = logical[DOT_S];
    for (uint64_t i = 0; i < count; i++) {
        uint64_t block = (first + i) / CB__PEAK_DOT_LANES, lane = (first + i) % CB__PEAK_DOT_LANES;
        double sum = 0;
        for (uint64_t k = 0; k < CB__PEAK_DOT_LINES * 4; k++)
            sum += (double)u[k / 4 * CB__PEAK_DOT_LINE + lane % 16 * 4 + k % 4] *
                   (double)s[lane * 4 + k % 4];
        value[i] = (double)start[block % CB__PEAK_DOT_LANES + lane] +
                   CB__PEAK_STEPS / CB__PEAK_DOT_LINES * sum;
        bound[i] = 0;
    }
}

/* cuda.cu, of which parameters and tunables say which kernel is compiled */

extern const char cb__cuda_source[];

static const int64_t CUDA_BLOCK_VALUES[] = {1, 2, 4, 8};
static const int64_t CUDA_CHAIN_VALUES[] = {4, 8};
static const cb_choice CUDA_TUNABLES[] = {
    {.name = "groups",
     .help = "thread blocks a multiprocessor",
     .values = CUDA_BLOCK_VALUES,
     .count = 4,
     .preset = 4},
    {.name = "chains",
     .help = "blocks that a thread takes at once",
     .values = CUDA_CHAIN_VALUES,
     .count = 2,
     .preset = 8},
};

static int cuda_geometry(const cb_problem *problem, const int64_t *tunables, int processors,
                         cb_geometry *out)
{
    (void)problem; /* a thread takes turns until there are no blocks left */
    *out = (cb_geometry){
        {(uint32_t)(tunables[0] * processors), 1, 1}, {CB__PEAK_CUDA_THREADS, 1, 1}, 0};
    return 0;
}

static const cb_device_code CUDA_FMA = {
    .source = cb__cuda_source, .entry = "peak_fma", .least = 75, .geometry = cuda_geometry};
static const cb_device_code CUDA_DOT = {
    .source = cb__cuda_source, .entry = "peak_dot", .least = 75, .geometry = cuda_geometry};

static const cb_impl FMA_IMPLS[] = {
    {.name = "cuda",
     .help = "fused multiply-adds",
     .isa = CB_ISA_CUDA,
     .tunables = CUDA_TUNABLES,
     .ntunables = 2,
     .device = &CUDA_FMA},
#if CB_X86
    {.name = "avx512",
     .help = "512-bit fused multiply-adds",
     .isa = CB_ISA_AVX512,
     .run = cb__peak_fma_avx512},
    {.name = "avx2",
     .help = "256-bit fused multiply-adds",
     .isa = CB_ISA_AVX2,
     .run = cb__peak_fma_avx2},
#endif
    {.name = "portable",
     .help = "multiply, then add, 16-byte vectors in C",
     .run = cb__peak_fma_portable},
};

static const cb_impl DOT_IMPLS[] = {
    {.name = "cuda",
     .help = "dot products of four",
     .isa = CB_ISA_CUDA,
     .tunables = CUDA_TUNABLES,
     .ntunables = 2,
     .device = &CUDA_DOT},
#if CB_X86
    {.name = "avx512vnni",
     .help = "512-bit dot products of four",
     .isa = CB_ISA_AVX512_VNNI,
     .run = cb__peak_dot_avx512vnni},
    {.name = "avx2",
     .help = "256-bit products of bytes, pairs, sums",
     .isa = CB_ISA_AVX2,
     .run = cb__peak_dot_avx2},
#endif
    {.name = "portable", .help = "16-byte vectors in C", .run = cb__peak_dot_portable},
};

#define COUNT(table) ((int)(sizeof(table) / sizeof((table)[0])))

static const cb_kernel FMA = {
    .name = "peak_fma",
    .summary = "multiply-adds in registers, as many as the pipes take",
    .formula = "result[k][l] = x_256, x_0 = start[k mod lanes + l], x_{t+1} = x_t*a + b",
    .dims = DIMS,
    .ndims = 1,
    .params = FMA_PARAMS,
    .nparams = 1,
    .operands = FMA_TABLE,
    .noperands = FMA_OPERANDS,
    .bytes = fma_bytes,
    .cost = fma_cost,
    .fill = fma_fill,
    .reference = fma_reference,
    .no_twin = 1,
    .impls = FMA_IMPLS,
    .nimpls = COUNT(FMA_IMPLS),
};

static const cb_kernel DOT = {
    .name = "peak_dot",
    .summary = "dot products of four bytes in registers, as many as the pipes take",
    .formula = "result[k][l] = start[k mod 192 + l] + sum over t < 256 and i < 4 of "
               "u[t mod 16][l mod 16][i] * s[l][i]",
    .dims = DIMS,
    .ndims = 1,
    .operands = DOT_TABLE,
    .noperands = DOT_OPERANDS,
    .bytes = dot_bytes,
    .cost = dot_cost,
    .fill = dot_fill,
    .reference = dot_reference,
    .no_twin = 1,
    .impls = DOT_IMPLS,
    .nimpls = COUNT(DOT_IMPLS),
};

const cb_module *cb_module_entry(void)
{
    static const cb_kernel *const kernels[] = {&FMA, &DOT, &cb__peak_mma};
    static const cb_module module = {CB_KERNEL_ABI, sizeof(cb_kernel), kernels, COUNT(kernels)};
    return &module;
}
