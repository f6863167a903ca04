#include "worker/crew.h"

#include "host/clock.h"

static void dismiss(cb__worker *workers, int n)
{
    for (int i = 0; i < n; i++)
        cb__worker_dismiss(&workers[i]);
}

static void end(cb__worker *workers, int *n, bool wait)
{
    for (int i = 0; i < *n; i++)
        cb__worker_end(&workers[i], wait);
    *n = 0;
}

static void end_waiting(cb__crew *crew)
{
    crew->opening = 0;
    end(crew->waiting, &crew->nwaiting, false);
}

/* They begin to end together, and not while another is measured. */
static void end_done(cb__crew *crew)
{
    dismiss(crew->done, crew->ndone);
    end(crew->done, &crew->ndone, true);
}

/* ---- opening ---- */

cb_status cb__crew_send_open(const cb__crew *crew, cb__worker *worker, cb_error *err)
{
    cb_status status = cb__worker_send(worker, &crew->open, err);
    if (status != CB_OK)
        cb__worker_end(worker, false);
    return status;
}

cb_status cb__crew_await_open(cb__worker *worker, cb_error *err)
{
    cb__json *answer = NULL;
    cb_status status = cb__worker_await(worker, "open", &answer, err);
    cb__json_free(answer);
    return status;
}

static cb_status start_one(cb__crew *crew, cb_error *err)
{
    cb__worker *worker = &crew->waiting[crew->nwaiting];
    cb_status status = crew->start(crew->arg, worker, err);
    if (status == CB_OK)
        status = cb__crew_send_open(crew, worker, err);
    crew->nwaiting += status == CB_OK;
    crew->opening += status == CB_OK;
    return status;
}

cb_status cb__crew_begin(cb__crew *crew, int n, cb_error *err)
{
    cb_status status = CB_OK;
    for (int i = 0; i < n && i < CB__CREW_MAX && status == CB_OK; i++)
        status = start_one(crew, err);
    if (status != CB_OK)
        end_waiting(crew);
    return status;
}

static cb_status await_all(cb__crew *crew, cb_error *err)
{
    cb_status status = CB_OK;
    for (; crew->opening > 0 && status == CB_OK; crew->opening--)
        status = cb__crew_await_open(&crew->waiting[crew->nwaiting - crew->opening], err);
    if (status != CB_OK)
        end_waiting(crew);
    return status;
}

/* ---- one at a time ---- */

static cb_status gather(cb__crew *crew, int more, cb_error *err)
{
    uint64_t start_ns = cb__clock_ns();
    cb_status status = CB_OK;
    if (crew->nwaiting == 0) {
        end_done(crew);
        status = cb__crew_begin(crew, more, err);
    }
    if (status == CB_OK)
        status = await_all(crew, err);
    crew->waited_s += (double)(cb__clock_ns() - start_ns) * 1e-9;
    return status;
}

cb_status cb__crew_take(cb__crew *crew, int more, cb__worker *worker, cb_error *err)
{
    bool ready = crew->nwaiting > 0 && crew->opening == 0;
    cb_status status = ready ? CB_OK : gather(crew, more, err);
    if (status == CB_OK)
        *worker = crew->waiting[--crew->nwaiting];
    return status;
}

void cb__crew_leave(cb__crew *crew, const cb__worker *worker, bool good)
{
    cb__worker over = *worker;
    over.asker = NULL; /* whoever asked it may be gone before it is */
    if (good && crew->ndone < CB__CREW_MAX) {
        crew->done[crew->ndone++] = over;
        return;
    }
    cb__worker_end(&over, good);
    if (!good)
        end_waiting(crew);
}

/* ---- the end ---- */

void cb__crew_dismiss(cb__crew *crew)
{
    dismiss(crew->done, crew->ndone);
    dismiss(crew->waiting, crew->nwaiting);
}

void cb__crew_clear(cb__crew *crew)
{
    dismiss(crew->done, crew->ndone);
    end_waiting(crew);
    end(crew->done, &crew->ndone, true);
}
