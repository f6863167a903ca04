/* probe.h: `probe`: whole sweeps in fresh processes, most valuable first, within a budget; and what
 * they make of the machine. */
#ifndef CB_RUN_PROBE_H
#define CB_RUN_PROBE_H

#include "probe/probe.h"
#include "run/run.h"

typedef struct cb__probe_request {
    const cb__suite *suite;
    unsigned isa;
    const char *device;
    int threads;     /* 0: the default; the most that are measured */
    bool quick;      /* the same range of sizes with fewer of them */
    bool read_only;  /* just the read curve of all threads: what `run` needs */
    double budget_s; /* wall clock, start-up included */
    uint64_t seed;
    cb__asker asker;
    void (*phase)(void *arg, const char *what, int sweep); /* may be NULL */
    void *arg;
} cb__probe_request;

/* Whole sweeps: six are the fewest whose range covers a median with 0.95. */
enum { CB__PROBE_SWEEPS = CB__SWEEPS, CB__PROBE_QUICK_SWEEPS = 3 };

#define CB__PROBE_BUDGET_S 120.0
#define CB__PROBE_QUICK_BUDGET_S 20.0
#define CB__PROBE_NEEDED_S 5.0 /* read_only: what a verb spends on it outside its budget */

/* Fills `out` and, with provenance, `model`. CB_INTERRUPTED keeps what was measured, judged, with
 * complete false. */
cb_status cb__probe_measure(const cb__probe_request *request, cb__probe *out, cb_model *model,
                            cb_error *err);

#endif
