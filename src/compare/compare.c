#include "compare/compare.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "coldbench/random.h"
#include "compare/session.h"
#include "host/clock.h"

enum {
    BLOCKS_WARM = 60,
    BLOCKS_COLD = 120,
    /* Short slots, and processes that are alike but slow to start. On an H200 300 blocks of 9 MB
     * give thetas with a deviation of 0.2 %: a tie within 1 % is sure. */
    BLOCKS_QUEUED = 300,
    BLOCKS_QUEUED_FINE = 400,
    BLOCKS_ENOUGH = 20, /* warm: what differs between processes is larger than what is left */
    BLOCKS_MIN = 10,    /* where the budget is short */
    ROUNDS_WANTED = 10  /* a pair without a second copy says nothing before */
};

#define FINE_MARGIN 0.01 /* below: more blocks a round on a queued device */
#define STARTUP_S 0.01   /* a process, its modules and its verified launches */
/* A warm round measures for this many times what it costs to start: more rounds tell more than
 * longer ones. */
#define MEASURE_OVER_STARTUP 1.5

/* ---- what is asked ---- */

const cb__suite *cb__side_suite(const cb__compare_request *r, int side)
{
    return r->suites[side] ? r->suites[side] : r->suite;
}

static cb_status signatures_differ(const cb_kernel *a, const cb_kernel *b, const char *what,
                                   cb_error *err)
{
    return cb_error_set(err, CB_USAGE,
                        "%s and %s cannot be compared: their %s differ; a comparison is of kernels "
                        "with the same dimensions, parameters and operands",
                        a->name, b->name, what);
}

static cb_status same_signature(const cb_kernel *a, const cb_kernel *b, cb_error *err)
{
    bool dims = a->ndims == b->ndims, params = a->nparams == b->nparams;
    bool operands = a->noperands == b->noperands;
    for (int i = 0; i < a->ndims && dims; i++)
        dims = strcmp(a->dims[i].name, b->dims[i].name) == 0;
    for (int i = 0; i < a->nparams && params; i++)
        params = strcmp(a->params[i].name, b->params[i].name) == 0;
    for (int i = 0; i < a->noperands && operands; i++)
        operands = a->operands[i].role == b->operands[i].role &&
                   a->operands[i].type == b->operands[i].type &&
                   strcmp(a->operands[i].name, b->operands[i].name) == 0;
    if (!dims)
        return signatures_differ(a, b, "dimensions", err);
    if (!params)
        return signatures_differ(a, b, "parameters", err);
    return operands ? CB_OK : signatures_differ(a, b, "operands", err);
}

/* A parameter is part of the definition: two that differ are meant only where both are written. */
static cb_status parameters_meant(const cb__case *a, const cb__case *b, cb_error *err)
{
    const cb_kernel *k = a->kernel;
    for (int i = 0; i < k->nparams; i++) {
        if (a->params[i] == b->params[i] || (a->spelled & b->spelled & 1u << i))
            continue;
        cb__buf x = CB__BUF_INIT, y = CB__BUF_INIT;
        cb__choice_text(&k->params[i], a->params[i], &x);
        cb__choice_text(&b->kernel->params[i], b->params[i], &y);
        const char *name = k->params[i].name;
        cb_status status = cb_error_set(
            err, CB_USAGE,
            "%s=%s against %s=%s: different parameters compute different things; to compare them "
            "all the same, spell %s on both sides",
            name, cb__buf_text(&x), name, cb__buf_text(&y), name);
        cb__buf_fini(&x);
        cb__buf_fini(&y);
        return status;
    }
    return CB_OK;
}

