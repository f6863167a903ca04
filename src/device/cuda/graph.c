/* Launches one by one, and batches of them as one graph. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda/cuda.h"

enum { NOT_READY = 600 }; /* cuStreamQuery: there is work left */

struct cb__batch {
    cb__cu_graph graph;
    cb__cu_graph_exec exec;
    cb__cu_event start, end;
};

/* The first failure since the last sync is the one that is told. */
static void remember(cb_error *failure, cb_status status, const cb_error *err)
{
    if (status != CB_OK && failure->status == CB_OK)
        *failure = *err;
}

cb_status cb__cuda_clock_read(cb__device *device, cb_error *err)
{
    if (device->unread.status == CB_OK)
        return CB_OK;
    cb_status status =
        cb_error_set(err, device->unread.status, "the time of a batch cannot be read: %s",
                     device->unread.message);
    cb_error_clear(&device->unread);
    return status;
}

void cb__cuda_launch(cb__device *device, const cb__launch *launch)
{
    cb_error err = CB_ERROR_INIT;
    remember(&device->failure, cb__cuda_enqueue(device, launch, &err), &err);
}

/* Of memory that has run out, or a driver that is not ready, the kernel is innocent. */
static cb_status fault_of(cb_status failure)
{
    return failure == CB_NO_MEMORY || failure == CB_UNAVAILABLE ? failure : CB_WRONG;
}

/* Asked again and again, because what wakes a thread that sleeps takes longer than many kernels. */
cb_status cb__cuda_sync(cb__device *device, cb_error *err)
{
    cb__cu_result result = 0;
    cb_status status = cb__cuda_enter(device, err);
    if (status != CB_OK)
        return status;
    do
        result = device->driver.cuStreamQuery(device->stream);
    while (result == NOT_READY);
    status = cb__cuda_did(device, result, "cuStreamQuery", err);
    if (device->failure.status == CB_OK)
        return status == CB_OK ? cb__cuda_clock_read(device, err) : status;
    cb_error_clear(err);
    status = fault_of(device->failure.status);
    status = cb_error_set(err, status, "a launch failed: %s", device->failure.message);
    cb_error_clear(&device->failure);
    return status;
}

/* ---- batches ---- */

/* The clock is read by two nodes of the graph itself: an event beside the graph would count what
 * submitting the graph takes. */
static cb_status capture(cb__device *device, const cb__launch *launches, int n, cb__batch *batch,
                         cb_error *err)
{
    const cb__cuda *driver = &device->driver;
    cb_status status = CB__CUDA_DID(device, err, cuStreamBeginCapture, device->stream,
                                    CB__CU_CAPTURE_THREAD_LOCAL);
    if (status != CB_OK)
        return status;
    status = CB__CUDA_DID(device, err, cuEventRecordWithFlags, batch->start, device->stream,
                          CB__CU_EVENT_RECORD_EXTERNAL);
    for (int i = 0; i < n && status == CB_OK; i++)
        status = cb__cuda_enqueue(device, &launches[i], err);
    if (status == CB_OK)
        status = CB__CUDA_DID(device, err, cuEventRecordWithFlags, batch->end, device->stream,
                              CB__CU_EVENT_RECORD_EXTERNAL);
    device->after_launch = false; /* they went to the graph */
    /* The stream records until this, also after a failure. */
    cb__cu_result ended = driver->cuStreamEndCapture(device->stream, &batch->graph);
    return status == CB_OK ? cb__cuda_did(device, ended, "cuStreamEndCapture", err) : status;
}

static cb_status instantiate(cb__device *device, const cb__launch *launches, int n,
                             cb__batch *batch, cb_error *err)
{
    cb_status status = capture(device, launches, n, batch, err);
    if (status == CB_OK)
        status = CB__CUDA_DID(device, err, cuGraphInstantiate, &batch->exec, batch->graph, 0);
    if (status == CB_OK)
        return CB_OK;
    if (batch->graph)
        device->driver.cuGraphDestroy(batch->graph);
    batch->graph = NULL;
    batch->exec = NULL;
    return status;
}

/* Drivers before CUDA 12.3 take no launches that overlap into a graph: where they are what is
 * refused, this device launches plainly from then on. */
static cb_status make(cb__device *device, const cb__launch *launches, int n, cb__batch *batch,
                      cb_error *err)
{
    cb_error refusal = CB_ERROR_INIT, own = CB_ERROR_INIT;
    cb_status status = instantiate(device, launches, n, batch, &refusal);
    if (status == CB_OK)
        return CB_OK;
    if (device->lost.status == CB_OK && cb__cuda_overlaps(device, launches, n)) {
        device->plain = true;
        if (instantiate(device, launches, n, batch, &own) == CB_OK)
            return CB_OK;
        device->plain = false;
    }
    return cb_error_set(err, status, "%s", refusal.message);
}

/* Its first launch uploads it. Uploaded here, every launch in any other graph would take 0.2 us
 * more until this one has been launched (H200, driver 580.159: docs/results/h200/graphs.md). */
cb_status cb__cuda_batch_new(cb__device *device, const cb__launch *launches, int n, cb__batch **out,
                             cb_error *err)
{
    *out = NULL;
    cb__batch *batch = calloc(1, sizeof *batch);
    if (!batch)
        return cb_error_set(err, CB_NO_MEMORY, "batch of %d launches: no memory", n);
    cb_status status = cb__cuda_enter(device, err);
    if (status == CB_OK)
        status = cb__cuda_support_load(device, err);
    if (status == CB_OK)
        status = CB__CUDA_DID(device, err, cuEventCreate, &batch->start, CB__CU_EVENT_DEFAULT);
    if (status == CB_OK)
        status = CB__CUDA_DID(device, err, cuEventCreate, &batch->end, CB__CU_EVENT_DEFAULT);
    if (status == CB_OK)
        status = make(device, launches, n, batch, err);
    if (status != CB_OK)
        cb__cuda_batch_free(device, batch);
    else
        *out = batch;
    return status;
}

void cb__cuda_batch_run(cb__device *device, cb__batch *batch)
{
    cb_error err = CB_ERROR_INIT;
    cb_status status = cb__cuda_enter(device, &err);
    if (status == CB_OK)
        status = CB__CUDA_DID(device, &err, cuGraphLaunch, batch->exec, device->stream);
    remember(&device->failure, status, &err);
}

double cb__cuda_batch_span_ns(cb__device *device, const cb__batch *batch)
{
    cb_error err = CB_ERROR_INIT;
    float milliseconds = NAN;
    cb_status status =
        CB__CUDA_DID(device, &err, cuEventElapsedTime, &milliseconds, batch->start, batch->end);
    if (status == CB_OK && !(milliseconds > 0))
        status =
            cb_error_set(&err, CB_UNAVAILABLE, "its events are %g ms apart", (double)milliseconds);
    remember(&device->unread, status, &err);
    return status == CB_OK ? (double)milliseconds * 1e6 : (double)NAN;
}

void cb__cuda_batch_free(cb__device *device, cb__batch *batch)
{
    const cb__cuda *driver = &device->driver;
    if (!batch)
        return;
    if (batch->exec)
        driver->cuGraphExecDestroy(batch->exec);
    if (batch->graph)
        driver->cuGraphDestroy(batch->graph);
    if (batch->start)
        driver->cuEventDestroy(batch->start);
    if (batch->end)
        driver->cuEventDestroy(batch->end);
    free(batch);
}
