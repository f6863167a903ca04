/* Slots, on the scripted device: exact. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "timing/slot.h"

static void a_slot_is_as_short_as_the_timer_allows(void **state)
{
    (void)state;
    static const struct {
        double estimate_ns;
        int repeats, readings;
    } table[] = {
        {1, 1024, 3},  {9, 1024, 3},      {10, 1001, 3},       {100, 101, 3},
        {4999, 3, 3},  {5001, 2, 3},      {9999, 2, 3},        {10000, 1, 3},
        {49999, 1, 3}, {50000, 1, 1},     {1e12, 1, 1},        {0, 1, 3},
        {-5, 1, 3},    {1e-300, 1024, 3}, {(double)NAN, 1, 3}, {(double)INFINITY, 1, 1},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        for (int submit = CB__SOLO; submit <= CB__BATCHED; submit++) {
            cb__slot_shape shape = cb__slot_shape_for((cb__submit)submit, table[i].estimate_ns);
            assert_int_equal(shape.submit, submit);
            assert_int_equal(shape.repeats, table[i].repeats);
            assert_int_equal(shape.readings, table[i].readings);
        }
    assert_string_equal(cb__submit_name(CB__SOLO), "solo");
    assert_string_equal(cb__submit_name(CB__BATCHED), "batched");
}

/* ---- a device whose launches take what a table says ---- */

enum { LAUNCHES = 6 };

struct cb__device {
    double now_ns;
    const double *ns; /* of launch i, the i-th since the start */
    int n, launched;
    const cb__launch *order[64];
    int fail_at;
};

struct cb__batch {
    int first;
    double span_ns;
};

static void take_time(cb__device *d, const cb__launch *launch)
{
    d->now_ns += d->ns[d->launched % d->n];
    d->order[d->launched++ % 64] = launch;
}

static cb_status scripted_sync(cb__device *d, cb_error *err)
{
    return d->launched == d->fail_at ? cb_error_set(err, CB_WRONG, "launch %d", d->fail_at) : CB_OK;
}

static uint64_t scripted_now(cb__device *d)
{
    return (uint64_t)d->now_ns;
}

static void scripted_batch_run(cb__device *d, cb__batch *batch)
{
    take_time(d, NULL);
    batch->span_ns = d->ns[(d->launched - 1) % d->n] - 10; /* 10 ns of submitting */
}

static double scripted_span(cb__device *d, const cb__batch *batch)
{
    (void)d;
    return batch->span_ns;
}

static const cb__backend scripted = {.launch = take_time,
                                     .sync = scripted_sync,
                                     .now_ns = scripted_now,
                                     .batch_run = scripted_batch_run,
                                     .batch_span_ns = scripted_span};

static const cb__launch launches[LAUNCHES];

static void a_slot_is_the_median_of_its_readings(void **state)
{
    (void)state;
    static const struct {
        double ns[3], median;
    } table[] = {{{100, 200, 300}, 200}, {{300, 200, 100}, 200}, {{100, 300, 200}, 200},
                 {{900, 100, 101}, 101}, {{5, 5, 9}, 5},         {{9, 5, 5}, 5}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        cb__device d = {.ns = table[i].ns, .n = 3};
        cb__target target = {&scripted, &d};
        cb__arm arm = {.launches = launches, .n = LAUNCHES};
        double device_ns = 0, host_ns = 0;
        int cursor = 0;
        cb_error err = CB_ERROR_INIT;
        assert_int_equal(cb__slot_run(target, &arm, (cb__slot_shape){CB__SOLO, 1, 3}, &cursor,
                                      &device_ns, &host_ns, &err),
                         CB_OK);
        assert_true(device_ns == table[i].median && host_ns == table[i].median);
        assert_int_equal(d.launched, 3);
    }
}

