#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "host/clock.h"

static void clock_never_steps_back_and_advances(void **state)
{
    (void)state;
    uint64_t start = cb__clock_ns(), last = start;
    while (last - start < 1000000) {
        uint64_t now = cb__clock_ns();
        assert_true(now >= last);
        last = now;
    }
}

static void clock_test_states_resolution_and_cost(void **state)
{
    (void)state;
    static const int reads[] = {1, 1000, 100000};
    for (size_t i = 0; i < sizeof reads / sizeof *reads; i++) {
        cb__clock_facts facts = cb__clock_test(reads[i]);
        assert_int_equal(facts.backwards, 0);
        assert_true(facts.resolution_ns >= 1);
        assert_true(facts.cost_ns >= 0);
        print_message("%d reads: resolution %.0f ns, cost %.1f ns\n", reads[i], facts.resolution_ns,
                      facts.cost_ns);
    }
}

/* No processor this can run on is outside 0.1 to 10 GHz, whatever its neighbours do: the bound is
 * there to catch a chain that was shortened or counted wrongly. */
static void core_clock_is_a_clock_of_a_core(void **state)
{
    (void)state;
    double hz = cb__core_hz(2000000, 10);
    print_message("core clock %.3f GHz\n", hz / 1e9);
#if defined(__x86_64__) || defined(__aarch64__)
    assert_true(hz > 1e8 && hz < 1e10);
#else
    assert_true(hz >= 0 && hz <= 0);
#endif
    assert_true(cb__core_hz(1000, 0) <= 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clock_never_steps_back_and_advances),
        cmocka_unit_test(clock_test_states_resolution_and_cost),
        cmocka_unit_test(core_clock_is_a_clock_of_a_core),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
