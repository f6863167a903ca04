#include <math.h>
#include <string.h>

#include "report/report.h"

static void ratio(cb__interval x, cb__buf *out)
{
    if (isfinite(x.mid))
        cb__buf_printf(out, "%6.3f [%5.3f,%6.3f] ", x.mid, x.lo, x.hi);
    else
        cb__buf_printf(out, "%6s %15s ", "-", "");
}

static void row(const cb__run_case *c, const cb__run_row *r, bool color, cb__buf *out)
{
    const cb__evidence *e = &r->evidence;
    char time[24];
    cb__buf tag = CB__BUF_INIT, shape = CB__BUF_INIT;
    cb__time_text(e->time_ns.mid, time);
    cb__case_shape_text(&c->c, &shape);
    cb__buf_printf(&tag, "[%s]", cb__cache_name(e->cache));
    cb__buf_printf(out, "%-14s %-6s %-7s %9s ", cb__buf_text(&shape), cb__buf_text(&tag),
                   cb__submit_name(e->submit), time);
    if (isfinite(e->gb_per_s.mid))
        cb__buf_printf(out, "%8.1f ", e->gb_per_s.mid);
    else
        cb__buf_printf(out, "%8s ", "-");
    ratio(e->of_twin, out);
    if (isfinite(r->of_ceiling.mid))
        cb__buf_printf(out, "%6.2f  ", r->of_ceiling.mid);
    else
        cb__buf_printf(out, "%6s  ", "-");
    cb__report_verdict(r->verdict, color, 0, out);
    if (r->verdict == CB_VERDICT_OK && cb__floor_share(e) > 0.2)
        cb__buf_printf(out, " (%.0f %% dispatch)", 100 * cb__floor_share(e));
    cb__buf_puts(out, "\n");
    cb__buf_fini(&tag);
    cb__buf_fini(&shape);
}

static void failed_checks(const cb__run_row *r, bool verbose, cb__buf *out)
{
    for (int i = 0; i < r->nchecks; i++) {
        const cb__check *k = &r->checks[i];
        /* Of a wrong row, what is wrong; what could not be looked at because of it says nothing. */
        bool shown = k->required && (r->verdict == CB_VERDICT_WRONG ? k->status == CB__FAIL
                                                                    : k->status != CB__PASS);
        if (verbose || shown)
            cb__buf_printf(out, "    %-12s %s%s: %s\n", k->name, cb__check_status_name(k->status),
                           k->required ? "" : " (informative)", k->detail);
    }
}

static bool same_variant(const cb__case *a, const cb__case *b)
{
    return a->kernel == b->kernel && a->impl == b->impl &&
           !memcmp(a->params, b->params, sizeof a->params) &&
           !memcmp(a->tunables, b->tunables, sizeof a->tunables);
}

static void heading(const cb__run_case *c, cb__buf *out)
{
    cb__buf_printf(out, "\n");
    cb__case_variant_text(&c->c, out);
    cb__buf_printf(out, "   %d thread%s, %s\n", c->device.threads, c->device.threads > 1 ? "s" : "",
                   c->device.name);
    if (*c->device.code)
        cb__buf_printf(out, "code: %s\n", c->device.code);
    if (cb__case_overlaps(&c->c, &c->device))
        cb__buf_puts(out,
                     "launches overlap: in batches and streams each reads its weights while the "
                     "one ahead runs\n");
    cb__buf_printf(out, "%-14s %-6s %-7s %9s %8s %-22s %7s  %s\n", "shape", "cache", "submit",
                   "time", "GB/s", "of twin, 95 %", "ceiling", "verdict");
}

void cb__report_run(const cb__run_case *cases, int n, bool color, bool verbose, cb__buf *out)
{
    for (int i = 0; i < n; i++) {
        const cb__run_case *c = &cases[i];
        const char *said = "";
        if (c->nrows == 0)
            continue;
        if (i == 0 || !same_variant(&c->c, &cases[i - 1].c))
            heading(c, out);
        for (int j = 0; j < c->nrows; j++) {
            const cb__run_row *r = &c->rows[j];
            row(c, r, color, out);
            failed_checks(r, verbose, out);
            if (*r->residency && r->verdict != CB_VERDICT_WRONG)
                said = r->residency;
        }
        if (*said)
            cb__buf_printf(out, "    warm: %s\n", said);
        if (!c->complete)
            cb__buf_puts(out, "    incomplete: interrupted\n");
    }
}
