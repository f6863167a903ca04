#include "run/agenda_internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SMALLEST_BYTES = 4096, RANGE_OVER_CACHES = 8 };
/* Where only the last knee is looked for. */
enum { KNEE_OVER_CACHES = 4, KNEE_UNDER_CACHES = 64 };
/* Of a GPU: from what its multiprocessors have in flight at once to what a launch no longer counts
 * in. */
#define QUEUED_SMALLEST_BYTES (UINT64_C(256) << 10)
#define QUEUED_LARGEST_BYTES (UINT64_C(4) << 30)
#define QUEUED_QUICK_BYTES (UINT64_C(1) << 30)

typedef struct planning {
    const cb__probe_request *request;
    const cb__device_info *device;
    cb__agenda *plan;
    double smallest;
} planning;

/* ---- sizes ---- */

static void choose_range(planning *p)
{
    uint64_t llc = p->device->llc_bytes ? p->device->llc_bytes : UINT64_C(64) << 20;
    bool knee = p->request->read_only, queued = p->device->queued && !knee;
    uint64_t largest = (knee ? KNEE_OVER_CACHES : RANGE_OVER_CACHES) * llc,
             quarter = p->device->memory_bytes / 4;
    if (queued)
        largest = p->request->quick ? QUEUED_QUICK_BYTES : QUEUED_LARGEST_BYTES;
    p->plan->quarter = quarter < largest;
    largest = p->plan->quarter ? quarter : largest;
    largest = largest / 4096 * 4096;
    p->plan->largest_bytes = largest > SMALLEST_BYTES ? (int64_t)largest : SMALLEST_BYTES;
    uint64_t smallest = knee     ? llc / KNEE_UNDER_CACHES
                        : queued ? QUEUED_SMALLEST_BYTES
                                 : SMALLEST_BYTES;
    smallest = smallest < largest ? smallest : largest;
    p->smallest = smallest > SMALLEST_BYTES ? (double)smallest : SMALLEST_BYTES;
}

/* Whole pages; below 64 KiB, where no page is needed, whole kilobytes. */
static int64_t rounded(double bytes, bool whole_pages)
{
    int64_t unit = whole_pages || bytes >= 65536 ? 4096 : 1024;
    return (int64_t)(bytes / (double)unit + 0.5) * unit;
}

/* From the largest size down, then the smallest: both ends are there whatever the step. */
void cb__agenda_sizes(double largest, double smallest, double an_octave, bool whole_pages,
                      cb__planned_job *job)
{
    int64_t down[CB__SIZES_MAX], end = rounded(smallest, whole_pages), last = INT64_MAX;
    int n = 0;
    for (int i = 0; n < CB__SIZES_MAX - 1; i++) {
        double exact = largest * exp2(-i / an_octave);
        int64_t size = rounded(exact, whole_pages);
        if (exact < smallest * 0.99)
            break;
        if (size < last)
            down[n++] = last = size;
    }
    if (last > end)
        down[n++] = end;
    for (int i = 0; i < n; i++)
        job->bytes[i] = down[n - 1 - i];
    job->n = n;
}

static void sizes(const planning *p, double an_octave, bool whole_pages, cb__planned_job *job)
{
    cb__agenda_sizes((double)p->plan->largest_bytes, p->smallest, an_octave, whole_pages, job);
}

/* ---- jobs ---- */

static const cb_choice *tunable(const cb_impl *impl, const char *name)
{
    for (int i = 0; i < impl->ntunables; i++)
        if (strcmp(impl->tunables[i].name, name) == 0)
            return &impl->tunables[i];
    return NULL;
}

static void add_variant(cb__planned_job *job, const char *kernel, const cb_impl *impl,
                        const char *stores, const char *streams)
{
    if (job->nvariants == CB__JOB_VARIANTS_MAX)
        return;
    bool any = *stores || *streams, both = *stores && *streams;
    snprintf(job->variants[job->nvariants++], sizeof job->variants[0], "%s/%s%s%s%s%s", kernel,
             impl->name, any ? ":" : "", stores, both ? "," : "", streams);
}

/* Every number of streams that the implementation knows, each spelled. */
static void implementation(const char *kernel, const cb_impl *impl, int nontemporal,
                           cb__planned_job *job)
{
    const cb_choice *stores = tunable(impl, "nontemporal"), *streams = tunable(impl, "streams");
    char kind[24] = "", count[24];
    if (nontemporal == 1 && !stores)
        return;
    if (nontemporal >= 0 && stores)
        snprintf(kind, sizeof kind, "nontemporal=%d", nontemporal);
    if (!streams)
        add_variant(job, kernel, impl, kind, "");
    for (int i = 0; streams && i < streams->count; i++) {
        snprintf(count, sizeof count, "streams=%" PRId64, streams->values[i]);
        add_variant(job, kernel, impl, kind, count);
    }
}

