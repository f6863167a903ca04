/* processes.h: those of a case on a device that is slow to get hold of: a crew for the rounds takes
 * it while operands are filled; what is not timed for a figure (other shapes, the choice of the
 * twin, digests) is asked of one that stays, the helper. On other devices every request has a
 * process of its own. */
#ifndef CB_RUN_PROCESSES_H
#define CB_RUN_PROCESSES_H

#include "worker/crew.h"

enum { CB__PROCESSES_FDS_MAX = 32 };

typedef struct cb__processes {
    const cb__asker *asker; /* borrowed */
    bool together;          /* it is such a device */
    int fds[CB__PROCESSES_FDS_MAX], nfds;
    cb__crew crew;
    cb__worker helper, filler;
    bool has_helper, has_filler, helper_opening;
    cb__asker patient; /* the filler's */
} cb__processes;

/* `device` is borrowed. together: it is slow to get hold of. */
void cb__processes_init(cb__processes *p, const cb__asker *asker, const char *device, int threads,
                        bool together);
/* A memory file that requests will name; before anything is asked. */
void cb__processes_knows(cb__processes *p, int fd);

/* Starts the processes of the least number of rounds, which take hold of the device meanwhile, and
 * the filling. Nothing where the device is not slow to get hold of. */
cb_status cb__processes_begin(cb__processes *p, const cb__work *fill, double patience_s,
                              cb_error *err);
/* The answer to `fill`, which begins here where it was not begun. */
cb_status cb__processes_filled(cb__processes *p, const cb__work *fill, double patience_s,
                               cb__json **answer, cb_error *err);
/* As cb__ask, of the helper. After a failure it is ended, and the next request begins another. */
cb_status cb__processes_ask(cb__processes *p, const cb__work *work, const char *type,
                            cb__json **answer, cb_error *err);
/* The helper's context may be of no more use: a launch of its failed. Killed: one that has lost its
 * device takes seconds to end. */
void cb__processes_drop_helper(cb__processes *p);
/* As cb__ask, of a process that has done nothing else. */
cb_status cb__processes_round(cb__processes *p, const cb__work *work, const char *type,
                              cb__json **answer, cb_error *err);
/* Ends all of them. */
void cb__processes_fini(cb__processes *p);

#endif
