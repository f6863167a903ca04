#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "toy.h"

static const unsigned avx2 = CB_ISA_AVX2;

/* ---- what is accepted, and its canonical spelling ---- */

static const struct {
    const char *variant, *shape, *canonical, *shape_text;
    unsigned isa;
} accepted[] = {
    {"toy", "8x64", "toy@act=f32,tokens=1,level=5/wide:block_rows=4,grain=0", "8x64", CB_ISA_AVX2},
    {"toy", "8x64", "toy@act=f32,tokens=1,level=5/plain", "8x64", 0},
    {"toy@act=q8", "8x64", "toy@act=q8,tokens=1,level=5/plain", "8x64", CB_ISA_AVX2},
    {"toy@level=-3,tokens=4", "8x64", "toy@act=f32,tokens=4,level=-3/plain", "8x64", 0},
    {"toy/plain", "8x64", "toy@act=f32,tokens=1,level=5/plain", "8x64", CB_ISA_AVX2},
    {"toy:grain=64", "8x64", "toy@act=f32,tokens=1,level=5/wide:block_rows=4,grain=64", "8x64",
     CB_ISA_AVX2},
    {"toy@tokens=2/wide:grain=7,block_rows=8", "8x64",
     "toy@act=f32,tokens=2,level=5/wide:block_rows=8,grain=7", "8x64", CB_ISA_AVX2},
    {"toy", "cols=64,rows=8", "toy@act=f32,tokens=1,level=5/plain", "8x64", 0},
    {"toy", "4KiBx1MiB", "toy@act=f32,tokens=1,level=5/plain", "4096x1048576", 0},
    {"toy_chain", NULL, "toy_chain/plain", "", 0},
    {"toy_chain", "", "toy_chain/plain", "", 0},
};

static void a_case_is_bound_and_spelled_in_full(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof accepted / sizeof *accepted; i++) {
        cb__case c, again;
        cb__buf variant = CB__BUF_INIT, shape = CB__BUF_INIT;
        cb_error err = CB_ERROR_INIT;
        if (cb__case_parse(&toy_suite, accepted[i].variant, accepted[i].shape, accepted[i].isa, &c,
                           &err) != CB_OK)
            fail_msg("%s: %s", accepted[i].variant, err.message);
        cb__case_variant_text(&c, &variant);
        cb__case_shape_text(&c, &shape);
        assert_string_equal(cb__buf_text(&variant), accepted[i].canonical);
        assert_string_equal(cb__buf_text(&shape), accepted[i].shape_text);
        /* The canonical spelling is the same case. */
        assert_int_equal(cb__case_parse(&toy_suite, cb__buf_text(&variant), cb__buf_text(&shape),
                                        accepted[i].isa, &again, &err),
                         CB_OK);
        assert_memory_equal(c.shape, again.shape, sizeof c.shape);
        assert_memory_equal(c.params, again.params, sizeof c.params);
        assert_memory_equal(c.tunables, again.tunables, sizeof c.tunables);
        assert_ptr_equal(c.impl, again.impl);
        cb__buf_fini(&variant);
        cb__buf_fini(&shape);
    }
}

static void sizes_follow_from_the_definition(void **state)
{
    (void)state;
    cb__case c;
    cb_error err = CB_ERROR_INIT;
    assert_int_equal(cb__case_parse(&toy_suite, "toy@tokens=2", "8x64", avx2, &c, &err), CB_OK);
    assert_int_equal(c.logical_bytes[TOY_W], 8 * 64 * 4);
    assert_int_equal(c.packed_bytes[TOY_W], 8 * 64 * 4);
    assert_int_equal(c.logical_bytes[TOY_X], 64 * 4);
    assert_int_equal(c.logical_bytes[TOY_Y], 8 * 4);
    assert_int_equal(c.cost.bytes_read, (8 * 64 + 64) * 4);
    assert_int_equal(c.cost.bytes_written, 8 * 4);
    assert_true(c.cost.flops == 2 * 8 * 64);
    assert_int_equal(c.spelled, 1u << 1);
    assert_ptr_equal(c.module, &toy_module);
    cb__code code = cb__case_code(&c);
    assert_ptr_equal(code.problem.shape, c.shape);
    assert_ptr_equal(code.tunables, c.tunables);
}

