/* Rates of arithmetic, from the slope between some blocks of work and three times as many. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "probe/sweep_internal.h"

enum { PAIRS = 5, LINE_BYTES = 64, INPUT_BYTES_MAX = 16384 };
#define READING_NS 2e6

/* Inputs lie one after the other in the small operand, each in lines of its own. */
static void place_inputs(const cb__sweeping *s, cb__bound *b)
{
    char *at = s->input;
    for (int i = 0; i < b->c.kernel->noperands; i++) {
        if (b->c.kernel->operands[i].role != CB_INPUT)
            continue;
        b->launch.operands[i] = at;
        at += (b->c.logical_bytes[i] + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
    }
}

static cb_status bind(cb__sweeping *s, const cb__job *job, int variant, int64_t blocks,
                      cb__bound *to, cb_error *err)
{
    char params[32] = "";
    bool tensor = strncmp(job->variants[variant], "peak_mma", strlen("peak_mma")) == 0;
    bool int8 = strcmp(job->what, "int8") == 0;
    if (tensor)
        snprintf(params, sizeof params, "inputs=%s", int8 ? "s8" : job->what);
    else if (!int8)
        snprintf(params, sizeof params, "type=%s", job->what);
    cb_status status = cb__sweep_bind(s, job->variants[variant], params, (uint64_t)blocks, NULL,
                                      s->input, s->set, to, err);
    if (status == CB_OK)
        place_inputs(s, to);
    return status;
}

/* Within the ranges that the definition gives them: arithmetic on other numbers can take longer. */
static cb_status fill_inputs(cb__sweeping *s, cb__bound *b, cb_error *err)
{
    char bytes[INPUT_BYTES_MAX];
    cb_problem problem = cb__case_problem(&b->c);
    cb_status status = CB_OK;
    for (int i = 0; i < b->c.kernel->noperands && status == CB_OK; i++) {
        size_t size = (size_t)b->c.logical_bytes[i];
        if (b->c.kernel->operands[i].role != CB_INPUT || size == 0)
            continue;
        if (size > sizeof bytes)
            return cb_error_set(err, CB_INTERNAL, "%s: more input than the probe has room for",
                                b->c.kernel->name);
        b->c.kernel->fill(&problem, s->sweep->seed, i, 0, bytes, 0, 1);
        status = s->target.ops->write(s->target.device, b->launch.operands[i], bytes, size, err);
    }
    return status;
}

/* Of blocks that a multiprocessor takes: what all of its threads have in hand at once divides
 * these, so that the last turn is not one of a few. */
static int64_t whole_turns(int64_t blocks)
{
    int64_t turn = blocks >= 64 ? 64 : blocks >= 8 ? 8 : 1;
    return blocks / turn * turn;
}

/* As many blocks as take about READING_NS, three times as many of which fit the set. */
static cb_status count_blocks(cb__sweeping *s, const cb__job *job, int variant, int64_t *blocks,
                              cb_error *err)
{
    cb__bound some;
    double ns = 0;
    int64_t threads = s->info.threads;
    cb_status status = bind(s, job, variant, 64 * threads, &some, err);
    if (status == CB_OK)
        status = fill_inputs(s, &some, err);
    for (int i = 0; i < 3 && status == CB_OK; i++)
        status = cb__sweep_time(s, &some, &ns, err);
    if (status != CB_OK)
        return status;
    double block_ns = fmax(ns - s->empty_ns, 64) / 64; /* of one thread */
    int64_t room =
        (int64_t)(s->set_bytes * 64 * (uint64_t)threads / (3 * some.c.cost.bytes_written));
    int64_t most = room / threads;
    int64_t each = cb__sweep_repeats(READING_NS / 4, block_ns, most < 1 ? 1 : most);
    if (s->info.queued)
        each = whole_turns(each);
    *blocks = threads * each;
    return CB_OK;
}

static cb_status measure(cb__sweeping *s, const cb__job *job, int variant, cb__reading *out,
                         cb_error *err)
{
    cb__bound few, many;
    cb__pair pair;
    int64_t blocks = 0;
    cb_status status = count_blocks(s, job, variant, &blocks, err);
    if (status == CB_OK)
        status = bind(s, job, variant, blocks, &few, err);
    if (status == CB_OK)
        status = bind(s, job, variant, 3 * blocks, &many, err);
    if (status == CB_OK)
        status = cb__sweep_pair(s, &few, &many, PAIRS, &pair, err);
    if (status != CB_OK)
        return status;
    out->value = cb__pair_rate(&pair, few.c.cost.flops);
    out->folded = cb__pair_folded(s, &pair);
    out->clock_hz = pair.clock_hz;
    out->variant = variant;
    return CB_OK;
}

cb_status cb__sweep_compute(cb__sweeping *s, const cb__job *job, cb__reading *out, cb_error *err)
{
    cb_status status = CB_OK;
    s->random = false;
    for (int i = 0; i < job->nvariants && status == CB_OK; i++) {
        cb__reading reading = *out;
        status = measure(s, job, i, &reading, err);
        if (status == CB_OK && !(reading.value <= out->value))
            *out = reading;
    }
    return status;
}
