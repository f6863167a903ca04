/* trials.h: the comparison tried on what is known: identical code, and planted differences. */
#ifndef CB_RUN_TRIALS_H
#define CB_RUN_TRIALS_H

#include "compare/compare.h"
#include "run/probe.h"

enum { CB__TRIALS_MAX = 10, CB__TRIAL_RUNS_MAX = 1000, CB__CONDITIONS = 2 };

/* What else this machine does meanwhile. */
typedef enum cb__condition { CB__IDLE, CB__LOADED } cb__condition;

/* How the comparisons of one kind came out under one condition. */
typedef struct cb__tally {
    int runs, slower, faster, ties;
    int undecided; /* inconclusive, unstable, incomparable */
    int broken;    /* of those: a side was wrong or impossible */
    double wall_s[CB__TRIAL_RUNS_MAX];
    double ratio[CB__TRIAL_RUNS_MAX]; /* time of b over time of a; NaN: none */
    double measure_s;                 /* within timed blocks, all runs */
} cb__tally;

/* One kind of comparison: identical code (effect 0), or b planted so much slower than a. */
typedef struct cb__trial {
    const char *a, *b, *shape;
    double effect;
    bool judged;   /* the time is known to follow what was planted; else it is only shown */
    double margin; /* half the effect; the default for identical code */
    cb__tally tally[CB__CONDITIONS];
} cb__trial;

/* All of identical code, under one condition. */
typedef struct cb__aa_sum {
    int runs, false_alarms, ties, undecided, broken;
    double measure_s;
} cb__aa_sum;

typedef struct cb__trials_request {
    const cb__probe_request *common; /* suite, isa, device, threads (0: one), seed, asker, phase */
    int runs;                        /* comparisons of each kind; 0: the default of this device */
    bool quick;                      /* few */
    bool aa, planted;
    bool load;          /* each under load too */
    uint64_t before_ns; /* none is begun later; 0: no limit */
} cb__trials_request;

/* Whether time is computed on this device, not taken. */
bool cb__device_scripted(const char *device);
/* Fills trials[0..*n). A turn is one comparison of each kind, idle, then the same under load: what
 * disturbs for a moment disturbs one of each. CB_INTERRUPTED keeps what was found. */
cb_status cb__trials_run(const cb__trials_request *request, cb__trial *trials, int *n,
                         cb_error *err);

/* Comparisons of each kind that are made on a device, where neither a number nor --quick is given.
 */
int cb__trials_usual(const char *device, bool queued);

cb__aa_sum cb__trials_aa(const cb__trial *trials, int n, cb__condition condition);
/* Quantile of a tally's seconds, and the median of its ratios; NaN for no run. */
double cb__tally_seconds(const cb__tally *tally, double quantile);
double cb__tally_ratio(const cb__tally *tally);
/* Whether the outcome contradicts what is promised, by more than chance: identical code called
 * different more often than alpha allows; a planted 5 % or more found in fewer than half, idle;
 * what was planted slower called faster; a side whose outputs are wrong. `why` names the first. */
bool cb__trials_contradict(const cb__trial *trials, int n, char *why, size_t size);

/* How often the default is, on a machine and with --quick; on a GPU, where one takes seconds. */
enum {
    CB__TRIALS_DEFAULT = 100,
    CB__TRIALS_QUICK = 5,
    CB__TRIALS_QUEUED = 10,
    CB__TRIALS_QUEUED_QUICK = 1
};
/* The confidence of a rate's upper bound. */
#define CB__TRIALS_CONFIDENCE 0.95

#endif
