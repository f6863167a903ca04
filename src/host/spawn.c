#include "host/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/clock.h"
#include "host/descriptors.h"

enum {
    LINE_MAX_BYTES = 16 << 20,
    STDERR_KEPT_BYTES = 8 << 10,
    CHUNK_BYTES = 64 << 10, /* what a pipe holds */
    LAST_LINE_BYTES = 300   /* of stderr, in a message */
};

/* The longest sleep in poll. A signal may set the caller's stop flag between its test and poll, and
 * a grandchild may keep the pipes of a dead child open: both are seen this much later at worst. */
static const uint64_t slice_ns = 200000000;

/* How long a child whose stdout is closed may take to end: closing comes first in an exit too. */
static const uint64_t closing_ns = 1000000000;

static void close_end(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* ---- starting ---- */

typedef struct plumbing {
    int in[2], out[2], diagnostics[2], failure[2];
} plumbing;

/* A CLOEXEC pipe clear of 0 to 2, which the child overwrites. */
static int pipe_open(int ends[2])
{
    int low[2];
    if (pipe2(low, O_CLOEXEC) != 0)
        return errno;
    int failed = 0;
    for (int i = 0; i < 2; i++) {
        ends[i] = fcntl(low[i], F_DUPFD_CLOEXEC, 3);
        failed = ends[i] < 0 ? errno : failed;
        close(low[i]);
    }
    return failed;
}

static void plumbing_close(plumbing *p)
{
    int *pipes[] = {p->in, p->out, p->diagnostics, p->failure};
    for (int i = 0; i < 4; i++) {
        close_end(&pipes[i][0]);
        close_end(&pipes[i][1]);
    }
}

static int plumbing_open(plumbing *p)
{
    int *pipes[] = {p->in, p->out, p->diagnostics, p->failure};
    for (int i = 0; i < 4; i++)
        pipes[i][0] = pipes[i][1] = -1;
    int failed = 0;
    for (int i = 0; i < 4 && !failed; i++)
        failed = pipe_open(pipes[i]);
    return failed;
}

/* Handlers and masks of a program that embeds the library are no concern of the child. */
static void reset_signals(void)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    static const int ignored[] = {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD};
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        signal(ignored[i], SIG_DFL);
}

/* What a child becomes: a program, or a function of this one. */
typedef struct becoming {
    const char *path;
    char *const *argv, *const *envp;
    const int *fds; /* that stay open */
    int nfds;
    int (*body)(void *arg); /* NULL: the program */
    void *arg;
} becoming;

/* Between fork and exec: only calls that are safe there. Ends the child, with errno sent on. */
static _Noreturn void child_start(const becoming *what, const plumbing *p, pid_t parent)
{
    setpgid(0, 0);
    bool ready = prctl(PR_SET_PDEATHSIG, SIGKILL) == 0;
    if (getppid() != parent) /* it died before the line above */
        _exit(127);
    reset_signals();
    ready = ready && dup2(p->in[0], 0) == 0 && dup2(p->out[1], 1) == 1 &&
            dup2(p->diagnostics[1], 2) == 2;
    if (ready && what->body) {
        plumbing ends = *p;
        plumbing_close(&ends);
        _exit(what->body(what->arg));
    }
    ready = ready && cb__descriptors_cloexec(3) == 0;
    for (int i = 0; ready && i < what->nfds; i++)
        ready = fcntl(what->fds[i], F_SETFD, 0) == 0;
    if (ready)
        execve(what->path, what->argv, what->envp);
    int failed = errno;
    ssize_t ignored = write(p->failure[1], &failed, sizeof failed);
    (void)ignored;
    _exit(127);
}

/* The child's errno, or 0 once it has become the program. */
static int await_exec(int fd)
{
    int failed = 0;
    ssize_t got;
    do
        got = read(fd, &failed, sizeof failed);
    while (got < 0 && errno == EINTR);
    return got == sizeof failed ? failed : 0;
}

extern char **environ;