cb_status cb__compare_plan_cases(const cb__compare_request *r, const cb__device_info *info,
                                 const cb__case *cases, cb__comparison *out, cb_error *err)
{
    cb__plan plans[CB__SIDES_MAX];
    memset(out, 0, sizeof *out);
    out->device = *info;
    out->device.beyond_bytes = r->beyond_bytes;
    out->nsides = r->nsides;
    out->cache = r->cache;
    out->submit = r->submit;
    out->alpha = r->alpha;
    out->margin = r->margin;
    out->claims = r->claims;
    out->seed = r->seed;
    out->best = -1;
    cb_status status = cb__plan_arms(cases, r->nsides, &out->device, r->cache == CB__COLD, plans,
                                     &out->layout, err);
    if (status != CB_OK)
        return status;
    cb__buf shape = CB__BUF_INIT;
    cb__case_shape_text(&cases[0], &shape);
    snprintf(out->shape, sizeof out->shape, "%s", cb__buf_text(&shape));
    cb__buf_fini(&shape);
    for (int i = 0; i < r->nsides; i++) {
        cb__compare_side *side = &out->sides[i];
        snprintf(side->name, sizeof side->name, "%s", r->variants[i]);
        side->c = cases[i];
        side->plan = plans[i];
        side->steady = true;
        side->evidence = (cb__evidence){.c = &side->c,
                                        .plan = &side->plan,
                                        .device = &out->device,
                                        .cache = out->cache,
                                        .submit = out->submit,
                                        .complete = true};
    }
    return CB_OK;
}

cb_status cb__compare_plan(const cb__compare_request *r, const cb__device_info *info,
                           cb__comparison *out, cb_error *err)
{
    cb__case cases[CB__SIDES_MAX];
    if (r->nsides < 2 || r->nsides > CB__SIDES_MAX)
        return cb_error_set(err, CB_USAGE, "2 to %d sides can be compared, not %d", CB__SIDES_MAX,
                            r->nsides);
    cb_status status = CB_OK;
    /* A shape of one is none of the other: what they are comes first. */
    for (int i = 0; i < r->nsides && status == CB_OK; i++) {
        status = cb__case_parse_variant(cb__side_suite(r, i), r->variants[i],
                                        cb__isa_of(info, r->isa), &cases[i], err);
        if (status == CB_OK && i > 0)
            status = same_signature(cases[0].kernel, cases[i].kernel, err);
    }
    for (int i = 0; i < r->nsides && status == CB_OK; i++) {
        status = cb__case_parse(cb__side_suite(r, i), r->variants[i], r->shape,
                                cb__isa_of(info, r->isa), &cases[i], err);
        for (int j = 0; j < i && status == CB_OK; j++)
            status = parameters_meant(&cases[j], &cases[i], err);
    }
    return status == CB_OK ? cb__compare_plan_cases(r, info, cases, out, err) : status;
}

/* Filling at 1 GB/s, and six rounds of ten blocks at 5 GB/s, with their processes. */
double cb__compare_budget_min(const cb__comparison *c)
{
    double bytes = 0;
    for (int i = 0; i < c->nsides; i++)
        bytes += (double)(c->sides[i].c.cost.bytes_read + c->sides[i].c.cost.bytes_written);
    double rounds_s = CB__ROUNDS_MIN * (STARTUP_S + BLOCKS_MIN * bytes / 5e9);
    double fill_s = (double)c->sides[0].plan.file_bytes / 1e9;
    return ceil((0.1 + fill_s + rounds_s) * 10) / 10;
}

/* ---- rounds ---- */

static void say(const cb__compare_request *r, const char *what, int round)
{
    if (r->phase)
        r->phase(r->arg, what, round);
}

/* A scripted clock drives the budget too. */
static bool clock_is_virtual(const cb__comparing *s)
{
    const cb__backend *backend = NULL;
    const char *script = NULL;
    return cb__backend_find(s->request->device, &backend, &script, NULL) == CB_OK &&
           (backend->capabilities & CB__DEVICE_VIRTUAL_CLOCK);
}

static double elapsed_s(const cb__comparing *s)
{
    return clock_is_virtual(s) ? (double)s->device_ns * 1e-9
                               : (double)(cb__clock_ns() - s->start_ns) * 1e-9;
}

static double left_s(const cb__comparing *s)
{
    return s->request->budget_s - elapsed_s(s);
}

