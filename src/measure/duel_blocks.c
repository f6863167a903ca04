/* The timed part of a round. Between two adjacent slots of a block nothing allocates, logs, or
 * enters the kernel but for the clock. */
#include <math.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "measure/duel_internal.h"
#include "stats/order.h"

enum {
    ESTIMATES = 5,        /* launches of each arm, of which the fastest counts */
    WARM_UP_NS = 1000000, /* over all arms, after the verified launches */
    WARM_UP_MOST = 512,
    QUEUED_READING_NS = 60000, /* what submitting it costs the host is small beside it */
    FLOOR_READINGS = 21
};

/* ---- how long a launch takes, and what follows ---- */

/* Whether a slot's launches are timed by a clock that does not see what submitting them costs. */
static bool spans_alone(const cb__duel *duel)
{
    return duel->request->submit == CB__BATCHED &&
           (duel->target.ops->capabilities & CB__DEVICE_QUEUED);
}

/* One launch as slots will see it, about. */
static cb_status launch_time(cb__duel *duel, int arm, int i, double *ns, cb_error *err)
{
    const cb__backend *ops = duel->target.ops;
    cb__device *device = duel->target.device;
    const cb__duel_side *side = &duel->sides[arm];
    uint64_t start = ops->now_ns(device);
    if (spans_alone(duel))
        ops->batch_run(device, side->first);
    else
        ops->launch(device, &side->tables->launches[i % side->n]);
    cb_status status = ops->sync(device, err);
    *ns = spans_alone(duel) ? ops->batch_span_ns(device, side->first) / duel->verified
                            : (double)(ops->now_ns(device) - start);
    return status;
}

/* The slowest arm's fastest launch. An outlier would make readings too short for all. */
static cb_status estimate(cb__duel *duel, double *slowest_ns, cb_error *err)
{
    cb_status status = CB_OK;
    *slowest_ns = 0;
    for (int arm = 0; arm < duel->request->narms && duel->failed < 0; arm++) {
        double fastest = (double)INFINITY;
        cb__duel_mark(duel, arm, -1);
        for (int i = 0; i < ESTIMATES && status == CB_OK; i++) {
            double ns = 0;
            status = launch_time(duel, arm, i, &ns, err);
            fastest = fmin(fastest, ns);
        }
        cb__duel_mark(duel, -1, -1);
        status = cb__duel_found(duel, arm, status, err);
        if (status != CB_OK)
            return status;
        *slowest_ns = fmax(*slowest_ns, fastest);
    }
    return CB_OK;
}

static void choose_shape(cb__duel *duel, double launch_ns)
{
    cb__duel_result *out = duel->out;
    const cb__duel_request *q = duel->request;
    out->batch = q->batch;
    out->repeats = q->repeats;
    out->readings = q->readings;
    if (q->batch && q->repeats && q->readings)
        return;
    double reading_ns = spans_alone(duel) ? QUEUED_READING_NS : CB__READING_NS;
    double fit = q->submit == CB__BATCHED ? reading_ns / fmax(launch_ns, 1) + 1 : 1;
    out->batch = fit < duel->plan->batch ? (int)fit : duel->plan->batch;
    cb__slot_shape shape = cb__slot_shape_for(q->submit, launch_ns * out->batch);
    out->repeats = duel->restores ? 1 : shape.repeats; /* one call writes each slot once */
    out->readings = duel->restores ? 1 : shape.readings;
}

static cb_status make_batches(cb__duel *duel, cb_error *err)
{
    cb_status status = CB_OK;
    for (int made = 0; made < duel->request->narms && status == CB_OK; made++) {
        cb__duel_side *side = &duel->sides[duel->made[made]];
        int batch = duel->out->batch < side->n ? duel->out->batch : side->n;
        side->arm = (cb__arm){.launches = side->tables->launches,
                              .n = side->n,
                              .batches = side->batches,
                              .batch_launches = batch};
        /* Solo slots take launches one by one. */
        for (int i = 0;
             duel->request->submit == CB__BATCHED && status == CB_OK && (i + 1) * batch <= side->n;
             i++) {
            status =
                duel->target.ops->batch_new(duel->target.device, &side->tables->launches[i * batch],
                                            batch, &side->batches[i], err);
            side->arm.nbatches += status == CB_OK;
        }
    }
    return status;
}

/* ---- floor, warm-up ---- */

static cb_status floor_of(cb__duel *duel, double *ns, cb_error *err)
{
    static const cb__launch empty[CB__BATCH_MAX];
    const cb__backend *ops = duel->target.ops;
    int n = duel->out->batch;
    cb__batch *batch = NULL;
    cb__arm arm = {
        .launches = empty, .n = n, .batches = &batch, .nbatches = 1, .batch_launches = n};
    double readings[FLOOR_READINGS], host;
    int cursor = 0;
    cb__slot_shape shape = {duel->request->submit, 16, 1};
    cb_status status = ops->batch_new(duel->target.device, empty, n, &batch, err);
    for (int i = 0; i < FLOOR_READINGS && status == CB_OK; i++)
        status = cb__slot_run(duel->target, &arm, shape, &cursor, &readings[i], &host, err);
    if (status == CB_OK)
        *ns = cb__median(readings, FLOOR_READINGS);
    if (batch)
        ops->batch_free(duel->target.device, batch);
    return status;
}

static int places(const cb__duel *duel)
{
    const cb__arm *arm = &duel->sides[0].arm;
    return duel->request->submit == CB__SOLO ? arm->n : arm->nbatches;
}

/* Somewhere in the rotation that the verified launches have not touched and that comes round to
 * them late; warm there is one place. */
