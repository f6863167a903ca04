#include "record/envelope.h"

static void put_fault(cb__json_writer *w, const cb__fault_result *f)
{
    cb__json_object(w);
    cb__put_text(w, "name", f->name);
    cb__put_text(w, "expected", f->expected);
    cb__put_text(w, "got", f->got);
    cb__put_int(w, "runs", f->runs);
    cb__put_int(w, "right", f->right);
    cb__put_text(w, "detail", *f->detail ? f->detail : NULL);
    cb__put_real(w, "wall_s", f->wall_s);
    cb__json_end(w);
}

void cb__record_selftest(const cb__record *record, const cb__selftest *selftest, cb__buf *out)
{
    cb__json_writer w;
    cb__json_begin(&w, out, true);
    cb__envelope_begin(&w, record);
    cb__put_checks(&w, NULL, 0);
    cb__json_key(&w, "timer");
    cb__json_object(&w);
    cb__put_real(&w, "resolution_ns", selftest->clock.resolution_ns);
    cb__put_real(&w, "cost_ns", selftest->clock.cost_ns);
    cb__put_int(&w, "backwards", selftest->clock.backwards);
    cb__put_bool(&w, "good", selftest->clock_good);
    cb__json_end(&w);
    cb__json_key(&w, "faults");
    cb__json_array(&w);
    for (int i = 0; i < selftest->nfaults; i++)
        put_fault(&w, &selftest->faults[i]);
    cb__json_end(&w);
    cb__put_bool(&w, "passed", cb__selftest_passed(selftest));
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
}
