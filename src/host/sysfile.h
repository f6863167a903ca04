/* sysfile.h: small files of /proc and /sys, below a root that tests replace by a recorded machine.
 */
#ifndef CB_HOST_SYSFILE_H
#define CB_HOST_SYSFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* The whole of root/path (printf style path, leading slash) into out, cleared first; false when it
 * cannot be read. */
__attribute__((format(printf, 3, 4))) bool cb__sysfile_read(cb__buf *out, const char *root,
                                                            const char *path, ...);
/* The first line, without its newline, cut to size. */
__attribute__((format(printf, 4, 5))) bool
cb__sysfile_line(char *text, size_t size, const char *root, const char *path, ...);
__attribute__((format(printf, 2, 3))) bool cb__sysfile_exists(const char *root, const char *path,
                                                              ...);

/* The value after "key <space or colon> " at the start of a line of `text`, up to the line's end,
 * trimmed; false when no line starts with that key. */
bool cb__sysfile_value(const char *text, const char *key, char *value, size_t size);

/* A kernel CPU list ("0-3,8,10-11") as a set of at most `max` numbers; numbers beyond are left out.
 * Returns how many the list names, those beyond included; 0 on text that is no list. */
int cb__cpulist_parse(const char *text, bool *set, int max);

#endif
