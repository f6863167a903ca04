/* Compiling for a device that need not be there: which NVRTC, which architecture, and what the
 * cache folder may and may not serve. What needs a real NVRTC is reported as skipped where there is
 * none.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "device/cuda/compile.h"
#include "stub_cuda.h"
#include "toolkit.h"

static const char kernel_text[] = "extern \"C\" __global__ void add(float *a)\n"
                                  "{\n"
                                  "    a[threadIdx.x] += CB_STEP;\n"
                                  "}\n";
static const char *const step_1[] = {"CB_STEP=1", NULL}, *const step_2[] = {"CB_STEP=2", NULL};
static const cb__cuda_source add_1 = {"add", kernel_text, step_1};

static char cache[] = "/tmp/coldbench-test-XXXXXX";
static cb__cuda_compiler real, compiler; /* the second is the stub */
static cb__buf image = CB__BUF_INIT;
static cb_error err;

static int clean(void **state)
{
    (void)state;
    char command[200];
    snprintf(command, sizeof command, "rm -rf %s/coldbench", cache);
    setenv("XDG_CACHE_HOME", cache, 1);
    compiler.capability = real.capability = 90;
    cb__buf_clear(&image);
    cb__buf_fini(&image);
    cb_error_clear(&err);
    return system(command);
}

static void compiles_with(cb__cuda_compiler *one, const cb__cuda_source *source)
{
    cb__buf_fini(&image);
    if (cb__cuda_compile(one, source, &image, &err) != CB_OK)
        fail_msg("%s", err.message);
}

static void compiles(const cb__cuda_source *source)
{
    compiles_with(&compiler, source);
    assert_memory_equal(image.text, ".version", 8); /* the stub's image */
    assert_int_equal(image.size, strlen(image.text) + 1);
}

static void need_nvrtc(void)
{
    if (!real.nvrtc.is_loaded)
        SKIP_WITHOUT_TOOLKIT("NVRTC");
}

/* The one file in the cache folder, or NULL. */
static const char *cached_file(void)
{
    static char path[600];
    char folder[300];
    int n = 0;
    snprintf(folder, sizeof folder, "%s/coldbench/cuda", cache);
    DIR *dir = opendir(folder);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        n++;
    }
    if (dir)
        closedir(dir);
    assert_true(n <= 1);
    return n ? path : NULL;
}

static size_t read_file(const char *path, unsigned char *bytes, size_t size)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t got = fread(bytes, 1, size, file);
    fclose(file);
    return got;
}

static void write_file(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* What tells a file that was read from one that was written again: its inode. */
static ino_t inode(const char *path)
{
    struct stat facts;
    assert_int_equal(lstat(path, &facts), 0);
    return facts.st_ino;
}

/* ---- which NVRTC, which architecture ---- */

static void a_named_nvrtc_that_is_absent_is_named(void **state)
{
    (void)state;
    cb__nvrtc nvrtc;
    setenv("COLDBENCH_NVRTC", "/absent/libnvrtc.so", 1);
    assert_int_equal(cb__nvrtc_load(13000, &nvrtc, &err), CB_UNAVAILABLE);
    unsetenv("COLDBENCH_NVRTC");
    assert_false(nvrtc.is_loaded);
    assert_non_null(strstr(err.message, "COLDBENCH_NVRTC: cannot load library "
                                        "'/absent/libnvrtc.so': "));
    assert_non_null(strstr(err.message, "No such file"));
    assert_null(strchr(err.message, '\n'));
}

static void what_came_compiled_serves_without_nvrtc(void **state)
{
    (void)state;
    char lines[200];
    snprintf(lines, sizeof lines, "//@ %016llx 80 12000 add\n.version 8.0\n",
             (unsigned long long)cb__cuda_source_digest(&add_1));
    const struct {
        int driver, capability;
        const char *const *macros;
        const char *words; /* NULL: it serves */
    } rows[] = {
        {12000, 80, step_1, NULL},
        {13020, 120, step_1, NULL},
        {0, 90, step_1, NULL},
        {12000, 90, step_2, "add with these constants is not among the code that came compiled: "},
        {12000, 75, step_1, "add with these constants is not among the code that came compiled: "},
        {11080, 80, step_1,
         "the code of add that came compiled needs a driver that serves CUDA 12.0, and this one "
         "serves 11.8: "},
    };
    setenv("COLDBENCH_NVRTC", "/absent/libnvrtc.so", 1);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const cb__cuda_source source = {"add", kernel_text, rows[i].macros};
        cb__cuda_compiler driver_alone = {.driver = rows[i].driver,
                                          .capability = rows[i].capability,
                                          .embedded = {lines, strlen(lines)}};
        cb__buf_fini(&image);
        cb_error_clear(&err);
        cb_status status = cb__cuda_compile(&driver_alone, &source, &image, &err);
        assert_int_equal(status, rows[i].words ? CB_UNAVAILABLE : CB_OK);
        if (rows[i].words)
            assert_memory_equal(err.message, rows[i].words, strlen(rows[i].words));
        else
            assert_string_equal(image.text, ".version 8.0\n");
        /* Why there is no NVRTC is not asked for again. */
        assert_int_equal(driver_alone.missing.status, CB_UNAVAILABLE);
    }
    unsetenv("COLDBENCH_NVRTC");
    assert_null(cached_file());
}

