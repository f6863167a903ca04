#include "run/processes.h"

#include <string.h>

enum { MORE = 2 }; /* at a time, after the least number of rounds */

static cb_status start(cb__processes *p, const cb__asker *asker, cb__worker *worker, cb_error *err)
{
    return cb__worker_start(asker, NULL, p->fds, p->nfds, worker, err);
}

static cb_status start_round(void *arg, cb__worker *worker, cb_error *err)
{
    cb__processes *p = arg;
    return start(p, p->asker, worker, err);
}

void cb__processes_init(cb__processes *p, const cb__asker *asker, const char *device, int threads,
                        bool together)
{
    memset(p, 0, sizeof *p);
    p->asker = asker;
    p->together = together;
    p->crew.start = start_round;
    p->crew.arg = p;
    p->crew.open = (cb__work){.op = "open",
                              .device = device,
                              .threads = threads,
                              .ring_fd = -1,
                              .reference_fd = -1,
                              .exchange_fd = -1};
}

void cb__processes_knows(cb__processes *p, int fd)
{
    if (fd >= 0 && p->nfds < CB__PROCESSES_FDS_MAX)
        p->fds[p->nfds++] = fd;
}

cb_status cb__processes_round(cb__processes *p, const cb__work *work, const char *type,
                              cb__json **answer, cb_error *err)
{
    cb__worker worker;
    *answer = NULL;
    if (!p->together)
        return cb__ask(p->asker, work, type, answer, err);
    cb_status status = cb__crew_take(&p->crew, MORE, &worker, err);
    if (status != CB_OK)
        return status;
    status = cb__worker_ask(&worker, work, type, answer, err);
    cb__crew_leave(&p->crew, &worker, status == CB_OK);
    return status;
}

/* ---- the filling ---- */

static cb_status begin_filling(cb__processes *p, const cb__work *fill, double patience_s,
                               cb_error *err)
{
    p->patient = *p->asker;
    p->patient.silence_s += patience_s;
    cb_status status = start(p, &p->patient, &p->filler, err);
    p->has_filler = status == CB_OK;
    return status == CB_OK ? cb__worker_send(&p->filler, fill, err) : status;
}

static cb_status start_helper(cb__processes *p, cb_error *err)
{
    cb_status status = p->has_helper ? CB_OK : start(p, p->asker, &p->helper, err);
    p->has_helper = status == CB_OK;
    return status;
}

cb_status cb__processes_begin(cb__processes *p, const cb__work *fill, double patience_s,
                              cb_error *err)
{
    if (!p->together)
        return CB_OK;
    cb_status status = start_helper(p, err); /* the one that is waited for takes it first */
    if (status == CB_OK)
        status = cb__crew_send_open(&p->crew, &p->helper, err);
    p->has_helper = p->helper_opening = status == CB_OK;
    if (status == CB_OK)
        status = begin_filling(p, fill, patience_s, err);
    return status == CB_OK ? cb__crew_begin(&p->crew, CB__ROUNDS_MIN, err) : status;
}

cb_status cb__processes_filled(cb__processes *p, const cb__work *fill, double patience_s,
                               cb__json **answer, cb_error *err)
{
    *answer = NULL;
    cb_status status = p->has_filler ? CB_OK : begin_filling(p, fill, patience_s, err);
    if (status == CB_OK)
        status = cb__worker_await(&p->filler, "fill", answer, err);
    if (p->has_filler)
        cb__worker_end(&p->filler, status == CB_OK);
    p->has_filler = false;
    return status;
}

/* ---- the helper ---- */

cb_status cb__processes_ask(cb__processes *p, const cb__work *work, const char *type,
                            cb__json **answer, cb_error *err)
{
    *answer = NULL;
    if (!p->together)
        return cb__ask(p->asker, work, type, answer, err);
    cb_status status = start_helper(p, err);
    if (status == CB_OK && p->helper_opening)
        status = cb__crew_await_open(&p->helper, err);
    p->helper_opening = false;
    if (status == CB_OK)
        status = cb__worker_ask(&p->helper, work, type, answer, err);
    if (status != CB_OK)
        cb__processes_drop_helper(p);
    return status;
}

void cb__processes_drop_helper(cb__processes *p)
{
    if (p->has_helper)
        cb__worker_end(&p->helper, false);
    p->has_helper = p->helper_opening = false;
}

void cb__processes_fini(cb__processes *p)
{
    if (p->has_filler)
        cb__worker_end(&p->filler, false);
    p->has_filler = false;
    cb__crew_clear(&p->crew);
    if (p->has_helper)
        cb__worker_end(&p->helper, !p->helper_opening);
    p->has_helper = p->helper_opening = false;
}
