#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "coldbench/random.h"
#include "stats/order.h"
#include "stats/thetas.h"

enum { BLOCKS_MAX = 64 };

static double ns[BLOCKS_MAX * CB__ARMS_MAX], scratch[BLOCKS_MAX];
static unsigned char position[BLOCKS_MAX * CB__ARMS_MAX];
static cb__round_estimate estimate;

static void estimate_of(int arms, size_t blocks)
{
    cb__round_slots round = {arms, blocks, ns, position};
    cb__thetas_of(&round, scratch, &estimate);
}

static void draw_order(int arms, size_t block)
{
    unsigned char *at = position + block * (size_t)arms;
    for (int i = 0; i < arms; i++)
        at[i] = (unsigned char)i;
    for (int i = arms; i > 1; i--) {
        int j = (int)(cb_random(11, block, 0, (uint64_t)i) % (uint64_t)i);
        unsigned char last = at[i - 1];
        at[i - 1] = at[j];
        at[j] = last;
    }
}

static void assert_near(double got, double expected)
{
    if (!(fabs(got - expected) < 1e-12))
        fail_msg("%.17g, expected %.17g", got, expected);
}

/* Two arms, blocks of times and orders, by hand. */
static void each_order_has_its_own_median(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        size_t blocks;
        double ratio[6]; /* of arm 1 to arm 0 */
        int first[6];    /* the arm that ran first */
        double theta, effect;
    } rows[] = {
        {"odd counts", 6, {1, 2, 8, 1, 4, 4}, {0, 0, 0, 1, 1, 1}, 1.5, 0.5},
        {"even counts: the middle two's mean", 4, {1, 4, 2, 32}, {0, 0, 1, 1}, 2, 1},
        {"unequal counts weigh alike", 4, {2, 2, 2, 8}, {0, 0, 0, 1}, 2, 1},
        {"equal readings", 4, {1, 1, 1, 1}, {0, 1, 0, 1}, 0, 0},
        {"one order", 3, {1, 2, 8}, {0, 0, 0}, 1, (double)NAN},
        {"the other order", 3, {1, 2, 8}, {1, 1, 1}, 1, (double)NAN},
        {"no blocks", 0, {0}, {0}, (double)NAN, (double)NAN},
        {"no number", 2, {(double)NAN, 1}, {0, 1}, (double)NAN, (double)NAN},
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        for (size_t block = 0; block < rows[r].blocks; block++) {
            ns[2 * block] = 10;
            ns[2 * block + 1] = 10 * rows[r].ratio[block];
            position[2 * block] = rows[r].first[block] == 0 ? 0 : 1;
            position[2 * block + 1] = rows[r].first[block] == 0 ? 1 : 0;
        }
        estimate_of(2, rows[r].blocks);
        print_message("%s\n", rows[r].what);
        assert_int_equal(isnan(estimate.theta[0][1]), isnan(rows[r].theta));
        assert_int_equal(isnan(estimate.position_effect), isnan(rows[r].effect));
        if (!isnan(rows[r].theta)) {
            assert_near(estimate.theta[0][1], rows[r].theta * log(2));
            assert_true(estimate.theta[1][0] == -estimate.theta[0][1]);
        }
        if (!isnan(rows[r].effect))
            assert_near(estimate.position_effect, rows[r].effect * log(2));
    }
}

/* Arm i takes 1.01^i, earlier slots more by a factor: all pairs are found, and the factor. */
static void any_number_of_arms(void **state)
{
    (void)state;
    for (int arms = 2; arms <= CB__ARMS_MAX; arms++) {
        for (size_t block = 0; block < BLOCKS_MAX; block++) {
            draw_order(arms, block);
            for (int i = 0; i < arms; i++) {
                size_t at = block * (size_t)arms + (size_t)i;
                ns[at] = 1000 * pow(1.01, i) * exp((double)block / 10);
            }
        }
        estimate_of(arms, BLOCKS_MAX);
        for (int i = 0; i < arms; i++) {
            for (int j = 0; j < arms; j++)
                assert_near(estimate.theta[i][j], (j - i) * log(1.01));
        }
        assert_near(estimate.position_effect, 0);
    }
}

/* Two arms, the first slot 5 % slow. */
static void the_place_in_the_block_cancels_and_is_told(void **state)
{
    (void)state;
    for (size_t block = 0; block < BLOCKS_MAX; block++) {
        draw_order(2, block);
        for (int i = 0; i < 2; i++) {
            size_t at = block * 2 + (size_t)i;
            ns[at] = (i ? 102 : 100) * (position[at] == 0 ? 1.05 : 1);
        }
    }
    estimate_of(2, BLOCKS_MAX);
    assert_near(estimate.theta[0][1], log(1.02));
    assert_near(estimate.position_effect, log(1.05));
}

/* A pair with one order only has no part in the position effect. */
static void a_pair_with_one_order_tells_no_effect(void **state)
{
    (void)state;
    static const unsigned char orders[2][3] = {{0, 1, 2}, {1, 0, 2}}; /* arm 2 is always last */
    for (size_t block = 0; block < 4; block++) {
        for (int i = 0; i < 3; i++) {
            position[block * 3 + (size_t)i] = orders[block % 2][i];
            ns[block * 3 + (size_t)i] = orders[block % 2][i] == 0 ? 104 : 100;
        }
    }
    estimate_of(3, 4);
    assert_near(estimate.position_effect, log(1.04));
    assert_near(estimate.theta[0][1], 0);
    assert_near(estimate.theta[0][2], -log(1.04) / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_order_has_its_own_median),
        cmocka_unit_test(any_number_of_arms),
        cmocka_unit_test(the_place_in_the_block_cancels_and_is_told),
        cmocka_unit_test(a_pair_with_one_order_tells_no_effect),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