static void enter_rotation(cb__duel *duel)
{
    int all = places(duel);
    int per = duel->request->submit == CB__SOLO ? 1 : duel->sides[0].arm.batch_launches;
    int touched = (duel->verified > ESTIMATES ? duel->verified : ESTIMATES) / per + 1;
    int after = all > touched ? touched : 0;
    duel->cursor = after + (int)(cb__duel_draw(duel) % (unsigned)((all - after + 1) / 2));
}

static cb_status one_slot(cb__duel *duel, int arm, int place, cb__slot_shape shape, double *ns,
                          cb_error *err)
{
    double host;
    if (duel->restores) {
        int per = shape.submit == CB__SOLO ? 1 : duel->sides[arm].arm.batch_launches;
        for (int i = 0; i < per; i++) {
            cb_status status = cb__duel_poison(duel, arm, duel->cursor * per + i, 2, err);
            if (status != CB_OK)
                return status;
        }
    }
    cb__duel_mark(duel, arm, place);
    cb_status status =
        cb__slot_run(duel->target, &duel->sides[arm].arm, shape, &duel->cursor, ns, &host, err);
    return status;
}

static cb_status warm_up(cb__duel *duel, cb__slot_shape shape, cb_error *err)
{
    const cb__backend *ops = duel->target.ops;
    int n = duel->request->narms;
    uint64_t start = ops->now_ns(duel->target.device);
    for (int i = 0; i < WARM_UP_MOST && duel->failed < 0; i++) {
        double ignored;
        if (i % n == 0 && i > 0 && ops->now_ns(duel->target.device) - start >= WARM_UP_NS)
            break;
        cb_status status = one_slot(duel, i % n, -1, shape, &ignored, err);
        status = cb__duel_found(duel, i % n, status, err);
        if (status != CB_OK)
            return status;
        cb__duel_alive(duel);
    }
    return CB_OK;
}

/* ---- blocks ---- */

typedef struct timing {
    cb__slot_shape shape;
    double *gaps; /* [blocks * (narms - 1)] */
    int ngaps;
} timing;

static int64_t involuntary_now(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_nivcsw : 0;
}

/* Every arm once. ns and order: of this block; NULL: the lead-in. */
static cb_status one_block(cb__duel *duel, timing *t, double *ns, int64_t *order, cb_error *err)
{
    const cb__backend *ops = duel->target.ops;
    cb__device *device = duel->target.device;
    int n = duel->request->narms, arms[CB__DUEL_ARMS_MAX];
    uint64_t last = 0;
    cb__duel_shuffle(duel, arms);
    for (int place = 0; place < n; place++) {
        double value = 0;
        uint64_t start = ops->now_ns(device);
        cb_status status = one_slot(duel, arms[place], place, t->shape, &value, err);
        uint64_t end = ops->now_ns(device);
        if (status != CB_OK)
            return cb__duel_found(duel, arms[place], status, err);
        if (!ns)
            continue;
        ns[arms[place]] = value;
        order[place] = arms[place];
        if (place > 0)
            t->gaps[t->ngaps++] = (double)(start - last);
        last = end;
    }
    cb__duel_mark(duel, -1, -1);
    return CB_OK;
}

static cb_status blocks(cb__duel *duel, timing *t, cb_error *err)
{
    const cb__duel_request *q = duel->request;
    const cb__backend *ops = duel->target.ops;
    cb__duel_result *out = duel->out;
    size_t n = (size_t)q->narms;
    uint64_t start = ops->now_ns(duel->target.device);
    cb_status status = CB_OK;
    for (int b = 0; b < q->blocks && status == CB_OK && duel->failed < 0; b++) {
        if (b >= q->blocks_min && q->limit_ns &&
            ops->now_ns(duel->target.device) - start > q->limit_ns)
            break;
        cb__duel_alive(duel);
        int64_t before = involuntary_now();
        status = one_block(duel, t, out->ns + (size_t)b * n, out->order + (size_t)b * n, err);
        out->involuntary[b] = involuntary_now() - before;
        out->blocks = b + 1;
    }
    out->measured_ns = ops->now_ns(duel->target.device) - start;
    return status;
}

cb_status cb__duel_time(cb__duel *duel, cb_error *err)
{
    const cb__duel_request *q = duel->request;
    cb__duel_result *out = duel->out;
    double launch_ns = 0;
    timing t = {.gaps = malloc(((size_t)q->blocks * (size_t)q->narms + 1) * sizeof *t.gaps)};
    cb_status status = t.gaps ? CB_OK : cb_error_set(err, CB_NO_MEMORY, "worker: no memory");
    if (status == CB_OK && !(q->batch && q->repeats && q->readings))
        status = estimate(duel, &launch_ns, err);
    choose_shape(duel, launch_ns);
    if (status == CB_OK)
        status = make_batches(duel, err);
    if (status == CB_OK && q->floor)
        status = floor_of(duel, &out->floor_ns, err);
    if (status != CB_OK || duel->failed >= 0)
        goto out;
    t.shape = (cb__slot_shape){q->submit, out->repeats, out->readings};
    enter_rotation(duel);
    /* From here on the rotation is never left, or a set could be met again too soon. */
    status = warm_up(duel, t.shape, err);
    if (status == CB_OK && duel->failed < 0)
        status = one_block(duel, &t, NULL, NULL, err);
    if (status == CB_OK)
        status = blocks(duel, &t, err);
    out->gap_ns = cb__median(t.gaps, (size_t)t.ngaps);
out:
    free(t.gaps);
    return status;
}