static void a_reading_is_the_mean_of_its_repeats(void **state)
{
    (void)state;
    static const double ns[] = {100, 200, 300, 400};
    cb__device d = {.ns = ns, .n = 4};
    cb__target target = {&scripted, &d};
    cb__arm arm = {.launches = launches, .n = LAUNCHES};
    double device_ns = 0, host_ns = 0;
    int cursor = 0;
    cb_error err = CB_ERROR_INIT;
    assert_int_equal(cb__slot_run(target, &arm, (cb__slot_shape){CB__SOLO, 4, 1}, &cursor,
                                  &device_ns, &host_ns, &err),
                     CB_OK);
    assert_true(device_ns == 250);
    assert_int_equal(d.launched, 4);
}

static void arms_share_one_cursor_that_goes_round(void **state)
{
    (void)state;
    static const double ns[] = {10};
    static const cb__launch other[LAUNCHES];
    cb__device d = {.ns = ns, .n = 1};
    cb__target target = {&scripted, &d};
    cb__arm arms[2] = {{.launches = launches, .n = LAUNCHES}, {.launches = other, .n = LAUNCHES}};
    double ignored;
    int cursor = 4;
    cb_error err = CB_ERROR_INIT;
    for (int arm = 0; arm < 2; arm++)
        assert_int_equal(cb__slot_run(target, &arms[arm], (cb__slot_shape){CB__SOLO, 2, 3}, &cursor,
                                      &ignored, &ignored, &err),
                         CB_OK);
    assert_int_equal(cursor, (4 + 12) % LAUNCHES);
    for (int i = 0; i < 12; i++)
        assert_ptr_equal(d.order[i], &(i < 6 ? launches : other)[(4 + i) % LAUNCHES]);
}

static void a_batched_slot_is_by_span_and_by_the_host(void **state)
{
    (void)state;
    static const double ns[] = {1010, 2010, 3010};
    cb__device d = {.ns = ns, .n = 3};
    cb__batch one = {0, 0}, two = {0, 0};
    cb__batch *batches[] = {&one, &two};
    cb__target target = {&scripted, &d};
    cb__arm arm = {.batches = batches, .nbatches = 2, .batch_launches = 10};
    double device_ns = 0, host_ns = 0;
    int cursor = 1;
    cb_error err = CB_ERROR_INIT;
    assert_int_equal(cb__slot_run(target, &arm, (cb__slot_shape){CB__BATCHED, 1, 3}, &cursor,
                                  &device_ns, &host_ns, &err),
                     CB_OK);
    assert_true(device_ns == 200 && host_ns == 201);
    assert_int_equal(cursor, 0);
    assert_int_equal(cb__slot_run(target, &arm, (cb__slot_shape){CB__BATCHED, 2, 1}, &cursor,
                                  &device_ns, &host_ns, &err),
                     CB_OK);
    assert_true(device_ns == 150 && host_ns == 151);
}

static void a_failed_launch_ends_the_slot(void **state)
{
    (void)state;
    static const double ns[] = {10};
    cb__device d = {.ns = ns, .n = 1, .fail_at = 4};
    cb__target target = {&scripted, &d};
    cb__arm arm = {.launches = launches, .n = LAUNCHES};
    double ignored;
    int cursor = 0;
    cb_error err = CB_ERROR_INIT;
    assert_int_equal(cb__slot_run(target, &arm, (cb__slot_shape){CB__SOLO, 3, 3}, &cursor, &ignored,
                                  &ignored, &err),
                     CB_WRONG);
    assert_string_equal(err.message, "launch 4");
    assert_int_equal(d.launched, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slot_is_as_short_as_the_timer_allows),
        cmocka_unit_test(a_slot_is_the_median_of_its_readings),
        cmocka_unit_test(a_reading_is_the_mean_of_its_repeats),
        cmocka_unit_test(arms_share_one_cursor_that_goes_round),
        cmocka_unit_test(a_batched_slot_is_by_span_and_by_the_host),
        cmocka_unit_test(a_failed_launch_ends_the_slot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
