#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/clock.h"
#include "host/spawn.h"

static const uint64_t second_ns = 1000000000;

static uint64_t in_seconds(uint64_t seconds)
{
    return cb__clock_ns() + seconds * second_ns;
}

/* ---- what this program does as a child ---- */

static _Noreturn void stay(void)
{
    for (;;)
        pause();
}

static void say(const char *text)
{
    printf("%s\n", text);
    fflush(stdout);
}

static int role_echo(void)
{
    char line[256];
    while (fgets(line, sizeof line, stdin)) {
        fputs(line, stdout);
        fflush(stdout);
    }
    return 0;
}

static int role_fault(void)
{
    fputs("first words\nlast words\n\n", stderr);
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
    return 0;
}

static int role_three(void)
{
    return 3;
}

static int role_hang(void)
{
    fputs("still thinking\n", stderr);
    stay();
}

static int role_garbage(void)
{
    fwrite("a\0\xff\x1b"
           "b\n",
           1, 6, stdout);
    return 0;
}

static int role_giant(void)
{
    char block[4096];
    memset(block, 'x', sizeof block);
    for (int i = 0; i < 5000; i++)
        fwrite(block, 1, sizeof block, stdout);
    return 0;
}

static int role_partial(void)
{
    fputs("whole\n{\"half\":", stdout);
    return 0;
}

/* A process in a session of its own that its parent did not wait for. Says its number. */
static int role_daemon(void)
{
    if (fork() == 0) {
        setsid();
        pid_t pid = fork();
        if (pid > 0) {
            printf("%d\n", (int)pid);
            fflush(stdout);
            _exit(0);
        }
        stay();
    }
    wait(NULL);
    return 0;
}

static int role_closed_stdout(void)
{
    say("last");
    close(1);
    stay();
}

static int role_closed_stdin(void)
{
    close(0);
    say("closed");
    stay();
}

static int role_chatty(void)
{
    for (int i = 0; i < 20000; i++)
        fprintf(stderr, "line %d of a very long story that nobody reads\n", i);
    fputs("the end\n", stderr);
    fflush(stderr);
    say("done");
    return 0;
}

static int role_endless_stderr(void)
{
    while (fputs("again and again\n", stderr) >= 0)
        ;
    return 0;
}

/* Numbers of open descriptors from 3 on, the listing's own left out. */
static int role_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    for (struct dirent *entry; folder && (entry = readdir(folder)) != NULL;) {
        int fd = atoi(entry->d_name);
        if (fd > 2 && fd != dirfd(folder))
            printf("%d ", fd);
    }
    say("");
    return 0;
}

static int role_identity(void)
{
    sigset_t blocked;
    sigprocmask(SIG_SETMASK, NULL, &blocked);
    const char *variable = getenv("CB_TEST_VARIABLE");
    printf("%d %d %d %s\n", getpgid(0) == getpid(), sigismember(&blocked, SIGUSR1),
           signal(SIGPIPE, SIG_DFL) == SIG_IGN, variable ? variable : "unset");
    return 0;
}

static int role_parent(void)
{
    char self[] = "/proc/self/exe", role[] = "hang";
    char *argv[] = {self, role, NULL};
    cb__child child;
    cb_error err = CB_ERROR_INIT;
    if (cb__spawn(argv, NULL, NULL, 0, &child, &err) != CB_OK)
        return 1;
    printf("%d\n", (int)child.pid);
    fflush(stdout);
    _exit(0);
}

/* Leaves a process of its group behind that keeps the pipes open. */
static int role_litter(void)
{
    pid_t pid = fork();
    if (pid == 0)
        stay();
    printf("%d\n", (int)pid);
    fflush(stdout);
    _exit(3);
}

