#include "host/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/cgroup.h"
#include "host/sysfile.h"

static const size_t huge_bytes = (size_t)2 << 20;

/* Linux 6.1 and 5.14; headers of Debian 12 and glibc 2.36 may be older than the kernel. */
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* What a region of that size takes of the address space, guards left out: whole huge pages, so that
 * its tail can be one too. */
static size_t span_bytes(size_t bytes)
{
    return (bytes + huge_bytes - 1) & ~(huge_bytes - 1);
}

/* Reserves an aligned span with one inaccessible page before and after. The guards keep the
 * kernel from merging two regions into one mapping, whose smaps entry would then count both. */
static cb_status reserve(size_t bytes, void **base, cb_error *err)
{
    if (bytes == 0 || bytes > SIZE_MAX / 2)
        return cb_error_set(err, CB_USAGE, "a region cannot have %zu bytes", bytes);
    size_t page = page_bytes(), span = span_bytes(bytes);
    size_t whole = span + 2 * huge_bytes;
    char *start = mmap(NULL, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED)
        return cb_error_set(err, CB_NO_MEMORY,
                            "cannot reserve %zu bytes of address space for %zu of memory: %s",
                            whole, bytes, strerror(errno));
    char *aligned = (char *)(((uintptr_t)start + huge_bytes) & ~(uintptr_t)(huge_bytes - 1));
    char *first = aligned - page, *last = aligned + span + page;
    if (first > start)
        munmap(start, (size_t)(first - start));
    if (start + whole > last)
        munmap(last, (size_t)(start + whole - last));
    *base = aligned;
    return CB_OK;
}

static void unreserve(void *base, size_t bytes)
{
    size_t page = page_bytes();
    munmap((char *)base - page, span_bytes(bytes) + 2 * page);
}

/* Maps `length` bytes into a fresh reservation for `bytes`. */
static cb_status place(int fd, size_t bytes, size_t length, cb__region *out, cb_error *err)
{
    void *base = NULL;
    cb_status status = reserve(bytes, &base, err);
    if (status != CB_OK)
        return status;
    int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
    if (mmap(base, length, PROT_READ | PROT_WRITE, flags | MAP_FIXED, fd, 0) == MAP_FAILED) {
        int failed = errno;
        unreserve(base, bytes);
        return cb_error_set(err, CB_NO_MEMORY, "cannot map %zu bytes: %s", bytes, strerror(failed));
    }
    /* Refusal is an answer that cb__region_pages reports, not an error. */
    madvise(base, length, MADV_HUGEPAGE);
    out->base = base;
    out->bytes = bytes;
    out->fd = -1;
    return CB_OK;
}

cb_status cb__region_private(size_t bytes, cb__region *out, cb_error *err)
{
    *out = (cb__region)CB__REGION_INIT;
    return place(-1, bytes, span_bytes(bytes), out, err);
}

static cb_status shared(const char *name, size_t bytes, size_t size, cb__region *out, cb_error *err)
{
    *out = (cb__region)CB__REGION_INIT;
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return cb_error_set(err, CB_NO_MEMORY, "cannot create memory file '%s': %s", name,
                            strerror(errno));
    cb_status status;
    if (ftruncate(fd, (off_t)size) != 0)
        status = cb_error_set(err, CB_NO_MEMORY, "cannot size memory file '%s' to %zu bytes: %s",
                              name, bytes, strerror(errno));
    else if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
        status = cb_error_set(err, CB_UNAVAILABLE, "cannot seal memory file '%s': %s", name,
                              strerror(errno));
    else
        status = place(fd, bytes, size, out, err);
    if (status == CB_OK)
        out->fd = fd;
    else
        close(fd);
    return status;
}

cb_status cb__region_shared(const char *name, size_t bytes, cb__region *out, cb_error *err)
{
    return shared(name, bytes, span_bytes(bytes), out, err);
}

cb_status cb__region_shared_small(const char *name, size_t bytes, cb__region *out, cb_error *err)
{
    size_t page = page_bytes();
    return shared(name, bytes, (bytes + page - 1) / page * page, out, err);
}

/* Fills page tables ahead; kernels before 5.14 need the touches. */
static void populate(const cb__region *region, size_t length)
{
    if (madvise(region->base, length, MADV_POPULATE_READ) == 0)
        return;
    const volatile char *bytes = region->base;
    for (size_t at = 0; at < length; at += page_bytes())
        (void)bytes[at];
}

