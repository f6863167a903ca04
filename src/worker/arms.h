/* arms.h: the sides of a comparison as a worker has them: every arm an image of its module of its
 * own. */
#ifndef CB_WORKER_ARMS_H
#define CB_WORKER_ARMS_H

#include "worker/work.h"

enum { CB__JUNK_MAX = CB__DUEL_ARMS_MAX + 1 };

typedef struct cb__arms {
    int n;
    cb__suite suites[CB__DUEL_ARMS_MAX]; /* of one module */
    cb__case cases[CB__DUEL_ARMS_MAX];
    cb__plan plans[CB__DUEL_ARMS_MAX];
    cb__duel_own own[CB__DUEL_ARMS_MAX]; /* of functions */
    void *junk[CB__JUNK_MAX];            /* random pages between the images */
    size_t junk_bytes[CB__JUNK_MAX];
    int njunk;
} cb__arms;

/* Loads every arm's module from a new memory file, in random order, with random pages taken between
 * them, parses and plans the arms. `arms` is zero before; cb__arms_close after, also on failure. */
cb_status cb__arms_open(const cb__work *work, unsigned isa, cb__arms *arms, cb_error *err);
void cb__arms_close(cb__arms *arms);
/* One round, from a random depth of the stack. */
cb_status cb__arms_duel(const cb__work *work, cb__target target, const cb__arms *arms,
                        cb__arena *arena, void (*alive)(void *arg), void *alive_arg,
                        cb__duel_answer *answer, cb_error *err);

#endif
