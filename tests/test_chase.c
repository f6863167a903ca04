/* chase: one cycle through all lines in both patterns, whatever the number of pages; filled in
 * parts; ends where the definition says.
 */
#include "built.h"

enum { LINE = 64, PAGE = 4096, RANDOM = 0, LOCAL = 1, PARTS = 3 };

static const int64_t PAGES[] = {1, 2, 3, 5, 64, 4097};

static char *filled(const cb_kernel *kernel, int64_t bytes, int64_t pattern, uint64_t set)
{
    const int64_t params[] = {pattern, 1, 0, 0, 0};
    char *chain = aligned_alloc(PAGE, (size_t)bytes);
    assert_non_null(chain);
    kernel->fill(&(cb_problem){&bytes, params}, 7, 0, set, chain, 0, 1);
    return chain;
}

static uint64_t next_of(const char *chain, uint64_t offset)
{
    uint64_t next;
    memcpy(&next, chain + offset, sizeof next);
    return next;
}

/* Every line once, then the first again. */
static void check_cycle(const char *chain, uint64_t bytes)
{
    unsigned char *seen = calloc(bytes / LINE, 1);
    uint64_t offset = 0;
    for (uint64_t hop = 0; hop < bytes / LINE; hop++) {
        assert_true(offset < bytes && offset % LINE == 0);
        if (seen[offset / LINE]++)
            fail_msg("%llu bytes: line %llu comes again after %llu hops", (unsigned long long)bytes,
                     (unsigned long long)(offset / LINE), (unsigned long long)hop);
        offset = next_of(chain, offset);
    }
    assert_int_equal(offset, 0);
    free(seen);
}

static void one_cycle_goes_through_all_lines(void **state)
{
    (void)state;
    const cb_kernel *kernel = load_built("chase", "chase");
    for (int i = 0; i < COUNT(PAGES); i++)
        for (int pattern = RANDOM; pattern <= LOCAL; pattern++) {
            char *chain = filled(kernel, PAGES[i] * PAGE, pattern, 0);
            check_cycle(chain, (uint64_t)PAGES[i] * PAGE);
            free(chain);
        }
}

/* Each line is written by one part only, and as it is written by one alone. */
static void check_parts(const cb_kernel *kernel, int64_t bytes, int64_t pattern)
{
    const int64_t params[] = {pattern, 1, 0, 0, 0};
    char *whole = filled(kernel, bytes, pattern, 2), *part = malloc((size_t)bytes);
    unsigned char *writers = calloc((size_t)bytes / LINE, 1), untouched[LINE];
    memset(untouched, 0xA5, LINE);
    for (int p = 0; p < PARTS; p++) {
        memset(part, 0xA5, (size_t)bytes);
        kernel->fill(&(cb_problem){&bytes, params}, 7, 0, 2, part, p, PARTS);
        for (int64_t at = 0; at < bytes; at += LINE) {
            if (memcmp(part + at, untouched, LINE) == 0)
                continue;
            writers[at / LINE]++;
            assert_memory_equal(part + at, whole + at, LINE);
        }
    }
    for (int64_t line = 0; line < bytes / LINE; line++)
        assert_int_equal(writers[line], 1);
    free(whole);
    free(part);
    free(writers);
}

static void parts_are_disjoint_and_make_the_whole(void **state)
{
    (void)state;
    const cb_kernel *kernel = load_built("chase", "chase");
    for (int i = 0; i < COUNT(PAGES); i++)
        for (int pattern = RANDOM; pattern <= LOCAL; pattern++)
            check_parts(kernel, PAGES[i] * PAGE, pattern);
}

/* Where hop 0 is: a launch of as many steps as there are lines comes back to it. */
static uint64_t first_of(const cb_kernel *kernel, const char *chain, int64_t bytes, int64_t pattern)
{
    const int64_t params[] = {pattern, bytes / LINE, 0, 0, 0};
    const void *logical[] = {chain, NULL};
    double value, bound;
    kernel->reference(&(cb_problem){&bytes, params}, logical, 1, 0, 1, &value, &bound);
    return (uint64_t)value;
}

