/* What another build made: whether it is of its sources, and what a program of it holds. */
#include <errno.h>
#include <fts.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "gate/build.h"
#include "host/clock.h"
#include "host/spawn.h"

#define EXPORT_NS UINT64_C(30000000000)

cb_status cb__program_export(const char *program, const char *folder, cb_error *err)
{
    char path[520], verb[] = "kernels", option[] = "--export", to[512];
    snprintf(path, sizeof path, "%s%s", strchr(program, '/') ? "" : "./", program);
    snprintf(to, sizeof to, "%s", folder);
    char *const argv[] = {path, verb, option, to, NULL};
    cb__child child;
    cb_error end = CB_ERROR_INIT;
    cb__buf line = CB__BUF_INIT;
    cb_status status = cb__spawn(argv, NULL, NULL, 0, &child, err);
    if (status != CB_OK)
        return status;
    uint64_t deadline_ns = cb__clock_ns() + EXPORT_NS;
    do
        status = cb__child_line(&child, deadline_ns, NULL, &line, &end);
    while (status == CB_OK);
    cb__child_end(&child, 0);
    cb__buf_fini(&line);
    if (status == CB_CRASHED && WIFEXITED(child.wait_status)) {
        int code = WEXITSTATUS(child.wait_status);
        if (code == 0)
            return CB_OK;
        if (code == cb_status_exit(CB_IO))
            return cb_error_set(err, CB_IO, "%s kernels --export could not write to %s", program,
                                folder);
    }
    return cb_error_set(err, CB_USAGE,
                        "%s kernels --export failed: %s; a build from before that option cannot be "
                        "gated as a program, its modules/ folder can",
                        program, end.message);
}

/* ---- stale ---- */

/* The source folder that CMake has noted in the build folder; false: it is none. */
static bool source_folder(const char *folder, char *source, size_t size)
{
    char path[PATH_MAX + 20], line[1024];
    static const char key[] = "CMAKE_HOME_DIRECTORY:INTERNAL=";
    bool found = false;
    snprintf(path, sizeof path, "%s/CMakeCache.txt", folder);
    FILE *cache = fopen(path, "re");
    while (cache && !found && fgets(line, sizeof line, cache)) {
        line[strcspn(line, "\n")] = '\0';
        found = strncmp(line, key, sizeof key - 1) == 0;
        if (found)
            snprintf(source, size, "%.500s", line + sizeof key - 1);
    }
    if (cache)
        fclose(cache);
    return found;
}

static bool newer(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec > b->tv_nsec;
}

/* As cmake/build_info.cmake: hidden files and editors' back-ups are no source. */
static bool is_source(const FTSENT *entry)
{
    return entry->fts_info == FTS_F && entry->fts_name[0] != '.' &&
           entry->fts_name[entry->fts_namelen - 1] != '~';
}

/* A source of the program that is newer than `built`; false: none. */
static bool newer_source(const char *root, const struct timespec *built, char *name, size_t size)
{
    static const char *const parts[] = {"src", "cli", "include", "cmake", "CMakeLists.txt"};
    enum { NPARTS = sizeof parts / sizeof *parts };
    char paths[NPARTS][640];
    char *list[NPARTS + 1] = {NULL};
    bool found = false;
    for (int i = 0; i < NPARTS; i++) {
        snprintf(paths[i], sizeof paths[i], "%s/%s", root, parts[i]);
        list[i] = paths[i];
    }
    FTS *tree = fts_open(list, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    for (FTSENT *e = tree ? fts_read(tree) : NULL; e && !found; e = fts_read(tree)) {
        found = is_source(e) && newer(&e->fts_statp->st_mtim, built);
        if (found)
            snprintf(name, size, "%s", e->fts_path);
    }
    if (tree)
        fts_close(tree);
    return found;
}

static cb_status stale(const char *what, const char *source, const char *folder, cb_error *err)
{
    return cb_error_set(err, CB_USAGE,
                        "%s is a stale build, older than its source %s; rebuild it: "
                        "cmake --build %s",
                        what, source, folder);
}

/* The folder that a file stands in. */
static void folder_of(const char *path, char *folder, size_t size)
{
    const char *slash = strrchr(path, '/');
    snprintf(folder, size, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
}

cb_status cb__program_is_fresh(const char *program, cb_error *err)
{
    char folder[520], root[512], name[640];
    struct stat info;
    folder_of(program, folder, sizeof folder);
    if (stat(program, &info) != 0)
        return cb_error_set(err, CB_USAGE, "%s: %s", program, strerror(errno));
    if (!source_folder(folder, root, sizeof root) ||
        !newer_source(root, &info.st_mtim, name, sizeof name))
        return CB_OK;
    return stale(program, name, folder, err);
}

cb_status cb__module_is_fresh(const char *module, const char *name, cb_error *err)
{
    char folder[520], build[PATH_MAX], root[512], path[PATH_MAX + 640], line[600];
    struct stat built, source;
    cb_status status = CB_OK;
    folder_of(module, folder, sizeof folder);
    snprintf(path, sizeof path, "%s/..", folder);
    if (!realpath(path, build))
        return CB_OK;
    snprintf(path, sizeof path, "%s/generated/module_%s_source.txt", build, name);
    FILE *list = fopen(path, "re");
    if (!list)
        return CB_OK;
    bool known = stat(module, &built) == 0 && source_folder(build, root, sizeof root);
    while (known && status == CB_OK && fgets(line, sizeof line, list)) {
        line[strcspn(line, "\n")] = '\0';
        snprintf(path, sizeof path, "%s/%s", root, line);
        if (*line && stat(path, &source) == 0 && newer(&source.st_mtim, &built.st_mtim))
            status = stale(module, path, build, err);
    }
    fclose(list);
    return status;
}
