/* chase: dependent loads, each of which says where the next one is: the latency of memory.
 */
#include "chase.h"

static const cb_dim DIMS[] = {
    {"bytes", "size of the chain, in whole pages of 4096 bytes", CB__CHASE_PAGE, INT64_C(1) << 40},
};

static const char *const PATTERNS[] = {"random", "local", NULL};

static const cb_choice PARAMS[] = {
    {.name = "pattern",
     .help = "random: all lines in random order; local: the lines of a page in random order, then "
             "another page",
     .words = PATTERNS,
     .preset = CHASE_RANDOM},
    {.name = "steps",
     .help = "loads of a launch",
     .min = 1,
     .max = INT64_C(1) << 26,
     .preset = 65536},
    {.name = "start",
     .help = "the hop at which a launch begins, modulo the number of lines",
     .min = 0,
     .max = INT64_C(1) << 40,
     .preset = 0},
    {.name = "lead",
     .help = "hops before the start, all at most, that are read first, many at once: caches are "
             "then as "
             "a walk leaves them",
     .min = 0,
     .max = INT64_C(1) << 30,
     .preset = 0},
    {.name = "place",
     .help = "who walks: 0: the first worker, or any multiprocessor of a GPU; N: the Nth of them, "
             "modulo their number",
     .min = 0,
     .max = 65536,
     .preset = 0},
};

static const cb_operand TABLE[CHASE_OPERANDS] = {
    {"chain", CB_STREAM, CB_U64,
     "bytes/64 lines of 8 words: the byte offset of the next line, then random ones", 0,
     1099511627776.0},
    {"end", CB_OUTPUT, CB_U64, "one word", 0, 1099511627776.0},
};

static uint64_t bytes(const cb_problem *problem, int operand)
{
    return operand == CHASE_CHAIN ? (uint64_t)problem->shape[0] : sizeof(uint64_t);
}

static void cost(const cb_problem *problem, cb_cost *out)
{
    uint64_t lines = (uint64_t)problem->shape[0] / CB__CHASE_LINE;
    uint64_t steps = (uint64_t)problem->params[CHASE_STEPS];
    *out = (cb_cost){(steps < lines ? steps : lines) * CB__CHASE_LINE, sizeof(uint64_t), 0};
}

/* A part is a range of hops, so its lines lie all over the chain; no two parts share one. */
static void fill(const cb_problem *problem, uint64_t seed, int operand, uint64_t set, void *logical,
                 int part, int parts)
{
    uint64_t key = cb_random_key(seed, (uint64_t)operand, set);
    cb__chase_order order = cb__chase_order_of(problem, cb_random_word(key, CB__CHASE_KEY));
    uint64_t hop = order.lines * (uint64_t)part / (uint64_t)parts;
    uint64_t end = order.lines * ((uint64_t)part + 1) / (uint64_t)parts;
    uint64_t *words = logical;
    uint64_t line = hop < end ? cb__chase_line(&order, hop) : 0;
    for (; hop < end; hop++) {
        uint64_t next = cb__chase_line(&order, hop + 1 < order.lines ? hop + 1 : 0);
        uint64_t first = line * CB__CHASE_WORDS;
        words[first + CB__CHASE_NEXT] = next * CB__CHASE_LINE;
        for (uint64_t i = first + CB__CHASE_KEY; i < first + CB__CHASE_WORDS; i++)
            words[i] = cb_random_word(key, i);
        line = next;
    }
}

static void reference(const cb_problem *problem, const void *const *logical, int operand,
                      uint64_t first, uint64_t count, double *value, double *bound)
{
    (void)operand;
    (void)first; /* one element: 0 */
    if (count == 0)
        return;
    const uint64_t *words = logical[CHASE_CHAIN];
    cb__chase_order order = cb__chase_order_of(problem, words[CB__CHASE_KEY]);
    uint64_t hops = (uint64_t)problem->params[CHASE_START] + (uint64_t)problem->params[CHASE_STEPS];
    value[0] = (double)(cb__chase_line(&order, hops % order.lines) * CB__CHASE_LINE);
    bound[0] = 0;
}

extern const char cb__cuda_source[];

static const char *const CACHES[] = {"all", "l2", NULL};
static const cb_choice CUDA_TUNABLES[] = {
    {.name = "cache",
     .help = "all: loads are kept in every cache; l2: in all but the first",
     .words = CACHES,
     .preset = 0},
};

enum { CUDA_THREADS = 1024 }; /* of which one walks; THREADS of cuda.cu */

static int cuda_geometry(const cb_problem *problem, const int64_t *tunables, int processors,
                         cb_geometry *out)
{
    (void)tunables;
    /* A multiprocessor is reached by a block on each of them. */
    uint32_t blocks = problem->params[CHASE_PLACE] ? (uint32_t)processors : 1;
    *out = (cb_geometry){{blocks, 1, 1}, {CUDA_THREADS, 1, 1}, 0};
    return 0;
}

static const cb_device_code CUDA = {
    .source = cb__cuda_source, .entry = "chase", .least = 75, .geometry = cuda_geometry};

static const cb_impl IMPLS[] = {
    {.name = "portable", .help = "one load after the other", .run = cb__chase_portable},
    {.name = "cuda",
     .help = "one thread",
     .isa = CB_ISA_CUDA,
     .tunables = CUDA_TUNABLES,
     .ntunables = 1,
     .device = &CUDA},
};

static const cb_kernel KERNEL = {
    .name = "chase",
    .summary = "follows a chain through memory on one worker: the time of a step is the latency",
    .formula = "end = next(next(... line of hop start ...)), steps times; one cycle through all "
               "lines",
    .dims = DIMS,
    .ndims = 1,
    .params = PARAMS,
    .nparams = sizeof PARAMS / sizeof PARAMS[0],
    .operands = TABLE,
    .noperands = CHASE_OPERANDS,
    .bytes = bytes,
    .cost = cost,
    .fill = fill,
    .reference = reference,
    .no_twin = 1, /* bandwidth is no measure of it */
    .impls = IMPLS,
    .nimpls = (int)(sizeof IMPLS / sizeof IMPLS[0]),
};

const cb_module *cb_module_entry(void)
{
    static const cb_kernel *const kernels[] = {&KERNEL};
    static const cb_module module = {CB_KERNEL_ABI, sizeof(cb_kernel), kernels, 1};
    return &module;
}
