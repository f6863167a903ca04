/* Processes of rounds on a device that is slow to get hold of: they start together, wait, and are
 * measured one at a time; when their rounds are over they end together. */
#include <string.h>

#include "coldbench/random.h"
#include "compare/session.h"
#include "host/clock.h"

enum { MORE = 3 }; /* at a time, after the least number of rounds */

bool cb__parks(const cb__comparing *s)
{
    const cb__backend *backend = NULL;
    const char *script = NULL;
    return !s->request->process &&
           cb__backend_find(s->request->device, &backend, &script, NULL) == CB_OK &&
           (backend->capabilities & CB__DEVICE_QUEUED);
}

static void end_all(cb__worker *workers, int *n, bool wait)
{
    for (int i = 0; i < *n && wait; i++)
        cb__worker_dismiss(&workers[i]);
    for (int i = 0; i < *n; i++)
        cb__worker_end(&workers[i], wait);
    *n = 0;
}

static cb_status start_one(cb__comparing *s, cb_error *err)
{
    cb__work work = cb__compare_work(s, &s->stages[0], "open");
    cb__worker *worker = &s->parked[s->nparked];
    uint64_t seed = cb_random(s->request->seed, 0x7061726bu, 0, s->started++);
    cb_status status = cb__round_start(s, s->stages, 1, seed, &s->request->asker, worker, err);
    if (status != CB_OK)
        return status;
    s->nparked++;
    return cb__worker_send(worker, &work, err);
}

static cb_status start(cb__comparing *s, int n, cb_error *err)
{
    cb_status status = CB_OK;
    for (int i = 0; i < n && status == CB_OK; i++) {
        status = start_one(s, err);
        s->opening += status == CB_OK;
    }
    if (status != CB_OK)
        cb__park_clear(s);
    return status;
}

static cb_status await(cb__comparing *s, cb_error *err)
{
    cb_status status = CB_OK;
    for (int i = s->nparked - s->opening; i < s->nparked && status == CB_OK; i++) {
        cb__json *answer = NULL;
        status = cb__worker_await(&s->parked[i], "open", &answer, err);
        cb__json_free(answer);
    }
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

cb_status cb__park_begin(cb__comparing *s, cb_error *err)
{
    return start(s, CB__ROUNDS_MIN, err);
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
    if (good && s->ndone < CB__ROUNDS_MIN) {
        s->done[s->ndone++] = *worker;
        return;
    }
    cb__worker_end(worker, good);
    if (!good)
        end_all(s->parked, &s->nparked, false);
}

void cb__park_clear(cb__comparing *s)
{
    s->opening = 0;
    end_all(s->done, &s->ndone, true);
    end_all(s->parked, &s->nparked, false);
}