static void what_is_no_nvrtc_is_refused(void **state)
{
    (void)state;
    cb__nvrtc nvrtc;
    setenv("COLDBENCH_NVRTC", "libm.so.6", 1);
    assert_int_equal(cb__nvrtc_load(0, &nvrtc, &err), CB_UNAVAILABLE);
    unsetenv("COLDBENCH_NVRTC");
    assert_false(nvrtc.is_loaded);
    assert_string_equal(err.message, "COLDBENCH_NVRTC: libm.so.6 has no nvrtcVersion");
}

static void the_architecture_is_the_exact_one_or_ptx_below_it(void **state)
{
    (void)state;
    static const struct {
        int version, driver, capability;
        const char *arch; /* NULL: unavailable, with these words */
        bool cubin;
        const char *words;
    } rows[] = {
        {13000, 13000, 90, "sm_90a", true, NULL},
        {13000, 0, 80, "sm_80", true, NULL},
        {11080, 13000, 90, "sm_90", true, NULL},
        /* Machine code of a newer compiler of the same major version is loaded. */
        {13050, 13000, 90, "sm_90a", true, NULL},
        {13000, 13000, 86, "compute_80", false, NULL},
        {13000, 13020, 121, "compute_90", false, NULL},
        {13050, 13000, 121, NULL, false,
         "its PTX is too new for the NVIDIA driver, which serves "
         "CUDA 13.0"},
        {13000, 13000, 70, NULL, false,
         "compiles for compute capability 7.5 and later, and the "
         "device has 7.0"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cb__nvrtc_target target;
        cb__nvrtc nvrtc = {
            .path = "libnvrtc.so", .version = rows[i].version, .archs = {75, 80, 90}, .narchs = 3};
        cb_error_clear(&err);
        cb_status status =
            cb__nvrtc_choose(&nvrtc, rows[i].driver, rows[i].capability, &target, &err);
        assert_int_equal(status, rows[i].arch ? CB_OK : CB_UNAVAILABLE);
        if (!rows[i].arch) {
            assert_non_null(strstr(err.message, rows[i].words));
            continue;
        }
        assert_string_equal(target.arch, rows[i].arch);
        assert_int_equal(target.cubin, rows[i].cubin);
    }
}

static void every_architecture_that_nvrtc_knows_gets_machine_code(void **state)
{
    (void)state;
    need_nvrtc();
    for (int i = 0; i < real.nvrtc.narchs; i++) {
        clean(state);
        real.capability = real.nvrtc.archs[i];
        compiles_with(&real, &add_1);
        assert_true(image.size > 64);
        assert_memory_equal(image.text, "\177ELF", 4);
    }
}

static void an_unknown_architecture_gets_ptx(void **state)
{
    (void)state;
    need_nvrtc();
    real.capability = 999;
    compiles_with(&real, &add_1);
    assert_non_null(strstr(image.text, ".version"));
    assert_non_null(strstr(image.text, ".entry add"));
}

static void an_nvrtc_newer_than_the_driver_is_named(void **state)
{
    (void)state;
    cb__nvrtc nvrtc;
    char words[100];
    need_nvrtc();
    int driver = real.nvrtc.version / 1000 * 1000 - 980; /* of the major version before, .2 */
    setenv("COLDBENCH_NVRTC", real.nvrtc.path, 1);
    assert_int_equal(cb__nvrtc_load(driver, &nvrtc, &err), CB_UNAVAILABLE);
    unsetenv("COLDBENCH_NVRTC");
    assert_false(nvrtc.is_loaded);
    snprintf(words, sizeof words, "is newer than the NVIDIA driver, which serves CUDA %d.2",
             driver / 1000);
    assert_non_null(strstr(err.message, real.nvrtc.path));
    assert_non_null(strstr(err.message, words));
}

/* Whatever is installed here: an older NVRTC, or one line that says what is missing. */
static void a_driver_older_than_every_nvrtc_is_told(void **state)
{
    (void)state;
    cb__nvrtc nvrtc;
    assert_int_equal(cb__nvrtc_load(10020, &nvrtc, &err), CB_UNAVAILABLE);
    assert_false(nvrtc.is_loaded);
    assert_non_null(strstr(err.message, "COLDBENCH_NVRTC=FILE"));
    assert_null(strchr(err.message, '\n'));
    assert_true(strstr(err.message, "which serves CUDA 10.2") ||
                strstr(err.message, "no NVRTC, which compiles kernels"));
}

static void a_source_that_does_not_compile_is_told_by_file_and_line(void **state)
{
    (void)state;
    need_nvrtc();
    static const char wrong[] =
        "__device__ int a;\n\nextern \"C\" __global__ void f() { a = nix; }";
    const cb__cuda_source source = {"wrong", wrong, step_1};
    assert_int_equal(cb__cuda_compile(&real, &source, &image, &err), CB_USAGE);
    assert_non_null(strstr(err.message, "cannot compile wrong with NVRTC"));
    assert_non_null(strstr(err.message, "wrong.cu(3): error: identifier \"nix\" is undefined"));
    assert_null(cached_file());
}

/* ---- the cache ---- */

static void the_second_time_is_read_from_the_cache(void **state)
{
    (void)state;
    compiles(&add_1);
    const char *path = cached_file();
    assert_non_null(path);
    ino_t first = inode(path);
    cb__buf kept = image;
    image = (cb__buf)CB__BUF_INIT;
    compiles(&add_1);
    assert_int_equal(inode(cached_file()), first);
    assert_int_equal(image.size, kept.size);
    assert_memory_equal(image.text, kept.text, kept.size);
    cb__buf_fini(&kept);
}

static void another_constant_text_architecture_or_compiler_is_another_file(void **state)
{
    (void)state;
    enum { FILES = 5 };
    char text[300], names[FILES][600];
    snprintf(text, sizeof text, "%s ", kernel_text);
    cb__cuda_compiler older = {.capability = 90};
    setenv("COLDBENCH_NVRTC", STUB_CUDA_FOLDER "/libnvrtc.so.12", 1);
    assert_int_equal(cb__nvrtc_load(0, &older.nvrtc, &err), CB_OK);
    unsetenv("COLDBENCH_NVRTC");
    cb__cuda_compiler for_80 = compiler;
    for_80.capability = 80;
    const struct {
        cb__cuda_compiler *compiler;
        cb__cuda_source source;
    } rows[FILES] = {{&compiler, {"add", kernel_text, step_1}},
                     {&compiler, {"add", kernel_text, step_2}},
                     {&compiler, {"add", text, step_1}},
                     {&for_80, {"add", kernel_text, step_1}},
                     {&older, {"add", kernel_text, step_1}}};
    for (int i = 0; i < FILES; i++) {
        clean(state);
        compiles_with(rows[i].compiler, &rows[i].source);
        assert_non_null(cached_file());
        snprintf(names[i], sizeof names[i], "%s", cached_file());
        for (int k = 0; k < i; k++)
            assert_string_not_equal(names[i], names[k]);
    }
}

/* A cut or a flipped bit anywhere: never served, and whole again afterwards. */
static void a_damaged_file_is_compiled_anew(void **state)
{
    (void)state;
    static unsigned char bytes[1 << 20], good[1 << 20];
    compiles(&add_1);
    size_t size = read_file(cached_file(), good, sizeof good);
    assert_true(size > 100 && size < sizeof good);
    for (size_t at = 0; at < size; at += at < 40 ? 3 : size / 12) {
        for (int cut = 0; cut < 2; cut++) {
            memcpy(bytes, good, size);
            bytes[at] ^= 0x10;
            write_file(cached_file(), bytes, cut ? at : size);
            compiles(&add_1);
            assert_int_equal(read_file(cached_file(), bytes, sizeof bytes), size);
            assert_memory_equal(bytes, good, size);
        }
    }
    write_file(cached_file(), good, size);
    FILE *longer = fopen(cached_file(), "ab");
    fputs("more", longer);
    fclose(longer);
    compiles(&add_1);
    assert_int_equal(read_file(cached_file(), bytes, sizeof bytes), size);
}

/* All of it is right, but there is no code in it. */
static void a_file_without_code_is_not_served(void **state)
{
    (void)state;
    static unsigned char bytes[1 << 20];
    uint64_t numbers[3]; /* bytes of the key and of the image, digest; after 8 bytes of magic */
    compiles(&add_1);
    size_t size = read_file(cached_file(), bytes, sizeof bytes);
    memcpy(numbers, bytes + 8, sizeof numbers);
    assert_int_equal(size, 8 + sizeof numbers + numbers[0] + numbers[1]);
    numbers[1] = numbers[2] = 0;
    memcpy(bytes + 8, numbers, sizeof numbers);
    write_file(cached_file(), bytes, 8 + sizeof numbers + numbers[0]);
    compiles(&add_1);
    assert_int_equal(read_file(cached_file(), bytes, sizeof bytes), size);
}

/* The right name, a right digest, and code for something else. */
static void a_file_with_the_code_of_another_source_is_not_served(void **state)
{
    (void)state;
    static unsigned char other[1 << 20], bytes[1 << 20];
    const cb__cuda_source add_2 = {"add", kernel_text, step_2};
    compiles(&add_2);
    size_t size = read_file(cached_file(), other, sizeof other);
    clean(state);
    compiles(&add_1);
    write_file(cached_file(), other, size);
    compiles(&add_1);
    read_file(cached_file(), bytes, sizeof bytes);
    assert_memory_not_equal(bytes, other, size);
}

static void a_file_that_others_can_write_is_not_served(void **state)
{
    (void)state;
    compiles(&add_1);
    const mode_t modes[] = {0620, 0602, 0666};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        struct stat facts;
        assert_int_equal(chmod(cached_file(), modes[i]), 0);
        compiles(&add_1);
        assert_int_equal(stat(cached_file(), &facts), 0);
        assert_int_equal(facts.st_mode & 0777, 0600);
    }
}

