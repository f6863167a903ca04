/* What is asked of every case, before anything is measured or called identical. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gate/cases.h"
#include "kernel/case.h"

/* What a case comes to on one side: two spellings that come to the same are one case. */
typedef struct meaning {
    char text[640];
} meaning;

static bool streams(const cb_kernel *k)
{
    for (int i = 0; i < k->noperands; i++)
        if (k->operands[i].role == CB_WEIGHT || k->operands[i].role == CB_STREAM)
            return true;
    return false;
}

/* Where the state was left open, what streams nothing is gated warm: it has no other. */
static cb_status choose_cache(const cb__gate_request *r, const cb__case *base, const cb__case *head,
                              cb__gate_case *c, cb_error *err)
{
    if (c->cache != CB__COLD || streams(base->kernel) || streams(head->kernel))
        return CB_OK;
    if (r->cache == CB__COLD)
        return cb_error_set(err, CB_USAGE,
                            "%s streams no operand, so it has no cold state; use --cache warm",
                            base->kernel->name);
    c->cache = CB__WARM;
    return CB_OK;
}

static void mean(const cb__case *c, cb__cache_state cache, meaning *out)
{
    cb__buf text = CB__BUF_INIT;
    cb__case_variant_text(c, &text);
    cb__buf_puts(&text, " ");
    cb__case_shape_text(c, &text);
    snprintf(out->text, sizeof out->text, "%s %s", cb__cache_name(cache), cb__buf_text(&text));
    cb__buf_fini(&text);
}

/* Refused by one side alone: not comparable. By both: it is what was asked that is wrong. */
static cb_status check_one(const cb__gate_request *r, const cb__gate *g, cb__gate_case *c,
                           meaning means[2], cb_error *err)
{
    const cb__build_module *modules[2] = {&g->base.modules[c->base], &g->head.modules[c->head]};
    static const char *const sides[2] = {"base", "head"};
    cb__case cases[2];
    cb_error refused[2] = {CB_ERROR_INIT, CB_ERROR_INIT};
    for (int i = 0; i < 2; i++)
        cb__case_parse(&modules[i]->suite, c->variant, c->shape, r->isa, &cases[i], &refused[i]);
    if (refused[0].status != CB_OK && refused[1].status != CB_OK) {
        *err = refused[0];
        return err->status;
    }
    for (int i = 0; i < 2; i++)
        if (refused[i].status != CB_OK) {
            c->refused = refused[i];
            cb_error_prefix(&c->refused, "the %s refuses it", sides[i]);
            return CB_OK;
        }
    cb_status status = choose_cache(r, &cases[0], &cases[1], c, err);
    for (int i = 0; i < 2 && status == CB_OK; i++)
        mean(&cases[i], c->cache, &means[i]);
    return status;
}

/* An earlier case that is the same on both sides. */
static bool is_repeated(meaning (*means)[2], int n)
{
    for (int i = 0; i < n; i++)
        if (*means[n][0].text && strcmp(means[i][0].text, means[n][0].text) == 0 &&
            strcmp(means[i][1].text, means[n][1].text) == 0)
            return true;
    return false;
}

cb_status cb__gate_check(const cb__gate_request *r, cb__gate *g, cb_error *err)
{
    int n = 0;
    meaning(*means)[2] = calloc((size_t)g->ncases, sizeof *means);
    cb_status status =
        means ? CB_OK : cb_error_set(err, CB_NO_MEMORY, "no memory for the cases of a gate");
    for (int i = 0; i < g->ncases && status == CB_OK; i++) {
        g->cases[n] = g->cases[i];
        memset(means[n], 0, sizeof means[n]);
        status = check_one(r, g, &g->cases[n], means[n], err);
        n += !is_repeated(means, n);
    }
    if (status == CB_OK)
        g->ncases = n;
    free(means);
    return status;
}
