/* Loading from files and from memory. dl.c is compiled here, so that memory files can be refused
 * and the loader made to refuse them, as hardened systems do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int memory_file_error;          /* 0: as the system does */
static bool loader_refuses_memory;     /* as a policy against executable memory files does */
static unsigned memory_file_forbidden; /* flags that an old kernel does not know */

static int limited_memfd_create(const char *name, unsigned flags)
{
    errno = memory_file_error ? memory_file_error : EINVAL;
    if (memory_file_error || (flags & memory_file_forbidden))
        return -1;
    return memfd_create(name, flags);
}

static void *limited_dlopen(const char *path, int flags)
{
    if (loader_refuses_memory && strstr(path, "/proc/self/fd/"))
        return NULL;
    return dlopen(path, flags);
}

#define memfd_create limited_memfd_create
#define dlopen limited_dlopen
#include "base/dl.c"

static unsigned char *module;
static size_t module_size;
static cb_error err;

static int read_module(void **state)
{
    (void)state;
    struct stat facts;
    FILE *file = fopen(CB_DL_MODULE, "rb");
    if (!file || fstat(fileno(file), &facts))
        return -1;
    module_size = (size_t)facts.st_size;
    module = malloc(module_size);
    size_t got = module ? fread(module, 1, module_size, file) : 0;
    fclose(file);
    return got == module_size ? 0 : -1;
}

static int free_module(void **state)
{
    (void)state;
    free(module);
    return 0;
}

static int reset(void **state)
{
    (void)state;
    memory_file_error = 0;
    loader_refuses_memory = false;
    memory_file_forbidden = 0;
    unsetenv("XDG_CACHE_HOME");
    cb_error_clear(&err);
    return 0;
}

static int entries(const char *folder)
{
    DIR *dir = opendir(folder);
    int n = 0;
    while (dir && readdir(dir))
        n++;
    if (dir)
        closedir(dir);
    return n;
}

static cb__dl *load(void)
{
    cb__dl *library;
    if (cb__dl_open_bytes("a module", module, module_size, &library, &err) != CB_OK)
        fail_msg("%s", err.message);
    return library;
}

static int next(cb__dl *library)
{
    int (*function)(void);
    *(void **)&function = cb__dl_symbol(library, "dl_module_next");
    assert_non_null(function);
    return function();
}

/* The loader's name of the image tells where it came from. */
static bool is_from_memory(cb__dl *library)
{
    Dl_info info;
    assert_true(dladdr(cb__dl_symbol(library, "dl_module_next"), &info));
    return strstr(info.dli_fname, "/proc/self/fd/") != NULL;
}

static void a_file_is_loaded(void **state)
{
    (void)state;
    cb__dl *library;
    assert_int_equal(cb__dl_open(CB_DL_MODULE, &library, &err), CB_OK);
    assert_int_equal(next(library), 41);
    assert_null(cb__dl_symbol(library, "absent"));
    cb__dl_close(library);
    cb__dl_close(NULL);
}

static void an_absent_file_is_unavailable_with_the_reason(void **state)
{
    (void)state;
    cb__dl *library = (cb__dl *)&err;
    assert_int_equal(cb__dl_open("libabsent.so.7", &library, &err), CB_UNAVAILABLE);
    assert_null(library);
    assert_non_null(strstr(err.message, "'libabsent.so.7'"));
    assert_non_null(strstr(err.message, "No such file"));
}

/* Many, kept and closed in turn: descriptors are used again, images are not. */
static void loads_of_the_same_bytes_are_images_apart(void **state)
{
    (void)state;
    enum { IMAGES = 40 };
    cb__dl *images[IMAGES];
    const int descriptors = entries("/proc/self/fd");
    for (int i = 0; i < IMAGES; i++) {
        images[i] = load();
        if (i % 5 == 4) { /* one goes away in between */
            cb__dl_close(images[i - 2]);
            images[i - 2] = load();
        }
    }
    for (int i = 0; i < IMAGES; i++) {
        for (int k = 0; k < i; k++) {
            assert_ptr_not_equal(cb__dl_symbol(images[i], "dl_module_next"),
                                 cb__dl_symbol(images[k], "dl_module_next"));
            assert_ptr_not_equal(cb__dl_symbol(images[i], "dl_module_count"),
                                 cb__dl_symbol(images[k], "dl_module_count"));
        }
        assert_int_equal(next(images[i]), 41); /* its own data, not yet counted */
    }
    assert_int_equal(entries("/proc/self/fd"), descriptors);
    for (int i = 0; i < IMAGES; i++)
        cb__dl_close(images[i]);
}

/* Each image has an inode of its own, so its pages are not those of another. */
static void images_have_files_of_their_own(void **state)
{
    (void)state;
    cb__dl *a = load(), *b = load();
    char line[600];
    unsigned long inodes[2] = {0};
    FILE *maps = fopen("/proc/self/maps", "r");
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps)) {
        unsigned long long from, to, inode;
        if (sscanf(line, "%llx-%llx %*s %*s %*s %llu", &from, &to, &inode) != 3)
            continue;
        for (int i = 0; i < 2; i++) {
            uintptr_t code = (uintptr_t)cb__dl_symbol(i ? b : a, "dl_module_next");
            if (from <= code && code < to) {
                assert_non_null(strstr(line, "memfd:a module"));
                inodes[i] = inode;
            }
        }
    }
    fclose(maps);
    assert_true(inodes[0] && inodes[1] && inodes[0] != inodes[1]);
    cb__dl_close(a);
    cb__dl_close(b);
}

