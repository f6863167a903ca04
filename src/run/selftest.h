/* selftest.h: does the judge itself work here: the clock, and faults seeded into real sweeps that
 * the probe's controls have to name. */
#ifndef CB_RUN_SELFTEST_H
#define CB_RUN_SELFTEST_H

#include "host/clock.h"
#include "run/probe.h"

enum { CB__FAULTS_MAX = 8, CB__FAULT_RUNS_MAX = 1000 };

/* One fault, or the clean twin of all of them, over `runs` little probes. */
typedef struct cb__fault_result {
    const char *name;     /* "folded loop" */
    const char *expected; /* the check that is for it; NULL: the clean twin, none may fail */
    char got[160];        /* of the last run: the checks that failed, "none" */
    char detail[240];     /* what that check said; of a fault that could not be seeded: why */
    int runs, right;      /* runs 0: not seeded here */
    double wall_s;
} cb__fault_result;

typedef struct cb__selftest {
    cb__device_info device;
    cb__clock_facts clock;
    bool clock_good; /* never steps back; a read costs and resolves less than 1 us */
    cb__fault_result faults[CB__FAULTS_MAX];
    int nfaults;
    bool complete;
    double wall_s, measure_s;
} cb__selftest;

/* request's suite, isa, device, threads, seed, asker and phase count. CB_INTERRUPTED keeps what was
 * found. */
cb_status cb__selftest_run(const cb__probe_request *request, int runs, cb__selftest *out,
                           cb_error *err);
/* Everything that could be tried came out as expected. */
bool cb__selftest_passed(const cb__selftest *selftest);

#endif
