#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "record/envelope.h"

static void choices(cb__json_writer *w, const char *key, const cb_choice *c, const int64_t *values,
                    int n)
{
    cb__json_key(w, key);
    cb__json_object(w);
    for (int i = 0; i < n; i++) {
        cb__json_key(w, c[i].name);
        if (c[i].words)
            cb__json_string(w, c[i].words[values[i]]);
        else
            cb__json_int(w, values[i]);
    }
    cb__json_end(w);
}

/* Every reading's slot, by round: [kernel, twin] of each block, and which of them went first. */
static void samples(cb__json_writer *w, const cb__run_row *row)
{
    cb__json_key(w, "samples_ns");
    cb__json_array(w);
    for (int i = 0; i < row->nrounds; i++) {
        const cb__run_round *r = &row->rounds[i];
        cb__json_array(w);
        for (int b = 0; b < r->n; b++) {
            double pair[2] = {r->kernel_ns[b], r->twin_ns[b]};
            cb__json_numbers(w, pair, row->evidence.has_twin ? 2 : 1);
        }
        cb__json_end(w);
    }
    cb__json_end(w);
    cb__json_key(w, "order");
    cb__json_array(w);
    for (int i = 0; i < row->nrounds; i++)
        cb__json_ints(w, row->rounds[i].order, (size_t)row->rounds[i].n);
    cb__json_end(w);
    /* What one sample is, by round: the median of so many readings, each of so many launches or
     * batches. */
    cb__json_key(w, "slots");
    cb__json_array(w);
    for (int i = 0; i < row->nrounds; i++) {
        int64_t slot[2] = {row->rounds[i].readings, row->rounds[i].repeats};
        cb__json_ints(w, slot, 2);
    }
    cb__json_end(w);
}

static void ring(cb__json_writer *w, const cb__run_case *c, const cb__evidence *e)
{
    cb__json_key(w, "ring");
    if (e->cache != CB__COLD) {
        cb__json_null(w);
        return;
    }
    cb__json_object(w);
    cb__json_put_int(w, "sets", c->plan.k);
    cb__json_put_int(w, "set_bytes", (int64_t)c->plan.touched_bytes);
    cb__json_put_int(w, "needed_bytes", (int64_t)c->plan.needed_bytes);
    cb__json_key(w, "cold_operands");
    cb__json_array(w);
    for (int i = 0; i < c->c.kernel->noperands; i++)
        if (c->plan.rotating[i])
            cb__json_string(w, c->c.kernel->operands[i].name);
    cb__json_end(w);
    cb__json_end(w);
}

static void figures(cb__json_writer *w, const cb__run_row *row)
{
    const cb__evidence *e = &row->evidence;
    cb__put_interval(w, "time_ns", e->time_ns);
    cb__put_interval(w, "host_ns", row->host_ns);
    cb__put_interval(w, "gb_per_s", e->gb_per_s);
    cb__put_interval(w, "gflop_per_s", row->gflop_per_s);
    cb__put_interval(w, "of_twin", e->of_twin);
    cb__put_interval(w, "of_ceiling", row->of_ceiling);
    cb__put_interval(w, "ceiling_gb_per_s", e->asymptote_gb_per_s);
    cb__json_put_real(w, "floor_ns", e->floor_ns);
    cb__json_put_real(w, "floor_share", cb__floor_share(e));
}

static void put_stages(cb__json_writer *w, const cb__run_case *c)
{
    static const char *const names[CB__STAGES] = {[CB__STAGE_SHAPES] = "shapes_s",
                                                  [CB__STAGE_FILL] = "filling_s",
                                                  [CB__STAGE_TWIN] = "twin_s",
                                                  [CB__STAGE_ROUNDS] = "rounds_s",
                                                  [CB__STAGE_INPUTS] = "inputs_s"};
    cb__json_key(w, "stages");
    cb__json_object(w);
    for (int i = 0; i < CB__STAGES; i++)
        cb__json_put_real(w, names[i], c->stages_s[i]);
    cb__json_end(w);
}

