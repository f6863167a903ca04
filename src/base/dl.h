/* dl.h: dynamic libraries, from a file or from memory. */
#ifndef CB_BASE_DL_H
#define CB_BASE_DL_H

#include <stddef.h>

#include "coldbench/status.h"

typedef struct cb__dl cb__dl;

/* dlopen(RTLD_NOW | RTLD_LOCAL); CB_UNAVAILABLE with dlerror's words. */
cb_status cb__dl_open(const char *path, cb__dl **out, cb_error *err);
/* Loads the bytes of a shared object through a new memory file, so that two loads of the same bytes
 * are two images on different physical pages; where memory files cannot be executed, through a
 * private file in the cache folder
 * ($XDG_CACHE_HOME/coldbench or ~/.cache/coldbench or /tmp), removed after loading. `name` appears
 * in messages and maps. */
cb_status cb__dl_open_bytes(const char *name, const void *bytes, size_t size, cb__dl **out,
                            cb_error *err);
/* NULL when absent. */
void *cb__dl_symbol(cb__dl *library, const char *name);
void cb__dl_close(cb__dl *library);

#endif
