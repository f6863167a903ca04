#include "run/trials.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coldbench/random.h"
#include "host/clock.h"
#include "run/agenda.h"
#include "run/load.h"
#include "stats/binomial.h"
#include "stats/order.h"

/* As a plain `coldbench compare --cache warm` decides. */
#define ALPHA 0.01
#define MARGIN 0.01
#define BUDGET_S 10.0

/* More alarms than alpha gives with this chance are no chance. */
#define BEYOND_CHANCE 0.01
/* A planted difference that must be found more often than not. */
#define PLAIN_EFFECT 0.05

enum { SCRIPTED_RUNS = 1 /* a scripted clock says the same each time */ };

/* On a scripted device time follows bytes, so differences are planted there in bytes; alu_chain has
 * none and would be all floor. On a GPU a set must keep it busy for longer than a launch takes. */
enum { CPU = 1, GPU = 2, SCRIPTED = 4 };
static const struct kind {
    const char *a, *b, *shape;
    double effect;
    bool shown;  /* only */
    unsigned on; /* which devices */
} kinds[] = {
    {.a = "stream_read", .b = "stream_read", .shape = "24KiB", .on = CPU | SCRIPTED},
    {.a = "stream_read", .b = "stream_read", .shape = "256KiB", .on = CPU},
    {.a = "stream_read", .b = "stream_read", .shape = "4MiB", .on = CPU | GPU},
    {.a = "stream_read", .b = "stream_read", .shape = "64MiB", .on = GPU},
    {.a = "alu_chain", .b = "alu_chain", .on = CPU | GPU},
    {.a = "alu_chain@work=1000", .b = "alu_chain@work=1005", .effect = 0.005, .on = CPU | GPU},
    {.a = "alu_chain@work=1000", .b = "alu_chain@work=1010", .effect = 0.01, .on = CPU | GPU},
    {.a = "alu_chain@work=1000", .b = "alu_chain@work=1020", .effect = 0.02, .on = CPU | GPU},
    {.a = "alu_chain@work=1000", .b = "alu_chain@work=1050", .effect = 0.05, .on = CPU | GPU},
    {.a = "stream_read@work=1000",
     .b = "stream_read@work=1020",
     .shape = "256KiB",
     .effect = 0.02,
     .shown = true,
     .on = CPU},
    {.a = "stream_read@work=1000",
     .b = "stream_read@work=1020",
     .shape = "64MiB",
     .effect = 0.02,
     .shown = true,
     .on = GPU},
    {.a = "stream_read@work=1000",
     .b = "stream_read@work=1020",
     .shape = "128KiB",
     .effect = 0.02,
     .on = SCRIPTED},
    {.a = "stream_read@work=1000",
     .b = "stream_read@work=1050",
     .shape = "128KiB",
     .effect = 0.05,
     .on = SCRIPTED},
};
enum { NKINDS = sizeof kinds / sizeof *kinds };

typedef struct trying {
    const cb__trials_request *request;
    cb__trial *trials;
    int n, runs;
    cb__device_info device;
    cb__comparison *comparison;
    cb__load load;
} trying;

bool cb__device_scripted(const char *device)
{
    const cb__backend *backend = NULL;
    const char *script = NULL;
    return cb__backend_find(device, &backend, &script, NULL) == CB_OK &&
           (backend->capabilities & CB__DEVICE_VIRTUAL_CLOCK);
}

static void list(trying *t, unsigned device)
{
    for (int i = 0; i < NKINDS; i++) {
        const struct kind *k = &kinds[i];
        if (!(k->on & device))
            continue;
        if (k->effect > 0 ? !t->request->planted : !t->request->aa)
            continue;
        cb__trial *trial = &t->trials[t->n++];
        memset(trial, 0, sizeof *trial);
        trial->a = k->a;
        trial->b = k->b;
        trial->shape = k->shape;
        trial->effect = k->effect;
        trial->judged = !k->shown;
        trial->margin = k->effect > 0 ? k->effect / 2 : MARGIN;
    }
}

/* ---- one comparison ---- */

static bool broken(const cb__compare_side *side)
{
    return side->verdict == CB_VERDICT_WRONG || side->verdict == CB_VERDICT_IMPOSSIBLE;
}

