#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "measure/poison.h"
#include "measure/verify.h"
#include "toy.h"

enum { ROWS = 96, COLS = 64 };

/* ---- poison ---- */

static void poisons_differ_in_every_element_and_are_plausible(void **state)
{
    (void)state;
    static const struct {
        double lo, hi;
    } ranges[] = {{-8, 8}, {0, 1}, {1, 1}, {0, 0}, {1e-30, 2e-30}, {-60000, 60000}, {-1e-7, 0}};
    enum { N = 3000 };
    for (int type = CB_U8; type <= CB_U64; type++)
        for (size_t r = 0; r < sizeof ranges / sizeof *ranges; r++) {
            cb_operand operand = {"y", CB_OUTPUT, (cb_type)type, "", ranges[r].lo, ranges[r].hi};
            size_t size = cb__type_bytes((cb_type)type);
            static unsigned char poison[CB__PHASES][N * 8];
            for (int phase = 0; phase < CB__PHASES; phase++)
                cb__poison_fill(&operand, 42, 2, 7, phase, poison[phase], N * size);
            bool floats = type == CB_F16 || type == CB_BF16 || type == CB_F32 || type == CB_F64;
            double slack = 1e-2 * (fabs(operand.lo) + fabs(operand.hi)) + 1e-7;
            for (uint64_t i = 0; i < N; i++) {
                assert_memory_not_equal(poison[0] + i * size, poison[1] + i * size, size);
                for (int phase = 0; phase < CB__PHASES; phase++) {
                    double value = cb__element_f64((cb_type)type, poison[phase], i);
                    assert_true(isfinite(value));
                    if (floats)
                        assert_true(value >= operand.lo - slack && value <= operand.hi + slack);
                }
            }
        }
}

static void poison_is_new_for_slot_seed_operand_and_phase(void **state)
{
    (void)state;
    enum { N = 64 };
    static const struct {
        uint64_t seed;
        int index, slot, phase;
    } keys[] = {{1, 2, 0, 0}, {2, 2, 0, 0}, {1, 1, 0, 0}, {1, 2, 1, 0}, {1, 2, 0, 1}, {1, 2, 0, 2}};
    enum { KEYS = sizeof keys / sizeof *keys };
    double poison[KEYS][N], again[N];
    const cb_operand operand = {"y", CB_OUTPUT, CB_F64, "", -1, 1};
    for (int i = 0; i < KEYS; i++) {
        cb__poison_fill(&operand, keys[i].seed, keys[i].index, keys[i].slot, keys[i].phase,
                        poison[i], sizeof poison[i]);
        for (int j = 0; j < i; j++)
            assert_memory_not_equal(poison[i], poison[j], sizeof poison[i]);
    }
    cb__poison_fill(&operand, 1, 2, 0, 0, again, sizeof again);
    assert_memory_equal(again, poison[0], sizeof again);
}

static void elements_of_every_type_are_read(void **state)
{
    (void)state;
    static const uint8_t u8[] = {0, 255};
    static const int8_t i8[] = {0, -128};
    static const uint16_t f16[] = {0x3c00, 0xc000, 0x0001, 0x7bff, 0x8000};
    static const uint16_t special[] = {0x7c00, 0xfc00, 0x7e00};
    static const uint16_t bf16[] = {0x3f80, 0xc000};
    static const int32_t i32[] = {INT32_MIN};
    static const uint32_t u32[] = {UINT32_MAX};
    static const uint64_t u64[] = {UINT64_C(1) << 63};
    assert_true(cb__element_f64(CB_U8, u8, 1) == 255);
    assert_true(cb__element_f64(CB_I8, i8, 1) == -128);
    assert_true(cb__element_f64(CB_U16, f16, 0) == 0x3c00);
    assert_true(cb__element_f64(CB_F16, f16, 0) == 1);
    assert_true(cb__element_f64(CB_F16, f16, 1) == -2);
    assert_true(cb__element_f64(CB_F16, f16, 2) == 0x1p-24);
    assert_true(cb__element_f64(CB_F16, f16, 3) == 65504);
    assert_true(cb__element_f64(CB_F16, f16, 4) == 0);
    assert_true(cb__element_f64(CB_F16, special, 0) == (double)INFINITY);
    assert_true(cb__element_f64(CB_F16, special, 1) == (double)-INFINITY);
    assert_true(isnan(cb__element_f64(CB_F16, special, 2)));
    assert_true(cb__element_f64(CB_BF16, bf16, 0) == 1);
    assert_true(cb__element_f64(CB_BF16, bf16, 1) == -2);
    assert_true(cb__element_f64(CB_I32, i32, 0) == INT32_MIN);
    assert_true(cb__element_f64(CB_U32, u32, 0) == UINT32_MAX);
    assert_true(cb__element_f64(CB_U64, u64, 0) == 0x1p63);
}

