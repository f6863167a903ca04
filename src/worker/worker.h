/* worker.h: a measuring process, from both ends. */
#ifndef CB_WORKER_WORKER_H
#define CB_WORKER_WORKER_H

#include <stdio.h>

#include "host/spawn.h"
#include "worker/functions.h"
#include "worker/work.h"

/* The one argument that makes a program a worker. */
#define CB__WORKER_FLAG "--coldbench-worker"

/* Serves requests from `in` until it ends, answers on `out`. The exit status. With `functions` a
 * duel is of those. */
int cb__worker_serve(FILE *in, int out, cb__functions *functions);

/* How to start a worker: by default this program again. */
typedef struct cb__worker_command {
    char *const *argv; /* NULL: {"/proc/self/exe", CB__WORKER_FLAG} */
} cb__worker_command;

typedef struct cb__asker {
    cb__worker_command command;
    const volatile int *stop; /* may be NULL; nonzero: CB_INTERRUPTED */
    double silence_s;         /* a worker that says nothing for this long hangs */
    uint64_t until_ns; /* on cb__clock_ns: one that has not answered by then has not; 0: no end */
    void (*progress)(void *arg, double done); /* may be NULL */
    void *arg;
} cb__asker;

/* A started worker, for more than one request. */
typedef struct cb__worker {
    const cb__asker *asker;
    cb__child child;
} cb__worker;

/* `fds` (nfds) are what its requests will name. environment: NULL: this program's own. */
cb_status cb__worker_start(const cb__asker *asker, char *const *environment, const int *fds,
                           int nfds, cb__worker *out, cb_error *err);
/* As cb__ask; after a failure the worker is of no more use. */
cb_status cb__worker_ask(cb__worker *worker, const cb__work *work, const char *type,
                         cb__json **answer, cb_error *err);
/* Its two halves, so that several workers are at work on their requests at once. */
cb_status cb__worker_send(cb__worker *worker, const cb__work *work, cb_error *err);
cb_status cb__worker_await(cb__worker *worker, const char *type, cb__json **answer, cb_error *err);
/* No request will follow: it begins to end by itself. cb__worker_end follows all the same. */
void cb__worker_dismiss(cb__worker *worker);
/* With `wait` it may end by itself; else it is killed. */
void cb__worker_end(cb__worker *worker, bool wait);

/* Starts a worker, asks it `work`, waits for the answer, ends it. `type` is the answer's type that
 * is right. *answer is the caller's to free. A death, silence or a line that is not the protocol's:
 * CB_CRASHED, CB_TIMEOUT, CB_GARBAGE; a worker's own error: as it says. */
cb_status cb__ask(const cb__asker *asker, const cb__work *work, const char *type, cb__json **answer,
                  cb_error *err);

/* Asks a worker of its own what the device is. threads 0: the default. */
cb_status cb__describe(const cb__asker *asker, const char *device, int threads,
                       cb__device_info *info, cb_error *err);

#endif
