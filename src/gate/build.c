#include "gate/build.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "host/elf_note.h"
#include "kernel/export.h"

/* ---- one module ---- */

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n > m && strcmp(text + n - m, end) == 0;
}

static cb_status read_ids(cb__build_module *m, cb_error *err)
{
    struct stat info;
    FILE *file = fopen(m->path, "re");
    void *bytes = MAP_FAILED;
    if (file && fstat(fileno(file), &info) == 0 && info.st_size > 0)
        bytes = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fileno(file), 0);
    int failed = errno;
    if (file)
        fclose(file);
    if (bytes == MAP_FAILED)
        return cb_error_set(err, CB_USAGE, "cannot read module %s: %s", m->path,
                            file ? "it is empty" : strerror(failed));
    cb__file_build_id(bytes, (size_t)info.st_size, m->build_id, sizeof m->build_id);
    cb__file_source_id(bytes, (size_t)info.st_size, m->source_id, sizeof m->source_id);
    munmap(bytes, (size_t)info.st_size);
    return CB_OK;
}

/* source_id: as an index says; NULL: as the module itself does. */
static cb_status add_module(cb__build *b, const char *path, const char *source_id, cb_error *err)
{
    if (b->nmodules == CB__SUITE_MAX)
        return cb_error_set(err, CB_USAGE, "%s has more than %d modules", b->asked, CB__SUITE_MAX);
    cb__build_module *m = &b->modules[b->nmodules];
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    if (strlen(path) >= sizeof m->path || strlen(name) >= sizeof m->name)
        return cb_error_set(err, CB_USAGE, "module path is too long: %s", path);
    snprintf(m->path, sizeof m->path, "%s", path);
    snprintf(m->name, sizeof m->name, "%.*s", (int)strlen(name) - 3, name);
    cb_status status = source_id ? CB_OK : cb__module_is_fresh(m->path, m->name, err);
    if (status == CB_OK)
        status = read_ids(m, err);
    if (status == CB_OK && source_id)
        snprintf(m->source_id, sizeof m->source_id, "%s", source_id);
    if (status == CB_OK)
        status = cb__suite_open_file(m->path, true, &m->suite, err);
    if (status == CB_OK)
        b->nmodules++;
    return status;
}

/* ---- folders ---- */

static cb_status read_index(cb__build *b, const char *folder, cb__json *index, cb_error *err)
{
    int64_t abi = 0;
    const cb__json *modules = cb__json_get(index, "modules");
    const cb__json *tool = cb__json_get(cb__json_get(index, "tool"), "source_id");
    cb_status status = cb__json_need_i64(index, "abi", 0, UINT32_MAX, &abi, err);
    if (status == CB_OK && abi != CB_KERNEL_ABI)
        return cb_error_set(err, CB_USAGE,
                            "its modules have ABI version %lld, this coldbench needs %u: gate with "
                            "two builds of one ABI version",
                            (long long)abi, CB_KERNEL_ABI);
    snprintf(b->tool_source_id, sizeof b->tool_source_id, "%s", cb__json_text(tool, ""));
    for (size_t i = 0; i < cb__json_size(modules) && status == CB_OK; i++) {
        const cb__json *m = cb__json_at(modules, i);
        const char *file = NULL;
        char path[1024];
        status = cb__json_need_text(m, "file", &file, err);
        if (status == CB_OK && (strchr(file, '/') || !ends_with(file, ".so")))
            status = cb_error_set(err, CB_USAGE, "'%s' is no NAME.so beside it", file);
        if (status != CB_OK)
            break;
        snprintf(path, sizeof path, "%s/%s", folder, file);
        status = add_module(b, path, cb__json_text(cb__json_get(m, "source_id"), NULL), err);
    }
    return status;
}

static cb_status open_index(cb__build *b, const char *folder, cb_error *err)
{
    cb__buf text = CB__BUF_INIT;
    cb__json *index = NULL;
    char path[1024], chunk[4096];
    snprintf(path, sizeof path, "%s/%s", folder, CB__EXPORT_INDEX);
    FILE *file = fopen(path, "re");
    if (!file)
        return cb_error_set(err, CB_USAGE, "cannot read %s: %s", path, strerror(errno));
    for (size_t n; (n = fread(chunk, 1, sizeof chunk, file)) > 0;)
        cb__buf_append(&text, chunk, n);
    fclose(file);
    cb_status status = cb__json_parse(cb__buf_text(&text), text.size, path, &index, err);
    if (status == CB_OK) {
        status = read_index(b, folder, index, err);
        if (status != CB_OK)
            cb_error_prefix(err, "%s", path);
    }
    cb__json_free(index);
    cb__buf_fini(&text);
    return status;
}

