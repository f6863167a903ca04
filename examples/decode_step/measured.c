#include "measured.h"

#include <math.h>

#include "base/check.h"
#include "measure/checks.h"
#include "record/envelope.h"

/* ---- figures ---- */

static double median_of(const double *values, int n)
{
    double copy[BLOCKS];
    for (int i = 0; i < n; i++)
        copy[i] = values[i];
    return cb__median(copy, (size_t)n);
}

static double over_alone(const round_answer *r, int nparts)
{
    double ratio[BLOCKS];
    for (int b = 0; b < BLOCKS; b++) {
        double alone = 0;
        for (int i = 0; i < nparts; i++)
            alone += r->alone_ns[i][b];
        ratio[b] = r->step_ns[b] / alone;
    }
    return cb__median(ratio, BLOCKS);
}

static void figures(measured *m)
{
    double time[ROUNDS_MAX], host[ROUNDS_MAX], over[ROUNDS_MAX], alone[ROUNDS_MAX];
    size_t n = (size_t)m->nrounds;
    for (int r = 0; r < m->nrounds; r++) {
        time[r] = median_of(m->rounds[r].step_ns, BLOCKS);
        host[r] = median_of(m->rounds[r].host_ns, BLOCKS);
        over[r] = over_alone(&m->rounds[r], m->step->nparts);
    }
    m->time_ns = cb__interval_of(time, n);
    m->host_ns = cb__interval_of(host, n);
    m->over_alone = cb__interval_of(over, n);
    for (int i = 0; i < m->step->nparts; i++) {
        for (int r = 0; r < m->nrounds; r++)
            alone[r] = median_of(m->rounds[r].alone_ns[i], BLOCKS) / m->step->parts[i].count;
        m->alone_ns[i] = cb__interval_of(alone, n);
    }
}

/* ---- checks ---- */

static void judge_part(measured *m, int which)
{
    const step_part *p = &m->step->parts[which];
    cb__evidence e = {.c = &p->c,
                      .plan = &p->plan,
                      .device = m->info,
                      .rounds = m->nrounds,
                      .complete = true,
                      .submit = CB__BATCHED};
    for (int r = 0; r < m->nrounds; r++) {
        cb__findings_merge(&e.findings, &m->rounds[r].findings[which], "");
        e.inputs_changed = e.inputs_changed || m->rounds[r].edited[which];
    }
    for (int r = 0; r < m->nrounds; r++) /* where the first fault was, not of which shape */
        if (*e.findings.where && *m->rounds[r].findings[which].where) {
            snprintf(e.findings.where, sizeof e.findings.where, "%s",
                     m->rounds[r].findings[which].where);
            break;
        }
    e.findings.ragged = 0;
    m->verdict =
        cb__verdict_worse(m->verdict, cb__judge_side(&e, m->checks[which], &m->nchecks[which]));
}

static double gb_per_s(const measured *m, double ns)
{
    return (double)(m->step->bytes_read + m->step->bytes_written) / ns;
}

void measured_make(const step *s, const cb__device_info *info, const round_answer *rounds,
                   int nrounds, measured *out)
{
    *out = (measured){
        .step = s, .info = info, .rounds = rounds, .nrounds = nrounds, .verdict = CB_VERDICT_OK};
    figures(out);
    for (int i = 0; i < s->nparts; i++)
        judge_part(out, i);
    double peak = info->peak_dram_bytes_per_s * 1e-9;
    out->above_memory = peak > 0 && gb_per_s(out, out->time_ns.hi) > peak;
    if (out->above_memory)
        out->verdict = cb__verdict_worse(out->verdict, CB_VERDICT_IMPOSSIBLE);
}

/* ---- the record ---- */

static void put_parts(cb__json_writer *w, const measured *m)
{
    cb__json_key(w, "parts");
    cb__json_array(w);
    for (int i = 0; i < m->step->nparts; i++) {
        const step_part *p = &m->step->parts[i];
        cb__json_object(w);
        cb__json_put_text(w, "names", p->names);
        cb__put_shape(w, &p->c);
        cb__json_put_int(w, "count", p->count);
        cb__json_put_int(w, "bytes_read", (int64_t)p->c.cost.bytes_read);
        cb__put_interval(w, "alone_ns", m->alone_ns[i]);
        cb__put_checks(w, m->checks[i], m->nchecks[i]);
        cb__json_end(w);
    }
    cb__json_end(w);
}