/* ---- what is refused: the status, and what the message must hold ---- */

static const struct {
    const char *variant, *shape;
    cb_status status;
    const char *parts[3];
} refused[] = {
    /* names, with what is valid and the nearest */
    {"tot", "8x64", CB_USAGE, {"unknown kernel 'tot'", "toy, toy_chain", "did you mean 'toy'"}},
    {"", "8x64", CB_USAGE, {"unknown kernel ''", "toy"}},
    {"toy@tokns=1",
     "8x64",
     CB_USAGE,
     {"unknown parameter 'tokns'", "act, tokens, level", "'tokens'"}},
    {"toy@act=f33", "8x64", CB_USAGE, {"value of act 'f33'", "f32, q8", "'f32'"}},
    {"toy/wid", "8x64", CB_USAGE, {"unknown implementation 'wid'", "wide, plain", "'wide'"}},
    {"toy/", "8x64", CB_USAGE, {"unknown implementation ''", "wide, plain"}},
    {"toy:block_row=1", "8x64", CB_USAGE, {"unknown tunable 'block_row'", "grain", "'block_rows'"}},
    {"toy/plain:grain=1", "8x64", CB_USAGE, {"unknown tunable 'grain'", "has none"}},
    {"toy_chain@act=f32", NULL, CB_USAGE, {"unknown parameter 'act'", "has none"}},
    /* values */
    {"toy@tokens=3", "8x64", CB_USAGE, {"tokens=3 is not offered", "1, 2, 4"}},
    {"toy@level=1001", "8x64", CB_USAGE, {"level", "'1001'", "-3 to 1000"}},
    {"toy@level=-4", "8x64", CB_USAGE, {"level", "'-4'"}},
    {"toy@level=", "8x64", CB_USAGE, {"level", "''"}},
    {"toy@level=5x", "8x64", CB_USAGE, {"level", "'5x'"}},
    {"toy@level=99999999999999999999", "8x64", CB_USAGE, {"level", "out of range"}},
    {"toy:grain=-1", "8x64", CB_USAGE, {"grain", "'-1'", "0 to 64"}},
    {"toy:block_rows=3", "8x64", CB_USAGE, {"block_rows=3 is not offered", "1, 2, 4, 8"}},
    /* form */
    {"toy@", "8x64", CB_USAGE, {"parameter ''", "name=value"}},
    {"toy@act", "8x64", CB_USAGE, {"parameter 'act'", "name=value"}},
    {"toy@act=f32,", "8x64", CB_USAGE, {"parameter ''", "name=value"}},
    {"toy@act=f32,act=q8", "8x64", CB_USAGE, {"'act' is given twice"}},
    {"toy:", "8x64", CB_USAGE, {"tunable ''", "name=value"}},
    {"toy:grain=1,grain=1", "8x64", CB_USAGE, {"'grain' is given twice"}},
    {"toy/wide@act=f32", "8x64", CB_USAGE, {"unknown implementation 'wide@act=f32'"}},
    /* what is known but not here, or does not cover */
    {"toy@act=q8/wide", "8x64", CB_USAGE, {"'wide' of toy does not cover"}},
    /* shapes: the rule and the value */
    {"toy", NULL, CB_USAGE, {"toy needs a shape", "rowsxcols"}},
    {"toy", "", CB_USAGE, {"toy needs a shape"}},
    {"toy_chain", "8", CB_USAGE, {"toy_chain has no shape"}},
    {"toy", "8", CB_USAGE, {"'8'", "rowsxcols", "2 integers"}},
    {"toy", "8x64x1", CB_USAGE, {"'8x64x1'", "2 integers"}},
    {"toy", "8x64x", CB_USAGE, {"'8x64x'"}},
    {"toy", "8x", CB_USAGE, {"cols of toy", "''"}},
    {"toy", "x", CB_USAGE, {"rows of toy", "''"}},
    {"toy", "8x33", CB_USAGE, {"cols of toy", "multiple of 32", "33 is not"}},
    {"toy", "0x64", CB_USAGE, {"rows of toy", "'0'", "1 to"}},
    {"toy", "8x0", CB_USAGE, {"cols of toy", "'0'"}},
    {"toy", "-8x64", CB_USAGE, {"rows of toy", "'-8'"}},
    {"toy", "+8x64", CB_USAGE, {"rows of toy", "'+8'"}},
    {"toy", " 8x64", CB_USAGE, {"rows of toy"}},
    {"toy", "8x64 ", CB_USAGE, {"cols of toy", "'64 '"}},
    {"toy", "8X64", CB_USAGE, {"rows of toy", "'8X64'"}},
    {"toy", "8.0x64", CB_USAGE, {"rows of toy", "'8.0'"}},
    {"toy", "8x0x40", CB_USAGE, {"cols of toy", "'0'"}},
    {"toy", "8x64kib", CB_USAGE, {"cols of toy", "'64kib'"}},
    {"toy", "16777217x64", CB_USAGE, {"rows of toy", "'16777217'", "16777216"}},
    {"toy", "9223372036854775807x64", CB_USAGE, {"rows of toy", "out of range"}},
    {"toy", "99999999999999999999x64", CB_USAGE, {"rows of toy", "out of range"}},
    {"toy", "9007199254740993GiBx64", CB_USAGE, {"rows of toy", "out of range"}},
    {"toy", "16MiBx16MiB", CB_USAGE, {"toy: rows x cols is at most 2^40", "16777216 x 16777216"}},
    {"toy", "rows=8", CB_USAGE, {"'rows=8'", "rowsxcols"}},
    {"toy", "rows=8,cols=64,rows=8", CB_USAGE, {"'rows' is given twice"}},
    {"toy", "rows=8,col=64", CB_USAGE, {"unknown dimension 'col'", "rows, cols", "'cols'"}},
    {"toy", "rows=8,64", CB_USAGE, {"'rows=8,64'"}},
    {"toy", "rows=8,cols=33", CB_USAGE, {"multiple of 32", "33"}},
    {"toy", "rows=8,,cols=64", CB_USAGE, {"'rows=8,,cols=64'"}},
};

