#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "coldbench/random.h"
#include "device/device.h"
#include "host/clock.h"
#include "host/topology.h"

const char *const cb__color_words[] = {"auto", "always", "never", NULL};
const char *const cb__cache_words[] = {"cold", "warm", NULL};
const char *const cb__submit_words[] = {"solo", "batched", NULL};

volatile int cb__stop;

enum { ONE_STOP_NS = 1000000000 };

/* What comes within a second of the first is the same wish, told twice: timeout(1) signals the
 * program and then its group. After that it is impatience. */
static void on_signal(int number)
{
    static volatile uint64_t first_ns;
    uint64_t now = cb__clock_ns();
    if (cb__stop && now - first_ns > ONE_STOP_NS)
        _exit(128 + number);
    if (!cb__stop)
        first_ns = now;
    cb__stop = 1;
}

void cb__stop_on_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal}, hangup;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN) /* else: nohup */
        sigaction(SIGHUP, &action, NULL);
    /* A write that fails says so: status 5 and words. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
}

int cb__cli_fail(const cb_error *err)
{
    const char *device = cb__each_device();
    fprintf(stderr, "coldbench: %s%s%s\n", device ? device : "", device ? ": " : "",
            *err->message ? err->message : cb_status_text(err->status));
    return cb_status_exit(err->status);
}

void cb__cli_parse(const cb__verb *verb, void *options, int argc, char **argv,
                   const char **positionals, int *npositionals, bool *done, int *exit_status)
{
    cb_error err = CB_ERROR_INIT;
    *done = true;
    if (cb__options_parse(verb->options, verb->noptions, options, argc, argv, positionals,
                          npositionals, &err) != CB_OK) {
        *exit_status = cb__cli_fail(&err);
        fprintf(stderr, "coldbench %s --help lists the options\n", verb->name);
        return;
    }
    cb__common_options *common = options;
    *done = common->help;
    *exit_status = 0;
    if (!*done && cb__each_device() && common->device)
        common->device = cb__each_device();
    if (!*done && cb__each_wanted(common)) {
        *exit_status = cb__each_run(verb, common, argc, argv);
        *done = true;
        return;
    }
    if (!*done)
        return;
    cb__buf text = CB__BUF_INIT;
    cb__buf_printf(&text, "coldbench %s %s\n\n%s\n\n%s\noptions:\n", verb->name, verb->usage,
                   verb->summary, verb->details);
    cb__options_help(verb->options, verb->noptions, &text);
    fputs(cb__buf_text(&text), stdout);
    cb__buf_fini(&text);
}

cb_status cb__cli_shapes(const cb__option_list *given, const char *list,
                         const char *shapes[CB__CLI_SHAPES_MAX], int *nshapes, cb_error *err)
{
    const cb__shape_list *shipped = NULL;
    int n = 0;
    for (int i = 0; i < given->count; i++)
        shapes[n++] = given->items[i];
    cb_status status = list ? cb__shape_list_find(list, &shipped, err) : CB_OK;
    for (int i = 0; shipped && i < CB__SHAPES_MAX && shipped->shapes[i].shape; i++)
        shapes[n++] = shipped->shapes[i].shape;
    if (n == 0)
        shapes[n++] = NULL;
    *nshapes = n;
    return status;
}

/* ---- outputs ---- */

static bool is_regular(int fd)
{
    struct stat facts;
    return fstat(fd, &facts) == 0 && S_ISREG(facts.st_mode);
}

/* A new file in the folder of `place`, with the mode of what is there; its name in `name`. */
static FILE *new_beside(const char *place, char *name, size_t size)
{
    struct stat facts;
    const char *slash = strrchr(place, '/');
    int length = slash ? (int)(slash - place) + 1 : 0;
    if (snprintf(name, size, "%.*s.coldbench-XXXXXX", length, place) >= (int)size) {
        errno = ENAMETOOLONG;
        return NULL;
    }
    int fd = mkostemp(name, O_CLOEXEC);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
    if (fd >= 0 && !file)
        close(fd);
    if (!file)
        return NULL;
    mode_t mask = umask(0);
    umask(mask);
    fchmod(fd, stat(place, &facts) == 0 ? facts.st_mode & 0777 : 0666 & ~mask);
    return file;
}

/* What is there stays until the whole text can take its place, so that a reader never meets half
 * of a record, and none is left by a command that ended early. Only what cannot be replaced (a
 * device, a pipe, a file in a folder that is not ours) is held open. */
static cb_status open_output(const char *path, cb__output *out, cb_error *err)
{
    char name[PATH_MAX];
    *out = (cb__output){.path = path};
    if (!path)
        return CB_OK;
    if (strcmp(path, "-") == 0) {
        out->file = stdout;
        return CB_OK;
    }
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool absent = fd < 0 && errno == ENOENT;
    if (absent || (fd >= 0 && is_regular(fd))) {
        out->place = realpath(path, NULL); /* where a link leads */
        FILE *trial = new_beside(out->place ? out->place : path, name, sizeof name);
        if (trial) {
            fclose(trial);
            unlink(name);
            if (!out->place)
                out->place = strdup(path);
            if (fd >= 0)
                close(fd);
            return out->place ? CB_OK : cb_error_set(err, CB_NO_MEMORY, "no memory for a path");
        }
        free(out->place);
        out->place = NULL;
    }
    out->file = fd < 0 ? NULL : fdopen(fd, "w");
    if (!out->file && fd >= 0)
        close(fd);
    return out->file ? CB_OK
                     : cb_error_set(err, CB_IO, "cannot write %s: %s", path, strerror(errno));
}

