/* duel.h: one round of a comparison: every arm once a block, in random order, on one ring. Runs in
 * a worker of its own: one process, one round. */
#ifndef CB_MEASURE_DUEL_H
#define CB_MEASURE_DUEL_H

#include "measure/bench.h"
#include "measure/poison.h"

enum { CB__DUEL_ARMS_MAX = 16 };

/* How an arm is verified whose outputs are not the plan's: functions of a program of the user's. */
typedef struct cb__duel_own {
    void (*before)(void *arg, int phase); /* the call that is looked at: lays poison */
    /* After it: a digest of what it wrote. CB_WRONG with the reason is the arm's finding. */
    cb_status (*after)(void *arg, int phase, uint64_t *digest, cb_error *err);
    void *arg;
} cb__duel_own;

/* One side. What it points to is borrowed. */
typedef struct cb__duelist {
    const cb__case *c;       /* bound to an image of its module that no other arm has */
    const cb__plan *plan;    /* of cb__plan_arms over all of them */
    int ring_fd;             /* filled already; equal for arms that share one */
    uint64_t ring_digest;    /* as it was filled */
    const cb__duel_own *own; /* NULL, or for every arm: one call a phase is verified, this way */
} cb__duelist;

typedef struct cb__duel_request {
    const cb__duelist *arms;
    int narms;
    cb__cache_state cache;
    cb__submit submit;
    uint64_t seed;        /* of this round */
    uint64_t poison_seed; /* the same in every round: so are the bytes around the outputs */
    uint64_t elapsed_ns;  /* device time of earlier rounds */
    int blocks;           /* at most; 0: verify only */
    int blocks_min;       /* even when that takes longer than: */
    uint64_t limit_ns;    /* no block begins later than this after the first */
    /* Launches of one batch, batches (solo: launches) of one reading, readings of one slot; 0: for
     * this round to find out. */
    int batch, repeats, readings;
    /* Digests of what each arm's verified slots must hold, arm by arm; NULL, or one that differs:
     * the slots are handed over for a look in full. */
    const uint64_t *expected;
    bool floor;  /* time the empty kernel */
    bool digest; /* look after each arm's first verified launches whether it edited its ring */
    /* Between blocks and verified launches, never within a block. */
    void (*alive)(void *arg);
    void *alive_arg;
    /* In memory that outlives this process: the arm in work + 1, 0 between them. Names the one that
     * crashes. */
    volatile int32_t *at_work;
    unsigned char *exchange; /* where slots are handed over */
    uint64_t exchange_bytes;
} cb__duel_request;

typedef struct cb__duelist_result {
    uint64_t digests[CB__PHASES]; /* of the verified slots, by phase */
    bool edits;                   /* the ring changed under it, where that was looked at */
    cb_error launch;              /* a launch failed */
} cb__duelist_result;

/* A verified slot that was handed over: whose, and where it lies in the exchange. */
typedef struct cb__duel_entry {
    int arm, phase, slot, set;
    uint64_t offset;
} cb__duel_entry;

typedef struct cb__duel_result {
    cb__duelist_result arms[CB__DUEL_ARMS_MAX];
    cb__duel_entry *entries; /* room for cb__duel_entries() */
    int nentries;
    int blocks;           /* that were run; 0 also where a launch failed */
    double *ns;           /* [block * narms + arm]: a launch, by the slot's clock */
    int64_t *order;       /* [block * narms + place]: the arm that was there */
    int64_t *involuntary; /* [block]: context switches during it */
    double gap_ns;        /* median from the end of a slot to the start of the next of its block */
    int batch, repeats, readings;
    double floor_ns;  /* NaN where it was not asked for */
    double launch_ns; /* a verified launch of the slowest arm, about; 0: none */
    uint64_t measured_ns, elapsed_ns;
} cb__duel_result;

/* How many slots a round hands over at most, and the bytes of the exchange for them. */
int cb__duel_entries(const cb__plan *plan, int narms);
uint64_t cb__duel_exchange_bytes(const cb__plan *plan, int narms);

/* `out`'s arrays have room for `blocks`. A failed launch is that arm's finding and CB_OK. Verified
 * slots that are not as expected are handed over. */
cb_status cb__duel_run(cb__target target, const cb__duel_request *request, cb__duel_result *out,
                       cb_error *err);

#endif
