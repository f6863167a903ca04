/* run.h: `run`: a case measured over rounds, each in a fresh process, until it has settled or its
 * budget is spent. */
#ifndef CB_RUN_RUN_H
#define CB_RUN_RUN_H

#include "base/arena.h"
#include "measure/checks.h"
#include "model/model.h"
#include "stats/rank_rule.h"
#include "worker/worker.h"

/* As few and as many rounds as a comparison has. */
enum { CB__BLOCKS_MIN = 5, CB__BLOCKS_MAX = 60 };

typedef struct cb__run_request {
    const cb__suite *suite;
    unsigned isa;
    const char *device;
    int threads;
    const char *module; /* file of the user's module that holds the kernel; NULL: embedded */
    const char *variant, *shape;
    bool caches[2];  /* by cb__cache_state */
    bool submits[2]; /* by cb__submit */
    double budget_s; /* of this case */
    uint64_t seed;
    const cb_model *model; /* of this device; NULL: none */
    cb__asker asker;
    void (*phase)(void *arg, const char *what, int round); /* may be NULL: progress for a person */
    void *arg;
} cb__run_request;

/* One row's samples of one round. */
typedef struct cb__run_round {
    const double *kernel_ns, *twin_ns, *host_ns;
    const int64_t *order;
    int n, repeats, readings;
} cb__run_round;

typedef struct cb__run_row {
    cb__evidence evidence;
    cb__interval gflop_per_s, of_ceiling, host_ns;
    cb__run_round rounds[CB__ROUNDS_MAX];
    int nrounds;
    cb__check checks[CB__CHECKS_MAX];
    int nchecks;
    cb_verdict verdict;
    char residency[160];
} cb__run_row;

/* Where the time of a case goes. */
typedef enum cb__stage_name {
    CB__STAGE_SHAPES, /* verifying other shapes; a GPU's rings are filled meanwhile */
    CB__STAGE_FILL,
    CB__STAGE_TWIN, /* choosing it */
    CB__STAGE_ROUNDS,
    CB__STAGE_INPUTS, /* whether anything wrote into the operands */
    CB__STAGES
} cb__stage_name;

typedef struct cb__run_case {
    cb__case c;
    cb__plan plan;
    cb__device_info device;
    char twins[2][96]; /* the variant picked for each cache state; "" without one */
    cb__run_row rows[CB__MODES_MAX];
    int nrows;
    double wall_s, measure_s, prepare_ns, stages_s[CB__STAGES];
    char telemetry[160]; /* of the last round; "": none */
    bool complete;
} cb__run_case;

/* Asks a worker what the device is. */
cb_status cb__run_describe(const cb__run_request *request, cb__device_info *info, cb_error *err);

/* Whether a case can be measured here, before anything is: parsed, planned, memory counted. Fills
 * out's c, plan, device. */
cb_status cb__run_plan(const cb__run_request *request, const cb__device_info *info,
                       cb__run_case *out, cb_error *err);

/* Measures a planned case. Samples lie in the arena. A failure of a worker that is the case's own
 * (crash, hang, garbage, wrong output) is a verdict and CB_OK; CB_INTERRUPTED keeps what was
 * measured, with complete false; anything else is an error. */
cb_status cb__run_measure(const cb__run_request *request, cb__arena *arena, cb__run_case *out,
                          cb_error *err);

/* As cb__run_measure, without timing it: verifies it on other shapes, which takes a few launches.
 * The rows' checks of what is right are all that is said. */
cb_status cb__run_verify(const cb__run_request *request, cb__arena *arena, cb__run_case *out,
                         cb_error *err);

/* Smallest budget of a planned case, in whole seconds: below it not even its ring can be filled. */
double cb__run_budget_min(const cb__run_case *c);

#endif
