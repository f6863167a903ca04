/* crew.h: the processes of a case on a device that is slow to get hold of: those of the rounds take
 * it together while operands are filled, wait, and are measured one at a time; what is not timed
 * for a figure (other shapes, the choice of the twin, digests) is asked of one that stays. On other
 * devices every request has a process of its own. */
#ifndef CB_RUN_CREW_H
#define CB_RUN_CREW_H

#include "stats/rank_rule.h"
#include "worker/worker.h"

enum { CB__CREW_FDS_MAX = 32 };

typedef struct cb__crew {
    const cb__asker *asker; /* borrowed */
    const char *device;     /* borrowed */
    int threads;
    bool together; /* it is such a device */
    int fds[CB__CREW_FDS_MAX], nfds;
    cb__worker waiting[CB__ROUNDS_MIN], done[CB__ROUNDS_MIN], helper, filler;
    int nwaiting, opening, ndone; /* opening: of those waiting, the last that have not said so */
    bool has_helper, has_filler, helper_opening;
    cb__asker patient; /* the filler's */
} cb__crew;

cb_status cb__crew_init(cb__crew *crew, const cb__asker *asker, const char *device, int threads,
                        cb_error *err);
/* A memory file that requests will name; before anything is asked. */
void cb__crew_knows(cb__crew *crew, int fd);

/* Starts the processes of the least number of rounds, which take hold of the device meanwhile, and
 * the filling. Nothing where the device is not slow to get hold of. */
cb_status cb__crew_begin(cb__crew *crew, const cb__work *fill, double patience_s, cb_error *err);
/* The answer to `fill`, which begins here where it was not begun. */
cb_status cb__crew_filled(cb__crew *crew, const cb__work *fill, double patience_s,
                          cb__json **answer, cb_error *err);
/* As cb__ask, of the helper. After a failure it is ended, and the next request begins another. */
cb_status cb__crew_ask(cb__crew *crew, const cb__work *work, const char *type, cb__json **answer,
                       cb_error *err);
/* The helper's context may be of no more use: a launch of its failed. Killed: one that has lost its
 * device takes seconds to end. */
void cb__crew_drop_helper(cb__crew *crew);
/* As cb__ask, of a process that has done nothing else. */
cb_status cb__crew_round(cb__crew *crew, const cb__work *work, const char *type, cb__json **answer,
                         cb_error *err);
/* Ends all of them. */
void cb__crew_fini(cb__crew *crew);

#endif