static void put_rounds(cb__json_writer *w, const measured *m)
{
    cb__json_key(w, "rounds");
    cb__json_array(w);
    for (int r = 0; r < m->nrounds; r++) {
        const round_answer *a = &m->rounds[r];
        cb__json_object(w);
        cb__json_put_int(w, "warm_up_steps", a->warm_up_steps);
        cb__json_put_real(w, "warm_up_ns", a->warm_up_ns);
        cb__json_put_bool(w, "flat", a->flat);
        cb__json_put_text(w, "telemetry", *a->telemetry ? a->telemetry : NULL);
        cb__json_key(w, "samples_ns");
        cb__json_numbers(w, a->step_ns, BLOCKS);
        cb__json_key(w, "host_ns");
        cb__json_numbers(w, a->host_ns, BLOCKS);
        cb__json_key(w, "alone_ns"); /* of the whole batch of a part */
        cb__json_array(w);
        for (int i = 0; i < m->step->nparts; i++)
            cb__json_numbers(w, a->alone_ns[i], BLOCKS);
        cb__json_end(w);
        cb__json_end(w);
    }
    cb__json_end(w);
}

void measured_record(const measured *m, const cb__record *record, cb__buf *out)
{
    const step *s = m->step;
    cb__json_writer w;
    cb__buf variant = CB__BUF_INIT;
    cb__case_variant_text(&s->parts[0].c, &variant);
    cb__json_begin(&w, out, true);
    cb__envelope_begin(&w, record);
    cb__put_checks(&w, NULL, 0);
    cb__json_key(&w, "results");
    cb__json_array(&w);
    cb__json_object(&w);
    cb__json_put_text(&w, "model", s->model->name);
    cb__json_put_text(&w, "variant", cb__buf_text(&variant));
    cb__json_put_int(&w, "layers", s->model->layers);
    cb__json_put_int(&w, "launches", s->launches);
    cb__json_put_text(&w, "cache", "cold");
    cb__json_put_text(&w, "submit", cb__submit_name(CB__BATCHED));
    cb__json_put_text(&w, "clock", m->info->clock);
    cb__json_put_int(&w, "bytes_read", (int64_t)s->bytes_read);
    cb__json_put_int(&w, "bytes_written", (int64_t)s->bytes_written);
    cb__put_interval(&w, "time_ns", m->time_ns);
    cb__put_interval(&w, "host_ns", m->host_ns);
    cb__json_put_real(&w, "gb_per_s", gb_per_s(m, m->time_ns.mid));
    cb__put_interval(&w, "over_alone", m->over_alone);
    cb__json_put_real(&w, "fill_s", s->fill_s);
    put_parts(&w, m);
    put_rounds(&w, m);
    cb__json_put_text(&w, "verdict", cb_verdict_name(m->verdict));
    cb__json_end(&w);
    cb__json_end(&w);
    cb__json_put_text(&w, "verdict", cb_verdict_name(m->verdict));
    cb__json_end(&w);
    cb__buf_puts(out, "\n");
    cb__buf_fini(&variant);
}

void measured_text(const measured *m, cb__buf *out)
{
    cb__buf_printf(out,
                   "step of %s: %d launches, %.2f us [%.2f, %.2f], %.1f GB/s, %d round%s: %s\n",
                   m->step->model->name, m->step->launches, m->time_ns.mid * 1e-3,
                   m->time_ns.lo * 1e-3, m->time_ns.hi * 1e-3, gb_per_s(m, m->time_ns.mid),
                   m->nrounds, m->nrounds > 1 ? "s" : "", cb_verdict_name(m->verdict));
    for (int i = 0; i < m->step->nparts; i++)
        for (int j = 0; j < m->nchecks[i]; j++) {
            const cb__check *c = &m->checks[i][j];
            if (c->required && c->status != CB__PASS)
                cb__buf_printf(out, "    %s: %s %s: %s\n", m->step->parts[i].names, c->name,
                               cb__check_status_name(c->status), c->detail);
        }
    if (m->above_memory)
        cb__buf_printf(out, "    above the %.0f GB/s that the memory can give\n",
                       m->info->peak_dram_bytes_per_s * 1e-9);
}
