#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "cb_build_info.h"
#include "cli.h"
#include "coldbench/worker.h"
#include "host/spawn.h"

static const cb__verb *const verbs[] = {&cb__verb_run,    &cb__verb_compare, &cb__verb_gate,
                                        &cb__verb_probe,  &cb__verb_model,   &cb__verb_selftest,
                                        &cb__verb_kernels};

enum { NVERBS = sizeof verbs / sizeof *verbs };

static void usage(FILE *to)
{
    fprintf(to, "coldbench measures compute kernels so that the number can be trusted.\n\n"
                "usage: coldbench VERB [ARGUMENTS]\n\n");
    for (int i = 0; i < NVERBS; i++)
        fprintf(to, "  %-9s %s\n", verbs[i]->name, verbs[i]->summary);
    fprintf(to, "\ncoldbench VERB --help explains a verb; coldbench --version says what this is.\n"
                "Exit status: 0 answered, 1 a wrong or impossible row, 2 usage, 3 not available,\n"
                "4 undecided, 5 input or output, 130 interrupted (Ctrl-C, SIGTERM, SIGHUP).\n");
}

/* Memory files must not land on the descriptors that everybody writes to. On a standard output that
 * was closed a write still fails. */
static void hold_standard_descriptors(void)
{
    static const int modes[] = {O_RDWR, O_RDONLY, O_RDWR};
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", modes[fd]) < 0)
            return;
}

/* What went to standard output without a check of its own, the help for one. */
static int written(int status)
{
    if ((fflush(stdout) == 0 && !ferror(stdout)) || status == 5)
        return status;
    fprintf(stderr, "coldbench: writing standard output: %s\n", strerror(errno));
    return 5;
}

int main(int argc, char **argv)
{
    hold_standard_descriptors();
    int status = cb_worker_entry(argc, argv);
    if (status >= 0)
        return status;
    if (argc < 2) {
        usage(stderr);
        return 2;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
        usage(stdout);
        return written(0);
    }
    if (!strcmp(argv[1], "--version")) {
        printf("coldbench %s (source %.12s, %s)\n", CB_VERSION, CB_SOURCE_ID, CB_COMPILER);
        return written(0);
    }
    const char *valid[NVERBS];
    for (int i = 0; i < NVERBS; i++) {
        valid[i] = verbs[i]->name;
        if (strcmp(argv[1], verbs[i]->name) == 0) {
            cb__stop_on_signals();
            cb__orphans_adopt();
            status = verbs[i]->run(argc - 2, argv + 2);
            cb__orphans_end();
            return written(status);
        }
    }
    cb_error err = CB_ERROR_INIT;
    cb__unknown(&err, "verb", argv[1], valid, NVERBS);
    return cb__cli_fail(&err);
}
