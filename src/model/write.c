#include <math.h>

#include "model/model.h"

static void put_verdict(cb__json_writer *w, cb_verdict verdict)
{
    cb__json_put_text(w, "verdict", cb_verdict_name(verdict));
}

static void put_interval(cb__json_writer *w, const char *key, cb__interval x)
{
    cb__json_key(w, key);
    cb__json_object(w);
    cb__json_put_real(w, "lo", x.lo);
    cb__json_put_real(w, "mid", x.mid);
    cb__json_put_real(w, "hi", x.hi);
    cb__json_put_real(w, "coverage", x.coverage);
    cb__json_end(w);
}

/* A row without a figure was not measured, and is left out. */
static bool is_figure(cb__interval x)
{
    return isfinite(x.mid);
}

static void begin_rows(cb__json_writer *w, const char *key)
{
    cb__json_key(w, key);
    cb__json_array(w);
}

/* A row stands on one line of its own; what it returns goes to end_row. */
static bool begin_row(cb__json_writer *w)
{
    bool pretty = w->pretty;
    cb__json_object(w);
    w->pretty = false;
    return pretty;
}

static void end_row(cb__json_writer *w, bool pretty)
{
    cb__json_end(w);
    w->pretty = pretty;
}

static void put_point(cb__json_writer *w, const cb__series *s, const cb__point *p)
{
    bool pretty = begin_row(w);
    if (s->kind == CB__BANDWIDTH) {
        cb__json_put_text(w, "mix", s->what);
        cb__json_put_int(w, "workers", s->workers);
        cb__json_put_text(w, "placement", *s->placement ? s->placement : "compact");
    } else {
        cb__json_put_text(w, "pattern", s->what);
        cb__json_put_int(w, "page_bytes", s->page_bytes);
    }
    cb__json_put_int(w, "bytes", (int64_t)p->bytes);
    put_interval(w, s->kind == CB__BANDWIDTH ? "gb_per_s" : "ns", p->value);
    if (p->high > 0) {
        cb__json_put_real(w, "low", p->low);
        cb__json_put_real(w, "high", p->high);
    }
    put_verdict(w, p->verdict);
    end_row(w, pretty);
}

static void put_curves(cb__json_writer *w, const char *key, const cb_model *m, cb__series_kind kind)
{
    begin_rows(w, key);
    for (int i = 0; i < m->nseries; i++)
        for (int k = 0; m->series[i].kind == kind && k < m->series[i].n; k++)
            if (is_figure(m->series[i].points[k].value))
                put_point(w, &m->series[i], &m->series[i].points[k]);
    cb__json_end(w);
}

static void put_knees(cb__json_writer *w, const cb_model *m)
{
    begin_rows(w, "knees");
    for (int i = 0; i < m->nknees; i++) {
        const cb__model_knee *k = &m->knees[i];
        char curve[48];
        cb__series_name(&m->series[k->series], curve);
        bool pretty = begin_row(w);
        cb__json_put_text(w, "curve", curve);
        cb__json_put_int(w, "lo_bytes", (int64_t)k->lo_bytes);
        cb__json_put_int(w, "hi_bytes", (int64_t)k->hi_bytes);
        cb__json_put_real(w, "from", k->from);
        cb__json_put_real(w, "to", k->to);
        cb__json_put_bool(w, "last", k->last);
        put_verdict(w, k->verdict);
        end_row(w, pretty);
    }
    cb__json_end(w);
}

static void put_ceilings(cb__json_writer *w, const cb_model *m)
{
    static const char *const mixes[] = {"read", "write", "copy"};
    cb__json_key(w, "ceilings");
    cb__json_object(w);
    for (int i = 0; i < 3; i++) {
        const cb__model_ceiling *best = cb__model_ceiling_best(m, mixes[i], cb_model_workers(m));
        if (best) {
            put_interval(w, mixes[i], best->gb_per_s);
        } else {
            cb__json_key(w, mixes[i]);
            cb__json_null(w);
        }
    }
    cb__json_end(w);
    begin_rows(w, "ceilings_by");
    for (int i = 0; i < m->nceilings; i++) {
        if (!is_figure(m->ceilings[i].gb_per_s))
            continue;
        bool pretty = begin_row(w);
        cb__json_put_text(w, "mix", m->ceilings[i].mix);
        cb__json_put_int(w, "workers", m->ceilings[i].workers);
        put_interval(w, "gb_per_s", m->ceilings[i].gb_per_s);
        put_verdict(w, m->ceilings[i].verdict);
        end_row(w, pretty);
    }
    cb__json_end(w);
}

static void put_floors(cb__json_writer *w, const cb_model *m)
{
    begin_rows(w, "floors");
    for (int i = 0; i < m->nfloors; i++) {
        if (!is_figure(m->floors[i].ns))
            continue;
        bool pretty = begin_row(w);
        cb__json_put_text(w, "submit", m->floors[i].submit);
        cb__json_put_int(w, "threads", m->floors[i].threads);
        put_interval(w, "ns", m->floors[i].ns);
        put_verdict(w, m->floors[i].verdict);
        end_row(w, pretty);
    }
    cb__json_end(w);
}

