#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/report.h"
#include "stats/binomial.h"

static void put_timer(const cb__selftest *s, cb__buf *out)
{
    cb__buf_printf(out,
                   "timer       %s: a read costs %.0f ns, the smallest step is %.0f ns, %d steps "
                   "back\n\n",
                   s->clock_good ? "pass" : "FAIL", s->clock.cost_ns, s->clock.resolution_ns,
                   s->clock.backwards);
}

static void put_faults(const cb__selftest *s, bool verbose, cb__buf *out)
{
    cb__buf_printf(out, "%-20s %-12s %-10s %s\n", "seeded fault", "check for it", "caught",
                   "failed in the last run");
    for (int i = 0; i < s->nfaults; i++) {
        const cb__fault_result *f = &s->faults[i];
        char caught[32];
        snprintf(caught, sizeof caught, f->runs ? "%d of %d" : "-", f->right, f->runs);
        cb__buf_printf(out, "%-20s %-12s %-10s %s%s\n", f->name, f->expected ? f->expected : "none",
                       caught, f->got, f->right < f->runs ? "   <- not as expected" : "");
        if (*f->detail && (verbose || f->runs == 0 || f->right < f->runs))
            cb__buf_printf(out, "    %s\n", f->detail);
    }
    cb__buf_puts(out, "\n");
}

/* ---- comparisons ---- */

static const char *const conditions[CB__CONDITIONS] = {"idle", "under load"};

static cb__condition last_of(const cb__selftest *s)
{
    return s->load ? CB__LOADED : CB__IDLE;
}

static void put_name(const cb__trial *trial, cb__buf *out)
{
    char name[64];
    snprintf(name, sizeof name, "%.*s%s%s", (int)strcspn(trial->a, "@"), trial->a,
             trial->shape ? " " : "", trial->shape ? trial->shape : "");
    if (trial->effect > 0) {
        size_t used = strlen(name);
        snprintf(name + used, sizeof name - used, " +%g %%", trial->effect * 100);
    }
    cb__buf_printf(out, "%-26s", name);
}

/* Under each condition the same columns, 37 wide. */
static void put_heads(const cb__selftest *s, const char *what, const char *columns, cb__buf *out)
{
    if (s->load)
        cb__buf_printf(out, "%-26s%-37s%s\n%-26s%-37s%s\n", what, conditions[CB__IDLE],
                       conditions[CB__LOADED], "", columns, columns);
    else
        cb__buf_printf(out, "%-26s%s\n%-26s%s\n", what, conditions[CB__IDLE], "", columns);
}

static void put_seconds(const cb__tally *t, bool last, cb__buf *out)
{
    if (t->runs > 0)
        cb__buf_printf(out, "%9.2f %5.2f%s", cb__tally_seconds(t, 0.5), cb__tally_seconds(t, 0.9),
                       last ? "\n" : "    ");
    else
        cb__buf_printf(out, "%9s %5s%s", "-", "-", last ? "\n" : "    ");
}

/* What these runs can prove: "0 of 20: rate below 14 %". */
static void put_rate(const char *what, int k, int n, cb__buf *out)
{
    cb__buf_printf(out, "%s %d of %d: rate below ", what, k, n);
    cb__report_percent(cb__binomial_upper(k, n, CB__TRIALS_CONFIDENCE), out);
}

static void put_aa(const cb__selftest *s, cb__buf *out)
{
    cb__condition last = last_of(s);
    put_heads(s, "identical code", "alarms  tie  open   median s  90 %", out);
    for (int i = 0; i < s->ntrials; i++) {
        if (s->trials[i].effect > 0)
            continue;
        put_name(&s->trials[i], out);
        for (cb__condition c = CB__IDLE; c <= last; c++) {
            const cb__tally *t = &s->trials[i].tally[c];
            cb__buf_printf(out, "%6d %4d %5d  ", t->slower + t->faster, t->ties, t->undecided);
            put_seconds(t, c == last, out);
        }
    }
    for (cb__condition c = CB__IDLE; c <= last; c++) {
        cb__aa_sum sum = cb__trials_aa(s->trials, s->ntrials, c);
        cb__buf_printf(out, "    %s: ", conditions[c]);
        put_rate("false alarms", sum.false_alarms, sum.runs, out);
        cb__buf_puts(out, "\n");
    }
    cb__buf_puts(out, "\n");
}

