/* read_define.h: the definition of twin_read, which fault_read shares. Its first parameter is
 * `passes`.
 */
#ifndef COLDBENCH_KERNEL_TWIN_READ_DEFINE_H
#define COLDBENCH_KERNEL_TWIN_READ_DEFINE_H

#include "kernel/twin/define.h"
#include "kernel/twin/twin.h"

#define CB__READ_FORMULA                                                                           \
    "checksum = xor of the words of src, taken passes times: 0 where that is even"

#define CB__READ_PASSES                                                                            \
    {                                                                                              \
        .name = "passes", .help = "how many times one launch goes over the set", .min = 1,         \
        .max = 4096, .preset = 1,                                                                  \
    }

static const cb_operand CB__READ_TABLE[READ_OPERANDS] = {
    {"src", CB_STREAM, CB_U32, "bytes/4 words", 0, 4294967295.0},
    {"checksum", CB_OUTPUT, CB_U32, "one word", 0, 4294967295.0},
    {"partial", CB_SCRATCH, CB_U32, "a line a worker and one that counts them; starts as zero", 0,
     4294967295.0},
};

static inline uint64_t cb__read_bytes(const cb_problem *problem, int operand)
{
    const uint64_t bytes[READ_OPERANDS] = {(uint64_t)problem->shape[0], sizeof(uint32_t),
                                           sizeof(cb__partials)};
    return bytes[operand];
}

static inline void cb__read_cost(const cb_problem *problem, cb_cost *cost)
{
    *cost = (cb_cost){(uint64_t)problem->shape[0], sizeof(uint32_t), 0};
}

static inline void cb__read_fill(const cb_problem *problem, uint64_t seed, int operand,
                                 uint64_t set, void *logical, int part, int parts)
{
    cb__fill_words(seed, operand, set, logical, cb__read_bytes(problem, operand), part, parts);
}

static inline void cb__read_reference(const cb_problem *problem, const void *const *logical,
                                      int operand, uint64_t first, uint64_t count, double *value,
                                      double *bound)
{
    (void)operand;
    (void)first; /* one element: 0 */
    if (count == 0)
        return;
    uint32_t once = cb__reference_checksum(logical[READ_SRC], (uint64_t)problem->shape[0]);
    value[0] = problem->params[0] % 2 == 0 ? 0 : (double)once;
    bound[0] = 0;
}

#endif
