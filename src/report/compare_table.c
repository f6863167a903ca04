#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/report.h"

#define DETECTABLE_MOST 1 /* a run that sees twice the time and no less has seen nothing */

static const char *colour_of(cb__decision d)
{
    switch (d) {
    case CB__TIE:
        return "32";
    case CB__SLOWER:
    case CB__FASTER:
        return "36";
    case CB__INCOMPARABLE:
        return "31";
    default:
        return "33";
    }
}

static void decision(cb__decision d, bool color, cb__buf *out)
{
    if (color)
        cb__buf_printf(out, "\033[%sm%s\033[0m", colour_of(d), cb__decision_name(d));
    else
        cb__buf_puts(out, cb__decision_name(d));
}

/* Of a tie, the side that 0 lies on where it is outside the interval. */
static const char *sign(const cb__compare_pair *p)
{
    if (p->decision != CB__TIE)
        return "";
    return p->claim.interval.lower > 0   ? " (a little slower)"
           : p->claim.interval.upper < 0 ? " (a little faster)"
                                         : "";
}

/* How the decision stands between the two names. */
static const char *before(cb__decision d)
{
    return d == CB__TIE ? "is a " : "is ";
}

static const char *after(cb__decision d)
{
    switch (d) {
    case CB__SLOWER:
    case CB__FASTER:
        return " than ";
    case CB__TIE:
    case CB__INCOMPARABLE:
        return " with ";
    default:
        return " against ";
    }
}

/* "B is slower than A: 1.034x the time [1.028, 1.041]". B first: the ratio is its time over A's. */
static void sentence(const cb__comparison *c, const cb__compare_pair *p, bool color, cb__buf *out)
{
    const char *a = c->sides[p->a].name, *b = c->sides[p->b].name;
    cb__interval ratio = cb__compare_ratio(c, p);
    if (p->aa)
        cb__buf_printf(out, "%s against itself (an A/A run): ", a);
    else
        cb__buf_printf(out, "%s %s", b, before(p->decision));
    decision(p->decision, color, out);
    if (!p->aa)
        cb__buf_printf(out, "%s%s", after(p->decision), a);
    cb__buf_printf(out, "%s%s", sign(p), p->aa ? ", " : ": ");
    cb__report_times(ratio, out);
    if (p->decision == CB__UNSTABLE)
        cb__buf_puts(out, " (rounds disagree: no interval)");
    else if (p->claim.rounds > 0 && !isfinite(p->claim.interval.lower + p->claim.interval.upper))
        cb__buf_puts(out, " (too few rounds for an interval)");
}

static void put_overlap(const cb__comparison *c, const cb__compare_pair *p, cb__buf *out)
{
    bool a = cb__case_overlaps(&c->sides[p->a].c, &c->device);
    bool b = cb__case_overlaps(&c->sides[p->b].c, &c->device);
    if (a && b)
        cb__buf_puts(out, "   launches overlap");
    else if (a || b)
        cb__buf_printf(out, "   launches of %s overlap, and not the other's",
                       c->sides[a ? p->a : p->b].name);
}

static void facts(const cb__comparison *c, const cb__compare_pair *p, cb__buf *out)
{
    double aa = cb__compare_aa_ratio(c).mid, detectable = cb__compare_detectable(p);
    if (isfinite(aa))
        cb__buf_printf(out, "   A/A %.4f", aa);
    /* A gate that could not have closed is no check passed. */
    if (isfinite(aa) && c->gate.rounds < cb__compare_gate_rounds(c))
        cb__buf_printf(out, " (no gate before %d rounds)", cb__compare_gate_rounds(c));
    if (expm1(detectable) < DETECTABLE_MOST) {
        cb__buf_puts(out, "   detectable ");
        cb__report_percent(expm1(detectable), out);
    }
    cb__buf_printf(out, "   %d rounds, %.2f s   [%s] %s%s%s", c->nrounds, c->wall_s,
                   cb__cache_name(c->cache), cb__submit_name(c->submit), *c->shape ? " " : "",
                   c->shape);
    if (p->bit_identical && !p->aa)
        cb__buf_puts(out, "   bit-identical");
    if (p->dispatch)
        cb__buf_puts(out, "   dispatch, not kernel");
    if (c->submit != CB__SOLO)
        put_overlap(c, p, out);
    cb__buf_puts(out, "\n");
}

/* Nothing is amiss with a side of which nothing was seen. */
static const char *verdict_text(const cb__compare_side *side)
{
    return side->verdict == CB_VERDICT_UNKNOWN ? "not judged" : cb_verdict_name(side->verdict);
}

/* Of a side that is not right, what is wrong; verbose: what each side is in full, and its checks.
 */