#define GRACE_S 0.5       /* a round that is nearly over is worth it */
#define SILENCE_MIN_S 1.0 /* a process needs this to start where all processors are taken */

cb__asker cb__asker_within(const cb__comparing *s, double patience_s)
{
    cb__asker asker = s->request->asker;
    asker.silence_s += patience_s;
    if (clock_is_virtual(s))
        return asker;
    double room_s = fmax(left_s(s), 0) + patience_s;
    asker.silence_s = fmin(asker.silence_s, fmax(room_s / 2, SILENCE_MIN_S));
    asker.until_ns = cb__clock_ns() + (uint64_t)((room_s + GRACE_S) * 1e9);
    return asker;
}

bool cb__asker_spent(const cb__asker *asker)
{
    return asker->until_ns && cb__clock_ns() >= asker->until_ns;
}

bool cb__asker_hurried(const cb__comparing *s, const cb__asker *asker)
{
    return asker->silence_s < s->request->asker.silence_s;
}

#define HOPELESS 4   /* a launch was looked at twice, and may have been interrupted both times */
#define LONG_S 0.001 /* of a launch; shorter ones are what the least budget supposes */

bool cb__budget_holds(cb__comparing *s, const cb__duel_result *r)
{
    cb__comparison *out = s->out;
    double launch_s = r->launch_ns * 1e-9;
    int launches = CB__PHASES * cb__plan_verified(&out->sides[0].plan) + BLOCKS_MIN + 2;
    double needed_s = CB__ROUNDS_MIN * (cb__sides_in(s) + 1) * launches * launch_s;
    if (s->request->process || !(launch_s > LONG_S) || left_s(s) <= 0 ||
        needed_s < HOPELESS * left_s(s))
        return true;
    s->spent = true;
    snprintf(out->why, sizeof out->why,
             "a launch takes %.2g s: the least budget is about %.0f s, of which %.2g s were left",
             launch_s, ceil(needed_s), fmax(left_s(s), 0));
    return false;
}

typedef struct round_size {
    int blocks, blocks_min;
    uint64_t limit_ns;
} round_size;

/* The blocks of the next round: the budget that is left is shared by the rounds that are still
 * wanted, less what each of them costs beside its blocks. */
static round_size size_of_round(const cb__comparing *s, double beside_s)
{
    bool queued = cb__parks(s), warm = s->out->cache == CB__WARM && !queued;
    int wanted = ROUNDS_WANTED - s->out->nrounds;
    double share_s = fmax(left_s(s) / (wanted > 1 ? wanted : 1) - beside_s, 1e-3);
    double enough_s = warm ? MEASURE_OVER_STARTUP * beside_s : share_s;
    bool short_of_time = share_s < enough_s;
    int queued_blocks = s->out->margin < FINE_MARGIN ? BLOCKS_QUEUED_FINE : BLOCKS_QUEUED;
    return (round_size){.blocks = queued ? queued_blocks
                                  : warm ? BLOCKS_WARM
                                         : BLOCKS_COLD,
                        .blocks_min = warm && !short_of_time ? BLOCKS_ENOUGH : BLOCKS_MIN,
                        .limit_ns = (uint64_t)((short_of_time ? share_s : enough_s) * 1e9)};
}

static bool two_are_in(const cb__comparing *s)
{
    return cb__sides_in(s) >= 2;
}

static cb_status rounds(cb__comparing *s, cb_error *err)
{
    cb__comparison *out = s->out;
    double beside_s = STARTUP_S, longest_s = 0;
    while (two_are_in(s) && out->nrounds < CB__ROUNDS_MAX && !s->spent && left_s(s) > 0) {
        bool done = false;
        double before = elapsed_s(s), waited_s = s->crew.waited_s;
        say(s->request, "round", out->nrounds);
        round_size size = size_of_round(s, beside_s);
        cb_status status =
            cb__compare_one_round(s, size.limit_ns, size.blocks, size.blocks_min, &done, err);
        if (status != CB_OK)
            return status;
        cb__sides_judge(s);
        bool decided = cb__pairs_judge(s, false);
        if (!done)
            continue;
        double took = elapsed_s(s) - before;
        const cb__duel_result *r = &out->rounds[out->nrounds - 1]->answer.result;
        beside_s = fmax(took - (s->crew.waited_s - waited_s) - (double)r->measured_ns * 1e-9, 0);
        longest_s = fmax(longest_s, took);
        bool early = out->nrounds < CB__ROUNDS_MIN;
        if (!early && (decided || left_s(s) < longest_s))
            return CB_OK;
        /* What was to fit does not: this machine is slower than the least budget supposes. */
        if (early && left_s(s) < 0)
            return CB_OK;
    }
    return CB_OK;
}

