/* curve.h: the read curve: bandwidth over working sets, by one core and by all threads, from whole
 * sweeps in fresh processes. */
#ifndef CB_RUN_CURVE_H
#define CB_RUN_CURVE_H

#include "run/run.h"

enum { CB__CURVE_POINTS_MAX = 160, CB__CURVE_SWEEPS = 3 };

typedef struct cb__curve_point {
    int threads;
    int64_t bytes;
    cb__interval gb_per_s; /* over sweeps: min, median, max of three */
    cb__interval folded;   /* time of three times the traffic over three times the time */
    cb_verdict verdict;
} cb__curve_point;

typedef struct cb__curve {
    cb__device_info device;
    cb__curve_point points[CB__CURVE_POINTS_MAX]; /* by threads, then by bytes */
    int n;
    int sweeps;      /* completed, of each thread count */
    double clock_hz; /* of one core, beside its best reading of the first cache; 0: unknown */
    double port_bound_gb_per_s; /* of one core: load ports x width x that clock; 0: unknown */
    cb__interval ceiling;       /* all threads, the largest set */
    cb__check checks[CB__CHECKS_MAX];
    int nchecks;
    bool complete;
    double wall_s, measure_s;
} cb__curve;

typedef struct cb__curve_request {
    const cb__suite *suite;
    unsigned isa;
    const char *device;
    int threads;
    bool quick; /* one size an octave, not two */
    uint64_t seed;
    cb__asker asker;
    void (*phase)(void *arg, const char *what, int round);
    void *arg;
} cb__curve_request;

/* CB_INTERRUPTED keeps the sweeps that were completed. */
cb_status cb__curve_measure(const cb__curve_request *request, cb__curve *out, cb_error *err);

#endif
