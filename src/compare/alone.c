/* When a process that several sides shared has come to grief, each of them is tried in a process of
 * its own: what happens there is its own doing. */
#include <stdio.h>
#include <string.h>

#include "compare/session.h"
#include "host/clock.h"

#define ALONE_S 0.5 /* for each side, whatever is left of the budget: the others hang on it */

/* A request of one side, otherwise as the one that failed. */
static cb__work work_of(const cb__comparing *s, const cb__stage *stage, int side,
                        const cb__work *as)
{
    int sides[CB__ARMS_MAX];
    cb__work work = cb__round_work(s, stage, false, sides);
    for (int i = 0; i < work.duel.narms; i++)
        if (sides[i] == side)
            work.duel.arms[0] = work.duel.arms[i];
    work.duel.narms = 1;
    work.seed = as->seed;
    work.limit_ns = as->limit_ns / (uint64_t)as->duel.narms; /* as many launches of it as before */
    work.modes[0].blocks = as->modes[0].blocks;
    work.duel.timed = as->duel.timed;
    work.duel.blocks_min = as->duel.blocks_min;
    work.duel.batch = as->duel.batch;
    work.duel.repeats = as->duel.repeats;
    work.duel.readings = as->duel.readings;
    work.duel.look = true;
    return work;
}

/* CB_OK: it is told what was found, if anything; else why its process is of no more use. */
static cb_status visit(cb__comparing *s, cb__stage *stage, int side, const cb__work *as,
                       cb__worker *worker, cb_error *fault)
{
    cb__duel_answer answer = {0};
    cb__work work = work_of(s, stage, side, as);
    cb_status status = cb__round_ask(s, stage, worker, &work, &answer, fault);
    if (status == CB_OK)
        cb__round_findings(s, stage, &work, &answer.result, &side);
    if (!cb__rings_intact(s, stage))
        s->out->sides[side].evidence.inputs_changed = true;
    return status;
}

/* A process of the ragged stages holds the files of them all. */
static int last_held(const cb__comparing *s, int first)
{
    return first == 0 ? 0 : s->nstages - 1;
}

/* Whoever is left finds everything as it was filled; where nobody goes on nobody needs it. */
static cb_status go_on(cb__comparing *s, int first, cb_error *err)
{
    bool over = s->spent || (first == 0 && cb__sides_in(s) < 2);
    return over ? CB_OK : cb__stages_refill(s, first, last_held(s, first), err);
}

#define HANG_S 2 /* a budget that has no room for such a launch has none for a comparison of it */

/* A wait that the budget cut short says that a side hangs only where it is known to be faster. */
static bool hangs(const cb__comparing *s, int first, int side, const cb__asker *asker)
{
    bool known = false;
    for (int i = first; i <= last_held(s, first); i++)
        known = known || s->stages[i].seen[side];
    return known || asker->silence_s >= HANG_S || !cb__asker_hurried(s, asker);
}

/* All stages in one process, as they were: a fault may wait for its hundredth launch. */
static cb_status try_one(cb__comparing *s, int first, int last, int side, const cb__work *as,
                         cb_error *fault, cb_error *err)
{
    double patience_s = ALONE_S + (double)as->limit_ns * 1e-9 +
                        (double)s->out->sides[0].plan.file_bytes / CB__SLOWEST_BYTES_PER_S;
    cb__asker asker = cb__asker_within(s, patience_s);
    cb__worker worker;
    cb_status status =
        cb__round_start(s, &s->stages[first], last - first + 1, as->seed, &asker, &worker, err);
    if (status != CB_OK)
        return status;
    for (int i = first; i <= last && status == CB_OK && cb__side_in(s, side); i++)
        status = visit(s, &s->stages[i], side, as, &worker, fault);
    status = cb__round_end(s, &worker, status, fault);
    if (status == CB_INTERRUPTED)
        return cb_error_set(err, status, "%s", fault->message);
    cb__evidence *e = &s->out->sides[side].evidence;
    if (status != CB_OK && cb__asker_spent(&asker))
        cb_error_set(&e->unclear, CB_TIMEOUT,
                     "a process that the sides shared went wrong, and no budget was left to find "
                     "out by whom");
    else if (status == CB_TIMEOUT && !hangs(s, first, side, &asker))
        e->unclear = *fault;
    else if (status != CB_OK)
        e->worker = *fault;
    return CB_OK;
}

static bool all_intact(const cb__comparing *s, int first)
{
    bool intact = true;
    for (int i = first; i <= last_held(s, first); i++)
        intact = intact && cb__rings_intact(s, &s->stages[i]);
    return intact;
}

/* What no side has done by itself. */
static bool machine_failed(const cb_error *fault)
{
    return fault->status == CB_NO_MEMORY || fault->status == CB_UNAVAILABLE ||
           fault->status == CB_IO || fault->status == CB_INTERNAL;
}

cb_status cb__alone(cb__comparing *s, int first, int last, const cb__work *as, int suspect,
                    cb_error *err)
{
    cb_error story = *err;
    bool was_in[CB__SIDES_MAX], everybody = true, machine = true;
    int nsides = s->request->nsides, found = 0;
    cb_status status = CB_OK;
    cb_error_clear(err);
    for (int side = 0; side < nsides; side++)
        was_in[side] = cb__side_in(s, side);
    for (int side = 0; side < nsides && status == CB_OK; side++) {
        if (!was_in[side])
            continue;
        cb_error fault = CB_ERROR_INIT;
        if (!all_intact(s, first))
            status = cb__stages_refill(s, first, last_held(s, first), err);
        if (status == CB_OK)
            status = try_one(s, first, last, side, as, &fault, err);
        bool out = !cb__side_in(s, side);
        found += out;
        everybody = everybody && out;
        machine = machine && machine_failed(&fault);
    }
    if (status != CB_OK)
        return status;
    if (everybody && machine) { /* it is not the sides: say what is short */
        for (int side = 0; side < nsides; side++)
            if (was_in[side])
                cb_error_clear(&s->out->sides[side].evidence.worker);
        return cb_error_set(err, story.status, "%s", story.message);
    }
    for (int side = 0; side < nsides && found == 0; side++) {
        cb__evidence *e = &s->out->sides[side].evidence;
        if (side == suspect)
            e->worker = story;
        else if (was_in[side] && suspect < 0)
            cb_error_set(&e->unclear, story.status,
                         "in a process that the sides shared: %s; none of them does it alone",
                         story.message);
    }
    return go_on(s, first, err);
}

cb_status cb__blame(cb__comparing *s, int first, int last, const cb__work *as, const int *side,
                    const cb__asker *asker, cb_error *err)
{
    int arm = cb__round_at_work(&s->stages[last]) - 1;
    int suspect = arm >= 0 && arm < as->duel.narms ? side[arm] : -1;
    if (err->status == CB_INTERRUPTED || (err->status == CB_USAGE && s->request->process))
        return err->status;
    if (err->status == CB_TIMEOUT && cb__asker_spent(asker)) {
        cb_error_clear(err);
        s->spent = true;
        return CB_OK;
    }
    if (err->status != CB_TIMEOUT || suspect < 0)
        return cb__alone(s, first, last, as, suspect, err);
    cb__evidence *e = &s->out->sides[suspect].evidence;
    if (!hangs(s, first, suspect, asker))
        cb_error_set(&e->unclear, CB_TIMEOUT,
                     "nothing was heard for %.2g s while it was in work, and the budget has room "
                     "for no more",
                     asker->silence_s);
    else
        e->worker = *err;
    cb_error_clear(err);
    return go_on(s, first, err);
}
