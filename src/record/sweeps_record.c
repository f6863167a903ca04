#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "record/envelope.h"

static const char *const kinds[] = {[CB__BANDWIDTH] = "bandwidth", [CB__LATENCY] = "latency"};
static const char *const scalar_kinds[] = {
    [CB__FLOOR] = "floor", [CB__COMPUTE] = "compute", [CB__CONTENT] = "content"};

static const char *placement(bool scattered)
{
    return scattered ? "scattered" : "compact";
}

static void one_process(cb__json_writer *w, const cb__group *g, int sweep)
{
    const cb__pages *pages = &g->pages[sweep];
    cb__json_object(w);
    cb__json_put_int(w, "sweep", sweep);
    if (pages->known) {
        cb__json_put_int(w, "resident_bytes", (int64_t)pages->resident_bytes);
        cb__json_put_int(w, "huge_bytes", (int64_t)pages->huge_bytes);
    }
    cb__json_put_int(w, "sampled_words", (int64_t)g->sampled_words[sweep]);
    cb__json_put_int(w, "distinct_words", (int64_t)g->distinct_words[sweep]);
    cb__json_put_real(w, "steal_s", g->steal_s[sweep]);
    cb__json_put_real(w, "wall_s", g->wall_s[sweep]);
    cb__json_put_int(w, "involuntary_switches", g->involuntary[sweep]);
    cb__json_end(w);
}

static void all_groups(cb__json_writer *w, const cb__probe *probe)
{
    cb__json_key(w, "groups");
    cb__json_array(w);
    for (int i = 0; i < probe->ngroups; i++) {
        const cb__group *g = &probe->groups[i];
        cb__json_object(w);
        cb__json_put_int(w, "threads", g->threads);
        cb__json_put_text(w, "placement", placement(g->scattered));
        cb__json_put_text(w, "pages", g->base_pages ? "base" : "huge");
        cb__json_key(w, "sweeps");
        cb__json_array(w);
        for (int s = 0; s < CB__SWEEPS; s++)
            if (g->wall_s[s] > 0) /* a process that never ran says nothing */
                one_process(w, g, s);
        cb__json_end(w);
        cb__json_end(w);
    }
    cb__json_end(w);
}

static void put_numbers(cb__json_writer *w, const char *key, const double *values, int n)
{
    cb__json_key(w, key);
    cb__json_numbers(w, values, (size_t)n);
}

/* A sweep's readings as one array a field, by size: an object a reading would make the file five
 * times as long. */
static void readings(cb__json_writer *w, const cb__reading *of, int n, int sweep)
{
    double value[CB__SIZES_MAX], folded[CB__SIZES_MAX], clock[CB__SIZES_MAX], edge[CB__SIZES_MAX];
    double low[CB__SIZES_MAX], high[CB__SIZES_MAX];
    int64_t variant[CB__SIZES_MAX], covered[CB__SIZES_MAX];
    bool places = false;
    for (int i = 0; i < n; i++) {
        low[i] = of[i].low;
        high[i] = of[i].high;
        places |= of[i].high > 0;
        value[i] = of[i].value;
        folded[i] = of[i].folded;
        clock[i] = of[i].clock_hz;
        edge[i] = of[i].edge_gain;
        variant[i] = of[i].variant;
        covered[i] = of[i].covered;
    }
    cb__json_object(w);
    cb__json_put_int(w, "sweep", sweep);
    put_numbers(w, "value", value, n);
    put_numbers(w, "folded", folded, n);
    put_numbers(w, "clock_hz", clock, n);
    put_numbers(w, "edge_gain", edge, n);
    cb__json_key(w, "variant");
    cb__json_ints(w, variant, (size_t)n);
    cb__json_key(w, "covered");
    cb__json_ints(w, covered, (size_t)n);
    if (places) {
        put_numbers(w, "low", low, n);
        put_numbers(w, "high", high, n);
    }
    cb__json_end(w);
}

static bool measured(const cb__reading *of, int n)
{
    for (int i = 0; i < n; i++)
        if (of[i].value > 0)
            return true;
    return false;
}

static void all_series(cb__json_writer *w, const cb__probe *probe)
{
    cb__json_key(w, "series");
    cb__json_array(w);
    for (int i = 0; i < probe->nseries; i++) {
        const cb__probe_series *p = &probe->series[i];
        cb__json_object(w);
        cb__json_put_text(w, "kind", kinds[p->kind]);
        cb__json_put_text(w, "what", p->what);
        cb__json_put_int(w, "group", p->group);
        cb__json_key(w, "bytes");
        cb__json_ints(w, p->bytes, (size_t)p->n);
        cb__json_key(w, "sweeps");
        cb__json_array(w);
        for (int s = 0; s < CB__SWEEPS; s++)
            if (measured(p->readings[s], p->n))
                readings(w, p->readings[s], p->n, s);
        cb__json_end(w);
        cb__json_end(w);
    }
    cb__json_end(w);
}

