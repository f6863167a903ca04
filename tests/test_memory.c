#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "host/clock.h"
#include "host/memory.h"
#include "host/spawn.h"

static const size_t MiB = (size_t)1 << 20;

static void show(const char *what, const cb__region *region)
{
    cb__pages pages = cb__region_pages(region);
    print_message("%s: %zu KiB resident, %zu KiB of it huge\n", what, pages.resident_bytes >> 10,
                  pages.huge_bytes >> 10);
}

typedef cb_status (*make_fn)(size_t bytes, cb__region *out, cb_error *err);

static cb_status make_shared(size_t bytes, cb__region *out, cb_error *err)
{
    return cb__region_shared("test", bytes, out, err);
}

static const struct {
    const char *name;
    make_fn make;
} kinds[] = {{"private", cb__region_private}, {"shared", make_shared}};

/* Whether pages are huge is the kernel's choice: printed. What is resident is not. */
static void regions_are_aligned_untouched_and_counted(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 4096, 5000, 2 << 20, (8 << 20) + 12345};
    for (size_t k = 0; k < 2; k++) {
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            cb_error err = CB_ERROR_INIT;
            cb__region region;
            assert_int_equal(kinds[k].make(sizes[i], &region, &err), CB_OK);
            assert_int_equal((uintptr_t)region.base % (2 * MiB), 0);
            assert_int_equal(region.bytes, sizes[i]);
            assert_int_equal(region.fd >= 0, k == 1);
            cb__pages pages = cb__region_pages(&region);
            assert_true(pages.known);
            assert_int_equal(pages.resident_bytes, 0);
            memset(region.base, 7, sizes[i]);
            pages = cb__region_pages(&region);
            assert_int_equal(pages.resident_bytes, sizes[i]);
            assert_true(pages.huge_bytes <= pages.resident_bytes);
            show(kinds[k].name, &region);
            cb__region_fini(&region);
            assert_null(region.base);
            cb__region_fini(&region);
        }
    }
}

static void neighbours_are_not_counted(void **state)
{
    (void)state;
    enum { N = 6 };
    cb__region regions[N];
    cb_error err = CB_ERROR_INIT;
    for (int i = 0; i < N; i++)
        assert_int_equal(cb__region_private(4 * MiB, &regions[i], &err), CB_OK);
    for (int i = 0; i < N; i += 2)
        memset(regions[i].base, 1, 4 * MiB);
    for (int i = 0; i < N; i++) {
        cb__pages pages = cb__region_pages(&regions[i]);
        assert_true(pages.known);
        assert_int_equal(pages.resident_bytes, i % 2 ? 0 : 4 * MiB);
    }
    for (int i = 0; i < N; i++)
        cb__region_fini(&regions[i]);
}

/* One page at that address, if nothing is there yet. */
static bool is_free(char *at)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *got = mmap(at, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (got != MAP_FAILED)
        munmap(got, page);
    return got == at;
}

static void guards_stand_on_both_sides_and_go_with_the_region(void **state)
{
    (void)state;
    long page = sysconf(_SC_PAGESIZE);
    for (size_t k = 0; k < 2; k++) {
        cb_error err = CB_ERROR_INIT;
        cb__region region;
        assert_int_equal(kinds[k].make(3 * MiB, &region, &err), CB_OK);
        char *base = region.base, *end = base + 4 * MiB;
        assert_false(is_free(base - page));
        assert_false(is_free(end));
        assert_true(is_free(base - 2 * page));
        assert_true(is_free(end + page));
        cb__region_fini(&region);
        for (char *at = base - page; at <= end; at += page)
            assert_true(is_free(at));
    }
}

static uint64_t sum_of(const cb__region *region)
{
    const unsigned char *bytes = region->base;
    uint64_t sum = 0;
    for (size_t i = 0; i < region->bytes; i += 61)
        sum = sum * 31 + bytes[i];
    return sum;
}

static void fill(const cb__region *region)
{
    unsigned char *bytes = region->base;
    for (size_t i = 0; i < region->bytes; i++)
        bytes[i] = (unsigned char)(i * 2654435761u >> 13);
}

static void collapse_keeps_the_bytes(void **state)
{
    (void)state;
    for (size_t k = 0; k < 2; k++) {
        cb_error err = CB_ERROR_INIT;
        cb__region region;
        assert_int_equal(kinds[k].make(8 * MiB, &region, &err), CB_OK);
        cb__region_collapse(&region);
        fill(&region);
        uint64_t before = sum_of(&region);
        show("filled", &region);
        cb__region_collapse(&region);
        show("collapsed", &region);
        assert_true(sum_of(&region) == before);
        assert_int_equal(cb__region_pages(&region).resident_bytes, 8 * MiB);
        cb__region_fini(&region);
    }
}

/* The child's side of the next test: maps descriptor argv[2], prints what it sees. */
static int map_and_tell(int fd, size_t bytes)
{
    cb_error err = CB_ERROR_INIT;
    cb__region region;
    if (cb__region_map(fd, bytes, &region, &err) != CB_OK) {
        printf("%s\n", err.message);
        return 1;
    }
    cb__pages pages = cb__region_pages(&region);
    printf("%zu %zu %llu %d\n", pages.resident_bytes, pages.huge_bytes,
           (unsigned long long)sum_of(&region), region.fd);
    cb__region_fini(&region);
    return 0;
}

