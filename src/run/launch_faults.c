/* Faults of what a launch leaves behind, seeded on the device itself: a kernel's wrong
 * implementations, verified as `run` verifies every kernel. */
#include <stdio.h>
#include <string.h>

#include "coldbench/random.h"
#include "host/clock.h"
#include "run/faults.h"
#include "run/run.h"

static const struct fault {
    const char *name, *expected, *impl;
} faults[] = {
    {"clean launch", NULL, "clean"},         {"rows never written", "written", "unwritten"},
    {"short grid", "written", "short_grid"}, {"write past the end", "guards", "beyond"},
    {"write before it", "guards", "before"}, {"wrong value", "bound", "wrong"},
    {"fewer bits", "bound", "imprecise"},    {"not a number", "finite", "nan"},
    {"edited input", "inputs", "edits"},     {"failed launch", "launch", "fails"},
};
enum { NFAULTS = sizeof faults / sizeof *faults };

/* Those that the clean one must pass. */
static const char *const judged[] = {"launch", "worker", "written", "guards",
                                     "inputs", "bound",  "finite"};
enum { NJUDGED = sizeof judged / sizeof *judged };

int cb__launch_faults_list(cb__fault_result *results)
{
    for (int i = 0; i < NFAULTS; i++)
        results[i] = (cb__fault_result){.name = faults[i].name, .expected = faults[i].expected};
    return NFAULTS;
}

/* Of all rows: the first that failed counts, else the first that could not be made. */
static const cb__check *check_named(const cb__run_case *c, const char *name)
{
    const cb__check *found = NULL;
    for (int row = 0; row < c->nrows; row++)
        for (int i = 0; i < c->rows[row].nchecks; i++) {
            const cb__check *k = &c->rows[row].checks[i];
            bool worse = !found || (found->status != CB__FAIL && k->status != CB__PASS);
            if (strcmp(k->name, name) == 0 && worse)
                found = k;
        }
    return found;
}

static void note(const struct fault *f, const cb__run_case *c, cb__fault_result *r)
{
    bool found = !f->expected, accused = false;
    r->got[0] = '\0';
    for (int i = 0; i < NJUDGED; i++) {
        const cb__check *k = check_named(c, judged[i]);
        bool failed = k && k->status == CB__FAIL;
        /* What was not looked at acquits nobody. */
        if (!failed && (f->expected || (k && k->status == CB__PASS)))
            continue;
        size_t used = strlen(r->got);
        snprintf(r->got + used, sizeof r->got - used, "%s%s", used ? ", " : "", judged[i]);
        accused = true;
        bool is_it = f->expected && strcmp(f->expected, judged[i]) == 0;
        found = found || is_it;
        if (is_it || !f->expected)
            snprintf(r->detail, sizeof r->detail, "%s", k ? k->detail : "the check is missing");
    }
    r->runs++;
    r->right += f->expected ? found : !accused;
    if (!accused)
        snprintf(r->got, sizeof r->got, "none");
}

static cb_status one(const cb__probe_request *common, const cb__device_info *device,
                     const struct fault *f, uint64_t seed, cb__fault_result *r, cb_error *err)
{
    char variant[48];
    cb__arena arena = CB__ARENA_INIT;
    bool gpu = (common->isa & CB_ISA_CUDA) != 0;
    snprintf(variant, sizeof variant, "fault_scale/%s%s", gpu ? "cuda_" : "", f->impl);
    cb__run_request request = {.suite = common->suite,
                               .isa = common->isa,
                               .device = common->device,
                               .threads = common->threads,
                               .variant = variant,
                               .shape = "4096",
                               .caches = {[CB__WARM] = true},
                               .submits = {true, true},
                               .seed = seed,
                               .asker = common->asker};
    cb__run_case *c = cb__arena_alloc(&arena, sizeof *c);
    cb_status status = c ? cb__run_plan(&request, device, c, err)
                         : cb_error_set(err, CB_NO_MEMORY, "selftest: no memory for a case");
    if (status == CB_OK)
        status = cb__run_verify(&request, &arena, c, err);
    if (status == CB_OK)
        note(f, c, r);
    cb__arena_fini(&arena);
    return status;
}

cb_status cb__launch_faults_run(const cb__probe_request *request, const cb__device_info *device,
                                int run, cb__fault_result *results, cb_error *err)
{
    cb_status status = CB_OK;
    for (int i = 0; i < NFAULTS && status == CB_OK; i++) {
        uint64_t start_ns = cb__clock_ns();
        uint64_t seed = cb_random(request->seed, 0x6c61756e6368u, (uint64_t)i, (uint64_t)run) >> 1;
        status = one(request, device, &faults[i], seed, &results[i], err);
        results[i].wall_s += (double)(cb__clock_ns() - start_ns) * 1e-9;
    }
    return status;
}
