/* memory.h: large regions, huge pages asked for and checked, and how much there is to take. */
#ifndef CB_HOST_MEMORY_H
#define CB_HOST_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "coldbench/status.h"

typedef struct cb__region {
    void *base; /* 2 MiB aligned */
    size_t bytes;
    int fd; /* memory file behind it; -1: private */
} cb__region;

#define CB__REGION_INIT                                                                            \
    {                                                                                              \
        NULL, 0, -1                                                                                \
    }

/* Private zero pages, huge pages asked for (madvise), nothing touched yet. */
cb_status cb__region_private(size_t bytes, cb__region *out, cb_error *err);
/* A memory file of that size, mapped shared, huge pages asked for; other processes map it by fd
 * (inherited, not CLOEXEC when passed through spawn). Untouched. Sealed: no process can change its
 * size, so that no touch of it is ever a bus error. */
cb_status cb__region_shared(const char *name, size_t bytes, cb__region *out, cb_error *err);
/* The same without room for a last huge page, which costs 7 ms to gather where a virtual machine's
 * fresh memory is slow (2 cores of Zen 4, 2026-11): for what nothing is timed on. */
cb_status cb__region_shared_small(const char *name, size_t bytes, cb__region *out, cb_error *err);
/* Maps an existing memory file (its whole size must be at least bytes), 2 MiB aligned, page tables
 * filled in ahead (MADV_POPULATE_READ or touching each page). Takes no ownership of fd: the region
 * gets fd = -1. */
cb_status cb__region_map(int fd, size_t bytes, cb__region *out, cb_error *err);
/* The same with nothing filled in ahead: for the process that will touch the file first. */
cb_status cb__region_map_untouched(int fd, size_t bytes, cb__region *out, cb_error *err);
/* Touches share `part` of `parts` of an untouched region, a huge page at a time, and asks for what
 * first touch did not grant (MADV_COLLAPSE, Linux 6.1, which works for memory files even where
 * shmem_enabled says never). Before anything is written there is next to nothing to copy. Best
 * effort; never in a timed region. */
void cb__region_touch(const cb__region *region, int part, int parts);
/* Moves into huge pages what was not granted; copies what it moves. Best effort. */
void cb__region_collapse(const cb__region *region);
/* No huge pages for what is touched from now on. */
void cb__region_base_pages(const cb__region *region);
void cb__region_fini(cb__region *region); /* unmaps, closes fd; NULL base is fine */

typedef struct cb__pages {
    size_t resident_bytes; /* of the region, mapped in this process */
    size_t huge_bytes;     /* of those, in huge pages (Anon/Shmem/File huge mapped) */
    bool known;            /* false: the kernel does not say (no smaps) */
} cb__pages;
/* What the kernel really granted, from /proc/self/smaps. */
cb__pages cb__region_pages(const cb__region *region);

/* Bytes that can be taken now: the smaller of MemAvailable and what the container's limit leaves
 * (cgroup v1 and v2, every level up to the root). `root` is "" for the real system or a fixture
 * folder that holds proc/ and sys/. */
uint64_t cb__memory_available(const char *root);

#endif
