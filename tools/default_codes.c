#include "default_codes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run/agenda.h"
#include "run/faults.h"
#include "run/twins.h"

typedef struct listing {
    const cb__suite *suite;
    default_code_fn *fn;
    void *arg;
} listing;

static cb_status give(const listing *l, const char *text, cb_error *err)
{
    cb__case c;
    cb_status status = cb__case_parse_variant(l->suite, text, CB_ISA_CUDA, &c, err);
    return status == CB_OK ? l->fn(l->arg, text, &c, err) : status;
}

/* ---- presets ---- */

static int choice_count(const cb_choice *c)
{
    int n = c->values ? c->count : 0;
    while (c->words && c->words[n])
        n++;
    return n;
}

/* Spells parameter `at` and those after it in every way, the numbers left out. */
static cb_status with_params(const listing *l, const cb_kernel *k, const cb_impl *impl,
                             const char *spelled, int64_t *params, int at, cb_error *err)
{
    char text[96];
    cb_status status = CB_OK;
    if (at == k->nparams) {
        const cb_problem problem = {NULL, params};
        if (impl->covers && !impl->covers(&problem))
            return CB_OK;
        snprintf(text, sizeof text, "%s%s%s/%s", k->name, *spelled ? "@" : "", spelled, impl->name);
        return give(l, text, err);
    }
    const cb_choice *c = &k->params[at];
    params[at] = c->preset;
    if (choice_count(c) == 0)
        return with_params(l, k, impl, spelled, params, at + 1, err);
    for (int i = 0; i < choice_count(c) && status == CB_OK; i++) {
        cb__buf value = CB__BUF_INIT;
        params[at] = c->words ? i : c->values[i];
        cb__choice_text(c, params[at], &value);
        snprintf(text, sizeof text, "%s%s%s=%s", spelled, *spelled ? "," : "", c->name,
                 cb__buf_text(&value));
        cb__buf_fini(&value);
        status = with_params(l, k, impl, text, params, at + 1, err);
    }
    return status;
}

static cb_status presets(const listing *l, cb_error *err)
{
    int64_t params[CB_PARAMS_MAX];
    cb_status status = CB_OK;
    for (int m = 0; m < l->suite->nmodules; m++) {
        const cb_module *table = l->suite->modules[m]->table;
        for (int k = 0; k < table->nkernels; k++)
            for (int i = 0; i < table->kernels[k]->nimpls && status == CB_OK; i++)
                if (table->kernels[k]->impls[i].isa == CB_ISA_CUDA)
                    status = with_params(l, table->kernels[k], &table->kernels[k]->impls[i], "",
                                         params, 0, err);
    }
    return status;
}

/* ---- twins, and the probe ---- */

static cb_status twins(const listing *l, cb_error *err)
{
    static const char *const kernels[] = {"twin_read", "twin_write", "twin_copy"};
    cb_status status = CB_OK;
    for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++) {
        char texts[CB__TWINS_MAX][96];
        int n = cb__twin_candidates(l->suite, kernels[k], CB_ISA_CUDA, texts);
        for (int i = 0; i < n && status == CB_OK; i++)
            status = give(l, texts[i], err);
    }
    return status;
}

static cb_status probe(const listing *l, bool quick, cb_error *err)
{
    const cb__probe_request request = {.suite = l->suite, .isa = CB_ISA_CUDA, .quick = quick};
    const cb__device_info device = {.threads = 1,
                                    .queued = true,
                                    .memory_bytes = UINT64_C(1) << 40,
                                    .caches = {{1, 1 << 20, 1}},
                                    .ncaches = 1,
                                    .llc_bytes = 1 << 26};
    cb__agenda *plan = calloc(1, sizeof *plan);
    if (!plan)
        return cb_error_set(err, CB_NO_MEMORY, "no memory for an agenda");
    cb_status status = cb__agenda_make(&request, &device, plan, err);
    for (int g = 0; g < plan->ngroups; g++)
        for (int j = 0; j < plan->groups[g].njobs; j++)
            for (int v = 0; v < plan->groups[g].jobs[j].nvariants && status == CB_OK; v++)
                status = give(l, plan->groups[g].jobs[j].variants[v], err);
    free(plan);
    return status;
}

static cb_status selftest(const listing *l, cb_error *err)
{
    int n = 0;
    const char *const *texts = cb__sweep_fault_variants(&n);
    cb_status status = CB_OK;
    for (int i = 0; i < n && status == CB_OK; i++)
        status = give(l, texts[i], err);
    return status;
}

cb_status each_default_code(const cb__suite *suite, default_code_fn *fn, void *arg, cb_error *err)
{
    const listing l = {suite, fn, arg};
    cb_status status = fn(arg, NULL, NULL, err);
    if (status == CB_OK)
        status = presets(&l, err);
    if (status == CB_OK)
        status = twins(&l, err);
    if (status == CB_OK)
        status = probe(&l, false, err);
    if (status == CB_OK)
        status = probe(&l, true, err);
    return status == CB_OK ? selftest(&l, err) : status;
}
