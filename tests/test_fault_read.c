/* fault_read: which checksums its faults leave right, which words each of them reads, and that none
 * goes outside the set.
 */
#include "built.h"

#include <sys/mman.h>

enum { FOLDED, UNDERDRIVEN, SHRUNK, MISALIGNED, FAULTS };
enum { PAGE = 4096, ROOM = 128 * 1024, WORKERS_MAX = 5 };

static const int64_t RAGGED[] = {64, 128, 192, 576, 1088, 4096, 4160, 8128, 16384, 65600, 99968};
static const int64_t PASSES[] = {1, 2, 7};

/* The set lies at one end of the room, right beside a page that must not be touched. */
typedef struct room {
    char *map, *src;
    uint32_t checksum;
    void *partial;
    void *operands[3];
} room;

static void room_init(room *r, const cb_kernel *kernel, cb_problem problem, int at_end)
{
    r->map = mmap(NULL, ROOM + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(r->map, MAP_FAILED);
    assert_int_equal(mprotect(r->map + PAGE, ROOM, PROT_READ | PROT_WRITE), 0);
    r->src = r->map + PAGE + (at_end ? ROOM - problem.shape[0] : 0);
    kernel->fill(&problem, 7, 0, 0, r->src, 0, 1);
    size_t bytes = kernel->bytes(&problem, 2);
    r->partial = aligned_alloc(64, bytes);
    memset(r->partial, 0, bytes);
    r->operands[0] = r->src;
    r->operands[1] = &r->checksum;
    r->operands[2] = r->partial;
}

static void room_fini(room *r)
{
    munmap(r->map, ROOM + 2 * PAGE);
    free(r->partial);
}

static void check_checksum(const cb_kernel *kernel, const cb_impl *impl, cb_problem problem,
                           int at_end)
{
    room r;
    room_init(&r, kernel, problem, at_end);
    double value = -1, bound = -1;
    kernel->reference(&problem, (const void *const *)r.operands, 1, 0, 1, &value, &bound);
    for (int workers = 1; workers <= WORKERS_MAX; workers++) {
        r.checksum = 0x5A5A5A5A;
        launch_all(impl, problem, r.operands, workers);
        int right = (double)r.checksum <= value && (double)r.checksum >= value;
        int expected = problem.params[1] != SHRUNK || problem.params[0] % 2 == 0;
        if (right != expected)
            fail_msg("%s fault %lld, %lld bytes, %lld passes, %d workers: %u beside %.0f",
                     impl->name, (long long)problem.params[1], (long long)problem.shape[0],
                     (long long)problem.params[0], workers, r.checksum, value);
    }
    room_fini(&r);
}

static void check_impl(const char *name)
{
    const cb_kernel *kernel = load_built("fault_read", "fault_read");
    const cb_impl *impl = find_impl(kernel, name);
    if (!impl)
        skip();
    for (int64_t fault = FOLDED; fault < FAULTS; fault++)
        for (int s = 0; s < COUNT(RAGGED); s++)
            for (int p = 0; p < COUNT(PASSES); p++)
                for (int at_end = 0; at_end < 2; at_end++) {
                    const int64_t params[] = {PASSES[p], fault};
                    check_checksum(kernel, impl, (cb_problem){&RAGGED[s], params}, at_end);
                }
}

static void portable_faults_leave_what_they_say(void **state)
{
    (void)state;
    check_impl("portable");
}

static void avx2_faults_leave_what_they_say(void **state)
{
    (void)state;
    check_impl("avx2");
}

static void avx512_faults_leave_what_they_say(void **state)
{
    (void)state;
    check_impl("avx512");
}

/* Every word of the set matters, or, where it was shrunk, every word of each share's first half. */
static void the_words_that_are_read_are_those(void **state)
{
    (void)state;
    enum { WORKERS = 3 };
    const int64_t bytes = 4160; /* shares of 21, 22 and 22 lines */
    static const int64_t read_lines[WORKERS][2] = {{0, 10}, {21, 32}, {43, 54}};
    const cb_kernel *kernel = load_built("fault_read", "fault_read");
    for (int i = 0; i < kernel->nimpls; i++)
        for (int64_t fault = FOLDED; fault < FAULTS; fault++) {
            if (!processor_has(kernel->impls[i].isa))
                continue;
            const int64_t params[] = {3, fault};
            cb_problem problem = {&bytes, params};
            room r;
            room_init(&r, kernel, problem, 0);
            launch_all(&kernel->impls[i], problem, r.operands, WORKERS);
            uint32_t clean = r.checksum, *words = (uint32_t *)(void *)r.src;
            for (int64_t word = 0; word < bytes / 4; word++) {
                int is_read = fault != SHRUNK;
                for (int w = 0; w < WORKERS; w++)
                    is_read |= word / 16 >= read_lines[w][0] && word / 16 < read_lines[w][1];
                uint32_t old = words[word]++;
                launch_all(&kernel->impls[i], problem, r.operands, WORKERS);
                assert_int_equal(r.checksum, clean ^ (is_read ? old ^ words[word] : 0u));
                words[word] = old;
            }
            room_fini(&r);
        }
}

static void it_is_defined_as_twin_read(void **state)
{
    (void)state;
    const cb_kernel *fault = load_built("fault_read", "fault_read");
    const cb_kernel *twin = load_built("twin", "twin_read");
    const int64_t bytes = 4160, params[] = {7, SHRUNK}, one_slice[] = {7, 1};
    cb_problem problem = {&bytes, params}, whole = {&bytes, one_slice};
    assert_string_equal(fault->formula, twin->formula);
    assert_int_equal(fault->noperands, twin->noperands);
    for (int i = 0; i < fault->noperands; i++) {
        assert_string_equal(fault->operands[i].name, twin->operands[i].name);
        assert_int_equal(fault->operands[i].role, twin->operands[i].role);
        assert_int_equal(fault->bytes(&problem, i), twin->bytes(&whole, i));
    }
    cb_cost a, b;
    fault->cost(&problem, &a);
    twin->cost(&whole, &b);
    assert_int_equal(a.bytes_read, b.bytes_read);
    assert_int_equal(a.bytes_written, b.bytes_written);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(portable_faults_leave_what_they_say),
        cmocka_unit_test(avx2_faults_leave_what_they_say),
        cmocka_unit_test(avx512_faults_leave_what_they_say),
        cmocka_unit_test(the_words_that_are_read_are_those),
        cmocka_unit_test(it_is_defined_as_twin_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
