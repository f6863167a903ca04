/* arena.h: memory that lives and dies together. Allocation returns NULL only when the system has no
 * memory. */
#ifndef CB_BASE_ARENA_H
#define CB_BASE_ARENA_H

#include <stddef.h>

typedef struct cb__arena {
    struct cb__arena_block *blocks; /* newest first */
} cb__arena;

#define CB__ARENA_INIT                                                                             \
    {                                                                                              \
        NULL                                                                                       \
    }

void *cb__arena_alloc(cb__arena *arena, size_t bytes); /* zeroed, 16-byte aligned */
void *cb__arena_array(cb__arena *arena, size_t count,
                      size_t bytes); /* NULL too when count * bytes overflows */
char *cb__arena_strdup(cb__arena *arena, const char *text);
char *cb__arena_strndup(cb__arena *arena, const char *text, size_t size);
__attribute__((format(printf, 2, 3))) char *cb__arena_printf(cb__arena *arena, const char *format,
                                                             ...);
void cb__arena_fini(cb__arena *arena); /* frees everything; the arena can be used again */

#endif
