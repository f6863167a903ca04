/* Where models lie: put in place at once, and clear words where that cannot be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/model.h"

#define FIXTURE CB_SOURCE_DIR "/tests/fixtures/models/fake.json"

static char scratch[64];
static cb_model *fixture;

static int begin(void **state)
{
    (void)state;
    cb_error err = CB_ERROR_INIT;
    strcpy(scratch, "/tmp/coldbench-store-XXXXXX");
    if (!mkdtemp(scratch))
        return -1;
    setenv("XDG_DATA_HOME", scratch, 1);
    setenv("HOME", "/nowhere", 1);
    return cb_model_open_file(FIXTURE, "fake", &fixture, &err);
}

static int end(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", scratch);
    cb_model_free(fixture);
    return system(command);
}

static void says(const cb_error *err, const char *part)
{
    if (!strstr(err->message, part))
        fail_msg("'%s' does not say '%s'", err->message, part);
}

static const char *in_scratch(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", scratch, name);
    return path;
}

/* Nothing half written stays behind. */
static int files_in(const char *folder)
{
    int n = 0;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));)
        n += entry->d_name[0] != '.';
    closedir(dir);
    return n;
}

static void a_stored_model_is_found_again(void **state)
{
    (void)state;
    cb_error err = CB_ERROR_INIT;
    cb_model *model = NULL;
    char path[256];
    struct stat facts;
    assert_int_equal(cb_model_open("fake", &model, &err), CB_UNAVAILABLE);
    says(&err, "there is no model");
    says(&err, in_scratch("coldbench/models/fake.json"));
    says(&err, "run coldbench probe");
    cb_error_clear(&err);
    for (int i = 0; i < 2; i++) { /* the second time over the first */
        if (cb__model_store(fixture, NULL, &err) != CB_OK)
            fail_msg("%s", err.message);
        assert_int_equal(cb_model_open("fake", &model, &err), CB_OK);
        assert_int_equal(model->nseries, fixture->nseries);
        cb_model_free(model);
    }
    assert_int_equal(cb__model_path("fake", path, sizeof path, &err), CB_OK);
    assert_string_equal(path, in_scratch("coldbench/models/fake.json"));
    assert_int_equal(files_in(in_scratch("coldbench/models")), 1);
    assert_int_equal(stat(in_scratch("coldbench/models"), &facts), 0);
    assert_int_equal(facts.st_mode & 0777, 0700);
}

/* XDG first, then the home; relative paths count as unset. */
static void the_place_follows_xdg(void **state)
{
    (void)state;
    static const struct {
        const char *data, *home, *path;
    } table[] = {
        {"/d", "/h", "/d/coldbench/models/a.json"},
        {NULL, "/h", "/h/.local/share/coldbench/models/a.json"},
        {"", "/h", "/h/.local/share/coldbench/models/a.json"},
        {"d", "/h", "/h/.local/share/coldbench/models/a.json"},
        {NULL, NULL, NULL},
        {"", "", NULL},
        {"d", "h", NULL},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        cb_error err = CB_ERROR_INIT;
        cb_model *model = NULL;
        char path[256];
        table[i].data ? setenv("XDG_DATA_HOME", table[i].data, 1) : unsetenv("XDG_DATA_HOME");
        table[i].home ? setenv("HOME", table[i].home, 1) : unsetenv("HOME");
        cb_status status = cb__model_path("a", path, sizeof path, &err);
        if (table[i].path) {
            assert_int_equal(status, CB_OK);
            assert_string_equal(path, table[i].path);
            assert_int_equal(cb__model_path("a", path, 12, &err), CB_UNAVAILABLE);
            says(&err, "too long");
            continue;
        }
        assert_int_equal(status, CB_UNAVAILABLE);
        says(&err, "neither XDG_DATA_HOME nor HOME");
        assert_int_equal(cb_model_open("fake", &model, NULL), CB_UNAVAILABLE);
        assert_int_equal(cb__model_store(fixture, NULL, NULL), CB_UNAVAILABLE);
    }
    setenv("XDG_DATA_HOME", scratch, 1);
    setenv("HOME", "/nowhere", 1);
}

