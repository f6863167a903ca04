#include "run/crew.h"

#include <string.h>

enum { MORE = 2 }; /* at a time, after the least number of rounds */

cb_status cb__crew_init(cb__crew *crew, const cb__asker *asker, const char *device, int threads,
                        cb_error *err)
{
    const cb__backend *backend = NULL;
    const char *script = NULL;
    memset(crew, 0, sizeof *crew);
    crew->asker = asker;
    crew->device = device;
    crew->threads = threads;
    cb_status status = cb__backend_find(device, &backend, &script, err);
    crew->together = status == CB_OK && (backend->capabilities & CB__DEVICE_QUEUED);
    return status;
}

void cb__crew_knows(cb__crew *crew, int fd)
{
    if (fd >= 0 && crew->nfds < CB__CREW_FDS_MAX)
        crew->fds[crew->nfds++] = fd;
}

static cb_status start(cb__crew *crew, const cb__asker *asker, cb__worker *worker, cb_error *err)
{
    return cb__worker_start(asker, NULL, crew->fds, crew->nfds, worker, err);
}

/* They begin to end together, and not while another is measured. */
static void end_done(cb__crew *crew)
{
    for (int i = 0; i < crew->ndone; i++)
        cb__worker_dismiss(&crew->done[i]);
    for (int i = 0; i < crew->ndone; i++)
        cb__worker_end(&crew->done[i], true);
    crew->ndone = 0;
}

/* ---- those that wait for their round ---- */

static cb__work opening(const cb__crew *crew)
{
    return (cb__work){.op = "open",
                      .device = crew->device,
                      .threads = crew->threads,
                      .ring_fd = -1,
                      .reference_fd = -1,
                      .exchange_fd = -1};
}

static cb_status open_one(cb__crew *crew, cb_error *err)
{
    cb__work work = opening(crew);
    cb__worker *worker = &crew->waiting[crew->nwaiting];
    cb_status status = start(crew, crew->asker, worker, err);
    if (status != CB_OK)
        return status;
    crew->nwaiting++;
    crew->opening++;
    return cb__worker_send(worker, &work, err);
}

static cb_status open_some(cb__crew *crew, int n, cb_error *err)
{
    cb_status status = CB_OK;
    for (int i = 0; i < n && status == CB_OK; i++)
        status = open_one(crew, err);
    return status;
}

static cb_status await_open(cb__crew *crew, cb_error *err)
{
    cb_status status = CB_OK;
    for (; crew->opening > 0 && status == CB_OK; crew->opening--) {
        cb__json *answer = NULL;
        status =
            cb__worker_await(&crew->waiting[crew->nwaiting - crew->opening], "open", &answer, err);
        cb__json_free(answer);
    }
    return status;
}

static cb_status take(cb__crew *crew, cb__worker *worker, cb_error *err)
{
    cb_status status = CB_OK;
    if (crew->nwaiting == 0) {
        end_done(crew);
        status = open_some(crew, MORE, err);
    }
    if (status == CB_OK)
        status = await_open(crew, err);
    if (status == CB_OK)
        *worker = crew->waiting[--crew->nwaiting];
    return status;
}

cb_status cb__crew_round(cb__crew *crew, const cb__work *work, const char *type, cb__json **answer,
                         cb_error *err)
{
    cb__worker worker;
    *answer = NULL;
    if (!crew->together)
        return cb__ask(crew->asker, work, type, answer, err);
    cb_status status = take(crew, &worker, err);
    if (status != CB_OK)
        return status;
    status = cb__worker_ask(&worker, work, type, answer, err);
    if (status == CB_OK && crew->ndone < CB__ROUNDS_MIN)
        crew->done[crew->ndone++] = worker;
    else
        cb__worker_end(&worker, status == CB_OK);
    return status;
}

/* ---- the filling ---- */

static cb_status begin_filling(cb__crew *crew, const cb__work *fill, double patience_s,
                               cb_error *err)
{
    crew->patient = *crew->asker;
    crew->patient.silence_s += patience_s;
    cb_status status = start(crew, &crew->patient, &crew->filler, err);
    crew->has_filler = status == CB_OK;
    return status == CB_OK ? cb__worker_send(&crew->filler, fill, err) : status;
}

static cb_status start_helper(cb__crew *crew, cb_error *err)
{
    cb_status status = crew->has_helper ? CB_OK : start(crew, crew->asker, &crew->helper, err);
    crew->has_helper = status == CB_OK;
    return status;
}

cb_status cb__crew_begin(cb__crew *crew, const cb__work *fill, double patience_s, cb_error *err)
{
    if (!crew->together)
        return CB_OK;
    const cb__work work = opening(crew);
    cb_status status = start_helper(crew, err); /* the one that is waited for takes it first */
    if (status == CB_OK)
        status = cb__worker_send(&crew->helper, &work, err);
    crew->helper_opening = status == CB_OK;
    if (status == CB_OK)
        status = begin_filling(crew, fill, patience_s, err);
    return status == CB_OK ? open_some(crew, CB__ROUNDS_MIN, err) : status;
}

cb_status cb__crew_filled(cb__crew *crew, const cb__work *fill, double patience_s,
                          cb__json **answer, cb_error *err)
{
    *answer = NULL;
    cb_status status = crew->has_filler ? CB_OK : begin_filling(crew, fill, patience_s, err);
    if (status == CB_OK)
        status = cb__worker_await(&crew->filler, "fill", answer, err);
    if (crew->has_filler)
        cb__worker_end(&crew->filler, status == CB_OK);
    crew->has_filler = false;
    return status;
}

/* ---- the helper ---- */

cb_status cb__crew_ask(cb__crew *crew, const cb__work *work, const char *type, cb__json **answer,
                       cb_error *err)
{
    *answer = NULL;
    if (!crew->together)
        return cb__ask(crew->asker, work, type, answer, err);
    cb_status status = start_helper(crew, err);
    if (status == CB_OK && crew->helper_opening) {
        status = cb__worker_await(&crew->helper, "open", answer, err);
        cb__json_free(*answer);
        *answer = NULL;
    }
    crew->helper_opening = false;
    if (status == CB_OK)
        status = cb__worker_ask(&crew->helper, work, type, answer, err);
    if (status != CB_OK)
        cb__crew_drop_helper(crew);
    return status;
}

void cb__crew_drop_helper(cb__crew *crew)
{
    if (crew->has_helper)
        cb__worker_end(&crew->helper, false);
    crew->has_helper = crew->helper_opening = false;
}

void cb__crew_fini(cb__crew *crew)
{
    if (crew->has_filler)
        cb__worker_end(&crew->filler, false);
    crew->has_filler = false;
    for (int i = 0; i < crew->nwaiting; i++)
        cb__worker_end(&crew->waiting[i], false);
    crew->nwaiting = crew->opening = 0;
    if (crew->has_helper)
        cb__worker_end(&crew->helper, !crew->helper_opening);
    crew->has_helper = crew->helper_opening = false;
    end_done(crew);
}
