/* The code that came compiled: that it is there for everything the verbs use unasked, that it is of
 * these sources, that it is PTX an assembler takes, and that without NVRTC it is what runs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "default_codes.h"
#include "device/cuda/cuda.h"
#include "stub_cuda.h"
#include "toolkit.h"

#define STALE "run scripts/embed_cuda.sh, and commit what it writes"

static cb__cuda_table table;
static cb__suite suite;
static cb_error err;

/* ---- a table ---- */

static const char text[] = "a = CB_STEP; b = CB_STEP_WIDTH;";
static const char *const step_1[] = {"CB_STEP=1", NULL}, *const step_2[] = {"CB_STEP=2", NULL};
static const char *const step_1_and_more[] = {"CB_STEP=1", "CB_UNUSED=7", NULL};
static const char *const width[] = {"CB_STEP_WIDTH=1", NULL}, *const none[] = {NULL};

static void what_makes_other_code_has_another_digest(void **state)
{
    (void)state;
    const struct {
        cb__cuda_source source;
        bool same;
    } rows[] = {
        {{"other", text, step_1}, true},
        {{"add", text, step_1_and_more}, true},
        {{"add", text, step_2}, false},
        {{"add", text, width}, false},
        {{"add", text, NULL}, false},
        {{"add", text, none}, false},
        {{"add", "a = CB_STEP;", step_1}, false},
    };
    const cb__cuda_source source = {"add", text, step_1};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(cb__cuda_source_digest(&source) == cb__cuda_source_digest(&rows[i].source),
                         rows[i].same);
}

static void an_entry_serves_its_source_from_its_capability_on(void **state)
{
    (void)state;
    const cb__cuda_source of_1 = {"add", text, step_1}, of_2 = {"add", text, step_2};
    const cb__cuda_source of_none = {"add", text, NULL};
    char lines[1000];
    snprintf(lines, sizeof lines,
             "// written\n//@ %016llx 90 12000 add\n.version 8.0 //@ no head\nfor 9.0\n"
             "//@ %016llx 75 12000 add CB_STEP=1\n.version 8.0\n"
             "//@ %016llx 80 11080 add CB_STEP=2\n.version 7.8\n//@ cut",
             (unsigned long long)cb__cuda_source_digest(&of_1),
             (unsigned long long)cb__cuda_source_digest(&of_1),
             (unsigned long long)cb__cuda_source_digest(&of_2));
    const struct {
        const cb__cuda_source *source;
        int capability, version;
        const char *ptx; /* NULL: none */
    } rows[] = {
        {&of_1, 90, 12000, ".version 8.0 //@ no head\nfor 9.0\n"},
        {&of_1, 120, 12000, ".version 8.0 //@ no head\nfor 9.0\n"},
        {&of_1, 89, 12000, ".version 8.0\n"},
        {&of_1, 75, 12000, ".version 8.0\n"},
        {&of_1, 70, 0, NULL},
        {&of_2, 80, 11080, ".version 7.8\n"},
        {&of_2, 75, 0, NULL},
        {&of_none, 90, 0, NULL},
    };
    const cb__cuda_table three = {lines, strlen(lines)}, empty = {NULL, 0};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cb__cuda_entry entry;
        bool found = cb__cuda_entry_find(&three, rows[i].source, rows[i].capability, &entry);
        assert_int_equal(found, rows[i].ptx != NULL);
        assert_false(cb__cuda_entry_find(&empty, rows[i].source, rows[i].capability, &entry));
        if (!found)
            continue;
        assert_int_equal(entry.version, rows[i].version);
        assert_int_equal(entry.size, strlen(rows[i].ptx));
        assert_memory_equal(entry.ptx, rows[i].ptx, entry.size);
    }
}

/* ---- the one of this program ---- */

static cb_status source_of(const cb__case *c, cb__cuda_constants *constants,
                           cb__cuda_source *source)
{
    const cb__code code = cb__case_code(c);
    return cb__cuda_source_of(&code, constants, source, &err);
}

static void has_line(const char *name, const cb__cuda_entry *entry, const char *line)
{
    if (!memmem(entry->ptx, entry->size, line, strlen(line)))
        fail_msg("the compiled code of %s has no '%s'", name, line);
}

static void check_entry(const char *name, const cb__cuda_entry *entry, const char *function)
{
    char line[100];
    if (entry->version != EMBEDDED_VERSION)
        fail_msg("%s was compiled by NVRTC %d, not %d: " STALE, name, entry->version,
                 EMBEDDED_VERSION);
    assert_memory_equal(entry->ptx, ".version 8.0\n", 13);
    snprintf(line, sizeof line, "\n.target sm_%d\n", entry->capability);
    has_line(name, entry, line);
    snprintf(line, sizeof line, ".entry %s(", function);
    has_line(name, entry, line);
}

