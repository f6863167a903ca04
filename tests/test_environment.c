#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "host/clock.h"
#include "host/environment.h"

static void read_machine(const char *machine, cb__environment *e)
{
    char root[512];
    snprintf(root, sizeof root, "%s/tests/fixtures/host/%s", CB_SOURCE_DIR, machine);
    cb__environment_read(root, e);
}

static const struct {
    const char *machine, *os, *kernel;
    bool vm, container, id;
    const char *virtualization, *governor, *thp, *thp_shmem;
} machines[] = {
    {"zen4-vm", "Debian GNU/Linux 12 (bookworm)", "Linux 6.1.0-28-amd64", true, false, true,
     "unknown hypervisor", "", "madvise", "never"},
    /* Bare metal of a cloud: the firmware's vendor alone makes no virtual machine. */
    {"icelake-2s", "Ubuntu 24.04.1 LTS", "Linux 6.8.0-49-generic", false, false, true, "none",
     "performance", "always", "advise"},
    {"container-v2", "", "", true, true, false, "docker", "", "madvise", "never"},
    {"container-v1", "", "", true, true, false, "docker", "", "madvise", "never"},
    {"neoverse-n1", "", "", true, false, false, "qemu", "", "madvise", "never"},
    {"nowhere", "", "", false, false, false, "none", "", "", ""},
};

static void recorded_machines_are_understood(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++) {
        cb__environment e;
        print_message("%s\n", machines[i].machine);
        read_machine(machines[i].machine, &e);
        assert_string_equal(e.os, machines[i].os);
        assert_string_equal(e.kernel, machines[i].kernel);
        assert_int_equal(e.virtual_machine, machines[i].vm);
        assert_int_equal(e.container, machines[i].container);
        assert_int_equal(strlen(e.machine_id_hash), machines[i].id ? 16 : 0);
        assert_string_equal(e.virtualization, machines[i].virtualization);
        assert_string_equal(e.governor, machines[i].governor);
        assert_string_equal(e.thp, machines[i].thp);
        assert_string_equal(e.thp_shmem, machines[i].thp_shmem);
    }
}

static void machine_id_is_hashed_and_stable(void **state)
{
    (void)state;
    cb__environment a, b, other;
    read_machine("zen4-vm", &a);
    read_machine("zen4-vm", &b);
    read_machine("icelake-2s", &other);
    assert_string_equal(a.machine_id_hash, b.machine_id_hash);
    assert_string_not_equal(a.machine_id_hash, other.machine_id_hash);
    assert_null(strstr("0123456789abcdef0123456789abcdef", a.machine_id_hash));
}

static void this_machine_answers(void **state)
{
    (void)state;
    cb__environment e;
    cb__environment_read("", &e);
    print_message("%s, %s, vm %d, container %d (%s), thp %s, shmem %s, load %.2f, %s\n", e.os,
                  e.kernel, e.virtual_machine, e.container, e.virtualization, e.thp, e.thp_shmem,
                  e.load1, e.libc);
    assert_int_equal(strncmp(e.kernel, "Linux ", 6), 0);
    assert_int_equal(strncmp(e.libc, "glibc ", 6), 0);
    assert_true(e.load1 >= 0);
}

static void only_whitelisted_variables_are_kept(void **state)
{
    (void)state;
    cb__environment before, after;
    unsetenv("OPENBLAS_CORETYPE");
    cb__environment_read("", &before);
    setenv("OPENBLAS_CORETYPE", "Zen", 1);
    setenv("CB_TEST_SECRET", "hunter2", 1);
    cb__environment_read("", &after);
    assert_int_equal(after.nvariables, before.nvariables + 1);
    int found = 0;
    for (int i = 0; i < after.nvariables; i++) {
        found += strcmp(after.variables[i], "OPENBLAS_CORETYPE=Zen") == 0;
        assert_null(strstr(after.variables[i], "hunter2"));
    }
    assert_int_equal(found, 1);
}

static void burn(uint64_t ns)
{
    uint64_t start = cb__clock_ns();
    while (cb__clock_ns() - start < ns)
        ;
}

/* A child burns 200 ms of CPU time; on a loaded machine it only takes longer. Own burning must not
 * be counted: that is what the subtraction is for, and it is printed, as others may be busy too. */
static void work_of_others_is_counted(void **state)
{
    (void)state;
    cb__interference before = cb__interference_now();
    pid_t child = fork();
    if (child == 0) {
        while (clock() < CLOCKS_PER_SEC / 5)
            ;
        _exit(0);
    }
    assert_int_equal(waitpid(child, NULL, 0), child);
    cb__interference others = cb__interference_since(&before);
    before = cb__interference_now();
    burn(100000000);
    cb__interference own = cb__interference_since(&before);
    print_message("child's 200 ms: other %.2f s, steal %.2f s, %lld switches, %lld faults; own "
                  "100 ms: other %.2f s\n",
                  others.other_busy_s, others.steal_s, (long long)others.involuntary,
                  (long long)others.major_faults, own.other_busy_s);
    assert_true(others.other_busy_s >= 0.1);
    assert_true(others.steal_s >= 0 && others.involuntary >= 0 && others.major_faults >= 0);
    assert_true(own.other_busy_s >= 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recorded_machines_are_understood),
        cmocka_unit_test(machine_id_is_hashed_and_stable),
        cmocka_unit_test(this_machine_answers),
        cmocka_unit_test(only_whitelisted_variables_are_kept),
        cmocka_unit_test(work_of_others_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