static void close_output(cb__output *out)
{
    if (out->file && out->file != stdout)
        fclose(out->file);
    free(out->place);
    *out = (cb__output){0};
}

cb_status cb__outputs_open(const cb__common_options *o, cb__outputs *out, cb_error *err)
{
    *out = (cb__outputs){.table = stdout};
    bool json = o->json && strcmp(o->json, "-") == 0, csv = o->csv && strcmp(o->csv, "-") == 0;
    if (json && csv)
        return cb_error_set(err, CB_USAGE,
                            "--json - and --csv -: only one can go to standard output");
    if (json || csv)
        out->table = stderr;
    if (o->quiet)
        out->table = NULL;
    out->color = o->color == 1 ||
                 (o->color == 0 && out->table && isatty(fileno(out->table)) && !getenv("NO_COLOR"));
    out->gathered = cb__each_gathers(o);
    if (out->gathered)
        return CB_OK;
    cb_status status = open_output(o->json, &out->json, err);
    if (status == CB_OK)
        status = open_output(o->csv, &out->csv, err);
    if (status != CB_OK)
        cb__outputs_close(out);
    return status;
}

static cb_status not_written(const char *path, const cb__buf *text, cb_error *err)
{
    return cb_error_set(err, CB_IO, "writing %s: %s", strcmp(path, "-") ? path : "standard output",
                        text->failed ? "no memory" : strerror(errno));
}

/* Into a file that stays open; one that is regular after all is cut first. */
static bool put(FILE *file, const cb__buf *text)
{
    bool cut = !is_regular(fileno(file)) || file == stdout || file == stderr ||
               ftruncate(fileno(file), 0) == 0;
    return cut && fwrite(cb__buf_text(text), 1, text->size, file) == text->size &&
           fflush(file) == 0;
}

static bool replace(const char *place, const cb__buf *text)
{
    char name[PATH_MAX];
    FILE *file = new_beside(place, name, sizeof name);
    if (!file)
        return false;
    int why = put(file, text) ? 0 : errno;
    if (fclose(file) != 0 && why == 0)
        why = errno;
    if (why == 0 && rename(name, place) != 0)
        why = errno;
    if (why)
        unlink(name);
    errno = why;
    return why == 0;
}

static cb_status write_output(cb__output *out, const cb__buf *text, cb_error *err)
{
    if (!out->path || (text->size == 0 && !text->failed)) /* a verb that has nothing to say */
        return CB_OK;
    bool good = !text->failed && (out->place ? replace(out->place, text) : put(out->file, text));
    return good ? CB_OK : not_written(out->path, text, err);
}

cb_status cb__outputs_write(cb__outputs *out, const cb__buf *json, const cb__buf *csv,
                            const cb__buf *table, cb_error *err)
{
    cb_status first = CB_OK;
    cb__buf heading = CB__BUF_INIT;
    if (out->gathered && out->table)
        cb__each_heading(&heading);
    if (out->gathered)
        cb__each_gather(json, csv);
    if (out->table && (table->failed || !put(out->table, &heading) || !put(out->table, table)))
        first = not_written("-", table, err);
    cb__buf_fini(&heading);
    cb_status second = write_output(&out->json, json, err);
    cb_status third = write_output(&out->csv, csv, err);
    cb__outputs_close(out);
    return first != CB_OK ? first : second != CB_OK ? second : third;
}

void cb__outputs_close(cb__outputs *out)
{
    close_output(&out->json);
    close_output(&out->csv);
}

void cb__progress_start(cb__progress *p, const cb__common_options *options)
{
    /* What is over before anybody could read it, a device that is not there, needs no line. */
    *p = (cb__progress){
        .on = !options->quiet, .terminal = isatty(STDERR_FILENO) != 0, .last_ns = cb__clock_ns()};
}

void cb__progress_show(cb__progress *p, const char *text)
{
    unsigned long long now = cb__clock_ns();
    /* On a terminal the line is rewritten; in a log each new line costs one, so they are rarer. */
    unsigned long long pause = p->terminal ? 100000000ull : 2000000000ull;
    if (!p->on || (p->last_ns && now - p->last_ns < pause))
        return;
    p->last_ns = now;
    p->shown = true;
    const char *device = cb__each_device();
    fprintf(stderr, p->terminal ? "\r\033[K%s%s%s" : "%s%s%s\n", device ? device : "",
            device ? ": " : "", text);
    fflush(stderr);
}

void cb__progress_step(cb__progress *p, const char *label, const char *what, int round)
{
    char text[256];
    if (round >= 0)
        snprintf(text, sizeof text, "%s: round %d", label, round + 1);
    else
        snprintf(text, sizeof text, "%s: %s", label, what);
    cb__progress_show(p, text);
}

void cb__progress_end(cb__progress *p)
{
    if (p->shown && p->terminal)
        fputs("\r\033[K", stderr);
    p->shown = false;
}

uint64_t cb__cli_seed(int64_t asked)
{
    if (asked >= 0)
        return (uint64_t)asked;
    return cb_random_mix(cb__clock_ns() + (uint64_t)getpid()) >> 11;
}

unsigned cb__cli_isa(const char *device)
{
    static cb__topology t;
    cb_error ignored = CB_ERROR_INIT;
    const cb__backend *backend = NULL;
    const char *script = NULL;
    if (device && cb__backend_find(device, &backend, &script, NULL) == CB_OK && backend->isa)
        return backend->isa;
    return cb__topology_read("", &t, &ignored) == CB_OK ? t.isa : 0;
}
