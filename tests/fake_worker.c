/* A foreign worker that misbehaves: fake_worker MODE. For test_ask. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void line(const char *text)
{
    printf("%s\n", text);
    fflush(stdout);
}

static _Noreturn void die(void)
{
    fputs("about to die\n", stderr);
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
    _exit(9);
}

static _Noreturn void stay(void)
{
    for (;;)
        pause();
}

static void endless(void)
{
    static char block[1 << 16];
    memset(block, 'x', sizeof block);
    for (int i = 0; i < 1024; i++)
        fwrite(block, 1, sizeof block, stdout);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    char request[1 << 16];
    if (!strcmp(mode, "crash_first"))
        die();
    if (!strcmp(mode, "exit_first"))
        return 0;
    if (!fgets(request, sizeof request, stdin))
        return 4;
    if (!strcmp(mode, "crash"))
        die();
    else if (!strcmp(mode, "exit"))
        return 0;
    else if (!strcmp(mode, "exit3"))
        return 3;
    else if (!strcmp(mode, "silence"))
        stay();
    else if (!strcmp(mode, "garbage"))
        line("{]");
    else if (!strcmp(mode, "binary"))
        fwrite("\0\xff\n", 1, 3, stdout);
    else if (!strcmp(mode, "empty"))
        line("");
    else if (!strcmp(mode, "array"))
        line("[]");
    else if (!strcmp(mode, "no_type"))
        line("{\"name\":1}");
    else if (!strcmp(mode, "type_number"))
        line("{\"type\":1}");
    else if (!strcmp(mode, "wrong_type"))
        line("{\"type\":\"round\"}");
    else if (!strcmp(mode, "twice"))
        line("{\"type\":\"describe\",\"type\":\"describe\"}");
    else if (!strcmp(mode, "half"))
        fputs("{\"type\":\"desc", stdout);
    else if (!strcmp(mode, "half_stay")) {
        fputs("{\"type\":\"desc", stdout);
        fflush(stdout);
        stay();
    } else if (!strcmp(mode, "endless"))
        endless();
    else if (!strcmp(mode, "error"))
        line("{\"type\":\"error\",\"status\":\"CB_NO_MEMORY\",\"message\":\"words of its own\"}");
    else if (!strcmp(mode, "error_unknown"))
        line("{\"type\":\"error\",\"status\":\"CB_NONSENSE\",\"message\":\"m\"}");
    else if (!strcmp(mode, "error_ok"))
        line("{\"type\":\"error\",\"status\":\"CB_OK\"}");
    else if (!strcmp(mode, "error_bare"))
        line("{\"type\":\"error\"}");
    else if (!strcmp(mode, "forever")) {
        for (;;) {
            line("{\"type\":\"progress\",\"done\":0.5}");
            usleep(10000);
        }
    } else if (!strcmp(mode, "progress")) {
        for (int i = 0; i < 8; i++) { /* longer in all than the silence that is allowed */
            line("{\"type\":\"progress\",\"done\":0.5}");
            usleep(200000);
        }
        line("{\"type\":\"describe\",\"ok\":1}");
    } else if (!strcmp(mode, "answer"))
        line("{\"type\":\"describe\",\"ok\":1}");
    else if (!strcmp(mode, "answer_stay")) {
        line("{\"type\":\"describe\",\"ok\":1}");
        stay();
    } else if (!strcmp(mode, "answer_crash")) {
        line("{\"type\":\"describe\",\"ok\":1}");
        die();
    }
    fflush(stdout);
    return 0;
}
