/* duel_internal.h: what duel.c (memory, arms, verification) and duel_blocks.c (the timed part)
 * share. */
#ifndef CB_MEASURE_DUEL_INTERNAL_H
#define CB_MEASURE_DUEL_INTERNAL_H

#include "measure/duel.h"

/* What every launch of an arm reads beside its operands. It begins a page, so that it lies in the
 * same sets of a first-level cache for every arm: a launch on 24 KiB takes 130 ns, and one line
 * more that misses is 3 % of it. */
typedef struct cb__duel_tables {
    cb__case c;
    cb__code code;
    cb__launch launches[]; /* one a set (cold), one a slot (warm) */
} cb__duel_tables;

typedef struct cb__duel_side {
    cb__duel_tables *tables;
    unsigned char *ring;
    int which;           /* of the duel's rings */
    int n;               /* launches */
    cb__batch *first;    /* the verified launches */
    cb__batch **batches; /* of the timed ones */
    double launch_ns;    /* of the former, in the faster of two phases; 0: none yet */
    cb__arm arm;
} cb__duel_side;

typedef struct cb__duel {
    cb__target target;
    const cb__duel_request *request;
    const cb__plan *plan; /* of the first arm: what all have alike */
    cb__duel_result *out;
    cb__duel_side sides[CB__DUEL_ARMS_MAX];
    int made[CB__DUEL_ARMS_MAX]; /* the arms in the order in which what they own is made */
    int nrings;
    unsigned char *rings[CB__DUEL_ARMS_MAX];
    int ring_fds[CB__DUEL_ARMS_MAX];
    uint64_t ring_digests[CB__DUEL_ARMS_MAX]; /* as last seen */
    unsigned char *slot_memory, *slots;
    void *scratch[CB_OPERANDS_MAX];
    unsigned char *staging; /* one slot on the host */
    int verified;
    bool restores; /* some arm's call reads what it writes */
    int cursor;    /* next set, or batch, of the rotation in work; all arms take from it */
    int failed;    /* arm whose launch failed; -1 */
    uint64_t draws;
} cb__duel;

uint64_t cb__duel_draw(cb__duel *duel);
/* A random order of the arms. */
void cb__duel_shuffle(cb__duel *duel, int *order);
void cb__duel_alive(cb__duel *duel);
/* Says which arm works from now on, to the parent and to a scripted device; -1, -1: none. */
void cb__duel_mark(cb__duel *duel, int arm, int place);
/* Lays poison of `phase` into one slot, as `arm` has its outputs in it; inout operands get their
 * initial contents. Allocates nothing. */
cb_status cb__duel_poison(cb__duel *duel, int arm, int slot, int phase, cb_error *err);
/* A launch that fails is the arm's finding, and ends the round. */
cb_status cb__duel_found(cb__duel *duel, int arm, cb_status status, cb_error *err);
/* Everything between the verified launches before and after: how many repeats, the blocks. */
cb_status cb__duel_time(cb__duel *duel, cb_error *err);

#endif
