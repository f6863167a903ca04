/* Latency by dependent loads around one cycle through all lines of a set, from the slope between
 * some loads and three times as many. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probe/sweep_internal.h"
#include "stats/order.h"

/* Steps that fill the first cache of one multiprocessor: of 256 KiB, twice. */
enum { LINE_BYTES = 64, STEPS_MAX = 1 << 24, PAIRS = 5, FILL_PARTS = 16, QUEUED_WARM_STEPS = 8192 };
#define READING_NS 1.5e6
/* Filling goes through the lines in the chain's own order, so that caches are as a walk leaves
 * them; what is walked before timing begins, in last-level caches, is for the private levels. With
 * 1.5 the figures are the same within their noise (Zen 4, November 2026). */
#define WARM_OVER_CACHE 0.1

typedef struct chasing {
    cb__sweeping *s;
    const char *variant, *pattern;
    uint64_t bytes;
    uint64_t hop; /* where the next launch begins: a cycle goes on, it is not begun anew */
    char *chain;  /* as the host sees it: the set itself, or a copy of its own */
} chasing;

static bool is_host_memory(const chasing *c)
{
    return (c->s->target.ops->capabilities & CB__DEVICE_MAPS_FILES) != 0;
}

/* Binds `steps` loads from where the last one ended. */
static cb_status bind(chasing *c, int64_t steps, cb__bound *to, cb_error *err)
{
    char params[96];
    snprintf(params, sizeof params, "pattern=%s,steps=%" PRId64 ",start=%" PRIu64, c->pattern,
             steps, c->hop);
    c->hop = (c->hop + (uint64_t)steps) % (c->bytes / LINE_BYTES);
    return cb__sweep_bind(c->s, c->variant, params, c->bytes, c->s->set, NULL, c->s->output, to,
                          err);
}

static cb_status walk(chasing *c, int64_t steps, double *ns, cb_error *err)
{
    cb__bound launch;
    cb_status status = bind(c, steps, &launch, err);
    return status == CB_OK ? cb__sweep_time(c->s, &launch, ns, err) : status;
}

/* The chain of this size, made by the kernel's own definition. */
static cb_status link_lines(chasing *c, cb_error *err)
{
    cb__bound b;
    uint64_t hop = c->hop;
    cb_status status = bind(c, 1, &b, err);
    c->hop = hop;
    if (status != CB_OK)
        return status;
    cb_problem problem = cb__case_problem(&b.c);
    int chain = 0;
    while (b.c.kernel->operands[chain].role != CB_STREAM)
        chain++;
    c->s->random = false;
    for (int part = 0; part < FILL_PARTS; part++) {
        b.c.kernel->fill(&problem, c->s->sweep->seed, chain, 0, c->chain, part, FILL_PARTS);
        cb__sweep_say(c->s, 0);
    }
    return is_host_memory(c)
               ? CB_OK
               : c->s->target.ops->write(c->s->target.device, c->s->set, c->chain, c->bytes, err);
}

/* Of a device whose caches do not see the host fill: it reads the set as all of it does, so that
 * what its last cache can hold is there. */
static cb_status read_all(chasing *c, cb_error *err)
{
    cb__bound read;
    double ns;
    cb_status status = cb__sweep_bind(c->s, "twin_read", "passes=1", c->bytes, c->s->set, NULL,
                                      c->s->output, &read, err);
    for (int i = 0; i < 2 && status == CB_OK; i++)
        status = cb__sweep_time(c->s, &read, &ns, err);
    return status;
}

