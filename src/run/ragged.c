#include <inttypes.h>
#include <stdio.h>

#include "run/session.h"

/* Each dimension's multiple times these: all ones; odd ones; few rows and wide, and the other way
 * round. */
static const int64_t times[CB__RAGGED_SHAPES][CB_DIMS_MAX] = {
    {1, 1, 1, 1, 1, 1},
    {3, 7, 5, 3, 3, 3},
    {37, 131, 41, 3, 3, 3},
    {517, 9, 43, 5, 3, 3},
};

static void shape_text(const cb_kernel *k, int which, char *text, size_t size)
{
    size_t at = 0;
    for (int i = 0; i < k->ndims && at < size; i++) {
        int64_t value = k->dims[i].multiple_of * times[which][i];
        if (value > k->dims[i].max)
            value = k->dims[i].multiple_of;
        at += (size_t)snprintf(text + at, size - at, "%s%" PRId64, i ? "x" : "", value);
    }
}

/* A rule of the kernel's own may forbid a shape that its dimensions allow: then there is none. */
static cb_status open_one(cb__session *s, int which, cb__ragged *ragged, cb_error *err)
{
    cb__session *sub = cb__arena_alloc(s->arena, sizeof *sub);
    cb__run_case *out = cb__arena_alloc(s->arena, sizeof *out);
    cb__run_request *request = cb__arena_alloc(s->arena, sizeof *request);
    char *shape = ragged->shapes[ragged->n];
    cb_error refused = CB_ERROR_INIT;
    if (!sub || !out || !request)
        return cb_error_set(err, CB_NO_MEMORY, "no memory for a case");
    shape_text(s->out->c.kernel, which, shape, sizeof ragged->shapes[0]);
    *request = *s->request;
    request->shape = shape;
    request->caches[CB__COLD] = false;
    request->caches[CB__WARM] = true;
    if (cb__run_plan(request, &s->out->device, out, &refused) != CB_OK)
        return CB_OK;
    ragged->sessions[ragged->n++] = sub;
    sub->ragged = true;
    cb_status status = cb__session_open(sub, request, s->arena, s->processes, out, err);
    if (status != CB_OK)
        cb_error_prefix(err, "one of the other shapes that are verified, %s", shape);
    return status;
}

cb_status cb__ragged_open(cb__session *s, cb__ragged *ragged, cb_error *err)
{
    cb_status status = CB_OK;
    ragged->n = 0;
    for (int i = 0; i < CB__RAGGED_SHAPES && s->out->c.kernel->ndims > 0 && status == CB_OK; i++)
        status = open_one(s, i, ragged, err);
    return status;
}

void cb__ragged_close(cb__ragged *ragged)
{
    for (int i = 0; i < ragged->n; i++)
        cb__session_close(ragged->sessions[i]);
    ragged->n = 0;
}

static cb_status verify(cb__session *sub, cb_error *err)
{
    cb_status status = cb__session_fill(sub, err);
    if (status != CB_OK)
        return status;
    for (int i = 0; i < sub->nmodes; i++)
        sub->modes[i].blocks = 1;
    return cb__session_round(sub, err);
}

/* Code that is wrong in one submit mode is wrong. */
static void merge(cb__session *s, const cb__session *sub, const char *shape)
{
    bool failed = false;
    for (int i = 0; i < s->out->nrows; i++)
        for (int j = 0; j < sub->out->nrows; j++) {
            cb__evidence *to = &s->out->rows[i].evidence;
            const cb__evidence *from = &sub->out->rows[j].evidence;
            cb__findings_merge(&to->findings, &from->findings, shape);
            to->inputs_changed = to->inputs_changed || from->inputs_changed;
            to->inputs_held = sub->nrounds > 0 && !from->inputs_changed;
            failed = failed || from->launch.status != CB_OK;
            if (from->launch.status != CB_OK && to->launch.status == CB_OK)
                cb_error_set(&to->launch, CB_WRONG, "shape %s: %s", shape, from->launch.message);
        }
    if (failed)
        cb__processes_drop_helper(s->processes);
}

cb_status cb__ragged_verify(cb__session *s, cb__ragged *ragged, cb_error *err)
{
    cb_status status = CB_OK;
    for (int i = 0; i < ragged->n && status == CB_OK; i++) {
        status = verify(ragged->sessions[i], err);
        merge(s, ragged->sessions[i], ragged->shapes[i]);
        if (status != CB_OK)
            cb_error_prefix(err, "one of the other shapes that are verified, %s",
                            ragged->shapes[i]);
    }
    return status;
}
