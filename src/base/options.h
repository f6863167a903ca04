/* options.h: one table per command drives parsing, help and defaults. */
#ifndef CB_BASE_OPTIONS_H
#define CB_BASE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "coldbench/status.h"

typedef enum cb__option_kind {
    CB__OPT_FLAG,   /* bool */
    CB__OPT_TEXT,   /* const char *, borrowed from argv */
    CB__OPT_INT,    /* int64_t, size suffixes allowed */
    CB__OPT_REAL,   /* double, % allowed */
    CB__OPT_CHOICE, /* int: index into choices */
    CB__OPT_LIST    /* cb__option_list: may be given many times */
} cb__option_kind;

enum { CB__OPTION_LIST_MAX = 64 };

typedef struct cb__option_list {
    const char *items[CB__OPTION_LIST_MAX]; /* borrowed from argv */
    int count;
} cb__option_list;

typedef struct cb__option {
    const char *name; /* without dashes: "shape" */
    char letter;      /* 'q' for -q; 0: none */
    cb__option_kind kind;
    size_t offset;      /* of the destination in the caller's struct */
    const char *arg;    /* "N" in the help; NULL for flags */
    const char *preset; /* default as text, parsed into the struct before argv; NULL: leave the
                           struct as it is */
    const char *const *choices; /* NULL-terminated, for CB__OPT_CHOICE */
    double min, max;            /* for INT and REAL; both 0: no limit but the type's */
    const char *help;           /* one sentence, wrapped by the printer */
} cb__option;

/* Parses argv[0..argc) (no program name). `--name value`, `--name=value`, `-q`, `--` ends options,
 * `-` alone is a positional. Options and positionals may be mixed. positionals must have room for
 * argc entries. An unknown option names the nearest. A repeated option other than LIST: the last
 * wins. Everything wrong is CB_USAGE. */
cb_status cb__options_parse(const cb__option *table, size_t n, void *into, int argc, char **argv,
                            const char **positionals, int *npositionals, cb_error *err);
/* "  --shape SHAPE   help text ..." two columns wrapped at 100, with defaults and choices. */
void cb__options_help(const cb__option *table, size_t n, cb__buf *out);

#endif
