#include "base/buf.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 64 };

/* Room for `more` bytes and the terminator. */
static bool reserve(cb__buf *buf, size_t more)
{
    if (buf->failed)
        return false; /* a chain with a hole in it must not look whole */
    if (more < buf->capacity - buf->size)
        return true;
    size_t capacity = buf->capacity ? buf->capacity : FIRST_CAPACITY;
    while (capacity - buf->size <= more && capacity <= SIZE_MAX / 2)
        capacity *= 2;
    char *text = capacity - buf->size > more ? realloc(buf->text, capacity) : NULL;
    if (!text) {
        buf->failed = true;
        return false;
    }
    buf->text = text;
    buf->capacity = capacity;
    return true;
}

void cb__buf_append(cb__buf *buf, const char *bytes, size_t size)
{
    if (!reserve(buf, size))
        return;
    if (size)
        memcpy(buf->text + buf->size, bytes, size);
    buf->size += size;
    buf->text[buf->size] = '\0';
}

void cb__buf_puts(cb__buf *buf, const char *text)
{
    cb__buf_append(buf, text, strlen(text));
}

void cb__buf_printf(cb__buf *buf, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int size = vsnprintf(NULL, 0, format, args);
    if (size < 0)
        buf->failed = true;
    else if (reserve(buf, (size_t)size)) {
        vsnprintf(buf->text + buf->size, (size_t)size + 1, format, again);
        buf->size += (size_t)size;
    }
    va_end(again);
    va_end(args);
}

const char *cb__buf_text(const cb__buf *buf)
{
    return buf->text ? buf->text : "";
}

void cb__buf_clear(cb__buf *buf)
{
    buf->size = 0;
    buf->failed = false;
    if (buf->text)
        buf->text[0] = '\0';
}

void cb__buf_fini(cb__buf *buf)
{
    free(buf->text);
    *buf = (cb__buf)CB__BUF_INIT;
}
