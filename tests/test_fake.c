/* The scripted device: its script, and a clock that is exact. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "device/fake/fake.h"
#include "timing/slot.h"
#include "toy.h"

/* ---- the script ---- */

static void what_a_script_leaves_out_is_preset(void **state)
{
    (void)state;
    cb__fake_script s;
    cb_error err = CB_ERROR_INIT;
    assert_int_equal(cb__fake_parse("", &s, &err), CB_OK);
    assert_int_equal(s.llc, 8 << 20);
    assert_int_equal(s.cache, s.llc);
    assert_int_equal(s.memory, INT64_C(16) << 30);
    assert_true(s.dram_gbs == 40 && s.cache_gbs == 200 && s.solo_ns == 1000 && s.batched_ns == 200);
    assert_int_equal(
        cb__fake_parse("llc=1MiB,dram_gbs=12.5,noise=2%,arm_drift=-0.5,fail_launch=3", &s, &err),
        CB_OK);
    assert_int_equal(s.llc, 1 << 20);
    assert_int_equal(s.cache, 1 << 20);
    assert_true(s.dram_gbs == 12.5 && s.noise == 0.02 && s.arm_drift == -0.5);
    assert_int_equal(s.fail_launch, 3);
    assert_int_equal(cb__fake_parse("llc=1MiB,cache=3MiB", &s, &err), CB_OK);
    assert_int_equal(s.cache, 3 << 20);
}

static void a_bad_script_names_what_is_wrong(void **state)
{
    (void)state;
    static const struct {
        const char *script, *parts[2];
    } table[] = {
        {"lcc=1", {"unknown key of the fake device 'lcc'", "did you mean 'llc'"}},
        {"kernel_facto=1", {"'kernel_facto'", "'kernel_factor'"}},
        {"llc", {"'llc'", "key=value"}},
        {"llc=1,", {"''", "key=value"}},
        {",", {"''", "key=value"}},
        {"=1", {"unknown key of the fake device ''", "llc"}},
        {"llc=", {"llc", "''"}},
        {"llc=-1", {"llc", "'-1'"}},
        {"llc=1e3", {"llc", "'1e3'"}},
        {"llc=99999999999999999999", {"llc", "out of range"}},
        {"memory=0", {"memory", "'0'"}},
        {"dram_gbs=0", {"dram_gbs", "'0'"}},
        {"dram_gbs=nan", {"dram_gbs", "'nan'"}},
        {"dram_gbs=inf", {"dram_gbs", "'inf'"}},
        {"noise=1", {"noise", "'1'"}},
        {"drift=-1", {"drift", "'-1'"}},
        {"dram_gbs=4 ", {"dram_gbs", "'4 '"}},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        cb__fake_script s;
        cb_error err = CB_ERROR_INIT;
        if (cb__fake_parse(table[i].script, &s, &err) != CB_USAGE)
            fail_msg("'%s' is taken", table[i].script);
        for (int j = 0; j < 2; j++)
            if (!strstr(err.message, table[i].parts[j]))
                fail_msg("%s: no '%s' in '%s'", table[i].script, table[i].parts[j], err.message);
    }
    char longest[2000];
    cb__fake_script s;
    cb_error err = CB_ERROR_INIT;
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_int_equal(cb__fake_parse(longest, &s, &err), CB_USAGE);
}

/* ---- a device with sets of 1000 bytes: 960 read, 40 written ---- */

enum { SETS = 12 };

typedef struct bench {
    cb__target target;
    cb__case c, twin;
    cb_kernel twin_kernel;
    cb__code code, twin_code;
    float memory[SETS][4][256];
    cb__launch launches[SETS];
} bench;