static cb_status map_file(int fd, size_t bytes, bool ahead, cb__region *out, cb_error *err)
{
    *out = (cb__region)CB__REGION_INIT;
    struct stat info;
    if (fstat(fd, &info) != 0)
        return cb_error_set(err, CB_IO, "cannot read the size of descriptor %d: %s", fd,
                            strerror(errno));
    size_t size = info.st_size > 0 ? (size_t)info.st_size : 0;
    if (size < bytes)
        return cb_error_set(err, CB_IO, "descriptor %d has %zu bytes, needed %zu", fd, size, bytes);
    /* Nothing is mapped past the file's end, where a touch is a bus error. */
    size_t page = page_bytes(), length = span_bytes(bytes);
    if (length > size)
        length = (size + page - 1) / page * page;
    cb_status status = place(fd, bytes, length, out, err);
    if (status != CB_OK)
        return status;
    if (ahead) {
        cb__region_collapse(out);
        populate(out, length);
    }
    return CB_OK;
}

cb_status cb__region_map(int fd, size_t bytes, cb__region *out, cb_error *err)
{
    return map_file(fd, bytes, true, out, err);
}

cb_status cb__region_map_untouched(int fd, size_t bytes, cb__region *out, cb_error *err)
{
    return map_file(fd, bytes, false, out, err);
}

void cb__region_touch(const cb__region *region, int part, int parts)
{
    size_t pages = region->bytes / huge_bytes;
    size_t end = pages * (size_t)(part + 1) / (size_t)parts;
    for (size_t i = pages * (size_t)part / (size_t)parts; i < end; i++) {
        char *page = (char *)region->base + i * huge_bytes;
        *(volatile char *)page = 0;
        madvise(page, huge_bytes, MADV_COLLAPSE);
    }
}

void cb__region_base_pages(const cb__region *region)
{
    madvise(region->base, span_bytes(region->bytes), MADV_NOHUGEPAGE);
}

void cb__region_collapse(const cb__region *region)
{
    if (region->base)
        madvise(region->base, span_bytes(region->bytes), MADV_COLLAPSE);
}

void cb__region_fini(cb__region *region)
{
    if (region->base)
        unreserve(region->base, region->bytes);
    if (region->fd >= 0)
        close(region->fd);
    *region = (cb__region)CB__REGION_INIT;
}

/* "Name:   123 kB" -> bytes, or 0 for another name. */
static size_t smaps_bytes(const char *line, const char *name)
{
    size_t length = strlen(name);
    if (strncmp(line, name, length) != 0 || line[length] != ':')
        return 0;
    return (size_t)strtoull(line + length + 1, NULL, 10) * 1024;
}

/* Whether the line opens a mapping ("7f00-7f20 rw-p ..."), and if so whether it lies in the region.
 */
static bool smaps_header(const char *line, const cb__region *region, bool *inside)
{
    unsigned long first, last;
    char dash, space;
    if (sscanf(line, "%lx%c%lx%c", &first, &dash, &last, &space) != 4 || dash != '-' ||
        space != ' ')
        return false;
    uintptr_t base = (uintptr_t)region->base;
    *inside = first >= base && last <= base + span_bytes(region->bytes);
    return true;
}

cb__pages cb__region_pages(const cb__region *region)
{
    cb__pages pages = {0};
    FILE *smaps = region->base ? fopen("/proc/self/smaps", "re") : NULL;
    if (!smaps)
        return pages;
    char line[512];
    bool inside = false;
    while (fgets(line, sizeof line, smaps)) {
        if (smaps_header(line, region, &inside) || !inside)
            continue;
        pages.known = true;
        pages.resident_bytes += smaps_bytes(line, "Rss");
        pages.huge_bytes += smaps_bytes(line, "AnonHugePages");
        pages.huge_bytes += smaps_bytes(line, "ShmemPmdMapped");
        pages.huge_bytes += smaps_bytes(line, "FilePmdMapped");
    }
    fclose(smaps);
    /* The span's tail past the region belongs to nobody's figures. */
    if (pages.resident_bytes > region->bytes)
        pages.resident_bytes = region->bytes;
    if (pages.huge_bytes > region->bytes)
        pages.huge_bytes = region->bytes;
    return pages;
}

uint64_t cb__memory_available(const char *root)
{
    cb__buf text = CB__BUF_INIT;
    char value[64];
    uint64_t available = 0;
    if (cb__sysfile_read(&text, root, "/proc/meminfo")) {
        /* MemAvailable came with Linux 3.14; some container file systems leave it out. */
        if (cb__sysfile_value(cb__buf_text(&text), "MemAvailable", value, sizeof value) ||
            cb__sysfile_value(cb__buf_text(&text), "MemFree", value, sizeof value))
            available = strtoull(value, NULL, 10) * 1024;
    }
    cb__buf_fini(&text);
    uint64_t left = cb__cgroup_memory_left(root);
    return left < available ? left : available;
}
