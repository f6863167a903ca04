#include "run/probe.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cb_build_info.h"
#include "coldbench/random.h"
#include "host/clock.h"
#include "run/agenda.h"

/* Of the budget; the rest is for the job that a limit finds at work and for judging. */
#define USED_SHARE 0.88

typedef struct probing {
    const cb__probe_request *request;
    cb__probe *out;
    cb__agenda *plan;
    uint64_t start_ns;
} probing;

static double elapsed_s(const probing *p)
{
    return (double)(cb__clock_ns() - p->start_ns) * 1e-9;
}

static cb__work work_of(const cb__probe_request *request, const char *op, int threads)
{
    return (cb__work){.op = op,
                      .device = request->device,
                      .threads = threads,
                      .ring_fd = -1,
                      .reference_fd = -1,
                      .exchange_fd = -1,
                      .seed = request->seed};
}

/* Fisher and Yates by the counter-based generator. */
static void shuffle(int *order, int n, uint64_t seed, uint64_t sweep, uint64_t job)
{
    for (int i = 0; i < n; i++)
        order[i] = i;
    for (int i = n - 1; i > 0; i--) {
        uint64_t word = cb_random(seed, 0x6f72646572u + job, sweep, (uint64_t)i);
        int j = (int)(word % (uint64_t)(i + 1)), t = order[i];
        order[i] = order[j];
        order[j] = t;
    }
}

/* ---- one group of one sweep ---- */

/* Where the readings of a job go: series or scalar, found once by kind, name and group. */
static cb__probe_series *series_of(cb__probe *out, const cb__planned_job *job, int group)
{
    for (int i = 0; i < out->nseries; i++)
        if (out->series[i].group == group && strcmp(out->series[i].what, job->what) == 0)
            return &out->series[i];
    if (out->nseries == CB__PROBE_SERIES_MAX)
        return NULL;
    cb__probe_series *s = &out->series[out->nseries++];
    s->kind = job->kind == CB__JOB_LATENCY ? CB__LATENCY : CB__BANDWIDTH;
    s->group = group;
    s->n = job->n;
    snprintf(s->what, sizeof s->what, "%s", job->what);
    memcpy(s->bytes, job->bytes, sizeof s->bytes);
    for (int sweep = 0; sweep < CB__SWEEPS; sweep++)
        for (int i = 0; i < CB__SIZES_MAX; i++)
            s->readings[sweep][i] = cb__no_reading();
    return s;
}

static cb__scalar *scalar_of(cb__probe *out, const cb__planned_job *job, int group)
{
    cb__scalar_kind kind = job->kind == CB__JOB_FLOOR     ? CB__FLOOR
                           : job->kind == CB__JOB_COMPUTE ? CB__COMPUTE
                                                          : CB__CONTENT;
    for (int i = 0; i < out->nscalars; i++)
        if (out->scalars[i].group == group && out->scalars[i].kind == kind &&
            strcmp(out->scalars[i].what, job->what) == 0)
            return &out->scalars[i];
    if (out->nscalars == CB__SCALARS_MAX)
        return NULL;
    cb__scalar *s = &out->scalars[out->nscalars++];
    *s = (cb__scalar){.kind = kind, .group = group};
    snprintf(s->what, sizeof s->what, "%s", job->what);
    for (int sweep = 0; sweep < CB__SWEEPS; sweep++)
        s->values[sweep] = (double)NAN;
    return s;
}

static cb__probe_scratch *scratch_of(cb__probe *out, const cb__planned_job *job)
{
    for (int i = 0; i < out->nscratch; i++)
        if (strcmp(out->scratch[i].what, job->what) == 0)
            return &out->scratch[i];
    if (out->nscratch == CB__SCRATCH_MAX)
        return NULL;
    cb__probe_scratch *s = &out->scratch[out->nscratch++];
    *s = (cb__probe_scratch){.n = job->n};
    snprintf(s->what, sizeof s->what, "%s", job->what);
    for (int i = 0; i < job->n; i++)
        s->strides[i] = (int)job->bytes[i];
    for (int sweep = 0; sweep < CB__SWEEPS; sweep++)
        for (int i = 0; i < CB__SIZES_MAX; i++)
            s->values[sweep][i] = (double)NAN;
    return s;
}

