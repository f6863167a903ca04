/* skeleton.c: a kernel of your own, as coldbench wants it. y = act(a*x + b) over n floats.
 *
 *     cc -O3 -shared -fPIC -I include -o scale_add.so examples/skeleton.c
 *     coldbench run --kernel ./scale_add.so scale_add --shape 1000000
 *     coldbench run --kernel ./scale_add.so scale_add --shape 16777216 --device cuda:0
 *
 * Copy it and change it from top to bottom. Two things make a kernel: the *definition* (what is
 * computed, on which data, how exactly) and one or more *implementations* (code that claims to do
 * it). coldbench compares every implementation with the definition before it prints a time.
 */
#include "coldbench/kernel.h"

/* The shape: what a user writes after --shape, left to right. coldbench refuses values that are not
 * a positive multiple of the third field or exceed the fourth, so no code below has to. */
static const cb_dim dims[] = {
    {"n", "elements of x and y", 1, INT64_C(1) << 38},
};

/* Parameters belong to the definition: another `act` is another result. On the command line:
 * scale_add@act=relu. The value that code sees is the index of the word. */
enum { ACT_NONE, ACT_RELU };
static const char *const act_words[] = {"none", "relu", NULL};
static const cb_choice params[] = {
    {.name = "act", .help = "what is applied to the sum", .words = act_words, .preset = ACT_NONE},
};

/* Operands, and the roles that decide how they are treated: a weight or a stream is rotated through
 * distinct copies when the measurement is cold, an input stays where it is, an output is poisoned
 * and guarded before the launches that are verified. lo and hi: values that would not stand out,
 * poison is drawn from them. */
enum { X, COEF, Y, OPERANDS };
static const cb_operand operands[OPERANDS] = {
    {"x", CB_STREAM, CB_F32, "n", -1, 1},
    {"coef", CB_INPUT, CB_F32, "a, b", -1, 1},
    {"y", CB_OUTPUT, CB_F32, "n", -2, 2},
};

static uint64_t bytes(const cb_problem *problem, int operand)
{
    return operand == COEF ? 2 * sizeof(float) : (uint64_t)problem->shape[0] * sizeof(float);
}

/* What one launch cannot avoid: each distinct byte once. The twin that your kernel is held against
 * moves exactly this much. */
static void cost(const cb_problem *problem, cb_cost *out)
{
    double n = (double)problem->shape[0];
    out->bytes_read = bytes(problem, X) + bytes(problem, COEF);
    out->bytes_written = bytes(problem, Y);
    out->flops = 2 * n;
}

/* The data, from the counter-based generator: element i of (seed, operand, set) is the same on
 * every machine. `part` of `parts` is this call's share; the parts run in parallel. */
static void fill(const cb_problem *problem, uint64_t seed, int operand, uint64_t set, void *logical,
                 int part, int parts)
{
    uint64_t count = bytes(problem, operand) / sizeof(float);
    uint64_t key = cb_random_key(seed, (uint64_t)operand, set);
    float *element = logical;
    uint64_t end = count * ((uint64_t)part + 1) / (uint64_t)parts;
    for (uint64_t i = count * (uint64_t)part / (uint64_t)parts; i < end; i++)
        element[i] = 2 * cb_random_f32(cb_random_word(key, i)) - 1;
}

/* The truth, in f64, and how far an honest f32 implementation may be from it. Here: one rounding of
 * the product and one of the sum, each at most u = 2^-24 of what it rounds, so u * (|a*x| + |a*x +
 * b|)
 * <= 2u * (|a*x| + |b|), and a little more for what was rounded before. Too wide a bound hides
 * bugs; too narrow a one accuses a fused multiply-add. relu moves no error up. */
static void reference(const cb_problem *problem, const void *const *logical, int operand,
                      uint64_t first, uint64_t count, double *value, double *bound)
{
    (void)operand; /* Y is the only output */
    const double unit = 1.0 / (1 << 24);
    const float *x = logical[X], *coef = logical[COEF];
    for (uint64_t i = 0; i < count; i++) {
        double product = (double)coef[0] * (double)x[first + i], b = (double)coef[1];
        double sum = product + b;
        value[i] = problem->params[0] == ACT_RELU && sum < 0 ? 0 : sum;
        bound[i] = 2.01 * unit * ((product < 0 ? -product : product) + (b < 0 ? -b : b));
    }
}

/* Tunables belong to an implementation: they change the time, never the result:
 * scale_add/plain:chunk=4096 sets one. */
static const int64_t chunk_values[] = {1024, 4096, 16384};
static const cb_choice tunables[] = {
    {.name = "chunk",
     .help = "elements a worker takes at a time",
     .values = chunk_values,
     .count = 3,
     .preset = 4096},
};

