/* Implementations with one seeded fault each, and their clean twin: y = W x in f32, small and
 * plain. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "coldbench/kernel.h"

enum { W, X, Y };

static const cb_dim dims[] = {{"rows", "rows of W", 1, 1 << 20},
                              {"cols", "columns of W", 1, 1 << 20}};

static const cb_operand operands[] = {
    {"w", CB_WEIGHT, CB_F32, "[rows][cols]", -1, 1},
    {"x", CB_INPUT, CB_F32, "[cols]", -1, 1},
    {"y", CB_OUTPUT, CB_F32, "[rows]", -8, 8},
};

static uint64_t bytes(const cb_problem *p, int operand)
{
    uint64_t rows = (uint64_t)p->shape[0], cols = (uint64_t)p->shape[1];
    return 4 * (operand == W ? rows * cols : operand == X ? cols : rows);
}

static void cost(const cb_problem *p, cb_cost *c)
{
    c->bytes_read = bytes(p, W) + bytes(p, X);
    c->bytes_written = bytes(p, Y);
    c->flops = 2.0 * (double)p->shape[0] * (double)p->shape[1];
}

static void fill(const cb_problem *p, uint64_t seed, int operand, uint64_t set, void *logical,
                 int part, int parts)
{
    float *to = logical;
    uint64_t n = bytes(p, operand) / 4, key = cb_random_key(seed, (uint64_t)operand, set);
    for (uint64_t i = n * (uint64_t)part / (uint64_t)parts;
         i < n * (uint64_t)(part + 1) / (uint64_t)parts; i++)
        to[i] = 2 * cb_random_f32(cb_random_word(key, i)) - 1;
}

static void reference(const cb_problem *p, const void *const *logical, int operand, uint64_t first,
                      uint64_t count, double *value, double *bound)
{
    const float *w = logical[W], *x = logical[X];
    uint64_t cols = (uint64_t)p->shape[1];
    (void)operand;
    for (uint64_t r = first; r < first + count; r++) {
        double sum = 0, size = 0;
        for (uint64_t c = cols; c-- > 0;) {
            sum += (double)w[r * cols + c] * (double)x[c];
            size += fabs((double)w[r * cols + c] * (double)x[c]);
        }
        value[r - first] = sum;
        /* One running sum: growth about sqrt(k), probabilistic (Higham and Mary 2019), times 4. */
        bound[r - first] = 4 * 0x1p-24 * sqrt((double)cols) * size;
    }
}

/* ---- one row, and what goes wrong ---- */

static float row(const cb_launch *l, int64_t r, int64_t from)
{
    const float *w = l->operands[W], *x = l->operands[X];
    int64_t cols = l->problem.shape[1];
    float sum = 0;
    for (int64_t c = from; c < cols; c++)
        sum += w[r * cols + c] * x[c];
    return sum;
}

static void rows(const cb_launch *l, int64_t from, int64_t to)
{
    float *y = l->operands[Y];
    for (int64_t r = from; r < to; r++)
        y[r] = row(l, r, 0);
}

static int clean(const cb_launch *l)
{
    int64_t n = l->problem.shape[0];
    rows(l, n * l->worker / l->workers, n * (l->worker + 1) / l->workers);
    return 0;
}

/* All faults are worker 0's, on all rows: which thread did it does not matter to a check. */
#define FAULT(fault, ...)                                                                          \
    static int fault(const cb_launch *l)                                                           \
    {                                                                                              \
        int64_t n = l->problem.shape[0];                                                           \
        float *y = l->operands[Y];                                                                 \
        (void)n, (void)y;                                                                          \
        if (l->worker != 0)                                                                        \
            return 0;                                                                              \
        __VA_ARGS__ return 0;                                                                      \
    }