static const struct {
    const char *name;
    int (*run)(void);
} roles[] = {
    {"echo", role_echo},
    {"daemon", role_daemon},
    {"fault", role_fault},
    {"three", role_three},
    {"hang", role_hang},
    {"garbage", role_garbage},
    {"giant", role_giant},
    {"partial", role_partial},
    {"closed-stdout", role_closed_stdout},
    {"closed-stdin", role_closed_stdin},
    {"chatty", role_chatty},
    {"endless-stderr", role_endless_stderr},
    {"descriptors", role_descriptors},
    {"identity", role_identity},
    {"parent", role_parent},
    {"litter", role_litter},
};

/* ---- the tests ---- */

static cb__child start(const char *role, const int *fds, int nfds)
{
    char self[] = "/proc/self/exe", name[32];
    snprintf(name, sizeof name, "%s", role);
    char *argv[] = {self, name, NULL};
    cb__child child;
    cb_error err = CB_ERROR_INIT;
    assert_int_equal(cb__spawn(argv, NULL, fds, nfds, &child, &err), CB_OK);
    return child;
}

static void expect_line(cb__child *child, const char *text)
{
    cb_error err = CB_ERROR_INIT;
    cb__buf line = CB__BUF_INIT;
    cb_status status = cb__child_line(child, in_seconds(60), NULL, &line, &err);
    assert_string_equal(err.message, "");
    assert_int_equal(status, CB_OK);
    assert_string_equal(cb__buf_text(&line), text);
    cb__buf_fini(&line);
}

/* The next line never comes: status, and the message begins so. */
static void expect_fault(cb__child *child, uint64_t wait_ns, cb_status status, const char *words)
{
    cb_error err = CB_ERROR_INIT;
    cb__buf line = CB__BUF_INIT;
    cb_status got = cb__child_line(child, cb__clock_ns() + wait_ns, NULL, &line, &err);
    assert_memory_equal(err.message, words, strlen(words) + 1);
    assert_int_equal(got, status);
    cb__buf_fini(&line);
}

static void lines_go_there_and_back(void **state)
{
    (void)state;
    cb_error err = CB_ERROR_INIT;
    cb__child child = start("echo", NULL, 0);
    static const char *const lines[] = {"one", "", "two words", "{\"three\":3}"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char text[64];
        int size = snprintf(text, sizeof text, "%s\n", lines[i]);
        assert_int_equal(cb__child_write(&child, text, (size_t)size, in_seconds(60), &err), CB_OK);
        expect_line(&child, lines[i]);
    }
    cb__child_end(&child, 60 * second_ns);
    assert_true(WIFEXITED(child.wait_status));
    char fate[64];
    cb__child_fate(&child, fate, sizeof fate);
    assert_string_equal(fate, "exited with status 0");
    cb__child_end(&child, 0);
}

/* More than both pipes hold, while the child echoes: neither side may wait for the other. */
static void long_writes_do_not_lock_up(void **state)
{
    (void)state;
    enum { LINES = 20000 };
    cb_error err = CB_ERROR_INIT;
    cb__buf text = CB__BUF_INIT;
    cb__child child = start("echo", NULL, 0);
    for (int i = 0; i < LINES; i++)
        cb__buf_printf(&text, "line %d with some more text on it\n", i);
    assert_int_equal(cb__child_write(&child, text.text, text.size, in_seconds(60), &err), CB_OK);
    for (int i = 0; i < LINES; i++) {
        char expected[64];
        snprintf(expected, sizeof expected, "line %d with some more text on it", i);
        expect_line(&child, expected);
    }
    cb__child_end(&child, 60 * second_ns);
    assert_int_equal(child.wait_status, 0);
    cb__buf_fini(&text);
}

