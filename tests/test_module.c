/* A module that is not what it should be is named, is CB_USAGE, and leaves this process as it was.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernel/case.h"

#define SEEDED(name) CB_SEEDED_DIR "/seeded_" #name ".so"

static const char clean[] = SEEDED(NONE);

static cb_status open_one(const char *file, cb__suite *suite, cb_error *err)
{
    const char *files[] = {file};
    return cb__suite_open(files, 1, true, suite, err);
}

static void the_clean_twin_loads_beside_the_suite(void **state)
{
    (void)state;
    cb__suite suite;
    cb_error err = CB_ERROR_INIT;
    if (open_one(clean, &suite, &err) != CB_OK)
        fail_msg("%s", err.message);
    const cb__module *module = NULL;
    const cb_kernel *kernel = cb__suite_find(&suite, "seeded", &module);
    assert_non_null(kernel);
    assert_string_equal(module->origin, clean);
    assert_false(module->builtin);
    assert_non_null(cb__suite_find(&suite, "gemv_q4", &module));
    assert_true(module->builtin);
    assert_null(cb__suite_find(&suite, "nosuch", NULL));
    assert_int_equal(cb__suite_unknown(&suite, "seedet", &err), CB_USAGE);
    assert_non_null(strstr(err.message, "did you mean 'seeded'"));
    cb__suite_close(&suite);
    assert_int_equal(suite.nmodules, 0);
}

static const struct {
    const char *file;
    const char *parts[2]; /* beside the file's name */
} faulty[] = {
    {SEEDED(ABI), {"this coldbench needs 3", "rebuild"}},
    {SEEDED(STRUCT_BYTES), {"cb_kernel of", "rebuild"}},
    {SEEDED(NO_ENTRY), {"cb_module_entry"}},
    {SEEDED(NULL_TABLE), {"cb_module_entry returned NULL"}},
    {SEEDED(NO_KERNELS), {"no kernels"}},
    {SEEDED(NO_KERNEL_TABLE), {"no kernels"}},
    {SEEDED(NO_REFERENCE), {"kernel seeded needs", "reference"}},
    {SEEDED(BAD_NAME), {"name of a-z"}},
    {SEEDED(TAKEN_NAME), {"kernel 'gemv_q4' is in module gemv_q4 already"}},
    {SEEDED(TWICE), {"seeded", "twice"}},
    {SEEDED(NO_OUTPUT), {"kernel seeded writes no operand"}},
    {SEEDED(NO_IMPLS), {"kernel seeded has 0 implementations"}},
    {SEEDED(NO_RUN), {"run function"}},
    {SEEDED(NO_PREPARE), {"packed_bytes and no prepare"}},
    {SEEDED(ROTATES_NOTHING), {"rotates 'rows'", "no dimension"}},
    {SEEDED(PRESET_WORD), {"word", "preset"}},
    {SEEDED(PRESET_VALUE), {"value", "preset"}},
    {SEEDED(PRESET_RANGE), {"range", "preset"}},
    {SEEDED(RANGE_NAN), {"operand 0", "lo <= hi"}},
    {SEEDED(RANGE_ORDER), {"operand 0", "lo <= hi"}},
    {SEEDED(BOTH_CHOICES), {"value", "words, or values"}},
    {SEEDED(MANY_TUNABLES), {"plain has 99 entries"}},
    {SEEDED(DIM_ZERO), {"dimension 0", "multiple_of"}},
    {SEEDED(MIXED_ISA), {"plain", "CB_ISA_CUDA stands alone"}},
    {SEEDED(LOAD_FAULTS), {"crashed with signal 11"}},
    {SEEDED(LOAD_ABORTS), {"crashed with signal 6"}},
    {SEEDED(LOAD_EXITS), {"ended the process with status 7"}},
    {SEEDED(LOAD_FORKS), {"crashed with signal 11"}},
    {SEEDED(ENTRY_FAULTS), {"crashed with signal 11"}},
    {CB_SOURCE_DIR "/README.md", {"cannot load library"}},
    {CB_SOURCE_DIR "/tests", {"cannot load library"}},
    {CB_SOURCE_DIR "/no/such/file.so", {"cannot load library", "No such file"}},
    {"/dev/null", {"cannot load library"}},
    {"no-such-file.so", {"no-such-file.so"}},
    {"", {"cannot load library"}},
};

static void refused(const char *file, const char *const parts[2])
{
    cb__suite suite;
    cb_error err = CB_ERROR_INIT;
    cb_status status = open_one(file, &suite, &err);
    if (status != CB_USAGE || err.status != CB_USAGE)
        fail_msg("%s: %s (%s)", file, cb_status_name(status), err.message);
    assert_int_equal(suite.nmodules, 0);
    if (!strstr(err.message, file))
        fail_msg("no '%s' in '%s'", file, err.message);
    for (int i = 0; i < 2 && parts[i]; i++)
        if (!strstr(err.message, parts[i]))
            fail_msg("%s: no '%s' in '%s'", file, parts[i], err.message);
}

static void every_faulty_module_is_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof faulty / sizeof *faulty; i++)
        refused(faulty[i].file, faulty[i].parts);
    /* and nothing of it is left behind */
    cb__suite suite;
    cb_error err = CB_ERROR_INIT;
    assert_int_equal(open_one(clean, &suite, &err), CB_OK);
    cb__suite_close(&suite);
}

