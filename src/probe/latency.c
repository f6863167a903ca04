/* Latency by dependent loads around one cycle through all lines of a set, from the slope between
 * some loads and three times as many. On a device it differs with the multiprocessor that waits, by
 * where on the chip it lies: each reading is of several, spread over all. */
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coldbench/random.h"
#include "probe/sweep_internal.h"
#include "stats/order.h"

enum {
    LINE_BYTES = 64,
    STEPS_MAX = 1 << 24,
    PAIRS = 5,
    FILL_PARTS = 16,
    FILL_THREADS = 8,
    PLACES = 7
};
#define READING_NS 1.5e6
#define PLACE_READING_NS 1e6
/* Filling goes through the lines in the chain's own order, so that caches are as a walk leaves
 * them; what is walked before timing begins, in last-level caches, is for the private levels. With
 * 1.5 the figures are the same within their noise (Zen 4, November 2026). */
#define WARM_OVER_CACHE 0.1
/* What a multiprocessor reads of the chain before it walks, by all of its threads; twice, since a
 * line that lies in the other half of the second cache has a copy in the near one from then on. */
#define LEAD_OVER_CACHE 1.25
/* What all of them read before that. What bandwidth was measured on stays for long against lines
 * that are read once: without, 8 MiB that all had read twice were walked at 170 to 217 ns,
 * differently in each process, and with it at 146 in every one (H200, 2026-11). */
#define PURGE_OVER_CACHE 8

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

/* Binds `steps` loads from where the last one ended, after a lead-in of so many hops. */
static cb_status bind_at(chasing *c, int place, uint64_t lead, int64_t steps, cb__bound *to,
                         cb_error *err)
{
    char params[160];
    snprintf(params, sizeof params,
             "pattern=%s,steps=%" PRId64 ",start=%" PRIu64 ",lead=%" PRIu64 ",place=%d", c->pattern,
             steps, c->hop, lead, place);
    c->hop = (c->hop + (uint64_t)steps) % (c->bytes / LINE_BYTES);
    return cb__sweep_bind(c->s, c->variant, params, c->bytes, c->s->set, NULL, c->s->output, to,
                          err);
}

static cb_status bind(chasing *c, int64_t steps, cb__bound *to, cb_error *err)
{
    return bind_at(c, 0, 0, steps, to, err);
}

static cb_status walk(chasing *c, int64_t steps, double *ns, cb_error *err)
{
    cb__bound launch;
    cb_status status = bind(c, steps, &launch, err);
    return status == CB_OK ? cb__sweep_time(c->s, &launch, ns, err) : status;
}

/* The host's part of it, of a chain for a device: a second of a sweep on one thread. */
typedef struct filling {
    const cb_kernel *kernel;
    const cb_problem *problem;
    uint64_t seed;
    int operand;
    char *to;
    atomic_int next; /* part */
} filling;

static void *fill_parts(void *arg)
{
    filling *f = arg;
    for (int part; (part = atomic_fetch_add(&f->next, 1)) < FILL_PARTS;)
        f->kernel->fill(f->problem, f->seed, f->operand, 0, f->to, part, FILL_PARTS);
    return NULL;
}

/* Threads that cannot be had leave their parts to the others. */
static void fill_on_all(filling *f)
{
    pthread_t threads[FILL_THREADS - 1];
    int n = 0;
    while (n < FILL_THREADS - 1 && pthread_create(&threads[n], NULL, fill_parts, f) == 0)
        n++;
    fill_parts(f);
    while (n > 0)
        pthread_join(threads[--n], NULL);
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
    filling f = {b.c.kernel, &problem, c->s->sweep->seed, chain, c->chain, 0};
    if (is_host_memory(c))
        fill_parts(&f);
    else
        fill_on_all(&f);
    cb__sweep_say(c->s, 0);
    return is_host_memory(c)
               ? CB_OK
               : c->s->target.ops->write(c->s->target.device, c->s->set, c->chain, c->bytes, err);
}

