#include "worker/entry.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coldbench/worker.h"
#include "worker/worker.h"

static cb__main_entry entry;

const cb__main_entry *cb__main_entry_get(void)
{
    return &entry;
}

bool cb__ends_take(int *in, int *out)
{
    *in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    *out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    bool taken = *in >= 0 && *out >= 0 && nothing >= 0 && dup2(nothing, STDIN_FILENO) >= 0 &&
                 dup2(nothing, STDOUT_FILENO) >= 0;
    if (nothing > 2)
        close(nothing);
    return taken;
}

/* The program may change the words that it was given. */
static char **copy_of(int argc, char **argv)
{
    char **copy = calloc((size_t)argc + 1, sizeof *copy);
    for (int i = 0; copy && i < argc; i++) {
        copy[i] = strdup(argv[i]);
        if (!copy[i])
            return NULL;
    }
    return copy;
}

/* -1 where the variable is not there, or says something that this library did not. */
static int story_of_round(void)
{
    const char *text = getenv(CB__ROUND_VARIABLE);
    char magic[sizeof CB__STORY_MAGIC - 1];
    int fd = text ? atoi(text) : -1;
    if (fd < 3 || pread(fd, magic, sizeof magic, 0) != sizeof magic ||
        memcmp(magic, CB__STORY_MAGIC, sizeof magic) != 0)
        return -1;
    return fd;
}

#define MEMORY_FILE "/memfd:" CB__PROGRAM_COPY

/* A copy that does not know what it is for would make copies of its own. */
static bool is_copy(void)
{
    char path[sizeof MEMORY_FILE - 1];
    return readlink("/proc/self/exe", path, sizeof path) == sizeof path &&
           memcmp(path, MEMORY_FILE, sizeof path) == 0;
}

/* A round goes on through main until it comes to the comparison that it is a round of. */
static int enter_round(void)
{
    fcntl(entry.story, F_SETFD, FD_CLOEXEC);
    signal(SIGPIPE, SIG_IGN);
    if (!cb__ends_take(&entry.in, &entry.out))
        return 3;
    entry.round = true;
    return -1;
}

int cb_worker_entry(int argc, char **argv)
{
    if (argc != 2 || strcmp(argv[1], CB__WORKER_FLAG) != 0) {
        if (entry.argv)
            return -1;
        entry.argv = copy_of(argc, argv);
        entry.story = story_of_round();
        unsetenv(CB__ROUND_VARIABLE); /* what main starts is no round */
        return entry.story >= 0 ? enter_round() : is_copy() ? 3 : -1;
    }
    /* What a kernel prints must not land between the lines of the protocol. */
    int out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    if (out < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        return 3;
    signal(SIGPIPE, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    return cb__worker_serve(stdin, out, NULL);
}
