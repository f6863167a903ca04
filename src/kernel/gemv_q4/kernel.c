/* kernel.c: the definition of gemv_q4 and its implementations. */
#include <inttypes.h>
#include <stdio.h>

#include "panel.h"

static const cb_dim dims[GEMV_DIMS] = {
    {"rows", "rows of W, outputs", 1, INT64_C(1) << 24},
    {"cols", "columns of W, length of x", GEMV_GROUP, INT64_C(1) << 24},
};

static const char *const act_words[] = {"f32", "q8", "bf16", NULL};
static const int64_t token_values[] = {1, 2};
static const cb_choice params[GEMV_PARAMS] = {
    {.name = "act",
     .help = "activations: f32, q8 (int8 with an f32 scale per 32), or bf16",
     .words = act_words,
     .preset = GEMV_ACT_F32},
    {.name = "tokens",
     .help = "vectors multiplied at once",
     .values = token_values,
     .count = 2,
     .preset = 1},
};

static const cb_operand operands[GEMV_OPERANDS] = {
    {"w", CB_WEIGHT, CB_U8,
     "[rows][cols/2]: byte j of a row holds q of column 2j in its low nibble, of 2j+1 in its high",
     0, 255},
    {"w_scale", CB_WEIGHT, CB_F16, "[rows][cols/32]: 0.001 to 0.02, one in eight negative", -0.02,
     0.02},
    {"x", CB_INPUT, CB_F32, "[tokens][cols]: in [-1, 1); act=f32 only", -1, 1},
    {"xq", CB_INPUT, CB_I8, "[tokens][cols]: -127 to 127; act=q8 only", -127, 127},
    {"x_scale", CB_INPUT, CB_F32, "[tokens][cols/32]: 0.004 to 0.012; act=q8 only", 0.004, 0.012},
    {"xb", CB_INPUT, CB_BF16, "[tokens][cols]: in [-1, 1]; act=bf16 only", -1, 1},
    {"y", CB_OUTPUT, CB_F32, "[rows][tokens]", -4, 4},
};

static int check(const cb_problem *problem, char *why, size_t why_bytes)
{
    const int64_t max = INT64_C(1) << 40;
    int64_t rows = problem->shape[GEMV_ROWS], cols = problem->shape[GEMV_COLS];
    if (rows <= max / cols)
        return 0;
    snprintf(why, why_bytes,
             "rows * cols must be at most 2^40 = %" PRId64 ", not %" PRId64 " * %" PRId64
             " = %" PRId64,
             max, rows, cols, rows * cols);
    return 1;
}

static void cost(const cb_problem *problem, cb_cost *out)
{
    out->bytes_read = 0;
    for (int operand = 0; operand < GEMV_Y; operand++)
        out->bytes_read += gemv_q4__bytes(problem, operand);
    out->bytes_written = gemv_q4__bytes(problem, GEMV_Y);
    out->flops = 2.0 * (double)problem->shape[GEMV_ROWS] * (double)problem->shape[GEMV_COLS] *
                 (double)problem->params[GEMV_TOKENS];
}

static const int64_t block_values[] = {1, 2, 4, 8};
static const int64_t grain_values[] = {0, 32, 128, 512};

static const int64_t prefetch_values[] = {0, 1024, 2048, 4096, 8192, 16384, 32768};

#define TUNABLES(block_preset, prefetch_preset)                                                    \
    {                                                                                              \
        {.name = "block_rows",                                                                     \
         .help = "rows packed and walked together, sharing the loads of x",                        \
         .values = block_values,                                                                   \
         .count = 4,                                                                               \
         .preset = (block_preset)},                                                                \
            {.name = "grain_rows",                                                                 \
             .help = "rows dealt to the workers in turn; 0: one contiguous share each",            \
             .values = grain_values,                                                               \
             .count = 4,                                                                           \
             .preset = 0},                                                                         \
            {.name = "prefetch",                                                                   \
             .help = "bytes of w fetched ahead; 0: what is next, at once",                         \
             .values = prefetch_values,                                                            \
             .count = 7,                                                                           \
             .preset = (prefetch_preset)},                                                         \
    }

static const cb_choice tunables_portable[GEMV_TUNABLES] = TUNABLES(4, 0);