/* What is the same for all verified shapes is bit-identical. */
static void outputs_digest(cb__comparing *s)
{
    for (int side = 0; side < s->request->nsides; side++) {
        uint64_t all = 0;
        for (int i = 0; i < s->nstages; i++) {
            const cb__stage *stage = &s->stages[i];
            all = cb_random_mix(all + stage->digests[side]);
            if (!stage->seen[side])
                s->out->sides[side].steady = false;
        }
        s->out->sides[side].digest = all;
    }
}

static cb_status measure(cb__comparing *s, cb_error *err)
{
    say(s->request, "filling", -1);
    cb_status status = cb__parks(s) ? cb__park_begin(s, err) : CB_OK;
    if (status == CB_OK)
        status = cb__stages_fill(s, err);
    if (status == CB_OK)
        status = cb__verify_ragged(s, err);
    if (status == CB_OK)
        status = rounds(s, err);
    cb__crew_dismiss(&s->crew);
    if (status == CB_OK && !s->spent)
        status = cb__stages_inputs(s, err);
    cb__park_clear(s);
    return status;
}

static bool answered(const cb__comparison *c)
{
    for (int i = 0; i < c->npairs; i++)
        if (c->pairs[i].decision == CB__INCONCLUSIVE || c->pairs[i].decision == CB__UNSTABLE)
            return false;
    return c->complete;
}

static void say_why(cb__comparing *s, const cb_error *err)
{
    cb__comparison *c = s->out;
    if (c->why[0] || answered(c))
        return;
    if (!c->complete)
        snprintf(c->why, sizeof c->why, "%s",
                 !err || err->status == CB_INTERRUPTED ? "interrupted" : err->message);
    else if (c->nrounds >= CB__ROUNDS_MAX)
        snprintf(c->why, sizeof c->why, "%d rounds were made, and no more are", c->nrounds);
    else if (!two_are_in(s))
        snprintf(c->why, sizeof c->why, "fewer than two sides were left");
    else if (c->nrounds < CB__ROUNDS_MIN)
        snprintf(c->why, sizeof c->why,
                 "the budget (%.2g s) was spent after %d of the %d rounds that an answer needs",
                 s->request->budget_s, c->nrounds, CB__ROUNDS_MIN);
    else
        snprintf(c->why, sizeof c->why, "the budget (%.2g s) was spent after %d rounds",
                 s->request->budget_s, c->nrounds);
}

cb_status cb__compare_measure(const cb__compare_request *r, cb__arena *arena, cb__comparison *out,
                              cb_error *err)
{
    cb__comparing *s = cb__arena_alloc(arena, sizeof *s);
    if (!s)
        return cb_error_set(err, CB_NO_MEMORY, "no memory for a comparison");
    s->request = r;
    s->out = out;
    s->arena = arena;
    s->start_ns = cb__clock_ns();
    out->complete = out->measured = true;
    out->floor_ns = (double)NAN;
    cb__pairs_init(s);
    cb_status status = cb__stages_open(s, err);
    if (status == CB_OK)
        status = measure(s, err);
    out->complete = status == CB_OK;
    outputs_digest(s);
    cb__sides_judge(s);
    cb__pairs_judge(s, true);
    say_why(s, err);
    cb__best_of(out);
    out->wall_s = (double)(cb__clock_ns() - s->start_ns) * 1e-9;
    cb__stages_close(s);
    return status;
}
