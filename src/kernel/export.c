#include "kernel/export.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "cb_build_info.h"
#include "coldbench/kernel.h"
#include "host/build_id.h"
#include "host/elf_note.h"
#include "kernel/embedded.h"

static cb_status write_file(const char *folder, const char *name, const void *bytes, size_t size,
                            cb_error *err)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "we");
    if (!file)
        return cb_error_set(err, CB_IO, "cannot write %s: %s", path, strerror(errno));
    errno = 0;
    bool written = fwrite(bytes, 1, size, file) == size;
    int why = errno;
    if (fclose(file) != 0) {
        why = written ? errno : why;
        written = false;
    }
    return written ? CB_OK : cb_error_set(err, CB_IO, "writing %s: %s", path, strerror(why));
}

static void file_name(const cb__embedded_module *m, char name[80])
{
    snprintf(name, 80, "%.70s.so", m->name);
}

/* Some of the modules without an index would pass for a folder of all of them. */
static void withdraw(const char *folder, int written)
{
    char path[4096], file[80];
    for (int i = 0; i < written; i++) {
        file_name(&cb__embedded_modules[i], file);
        snprintf(path, sizeof path, "%s/%s", folder, file);
        remove(path);
    }
    snprintf(path, sizeof path, "%s/%s", folder, CB__EXPORT_INDEX);
    remove(path);
}

static void member(cb__json_writer *w, const char *key, const char *text)
{
    cb__json_key(w, key);
    cb__json_string(w, *text ? text : NULL);
}

static void module_entry(cb__json_writer *w, const cb__embedded_module *m, const char *file)
{
    char build_id[64], source_id[72];
    cb__file_build_id(m->bytes, m->size, build_id, sizeof build_id);
    cb__file_source_id(m->bytes, m->size, source_id, sizeof source_id);
    cb__json_object(w);
    member(w, "name", m->name);
    member(w, "file", file);
    member(w, "build_id", build_id);
    member(w, "source_id", source_id);
    cb__json_end(w);
}

static void index_begin(cb__json_writer *w)
{
    char id[64];
    cb__build_id(id, sizeof id);
    cb__json_object(w);
    member(w, "schema", CB__EXPORT_SCHEMA);
    cb__json_key(w, "abi");
    cb__json_int(w, CB_KERNEL_ABI);
    cb__json_key(w, "tool");
    cb__json_object(w);
    member(w, "version", CB_VERSION);
    member(w, "build_id", id);
    member(w, "source_id", CB_SOURCE_ID);
    member(w, "compiler", CB_COMPILER);
    member(w, "flags", CB_C_FLAGS);
    cb__json_end(w);
    cb__json_key(w, "modules");
    cb__json_array(w);
}

cb_status cb__modules_export(const char *folder, cb_error *err)
{
    cb__buf index = CB__BUF_INIT;
    cb__json_writer w;
    cb_status status = CB_OK;
    int written = 0;
    bool made = mkdir(folder, 0777) == 0;
    if (!made && errno != EEXIST)
        return cb_error_set(err, CB_IO, "cannot make folder %s: %s", folder, strerror(errno));
    cb__json_begin(&w, &index, true);
    index_begin(&w);
    for (; written < cb__embedded_module_count && status == CB_OK; written++) {
        const cb__embedded_module *m = &cb__embedded_modules[written];
        char file[80];
        file_name(m, file);
        module_entry(&w, m, file);
        status = write_file(folder, file, m->bytes, m->size, err);
    }
    cb__json_end(&w);
    cb__json_end(&w);
    cb__buf_puts(&index, "\n");
    if (status == CB_OK && index.failed)
        status = cb_error_set(err, CB_NO_MEMORY, "no memory for the index of %s", folder);
    if (status == CB_OK)
        status = write_file(folder, CB__EXPORT_INDEX, cb__buf_text(&index), index.size, err);
    cb__buf_fini(&index);
    if (status != CB_OK)
        withdraw(folder, written);
    if (status != CB_OK && made)
        rmdir(folder);
    return status;
}
