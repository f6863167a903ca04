#include <inttypes.h>
#include <stdio.h>

#include "run/session.h"

/* Each dimension's multiple times these: all ones; odd ones; few rows and wide, and the other way
 * round. */
static const int64_t times[][CB_DIMS_MAX] = {
    {1, 1, 1, 1, 1, 1},
    {3, 7, 5, 3, 3, 3},
    {37, 131, 41, 3, 3, 3},
    {517, 9, 43, 5, 3, 3},
};

enum { SHAPES = sizeof times / sizeof *times };

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
    for (int i = 0; i < s->out->nrows; i++)
        for (int j = 0; j < sub->out->nrows; j++) {
            cb__evidence *to = &s->out->rows[i].evidence;
            const cb__evidence *from = &sub->out->rows[j].evidence;
            cb__findings_merge(&to->findings, &from->findings, shape);
            to->inputs_changed = to->inputs_changed || from->inputs_changed;
            if (from->launch.status != CB_OK && to->launch.status == CB_OK)
                cb_error_set(&to->launch, CB_WRONG, "shape %s: %s", shape, from->launch.message);
        }
}

static cb_status one_shape(cb__session *s, const char *shape, cb_error *err)
{
    cb__session *sub = cb__arena_alloc(s->arena, sizeof *sub);
    cb__run_case *out = cb__arena_alloc(s->arena, sizeof *out);
    if (!sub || !out)
        return cb_error_set(err, CB_NO_MEMORY, "no memory for a case");
    cb__run_request request = *s->request;
    request.shape = shape;
    request.caches[CB__COLD] = false;
    request.caches[CB__WARM] = true;
    cb_error refused = CB_ERROR_INIT;
    /* A rule of the kernel's own may forbid a shape that its dimensions allow. */
    if (cb__run_plan(&request, &s->out->device, out, &refused) != CB_OK)
        return CB_OK;
    cb_status status = cb__session_open(sub, &request, s->arena, out, err);
    if (status == CB_OK)
        status = verify(sub, err);
    merge(s, sub, shape);
    cb__session_close(sub);
    if (status != CB_OK)
        cb_error_prefix(err, "shape %s", shape);
    return status;
}

cb_status cb__session_ragged(cb__session *s, cb_error *err)
{
    const cb_kernel *k = s->out->c.kernel;
    cb_status status = CB_OK;
    for (int i = 0; i < SHAPES && k->ndims > 0 && status == CB_OK; i++) {
        char shape[80];
        shape_text(k, i, shape, sizeof shape);
        status = one_shape(s, shape, err);
    }
    return status;
}
