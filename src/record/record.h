/* record.h: everything one command measured, as JSON (schema coldbench/1) and as CSV. */
#ifndef CB_RECORD_RECORD_H
#define CB_RECORD_RECORD_H

#include "base/json.h"
#include "compare/compare.h"
#include "gate/gate.h"
#include "probe/probe.h"
#include "run/run.h"
#include "run/selftest.h"

typedef struct cb__record {
    const char *kind; /* "run", "probe" */
    bool complete;
    uint64_t seed;
    char started[32]; /* UTC, ISO 8601 */
    double wall_s, measure_s;
    const cb__device_info *device; /* NULL: none was opened */
    const char *device_name;       /* as asked: "cpu" */
} cb__record;

/* The UTC time now, ISO 8601. */
void cb__record_now(char text[32]);
void cb__record_run(const cb__record *record, const cb__run_case *cases, int n, cb__buf *out);
void cb__record_run_csv(const cb__run_case *cases, int n, cb__buf *out);
/* Everything a probe brought home and what was made of it. CSV: a row a point of the model. */
void cb__record_sweeps(const cb__record *record, const cb__probe *probe, const cb_model *model,
                       cb__buf *out);
void cb__record_sweeps_csv(const cb__probe *probe, const cb_model *model, cb__buf *out);

/* A result a pair. `best` and `tie_set` at the top where one comparison is of more than two. CSV: a
 * row a pair. */
void cb__record_compare(const cb__record *record, const cb__comparison *comparisons, int n,
                        cb__buf *out);
void cb__record_compare_csv(const cb__comparison *comparisons, int n, cb__buf *out);

/* The builds, a case each with its outcome and ids, and the results of those that were measured, as
 * cb__record_compare has them; `verdict` at the top. CSV: a row a case. */
void cb__record_gate(const cb__record *record, const cb__gate *gate, cb__buf *out);
void cb__record_gate_csv(const cb__gate *gate, cb__buf *out);
/* Google Benchmark's JSON: an entry a measured case and side, named VARIANT/SHAPE/CACHE/base and
 * .../head, so that its compare.py can filter them. cpu_time is the same as real_time. */
void cb__record_gate_benchmark(const cb__record *record, const cb__gate *gate, cb__buf *out);

void cb__record_selftest(const cb__record *record, const cb__selftest *selftest, cb__buf *out);
void cb__record_selftest_csv(const cb__selftest *selftest, cb__buf *out);

#endif