static void faulty_children_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *role;
        const char *line; /* that comes first; NULL: none */
        uint64_t wait_ns;
        cb_status status;
        const char *words;
    } rows[] = {
        {"fault", NULL, 60000000000, CB_CRASHED,
         "died on signal 11 (Segmentation fault): last words"},
        {"three", NULL, 60000000000, CB_CRASHED, "exited with status 3"},
        {"hang", NULL, 300000000, CB_TIMEOUT, NULL},
        {"giant", NULL, 60000000000, CB_GARBAGE, "sent a line of over 16777216 bytes"},
        {"partial", "whole", 60000000000, CB_CRASHED,
         "exited with status 0 in the middle of a line"},
        {"closed-stdout", "last", 60000000000, CB_GARBAGE, "closed its output and keeps running"},
        {"endless-stderr", NULL, 300000000, CB_TIMEOUT, NULL},
        {"chatty", "done", 60000000000, CB_CRASHED, "exited with status 0: the end"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        print_message("%s\n", rows[i].role);
        cb__child child = start(rows[i].role, NULL, 0);
        if (rows[i].line)
            expect_line(&child, rows[i].line);
        cb_error err = CB_ERROR_INIT;
        cb__buf line = CB__BUF_INIT;
        cb_status status =
            cb__child_line(&child, cb__clock_ns() + rows[i].wait_ns, NULL, &line, &err);
        if (rows[i].words)
            assert_string_equal(err.message, rows[i].words);
        assert_int_equal(status, rows[i].status);
        assert_int_equal(line.size, 0);
        cb__buf_fini(&line);
        cb__child_end(&child, 0);
        assert_true(child.ended);
    }
}

static void a_hanging_child_keeps_its_words_and_is_killed(void **state)
{
    (void)state;
    char fate[64];
    cb__child child = start("hang", NULL, 0);
    cb__child_fate(&child, fate, sizeof fate);
    assert_string_equal(fate, "is still running");
    struct pollfd words = {.fd = child.diagnostics, .events = POLLIN};
    assert_int_equal(poll(&words, 1, 60000), 1);
    expect_fault(&child, 1000000, CB_TIMEOUT, "gave no answer in time: still thinking");
    cb__child_end(&child, 1000000);
    cb__child_fate(&child, fate, sizeof fate);
    assert_string_equal(fate, "died on signal 9 (Killed)");
}

static void raw_bytes_arrive_as_they_are(void **state)
{
    (void)state;
    cb_error err = CB_ERROR_INIT;
    cb__buf line = CB__BUF_INIT;
    cb__child child = start("garbage", NULL, 0);
    assert_int_equal(cb__child_line(&child, in_seconds(60), NULL, &line, &err), CB_OK);
    assert_int_equal(line.size, 5);
    assert_memory_equal(line.text,
                        "a\0\xff\x1b"
                        "b",
                        5);
    cb__buf_fini(&line);
    cb__child_end(&child, 60 * second_ns);
}

static void the_tail_of_stderr_is_kept(void **state)
{
    (void)state;
    cb__child child = start("chatty", NULL, 0);
    expect_line(&child, "done");
    expect_fault(&child, 60 * second_ns, CB_CRASHED, "exited with status 0: the end");
    assert_int_equal(child.stderr_tail.size, 8192);
    assert_string_equal(child.stderr_tail.text + 8192 - 8, "the end\n");
    cb__child_end(&child, 0);
}

static void a_stop_flag_interrupts(void **state)
{
    (void)state;
    cb_error err = CB_ERROR_INIT;
    cb__buf line = CB__BUF_INIT;
    const volatile int stop = 1;
    cb__child child = start("hang", NULL, 0);
    assert_int_equal(cb__child_line(&child, in_seconds(60), &stop, &line, &err), CB_INTERRUPTED);
    cb__child_end(&child, 0);
}

static cb_status write_much(cb__child *child, uint64_t wait_ns, cb_error *err)
{
    cb__buf text = CB__BUF_INIT;
    for (int i = 0; i < 40000; i++)
        cb__buf_puts(&text, "words that nobody reads\n");
    cb_status status = cb__child_write(child, text.text, text.size, cb__clock_ns() + wait_ns, err);
    cb__buf_fini(&text);
    return status;
}