/* What summed up something else than was there has no bandwidth. */
static void keep_scratch(cb__probe *out, int sweep, const cb__planned_job *job, const int *order,
                         const cb__job_answer *a)
{
    cb__probe_scratch *s = scratch_of(out, job);
    for (int i = 0; s && i < a->n; i++) {
        s->missed += a->readings[i].covered != 1;
        if (a->readings[i].covered == 1)
            s->values[sweep][order[i]] = a->readings[i].value;
    }
}

static int variant_index(cb__probe *out, const char *variant)
{
    for (int i = 0; i < out->nvariants; i++)
        if (strcmp(out->variants[i], variant) == 0)
            return i;
    if (out->nvariants == CB__VARIANTS_MAX)
        return -1;
    snprintf(out->variants[out->nvariants], sizeof out->variants[0], "%s", variant);
    return out->nvariants++;
}

static void keep(probing *p, int group, int sweep, const cb__planned_job *job, const cb__job *asked,
                 const int *order, const cb__job_answer *a)
{
    if (job->kind == CB__JOB_SCRATCH) {
        keep_scratch(p->out, sweep, job, order, a);
        return;
    }
    if (job->kind != CB__JOB_BANDWIDTH && job->kind != CB__JOB_LATENCY) {
        cb__scalar *s = scalar_of(p->out, job, group);
        if (s && a->n > 0)
            s->values[sweep] = a->readings[0].value;
        return;
    }
    cb__probe_series *s = series_of(p->out, job, group);
    for (int i = 0; s && i < a->n; i++) {
        cb__reading r = a->readings[i];
        if (r.variant >= 0)
            r.variant = variant_index(p->out, asked->variants[r.variant]);
        s->readings[sweep][order[i]] = r;
    }
}

static void keep_group(cb__group *g, int sweep, const cb__sweep_answer *a)
{
    g->pages[sweep] = a->pages;
    g->sampled_words[sweep] = a->sampled_words;
    g->distinct_words[sweep] = a->distinct_words;
    g->steal_s[sweep] = a->steal_s;
    g->wall_s[sweep] = a->wall_s;
    g->involuntary[sweep] = a->involuntary;
}

/* The jobs that are still wanted, as requests: sizes in an order drawn anew. */
static int ask_for(probing *p, cb__planned_group *g, int sweep, cb__job *jobs,
                   int (*orders)[CB__SIZES_MAX], int *which)
{
    int n = 0;
    for (int k = 0; k < g->njobs; k++) {
        /* What drifts while a process lives must not always hit the same job: every other sweep
         * goes backwards, after the most valuable. */
        int j = k == 0 || sweep % 2 == 0 ? k : g->njobs - k;
        const cb__planned_job *job = &g->jobs[j];
        if (job->dropped)
            continue;
        shuffle(orders[n], job->n, p->request->seed, (uint64_t)sweep,
                (uint64_t)((g - p->plan->groups) * CB__JOBS_MAX + j));
        jobs[n] = (cb__job){.kind = job->kind, .what = job->what, .n = job->n, .visits = 1};
        for (int v = 0; v < job->nvariants; v++)
            jobs[n].variants[jobs[n].nvariants++] = job->variants[v];
        for (int i = 0; i < job->n; i++)
            jobs[n].bytes[i] = job->bytes[orders[n][i]];
        which[n++] = j;
    }
    return n;
}

