/* Banks from a curve over strides, and paddings: curves made by counting, not by the model itself.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <math.h>

#include "coldbench/random.h"
#include "stats/banks.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))
enum { POINTS_MAX = 128 };

/* What an H200 was measured at, over its best stride (docs/results/cuda-twins.md). */
typedef struct known {
    int width, stride;
    double cost;
} known;

static const known measured[] = {
    {4, 4, 1},    {4, 8, 2},    {4, 12, 1},   {4, 16, 4},   {4, 32, 8},   {4, 64, 16},
    {4, 128, 32}, {4, 132, 1},  {4, 256, 32}, {4, 260, 1},  {4, 512, 32}, {4, 516, 1},
    {8, 8, 1},    {8, 16, 2},   {8, 24, 1},   {8, 32, 4},   {8, 64, 8},   {8, 128, 16},
    {8, 136, 1},  {8, 256, 16}, {8, 264, 1},  {8, 512, 16}, {8, 520, 1},  {16, 16, 1},
    {16, 32, 2},  {16, 48, 1},  {16, 64, 4},  {16, 128, 8}, {16, 144, 1}, {16, 256, 8},
    {16, 272, 1}, {16, 512, 8}, {16, 528, 1},
};

static size_t points_of(double noise, int least_width, cb__bank_point points[POINTS_MAX])
{
    size_t n = 0;
    for (size_t i = 0; i < COUNT(measured); i++) {
        double off = 1 + noise * (2 * cb_random_f64(cb_random(7, 1, 2, i)) - 1);
        if (measured[i].width >= least_width)
            points[n++] =
                (cb__bank_point){measured[i].width, measured[i].stride, measured[i].cost * off};
    }
    return n;
}

static void costs_are_those_of_32_banks_of_4_bytes(void **state)
{
    (void)state;
    const cb__banks b = {32, 4, 0};
    for (size_t i = 0; i < COUNT(measured); i++)
        if (fabs(cb__banks_cost(&b, measured[i].width, measured[i].stride) - measured[i].cost) > 0)
            fail_msg("%d bytes at stride %d cost %g, not %g", measured[i].width, measured[i].stride,
                     cb__banks_cost(&b, measured[i].width, measured[i].stride), measured[i].cost);
}

static void banks_are_fitted(void **state)
{
    (void)state;
    static const struct {
        double noise;
        int least_width, banks, bank_bytes;
    } table[] = {
        {0, 4, 32, 4},
        {0.05, 4, 32, 4},
        /* Accesses of 8 bytes and more do not tell banks of 4 from half as many of 8. */
        {0, 8, 16, 8},
        {0.05, 16, 8, 16},
    };
    for (size_t i = 0; i < COUNT(table); i++) {
        cb__bank_point points[POINTS_MAX];
        cb__banks b;
        size_t n = points_of(table[i].noise, table[i].least_width, points);
        assert_true(cb__banks_fit(points, n, &b));
        assert_int_equal(b.banks, table[i].banks);
        assert_int_equal(b.bank_bytes, table[i].bank_bytes);
        assert_true(b.misfit <= table[i].noise + 1e-9);
    }
}

/* 16 banks of 4 bytes, 32 lanes of 4: two parts of 16 lanes, so the degree is that of 16. */
static void sixteen_banks_are_no_32(void **state)
{
    (void)state;
    static const known half[] = {{4, 4, 1},   {4, 8, 2},  {4, 12, 1},   {4, 16, 4},  {4, 32, 8},
                                 {4, 64, 16}, {4, 68, 1}, {4, 128, 16}, {4, 132, 1}, {8, 8, 1},
                                 {8, 16, 2},  {8, 64, 8}, {8, 72, 1}};
    cb__bank_point points[COUNT(half)];
    cb__banks b;
    for (size_t i = 0; i < COUNT(half); i++)
        points[i] = (cb__bank_point){half[i].width, half[i].stride, half[i].cost};
    assert_true(cb__banks_fit(points, COUNT(half), &b));
    assert_int_equal(b.banks, 16);
    assert_int_equal(b.bank_bytes, 4);
}

static void a_flat_curve_has_no_banks_and_needs_no_padding(void **state)
{
    (void)state;
    cb__bank_point points[COUNT(measured)];
    cb__banks b;
    for (size_t i = 0; i < COUNT(measured); i++)
        points[i] = (cb__bank_point){measured[i].width, measured[i].stride, 1 + 0.01 * (i % 5)};
    assert_true(cb__banks_fit(points, COUNT(measured), &b));
    assert_int_equal(b.banks, 0);
    assert_int_equal(cb__banks_pad(&b, 128, 16), 0);
    assert_true(cb__banks_cost(&b, 4, 128) <= 1);
}

/* By the path through the caches a padding costs lines: no number of banks does that. */
static void what_banks_cannot_explain_is_not_explained(void **state)
{
    (void)state;
    static const known global[] = {{16, 16, 1},    {16, 32, 2},  {16, 64, 4},    {16, 128, 8},
                                   {16, 144, 2.2}, {16, 256, 8}, {16, 272, 2.3}, {16, 512, 8},
                                   {16, 528, 2.3}, {16, 80, 1.4}};
    cb__bank_point points[COUNT(global)];
    cb__banks b;
    for (size_t i = 0; i < COUNT(global); i++)
        points[i] = (cb__bank_point){global[i].width, global[i].stride, global[i].cost};
    assert_false(cb__banks_fit(points, COUNT(global), &b));
    assert_false(cb__banks_fit(points, 0, &b));
}

static void paddings_are_the_fewest_bytes(void **state)
{
    (void)state;
    static const struct {
        int banks, bank_bytes, row, width, pad;
    } table[] = {
        {32, 4, 128, 4, 4},    {32, 4, 128, 8, 8},  {32, 4, 128, 16, 16}, {32, 4, 256, 16, 16},
        {32, 4, 132, 4, 0},    {32, 4, 144, 16, 0}, {32, 4, 64, 4, 4},    {32, 4, 96, 16, 16},
        {16, 4, 64, 4, 4},     {16, 4, 68, 4, 0},   {32, 8, 256, 8, 8},   {0, 0, 128, 16, 0},
        {32, 4, 1024, 16, 16},
    };
    for (size_t i = 0; i < COUNT(table); i++) {
        const cb__banks b = {table[i].banks, table[i].bank_bytes, 0};
        int pad = cb__banks_pad(&b, table[i].row, table[i].width);
        if (pad != table[i].pad)
            fail_msg("%d banks of %d: rows of %d at %d are padded by %d, not %d", b.banks,
                     b.bank_bytes, table[i].row, table[i].width, pad, table[i].pad);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(costs_are_those_of_32_banks_of_4_bytes),
        cmocka_unit_test(banks_are_fitted),
        cmocka_unit_test(sixteen_banks_are_no_32),
        cmocka_unit_test(a_flat_curve_has_no_banks_and_needs_no_padding),
        cmocka_unit_test(what_banks_cannot_explain_is_not_explained),
        cmocka_unit_test(paddings_are_the_fewest_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
