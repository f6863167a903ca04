#include "host/cgroup.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "host/sysfile.h"

/* Where a hierarchy is mounted and which of its groups the mount shows as its top. */
typedef struct mount {
    char top[PATH_MAX / 2], point[PATH_MAX / 2];
} mount;

/* Called for every level with the folder of the group below the root. */
typedef void (*level_fn)(const char *root, const char *folder, bool v2, void *result);

/* True when the comma-separated list has the word. */
static bool list_has(const char *list, const char *word)
{
    size_t length = strlen(word);
    while (list) {
        if (strncmp(list, word, length) == 0 && (list[length] == ',' || list[length] == '\0'))
            return true;
        list = strchr(list, ',');
        list = list ? list + 1 : NULL;
    }
    return false;
}

/* A line of mountinfo: id parent major:minor TOP POINT options... - TYPE source SUPEROPTIONS. */
static bool mount_parse(char *line, const char *controller, mount *out)
{
    char *tail = strstr(line, " - ");
    char type[32], super[512];
    if (!tail || sscanf(tail + 3, "%31s %*s %511s", type, super) != 2)
        return false;
    bool match = controller ? strcmp(type, "cgroup") == 0 && list_has(super, controller)
                            : strcmp(type, "cgroup2") == 0;
    return match && sscanf(line, "%*s %*s %*s %2047s %2047s", out->top, out->point) == 2;
}

static bool mount_find(const char *root, const char *controller, mount *out)
{
    cb__buf text = CB__BUF_INIT;
    bool found = false;
    if (cb__sysfile_read(&text, root, "/proc/self/mountinfo") && text.text) {
        char *next = text.text;
        for (char *line; !found && (line = strsep(&next, "\n")) != NULL;)
            found = mount_parse(line, controller, out);
    }
    cb__buf_fini(&text);
    return found;
}

/* A line of /proc/self/cgroup: "4:memory,cpu:/path", or "0::/path" for version 2. */
static const char *group_parse(char *line, const char *controller)
{
    char *list = strchr(line, ':');
    char *path = list ? strchr(list + 1, ':') : NULL;
    if (!path)
        return NULL;
    *path = '\0';
    bool match = controller ? list_has(list + 1, controller) : strncmp(line, "0:", 2) == 0;
    return match ? path + 1 : NULL;
}

static bool group_find(const char *root, const char *controller, char *path, size_t size)
{
    cb__buf text = CB__BUF_INIT;
    bool found = false;
    if (cb__sysfile_read(&text, root, "/proc/self/cgroup") && text.text) {
        char *next = text.text;
        for (char *line; !found && (line = strsep(&next, "\n")) != NULL;) {
            const char *group = group_parse(line, controller);
            found = group && (size_t)snprintf(path, size, "%s", group) < size;
        }
    }
    cb__buf_fini(&text);
    return found;
}

/* The part of the group's path below the mount's top. A path outside of it (a container without a
 * cgroup namespace that mounts only its own group) means the top itself. */
static const char *below_top(const char *path, const char *top)
{
    size_t length = strcmp(top, "/") == 0 ? 0 : strlen(top);
    bool inside = strncmp(path, top, length) == 0 && (path[length] == '/' || path[length] == '\0');
    return inside ? path + length : "";
}

/* controller NULL: version 2. */
static void each_level(const char *root, const char *controller, level_fn visit, void *result)
{
    mount where;
    char path[PATH_MAX / 2], folder[PATH_MAX];
    if (!mount_find(root, controller, &where) || !group_find(root, controller, path, sizeof path))
        return;
    size_t point = strlen(where.point);
    snprintf(folder, sizeof folder, "%s%s", where.point, below_top(path, where.top));
    for (;;) {
        size_t length = strlen(folder);
        while (length > point && folder[length - 1] == '/')
            folder[--length] = '\0';
        visit(root, folder, controller == NULL, result);
        char *slash = strrchr(folder, '/');
        if (length <= point || !slash)
            return;
        *slash = '\0';
    }
}

/* A whole file that is one number; "max", -1 and a missing file are no limit. */
static bool read_number(const char *root, const char *folder, const char *file, uint64_t *value)
{
    char text[64], *end;
    if (!cb__sysfile_line(text, sizeof text, root, "%s/%s", folder, file) || text[0] == '-')
        return false;
    uint64_t number = strtoull(text, &end, 10);
    if (end == text)
        return false;
    *value = number;
    return true;
}

static void quota_level(const char *root, const char *folder, bool v2, void *result)
{
    char text[64];
    uint64_t quota = 0, period = 0;
    if (v2) {
        unsigned long long q, p;
        if (cb__sysfile_line(text, sizeof text, root, "%s/cpu.max", folder) &&
            sscanf(text, "%llu %llu", &q, &p) == 2) {
            quota = q;
            period = p;
        }
    } else if (!read_number(root, folder, "cpu.cfs_quota_us", &quota) ||
               !read_number(root, folder, "cpu.cfs_period_us", &period)) {
        return;
    }
    double *least = result;
    double cpus = quota && period ? (double)quota / (double)period : 0;
    if (cpus > 0 && (*least <= 0 || cpus < *least))
        *least = cpus;
}

double cb__cgroup_quota(const char *root)
{
    double least = 0;
    each_level(root, NULL, quota_level, &least);
    each_level(root, "cpu", quota_level, &least);
    return least;
}

static uint64_t stat_number(const char *root, const char *folder, const char *key,
                            uint64_t otherwise)
{
    cb__buf text = CB__BUF_INIT;
    char value[64];
    if (cb__sysfile_read(&text, root, "%s/memory.stat", folder) &&
        cb__sysfile_value(cb__buf_text(&text), key, value, sizeof value))
        otherwise = strtoull(value, NULL, 10);
    cb__buf_fini(&text);
    return otherwise;
}

static uint64_t least_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void memory_level(const char *root, const char *folder, bool v2, void *result)
{
    uint64_t limit = UINT64_MAX, high = UINT64_MAX, used = 0, cache;
    if (v2) {
        /* Past memory.high nothing is refused, but every allocation is slowed down to a crawl. */
        read_number(root, folder, "memory.max", &limit);
        read_number(root, folder, "memory.high", &high);
        read_number(root, folder, "memory.current", &used);
        cache = stat_number(root, folder, "inactive_file", 0);
    } else {
        /* Version 1 says here what the levels say that a container does not see. */
        high = stat_number(root, folder, "hierarchical_memory_limit", UINT64_MAX);
        read_number(root, folder, "memory.limit_in_bytes", &limit);
        read_number(root, folder, "memory.usage_in_bytes", &used);
        cache = stat_number(root, folder, "total_inactive_file", 0);
    }
    limit = least_of(limit, high);
    /* Version 1 spells "no limit" as the largest multiple of a page. */
    if (limit >= (uint64_t)INT64_MAX / 2)
        return;
    used -= least_of(used, cache);
    uint64_t *least = result;
    *least = least_of(*least, limit - least_of(limit, used));
}

uint64_t cb__cgroup_memory_left(const char *root)
{
    uint64_t least = UINT64_MAX;
    each_level(root, NULL, memory_level, &least);
    each_level(root, "memory", memory_level, &least);
    return least;
}
