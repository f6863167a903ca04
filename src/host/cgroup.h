/* cgroup.h: what the control groups of this process leave it, versions 1 and 2, every level from
 * its own group up to the root of what is mounted. `root` as in topology.h. */
#ifndef CB_HOST_CGROUP_H
#define CB_HOST_CGROUP_H

#include <stdint.h>

/* CPUs allowed, the least of all levels; 0: no limit. */
double cb__cgroup_quota(const char *root);
/* Bytes that can still be taken, page cache that would be dropped counted as free, the least of all
 * levels; UINT64_MAX: no limit. */
uint64_t cb__cgroup_memory_left(const char *root);

#endif
