#include "base/arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 16, BLOCK_BYTES = 4096 };

struct cb__arena_block {
    struct cb__arena_block *next;
    size_t size, used; /* of bytes[] */
    _Alignas(ALIGNMENT) unsigned char bytes[];
};

/* A block comes zeroed and no byte of it is handed out twice, so nothing is cleared again. */
static struct cb__arena_block *add_block(cb__arena *arena, size_t bytes)
{
    size_t size = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;
    if (size > SIZE_MAX - sizeof(struct cb__arena_block))
        return NULL;
    struct cb__arena_block *block = calloc(1, sizeof *block + size);
    if (!block)
        return NULL;
    block->size = size;
    block->next = arena->blocks;
    arena->blocks = block;
    return block;
}

void *cb__arena_alloc(cb__arena *arena, size_t bytes)
{
    if (bytes > SIZE_MAX - ALIGNMENT)
        return NULL;
    /* At least one unit, so that two allocations never share an address. */
    size_t rounded = (bytes + !bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    struct cb__arena_block *block = arena->blocks;
    if (!block || block->size - block->used < rounded)
        block = add_block(arena, rounded);
    if (!block)
        return NULL;
    void *result = block->bytes + block->used;
    block->used += rounded;
    return result;
}

void *cb__arena_array(cb__arena *arena, size_t count, size_t bytes)
{
    size_t total;
    if (__builtin_mul_overflow(count, bytes, &total))
        return NULL;
    return cb__arena_alloc(arena, total);
}

char *cb__arena_strndup(cb__arena *arena, const char *text, size_t size)
{
    size_t length = 0;
    while (length < size && text[length])
        length++;
    char *copy = cb__arena_alloc(arena, length + 1);
    return copy ? memcpy(copy, text, length) : NULL;
}

char *cb__arena_strdup(cb__arena *arena, const char *text)
{
    return cb__arena_strndup(arena, text, strlen(text));
}

char *cb__arena_printf(cb__arena *arena, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int size = vsnprintf(NULL, 0, format, args);
    char *text = size < 0 ? NULL : cb__arena_alloc(arena, (size_t)size + 1);
    if (text)
        vsnprintf(text, (size_t)size + 1, format, again);
    va_end(again);
    va_end(args);
    return text;
}

void cb__arena_fini(cb__arena *arena)
{
    while (arena->blocks) {
        struct cb__arena_block *next = arena->blocks->next;
        free(arena->blocks);
        arena->blocks = next;
    }
}