typedef struct hops {
    uint64_t same_page, next_line, all;
} hops;

static hops count_hops(const cb_kernel *kernel, int64_t bytes, int64_t pattern)
{
    char *chain = filled(kernel, bytes, pattern, 0);
    hops h = {.all = (uint64_t)bytes / LINE};
    uint64_t offset = first_of(kernel, chain, bytes, pattern);
    for (uint64_t hop = 0; hop < h.all; hop++) {
        uint64_t next = next_of(chain, offset);
        h.same_page += next / PAGE == offset / PAGE;
        h.next_line += next == offset + LINE;
        if (pattern == LOCAL && hop % (PAGE / LINE) != PAGE / LINE - 1)
            assert_int_equal(next / PAGE, offset / PAGE);
        offset = next;
    }
    free(chain);
    return h;
}

/* A page is left once in 64 hops, or as good as always; neighbours in memory are none in time. */
static void patterns_are_what_they_say(void **state)
{
    (void)state;
    const cb_kernel *kernel = load_built("chase", "chase");
    hops local = count_hops(kernel, INT64_C(4097) * PAGE, LOCAL);
    assert_int_equal(local.same_page, local.all / 64 * 63);
    assert_true(local.next_line < local.all / 30); /* 1/64 is expected */
    hops random = count_hops(kernel, INT64_C(4097) * PAGE, RANDOM);
    assert_true(random.same_page < random.all / 1000); /* 1/4097 */
    assert_true(random.next_line < random.all / 10000);
}

static void sets_pages_and_contents_differ(void **state)
{
    (void)state;
    const cb_kernel *kernel = load_built("chase", "chase");
    for (int pattern = RANDOM; pattern <= LOCAL; pattern++) {
        char *a = filled(kernel, 4 * PAGE, pattern, 0), *b = filled(kernel, 4 * PAGE, pattern, 1);
        int same_next = 0, same_order = 0, words = 4 * PAGE / 8;
        for (int line = 0; line < 256; line++)
            same_next += next_of(a, (uint64_t)line * LINE) == next_of(b, (uint64_t)line * LINE);
        for (int line = 0; line < 64; line++)
            same_order += next_of(a, (uint64_t)line * LINE) + PAGE ==
                          next_of(a, (uint64_t)line * LINE + PAGE);
        assert_true(same_next < 30 && same_order < 10);
        for (int i = 1; i < words; i++)
            assert_int_not_equal(((uint64_t *)(void *)a)[i], ((uint64_t *)(void *)a)[i - 1]);
        free(a);
        free(b);
    }
}

static void check_end(const cb_kernel *kernel, char *chain, int64_t bytes, const int64_t *params)
{
    cb_problem problem = {&bytes, params};
    uint64_t end[3];
    void *operands[] = {chain, &end[1]};
    double value = -1, bound = -1;
    kernel->reference(&problem, (const void *const *)operands, 1, 0, 1, &value, &bound);
    assert_true(bound <= 0);
    for (int i = 0; i < kernel->nimpls; i++)
        for (int workers = 1; workers <= 3 && processor_has(kernel->impls[i].isa); workers++) {
            memset(end, 0x5A, sizeof end);
            cb_launch idle = {problem, NULL, operands, 1, 2, NULL, NULL};
            assert_int_equal(kernel->impls[i].run(&idle), 0);
            assert_int_equal(end[1], end[0]); /* only worker 0 follows the chain */
            launch_all(&kernel->impls[i], problem, operands, workers);
            if ((double)end[1] < value || (double)end[1] > value)
                fail_msg("%lld bytes, pattern %lld, steps %lld, start %lld: %llu, not %.0f",
                         (long long)bytes, (long long)params[0], (long long)params[1],
                         (long long)params[2], (unsigned long long)end[1], value);
            assert_int_equal(end[0], UINT64_C(0x5A5A5A5A5A5A5A5A));
            assert_int_equal(end[2], UINT64_C(0x5A5A5A5A5A5A5A5A));
        }
}

