/* mma.c: products of matrices as tensor cores make them: tiles in registers, one after the other.
 * There is no code for CPUs: their ceilings are those of kernel.c.
 */
#include "peak.h"

enum { MMA_A, MMA_B, MMA_F32_RESULT, MMA_I32_RESULT, MMA_OPERANDS };
enum { MMA_BF16, MMA_TF32, MMA_S8 };
enum { TILE_M = 64, TILE_N = 256, DEPTH = 32, REPEATS = 512, STARTS = 256 };
enum { TILE = TILE_M * TILE_N };

extern const char cb__cuda_source[];

static const cb_dim DIMS[] = {
    {"tiles", "tiles of 64 x 256 results", 1, INT64_C(1) << 22},
};

static const char *const INPUTS[] = {"bf16", "tf32", "s8", NULL};

static const cb_choice PARAMS[] = {
    {.name = "inputs",
     .help = "the type of a and b in the products, which are added up in f32 (s8: i32)",
     .words = INPUTS,
     .preset = MMA_BF16},
};

static const cb_operand TABLE[MMA_OPERANDS] = {
    {"a", CB_INPUT, CB_I8, "64 x 32", -127, 127},
    {"b", CB_INPUT, CB_I8, "256 x 32", -127, 127},
    {"result_f32", CB_OUTPUT, CB_F32, "tiles x 64 x 256", -20000000, 20000000},
    {"result_i32", CB_OUTPUT, CB_I32, "tiles x 64 x 256", -20000000, 20000000},
};

static uint64_t bytes(const cb_problem *problem, int operand)
{
    uint64_t results = (uint64_t)problem->shape[0] * TILE * 4;
    int is_s8 = problem->params[0] == MMA_S8;
    const uint64_t sizes[MMA_OPERANDS] = {TILE_M * DEPTH, TILE_N * DEPTH, is_s8 ? 0 : results,
                                          is_s8 ? results : 0};
    return sizes[operand];
}

static void cost(const cb_problem *problem, cb_cost *out)
{
    *out = (cb_cost){(TILE_M + TILE_N) * DEPTH, (uint64_t)problem->shape[0] * TILE * 4,
                     2.0 * TILE * DEPTH * REPEATS * (double)problem->shape[0]};
}

/* Seven bits and a sign: bf16 and tf32 hold them, and toggle as with data of a model. */
static void fill(const cb_problem *problem, uint64_t seed, int operand, uint64_t set, void *logical,
                 int part, int parts)
{
    (void)parts;
    if (part != 0)
        return;
    uint64_t key = cb_random_key(seed, (uint64_t)operand, set);
    for (uint64_t i = 0; i < bytes(problem, operand); i++)
        ((int8_t *)logical)[i] = (int8_t)((int)(cb_random_word(key, i) % 255) - 127);
}

/* Exact in s8: below 2^31. In the others the products are exact, and a sum is rounded at most once
 * for four of them, to 24 bits or cut off there: 2^-23 of all that has been added, each time. */
static void reference(const cb_problem *problem, const void *const *logical, int operand,
                      uint64_t first, uint64_t count, double *value, double *bound)
{
    (void)problem;
    const int8_t *a = logical[MMA_A], *b = logical[MMA_B];
    const double rounding = operand == MMA_I32_RESULT ? 0 : DEPTH / 4 * REPEATS * 0x1p-23;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t row = (first + i) / TILE_N % TILE_M, column = (first + i) % TILE_N;
        int sum = 0, magnitude = 0;
        for (int j = 0; j < DEPTH; j++) {
            int product = a[row * DEPTH + (uint64_t)j] * b[column * DEPTH + (uint64_t)j];
            sum += product;
            magnitude += product < 0 ? -product : product;
        }
        double start = (double)((first + i) / TILE % STARTS);
        value[i] = start + REPEATS * (double)sum;
        bound[i] = rounding * (start + REPEATS * (double)magnitude);
    }
}

/* Two tiles a thread block; two blocks a processor, which take turns until no tile is left. */
static int geometry(const cb_problem *problem, const int64_t *tunables, int processors,
                    cb_geometry *out)
{
    (void)tunables;
    uint64_t pairs = ((uint64_t)problem->shape[0] + 1) / 2, most = 2 * (uint64_t)processors;
    *out = (cb_geometry){{(uint32_t)(pairs < most ? pairs : most), 1, 1}, {256, 1, 1}, 0};
    return 0;
}

static const cb_device_code CUDA = {
    .source = cb__cuda_source, .entry = "peak_mma", .least = 80, .geometry = geometry};

static const cb_impl IMPLS[] = {
    {.name = "cuda", .help = "tensor cores", .isa = CB_ISA_CUDA, .device = &CUDA},
};

const cb_kernel cb__peak_mma = {
    .name = "peak_mma",
    .summary = "products of matrices in tensor cores, as many as they take",
    .formula = "result[t][m][n] = t mod 256 + 512 * sum over j < 32 of a[m][j] * b[n][j]",
    .dims = DIMS,
    .ndims = 1,
    .params = PARAMS,
    .nparams = 1,
    .operands = TABLE,
    .noperands = MMA_OPERANDS,
    .bytes = bytes,
    .cost = cost,
    .fill = fill,
    .reference = reference,
    .no_twin = 1,
    .impls = IMPLS,
    .nimpls = 1,
};