FAULT(unwritten_tail, { rows(l, 0, n - 3); })
/* Right for the shape that is asked, not for others. */
FAULT(whole_fours, { rows(l, 0, n / 4 * 4); })
FAULT(never_written, {})
FAULT(past_end, {
    rows(l, 0, n);
    y[n] = 1;
})
FAULT(before_start, {
    rows(l, 0, n);
    y[-1] = 1;
})
FAULT(edits_weight, {
    rows(l, 0, n);
    ((float *)l->operands[W])[7] += 1;
})
FAULT(edits_input, {
    rows(l, 0, n);
    ((float *)l->operands[X])[0] = 0.25f;
})
FAULT(group_wrong, {
    rows(l, 0, n);
    y[n / 2] = row(l, n / 2, 32);
})
FAULT(not_a_number, {
    rows(l, 0, n);
    y[n - 1] = NAN;
})
FAULT(fewer_bits, {
    const float *w = l->operands[W], *x = l->operands[X];
    int64_t cols = l->problem.shape[1];
    for (int64_t r = 0; r < n; r++) {
        float sum = 0;
        for (int64_t c = 0; c < cols; c++) {
            uint32_t bits;
            memcpy(&bits, &x[c], 4);
            bits = (bits + 0x8000u) & 0xffff0000u; /* x as bf16 */
            float rounded;
            memcpy(&rounded, &bits, 4);
            sum += w[r * cols + c] * rounded;
        }
        y[r] = sum;
    }
})
FAULT(fails, { return 7; })
FAULT(crashes, { abort(); })
/* Only on the shape that is asked: other processes have been well. */
FAULT(crashes_here, {
    rows(l, 0, n);
    if (n == 96)
        abort();
})
FAULT(leaves, { _exit(0); })
FAULT(hangs, {
    for (volatile int forever = 1; forever;)
        ;
})
/* Writes to every descriptor it can find, the protocol's among them. */
FAULT(garbage, {
    rows(l, 0, n);
    for (int fd = 3; fd < 64; fd++)
        if (write(fd, "{]\n", 3) < 0)
            continue;
})
enum { TIRES_LATE = 520 }; /* some 470 launches come before the first timed block */

/* Right in the first launches, when they are looked at; later it stops writing. */
FAULT(tires, {
    static int launches;
    if (launches++ < 2 * 22)
        rows(l, 0, n);
    else
        rows(l, 0, n / 2);
})

/* And this one only when every slot has been written more than once. */
FAULT(tires_late, {
    static int launches;
    if (launches++ < TIRES_LATE)
        rows(l, 0, n);
})

/* ---- what one side of a comparison does to all, after some launches ---- */

enum { SOME = 60 };

