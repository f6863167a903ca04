#include "gate/gate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gate/cases.h"
#include "host/clock.h"

#define CASE_S 10.0 /* the budget of a case where none is given */

cb_status cb__gate_open(const cb__gate_request *r, cb__gate *g, cb_error *err)
{
    cb_status status = cb__build_open(r->base, "base", &g->base, err);
    if (status == CB_OK)
        status = cb__build_open(r->head, "head", &g->head, err);
    if (status == CB_OK)
        status = cb__gate_list(r, g, err);
    if (status == CB_OK)
        status = cb__gate_identify(g, err);
    if (status == CB_OK)
        status = cb__gate_check(r, g, err);
    return status;
}

void cb__gate_close(cb__gate *g)
{
    cb__build_close(&g->base);
    cb__build_close(&g->head);
    free(g->cases);
    g->cases = NULL;
}

int cb__gate_to_measure(const cb__gate *g)
{
    int n = 0;
    for (int i = 0; i < g->ncases; i++)
        n += !g->cases[i].identical && g->cases[i].refused.status == CB_OK;
    return n;
}

/* ---- planning ---- */

static void make_request(const cb__gate_request *r, cb__gate *g, cb__gate_case *c)
{
    double usual = c->cache == CB__WARM ? 0.01 : 0.02;
    c->request = (cb__compare_request){
        .suites = {&g->base.modules[c->base].suite, &g->head.modules[c->head].suite},
        .isa = r->isa,
        .device = r->device,
        .threads = r->threads,
        .variants = {c->variant, c->variant},
        .nsides = 2,
        .shape = c->shape,
        .cache = c->cache,
        .submit = r->submit,
        .alpha = r->alpha,
        .margin = r->margin > 0 ? r->margin : usual,
        .seed = r->seed,
        .asker = r->asker,
        .phase = r->phase,
        .arg = r->arg};
}

cb_status cb__gate_plan(const cb__gate_request *r, const cb__device_info *info,
                        uint64_t beyond_bytes, cb__gate *g, cb_error *err)
{
    double minimum = 0;
    for (int i = 0; i < g->ncases; i++) {
        cb__gate_case *c = &g->cases[i];
        if (c->identical || c->refused.status != CB_OK)
            continue;
        make_request(r, g, c);
        c->request.beyond_bytes = beyond_bytes;
        cb_status status = cb__compare_plan(&c->request, info, &c->comparison, &c->refused);
        if (status == CB_OK)
            minimum += cb__compare_budget_min(&c->comparison);
        else if (status != CB_USAGE && status != CB_NO_MEMORY) { /* nothing of this case alone */
            *err = c->refused;
            return status;
        }
    }
    int n = cb__gate_to_measure(g);
    for (int i = 0; i < g->ncases; i++) /* alpha is shared by those that are measured */
        g->cases[i].request.claims = g->cases[i].comparison.claims = n;
    g->budget_s = r->budget_s > 0 ? r->budget_s : fmax(CASE_S * n, minimum);
    if (n > 0 && g->budget_s < minimum)
        return cb_error_set(err, CB_USAGE,
                            "--budget %g is too small for %d case%s; the minimum is %.1f s",
                            r->budget_s, n, n > 1 ? "s" : "", minimum);
    return CB_OK;
}

/* ---- measuring ---- */

cb_status cb__gate_measure(cb__arena *arena, cb__gate *g, cb_error *err)
{
    uint64_t start_ns = cb__clock_ns();
    int left = cb__gate_to_measure(g);
    cb_status status = CB_OK;
    for (int i = 0; i < g->ncases && status == CB_OK; i++) {
        cb__gate_case *c = &g->cases[i];
        if (c->identical || c->refused.status != CB_OK)
            continue;
        double spent_s = (double)(cb__clock_ns() - start_ns) * 1e-9;
        c->request.budget_s = fmax((g->budget_s - spent_s) / left--, 0);
        g->current = i;
        status = cb__compare_measure(&c->request, arena, &c->comparison, err);
        g->nmeasured++;
    }
    g->wall_s = (double)(cb__clock_ns() - start_ns) * 1e-9;
    return status;
}

/* ---- what it comes to ---- */

static bool invalid(const cb__compare_side *side)
{
    return side->verdict == CB_VERDICT_WRONG || side->verdict == CB_VERDICT_IMPOSSIBLE;
}

cb__gate_outcome cb__gate_outcome_of(const cb__gate_case *c)
{
    if (c->identical)
        return CB__GATE_IDENTICAL;
    if (c->refused.status == CB_NO_MEMORY)
        return CB__GATE_UNDECIDED;
    if (c->refused.status != CB_OK)
        return CB__GATE_REFUSED;
    if (!c->comparison.measured)
        return CB__GATE_UNDECIDED;
    if (invalid(&c->comparison.sides[1]))
        return CB__GATE_WRONG;
    switch (c->comparison.pairs[0].decision) {
    case CB__SLOWER:
        return CB__GATE_REGRESSION;
    case CB__FASTER:
        return CB__GATE_FASTER;
    case CB__TIE:
        return CB__GATE_TIE;
    default:
        return CB__GATE_UNDECIDED;
    }
}

/* The outcomes stand in order of their weight, but for the one that is good news. */
cb__gate_outcome cb__gate_verdict(const cb__gate *g)
{
    cb__gate_outcome worst = CB__GATE_IDENTICAL;
    for (int i = 0; i < g->ncases; i++) {
        cb__gate_outcome outcome = cb__gate_outcome_of(&g->cases[i]);
        worst = outcome > worst ? outcome : worst;
    }
    return worst == CB__GATE_FASTER ? CB__GATE_TIE : worst;
}

const char *cb__gate_outcome_name(cb__gate_outcome outcome)
{
    static const char *const names[] = {
#define CB__GATE_NAME(name, text) text,
        CB__GATE_OUTCOMES(CB__GATE_NAME)
#undef CB__GATE_NAME
    };
    return names[outcome];
}

const char *cb__gate_verdict_name(cb__gate_outcome verdict)
{
    switch (verdict) {
    case CB__GATE_TIE:
    case CB__GATE_FASTER:
        return "pass";
    case CB__GATE_REFUSED:
        return "undecided";
    default:
        return cb__gate_outcome_name(verdict);
    }
}

int cb__gate_exit(const cb__gate *g)
{
    switch (cb__gate_verdict(g)) {
    case CB__GATE_REGRESSION:
    case CB__GATE_WRONG:
        return 1;
    case CB__GATE_UNDECIDED:
    case CB__GATE_REFUSED:
        return 4;
    default:
        return 0;
    }
}
