#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/sysfile.h"
#include "host/topology_reader.h"

enum { NODES_MAX = 256, CACHE_INDEX_MAX = 16 };

#define CPU_FOLDER "/sys/devices/system/cpu"
#define NODE_FOLDER "/sys/devices/system/node"

static int affinity(bool *set)
{
    enum { KERNEL_CPUS = 8192 }; /* the most that Linux can be built for */
    cpu_set_t *mask = CPU_ALLOC(KERNEL_CPUS);
    size_t size = CPU_ALLOC_SIZE(KERNEL_CPUS);
    int count = 0;
    if (mask && sched_getaffinity(0, size, mask) == 0)
        for (size_t cpu = 0; cpu < CB__CPUS_MAX; cpu++)
            if (CPU_ISSET_S(cpu, size, mask))
                set[cpu] = true, count++;
    if (mask)
        CPU_FREE(mask);
    return count;
}

/* Processors that /proc/cpuinfo lists, for machines without sysfs. */
static int cpuinfo_cpus(const char *root, bool *set)
{
    cb__buf text = CB__BUF_INIT;
    int count = 0;
    if (cb__sysfile_read(&text, root, "/proc/cpuinfo") && text.text) {
        char *next = text.text, value[32];
        for (char *line; (line = strsep(&next, "\n")) != NULL;) {
            if (!cb__sysfile_value(line, "processor", value, sizeof value))
                continue;
            int cpu = atoi(value);
            if (cpu >= 0 && cpu < CB__CPUS_MAX && !set[cpu])
                set[cpu] = true, count++;
        }
    }
    cb__buf_fini(&text);
    return count;
}

int cb__sysfs_cpus(const char *root, bool *set)
{
    char list[4096];
    int count = root[0] == '\0' ? affinity(set) : 0;
    if (count == 0 && cb__sysfile_line(list, sizeof list, root, CPU_FOLDER "/online"))
        count = cb__cpulist_parse(list, set, CB__CPUS_MAX);
    return count ? count : cpuinfo_cpus(root, set);
}

static int lowest(const bool *set)
{
    for (int cpu = 0; cpu < CB__CPUS_MAX; cpu++)
        if (set[cpu])
            return cpu;
    return -1;
}

static int cpu_number(const char *root, int cpu, const char *file, int otherwise)
{
    char text[32];
    if (!cb__sysfile_line(text, sizeof text, root, CPU_FOLDER "/cpu%d/%s", cpu, file))
        return otherwise;
    int value = atoi(text);
    return value >= 0 ? value : otherwise;
}

/* core_cpus_list is the newer name of thread_siblings_list. */
static int core_of(const char *root, int cpu)
{
    static const char *const names[] = {"core_cpus_list", "thread_siblings_list"};
    bool set[CB__CPUS_MAX];
    char list[4096];
    for (int i = 0; i < 2; i++)
        if (cb__sysfile_line(list, sizeof list, root, CPU_FOLDER "/cpu%d/topology/%s", cpu,
                             names[i]) &&
            cb__cpulist_parse(list, set, CB__CPUS_MAX) > 0 && set[cpu])
            return lowest(set);
    return cpu;
}

static uint64_t size_bytes(const char *text)
{
    char *end;
    uint64_t value = strtoull(text, &end, 10);
    return *end == 'K' ? value << 10 : *end == 'M' ? value << 20 : value;
}

/* An instance is counted at the first CPU of the mask that has it. */
static bool first_user(const cb__topology *t, const bool *shared, int cpu)
{
    for (int i = 0; i < t->ncpus; i++)
        if (shared[t->cpus[i]])
            return t->cpus[i] == cpu;
    return false;
}

static void add_caches(const char *root, cb__topology *t, int cpu)
{
    for (int index = 0; index < CACHE_INDEX_MAX; index++) {
        char folder[96], level[16], type[24], size[32], list[4096];
        bool shared[CB__CPUS_MAX];
        snprintf(folder, sizeof folder, CPU_FOLDER "/cpu%d/cache/index%d", cpu, index);
        if (!cb__sysfile_line(level, sizeof level, root, "%s/level", folder))
            return;
        if (!cb__sysfile_line(type, sizeof type, root, "%s/type", folder) ||
            !cb__sysfile_line(size, sizeof size, root, "%s/size", folder))
            continue;
        int shared_by = 0;
        if (cb__sysfile_line(list, sizeof list, root, "%s/shared_cpu_list", folder))
            shared_by = cb__cpulist_parse(list, shared, CB__CPUS_MAX);
        if (shared_by > 0 && !first_user(t, shared, cpu))
            continue;
        cb__topology_add_cache(t, atoi(level), strcmp(type, "Instruction") != 0, size_bytes(size),
                               shared_by > 0 ? shared_by : 1);
    }
}

/* Sets the node of every CPU and counts the nodes that have one in the mask. */
static void find_nodes(const char *root, cb__topology *t, cb__place *place)
{
    char list[4096];
    bool nodes[NODES_MAX], cpus[CB__CPUS_MAX];
    if (cb__sysfile_line(list, sizeof list, root, NODE_FOLDER "/online")) {
        cb__cpulist_parse(list, nodes, NODES_MAX);
        for (int node = 0; node < NODES_MAX; node++) {
            if (!nodes[node] ||
                !cb__sysfile_line(list, sizeof list, root, NODE_FOLDER "/node%d/cpulist", node))
                continue;
            cb__cpulist_parse(list, cpus, CB__CPUS_MAX);
            bool used = false;
            for (int i = 0; i < t->ncpus; i++)
                if (cpus[t->cpus[i]])
                    place[i].node = node, used = true;
            t->numa_nodes += used;
        }
    }
    if (t->numa_nodes == 0)
        t->numa_nodes = 1;
}

void cb__sysfs_places(const char *root, cb__topology *t, cb__place *place)
{
    for (int i = 0; i < t->ncpus; i++) {
        int cpu = t->cpus[i];
        place[i].core = core_of(root, cpu);
        place[i].package = cpu_number(root, cpu, "topology/physical_package_id", 0);
        place[i].node = 0;
        add_caches(root, t, cpu);
    }
    find_nodes(root, t, place);
}