static void side_checks(const cb__comparison *c, bool verbose, cb__buf *out)
{
    for (int i = 0; i < c->nsides; i++) {
        const cb__compare_side *side = &c->sides[i];
        bool unclear = side->evidence.unclear.status != CB_OK;
        if (side->verdict != CB_VERDICT_OK && !verbose)
            cb__buf_printf(out, "    %s: %s\n", side->name, verdict_text(side));
        if (verbose) {
            cb__buf_puts(out, "    ");
            cb__case_variant_text(&side->c, out);
            cb__buf_printf(out, ": %s\n", verdict_text(side));
        }
        for (int k = 0; k < side->nchecks; k++) {
            const cb__check *check = &side->checks[k];
            bool failed = check->status == CB__FAIL && check->required;
            failed = failed || (unclear && strcmp(check->name, "worker") == 0);
            if (failed || verbose)
                cb__buf_printf(out, "        %-10s %s: %s\n", check->name,
                               cb__check_status_name(check->status), check->detail);
        }
    }
}

/* Why a pair that was measured to the end is not settled, and what would help. */
bool cb__report_unsettled(const cb__comparison *c, const cb__compare_pair *p, cb__buf *out)
{
    if (!c->measured || !c->complete || c->gate_closed || c->nrounds == 0)
        return false;
    if (p->decision == CB__UNSTABLE)
        cb__buf_printf(out,
                       "unstable after %d rounds: they contradict each other, so the machine was "
                       "not the same throughout; run it again",
                       c->nrounds);
    else if (p->decision != CB__INCONCLUSIVE)
        return false;
    else if (c->nrounds >= CB__ROUNDS_MAX)
        cb__buf_printf(out,
                       "not settled in %d rounds, the most there are (%.1f s): a larger --margin "
                       "or a quieter machine may tell, a larger --budget will not",
                       c->nrounds, c->wall_s);
    else
        cb__buf_printf(out,
                       "not settled in the %d round%s that the budget allowed (%.1f s): a larger "
                       "--budget may tell",
                       c->nrounds, c->nrounds == 1 ? "" : "s", c->wall_s);
    return true;
}

/* No round tells of a pair, or a side was not judged: what ended the comparison says why. */
static bool ended_early(const cb__comparison *c)
{
    for (int i = 0; i < c->npairs && c->complete; i++) {
        const cb__compare_pair *p = &c->pairs[i];
        bool unclear = c->sides[p->a].evidence.unclear.status != CB_OK ||
                       c->sides[p->b].evidence.unclear.status != CB_OK;
        if (p->decision == CB__INCONCLUSIVE && (unclear || c->nrounds == 0))
            return true;
    }
    return false;
}

/* Of many pairs once: each would say the same. */
static void unsettled(const cb__comparison *c, cb__buf *out)
{
    cb__buf why = CB__BUF_INIT;
    if (ended_early(c)) {
        cb__buf_printf(out, "    inconclusive: %s\n", c->why);
        return;
    }
    for (int i = 0; i < c->npairs && why.size == 0; i++)
        if (cb__report_unsettled(c, &c->pairs[i], &why))
            cb__buf_printf(out, "    %s\n", cb__buf_text(&why));
    cb__buf_fini(&why);
}

static void remarks(const cb__comparison *c, bool verbose, cb__buf *out)
{
    unsettled(c, out);
    if (c->gate_closed)
        cb__buf_printf(out,
                       "    two copies of the same code differ here (A/A %.4f): nothing can be "
                       "told apart by less\n",
                       cb__compare_aa_ratio(c).mid);
    if (c->cache == CB__WARM && c->resident == CB_RESIDENT_NO)
        cb__buf_puts(out, "    warm, and larger than the caches: this measures the memory\n");
    if (c->rings > 1)
        cb__buf_printf(out,
                       "    the sides pack their operands differently: %d rings, whose placement "
                       "is part of the ratio\n",
                       c->rings);
    if (!c->complete)
        cb__buf_printf(out, "    incomplete: %s\n", c->why);
    if (!verbose || c->nrounds == 0)
        return;
    const cb__duel_result *r = &c->rounds[0]->answer.result;
    if (isfinite(c->position_effect))
        cb__buf_printf(out, "    position effect %+.2f %% (earlier slots slower: positive)\n",
                       100 * expm1(c->position_effect));
    cb__buf_printf(
        out, "    %d blocks a round, slots of %d x %d x %d launches, %.0f ns between slots\n",
        r->blocks, r->readings, r->repeats, c->submit == CB__BATCHED ? r->batch : 1, c->gap_ns);
}

static void best(const cb__comparison *c, cb__buf *out)
{
    if (c->best < 0)
        return;
    int tied = 0;
    cb__buf_printf(out, "best: %s", c->sides[c->best].name);
    for (int i = 0; i < c->nsides; i++)
        if (c->tied[i])
            cb__buf_printf(out, "%s%s",
                           tied++ ? ", " : "; not shown to be slower: ", c->sides[i].name);
    cb__buf_puts(out, tied ? "\n" : "; all others are shown to be slower\n");
}

void cb__report_compare(const cb__comparison *comparisons, int n, bool color, bool verbose,
                        cb__buf *out)
{
    for (int i = 0; i < n; i++) {
        const cb__comparison *c = &comparisons[i];
        if (!c->measured)
            continue;
        for (int p = 0; p < c->npairs; p++) {
            sentence(c, &c->pairs[p], color, out);
            facts(c, &c->pairs[p], out);
        }
        side_checks(c, verbose, out);
        remarks(c, verbose, out);
        best(c, out);
    }
}