static void count(cb__tally *tally, const cb__comparison *c, double wall_s)
{
    cb__decision decision = c->pairs[0].decision;
    tally->wall_s[tally->runs] = wall_s;
    tally->ratio[tally->runs++] = cb__compare_ratio(c, &c->pairs[0]).mid;
    tally->measure_s += c->measure_s;
    if (decision == CB__SLOWER)
        tally->slower++;
    else if (decision == CB__FASTER)
        tally->faster++;
    else if (decision == CB__TIE)
        tally->ties++;
    else
        tally->undecided++;
    tally->broken += broken(&c->sides[0]) || broken(&c->sides[1]);
}

static cb_status one(trying *t, int trial, int turn, cb__condition condition, cb_error *err)
{
    const cb__probe_request *common = t->request->common;
    cb__trial *what = &t->trials[trial];
    cb__arena arena = CB__ARENA_INIT;
    uint64_t start_ns = cb__clock_ns();
    uint64_t draw = cb_random(common->seed, 0x747269616cu, (uint64_t)trial,
                              (uint64_t)(turn * CB__CONDITIONS + (int)condition));
    cb__compare_request request = {.suite = common->suite,
                                   .isa = common->isa,
                                   .device = common->device,
                                   .threads = t->device.threads,
                                   .variants = {what->a, what->b},
                                   .nsides = 2,
                                   .shape = what->shape,
                                   .cache = CB__WARM,
                                   .submit = CB__BATCHED,
                                   .budget_s = BUDGET_S,
                                   .alpha = ALPHA,
                                   .margin = what->margin,
                                   .claims = 1,
                                   .seed = draw >> 11,
                                   .asker = common->asker};
    cb_status status = cb__compare_plan(&request, &t->device, t->comparison, err);
    if (status == CB_OK)
        status = cb__compare_measure(&request, &arena, t->comparison, err);
    if (status == CB_OK)
        count(&what->tally[condition], t->comparison, (double)(cb__clock_ns() - start_ns) * 1e-9);
    cb__arena_fini(&arena);
    return status;
}

/* ---- turns ---- */

static bool too_late(const trying *t)
{
    return t->request->before_ns && cb__clock_ns() >= t->request->before_ns;
}

static void say(const trying *t, const cb__trial *trial, cb__condition condition, int turn)
{
    const cb__probe_request *common = t->request->common;
    char text[160];
    if (!common->phase)
        return;
    snprintf(text, sizeof text, "turn %d of %d%s: %s%s%s against %s", turn + 1, t->runs,
             condition == CB__LOADED ? ", under load" : "", trial->a, trial->shape ? " " : "",
             trial->shape ? trial->shape : "", trial->effect > 0 ? trial->b : "itself");
    common->phase(common->arg, text, turn);
}

static cb_status each_kind(trying *t, int turn, cb__condition condition, cb_error *err)
{
    cb_status status = CB_OK;
    for (int i = 0; i < t->n && status == CB_OK && !too_late(t); i++) {
        say(t, &t->trials[i], condition, turn);
        status = one(t, i, turn, condition, err);
    }
    return status;
}

static cb_status one_turn(trying *t, int turn, cb_error *err)
{
    cb_status status = each_kind(t, turn, CB__IDLE, err);
    if (status != CB_OK || !t->request->load || too_late(t))
        return status;
    status = cb__load_start(CB__LOAD_LONGEST_S, &t->load, err);
    if (status != CB_OK)
        return status;
    status = each_kind(t, turn, CB__LOADED, err);
    /* A Ctrl-C on the terminal ends the load too: the first error stays. */
    const volatile int *stop = t->request->common->asker.stop;
    if (status == CB_OK && stop && *stop)
        status = cb_error_set(err, CB_INTERRUPTED, "interrupted");
    cb_status stopped = cb__load_stop(&t->load, err);
    return status != CB_OK ? status : stopped;
}

static int default_runs(const cb__trials_request *request, unsigned device)
{
    if (!request->quick || device == SCRIPTED)
        return cb__trials_usual(request->common->device, device == GPU);
    return device == GPU ? CB__TRIALS_QUEUED_QUICK : CB__TRIALS_QUICK;
}

int cb__trials_usual(const char *device, bool queued)
{
    return cb__device_scripted(device) ? SCRIPTED_RUNS
           : queued                    ? CB__TRIALS_QUEUED
                                       : CB__TRIALS_DEFAULT;
}

