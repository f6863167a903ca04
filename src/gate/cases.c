/* Which cases two builds have in common, and what there is to say of them before measuring. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "gate/cases.h"
#include "gate/gate.h"

static const struct {
    const char *kernel, *shape;
    cb__cache_state cache;
} suite_cases[] = {
    /* k, v; q, o; gate, up of llama-3-8b. Weights are met cold in production. */
    {"gemv_q4", "1024x4096", CB__COLD},  {"gemv_q4", "4096x4096", CB__COLD},
    {"gemv_q4", "14336x4096", CB__COLD}, {"stream_read", "24KiB", CB__WARM},
    {"stream_read", "256KiB", CB__WARM}, {"stream_read", "4MiB", CB__WARM},
};

/* ---- listing ---- */

/* cache -1: cold, where the kernel has that state. */
static cb_status add_case(cb__gate *g, const char *variant, const char *shape, int cache,
                          cb_error *err)
{
    char kernel[64];
    int base = 0, head = 0;
    snprintf(kernel, sizeof kernel, "%.*s", (int)strcspn(variant, "@/:"), variant);
    if (!cb__build_find(&g->base, kernel, &base) || !cb__build_find(&g->head, kernel, &head))
        return CB_OK;
    if (g->ncases == CB__GATE_CASES_MAX)
        return cb_error_set(err, CB_USAGE, "more than %d cases", CB__GATE_CASES_MAX);
    cb__gate_case *c = &g->cases[g->ncases++];
    if (snprintf(c->variant, sizeof c->variant, "%s", variant) >= (int)sizeof c->variant)
        return cb_error_set(err, CB_USAGE, "variant is longer than %zu bytes",
                            sizeof c->variant - 1);
    c->shape = shape;
    const cb_kernel *k = cb__suite_find(&g->base.modules[base].suite, kernel, NULL);
    c->cache = cache >= 0 ? (cb__cache_state)cache : cb__kernel_streams(k) ? CB__COLD : CB__WARM;
    c->base = base;
    c->head = head;
    return CB_OK;
}

/* Every shape; without one the kernel's own refusal says what it needs, when it is planned. */
static cb_status add_shapes(const cb__gate_request *r, cb__gate *g, const char *variant,
                            bool shapes, cb_error *err)
{
    int n = shapes && r->nshapes ? r->nshapes : 1;
    cb_status status = CB_OK;
    for (int i = 0; i < n && status == CB_OK; i++)
        status = add_case(g, variant, shapes && r->nshapes ? r->shapes[i] : NULL, r->cache, err);
    return status;
}

static bool asked_for(const cb__gate_request *r, const char *kernel)
{
    for (int i = 0; i < r->nkernels; i++)
        if (strcspn(r->kernels[i], "@/:") == strlen(kernel) &&
            strncmp(r->kernels[i], kernel, strlen(kernel)) == 0)
            return true;
    return r->nkernels == 0;
}

/* Those of `from` that `other` has not, as far as they were asked for. */
static int alone(const cb__gate_request *r, const cb__build *from, const cb__build *other,
                 const char **names)
{
    int n = 0, ignored = 0;
    for (int i = 0; i < from->nmodules; i++) {
        const cb_module *table = from->modules[i].suite.modules[0]->table;
        for (int k = 0; k < table->nkernels && n < CB__GATE_ALONE_MAX; k++) {
            const char *name = table->kernels[k]->name;
            if (!cb__build_find(other, name, &ignored) && asked_for(r, name))
                names[n++] = name;
        }
    }
    return n;
}

static cb_status named_kernels(const cb__gate_request *r, cb__gate *g, cb_error *err)
{
    cb_status status = CB_OK;
    for (int i = 0; i < r->nkernels && status == CB_OK; i++) {
        char kernel[64];
        int module = 0;
        snprintf(kernel, sizeof kernel, "%.*s", (int)strcspn(r->kernels[i], "@/:"), r->kernels[i]);
        if (!cb__build_find(&g->base, kernel, &module) &&
            !cb__build_find(&g->head, kernel, &module))
            return cb_error_set(err, CB_USAGE, "neither --base nor --head has a kernel '%s'",
                                kernel);
        status = add_shapes(r, g, r->kernels[i], true, err);
    }
    return status;
}

