/* test_gemv_q4.c: every implementation of gemv_q4 against its reference, and what the bound
 * refuses.
 */
#include <dlfcn.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coldbench/kernel.h"

enum { W, W_SCALE, X, XQ, X_SCALE, XB, Y, OPERANDS };
enum { F32, Q8, BF16, ACTS };
enum { GUARD = 128 };

static const cb_kernel *kernel;

static const int64_t shapes[][2] = {{1, 32},     {3, 96},     {7, 4128},  {33, 32},   {515, 1056},
                                    {64, 11008}, {129, 2048}, {5, 18944}, {16, 14336}};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

/* One problem with its logical operands, reference and bound. */
typedef struct fixture {
    int64_t shape[2], params[2];
    cb_problem problem;
    void *logical[OPERANDS];
    uint64_t outputs;
    double *value, *bound;
} fixture;

static void *allocate(uint64_t bytes)
{
    void *memory = aligned_alloc(64, (size_t)(bytes + 63) / 64 * 64);
    assert_non_null(memory);
    return memory;
}

static void fixture_init(fixture *f, int64_t rows, int64_t cols, int64_t act, int64_t tokens)
{
    *f = (fixture){.shape = {rows, cols}, .params = {act, tokens}};
    f->problem = (cb_problem){f->shape, f->params};
    for (int operand = 0; operand < Y; operand++) {
        uint64_t bytes = kernel->bytes(&f->problem, operand);
        if (bytes == 0)
            continue;
        f->logical[operand] = allocate(bytes);
        for (int part = 0; part < 3; part++)
            kernel->fill(&f->problem, 42, operand, 1, f->logical[operand], part, 3);
    }
    f->outputs = kernel->bytes(&f->problem, Y) / sizeof(float);
    f->value = allocate(f->outputs * sizeof(double));
    f->bound = allocate(f->outputs * sizeof(double));
    /* In two calls, as a caller with threads does it. */
    uint64_t half = f->outputs / 2;
    const void *const *logical = (const void *const *)f->logical;
    kernel->reference(&f->problem, logical, Y, 0, half, f->value, f->bound);
    kernel->reference(&f->problem, logical, Y, half, f->outputs - half, f->value + half,
                      f->bound + half);
}

static void fixture_fini(fixture *f)
{
    for (int operand = 0; operand < OPERANDS; operand++)
        free(f->logical[operand]);
    free(f->value);
    free(f->bound);
}

/* The worst error in multiples of the bound; NaN counts as infinite. */
static double worst_error(const fixture *f, const float *y)
{
    double worst = 0;
    for (uint64_t i = 0; i < f->outputs; i++) {
        double error = fabs((double)y[i] - f->value[i]) / f->bound[i];
        if (!(error <= worst))
            worst = isnan(error) ? (double)INFINITY : error;
    }
    return worst;
}

/* An operand at the end of its own allocation, so that a sanitizer sees a read past it. */
static void *pack(const fixture *f, const cb_impl *impl, const int64_t *tunables, int operand)
{
    uint64_t bytes = impl->packed_bytes(&f->problem, tunables, operand);
    if (bytes == 0)
        return NULL;
    void *packed = NULL;
    assert_int_equal(posix_memalign(&packed, 64, (size_t)bytes), 0);
    for (int part = 0; part < 2; part++)
        impl->prepare(&f->problem, tunables, operand, f->logical[operand], packed, part, 2);
    return packed;
}

static void no_barrier(void *team, int worker)
{
    (void)team;
    fail_msg("worker %d waits at a barrier that this kernel must not need", worker);
}