static cb_status one_group(probing *p, int group, int sweep, double limit_s, cb__arena *arena,
                           cb_error *err)
{
    cb__planned_group *g = &p->plan->groups[group];
    cb__job *jobs = cb__arena_array(arena, CB__JOBS_MAX, sizeof *jobs);
    int(*orders)[CB__SIZES_MAX] = cb__arena_array(arena, CB__JOBS_MAX, sizeof *orders);
    cb__sweep_answer *a = cb__arena_alloc(arena, sizeof *a);
    int which[CB__JOBS_MAX];
    if (!jobs || !orders || !a)
        return cb_error_set(err, CB_NO_MEMORY, "probe: no memory for a sweep");
    cb__work work =
        work_of(p->request, "sweep", g->started_threads ? g->started_threads : g->threads);
    work.placement = g->scattered ? CB__SCATTERED : CB__COMPACT;
    work.pages = g->pages;
    work.seed = cb_random(p->request->seed, 0x7377u, (uint64_t)sweep, (uint64_t)group) >> 1;
    work.limit_ns = limit_s > 0 ? (uint64_t)(limit_s * 1e9) : 1;
    work.njobs = ask_for(p, g, sweep, jobs, orders, which);
    work.jobs = jobs;
    if (work.njobs == 0)
        return CB_OK;
    if (p->request->phase)
        p->request->phase(p->request->arg, g->name, sweep);
    cb__json *answer = NULL;
    uint64_t start = cb__clock_ns();
    /* Memory that a virtual machine has never had before comes at 200 MB/s at worst. */
    cb__asker patient = p->request->asker;
    patient.silence_s += (double)p->plan->largest_bytes / 2e8;
    cb_status status = cb__ask(&patient, &work, "sweep", &answer, err);
    if (status == CB_OK)
        status = cb__sweep_answer_read(answer, &work, arena, a, err);
    for (int i = 0; i < work.njobs && status == CB_OK; i++) {
        cb__planned_job *job = &g->jobs[which[i]];
        job->sweeps += a->jobs[i].done;
        if (a->jobs[i].done)
            keep(p, group, sweep, job, &jobs[i], orders[i], &a->jobs[i]);
        /* What never had room has none later; what had is tried again. */
        job->dropped = job->sweeps == 0;
    }
    if (status == CB_OK)
        keep_group(&p->out->groups[group], sweep, a);
    p->out->measure_s += (double)(cb__clock_ns() - start) * 1e-9;
    cb__json_free(answer);
    return status;
}

/* ---- sweeps ---- */

/* A process that died, hung or failed costs its group, not the probe. */
static bool is_worker_failure(cb_status status)
{
    return status == CB_CRASHED || status == CB_TIMEOUT || status == CB_GARBAGE ||
           status == CB_WRONG;
}

static void give_up(probing *p, int group, cb_error *err)
{
    if (p->out->failure.status == CB_OK && err)
        cb_error_set(&p->out->failure, err->status, "probe, %s: %s", p->plan->groups[group].name,
                     err->message);
    if (err)
        cb_error_clear(err);
    p->plan->groups[group].failed = true;
    cb__agenda_drop(p->plan, group);
}

static cb_status one_sweep(probing *p, int sweep, cb_error *err)
{
    double left_s = p->request->budget_s * USED_SHARE - elapsed_s(p);
    /* Code for a device is compiled in the first. */
    double compiling = sweep == 0 && p->out->device.queued ? 1 : 0;
    double end_s = elapsed_s(p) + left_s * (1 + compiling) / (p->out->planned - sweep + compiling);
    double shares = 0;
    cb_status status = CB_OK;
    for (int g = 0; g < p->plan->ngroups; g++)
        shares += p->plan->groups[g].share;
    for (int g = 0; g < p->plan->ngroups && status == CB_OK; g++) {
        const cb__planned_group *group = &p->plan->groups[g];
        cb__arena arena = CB__ARENA_INIT;
        double limit_s = (end_s - elapsed_s(p)) * group->share / shares;
        shares -= group->share;
        /* The first group makes sense of the rest, whatever the budget. */
        if (limit_s > 0 || g == 0)
            status = one_group(p, g, sweep, limit_s, &arena, err);
        else if (sweep == 0)
            cb__agenda_drop(p->plan, g);
        if (is_worker_failure(status)) {
            give_up(p, g, err);
            status = CB_OK;
        }
        cb__arena_fini(&arena);
    }
    return status;
}

