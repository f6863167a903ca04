#include <string.h>
#include <unistd.h>

#include "host/clock.h"
#include "worker/worker.h"

static const uint64_t grace_ns = 2000000000;

/* A worker that only ever says that it is getting on is stopped after this many silences. */
enum { SILENCES_MAX = 60 };

static cb_status status_named(const char *name)
{
    for (int i = 0; i < CB_STATUS_COUNT; i++)
        if (strcmp(cb_status_name((cb_status)i), name) == 0)
            return (cb_status)i;
    return CB_GARBAGE;
}

static cb_status take_line(const cb__asker *asker, const cb__buf *line, const char *type,
                           cb__json **answer, bool *more, cb_error *err)
{
    cb__json *json = NULL;
    *more = false;
    if (cb__json_parse(cb__buf_text(line), line->size, "a worker's line", &json, err) != CB_OK)
        return err ? (err->status = CB_GARBAGE) : CB_GARBAGE;
    const char *is = cb__json_text(cb__json_get(json, "type"), "");
    cb_status status = CB_OK;
    if (strcmp(is, type) == 0) {
        *answer = json;
        return CB_OK;
    }
    if (strcmp(is, "progress") == 0) {
        *more = true;
        if (asker->progress)
            asker->progress(asker->arg, cb__json_real(cb__json_get(json, "done"), 0));
    } else if (strcmp(is, "error") == 0) {
        /* A worker can't interrupt the program that asked it. */
        cb_status said = status_named(cb__json_text(cb__json_get(json, "status"), ""));
        status =
            cb_error_set(err, said == CB_OK || said == CB_INTERRUPTED ? CB_GARBAGE : said, "%s",
                         cb__json_text(cb__json_get(json, "message"), "a worker's error"));
    } else {
        status = cb_error_set(err, CB_GARBAGE,
                              "a worker answered with type '%.40s' where '%s' was asked", is, type);
    }
    cb__json_free(json);
    return status;
}

enum { FDS_MAX = 3 + 2 * CB__DUEL_ARMS_MAX };

static void add_descriptor(int fd, int *fds, int *n)
{
    for (int i = 0; i < *n; i++)
        if (fds[i] == fd)
            return;
    if (fd > 2)
        fds[(*n)++] = fd;
}

static int descriptors(const cb__work *work, int *fds)
{
    int n = 0;
    add_descriptor(work->ring_fd, fds, &n);
    add_descriptor(work->reference_fd, fds, &n);
    add_descriptor(work->exchange_fd, fds, &n);
    for (int i = 0; i < work->duel.narms; i++) {
        add_descriptor(work->duel.arms[i].module_fd, fds, &n);
        add_descriptor(work->duel.arms[i].ring_fd, fds, &n);
    }
    return n;
}

cb_status cb__worker_start(const cb__asker *asker, char *const *environment, const int *fds,
                           int nfds, cb__worker *out, cb_error *err)
{
    static char *const self[] = {(char *)(uintptr_t) "/proc/self/exe",
                                 (char *)(uintptr_t)CB__WORKER_FLAG, NULL};
    out->asker = asker;
    return cb__spawn(asker->command.argv ? asker->command.argv : self, environment, fds, nfds,
                     &out->child, err);
}

static cb_status too_late(const cb__asker *asker, bool silent, cb_error *err)
{
    cb_error_clear(err);
    if (silent)
        return cb_error_set(err, CB_TIMEOUT, "the worker said nothing for %g s and was stopped",
                            asker->silence_s);
    if (asker->until_ns)
        return cb_error_set(err, CB_TIMEOUT, "the worker gave no answer in time and was stopped");
    return cb_error_set(err, CB_TIMEOUT, "the worker gave no answer in %g s and was stopped",
                        SILENCES_MAX * asker->silence_s);
}

static uint64_t silence_of(const cb__worker *worker)
{
    return (uint64_t)(worker->asker->silence_s * 1e9);
}

cb_status cb__worker_send(cb__worker *worker, const cb__work *work, cb_error *err)
{
    cb__buf line = CB__BUF_INIT;
    cb__work_write(work, &line);
    cb_status status = line.failed ? cb_error_set(err, CB_NO_MEMORY, "no memory for a request")
                                   : cb__child_write(&worker->child, cb__buf_text(&line), line.size,
                                                     cb__clock_ns() + silence_of(worker), err);
    cb__buf_fini(&line);
    return status;
}

cb_status cb__worker_await(cb__worker *worker, const char *type, cb__json **answer, cb_error *err)
{
    const cb__asker *asker = worker->asker;
    cb_status status = CB_OK;
    cb__buf line = CB__BUF_INIT;
    uint64_t silence_ns = silence_of(worker);
    bool more = true;
    *answer = NULL;
    uint64_t last_ns = cb__clock_ns() + SILENCES_MAX * silence_ns;
    if (asker->until_ns && asker->until_ns < last_ns)
        last_ns = asker->until_ns;
    while (status == CB_OK && more) {
        uint64_t until_ns = cb__clock_ns() + silence_ns;
        status = cb__child_line(&worker->child, until_ns < last_ns ? until_ns : last_ns,
                                asker->stop, &line, err);
        if (status == CB_OK)
            status = take_line(asker, &line, type, answer, &more, err);
        else if (status == CB_TIMEOUT && err)
            too_late(asker, until_ns < last_ns, err);
    }
    cb__buf_fini(&line);
    return status;
}

cb_status cb__worker_ask(cb__worker *worker, const cb__work *work, const char *type,
                         cb__json **answer, cb_error *err)
{
    *answer = NULL;
    cb_status status = cb__worker_send(worker, work, err);
    return status == CB_OK ? cb__worker_await(worker, type, answer, err) : status;
}

void cb__worker_dismiss(cb__worker *worker)
{
    if (worker->child.to >= 0)
        close(worker->child.to);
    worker->child.to = -1;
}

void cb__worker_end(cb__worker *worker, bool wait)
{
    cb__child_end(&worker->child, wait ? grace_ns : 0);
}

cb_status cb__ask(const cb__asker *asker, const cb__work *work, const char *type, cb__json **answer,
                  cb_error *err)
{
    int fds[FDS_MAX];
    cb__worker worker;
    *answer = NULL;
    cb_status status = cb__worker_start(asker, NULL, fds, descriptors(work, fds), &worker, err);
    if (status != CB_OK)
        return status;
    status = cb__worker_ask(&worker, work, type, answer, err);
    cb__worker_end(&worker, status == CB_OK);
    return status;
}

cb_status cb__describe(const cb__asker *asker, const char *device, int threads,
                       cb__device_info *info, cb_error *err)
{
    cb__work work = {.op = "describe",
                     .device = device,
                     .threads = threads,
                     .ring_fd = -1,
                     .reference_fd = -1,
                     .exchange_fd = -1};
    cb__json *answer = NULL;
    cb_status status = cb__ask(asker, &work, "describe", &answer, err);
    if (status == CB_OK)
        status = cb__describe_answer_read(answer, info, err);
    cb__json_free(answer);
    return status;
}