/* The portable code counts only where there is nothing else. */
void cb__agenda_variants(const cb__probe_request *request, const char *kernel, int nontemporal,
                         cb__planned_job *job)
{
    const cb_kernel *k = cb__suite_find(request->suite, kernel, NULL);
    for (int portable = 0; k && portable < 2 && job->nvariants == 0; portable++)
        for (int i = 0; i < k->nimpls; i++) {
            char text[96];
            cb__case c;
            snprintf(text, sizeof text, "%s/%s", kernel, k->impls[i].name);
            if ((k->impls[i].isa == CB_ISA_PORTABLE) == portable &&
                cb__case_parse_variant(request->suite, text, request->isa, &c, NULL) == CB_OK)
                implementation(kernel, &k->impls[i], nontemporal, job);
        }
}

static void add(const planning *p, cb__planned_group *g, cb__job_kind kind, const char *what)
{
    static const struct {
        const char *what, *kernel;
        int nontemporal;
    } kernels[] = {{"read", "twin_read", -1},     {"write", "twin_write", 0},
                   {"write_nt", "twin_write", 1}, {"copy", "twin_copy", 0},
                   {"copy_nt", "twin_copy", 1},   {"random", "chase", -1},
                   {"local", "chase", -1},        {"f32", "peak_fma", -1},
                   {"f64", "peak_fma", -1},       {"int8", "peak_dot", -1}};
    bool quick = p->request->quick;
    cb__planned_job *job = &g->jobs[g->njobs];
    *job = (cb__planned_job){.kind = kind};
    snprintf(job->what, sizeof job->what, "%s", what);
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (kind != CB__JOB_CONTENT && strcmp(kernels[i].what, what) == 0)
            cb__agenda_variants(p->request, kernels[i].kernel, kernels[i].nontemporal, job);
    if (kind == CB__JOB_CONTENT) {
        cb__agenda_variants(p->request, "twin_read", -1, job);
        job->nvariants = job->nvariants ? 1 : 0;
        job->bytes[job->n++] = p->plan->largest_bytes;
    } else if (kind == CB__JOB_BANDWIDTH) {
        bool dense = strcmp(what, "read") == 0;
        sizes(p, dense ? (quick ? 2 : 4) : (quick ? 1 : 2), false, job);
    } else if (kind == CB__JOB_LATENCY) {
        sizes(p, strcmp(what, "random") == 0 && !quick ? 3 : quick ? 1 : 2, true, job);
    }
    if (job->nvariants || kind == CB__JOB_FLOOR)
        g->njobs++;
}

static void add_all(const planning *p, cb__planned_group *g, cb__job_kind kind, const char *list)
{
    char words[96], *save = NULL;
    snprintf(words, sizeof words, "%s", list);
    for (char *word = strtok_r(words, " ", &save); word; word = strtok_r(NULL, " ", &save))
        add(p, g, kind, word);
}

cb__planned_group *cb__agenda_group(cb__agenda *plan, int threads, bool scattered,
                                    cb__page_kind pages, double share)
{
    if (plan->ngroups == CB__GROUPS_MAX)
        return NULL;
    cb__planned_group *g = &plan->groups[plan->ngroups++];
    *g = (cb__planned_group){
        .threads = threads, .scattered = scattered, .pages = pages, .share = share};
    snprintf(g->name, sizeof g->name, "%d thread%s%s%s", threads, threads > 1 ? "s" : "",
             scattered ? ", scattered" : "", pages == CB__PAGES_BASE ? ", base pages" : "");
    return g;
}

/* ---- groups ---- */

static void add_scalars(const planning *p, cb__planned_group *g)
{
    add_all(p, g, CB__JOB_FLOOR, "solo batched");
    add_all(p, g, CB__JOB_COMPUTE, "f32 f64 int8");
}

static void all_threads(planning *p, int threads)
{
    cb__planned_group *g = cb__agenda_group(p->plan, threads, false, CB__PAGES_HUGE, 5);
    add(p, g, CB__JOB_BANDWIDTH, "read");
    if (p->request->read_only)
        return;
    add_scalars(p, g);
    add_all(p, g, CB__JOB_BANDWIDTH, "write_nt copy_nt write copy");
    if (!p->request->quick)
        add_all(p, g, CB__JOB_CONTENT, "random constant untouched");
}