/* One worker's share of one launch. It runs on `workers` threads at once; they have started
 * together and the launch ends when all have returned. Nothing here may allocate, print or lock:
 * this is what is timed. Return 0, or any code of yours if the launch could not be done. */
static int run(const cb_launch *launch)
{
    int64_t n = launch->problem.shape[0], chunk = launch->tunables[0];
    const float *x = launch->operands[X], *coef = launch->operands[COEF];
    float *y = launch->operands[Y];
    float a = coef[0], b = coef[1];
    float least = launch->problem.params[0] == ACT_RELU ? 0 : -3.0e38f;
    for (int64_t at = launch->worker * chunk; at < n; at += launch->workers * chunk) {
        int64_t end = at + chunk < n ? at + chunk : n;
        for (int64_t i = at; i < end; i++) {
            float sum = a * x[i] + b;
            y[i] = sum < least ? least : sum;
        }
    }
    return 0;
}

/* ---- the same for NVIDIA GPUs; leave it out where you have no such code ---- */

/* CUDA C as text: one piece, no header of a vendor's. coldbench compiles it for the device that is
 * measured, when it is measured, and keeps the result on disk. The entry takes every operand in the
 * order of the table, then every dimension. Parameters and tunables are macros: CB_ACT is 0 or 1,
 * CB_THREADS 256. */
static const char cuda_source[] =
    "extern \"C\" __global__ __launch_bounds__(CB_THREADS)\n"
    "void scale_add(const float *x, const float *coef, float *y, long long n)\n"
    "{\n"
    "    const float a = coef[0], b = coef[1];\n"
    "    for (long long i = blockIdx.x * (long long)CB_THREADS + threadIdx.x; i < n;\n"
    "         i += gridDim.x * (long long)CB_THREADS) {\n"
    "        const float sum = a * x[i] + b;\n"
    "        y[i] = CB_ACT && sum < 0 ? 0 : sum;\n"
    "    }\n"
    "}\n";

static const int64_t thread_values[] = {128, 256, 512};
static const int64_t block_values[] = {2, 4, 8, 16};
enum { THREADS, BLOCKS };
static const cb_choice cuda_tunables[] = {
    {.name = "threads",
     .help = "threads a block",
     .values = thread_values,
     .count = 3,
     .preset = 256},
    {.name = "blocks",
     .help = "blocks a multiprocessor, at most",
     .values = block_values,
     .count = 4,
     .preset = 8},
};

/* How many threads run one launch. Not 0: this shape cannot be launched. */
static int geometry(const cb_problem *problem, const int64_t *tuned, int processors,
                    cb_geometry *out)
{
    int64_t needed = (problem->shape[0] + tuned[THREADS] - 1) / tuned[THREADS];
    int64_t most = tuned[BLOCKS] * processors;
    *out = (cb_geometry){
        {(uint32_t)(needed < most ? needed : most), 1, 1}, {(uint32_t)tuned[THREADS], 1, 1}, 0};
    return 0;
}

/* 75: it runs from compute capability 7.5 on. */
static const cb_device_code cuda_code = {cuda_source, "scale_add", 75, geometry, 0};

/* Implementations, best first. `isa` says what the processor must have; one that lacks it is never
 * offered yours. Where a weight has to be repacked, packed_bytes and prepare do it. */
static const cb_impl impls[] = {
    {.name = "cuda",
     .help = "one loop over the grid",
     .isa = CB_ISA_CUDA,
     .tunables = cuda_tunables,
     .ntunables = 2,
     .device = &cuda_code},
    {.name = "plain",
     .help = "one loop, as the compiler vectorises it",
     .isa = CB_ISA_PORTABLE,
     .tunables = tunables,
     .ntunables = 1,
     .run = run},
};

static const cb_kernel scale_add = {
    .name = "scale_add",
    .summary = "scales and shifts a stream (example)",
    .formula = "y[i] = act(a * x[i] + b)",
    .dims = dims,
    .ndims = 1,
    .params = params,
    .nparams = 1,
    .operands = operands,
    .noperands = OPERANDS,
    .bytes = bytes,
    .cost = cost,
    .fill = fill,
    .reference = reference,
    .impls = impls,
    .nimpls = 2,
};

/* The one symbol that coldbench looks for. */
const cb_module *cb_module_entry(void)
{
    static const cb_kernel *const kernels[] = {&scale_add};
    static const cb_module module = {CB_KERNEL_ABI, sizeof(cb_kernel), kernels, 1};
    return &module;
}
