/* The generator gives what docs/random.md says, read from that page, so that the two cannot differ.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "coldbench/random.h"

static void the_words_are_those_of_the_documentation(void **state)
{
    (void)state;
    FILE *page = fopen(CB_SOURCE_DIR "/docs/random.md", "r");
    assert_non_null(page);
    char line[400];
    int rows = 0;
    while (fgets(line, sizeof line, page)) {
        uint64_t seed, operand, set, index, key, word, top24, top53;
        if (sscanf(line,
                   "| 0x%" SCNx64 " | %" SCNu64 " | %" SCNu64 " | %" SCNu64 " | 0x%" SCNx64
                   " | 0x%" SCNx64 " | %" SCNu64 " | %" SCNu64 " |",
                   &seed, &operand, &set, &index, &key, &word, &top24, &top53) != 8)
            continue;
        rows++;
        assert_int_equal(cb_random_key(seed, operand, set), key);
        assert_int_equal(cb_random_word(key, index), word);
        assert_int_equal(cb_random(seed, operand, set, index), word);
        assert_true(cb_random_f32(word) * 0x1p24f == (float)top24);
        assert_true(cb_random_f64(word) * 0x1p53 == (double)top53);
    }
    fclose(page);
    assert_int_equal(rows, 10);
}

/* The stream from state 1234567, widely published. */
static void a_stream_is_splitmix64(void **state)
{
    (void)state;
    static const uint64_t published[] = {
        UINT64_C(6457827717110365317), UINT64_C(3203168211198807973), UINT64_C(9817491932198370423),
        UINT64_C(4593380528125082431), UINT64_C(16408922859458223821)};
    for (uint64_t i = 0; i < 5; i++)
        assert_int_equal(cb_random_word(1234567, i), published[i]);
}

static void uniform_numbers_stay_in_their_range(void **state)
{
    (void)state;
    assert_true(cb_random_f32(0) == 0.0f && cb_random_f64(0) == 0.0);
    assert_true(cb_random_f32(UINT64_MAX) < 1.0f && cb_random_f64(UINT64_MAX) < 1.0);
    double sum = 0;
    const uint64_t key = cb_random_key(7, 1, 2);
    for (uint64_t i = 0; i < 100000; i++)
        sum += cb_random_f64(cb_random_word(key, i));
    /* sd of the mean is 0.29 / sqrt(1e5) = 0.0009; the data is fixed, so this cannot flicker */
    assert_true(sum / 1e5 > 0.495 && sum / 1e5 < 0.505);
}

static void neighbouring_keys_give_unrelated_words(void **state)
{
    (void)state;
    int bits = 0;
    for (uint64_t i = 0; i < 1000; i++)
        bits += __builtin_popcountll(cb_random(1, i, 0, 0) ^ cb_random(1, 0, i, 0)) +
                __builtin_popcountll(cb_random(i, 0, 0, 0) ^ cb_random(i + 1, 0, 0, 0));
    assert_true(bits > 63000 &&
                bits < 65000); /* 64 of 128 bits differ in the mean, but for i = 0 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_words_are_those_of_the_documentation),
        cmocka_unit_test(a_stream_is_splitmix64),
        cmocka_unit_test(uniform_numbers_stay_in_their_range),
        cmocka_unit_test(neighbouring_keys_give_unrelated_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