static void bench_open(bench *b, const char *script)
{
    cb_error err = CB_ERROR_INIT;
    memset(b, 0, sizeof *b);
    b->target.ops = &cb__backend_fake;
    if (b->target.ops->open(script, 0, CB__COMPACT, &b->target.device, &err) != CB_OK ||
        cb__case_parse(&toy_suite, "toy", "2x32", 0, &b->c, &err) != CB_OK)
        fail_msg("%s", err.message);
    b->c.cost = (cb_cost){960, 40, 1};
    b->code = cb__case_code(&b->c);
    b->twin_kernel = toy_kernel;
    b->twin_kernel.name = "twin_read";
    b->twin_code = b->code;
    b->twin_code.kernel = &b->twin_kernel;
    for (int i = 0; i < SETS; i++) {
        b->launches[i].code = &b->code;
        for (int o = 0; o < 3; o++)
            b->launches[i].operands[o] = b->memory[i][o];
    }
}

static void bench_close(bench *b)
{
    b->target.ops->close(b->target.device);
}

static double launch(bench *b, int set)
{
    cb_error err = CB_ERROR_INIT;
    uint64_t start = b->target.ops->now_ns(b->target.device);
    b->target.ops->launch(b->target.device, &b->launches[set]);
    if (b->target.ops->sync(b->target.device, &err) != CB_OK)
        return -1;
    return (double)(b->target.ops->now_ns(b->target.device) - start);
}

/* 1000 bytes at 1 GB/s are 1000 ns cold, at 10 GB/s 100 ns from the cache; the floor is 7 ns. */
#define EXACT "dram_gbs=1,cache_gbs=10,solo_ns=7,batched_ns=3,kernel_factor=1,noise=0,"

static void residency_is_exact_to_the_byte(void **state)
{
    (void)state;
    static const struct {
        const char *script;
        int sets; /* rotated */
        double again;
    } table[] = {{EXACT "cache=1000", 1, 107},    {EXACT "cache=999", 1, 1007},
                 {EXACT "cache=4000", 4, 107},    {EXACT "cache=3999", 4, 1007},
                 {EXACT "cache=4000", 5, 1007},   {EXACT "cache=12000", 12, 107},
                 {EXACT "cache=0,llc=0", 1, 1007}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        bench b;
        bench_open(&b, table[i].script);
        for (int round = 0; round < 3; round++)
            for (int set = 0; set < table[i].sets; set++)
                assert_true(launch(&b, set) == (round ? table[i].again : 1007));
        bench_close(&b);
    }
}

static void the_least_recently_used_set_leaves_first(void **state)
{
    (void)state;
    bench b;
    bench_open(&b, EXACT "cache=2000");
    assert_true(launch(&b, 0) == 1007);
    assert_true(launch(&b, 1) == 1007);
    assert_true(launch(&b, 0) == 107);
    assert_true(launch(&b, 2) == 1007); /* 1 leaves */
    assert_true(launch(&b, 0) == 107);
    assert_true(launch(&b, 1) == 1007);
    bench_close(&b);
}

static void kernels_take_their_factor_and_twins_do_not(void **state)
{
    (void)state;
    bench b;
    bench_open(&b, "dram_gbs=1,cache=0,llc=0,solo_ns=7,noise=0,kernel_factor=1.5");
    assert_true(launch(&b, 0) == 1507);
    b.launches[0].code = &b.twin_code;
    assert_true(launch(&b, 0) == 1007);
    b.launches[0].code = NULL; /* the empty kernel */
    assert_true(launch(&b, 0) == 7);
    bench_close(&b);
}

/* docs/fake.md: beyond the floor, of one arm, in a share of the rounds. */
static void process_slows_one_arm_beyond_the_floor(void **state)
{
    (void)state;
    static const struct {
        const char *script;
        int slow_min, slow_max; /* rounds of 100 */
    } table[] = {{EXACT "cache=999,process=1", 100, 100},
                 {EXACT "cache=999,process=1,process_share=0", 0, 0},
                 {EXACT "cache=999,process=1,process_share=0.3", 15, 45}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        bench b;
        int slow = 0;
        bench_open(&b, table[i].script);
        assert_true(launch(&b, 0) == 1007); /* no arm was named */
        for (uint64_t seed = 1; seed <= 100; seed++) {
            b.target.ops->begin(b.target.device, seed, 0);
            b.target.ops->mark(b.target.device, 1, 1);
            assert_true(launch(&b, 0) == 1007);
            b.target.ops->mark(b.target.device, 2, 1);
            double ns = launch(&b, 0);
            assert_true(ns == 1007 || ns == 2007);
            assert_true(launch(&b, 0) == ns); /* the whole round */
            slow += ns == 2007;
            b.launches[0].code = NULL;
            assert_true(launch(&b, 0) == 7);
            b.launches[0].code = &b.code;
        }
        assert_in_range(slow, table[i].slow_min, table[i].slow_max);
        bench_close(&b);
    }
}

