/* A kernel module with one seeded fault, SEED; see tests/test_module.c. SEED_NONE is the clean
 * twin. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coldbench/kernel.h"

enum {
    SEED_NONE,
    SEED_ABI,
    SEED_STRUCT_BYTES,
    SEED_NO_ENTRY,
    SEED_NULL_TABLE,
    SEED_NO_KERNELS,
    SEED_NO_KERNEL_TABLE,
    SEED_NO_REFERENCE,
    SEED_BAD_NAME,
    SEED_TAKEN_NAME,
    SEED_TWICE,
    SEED_NO_OUTPUT,
    SEED_NO_IMPLS,
    SEED_NO_RUN,
    SEED_NO_PREPARE,
    SEED_ROTATES_NOTHING,
    SEED_PRESET_WORD,
    SEED_PRESET_VALUE,
    SEED_PRESET_RANGE,
    SEED_RANGE_NAN,
    SEED_RANGE_ORDER,
    SEED_BOTH_CHOICES,
    SEED_MANY_TUNABLES,
    SEED_DIM_ZERO,
    SEED_MIXED_ISA,
    SEED_CHECK_CRASHES,
    SEED_CHECK_HANGS,
    SEED_LOAD_FAULTS,
    SEED_LOAD_ABORTS,
    SEED_LOAD_HANGS,
    SEED_LOAD_HANGS_DEAF,
    SEED_LOAD_EXITS,
    SEED_LOAD_FORKS,
    SEED_ENTRY_FAULTS
};

/* ---- what happens as it is loaded ---- */

__attribute__((constructor)) static void load(void)
{
    switch (SEED) {
    case SEED_LOAD_FAULTS:
        raise(SIGSEGV);
        break;
    case SEED_LOAD_ABORTS:
        abort();
    case SEED_LOAD_EXITS:
        _exit(7);
    case SEED_LOAD_HANGS_DEAF:
        signal(SIGALRM, SIG_IGN);
        for (;;)
            pause();
    case SEED_LOAD_HANGS:
        for (;;)
            pause();
    case SEED_LOAD_FORKS: /* a child of its own that keeps every descriptor open */
        if (fork() == 0) {
            sleep(5);
            _exit(0);
        }
        raise(SIGSEGV);
        break;
    default:
        break;
    }
}

/* ---- y = x ---- */

static const cb_dim dims[] = {{"n", "elements", SEED == SEED_DIM_ZERO ? 0 : 1, 1 << 20}};
static const char *const words[] = {"a", "b", NULL};
static const int64_t values[] = {1, 2};
static const cb_choice params[] = {
    {.name = "word", .help = "h", .words = words, .preset = SEED == SEED_PRESET_WORD ? 2 : 0},
    {.name = "value",
     .help = "h",
     .words = SEED == SEED_BOTH_CHOICES ? words : NULL,
     .values = values,
     .count = 2,
     .preset = SEED == SEED_PRESET_VALUE ? 3 : 1},
    {.name = "range",
     .help = "h",
     .min = 1,
     .max = 9,
     .preset = SEED == SEED_PRESET_RANGE ? 10 : 1},
};
static const cb_operand operands[] = {
    {"x", CB_STREAM, CB_F32, "[n]",
     SEED == SEED_RANGE_NAN     ? __builtin_nan("")
     : SEED == SEED_RANGE_ORDER ? 2
                                : 0,
     1},
    {"y", SEED == SEED_NO_OUTPUT ? CB_SCRATCH : CB_OUTPUT, CB_F32, "[n]", 0, 1},
};

static int check(const cb_problem *p, char *why, size_t size)
{
    (void)p, (void)why, (void)size;
    if (SEED == SEED_CHECK_CRASHES)
        raise(SIGSEGV);
    for (; SEED == SEED_CHECK_HANGS;)
        pause();
    return 0;
}

static uint64_t bytes(const cb_problem *p, int operand)
{
    (void)operand;
    return 4 * (uint64_t)p->shape[0];
}