static void an_identity_that_is_no_file_name_is_refused(void **state)
{
    (void)state;
    static const char *const names[] = {"", "a/b", "../a", "a b", "a\n", "caf\xC3\xA9", "a:b"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        cb_error err = CB_ERROR_INIT;
        char path[256];
        assert_int_equal(cb__model_path(names[i], path, sizeof path, &err), CB_INTERNAL);
        says(&err, "cannot name a file");
        cb_model copy = *fixture;
        strcpy(copy.identity, names[i]);
        assert_int_equal(cb__model_store(&copy, NULL, NULL), CB_INTERNAL);
        assert_int_equal(cb__model_store(&copy, in_scratch("x.json"), NULL), CB_INTERNAL);
    }
}

/* A model that its reader would refuse does not replace one that works. */
static void what_would_not_read_back_is_not_stored(void **state)
{
    (void)state;
    cb_error err = CB_ERROR_INIT;
    cb_model copy = *fixture, *model = NULL;
    copy.threads = 0;
    assert_int_equal(cb__model_store(fixture, in_scratch("kept.json"), &err), CB_OK);
    assert_int_equal(cb__model_store(&copy, in_scratch("kept.json"), &err), CB_INTERNAL);
    says(&err, "not stored: a new model: 'threads' is 0");
    cb_error_clear(&err);
    assert_int_equal(cb__model_load(in_scratch("kept.json"), "fake", &model, &err), CB_OK);
    cb_model_free(model);
}

