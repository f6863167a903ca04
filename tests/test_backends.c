#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "device/device.h"

static void every_backend_of_the_registry_is_whole(void **state)
{
    (void)state;
    int n = 0;
    const cb__backend *const *all = cb__backends(&n);
    assert_true(n >= 2);
    for (int i = 0; i < n; i++) {
        cb_error err = CB_ERROR_INIT;
        if (cb__backend_validate(all[i], &err) != CB_OK)
            fail_msg("%s", err.message);
        for (int j = 0; j < i; j++)
            assert_string_not_equal(all[i]->name, all[j]->name);
    }
}

#define FIELD(name, says)                                                                          \
    {                                                                                              \
        offsetof(cb__backend, name), sizeof(((cb__backend *)0)->name), says                        \
    }

static const struct {
    size_t offset, size;
    const char *says;
} needed[] = {
    FIELD(name, "lacks name"),
    FIELD(help, "lacks name"),
    FIELD(open, "lacks open"),
    FIELD(close, "lacks close"),
    FIELD(info, "lacks info"),
    FIELD(alloc, "lacks alloc"),
    FIELD(free, "lacks alloc"),
    FIELD(map, "lacks map"),
    FIELD(unmap, "lacks map"),
    FIELD(write, "lacks write"),
    FIELD(read, "lacks read"),
    FIELD(digest, "lacks digest"),
    FIELD(launch, "lacks launch"),
    FIELD(sync, "lacks sync"),
    FIELD(now_ns, "lacks now_ns"),
    FIELD(batch_new, "lacks batch_new"),
    FIELD(batch_run, "lacks batch_run"),
    FIELD(batch_span_ns, "lacks batch_span_ns"),
    FIELD(batch_free, "lacks batch_new"),
    FIELD(version, "interface version 0, not"),
};

static void every_missing_field_is_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        cb__backend backend = cb__backend_fake;
        cb_error err = CB_ERROR_INIT;
        memset((char *)&backend + needed[i].offset, 0, needed[i].size);
        assert_int_equal(cb__backend_validate(&backend, &err), CB_INTERNAL);
        if (!strstr(err.message, needed[i].says))
            fail_msg("no '%s' in '%s'", needed[i].says, err.message);
    }
}

static void optional_hooks_may_be_missing(void **state)
{
    (void)state;
    cb__backend backend = cb__backend_fake;
    cb_error err = CB_ERROR_INIT;
    backend.hold = NULL;
    backend.begin = NULL;
    backend.clock_hz = NULL;
    backend.capabilities = 0;
    assert_int_equal(cb__backend_validate(&backend, &err), CB_OK);
}

static void a_device_name_finds_its_backend_and_script(void **state)
{
    (void)state;
    static const struct {
        const char *device, *backend, *script;
    } table[] = {{"cpu", "cpu", ""},
                 {"cpu:0", "cpu", "0"},
                 {"fake", "fake", ""},
                 {"fake:", "fake", ""},
                 {"fake:llc=1,cache=2", "fake", "llc=1,cache=2"},
                 {"fake:a:b", "fake", "a:b"},
                 {"cuda", "cuda", ""},
                 {"cuda:1", "cuda", "1"},
                 {"cuda:all", "cuda", "all"}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const cb__backend *backend = NULL;
        const char *script = NULL;
        cb_error err = CB_ERROR_INIT;
        assert_int_equal(cb__backend_find(table[i].device, &backend, &script, &err), CB_OK);
        assert_string_equal(backend->name, table[i].backend);
        assert_string_equal(script, table[i].script);
    }
}

static void an_unknown_device_names_the_nearest(void **state)
{
    (void)state;
    static const struct {
        const char *device;
        cb_status status;
        const char *part;
    } table[] = {
        {"cpuu", CB_USAGE, "did you mean 'cpu'"},  {"gpu", CB_USAGE, "did you mean 'cpu'"},
        {"", CB_USAGE, "cpu, cuda, fake"},         {":", CB_USAGE, "cpu, cuda, fake"},
        {"CPU", CB_USAGE, "cpu, cuda, fake"},      {"fak:llc=1", CB_USAGE, "did you mean 'fake'"},
        {"opencl:0", CB_UNAVAILABLE, "no opencl"}, {"cud", CB_USAGE, "did you mean 'cuda'"}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const cb__backend *backend = NULL;
        const char *script = NULL;
        cb_error err = CB_ERROR_INIT;
        cb_status status = cb__backend_find(table[i].device, &backend, &script, &err);
        if (status != table[i].status || !strstr(err.message, table[i].part))
            fail_msg("%s: %s, '%s'", table[i].device, cb_status_name(status), err.message);
    }
}

static void a_second_cpu_is_unavailable(void **state)
{
    (void)state;
    cb__device *device = NULL;
    cb_error err = CB_ERROR_INIT;
    assert_int_equal(cb__backend_cpu.open("1", 0, CB__COMPACT, &device, &err), CB_UNAVAILABLE);
    assert_null(device);
    assert_non_null(strstr(err.message, "'cpu:1'"));
    cb_error_clear(&err);
    assert_int_equal(cb__backend_cpu.open("", 65536, CB__COMPACT, &device, &err), CB_USAGE);
    assert_non_null(strstr(err.message, "--threads 65536"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_backend_of_the_registry_is_whole),
        cmocka_unit_test(every_missing_field_is_named),
        cmocka_unit_test(optional_hooks_may_be_missing),
        cmocka_unit_test(a_device_name_finds_its_backend_and_script),
        cmocka_unit_test(an_unknown_device_names_the_nearest),
        cmocka_unit_test(a_second_cpu_is_unavailable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
