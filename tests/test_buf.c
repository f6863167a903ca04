/* The buffer and the arena, compiled here so that their allocations can be made to fail. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int allocations_left = -1; /* negative: no limit */

static int allowed(void)
{
    if (allocations_left > 0)
        allocations_left--;
    else if (allocations_left == 0)
        return 0;
    return 1;
}

static void *limited_realloc(void *old, size_t size)
{
    return allowed() ? realloc(old, size) : NULL;
}

static void *limited_calloc(size_t n, size_t size)
{
    return allowed() ? calloc(n, size) : NULL;
}

#define realloc limited_realloc
#define calloc limited_calloc
#include "base/arena.c"
#include "base/buf.c"

static void appends_grow_the_text(void **state)
{
    (void)state;
    cb__buf buf = CB__BUF_INIT;
    assert_string_equal(cb__buf_text(&buf), "");
    cb__buf_append(&buf, NULL, 0);
    assert_string_equal(cb__buf_text(&buf), "");
    char expected[3000] = "";
    for (int i = 0; i < 500; i++) {
        cb__buf_puts(&buf, "a");
        cb__buf_printf(&buf, "%d", i);
        cb__buf_append(&buf, "b!", 1);
        snprintf(expected + strlen(expected), sizeof expected - strlen(expected), "a%db", i);
        assert_int_equal(strlen(cb__buf_text(&buf)), buf.size);
    }
    assert_string_equal(cb__buf_text(&buf), expected);
    assert_false(buf.failed);
    cb__buf_fini(&buf);
    assert_null(buf.text);
    cb__buf_fini(&buf);
}

static void every_length_around_the_capacity_fits(void **state)
{
    (void)state;
    for (int n = 0; n < 200; n++) {
        cb__buf buf = CB__BUF_INIT;
        cb__buf_printf(&buf, "%*s", n, "");
        cb__buf_append(&buf, "x", 1);
        assert_int_equal(buf.size, n + 1);
        assert_true(buf.size < buf.capacity);
        assert_string_equal(cb__buf_text(&buf) + n, "x");
        cb__buf_fini(&buf);
    }
}

static void clear_keeps_the_storage(void **state)
{
    (void)state;
    cb__buf buf = CB__BUF_INIT;
    cb__buf_puts(&buf, "something");
    char *storage = buf.text;
    cb__buf_clear(&buf);
    assert_string_equal(cb__buf_text(&buf), "");
    cb__buf_puts(&buf, "else");
    assert_ptr_equal(buf.text, storage);
    assert_string_equal(cb__buf_text(&buf), "else");
    cb__buf_fini(&buf);
}

static void a_failed_append_is_remembered(void **state)
{
    (void)state;
    cb__buf buf = CB__BUF_INIT;
    allocations_left = 1;
    cb__buf_puts(&buf, "kept");
    cb__buf_printf(&buf, "%1000d", 1);
    assert_true(buf.failed);
    allocations_left = -1;
    cb__buf_puts(&buf, "not after a hole");
    assert_string_equal(cb__buf_text(&buf), "kept");
    cb__buf_clear(&buf);
    assert_false(buf.failed);
    cb__buf_puts(&buf, "again");
    assert_string_equal(cb__buf_text(&buf), "again");
    cb__buf_fini(&buf);
    allocations_left = 0;
    cb__buf_puts(&buf, "none");
    assert_true(buf.failed);
    assert_string_equal(cb__buf_text(&buf), "");
    allocations_left = -1;
}

static void a_size_that_overflows_fails(void **state)
{
    (void)state;
    static const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 1, SIZE_MAX - 4, SIZE_MAX / 2 + 1};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        cb__buf buf = CB__BUF_INIT;
        cb__buf_puts(&buf, "abc");
        allocations_left = 0;
        cb__buf_append(&buf, "", sizes[i]);
        allocations_left = -1;
        assert_true(buf.failed);
        assert_string_equal(cb__buf_text(&buf), "abc");
        cb__buf_fini(&buf);
    }
}

static void arena_memory_is_aligned_zeroed_and_apart(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 15, 16, 17, 100, 4095, 4096, 4097, 20000, 3};
    cb__arena arena = CB__ARENA_INIT;
    unsigned char *given[11 * 20];
    int n = 0;
    for (int round = 0; round < 20; round++)
        for (size_t i = 0; i < 11; i++) {
            unsigned char *p = cb__arena_alloc(&arena, sizes[i]);
            assert_non_null(p);
            assert_int_equal((uintptr_t)p % 16, 0);
            for (size_t k = 0; k < sizes[i]; k++)
                assert_int_equal(p[k], 0);
            memset(p, 0xAA + n % 7, sizes[i]);
            for (int k = 0; k < n; k++)
                assert_ptr_not_equal(given[k], p);
            given[n++] = p;
        }
    for (int k = 0; k < n; k++)
        for (size_t b = 0; b < sizes[k % 11]; b++)
            assert_int_equal(given[k][b], 0xAA + k % 7);
    cb__arena_fini(&arena);
    assert_non_null(cb__arena_alloc(&arena, 8));
    cb__arena_fini(&arena);
    cb__arena_fini(&arena);
}

static void arena_texts_are_copies(void **state)
{
    (void)state;
    cb__arena arena = CB__ARENA_INIT;
    char text[] = "gemv_q4";
    char *copy = cb__arena_strdup(&arena, text);
    char *part = cb__arena_strndup(&arena, text, 4);
    char *whole = cb__arena_strndup(&arena, text, 100);
    char *printed = cb__arena_printf(&arena, "%s:%d", text, 7);
    text[0] = '!';
    assert_string_equal(copy, "gemv_q4");
    assert_string_equal(part, "gemv");
    assert_string_equal(whole, "gemv_q4");
    assert_string_equal(printed, "gemv_q4:7");
    assert_string_equal(cb__arena_strdup(&arena, ""), "");
    cb__arena_fini(&arena);
}

static void arena_refuses_what_cannot_be(void **state)
{
    (void)state;
    cb__arena arena = CB__ARENA_INIT;
    allocations_left = 0;
    assert_null(cb__arena_alloc(&arena, 1));
    assert_null(cb__arena_strdup(&arena, "a"));
    assert_null(cb__arena_printf(&arena, "%d", 1));
    allocations_left = -1;
    assert_null(cb__arena_alloc(&arena, SIZE_MAX));
    assert_null(cb__arena_alloc(&arena, SIZE_MAX - 16));
    assert_null(cb__arena_array(&arena, SIZE_MAX / 2, 3));
    assert_null(cb__arena_array(&arena, (size_t)1 << 32, (size_t)1 << 32));
    assert_null(arena.blocks);
    assert_non_null(cb__arena_array(&arena, 3, 5));
    cb__arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appends_grow_the_text),
        cmocka_unit_test(every_length_around_the_capacity_fits),
        cmocka_unit_test(clear_keeps_the_storage),
        cmocka_unit_test(a_failed_append_is_remembered),
        cmocka_unit_test(a_size_that_overflows_fails),
        cmocka_unit_test(arena_memory_is_aligned_zeroed_and_apart),
        cmocka_unit_test(arena_texts_are_copies),
        cmocka_unit_test(arena_refuses_what_cannot_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
