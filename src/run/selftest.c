#include "run/selftest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coldbench/random.h"
#include "run/agenda.h"
#include "run/faults.h"

/* Of each worker: the first cache, and some that a pass of takes longer than its launch. Small, so
 * that twenty runs take a minute. */
static const int64_t sizes[] = {8192, 12288, 16384, 20480, 24576, 1 << 18, 1 << 20, 1 << 22};
/* Of a GPU: well within the last cache, and well beyond it. */
static const int64_t queued_sizes[] = {1 << 20, 1 << 21, 1 << 22, 1 << 23, 1 << 24, 1 << 28};
enum {
    NSIZES = sizeof sizes / sizeof *sizes,
    NQUEUED = sizeof queued_sizes / sizeof *queued_sizes,
    CLOCK_READS = 200000
};

/* A search of a GPU's best loads, and one that ends where more loads in flight still pay. */
static const char *const searched[] = {
    "twin_read/cuda:blocks=32,threads=512,loads=8,l1=0",
    "twin_read/cuda:blocks=2,threads=512,loads=8,l1=0",
    "twin_read/cuda:blocks=8,threads=128,loads=4,l1=0",
    "twin_read/cuda:blocks=1,threads=512,loads=16,l1=0",
};
static const char *const ended_early[] = {
    "twin_read/cuda:blocks=1,threads=128,loads=2,l1=0",
    "twin_read/cuda:blocks=1,threads=128,loads=8,l1=0",
};

#define CLOCK_NS 1000.0
#define BUDGET_S 60.0

const char *const *cb__sweep_fault_variants(int *n)
{
    *n = sizeof ended_early / sizeof *ended_early;
    return ended_early;
}

/* `word`: the parameter `fault` of the kernel that reads in the twin's place. */
static const struct fault {
    const char *name, *expected, *word;
    bool untouched, one_worker, ends_early;
    const char *of_queued; /* expected of a GPU instead */
} faults[] = {
    {.name = "clean twin"},
    /* On a GPU one pass within the caches takes less than its launch, and three times nothing is
     * nothing: it is faster than the machine can (H200). */
    {.name = "folded loop", .expected = "folding", .word = "folded", .of_queued = "port bound"},
    {.name = "under-driven loop", .expected = "port bound", .word = "underdriven"},
    {.name = "shrunk buffer", .expected = "coverage", .word = "shrunk"},
    {.name = "never-written pages", .expected = "content", .untouched = true},
    {.name = "misaligned base", .expected = "port bound", .word = "misaligned"},
    {.name = "too few workers", .expected = "drive", .one_worker = true},
    {.name = "search cut short", .expected = "drive", .ends_early = true},
};
enum { NFAULTS = sizeof faults / sizeof *faults };

/* The checks that the faults are for: those that the clean twin must pass. */
static const char *const judged[] = {"folding", "port bound", "coverage", "content", "drive"};
enum { NJUDGED = sizeof judged / sizeof *judged };

typedef struct testing {
    const cb__probe_request *request; /* common */
    int runs;
    cb__selftest *out;
    cb__agenda *plans[NFAULTS]; /* of the run; NULL: not seeded */
    cb__probe *probes[NFAULTS];
    uint64_t seeds[NFAULTS];
} testing;

static void add_variants(const char *const *texts, int n, cb__planned_job *job)
{
    for (int i = 0; i < n && job->nvariants < CB__JOB_VARIANTS_MAX; i++)
        snprintf(job->variants[job->nvariants++], sizeof job->variants[0], "%s", texts[i]);
}

static void read_wrongly(const testing *t, const struct fault *f, cb__planned_job *job)
{
    cb__agenda_variants(t->request, "fault_read", -1, job);
    for (int i = 0; i < job->nvariants; i++) {
        char text[96];
        snprintf(text, sizeof text, "%s", job->variants[i]);
        size_t name = strcspn(text, "/");
        snprintf(job->variants[i], sizeof job->variants[i], "%.*s@fault=%s%.48s", (int)name, text,
                 f->word, text + name);
    }
}

/* The one group of a GPU. */
static void add_queued(testing *t, cb__agenda *plan, const struct fault *f)
{
    cb__planned_group *g = cb__agenda_group(plan, t->out->device.threads, false,
                                            f->untouched ? CB__PAGES_UNTOUCHED : CB__PAGES_HUGE, 1);
    cb__planned_job *job = &g->jobs[g->njobs++];
    *job = (cb__planned_job){.kind = CB__JOB_BANDWIDTH, .what = "read", .n = NQUEUED};
    memcpy(job->bytes, queued_sizes, sizeof queued_sizes);
    if (f->word)
        read_wrongly(t, f, job);
    else if (f->ends_early)
        add_variants(ended_early, sizeof ended_early / sizeof *ended_early, job);
    else
        add_variants(searched, sizeof searched / sizeof *searched, job);
}

