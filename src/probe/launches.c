/* Launches of a sweep: code that is built once and kept, and how long a launch takes. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probe/sweep_internal.h"
#include "stats/order.h"

enum { PAIR_READINGS_MAX = 5 };
#define RESOLVED_NS 500 /* twenty reads of the clock */

/* ---- building ---- */

/* Whether what was built of one serves the other: numbers are arguments of a launch. */
static bool same_code(const cb__kept *kept, const cb__case *c)
{
    bool same = kept->code.impl == c->impl;
    for (int i = 0; i < c->kernel->nparams && same; i++)
        if (c->kernel->params[i].words || c->kernel->params[i].values)
            same = kept->params[i] == c->params[i];
    for (int i = 0; i < c->impl->ntunables && same; i++)
        same = kept->tunables[i] == c->tunables[i];
    return same;
}

static cb_status build(cb__sweeping *s, cb__bound *b, cb_error *err)
{
    if (!s->target.ops->build)
        return CB_OK;
    for (int i = 0; i < s->nkept; i++)
        if (same_code(&s->kept[i], &b->c)) {
            b->code.built = s->kept[i].code.built;
            return CB_OK;
        }
    if (s->nkept == CB__KEPT_MAX)
        return cb_error_set(err, CB_INTERNAL, "sweep: more than %d kinds of code", CB__KEPT_MAX);
    cb_status status = cb__target_build(s->target, &b->code, err);
    if (status != CB_OK)
        return status;
    cb__kept *kept = &s->kept[s->nkept++];
    *kept = (cb__kept){.code = {.kernel = b->c.kernel, .impl = b->c.impl, .built = b->code.built}};
    memcpy(kept->params, b->c.params, sizeof kept->params);
    memcpy(kept->tunables, b->c.tunables, sizeof kept->tunables);
    return CB_OK;
}

void cb__sweep_unbuild(cb__sweeping *s)
{
    while (s->nkept > 0)
        cb__target_unbuild(s->target, &s->kept[--s->nkept].code);
}

cb_status cb__sweep_bind(cb__sweeping *s, const char *variant, const char *params, uint64_t shape,
                         void *stream, void *input, void *output, cb__bound *to, cb_error *err)
{
    char text[240], size[24];
    size_t name = strcspn(variant, "@/:");
    bool more = variant[name] == '@';
    const char *rest = variant + name + more;
    if (!*params)
        snprintf(text, sizeof text, "%s", variant);
    else
        snprintf(text, sizeof text, "%.*s@%s%s%s", (int)name, variant, params, more ? "," : "",
                 rest);
    snprintf(size, sizeof size, "%" PRIu64, shape);
    cb_status status = cb__case_parse(s->sweep->suite, text, size, s->sweep->isa, &to->c, err);
    if (status != CB_OK)
        return status;
    to->code = cb__case_code(&to->c);
    to->launch = (cb__launch){.code = &to->code};
    to->times = 1;
    for (int i = 0; i < to->c.kernel->noperands; i++) {
        cb_role role = to->c.kernel->operands[i].role;
        to->launch.operands[i] = role == CB_STREAM   ? stream
                                 : role == CB_INPUT  ? input
                                 : role == CB_OUTPUT ? output
                                                     : s->scratch;
    }
    return build(s, to, err);
}

/* ---- timing ---- */

/* What is timed again and again: by submitting and waiting, or as a batch by the clock of the
 * device, to which submitting costs nothing. */
typedef struct timed {
    const cb__bound *work;
    cb__launch *launches;
    cb__batch *batch;
} timed;

static void close_timed(cb__sweeping *s, timed *t)
{
    if (t->batch)
        s->target.ops->batch_free(s->target.device, t->batch);
    free(t->launches);
    *t = (timed){0};
}

static int times_of(const cb__bound *work)
{
    return work->times > 1 ? work->times : 1;
}

static cb_status open_timed(cb__sweeping *s, const cb__bound *work, timed *out, cb_error *err)
{
    int n = times_of(work);
    *out = (timed){.work = work};
    if (!s->info.queued)
        return CB_OK;
    out->launches = calloc((size_t)n, sizeof *out->launches);
    if (!out->launches)
        return cb_error_set(err, CB_NO_MEMORY, "sweep: no memory for %d launches", n);
    for (int i = 0; i < n; i++)
        out->launches[i] = work->launch;
    cb_status status =
        s->target.ops->batch_new(s->target.device, out->launches, n, &out->batch, err);
    if (status != CB_OK)
        close_timed(s, out);
    return status;
}

