#include "device/cuda/compile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "device/digest.h"

enum { PATH_BYTES = 4096, FILE_BYTES_MAX = 256 << 20 };

/* ---- the cache ---- */

/* What a file starts with; the key and the image follow. Numbers are the machine's own: a file from
 * another one is one that does not match. */
typedef struct header {
    char magic[8];
    uint64_t key_bytes, image_bytes, digest; /* of the image */
} header;

static const char magic[8] = {'c', 'b', 'c', 'u', 'd', 'a', '1', '\n'};

/* The file for this key; false: there is no place for one. Two keys with one digest would take
 * turns: the key itself is in the file. */
static bool cache_path(const cb__buf *key, char path[PATH_BYTES])
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    unsigned long long digest = cb__digest(key->text, key->size);
    int used = -1;
    /* Relative paths are to be ignored (XDG base directory specification 0.8). */
    if (cache && cache[0] == '/')
        used = snprintf(path, PATH_BYTES, "%s/coldbench/cuda/%016llx", cache, digest);
    else if (home && home[0] == '/')
        used = snprintf(path, PATH_BYTES, "%s/.cache/coldbench/cuda/%016llx", home, digest);
    return used > 0 && used < PATH_BYTES;
}

static bool read_all(int fd, size_t bytes, cb__buf *out)
{
    char piece[65536];
    while (out->size < bytes) {
        size_t rest = bytes - out->size;
        ssize_t got = read(fd, piece, rest < sizeof piece ? rest : sizeof piece);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        cb__buf_append(out, piece, (size_t)got);
        if (out->failed)
            return false;
    }
    return true;
}

/* Code runs with our rights: only a file that nobody else can have written is looked at. */
static bool open_cached(const char *path, int *fd, size_t *bytes)
{
    struct stat facts;
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (*fd < 0)
        return false;
    if (fstat(*fd, &facts) || facts.st_uid != geteuid() || (facts.st_mode & (S_IWGRP | S_IWOTH)) ||
        facts.st_size > FILE_BYTES_MAX) {
        close(*fd);
        return false;
    }
    *bytes = (size_t)facts.st_size;
    return true;
}

static bool is_whole(const cb__buf *file, const cb__buf *key, header *head)
{
    if (file->size <= sizeof *head + key->size)
        return false;
    memcpy(head, file->text, sizeof *head);
    const char *image = file->text + sizeof *head + key->size;
    return memcmp(head->magic, magic, sizeof magic) == 0 && head->key_bytes == key->size &&
           head->image_bytes == file->size - sizeof *head - key->size &&
           memcmp(file->text + sizeof *head, key->text, key->size) == 0 &&
           head->digest == cb__digest(image, head->image_bytes);
}

static bool cache_read(const char *path, const cb__buf *key, cb__buf *image)
{
    cb__buf file = CB__BUF_INIT;
    header head;
    size_t bytes;
    int fd;
    if (!open_cached(path, &fd, &bytes))
        return false;
    bool found = read_all(fd, bytes, &file) && is_whole(&file, key, &head);
    if (found)
        cb__buf_append(image, file.text + sizeof head + key->size, head.image_bytes);
    close(fd);
    cb__buf_fini(&file);
    return found && !image->failed;
}

static bool write_all(int fd, const void *from, size_t bytes)
{
    for (const char *at = from; bytes;) {
        ssize_t wrote = write(fd, at, bytes);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return false;
        at += wrote;
        bytes -= (size_t)wrote;
    }
    return true;
}

/* What cannot be made shows when the file is. */
static void make_folders(const char *path)
{
    char folder[PATH_BYTES];
    snprintf(folder, sizeof folder, "%s", path);
    for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(folder, 0700);
        *slash = '/';
    }
}

/* Whole or not at all, as far as readers see; what a crash of the machine leaves is found out by
 * its digest. Without success the next process compiles again, and nothing else happens. */
static void cache_write(const char *path, const cb__buf *key, const cb__buf *image)
{
    char fresh[PATH_BYTES + 8];
    header head = {.key_bytes = key->size,
                   .image_bytes = image->size,
                   .digest = cb__digest(image->text, image->size)};
    memcpy(head.magic, magic, sizeof magic);
    make_folders(path);
    snprintf(fresh, sizeof fresh, "%s.XXXXXX", path);
    int fd = mkostemp(fresh, O_CLOEXEC);
    if (fd < 0)
        return;
    bool written = write_all(fd, &head, sizeof head) && write_all(fd, key->text, key->size) &&
                   write_all(fd, image->text, image->size);
    if (close(fd) || !written || rename(fresh, path))
        unlink(fresh);
}

/* ---- compiling ---- */

