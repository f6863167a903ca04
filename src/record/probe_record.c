#include <math.h>

#include "record/envelope.h"

static void point(cb__json_writer *w, const cb__curve_point *p)
{
    cb__json_object(w);
    cb__put_text(w, "mix", "read");
    cb__put_int(w, "workers", p->threads);
    cb__put_int(w, "bytes", p->bytes);
    cb__put_interval(w, "gb_per_s", p->gb_per_s);
    cb__put_interval(w, "folded", p->folded);
    cb__put_text(w, "verdict", cb_verdict_name(p->verdict));
    cb__json_end(w);
}

void cb__record_probe(const cb__record *record, const cb__curve *curve, cb__buf *out)
{
    cb__json_writer w;
    cb__json_begin(&w, out, true);
    cb__envelope_begin(&w, record);
    cb__put_checks(&w, curve->checks, curve->nchecks);
    cb__json_key(&w, "model");
    cb__json_object(&w);
    cb__json_key(&w, "curves");
    cb__json_array(&w);
    for (int i = 0; i < curve->n; i++)
        point(&w, &curve->points[i]);
    cb__json_end(&w);
    cb__json_key(&w, "ceilings");
    cb__json_object(&w);
    cb__put_interval(&w, "read", curve->ceiling);
    cb__json_end(&w);
    cb__put_int(&w, "sweeps", curve->sweeps);
    cb__put_real(&w, "core_hz", curve->clock_hz > 0 ? curve->clock_hz : (double)NAN);
    cb__put_real(&w, "port_bound_gb_per_s",
                 curve->port_bound_gb_per_s > 0 ? curve->port_bound_gb_per_s : (double)NAN);
    cb__json_end(&w);
    cb__json_key(&w, "results");
    cb__json_array(&w);
    cb__json_end(&w);
    cb__json_end(&w);
    cb__buf_puts(out, "\n");
}

void cb__record_probe_csv(const cb__curve *curve, cb__buf *out)
{
    cb__buf_puts(out, "mix,workers,bytes,gb_per_s_lo,gb_per_s_mid,gb_per_s_hi,folded,verdict\n");
    for (int i = 0; i < curve->n; i++) {
        const cb__curve_point *p = &curve->points[i];
        cb__buf_printf(out, "read,%d,%lld,%.9g,%.9g,%.9g,%.4f,%s\n", p->threads,
                       (long long)p->bytes, p->gb_per_s.lo, p->gb_per_s.mid, p->gb_per_s.hi,
                       p->folded.mid, cb_verdict_name(p->verdict));
    }
}
