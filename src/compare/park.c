/* Processes of rounds on a device that is slow to get hold of: a crew, each with an environment of
 * its own, and one process beside it for the other shapes. */
#include "coldbench/random.h"
#include "compare/session.h"

enum { MORE = 3 }; /* at a time, after the least number of rounds */

bool cb__parks(const cb__comparing *s)
{
    return !s->request->process && s->out->device.queued;
}

/* A process with the files of some stages. */
static cb_status start(cb__comparing *s, cb__stage *stages, int nstages, cb__worker *worker,
                       cb_error *err)
{
    uint64_t seed = cb_random(s->request->seed, 0x7061726bu, 0, s->started++);
    return cb__round_start(s, stages, nstages, seed, &s->request->asker, worker, err);
}

static cb_status start_round(void *arg, cb__worker *worker, cb_error *err)
{
    cb__comparing *s = arg;
    return start(s, s->stages, 1, worker, err);
}

static cb_status begin_early(cb__comparing *s, cb_error *err)
{
    cb_status status = start(s, &s->stages[1], s->nstages - 1, &s->early, err);
    if (status == CB_OK)
        status = cb__crew_send_open(&s->crew, &s->early, err);
    s->has_early = status == CB_OK;
    return status;
}

/* The other shapes come first, and take no time that is measured. */
cb_status cb__park_begin(cb__comparing *s, cb_error *err)
{
    s->crew = (cb__crew){
        .start = start_round, .arg = s, .open = cb__compare_work(s, &s->stages[0], "open")};
    cb_status status = s->nstages > 1 ? begin_early(s, err) : CB_OK;
    return status == CB_OK ? cb__crew_begin(&s->crew, CB__ROUNDS_MIN, err) : status;
}

bool cb__park_take_early(cb__comparing *s, cb__worker *worker)
{
    bool there = s->has_early;
    if (there)
        *worker = s->early;
    s->has_early = false;
    if (there && cb__crew_await_open(worker, NULL) == CB_OK)
        return true;
    if (there)
        cb__worker_end(worker, false);
    return false;
}

cb_status cb__park_take(cb__comparing *s, cb__worker *worker, cb_error *err)
{
    return cb__crew_take(&s->crew, s->out->nrounds ? MORE : CB__ROUNDS_MIN, worker, err);
}

void cb__park_clear(cb__comparing *s)
{
    if (s->has_early)
        cb__worker_end(&s->early, true);
    s->has_early = false;
    cb__crew_clear(&s->crew);
}
