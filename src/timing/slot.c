#include "timing/slot.h"

const char *cb__submit_name(cb__submit submit)
{
    return submit == CB__SOLO ? "solo" : "batched";
}

cb__slot_shape cb__slot_shape_for(cb__submit submit, double estimate_ns)
{
    cb__slot_shape shape = {submit, 1, CB__READINGS};
    if (estimate_ns > 0 && estimate_ns < CB__READING_NS) {
        double repeats = CB__READING_NS / estimate_ns + 1;
        shape.repeats = repeats < CB__REPEATS_MAX ? (int)repeats : CB__REPEATS_MAX;
    }
    if (estimate_ns * shape.repeats >= CB__LONG_READING_NS)
        shape.readings = 1;
    return shape;
}

static cb_status read_solo(cb__target t, const cb__arm *arm, int repeats, int *cursor,
                           double *device_ns, double *host_ns, cb_error *err)
{
    cb_status status = CB_OK;
    uint64_t start = t.ops->now_ns(t.device);
    for (int i = 0; i < repeats && status == CB_OK; i++) {
        t.ops->launch(t.device, &arm->launches[*cursor]);
        status = t.ops->sync(t.device, err);
        *cursor = *cursor + 1 < arm->n ? *cursor + 1 : 0;
    }
    *device_ns = *host_ns = (double)(t.ops->now_ns(t.device) - start) / repeats;
    return status;
}

static cb_status read_batched(cb__target t, const cb__arm *arm, int repeats, int *cursor,
                              double *device_ns, double *host_ns, cb_error *err)
{
    cb_status status = CB_OK;
    double span = 0;
    uint64_t start = t.ops->now_ns(t.device);
    for (int i = 0; i < repeats && status == CB_OK; i++) {
        t.ops->batch_run(t.device, arm->batches[*cursor]);
        status = t.ops->sync(t.device, err);
        span += t.ops->batch_span_ns(t.device, arm->batches[*cursor]);
        *cursor = *cursor + 1 < arm->nbatches ? *cursor + 1 : 0;
    }
    double launches = (double)repeats * arm->batch_launches * (arm->passes ? arm->passes : 1);
    *host_ns = (double)(t.ops->now_ns(t.device) - start) / launches;
    *device_ns = span / launches;
    return status;
}

static double middle(const double *v, int n)
{
    if (n == 1)
        return v[0];
    double lo = v[0] < v[1] ? v[0] : v[1];
    double hi = v[0] < v[1] ? v[1] : v[0];
    return v[2] < lo ? lo : v[2] > hi ? hi : v[2];
}

cb_status cb__slot_run(cb__target target, const cb__arm *arm, cb__slot_shape shape, int *cursor,
                       double *device_ns, double *host_ns, cb_error *err)
{
    double device[CB__READINGS], host[CB__READINGS];
    for (int i = 0; i < shape.readings; i++) {
        cb_status status =
            shape.submit == CB__SOLO
                ? read_solo(target, arm, shape.repeats, cursor, &device[i], &host[i], err)
                : read_batched(target, arm, shape.repeats, cursor, &device[i], &host[i], err);
        if (status != CB_OK)
            return status;
    }
    *device_ns = middle(device, shape.readings);
    *host_ns = middle(host, shape.readings);
    return CB_OK;
}

cb_status cb__target_build(cb__target target, cb__code *code, cb_error *err)
{
    return target.ops->build ? target.ops->build(target.device, code, err) : CB_OK;
}

void cb__target_unbuild(cb__target target, cb__code *code)
{
    if (target.ops->unbuild)
        target.ops->unbuild(target.device, code);
}