static void drift_follows_device_time(void **state)
{
    (void)state;
    bench b;
    bench_open(&b,
               "dram_gbs=1,cache=0,llc=0,solo_ns=7,noise=0,kernel_factor=1,drift=1,arm_drift=0.5");
    b.target.ops->begin(b.target.device, 1, 0);
    assert_true(launch(&b, 0) == 1007);
    b.target.ops->begin(b.target.device, 1, 2000000000);
    assert_int_equal(b.target.ops->now_ns(b.target.device), 2000000000);
    assert_true(launch(&b, 0) == 6007); /* (1 + 2) * (1 + 0.5 * 2) * 1000 + 7 */
    b.launches[0].code = &b.twin_code;
    b.target.ops->begin(b.target.device, 1, 2000000000);
    assert_true(launch(&b, 0) == 3007);
    bench_close(&b);
}

static void noise_is_bounded_and_follows_the_seed(void **state)
{
    (void)state;
    enum { N = 200 };
    double first[3][N];
    for (int run = 0; run < 3; run++) {
        bench b;
        double lo = 1e9, hi = 0;
        bench_open(&b, "dram_gbs=1,cache=0,llc=0,solo_ns=1,kernel_factor=1,noise=0.25");
        b.target.ops->begin(b.target.device, run == 2 ? 8 : 7, 0);
        for (int i = 0; i < N; i++) {
            double ns = first[run][i] = launch(&b, i % SETS);
            lo = ns < lo ? ns : lo;
            hi = ns > hi ? ns : hi;
        }
        assert_true(lo >= 750 && lo < 800 && hi <= 1252 && hi > 1200);
        bench_close(&b);
    }
    assert_memory_equal(first[0], first[1], sizeof first[0]);
    assert_memory_not_equal(first[0], first[2], sizeof first[0]);
}

static void the_launch_of_that_number_fails_once(void **state)
{
    (void)state;
    bench b;
    bench_open(&b, EXACT "cache=0,llc=0,fail_launch=3");
    assert_true(launch(&b, 0) > 0);
    b.launches[5].code = &b.twin_code; /* does not count */
    assert_true(launch(&b, 5) > 0);
    assert_true(launch(&b, 1) > 0);
    assert_true(launch(&b, 2) == -1);
    assert_true(launch(&b, 3) > 0);
    bench_close(&b);
}

static int fails(const cb_launch *l)
{
    (void)l;
    return 9;
}

static void a_failed_launch_says_its_code_at_the_next_sync_alone(void **state)
{
    (void)state;
    bench b;
    cb_error err = CB_ERROR_INIT;
    bench_open(&b, EXACT "cache=0,llc=0");
    cb_impl impl = *b.c.impl;
    impl.run = fails;
    b.code.impl = &impl;
    b.target.ops->launch(b.target.device, &b.launches[0]);
    assert_int_equal(b.target.ops->sync(b.target.device, &err), CB_WRONG);
    assert_non_null(strstr(err.message, "code 9"));
    cb_error_clear(&err);
    assert_int_equal(b.target.ops->sync(b.target.device, &err), CB_OK);
    bench_close(&b);
}