static void cost(const cb_problem *p, cb_cost *c)
{
    c->bytes_read = c->bytes_written = bytes(p, 0);
    c->flops = 0;
}

static void fill(const cb_problem *p, uint64_t seed, int operand, uint64_t set, void *logical,
                 int part, int parts)
{
    (void)p, (void)seed, (void)operand, (void)set, (void)logical, (void)part, (void)parts;
}

static void reference(const cb_problem *p, const void *const *logical, int operand, uint64_t first,
                      uint64_t count, double *value, double *bound)
{
    (void)p, (void)operand;
    for (uint64_t i = 0; i < count; i++) {
        value[i] = (double)((const float *)logical[0])[first + i];
        bound[i] = 0;
    }
}

static int run(const cb_launch *l)
{
    if (l->worker == 0)
        memcpy(l->operands[1], l->operands[0], 4 * (size_t)l->problem.shape[0]);
    return 0;
}

static uint64_t packed_bytes(const cb_problem *p, const int64_t *tunables, int operand)
{
    (void)tunables;
    return bytes(p, operand);
}

static int geometry(const cb_problem *p, const int64_t *tunables, int processors, cb_geometry *out)
{
    (void)p, (void)tunables, (void)processors;
    *out = (cb_geometry){{1, 1, 1}, {1, 1, 1}, 0};
    return 0;
}

static const cb_device_code code = {"", "entry", 75, geometry, 0};
static const cb_impl impls[] = {
    {.name = "plain",
     .help = "h",
     .isa = SEED == SEED_MIXED_ISA ? CB_ISA_CUDA | CB_ISA_AVX2 : 0,
     .device = SEED == SEED_MIXED_ISA ? &code : NULL,
     .ntunables = SEED == SEED_MANY_TUNABLES ? 99 : 0,
     .tunables = SEED == SEED_MANY_TUNABLES ? params : NULL,
     .packed_bytes = SEED == SEED_NO_PREPARE ? packed_bytes : NULL,
     .run = SEED == SEED_NO_RUN || SEED == SEED_MIXED_ISA ? NULL : run}};

static const cb_kernel kernel = {
    .name = SEED == SEED_BAD_NAME     ? "Not A Name"
            : SEED == SEED_TAKEN_NAME ? "gemv_q4"
                                      : "seeded",
    .summary = "y = x",
    .formula = "y[i] = x[i]",
    .dims = dims,
    .ndims = 1,
    .params = params,
    .nparams = 3,
    .operands = operands,
    .noperands = 2,
    .check = check,
    .bytes = bytes,
    .cost = cost,
    .fill = fill,
    .reference = SEED == SEED_NO_REFERENCE ? NULL : reference,
    .rotates = SEED == SEED_ROTATES_NOTHING ? "rows" : NULL,
    .impls = impls,
    .nimpls = SEED == SEED_NO_IMPLS ? 0 : 1,
};

static const cb_kernel *const kernels[] = {&kernel, &kernel};
static const cb_module module = {
    .abi = SEED == SEED_ABI ? CB_KERNEL_ABI + 1 : CB_KERNEL_ABI,
    .struct_bytes = sizeof(cb_kernel) - (SEED == SEED_STRUCT_BYTES ? 8 : 0),
    .kernels = SEED == SEED_NO_KERNEL_TABLE ? NULL : kernels,
    .nkernels = SEED == SEED_NO_KERNELS ? 0
                : SEED == SEED_TWICE    ? 2
                                        : 1,
};

#if SEED_HAS_ENTRY
const cb_module *cb_module_entry(void)
{
    if (SEED == SEED_ENTRY_FAULTS)
        raise(SIGSEGV);
    return SEED == SEED_NULL_TABLE ? NULL : &module;
}
#else
const cb_module *seeded_entry(void);
const cb_module *seeded_entry(void)
{
    return &module;
}
#endif
