#include "record/envelope.h"
#include "stats/binomial.h"

static void put_fault(cb__json_writer *w, const cb__fault_result *f)
{
    cb__json_object(w);
    cb__json_put_text(w, "name", f->name);
    cb__json_put_text(w, "expected", f->expected);
    cb__json_put_text(w, "got", f->got);
    cb__json_put_int(w, "runs", f->runs);
    cb__json_put_int(w, "right", f->right);
    cb__json_put_text(w, "detail", *f->detail ? f->detail : NULL);
    cb__json_put_real(w, "wall_s", f->wall_s);
    cb__json_end(w);
}

static void put_kind(cb__json_writer *w, const cb__trial *trial, const cb__tally *tally)
{
    cb__json_put_text(w, "a", trial->a);
    cb__json_put_text(w, "b", trial->b);
    cb__json_put_text(w, "shape", trial->shape);
    cb__json_put_real(w, "margin", trial->margin);
    cb__json_put_int(w, "runs", tally->runs);
    cb__json_put_int(w, "slower", tally->slower);
    cb__json_put_int(w, "faster", tally->faster);
    cb__json_put_int(w, "ties", tally->ties);
    cb__json_put_int(w, "undecided", tally->undecided);
    cb__json_put_int(w, "broken", tally->broken);
    cb__json_put_real(w, "median_s", cb__tally_seconds(tally, 0.5));
    cb__json_put_real(w, "p90_s", cb__tally_seconds(tally, 0.9));
    cb__json_put_real(w, "ratio", cb__tally_ratio(tally));
    cb__json_put_real(w, "measure_s", tally->measure_s);
}

static void put_aa(cb__json_writer *w, const cb__selftest *s, cb__condition condition)
{
    cb__aa_sum sum = cb__trials_aa(s->trials, s->ntrials, condition);
    cb__json_key(w, "aa");
    if (sum.runs == 0) {
        cb__json_null(w);
        return;
    }
    cb__json_object(w);
    cb__json_put_int(w, "runs", sum.runs);
    cb__json_put_int(w, "false_alarms", sum.false_alarms);
    cb__json_put_int(w, "ties", sum.ties);
    cb__json_put_int(w, "undecided", sum.undecided);
    cb__json_put_real(w, "rate_below",
                      cb__binomial_upper(sum.false_alarms, sum.runs, CB__TRIALS_CONFIDENCE));
    cb__json_put_real(w, "rate_confidence", CB__TRIALS_CONFIDENCE);
    cb__json_put_real(w, "measure_s", sum.measure_s);
    cb__json_key(w, "kinds");
    cb__json_array(w);
    for (int i = 0; i < s->ntrials; i++) {
        if (s->trials[i].effect > 0)
            continue;
        cb__json_object(w);
        put_kind(w, &s->trials[i], &s->trials[i].tally[condition]);
        cb__json_end(w);
    }
    cb__json_end(w);
    cb__json_end(w);
}

static void put_planted(cb__json_writer *w, const cb__selftest *s, cb__condition condition)
{
    cb__json_key(w, "planted");
    cb__json_array(w);
    for (int i = 0; i < s->ntrials; i++) {
        const cb__trial *trial = &s->trials[i];
        const cb__tally *tally = &trial->tally[condition];
        if (!(trial->effect > 0) || tally->runs == 0)
            continue;
        cb__json_object(w);
        cb__json_put_real(w, "effect", trial->effect);
        cb__json_put_int(w, "found", tally->slower);
        cb__json_put_bool(w, "judged", trial->judged);
        put_kind(w, trial, tally);
        cb__json_end(w);
    }
    cb__json_end(w);
}

static void put_trials(cb__json_writer *w, const cb__selftest *s)
{
    put_aa(w, s, CB__IDLE);
    put_planted(w, s, CB__IDLE);
    cb__json_key(w, "loaded");
    if (!s->load) {
        cb__json_null(w);
        return;
    }
    cb__json_object(w);
    put_aa(w, s, CB__LOADED);
    put_planted(w, s, CB__LOADED);
    cb__json_end(w);
}

static void put_timer(cb__json_writer *w, const cb__selftest *s)
{
    cb__json_key(w, "timer");
    if (!s->timer) {
        cb__json_null(w);
        return;
    }
    cb__json_object(w);
    cb__json_put_real(w, "resolution_ns", s->clock.resolution_ns);
    cb__json_put_real(w, "cost_ns", s->clock.cost_ns);
    cb__json_put_int(w, "backwards", s->clock.backwards);
    cb__json_put_bool(w, "good", s->clock_good);
    cb__json_end(w);
}

void cb__record_selftest(const cb__record *record, const cb__selftest *selftest, cb__buf *out)
{
    cb__json_writer w;
    cb__json_begin(&w, out, true);
    cb__envelope_begin(&w, record);
    cb__put_checks(&w, NULL, 0);
    put_timer(&w, selftest);
    put_trials(&w, selftest);
    cb__json_key(&w, "faults");
    cb__json_array(&w);
    for (int i = 0; i < selftest->nfaults; i++)
        put_fault(&w, &selftest->faults[i]);
    cb__json_end(&w);
    cb__json_put_bool(&w, "passed", cb__selftest_passed(selftest));
    cb__json_key(&w, "results");
    cb__json_array(&w);
    cb__json_end(&w);
    cb__json_end(&w);
    cb__buf_puts(out, "\n");
}

void cb__record_selftest_csv(const cb__selftest *selftest, cb__buf *out)
{
    cb__buf_puts(out, "fault,expected,got,runs,right\n");
    for (int i = 0; i < selftest->nfaults; i++) {
        const cb__fault_result *f = &selftest->faults[i];
        cb__buf_printf(out, "%s,%s,\"%s\",%d,%d\n", f->name, f->expected ? f->expected : "none",
                       f->got, f->runs, f->right);
    }
    for (int i = 0; i < selftest->ntrials; i++)
        for (int c = 0; c < CB__CONDITIONS; c++) {
            const cb__trial *trial = &selftest->trials[i];
            const cb__tally *t = &trial->tally[c];
            if (t->runs == 0)
                continue;
            cb__buf_printf(out, "\"%s against %s%s%s, %s\",%s,", trial->a, trial->b,
                           trial->shape ? " " : "", trial->shape ? trial->shape : "",
                           c == CB__LOADED ? "loaded" : "idle",
                           trial->effect > 0 ? "slower" : "tie");
            cb__buf_printf(out, "\"slower %d, faster %d, tie %d, undecided %d\",%d,%d\n", t->slower,
                           t->faster, t->ties, t->undecided, t->runs,
                           trial->effect > 0 ? t->slower : t->ties);
        }
}