static void add_group(testing *t, cb__agenda *plan, const struct fault *f, int threads)
{
    cb__planned_group *g = cb__agenda_group(plan, threads, false,
                                            f->untouched ? CB__PAGES_UNTOUCHED : CB__PAGES_HUGE, 1);
    cb__planned_job *job = &g->jobs[g->njobs++];
    *job = (cb__planned_job){.kind = CB__JOB_BANDWIDTH, .what = "read"};
    g->started_threads = f->one_worker ? 1 : 0;
    for (int i = 0; i < NSIZES; i++)
        job->bytes[job->n++] = sizes[i] * threads;
    if (f->word)
        read_wrongly(t, f, job);
    else
        cb__agenda_variants(t->request, "twin_read", -1, job);
}

static const char *expected_of(const testing *t, const struct fault *f)
{
    return t->out->device.queued && f->of_queued ? f->of_queued : f->expected;
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
    if (f->ends_early && !t->out->device.queued)
        return "a search over loads in flight is a GPU's";
    if (f->one_worker && t->out->device.queued)
        return "all multiprocessors of a GPU work, always";
    if (f->word && t->out->device.queued && strcmp(f->expected, "port bound") == 0)
        return "no set reaches what a GPU's ports give, so nothing is said of slow loads";
    if (cb__device_scripted(t->request->device) && f->expected && !f->untouched &&
        strcmp(f->expected, "coverage") != 0)
        return "time is scripted on this device";
    if (f->one_worker && t->out->device.threads < 2)
        return "one thread is all there is";
    if (f->expected && strcmp(f->expected, "port bound") == 0 &&
        !(t->out->device.peak_bytes_per_cycle > 0))
        return "the load ports of this processor are unknown";
    return NULL;
}

static void note(const char *expected, const cb_model *model, cb__fault_result *r)
{
    bool found = !expected, accused = false;
    r->got[0] = '\0';
    for (int i = 0; i < NJUDGED; i++) {
        const cb__check *k = check_named(model, judged[i]);
        /* A required check that could not be made acquits nobody. */
        bool open = !expected && (!k || (k->status == CB__SKIP && k->required));
        if (!open && (!k || k->status != CB__FAIL))
            continue;
        bool is_it = expected && strcmp(expected, judged[i]) == 0;
        size_t used = strlen(r->got);
        snprintf(r->got + used, sizeof r->got - used, "%s%s", used ? ", " : "", judged[i]);
        found = found || is_it;
        accused = true;
        if (is_it || !expected)
            snprintf(r->detail, sizeof r->detail, "%s", k ? k->detail : "the check is missing");
    }
    r->runs++;
    r->right += expected ? found : !accused;
    if (!accused)
        snprintf(r->got, sizeof r->got, "none");
}

static cb_status begin(testing *t, int fault, int run, cb_error *err)
{
    const struct fault *f = &faults[fault];
    cb__probe *probe = t->probes[fault] = calloc(1, sizeof *probe);
    cb__agenda *plan = t->plans[fault] = calloc(1, sizeof *plan);
    if (!probe || !plan)
        return cb_error_set(err, CB_NO_MEMORY, "selftest: no memory for a probe");
    probe->device = t->out->device;
    bool queued = t->out->device.queued;
    plan->largest_bytes =
        queued ? queued_sizes[NQUEUED - 1] : sizes[NSIZES - 1] * t->out->device.threads;
    t->seeds[fault] = cb_random(t->request->seed, 0x66617573u, (uint64_t)fault, (uint64_t)run) >> 1;
    if (queued)
        add_queued(t, plan, f);
    else if (t->out->device.threads > 1)
        add_group(t, plan, f, t->out->device.threads);
    if (!queued)
        add_group(t, plan, f, 1);
    return CB_OK;
}

static cb_status sweep(testing *t, int fault, int number, cb_error *err)
{
    cb__probe_request request = *t->request;
    uint64_t start = cb__clock_ns();
    request.quick = true;
    request.budget_s = BUDGET_S;
    request.seed = t->seeds[fault];
    request.phase = NULL;
    cb_status status = cb__probe_sweep(&request, t->plans[fault], number, t->probes[fault], err);
    t->out->faults[fault].wall_s += (double)(cb__clock_ns() - start) * 1e-9;
    return status;
}

static cb_status judge(testing *t, int fault, cb_error *err)
{
    cb_model *model = cb__model_new();
    if (!model)
        return cb_error_set(err, CB_NO_MEMORY, "selftest: no memory for a model");
    cb_status status = cb__probe_judge(t->probes[fault], model, err);
    if (status == CB_OK)
        note(expected_of(t, &faults[fault]), model, &t->out->faults[fault]);
    t->out->measure_s += t->probes[fault]->measure_s;
    cb_model_free(model);
    return status;
}

/* The first sweep of all faults, then the second, then the third: what disturbs for a moment
 * disturbs one sweep of each, not all of one. */
