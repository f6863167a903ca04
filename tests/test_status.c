#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "coldbench/status.h"

static void the_table_gives_name_exit_status_and_text(void **state)
{
    (void)state;
    static const struct {
        cb_status status;
        const char *name;
        int exit_status;
    } rows[] = {
        {CB_OK, "CB_OK", 0},
        {CB_WRONG, "CB_WRONG", 1},
        {CB_USAGE, "CB_USAGE", 2},
        {CB_UNAVAILABLE, "CB_UNAVAILABLE", 3},
        {CB_NO_MEMORY, "CB_NO_MEMORY", 3},
        {CB_UNDECIDED, "CB_UNDECIDED", 4},
        {CB_IO, "CB_IO", 5},
        {CB_INTERNAL, "CB_INTERNAL", 5},
        {CB_CRASHED, "CB_CRASHED", 1},
        {CB_TIMEOUT, "CB_TIMEOUT", 1},
        {CB_GARBAGE, "CB_GARBAGE", 1},
        {CB_INTERRUPTED, "CB_INTERRUPTED", 130},
    };
    assert_int_equal(sizeof rows / sizeof *rows, CB_STATUS_COUNT);
    for (size_t i = 0; i < CB_STATUS_COUNT; i++) {
        assert_string_equal(cb_status_name(rows[i].status), rows[i].name);
        assert_int_equal(cb_status_exit(rows[i].status), rows[i].exit_status);
        assert_true(strlen(cb_status_text(rows[i].status)) > 0);
    }
}

static void a_value_outside_the_table_is_answered(void **state)
{
    (void)state;
    static const int values[] = {-1, CB_STATUS_COUNT, 1000000};
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(cb_status_name((cb_status)values[i]), "unknown status");
        assert_string_equal(cb_status_text((cb_status)values[i]), "unknown status");
        assert_int_equal(cb_status_exit((cb_status)values[i]), 5);
    }
}

static void the_first_message_stays_until_cleared(void **state)
{
    (void)state;
    cb_error err = CB_ERROR_INIT;
    assert_int_equal(cb_error_set(&err, CB_USAGE, "first %d", 1), CB_USAGE);
    assert_int_equal(cb_error_set(&err, CB_IO, "second"), CB_USAGE);
    assert_int_equal(err.status, CB_USAGE);
    assert_string_equal(err.message, "first 1");
    cb_error_clear(&err);
    assert_int_equal(err.status, CB_OK);
    assert_string_equal(err.message, "");
    assert_int_equal(cb_error_set(&err, CB_IO, "third"), CB_IO);
}

static void a_prefix_goes_before_a_set_message_only(void **state)
{
    (void)state;
    cb_error err = CB_ERROR_INIT;
    assert_int_equal(cb_error_prefix(&err, "case %d", 3), CB_OK);
    assert_string_equal(err.message, "");
    cb_error_set(&err, CB_IO, "disk is full");
    assert_int_equal(cb_error_prefix(&err, "case %d", 3), CB_IO);
    assert_string_equal(err.message, "case 3: disk is full");
}

static void no_error_object_is_needed(void **state)
{
    (void)state;
    assert_int_equal(cb_error_set(NULL, CB_TIMEOUT, "dropped"), CB_TIMEOUT);
    assert_int_equal(cb_error_prefix(NULL, "dropped"), CB_OK);
}

static void a_long_message_is_cut_and_terminated(void **state)
{
    (void)state;
    cb_error err = CB_ERROR_INIT;
    char text[3000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    cb_error_set(&err, CB_IO, "%s", text);
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
    cb_error_prefix(&err, "what");
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
    assert_memory_equal(err.message, "what: xxx", 9);
    cb_error_prefix(&err, "%s", text);
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_gives_name_exit_status_and_text),
        cmocka_unit_test(a_value_outside_the_table_is_answered),
        cmocka_unit_test(the_first_message_stays_until_cleared),
        cmocka_unit_test(a_prefix_goes_before_a_set_message_only),
        cmocka_unit_test(no_error_object_is_needed),
        cmocka_unit_test(a_long_message_is_cut_and_terminated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