/* Runs all workers one after the other into `y`, which is poisoned and between guards. */
static void run_all(const fixture *f, const cb_impl *impl, const int64_t *tunables,
                    void *const packed[OPERANDS], uint8_t *guarded, int workers)
{
    void *operands[OPERANDS];
    memcpy(operands, packed, sizeof operands);
    operands[Y] = guarded + GUARD;
    memset(guarded, 0xa5, (size_t)(f->outputs * sizeof(float) + 2 * GUARD));
    memset(operands[Y], 0xff, (size_t)f->outputs * sizeof(float)); /* NaN: an unwritten one fails */
    for (int worker = 0; worker < workers; worker++) {
        cb_launch launch = {f->problem, tunables, operands, worker, workers, no_barrier, NULL};
        assert_int_equal(impl->run(&launch), 0);
    }
    for (int i = 0; i < GUARD; i++) {
        assert_int_equal(guarded[i], 0xa5);
        assert_int_equal(guarded[GUARD + f->outputs * sizeof(float) + (size_t)i], 0xa5);
    }
}

static double check_variant(const fixture *f, const cb_impl *impl, const int64_t *tunables)
{
    void *packed[OPERANDS] = {0};
    for (int operand = 0; operand < Y; operand++)
        packed[operand] = pack(f, impl, tunables, operand);
    uint8_t *guarded = allocate(f->outputs * sizeof(float) + 2 * GUARD);
    double worst = 0;
    for (int workers = 1; workers <= 3; workers++) {
        run_all(f, impl, tunables, packed, guarded, workers);
        double error = worst_error(f, (const float *)(guarded + GUARD));
        worst = error > worst ? error : worst;
        if (error > 0.3)
            fail_msg("%s %ldx%ld act=%ld tokens=%ld block_rows=%ld grain_rows=%ld workers=%d: "
                     "%.3g of the bound",
                     impl->name, (long)f->shape[0], (long)f->shape[1], (long)f->params[0],
                     (long)f->params[1], (long)tunables[0], (long)tunables[1], workers, error);
    }
    free(guarded);
    for (int operand = 0; operand < Y; operand++)
        free(packed[operand]);
    return worst;
}

static const cb_impl *find_impl(const char *name)
{
    for (int i = 0; i < kernel->nimpls; i++)
        if (strcmp(kernel->impls[i].name, name) == 0)
            return &kernel->impls[i];
    return NULL;
}

