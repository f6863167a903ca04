/* peak: every implementation that this processor has, held against the definition; a chain that is
 * a step short is seen; no product saturates.
 */
#include "built.h"

enum { GUARD = 64, WORKERS_MAX = 3, OPERANDS_MAX = 4 };

typedef struct operands {
    const cb_kernel *kernel;
    cb_problem problem;
    char *block[OPERANDS_MAX];
    void *data[OPERANDS_MAX];
} operands;

static void operands_init(operands *o, const cb_kernel *kernel, cb_problem problem)
{
    *o = (operands){.kernel = kernel, .problem = problem};
    for (int i = 0; i < kernel->noperands; i++) {
        uint64_t bytes = kernel->bytes(&problem, i);
        if (bytes == 0)
            continue;
        o->block[i] = aligned_alloc(64, (bytes + 63) / 64 * 64 + 2 * GUARD);
        o->data[i] = o->block[i] + GUARD;
        if (kernel->operands[i].role == CB_INPUT)
            for (int part = 0; part < 3; part++)
                kernel->fill(&problem, 7, i, 0, o->data[i], part, 3);
    }
}

static void operands_fini(operands *o)
{
    for (int i = 0; i < OPERANDS_MAX; i++)
        free(o->block[i]);
}

static double element(const void *data, cb_type type, uint64_t index)
{
    if (type == CB_F32)
        return (double)((const float *)data)[index];
    if (type == CB_F64)
        return ((const double *)data)[index];
    assert_int_equal(type, CB_I32);
    return (double)((const int32_t *)data)[index];
}

static uint64_t elements(const operands *o, int operand)
{
    uint64_t bytes = o->kernel->bytes(&o->problem, operand);
    return bytes / (o->kernel->operands[operand].type == CB_F64 ? 8 : 4);
}

static int result_of(const operands *o)
{
    for (int i = 0; i < o->kernel->noperands; i++)
        if (o->kernel->operands[i].role == CB_OUTPUT && o->data[i])
            return i;
    fail_msg("%s has no result", o->kernel->name);
    return -1;
}

/* In two pieces, as a caller may ask for any. */
static void refer(const operands *o, double *value, double *bound)
{
    uint64_t count = elements(o, result_of(o)), half = count / 2 + 5;
    const void *const *logical = (const void *const *)o->data;
    o->kernel->reference(&o->problem, logical, result_of(o), 0, half, value, bound);
    o->kernel->reference(&o->problem, logical, result_of(o), half, count - half, value + half,
                         bound + half);
}

static void check_launch(const operands *o, const cb_impl *impl, int workers)
{
    int result = result_of(o);
    uint64_t count = elements(o, result), bytes = o->kernel->bytes(&o->problem, result);
    memset(o->block[result], 0x5A, bytes + 2 * GUARD);
    launch_all(impl, o->problem, o->data, workers);
    double *value = calloc(count, sizeof *value), *bound = calloc(count, sizeof *bound);
    refer(o, value, bound);
    for (uint64_t i = 0; i < count; i++) {
        double got = element(o->data[result], o->kernel->operands[result].type, i);
        double error = got > value[i] ? got - value[i] : value[i] - got;
        if (!(error <= bound[i]))
            fail_msg("%s/%s blocks %lld workers %d: element %llu is %.17g, not %.17g within %.3g",
                     o->kernel->name, impl->name, (long long)o->problem.shape[0], workers,
                     (unsigned long long)i, got, value[i], bound[i]);
    }
    for (int i = 0; i < GUARD; i++) {
        assert_int_equal(o->block[result][i], 0x5A);
        assert_int_equal(o->block[result][GUARD + bytes + (uint64_t)i], 0x5A);
    }
    free(value);
    free(bound);
}

/* 195: the starts wrap. */
static const int64_t BLOCKS[] = {1, 2, 7, 97, 195};

static void check_kernel(const char *name, const int64_t *params)
{
    const cb_kernel *kernel = load_built("peak", name);
    for (int b = 0; b < COUNT(BLOCKS); b++) {
        operands o;
        operands_init(&o, kernel, (cb_problem){&BLOCKS[b], params});
        for (int i = 0; i < kernel->nimpls; i++)
            for (int w = 1; w <= WORKERS_MAX && processor_has(kernel->impls[i].isa); w++)
                check_launch(&o, &kernel->impls[i], w);
        operands_fini(&o);
    }
}