static cb_status start(const becoming *what, cb__child *out, cb_error *err)
{
    *out = (cb__child){.pid = -1, .pidfd = -1, .to = -1, .from = -1, .diagnostics = -1};
    for (int i = 0; i < what->nfds; i++)
        if (what->fds[i] < 3)
            return cb_error_set(err, CB_INTERNAL, "descriptor %d cannot be passed to '%s'",
                                what->fds[i], what->path);
    plumbing p;
    int failed = plumbing_open(&p);
    pid_t parent = getpid();
    pid_t pid = failed ? -1 : fork();
    if (pid == 0)
        child_start(what, &p, parent);
    if (pid < 0) {
        failed = failed ? failed : errno;
        plumbing_close(&p);
        return cb_error_set(err, CB_UNAVAILABLE, "cannot start '%s': %s", what->path,
                            strerror(failed));
    }
    close_end(&p.failure[1]);
    failed = await_exec(p.failure[0]);
    if (failed) {
        waitpid(pid, NULL, 0);
        plumbing_close(&p);
        return cb_error_set(err, CB_UNAVAILABLE, "cannot execute '%s': %s", what->path,
                            strerror(failed));
    }
    out->pid = pid;
    out->pidfd = (int)syscall(SYS_pidfd_open, pid, 0); /* close-on-exec by itself */
    out->to = p.in[1];
    out->from = p.out[0];
    out->diagnostics = p.diagnostics[0];
    p.in[1] = p.out[0] = p.diagnostics[0] = -1;
    plumbing_close(&p);
    int *ends[] = {&out->to, &out->from, &out->diagnostics};
    for (int i = 0; i < 3; i++)
        fcntl(*ends[i], F_SETFL, O_NONBLOCK);
    return CB_OK;
}

cb_status cb__spawn_path(const char *path, char *const argv[], char *const envp[], const int *fds,
                         int nfds, cb__child *out, cb_error *err)
{
    becoming program = {
        .path = path, .argv = argv, .envp = envp ? envp : environ, .fds = fds, .nfds = nfds};
    return start(&program, out, err);
}

cb_status cb__spawn(char *const argv[], char *const envp[], const int *fds, int nfds,
                    cb__child *out, cb_error *err)
{
    return cb__spawn_path(argv[0], argv, envp, fds, nfds, out, err);
}

cb_status cb__spawn_fork(int (*body)(void *arg), void *arg, cb__child *out, cb_error *err)
{
    becoming copy = {.path = "a copy of this process", .body = body, .arg = arg};
    return start(&copy, out, err);
}

/* ---- reading ---- */

/* One chunk, or closes the descriptor at its end. Returns whether bytes came. */
static bool take_chunk(int *fd, cb__buf *into)
{
    char chunk[CHUNK_BYTES];
    ssize_t got = *fd >= 0 ? read(*fd, chunk, sizeof chunk) : -1;
    if (got > 0)
        cb__buf_append(into, chunk, (size_t)got);
    else if (got == 0 || (errno != EAGAIN && errno != EINTR))
        close_end(fd);
    return got > 0;
}

static void drop_front(cb__buf *buf, size_t bytes)
{
    memmove(buf->text, buf->text + bytes, buf->size - bytes);
    buf->size -= bytes;
    buf->text[buf->size] = '\0';
}

static bool drain_stderr(cb__child *child)
{
    cb__buf *tail = &child->stderr_tail;
    bool some = take_chunk(&child->diagnostics, tail);
    if (tail->size > STDERR_KEPT_BYTES)
        drop_front(tail, tail->size - STDERR_KEPT_BYTES);
    return some;
}

/* Notices the end of the child. What it started dies with it; while the dead leader is not yet
 * reaped, nobody else can have got its group's number. */
static bool has_ended(cb__child *child)
{
    siginfo_t info = {0};
    if (child->ended)
        return true;
    if (waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        info.si_pid == 0)
        return false;
    kill(-child->pid, SIGKILL);
    while (waitpid(child->pid, &child->wait_status, 0) < 0 && errno == EINTR)
        ;
    child->ended = true;
    return true;
}

/* Waits for anything on the child's pipes, at most until the deadline or a slice. */
static void wait_for_pipes(const cb__child *child, bool writing, uint64_t deadline_ns)
{
    struct pollfd set[4] = {{.fd = child->from, .events = POLLIN},
                            {.fd = child->diagnostics, .events = POLLIN},
                            {.fd = writing ? child->to : -1, .events = POLLOUT},
                            {.fd = child->pidfd, .events = POLLIN}};
    uint64_t now = cb__clock_ns();
    uint64_t left = deadline_ns > now ? deadline_ns - now : 0;
    if (left > slice_ns)
        left = slice_ns;
    /* No pipe left: only the child's end can come, which poll does not report everywhere. */
    if (child->from < 0 && child->pidfd < 0 && left > 5000000)
        left = 5000000;
    poll(set, 4, (int)((left + 999999) / 1000000));
}