static void bad_spelling_is_refused_with_the_rule(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        cb__case c;
        cb_error err = CB_ERROR_INIT;
        cb_status status =
            cb__case_parse(&toy_suite, refused[i].variant, refused[i].shape, avx2, &c, &err);
        if (status != refused[i].status || err.status != status)
            fail_msg("%s %s: %s (%s)", refused[i].variant, refused[i].shape, cb_status_name(status),
                     err.message);
        for (int j = 0; j < 3 && refused[i].parts[j]; j++)
            if (!strstr(err.message, refused[i].parts[j]))
                fail_msg("%s %s: no '%s' in '%s'", refused[i].variant, refused[i].shape,
                         refused[i].parts[j], err.message);
    }
}

static void an_implementation_for_another_machine_is_unavailable(void **state)
{
    (void)state;
    cb__case c;
    cb_error err = CB_ERROR_INIT;
    assert_int_equal(cb__case_parse(&toy_suite, "toy/wide", "8x64", 0, &c, &err), CB_UNAVAILABLE);
    assert_non_null(strstr(err.message, "needs avx2; this machine has portable"));
    cb_error_clear(&err);
    static const cb_kernel only_wide = {.name = "only", .nimpls = 1, .impls = toy_impls};
    static const cb_kernel *const kernels[] = {&only_wide};
    static const cb_module table = {CB_KERNEL_ABI, sizeof(cb_kernel), kernels, 1};
    static cb__module module = {.table = &table, .builtin = true};
    const cb__suite suite = {.modules = {&module}, .nmodules = 1};
    assert_int_equal(cb__case_parse(&suite, "only", NULL, 0, &c, &err), CB_UNAVAILABLE);
    assert_non_null(strstr(err.message, "no implementation of only"));
}

static int no_geometry(const cb_problem *p, const int64_t *tunables, int processors,
                       cb_geometry *out)
{
    (void)p, (void)tunables, (void)processors, (void)out;
    return 1;
}