static void a_launch_ends_where_the_definition_says(void **state)
{
    (void)state;
    static const int64_t steps[] = {1, 2, 15, 16, 17, 191, 192, 193, 100000};
    static const int64_t starts[] = {0, 1, 63, 64, 191, 192, INT64_C(1) << 40};
    const cb_kernel *kernel = load_built("chase", "chase");
    for (int i = 0; i < COUNT(PAGES); i++)
        for (int pattern = RANDOM; pattern <= LOCAL; pattern++) {
            char *chain = filled(kernel, PAGES[i] * PAGE, pattern, 0);
            for (int s = 0; s < COUNT(steps) * COUNT(starts); s++) {
                const int64_t params[] = {pattern, steps[s % COUNT(steps)],
                                          starts[s / COUNT(steps)], s % 3 * 70, 0};
                check_end(kernel, chain, PAGES[i] * PAGE, params);
            }
            free(chain);
        }
}

/* A launch goes on where the one before ended. */
static void start_is_a_hop(void **state)
{
    (void)state;
    const int64_t bytes = 5 * PAGE;
    const cb_kernel *kernel = load_built("chase", "chase");
    for (int pattern = RANDOM; pattern <= LOCAL; pattern++) {
        char *chain = filled(kernel, bytes, pattern, 3);
        uint64_t offset = first_of(kernel, chain, bytes, pattern), end = 0;
        void *operands[] = {chain, &end};
        for (int64_t start = 0; start < 700; start++) {
            const int64_t params[] = {pattern, 1, start, 0, 0};
            launch_all(&kernel->impls[0], (cb_problem){&bytes, params}, operands, 1);
            offset = next_of(chain, offset);
            assert_int_equal(end, offset);
        }
        free(chain);
    }
}

/* Of three workers, as `place` counts them. */
static void the_place_walks(void **state)
{
    (void)state;
    static const int64_t bytes = 2 * PAGE, walkers[] = {0, 0, 1, 2, 0, 1};
    const cb_kernel *kernel = load_built("chase", "chase");
    char *chain = filled(kernel, bytes, RANDOM, 0);
    for (int64_t place = 0; place < COUNT(walkers); place++)
        for (int worker = 0; worker < 3; worker++) {
            const int64_t params[] = {RANDOM, 5, 9, 300, place};
            const uint64_t nobody = UINT64_C(0x5A5A5A5A5A5A5A5A);
            uint64_t end = nobody;
            void *operands[] = {chain, &end};
            cb_launch launch = {{&bytes, params}, NULL, operands, worker, 3, NULL, NULL};
            assert_int_equal(kernel->impls[0].run(&launch), 0);
            assert_int_equal(end != nobody, worker == walkers[place]);
        }
    free(chain);
}

static void the_cost_is_of_distinct_lines(void **state)
{
    (void)state;
    static const struct {
        int64_t bytes, steps;
        uint64_t read;
    } table[] = {{4096, 1, 64}, {4096, 63, 4032}, {4096, 64, 4096}, {4096, 1000, 4096}};
    const cb_kernel *kernel = load_built("chase", "chase");
    for (int i = 0; i < COUNT(table); i++) {
        const int64_t params[] = {RANDOM, table[i].steps, 0, 0, 0};
        cb_cost cost;
        kernel->cost(&(cb_problem){&table[i].bytes, params}, &cost);
        assert_int_equal(cost.bytes_read, table[i].read);
        assert_int_equal(cost.bytes_written, 8);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_cycle_goes_through_all_lines),
        cmocka_unit_test(parts_are_disjoint_and_make_the_whole),
        cmocka_unit_test(patterns_are_what_they_say),
        cmocka_unit_test(sets_pages_and_contents_differ),
        cmocka_unit_test(a_launch_ends_where_the_definition_says),
        cmocka_unit_test(start_is_a_hop),
        cmocka_unit_test(the_place_walks),
        cmocka_unit_test(the_cost_is_of_distinct_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
