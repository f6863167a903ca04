/* pool.h: pinned worker threads that start together. The caller of cb__pool_run is worker 0.
 *
 * Between runs a worker spins for about a millisecond and then sleeps on a futex; cb__pool_hold
 * keeps the workers spinning (no sleep) while a region is being timed. No allocation, no lock and,
 * while spinning, no system call in cb__pool_run. */
#ifndef CB_HOST_POOL_H
#define CB_HOST_POOL_H

#include <stdbool.h>

#include "coldbench/status.h"

typedef struct cb__pool cb__pool;
typedef void (*cb__pool_fn)(void *arg, int worker, int workers);

/* `workers` threads, the caller included, worker i pinned to cpus[i] (the caller too). cpus NULL:
 * not pinned. */
cb_status cb__pool_new(const int *cpus, int workers, cb__pool **out, cb_error *err);
int cb__pool_workers(const cb__pool *pool);
/* fn(arg, w, workers) once on every worker; returns when all have finished. Only from the thread
 * that made the pool. */
void cb__pool_run(cb__pool *pool, cb__pool_fn fn, void *arg);
/* Inside fn: waits until every worker has come here. Reusable any number of times. Acquire-release.
 * Spins, and yields the CPU after a while, so that more workers than cores still get through. */
void cb__pool_barrier(cb__pool *pool, int worker);
void cb__pool_hold(cb__pool *pool, bool spinning);
void cb__pool_free(cb__pool *pool); /* NULL is fine; unpins the caller back to its old mask */

#endif