/* On a CPU of one thread, unless they were asked for; a GPU works as a whole. */
static cb_status describe(trying *t, cb_error *err)
{
    cb__probe_request common = *t->request->common;
    const cb__backend *backend = NULL;
    const char *script = NULL;
    cb_status status = cb__backend_find(common.device, &backend, &script, err);
    if (status != CB_OK)
        return status;
    bool queued = backend->capabilities & CB__DEVICE_QUEUED;
    common.threads = common.threads || queued ? common.threads : 1;
    return cb__probe_describe(&common, &t->device, err);
}

cb_status cb__trials_run(const cb__trials_request *request, cb__trial *trials, int *n,
                         cb_error *err)
{
    trying t = {.request = request, .trials = trials};
    *n = 0;
    cb_status status = describe(&t, err);
    if (status != CB_OK)
        return status;
    unsigned device = cb__device_scripted(request->common->device) ? SCRIPTED
                      : t.device.queued                            ? GPU
                                                                   : CPU;
    list(&t, device);
    *n = t.n;
    t.runs = request->runs ? request->runs : default_runs(request, device);
    t.comparison = calloc(1, sizeof *t.comparison);
    if (!t.comparison)
        status = cb_error_set(err, CB_NO_MEMORY, "selftest: no memory for a comparison");
    for (int turn = 0; turn < t.runs && status == CB_OK && !too_late(&t); turn++)
        status = one_turn(&t, turn, err);
    free(t.comparison);
    return status;
}

/* ---- what came out ---- */

cb__aa_sum cb__trials_aa(const cb__trial *trials, int n, cb__condition condition)
{
    cb__aa_sum sum = {0};
    for (int i = 0; i < n; i++) {
        const cb__tally *tally = &trials[i].tally[condition];
        if (trials[i].effect > 0)
            continue;
        sum.runs += tally->runs;
        sum.false_alarms += tally->slower + tally->faster;
        sum.ties += tally->ties;
        sum.undecided += tally->undecided;
        sum.broken += tally->broken;
        sum.measure_s += tally->measure_s;
    }
    return sum;
}

double cb__tally_seconds(const cb__tally *tally, double quantile)
{
    double sorted[CB__TRIAL_RUNS_MAX];
    memcpy(sorted, tally->wall_s, (size_t)tally->runs * sizeof *sorted);
    return cb__quantile(sorted, (size_t)tally->runs, quantile);
}

double cb__tally_ratio(const cb__tally *tally)
{
    double sorted[CB__TRIAL_RUNS_MAX];
    memcpy(sorted, tally->ratio, (size_t)tally->runs * sizeof *sorted);
    return cb__median(sorted, (size_t)tally->runs);
}

static bool beyond_chance(int alarms, int runs)
{
    return cb__binomial_tail(alarms, runs, ALPHA) < BEYOND_CHANCE;
}

static const char *where(cb__condition condition)
{
    return condition == CB__LOADED ? "under load" : "idle";
}

static bool planted_contradicts(const cb__trial *trial, cb__condition condition, char *why,
                                size_t size)
{
    const cb__tally *tally = &trial->tally[condition];
    if (!trial->judged)
        return false;
    if (beyond_chance(tally->faster, tally->runs)) {
        snprintf(why, size, "%s, planted %g %% slower, was called faster in %d of %d, %s", trial->b,
                 trial->effect * 100, tally->faster, tally->runs, where(condition));
        return true;
    }
    if (condition == CB__IDLE && trial->effect >= PLAIN_EFFECT && 2 * tally->slower < tally->runs) {
        snprintf(why, size, "%s, planted %g %% slower, was found in %d of %d", trial->b,
                 trial->effect * 100, tally->slower, tally->runs);
        return true;
    }
    return false;
}

bool cb__trials_contradict(const cb__trial *trials, int n, char *why, size_t size)
{
    for (int c = 0; c < CB__CONDITIONS; c++) {
        cb__aa_sum aa = cb__trials_aa(trials, n, (cb__condition)c);
        if (beyond_chance(aa.false_alarms, aa.runs)) {
            snprintf(why, size, "identical code was called different in %d of %d, %s",
                     aa.false_alarms, aa.runs, where((cb__condition)c));
            return true;
        }
        for (int i = 0; i < n; i++) {
            int wrong = trials[i].tally[c].broken;
            if (wrong > 0) {
                snprintf(why, size, "%s or %s was wrong or impossible in %d of %d", trials[i].a,
                         trials[i].b, wrong, trials[i].tally[c].runs);
                return true;
            }
            if (trials[i].effect > 0 &&
                planted_contradicts(&trials[i], (cb__condition)c, why, size))
                return true;
        }
    }
    return false;
}