static void code_for_a_later_device_says_which(void **state)
{
    (void)state;
    static const cb_device_code later = {"", "entry", 999, no_geometry, 0};
    static const cb_impl both[] = {{.name = "gpu", .isa = CB_ISA_CUDA, .device = &later},
                                   {.name = "plain"}};
    static const struct {
        const char *variant;
        int impls, capability;
        cb_status status;
        const char *says;
    } table[] = {
        {"only", 1, 70, CB_UNAVAILABLE,
         "implementation 'gpu' of only needs compute capability 99.9; this device has 7.0"},
        {"only/gpu", 2, 90, CB_UNAVAILABLE,
         "implementation 'gpu' of only needs compute capability 99.9; this device has 9.0"},
        {"only", 2, 90, CB_UNAVAILABLE, "needs compute capability 99.9; this device has 9.0"},
        {"only/plain", 2, 90, CB_UNAVAILABLE, "'plain' of only needs portable; this machine has"},
        {"only", 1, 999, CB_OK, ""},
        {"only/gpu", 1, 0, CB_OK, ""},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const cb_kernel kernel = {.name = "only", .nimpls = table[i].impls, .impls = both};
        const cb_kernel *const kernels[] = {&kernel};
        const cb_module module_table = {CB_KERNEL_ABI, sizeof(cb_kernel), kernels, 1};
        cb__module module = {.table = &module_table, .builtin = true};
        const cb__suite suite = {.modules = {&module}, .nmodules = 1};
        unsigned isa = CB_ISA_CUDA | (unsigned)table[i].capability << CB__ISA_CAPABILITY_SHIFT;
        cb__case c;
        cb_error err = CB_ERROR_INIT;
        cb_status status = cb__case_parse_variant(&suite, table[i].variant, isa, &c, &err);
        if (status != table[i].status || !strstr(err.message, table[i].says))
            fail_msg("case %zu: %s, '%s'", i, cb_status_name(status), err.message);
    }
}

/* ---- hostile text ---- */

static void long_text_is_refused_at_any_length(void **state)
{
    (void)state;
    static const char *const starts[] = {"", "toy@", "toy/", "toy:", "toy@act=", "toy:grain="};
    enum { LENGTH = 70000 };
    char *text = malloc(LENGTH + 1);
    assert_non_null(text);
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        for (size_t length = 480; length <= LENGTH;
             length = length < 560 ? length + 1 : 2 * length) {
            memset(text, 'a', length);
            memcpy(text, starts[i], strlen(starts[i]));
            text[length] = '\0';
            cb__case c;
            cb_error err = CB_ERROR_INIT;
            assert_int_equal(cb__case_parse(&toy_suite, text, "8x64", avx2, &c, &err), CB_USAGE);
            cb_error_clear(&err);
            assert_int_equal(cb__case_parse(&toy_suite, "toy", text, avx2, &c, &err), CB_USAGE);
        }
    free(text);
}

static void every_byte_in_every_place_is_refused_or_right(void **state)
{
    (void)state;
    static const char model[] = "toy@act=f32,tokens=1/wide:block_rows=4";
    for (size_t at = 0; at < sizeof model - 1; at++)
        for (int byte = 1; byte < 256; byte++) {
            char text[sizeof model];
            memcpy(text, model, sizeof model);
            text[at] = (char)byte;
            cb__case c;
            cb_error err = CB_ERROR_INIT;
            cb_status status = cb__case_parse(&toy_suite, text, "8x64", avx2, &c, &err);
            assert_true(status == CB_OK || status == CB_USAGE);
            assert_int_equal(*err.message != '\0', status != CB_OK);
        }
}

static void a_variant_without_a_shape_has_names_alone(void **state)
{
    (void)state;
    cb__case c;
    cb_error err = CB_ERROR_INIT;
    assert_int_equal(cb__case_parse_variant(&toy_suite, "toy@tokens=2", avx2, &c, &err), CB_OK);
    assert_int_equal(c.params[1], 2);
    assert_int_equal(c.shape[0], 0);
    assert_int_equal(c.cost.bytes_read, 0);
    assert_int_equal(cb__case_parse_variant(&toy_suite, "toy@tokens=3", avx2, &c, &err), CB_USAGE);
}