void cb__child_fate(const cb__child *child, char *text, size_t size)
{
    int status = child->wait_status;
    if (!child->ended)
        snprintf(text, size, "is still running");
    else if (WIFSIGNALED(status))
        snprintf(text, size, "died on signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(text, size, "exited with status %d", WEXITSTATUS(status));
}

/* The last line of stderr that is not empty. */
static void last_stderr_line(const cb__child *child, char *text, size_t size)
{
    const char *tail = cb__buf_text(&child->stderr_tail);
    size_t end = child->stderr_tail.size;
    while (end > 0 && strchr("\r\n", tail[end - 1]))
        end--;
    size_t start = end;
    while (start > 0 && tail[start - 1] != '\n')
        start--;
    snprintf(text, size, "%.*s", (int)(end - start), tail + start);
}

static cb_status crashed(cb__child *child, cb_error *err)
{
    char fate[64], last[LAST_LINE_BYTES];
    for (int i = 0; i < STDERR_KEPT_BYTES && drain_stderr(child); i++)
        ;
    cb__child_fate(child, fate, sizeof fate);
    last_stderr_line(child, last, sizeof last);
    bool partial = child->in.size > 0 && !memchr(child->in.text, '\n', child->in.size);
    return cb_error_set(err, CB_CRASHED, "%s%s%s%s", fate,
                        partial ? " in the middle of a line" : "", last[0] ? ": " : "", last);
}

/* Moves the first line of `in` to `line`. `seen` bytes have been searched before. */
static bool give_line(cb__child *child, size_t seen, cb__buf *line)
{
    cb__buf *in = &child->in;
    char *end = in->size > seen ? memchr(in->text + seen, '\n', in->size - seen) : NULL;
    size_t length = end ? (size_t)(end - in->text) : 0;
    if (!end || length > LINE_MAX_BYTES)
        return false;
    cb__buf_append(line, in->text, length);
    drop_front(in, length + 1);
    return true;
}

static cb_status too_late(const cb__child *child, const char *what, cb_error *err)
{
    char last[LAST_LINE_BYTES];
    last_stderr_line(child, last, sizeof last);
    return cb_error_set(err, CB_TIMEOUT, "%s in time%s%s", what, last[0] ? ": " : "", last);
}

/* What to say when the pipes give nothing now; CB_OK: wait on. */
static cb_status judge_silence(cb__child *child, uint64_t closed_ns, uint64_t deadline_ns,
                               cb_error *err)
{
    uint64_t now = cb__clock_ns();
    if (has_ended(child)) /* bytes may have come between the last read and the end */
        return take_chunk(&child->from, &child->in) ? CB_OK : crashed(child, err);
    if (closed_ns && now - closed_ns > closing_ns)
        return cb_error_set(err, CB_GARBAGE, "closed its output and keeps running");
    if (now >= deadline_ns)
        return too_late(child, "gave no answer", err);
    wait_for_pipes(child, false, deadline_ns);
    return CB_OK;
}

cb_status cb__child_line(cb__child *child, uint64_t deadline_ns, const volatile int *stop,
                         cb__buf *line, cb_error *err)
{
    size_t seen = 0;
    uint64_t closed_ns = 0;
    cb__buf_clear(line);
    for (;;) {
        if (give_line(child, seen, line))
            break;
        seen = child->in.size;
        if (seen > LINE_MAX_BYTES)
            return cb_error_set(err, CB_GARBAGE, "sent a line of over %d bytes", LINE_MAX_BYTES);
        if (stop && *stop)
            return cb_error_set(err, CB_INTERRUPTED, "interrupted while a worker was running");
        if (child->in.failed || child->stderr_tail.failed)
            break;
        drain_stderr(child);
        if (take_chunk(&child->from, &child->in)) {
            if (cb__clock_ns() < deadline_ns)
                continue;
            if (!give_line(child, seen, line))
                return too_late(child, "did not finish its line", err);
            break;
        }
        if (child->from < 0 && !closed_ns)
            closed_ns = cb__clock_ns();
        cb_status status = judge_silence(child, closed_ns, deadline_ns, err);
        if (status != CB_OK)
            return status;
    }
    if (line->failed || child->in.failed || child->stderr_tail.failed)
        return cb_error_set(err, CB_NO_MEMORY, "no memory for a worker's line");
    return CB_OK;
}

/* ---- writing ---- */

/* write() without SIGPIPE, whose disposition belongs to the program: blocked here, and taken back
 * when this write raised it. */
static ssize_t write_quietly(int fd, const char *text, size_t size)
{
    sigset_t pipe_set, old, pending;
    sigemptyset(&pipe_set);
    sigaddset(&pipe_set, SIGPIPE);
    sigpending(&pending);
    pthread_sigmask(SIG_BLOCK, &pipe_set, &old);
    ssize_t put = write(fd, text, size);
    int failed = errno;
    if (put < 0 && failed == EPIPE && !sigismember(&pending, SIGPIPE)) {
        const struct timespec none = {0, 0};
        while (sigtimedwait(&pipe_set, NULL, &none) < 0 && errno == EINTR)
            ;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    errno = failed;
    return put;
}

/* The child does not read: says how it ended, or that it only closed its stdin. */
static cb_status refused(cb__child *child, cb_error *err)
{
    uint64_t until = cb__clock_ns() + closing_ns;
    while (!has_ended(child) && cb__clock_ns() < until) {
        drain_stderr(child);
        poll(NULL, 0, 1);
    }
    if (child->ended)
        return crashed(child, err);
    return cb_error_set(err, CB_GARBAGE, "closed its input and keeps running");
}

cb_status cb__child_write(cb__child *child, const char *text, size_t size, uint64_t deadline_ns,
                          cb_error *err)
{
    while (size > 0) {
        ssize_t put = write_quietly(child->to, text, size);
        if (put >= 0) {
            text += put;
            size -= (size_t)put;
            continue;
        }
        if (errno != EAGAIN && errno != EINTR)
            return refused(child, err);
        /* The child may be waiting for us to read before it reads on. */
        drain_stderr(child);
        if (child->in.size <= LINE_MAX_BYTES)
            take_chunk(&child->from, &child->in);
        if (has_ended(child))
            return crashed(child, err);
        if (cb__clock_ns() >= deadline_ns)
            return too_late(child, "did not read its input", err);
        wait_for_pipes(child, true, deadline_ns);
    }
    return CB_OK;
}

/* ---- ending ---- */

void cb__child_end(cb__child *child, uint64_t grace_ns)
{
    if (child->pid <= 0)
        return;
    close_end(&child->to);
    uint64_t deadline_ns = cb__clock_ns() + grace_ns;
    while (!has_ended(child) && cb__clock_ns() < deadline_ns) {
        cb__buf_clear(&child->in);
        bool some = take_chunk(&child->from, &child->in);
        some |= drain_stderr(child);
        if (!some)
            wait_for_pipes(child, false, deadline_ns);
    }
    if (!child->ended) {
        kill(-child->pid, SIGKILL);
        while (waitpid(child->pid, &child->wait_status, 0) < 0 && errno == EINTR)
            ;
        child->ended = true;
    }
    close_end(&child->from);
    close_end(&child->diagnostics);
    close_end(&child->pidfd);
    cb__buf_fini(&child->in);
    cb__buf_fini(&child->stderr_tail);
    child->pid = -1;
}

/* ---- what children leave behind ---- */

static bool adopting;

void cb__orphans_adopt(void)
{
    adopting = prctl(PR_SET_CHILD_SUBREAPER, 1) == 0;
}

/* Children that were started here lead a group of their own in this session; what they start and
 * leave is in their group, which dies with them, or has made itself another session. */
static bool is_orphan(pid_t pid)
{
    return getpgid(pid) != pid || getsid(pid) != getsid(0);
}

/* Kills those among our children now. Those of theirs are ours next time. */
static int end_some(int *seen)
{
    char path[64];
    int pid, killed = 0;
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    FILE *children = fopen(path, "re");
    *seen = 0;
    while (children && fscanf(children, "%d", &pid) == 1) {
        if (!is_orphan(pid))
            continue;
        ++*seen;
        if (waitpid(pid, NULL, WNOHANG) != 0) /* it has ended by itself */
            continue;
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        killed++;
    }
    if (children)
        fclose(children);
    return killed;
}

int cb__orphans_end(void)
{
    enum { GENERATIONS_MAX = 1000 };
    int all = 0, seen = adopting ? 1 : 0;
    for (int i = 0; i < GENERATIONS_MAX && seen > 0; i++)
        all += end_some(&seen);
    return all;
}
