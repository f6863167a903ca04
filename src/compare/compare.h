/* compare.h: which variant is faster, by how much, how sure: rounds of fresh processes, every arm
 * on one ring, until every pair is decided or the budget is spent. */
#ifndef CB_COMPARE_COMPARE_H
#define CB_COMPARE_COMPARE_H

#include "base/arena.h"
#include "measure/checks.h"
#include "stats/decision.h"
#include "stats/thetas.h"
#include "worker/worker.h"

/* The first side has a second copy, an arm of its own. */
enum {
    CB__SIDES_MAX = CB__ARMS_MAX - 1,
    CB__PAIRS_MAX = CB__SIDES_MAX * (CB__SIDES_MAX - 1) / 2,
    CB__COMPARE_BLOCKS_MAX = 1000 /* of a round */
};

typedef struct cb__compare_request {
    const cb__suite *suite;
    /* Where a side's variant is looked up instead, so that two modules may have kernels of one
     * name; NULL: in `suite`. */
    const cb__suite *suites[CB__SIDES_MAX];
    unsigned isa;
    const char *device;
    int threads;
    const char *variants[CB__SIDES_MAX];
    int nsides;
    const char *shape;
    cb__cache_state cache;
    cb__submit submit;
    double budget_s;      /* of this comparison */
    double alpha, margin; /* margin: 0.01 for 1 % */
    int claims;           /* pairs that the whole command decides: alpha is shared by them */
    uint64_t seed;
    uint64_t beyond_bytes; /* a set this large is in memory, as probed; 0: not known */
    cb__asker asker;
    void (*phase)(void *arg, const char *what, int round); /* may be NULL: progress for a person */
    void *arg;
    const struct cb__round_process *process; /* NULL: a worker of this program's own */
} cb__compare_request;

/* Where the process of a round comes from, and whether it outlives the round. */
typedef struct cb__round_process {
    /* The process may use `fds`; `environment` is this program's with a padding. */
    cb_status (*start)(void *arg, const cb__asker *asker, char *const *environment, const int *fds,
                       int nfds, cb__worker *out, cb_error *err);
    void (*end)(void *arg, cb__worker *worker, bool good);
    void *arg;
} cb__round_process;

/* What one round brought home. Arm 0 is the first side, arm 1 its second copy, where that side is
 * still in; then the others. */
typedef struct cb__compare_round {
    int arms;
    int side[CB__ARMS_MAX]; /* of each arm */
    cb__duel_answer answer;
    cb__round_estimate estimate;
    uint64_t seed;
    double wall_s; /* the process's start and verification included */
} cb__compare_round;

typedef struct cb__compare_side {
    char name[160]; /* as it was asked for */
    cb__case c;
    cb__plan plan;
    cb__evidence evidence;
    cb__check checks[CB__CHECKS_MAX];
    int nchecks;
    cb_verdict verdict; /* of what can be said of it alone: ok, wrong, impossible, unknown */
    int ring;           /* the side whose ring it runs on: its own where it packs differently */
    bool steady;        /* its outputs were the same bits every time */
    uint64_t digest;    /* of its outputs over all verified shapes */
    cb__interval time_ns;
} cb__compare_side;

typedef struct cb__compare_pair {
    int a, b; /* sides */
    cb__rank_rule rule;
    cb__claim claim;
    cb__decision decision;
    bool aa;            /* the same code on both sides */
    bool bit_identical; /* equal digests over all verified shapes; false too where unknown */
    bool dispatch;      /* both within 1.25x of an empty kernel */
} cb__compare_pair;

typedef struct cb__comparison {
    cb__device_info device;
    char shape[96];
    cb__cache_state cache;
    cb__submit submit;
    double alpha, margin;
    int claims;
    cb__compare_side sides[CB__SIDES_MAX];
    int nsides;
    cb__layout layout;
    cb__compare_pair pairs[CB__PAIRS_MAX];
    int npairs;
    cb__compare_round *rounds[CB__ROUNDS_MAX];
    int nrounds;
    cb__rank_rule gate; /* of the first side and its second copy */
    bool gate_closed;
    double position_effect; /* median over rounds, in logs; NaN: none */
    double floor_ns, gap_ns;
    int rings, ragged; /* files of operands; other shapes that were verified */
    int best;          /* side; -1: none, or two sides only */
    bool tied[CB__SIDES_MAX];
    double wall_s, measure_s;
    bool measured, complete;
    char why[1000];       /* it ended before every pair was decided; "": it did not */
    cb_resident resident; /* warm: what the machine model says; set by the caller */
    uint64_t seed;
} cb__comparison;

/* Parses and plans: CB_USAGE for kernels of different signatures and for parameters that differ and
 * are not spelled on both sides. */
cb_status cb__compare_plan(const cb__compare_request *request, const cb__device_info *info,
                           cb__comparison *out, cb_error *err);
/* The same of cases that are parsed already, one a side; the request's variants are their names. */
cb_status cb__compare_plan_cases(const cb__compare_request *request, const cb__device_info *info,
                                 const cb__case *cases, cb__comparison *out, cb_error *err);
/* Smallest budget of a planned comparison, in seconds. */
double cb__compare_budget_min(const cb__comparison *c);
/* Measures a planned comparison; samples lie in the arena. A side that is wrong, crashes or hangs
 * is its verdict and CB_OK; CB_INTERRUPTED keeps what was measured, with complete false. */
cb_status cb__compare_measure(const cb__compare_request *request, cb__arena *arena,
                              cb__comparison *out, cb_error *err);

/* The smallest effect that these rounds could have told from none, in logs: of a decision that
 * names a difference half its interval, else the larger of its ends. Infinite: none, also of an
 * unstable one. */
double cb__compare_detectable(const cb__compare_pair *pair);
/* exp of lower, estimate, upper: time of b over time of a; coverage 1 - alpha over all claims. An
 * unstable one's rounds have no interval in common: 0 to infinity. */
cb__interval cb__compare_ratio(const cb__comparison *c, const cb__compare_pair *pair);
/* Of the first side's second copy over itself: median and order statistics over the rounds. */
cb__interval cb__compare_aa_ratio(const cb__comparison *c);
/* Rounds without which the A/A gate cannot close, whatever they say. */
int cb__compare_gate_rounds(const cb__comparison *c);

#endif
