#include "device/host_memory.h"

static const cb__region none = CB__REGION_INIT;

static cb__region *find(cb__host_memory *memory, const void *base)
{
    for (int i = 0; i < CB__HOST_REGIONS_MAX; i++)
        if (memory->regions[i].base == base)
            return &memory->regions[i];
    return NULL;
}

static cb_status find_free(cb__host_memory *memory, cb__region **out, cb_error *err)
{
    *out = find(memory, NULL);
    return *out ? CB_OK
                : cb_error_set(err, CB_INTERNAL, "more than %d allocations on the %s device",
                               CB__HOST_REGIONS_MAX, memory->device);
}

void cb__host_memory_init(cb__host_memory *memory, const char *device)
{
    memory->device = device;
    for (int i = 0; i < CB__HOST_REGIONS_MAX; i++)
        memory->regions[i] = none;
}

void cb__host_memory_fini(cb__host_memory *memory)
{
    for (int i = 0; i < CB__HOST_REGIONS_MAX; i++)
        cb__host_memory_free(memory, memory->regions[i].base);
}

cb_status cb__host_memory_alloc(cb__host_memory *memory, size_t bytes, bool base_pages, void **out,
                                cb_error *err)
{
    cb__region *slot = NULL;
    cb_status status = find_free(memory, &slot, err);
    if (status == CB_OK)
        status = cb__region_private(bytes, slot, err);
    if (status == CB_OK && base_pages)
        cb__region_base_pages(slot);
    *out = status == CB_OK ? slot->base : NULL;
    return status;
}

cb_status cb__host_memory_map(cb__host_memory *memory, int fd, size_t bytes, void **out,
                              cb__pages *pages, cb_error *err)
{
    cb__region *slot = NULL;
    cb_status status = find_free(memory, &slot, err);
    if (status == CB_OK)
        status = cb__region_map(fd, bytes, slot, err);
    if (status == CB_OK && pages)
        *pages = cb__region_pages(slot);
    *out = status == CB_OK ? slot->base : NULL;
    return status;
}

cb__pages cb__host_memory_pages(cb__host_memory *memory, const void *address)
{
    const cb__region *region = find(memory, address);
    return region && address ? cb__region_pages(region) : (cb__pages){0, 0, false};
}

void cb__host_memory_free(cb__host_memory *memory, void *address)
{
    cb__region *region = address ? find(memory, address) : NULL;
    if (region) {
        cb__region_fini(region);
        *region = none;
    }
}
