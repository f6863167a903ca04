/* selftest.h: does the judge itself work here: the clock; faults seeded into real sweeps and real
 * launches that the controls and checks have to name; comparisons whose right answer is known. */
#ifndef CB_RUN_SELFTEST_H
#define CB_RUN_SELFTEST_H

#include "host/clock.h"
#include "run/probe.h"
#include "run/trials.h"

enum { CB__FAULTS_MAX = 20, CB__SELFTEST_RUNS_MAX = CB__TRIAL_RUNS_MAX };

/* With `quick`, no comparison is begun later. One has 10 s. */
#define CB__SELFTEST_QUICK_S 45.0
#define CB__SELFTEST_QUICK_QUEUED_S 30.0 /* on a GPU, whose comparisons take seconds */

typedef struct cb__selftest_request {
    cb__probe_request common; /* suite, isa, device, threads, seed, asker; phase's `what` is a whole
                                 line. threads 0: all for the faults, one for comparisons */
    int runs;                 /* of each fault and each kind of comparison; 0: the defaults */
    bool timer, sweeps, launches, aa,
        planted; /* the parts; sweeps, launches: seeded faults in them */
    bool quick, load;
} cb__selftest_request;

/* One fault, or a clean twin of others, over `runs` little probes or verifications. */
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
    bool timer, sweeps, launches, aa, planted, load; /* as asked */
    int usual_runs;        /* comparisons of each kind that are made where nobody asked for fewer */
    cb__clock_facts clock; /* where `timer` */
    bool clock_good;       /* never steps back; a read costs and resolves less than 1 us */
    cb__fault_result faults[CB__FAULTS_MAX];
    int nfaults;
    cb__trial trials[CB__TRIALS_MAX];
    int ntrials;
    bool complete;
    double wall_s, measure_s;
} cb__selftest;

/* CB_INTERRUPTED keeps what was found. */
cb_status cb__selftest_run(const cb__selftest_request *request, cb__selftest *out, cb_error *err);
/* Every fault that could be seeded was found, and the comparisons do not contradict what is
 * promised of them beyond chance. */
bool cb__selftest_passed(const cb__selftest *selftest);

#endif
