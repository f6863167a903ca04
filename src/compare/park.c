/* Processes of rounds on a device that is slow to get hold of: they start together, wait, and are
 * measured one at a time; when their rounds are over they end together. */
#include <string.h>

#include "coldbench/random.h"
#include "compare/session.h"
#include "host/clock.h"

enum { MORE = 3 }; /* at a time, after the least number of rounds */

bool cb__parks(const cb__comparing *s)
{
    return !s->request->process && s->out->device.queued;
}

static void end_all(cb__worker *workers, int *n, bool wait)
{
    for (int i = 0; i < *n && wait; i++)
        cb__worker_dismiss(&workers[i]);
    for (int i = 0; i < *n; i++)
        cb__worker_end(&workers[i], wait);
    *n = 0;
}

/* A process with the files of some stages, which takes hold of the device at once. */
static cb_status start_one(cb__comparing *s, cb__stage *stages, int nstages, cb__worker *worker,
                           cb_error *err)
{
    cb__work work = cb__compare_work(s, stages, "open");
    uint64_t seed = cb_random(s->request->seed, 0x7061726bu, 0, s->started++);
    cb_status status = cb__round_start(s, stages, nstages, seed, &s->request->asker, worker, err);
    if (status != CB_OK)
        return status;
    status = cb__worker_send(worker, &work, err);
    if (status != CB_OK)
        cb__worker_end(worker, false);
    return status;
}

static cb_status start(cb__comparing *s, int n, cb_error *err)
{
    cb_status status = CB_OK;
    for (int i = 0; i < n && status == CB_OK; i++) {
        status = start_one(s, s->stages, 1, &s->parked[s->nparked], err);
        s->nparked += status == CB_OK;
        s->opening += status == CB_OK;
    }
    if (status != CB_OK)
        cb__park_clear(s);
    return status;
}

static cb_status await_one(cb__worker *worker, cb_error *err)
{
    cb__json *answer = NULL;
    cb_status status = cb__worker_await(worker, "open", &answer, err);
    cb__json_free(answer);
    return status;
}

static cb_status await(cb__comparing *s, cb_error *err)
{
    cb_status status = CB_OK;
    for (int i = s->nparked - s->opening; i < s->nparked && status == CB_OK; i++)
        status = await_one(&s->parked[i], err);
    s->opening = 0;
    if (status != CB_OK)
        end_all(s->parked, &s->nparked, false);
    return status;
}

static cb_status park(cb__comparing *s, cb_error *err)
{
    uint64_t start_ns = cb__clock_ns();
    cb_status status = CB_OK;
    end_all(s->done, &s->ndone, true);
    if (s->nparked == 0)
        status = start(s, s->out->nrounds ? MORE : CB__ROUNDS_MIN, err);
    if (status == CB_OK)
        status = await(s, err);
    s->parking_s += (double)(cb__clock_ns() - start_ns) * 1e-9;
    return status;
}

/* The other shapes come first, and take no time that is measured. */
cb_status cb__park_begin(cb__comparing *s, cb_error *err)
{
    if (s->nstages > 1) {
        cb_status status = start_one(s, &s->stages[1], s->nstages - 1, &s->early, err);
        s->has_early = status == CB_OK;
        if (status != CB_OK)
            return status;
    }
    return start(s, CB__ROUNDS_MIN, err);
}

bool cb__park_take_early(cb__comparing *s, cb__worker *worker)
{
    bool there = s->has_early;
    if (there)
        *worker = s->early;
    s->has_early = false;
    if (there && await_one(worker, NULL) == CB_OK)
        return true;
    if (there)
        cb__worker_end(worker, false);
    return false;
}

cb_status cb__park_take(cb__comparing *s, cb__worker *worker, cb_error *err)
{
    cb_status status = s->nparked && !s->opening ? CB_OK : park(s, err);
    if (status == CB_OK)
        *worker = s->parked[--s->nparked];
    return status;
}

void cb__park_leave(cb__comparing *s, cb__worker *worker, bool good)
{
    worker->asker = &s->request->asker;
    if (good && s->ndone <= CB__ROUNDS_MIN) {
        s->done[s->ndone++] = *worker;
        return;
    }
    cb__worker_end(worker, good);
    if (!good)
        end_all(s->parked, &s->nparked, false);
}

void cb__park_dismiss(cb__comparing *s)
{
    for (int i = 0; i < s->ndone; i++)
        cb__worker_dismiss(&s->done[i]);
    for (int i = 0; i < s->nparked; i++)
        cb__worker_dismiss(&s->parked[i]);
}

void cb__park_clear(cb__comparing *s)
{
    s->opening = 0;
    if (s->has_early)
        cb__worker_end(&s->early, true);
    s->has_early = false;
    end_all(s->done, &s->ndone, true);
    end_all(s->parked, &s->nparked, false);
}
