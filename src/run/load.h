/* load.h: a bounded load of this machine: processes that keep its cores and caches busy. */
#ifndef CB_RUN_LOAD_H
#define CB_RUN_LOAD_H

#include <sys/types.h>

#include "coldbench/status.h"
#include "host/topology.h"

/* However its caller fares, a load ends by itself after this. */
#define CB__LOAD_LONGEST_S 180.0

typedef struct cb__load {
    pid_t pids[CB__CPUS_MAX];
    int n;
} cb__load;

/* One process a physical core of the affinity mask, pinned there, at most the container's quota. At
 * this program's own priority each computes for a while and streams through 8 MiB of its own, in
 * turn, for at most `longest_s`. They die with this process. Call it from a program of one thread;
 * on failure nothing is left running. */
cb_status cb__load_start(double longest_s, cb__load *load, cb_error *err);
/* Kills and reaps. CB_CRASHED where one had ended by itself: then what was measured beside it was
 * not measured under load. */
cb_status cb__load_stop(cb__load *load, cb_error *err);

#endif
