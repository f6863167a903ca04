#include "model/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "device/device.h"

enum { PATH_BYTES = 4096, SHOWN = 400, NAMES_TRIED = 64 };

bool cb__model_identity_ok(const char *identity)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789._-";
    return *identity && !identity[strspn(identity, allowed)];
}

cb_status cb__model_path(const char *identity, char *path, size_t size, cb_error *err)
{
    const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    int used;
    if (!cb__model_identity_ok(identity))
        return cb_error_set(err, CB_INTERNAL,
                            "'%.100s' identifies a device, but cannot name a file (letters, "
                            "digits, '.', '_' and '-')",
                            identity);
    /* Relative paths are to be ignored (XDG base directory specification 0.8). */
    if (data && data[0] == '/')
        used = snprintf(path, size, "%s/coldbench/models/%s.json", data, identity);
    else if (home && home[0] == '/')
        used = snprintf(path, size, "%s/.local/share/coldbench/models/%s.json", home, identity);
    else
        return cb_error_set(err, CB_UNAVAILABLE,
                            "there is no place for models: neither XDG_DATA_HOME nor HOME is an "
                            "absolute path");
    if (used < 0 || (size_t)used >= size)
        return cb_error_set(err, CB_UNAVAILABLE,
                            "there is no place for models: the path of XDG_DATA_HOME or HOME is "
                            "too long");
    return CB_OK;
}

/* ---- storing ---- */

static cb_status make_folders(const char *path, mode_t mode, cb_error *err)
{
    char folder[PATH_BYTES];
    struct stat facts;
    snprintf(folder, sizeof folder, "%s", path);
    for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        int error = mkdir(folder, mode) ? errno : 0;
        /* Some file systems refuse to make a folder before they see that it is there. */
        if (error && (stat(folder, &facts) || !S_ISDIR(facts.st_mode)))
            return cb_error_set(err, CB_IO, "cannot make folder %.*s: %s", SHOWN, folder,
                                strerror(error == EEXIST ? ENOTDIR : error));
        *slash = '/';
    }
    return CB_OK;
}

/* A new file beside `path`, so that putting it in place crosses no file system. */
static int new_file(const char *path, char name[PATH_BYTES + 32])
{
    int fd = -1;
    for (int i = 0; i < NAMES_TRIED && fd < 0; i++) {
        snprintf(name, PATH_BYTES + 32, "%s.%ld-%d.tmp", path, (long)getpid(), i);
        fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST)
            break;
    }
    return fd;
}

static bool write_all(int fd, const char *bytes, size_t size)
{
    while (size) {
        ssize_t wrote = write(fd, bytes, size);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0)
            return false;
        bytes += wrote;
        size -= (size_t)wrote;
    }
    return true;
}

static cb_status put_file(const char *path, const cb__buf *text, cb_error *err)
{
    char name[PATH_BYTES + 32];
    int fd = new_file(path, name);
    if (fd < 0)
        return cb_error_set(err, CB_IO, "cannot write a file beside %.*s: %s", SHOWN, path,
                            strerror(errno));
    bool written = write_all(fd, text->text, text->size) && !fsync(fd);
    int error = errno;
    if (close(fd) && written) {
        written = false;
        error = errno;
    }
    cb_status status = CB_OK;
    if (!written)
        status = cb_error_set(err, CB_IO, "writing %.*s: %s", SHOWN, name, strerror(error));
    else if (rename(name, path))
        status = cb_error_set(err, CB_IO, "cannot put the model at %.*s: %s", SHOWN, path,
                              strerror(errno));
    if (status != CB_OK)
        unlink(name);
    return status;
}

/* A model that its own reader refuses must not take the place of one that works. */
static cb_status read_back(const cb_model *model, const cb__buf *text, cb_error *err)
{
    cb_error fault = CB_ERROR_INIT;
    cb_model *again = NULL;
    cb_status status =
        cb__model_read_text(text->text, text->size, "a new model", model->identity, &again, &fault);
    cb_model_free(again);
    if (status == CB_OK)
        return CB_OK;
    return cb_error_set(err, status == CB_UNAVAILABLE ? CB_INTERNAL : status, "not stored: %s",
                        fault.message);
}