static cb_status warm(chasing *c, double *step_ns, cb_error *err)
{
    int64_t lines = (int64_t)(c->bytes / LINE_BYTES);
    double cache = (double)(c->s->info.llc_bytes ? c->s->info.llc_bytes : UINT64_C(64) << 20);
    int64_t wanted = (int64_t)(WARM_OVER_CACHE * cache / LINE_BYTES), walked = 0;
    double ns = 0, once = 0;
    cb_status status = CB_OK;
    if (c->s->info.queued)
        wanted = wanted < QUEUED_WARM_STEPS ? wanted : QUEUED_WARM_STEPS;
    wanted = wanted < 2 * lines ? wanted : 2 * lines;
    if (c->s->info.queued)
        status = read_all(c, err);
    while (walked < wanted && status == CB_OK) {
        int64_t steps = wanted - walked < 1 << 18 ? wanted - walked : 1 << 18;
        status = walk(c, steps, &ns, err);
        walked += steps;
        cb__sweep_say(c->s, 0);
    }
    if (status == CB_OK)
        status = walk(c, 4096, &once, err);
    *step_ns = fmax((once - c->s->empty_ns) / 4096, 0.2);
    return status;
}

/* The output says where the last launch arrived; where it had to is the reference's to say. */
static cb_status arrived(chasing *c, const cb__bound *last, int *covered, cb_error *err)
{
    uint64_t end = 0;
    double value = 0, bound = 0;
    int output = 0;
    cb_problem problem = cb__case_problem(&last->c);
    while (last->c.kernel->operands[output].role != CB_OUTPUT)
        output++;
    const void *logical[CB_OPERANDS_MAX] = {0};
    for (int i = 0; i < last->c.kernel->noperands; i++)
        if (last->c.kernel->operands[i].role == CB_STREAM)
            logical[i] = c->chain;
    last->c.kernel->reference(&problem, logical, output, 0, 1, &value, &bound);
    size_t bytes = (size_t)last->c.logical_bytes[output];
    cb_status status = c->s->target.ops->read(c->s->target.device, &end, c->s->output,
                                              bytes < sizeof end ? bytes : sizeof end, err);
    *covered = (double)end == value;
    return status;
}

static cb_status measure(chasing *c, cb__reading *out, cb_error *err)
{
    cb__bound few, many;
    cb__pair pair = {0};
    double step_ns = 0, few_ns[PAIRS], many_ns[PAIRS], hz[PAIRS];
    cb_status status = link_lines(c, err);
    if (status == CB_OK)
        status = warm(c, &step_ns, err);
    if (status != CB_OK)
        return status;
    int64_t steps = cb__sweep_repeats(READING_NS / 4, step_ns, STEPS_MAX);
    bool has_clock = c->s->target.ops->clock_hz != NULL;
    for (int i = 0; i < PAIRS && status == CB_OK; i++) {
        status = bind(c, steps, &few, err);
        if (status == CB_OK)
            status = cb__sweep_time(c->s, &few, &few_ns[i], err);
        if (status == CB_OK)
            status = bind(c, 3 * steps, &many, err);
        if (status == CB_OK)
            status = cb__sweep_time(c->s, &many, &many_ns[i], err);
        hz[i] = has_clock ? c->s->target.ops->clock_hz(c->s->target.device) : (double)NAN;
    }
    if (status != CB_OK)
        return status;
    pair = (cb__pair){cb__median(few_ns, PAIRS), cb__median(many_ns, PAIRS), cb__median(hz, PAIRS)};
    out->value = 1 / cb__pair_rate(&pair, (double)steps);
    out->folded = cb__pair_folded(c->s, &pair);
    out->clock_hz = pair.clock_hz;
    out->variant = 0;
    return arrived(c, &many, &out->covered, err);
}

cb_status cb__sweep_latency(cb__sweeping *s, const cb__job *job, cb__reading *out, cb_error *err)
{
    cb_status status = CB_OK;
    for (int i = 0; i < job->n && status == CB_OK; i++) {
        chasing c = {.s = s,
                     .variant = job->variants[0],
                     .pattern = job->what,
                     .bytes = (uint64_t)job->bytes[i]};
        c.chain = is_host_memory(&c) ? s->set : malloc(c.bytes);
        status = c.chain ? measure(&c, &out[i], err)
                         : cb_error_set(err, CB_NO_MEMORY, "sweep: no memory for a chain");
        if (!is_host_memory(&c))
            free(c.chain);
        cb__sweep_say(s, (i + 1.0) / job->n);
    }
    return status;
}