/* ---- verification of one output slot ---- */

typedef struct bench {
    cb__case c;
    cb__plan plan;
    cb_kernel kernel;
    double values[ROWS * 3], bounds[ROWS * 3];
    cb__reference reference;
    unsigned char *slot[CB__PHASES];
} bench;

static const uint64_t seed = 5;

static void bench_init(bench *b, bool rotates)
{
    cb_error err = CB_ERROR_INIT;
    memset(b, 0, sizeof *b);
    if (cb__case_parse(&toy_suite, "toy", "96x64", 0, &b->c, &err) != CB_OK)
        fail_msg("%s", err.message);
    b->kernel = toy_kernel;
    b->kernel.rotates = rotates ? "rows" : NULL;
    b->c.kernel = &b->kernel;
    cb__device_info info = {.threads = 1, .llc_bytes = 4096, .memory_bytes = UINT64_MAX};
    assert_int_equal(cb__plan_make(&b->c, &info, true, &b->plan, &err), CB_OK);
    for (int i = 0; i < ROWS * 3; i++) {
        b->values[i] = i + 0.5;
        b->bounds[i] = 0.01;
    }
    b->reference = (cb__reference){b->values, b->bounds, ROWS, rotates ? 1 : 3};
    for (int phase = 0; phase < CB__PHASES; phase++) {
        b->slot[phase] = malloc(b->plan.slot_bytes);
        assert_non_null(b->slot[phase]);
    }
}

static void bench_fini(bench *b)
{
    for (int phase = 0; phase < CB__PHASES; phase++)
        free(b->slot[phase]);
}

static float *output(bench *b, int phase)
{
    return (float *)(b->slot[phase] + b->plan.offset[TOY_Y]);
}

/* What a right launch on `set` leaves in slot 4. */
static void launch(bench *b, int set)
{
    uint64_t shift = b->kernel.rotates ? cb__plan_rotation((uint64_t)set, ROWS) : 0;
    const double *values = b->values + (b->kernel.rotates ? 0 : set * ROWS);
    for (int phase = 0; phase < CB__PHASES; phase++) {
        cb__poison_slot(&b->c, &b->plan, seed, 4, phase, b->slot[phase]);
        for (uint64_t i = 0; i < ROWS; i++)
            output(b, phase)[i] = (float)values[(i + shift) % ROWS];
    }
}

static cb__findings verify(bench *b, int set)
{
    cb__findings f = {0};
    for (int phase = 0; phase < CB__PHASES; phase++)
        cb__verify_slot(&b->c, &b->plan, &b->reference, seed, 4, set, b->slot[phase], &f);
    cb__verify_written(&b->c, &b->plan, seed, 4, b->slot[0], b->slot[1], &f);
    return f;
}

static void nothing_found(const cb__findings *f)
{
    assert_int_equal(f->slots, CB__PHASES);
    assert_int_equal(f->elements, CB__PHASES * ROWS);
    assert_int_equal(f->unwritten, 0);
    assert_int_equal(f->guard_bytes, 0);
    assert_int_equal(f->nonfinite, 0);
    assert_int_equal(f->beyond, 0);
}

static void right_outputs_of_every_set_are_clean(void **state)
{
    (void)state;
    for (int rotates = 0; rotates < 2; rotates++) {
        bench b;
        bench_init(&b, rotates);
        assert_int_equal(cb__reference_elements(&b.c), ROWS);
        for (int set = 0; set < (rotates ? 200 : 3); set++) {
            launch(&b, set);
            cb__findings f = verify(&b, set);
            nothing_found(&f);
            assert_true(f.worst < 1);
        }
        /* Another set's output is not taken for this one's. */
        launch(&b, 0);
        cb__findings f = verify(&b, 1);
        assert_int_equal(f.beyond, CB__PHASES * ROWS);
        bench_fini(&b);
    }
}

