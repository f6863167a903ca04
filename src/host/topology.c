#include "host/topology.h"

#include <stdlib.h>
#include <string.h>

#include "host/cgroup.h"
#include "host/topology_reader.h"

void cb__topology_add_cache(cb__topology *t, int level, bool data, uint64_t bytes, int shared_by)
{
    for (int i = 0; i < t->ncaches; i++) {
        cb__cache *c = &t->caches[i];
        if (c->level == level && c->data == data && c->bytes == bytes) {
            c->instances++;
            return;
        }
    }
    if (t->ncaches < CB__CACHES_MAX)
        t->caches[t->ncaches++] = (cb__cache){level, data, bytes, shared_by, 1};
}

static int by_level(const void *a, const void *b)
{
    const cb__cache *x = a, *y = b;
    return x->level != y->level ? x->level - y->level : (int)y->data - (int)x->data;
}

static uint64_t last_level_bytes(const cb__topology *t)
{
    int last = 0;
    uint64_t bytes = 0;
    for (int i = 0; i < t->ncaches; i++)
        if (t->caches[i].data && t->caches[i].level > last)
            last = t->caches[i].level;
    for (int i = 0; i < t->ncaches; i++)
        if (t->caches[i].data && t->caches[i].level == last)
            bytes += t->caches[i].bytes * (uint64_t)t->caches[i].instances;
    return bytes;
}

typedef struct core {
    cb__place place;
    int cpu;
} core;

static int by_place(const void *a, const void *b)
{
    const core *x = a, *y = b;
    if (x->place.package != y->place.package)
        return x->place.package - y->place.package;
    if (x->place.node != y->place.node)
        return x->place.node - y->place.node;
    return x->cpu - y->cpu;
}

/* The first CPU in the mask of every core, cores of one package and node together. */
static void find_cores(cb__topology *t, const cb__place *place)
{
    core cores[CB__CPUS_MAX];
    int n = 0;
    for (int i = 0; i < t->ncpus; i++) {
        int seen = 0;
        while (seen < n && cores[seen].place.core != place[i].core)
            seen++;
        if (seen == n)
            cores[n++] = (core){place[i], t->cpus[i]};
    }
    qsort(cores, (size_t)n, sizeof *cores, by_place);
    for (int i = 0; i < n; i++)
        t->cores[i] = cores[i].cpu;
    t->ncores = n;
}

cb_status cb__topology_read(const char *root, cb__topology *out, cb_error *err)
{
    bool set[CB__CPUS_MAX] = {false};
    cb__place place[CB__CPUS_MAX];
    memset(out, 0, sizeof *out);
    cb__sysfs_cpus(root, set);
    for (int cpu = 0; cpu < CB__CPUS_MAX; cpu++)
        if (set[cpu])
            out->cpus[out->ncpus++] = cpu;
    if (out->ncpus == 0)
        return cb_error_set(err, CB_UNAVAILABLE, "no CPU found in the affinity mask or below '%s/'",
                            root);
    cb__uarch_read(root, out);
    out->from_hwloc = root[0] == '\0' && cb__hwloc_places(out, place);
    if (!out->from_hwloc)
        cb__sysfs_places(root, out, place);
    qsort(out->caches, (size_t)out->ncaches, sizeof *out->caches, by_level);
    find_cores(out, place);
    out->llc_bytes = last_level_bytes(out);
    out->quota = cb__cgroup_quota(root);
    return CB_OK;
}

int cb__default_threads(const cb__topology *t)
{
    int threads = t->ncores;
    if (t->quota > 0 && t->quota < threads)
        threads = (int)t->quota;
    return threads > 1 ? threads : 1;
}

int cb__processors_read(const char *text, int *cpus)
{
    int n = 0;
    for (const char *at = text; *at;) {
        char *end = NULL;
        long cpu = strtol(at, &end, 10);
        if (end == at || cpu < 0 || cpu >= CB__CPUS_MAX || n == CB__CPUS_MAX)
            return 0;
        cpus[n++] = (int)cpu;
        at = end;
    }
    return n;
}
