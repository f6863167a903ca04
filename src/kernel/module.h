/* module.h: kernel modules, loaded and validated, and the suite of those known to one command. */
#ifndef CB_KERNEL_MODULE_H
#define CB_KERNEL_MODULE_H

#include <stdbool.h>

#include "base/dl.h"
#include "coldbench/kernel.h"
#include "coldbench/status.h"

typedef struct cb__module {
    cb__dl *library;
    const cb_module *table;
    char origin[512]; /* a file's path, or the name of an embedded module */
    bool builtin;
} cb__module;

enum { CB__SUITE_MAX = 64 };

typedef struct cb__suite {
    cb__module *modules[CB__SUITE_MAX];
    int nmodules;
    bool rehearse; /* calls into a user's code are first made in a child */
} cb__suite;

/* Loads one module from a file or, builtin, from memory (a new image each time). */
cb_status cb__module_open(const char *origin, bool builtin, cb__module **out, cb_error *err);
/* Loads the bytes of a module's file through a new memory file: a new image on pages of its own
 * each time. `origin` is what messages call it. */
cb_status cb__module_open_bytes(const char *origin, const void *bytes, size_t size, bool builtin,
                                cb__module **out, cb_error *err);
/* The bytes of an embedded module; CB_INTERNAL: there is none of that name. */
cb_status cb__module_embedded(const char *name, const void **bytes, size_t *size, cb_error *err);
void cb__module_close(cb__module *module);
/* Everything that can be said of a module without calling it: version, limits, names, pointers.
 * CB_USAGE names what is wrong. */
cb_status cb__module_validate(const cb_module *table, const char *origin, cb_error *err);

/* All embedded modules, then the user's files. With `rehearse` a user's file is first loaded in a
 * child process, so that one that crashes on load is an error (CB_USAGE) and not the end of the
 * program. A kernel name that two modules have is CB_USAGE. */
cb_status cb__suite_open(const char *const *files, int nfiles, bool rehearse, cb__suite *suite,
                         cb_error *err);
/* One file alone, nothing embedded. */
cb_status cb__suite_open_file(const char *file, bool rehearse, cb__suite *suite, cb_error *err);
void cb__suite_close(cb__suite *suite);
/* NULL when there is none. */
const cb_kernel *cb__suite_find(const cb__suite *suite, const char *name,
                                const cb__module **module);
/* CB_USAGE with the valid names and the nearest. */
cb_status cb__suite_unknown(const cb__suite *suite, const char *name, cb_error *err);

/* Runs fn(arg, err) in a forked child for at most `seconds`; a crash or a hang there is CB_USAGE
 * "`what` ...", anything else is what fn returned. For calls into a user's code that the caller is
 * about to make itself. */
cb_status cb__rehearse(cb_status (*fn)(void *arg, cb_error *err), void *arg, int seconds,
                       const char *what, cb_error *err);

#endif
