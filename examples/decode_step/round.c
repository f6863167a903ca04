#include "round.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/topology.h"
#include "measure/poison.h"
#include "stats/order.h"
#include "timing/slot.h"

enum {
    ROUND_S_MAX = 300,
    GROUP = 8, /* steps whose median says whether times are flat */
    WARM_UP_NS = 50000000,
    WARM_UP_MOST_NS = 1000000000
};
#define FLAT 0.005

/* Which batch a slot belongs to: that of the step, or of the matrices of one shape. */
enum { IN_STEP, ALONE, BATCHES };

typedef struct round_side {
    cb__code code;
    unsigned char *ring, *slots;
    cb__launch *launches; /* alone */
    cb__batch *alone;
    unsigned char *seen[2]; /* slots as poisoned, or as read back; by phase % 2 */
} round_side;

typedef struct round_stage {
    const step *step;
    const char *device_name;
    int threads;
    uint64_t seed;
    round_answer *out;
    cb__target target;
    round_side sides[PARTS_MAX];
    cb__launch launches[LAUNCHES_MAX];
    cb__batch *batch;
} round_stage;

/* ---- processes ---- */

round_answer *round_answers_new(int n)
{
    void *memory = mmap(NULL, (size_t)n * sizeof(round_answer), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

void round_answers_free(round_answer *answers, int n)
{
    if (answers)
        munmap(answers, (size_t)n * sizeof *answers);
}

/* A device that has been opened is of no use to a forked child, so each process opens its own. */
static cb_status in_process(void (*work)(round_stage *s), round_stage *s, cb_error *err)
{
    int ended = 0;
    pid_t child = fork();
    if (child < 0)
        return cb_error_set(err, CB_IO, "fork: %s", strerror(errno));
    if (child == 0) {
        alarm(ROUND_S_MAX);
        work(s);
        s->out->answered = true;
        _exit(0);
    }
    while (waitpid(child, &ended, 0) < 0)
        if (errno != EINTR)
            return cb_error_set(err, CB_IO, "waiting for a round: %s", strerror(errno));
    if (WIFSIGNALED(ended))
        return cb_error_set(err, CB_CRASHED, "a round died of signal %d (%s)", WTERMSIG(ended),
                            strsignal(WTERMSIG(ended)));
    if (!s->out->answered)
        return cb_error_set(err, CB_CRASHED, "a round left with status %d and no answer",
                            WEXITSTATUS(ended));
    return s->out->err.status == CB_OK
               ? CB_OK
               : cb_error_set(err, s->out->err.status, "%s", s->out->err.message);
}

static cb_status open_device(round_stage *s, cb_error *err)
{
    const char *script = NULL;
    cb_status status = cb__backend_find(s->device_name, &s->target.ops, &script, err);
    if (status == CB_OK)
        status = s->target.ops->open(script, s->threads, CB__COMPACT, &s->target.device, err);
    return status;
}

static void describe(round_stage *s)
{
    if (open_device(s, &s->out->err) != CB_OK)
        return;
    s->target.ops->info(s->target.device, &s->out->info);
    s->target.ops->close(s->target.device);
}

cb_status round_describe(const char *device, int threads, round_answer *answer, unsigned *isa,
                         cb_error *err)
{
    static cb__topology topology;
    static round_stage s;
    s = (round_stage){.device_name = device, .threads = threads, .out = answer};
    cb_status status = in_process(describe, &s, err);
    *isa = answer->info.isa;
    if (status != CB_OK || *isa)
        return status;
    status = cb__topology_read("", &topology, err);
    *isa = topology.isa;
    return status;
}

/* ---- what lies where on the device ---- */

static void bind(const step_part *p, const round_side *side, int which, int set, cb__launch *launch)
{
    const cb__plan *plan = &p->plan;
    uint64_t slot = (uint64_t)(which * p->count + set);
    launch->code = &side->code;
    for (int i = 0; i < p->c.kernel->noperands; i++) {
        if (p->c.packed_bytes[i] == 0)
            launch->operands[i] = NULL;
        else if (plan->rotating[i])
            launch->operands[i] = side->ring + (uint64_t)set * plan->set_bytes + plan->offset[i];
        else if (cb__role_is_written(p->c.kernel->operands[i].role))
            launch->operands[i] = side->slots + slot * plan->slot_bytes + plan->offset[i];
        else
            launch->operands[i] = side->ring + plan->static_offset + plan->offset[i];
    }
}

static size_t slots_bytes(const step_part *p)
{
    return (size_t)(BATCHES * p->count) * p->plan.slot_bytes;
}

static cb_status open_side(round_stage *s, const step_part *p, round_side *side, cb_error *err)
{
    const cb__backend *ops = s->target.ops;
    side->launches = calloc((size_t)p->count, sizeof *side->launches);
    side->seen[0] = malloc(slots_bytes(p));
    side->seen[1] = malloc(slots_bytes(p));
    if (!side->launches || !side->seen[0] || !side->seen[1])
        return cb_error_set(err, CB_NO_MEMORY, "no memory for the outputs of %s", p->names);
    side->code = cb__case_code(&p->c);
    cb_status status = cb__target_build(s->target, &side->code, err);
    if (status == CB_OK)
        status = ops->map(s->target.device, p->ring.fd, p->plan.file_bytes, (void **)&side->ring,
                          NULL, err);
    if (status == CB_OK)
        status = ops->alloc(s->target.device, slots_bytes(p), CB__PAGES_HUGE, (void **)&side->slots,
                            err);
    for (int i = 0; i < p->count && status == CB_OK; i++)
        bind(p, side, ALONE, i, &side->launches[i]);
    if (status == CB_OK)
        status = ops->batch_new(s->target.device, side->launches, p->count, &side->alone, err);
    return status;
}

/* Layer after layer; the next matrix of a shape is the next set of its ring. */
static cb_status open_batch(round_stage *s, cb_error *err)
{
    const step *t = s->step;
    int used[PARTS_MAX] = {0}, n = 0, matrices = model_matrices(t->model);
    for (int layer = 0; layer < t->model->layers; layer++)
        for (int i = 0; i < matrices; i++) {
            int which = t->part_of[i];
            bind(&t->parts[which], &s->sides[which], IN_STEP, used[which]++, &s->launches[n++]);
        }
    return s->target.ops->batch_new(s->target.device, s->launches, n, &s->batch, err);
}

static cb_status open_all(round_stage *s, cb_error *err)
{
    cb_status status = open_device(s, err);
    if (status == CB_OK && s->target.ops->begin)
        s->target.ops->begin(s->target.device, s->seed, 0);
    for (int i = 0; i < s->step->nparts && status == CB_OK; i++)
        status = open_side(s, &s->step->parts[i], &s->sides[i], err);
    if (status == CB_OK)
        status = open_batch(s, err);
    if (status == CB_OK && s->target.ops->hold)
        s->target.ops->hold(s->target.device, true);
    return status;
}

static void close_all(round_stage *s)
{
    const cb__backend *ops = s->target.ops;
    cb__device *device = s->target.device;
    if (!device)
        return;
    if (ops->hold)
        ops->hold(device, false);
    ops->batch_free(device, s->batch);
    for (int i = 0; i < s->step->nparts; i++) {
        round_side *side = &s->sides[i];
        ops->batch_free(device, side->alone);
        cb__target_unbuild(s->target, &side->code);
        ops->free(device, side->slots);
        if (side->ring)
            ops->unmap(device, side->ring);
        free(side->launches);
        free(side->seen[0]);
        free(side->seen[1]);
    }
    ops->close(device);
}

/* ---- is it right? ---- */

static void poison_make(round_stage *s, int phase)
{
    for (int i = 0; i < s->step->nparts; i++) {
        const step_part *p = &s->step->parts[i];
        for (int slot = 0; slot < BATCHES * p->count; slot++)
            cb__poison_slot(&p->c, &p->plan, s->seed, slot, phase,
                            s->sides[i].seen[phase % 2] + (uint64_t)slot * p->plan.slot_bytes);
    }
}

static cb_status poison_lay(round_stage *s, int phase, cb_error *err)
{
    cb_status status = CB_OK;
    for (int i = 0; i < s->step->nparts && status == CB_OK; i++)
        status =
            s->target.ops->write(s->target.device, s->sides[i].slots, s->sides[i].seen[phase % 2],
                                 slots_bytes(&s->step->parts[i]), err);
    return status;
}

static bool is_bad(const cb__findings *f)
{
    return f->unwritten || f->guard_bytes || f->nonfinite || f->beyond || f->vacuous;
}

/* The first fault says which matrix it is of. */
static void place(const step_part *p, int slot, const char *when, bool was_bad, cb__findings *f)
{
    if (is_bad(f) && !was_bad)
        snprintf(f->where, sizeof f->where, ", matrix %d of %s%s, %s", slot % p->count, p->names,
                 slot < p->count ? "" : " alone", when);
}

static cb_status look(round_stage *s, int phase, cb_error *err)
{
    cb_status status = CB_OK;
    for (int i = 0; i < s->step->nparts && status == CB_OK; i++) {
        const step_part *p = &s->step->parts[i];
        cb__findings *f = &s->out->findings[i];
        unsigned char *seen = s->sides[i].seen[phase % 2];
        status =
            s->target.ops->read(s->target.device, seen, s->sides[i].slots, slots_bytes(p), err);
        for (int slot = 0; slot < BATCHES * p->count && status == CB_OK; slot++) {
            bool was_bad = is_bad(f);
            cb__verify_slot(&p->c, &p->plan, &p->reference, s->seed, slot, slot % p->count,
                            seen + (uint64_t)slot * p->plan.slot_bytes, f);
            place(p, slot, phase < 2 ? "before timing" : "as timed", was_bad, f);
        }
    }
    return status;
}

static void look_written(round_stage *s)
{
    for (int i = 0; i < s->step->nparts; i++) {
        const step_part *p = &s->step->parts[i];
        cb__findings *f = &s->out->findings[i];
        for (int slot = 0; slot < BATCHES * p->count; slot++) {
            uint64_t at = (uint64_t)slot * p->plan.slot_bytes;
            bool was_bad = is_bad(f);
            cb__verify_written(&p->c, &p->plan, s->seed, slot, s->sides[i].seen[0] + at,
                               s->sides[i].seen[1] + at, f);
            place(p, slot, "before timing", was_bad, f);
        }
    }
}

static cb_status look_inputs(round_stage *s, cb_error *err)
{
    cb_status status = CB_OK;
    for (int i = 0; i < s->step->nparts && status == CB_OK; i++) {
        const step_part *p = &s->step->parts[i];
        uint64_t digest = 0;
        status = s->target.ops->digest(s->target.device, s->sides[i].ring, p->plan.file_bytes,
                                       &digest, err);
        s->out->edited[i] = digest != p->digest;
    }
    return status;
}

/* ---- timing ---- */

static cb_status timed(round_stage *s, cb__batch *batch, double *span_ns, double *host_ns,
                       cb_error *err)
{
    const cb__backend *ops = s->target.ops;
    uint64_t start = ops->now_ns(s->target.device);
    ops->batch_run(s->target.device, batch);
    cb_status status = ops->sync(s->target.device, err);
    *host_ns = (double)(ops->now_ns(s->target.device) - start);
    *span_ns = ops->batch_span_ns(s->target.device, batch);
    return status;
}

/* Always in this order: before a batch meets its matrices again, all others have been read. */
static cb_status block(round_stage *s, int at, cb_error *err)
{
    double ignored;
    cb_status status = timed(s, s->batch, &s->out->step_ns[at], &s->out->host_ns[at], err);
    for (int i = 0; i < s->step->nparts && status == CB_OK; i++)
        status = timed(s, s->sides[i].alone, &s->out->alone_ns[i][at], &ignored, err);
    return status;
}

static cb_status warm_up(round_stage *s, cb_error *err)
{
    const cb__backend *ops = s->target.ops;
    uint64_t start = ops->now_ns(s->target.device), spent = 0;
    double before = (double)NAN, host;
    bool flat = false;
    while (spent < WARM_UP_MOST_NS && !(flat && spent >= WARM_UP_NS)) {
        double spans[GROUP];
        for (int i = 0; i < GROUP; i++) {
            cb_status status = timed(s, s->batch, &spans[i], &host, err);
            if (status != CB_OK)
                return status;
        }
        double now = cb__median(spans, GROUP);
        flat = fabs(now / before - 1) <= FLAT;
        before = now;
        s->out->warm_up_steps += GROUP;
        spent = ops->now_ns(s->target.device) - start;
    }
    s->out->flat = flat;
    s->out->warm_up_ns = (double)spent;
    return CB_OK;
}

static cb_status verify_before(round_stage *s, cb_error *err)
{
    cb_status status = CB_OK;
    for (int phase = 0; phase < 2 && status == CB_OK; phase++) {
        poison_make(s, phase);
        status = poison_lay(s, phase, err);
        if (status == CB_OK)
            status = block(s, 0, err);
        if (status == CB_OK)
            status = look(s, phase, err);
    }
    if (status == CB_OK)
        look_written(s);
    return status;
}

/* What is looked at afterwards is what the last block wrote, and no earlier one: poison is laid
 * just before it. */
static cb_status blocks(round_stage *s, cb_error *err)
{
    poison_make(s, 2);
    cb_status status = warm_up(s, err);
    for (int i = 0; i < BLOCKS && status == CB_OK; i++) {
        if (i == BLOCKS - 1)
            status = poison_lay(s, 2, err);
        if (status == CB_OK)
            status = block(s, i, err);
    }
    return status;
}

static void whole_round(round_stage *s)
{
    cb_error *err = &s->out->err;
    cb_status status = open_all(s, err);
    if (status == CB_OK)
        status = verify_before(s, err);
    if (status == CB_OK)
        status = blocks(s, err);
    if (status == CB_OK && s->target.ops->telemetry)
        s->target.ops->telemetry(s->target.device, s->out->telemetry, sizeof s->out->telemetry);
    if (status == CB_OK)
        status = look(s, 2, err);
    if (status == CB_OK)
        look_inputs(s, err);
    close_all(s);
}

cb_status round_run(const step *s, const char *device, int threads, uint64_t seed,
                    round_answer *answer, cb_error *err)
{
    static round_stage stage;
    stage.step = s;
    stage.device_name = device;
    stage.threads = threads;
    stage.seed = seed;
    stage.out = answer;
    return in_process(whole_round, &stage, err);
}