static void a_batch_has_a_span_and_kernels_run_in_it(void **state)
{
    (void)state;
    bench b;
    cb_error err = CB_ERROR_INIT;
    cb__batch *batch = NULL;
    bench_open(&b, EXACT "cache=0,llc=0");
    for (int set = 0; set < 4; set++)
        for (int c = 0; c < 32; c++)
            b.memory[set][TOY_W][c] = b.memory[set][TOY_X][c] = 1;
    assert_int_equal(b.target.ops->batch_new(b.target.device, b.launches, 4, &batch, &err), CB_OK);
    b.target.ops->batch_run(b.target.device, batch);
    assert_true(b.target.ops->batch_span_ns(b.target.device, batch) == 4 * 1003);
    assert_int_equal(b.target.ops->now_ns(b.target.device), 4 * 1003);
    for (int set = 0; set < SETS; set++)
        assert_true(b.memory[set][TOY_Y][0] == (set < 4 ? 32 : 0));
    b.target.ops->batch_free(b.target.device, batch);
    bench_close(&b);
}

/* ---- memory ---- */

static void memory_is_zeroed_aligned_and_counted(void **state)
{
    (void)state;
    bench b;
    cb_error err = CB_ERROR_INIT;
    bench_open(&b, "");
    const cb__backend *ops = b.target.ops;
    void *address[200];
    int n = 0;
    while (n < 200 &&
           ops->alloc(b.target.device, 5000, CB__PAGES_HUGE, &address[n], &err) == CB_OK) {
        assert_int_equal((uintptr_t)address[n] % 4096, 0);
        assert_int_equal(*((unsigned char *)address[n] + 4999), 0);
        n++;
    }
    assert_true(n >= 16 && n < 200);
    assert_non_null(strstr(err.message, "allocations on the fake device"));
    cb_error_clear(&err);
    ops->free(b.target.device, address[0]);
    ops->free(b.target.device, NULL);
    assert_int_equal(ops->alloc(b.target.device, 64, CB__PAGES_HUGE, &address[0], &err), CB_OK);
    uint64_t digest = 0, sum = 0, words[3] = {1, 2, 3}, back[3];
    assert_int_equal(ops->write(b.target.device, address[0], words, sizeof words, &err), CB_OK);
    assert_int_equal(ops->read(b.target.device, back, address[0], sizeof back, &err), CB_OK);
    assert_memory_equal(words, back, sizeof words);
    assert_int_equal(ops->digest(b.target.device, address[0], 20, &digest, &err), CB_OK);
    words[2] &= 0xffffffff;
    for (uint64_t i = 0; i < 3; i++)
        sum += cb_random_mix(words[i] + (i + 1) * CB_RANDOM_STEP);
    assert_int_equal(digest, sum);
    bench_close(&b); /* frees the rest */
}

static void the_device_admits_to_what_the_script_says(void **state)
{
    (void)state;
    bench b;
    cb__device_info info;
    bench_open(&b, "llc=3MiB,cache=64MiB,memory=5GiB,peak_gbs=100,peak_dram_gbs=50");
    b.target.ops->info(b.target.device, &info);
    assert_int_equal(info.llc_bytes, 3 << 20);
    assert_int_equal(info.memory_bytes, UINT64_C(5) << 30);
    assert_true(info.peak_bytes_per_s == 100e9 && info.peak_dram_bytes_per_s == 50e9);
    assert_string_equal(info.clock, "scripted");
    assert_int_equal(info.threads, 1);
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_script_leaves_out_is_preset),
        cmocka_unit_test(a_bad_script_names_what_is_wrong),
        cmocka_unit_test(residency_is_exact_to_the_byte),
        cmocka_unit_test(the_least_recently_used_set_leaves_first),
        cmocka_unit_test(kernels_take_their_factor_and_twins_do_not),
        cmocka_unit_test(process_slows_one_arm_beyond_the_floor),
        cmocka_unit_test(drift_follows_device_time),
        cmocka_unit_test(noise_is_bounded_and_follows_the_seed),
        cmocka_unit_test(the_launch_of_that_number_fails_once),
        cmocka_unit_test(a_failed_launch_says_its_code_at_the_next_sync_alone),
        cmocka_unit_test(a_batch_has_a_span_and_kernels_run_in_it),
        cmocka_unit_test(memory_is_zeroed_aligned_and_counted),
        cmocka_unit_test(the_device_admits_to_what_the_script_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