/* An operand past 64 TiB would let sums over a ring overflow. */
static uint64_t huge_bytes(const cb_problem *p, int operand)
{
    (void)p;
    return operand == TOY_W ? UINT64_C(1) << 46 : 4;
}

static void an_operand_past_64_tib_is_refused(void **state)
{
    (void)state;
    cb_kernel huge = toy_kernel;
    huge.bytes = huge_bytes;
    const cb_kernel *const kernels[] = {&huge};
    const cb_module table = {CB_KERNEL_ABI, sizeof(cb_kernel), kernels, 1};
    cb__module module = {.table = &table, .builtin = true};
    const cb__suite suite = {.modules = {&module}, .nmodules = 1};
    cb__case c;
    cb_error err = CB_ERROR_INIT;
    assert_int_equal(cb__case_parse(&suite, "toy", "8x64", 0, &c, &err), CB_USAGE);
    assert_non_null(strstr(err.message, "operand w would take over 64 TiB"));
}

static cb_cost cost_given;

static void cost_as_given(const cb_problem *p, cb_cost *out)
{
    (void)p;
    *out = cost_given;
}

/* What a module says of its traffic becomes a bandwidth. */
static void a_cost_that_is_none_is_refused(void **state)
{
    (void)state;
    static const struct {
        cb_cost cost;
        const char *says; /* NULL: it is taken */
    } rows[] = {
        {{~UINT64_C(0), 0, 0}, "its cost is over 64 TiB a launch"},
        {{0, UINT64_C(1) << 46, 0}, "its cost is over 64 TiB a launch"},
        {{1, 1, HUGE_VAL}, "its cost is inf operations"},
        {{1, 1, (double)NAN}, "nan operations"},
        {{1, 1, -1}, "its cost is -1 operations"},
        {{(UINT64_C(1) << 46) - 1, 0, 1e18}, NULL},
    };
    cb_kernel toy = toy_kernel;
    toy.cost = cost_as_given;
    const cb_kernel *const kernels[] = {&toy};
    const cb_module table = {CB_KERNEL_ABI, sizeof(cb_kernel), kernels, 1};
    cb__module module = {.table = &table, .builtin = true};
    const cb__suite suite = {.modules = {&module}, .nmodules = 1};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cb__case c;
        cb_error err = CB_ERROR_INIT;
        cost_given = rows[i].cost;
        cb_status status = cb__case_parse(&suite, "toy", "8x64", 0, &c, &err);
        assert_int_equal(status, rows[i].says ? CB_USAGE : CB_OK);
        if (rows[i].says && !strstr(err.message, rows[i].says))
            fail_msg("'%s' does not say '%s'", err.message, rows[i].says);
    }
}

static void names_of_types_roles_and_features(void **state)
{
    (void)state;
    assert_string_equal(cb__type_name(CB_BF16), "bf16");
    assert_string_equal(cb__type_name(CB_U64), "u64");
    assert_int_equal(cb__type_bytes(CB_F16), 2);
    assert_int_equal(cb__type_bytes(CB_F64), 8);
    assert_string_equal(cb__role_name(CB_SCRATCH), "scratch");
    assert_string_equal(cb__isa_name(CB_ISA_AVX2 | CB_ISA_AVX512 | CB_ISA_AVX512_VNNI),
                        "avx512+vnni");
    assert_string_equal(cb__isa_name(0), "portable");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_case_is_bound_and_spelled_in_full),
        cmocka_unit_test(sizes_follow_from_the_definition),
        cmocka_unit_test(bad_spelling_is_refused_with_the_rule),
        cmocka_unit_test(an_implementation_for_another_machine_is_unavailable),
        cmocka_unit_test(code_for_a_later_device_says_which),
        cmocka_unit_test(long_text_is_refused_at_any_length),
        cmocka_unit_test(every_byte_in_every_place_is_refused_or_right),
        cmocka_unit_test(a_variant_without_a_shape_has_names_alone),
        cmocka_unit_test(an_operand_past_64_tib_is_refused),
        cmocka_unit_test(a_cost_that_is_none_is_refused),
        cmocka_unit_test(names_of_types_roles_and_features),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
