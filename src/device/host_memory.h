/* host_memory.h: the memory of devices whose memory is the host's: regions by their address. */
#ifndef CB_DEVICE_HOST_MEMORY_H
#define CB_DEVICE_HOST_MEMORY_H

#include "host/memory.h"

enum { CB__HOST_REGIONS_MAX = 64 };

typedef struct cb__host_memory {
    const char *device;                       /* its name, for messages */
    cb__region regions[CB__HOST_REGIONS_MAX]; /* base NULL: free */
} cb__host_memory;

/* `device`: static storage. */
void cb__host_memory_init(cb__host_memory *memory, const char *device);
void cb__host_memory_fini(cb__host_memory *memory);
/* Zeroed, untouched. */
cb_status cb__host_memory_alloc(cb__host_memory *memory, size_t bytes, bool base_pages, void **out,
                                cb_error *err);
cb__pages cb__host_memory_pages(cb__host_memory *memory, const void *address);
cb_status cb__host_memory_map(cb__host_memory *memory, int fd, size_t bytes, void **out,
                              cb__pages *pages, cb_error *err);
/* Of either; NULL is fine. */
void cb__host_memory_free(cb__host_memory *memory, void *address);

#endif