static void put_planted(const cb__selftest *s, cb__buf *out)
{
    cb__condition last = last_of(s);
    put_heads(s, "planted difference", "found      seen     median s  90 %", out);
    for (int i = 0; i < s->ntrials; i++) {
        const cb__trial *trial = &s->trials[i];
        if (!(trial->effect > 0))
            continue;
        put_name(trial, out);
        for (cb__condition c = CB__IDLE; c <= last; c++) {
            const cb__tally *t = &trial->tally[c];
            char found[24], seen[24] = "-";
            double ratio = cb__tally_ratio(t);
            snprintf(found, sizeof found, trial->judged ? "%d of %d" : "not judged", t->slower,
                     t->runs);
            if (isfinite(ratio))
                snprintf(seen, sizeof seen, "%+.2f %%", 100 * (ratio - 1));
            cb__buf_printf(out, "%-10s %7s", found, seen);
            put_seconds(t, c == last, out);
        }
    }
}

static void put_misses(const cb__selftest *s, cb__buf *out)
{
    cb__condition last = last_of(s);
    for (cb__condition c = CB__IDLE; c <= last; c++) {
        int runs = 0, missed = 0;
        for (int i = 0; i < s->ntrials; i++) {
            const cb__tally *t = &s->trials[i].tally[c];
            if (!(s->trials[i].effect > 0) || !s->trials[i].judged)
                continue;
            runs += t->runs;
            missed += t->runs - t->slower;
        }
        cb__buf_printf(out, "    %s: ", conditions[c]);
        put_rate("missed", missed, runs, out);
        cb__buf_puts(out, "\n");
    }
    cb__buf_puts(out, "\n");
}

static bool any(const cb__selftest *s, bool planted)
{
    for (int i = 0; i < s->ntrials; i++)
        if ((s->trials[i].effect > 0) == planted)
            return true;
    return false;
}

/* Of all kinds and conditions the least. */
static int comparisons(const cb__selftest *s)
{
    int least = s->usual_runs;
    for (int i = 0; i < s->ntrials; i++)
        for (cb__condition c = CB__IDLE; c <= last_of(s); c++)
            least = s->trials[i].tally[c].runs < least ? s->trials[i].tally[c].runs : least;
    return least;
}

/* What a whole selftest would have tried and this one did not. */
static void put_left_out(const cb__selftest *s, cb__buf *out)
{
    int unseeded = 0, faults = 0, few = comparisons(s);
    for (int i = 0; i < s->nfaults; i++) {
        faults += s->faults[i].expected != NULL;
        unseeded += s->faults[i].runs == 0;
    }
    bool none = !s->sweeps && !s->launches;
    const struct {
        bool left_out;
        const char *text;
    } parts[] = {{!s->timer, "no timer"},
                 {none, "no seeded faults"},
                 {!s->sweeps && !none, "no faults in sweeps"},
                 {!s->launches && !none, "no faults in launches"},
                 {!s->aa, "no identical code"},
                 {!s->planted, "no planted differences"}};
    const char *between = ", as far as it was tried: ";
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i].left_out) {
            cb__buf_printf(out, "%s%s", between, parts[i].text);
            between = ", ";
        }
    if (unseeded) {
        cb__buf_printf(out, "%s%d of %d faults could not be seeded", between, unseeded, faults);
        between = ", ";
    }
    if (few < s->usual_runs)
        cb__buf_printf(out, "%s%d comparison%s of a kind instead of %d", between, few,
                       few == 1 ? "" : "s", s->usual_runs);
}

void cb__report_selftest(const cb__selftest *s, bool verbose, cb__buf *out)
{
    char why[160] = "";
    if (s->timer)
        put_timer(s, out);
    if (s->nfaults > 0)
        put_faults(s, verbose, out);
    if (any(s, false))
        put_aa(s, out);
    if (any(s, true)) {
        put_planted(s, out);
        put_misses(s, out);
    }
    if (cb__trials_contradict(s->trials, s->ntrials, why, sizeof why))
        cb__buf_printf(out, "%s: more than chance\n", why);
    cb__buf_printf(out, "%s",
                   !s->complete             ? "not completed: nothing is said about the judge"
                   : cb__selftest_passed(s) ? "the judge works here"
                                            : "the judge does NOT work here");
    if (s->complete)
        put_left_out(s, out);
    cb__buf_printf(out, "; %.0f s\n", s->wall_s);
}