static void a_path_of_any_length_is_refused(void **state)
{
    (void)state;
    enum { LENGTH = 5000 };
    char *path = malloc(LENGTH + 1);
    assert_non_null(path);
    for (int length = 500; length <= LENGTH; length = length < 600 ? length + 1 : 2 * length) {
        cb__suite suite;
        cb_error err = CB_ERROR_INIT;
        memset(path, 'a', (size_t)length);
        path[0] = '/';
        path[length] = '\0';
        assert_int_equal(open_one(path, &suite, &err), CB_USAGE);
    }
    free(path);
}

static void a_cut_module_is_refused_at_every_length(void **state)
{
    (void)state;
    static unsigned char bytes[1 << 20];
    char path[] = "/tmp/coldbench-cut-XXXXXX.so";
    int fd = mkstemps(path, 3);
    FILE *whole = fopen(clean, "rb");
    assert_true(fd >= 0 && whole);
    size_t size = fread(bytes, 1, sizeof bytes, whole);
    fclose(whole);
    for (int i = 0; i < 24; i++) {
        size_t length = size * (size_t)i / 24;
        cb__suite suite;
        cb_error err = CB_ERROR_INIT;
        assert_int_equal(ftruncate(fd, 0), 0);
        assert_int_equal(pwrite(fd, bytes, length, 0), length);
        cb_status status = open_one(path, &suite, &err);
        if (status == CB_OK) { /* all but what only a linker reads is there */
            assert_true(length > size / 2);
            cb__suite_close(&suite);
            continue;
        }
        if (status != CB_USAGE || !strstr(err.message, path))
            fail_msg("%zu of %zu bytes: %s (%s)", length, size, cb_status_name(status),
                     err.message);
    }
    close(fd);
    unlink(path);
}

/* ---- hangs: the limit is the caller's ---- */

static cb_status open_file(void *file, cb_error *err)
{
    cb__module *module = NULL;
    cb_status status = cb__module_open(file, false, &module, err);
    cb__module_close(module);
    return status;
}

static void a_hang_on_load_is_ended(void **state)
{
    (void)state;
    static const char *const files[] = {SEEDED(LOAD_HANGS), SEEDED(LOAD_HANGS_DEAF)};
    for (size_t i = 0; i < 2; i++) {
        cb_error err = CB_ERROR_INIT;
        void *file = (void *)(uintptr_t)files[i];
        assert_int_equal(cb__rehearse(open_file, file, 1, "loading it", &err), CB_USAGE);
        assert_string_equal(err.message, "loading it: no answer within 1 s");
    }
}

static cb_status parse(void *suite, cb_error *err)
{
    cb__case c;
    return cb__case_parse(suite, "seeded", "8", 0, &c, err);
}

static void a_check_that_crashes_or_hangs_is_an_error(void **state)
{
    (void)state;
    cb__suite suite;
    cb__case c;
    cb_error err = CB_ERROR_INIT;
    assert_int_equal(open_one(SEEDED(CHECK_CRASHES), &suite, &err), CB_OK);
    assert_int_equal(cb__case_parse(&suite, "seeded", "8", 0, &c, &err), CB_USAGE);
    assert_non_null(strstr(err.message, "seeded"));
    assert_non_null(strstr(err.message, "crashed with signal 11"));
    cb__suite_close(&suite);
    cb_error_clear(&err);
    assert_int_equal(open_one(SEEDED(CHECK_HANGS), &suite, &err), CB_OK);
    suite.rehearse = false;
    assert_int_equal(cb__rehearse(parse, &suite, 1, "sizing", &err), CB_USAGE);
    assert_string_equal(err.message, "sizing: no answer within 1 s");
    cb__suite_close(&suite);
}

/* ---- rehearsal itself ---- */

static cb_status says(void *arg, cb_error *err)
{
    cb_status status = *(cb_status *)arg;
    return status == CB_OK ? CB_OK : cb_error_set(err, status, "words");
}

static void a_rehearsal_says_what_was_said(void **state)
{
    (void)state;
    static cb_status all[] = {CB_OK, CB_USAGE, CB_UNAVAILABLE, CB_NO_MEMORY};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        cb_error err = CB_ERROR_INIT;
        assert_int_equal(cb__rehearse(says, &all[i], 5, "it", &err), all[i]);
        assert_string_equal(err.message, all[i] == CB_OK ? "" : "words");
    }
}

static void one_name_in_two_files_is_refused(void **state)
{
    (void)state;
    const char *files[] = {clean, clean};
    cb__suite suite;
    cb_error err = CB_ERROR_INIT;
    assert_int_equal(cb__suite_open(files, 2, false, &suite, &err), CB_USAGE);
    assert_non_null(strstr(err.message, "kernel 'seeded' is in module"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_clean_twin_loads_beside_the_suite),
        cmocka_unit_test(every_faulty_module_is_named),
        cmocka_unit_test(a_path_of_any_length_is_refused),
        cmocka_unit_test(a_cut_module_is_refused_at_every_length),
        cmocka_unit_test(a_hang_on_load_is_ended),
        cmocka_unit_test(a_check_that_crashes_or_hangs_is_an_error),
        cmocka_unit_test(a_rehearsal_says_what_was_said),
        cmocka_unit_test(one_name_in_two_files_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
