/* Memory on the chip that a kernel manages itself, and the path through the caches, at one stride
 * after the other: what a multiprocessor's lanes read at once, from the slope between some passes
 * and three times as many. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probe/sweep_internal.h"

enum { PAIRS = 3, PASSES_MAX = 1 << 18 };
#define READING_NS 1.2e6

typedef struct reading_of {
    cb__sweeping *s;
    const char *variant;
    char path[8];
    int width;
    void *src; /* the host's copy of what is read */
} reading_of;

static cb_status bind(reading_of *r, int64_t stride, int64_t passes, cb__bound *to, cb_error *err)
{
    char params[96];
    snprintf(params, sizeof params, "path=%s,width=%d,stride=%" PRId64 ",passes=%" PRId64, r->path,
             r->width, stride, passes);
    return cb__sweep_bind(r->s, r->variant, params, (uint64_t)r->s->info.threads, NULL, r->s->input,
                          r->s->output, to, err);
}

static int operand_of(const cb__bound *b, cb_role role)
{
    int i = 0;
    while (b->c.kernel->operands[i].role != role)
        i++;
    return i;
}

static cb_status fill(reading_of *r, int64_t stride, cb_error *err)
{
    cb__bound b;
    cb_status status = bind(r, stride, 1, &b, err);
    if (status != CB_OK)
        return status;
    cb_problem problem = cb__case_problem(&b.c);
    int src = operand_of(&b, CB_INPUT);
    size_t bytes = (size_t)b.c.logical_bytes[src];
    r->src = malloc(bytes);
    if (!r->src)
        return cb_error_set(err, CB_NO_MEMORY, "sweep: no memory for an input");
    b.c.kernel->fill(&problem, r->s->sweep->seed, src, 0, r->src, 0, 1);
    return r->s->target.ops->write(r->s->target.device, r->s->input, r->src, bytes, err);
}

/* The sum that the first group of the last launch found. */
static cb_status cover(reading_of *r, const cb__bound *last, int *covered, cb_error *err)
{
    uint32_t sum = 0;
    double value = 0, bound = 0;
    const void *logical[CB_OPERANDS_MAX] = {0};
    cb_problem problem = cb__case_problem(&last->c);
    logical[operand_of(last, CB_INPUT)] = r->src;
    last->c.kernel->reference(&problem, logical, operand_of(last, CB_OUTPUT), 0, 1, &value, &bound);
    cb_status status =
        r->s->target.ops->read(r->s->target.device, &sum, r->s->output, sizeof sum, err);
    *covered = (double)sum == value;
    return status;
}

/* Bytes that the lanes ask for, as scratch_read is defined; its cost counts those of its array. */
static double asked_bytes(const reading_of *r)
{
    enum { LANES = 32, WARPS = 32, READS = 64 };
    return (double)LANES * WARPS * READS * r->width * r->s->info.threads;
}

static cb_status measure(reading_of *r, int64_t stride, cb__reading *out, cb_error *err)
{
    cb__bound some, few, many;
    cb__pair pair;
    double ns = 0;
    enum { FIRST = 16 };
    cb_status status = bind(r, stride, FIRST, &some, err);
    for (int i = 0; i < 2 && status == CB_OK; i++)
        status = cb__sweep_time(r->s, &some, &ns, err);
    double pass_ns = fmax(ns - r->s->empty_ns, 16) / FIRST;
    int64_t passes = cb__sweep_repeats(READING_NS / 4, pass_ns, PASSES_MAX);
    if (status == CB_OK)
        status = bind(r, stride, passes, &few, err);
    if (status == CB_OK)
        status = bind(r, stride, 3 * passes, &many, err);
    if (status == CB_OK)
        status = cb__sweep_pair(r->s, &few, &many, PAIRS, &pair, err);
    if (status != CB_OK)
        return status;
    out->value = cb__pair_rate(&pair, (double)passes * asked_bytes(r));
    out->folded = cb__pair_folded(r->s, &pair);
    out->clock_hz = pair.clock_hz;
    out->variant = 0;
    return cover(r, &many, &out->covered, err);
}

cb_status cb__sweep_scratch(cb__sweeping *s, const cb__job *job, cb__reading *out, cb_error *err)
{
    reading_of r = {.s = s, .variant = job->variants[0]};
    const char *slash = strchr(job->what, '/');
    size_t length = slash ? (size_t)(slash - job->what) : 0;
    if (!slash || length >= sizeof r.path)
        return cb_error_set(err, CB_USAGE, "sweep: '%s' is no path and width", job->what);
    memcpy(r.path, job->what, length);
    r.width = atoi(slash + 1);
    cb_status status = job->n ? fill(&r, job->bytes[0], err) : CB_OK;
    for (int i = 0; i < job->n && status == CB_OK; i++) {
        status = measure(&r, job->bytes[i], &out[i], err);
        cb__sweep_say(s, (i + 1.0) / job->n);
    }
    free(r.src);
    return status;
}