static int supported(unsigned isa)
{
    if ((isa & CB_ISA_CUDA) != 0)
        return 0;
#if defined(__x86_64__)
    if ((isa & CB_ISA_AVX2) != 0 &&
        !(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")))
        return 0;
    if ((isa & CB_ISA_AVX512) != 0 &&
        !(__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")))
        return 0;
    return (isa & CB_ISA_AVX512_VNNI) == 0 || __builtin_cpu_supports("avx512vnni");
#else
    return isa == CB_ISA_PORTABLE;
#endif
}

static void check_impl(const char *name)
{
    const cb_impl *impl = find_impl(name);
    if (impl == NULL || !supported(impl->isa)) {
        print_message("%s: skipped, this machine or build lacks it\n", name);
        skip();
        return;
    }
    static const int64_t blocks[] = {1, 2, 4, 8}, grains[] = {0, 32, 128};
    double worst = 0;
    for (int c = 0; c < SHAPES * ACTS * 2; c++) {
        const int64_t *shape = shapes[c / (ACTS * 2)], act = c % ACTS, tokens = 1 + c / ACTS % 2;
        cb_problem problem = {shape, (int64_t[]){act, tokens}};
        if (impl->covers != NULL && !impl->covers(&problem))
            continue;
        fixture f;
        fixture_init(&f, shape[0], shape[1], act, tokens);
        for (int v = 0; v < 12; v++) {
            int64_t tunables[CB_TUNABLES_MAX] = {blocks[v / 3], grains[v % 3], v % 2 * 2048};
            double error = check_variant(&f, impl, tunables);
            worst = error > worst ? error : worst;
        }
        fixture_fini(&f);
    }
    print_message("%s: at most %.3f of the bound\n", name, worst);
}

static void portable_is_right(void **state)
{
    (void)state;
    check_impl("portable");
}

static void avx2_is_right(void **state)
{
    (void)state;
    check_impl("avx2");
}

static void avx512_is_right(void **state)
{
    (void)state;
    check_impl("avx512");
}

static void avx512fixed_is_right(void **state)
{
    (void)state;
    check_impl("avx512fixed");
}

static void avx512vnni_is_right(void **state)
{
    (void)state;
    check_impl("avx512vnni");
}

/* Rows and groups that fill no block, vector or step, alone and past the first tile of columns. */
static void edges_of_the_layout_are_right(void **state)
{
    (void)state;
    static const int64_t blocks[] = {1, 2, 4, 8}, firsts[] = {0, 2048};
    for (int64_t v = 0; v < INT64_C(17) * 5 * 2 * 2 * ACTS; v++) {
        int64_t act = v % ACTS, tokens = 1 + v / ACTS % 2, rest = v / (ACTS * 2);
        int64_t cols = firsts[rest % 2] + 32 * (1 + rest / 2 % 5), rows = 1 + rest / 10;
        fixture f;
        fixture_init(&f, rows, cols, act, tokens);
        for (int i = 0; i < kernel->nimpls * 4; i++) {
            const cb_impl *impl = &kernel->impls[i / 4];
            int64_t tunables[CB_TUNABLES_MAX] = {blocks[i % 4], 0, 1024};
            if (supported(impl->isa) && (impl->covers == NULL || impl->covers(&f.problem)))
                check_variant(&f, impl, tunables);
        }
        fixture_fini(&f);
    }
}

/* --- what the bound has to refuse --- */

static float round_bits(float value, int dropped)
{
    uint32_t bits, half = UINT32_C(1) << (dropped - 1);
    memcpy(&bits, &value, sizeof bits);
    bits = (bits + half) & ~(2 * half - 1);
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void x_as_bf16(fixture *f)
{
    for (int64_t i = 0; i < f->shape[1] * f->params[1]; i++)
        ((float *)f->logical[X])[i] = round_bits(((float *)f->logical[X])[i], 16);
}

/* 11 significant bits: f16 without its smaller range, so at least as good. */
static void x_as_f16(fixture *f)
{
    for (int64_t i = 0; i < f->shape[1] * f->params[1]; i++)
        ((float *)f->logical[X])[i] = round_bits(((float *)f->logical[X])[i], 13);
}

static void x_as_int8(fixture *f)
{
    for (int64_t i = 0; i < f->shape[1] * f->params[1]; i++)
        ((float *)f->logical[X])[i] = roundf(((float *)f->logical[X])[i] * 127.0f) / 127.0f;
}

static void xq_as_7_bits(fixture *f)
{
    for (int64_t i = 0; i < f->shape[1] * f->params[1]; i++)
        ((int8_t *)f->logical[XQ])[i] = (int8_t)(((int8_t *)f->logical[XQ])[i] / 2 * 2);
}

static void x_scale_as_bf16(fixture *f)
{
    for (int64_t i = 0; i < f->shape[1] / 32 * f->params[1]; i++)
        ((float *)f->logical[X_SCALE])[i] = round_bits(((float *)f->logical[X_SCALE])[i], 16);
}

static void xb_in_7_bits(fixture *f)
{
    for (int64_t i = 0; i < f->shape[1] * f->params[1]; i++)
        ((uint16_t *)f->logical[XB])[i] = (uint16_t)(((uint16_t *)f->logical[XB])[i] & 0xfffe);
}

static void xb_as_int8(fixture *f)
{
    for (int64_t i = 0; i < f->shape[1] * f->params[1]; i++) {
        uint16_t *x = (uint16_t *)f->logical[XB] + i;
        uint32_t bits = (uint32_t)*x << 16;
        float value;
        memcpy(&value, &bits, sizeof value);
        value = round_bits(roundf(value * 127.0f) / 127.0f, 16);
        memcpy(&bits, &value, sizeof bits);
        *x = (uint16_t)(bits >> 16);
    }
}

/* The last group of every row with its scale one unit in the last place off. */
static void one_group_off(fixture *f)
{
    int64_t groups = f->shape[1] / 32;
    for (int64_t row = 0; row < f->shape[0]; row++)
        ((uint16_t *)f->logical[W_SCALE])[row * groups + groups - 1] ^= 1;
}

static void one_weight_off(fixture *f)
{
    for (int64_t row = 0; row < f->shape[0]; row++)
        ((uint8_t *)f->logical[W])[row * f->shape[1] / 2] ^= 1;
}

typedef struct fault {
    const char *name;
    int act;
    void (*plant)(fixture *f);
} fault;

static const fault faults[] = {
    {"x rounded to bf16", F32, x_as_bf16},
    {"x rounded to f16", F32, x_as_f16},
    {"x requantised to int8", F32, x_as_int8},
    {"xq in 7 bits", Q8, xq_as_7_bits},
    {"x_scale rounded to bf16", Q8, x_scale_as_bf16},
    {"xb in 7 bits", BF16, xb_in_7_bits},
    {"xb requantised to int8", BF16, xb_as_int8},
    {"one group's scale off by one unit", F32, one_group_off},
    {"one group's scale off by one unit", BF16, one_group_off},
    {"one group's scale off by one unit", Q8, one_group_off},
    {"one weight off by one", F32, one_weight_off},
    {"one weight off by one", Q8, one_weight_off},
    {"one weight off by one", BF16, one_weight_off},
};

/* The fault is planted in the inputs and computed in f64, so that nothing but the fault is seen. */
static void check_fault(const fault *planted, int64_t rows, int64_t cols, int64_t tokens)
{
    fixture f;
    fixture_init(&f, rows, cols, planted->act, tokens);
    planted->plant(&f);
    double *value = allocate(f.outputs * sizeof(double));
    double *bound = allocate(f.outputs * sizeof(double));
    kernel->reference(&f.problem, (const void *const *)f.logical, Y, 0, f.outputs, value, bound);
    float *y = allocate(f.outputs * sizeof(float));
    for (uint64_t i = 0; i < f.outputs; i++)
        y[i] = (float)value[i];
    double worst = worst_error(&f, y);
    print_message("%-36s %ldx%-6ld %8.2f of the bound\n", planted->name, (long)rows, (long)cols,
                  worst);
    assert_true(worst > 1.0);
    free(y);
    free(bound);
    free(value);
    fixture_fini(&f);
}

static void fewer_bits_and_wrong_groups_exceed_the_bound(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        check_fault(&faults[i], 256, 1024, 2);
        check_fault(&faults[i], 256, 4096, 1);
        check_fault(&faults[i], 256, 14336, 1);
    }
}

/* Weight, scale and activation of one product as the definition has them. */
static float factor_of(const fixture *f, int64_t row, int64_t token, int64_t c, float *scale)
{
    int64_t cols = f->shape[1];
    uint16_t h = ((uint16_t *)f->logical[W_SCALE])[row * (cols / 32) + c / 32];
    int q = ((uint8_t *)f->logical[W])[(row * cols + c) / 2] >> (c % 2 * 4) & 15;
    uint32_t bits = (uint32_t)((uint16_t *)f->logical[XB])[token * cols + c] << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    *scale = (h & 0x8000 ? -1.0f : 1.0f) * ldexpf((float)(1024 + (h & 1023)), (h >> 10 & 31) - 25);
    return (float)(q - 8) * x;
}

/* act=bf16 with each group added up in `dropped` bits fewer than f32. */
static double error_of_short_sums(int64_t rows, int64_t cols, int dropped)
{
    fixture f;
    fixture_init(&f, rows, cols, BF16, 1);
    float *y = allocate(f.outputs * sizeof(float));
    for (int64_t row = 0; row < rows; row++) {
        y[row] = 0;
        for (int64_t first = 0; first < cols; first += 32) {
            float sum = 0, scale = 0;
            for (int64_t c = first; c < first + 32; c++) {
                sum += factor_of(&f, row, 0, c, &scale);
                if (dropped > 0)
                    sum = round_bits(sum, dropped);
            }
            y[row] += scale * sum;
        }
    }
    double worst = worst_error(&f, y);
    free(y);
    fixture_fini(&f);
    return worst;
}

static void sums_in_16_bits_exceed_the_bound(void **state)
{
    (void)state;
    static const int64_t cols[] = {1024, 4096, 14336};
    for (int i = 0; i < 3; i++) {
        double f32 = error_of_short_sums(256, cols[i], 0);
        double f16 = error_of_short_sums(256, cols[i], 13);
        print_message("bf16, sums of groups in f32 %.3f, f16 %.2f of the bound\n", f32, f16);
        assert_true(f32 < 0.3);
        assert_true(f16 > 1.0);
    }
}

/* --- the definition --- */

static void reference_equals_the_definition(void **state)
{
    (void)state;
    for (int act = F32; act < ACTS; act++) {
        fixture f;
        fixture_init(&f, 5, 96, act, 2);
        const uint8_t *w = f.logical[W];
        for (int64_t i = 0; i < 10; i++) {
            int64_t row = i / 2, token = i % 2;
            long double sum = 0;
            for (int64_t c = 95; c >= 0; c--) {
                int q = w[row * 48 + c / 2] >> (c % 2 * 4) & 15;
                uint16_t h = ((uint16_t *)f.logical[W_SCALE])[row * 3 + c / 32];
                long double scale = ldexpl(1024 + (h & 1023), (h >> 10 & 31) - 25);
                scale = (h & 0x8000) != 0 ? -scale : scale;
                long double x = 0;
                uint32_t bits = 0;
                float widened;
                switch (act) {
                case F32:
                    x = (long double)((float *)f.logical[X])[token * 96 + c];
                    break;
                case Q8:
                    x = (long double)((float *)f.logical[X_SCALE])[token * 3 + c / 32] *
                        ((int8_t *)f.logical[XQ])[token * 96 + c];
                    break;
                default:
                    bits = (uint32_t)((uint16_t *)f.logical[XB])[token * 96 + c] << 16;
                    memcpy(&widened, &bits, sizeof widened);
                    x = (long double)widened;
                }
                sum += scale * (q - 8) * x;
            }
            assert_true(fabsl(sum - (long double)f.value[i]) < 1e-12L);
            assert_true(f.bound[i] > 0);
        }
        fixture_fini(&f);
    }
}

static void fill_stays_in_its_ranges_and_parts_agree(void **state)
{
    (void)state;
    fixture f;
    fixture_init(&f, 7, 1056, Q8, 1);
    int negative = 0, scales = 7 * 33;
    for (int i = 0; i < scales; i++) {
        uint16_t h = ((uint16_t *)f.logical[W_SCALE])[i];
        negative += h >> 15;
        assert_in_range(h & 0x7fff, 0x1419, 0x251f);
    }
    assert_in_range(negative, 1, scales / 4);
    for (int i = 0; i < 1056; i++)
        assert_true(((int8_t *)f.logical[XQ])[i] >= -127);
    for (int i = 0; i < 2 * Y; i++) {
        if (i == Y) { /* then the same of bf16 */
            fixture_fini(&f);
            fixture_init(&f, 7, 1056, BF16, 1);
            for (int c = 0; c < 1056; c++) /* at most 1 */
                assert_in_range(((uint16_t *)f.logical[XB])[c] & 0x7fff, 0, 0x3f80);
        }
        int operand = i % Y;
        uint64_t bytes = kernel->bytes(&f.problem, operand);
        if (bytes == 0)
            continue;
        uint8_t *whole = allocate(bytes);
        kernel->fill(&f.problem, 42, operand, 1, whole, 0, 1);
        assert_memory_equal(whole, f.logical[operand], (size_t)bytes);
        free(whole);
    }
    fixture_fini(&f);
}

static void cost_counts_the_operands_that_are_present(void **state)
{
    (void)state;
    int64_t shape[] = {10, 64};
    cb_cost cost;
    kernel->cost(&(cb_problem){shape, (int64_t[]){F32, 2}}, &cost);
    assert_int_equal(cost.bytes_read, 10 * 32 + 10 * 2 * 2 + 2 * 64 * 4);
    assert_int_equal(cost.bytes_written, 10 * 2 * 4);
    assert_true(cost.flops == 2.0 * 10 * 64 * 2);
    kernel->cost(&(cb_problem){shape, (int64_t[]){Q8, 1}}, &cost);
    assert_int_equal(cost.bytes_read, 10 * 32 + 10 * 2 * 2 + 64 + 2 * 4);
    kernel->cost(&(cb_problem){shape, (int64_t[]){BF16, 2}}, &cost);
    assert_int_equal(cost.bytes_read, 10 * 32 + 10 * 2 * 2 + 2 * 64 * 2);
}

static void check_names_the_rule_and_the_value(void **state)
{
    (void)state;
    int64_t params[] = {F32, 1};
    char why[256] = "";
    int64_t good[] = {INT64_C(1) << 20, INT64_C(1) << 20};
    assert_int_equal(kernel->check(&(cb_problem){good, params}, why, sizeof why), 0);
    int64_t bad[] = {(INT64_C(1) << 20) + 1, INT64_C(1) << 20};
    assert_int_not_equal(kernel->check(&(cb_problem){bad, params}, why, sizeof why), 0);
    assert_non_null(strstr(why, "2^40"));
    assert_non_null(strstr(why, "1048577"));
}

static void packed_weights_stay_close_to_logical(void **state)
{
    (void)state;
    /* 128 groups a row, and one more: a row is filled up to 136 groups at most. */
    static const int64_t cols[] = {4096, 4128};
    for (int v = 0; v < 2 * ACTS; v++) {
        int64_t shape[] = {4096, cols[v / ACTS]}, params[] = {v % ACTS, 1};
        cb_problem problem = {shape, params};
        for (int i = 0; i < kernel->nimpls; i++) {
            int64_t tunables[CB_TUNABLES_MAX] = {8};
            uint64_t logical = 0, packed = 0;
            for (int operand = W; operand <= W_SCALE; operand++) {
                logical += kernel->bytes(&problem, operand);
                packed += kernel->impls[i].packed_bytes(&problem, tunables, operand);
            }
            assert_true(packed <= (v < ACTS ? logical : logical * 136 / 129));
        }
    }
}

/* A value that is not finite in the first group must show in every y of its token. */
static void infinite_x_gives_no_finite_y(void **state)
{
    (void)state;
    fixture f;
    fixture_init(&f, 9, 544, F32, 1);
    memset(f.logical[W], 0xff, (size_t)kernel->bytes(&f.problem, W)); /* no weight is zero */
    ((float *)f.logical[X])[3] = INFINITY;
    for (int i = 0; i < kernel->nimpls; i++) {
        const cb_impl *impl = &kernel->impls[i];
        if (!supported(impl->isa) || (impl->covers != NULL && !impl->covers(&f.problem)))
            continue;
        int64_t tunables[CB_TUNABLES_MAX] = {4};
        void *packed[OPERANDS] = {0};
        for (int operand = 0; operand < Y; operand++)
            packed[operand] = pack(&f, impl, tunables, operand);
        uint8_t *guarded = allocate(f.outputs * sizeof(float) + 2 * GUARD);
        run_all(&f, impl, tunables, packed, guarded, 2);
        for (uint64_t row = 0; row < f.outputs; row++)
            assert_false(isfinite(((float *)(guarded + GUARD))[row]));
        free(guarded);
        for (int operand = 0; operand < Y; operand++)
            free(packed[operand]);
    }
    fixture_fini(&f);
}

/* --- code for GPUs: packing and geometry --- */

/* q of a row and column where cuda.c says it lies. */
static int cuda_q(const uint8_t *w, int64_t steps, int64_t row, int64_t c)
{
    int64_t tile = row / 16, step = c / 256, half = c / 128 % 2, below = row / 8 % 2;
    int64_t lane = row % 8 * 4 + c % 32 / 8, word = c % 128 / 32, byte = c % 4, high = c % 8 / 4;
    int64_t at = (tile * steps + step) * 2048 + (half * 2 + below) * 512 + lane * 16 + word * 4;
    return (w[at + byte] >> (high * 4) & 15) ^ 8;
}

static uint16_t cuda_scale(const uint16_t *scale, int64_t steps, int64_t row, int64_t group,
                           int64_t shared)
{
    int64_t tile = row / 16, step = group / 8, in_step = group % 8, slots = 8 / shared;
    int64_t at = (row % 8 * shared + in_step % shared) * 2 + row / 8 % 2;
    return scale[(tile * steps + step) * 128 + at * slots + in_step / shared];
}

static void check_cuda_packing(const fixture *f, const cb_impl *impl, int64_t shared)
{
    int64_t tunables[CB_TUNABLES_MAX] = {16, 16, 1, 2}, cols = f->shape[1];
    int64_t steps = (cols + 255) / 256, groups = steps * 8, tiles = (f->shape[0] + 15) / 16;
    uint8_t *w = pack(f, impl, tunables, W);
    uint16_t *scale = pack(f, impl, tunables, W_SCALE);
    for (int64_t row = 0; row < tiles * 16; row++) {
        int inside = row < f->shape[0];
        for (int64_t c = 0; c < steps * 256; c++) {
            const uint8_t *byte = (const uint8_t *)f->logical[W] + (row * cols + c) / 2;
            int q = inside && c < cols ? *byte >> (c % 2 * 4) & 15 : 8;
            assert_int_equal(cuda_q(w, steps, row, c), q);
        }
        for (int64_t g = 0; g < groups; g++) {
            const uint16_t *h = (const uint16_t *)f->logical[W_SCALE] + row * (cols / 32) + g;
            assert_int_equal(cuda_scale(scale, steps, row, g, shared),
                             inside && g < cols / 32 ? *h : 0);
        }
    }
    free(w);
    free(scale);
}

static void cuda_packing_has_every_weight_once(void **state)
{
    (void)state;
    static const int64_t cases[][2] = {{1, 32}, {37, 224}, {16, 256}, {35, 1056}};
    for (int v = 0; v < 4 * ACTS * 2; v++) {
        int64_t act = v % ACTS, tokens = 1 + v / ACTS % 2, shared = act == Q8 ? 4 : 2 / tokens;
        const int64_t *shape = cases[v / (ACTS * 2)];
        fixture f;
        fixture_init(&f, shape[0], shape[1], act, tokens);
        check_cuda_packing(&f, find_impl("cuda"), shared);
        check_cuda_packing(&f, find_impl("cuda_bulk"), shared);
        fixture_fini(&f);
    }
}

typedef struct launch_case {
    int64_t rows, cols, act, tokens, tunables[4];
    uint32_t grid, threads, shared;
} launch_case;

/* 132 multiprocessors, and as many blocks on each for any shape. Shared: planes of x 64 bytes
 * longer than their columns, scales of x, sums of `rounds` tiles, worked out by hand. */
static const launch_case launches[] = {
    {1, 32, F32, 1, {16, 16, 1, 2}, 264, 512, 4 * (4096 + 64) + 16 * 32 + 1024},
    {4096, 4096, BF16, 1, {16, 16, 1, 2}, 264, 512, 4 * (4096 + 64) + 16 * 32 + 1024},
    {11008, 4096, BF16, 1, {16, 16, 1, 2}, 264, 512, 4 * (4096 + 64) + 16 * 32 + 3 * 1024},
    {11008, 4096, Q8, 2, {16, 8, 1, 4}, 528, 256, 2 * (4096 + 64 + 16 * 32) + 2 * 1024},
    {28672, 8192, F32, 1, {32, 16, 1, 1}, 132, 512, 4 * (8192 + 64) + 32 * 32 + 7 * 2048},
    /* 56 steps in two windows of 32; q8 in one */
    {4096, 14336, F32, 1, {16, 16, 1, 2}, 264, 512, 4 * (8192 + 64) + 32 * 32 + 1024},
    {4096, 14336, Q8, 1, {16, 16, 1, 2}, 264, 512, 16384 + 64 + 64 * 32 + 1024},
    /* too many rounds for 15 KiB of sums: 15 of them, in more blocks */
    {1 << 20, 256, Q8, 1, {16, 16, 1, 1}, 4370, 512, 4096 + 64 + 16 * 32 + 15 * 1024},
};

static void cuda_geometry_is_what_the_shape_needs(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof launches / sizeof launches[0]; i++) {
        const launch_case *l = &launches[i];
        int64_t shape[] = {l->rows, l->cols}, params[] = {l->act, l->tokens};
        cb_problem problem = {shape, params};
        int64_t ring = l->tunables[1] * l->tunables[2] * (l->tunables[0] / 16 * 2304 + 8);
        for (int bulk = 0; bulk < 2; bulk++) {
            const cb_impl *impl = find_impl(bulk ? "cuda_bulk" : "cuda");
            cb_geometry g;
            assert_int_equal(impl->device->geometry(&problem, l->tunables, 132, &g), 0);
            assert_int_equal(g.grid[0], l->grid);
            assert_int_equal(g.block[0], l->threads);
            assert_int_equal(g.shared_bytes, l->shared + bulk * ring);
            assert_int_equal(g.grid[1] * g.grid[2] * g.block[1] * g.block[2], 1);
        }
    }
}

static void cuda_geometry_refuses_what_no_multiprocessor_holds(void **state)
{
    (void)state;
    int64_t shape[] = {4096, 4096}, params[] = {F32, 1};
    cb_problem problem = {shape, params};
    cb_geometry g;
    /* 96 warps; four stages of 32 warps */
    int64_t warps[CB_TUNABLES_MAX] = {16, 32, 1, 3}, ring[CB_TUNABLES_MAX] = {16, 32, 4, 1};
    assert_int_not_equal(find_impl("cuda")->device->geometry(&problem, warps, 132, &g), 0);
    assert_int_not_equal(find_impl("cuda_bulk")->device->geometry(&problem, ring, 132, &g), 0);
    assert_int_equal(find_impl("cuda")->device->geometry(&problem, ring, 132, &g), 0);
}

int main(void)
{
    void *module = dlopen(CB_BINARY_DIR "/modules/gemv_q4.so", RTLD_NOW | RTLD_LOCAL);
    if (module == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    const cb_module *(*entry)(void) = NULL;
    *(void **)&entry = dlsym(module, "cb_module_entry");
    if (entry == NULL || entry()->abi != CB_KERNEL_ABI)
        return 1;
    kernel = entry()->kernels[0];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(portable_is_right),
        cmocka_unit_test(avx2_is_right),
        cmocka_unit_test(avx512_is_right),
        cmocka_unit_test(avx512fixed_is_right),
        cmocka_unit_test(avx512vnni_is_right),
        cmocka_unit_test(edges_of_the_layout_are_right),
        cmocka_unit_test(fewer_bits_and_wrong_groups_exceed_the_bound),
        cmocka_unit_test(sums_in_16_bits_exceed_the_bound),
        cmocka_unit_test(reference_equals_the_definition),
        cmocka_unit_test(fill_stays_in_its_ranges_and_parts_agree),
        cmocka_unit_test(cost_counts_the_operands_that_are_present),
        cmocka_unit_test(check_names_the_rule_and_the_value),
        cmocka_unit_test(packed_weights_stay_close_to_logical),
        cmocka_unit_test(infinite_x_gives_no_finite_y),
        cmocka_unit_test(cuda_packing_has_every_weight_once),
        cmocka_unit_test(cuda_geometry_is_what_the_shape_needs),
        cmocka_unit_test(cuda_geometry_refuses_what_no_multiprocessor_holds),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    dlclose(module);
    return failed;
}
