/* crew.h: processes that start together, take hold of a device that is slow to get hold of, wait,
 * are asked one at a time, and end together. How many, and what each is started with, is the
 * user's. */
#ifndef CB_WORKER_CREW_H
#define CB_WORKER_CREW_H

#include "stats/rank_rule.h"
#include "worker/worker.h"

enum { CB__CREW_MAX = CB__ROUNDS_MIN + 1 }; /* the least number of rounds, and one beside them */

typedef struct cb__crew {
    cb_status (*start)(void *arg, cb__worker *worker, cb_error *err); /* a process of its own */
    void *arg;
    cb__work open; /* the request by which one takes hold of the device; its strings are borrowed */
    cb__worker waiting[CB__CREW_MAX], done[CB__CREW_MAX];
    int nwaiting, ndone; /* done: over, and not ended yet */
    int opening;         /* of those waiting: the last that have not said that they have it */
    double waited_s;     /* in all, until they had it: no one request's cost */
} cb__crew;

/* Starts n, of which none waits yet, and does not wait for them. After a failure there are none. */
cb_status cb__crew_begin(cb__crew *crew, int n, cb_error *err);
/* One that has the device, and with it all that wait. Where none does, those that are done are
 * ended, and `more` are started. After a failure there are none. */
cb_status cb__crew_take(cb__crew *crew, int more, cb__worker *worker, cb_error *err);
/* One that is over, of the crew or beside it. Not `good`: it is ended at once, and all that wait
 * with it, since what they hold may be filled again. */
void cb__crew_leave(cb__crew *crew, const cb__worker *worker, bool good);
/* Tells all of them to end, and does not wait. cb__crew_clear follows all the same. */
void cb__crew_dismiss(cb__crew *crew);
/* Ends all of them: what is done by itself, what waits killed. */
void cb__crew_clear(cb__crew *crew);

/* Of a process beside them: sends it `open`, or ends it; awaits the answer. */
cb_status cb__crew_send_open(const cb__crew *crew, cb__worker *worker, cb_error *err);
cb_status cb__crew_await_open(cb__worker *worker, cb_error *err);

#endif