static void multiply_adds_compute_the_definition(void **state)
{
    (void)state;
    static const int64_t types[] = {0, 1};
    check_kernel("peak_fma", &types[0]);
    check_kernel("peak_fma", &types[1]);
}

static void dot_products_compute_the_definition(void **state)
{
    (void)state;
    check_kernel("peak_dot", NULL);
}

/* The result must tell how many steps were done, and where its lane began. */
static void check_seen(int64_t type, double epsilon)
{
    const int64_t blocks = 97;
    const cb_kernel *kernel = load_built("peak", "peak_fma");
    operands o;
    operands_init(&o, kernel, (cb_problem){&blocks, &type});
    int start = result_of(&o) - 1;
    cb_type number = kernel->operands[start].type;
    double a = element(o.data[start], number, 0), b = element(o.data[start], number, 1);
    uint64_t count = elements(&o, start + 1);
    double *value = calloc(count, sizeof *value), *bound = calloc(count, sizeof *bound);
    refer(&o, value, bound);
    for (uint64_t i = 0; i < count; i++) {
        double one_short = (value[i] - b) / a;
        assert_true(one_short - value[i] > 2 * bound[i]);
        assert_true(bound[i] > epsilon); /* a bound below one rounding would accuse the honest */
        if (i > 0)
            assert_true(value[i] - value[i - 1] > bound[i] || value[i - 1] - value[i] > bound[i]);
    }
    free(value);
    free(bound);
    operands_fini(&o);
}

static void a_step_too_few_is_seen(void **state)
{
    (void)state;
    check_seen(0, 1.2e-7);
    check_seen(1, 2.2e-16);
}

/* The largest and the smallest sums that u and s can have, in all lanes. */
static void no_product_saturates(void **state)
{
    (void)state;
    static const int extremes[] = {127, -127};
    const int64_t blocks = 2;
    const cb_kernel *kernel = load_built("peak", "peak_dot");
    operands o;
    operands_init(&o, kernel, (cb_problem){&blocks, NULL});
    for (uint64_t i = 0; i < kernel->bytes(&o.problem, 1); i++)
        assert_true(((uint8_t *)o.data[1])[i] <= 127);
    for (uint64_t i = 0; i < kernel->bytes(&o.problem, 2); i++)
        assert_int_not_equal(((int8_t *)o.data[2])[i], -128);
    memset(o.data[1], 127, kernel->bytes(&o.problem, 1));
    for (int e = 0; e < COUNT(extremes); e++) {
        memset(o.data[2], extremes[e], kernel->bytes(&o.problem, 2));
        for (int i = 0; i < kernel->nimpls; i++)
            if (processor_has(kernel->impls[i].isa))
                check_launch(&o, &kernel->impls[i], 1);
    }
    operands_fini(&o);
}

static void the_cost_counts_every_lane_and_step(void **state)
{
    (void)state;
    static const int64_t f32 = 0, f64 = 1, blocks = 10;
    static const struct {
        const char *name;
        const int64_t *params;
        double flops;
        uint64_t written;
    } table[] = {{"peak_fma", &f32, 10.0 * 192 * 256 * 2, 10 * 192 * 4},
                 {"peak_fma", &f64, 10.0 * 96 * 256 * 2, 10 * 96 * 8},
                 {"peak_dot", NULL, 10.0 * 192 * 256 * 8, 10 * 192 * 4}};
    for (int i = 0; i < COUNT(table); i++) {
        cb_cost cost;
        load_built("peak", table[i].name)->cost(&(cb_problem){&blocks, table[i].params}, &cost);
        assert_true(cost.flops <= table[i].flops && cost.flops >= table[i].flops);
        assert_int_equal(cost.bytes_written, table[i].written);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(multiply_adds_compute_the_definition),
        cmocka_unit_test(dot_products_compute_the_definition),
        cmocka_unit_test(a_step_too_few_is_seen),
        cmocka_unit_test(no_product_saturates),
        cmocka_unit_test(the_cost_counts_every_lane_and_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
