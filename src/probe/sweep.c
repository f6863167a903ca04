#include "probe/sweep.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coldbench/random.h"
#include "stats/order.h"

enum {
    CHOOSE_NS = 200000,
    READINGS = 5,
    PASSES_MAX = 1365,
    SMALL_BYTES = 131072,
    CHUNK_WORDS = 8192
};

typedef struct sweeping {
    cb__target target;
    const cb__sweep *sweep;
    void *set, *small[2];
} sweeping;

static cb_status fill_random(sweeping *s, uint64_t bytes, cb_error *err)
{
    uint64_t words[CHUNK_WORDS];
    uint64_t key = cb_random_key(s->sweep->seed, 0x73776570u, 0);
    cb_status status = CB_OK;
    for (uint64_t at = 0; at < bytes && status == CB_OK; at += sizeof words) {
        for (uint64_t i = 0; i < CHUNK_WORDS; i++)
            words[i] = cb_random_word(key, at / 8 + i);
        uint64_t n = bytes - at < sizeof words ? bytes - at : sizeof words;
        status = s->target.ops->write(s->target.device, (char *)s->set + at, words, n, err);
    }
    return status;
}

/* One number of passes, bound; stays where it is while it is launched. */
typedef struct bound {
    cb__case c;
    cb__code code;
    cb__launch launch;
} bound;

static cb_status bind(sweeping *s, const char *twin, uint64_t bytes, int passes, bound *to,
                      cb_error *err)
{
    char variant[160], shape[24];
    size_t name = strcspn(twin, "/:");
    snprintf(variant, sizeof variant, "%.*s@passes=%d%s", (int)name, twin, passes, twin + name);
    snprintf(shape, sizeof shape, "%" PRIu64, bytes);
    cb_status status = cb__case_parse(s->sweep->suite, variant, shape, s->sweep->isa, &to->c, err);
    if (status != CB_OK)
        return status;
    to->code = cb__case_code(&to->c);
    to->launch = (cb__launch){.code = &to->code};
    for (int i = 0; i < to->c.kernel->noperands; i++) {
        cb_role role = to->c.kernel->operands[i].role;
        to->launch.operands[i] = role == CB_STREAM ? s->set : s->small[role == CB_SCRATCH];
    }
    return status;
}

static cb_status time_once(sweeping *s, const cb__launch *launch, double *ns, cb_error *err)
{
    const cb__backend *ops = s->target.ops;
    uint64_t start = ops->now_ns(s->target.device);
    ops->launch(s->target.device, launch);
    cb_status status = ops->sync(s->target.device, err);
    *ns = (double)(ops->now_ns(s->target.device) - start);
    return status;
}

static cb_status time_median(sweeping *s, const cb__launch *launch, double *ns, cb_error *err)
{
    double readings[READINGS];
    cb_status status = CB_OK;
    for (int i = 0; i < READINGS && status == CB_OK; i++)
        status = time_once(s, launch, &readings[i], err);
    *ns = cb__median(readings, READINGS);
    return status;
}

/* In turn, so that what drifts drifts for both; and the clock between them, as it is under this
 * load. */
static cb_status time_pair(sweeping *s, const cb__launch *few, const cb__launch *many,
                           double *few_ns, double *many_ns, double *clock_hz, cb_error *err)
{
    double a[READINGS], b[READINGS], hz[READINGS];
    cb_status status = CB_OK;
    for (int i = 0; i < READINGS && status == CB_OK; i++) {
        status = time_once(s, few, &a[i], err);
        if (status == CB_OK)
            status = time_once(s, many, &b[i], err);
        hz[i] = s->target.ops->clock_hz ? s->target.ops->clock_hz(s->target.device) : (double)NAN;
    }
    *few_ns = cb__median(a, READINGS);
    *many_ns = cb__median(b, READINGS);
    *clock_hz = s->target.ops->clock_hz ? cb__median(hz, READINGS) : (double)NAN;
    return status;
}