static void one_thread(planning *p, bool only)
{
    cb__planned_group *g = cb__agenda_group(p->plan, 1, false, CB__PAGES_HUGE, 5);
    add(p, g, CB__JOB_BANDWIDTH, "read");
    if (p->request->read_only)
        return;
    add(p, g, CB__JOB_LATENCY, "random");
    add_scalars(p, g);
    add_all(p, g, CB__JOB_BANDWIDTH, "write copy");
    if (!p->request->quick || only)
        add_all(p, g, CB__JOB_BANDWIDTH, "write_nt copy_nt");
    add(p, g, CB__JOB_LATENCY, "local");
    if (only && !p->request->quick)
        add_all(p, g, CB__JOB_CONTENT, "random constant untouched");
}

static void base_pages(planning *p)
{
    cb__planned_group *g = cb__agenda_group(p->plan, 1, false, CB__PAGES_BASE, 2);
    add(p, g, CB__JOB_LATENCY, "random");
    if (!p->request->quick)
        add(p, g, CB__JOB_LATENCY, "local");
}

/* 2, 4, 8 ... below all: the largest first, then the smallest. */
static void in_between(planning *p, int threads)
{
    int counts[32], n = 0;
    for (int t = 2; t < threads && n < 32; t *= 2)
        counts[n++] = t;
    for (int i = 0; i < n; i++) {
        int t = counts[i % 2 ? i / 2 : n - 1 - i / 2];
        for (int scattered = 0; scattered <= (p->device->placements_differ ? 1 : 0); scattered++) {
            cb__planned_group *g = cb__agenda_group(p->plan, t, scattered, CB__PAGES_HUGE, 1);
            if (!g)
                return;
            add(p, g, CB__JOB_BANDWIDTH, "read");
            add_all(p, g, CB__JOB_FLOOR, "solo batched");
            if (!p->request->quick)
                add_all(p, g, CB__JOB_BANDWIDTH, "write_nt copy_nt write copy");
        }
    }
}

cb_status cb__agenda_make(const cb__probe_request *request, const cb__device_info *device,
                          cb__agenda *plan, cb_error *err)
{
    planning p = {request, device, plan, 0};
    memset(plan, 0, sizeof *plan);
    choose_range(&p);
    if (device->queued)
        cb__agenda_queued(request, device, p.smallest, plan);
    else if (device->threads > 1)
        all_threads(&p, device->threads);
    if (!device->queued && (device->threads == 1 || !request->read_only))
        one_thread(&p, device->threads == 1);
    if (!device->queued && !request->read_only) {
        base_pages(&p);
        in_between(&p, device->threads);
    }
    if (plan->groups[0].njobs == 0)
        return cb_error_set(err, CB_INTERNAL, "no reading twin runs on this machine");
    return CB_OK;
}

void cb__agenda_drop(cb__agenda *plan, int group_index)
{
    cb__planned_group *g = &plan->groups[group_index];
    for (int j = 0; j < g->njobs; j++)
        g->jobs[j].dropped = true;
}

static void append(char *text, size_t size, const char *words)
{
    size_t used = strlen(text);
    snprintf(text + used, size - used, "%s%s", used ? "; " : "", words);
}

void cb__agenda_dropped_text(const cb__agenda *plan, int planned, char *text, size_t size)
{
    *text = '\0';
    if (plan->quarter)
        append(text, size, "the sizes beyond a quarter of the free memory");
    for (int g = 0; g < plan->ngroups; g++) {
        const cb__planned_group *group = &plan->groups[g];
        char words[160] = "";
        int dropped = 0;
        for (int j = 0; j < group->njobs; j++) {
            const cb__planned_job *job = &group->jobs[j];
            if (!job->dropped && job->sweeps >= planned)
                continue;
            size_t used = strlen(words);
            snprintf(words + used, sizeof words - used, "%s%s", used ? ", " : "", job->what);
            used = strlen(words);
            if (job->sweeps)
                snprintf(words + used, sizeof words - used, " (after %d sweep%s)", job->sweeps,
                         job->sweeps > 1 ? "s" : "");
            else
                dropped++;
        }
        if (!*words)
            continue;
        char line[240];
        snprintf(line, sizeof line, "%s: %s", group->name,
                 dropped == group->njobs ? "everything" : words);
        append(text, size, line);
    }
}
