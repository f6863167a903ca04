/* topology.h: processors, caches and limits of this process. */
#ifndef CB_HOST_TOPOLOGY_H
#define CB_HOST_TOPOLOGY_H

#include <stdbool.h>
#include <stdint.h>

#include "coldbench/status.h"

enum { CB__CPUS_MAX = 1024, CB__CACHES_MAX = 8 };

typedef struct cb__cache {
    int level;
    bool data;      /* data or unified */
    uint64_t bytes; /* of one instance */
    int shared_by;  /* logical CPUs that share one instance */
    int instances;  /* reachable from the affinity mask */
} cb__cache;

typedef struct cb__topology {
    char vendor[16]; /* "AuthenticAMD"; "unknown" */
    char model_name[96];
    int family, model, stepping; /* x86; 0 elsewhere */
    char uarch[24];              /* "zen3" "zen4" "zen5" "skylake-x" "icelake-x" "sapphire-rapids"
                                    "emerald-rapids" ...; "unknown" */
    int load_bytes_per_cycle; /* L1 load ports x width for the widest vectors this CPU and OS allow
                               * (Zen 2 to 4: 64; Zen 5 and Intel with AVX-512: 128; Intel AVX2
                               * client: 64, Golden Cove client 96); 0: unknown. Says source in
                               * topology.c */
    unsigned isa;             /* CB_ISA_* bits that this CPU and OS have */
    int ncpus;                /* logical CPUs in the affinity mask */
    int cpus[CB__CPUS_MAX];
    int ncores; /* physical cores in the mask: first CPU of each, in package/NUMA order */
    int cores[CB__CPUS_MAX];
    double quota; /* CPUs that the container allows (cgroup cpu.max or cfs quota); 0: no limit */
    int ncaches;
    cb__cache caches[CB__CACHES_MAX];
    uint64_t llc_bytes; /* sum of the last-level caches reachable from the mask */
    int numa_nodes;
    bool from_hwloc;
} cb__topology;

/* root: "" or a fixture folder holding proc/ and sys/ (then the affinity mask is all CPUs listed
 * online there). Missing files give smaller knowledge, never an error but CB_UNAVAILABLE when not
 * even one CPU is found. */
cb_status cb__topology_read(const char *root, cb__topology *out, cb_error *err);
/* One thread a physical core in the mask, at most the quota rounded down (at least 1). */
int cb__default_threads(const cb__topology *t);
/* "3 1" -> {3, 1}, at most CB__CPUS_MAX; how many, 0 where the text is anything else. */
int cb__processors_read(const char *text, int *cpus);

#endif
