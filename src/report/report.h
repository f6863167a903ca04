/* report.h: what a person reads: tables and a chart, as text. No terminal codes but colour, and
 * that only when asked. */
#ifndef CB_REPORT_REPORT_H
#define CB_REPORT_REPORT_H

#include "base/buf.h"
#include "compare/compare.h"
#include "gate/gate.h"
#include "probe/probe.h"
#include "run/run.h"
#include "run/selftest.h"

/* One row a result; under it what a reader must know of rows that are not `ok`, and of warm ones.
 * verbose: every check of every row. */
void cb__report_run(const cb__run_case *cases, int n, bool color, bool verbose, cb__buf *out);
/* A line a pair; under it what a reader must know of sides that are not right. Of more than two,
 * the best and what ties with it. verbose: every check, position effect, gaps. */
void cb__report_compare(const cb__comparison *comparisons, int n, bool color, bool verbose,
                        cb__buf *out);
/* A line a case, what a reader must know of those that are not right, and a summary. */
void cb__report_gate(const cb__gate *gate, bool color, bool verbose, cb__buf *out);
/* The same as a Markdown table, for a pull request. */
void cb__report_gate_markdown(const cb__gate *gate, cb__buf *out);
/* Reading with one and with all threads, and random loads, over the logarithm of the set, with
 * their knees below and plateaus and ceilings at the right. At most 100 columns. */
void cb__report_probe_chart(const cb__probe *probe, const cb_model *model, cb__buf *out);
/* What the machine can do, in a screenful: levels, ceilings, floors, compute, controls. verbose:
 * every thread count, knee and point too. */
void cb__report_probe_table(const cb__probe *probe, const cb_model *model, bool color, bool verbose,
                            cb__buf *out);
/* The clock, and a line a fault; verbose: what its check said. */
/* A share as "14 %": two digits, and never an exponent for large ones. */
void cb__report_percent(double share, cb__buf *out);
void cb__report_selftest(const cb__selftest *selftest, bool verbose, cb__buf *out);
/* "1.0341x [1.0282, 1.0401]", or as much of it as there is. */
void cb__report_ratio(cb__interval x, cb__buf *out);
/* "1.0341x the time [1.0282, 1.0401]", likewise. */
void cb__report_times(cb__interval x, cb__buf *out);
/* Of a pair that was measured to the end and not settled: which limit stood in the way. False, and
 * nothing is written: it is settled, or something else did. */
bool cb__report_unsettled(const cb__comparison *c, const cb__compare_pair *pair, cb__buf *out);
/* "16 KiB", "2.5 MiB" */
void cb__bytes_text(double bytes, char text[24]);
/* "3.21 us" */
void cb__time_text(double ns, char text[24]);
/* The verdict, coloured; padded to `width`. */
void cb__report_verdict(cb_verdict verdict, bool color, int width, cb__buf *out);

#endif
