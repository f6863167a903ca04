#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "coldbench/kernel.h"
#include "host/sysfile.h"
#include "host/topology.h"

enum {
    AVX2 = CB_ISA_AVX2,
    AVX512 = CB_ISA_AVX2 | CB_ISA_AVX512,
    VNNI = CB_ISA_AVX2 | CB_ISA_AVX512 | CB_ISA_AVX512_VNNI
};

static cb_status read_machine(const char *machine, cb__topology *t, cb_error *err)
{
    char root[512];
    snprintf(root, sizeof root, "%s/tests/fixtures/host/%s", CB_SOURCE_DIR, machine);
    return cb__topology_read(root, t, err);
}

static const struct {
    const char *machine, *vendor, *uarch;
    int load_bytes;
    unsigned isa;
    int ncpus, ncores, nodes, threads;
    int cores[8];
    double quota;
    uint64_t llc_bytes;
} machines[] = {
    {"zen4-vm", "AuthenticAMD", "zen4", 64, VNNI, 2, 2, 1, 2, {0, 1}, 0, 32768u << 10},
    {"icelake-2s",
     "GenuineIntel",
     "icelake-x",
     128,
     VNNI,
     8,
     4,
     2,
     4,
     {0, 2, 1, 3},
     0,
     2 * 49152u << 10},
    {"container-v2", "AuthenticAMD", "zen3", 64, AVX2, 4, 2, 1, 1, {0, 2}, 1.5, 32768u << 10},
    {"slice-v2",
     "GenuineIntel",
     "sapphire-rapids",
     128,
     VNNI,
     8,
     8,
     1,
     3,
     {0, 1, 2, 3, 4, 5, 6, 7},
     3.5,
     0},
    {"container-v1",
     "GenuineIntel",
     "skylake-x",
     128,
     VNNI,
     4,
     2,
     1,
     2,
     {0, 1},
     2.25,
     36608u << 10},
    {"neoverse-n1", "ARM", "neoverse-n1", 0, CB_ISA_PORTABLE, 4, 4, 1, 4, {0, 1, 2, 3}, 0, 0},
};

static void recorded_machines_are_understood(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++) {
        cb_error err = CB_ERROR_INIT;
        cb__topology t;
        print_message("%s\n", machines[i].machine);
        assert_int_equal(read_machine(machines[i].machine, &t, &err), CB_OK);
        assert_false(t.from_hwloc);
        assert_string_equal(t.vendor, machines[i].vendor);
        assert_string_equal(t.uarch, machines[i].uarch);
        assert_int_equal(t.load_bytes_per_cycle, machines[i].load_bytes);
        assert_int_equal(t.isa, machines[i].isa);
        assert_int_equal(t.ncpus, machines[i].ncpus);
        assert_int_equal(t.ncores, machines[i].ncores);
        assert_memory_equal(t.cores, machines[i].cores,
                            (size_t)t.ncores * sizeof *machines[i].cores);
        assert_int_equal(t.numa_nodes, machines[i].nodes);
        assert_true(t.quota >= machines[i].quota && t.quota <= machines[i].quota);
        assert_true(t.llc_bytes == machines[i].llc_bytes);
        assert_int_equal(cb__default_threads(&t), machines[i].threads);
    }
}

static void caches_are_counted_once_an_instance(void **state)
{
    (void)state;
    static const cb__cache expected[] = {{1, true, 48 << 10, 2, 4},
                                         {1, false, 32 << 10, 2, 4},
                                         {2, true, 1280 << 10, 2, 4},
                                         {3, true, 49152 << 10, 4, 2}};
    cb_error err = CB_ERROR_INIT;
    cb__topology t;
    assert_int_equal(read_machine("icelake-2s", &t, &err), CB_OK);
    assert_int_equal(t.ncaches, 4);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(t.caches[i].level, expected[i].level);
        assert_int_equal(t.caches[i].data, expected[i].data);
        assert_true(t.caches[i].bytes == expected[i].bytes);
        assert_int_equal(t.caches[i].shared_by, expected[i].shared_by);
        assert_int_equal(t.caches[i].instances, expected[i].instances);
    }
    assert_string_equal(t.model_name, "Intel(R) Xeon(R) Gold 6338 CPU @ 2.00GHz");
    assert_int_equal(t.family, 6);
    assert_int_equal(t.model, 106);
    assert_int_equal(t.stepping, 6);
    assert_int_equal(read_machine("neoverse-n1", &t, &err), CB_OK);
    assert_int_equal(t.ncaches, 0);
    assert_string_equal(t.model_name, "implementer 0x41 part 0xd0c");
}

