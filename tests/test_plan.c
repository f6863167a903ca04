#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "measure/plan.h"
#include "toy.h"

static const uint64_t mib = 1 << 20;

static cb__case toy(const char *shape)
{
    cb__case c;
    cb_error err = CB_ERROR_INIT;
    if (cb__case_parse(&toy_suite, "toy", shape, 0, &c, &err) != CB_OK)
        fail_msg("%s", err.message);
    return c;
}

static cb__plan plan_of(const cb__case *c, uint64_t llc, bool cold)
{
    cb__device_info info = {.threads = 1, .llc_bytes = llc, .memory_bytes = UINT64_MAX};
    cb__plan plan;
    cb_error err = CB_ERROR_INIT;
    if (cb__plan_make(c, &info, cold, &plan, &err) != CB_OK)
        fail_msg("%s", err.message);
    return plan;
}

static void a_ring_is_over_four_times_the_last_level_in_whole_batches(void **state)
{
    (void)state;
    static const char *const shapes[] = {"1x32",      "8x64",       "100x1024", "1024x1024",
                                         "1000x4096", "1024x16384", "4096x4096"};
    static const uint64_t caches[] = {0, 1, 4096, 1 << 20, 33 << 20, 96 << 20};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (size_t j = 0; j < sizeof caches / sizeof *caches; j++) {
            cb__case c = toy(shapes[i]);
            cb__plan p = plan_of(&c, caches[j], true);
            assert_true(p.streams);
            /* An unknown last level counts as 64 MiB. */
            assert_int_equal(p.needed_bytes, 4 * (caches[j] ? caches[j] : 64 * mib));
            assert_true(p.k >= 2);
            assert_true(p.batch >= 2 && p.batch <= CB__BATCH_MAX);
            assert_int_equal(p.k % p.batch, 0);
            assert_int_equal(p.sets, 2 * p.k);
            assert_int_equal(p.slots, p.sets);
            assert_true((uint64_t)p.k * p.touched_bytes >= p.needed_bytes);
            /* and no more than a batch above 5x */
            assert_true(p.k <= 2 * p.batch ||
                        (uint64_t)(p.k - p.batch) * p.touched_bytes < p.needed_bytes / 4 * 5);
            assert_true(p.touched_bytes <= p.set_bytes);
        }
}

/* A device that asks for long batches gets the rotation in one, several times over; no more sets
 * than coldness needs. */
static void long_batches_go_over_the_rotation_again(void **state)
{
    (void)state;
    static const struct {
        const char *shape;
        uint64_t batch_bytes;
        bool whole, again;
    } table[] = {{"1024x16384", 0, false, false},
                 {"1024x16384", 8 * mib, false, false}, /* shorter than the rotation */
                 {"1024x16384", 2048 * mib, true, true},
                 {"8x64", 2048 * mib, false, false}}; /* too many sets for one batch */
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        cb__case c = toy(table[i].shape);
        cb__device_info info = {.threads = 1,
                                .llc_bytes = 60 * mib,
                                .memory_bytes = UINT64_MAX,
                                .batch_bytes = table[i].batch_bytes};
        cb__plan p;
        assert_int_equal(cb__plan_make(&c, &info, true, &p, NULL), CB_OK);
        assert_int_equal(p.batch == p.k, table[i].whole);
        assert_int_equal(p.passes > 1, table[i].again);
        assert_true(p.passes >= 1 && p.batch <= CB__BATCH_MAX && p.k % p.batch == 0);
        if (table[i].again)
            assert_true(p.touched_bytes * (uint64_t)(p.batch * p.passes) >= table[i].batch_bytes &&
                        p.touched_bytes * (uint64_t)(p.k - 1) < p.needed_bytes / 4 * 5);
    }
}

static void warm_needs_one_set(void **state)
{
    (void)state;
    cb__case c = toy("1024x1024");
    cb__plan p = plan_of(&c, 32 * mib, false);
    assert_int_equal(p.k, 1);
    assert_int_equal(p.sets, 1);
    assert_int_equal(p.slots, p.batch);
    assert_int_equal(p.static_offset, p.set_bytes);
}

static void a_kernel_that_streams_nothing_has_no_cold_state(void **state)
{
    (void)state;
    cb__case c;
    cb__plan plan;
    cb_error err = CB_ERROR_INIT;
    cb__device_info info = {.threads = 1, .memory_bytes = UINT64_MAX};
    assert_int_equal(cb__case_parse(&toy_suite, "toy_chain", NULL, 0, &c, &err), CB_OK);
    assert_int_equal(cb__plan_make(&c, &info, true, &plan, &err), CB_USAGE);
    assert_non_null(strstr(err.message, "toy_chain streams no operand"));
    assert_non_null(strstr(err.message, "--cache warm"));
    cb_error_clear(&err);
    assert_int_equal(cb__plan_make(&c, &info, false, &plan, &err), CB_OK);
    assert_false(plan.streams);
    assert_string_equal(plan.twin_kernel, "");
}

/* ---- memory ---- */