/* A raised SIGPIPE would end this program; a blocked one that was left pending is looked for. */
static void writes_to_the_dead_and_the_deaf_fail(void **state)
{
    (void)state;
    static const struct {
        const char *role, *line;
        uint64_t wait_ns;
        cb_status status;
        const char *words;
    } rows[] = {
        {"three", NULL, 60000000000, CB_CRASHED, "exited with status 3"},
        {"closed-stdin", "closed", 60000000000, CB_GARBAGE, "closed its input and keeps running"},
        {"hang", NULL, 50000000, CB_TIMEOUT, "did not read its input in time"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cb_error err = CB_ERROR_INIT;
        sigset_t pending;
        print_message("%s\n", rows[i].role);
        cb__child child = start(rows[i].role, NULL, 0);
        if (rows[i].line)
            expect_line(&child, rows[i].line);
        assert_int_equal(write_much(&child, rows[i].wait_ns, &err), rows[i].status);
        assert_memory_equal(err.message, rows[i].words, strlen(rows[i].words));
        sigpending(&pending);
        assert_int_equal(sigismember(&pending, SIGPIPE), 0);
        cb__child_end(&child, 0);
    }
}

static void expect_only_one_descriptor(void)
{
    int kept = open("/dev/null", O_RDONLY | O_CLOEXEC), other = open("/dev/null", O_RDONLY);
    char expected[32];
    snprintf(expected, sizeof expected, "%d ", kept);
    cb__child child = start("descriptors", &kept, 1);
    expect_line(&child, expected);
    cb__child_end(&child, 60 * second_ns);
    assert_true(fcntl(kept, F_GETFD) & FD_CLOEXEC);
    close(kept);
    close(other);
}

static void only_named_descriptors_are_inherited(void **state)
{
    (void)state;
    expect_only_one_descriptor();
    cb_error err = CB_ERROR_INIT;
    cb__child child;
    char self[] = "/proc/self/exe";
    char *argv[] = {self, NULL};
    static const int low[] = {1};
    assert_int_equal(cb__spawn(argv, NULL, low, 1, &child, &err), CB_INTERNAL);
    cb__child_end(&child, 0);
}

/* In a process of its own, as a filter stays: the kernel then has no close_range. */
static void descriptors_are_closed_without_close_range_too(void **state)
{
    (void)state;
    pid_t pid = fork();
    if (pid == 0) {
        struct sock_filter rules[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_close_range, 0, 1),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog program = {sizeof rules / sizeof *rules, rules};
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
            prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
            _exit(77);
        if (close_range(1000, 1000, 0) == 0 || errno != ENOSYS)
            _exit(78);
        expect_only_one_descriptor();
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        skip(); /* no seccomp here */
    assert_int_equal(status, 0);
}

static void the_child_starts_clean(void **state)
{
    (void)state;
    char self[] = "/proc/self/exe", role[] = "identity", variable[] = "CB_TEST_VARIABLE=7";
    char *argv[] = {self, role, NULL}, *envp[] = {variable, NULL};
    sigset_t usr1;
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    sigprocmask(SIG_BLOCK, &usr1, NULL);
    signal(SIGPIPE, SIG_IGN);
    for (int own = 0; own < 2; own++) {
        cb_error err = CB_ERROR_INIT;
        cb__child child;
        assert_int_equal(cb__spawn(argv, own ? envp : NULL, NULL, 0, &child, &err), CB_OK);
        expect_line(&child, own ? "1 0 0 7" : "1 0 0 unset");
        cb__child_end(&child, 60 * second_ns);
    }
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_UNBLOCK, &usr1, NULL);
}

static pid_t line_pid(cb__child *child)
{
    cb_error err = CB_ERROR_INIT;
    cb__buf line = CB__BUF_INIT;
    assert_int_equal(cb__child_line(child, in_seconds(60), NULL, &line, &err), CB_OK);
    pid_t pid = (pid_t)atoi(cb__buf_text(&line));
    cb__buf_fini(&line);
    assert_true(pid > 0);
    return pid;
}

/* This process inherits the orphans, and so sees how they end. */
static void nothing_outlives_its_parent(void **state)
{
    (void)state;
    static const char *const names[] = {"parent", "litter"};
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    for (int i = 0; i < 2; i++) {
        int status = 0;
        cb__child child = start(names[i], NULL, 0);
        pid_t orphan = line_pid(&child);
        expect_fault(&child, 60 * second_ns, CB_CRASHED,
                     i ? "exited with status 3" : "exited with status 0");
        assert_int_equal(waitpid(orphan, &status, 0), orphan);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        cb__child_end(&child, 0);
    }
    prctl(PR_SET_CHILD_SUBREAPER, 0);
}

static void what_children_leave_behind_is_ended(void **state)
{
    (void)state;
    cb__child child, other;
    child = start("daemon", NULL, 0);
    other = start("echo", NULL, 0);
    pid_t orphan = line_pid(&child);
    cb__child_end(&child, 60 * second_ns);
    assert_int_equal(cb__orphans_end(), 0); /* nobody has asked for them */
    cb__orphans_adopt();
    kill(orphan, SIGKILL);
    child = start("daemon", NULL, 0);
    orphan = line_pid(&child);
    cb__child_end(&child, 60 * second_ns);
    assert_int_equal(cb__orphans_end(), 1);
    assert_int_equal(kill(orphan, 0), -1);
    assert_int_equal(cb__orphans_end(), 0);
    assert_int_equal(kill(other.pid, 0), 0); /* a child is no orphan */
    cb__child_end(&other, 60 * second_ns);
    assert_int_equal(other.wait_status, 0);
    prctl(PR_SET_CHILD_SUBREAPER, 0);
}

static void what_cannot_start_says_why(void **state)
{
    (void)state;
    static const struct {
        const char *path, *words;
    } rows[] = {
        {"/nowhere/at/all", "cannot execute '/nowhere/at/all': No such file or directory"},
        {"/dev/null", "cannot execute '/dev/null': Permission denied"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char path[64];
        snprintf(path, sizeof path, "%s", rows[i].path);
        char *argv[] = {path, NULL};
        cb_error err = CB_ERROR_INIT;
        cb__child child;
        assert_int_equal(cb__spawn(argv, NULL, NULL, 0, &child, &err), CB_UNAVAILABLE);
        assert_string_equal(err.message, rows[i].words);
        cb__child_end(&child, 0);
    }
}

static int open_descriptors(void)
{
    int n = 0;
    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

static void nothing_stays_open(void **state)
{
    (void)state;
    int before = open_descriptors();
    what_cannot_start_says_why(state);
    lines_go_there_and_back(state);
    a_stop_flag_interrupts(state);
    assert_int_equal(open_descriptors(), before);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

int main(int argc, char **argv)
{
    for (size_t i = 0; argc == 2 && i < sizeof roles / sizeof *roles; i++)
        if (strcmp(argv[1], roles[i].name) == 0)
            return roles[i].run();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_go_there_and_back),
        cmocka_unit_test(long_writes_do_not_lock_up),
        cmocka_unit_test(faulty_children_are_named),
        cmocka_unit_test(a_hanging_child_keeps_its_words_and_is_killed),
        cmocka_unit_test(raw_bytes_arrive_as_they_are),
        cmocka_unit_test(the_tail_of_stderr_is_kept),
        cmocka_unit_test(a_stop_flag_interrupts),
        cmocka_unit_test(writes_to_the_dead_and_the_deaf_fail),
        cmocka_unit_test(only_named_descriptors_are_inherited),
        cmocka_unit_test(descriptors_are_closed_without_close_range_too),
        cmocka_unit_test(the_child_starts_clean),
        cmocka_unit_test(nothing_outlives_its_parent),
        cmocka_unit_test(what_children_leave_behind_is_ended),
        cmocka_unit_test(what_cannot_start_says_why),
        cmocka_unit_test(nothing_stays_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
