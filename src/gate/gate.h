/* gate.h: two builds of the same kernels, case by case: did one get slower. */
#ifndef CB_GATE_GATE_H
#define CB_GATE_GATE_H

#include "compare/compare.h"
#include "gate/build.h"

enum { CB__GATE_CASES_MAX = 256, CB__GATE_ALONE_MAX = 128 };

typedef struct cb__gate_request {
    const char *base, *head; /* as cb__build_open takes them */
    const char *suite;       /* where neither kernel nor shape is given */
    const char *const *kernels, *const *shapes;
    int nkernels, nshapes;
    int cache; /* cb__cache_state of all cases; -1: the suite's own, else cold */
    cb__submit submit;
    double budget_s;      /* wall seconds of all cases; 0: 10 for each */
    double alpha, margin; /* margin 0: 1 % warm, 2 % cold */
    const char *device;
    int threads;
    unsigned isa;
    uint64_t seed;
    cb__asker asker;
    void (*phase)(void *arg, const char *what, int round);
    void *arg;
} cb__gate_request;

/* Name, text in records and tables. */
#define CB__GATE_OUTCOMES(X)                                                                       \
    X(CB__GATE_IDENTICAL, "identical") /* the same bytes: not measured */                          \
    X(CB__GATE_TIE, "tie")                                                                         \
    X(CB__GATE_FASTER, "faster")                                                                   \
    X(CB__GATE_UNDECIDED, "undecided")    /* also: base wrong, no memory */                        \
    X(CB__GATE_REFUSED, "not comparable") /* signatures, parameters or shapes do not agree */      \
    X(CB__GATE_REGRESSION, "regression")                                                           \
    X(CB__GATE_WRONG, "wrong") /* the head is wrong or impossible */

typedef enum cb__gate_outcome {
#define CB__GATE_ENUM(name, text) name,
    CB__GATE_OUTCOMES(CB__GATE_ENUM)
#undef CB__GATE_ENUM
} cb__gate_outcome;

typedef struct cb__gate_case {
    char variant[256];
    const char *shape; /* NULL: the kernel has none */
    cb__cache_state cache;
    int base, head; /* modules of the builds */
    bool identical;
    cb_error refused;
    cb__compare_request request;
    cb__comparison comparison;
} cb__gate_case;

typedef struct cb__gate {
    cb__build base, head;
    cb__gate_case *cases;
    int ncases, nmeasured;
    int current; /* the case that is measured now */
    /* Kernels on one side only. Borrowed from the builds. */
    const char *base_alone[CB__GATE_ALONE_MAX], *head_alone[CB__GATE_ALONE_MAX];
    int nbase_alone, nhead_alone;
    double budget_s, wall_s;
} cb__gate;

/* Opens both builds and lists the cases, each once. CB_USAGE also where a build id has two sources,
 * where no kernel is on both sides, and where both sides refuse a variant, shape or cache state.
 * cb__gate_close after, also on failure; *gate is zero before. */
cb_status cb__gate_open(const cb__gate_request *request, cb__gate *gate, cb_error *err);
/* Cases that are to be measured: those not identical. */
int cb__gate_to_measure(const cb__gate *gate);
/* What cannot be planned is the case's `refused` and CB_OK. CB_USAGE: the budget is below the
 * minimum, which it names. */
cb_status cb__gate_plan(const cb__gate_request *request, const cb__device_info *info,
                        uint64_t beyond_bytes, cb__gate *gate, cb_error *err);
/* CB_INTERRUPTED keeps what was measured. */
cb_status cb__gate_measure(cb__arena *arena, cb__gate *gate, cb_error *err);
void cb__gate_close(cb__gate *gate);

cb__gate_outcome cb__gate_outcome_of(const cb__gate_case *c);
/* Of all cases: the most serious. CB__GATE_FASTER and ties together: a tie. */
cb__gate_outcome cb__gate_verdict(const cb__gate *gate);
/* Static storage; of a whole gate "pass" stands for tie. */
const char *cb__gate_outcome_name(cb__gate_outcome outcome);
const char *cb__gate_verdict_name(cb__gate_outcome verdict);
/* The exit status of the command: 0, 1 or 4. */
int cb__gate_exit(const cb__gate *gate);

#endif
