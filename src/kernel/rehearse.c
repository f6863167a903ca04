#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/clock.h"
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

static bool has_ended(pid_t pid)
{
    siginfo_t fate = {0};
    int failed = waitid(P_PID, (id_t)pid, &fate, WEXITED | WNOHANG | WNOWAIT);
    return failed ? errno == ECHILD : fate.si_pid == pid;
}

/* No longer than the child lives: a child of its own may hold the pipe open. */
static size_t read_all(int from, pid_t pid, uint64_t deadline_ns, void *into, size_t size)
{
    size_t got = 0;
    while (got < size) {
        bool ended = has_ended(pid);
        struct pollfd ready = {from, POLLIN, 0};
        int polled = poll(&ready, 1, ended ? 0 : 20);
        if (polled == 0 && (ended || cb__clock_ns() > deadline_ns))
            break;
        if (polled == 0 || (polled < 0 && errno == EINTR))
            continue;
        ssize_t n = read(from, (char *)into + got, size - got);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        got += (size_t)n;
    }
    return got;
}

/* Whether it had to be killed. A second past its own alarm, which a module may have undone. */
static bool reap(pid_t pid, uint64_t deadline_ns, int *fate)
{
    bool late = false;
    while (!has_ended(pid) && !late) {
        late = cb__clock_ns() > deadline_ns;
        poll(NULL, 0, 1);
    }
    if (late)
        kill(pid, SIGKILL);
    while (waitpid(pid, fate, 0) < 0 && errno == EINTR)
        ;
    return late;
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
    uint64_t deadline_ns = cb__clock_ns() + ((uint64_t)seconds + 1) * 1000000000;
    size_t got = read_all(ends[0], pid, deadline_ns, &said, sizeof said);
    close(ends[0]);
    int fate = 0;
    bool late = reap(pid, deadline_ns, &fate);
    if (got == sizeof said) {
        said.message[sizeof said.message - 1] = '\0';
        return said.status == CB_OK ? CB_OK : cb_error_set(err, said.status, "%s", said.message);
    }
    if (late || (WIFSIGNALED(fate) && WTERMSIG(fate) == SIGALRM))
        return cb_error_set(err, CB_USAGE, "%s: no answer within %d s", what, seconds);
    if (WIFSIGNALED(fate))
        return cb_error_set(err, CB_USAGE, "%s: it crashed with signal %d (%s)", what,
                            WTERMSIG(fate), strsignal(WTERMSIG(fate)));
    return cb_error_set(err, CB_USAGE, "%s: it ended the process with status %d", what,
                        WIFEXITED(fate) ? WEXITSTATUS(fate) : -1);
}