static void all_scalars(cb__json_writer *w, const cb__probe *probe)
{
    cb__json_key(w, "scalars");
    cb__json_array(w);
    for (int i = 0; i < probe->nscalars; i++) {
        const cb__scalar *s = &probe->scalars[i];
        cb__json_object(w);
        cb__json_put_text(w, "kind", scalar_kinds[s->kind]);
        cb__json_put_text(w, "what", s->what);
        cb__json_put_int(w, "group", s->group);
        put_numbers(w, "values", s->values, probe->planned);
        cb__json_end(w);
    }
    cb__json_end(w);
}

static void all_scratch(cb__json_writer *w, const cb__probe *probe)
{
    if (probe->nscratch == 0)
        return;
    cb__json_key(w, "scratch");
    cb__json_array(w);
    for (int i = 0; i < probe->nscratch; i++) {
        const cb__probe_scratch *s = &probe->scratch[i];
        int64_t strides[CB__SIZES_MAX];
        for (int k = 0; k < s->n; k++)
            strides[k] = s->strides[k];
        cb__json_object(w);
        cb__json_put_text(w, "what", s->what);
        cb__json_put_int(w, "missed", s->missed);
        cb__json_key(w, "strides");
        cb__json_ints(w, strides, (size_t)s->n);
        cb__json_key(w, "sweeps");
        cb__json_array(w);
        for (int sweep = 0; sweep < probe->planned; sweep++)
            cb__json_numbers(w, s->values[sweep], (size_t)s->n);
        cb__json_end(w);
        cb__json_end(w);
    }
    cb__json_end(w);
}

static void raw(cb__json_writer *w, const cb__probe *probe)
{
    cb__json_key(w, "raw");
    cb__json_object(w);
    cb__json_key(w, "variants");
    cb__json_array(w);
    for (int i = 0; i < probe->nvariants; i++)
        cb__json_string(w, probe->variants[i]);
    cb__json_end(w);
    all_groups(w, probe);
    all_series(w, probe);
    all_scalars(w, probe);
    all_scratch(w, probe);
    cb__json_end(w);
}

static double known(double value)
{
    return value > 0 ? value : (double)NAN;
}

void cb__record_sweeps(const cb__record *record, const cb__probe *probe, const cb_model *model,
                       cb__buf *out)
{
    cb__json_writer w;
    cb__json_begin(&w, out, true);
    cb__envelope_begin(&w, record);
    cb__put_checks(&w, model->checks, model->nchecks);
    cb__json_key(&w, "model");
    cb__json_object(&w);
    cb__model_put(model, &w);
    cb__json_end(&w);
    raw(&w, probe);
    cb__json_put_text(&w, "dropped", probe->dropped);
    cb__json_put_bool(&w, "quick", probe->quick);
    cb__json_put_int(&w, "sweeps", probe->sweeps);
    cb__json_put_real(&w, "core_hz", known(probe->clock_hz));
    cb__json_put_real(&w, "port_bound_gb_per_s", known(probe->port_bound_gb_per_s));
    cb__json_key(&w, "results");
    cb__json_array(&w);
    cb__json_end(&w);
    cb__json_end(&w);
    cb__buf_puts(out, "\n");
}

/* Where placements do not differ a curve may name none. */
static bool is_scattered(const cb__series *s)
{
    return strcmp(s->placement, "scattered") == 0;
}

/* The raw series that a curve of the model was made of; NULL: there is none. */
static const cb__probe_series *raw_of(const cb__probe *probe, const cb__series *s)
{
    for (int i = 0; i < probe->nseries; i++) {
        const cb__probe_series *p = &probe->series[i];
        const cb__group *g = &probe->groups[p->group];
        if (p->kind == s->kind && strcmp(p->what, s->what) == 0 && g->threads == s->workers &&
            g->scattered == is_scattered(s))
            return p;
    }
    return NULL;
}

static double folded_mid(const cb__probe_series *p, uint64_t bytes)
{
    double values[CB__SWEEPS];
    size_t n = 0;
    for (int i = 0; p && i < p->n; i++)
        for (int s = 0; s < CB__SWEEPS && (uint64_t)p->bytes[i] == bytes; s++)
            if (p->readings[s][i].folded > 0)
                values[n++] = p->readings[s][i].folded;
    return cb__median(values, n);
}

void cb__record_sweeps_csv(const cb__probe *probe, const cb_model *model, cb__buf *out)
{
    cb__buf_puts(out, "kind,what,workers,placement,page_bytes,bytes,lo,mid,hi,verdict,"
                      "folded_mid\n");
    for (int i = 0; i < model->nseries; i++) {
        const cb__series *s = &model->series[i];
        /* Loads that depend on each other have nothing to fold. */
        const cb__probe_series *p = s->kind == CB__BANDWIDTH ? raw_of(probe, s) : NULL;
        for (int j = 0; j < s->n; j++) {
            const cb__point *point = &s->points[j];
            cb__buf_printf(out, "%s,%s,%d,%s,%" PRId64 ",%" PRIu64, kinds[s->kind], s->what,
                           s->workers, placement(is_scattered(s)), s->page_bytes, point->bytes);
            cb__csv_number(out, point->value.lo);
            cb__csv_number(out, point->value.mid);
            cb__csv_number(out, point->value.hi);
            cb__buf_printf(out, ",%s", cb_verdict_name(point->verdict));
            cb__csv_number(out, folded_mid(p, point->bytes));
            cb__buf_puts(out, "\n");
        }
    }
}