static cb_status warm(chasing *c, double *step_ns, cb_error *err)
{
    int64_t lines = (int64_t)(c->bytes / LINE_BYTES);
    double cache = (double)(c->s->info.llc_bytes ? c->s->info.llc_bytes : UINT64_C(64) << 20);
    int64_t wanted = (int64_t)(WARM_OVER_CACHE * cache / LINE_BYTES), walked = 0;
    double ns = 0, once = 0;
    cb_status status = CB_OK;
    wanted = wanted < 2 * lines ? wanted : 2 * lines;
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

static cb_status measure_here(chasing *c, cb__reading *out, cb_error *err)
{
    cb__bound few, many;
    cb__pair pair = {0};
    double step_ns = 0, few_ns[PAIRS], many_ns[PAIRS], hz[PAIRS];
    cb_status status = warm(c, &step_ns, err);
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

/* ---- places on a chip ---- */

typedef struct placed {
    double few_ns, many_ns;
    int covered;
} placed;

/* So many last caches, and no more than there is. */
static uint64_t caches(const chasing *c, double times, uint64_t most_bytes)
{
    double cache = (double)(c->s->info.llc_bytes ? c->s->info.llc_bytes : UINT64_C(64) << 20);
    return times * cache < (double)most_bytes ? (uint64_t)(times * cache) / LINE_BYTES * LINE_BYTES
                                              : most_bytes;
}

static cb_status bind_purge(chasing *c, cb__bound *to, cb_error *err)
{
    return cb__sweep_bind(c->s, "twin_read", "passes=1",
                          caches(c, PURGE_OVER_CACHE, c->s->set_bytes), c->s->set, NULL,
                          c->s->output, to, err);
}

static cb_status measure_place(chasing *c, int place, int64_t steps, placed *out, cb_error *err)
{
    enum { PURGE, LEAD, AGAIN, FEW, MANY, TURNS };
    cb__bound turns[TURNS];
    double ns[TURNS];
    uint64_t lead = caches(c, LEAD_OVER_CACHE, c->bytes) / LINE_BYTES;
    cb_status status = bind_purge(c, &turns[PURGE], err);
    for (int i = LEAD; i <= AGAIN && status == CB_OK; i++)
        status = bind_at(c, place, lead, 1, &turns[i], err);
    if (status == CB_OK)
        status = bind_at(c, place, 0, steps, &turns[FEW], err);
    if (status == CB_OK)
        status = bind_at(c, place, 0, 3 * steps, &turns[MANY], err);
    if (status == CB_OK)
        status = cb__sweep_in_turn(c->s, turns, TURNS, ns, err);
    if (status != CB_OK)
        return status;
    out->few_ns = ns[FEW];
    out->many_ns = ns[MANY];
    return arrived(c, &turns[MANY], &out->covered, err);
}

/* How long a step takes, roughly. A launch begins with an empty first cache: steps that go once
 * round a set that fits it must be few of all. */
static cb_status pace(chasing *c, int place, double *step_ns, cb_error *err)
{
    enum { STEPS = 4096 };
    placed p = {0};
    cb_status status = measure_place(c, place, STEPS, &p, err);
    *step_ns = fmax((p.many_ns - p.few_ns) / (2 * STEPS), 0.2);
    return status;
}

static cb_status measure_places(chasing *c, cb__reading *out, cb_error *err)
{
    double few[PLACES], many[PLACES], step_ns[PLACES], least = 0;
    int all = c->s->info.threads, n = all < PLACES ? all : PLACES;
    int first = (int)(cb_random(c->s->sweep->seed, 0x706c616365u, c->bytes, 0) % (uint64_t)all);
    bool has_clock = c->s->target.ops->clock_hz != NULL;
    cb_status status = pace(c, 1 + first, &least, err);
    int64_t steps = cb__sweep_repeats(PLACE_READING_NS / 4, least, STEPS_MAX);
    out->covered = 1;
    for (int i = 0; i < n && status == CB_OK; i++) {
        placed p = {0};
        status = measure_place(c, 1 + (first + i * all / n) % all, steps, &p, err);
        few[i] = p.few_ns;
        many[i] = p.many_ns;
        step_ns[i] = (p.many_ns - p.few_ns) / (2 * (double)steps);
        out->covered = out->covered && p.covered;
    }
    if (status != CB_OK)
        return status;
    cb__pair pair = {cb__median(few, (size_t)n), cb__median(many, (size_t)n), (double)NAN};
    out->value = cb__median(step_ns, (size_t)n); /* which sorts them */
    out->low = step_ns[0];
    out->high = step_ns[n - 1];
    out->folded = cb__pair_folded(c->s, &pair);
    out->clock_hz = has_clock ? c->s->target.ops->clock_hz(c->s->target.device) : (double)NAN;
    out->variant = 0;
    return CB_OK;
}

static cb_status measure(chasing *c, cb__reading *out, cb_error *err)
{
    cb_status status = link_lines(c, err);
    if (status != CB_OK)
        return status;
    return c->s->info.queued ? measure_places(c, out, err) : measure_here(c, out, err);
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
