/* Where rounds of functions are measured: in fresh copies of the program, or in one forked copy of
 * this process. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "coldbench/random.h"
#include "compare/library.h"
#include "host/clock.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U /* Linux 6.3: asks for an executable file where the default is not one */
#endif

enum { JUNK_PAGES_MAX = 32, FDS_MAX = 64 };

/* ---- a forked copy of this process ---- */

/* What the program does about signals is for its own process. */
static int serve_here(void *arg)
{
    static const int fatal[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGALRM};
    cb__round_source *source = arg;
    int in, out;
    for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++)
        signal(fatal[i], SIG_DFL);
    signal(SIGPIPE, SIG_IGN);
    FILE *from = cb__ends_take(&in, &out) ? fdopen(in, "r") : NULL;
    return from ? cb__worker_serve(from, out, source->functions) : 3;
}

static cb_status start_forked(cb__round_source *source, const cb__asker *asker, cb__worker *out,
                              cb_error *err)
{
    cb_status status = CB_OK;
    if (source->alive)
        *out = source->worker;
    else
        status = cb__spawn_fork(serve_here, source, &out->child, err);
    source->alive = false; /* the caller has it */
    out->asker = asker;
    return status;
}

/* ---- a fresh copy of the program ---- */

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

/* Which physical pages the copy gets is left to chance: some are taken first. */
static bool write_elsewhere(int fd, const char *bytes, size_t size, uint64_t word)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), junk_bytes = (1 + word % JUNK_PAGES_MAX) * page;
    char *junk = mmap(NULL, junk_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (junk == MAP_FAILED)
        return false;
    for (size_t i = 0; i < junk_bytes; i += page)
        junk[i] = 1;
    bool written = write_all(fd, bytes, size);
    int failed = errno;
    munmap(junk, junk_bytes);
    errno = failed;
    return written;
}

static cb_status copy_program(uint64_t word, int *out, cb_error *err)
{
    struct stat info = {0};
    int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    void *bytes = MAP_FAILED;
    if (from >= 0 && fstat(from, &info) == 0)
        bytes = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, from, 0);
    int to = memfd_create(CB__PROGRAM_COPY, MFD_CLOEXEC | MFD_EXEC);
    if (to < 0 && errno == EINVAL)
        to = memfd_create(CB__PROGRAM_COPY, MFD_CLOEXEC);
    bool copied =
        bytes != MAP_FAILED && to >= 0 && write_elsewhere(to, bytes, (size_t)info.st_size, word);
    int failed = errno;
    if (bytes != MAP_FAILED)
        munmap(bytes, (size_t)info.st_size);
    if (from >= 0)
        close(from);
    if (!copied && to >= 0)
        close(to);
    *out = to;
    return copied ? CB_OK
                  : cb_error_set(err, CB_UNAVAILABLE, "cannot copy this program to memory: %s",
                                 strerror(failed));
}

/* The copy has come through main to the comparison. Until then nothing says anything about the
 * functions. */
static cb_status await_arrival(const cb__round_source *source, cb__worker *worker, cb_error *err)
{
    cb__buf line = CB__BUF_INIT;
    cb_error why = CB_ERROR_INIT;
    uint64_t deadline_ns = cb__clock_ns() + (uint64_t)(worker->asker->silence_s * 1e9);
    cb_status status =
        cb__child_line(&worker->child, deadline_ns, worker->asker->stop, &line, &why);
    cb__buf_fini(&line);
    if (status == CB_OK)
        return CB_OK;
    cb__worker_end(worker, false);
    if (status == CB_INTERRUPTED || status == CB_NO_MEMORY)
        return cb_error_set(err, status, "%s", why.message);
    return cb_error_set(err, CB_USAGE,
                        "a copy of this program did not come to the comparison of '%s' with '%s': "
                        "it %s. Before that call main must do the same each time it is run",
                        source->names[0], source->names[1], why.message);
}

/* `environment` and where the story is. The caller frees the array. */
static char **round_environment(char *const *environment, char *variable)
{
    size_t n = 0;
    while (environment[n])
        n++;
    char **all = calloc(n + 2, sizeof *all);
    if (!all)
        return NULL;
    memcpy(all, environment, n * sizeof *all);
    all[n] = variable;
    return all;
}

static cb_status start_fresh(cb__round_source *source, const cb__asker *asker,
                             char *const *environment, const int *fds, int nfds, cb__worker *out,
                             cb_error *err)
{
    char variable[64], path[64];
    int all_fds[FDS_MAX], program = -1;
    uint64_t word = cb_random(source->seed, 0x70726f67u, 0, (uint64_t)source->copies++);
    cb_status status = copy_program(word, &program, err);
    if (status != CB_OK)
        return status;
    snprintf(variable, sizeof variable, CB__ROUND_VARIABLE "=%d", source->story);
    snprintf(path, sizeof path, "/proc/self/fd/%d", program);
    char **all = environment ? round_environment(environment, variable) : NULL;
    if (!all || nfds >= FDS_MAX)
        status = cb_error_set(err, CB_NO_MEMORY, "no memory for a round");
    if (status == CB_OK) {
        memcpy(all_fds, fds, (size_t)nfds * sizeof *fds);
        all_fds[nfds] = source->story;
        out->asker = asker;
        status = cb__spawn_path(path, cb__main_entry_get()->argv, all, all_fds, nfds + 1,
                                &out->child, err);
    }
    free(all);
    close(program);
    return status == CB_OK ? await_arrival(source, out, err) : status;
}

/* ---- the source ---- */

static cb_status start(void *arg, const cb__asker *asker, char *const *environment, const int *fds,
                       int nfds, cb__worker *out, cb_error *err)
{
    cb__round_source *source = arg;
    return source->story >= 0 ? start_fresh(source, asker, environment, fds, nfds, out, err)
                              : start_forked(source, asker, out, err);
}

static void end(void *arg, cb__worker *worker, bool good)
{
    cb__round_source *source = arg;
    if (!good || source->story >= 0) {
        cb__worker_end(worker, good);
        return;
    }
    source->worker = *worker;
    source->alive = true;
}

cb_status cb__round_source_open(cb__functions *functions, const char *const names[2], uint64_t seed,
                                cb__round_source *out, cb_error *err)
{
    *out = (cb__round_source){
        .functions = functions, .names = {names[0], names[1]}, .seed = seed, .story = -1};
    return cb__main_entry_get()->argv ? cb__story_file(names, &out->story, err) : CB_OK;
}

void cb__round_source_close(cb__round_source *source)
{
    if (source->alive)
        cb__worker_end(&source->worker, true);
    if (source->story >= 0)
        close(source->story);
}

cb__round_process cb__round_source_process(cb__round_source *source)
{
    return (cb__round_process){start, end, source};
}

cb_status cb__round_source_describe(cb__round_source *source, const cb__asker *asker,
                                    cb__device_info *info, cb_error *err)
{
    cb__work work = {.op = "describe",
                     .device = "cpu",
                     .threads = 1,
                     .ring_fd = -1,
                     .reference_fd = -1,
                     .exchange_fd = -1};
    cb__worker worker = {.asker = asker};
    cb__json *answer = NULL;
    cb_status status = cb__spawn_fork(serve_here, source, &worker.child, err);
    if (status != CB_OK)
        return status;
    status = cb__worker_ask(&worker, &work, "describe", &answer, err);
    cb__worker_end(&worker, status == CB_OK);
    if (status == CB_OK)
        status = cb__describe_answer_read(answer, info, err);
    cb__json_free(answer);
    return status;
}