static void another_program_maps_it_filled_in(void **state)
{
    (void)state;
    cb_error err = CB_ERROR_INIT;
    cb__region region;
    assert_int_equal(cb__region_shared("ring", 16 * MiB, &region, &err), CB_OK);
    fill(&region);
    show("creator, filled", &region);
    char fd[16], bytes[32];
    snprintf(fd, sizeof fd, "%d", region.fd);
    snprintf(bytes, sizeof bytes, "%zu", region.bytes);
    char self[] = "/proc/self/exe", role[] = "map";
    char *argv[] = {self, role, fd, bytes, NULL};
    for (int program = 0; program < 2; program++) {
        cb__child child;
        cb__buf line = CB__BUF_INIT;
        assert_int_equal(cb__spawn(argv, NULL, &region.fd, 1, &child, &err), CB_OK);
        assert_int_equal(cb__child_line(&child, cb__clock_ns() + 60000000000u, NULL, &line, &err),
                         CB_OK);
        size_t resident = 0, huge = 0;
        unsigned long long sum = 0;
        int kept = 0;
        assert_int_equal(sscanf(line.text, "%zu %zu %llu %d", &resident, &huge, &sum, &kept), 4);
        print_message("program %d: %zu KiB resident, %zu KiB of it huge\n", program, resident >> 10,
                      huge >> 10);
        assert_int_equal(resident, region.bytes);
        assert_true(sum == sum_of(&region));
        assert_int_equal(kept, -1);
        cb__child_end(&child, 60000000000u);
        cb__buf_fini(&line);
    }
    show("creator, afterwards", &region);
    cb__region_fini(&region);
}

/* Who has the descriptor may write, but cannot take pages away from under those who map it. */
static void a_shared_file_keeps_its_size(void **state)
{
    (void)state;
    cb_error err = CB_ERROR_INIT;
    cb__region region;
    assert_int_equal(make_shared(2 * MiB, &region, &err), CB_OK);
    fill(&region);
    uint64_t sum = sum_of(&region);
    assert_int_equal(ftruncate(region.fd, 0), -1);
    assert_int_equal(ftruncate(region.fd, 8 << 20), -1);
    assert_int_equal(fcntl(region.fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
    assert_true(sum_of(&region) == sum);
    cb__region_fini(&region);
}

static void maps_a_file_that_ends_inside_a_huge_page(void **state)
{
    (void)state;
    int fd = memfd_create("short", MFD_CLOEXEC);
    assert_int_equal(ftruncate(fd, 5000), 0);
    cb_error err = CB_ERROR_INIT;
    cb__region region;
    assert_int_equal(cb__region_map(fd, 5000, &region, &err), CB_OK);
    ((char *)region.base)[4999] = 1;
    cb__region_fini(&region);
    assert_int_equal(cb__region_map(fd, 5001, &region, &err), CB_IO);
    assert_non_null(strstr(err.message, "has 5000 bytes, needed 5001"));
    close(fd);
    cb_error_clear(&err);
    assert_int_equal(cb__region_map(fd, 1, &region, &err), CB_IO);
    assert_non_null(strstr(err.message, "Bad file descriptor"));
}

static void impossible_sizes_are_refused(void **state)
{
    (void)state;
    static const struct {
        size_t bytes;
        cb_status status;
    } rows[] = {{0, CB_USAGE}, {SIZE_MAX, CB_USAGE}, {SIZE_MAX / 4, CB_NO_MEMORY}};
    for (size_t k = 0; k < 2; k++) {
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            cb_error err = CB_ERROR_INIT;
            cb__region region;
            assert_int_equal(kinds[k].make(rows[i].bytes, &region, &err), rows[i].status);
            assert_null(region.base);
            assert_int_equal(region.fd, -1);
            assert_true(err.message[0] != '\0');
        }
    }
}

static void available_memory_honours_every_limit(void **state)
{
    (void)state;
    static const struct {
        const char *machine;
        uint64_t bytes;
    } rows[] = {
        {"zen4-vm", 24293044ull << 10}, /* MemAvailable: no limit */
        {"icelake-2s", 131072000ull << 10},
        {"container-v2", 1024ull << 20}, /* 2048 MiB - (1536 used - 512 page cache) */
        {"slice-v2", 3072ull << 20},     /* the outer slice's memory.high 4096 - 1024 used */
        {"container-v1", 568ull << 20},  /* 768 from a level not seen - (300 - 100) */
        {"neoverse-n1", 8000000ull << 10},
        {"nowhere", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char root[512];
        snprintf(root, sizeof root, "%s/tests/fixtures/host/%s", CB_SOURCE_DIR, rows[i].machine);
        print_message("%s\n", rows[i].machine);
        assert_true(cb__memory_available(root) == rows[i].bytes);
    }
    uint64_t here = cb__memory_available("");
    print_message("available here: %llu MiB\n", (unsigned long long)(here >> 20));
    assert_true(here > 0);
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "map") == 0)
        return map_and_tell(atoi(argv[2]), strtoull(argv[3], NULL, 10));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(regions_are_aligned_untouched_and_counted),
        cmocka_unit_test(neighbours_are_not_counted),
        cmocka_unit_test(guards_stand_on_both_sides_and_go_with_the_region),
        cmocka_unit_test(collapse_keeps_the_bytes),
        cmocka_unit_test(another_program_maps_it_filled_in),
        cmocka_unit_test(a_shared_file_keeps_its_size),
        cmocka_unit_test(maps_a_file_that_ends_inside_a_huge_page),
        cmocka_unit_test(impossible_sizes_are_refused),
        cmocka_unit_test(available_memory_honours_every_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