static void unwritten_elements_are_counted_from_the_first(void **state)
{
    (void)state;
    static const struct {
        int first, count;
    } table[] = {{0, 1}, {ROWS - 1, 1}, {ROWS - 3, 3}, {17, 5}, {0, ROWS}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        bench b;
        bench_init(&b, true);
        launch(&b, 3);
        for (int phase = 0; phase < 2; phase++) {
            unsigned char *poison = malloc(b.plan.slot_bytes);
            assert_non_null(poison);
            cb__poison_slot(&b.c, &b.plan, seed, 4, phase, poison);
            memcpy(output(&b, phase) + table[i].first,
                   poison + b.plan.offset[TOY_Y] + 4 * table[i].first, 4 * (size_t)table[i].count);
            free(poison);
        }
        cb__findings f = verify(&b, 3);
        assert_int_equal(f.unwritten, table[i].count);
        assert_int_equal(f.first_unwritten, table[i].first);
        bench_fini(&b);
    }
}

/* An output that happens to be one poison is written all the same: the other launch shows it. */
static void equal_to_one_poison_is_written(void **state)
{
    (void)state;
    bench b;
    bench_init(&b, true);
    launch(&b, 0);
    unsigned char *poison = malloc(b.plan.slot_bytes);
    assert_non_null(poison);
    cb__poison_slot(&b.c, &b.plan, seed, 4, 0, poison);
    memcpy(output(&b, 0), poison + b.plan.offset[TOY_Y], 4 * ROWS);
    free(poison);
    cb__findings f = verify(&b, 0);
    assert_int_equal(f.unwritten, 0);
    bench_fini(&b);
}

static void every_byte_of_a_guard_counts_with_its_distance(void **state)
{
    (void)state;
    bench b;
    bench_init(&b, true);
    int64_t start = (int64_t)b.plan.offset[TOY_Y], end = start + 4 * ROWS;
    const int64_t places[] = {start - 1, start - 4, start - CB__GUARD_BYTES,
                              end,       end + 3,   end + CB__GUARD_BYTES - 1};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        launch(&b, 0);
        b.slot[2][places[i]] ^= 0x40;
        cb__findings f = verify(&b, 0);
        assert_int_equal(f.guard_bytes, 1);
        /* In bytes from the end of the output: negative before it, 0 for the first byte past it. */
        assert_int_equal(f.first_guard, places[i] - end);
        assert_int_equal(f.beyond, 0);
    }
    launch(&b, 0);
    memset(b.slot[0] + end, 0, 64);
    memset(b.slot[1] + end, 0, 64);
    cb__findings f = verify(&b, 0);
    assert_true(f.guard_bytes > 100 && f.guard_bytes <= 128);
    assert_int_equal(f.first_guard, 0);
    bench_fini(&b);
}

/* Outputs that were found right once are known again by their bits, whatever lies around them. */
static void outputs_are_known_again_whatever_lies_around_them(void **state)
{
    (void)state;
    bench b;
    bench_init(&b, 1);
    launch(&b, 3);
    uint64_t right = cb__outputs_digest(&b.c, &b.plan, b.slot[0]);
    assert_true(cb__outputs_digest(&b.c, &b.plan, b.slot[1]) == right);
    cb__findings f = {0};
    cb__verify_guards(&b.c, &b.plan, seed, 4, b.slot[0], &f);
    assert_int_equal(f.slots, 1);
    assert_int_equal(f.elements, 0);
    assert_int_equal(f.guard_bytes, 0);
    b.slot[0][b.plan.offset[TOY_Y] + ROWS * sizeof(float)] ^= 1;
    assert_true(cb__outputs_digest(&b.c, &b.plan, b.slot[0]) == right);
    cb__verify_guards(&b.c, &b.plan, seed, 4, b.slot[0], &f);
    assert_int_equal(f.guard_bytes, 1);
    for (uint64_t i = 0; i < ROWS; i++) {
        uint32_t bits;
        memcpy(&bits, &output(&b, 1)[i], sizeof bits);
        bits ^= 1;
        memcpy(&output(&b, 1)[i], &bits, sizeof bits);
        assert_true(cb__outputs_digest(&b.c, &b.plan, b.slot[1]) != right);
        bits ^= 1;
        memcpy(&output(&b, 1)[i], &bits, sizeof bits);
    }
    bench_fini(&b);
}

