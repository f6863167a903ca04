#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernel/module.h"

/* The child tells status and message through the pipe; silence means that it did not get that far.
 */
static void child(cb_status (*fn)(void *, cb_error *), void *arg, int seconds, int to)
{
    static const int fatal[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGALRM};
    for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++)
        signal(fatal[i], SIG_DFL);
    alarm((unsigned)seconds);
    cb_error err = CB_ERROR_INIT;
    err.status = fn(arg, &err);
    const char *bytes = (const char *)&err;
    size_t left = sizeof err;
    while (left) {
        ssize_t n = write(to, bytes, left);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        bytes += n;
        left -= (size_t)n;
    }
    _exit(0);
}

static size_t read_all(int from, void *into, size_t size)
{
    size_t got = 0;
    while (got < size) {
        ssize_t n = read(from, (char *)into + got, size - got);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        got += (size_t)n;
    }
    return got;
}

cb_status cb__rehearse(cb_status (*fn)(void *, cb_error *), void *arg, int seconds,
                       const char *what, cb_error *err)
{
    int ends[2];
    if (pipe(ends) != 0)
        return cb_error_set(err, CB_INTERNAL, "%s: pipe: %s", what, strerror(errno));
    pid_t pid = fork();
    if (pid < 0) {
        close(ends[0]);
        close(ends[1]);
        return cb_error_set(err, CB_INTERNAL, "%s: fork: %s", what, strerror(errno));
    }
    if (pid == 0) {
        close(ends[0]);
        child(fn, arg, seconds, ends[1]);
    }
    close(ends[1]);
    cb_error said = CB_ERROR_INIT;
    size_t got = read_all(ends[0], &said, sizeof said);
    close(ends[0]);
    int fate = 0;
    while (waitpid(pid, &fate, 0) < 0 && errno == EINTR)
        ;
    if (got == sizeof said) {
        said.message[sizeof said.message - 1] = '\0';
        return said.status == CB_OK ? CB_OK : cb_error_set(err, said.status, "%s", said.message);
    }
    if (WIFSIGNALED(fate) && WTERMSIG(fate) == SIGALRM)
        return cb_error_set(err, CB_USAGE, "%s: no answer within %d s", what, seconds);
    if (WIFSIGNALED(fate))
        return cb_error_set(err, CB_USAGE, "%s: it crashed with signal %d (%s)", what,
                            WTERMSIG(fate), strsignal(WTERMSIG(fate)));
    return cb_error_set(err, CB_USAGE, "%s: it ended the process with status %d", what,
                        WIFEXITED(fate) ? WEXITSTATUS(fate) : -1);
}