static void provenance(const cb__probe_request *request, const cb__probe *out, cb_model *model)
{
    time_t now = time(NULL);
    struct tm utc;
    snprintf(model->identity, sizeof model->identity, "%s", out->device.identity);
    snprintf(model->device, sizeof model->device, "%.31s", request->device);
    snprintf(model->name, sizeof model->name, "%s", out->device.name);
    snprintf(model->version, sizeof model->version, "%s", CB_VERSION);
    snprintf(model->source_id, sizeof model->source_id, "%s", CB_SOURCE_ID);
    if (gmtime_r(&now, &utc))
        strftime(model->written, sizeof model->written, "%Y-%m-%dT%H:%M:%SZ", &utc);
    model->seed = request->seed;
    snprintf(model->dropped, sizeof model->dropped, "%s", out->dropped);
}

static void begin(const cb__probe_request *request, const cb__agenda *plan, cb__probe *out)
{
    out->quick = request->quick;
    out->planned = request->quick ? CB__PROBE_QUICK_SWEEPS : CB__PROBE_SWEEPS;
    out->ngroups = plan->ngroups;
    for (int g = 0; g < out->ngroups; g++)
        out->groups[g] = (cb__group){.threads = plan->groups[g].threads,
                                     .scattered = plan->groups[g].scattered,
                                     .base_pages = plan->groups[g].pages == CB__PAGES_BASE};
}

static cb_status sweep_once(probing *p, int sweep, cb_error *err)
{
    if (sweep == 0)
        begin(p->request, p->plan, p->out);
    cb_status status = one_sweep(p, sweep, err);
    p->out->sweeps += status == CB_OK;
    p->out->complete =
        status == CB_OK && p->out->sweeps == p->out->planned && p->out->failure.status == CB_OK;
    return status;
}

cb_status cb__probe_sweep(const cb__probe_request *request, cb__agenda *plan, int sweep,
                          cb__probe *out, cb_error *err)
{
    probing p = {.request = request, .out = out, .plan = plan, .start_ns = cb__clock_ns()};
    return sweep_once(&p, sweep, err);
}

cb_status cb__probe_follow(const cb__probe_request *request, cb__agenda *plan, cb__probe *out,
                           cb_error *err)
{
    probing p = {.request = request, .out = out, .plan = plan, .start_ns = cb__clock_ns()};
    cb_status status = CB_OK;
    int sweeps = request->quick ? CB__PROBE_QUICK_SWEEPS : CB__PROBE_SWEEPS;
    for (int sweep = 0; sweep < sweeps && status == CB_OK; sweep++) {
        /* What a verb needs to begin with may not take longer than it was given. */
        double each_s = sweep ? elapsed_s(&p) / sweep : 0;
        if (request->read_only && elapsed_s(&p) + each_s > request->budget_s)
            break;
        status = sweep_once(&p, sweep, err);
    }
    cb__agenda_dropped_text(plan, out->sweeps, out->dropped, sizeof out->dropped);
    out->wall_s = elapsed_s(&p);
    return status;
}

cb_status cb__probe_describe(const cb__probe_request *request, cb__device_info *info, cb_error *err)
{
    return cb__describe(&request->asker, request->device, request->threads, info, err);
}

cb_status cb__probe_measure(const cb__probe_request *request, cb__probe *out, cb_model *model,
                            cb_error *err)
{
    cb__agenda *plan = calloc(1, sizeof *plan);
    memset(out, 0, sizeof *out);
    cb_status status = plan ? cb__probe_describe(request, &out->device, err)
                            : cb_error_set(err, CB_NO_MEMORY, "probe: no memory for its plan");
    if (status == CB_OK)
        status = cb__agenda_make(request, &out->device, plan, err);
    if (status == CB_OK)
        status = cb__probe_follow(request, plan, out, err);
    /* Nothing at all was measured: the failure is all there is to say. */
    if (status == CB_OK && out->failure.status != CB_OK && out->nseries + out->nscalars == 0)
        status = cb_error_set(err, out->failure.status, "%s", out->failure.message);
    if (status == CB_OK || status == CB_INTERRUPTED) {
        cb_error judging = CB_ERROR_INIT;
        provenance(request, out, model);
        if (cb__probe_judge(out, model, &judging) != CB_OK && status == CB_OK)
            status = cb_error_set(err, judging.status, "%s", judging.message);
    }
    free(plan);
    return status;
}
