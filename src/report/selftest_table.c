#include "report/report.h"

void cb__report_selftest(const cb__selftest *s, bool verbose, cb__buf *out)
{
    cb__buf_printf(out,
                   "timer       %s: a read costs %.0f ns, the smallest step is %.0f ns, %d steps "
                   "back\n\n",
                   s->clock_good ? "pass" : "FAIL", s->clock.cost_ns, s->clock.resolution_ns,
                   s->clock.backwards);
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
    cb__buf_printf(out, "\n%s, %.0f s\n",
                   cb__selftest_passed(s) ? "the judge works here" : "the judge does NOT work here",
                   s->wall_s);
}
