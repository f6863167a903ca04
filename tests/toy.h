/* toy.h: a small kernel for engine tests, as a suite of one module that needs no file: y = W x in
 * f32. */
#ifndef CB_TESTS_TOY_H
#define CB_TESTS_TOY_H

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernel/case.h"

enum { TOY_W, TOY_X, TOY_Y };

static const char *const toy_acts[] = {"f32", "q8", NULL};
static const int64_t toy_tokens[] = {1, 2, 4};
static const int64_t toy_blocks[] = {1, 2, 4, 8};

static const cb_dim toy_dims[] = {{"rows", "rows of W", 1, 1 << 24},
                                  {"cols", "columns of W", 32, 1 << 24}};
static const cb_choice toy_params[] = {
    {.name = "act", .help = "class", .words = toy_acts},
    {.name = "tokens", .help = "columns of x", .values = toy_tokens, .count = 3, .preset = 1},
    {.name = "level", .help = "any", .min = -3, .max = 1000, .preset = 5},
};
static const cb_choice toy_tunables[] = {
    {.name = "block_rows", .help = "rows", .values = toy_blocks, .count = 4, .preset = 4},
    {.name = "grain", .help = "rows", .min = 0, .max = 64, .preset = 0},
};
static const cb_operand toy_operands[] = {
    {"w", CB_WEIGHT, CB_F32, "[rows][cols]", -1, 1},
    {"x", CB_INPUT, CB_F32, "[cols]", -1, 1},
    {"y", CB_OUTPUT, CB_F32, "[rows]", -8, 8},
};

static int toy_check(const cb_problem *p, char *why, size_t size)
{
    if (p->shape[0] <= (INT64_C(1) << 40) / p->shape[1])
        return 0;
    snprintf(why, size, "rows x cols is at most 2^40, %lld x %lld is not", (long long)p->shape[0],
             (long long)p->shape[1]);
    return 1;
}

static uint64_t toy_bytes(const cb_problem *p, int operand)
{
    uint64_t rows = (uint64_t)p->shape[0], cols = (uint64_t)p->shape[1];
    return 4 * (operand == TOY_W ? rows * cols : operand == TOY_X ? cols : rows);
}

static void toy_cost(const cb_problem *p, cb_cost *cost)
{
    cost->bytes_read = toy_bytes(p, TOY_W) + toy_bytes(p, TOY_X);
    cost->bytes_written = toy_bytes(p, TOY_Y);
    cost->flops = 2 * (double)p->shape[0] * (double)p->shape[1];
}

static void toy_fill(const cb_problem *p, uint64_t seed, int operand, uint64_t set, void *logical,
                     int part, int parts)
{
    uint64_t n = toy_bytes(p, operand) / 4, key = cb_random_key(seed, (uint64_t)operand, set);
    uint64_t end = n * (uint64_t)(part + 1) / (uint64_t)parts;
    for (uint64_t i = n * (uint64_t)part / (uint64_t)parts; i < end; i++)
        ((float *)logical)[i] = 2 * cb_random_f32(cb_random_word(key, i)) - 1;
}

static void toy_reference(const cb_problem *p, const void *const *logical, int operand,
                          uint64_t first, uint64_t count, double *value, double *bound)
{
    const float *w = logical[TOY_W], *x = logical[TOY_X];
    uint64_t cols = (uint64_t)p->shape[1];
    (void)operand;
    for (uint64_t r = first; r < first + count; r++) {
        double sum = 0, size = 0;
        for (uint64_t c = cols; c-- > 0;) {
            sum += (double)w[r * cols + c] * (double)x[c];
            size += fabs((double)w[r * cols + c] * (double)x[c]);
        }
        value[r - first] = sum;
        bound[r - first] = (double)cols * 0x1p-24 * size;
    }
}

static int toy_run(const cb_launch *l)
{
    const float *w = l->operands[TOY_W], *x = l->operands[TOY_X];
    int64_t rows = l->problem.shape[0], cols = l->problem.shape[1];
    for (int64_t r = rows * l->worker / l->workers; r < rows * (l->worker + 1) / l->workers; r++) {
        float sum = 0;
        for (int64_t c = 0; c < cols; c++)
            sum += w[r * cols + c] * x[c];
        ((float *)l->operands[TOY_Y])[r] = sum;
    }
    return 0;
}

static int toy_covers_f32(const cb_problem *p)
{
    return p->params[0] == 0;
}

static const cb_impl toy_impls[] = {
    {.name = "wide",
     .help = "for f32 alone",
     .isa = CB_ISA_AVX2,
     .tunables = toy_tunables,
     .ntunables = 2,
     .covers = toy_covers_f32,
     .run = toy_run},
    {.name = "plain", .help = "plain", .run = toy_run},
};

static const cb_kernel toy_kernel = {.name = "toy",
                                     .summary = "y = W x",
                                     .formula = "y[r] = sum over c of w[r][c] * x[c]",
                                     .dims = toy_dims,
                                     .ndims = 2,
                                     .params = toy_params,
                                     .nparams = 3,
                                     .operands = toy_operands,
                                     .noperands = 3,
                                     .check = toy_check,
                                     .bytes = toy_bytes,
                                     .cost = toy_cost,
                                     .fill = toy_fill,
                                     .reference = toy_reference,
                                     .rotates = "rows",
                                     .impls = toy_impls,
                                     .nimpls = 2};

/* Without dimensions: a chain of arithmetic writes one number. */
static const cb_operand toy_chain_operands[] = {{"y", CB_OUTPUT, CB_F32, "[1]", -1, 1}};

static uint64_t toy_chain_bytes(const cb_problem *p, int operand)
{
    (void)p;
    (void)operand;
    return 4;
}

static void toy_chain_cost(const cb_problem *p, cb_cost *cost)
{
    (void)p;
    *cost = (cb_cost){0, 4, 1};
}

static const cb_kernel toy_chain = {.name = "toy_chain",
                                    .summary = "one number",
                                    .formula = "y = 1",
                                    .operands = toy_chain_operands,
                                    .noperands = 1,
                                    .bytes = toy_chain_bytes,
                                    .cost = toy_chain_cost,
                                    .fill = toy_fill,
                                    .reference = toy_reference,
                                    .no_twin = 1,
                                    .impls = &toy_impls[1],
                                    .nimpls = 1};

static const cb_kernel *const toy_kernels[] = {&toy_kernel, &toy_chain};
static const cb_module toy_table = {CB_KERNEL_ABI, sizeof(cb_kernel), toy_kernels, 2};
static cb__module toy_module = {.table = &toy_table, .origin = "toy", .builtin = true};
static const cb__suite toy_suite = {.modules = {&toy_module}, .nmodules = 1};

#endif