#if CB_X86
/* Presets: best at 14336x4096 by the median cold ratio to a plain read of the same bytes, two
 * threads; Zen 4, 2-core VM, 2026-11-29. What computes much on each byte needs w fetched far ahead:
 * avx512fixed had 0.83 to 0.92 with prefetch=0 where it had 0.96 to 0.99 with 16384, and 0.65
 * against 0.83 while the memory gave 55 GB/s. avx512vnni had 0.97 with 0 and 0.86 with 16384. */
static const cb_choice tunables_avx2[GEMV_TUNABLES] = TUNABLES(8, 16384);
static const cb_choice tunables_avx512[GEMV_TUNABLES] = TUNABLES(8, 16384);
static const cb_choice tunables_avx512fixed[GEMV_TUNABLES] = TUNABLES(4, 16384);
static cb_choice tunables_avx512vnni[GEMV_TUNABLES] = TUNABLES(8, 0);

/* Zen 4 fetches well by itself, and prefetching keeps it from that; Emerald Rapids, 16 threads,
 * cold 14336x4096, same day: 0.89 and 0.93 with 0, 0.96 with 8192. */
static void presets_of_this_processor(void)
{
    __builtin_cpu_init();
    if (__builtin_cpu_is("intel"))
        tunables_avx512vnni[GEMV_PREFETCH].preset = 8192;
}

static int covers_f32(const cb_problem *problem)
{
    return problem->params[GEMV_ACT] == GEMV_ACT_F32;
}

static int covers_q8(const cb_problem *problem)
{
    return problem->params[GEMV_ACT] == GEMV_ACT_Q8;
}

static int covers_f32_q8(const cb_problem *problem)
{
    return covers_f32(problem) || covers_q8(problem);
}
#endif

/* cuda.cu */

extern const char cb__cuda_source[];

static const int64_t cuda_block_values[] = {16, 32};
static const int64_t cuda_warp_values[] = {4, 8, 16};
static const int64_t cuda_load_values[] = {1, 2, 3}, cuda_ring_values[] = {1, 2, 3, 4};
static const int64_t cuda_stay_values[] = {1, 2, 4, 8};

#define CUDA_TUNABLES(ahead, ahead_help, ahead_values, ahead_preset, stay_preset)                  \
    {                                                                                              \
        {.name = "block_rows",                                                                     \
         .help = "rows that a warp takes together, sharing the loads of x",                        \
         .values = cuda_block_values,                                                              \
         .count = 2,                                                                               \
         .preset = 16},                                                                            \
            {.name = "warps",                                                                      \
             .help = "warps of a block, which share its rows",                                     \
             .values = cuda_warp_values,                                                           \
             .count = 3,                                                                           \
             .preset = 16},                                                                        \
            {.name = (ahead),                                                                      \
             .help = (ahead_help),                                                                 \
             .values = (ahead_values),                                                             \
             .count = sizeof(ahead_values) / sizeof *(ahead_values),                               \
             .preset = (ahead_preset)},                                                            \
            {.name = "blocks",                                                                     \
             .help = "blocks that stay on a multiprocessor",                                       \
             .values = cuda_stay_values,                                                           \
             .count = 4,                                                                           \
             .preset = (stay_preset)},                                                             \
    }

/* Presets: docs/results/gemv-q4-cuda.md. */
static const cb_choice tunables_cuda[GEMV_CUDA_TUNABLES] = CUDA_TUNABLES(
    "loads", "steps of 256 columns that a warp loads ahead, in registers", cuda_load_values, 1, 2);
static const cb_choice tunables_cuda_bulk[GEMV_CUDA_TUNABLES] =
    CUDA_TUNABLES("ring", "steps of 256 columns that a warp has on their way to shared memory",
                  cuda_ring_values, 2, 1);

static const cb_device_code cuda = {.source = cb__cuda_source,
                                    .entry = "gemv_q4",
                                    .least = 75,
                                    .geometry = gemv_q4__cuda_geometry,
                                    .overlaps = 1};
static const cb_device_code cuda_bulk = {.source = cb__cuda_source,
                                         .entry = "gemv_q4",
                                         .least = 90,
                                         .geometry = gemv_q4__cuda_bulk_geometry,
                                         .overlaps = 1};