static cb_status one_run(testing *t, int run, cb_error *err)
{
    cb_status status = CB_OK;
    char text[64];
    snprintf(text, sizeof text, "seeded faults, run %d of %d", run + 1, t->runs);
    if (t->request->phase)
        t->request->phase(t->request->arg, text, run);
    for (int i = 0; i < NFAULTS && status == CB_OK; i++)
        if (!obstacle(t, &faults[i]))
            status = begin(t, i, run, err);
    for (int i = 0; i < CB__PROBE_QUICK_SWEEPS * NFAULTS && status == CB_OK; i++)
        if (t->probes[i % NFAULTS])
            status = sweep(t, i % NFAULTS, i / NFAULTS, err);
    for (int i = 0; i < NFAULTS && status == CB_OK; i++)
        if (t->probes[i])
            status = judge(t, i, err);
    for (int i = 0; i < NFAULTS; i++) {
        free(t->probes[i]);
        free(t->plans[i]);
        t->probes[i] = NULL;
        t->plans[i] = NULL;
    }
    return status;
}

static void list_faults(const testing *t)
{
    for (int i = 0; i < NFAULTS; i++) {
        if (faults[i].ends_early && !t->out->device.queued) /* the last: no other is moved */
            continue;
        cb__fault_result *r = &t->out->faults[t->out->nfaults++];
        *r = (cb__fault_result){.name = faults[i].name, .expected = expected_of(t, &faults[i])};
        const char *why_not = obstacle(t, &faults[i]);
        snprintf(r->got, sizeof r->got, "%s", why_not ? "not seeded" : "");
        snprintf(r->detail, sizeof r->detail, "%s", why_not ? why_not : "");
    }
}

static void test_clock(cb__selftest *out)
{
    out->timer = true;
    out->clock = cb__clock_test(CLOCK_READS);
    out->clock_good = out->clock.backwards == 0 && out->clock.cost_ns < CLOCK_NS &&
                      out->clock.resolution_ns < CLOCK_NS;
}

static cb_status seed_faults(const cb__selftest_request *r, cb__selftest *out, cb_error *err)
{
    testing t = {.request = &r->common, .runs = r->runs ? r->runs : 1, .out = out};
    cb_status status = CB_OK;
    if (r->sweeps)
        list_faults(&t);
    cb__fault_result *launches = &out->faults[out->nfaults];
    if (r->launches)
        out->nfaults += cb__launch_faults_list(launches);
    for (int run = 0; run < t.runs && status == CB_OK; run++) {
        if (r->sweeps)
            status = one_run(&t, run, err);
        if (r->launches && status == CB_OK)
            status = cb__launch_faults_run(&r->common, &out->device, run, launches, err);
    }
    return status;
}

static double quick_s(const cb__selftest *s)
{
    return s->device.queued ? CB__SELFTEST_QUICK_QUEUED_S : CB__SELFTEST_QUICK_S;
}

static cb_status try_comparisons(const cb__selftest_request *r, uint64_t start_ns,
                                 cb__selftest *out, cb_error *err)
{
    cb__trials_request request = {.common = &r->common,
                                  .runs = r->runs,
                                  .quick = r->quick,
                                  .aa = r->aa,
                                  .planted = r->planted,
                                  .load = r->load,
                                  .before_ns =
                                      r->quick ? start_ns + (uint64_t)(quick_s(out) * 1e9) : 0};
    cb_status status = cb__trials_run(&request, out->trials, &out->ntrials, err);
    for (int i = 0; i < out->ntrials; i++)
        for (int c = 0; c < CB__CONDITIONS; c++)
            out->measure_s += out->trials[i].tally[c].measure_s;
    return status;
}

cb_status cb__selftest_run(const cb__selftest_request *r, cb__selftest *out, cb_error *err)
{
    uint64_t start = cb__clock_ns();
    memset(out, 0, sizeof *out);
    out->sweeps = r->sweeps;
    out->launches = r->launches;
    out->aa = r->aa;
    out->planted = r->planted;
    out->load = r->load;
    if (r->timer)
        test_clock(out);
    cb_status status = cb__probe_describe(&r->common, &out->device, err);
    out->usual_runs = cb__trials_usual(r->common.device, out->device.queued);
    if (status == CB_OK && (r->sweeps || r->launches))
        status = seed_faults(r, out, err);
    if (status == CB_OK && (r->aa || r->planted))
        status = try_comparisons(r, start, out, err);
    out->complete = status == CB_OK;
    out->wall_s = (double)(cb__clock_ns() - start) * 1e-9;
    return status;
}

bool cb__selftest_passed(const cb__selftest *s)
{
    char why[160];
    bool good = s->complete && (s->clock_good || !s->timer);
    for (int i = 0; i < s->nfaults; i++)
        good = good && s->faults[i].right == s->faults[i].runs;
    return good && !cb__trials_contradict(s->trials, s->ntrials, why, sizeof why);
}