static void too_little_memory_says_needed_and_available(void **state)
{
    (void)state;
    cb__case c = toy("1024x1024");
    cb__plan p = plan_of(&c, 8 * mib, true);
    cb__device_info info = {.threads = 1, .llc_bytes = 8 * mib, .memory_bytes = p.memory_bytes};
    cb__plan again;
    cb_error err = CB_ERROR_INIT;
    assert_int_equal(cb__plan_make(&c, &info, true, &again, &err), CB_OK);
    info.memory_bytes--;
    assert_int_equal(cb__plan_make(&c, &info, true, &again, &err), CB_NO_MEMORY);
    char needed[64];
    snprintf(needed, sizeof needed, "needs %.1f MiB", (double)p.memory_bytes / (double)mib);
    assert_non_null(strstr(err.message, needed));
    snprintf(needed, sizeof needed, "%.1f MiB are available",
             (double)info.memory_bytes / (double)mib);
    assert_non_null(strstr(err.message, needed));
    assert_non_null(strstr(err.message, "--cache warm"));
    /* Everything of the case counts: the file, every slot, and the f64 reference of an output. */
    assert_true(p.memory_bytes >= p.file_bytes + (uint64_t)p.slots * p.slot_bytes);
}

/* What is advised is what helps: a larger shape where the padding of small sets is the reason, a
 * smaller one where the sets are large. */
static void too_little_memory_is_told_with_what_helps(void **state)
{
    (void)state;
    static const struct {
        const char *shape;
        uint64_t llc, memory;
        bool outputs; /* as large as what is read */
        const char *said, *not_said;
    } table[] = {
        {"1x32", 8 << 20, 64 << 20, false, "or a larger shape", "smaller"},
        {"1x32", 8 << 20, 64 << 20, true, "or a larger shape", "smaller"},
        {"1024x1024", 8 << 20, 64 << 20, false, "--cache warm needs one set", "shape"},
        {"1024x1024", 8 << 20, 64 << 20, true, "--cache warm needs one set", "shape"},
        {"65536x65536", 32 << 20, UINT64_C(23) << 30, false, "use a smaller shape, or --cache warm",
         "too small"},
        {"65536x65536", 32 << 20, UINT64_C(8) << 30, false, "use a smaller shape", "--cache warm"},
        {"65536x65536", 32 << 20, UINT64_C(23) << 30, true, "use a smaller shape", "too small"}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        cb__case c = toy(table[i].shape);
        cb__device_info info = {
            .threads = 1, .llc_bytes = table[i].llc, .memory_bytes = table[i].memory};
        cb__plan plan;
        cb_error err = CB_ERROR_INIT;
        if (table[i].outputs)
            c.logical_bytes[TOY_Y] = c.packed_bytes[TOY_Y] = c.packed_bytes[TOY_W];
        assert_int_equal(cb__plan_make(&c, &info, true, &plan, &err), CB_NO_MEMORY);
        if (!strstr(err.message, table[i].said) || strstr(err.message, table[i].not_said))
            fail_msg("row %zu: %s", i, err.message);
        assert_true(strlen(err.message) < sizeof err.message - 1);
    }
}

/* Sets so small and caches so large that the number of sets does not fit an int: refused for
 * memory, and never a ring of whatever was left of the number. */
static void a_ring_of_too_many_sets_is_refused_for_memory(void **state)
{
    (void)state;
    static const uint64_t caches[] = {UINT64_C(1) << 38, UINT64_C(1) << 44,
                                      UINT64_C(1000000000000000)};
    cb__case c = toy("1x32");
    for (size_t i = 0; i < sizeof caches / sizeof *caches; i++) {
        cb__device_info info = {
            .threads = 1, .llc_bytes = caches[i], .memory_bytes = UINT64_C(1) << 50};
        cb__plan plan;
        cb_error err = CB_ERROR_INIT;
        assert_int_equal(cb__plan_make(&c, &info, true, &plan, &err), CB_NO_MEMORY);
        assert_non_null(strstr(err.message, "available"));
    }
}

/* ---- the twin ---- */

static void the_twin_moves_what_the_kernel_moves(void **state)
{
    (void)state;
    static const struct {
        uint64_t read, written;
        const char *twin;
        uint64_t bytes;
    } table[] = {
        {1000000, 0, "twin_read", 1000000},
        {1000000, 52631, "twin_read", 1000000},
        {1000000, 52632, "twin_copy", 526336},
        {1000000, 1000000, "twin_copy", 1000000},
        {52631, 1000000, "twin_write", 1000000},
        {0, 1000000, "twin_write", 1000000},
        {1, 0, "twin_read", 64},
        {0, 0, "", 0},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        cb__case c = toy("512x512");
        c.cost = (cb_cost){table[i].read, table[i].written, 1};
        cb__plan p = plan_of(&c, mib, true);
        assert_string_equal(p.twin_kernel, table[i].twin);
        assert_int_equal(p.twin_bytes, (table[i].bytes + 63) / 64 * 64);
        /* What a reading or copying twin reads lies in the set. */
        if (*table[i].twin && strcmp(table[i].twin, "twin_write"))
            assert_true(p.twin_bytes <= p.set_bytes);
    }
}

/* ---- rotation ---- */