static cb_status read_timed(cb__sweeping *s, const timed *t, double *ns, cb_error *err)
{
    const cb__backend *ops = s->target.ops;
    uint64_t start = ops->now_ns(s->target.device);
    if (t->batch)
        ops->batch_run(s->target.device, t->batch);
    for (int i = 0; !t->batch && i < times_of(t->work); i++)
        ops->launch(s->target.device, &t->work->launch);
    cb_status status = ops->sync(s->target.device, err);
    *ns = t->batch ? ops->batch_span_ns(s->target.device, t->batch)
                   : (double)(ops->now_ns(s->target.device) - start);
    return status;
}

cb_status cb__sweep_times(cb__sweeping *s, const cb__bound *work, int n, double *ns, cb_error *err)
{
    timed t;
    cb_status status = open_timed(s, work, &t, err);
    for (int i = 0; i < n && status == CB_OK; i++)
        status = read_timed(s, &t, &ns[i], err);
    close_timed(s, &t);
    return status;
}

cb_status cb__sweep_time(cb__sweeping *s, const cb__bound *work, double *ns, cb_error *err)
{
    return cb__sweep_times(s, work, 1, ns, err);
}

cb_status cb__sweep_in_turn(cb__sweeping *s, const cb__bound *work, int n, double *ns,
                            cb_error *err)
{
    timed turns[CB__TURNS_MAX] = {{0}};
    cb_status status = CB_OK;
    for (int i = 0; i < n && status == CB_OK; i++)
        status = open_timed(s, &work[i], &turns[i], err);
    for (int i = 0; i < n && status == CB_OK; i++)
        status = read_timed(s, &turns[i], &ns[i], err);
    for (int i = 0; i < n; i++)
        close_timed(s, &turns[i]);
    return status;
}

cb_status cb__sweep_time_median(cb__sweeping *s, const cb__bound *work, int n, double *ns,
                                cb_error *err)
{
    double readings[CB__SWEEP_READINGS_MAX];
    cb_status status = cb__sweep_times(s, work, n, readings, err);
    *ns = cb__median(readings, (size_t)n);
    return status;
}

cb_status cb__sweep_pair(cb__sweeping *s, const cb__bound *few, const cb__bound *many, int n,
                         cb__pair *pair, cb_error *err)
{
    double a[PAIR_READINGS_MAX], b[PAIR_READINGS_MAX], hz[PAIR_READINGS_MAX];
    bool has_clock = s->target.ops->clock_hz != NULL;
    timed one, three = {0};
    cb_status status = open_timed(s, few, &one, err);
    if (status == CB_OK)
        status = open_timed(s, many, &three, err);
    for (int i = 0; i < n && status == CB_OK; i++) {
        /* While the clock is read, neighbours take what they can of a shared cache. */
        status = read_timed(s, &one, &a[i], err);
        if (status == CB_OK)
            status = read_timed(s, &one, &a[i], err);
        if (status == CB_OK)
            status = read_timed(s, &three, &b[i], err);
        hz[i] = has_clock ? s->target.ops->clock_hz(s->target.device) : (double)NAN;
    }
    close_timed(s, &one);
    close_timed(s, &three);
    *pair = (cb__pair){cb__median(a, (size_t)n), cb__median(b, (size_t)n),
                       has_clock ? cb__median(hz, (size_t)n) : (double)NAN};
    return status;
}

int cb__sweep_pairs(double few_ns, int visits)
{
    double worth = CB__WORTH_NS / (4 * few_ns * visits);
    return worth >= PAIR_READINGS_MAX && visits == 1 ? PAIR_READINGS_MAX : worth >= 3 ? 3 : 1;
}

int64_t cb__sweep_repeats(double ns, double unit_ns, int64_t max)
{
    double wanted = ns / unit_ns;
    return !(wanted > 1) ? 1 : wanted > (double)max ? max : (int64_t)wanted;
}

double cb__pair_rate(const cb__pair *pair, double amount)
{
    double slope = pair->many_ns - pair->few_ns;
    return slope > 0 ? 2 * amount / slope : (double)NAN;
}

double cb__pair_folded(const cb__sweeping *s, const cb__pair *pair)
{
    double once = pair->few_ns - s->empty_ns;
    /* What a launch costs must be small in it, and a tick of the clock. */
    return once > 3 * s->empty_ns + RESOLVED_NS ? (pair->many_ns - s->empty_ns) / (3 * once)
                                                : (double)NAN;
}