static void a_file_of_another_user_is_not_served(void **state)
{
    (void)state;
    struct stat facts;
    if (geteuid() != 0)
        skip(); /* nobody else can give a file away */
    compiles(&add_1);
    assert_int_equal(chown(cached_file(), 12345, 0), 0);
    compiles(&add_1);
    assert_int_equal(stat(cached_file(), &facts), 0);
    assert_int_equal(facts.st_uid, 0);
}

static void a_link_and_a_pipe_are_not_followed(void **state)
{
    (void)state;
    char path[600], moved[650];
    struct stat facts;
    compiles(&add_1);
    snprintf(path, sizeof path, "%s", cached_file());
    snprintf(moved, sizeof moved, "%s/moved", cache);
    assert_int_equal(rename(path, moved), 0);
    assert_int_equal(symlink(moved, path), 0);
    compiles(&add_1);
    assert_int_equal(lstat(path, &facts), 0);
    assert_true(S_ISREG(facts.st_mode));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    compiles(&add_1);
    assert_int_equal(lstat(path, &facts), 0);
    assert_true(S_ISREG(facts.st_mode));
    unlink(moved);
}

static void without_a_place_for_the_cache_it_compiles(void **state)
{
    (void)state;
    static const char *const places[] = {"/proc/absent", "relative", "/dev/null", NULL};
    char *home = getenv("HOME") ? strdup(getenv("HOME")) : NULL;
    unsetenv("HOME");
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        if (places[i])
            setenv("XDG_CACHE_HOME", places[i], 1);
        else
            unsetenv("XDG_CACHE_HOME");
        compiles(&add_1);
    }
    if (home)
        setenv("HOME", home, 1);
    free(home);
    assert_int_equal(access("relative", F_OK), -1);
}