void cb__cuda_source_text(const cb__cuda_source *source, cb__buf *out)
{
    for (const char *const *macro = source->macros; macro && *macro; macro++) {
        int name = (int)strcspn(*macro, "=");
        cb__buf_printf(out, "#define %.*s %s\n", name, *macro,
                       (*macro)[name] ? *macro + name + 1 : "");
    }
    cb__buf_puts(out, "#line 1\n");
    cb__buf_puts(out, source->text);
}

enum { OPTIONS = 2 };

static cb_status make_image(const cb__nvrtc *nvrtc, const cb__nvrtc_target *target,
                            const cb__cuda_source *source, cb__buf *image, cb_error *err)
{
    char arch[64], path[PATH_BYTES];
    cb__buf text = CB__BUF_INIT, key = CB__BUF_INIT;
    cb_status status = CB_OK;
    snprintf(arch, sizeof arch, "--gpu-architecture=%s", target->arch);
    const char *const options[OPTIONS] = {arch, "--std=c++17"};
    cb__cuda_source_text(source, &text);
    cb__buf_printf(&key, "NVRTC %d\n", nvrtc->version);
    for (int i = 0; i < OPTIONS; i++)
        cb__buf_printf(&key, "%s\n", options[i]);
    cb__buf_append(&key, cb__buf_text(&text), text.size);
    if (text.failed || key.failed) {
        status =
            cb_error_set(err, CB_NO_MEMORY, "no memory for the source of %.100s", source->name);
        goto out;
    }
    bool has_place = cache_path(&key, path);
    if (has_place && cache_read(path, &key, image))
        goto out;
    cb__buf_clear(image);
    status = cb__nvrtc_compile(nvrtc, source->name, text.text, options, OPTIONS, target->cubin,
                               image, err);
    if (status == CB_OK && has_place)
        cache_write(path, &key, image);
out:
    cb__buf_fini(&text);
    cb__buf_fini(&key);
    return status;
}

/* ---- which compiler ---- */

static cb_status choose(cb__cuda_compiler *compiler, cb__nvrtc_target *target, cb_error *err)
{
    if (!compiler->nvrtc.is_loaded && compiler->missing.status == CB_OK)
        cb__nvrtc_load(compiler->driver, &compiler->nvrtc, &compiler->missing);
    if (!compiler->nvrtc.is_loaded)
        return cb_error_set(err, compiler->missing.status, "%s", compiler->missing.message);
    return cb__nvrtc_choose(&compiler->nvrtc, compiler->driver, compiler->capability, target, err);
}

/* `why`: there is no NVRTC. */
static cb_status take_embedded(const cb__cuda_compiler *compiler, const cb__cuda_source *source,
                               const cb_error *why, cb__buf *image, cb_error *err)
{
    cb__cuda_entry entry;
    if (!cb__cuda_entry_find(&compiler->embedded, source, compiler->capability, &entry))
        return cb_error_set(err, why->status,
                            "%.100s with these constants is not among the code that came compiled: "
                            "%s",
                            source->name, why->message);
    if (compiler->driver && compiler->driver < entry.version)
        return cb_error_set(err, why->status,
                            "the code of %.100s that came compiled needs a driver that serves CUDA "
                            "%d.%d, and this one serves %d.%d: %s",
                            source->name, entry.version / 1000, entry.version % 1000 / 10,
                            compiler->driver / 1000, compiler->driver % 1000 / 10, why->message);
    cb__buf_append(image, entry.ptx, entry.size);
    return image->failed
               ? cb_error_set(err, CB_NO_MEMORY, "no memory for the code of %.100s", source->name)
               : CB_OK;
}

cb_status cb__cuda_compile(cb__cuda_compiler *compiler, const cb__cuda_source *source,
                           cb__buf *image, cb_error *err)
{
    cb_error why = CB_ERROR_INIT;
    cb__nvrtc_target target;
    return choose(compiler, &target, &why) == CB_OK
               ? make_image(&compiler->nvrtc, &target, source, image, err)
               : take_embedded(compiler, source, &why, image, err);
}

void cb__cuda_compiler_text(cb__cuda_compiler *compiler, char *text, size_t size)
{
    const char *named = getenv("COLDBENCH_NVRTC");
    cb_error why = CB_ERROR_INIT;
    cb__nvrtc_target target;
    if (choose(compiler, &target, &why) == CB_OK)
        snprintf(text, size, "NVRTC %d.%d, %s", compiler->nvrtc.version / 1000,
                 compiler->nvrtc.version % 1000 / 10, target.arch);
    else /* a library that was named, and why it is not what compiles */
        snprintf(text, size, "embedded PTX, by the driver (CUDA %d.%d): %s",
                 compiler->driver / 1000, compiler->driver % 1000 / 10,
                 named && *named ? why.message : "no NVRTC serves here");
}
