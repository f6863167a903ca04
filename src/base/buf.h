/* buf.h: a growing text buffer. After a failed allocation it stays valid and `failed` is set, so a
 * chain of appends needs one test at its end. */
#ifndef CB_BASE_BUF_H
#define CB_BASE_BUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct cb__buf {
    char *text; /* NUL-terminated; NULL while empty */
    size_t size, capacity;
    bool failed;
} cb__buf;

#define CB__BUF_INIT                                                                               \
    {                                                                                              \
        NULL, 0, 0, false                                                                          \
    }

void cb__buf_append(cb__buf *buf, const char *bytes, size_t size);
void cb__buf_puts(cb__buf *buf, const char *text);
__attribute__((format(printf, 2, 3))) void cb__buf_printf(cb__buf *buf, const char *format, ...);
/* The text, "" while empty; never NULL. Borrowed until the next append. */
const char *cb__buf_text(const cb__buf *buf);
void cb__buf_clear(cb__buf *buf); /* keeps the storage, clears `failed`: a new chain */
void cb__buf_fini(cb__buf *buf);

#endif