static void no_cpu_at_all_is_unavailable(void **state)
{
    (void)state;
    cb_error err = CB_ERROR_INIT;
    cb__topology t;
    assert_int_equal(read_machine("nowhere", &t, &err), CB_UNAVAILABLE);
    assert_non_null(strstr(err.message, "nowhere"));
}

/* hwloc where it was built in; "/." makes sysfs read the same machine, affinity aside. */
static void both_readers_agree_on_this_machine(void **state)
{
    (void)state;
    cb_error err = CB_ERROR_INIT;
    cb__topology a, b;
    assert_int_equal(cb__topology_read("", &a, &err), CB_OK);
    assert_int_equal(cb__topology_read("/.", &b, &err), CB_OK);
    print_message("%s, %s, %d B/cycle, isa %u, %d CPUs, %d cores, %d nodes, quota %g, llc %llu "
                  "KiB, hwloc %d\n",
                  a.model_name, a.uarch, a.load_bytes_per_cycle, a.isa, a.ncpus, a.ncores,
                  a.numa_nodes, a.quota, (unsigned long long)(a.llc_bytes >> 10), a.from_hwloc);
    assert_int_equal(a.from_hwloc, CB_HAVE_HWLOC);
    assert_false(b.from_hwloc);
    assert_string_equal(a.uarch, b.uarch);
    assert_int_equal(a.isa, b.isa);
    if (a.ncpus != b.ncpus)
        skip(); /* started with a narrower mask: the two do not describe the same CPUs */
    assert_memory_equal(a.cpus, b.cpus, sizeof a.cpus);
    assert_int_equal(a.ncores, b.ncores);
    assert_memory_equal(a.cores, b.cores, sizeof a.cores);
    assert_int_equal(a.numa_nodes, b.numa_nodes);
    assert_int_equal(a.ncaches, b.ncaches);
    for (int i = 0; i < a.ncaches; i++) {
        assert_int_equal(a.caches[i].level, b.caches[i].level);
        assert_int_equal(a.caches[i].data, b.caches[i].data);
        assert_true(a.caches[i].bytes == b.caches[i].bytes);
        assert_int_equal(a.caches[i].shared_by, b.caches[i].shared_by);
        assert_int_equal(a.caches[i].instances, b.caches[i].instances);
    }
}

static void affinity_mask_is_respected(void **state)
{
    (void)state;
    cb_error err = CB_ERROR_INIT;
    cb__topology before, t;
    cpu_set_t old, one;
    assert_int_equal(cb__topology_read("", &before, &err), CB_OK);
    int last = before.cpus[before.ncpus - 1];
    sched_getaffinity(0, sizeof old, &old);
    CPU_ZERO(&one);
    CPU_SET(last, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    cb_status status = cb__topology_read("", &t, &err);
    sched_setaffinity(0, sizeof old, &old);
    assert_int_equal(status, CB_OK);
    assert_int_equal(t.ncpus, 1);
    assert_int_equal(t.cpus[0], last);
    assert_int_equal(t.ncores, 1);
    assert_int_equal(t.cores[0], last);
    for (int i = 0; i < t.ncaches; i++)
        assert_int_equal(t.caches[i].instances, 1);
    assert_int_equal(cb__default_threads(&t), 1);
}

static void default_threads_follow_cores_and_quota(void **state)
{
    (void)state;
    static const struct {
        int ncores;
        double quota;
        int threads;
    } rows[] = {{8, 0, 8}, {8, 3.9, 3}, {8, 0.5, 1}, {2, 16, 2}, {1, 0, 1}};
    static cb__topology t;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        t.ncores = rows[i].ncores;
        t.quota = rows[i].quota;
        assert_int_equal(cb__default_threads(&t), rows[i].threads);
    }
}

static void cpu_lists_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int count;
        unsigned bits; /* of the first 8 */
    } rows[] = {
        {"0", 1, 0x01},     {"0-3", 4, 0x0f}, {"1,3,5-6", 4, 0x6a}, {"6-9", 4, 0xc0},
        {"0-3\n", 4, 0x0f}, {"", 0, 0},       {"3-1", 0, 0},        {"x", 0, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool set[8];
        unsigned bits = 0;
        assert_int_equal(cb__cpulist_parse(rows[i].text, set, 8), rows[i].count);
        for (unsigned cpu = 0; cpu < 8; cpu++)
            bits |= set[cpu] ? 1u << cpu : 0;
        assert_int_equal(bits, rows[i].bits);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recorded_machines_are_understood),
        cmocka_unit_test(caches_are_counted_once_an_instance),
        cmocka_unit_test(no_cpu_at_all_is_unavailable),
        cmocka_unit_test(both_readers_agree_on_this_machine),
        cmocka_unit_test(affinity_mask_is_respected),
        cmocka_unit_test(default_threads_follow_cores_and_quota),
        cmocka_unit_test(cpu_lists_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