static void a_kernel_without_the_flag_is_served(void **state)
{
    (void)state;
    memory_file_forbidden = MFD_EXEC;
    cb__dl *library = load();
    assert_int_equal(next(library), 41);
    assert_true(is_from_memory(library));
    cb__dl_close(library);
}

static void where_memory_is_blocked_the_cache_folder_serves(void **state)
{
    (void)state;
    char folder[] = "/tmp/coldbench-test-XXXXXX", made[100];
    assert_non_null(mkdtemp(folder));
    snprintf(made, sizeof made, "%s/new", folder);
    setenv("XDG_CACHE_HOME", made, 1);
    for (int refused = 0; refused < 2; refused++) {
        memory_file_error = refused ? 0 : EPERM;
        loader_refuses_memory = refused;
        cb__dl *a = load(), *b = load();
        assert_ptr_not_equal(cb__dl_symbol(a, "dl_module_next"),
                             cb__dl_symbol(b, "dl_module_next"));
        assert_int_equal(next(a), 41);
        assert_int_equal(next(a), 42);
        assert_false(is_from_memory(a));
        assert_int_equal(next(b), 41);
        cb__dl_close(a);
        cb__dl_close(b);
    }
    strcat(made, "/coldbench");
    assert_int_equal(entries(made), 2); /* itself and its parent: no file stays */
    assert_int_equal(rmdir(made), 0);
    *strrchr(made, '/') = '\0';
    assert_int_equal(rmdir(made), 0);
    assert_int_equal(rmdir(folder), 0);
}

static void where_the_cache_folder_is_not_writable_tmp_serves(void **state)
{
    (void)state;
    setenv("XDG_CACHE_HOME", "/proc/absent", 1);
    memory_file_error = ENOSYS;
    cb__dl *library = load();
    assert_int_equal(next(library), 41);
    cb__dl_close(library);
}

static void what_is_no_shared_object_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
    } rows[] = {{"", 0}, {"ELF", 3}, {"\177ELF", 4}, {"#!/bin/sh\n", 10}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char words[100];
        cb__dl *library = (cb__dl *)&err;
        cb_error_clear(&err);
        assert_int_equal(cb__dl_open_bytes("bad", rows[i].bytes, rows[i].size, &library, &err),
                         CB_UNAVAILABLE);
        assert_null(library);
        snprintf(words, sizeof words,
                 "cannot load module 'bad': its %zu bytes are not a shared object", rows[i].size);
        assert_string_equal(err.message, words);
    }
}

static void another_machine_is_refused(void **state)
{
    (void)state;
    static const size_t places[] = {EI_CLASS, offsetof(ElfW(Ehdr), e_type),
                                    offsetof(ElfW(Ehdr), e_machine)};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        cb__dl *library;
        unsigned char kept = module[places[i]];
        module[places[i]] = 0x42;
        cb_error_clear(&err);
        assert_int_equal(cb__dl_open_bytes("other", module, module_size, &library, &err),
                         CB_UNAVAILABLE);
        assert_null(library);
        module[places[i]] = kept;
    }
    /* The last got as far as the loader, whose words are given for both ways. */
    assert_non_null(strstr(err.message, "memory file: "));
    assert_non_null(strstr(err.message, "; file: "));
}

/* Unguarded, the loader dies of SIGBUS on most of these. The end of a shared object is no segment,
 * so a cut in there is none. */
static void a_cut_module_is_refused(void **state)
{
    (void)state;
    int refused = 0;
    for (size_t size = sizeof(ElfW(Ehdr)); size < module_size; size += 1 + size / 20) {
        cb__dl *library;
        cb_error_clear(&err);
        if (cb__dl_open_bytes("cut", module, size, &library, &err) == CB_OK)
            cb__dl_close(library);
        else
            refused += strstr(err.message, "are a shared object that was cut") != NULL;
    }
    assert_true(refused > 20);
}

static void a_name_of_any_length_is_accepted(void **state)
{
    (void)state;
    char name[5000];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    cb__dl *library;
    assert_int_equal(cb__dl_open_bytes(name, module, module_size, &library, &err), CB_OK);
    assert_true(is_from_memory(library));
    cb__dl_close(library);
}

#define CHECK(test) cmocka_unit_test_setup(test, reset)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CHECK(a_file_is_loaded),
        CHECK(an_absent_file_is_unavailable_with_the_reason),
        CHECK(loads_of_the_same_bytes_are_images_apart),
        CHECK(images_have_files_of_their_own),
        CHECK(a_kernel_without_the_flag_is_served),
        CHECK(where_memory_is_blocked_the_cache_folder_serves),
        CHECK(where_the_cache_folder_is_not_writable_tmp_serves),
        CHECK(what_is_no_shared_object_is_refused),
        CHECK(another_machine_is_refused),
        CHECK(a_cut_module_is_refused),
        CHECK(a_name_of_any_length_is_accepted),
    };
    return cmocka_run_group_tests(tests, read_module, free_module);
}