/* The twin that is fastest on this size, and the time of one pass: drive is searched at every size.
 */
static cb_status choose(sweeping *s, uint64_t bytes, double empty_ns, const char **twin,
                        double *pass_ns, cb_error *err)
{
    cb_status status = CB_OK;
    double best = 0;
    for (int i = 0; i < s->sweep->ntwins && status == CB_OK; i++) {
        bound one, some;
        double once = 0, ns = 0;
        status = bind(s, s->sweep->twins[i], bytes, 1, &one, err);
        for (int j = 0; j < 2 && status == CB_OK; j++) /* the second finds what the first left */
            status = time_once(s, &one.launch, &once, err);
        double pass = once > 2 * empty_ns ? once - empty_ns : (double)bytes / 200;
        double wanted = CHOOSE_NS / pass;
        int passes = wanted < 1 ? 1 : wanted > PASSES_MAX ? PASSES_MAX : (int)wanted;
        if (status == CB_OK)
            status = bind(s, s->sweep->twins[i], bytes, passes, &some, err);
        if (status == CB_OK)
            status = time_median(s, &some.launch, &ns, err);
        ns = (ns - empty_ns) / passes;
        if (i == 0 || ns < best) {
            best = ns;
            *twin = s->sweep->twins[i];
        }
    }
    *pass_ns = best > 0 ? best : (double)bytes / 200;
    return status;
}

static cb_status measure(sweeping *s, uint64_t bytes, cb__sweep_point *point, cb_error *err)
{
    static const cb__launch nothing;
    bound few_passes, many_passes;
    double few = 0, many = 0, empty = 0, pass_ns = 0;
    const char *twin = NULL;
    cb_status status = time_median(s, &nothing, &empty, err);
    if (status == CB_OK)
        status = choose(s, bytes, empty, &twin, &pass_ns, err);
    if (status != CB_OK)
        return status;
    double wanted = s->sweep->reading_ns / 4 / pass_ns;
    int passes = wanted < 1 ? 1 : wanted > PASSES_MAX ? PASSES_MAX : (int)wanted;
    status = bind(s, twin, bytes, passes, &few_passes, err);
    if (status == CB_OK)
        status = bind(s, twin, bytes, 3 * passes, &many_passes, err);
    if (status == CB_OK)
        status = time_pair(s, &few_passes.launch, &many_passes.launch, &few, &many,
                           &point->clock_hz, err);
    point->gb_per_s = many > few ? 2.0 * passes * (double)bytes / (many - few) : 0;
    point->folded = few > empty ? (many - empty) / (3 * (few - empty)) : 0;
    return status;
}

cb_status cb__sweep_run(cb__target target, const cb__sweep *sweep, cb__sweep_point *points,
                        void (*progress)(void *, double), void *arg, cb_error *err)
{
    sweeping s = {.target = target, .sweep = sweep};
    uint64_t largest = 0;
    for (int i = 0; i < sweep->n; i++)
        largest = (uint64_t)sweep->bytes[i] > largest ? (uint64_t)sweep->bytes[i] : largest;
    cb_status status = target.ops->alloc(target.device, largest, &s.set, err);
    for (int i = 0; i < 2 && status == CB_OK; i++)
        status = target.ops->alloc(target.device, SMALL_BYTES, &s.small[i], err);
    if (status == CB_OK)
        status = fill_random(&s, largest, err);
    if (target.ops->hold)
        target.ops->hold(target.device, true);
    for (int i = 0; i < sweep->n && status == CB_OK; i++) {
        status = measure(&s, (uint64_t)sweep->bytes[i], &points[i], err);
        progress(arg, (i + 1.0) / sweep->n);
    }
    if (target.ops->hold)
        target.ops->hold(target.device, false);
    target.ops->free(target.device, s.set);
    target.ops->free(target.device, s.small[0]);
    target.ops->free(target.device, s.small[1]);
    return status;
}
