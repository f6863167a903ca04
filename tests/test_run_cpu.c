/* The suite on real threads: every kernel, warm, solo and batched, on the cpu device. What is
 * asserted are facts about outputs and processes; times are whatever they are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "coldbench/worker.h"
#include "host/topology.h"
#include "run/run.h"

static const struct {
    const char *variant, *shape;
} table[] = {
    {"gemv_q4", "131x288"},
    {"gemv_q4@act=q8", "64x256"},
    {"gemv_q4@tokens=2/portable", "33x64"},
    {"stream_read@work=500", "65536"},
    {"alu_chain@work=10", NULL},
    {"twin_read@passes=3", "65600"},
    {"twin_write", "65600"},
    {"twin_copy", "65600"},
};

static const char *const facts[] = {"launch", "worker", "written", "guards",
                                    "inputs", "bound",  "finite"};

static void passes_all_facts(const char *variant, const cb__run_row *row)
{
    size_t seen = 0;
    for (int i = 0; i < row->nchecks; i++)
        for (size_t j = 0; j < sizeof facts / sizeof *facts; j++) {
            if (strcmp(row->checks[i].name, facts[j]) != 0)
                continue;
            seen++;
            if (row->checks[i].status != CB__PASS)
                fail_msg("%s: %s: %s", variant, facts[j], row->checks[i].detail);
        }
    assert_int_equal(seen, sizeof facts / sizeof *facts);
}

static void every_kernel_is_right_on_real_threads(void **state)
{
    (void)state;
    static cb__topology topology;
    cb__suite suite;
    cb_error err = CB_ERROR_INIT;
    assert_int_equal(cb__topology_read("", &topology, &err), CB_OK);
    assert_int_equal(cb__suite_open(NULL, 0, true, &suite, &err), CB_OK);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        cb__arena arena = CB__ARENA_INIT;
        cb__run_case out = {0};
        cb__run_request request = {.suite = &suite,
                                   .isa = topology.isa,
                                   .device = "cpu",
                                   .variant = table[i].variant,
                                   .shape = table[i].shape,
                                   .caches = {false, true},
                                   .submits = {true, true},
                                   .budget_s = 1,
                                   .seed = i,
                                   .asker = {.silence_s = 60}};
        cb__device_info info;
        if (cb__run_describe(&request, &info, &err) != CB_OK ||
            cb__run_plan(&request, &info, &out, &err) != CB_OK ||
            cb__run_measure(&request, &arena, &out, &err) != CB_OK)
            fail_msg("%s: %s", table[i].variant, err.message);
        assert_int_equal(out.nrows, 2);
        for (int row = 0; row < out.nrows; row++) {
            const cb__evidence *e = &out.rows[row].evidence;
            passes_all_facts(table[i].variant, &out.rows[row]);
            if (strcmp(out.plan.twin_kernel, "twin_read") == 0)
                assert_int_equal(e->twin_sums_seen, e->rounds);
            assert_int_equal(e->twin_sums_wrong, 0);
        }
        assert_true(out.rows[0].evidence.rounds >= CB__ROUNDS_MIN);
        cb__arena_fini(&arena);
    }
    cb__suite_close(&suite);
}

int main(int argc, char **argv)
{
    int status = cb_worker_entry(argc, argv);
    if (status >= 0)
        return status;
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_kernel_is_right_on_real_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
