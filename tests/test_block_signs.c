#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "coldbench/random.h"
#include "stats/block_signs.h"

static void add(cb__block_signs *signs, size_t slower, size_t faster)
{
    for (size_t i = 0; i < slower; i++)
        cb__block_signs_add(signs, 100, 101);
    for (size_t i = 0; i < faster; i++)
        cb__block_signs_add(signs, 101, 100);
}

/* log of 2^n B(k + 1/2, n - k + 1/2) / B(1/2, 1/2), whatever the order of the blocks. */
static void the_ratio_is_the_beta_binomial(void **state)
{
    (void)state;
    for (size_t k = 0; k <= 60; k++) {
        double up = (double)k, down = (double)(60 - k);
        double expected =
            60 * log(2) + lgamma(up + 0.5) + lgamma(down + 0.5) - lgamma(61) - log(acos(-1));
        cb__block_signs first = {0}, last = {0};
        add(&first, k, 60 - k);
        add(&last, 0, 60 - k);
        add(&last, k, 0);
        assert_true(fabs(first.log_e - expected) < 1e-9);
        assert_true(fabs(last.log_e - expected) < 1e-9);
        assert_int_equal(first.slower, k);
        assert_int_equal(first.faster, 60 - k);
    }
}

static void how_many_blocks_it_takes(void **state)
{
    (void)state;
    static const struct {
        double alpha;
        size_t blocks; /* all of one sign */
    } rows[] = {{0.5, 3}, {0.05, 7}, {0.01, 10}, {0.001, 13}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (int direction = 0; direction < 2; direction++) {
            cb__block_signs signs = {0};
            size_t n = 0;
            for (; !cb__block_signs_differ(&signs, rows[i].alpha); n++)
                add(&signs, direction ? 1 : 0, direction ? 0 : 1);
            assert_int_equal(n, rows[i].blocks);
        }
    }
}

static void what_was_once_found_stays(void **state)
{
    (void)state;
    cb__block_signs signs = {0};
    assert_false(cb__block_signs_differ(&signs, 0.01));
    add(&signs, 10, 0);
    assert_true(cb__block_signs_differ(&signs, 0.01));
    add(&signs, 0, 10);
    assert_true(signs.log_e < 0 && cb__block_signs_differ(&signs, 0.01));
}

static void equal_readings_say_nothing(void **state)
{
    (void)state;
    cb__block_signs signs = {0};
    for (int i = 0; i < 1000; i++)
        cb__block_signs_add(&signs, 100, i % 2 ? 100 : (double)NAN);
    assert_true(signs.log_e == 0 && signs.slower == 0 && signs.faster == 0);
    assert_int_equal(signs.equal, 1000);
}

/* Under a fair coin, looked at after each of 1000 blocks: at most alpha, but not nothing. */
static void a_fair_coin_is_called_rarely(void **state)
{
    (void)state;
    enum { RUNS = 4000, BLOCKS = 1000 };
    int called = 0, called_tilted = 0;
    for (uint64_t run = 0; run < RUNS; run++) {
        cb__block_signs fair = {0}, tilted = {0};
        uint64_t key = cb_random_key(17, run, 0);
        for (uint64_t i = 0; i < BLOCKS; i++) {
            double u = cb_random_f64(cb_random_word(key, i));
            cb__block_signs_add(&fair, 0.5, u);
            cb__block_signs_add(&tilted, 0.4, u);
        }
        called += cb__block_signs_differ(&fair, 0.05);
        called_tilted += cb__block_signs_differ(&tilted, 0.05);
    }
    print_message("of %d runs of %d blocks: fair %d, 60 to 40 %d\n", RUNS, BLOCKS, called,
                  called_tilted);
    assert_in_range(called, RUNS / 100, RUNS / 20);
    assert_true(called_tilted > RUNS * 98 / 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_ratio_is_the_beta_binomial),
        cmocka_unit_test(how_many_blocks_it_takes),
        cmocka_unit_test(what_was_once_found_stays),
        cmocka_unit_test(equal_readings_say_nothing),
        cmocka_unit_test(a_fair_coin_is_called_rarely),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