static cb_status every_kernel(const cb__gate_request *r, cb__gate *g, cb_error *err)
{
    cb_status status = CB_OK;
    for (int i = 0; i < g->base.nmodules; i++) {
        const cb_module *table = g->base.modules[i].suite.modules[0]->table;
        for (int k = 0; k < table->nkernels && status == CB_OK; k++)
            status = add_shapes(r, g, table->kernels[k]->name, table->kernels[k]->ndims > 0, err);
    }
    return status;
}

static cb_status suite(const cb__gate_request *r, cb__gate *g, cb_error *err)
{
    static const char *const valid[] = {"default"};
    if (strcmp(r->suite, valid[0]) != 0)
        return cb__unknown(err, "suite", r->suite, valid, 1);
    cb_status status = CB_OK;
    for (size_t i = 0; i < sizeof suite_cases / sizeof *suite_cases && status == CB_OK; i++)
        status = add_case(g, suite_cases[i].kernel, suite_cases[i].shape,
                          r->cache < 0 ? (int)suite_cases[i].cache : r->cache, err);
    return status;
}

static cb_status nothing_in_common(const cb__gate_request *r, const cb__gate *g, cb_error *err)
{
    if (g->nbase_alone || g->nhead_alone)
        return cb_error_set(err, CB_USAGE,
                            "nothing can be compared: %s%s is on one side only; both sides must "
                            "have it",
                            g->nbase_alone ? g->base_alone[0] : g->head_alone[0],
                            g->nbase_alone + g->nhead_alone > 1 ? " (and others)" : "");
    return cb_error_set(err, CB_USAGE,
                        "give --shape, and --kernel where not every kernel is meant: without them "
                        "the suite '%s' is gated, which has no case of these modules",
                        r->suite);
}

cb_status cb__gate_list(const cb__gate_request *r, cb__gate *g, cb_error *err)
{
    g->cases = calloc(CB__GATE_CASES_MAX, sizeof *g->cases);
    if (!g->cases)
        return cb_error_set(err, CB_NO_MEMORY, "no memory for the cases of a gate");
    g->nbase_alone = alone(r, &g->base, &g->head, g->base_alone);
    g->nhead_alone = alone(r, &g->head, &g->base, g->head_alone);
    cb_status status = r->nkernels  ? named_kernels(r, g, err)
                       : r->nshapes ? every_kernel(r, g, err)
                                    : suite(r, g, err);
    if (status == CB_OK && g->ncases == 0)
        status = nothing_in_common(r, g, err);
    return status;
}

/* ---- the same build ---- */

static bool same_bytes(const char *a, const char *b)
{
    char x[4096], y[4096];
    FILE *first = fopen(a, "re"), *second = fopen(b, "re");
    bool same = first && second;
    size_t n = 1;
    while (same && n > 0) {
        n = fread(x, 1, sizeof x, first);
        same = fread(y, 1, sizeof y, second) == n && memcmp(x, y, n) == 0;
    }
    same = same && !ferror(first) && !ferror(second);
    if (first)
        fclose(first);
    if (second)
        fclose(second);
    return same;
}

cb_status cb__gate_identify(cb__gate *g, cb_error *err)
{
    for (int i = 0; i < g->ncases; i++) {
        cb__gate_case *c = &g->cases[i];
        const cb__build_module *a = &g->base.modules[c->base], *b = &g->head.modules[c->head];
        c->identical = same_bytes(a->path, b->path);
        bool same = c->identical || (*a->build_id && strcmp(a->build_id, b->build_id) == 0);
        if (same && *a->source_id && *b->source_id && strcmp(a->source_id, b->source_id) != 0)
            return cb_error_set(err, CB_USAGE,
                                "stale build: module %s is the same build (%.12s) on both sides, "
                                "from different sources (%.12s and %.12s); rebuild --base and "
                                "--head, then export again",
                                b->name, *b->build_id ? b->build_id : "no build id", a->source_id,
                                b->source_id);
    }
    return CB_OK;
}