cb_status cb__model_place_check(const char *path, cb_error *err)
{
    char name[PATH_BYTES + 32];
    struct stat facts;
    if (strlen(path) >= PATH_BYTES)
        return cb_error_set(err, CB_IO, "%.*s...: the path is too long", SHOWN, path);
    cb_status status = make_folders(path, 0700, err);
    if (status == CB_OK && (!stat(path, &facts) && S_ISDIR(facts.st_mode)))
        status =
            cb_error_set(err, CB_IO, "cannot put a model at %.*s: it is a folder", SHOWN, path);
    if (status != CB_OK)
        return status;
    int fd = new_file(path, name);
    if (fd < 0)
        return cb_error_set(err, CB_IO, "cannot write a file beside %.*s: %s", SHOWN, path,
                            strerror(errno));
    close(fd);
    unlink(name);
    return CB_OK;
}

cb_status cb__model_store(const cb_model *model, const char *path, cb_error *err)
{
    char place[PATH_BYTES];
    cb__buf text = CB__BUF_INIT;
    cb_status status = CB_OK;
    /* What is below the home is its owner's, as the XDG specification wants it. */
    mode_t mode = path ? 0755 : 0700;
    if (!path)
        status = cb__model_path(model->identity, place, sizeof place, err);
    else if (snprintf(place, sizeof place, "%s", path) >= (int)sizeof place)
        status = cb_error_set(err, CB_IO, "%.*s...: the path is too long", SHOWN, path);
    if (status == CB_OK)
        cb__model_write_text(model, &text);
    if (text.failed)
        status = cb_error_set(err, CB_NO_MEMORY, "no memory for the text of a model");
    if (status == CB_OK)
        status = read_back(model, &text, err);
    if (status == CB_OK)
        status = make_folders(place, mode, err);
    if (status == CB_OK)
        status = put_file(place, &text, err);
    cb__buf_fini(&text);
    return status;
}

/* ---- loading ---- */

/* All of the file, or one byte more than a model may have. */
static cb_status read_all(int fd, const char *path, cb__buf *out, cb_error *err)
{
    char piece[65536];
    ssize_t got = 1;
    while (got && out->size <= CB__MODEL_BYTES_MAX) {
        got = read(fd, piece, sizeof piece);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return cb_error_set(err, CB_IO, "reading model %.*s: %s", SHOWN, path, strerror(errno));
        cb__buf_append(out, piece, (size_t)got);
    }
    return out->failed ? cb_error_set(err, CB_NO_MEMORY, "no memory for model %.*s", SHOWN, path)
                       : CB_OK;
}

static cb_status open_model(const char *path, int *fd, cb_error *err)
{
    struct stat facts;
    /* A pipe of that name must not make anybody wait. */
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (*fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return cb_error_set(err, CB_UNAVAILABLE, "there is no model %.*s; run coldbench probe",
                            SHOWN, path);
    if (*fd < 0)
        return cb_error_set(err, CB_UNAVAILABLE, "cannot read model %.*s: %s; run coldbench probe",
                            SHOWN, path, strerror(errno));
    if (fstat(*fd, &facts) || !S_ISREG(facts.st_mode))
        return cb_error_set(err, CB_UNAVAILABLE, "model %.*s is not a file; run coldbench probe",
                            SHOWN, path);
    return CB_OK;
}

cb_status cb__model_load(const char *path, const char *identity, cb_model **out, cb_error *err)
{
    char place[PATH_BYTES], what[SHOWN + 8];
    cb__buf text = CB__BUF_INIT;
    cb_status status = CB_OK;
    int fd = -1;
    *out = NULL;
    if (!path) {
        status = cb__model_path(identity, place, sizeof place, err);
        path = place;
    }
    if (status == CB_OK)
        status = open_model(path, &fd, err);
    if (status == CB_OK)
        status = read_all(fd, path, &text, err);
    if (status == CB_OK) {
        snprintf(what, sizeof what, "model %.*s", SHOWN, path);
        status = cb__model_read_text(cb__buf_text(&text), text.size, what, identity, out, err);
    }
    if (fd >= 0)
        close(fd);
    cb__buf_fini(&text);
    return status;
}

static cb_status open_device(const char *path, const char *device, cb_model **out, cb_error *err)
{
    const cb__backend *backend = NULL;
    const char *script = NULL;
    char identity[64];
    *out = NULL;
    cb_status status = cb__backend_find(device, &backend, &script, err);
    if (status == CB_OK)
        status = backend->identify(script, identity, err);
    if (status != CB_OK)
        return status;
    status = cb__model_load(path, identity, out, err);
    if (strcmp(device, "cpu") != 0) /* then "run coldbench probe" needs the name too */
        cb_error_prefix(err, "device %.100s", device);
    return status;
}

cb_status cb_model_open(const char *device, cb_model **out, cb_error *err)
{
    return open_device(NULL, device, out, err);
}

cb_status cb_model_open_file(const char *path, const char *device, cb_model **out, cb_error *err)
{
    return open_device(path, device, out, err);
}