static const cb_impl impls[] = {
#if CB_X86
    {.name = "avx512fixed",
     .help = "512-bit byte dot products, exact; act=f32 only, x in fixed point of 30 bits and "
             "sign per group",
     .isa = CB_ISA_AVX512_VNNI,
     .tunables = tunables_avx512fixed,
     .ntunables = GEMV_TUNABLES,
     .covers = covers_f32,
     .packed_bytes = gemv_q4__panel16_bytes,
     .prepare = gemv_q4__panel16_prepare,
     .run = gemv_q4__run_avx512vnni},
    {.name = "avx512vnni",
     .help = "512-bit byte dot products, exact; act=q8 only",
     .isa = CB_ISA_AVX512_VNNI,
     .tunables = tunables_avx512vnni,
     .ntunables = GEMV_TUNABLES,
     .covers = covers_q8,
     .packed_bytes = gemv_q4__panel16_bytes,
     .prepare = gemv_q4__panel16_prepare,
     .run = gemv_q4__run_avx512vnni},
    {.name = "avx512",
     .help = "512-bit dot products of 16-bit pairs, exact; x as in avx512fixed",
     .isa = CB_ISA_AVX512,
     .tunables = tunables_avx512,
     .ntunables = GEMV_TUNABLES,
     .covers = covers_f32_q8,
     .packed_bytes = gemv_q4__panel16_bytes,
     .prepare = gemv_q4__panel16_prepare,
     .run = gemv_q4__run_avx512},
    {.name = "avx2",
     .help = "256-bit dot products of 16-bit pairs, exact; x as in avx512fixed",
     .isa = CB_ISA_AVX2,
     .tunables = tunables_avx2,
     .ntunables = GEMV_TUNABLES,
     .covers = covers_f32_q8,
     .packed_bytes = gemv_q4__panel8_bytes,
     .prepare = gemv_q4__panel8_prepare,
     .run = gemv_q4__run_avx2},
#endif
    {.name = "portable",
     .help = "plain C",
     .isa = CB_ISA_PORTABLE,
     .tunables = tunables_portable,
     .ntunables = GEMV_PREFETCH, /* all but that one */
     .packed_bytes = gemv_q4__packed_bytes,
     .prepare = gemv_q4__prepare,
     .run = gemv_q4__run_portable},
    {.name = "cuda_bulk",
     .help = "tensor cores on bytes, weights copied to shared memory a step at a time; from 9.0",
     .isa = CB_ISA_CUDA,
     .tunables = tunables_cuda_bulk,
     .ntunables = GEMV_CUDA_TUNABLES,
     .packed_bytes = gemv_q4__cuda_packed_bytes,
     .prepare = gemv_q4__cuda_prepare,
     .device = &cuda_bulk},
    {.name = "cuda",
     .help = "exact byte dot products in tensor cores; x of f32 and bf16 in fixed point of 29 bits "
             "and sign per group",
     .isa = CB_ISA_CUDA,
     .tunables = tunables_cuda,
     .ntunables = GEMV_CUDA_TUNABLES,
     .packed_bytes = gemv_q4__cuda_packed_bytes,
     .prepare = gemv_q4__cuda_prepare,
     .device = &cuda},
};

static const cb_kernel gemv_q4 = {
    .name = "gemv_q4",
    .summary = "y = W x, W of 4-bit integers with an f16 scale per 32 columns",
    .formula = "y[r][t] = sum over c of w_scale[r][c/32] * (q[r][c] - 8) * a[t][c], q in 0..15; "
               "act=f32: a = x[t][c]; act=q8: a = x_scale[t][c/32] * xq[t][c]; act=bf16: "
               "a = xb[t][c]",
    .dims = dims,
    .ndims = GEMV_DIMS,
    .params = params,
    .nparams = GEMV_PARAMS,
    .operands = operands,
    .noperands = GEMV_OPERANDS,
    .check = check,
    .bytes = gemv_q4__bytes,
    .cost = cost,
    .fill = gemv_q4__fill,
    .reference = gemv_q4__reference,
    .rotates = "rows",
    .impls = impls,
    .nimpls = sizeof impls / sizeof impls[0],
};

static const cb_kernel *const kernels[] = {&gemv_q4};
static const cb_module module = {CB_KERNEL_ABI, sizeof(cb_kernel), kernels, 1};

const cb_module *cb_module_entry(void)
{
#if CB_X86
    presets_of_this_processor();
#endif
    return &module;
}