static void odd_places_are_named(void **state)
{
    (void)state;
    static char far[5000];
    memset(far, 'x', sizeof far - 1);
    far[0] = '/';
    assert_int_equal(mkdir(in_scratch("folder.json"), 0700), 0);
    assert_int_equal(symlink("loop", in_scratch("loop")), 0);
    assert_int_equal(mkfifo(in_scratch("pipe"), 0600), 0);
    FILE *file = fopen(in_scratch("file"), "w");
    assert_non_null(file);
    fclose(file);
    const struct {
        const char *path, *store, *load; /* NULL: it works */
    } table[] = {
        {"folder.json", "Is a directory", "is not a file"},
        {"loop/x.json", "cannot make folder", "Too many levels"},
        {"file/x.json", "Not a directory", "there is no model"},
        {"new/folders/x.json", NULL, "there is no model"},
        {"file", NULL, "expected near end of file"},
        {"pipe", NULL, "is not a file"},
        {"loop", NULL, "Too many levels"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        cb_error err = CB_ERROR_INIT;
        cb_model *model = NULL;
        const char *path = in_scratch(table[i].path);
        assert_int_equal(cb__model_load(path, "fake", &model, &err), CB_UNAVAILABLE);
        says(&err, table[i].load);
        says(&err, path);
        says(&err, "run coldbench probe");
        cb_error_clear(&err);
        assert_int_equal(cb__model_store(fixture, path, &err), table[i].store ? CB_IO : CB_OK);
        if (table[i].store)
            says(&err, table[i].store);
        else
            assert_int_equal(cb__model_load(path, "fake", &model, &err), CB_OK);
        cb_model_free(model);
    }
    cb_error err = CB_ERROR_INIT;
    assert_int_equal(cb__model_store(fixture, far, &err), CB_IO);
    says(&err, "too long");
}

/* A terabyte that takes no room: reading all of it would never end. */
static void a_huge_file_is_refused_before_all_of_it_is_read(void **state)
{
    (void)state;
    cb_error err = CB_ERROR_INIT;
    cb_model *model = NULL;
    FILE *file = fopen(in_scratch("huge"), "w");
    assert_non_null(file);
    assert_int_equal(ftruncate(fileno(file), INT64_C(1) << 40), 0);
    fclose(file);
    assert_int_equal(cb__model_load(in_scratch("huge"), "fake", &model, &err), CB_UNAVAILABLE);
    says(&err, "it is over 16 MiB long");
}

/* Replaced, not written through: what the link led to is another's. */
static void a_link_is_replaced_by_the_model(void **state)
{
    (void)state;
    cb_error err = CB_ERROR_INIT;
    struct stat facts;
    FILE *file = fopen(in_scratch("target"), "w");
    assert_non_null(file);
    fputs("mine", file);
    fclose(file);
    assert_int_equal(symlink("target", in_scratch("link.json")), 0);
    assert_int_equal(cb__model_store(fixture, in_scratch("link.json"), &err), CB_OK);
    assert_int_equal(lstat(in_scratch("link.json"), &facts), 0);
    assert_true(S_ISREG(facts.st_mode));
    assert_int_equal(stat(in_scratch("target"), &facts), 0);
    assert_int_equal(facts.st_size, 4);
}

/* Root may write anywhere, so root becomes nobody for a while. */
static void as_nobody(bool nobody)
{
    static bool root;
    root |= geteuid() == 0;
    if (!root)
        return;
    assert_int_equal(seteuid(nobody ? 65534 : 0), 0);
    prctl(PR_SET_DUMPABLE, 1); /* or the leak checker cannot look */
}

static void a_folder_that_may_not_be_written_is_named(void **state)
{
    (void)state;
    cb_error err = CB_ERROR_INIT;
    cb_model *model = NULL;
    assert_int_equal(chmod(scratch, 0555), 0);
    as_nobody(true);
    cb_status in_folder = cb__model_store(fixture, in_scratch("x.json"), &err);
    cb_error below_err = CB_ERROR_INIT;
    cb_status below = cb__model_store(fixture, in_scratch("fresh/x.json"), &below_err);
    as_nobody(false);
    assert_int_equal(chmod(scratch, 0700), 0);
    assert_int_equal(in_folder, CB_IO);
    says(&err, "cannot write a file beside");
    says(&err, "Permission denied");
    assert_int_equal(below, CB_IO);
    says(&below_err, "cannot make folder");
    says(&below_err, "Permission denied");
    cb_error_clear(&err);
    assert_int_equal(cb__model_store(fixture, in_scratch("secret.json"), &err), CB_OK);
    assert_int_equal(chmod(in_scratch("secret.json"), 0), 0);
    as_nobody(true);
    cb_status load = cb__model_load(in_scratch("secret.json"), "fake", &model, &err);
    as_nobody(false);
    assert_int_equal(load, CB_UNAVAILABLE);
    says(&err, "Permission denied");
}

/* What cannot be written whole leaves the old model in place and no file of its own. */
static void a_model_cut_while_it_is_written_changes_nothing(void **state)
{
    (void)state;
    cb_error err = CB_ERROR_INIT;
    cb_model *model = NULL;
    struct rlimit before, small;
    assert_int_equal(mkdir(in_scratch("limited"), 0700), 0);
    assert_int_equal(cb__model_store(fixture, in_scratch("limited/x.json"), &err), CB_OK);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 4096;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    cb_status status = cb__model_store(fixture, in_scratch("limited/x.json"), &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(status, CB_IO);
    says(&err, "File too large");
    cb_error_clear(&err);
    assert_int_equal(files_in(in_scratch("limited")), 1);
    assert_int_equal(cb__model_load(in_scratch("limited/x.json"), "fake", &model, &err), CB_OK);
    cb_model_free(model);
}

static void a_full_disk_is_named(void **state)
{
    (void)state;
    cb_error err = CB_ERROR_INIT;
    assert_int_equal(mkdir(in_scratch("full"), 0700), 0);
    if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
        mount("tmpfs", in_scratch("full"), "tmpfs", 0, "size=16k"))
        skip();
    cb_status status = cb__model_store(fixture, in_scratch("full/x.json"), &err);
    int left = files_in(in_scratch("full"));
    assert_int_equal(umount(in_scratch("full")), 0);
    assert_int_equal(status, CB_IO);
    says(&err, "No space left on device");
    assert_int_equal(left, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stored_model_is_found_again),
        cmocka_unit_test(the_place_follows_xdg),
        cmocka_unit_test(an_identity_that_is_no_file_name_is_refused),
        cmocka_unit_test(what_would_not_read_back_is_not_stored),
        cmocka_unit_test(odd_places_are_named),
        cmocka_unit_test(a_huge_file_is_refused_before_all_of_it_is_read),
        cmocka_unit_test(a_link_is_replaced_by_the_model),
        cmocka_unit_test(a_folder_that_may_not_be_written_is_named),
        cmocka_unit_test(a_model_cut_while_it_is_written_changes_nothing),
        cmocka_unit_test(a_full_disk_is_named),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