static void result(cb__json_writer *w, const cb__run_case *c, const cb__run_row *row)
{
    const cb__evidence *e = &row->evidence;
    cb__buf variant = CB__BUF_INIT;
    cb__case_variant_text(&c->c, &variant);
    cb__json_object(w);
    cb__json_put_text(w, "kernel", c->c.kernel->name);
    cb__json_put_text(w, "variant", cb__buf_text(&variant));
    cb__buf_fini(&variant);
    choices(w, "params", c->c.kernel->params, c->c.params, c->c.kernel->nparams);
    choices(w, "tunables", c->c.impl->tunables, c->c.tunables, c->c.impl->ntunables);
    cb__put_shape(w, &c->c);
    cb__json_put_text(w, "cache", cb__cache_name(e->cache));
    cb__json_put_text(w, "submit", cb__submit_name(e->submit));
    cb__json_put_bool(w, "overlaps", e->submit != CB__SOLO && cb__case_overlaps(&c->c, &c->device));
    cb__json_put_int(w, "threads", c->device.threads);
    cb__json_put_text(w, "clock", e->submit == CB__SOLO ? "host" : c->device.clock);
    cb__json_put_int(w, "bytes_read", (int64_t)c->c.cost.bytes_read);
    cb__json_put_int(w, "bytes_written", (int64_t)c->c.cost.bytes_written);
    cb__json_put_real(w, "flops", c->c.cost.flops);
    figures(w, row);
    cb__json_put_text(w, "twin", *c->twins[e->cache] ? c->twins[e->cache] : NULL);
    ring(w, c, e);
    cb__json_put_text(w, "residency", *row->residency ? row->residency : NULL);
    cb__json_put_real(w, "prepare_ns", c->prepare_ns);
    put_stages(w, c);
    cb__json_put_text(w, "telemetry", *c->telemetry ? c->telemetry : NULL);
    samples(w, row);
    cb__json_put_int(w, "rounds", e->rounds);
    cb__put_checks(w, row->checks, row->nchecks);
    cb__json_put_text(w, "verdict", cb_verdict_name(row->verdict));
    cb__json_end(w);
}

void cb__record_run(const cb__record *record, const cb__run_case *cases, int n, cb__buf *out)
{
    cb__json_writer w;
    int rows = 0;
    cb__json_begin(&w, out, true);
    cb__envelope_begin(&w, record);
    cb__put_checks(&w, NULL, 0);
    cb__json_key(&w, "results");
    cb__json_array(&w);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < cases[i].nrows; j++, rows++)
            result(&w, &cases[i], &cases[i].rows[j]);
    cb__json_end(&w);
    if (rows == 1)
        for (int i = 0; i < n; i++)
            if (cases[i].nrows)
                cb__json_put_text(&w, "verdict", cb_verdict_name(cases[i].rows[0].verdict));
    cb__json_end(&w);
    cb__buf_puts(out, "\n");
}

static void csv_interval(cb__buf *out, cb__interval x)
{
    const double ends[3] = {x.lo, x.mid, x.hi};
    for (int i = 0; i < 3; i++)
        cb__csv_number(out, isfinite(x.mid) ? ends[i] : (double)NAN);
}

void cb__record_run_csv(const cb__run_case *cases, int n, cb__buf *out)
{
    cb__buf_puts(out, "variant,shape,cache,submit,threads,rounds,bytes_read,bytes_written,flops,"
                      "time_ns_lo,time_ns_mid,time_ns_hi,gb_per_s_lo,gb_per_s_mid,gb_per_s_hi,"
                      "of_twin_lo,of_twin_mid,of_twin_hi,of_ceiling_lo,of_ceiling_mid,"
                      "of_ceiling_hi,floor_share,verdict\n");
    for (int i = 0; i < n; i++) {
        const cb__run_case *c = &cases[i];
        for (int j = 0; j < c->nrows; j++) {
            const cb__run_row *row = &c->rows[j];
            const cb__evidence *e = &row->evidence;
            cb__buf_puts(out, "\""); /* a variant holds commas, never quotes */
            cb__case_variant_text(&c->c, out);
            cb__buf_puts(out, "\",");
            cb__case_shape_text(&c->c, out);
            cb__buf_printf(out, ",%s,%s,%d,%d,%" PRIu64 ",%" PRIu64 ",%.17g",
                           cb__cache_name(e->cache), cb__submit_name(e->submit), c->device.threads,
                           e->rounds, c->c.cost.bytes_read, c->c.cost.bytes_written,
                           c->c.cost.flops);
            csv_interval(out, e->time_ns);
            csv_interval(out, e->gb_per_s);
            csv_interval(out, e->of_twin);
            csv_interval(out, row->of_ceiling);
            double share = cb__floor_share(e);
            if (isfinite(share))
                cb__buf_printf(out, ",%.4f", share);
            else
                cb__buf_puts(out, ",");
            cb__buf_printf(out, ",%s\n", cb_verdict_name(row->verdict));
        }
    }
}