/* A folder in the way of the file: it is not replaced, and nothing is left beside it. */
static void what_cannot_be_put_in_place_is_taken_away(void **state)
{
    (void)state;
    char path[600], inside[650];
    compiles(&add_1);
    snprintf(path, sizeof path, "%s", cached_file());
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(inside, sizeof inside, "%s/full", path);
    assert_int_equal(mkdir(inside, 0700), 0);
    compiles(&add_1);
    assert_string_equal(cached_file(), path); /* it asserts that there is no second one */
    assert_int_equal(access(inside, F_OK), 0);
}

static int make_folder(void **state)
{
    (void)state;
    cb__nvrtc_load(0, &real.nvrtc, NULL); /* the one that the environment names, if it does */
    setenv("COLDBENCH_NVRTC", STUB_CUDA_FOLDER "/libnvrtc.so.13", 1);
    cb_status status = cb__nvrtc_load(0, &compiler.nvrtc, NULL);
    unsetenv("COLDBENCH_NVRTC");
    return status == CB_OK && mkdtemp(cache) ? 0 : -1;
}

static int remove_folder(void **state)
{
    clean(state);
    cb__buf_fini(&image);
    return rmdir(cache);
}

#define CHECK(test) cmocka_unit_test_setup(test, clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK(what_came_compiled_serves_without_nvrtc),
        CHECK(a_named_nvrtc_that_is_absent_is_named),
        CHECK(what_is_no_nvrtc_is_refused),
        CHECK(the_architecture_is_the_exact_one_or_ptx_below_it),
        CHECK(every_architecture_that_nvrtc_knows_gets_machine_code),
        CHECK(an_unknown_architecture_gets_ptx),
        CHECK(an_nvrtc_newer_than_the_driver_is_named),
        CHECK(a_driver_older_than_every_nvrtc_is_told),
        CHECK(a_source_that_does_not_compile_is_told_by_file_and_line),
        CHECK(the_second_time_is_read_from_the_cache),
        CHECK(another_constant_text_architecture_or_compiler_is_another_file),
        CHECK(a_damaged_file_is_compiled_anew),
        CHECK(a_file_without_code_is_not_served),
        CHECK(a_file_with_the_code_of_another_source_is_not_served),
        CHECK(a_file_that_others_can_write_is_not_served),
        CHECK(a_file_of_another_user_is_not_served),
        CHECK(a_link_and_a_pipe_are_not_followed),
        CHECK(without_a_place_for_the_cache_it_compiles),
        CHECK(what_cannot_be_put_in_place_is_taken_away),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
