#include "host/topology_reader.h"

#if CB_HAVE_HWLOC

#include <hwloc.h>

static const hwloc_obj_type_t cache_types[] = {
    HWLOC_OBJ_L1CACHE, HWLOC_OBJ_L2CACHE,  HWLOC_OBJ_L3CACHE,  HWLOC_OBJ_L4CACHE,
    HWLOC_OBJ_L5CACHE, HWLOC_OBJ_L1ICACHE, HWLOC_OBJ_L2ICACHE, HWLOC_OBJ_L3ICACHE,
};

static void add_caches(hwloc_topology_t machine, hwloc_const_bitmap_t mask, cb__topology *t)
{
    for (size_t i = 0; i < sizeof cache_types / sizeof *cache_types; i++) {
        hwloc_obj_t cache = NULL;
        while ((cache = hwloc_get_next_obj_by_type(machine, cache_types[i], cache)) != NULL) {
            const struct hwloc_cache_attr_s *facts = &cache->attr->cache;
            if (hwloc_bitmap_intersects(cache->cpuset, mask))
                cb__topology_add_cache(t, (int)facts->depth,
                                       facts->type != HWLOC_OBJ_CACHE_INSTRUCTION, facts->size,
                                       hwloc_bitmap_weight(cache->complete_cpuset));
        }
    }
}

static int count_nodes(hwloc_topology_t machine, hwloc_const_bitmap_t mask)
{
    int nodes = 0;
    hwloc_obj_t node = NULL;
    while ((node = hwloc_get_next_obj_by_type(machine, HWLOC_OBJ_NUMANODE, node)) != NULL)
        nodes += hwloc_bitmap_intersects(node->cpuset, mask) ? 1 : 0;
    return nodes > 0 ? nodes : 1;
}

/* The node's number of a CPU; a node object hangs beside the tree, so its set is asked. */
static int node_of(hwloc_topology_t machine, unsigned cpu)
{
    hwloc_obj_t node = NULL;
    while ((node = hwloc_get_next_obj_by_type(machine, HWLOC_OBJ_NUMANODE, node)) != NULL)
        if (hwloc_bitmap_isset(node->cpuset, cpu))
            return (int)node->os_index;
    return 0;
}

static bool find_place(hwloc_topology_t machine, int cpu, cb__place *place)
{
    hwloc_obj_t unit = hwloc_get_pu_obj_by_os_index(machine, (unsigned)cpu);
    if (!unit)
        return false;
    hwloc_obj_t core = hwloc_get_ancestor_obj_by_type(machine, HWLOC_OBJ_CORE, unit);
    hwloc_obj_t package = hwloc_get_ancestor_obj_by_type(machine, HWLOC_OBJ_PACKAGE, unit);
    place->core = core ? hwloc_bitmap_first(core->complete_cpuset) : cpu;
    place->package = package ? (int)package->os_index : 0;
    place->node = node_of(machine, (unsigned)cpu);
    return true;
}

bool cb__hwloc_places(cb__topology *t, cb__place *place)
{
    hwloc_topology_t machine;
    if (hwloc_topology_init(&machine) != 0)
        return false;
    hwloc_bitmap_t mask = hwloc_bitmap_alloc();
    hwloc_topology_set_icache_types_filter(machine, HWLOC_TYPE_FILTER_KEEP_ALL);
    bool known = mask && hwloc_topology_load(machine) == 0;
    for (int i = 0; known && i < t->ncpus; i++)
        known = hwloc_bitmap_set(mask, (unsigned)t->cpus[i]) == 0 &&
                find_place(machine, t->cpus[i], &place[i]);
    if (known) {
        add_caches(machine, mask, t);
        t->numa_nodes = count_nodes(machine, mask);
    }
    hwloc_bitmap_free(mask);
    hwloc_topology_destroy(machine);
    return known;
}

#else

bool cb__hwloc_places(cb__topology *t, cb__place *place)
{
    (void)t;
    (void)place;
    return false;
}

#endif
