#include "run/load.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/clock.h"

enum { STREAM_BYTES = 8 << 20, STEPS = 1 << 20 /* of arithmetic between two passes */ };

/* ---- the generator ---- */

static uint64_t stream(volatile uint64_t *words, uint64_t x)
{
    for (size_t i = 0; i < STREAM_BYTES / sizeof *words; i++)
        words[i] = x += words[i];
    return x;
}

static uint64_t spin(uint64_t x)
{
    for (int i = 0; i < STEPS; i++)
        x = x * 6364136223846793005u + 1442695040888963407u;
    return x;
}

/* The caller's handlers would make its Ctrl-C and SIGTERM a flag that nobody reads here; its files
 * and pipes must not stay open by us. */
static void leave_caller(int cpu)
{
    static const int caught[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};
    for (size_t i = 0; i < sizeof caught / sizeof *caught; i++)
        signal(caught[i], SIG_DFL);
    if (close_range(0, ~0u, 0) != 0)
        for (int fd = (int)sysconf(_SC_OPEN_MAX) - 1; fd >= 0; fd--)
            close(fd);
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    sched_setaffinity(0, sizeof set, &set);
}

static _Noreturn void generate(int cpu, pid_t parent, uint64_t until_ns)
{
    bool tied = prctl(PR_SET_PDEATHSIG, SIGKILL) == 0;
    if (!tied || getppid() != parent) /* it may have died before the line above */
        _exit(1);
    leave_caller(cpu);
    volatile uint64_t *words =
        mmap(NULL, STREAM_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (words == MAP_FAILED)
        _exit(1);
    uint64_t x = (uint64_t)cpu;
    while (cb__clock_ns() < until_ns)
        x = stream(words, spin(x));
    _exit(0);
}

/* ---- its start and its end ---- */

/* Whether it was still running. */
static bool end_one(pid_t pid)
{
    int status = 0;
    bool running = waitpid(pid, &status, WNOHANG) == 0;
    if (!running)
        return false;
    kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return true;
}

cb_status cb__load_stop(cb__load *load, cb_error *err)
{
    int gone = 0, n = load->n;
    for (int i = 0; i < n; i++)
        gone += !end_one(load->pids[i]);
    load->n = 0;
    return gone ? cb_error_set(err, CB_CRASHED,
                               "%d of %d processes of the load ended by themselves", gone, n)
                : CB_OK;
}

cb_status cb__load_start(double longest_s, cb__load *load, cb_error *err)
{
    cb__topology topology;
    load->n = 0;
    cb_status status = cb__topology_read("", &topology, err);
    if (status != CB_OK)
        return status;
    uint64_t until_ns = cb__clock_ns() + (uint64_t)(longest_s * 1e9);
    pid_t parent = getpid();
    int wanted = cb__default_threads(&topology);
    for (int i = 0; i < wanted; i++) {
        pid_t pid = fork();
        if (pid == 0)
            generate(topology.cores[i], parent, until_ns);
        if (pid < 0) {
            status = cb_error_set(err, CB_UNAVAILABLE, "cannot start a load: %s", strerror(errno));
            cb__load_stop(load, NULL);
            return status;
        }
        setpgid(pid, pid); /* a child of ours, and no orphan: host/spawn.h */
        load->pids[load->n++] = pid;
    }
    return CB_OK;
}
