/* session.h: a comparison in work. Shared by the files of this folder. */
#ifndef CB_COMPARE_SESSION_H
#define CB_COMPARE_SESSION_H

#include "compare/compare.h"
#include "worker/crew.h"

enum { CB__RAGGED_MAX = 4 };

/* Memory that a virtual machine has never had before comes at this rate at worst, without a word in
 * between. */
#define CB__SLOWEST_BYTES_PER_S 2e8

/* One shape of all sides: what is verified, the expected outputs, and where they are handed over.
 */
typedef struct cb__stage {
    char shape[96];
    bool cold;
    cb__case cases[CB__SIDES_MAX];
    cb__plan plans[CB__SIDES_MAX];
    cb__layout layout;
    cb__region heads[CB__SIDES_MAX];      /* operands of the verified sets */
    cb__region references[CB__SIDES_MAX]; /* f64 values and bounds */
    cb__reference expected[CB__SIDES_MAX];
    cb__region exchange;
    int ring[CB__SIDES_MAX]; /* the first side with the same operands */
    uint64_t ring_digests[CB__SIDES_MAX];
    uint64_t digests[CB__SIDES_MAX]; /* of the verified outputs; 0 before the first look */
    bool seen[CB__SIDES_MAX];
} cb__stage;

typedef struct cb__comparing {
    const cb__compare_request *request;
    cb__comparison *out;
    cb__arena *arena;
    cb__stage stages[1 + CB__RAGGED_MAX]; /* [0]: the shape that is asked */
    int nstages;
    int module_fds[CB__SIDES_MAX];   /* the user's files, as they were at the start; -1 */
    cb__region rings[CB__SIDES_MAX]; /* cold: of those sides that have one of their own */
    int batch, repeats, readings;    /* as the first round found out */
    cb__crew crew;                   /* of the rounds, where they are parked: park.c */
    cb__worker early;                /* for the other shapes, where `has_early` */
    bool has_early;
    uint64_t started; /* workers that were parked, each with an environment of its own */
    int attempts;     /* rounds begun, each with a seed of its own */
    cb__work last;    /* request of a round */
    bool spent;       /* the budget ended before what was asked for did */
    uint64_t start_ns, device_ns;
} cb__comparing;

/* stage.c */
cb_status cb__stages_open(cb__comparing *s, cb_error *err);
void cb__stages_close(cb__comparing *s);
/* Fills every stage, finds out which sides share a ring, and fills the rings. What a side's own
 * code does to the filling worker is the side's verdict. */
cb_status cb__stages_fill(cb__comparing *s, cb_error *err);
/* One stage again, after a side has edited its operands. */
cb_status cb__stage_refill(cb__comparing *s, cb__stage *stage, cb_error *err);
/* The same of stages [first, last]: after a process that held their files has misbehaved. */
cb_status cb__stages_refill(cb__comparing *s, int first, int last, cb_error *err);
/* Digests the rings again: what the rounds have done to them is found, and by whom. */
cb_status cb__stages_inputs(cb__comparing *s, cb_error *err);
/* Whether what the sides read is still what was filled in. */
bool cb__rings_intact(const cb__comparing *s, const cb__stage *stage);
int cb__ring_fd(const cb__comparing *s, const cb__stage *stage, int side);

/* round.c */
/* A request that names every side still in, `copies`: and the first side's second copy. Gives the
 * number of arms; side[arm]. */
int cb__arms_of(const cb__comparing *s, const cb__stage *stage, bool copies, cb__work *work,
                int side[CB__ARMS_MAX]);
/* One verified but untimed run of every side on a ragged stage; all stages in one process, again
 * without a side that breaks it. */
cb_status cb__verify_ragged(cb__comparing *s, cb_error *err);
/* One round. Without `*done` a side has dropped out of it, and it is not counted. */
cb_status cb__compare_one_round(cb__comparing *s, uint64_t limit_ns, int blocks, int blocks_min,
                                bool *done, cb_error *err);
/* A worker for these stages; the seed gives its environment. */
cb_status cb__round_start(cb__comparing *s, cb__stage *stages, int nstages, uint64_t seed,
                          const cb__asker *asker, cb__worker *worker, cb_error *err);
cb__work cb__round_work(const cb__comparing *s, const cb__stage *stage, bool copies,
                        int side[CB__ARMS_MAX]);
cb_status cb__round_ask(cb__comparing *s, cb__stage *stage, cb__worker *worker,
                        const cb__work *work, cb__duel_answer *answer, cb_error *err);
/* Ends a worker whose requests went as `status` says; gives that, or CB_CRASHED where all was well
 * until it was to end. */
cb_status cb__round_end(cb__comparing *s, cb__worker *worker, cb_status status, cb_error *err);
/* Everything that an answer says of its sides becomes their evidence. */
void cb__round_findings(cb__comparing *s, cb__stage *stage, const cb__work *work,
                        const cb__duel_result *r, const int *side);
/* The arm that was in work plus 1, as the exchange says; anything, since sides can write there. */
int cb__round_at_work(const cb__stage *stage);
bool cb__side_in(const cb__comparing *s, int side);
int cb__sides_in(const cb__comparing *s);

/* alone.c */
/* A request `as` for stages [first, last] failed as *err says (which is consumed) while several
 * sides were at it: each is tried alone. Where that finds nobody: `suspect` did it; -1: it stays
 * unclear. CB_OK, with all stages filled again that the process held, or why nothing can go on. */
cb_status cb__alone(cb__comparing *s, int first, int last, const cb__work *as, int suspect,
                    cb_error *err);
/* The same of a worker that did not come back. A hang has a name, or it is the budget's end. */
cb_status cb__blame(cb__comparing *s, int first, int last, const cb__work *as, const int *side,
                    const cb__asker *asker, cb_error *err);

/* compare.c: how long a worker is waited for: no longer than the budget has room for, and
 * patience_s. */
cb__asker cb__asker_within(const cb__comparing *s, double patience_s);
/* After its time-out: the budget is spent; the silence was cut short by what was left of it. */
bool cb__asker_spent(const cb__asker *asker);
bool cb__asker_hurried(const cb__comparing *s, const cb__asker *asker);
/* Whether launches as long as these leave any hope; else it is told, and `spent`. */
bool cb__budget_holds(cb__comparing *s, const cb__duel_result *r);

/* park.c: processes of rounds on a device that is slow to get hold of. */
/* Whether rounds of this comparison are parked. */
bool cb__parks(const cb__comparing *s);
/* Starts the first of them, which take hold of the device while the operands are filled. */
cb_status cb__park_begin(cb__comparing *s, cb_error *err);
/* The process that was started for the shapes behind the first; false: there is none (any more).
 */
bool cb__park_take_early(cb__comparing *s, cb__worker *worker);
/* One of the crew, to be left to it after its round. */
cb_status cb__park_take(cb__comparing *s, cb__worker *worker, cb_error *err);
/* Ends the crew, and the process for the other shapes where it was not taken. */
void cb__park_clear(cb__comparing *s);

/* judge.c */
/* Claims, gate and decisions from all rounds so far; the new one is the last. */
void cb__pairs_init(cb__comparing *s);
void cb__pairs_add(cb__comparing *s, const cb__compare_round *round);
/* spent: no round will follow. Gives whether every pair is decided. */
bool cb__pairs_judge(cb__comparing *s, bool spent);
void cb__sides_judge(cb__comparing *s);
void cb__best_of(cb__comparison *c);

const cb__suite *cb__side_suite(const cb__compare_request *request, int side);
cb__work cb__compare_work(const cb__comparing *s, const cb__stage *stage, const char *op);

#endif