static void what_is_outside_the_bound_is_shown_with_its_values(void **state)
{
    (void)state;
    bench b;
    bench_init(&b, true);
    launch(&b, 0);
    output(&b, 1)[10] += 0.009f;
    cb__findings f = verify(&b, 0);
    nothing_found(&f);
    assert_true(f.worst > 0.89 && f.worst < 0.91);
    output(&b, 1)[10] += 0.003f;
    output(&b, 1)[20] = -7;
    f = verify(&b, 0);
    assert_int_equal(f.beyond, 2);
    assert_int_equal(f.first_beyond, 10);
    assert_true(fabs(f.got - 10.512) < 1e-5 && f.want == 10.5 && f.bound == 0.01);
    assert_true(f.worst > 2700);
    /* A bound of zero asks for equality, and gets it. */
    launch(&b, 0);
    memset(b.bounds, 0, sizeof b.bounds);
    f = verify(&b, 0);
    nothing_found(&f);
    output(&b, 0)[0] = nextafterf(output(&b, 0)[0], 9);
    f = verify(&b, 0);
    assert_int_equal(f.beyond, 1);
    assert_true(isinf(f.worst));
    bench_fini(&b);
}

static void a_bound_that_is_no_number_lets_nothing_pass(void **state)
{
    (void)state;
    bench b;
    bench_init(&b, true);
    launch(&b, 0);
    b.bounds[5] = (double)NAN;
    b.bounds[6] = -1;
    output(&b, 0)[5] += 1;
    output(&b, 0)[6] += 1;
    cb__findings f = verify(&b, 0);
    assert_int_equal(f.beyond, 2);
    bench_fini(&b);
}

static void nan_and_inf_are_counted_where_the_definition_is_finite(void **state)
{
    (void)state;
    bench b;
    bench_init(&b, true);
    launch(&b, 0);
    output(&b, 0)[95] = NAN;
    output(&b, 2)[30] = INFINITY;
    output(&b, 2)[31] = -INFINITY;
    cb__findings f = verify(&b, 0);
    assert_int_equal(f.nonfinite, 3);
    assert_int_equal(f.first_nonfinite, 95);
    assert_int_equal(f.beyond, 0);
    bench_fini(&b);
}

static void a_definition_that_gives_nan_wants_nan(void **state)
{
    (void)state;
    bench b;
    bench_init(&b, true);
    b.values[1] = (double)NAN;
    b.values[2] = (double)INFINITY;
    b.values[3] = (double)-INFINITY;
    launch(&b, 0);
    cb__findings f = verify(&b, 0);
    nothing_found(&f);
    output(&b, 0)[1] = 1;
    output(&b, 0)[2] = -INFINITY;
    output(&b, 0)[3] = NAN;
    f = verify(&b, 0);
    assert_int_equal(f.beyond, 3);
    assert_int_equal(f.first_beyond, 1);
    assert_true(f.got == 1 && isnan(f.want));
    assert_int_equal(f.nonfinite, 0);
    bench_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(poisons_differ_in_every_element_and_are_plausible),
        cmocka_unit_test(poison_is_new_for_slot_seed_operand_and_phase),
        cmocka_unit_test(elements_of_every_type_are_read),
        cmocka_unit_test(right_outputs_of_every_set_are_clean),
        cmocka_unit_test(unwritten_elements_are_counted_from_the_first),
        cmocka_unit_test(equal_to_one_poison_is_written),
        cmocka_unit_test(every_byte_of_a_guard_counts_with_its_distance),
        cmocka_unit_test(outputs_are_known_again_whatever_lies_around_them),
        cmocka_unit_test(what_is_outside_the_bound_is_shown_with_its_values),
        cmocka_unit_test(a_bound_that_is_no_number_lets_nothing_pass),
        cmocka_unit_test(nan_and_inf_are_counted_where_the_definition_is_finite),
        cmocka_unit_test(a_definition_that_gives_nan_wants_nan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
