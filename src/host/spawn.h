/* spawn.h: a child process with pipes, that dies with its parent. */
#ifndef CB_HOST_SPAWN_H
#define CB_HOST_SPAWN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "coldbench/status.h"

typedef struct cb__child {
    pid_t pid;
    int pidfd;                 /* tells of its end; -1: this kernel has none */
    int to, from, diagnostics; /* pipes to its stdin, from its stdout and stderr (non-blocking) */
    cb__buf in;                /* read and not yet given out */
    cb__buf stderr_tail;       /* the last 8 KiB of its stderr */
    bool ended;
    int wait_status;
} cb__child;

/* argv[0] is a path (no search; "/proc/self/exe" works). `fds` (nfds) are inherited under the same
 * numbers; every other descriptor is closed. Own process group; killed by the kernel when the
 * parent dies (PR_SET_PDEATHSIG). SIGINT in the terminal's group therefore does not reach it. envp
 * NULL: the caller's environment. */
cb_status cb__spawn(char *const argv[], char *const envp[], const int *fds, int nfds,
                    cb__child *out, cb_error *err);
/* The same of the program at `path`, whatever argv[0] calls it. */
cb_status cb__spawn_path(const char *path, char *const argv[], char *const envp[], const int *fds,
                         int nfds, cb__child *out, cb_error *err);
/* No other program but a copy of this process, memory and descriptors included, that calls
 * body(arg) and ends with what that returns: nothing is flushed, no exit handler runs. Of the
 * caller's threads only the calling one is in it. */
cb_status cb__spawn_fork(int (*body)(void *arg), void *arg, cb__child *out, cb_error *err);
/* Writes all of it; CB_CRASHED when the child is gone (SIGPIPE is never raised), CB_GARBAGE when it
 * closed its stdin and still runs a second later, CB_TIMEOUT. */
cb_status cb__child_write(cb__child *child, const char *text, size_t size, uint64_t deadline_ns,
                          cb_error *err);
/* The next line without its newline into `line` (cleared first). deadline_ns on cb__clock_ns.
 * CB_TIMEOUT; CB_CRASHED "died on signal 11 (Segmentation fault)" / "exited with status 3" with the
 * last stderr line, when it ends first; CB_GARBAGE when a line passes 16 MiB, or its stdout is
 * closed and it still runs a second later; CB_INTERRUPTED as
 * soon as *stop (may be NULL) is nonzero. */
cb_status cb__child_line(cb__child *child, uint64_t deadline_ns, const volatile int *stop,
                         cb__buf *line, cb_error *err);
/* Asks (closes its stdin), waits up to grace_ns, then kills the group. Fills wait_status. Frees
 * everything. */
void cb__child_end(cb__child *child, uint64_t grace_ns);
/* From now on what children leave running becomes this process's, instead of init's (Linux: child
 * subreaper). For a program of our own: every child of it must be started here, or lead a process
 * group of this session. */
void cb__orphans_adopt(void);
/* Kills what was left running, and gives how many processes that were; 0 where none are adopted. */
int cb__orphans_end(void);
/* "exited with status N" or "died on signal N (name)". */
void cb__child_fate(const cb__child *child, char *text, size_t size);

#endif
