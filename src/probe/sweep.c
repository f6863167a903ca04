#include "probe/sweep.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coldbench/random.h"
#include "stats/order.h"

enum { READINGS = 5, PASSES_MAX = 1365, SMALL_BYTES = 131072, CHUNK_WORDS = 8192 };

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

static cb_status bind(sweeping *s, uint64_t bytes, int passes, bound *to, cb_error *err)
{
    char variant[160], shape[24];
    const char *twin = s->sweep->twin;
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

/* In turn, so that what drifts drifts for both. */
static cb_status time_pair(sweeping *s, const cb__launch *few, const cb__launch *many,
                           double *few_ns, double *many_ns, cb_error *err)
{
    double a[READINGS], b[READINGS];
    cb_status status = CB_OK;
    for (int i = 0; i < READINGS && status == CB_OK; i++) {
        status = time_once(s, few, &a[i], err);
        if (status == CB_OK)
            status = time_once(s, many, &b[i], err);
    }
    *few_ns = cb__median(a, READINGS);
    *many_ns = cb__median(b, READINGS);
    return status;
}

static cb_status measure(sweeping *s, uint64_t bytes, double *gb_per_s, double *folded,
                         cb_error *err)
{
    bound few_passes, many_passes;
    double once = 0, few = 0, many = 0, empty = 0;
    cb_status status = bind(s, bytes, 1, &few_passes, err);
    for (int i = 0; i < 2 && status == CB_OK; i++) /* the second finds what the first left */
        status = time_once(s, &few_passes.launch, &once, err);
    static const cb__launch nothing;
    if (status == CB_OK)
        status = time_median(s, &nothing, &empty, err);
    if (status != CB_OK)
        return status;
    double pass_ns = once > 2 * empty ? once - empty : (double)bytes / 200;
    double wanted = s->sweep->reading_ns / 4 / pass_ns;
    int passes = wanted < 1 ? 1 : wanted > PASSES_MAX ? PASSES_MAX : (int)wanted;
    status = bind(s, bytes, passes, &few_passes, err);
    if (status == CB_OK)
        status = bind(s, bytes, 3 * passes, &many_passes, err);
    if (status == CB_OK)
        status = time_pair(s, &few_passes.launch, &many_passes.launch, &few, &many, err);
    *gb_per_s = many > few ? 2.0 * passes * (double)bytes / (many - few) : 0;
    *folded = few > empty ? (many - empty) / (3 * (few - empty)) : 0;
    return status;
}

cb_status cb__sweep_run(cb__target target, const cb__sweep *sweep, double *gb_per_s, double *folded,
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
        status = measure(&s, (uint64_t)sweep->bytes[i], &gb_per_s[i], &folded[i], err);
        progress(arg, (i + 1.0) / sweep->n);
    }
    if (target.ops->hold)
        target.ops->hold(target.device, false);
    target.ops->free(target.device, s.set);
    target.ops->free(target.device, s.small[0]);
    target.ops->free(target.device, s.small[1]);
    return status;
}
