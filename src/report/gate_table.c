#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/report.h"

static const char *colour_of(cb__gate_outcome outcome)
{
    switch (outcome) {
    case CB__GATE_REGRESSION:
    case CB__GATE_WRONG:
        return "31";
    case CB__GATE_UNDECIDED:
    case CB__GATE_REFUSED:
        return "33";
    default:
        return "32";
    }
}

static void ratio(const cb__gate_case *c, cb__buf *out)
{
    cb__interval x = {(double)NAN, (double)NAN, (double)NAN, (double)NAN};
    if (c->comparison.measured)
        x = cb__compare_ratio(&c->comparison, &c->comparison.pairs[0]);
    cb__report_ratio(x, out);
}

/* What is wrong with one side, or kept it from being judged, if anything: the first check of that
 * status says it. */
static void side_reason(const cb__compare_side *side, const char *name, cb__check_status status,
                        cb__buf *out)
{
    for (int k = 0; k < side->nchecks && side->verdict != CB_VERDICT_OK; k++) {
        const cb__check *check = &side->checks[k];
        if (check->status != status || !check->required)
            continue;
        cb__buf_printf(out, "%s%s is %s: %s: %s", out->size ? "\n" : "", name,
                       cb_verdict_name(side->verdict), check->name, check->detail);
        return;
    }
}

/* Measured to the end, and nothing is wrong: what ended it before there was an answer. A process
 * that went wrong in the midst of both sides is the fault of none, and no larger budget helps. */
static void no_answer(const cb__comparison *x, cb__buf *out)
{
    bool unclear = x->sides[0].evidence.unclear.status != CB_OK ||
                   x->sides[1].evidence.unclear.status != CB_OK;
    if (!unclear && cb__report_unsettled(x, &x->pairs[0], out))
        return;
    cb__buf_printf(out, "%s%s", *x->why ? x->why : "the comparison came to no decision",
                   unclear ? "" : "; a larger --budget may tell");
    if (!unclear)
        return;
    side_reason(&x->sides[1], "head", CB__SKIP, out);
    side_reason(&x->sides[0], "base", CB__SKIP, out);
}

/* Of a case that has no plain answer, what stood in its way, a line each: the head first, which
 * the gate is about. */
static void reason(const cb__gate_case *c, cb__buf *out)
{
    const cb__comparison *x = &c->comparison;
    if (c->refused.status != CB_OK) {
        cb__buf_puts(out, c->refused.message);
        return;
    }
    if (x->measured) {
        side_reason(&x->sides[1], "head", CB__FAIL, out);
        side_reason(&x->sides[0], "base", CB__FAIL, out);
    }
    if (out->size || cb__gate_outcome_of(c) != CB__GATE_UNDECIDED)
        return;
    if (!x->measured)
        cb__buf_puts(out, "not measured");
    else if (!x->complete)
        cb__buf_printf(out, "interrupted after %d round%s", x->nrounds, x->nrounds == 1 ? "" : "s");
    else if (x->gate_closed)
        cb__buf_printf(out, "two copies of the base differ here (A/A %.4f)",
                       cb__compare_aa_ratio(x).mid);
    else
        no_answer(x, out);
}

static void facts(const cb__gate_case *c, cb__buf *out)
{
    const cb__comparison *x = &c->comparison;
    if (!x->measured)
        return;
    double detectable = cb__compare_detectable(&x->pairs[0]);
    if (isfinite(detectable)) {
        cb__buf_puts(out, "   detectable ");
        cb__report_percent(expm1(detectable), out);
    }
    cb__buf_printf(out, "   %d rounds, %.2f s", x->nrounds, x->wall_s);
    if (x->pairs[0].bit_identical)
        cb__buf_puts(out, "   bit-identical");
    if (x->pairs[0].dispatch)
        cb__buf_puts(out, "   dispatch, not kernel");
}

static void row(const cb__gate_case *c, bool color, cb__buf *out)
{
    cb__gate_outcome outcome = cb__gate_outcome_of(c);
    cb__buf why = CB__BUF_INIT;
    if (color)
        cb__buf_printf(out, "\033[%sm%-14s\033[0m ", colour_of(outcome),
                       cb__gate_outcome_name(outcome));
    else
        cb__buf_printf(out, "%-14s ", cb__gate_outcome_name(outcome));
    cb__buf_printf(out, "%s%s%s [%s]", c->variant, c->shape ? " " : "", c->shape ? c->shape : "",
                   cb__cache_name(c->cache));
    if (c->comparison.measured) {
        cb__buf_puts(out, "   ");
        ratio(c, out);
        facts(c, out);
    }
    cb__buf_puts(out, "\n");
    reason(c, &why);
    for (const char *line = cb__buf_text(&why); *line;) {
        int n = (int)strcspn(line, "\n");
        cb__buf_printf(out, "    %.*s\n", n, line);
        line += n + (line[n] == '\n');
    }
    cb__buf_fini(&why);
}