static int is_module(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && ends_with(entry->d_name, ".so");
}

static cb_status open_files(cb__build *b, const char *folder, cb_error *err)
{
    struct dirent **entries = NULL;
    int n = scandir(folder, &entries, is_module, alphasort);
    cb_status status = CB_OK;
    for (int i = 0; i < n; i++) {
        char path[1024];
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        if (status == CB_OK)
            status = add_module(b, path, NULL, err);
        free(entries[i]);
    }
    free(entries);
    if (n > 0)
        return status;
    return cb_error_set(err, CB_USAGE,
                        "%s has no %s (coldbench kernels --export writes it), no coldbench program "
                        "and no NAME.so",
                        folder, CB__EXPORT_INDEX);
}

/* ---- programs ---- */

static cb_status open_program(cb__build *b, const char *program, cb_error *err)
{
    const char *scratch = getenv("TMPDIR");
    cb_status status = cb__program_is_fresh(program, err);
    if (status != CB_OK)
        return status;
    snprintf(b->folder, sizeof b->folder, "%s/coldbench-gate-XXXXXX",
             scratch && *scratch ? scratch : "/tmp");
    if (!mkdtemp(b->folder))
        return cb_error_set(err, CB_IO, "cannot make folder %s: %s", b->folder, strerror(errno));
    b->exported = true;
    status = cb__program_export(program, b->folder, err);
    return status == CB_OK ? open_index(b, b->folder, err) : status;
}

static bool exists(const char *folder, const char *name)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

static cb_status open_folder(cb__build *b, const char *folder, cb_error *err)
{
    char program[1024];
    if (exists(folder, CB__EXPORT_INDEX))
        return open_index(b, folder, err);
    if (!exists(folder, "coldbench"))
        return open_files(b, folder, err);
    snprintf(program, sizeof program, "%s/coldbench", folder);
    return open_program(b, program, err);
}

cb_status cb__build_open(const char *path, const char *side, cb__build *out, cb_error *err)
{
    struct stat info;
    cb_status status = CB_OK;
    out->asked = path;
    if (stat(path, &info) != 0)
        status = cb_error_set(err, CB_USAGE, "%s: %s", path, strerror(errno));
    else if (S_ISDIR(info.st_mode))
        status = open_folder(out, path, err);
    else if (ends_with(path, ".so"))
        status = add_module(out, path, NULL, err);
    else if (access(path, X_OK) == 0)
        status = open_program(out, path, err);
    else
        status = cb_error_set(err, CB_USAGE,
                              "%s is no folder, no kernel module (NAME.so) and no program", path);
    if (status == CB_OK && out->nmodules == 0)
        status = cb_error_set(err, CB_USAGE, "%s has no modules", path);
    if (status != CB_OK)
        cb_error_prefix(err, "--%s", side);
    return status;
}

static int is_any(const struct dirent *entry)
{
    return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

/* What was exported is flat. */
static void remove_folder(const char *folder)
{
    struct dirent **entries = NULL;
    int n = scandir(folder, &entries, is_any, NULL);
    for (int i = 0; i < n; i++) {
        char path[1024];
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        unlink(path);
        free(entries[i]);
    }
    free(entries);
    rmdir(folder);
}

void cb__build_close(cb__build *b)
{
    for (int i = 0; i < b->nmodules; i++)
        cb__suite_close(&b->modules[i].suite);
    if (b->exported)
        remove_folder(b->folder);
    b->nmodules = 0;
    b->exported = false;
}

const cb_kernel *cb__build_find(const cb__build *b, const char *kernel, int *module)
{
    for (int i = 0; i < b->nmodules; i++) {
        const cb_kernel *k = cb__suite_find(&b->modules[i].suite, kernel, NULL);
        if (k) {
            *module = i;
            return k;
        }
    }
    return NULL;
}