typedef struct seen {
    uint64_t digests[4096];
    int n;
} seen;

static cb_status find_embedded(void *arg, const char *name, const cb__case *c, cb_error *ignored)
{
    (void)ignored;
    seen *s = arg;
    cb__cuda_constants constants = {0};
    cb__cuda_source source = cb__cuda_support_source;
    cb__cuda_entry entry;
    name = c ? name : "the backend's own kernels";
    if (c)
        assert_int_equal(source_of(c, &constants, &source), CB_OK);
    s->digests[s->n++] = cb__cuda_source_digest(&source);
    assert_true(s->n < 4096);
    const int capabilities[] = {c ? c->impl->device->least : 75, 120};
    for (int i = 0; i < 2; i++) {
        if (!cb__cuda_entry_find(&table, &source, capabilities[i], &entry))
            fail_msg("%s for %d has changed since it was compiled: " STALE, name, capabilities[i]);
        check_entry(name, &entry, c ? c->impl->device->entry : "cb_digest");
    }
    /* It is launched before the one ahead of it has ended: from 9.0 on it has to wait itself. */
    if (c && c->impl->device->overlaps)
        has_line(name, &entry, "\ngriddepcontrol.wait;\n");
    cb__cuda_constants_fini(&constants);
    return CB_OK;
}

static void every_default_code_is_there_and_nothing_else(void **state)
{
    (void)state;
    static seen s;
    cb__cuda_entry entry;
    if (each_default_code(&suite, find_embedded, &s, &err) != CB_OK)
        fail_msg("%s", err.message);
    for (size_t at = 0; cb__cuda_entry_next(&table, &at, &entry);) {
        int i = 0;
        while (i < s.n && s.digests[i] != entry.digest)
            i++;
        if (i == s.n)
            fail_msg("entry %016llx is of no code of this program: " STALE,
                     (unsigned long long)entry.digest);
    }
}

/* Whether machine code of it keeps what it holds in registers; its log where not. */
static void assemble(const char *file, const cb__cuda_entry *entry)
{
    char command[300], log[4000];
    FILE *ptx = fopen(file, "w");
    assert_non_null(ptx);
    assert_int_equal(fwrite(entry->ptx, 1, entry->size, ptx), entry->size);
    assert_int_equal(fclose(ptx), 0);
    snprintf(command, sizeof command, "ptxas -arch=sm_%d -v -o /dev/null %s 2>&1",
             entry->capability, file);
    FILE *out = popen(command, "r");
    assert_non_null(out);
    log[fread(log, 1, sizeof log - 1, out)] = '\0';
    if (pclose(out) != 0 || strstr(log, "warning"))
        fail_msg("%016llx for sm_%d: %s", (unsigned long long)entry->digest, entry->capability,
                 log);
}

static void every_entry_is_taken_by_the_assembler(void **state)
{
    (void)state;
    char file[] = "/tmp/coldbench-ptx-XXXXXX";
    cb__cuda_entry entry;
    int n = 0;
    if (system("ptxas --version >/dev/null 2>&1") != 0)
        SKIP_WITHOUT_TOOLKIT("ptxas");
    close(mkstemp(file));
    for (size_t at = 0; cb__cuda_entry_next(&table, &at, &entry); n++)
        assemble(file, &entry);
    unlink(file);
    assert_true(n > 0);
}

/* ---- without NVRTC ---- */

static cb__device *opened(void)
{
    cb__device *device = NULL;
    if (cb__backend_cuda.open("0", 0, CB__COMPACT, &device, &err) != CB_OK)
        fail_msg("%s", err.message);
    return device;
}

static cb_status build(void *arg, const char *name, const cb__case *c, cb_error *ignored)
{
    (void)ignored;
    cb__device *device = arg;
    cb__case sized;
    char shape[32] = "";
    if (!c)
        return CB_OK;
    for (int i = 0; i < c->kernel->ndims; i++)
        snprintf(shape + strlen(shape), 16, "%s4096", i ? "x" : "");
    if (cb__case_parse(&suite, name, shape, CB_ISA_CUDA, &sized, &err) != CB_OK)
        return cb_error_clear(&err), CB_OK; /* strides have no such shape */
    cb__code code = cb__case_code(&sized);
    if (cb__backend_cuda.build(device, &code, &err) != CB_OK)
        fail_msg("%s: %s", name, err.message);
    cb__backend_cuda.unbuild(device, &code);
    return CB_OK;
}

