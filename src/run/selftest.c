#include "run/selftest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coldbench/random.h"
#include "run/agenda.h"

/* Sets of the first cache: small, so that twenty of these take seconds. */
static const int64_t sizes[] = {8192, 12288, 16384, 20480, 24576};
enum { NSIZES = sizeof sizes / sizeof *sizes, CLOCK_READS = 200000 };

#define CLOCK_NS 1000.0
#define BUDGET_S 60.0

/* `word`: the parameter `fault` of the kernel that reads in the twin's place. */
static const struct fault {
    const char *name, *expected, *word;
    bool untouched, one_worker;
} faults[] = {
    {.name = "clean twin"},
    {.name = "folded loop", .expected = "folding", .word = "folded"},
    {.name = "under-driven loop", .expected = "port bound", .word = "underdriven"},
    {.name = "shrunk buffer", .expected = "coverage", .word = "shrunk"},
    {.name = "never-written pages", .expected = "content", .untouched = true},
    {.name = "misaligned base", .expected = "port bound", .word = "misaligned"},
    {.name = "too few workers", .expected = "drive", .one_worker = true},
};
enum { NFAULTS = sizeof faults / sizeof *faults };

/* The checks that the faults are for: those that the clean twin must pass. */
static const char *const judged[] = {"folding", "port bound", "coverage", "content", "drive"};
enum { NJUDGED = sizeof judged / sizeof *judged };

typedef struct testing {
    const cb__probe_request *request;
    cb__selftest *out;
    cb__agenda *plan;
    cb__probe *probe;
} testing;

static void add_group(testing *t, const struct fault *f, int threads)
{
    cb__planned_group *g = cb__agenda_group(t->plan, threads, false,
                                            f->untouched ? CB__PAGES_UNTOUCHED : CB__PAGES_HUGE, 1);
    cb__planned_job *job = &g->jobs[g->njobs++];
    *job = (cb__planned_job){.kind = CB__JOB_BANDWIDTH, .what = "read"};
    g->started_threads = f->one_worker ? 1 : 0;
    for (int i = 0; i < NSIZES; i++)
        job->bytes[job->n++] = sizes[i] * threads;
    if (!f->word) {
        cb__agenda_variants(t->request, "twin_read", -1, job);
        return;
    }
    cb__agenda_variants(t->request, "fault_read", -1, job);
    for (int i = 0; i < job->nvariants; i++) {
        char text[96];
        snprintf(text, sizeof text, "%s", job->variants[i]);
        size_t name = strcspn(text, "/");
        snprintf(job->variants[i], sizeof job->variants[i], "%.*s@fault=%s%.48s", (int)name, text,
                 f->word, text + name);
    }
}

static const cb__check *check_named(const cb_model *model, const char *name)
{
    for (int i = 0; i < model->nchecks; i++)
        if (strcmp(model->checks[i].name, name) == 0)
            return &model->checks[i];
    return NULL;
}

/* Why a fault cannot be told from honest work here; NULL: it can. */
static const char *obstacle(const testing *t, const struct fault *f)
{
    if (f->one_worker && t->out->device.threads < 2)
        return "one thread is all there is";
    if (f->expected && strcmp(f->expected, "port bound") == 0 &&
        !(t->out->device.peak_bytes_per_cycle > 0))
        return "the load ports of this processor are unknown";
    return NULL;
}

static void note(const struct fault *f, const cb_model *model, cb__fault_result *r)
{
    bool found = !f->expected, accused = false;
    r->got[0] = '\0';
    for (int i = 0; i < NJUDGED; i++) {
        const cb__check *k = check_named(model, judged[i]);
        if (!k || k->status != CB__FAIL)
            continue;
        bool is_it = f->expected && strcmp(f->expected, judged[i]) == 0;
        size_t used = strlen(r->got);
        snprintf(r->got + used, sizeof r->got - used, "%s%s", used ? ", " : "", judged[i]);
        found = found || is_it;
        accused = true;
        if (is_it || !f->expected)
            snprintf(r->detail, sizeof r->detail, "%s", k->detail);
    }
    r->runs++;
    r->right += f->expected ? found : !accused;
    if (!accused)
        snprintf(r->got, sizeof r->got, "none");
}

static cb_status one_run(testing *t, const struct fault *f, int run, cb__fault_result *r,
                         cb_error *err)
{
    cb__probe_request request = *t->request;
    cb_model *model = cb__model_new();
    if (!model)
        return cb_error_set(err, CB_NO_MEMORY, "selftest: no memory for a model");
    memset(t->plan, 0, sizeof *t->plan);
    memset(t->probe, 0, sizeof *t->probe);
    t->probe->device = t->out->device;
    t->plan->largest_bytes = sizes[NSIZES - 1] * t->out->device.threads;
    request.budget_s = BUDGET_S;
    request.seed = cb_random(request.seed, 0x66617573u, (uint64_t)(f - faults), (uint64_t)run) >> 1;
    if (t->out->device.threads > 1)
        add_group(t, f, t->out->device.threads);
    add_group(t, f, 1);
    request.phase = NULL;
    cb_status status = cb__probe_follow(&request, t->plan, t->probe, err);
    if (status == CB_OK)
        status = cb__probe_judge(t->probe, model, err);
    if (status == CB_OK)
        note(f, model, r);
    t->out->measure_s += t->probe->measure_s;
    cb_model_free(model);
    return status;
}

static cb_status all_runs(testing *t, const struct fault *f, int runs, cb_error *err)
{
    cb__fault_result *r = &t->out->faults[t->out->nfaults++];
    *r = (cb__fault_result){.name = f->name, .expected = f->expected};
    const char *why_not = obstacle(t, f);
    if (why_not) {
        snprintf(r->got, sizeof r->got, "not seeded");
        snprintf(r->detail, sizeof r->detail, "%s", why_not);
        return CB_OK;
    }
    uint64_t start = cb__clock_ns();
    cb_status status = CB_OK;
    for (int run = 0; run < runs && status == CB_OK; run++) {
        if (t->request->phase)
            t->request->phase(t->request->arg, f->name, run);
        status = one_run(t, f, run, r, err);
    }
    r->wall_s = (double)(cb__clock_ns() - start) * 1e-9;
    return status;
}

cb_status cb__selftest_run(const cb__probe_request *request, int runs, cb__selftest *out,
                           cb_error *err)
{
    testing t = {request, out, calloc(1, sizeof *t.plan), calloc(1, sizeof *t.probe)};
    uint64_t start = cb__clock_ns();
    memset(out, 0, sizeof *out);
    out->clock = cb__clock_test(CLOCK_READS);
    out->clock_good = out->clock.backwards == 0 && out->clock.cost_ns < CLOCK_NS &&
                      out->clock.resolution_ns < CLOCK_NS;
    cb_status status = t.plan && t.probe ? cb__probe_describe(request, &out->device, err)
                                         : cb_error_set(err, CB_NO_MEMORY, "selftest: no memory");
    for (int i = 0; i < NFAULTS && status == CB_OK; i++)
        status = all_runs(&t, &faults[i], runs, err);
    out->complete = status == CB_OK;
    out->wall_s = (double)(cb__clock_ns() - start) * 1e-9;
    free(t.plan);
    free(t.probe);
    return status;
}

bool cb__selftest_passed(const cb__selftest *selftest)
{
    bool good = selftest->clock_good;
    for (int i = 0; i < selftest->nfaults; i++)
        good = good && selftest->faults[i].right == selftest->faults[i].runs;
    return good;
}
