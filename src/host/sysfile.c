#include "host/sysfile.h"

#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool path_make(char path[PATH_MAX], const char *root, const char *format, va_list args)
{
    int used = snprintf(path, PATH_MAX, "%s", root);
    if (used < 0 || used >= PATH_MAX)
        return false;
    int more = vsnprintf(path + used, (size_t)(PATH_MAX - used), format, args);
    return more >= 0 && more < PATH_MAX - used;
}

static bool read_all(const char *path, cb__buf *out)
{
    cb__buf_clear(out);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    char chunk[4096];
    ssize_t got;
    while ((got = read(fd, chunk, sizeof chunk)) > 0)
        cb__buf_append(out, chunk, (size_t)got);
    close(fd);
    return got == 0 && !out->failed;
}

bool cb__sysfile_read(cb__buf *out, const char *root, const char *path, ...)
{
    char full[PATH_MAX];
    va_list args;
    va_start(args, path);
    bool fits = path_make(full, root, path, args);
    va_end(args);
    return fits && read_all(full, out);
}

bool cb__sysfile_line(char *text, size_t size, const char *root, const char *path, ...)
{
    char full[PATH_MAX];
    va_list args;
    va_start(args, path);
    bool fits = path_make(full, root, path, args);
    va_end(args);
    text[0] = '\0';
    int fd = fits ? open(full, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return false;
    ssize_t got = read(fd, text, size - 1);
    close(fd);
    text[got > 0 ? got : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    return got > 0;
}

bool cb__sysfile_exists(const char *root, const char *path, ...)
{
    char full[PATH_MAX];
    va_list args;
    va_start(args, path);
    bool fits = path_make(full, root, path, args);
    va_end(args);
    return fits && access(full, F_OK) == 0;
}

bool cb__sysfile_value(const char *text, const char *key, char *value, size_t size)
{
    size_t length = strlen(key);
    for (const char *line = text; *line;) {
        const char *end = strchrnul(line, '\n');
        const char *at = line + length;
        if (strncmp(line, key, length) == 0 && (*at == ' ' || *at == '\t' || *at == ':')) {
            at += strspn(at, " \t:");
            size_t n = at < end ? (size_t)(end - at) : 0;
            while (n > 0 && isspace((unsigned char)at[n - 1]))
                n--;
            snprintf(value, size, "%.*s", (int)n, at);
            return true;
        }
        line = *end ? end + 1 : end;
    }
    return false;
}

int cb__cpulist_parse(const char *text, bool *set, int max)
{
    int count = 0;
    memset(set, 0, (size_t)max * sizeof *set);
    while (isdigit((unsigned char)*text)) {
        char *end;
        long first = strtol(text, &end, 10), last = first;
        if (*end == '-')
            last = strtol(end + 1, &end, 10);
        if (last < first || last > INT_MAX - 1)
            return 0;
        count += (int)(last - first + 1);
        for (long cpu = first; cpu <= last && cpu < max; cpu++)
            set[cpu] = true;
        if (*end != ',')
            break;
        text = end + 1;
    }
    return count;
}
