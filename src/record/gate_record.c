#include <math.h>
#include <stdio.h>

#include "record/envelope.h"

static void build(cb__json_writer *w, const char *key, const cb__build *b, const char *const *alone,
                  int nalone)
{
    cb__json_key(w, key);
    cb__json_object(w);
    cb__json_put_text(w, "from", b->asked);
    cb__json_put_text(w, "tool_source_id", *b->tool_source_id ? b->tool_source_id : NULL);
    cb__json_key(w, "kernels_only_here");
    cb__json_array(w);
    for (int i = 0; i < nalone; i++)
        cb__json_string(w, alone[i]);
    cb__json_end(w);
    cb__json_end(w);
}

static void module_of(cb__json_writer *w, const char *key, const cb__build_module *m)
{
    cb__json_key(w, key);
    cb__json_object(w);
    cb__json_put_text(w, "module", m->name);
    cb__json_put_text(w, "build_id", *m->build_id ? m->build_id : NULL);
    cb__json_put_text(w, "source_id", *m->source_id ? m->source_id : NULL);
    cb__json_end(w);
}

static bool measured(const cb__gate_case *c)
{
    return c->comparison.measured;
}

static void cases(cb__json_writer *w, const cb__gate *g)
{
    int n = 0;
    cb__json_key(w, "cases");
    cb__json_array(w);
    for (int i = 0; i < g->ncases; i++) {
        const cb__gate_case *c = &g->cases[i];
        cb__json_object(w);
        cb__json_put_text(w, "variant", c->variant);
        cb__json_put_text(w, "shape", c->shape);
        cb__json_put_text(w, "cache", cb__cache_name(c->cache));
        module_of(w, "base", &g->base.modules[c->base]);
        module_of(w, "head", &g->head.modules[c->head]);
        cb__json_put_text(w, "outcome", cb__gate_outcome_name(cb__gate_outcome_of(c)));
        cb__json_put_text(w, "why", c->refused.status == CB_OK ? NULL : c->refused.message);
        cb__json_key(w, "result"); /* which of `results` */
        if (measured(c))
            cb__json_int(w, n++);
        else
            cb__json_null(w);
        cb__json_end(w);
    }
    cb__json_end(w);
}

void cb__record_gate(const cb__record *record, const cb__gate *g, cb__buf *out)
{
    cb__json_writer w;
    cb__json_begin(&w, out, true);
    cb__envelope_begin(&w, record);
    cb__put_checks(&w, NULL, 0);
    build(&w, "base", &g->base, g->base_alone, g->nbase_alone);
    build(&w, "head", &g->head, g->head_alone, g->nhead_alone);
    cases(&w, g);
    cb__json_key(&w, "results");
    cb__json_array(&w);
    for (int i = 0; i < g->ncases; i++)
        if (measured(&g->cases[i]))
            cb__put_pair(&w, &g->cases[i].comparison, &g->cases[i].comparison.pairs[0]);
    cb__json_end(&w);
    cb__json_put_text(&w, "verdict", cb__gate_verdict_name(cb__gate_verdict(g)));
    cb__json_end(&w);
    cb__buf_puts(out, "\n");
}

void cb__record_gate_csv(const cb__gate *g, cb__buf *out)
{
    cb__buf_puts(out, "variant,shape,cache,rounds,ratio_lo,ratio_mid,ratio_hi,detectable,"
                      "base_time_ns,head_time_ns,outcome\n");
    for (int i = 0; i < g->ncases; i++) {
        const cb__gate_case *c = &g->cases[i];
        const cb__comparison *x = &c->comparison;
        cb__interval ratio = {(double)NAN, (double)NAN, (double)NAN, (double)NAN};
        double detectable = (double)NAN, base = (double)NAN, head = (double)NAN;
        if (measured(c)) {
            ratio = cb__compare_ratio(x, &x->pairs[0]);
            detectable = expm1(cb__compare_detectable(&x->pairs[0]));
            base = x->sides[0].time_ns.mid;
            head = x->sides[1].time_ns.mid;
        }
        cb__buf_printf(out, "\"%s\",\"%s\",%s,%d", c->variant, c->shape ? c->shape : "",
                       cb__cache_name(c->cache), x->nrounds);
        const double numbers[] = {ratio.lo, ratio.mid, ratio.hi, detectable, base, head};
        for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
            cb__csv_number(out, numbers[k]);
        cb__buf_printf(out, ",%s\n", cb__gate_outcome_name(cb__gate_outcome_of(c)));
    }
}

/* ---- Google Benchmark's form ---- */

/* Launches of one side that were timed. */
static int64_t launches(const cb__comparison *c)
{
    int64_t n = 0;
    for (int i = 0; i < c->nrounds; i++) {
        const cb__duel_result *r = &c->rounds[i]->answer.result;
        n += (int64_t)r->blocks * r->readings * r->repeats *
             (c->submit == CB__BATCHED ? r->batch : 1);
    }
    return n;
}

static void entry_name(const cb__gate_case *c, const char *end, char name[480])
{
    snprintf(name, 480, "%s%s%s/%s%s", c->variant, c->shape ? "/" : "", c->shape ? c->shape : "",
             cb__cache_name(c->cache), end);
}

static bool has_time(const cb__gate_case *c, int side)
{
    return measured(c) && isfinite(c->comparison.sides[side].time_ns.mid);
}

/* Cases without an entry, so that their absence is no riddle: name and outcome. */
static void not_measured(cb__json_writer *w, const cb__gate *g)
{
    char name[480], text[520];
    cb__json_key(w, "not_measured");
    cb__json_array(w);
    for (int i = 0; i < g->ncases; i++) {
        const cb__gate_case *c = &g->cases[i];
        if (has_time(c, 0) || has_time(c, 1))
            continue;
        entry_name(c, "", name);
        snprintf(text, sizeof text, "%s: %s", name, cb__gate_outcome_name(cb__gate_outcome_of(c)));
        cb__json_string(w, text);
    }
    cb__json_end(w);
}

static void entry(cb__json_writer *w, const cb__gate_case *c, int side)
{
    const cb__comparison *x = &c->comparison;
    char name[480];
    entry_name(c, side ? "/head" : "/base", name);
    cb__json_object(w);
    cb__json_put_text(w, "name", name);
    cb__json_put_text(w, "run_name", name);
    cb__json_put_text(w, "run_type", "iteration");
    cb__json_put_int(w, "iterations", launches(x));
    cb__json_put_real(w, "real_time", x->sides[side].time_ns.mid);
    cb__json_put_real(w, "cpu_time", x->sides[side].time_ns.mid);
    cb__json_put_text(w, "time_unit", "ns");
    cb__json_end(w);
}

void cb__record_gate_benchmark(const cb__record *record, const cb__gate *g, cb__buf *out)
{
    cb__json_writer w;
    cb__json_begin(&w, out, true);
    cb__json_object(&w);
    cb__json_key(&w, "context");
    cb__json_object(&w);
    cb__json_put_text(&w, "date", record->started);
    cb__json_put_text(&w, "executable", "coldbench gate");
    cb__json_put_int(&w, "num_cpus", record->device->threads);
    not_measured(&w, g);
    cb__json_end(&w);
    cb__json_key(&w, "benchmarks");
    cb__json_array(&w);
    for (int i = 0; i < g->ncases; i++)
        for (int side = 0; side < 2; side++)
            if (has_time(&g->cases[i], side))
                entry(&w, &g->cases[i], side);
    cb__json_end(&w);
    cb__json_end(&w);
    cb__buf_puts(out, "\n");
}