static void neighbouring_sets_begin_with_different_rows(void **state)
{
    (void)state;
    static const uint64_t rows[] = {2,  3,    7,    23,   587,   40503, 64,
                                    96, 1000, 1024, 4096, 14336, 18944, 65536};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(cb__plan_rotation(0, rows[i]), 0);
        for (uint64_t set = 0; set < 500; set++) {
            assert_true(cb__plan_rotation(set, rows[i]) < rows[i]);
            assert_int_not_equal(cb__plan_rotation(set, rows[i]),
                                 cb__plan_rotation(set + 1, rows[i]));
        }
    }
    assert_int_equal(cb__plan_rotation(3, 1), 0);
}

static void the_rows_that_rotate_are_the_named_dimension(void **state)
{
    (void)state;
    cb__case c = toy("96x64");
    assert_int_equal(cb__plan_rows(&c), 96);
    cb_kernel k = toy_kernel;
    c.kernel = &k;
    k.rotates = "cols";
    assert_int_equal(cb__plan_rows(&c), 64);
    k.rotates = NULL;
    assert_int_equal(cb__plan_rows(&c), 0);
}

/* ---- where everything lies ---- */

static const cb_operand many[] = {
    {"a", CB_WEIGHT, CB_F32, "", 0, 1},  {"b", CB_STREAM, CB_F32, "", 0, 1},
    {"c", CB_INPUT, CB_F32, "", 0, 1},   {"d", CB_INPUT, CB_U8, "", 0, 1},
    {"e", CB_OUTPUT, CB_F32, "", 0, 1},  {"f", CB_OUTPUT, CB_U8, "", 0, 1},
    {"g", CB_SCRATCH, CB_F32, "", 0, 1}, {"h", CB_WEIGHT, CB_U8, "", 0, 1},
};

static void places_are_aligned_and_disjoint(void **state)
{
    (void)state;
    static const uint64_t sizes[][8] = {{100, 200, 300, 5, 12, 7, 64, 1},
                                        {4096, 64, 4096, 8192, 4096, 4097, 1, 63},
                                        {1 << 20, 0, 0, 1, 4, 0, 0, 65}};
    cb_kernel k = toy_kernel;
    k.operands = many;
    k.noperands = 8;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        cb__case c = toy("8x64");
        c.kernel = &k;
        memcpy(c.packed_bytes, sizes[i], sizeof sizes[i]);
        memcpy(c.logical_bytes, sizes[i], sizeof sizes[i]);
        cb__plan p = plan_of(&c, mib, true);
        uint64_t in_set = 0, in_file = 0, in_slot = 0;
        for (int o = 0; o < 8; o++) {
            uint64_t end = p.offset[o] + c.packed_bytes[o];
            bool rotates = many[o].role == CB_WEIGHT || many[o].role == CB_STREAM;
            assert_int_equal(p.rotating[o], rotates && c.packed_bytes[o] > 0);
            assert_int_equal(p.offset[o] % 64, 0);
            if (p.rotating[o]) {
                assert_true(p.offset[o] >= in_set && end <= p.set_bytes);
                in_set = end;
            } else if (many[o].role == CB_INPUT) {
                assert_true(p.offset[o] >= in_file && p.static_offset + end <= p.file_bytes);
                in_file = end;
            } else if (many[o].role == CB_OUTPUT) {
                /* A whole guard before it and one after it. */
                assert_true(p.offset[o] >= in_slot + CB__GUARD_BYTES);
                assert_true(end + CB__GUARD_BYTES <= p.slot_bytes);
                in_slot = end;
            }
        }
        assert_int_equal(p.set_bytes % 4096, 0);
        assert_int_equal(p.slot_bytes % 4096, 0);
        assert_int_equal(p.file_bytes % 4096, 0);
        assert_int_equal(p.static_offset, (uint64_t)p.sets * p.set_bytes);
    }
}

static void roles_that_are_written_and_read(void **state)
{
    (void)state;
    static const bool written[] = {false, false, false, true, true, false};
    static const bool read[] = {true, true, true, false, true, false};
    for (int role = CB_WEIGHT; role <= CB_SCRATCH; role++) {
        assert_int_equal(cb__role_is_written((cb_role)role), written[role]);
        assert_int_equal(cb__role_is_read((cb_role)role), read[role]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ring_is_over_four_times_the_last_level_in_whole_batches),
        cmocka_unit_test(long_batches_go_over_the_rotation_again),
        cmocka_unit_test(warm_needs_one_set),
        cmocka_unit_test(a_kernel_that_streams_nothing_has_no_cold_state),
        cmocka_unit_test(too_little_memory_says_needed_and_available),
        cmocka_unit_test(too_little_memory_is_told_with_what_helps),
        cmocka_unit_test(a_ring_of_too_many_sets_is_refused_for_memory),
        cmocka_unit_test(the_twin_moves_what_the_kernel_moves),
        cmocka_unit_test(neighbouring_sets_begin_with_different_rows),
        cmocka_unit_test(the_rows_that_rotate_are_the_named_dimension),
        cmocka_unit_test(places_are_aligned_and_disjoint),
        cmocka_unit_test(roles_that_are_written_and_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
