#include "base/dl.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U /* Linux 6.3: asks for an executable file where the default is not one */
#endif

enum { PATH_BYTES = 4096, WORDS_BYTES = 300 };

static const char *dl_words(void)
{
    const char *words = dlerror();
    return words ? words : "no reason given";
}

/* A cb__dl is the handle of dlopen itself. */
cb_status cb__dl_open(const char *path, cb__dl **out, cb_error *err)
{
    *out = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!*out)
        return cb_error_set(err, CB_UNAVAILABLE, "cannot load library '%s': %s", path, dl_words());
    return CB_OK;
}

static bool write_all(int fd, const char *bytes, size_t size)
{
    while (size) {
        ssize_t wrote = write(fd, bytes, size);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return false;
        bytes += wrote;
        size -= (size_t)wrote;
    }
    return true;
}

/* The loader knows libraries by name, and a descriptor's number is used again after close: without
 * a new spelling of the path a second load would get the first image. Only the owner of the
 * descriptor uses names with its number, so looking first is no race. */
static bool unused_name(int fd, char path[PATH_BYTES])
{
    size_t dots = (size_t)snprintf(path, PATH_BYTES, "/proc/self/fd/%d", fd);
    char number[16];
    snprintf(number, sizeof number, "%d", fd);
    dots -= strlen(number);
    for (void *loaded; (loaded = dlopen(path, RTLD_LAZY | RTLD_NOLOAD));) {
        dlclose(loaded);
        if (dots + 2 + sizeof number > PATH_BYTES)
            return false;
        snprintf(path + dots, PATH_BYTES - dots, "./%s", number);
        dots += 2;
    }
    dlerror(); /* "not loaded" is not an error to be reported */
    return true;
}

static cb__dl *load_from_memory(const char *name, const void *bytes, size_t size, char *why)
{
    char path[PATH_BYTES], shown[200];
    cb__dl *library = NULL;
    snprintf(shown, sizeof shown, "%s", name); /* the kernel refuses names over 249 bytes */
    int fd = memfd_create(shown, MFD_CLOEXEC | MFD_EXEC);
    if (fd < 0 && errno == EINVAL)
        fd = memfd_create(shown, MFD_CLOEXEC);
    if (fd < 0) {
        snprintf(why, WORDS_BYTES, "memory file: %s", strerror(errno));
        return NULL;
    }
    if (!write_all(fd, bytes, size))
        snprintf(why, WORDS_BYTES, "memory file: %s", strerror(errno));
    else if (!unused_name(fd, path))
        snprintf(why, WORDS_BYTES, "memory file: too many images are loaded");
    else if (!(library = dlopen(path, RTLD_NOW | RTLD_LOCAL)))
        snprintf(why, WORDS_BYTES, "memory file: %s", dl_words());
    close(fd);
    return library;
}

/* Creates every folder of `path`; what cannot be created shows when a file is. */
static void make_folders(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
}

/* A new file of ours alone, from the first of the cache folder and /tmp that takes one. */
static int private_file(char path[PATH_BYTES])
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    const char *file = "coldbench/module-XXXXXX";
    int used = PATH_BYTES;
    if (cache && cache[0] == '/')
        used = snprintf(path, PATH_BYTES, "%s/%s", cache, file);
    else if (home && home[0] == '/')
        used = snprintf(path, PATH_BYTES, "%s/.cache/%s", home, file);
    if (used < PATH_BYTES) {
        make_folders(path);
        int fd = mkostemp(path, O_CLOEXEC);
        if (fd >= 0)
            return fd;
    }
    snprintf(path, PATH_BYTES, "/tmp/coldbench-module-XXXXXX");
    return mkostemp(path, O_CLOEXEC);
}

static cb__dl *load_from_file(const void *bytes, size_t size, char *why)
{
    char path[PATH_BYTES];
    cb__dl *library = NULL;
    int fd = private_file(path);
    if (fd < 0) {
        snprintf(why, WORDS_BYTES, "file %.200s: %s", path, strerror(errno));
        return NULL;
    }
    bool written = write_all(fd, bytes, size);
    int error = errno;
    if (close(fd) && written) {
        written = false;
        error = errno;
    }
    if (!written)
        snprintf(why, WORDS_BYTES, "file %.200s: %s", path, strerror(error));
    else if (!(library = dlopen(path, RTLD_NOW | RTLD_LOCAL)))
        snprintf(why, WORDS_BYTES, "file: %s", dl_words());
    unlink(path);
    return library;
}

static bool within(uint64_t offset, uint64_t length, size_t size)
{
    return offset <= size && length <= size - offset;
}

/* What is wrong with the bytes as a shared object; NULL: nothing that can be told without loading.
 * The loader maps what the headers promise, and a file that was cut then ends it with SIGBUS. */
static const char *fault_of(const unsigned char *bytes, size_t size)
{
    ElfW(Ehdr) head;
    ElfW(Phdr) segment;
    if (size < sizeof head || memcmp(bytes, ELFMAG, SELFMAG))
        return "are not a shared object";
    memcpy(&head, bytes, sizeof head);
    if (head.e_ident[EI_CLASS] != (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) ||
        head.e_type != ET_DYN || head.e_phentsize != sizeof segment)
        return "are not a shared object of this machine";
    if (!within(head.e_phoff, (uint64_t)head.e_phnum * sizeof segment, size))
        return "are a shared object that was cut";
    for (size_t i = 0; i < head.e_phnum; i++) {
        memcpy(&segment, bytes + head.e_phoff + i * sizeof segment, sizeof segment);
        if (!within(segment.p_offset, segment.p_filesz, size))
            return "are a shared object that was cut";
    }
    return NULL;
}

cb_status cb__dl_open_bytes(const char *name, const void *bytes, size_t size, cb__dl **out,
                            cb_error *err)
{
    char memory_why[WORDS_BYTES], file_why[WORDS_BYTES];
    *out = NULL;
    const char *fault = fault_of(bytes, size);
    if (fault)
        return cb_error_set(err, CB_UNAVAILABLE, "cannot load module '%s': its %zu bytes %s", name,
                            size, fault);
    *out = load_from_memory(name, bytes, size, memory_why);
    if (!*out)
        *out = load_from_file(bytes, size, file_why);
    if (!*out)
        return cb_error_set(err, CB_UNAVAILABLE, "cannot load module '%s': %s; %s", name,
                            memory_why, file_why);
    return CB_OK;
}

void *cb__dl_symbol(cb__dl *library, const char *name)
{
    return dlsym(library, name);
}

void cb__dl_close(cb__dl *library)
{
    if (library)
        dlclose(library);
}
