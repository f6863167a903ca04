#include "host/descriptors.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The kernel's record; opendir would allocate, which is not safe after fork. */
struct directory_entry {
    uint64_t inode;
    int64_t offset;
    unsigned short bytes;
    unsigned char type;
    char name[];
};

static void mark(int first, const char *name)
{
    char *end;
    long fd = strtol(name, &end, 10);
    if (end != name && *end == '\0' && fd >= first)
        fcntl((int)fd, F_SETFD, FD_CLOEXEC);
}

static int mark_listed(int first)
{
    _Alignas(struct directory_entry) char entries[4096];
    int folder = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return -1;
    long got;
    while ((got = syscall(SYS_getdents64, folder, entries, sizeof entries)) > 0) {
        for (long at = 0; at < got;) {
            const struct directory_entry *entry = (const void *)(entries + at);
            mark(first, entry->name);
            at += entry->bytes;
        }
    }
    close(folder);
    return got < 0 ? -1 : 0;
}

int cb__descriptors_cloexec(int first)
{
    if (close_range((unsigned)first, ~0u, CLOSE_RANGE_CLOEXEC) == 0)
        return 0;
    return mark_listed(first);
}