#define LATER(fault, ...)                                                                          \
    FAULT(fault, {                                                                                 \
        static int launches;                                                                       \
        rows(l, 0, n);                                                                             \
        if (++launches == SOME) {                                                                  \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    })

LATER(closes, {
    for (int fd = 0; fd < 1024; fd++)
        close(fd);
})
LATER(edits_later, { ((float *)l->operands[W])[7] += 1; })
LATER(shortens, {
    for (int fd = 3; fd < 64; fd++)
        if (ftruncate(fd, 0) != 0)
            continue;
})
LATER(scribbles, {
    static const char page[4096] = {1};
    for (int fd = 3; fd < 64; fd++)
        if (write(fd, page, sizeof page) < 0)
            continue;
})
/* Speaks for its worker: of a fault that would be the machine's. */
LATER(pretends, {
    static const char line[] =
        "{\"type\":\"error\",\"status\":\"CB_NO_MEMORY\",\"message\":\"planted\"}\n";
    for (int fd = 3; fd < 64; fd++)
        if (write(fd, line, sizeof line - 1) < 0)
            continue;
})
LATER(aborts_at_exit, { atexit(abort); })
LATER(lets_go, { /* of a process in a session of its own */
                 if (fork() == 0) {
                     setsid();
                     sleep(60);
                     _exit(0);
                 }
})
FAULT(takes_descriptors, {
    struct rlimit none = {0};
    rows(l, 0, n);
    setrlimit(RLIMIT_NOFILE, &none);
})
FAULT(naps, {
    rows(l, 0, n);
    usleep(20000);
})

#define IMPL(fault)                                                                                \
    {                                                                                              \
        .name = #fault, .help = "seeded", .run = fault                                             \
    }
static const cb_impl impls[] = {
    IMPL(clean),         IMPL(unwritten_tail),    IMPL(whole_fours),
    IMPL(never_written), IMPL(past_end),          IMPL(before_start),
    IMPL(edits_weight),  IMPL(edits_input),       IMPL(group_wrong),
    IMPL(not_a_number),  IMPL(fewer_bits),        IMPL(fails),
    IMPL(crashes),       IMPL(crashes_here),      IMPL(leaves),
    IMPL(hangs),         IMPL(garbage),           IMPL(tires),
    IMPL(closes),        IMPL(edits_later),       IMPL(shortens),
    IMPL(scribbles),     IMPL(pretends),          IMPL(aborts_at_exit),
    IMPL(lets_go),       IMPL(takes_descriptors), IMPL(naps),
    IMPL(tires_late),
};

static const cb_kernel kernel = {
    .name = "faults",
    .summary = "y = W x in f32, with seeded faults",
    .formula = "y[r] = sum over c of w[r][c] * x[c]",
    .dims = dims,
    .ndims = 2,
    .operands = operands,
    .noperands = 3,
    .bytes = bytes,
    .cost = cost,
    .fill = fill,
    .reference = reference,
    .rotates = "rows",
    .impls = impls,
    .nimpls = sizeof impls / sizeof *impls,
};

/* ---- the same with another name for the output ---- */

static const cb_operand renamed_operands[] = {
    {"w", CB_WEIGHT, CB_F32, "[rows][cols]", -1, 1},
    {"x", CB_INPUT, CB_F32, "[cols]", -1, 1},
    {"z", CB_OUTPUT, CB_F32, "[rows]", -8, 8},
};

static const cb_kernel renamed = {
    .name = "renamed",
    .summary = "z = W x in f32",
    .formula = "z[r] = sum over c of w[r][c] * x[c]",
    .dims = dims,
    .ndims = 2,
    .operands = renamed_operands,
    .noperands = 3,
    .bytes = bytes,
    .cost = cost,
    .fill = fill,
    .reference = reference,
    .rotates = "rows",
    .impls = impls,
    .nimpls = 1,
};

/* ---- y = y + x, read and written: right only if every verified call finds y as it was ---- */

static const cb_dim length[] = {{"n", "elements", 1, 1 << 20}};
static const cb_operand sum_operands[] = {
    {"x", CB_STREAM, CB_F32, "[n]", -1, 1},
    {"y", CB_INOUT, CB_F32, "[n]", -1, 1},
};

static uint64_t sum_bytes(const cb_problem *p, int operand)
{
    (void)operand;
    return 4 * (uint64_t)p->shape[0];
}

static void sum_cost(const cb_problem *p, cb_cost *c)
{
    c->bytes_read = 8 * (uint64_t)p->shape[0];
    c->bytes_written = 4 * (uint64_t)p->shape[0];
    c->flops = (double)p->shape[0];
}

static void sum_fill(const cb_problem *p, uint64_t seed, int operand, uint64_t set, void *logical,
                     int part, int parts)
{
    float *to = logical;
    uint64_t n = (uint64_t)p->shape[0], key = cb_random_key(seed, (uint64_t)operand, set);
    for (uint64_t i = n * (uint64_t)part / (uint64_t)parts;
         i < n * (uint64_t)(part + 1) / (uint64_t)parts; i++)
        to[i] = 2 * cb_random_f32(cb_random_word(key, i)) - 1;
}

static void sum_reference(const cb_problem *p, const void *const *logical, int operand,
                          uint64_t first, uint64_t count, double *value, double *bound)
{
    const float *x = logical[0], *y = logical[1];
    (void)p, (void)operand;
    for (uint64_t i = first; i < first + count; i++) {
        value[i - first] = (double)x[i] + (double)y[i];
        bound[i - first] = 0x1p-24 * (fabs((double)x[i]) + fabs((double)y[i]));
    }
}

static int sum_clean(const cb_launch *l)
{
    const float *x = l->operands[0];
    float *y = l->operands[1];
    int64_t n = l->problem.shape[0];
    for (int64_t i = n * l->worker / l->workers; i < n * (l->worker + 1) / l->workers; i++)
        y[i] += x[i];
    return 0;
}

static int sum_short(const cb_launch *l)
{
    cb_launch less = *l;
    int64_t n = l->problem.shape[0] - 1;
    less.problem.shape = &n;
    return sum_clean(&less);
}

static const cb_impl sum_impls[] = {
    {.name = "clean", .help = "right", .run = sum_clean},
    {.name = "short", .help = "leaves the last element as it was", .run = sum_short},
};

static const cb_kernel sum = {
    .name = "inout_sum",
    .summary = "y = y + x",
    .formula = "y[i] = y[i] + x[i]",
    .dims = length,
    .ndims = 1,
    .operands = sum_operands,
    .noperands = 2,
    .bytes = sum_bytes,
    .cost = sum_cost,
    .fill = sum_fill,
    .reference = sum_reference,
    .impls = sum_impls,
    .nimpls = 2,
};

static const cb_kernel *const kernels[] = {&kernel, &sum, &renamed};
static const cb_module module = {CB_KERNEL_ABI, sizeof(cb_kernel), kernels, 3};

const cb_module *cb_module_entry(void)
{
    return &module;
}