static void put_computes(cb__json_writer *w, const cb_model *m)
{
    begin_rows(w, "compute");
    for (int i = 0; i < m->ncomputes; i++) {
        if (!is_figure(m->computes[i].gflop_per_s))
            continue;
        bool pretty = begin_row(w);
        cb__json_put_text(w, "type", m->computes[i].type);
        cb__json_put_int(w, "threads", m->computes[i].threads);
        put_interval(w, "gflop_per_s", m->computes[i].gflop_per_s);
        put_verdict(w, m->computes[i].verdict);
        end_row(w, pretty);
    }
    cb__json_end(w);
}

static void put_starts(cb__json_writer *w, const cb_model *m)
{
    if (m->nstarts == 0)
        return;
    begin_rows(w, "starts");
    for (int i = 0; i < m->nstarts; i++) {
        const cb__model_start *s = &m->starts[i];
        char curve[48];
        cb__series_name(&m->series[s->series], curve);
        bool pretty = begin_row(w);
        cb__json_put_text(w, "curve", curve);
        cb__json_put_int(w, "lo_bytes", (int64_t)s->lo_bytes);
        cb__json_put_int(w, "hi_bytes", (int64_t)s->hi_bytes);
        cb__json_put_real(w, "to", s->to);
        end_row(w, pretty);
    }
    cb__json_end(w);
}

static void put_scratch(cb__json_writer *w, const cb_model *m)
{
    begin_rows(w, "scratch");
    for (int i = 0; i < m->nscratch; i++) {
        const cb__model_scratch *s = &m->scratch[i];
        if (!is_figure(s->gb_per_s))
            continue;
        bool pretty = begin_row(w);
        cb__json_put_text(w, "path", s->path);
        cb__json_put_int(w, "width", s->width);
        cb__json_put_int(w, "stride", s->stride);
        put_interval(w, "gb_per_s", s->gb_per_s);
        put_verdict(w, s->verdict);
        end_row(w, pretty);
    }
    cb__json_end(w);
    if (!m->has_banks)
        return;
    cb__json_key(w, "banks");
    bool pretty = begin_row(w);
    cb__json_put_int(w, "banks", m->banks.banks);
    cb__json_put_int(w, "bank_bytes", m->banks.bank_bytes);
    cb__json_put_real(w, "misfit", m->banks.misfit);
    end_row(w, pretty);
}

void cb__model_put(const cb_model *model, cb__json_writer *w)
{
    put_curves(w, "curves", model, CB__BANDWIDTH);
    put_curves(w, "latency", model, CB__LATENCY);
    put_knees(w, model);
    put_ceilings(w, model);
    put_floors(w, model);
    put_computes(w, model);
    put_starts(w, model);
    put_scratch(w, model);
}

static void put_provenance(cb__json_writer *w, const cb_model *m)
{
    cb__json_put_text(w, "schema", CB__MODEL_SCHEMA);
    cb__json_put_text(w, "identity", m->identity);
    cb__json_put_text(w, "device", m->device);
    cb__json_put_text(w, "name", m->name);
    cb__json_put_text(w, "written", m->written);
    cb__json_key(w, "tool");
    cb__json_object(w);
    cb__json_put_text(w, "version", m->version);
    cb__json_put_text(w, "source_id", m->source_id);
    cb__json_end(w);
    cb__json_key(w, "seed");
    cb__json_uint(w, m->seed);
    cb__json_put_bool(w, "quick", m->quick);
    cb__json_put_bool(w, "complete", m->complete);
    if (*m->dropped)
        cb__json_put_text(w, "dropped", m->dropped);
    cb__json_put_int(w, "threads", m->threads);
    cb__json_put_int(w, "sweeps", m->sweeps);
}

static void put_levels(cb__json_writer *w, const cb_model *m)
{
    begin_rows(w, "levels");
    for (int i = 0; i < m->nlevels; i++) {
        bool pretty = begin_row(w);
        cb__json_put_int(w, "level", m->levels[i].level);
        cb__json_put_int(w, "bytes", (int64_t)m->levels[i].bytes);
        cb__json_put_int(w, "instances", m->levels[i].instances);
        end_row(w, pretty);
    }
    cb__json_end(w);
}

static void put_checks(cb__json_writer *w, const cb_model *m)
{
    begin_rows(w, "checks");
    for (int i = 0; i < m->nchecks; i++) {
        bool pretty = begin_row(w);
        cb__json_put_text(w, "name", m->checks[i].name);
        cb__json_put_text(w, "status", cb__check_status_name(m->checks[i].status));
        cb__json_put_bool(w, "required", m->checks[i].required);
        put_verdict(w, m->checks[i].verdict);
        cb__json_put_text(w, "detail", m->checks[i].detail);
        end_row(w, pretty);
    }
    cb__json_end(w);
}

void cb__model_write_text(const cb_model *model, cb__buf *out)
{
    cb__json_writer w;
    cb__json_begin(&w, out, true);
    cb__json_object(&w);
    put_provenance(&w, model);
    put_levels(&w, model);
    put_checks(&w, model);
    cb__json_key(&w, "model");
    cb__json_object(&w);
    cb__model_put(model, &w);
    cb__json_end(&w);
    cb__json_end(&w);
    cb__buf_puts(out, "\n");
}