static void alone(const char *side, const char *const *names, int n, const char *end, cb__buf *out)
{
    if (n == 0)
        return;
    cb__buf_printf(out, "only in the %s, not compared: ", side);
    for (int i = 0; i < n; i++)
        cb__buf_printf(out, "%s%s", i ? ", " : "", names[i]);
    cb__buf_puts(out, end);
}

static bool interrupted(const cb__gate *g)
{
    for (int i = 0; i < g->ncases; i++)
        if (g->cases[i].comparison.measured && !g->cases[i].comparison.complete)
            return true;
    return false;
}

/* Whether a ratio was claimed at all, which an alarm about it could be false of. */
static bool claims(const cb__gate_case *c)
{
    return c->comparison.measured && c->comparison.nrounds > 0 &&
           cb__gate_outcome_of(c) != CB__GATE_WRONG;
}

static void summary(const cb__gate *g, cb__buf *out)
{
    cb__gate_outcome verdict = cb__gate_verdict(g);
    int seen[CB__GATE_WRONG + 1] = {0}, listed = 0;
    for (int i = 0; i < g->ncases; i++)
        seen[cb__gate_outcome_of(&g->cases[i])]++;
    if (verdict == CB__GATE_IDENTICAL) {
        cb__buf_printf(out, "nothing to compare: %d case%s of identical builds", g->ncases,
                       g->ncases > 1 ? "s" : "");
        return;
    }
    cb__buf_printf(out, "%s: ", cb__gate_verdict_name(verdict));
    for (int i = CB__GATE_WRONG; i >= 0; i--)
        if (seen[i])
            cb__buf_printf(out, "%s%d %s", listed++ ? ", " : "", seen[i],
                           cb__gate_outcome_name((cb__gate_outcome)i));
    for (int i = 0; i < g->ncases; i++)
        if (claims(&g->cases[i])) {
            const cb__comparison *x = &g->cases[i].comparison;
            cb__buf_printf(out, "; chance of any false alarm at most %.3g %% over %d comparison%s",
                           100 * x->alpha, x->claims, x->claims > 1 ? "s" : "");
            break;
        }
    cb__buf_printf(out, "; %.1f s%s", g->wall_s, interrupted(g) ? "; incomplete: interrupted" : "");
}

void cb__report_gate(const cb__gate *g, bool color, bool verbose, cb__buf *out)
{
    for (int i = 0; i < g->ncases; i++) {
        row(&g->cases[i], color, out);
        if (verbose && g->cases[i].comparison.measured)
            cb__report_compare(&g->cases[i].comparison, 1, color, true, out);
    }
    alone("base", g->base_alone, g->nbase_alone, "\n", out);
    alone("head", g->head_alone, g->nhead_alone, "\n", out);
    summary(g, out);
    cb__buf_puts(out, "\n");
}

/* Any text as Markdown that shows it, in a cell of a table. */
static void markdown(const char *text, cb__buf *out)
{
    for (; *text; text++)
        if (*text == '\n')
            cb__buf_puts(out, "<br>");
        else
            cb__buf_printf(out, "%s%c", strchr("\\|`*<[~", *text) ? "\\" : "", *text);
}

/* As code. A table takes the backslash before a bar away there too, and before nothing else. */
static void code(const char *text, cb__buf *out)
{
    bool doubled = strchr(text, '`') != NULL;
    cb__buf_puts(out, doubled ? "`` " : "`");
    for (; *text; text++)
        cb__buf_printf(out, "%s%c", *text == '|' ? "\\" : "", *text);
    cb__buf_puts(out, doubled ? " ``" : "`");
}

void cb__report_gate_markdown(const cb__gate *g, cb__buf *out)
{
    cb__buf_puts(out, "### coldbench gate: ");
    summary(g, out);
    cb__buf_puts(out, "\n\n| result | kernel | shape | cache | head / base | |\n"
                      "|---|---|---|---|---|---|\n");
    for (int i = 0; i < g->ncases; i++) {
        const cb__gate_case *c = &g->cases[i];
        cb__gate_outcome outcome = cb__gate_outcome_of(c);
        bool loud = outcome >= CB__GATE_UNDECIDED;
        cb__buf why = CB__BUF_INIT;
        cb__buf_printf(out, "| %s%s%s | ", loud ? "**" : "", cb__gate_outcome_name(outcome),
                       loud ? "**" : "");
        code(c->variant, out);
        cb__buf_puts(out, " | ");
        markdown(c->shape ? c->shape : "", out);
        cb__buf_printf(out, " | %s | ", cb__cache_name(c->cache));
        ratio(c, out);
        cb__buf_puts(out, " | ");
        reason(c, &why); /* of the module's own words perhaps */
        markdown(cb__buf_text(&why), out);
        cb__buf_fini(&why);
        cb__buf_puts(out, " |\n");
    }
    cb__buf_puts(out, "\n");
    alone("base", g->base_alone, g->nbase_alone, "\n\n", out);
    alone("head", g->head_alone, g->nhead_alone, "\n\n", out);
    cb__buf_puts(out, "The ratio is the time of the head over the time of the base, measured side "
                      "by side in this run, with its confidence interval.\n");
}
