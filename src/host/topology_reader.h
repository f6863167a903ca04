/* topology_reader.h: what the two readers (hwloc, sysfs) fill in; topology.c makes the rest of it.
 */
#ifndef CB_HOST_TOPOLOGY_READER_H
#define CB_HOST_TOPOLOGY_READER_H

#include "host/topology.h"

/* Where one logical CPU is. Two CPUs with the same core are SMT siblings. */
typedef struct cb__place {
    int core; /* the lowest CPU number of its physical core */
    int package, node;
} cb__place;

/* The CPUs that this process may use (a fixture: that are online). Returns how many. */
int cb__sysfs_cpus(const char *root, bool *set);
/* Both fill place[i] for t->cpus[i], t->caches (instances reachable from t->cpus) and
 * t->numa_nodes. */
void cb__sysfs_places(const char *root, cb__topology *t, cb__place *place);
/* false where this build has no hwloc or hwloc finds nothing: then t is unchanged. */
bool cb__hwloc_places(cb__topology *t, cb__place *place);

/* One more reachable instance of a cache of that kind. */
void cb__topology_add_cache(cb__topology *t, int level, bool data, uint64_t bytes, int shared_by);

/* uarch.c: vendor, model, uarch, load_bytes_per_cycle and isa from /proc/cpuinfo; isa of the real
 * system from the processor itself. */
void cb__uarch_read(const char *root, cb__topology *t);

#endif