static int hide_nvrtc(void **state)
{
    (void)state;
    cb_error_clear(&err);
    return setenv("COLDBENCH_NVRTC", "/absent/libnvrtc.so", 1);
}

static int show_nvrtc(void **state)
{
    (void)state;
    unsetenv("STUB_CUDA_VERSION");
    return unsetenv("COLDBENCH_NVRTC");
}

static void a_driver_alone_builds_every_default_code(void **state)
{
    (void)state;
    cb__device *device = opened();
    char code[sizeof((cb__device_info *)NULL)->code];
    assert_int_equal(each_default_code(&suite, build, device, &err), CB_OK);
    assert_int_equal(cb__cuda_support_load(device, &err), CB_OK);
    cb__backend_cuda.compiler(device, code, sizeof code);
    assert_string_equal(code,
                        "embedded PTX, by the driver (CUDA 13.0): COLDBENCH_NVRTC: cannot load "
                        "library '/absent/libnvrtc.so': /absent/libnvrtc.so: cannot open "
                        "shared object file: No such file or directory");
    cb__backend_cuda.close(device);
}

static void other_constants_say_what_is_missing(void **state)
{
    (void)state;
    cb__case c;
    cb__device *device = opened();
    assert_int_equal(
        cb__case_parse(&suite, "gemv_q4/cuda:block_rows=32", "4096x4096", CB_ISA_CUDA, &c, &err),
        CB_OK);
    cb__code code = cb__case_code(&c);
    assert_int_equal(cb__backend_cuda.build(device, &code, &err), CB_UNAVAILABLE);
    assert_string_equal(err.message,
                        "gemv_q4 with these constants is not among the code that came compiled: "
                        "COLDBENCH_NVRTC: cannot load library '/absent/libnvrtc.so': "
                        "/absent/libnvrtc.so: cannot open shared object file: No such file or "
                        "directory");
    cb__backend_cuda.close(device);
}

static void a_driver_too_old_for_it_is_told(void **state)
{
    (void)state;
    setenv("STUB_CUDA_VERSION", "11080", 1);
    cb__device *device = opened();
    assert_int_equal(cb__cuda_support_load(device, &err), CB_UNAVAILABLE);
    assert_non_null(strstr(err.message,
                           "the code of coldbench that came compiled needs a driver that serves "
                           "CUDA 12.0, and this one serves 11.8: COLDBENCH_NVRTC: cannot load"));
    cb__backend_cuda.close(device);
}

static void nvrtc_comes_first(void **state)
{
    (void)state;
    char code[96];
    setenv("COLDBENCH_NVRTC", STUB_CUDA_FOLDER "/libnvrtc.so.13", 1);
    cb__device *device = opened();
    const void *image = NULL;
    assert_int_equal(cb__cuda_image_of(device, &cb__cuda_support_source, &image, &err), CB_OK);
    assert_non_null(strstr(image, ".target sm_90a")); /* as the stub writes it */
    assert_non_null(strstr(image, "cb_empty() {}"));
    cb__backend_cuda.compiler(device, code, sizeof code);
    assert_string_equal(code, "NVRTC 13.0, sm_90a");
    cb__backend_cuda.close(device);
}

static int open_suite(void **state)
{
    (void)state;
    table = cb__cuda_embedded();
    return cb__suite_open(NULL, 0, false, &suite, &err) == CB_OK ? 0 : -1;
}

static int close_suite(void **state)
{
    (void)state;
    cb__suite_close(&suite);
    return 0;
}

#define WITHOUT_NVRTC(test) cmocka_unit_test_setup_teardown(test, hide_nvrtc, show_nvrtc)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_makes_other_code_has_another_digest),
        cmocka_unit_test(an_entry_serves_its_source_from_its_capability_on),
        cmocka_unit_test(every_default_code_is_there_and_nothing_else),
        cmocka_unit_test(every_entry_is_taken_by_the_assembler),
        WITHOUT_NVRTC(a_driver_alone_builds_every_default_code),
        WITHOUT_NVRTC(other_constants_say_what_is_missing),
        WITHOUT_NVRTC(a_driver_too_old_for_it_is_told),
        WITHOUT_NVRTC(nvrtc_comes_first),
    };
    (void)argc;
    stub_cuda_use(argv);
    setenv("XDG_CACHE_HOME", "/dev/null", 1); /* nothing is kept */
    return cmocka_run_group_tests(tests, open_suite, close_suite);
}
