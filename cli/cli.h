/* cli.h: what the verbs share. Results go to standard output, progress and diagnostics to standard
 * error. */
#ifndef CB_CLI_CLI_H
#define CB_CLI_CLI_H

#include <stdbool.h>
#include <stdio.h>

#include "base/options.h"
#include "kernel/shapes.h"
#include "record/record.h"

typedef struct cb__verb {
    const char *name;
    const char *summary;
    const char *usage;   /* after "coldbench NAME " */
    const char *details; /* paragraphs of the help, and an example that a test runs */
    const cb__option *options;
    size_t noptions;
    int (*run)(int argc, char **argv); /* without the verb; the exit status */
} cb__verb;

extern const cb__verb cb__verb_probe, cb__verb_run, cb__verb_kernels, cb__verb_model,
    cb__verb_selftest, cb__verb_compare, cb__verb_gate;

/* Prints "coldbench: message" to stderr; the exit status of err. */
int cb__cli_fail(const cb_error *err);

typedef struct cb__common_options {
    const char *device, *json, *csv;
    int64_t threads, seed;
    int color; /* auto, always, never */
    bool quiet, verbose, help;
} cb__common_options;

/* each.c: `--device cuda:all`. */
/* Whether a verb is to run for each device, and that; the exit status is the worst. */
bool cb__each_wanted(const cb__common_options *options);
int cb__each_run(const cb__verb *verb, const cb__common_options *options, int argc, char **argv);
/* The device in work, which cb__cli_parse puts in the options; NULL: one was asked for. */
const char *cb__each_device(void);
/* CB_USAGE where there are more devices than one. */
cb_status cb__each_refuses(const char *option, cb_error *err);
/* Whether outputs of these options are gathered, and put out when all devices had their turn. */
bool cb__each_gathers(const cb__common_options *options);
void cb__each_heading(cb__buf *table);
void cb__each_gather(const cb__buf *json, const cb__buf *csv);

typedef struct cb__output {
    const char *path; /* as asked; NULL or a path or "-" */
    char *place;      /* of the file that is replaced when all is written; NULL: `file` it is */
    FILE *file;
} cb__output;

/* Where a verb writes. Opened before anything is measured, so that a path that cannot be written
 * costs nothing; files change only when they are written, and as a whole. */
typedef struct cb__outputs {
    cb__output json, csv;
    bool gathered; /* of one of several devices */
    FILE *table;   /* stdout; stderr where - was asked; NULL with -q */
    bool color;
} cb__outputs;

/* The table rows that every measuring verb has; the struct must begin with cb__common_options. */
#define CB__COMMON_OPTIONS                                                                         \
    {.name = "device",                                                                             \
     .kind = CB__OPT_TEXT,                                                                         \
     .offset = offsetof(cb__common_options, device),                                               \
     .arg = "NAME",                                                                                \
     .preset = "cpu",                                                                              \
     .help = "cpu, cuda:N, cuda:all (every NVIDIA GPU, one after the other: each has the budget; " \
             "--json writes an array, --csv a column more), or fake:key=value,... (a scripted "    \
             "device)"},                                                                           \
        {.name = "threads",                                                                        \
         .kind = CB__OPT_INT,                                                                      \
         .offset = offsetof(cb__common_options, threads),                                          \
         .arg = "N",                                                                               \
         .min = 1,                                                                                 \
         .max = 65536,                                                                             \
         .help = "threads; left out: one a physical core in the affinity mask, at most the "       \
                 "container's quota"},                                                             \
        {.name = "seed",                                                                           \
         .kind = CB__OPT_INT,                                                                      \
         .offset = offsetof(cb__common_options, seed),                                             \
         .arg = "N",                                                                               \
         .min = 0,                                                                                 \
         .max = 9007199254740992.0,                                                                \
         .help = "of data and of the coin; left out: drawn"},                                      \
        {.name = "json",                                                                           \
         .kind = CB__OPT_TEXT,                                                                     \
         .offset = offsetof(cb__common_options, json),                                             \
         .arg = "FILE|-",                                                                          \
         .help = "write the record; with - the table moves to standard error"},                    \
        {.name = "csv",                                                                            \
         .kind = CB__OPT_TEXT,                                                                     \
         .offset = offsetof(cb__common_options, csv),                                              \
         .arg = "FILE|-",                                                                          \
         .help = "write the figures as CSV"},                                                      \
        {.name = "color",                                                                          \
         .kind = CB__OPT_CHOICE,                                                                   \
         .offset = offsetof(cb__common_options, color),                                            \
         .arg = "WHEN",                                                                            \
         .preset = "auto",                                                                         \
         .choices = cb__color_words,                                                               \
         .help = "colour of the table"},                                                           \
        {.name = "quiet",                                                                          \
         .letter = 'q',                                                                            \
         .kind = CB__OPT_FLAG,                                                                     \
         .offset = offsetof(cb__common_options, quiet),                                            \
         .help = "no progress and no table"},                                                      \
        {.name = "verbose",                                                                        \
         .letter = 'v',                                                                            \
         .kind = CB__OPT_FLAG,                                                                     \
         .offset = offsetof(cb__common_options, verbose),                                          \
         .help = "every check of every row"},                                                      \
    {                                                                                              \
        .name = "help", .letter = 'h', .kind = CB__OPT_FLAG,                                       \
        .offset = offsetof(cb__common_options, help), .help = "this page"                          \
    }

/* Rows that some verbs have, over members of their struct of the same names. */
#define CB__SHAPE_OPTION(options)                                                                  \
    {                                                                                              \
        .name = "shape", .kind = CB__OPT_LIST, .offset = offsetof(options, shapes),                \
        .arg = "SHAPE", .help = "14336x4096 in the kernel's own order, or rows=14336,cols=4096"    \
    }
#define CB__SHAPES_OPTION(options)                                                                 \
    {                                                                                              \
        .name = "shapes", .kind = CB__OPT_TEXT, .offset = offsetof(options, shape_list),           \
        .arg = "LIST",                                                                             \
        .help = "a shipped list: the decode projections of llama-3-8b, llama-3-70b or qwen2.5-7b"  \
    }
/* Of a comparison. */
#define CB__SUBMIT_OPTION(options)                                                                 \
    {                                                                                              \
        .name = "submit", .kind = CB__OPT_CHOICE, .offset = offsetof(options, submit),             \
        .arg = "MODE", .preset = "batched", .choices = cb__submit_words,                           \
        .help = "solo: submit and wait, host clock; batched: launches in one dispatch"             \
    }
#define CB__ALPHA_OPTION(options)                                                                  \
    {                                                                                              \
        .name = "alpha", .kind = CB__OPT_REAL, .offset = offsetof(options, alpha), .arg = "P",     \
        .preset = "1%", .min = 1e-9, .max = 0.5,                                                   \
        .help = "chance that any interval of this command leaves the truth out, at most"           \
    }

extern const char *const cb__color_words[], *const cb__cache_words[], *const cb__submit_words[];

/* Parses a verb's options; *done is set (with *exit_status) when it was --help or an error.
 * positionals: room for argc. */
void cb__cli_parse(const cb__verb *verb, void *options, int argc, char **argv,
                   const char **positionals, int *npositionals, bool *done, int *exit_status);
/* A verb's plan, which the machine model is part of. */
typedef struct cb__planning {
    const cb__common_options *options;
    const cb__suite *suite;
    uint64_t seed;
    const cb__device_info *device;
    cb_status (*plan)(void *arg, const cb_model *model, cb_error *err); /* model: NULL for none */
    void *arg;
} cb__planning;

/* Plans with the stored model of this device. Where there is none and no threads were asked for,
 * what the verb needs of it is measured (at most 5 s), said and stored, and it is planned again;
 * not before the first plan holds: what was asked wrongly costs nothing. *model: NULL for none; the
 * caller frees, also on failure. *model_ns: what measuring it took, outside every budget. The
 * errors are the plan's, and CB_INTERRUPTED. */
cb_status cb__cli_plan(const cb__planning *planning, cb_model **model, uint64_t *model_ns,
                       cb_error *err);

enum { CB__CLI_SHAPES_MAX = CB__OPTION_LIST_MAX + CB__SHAPES_MAX };
/* The shapes asked for: those given, then those of the shipped list of that name (NULL: no list);
 * one NULL where there is none. */
cb_status cb__cli_shapes(const cb__option_list *given, const char *list,
                         const char *shapes[CB__CLI_SHAPES_MAX], int *nshapes, cb_error *err);

cb_status cb__outputs_open(const cb__common_options *options, cb__outputs *out, cb_error *err);
/* Writes and closes, all three whatever fails; CB_IO names the file and the system's words (a full
 * disk, say). */
cb_status cb__outputs_write(cb__outputs *out, const cb__buf *json, const cb__buf *csv,
                            const cb__buf *table, cb_error *err);
void cb__outputs_close(cb__outputs *out);

/* Ctrl-C, SIGTERM and SIGHUP set this; the second one ends the program at once. */
extern volatile int cb__stop;
void cb__stop_on_signals(void);

/* Progress: one line on stderr, rewritten on a terminal, at most ten times a second; silent with
 * -q. */
typedef struct cb__progress {
    bool on, terminal, shown;
    char what[160];
    unsigned long long last_ns;
} cb__progress;
void cb__progress_start(cb__progress *p, const cb__common_options *options);
void cb__progress_show(cb__progress *p, const char *text);
/* "LABEL: round 3", or what is done where no round is. */
void cb__progress_step(cb__progress *p, const char *label, const char *what, int round);
void cb__progress_end(cb__progress *p);

/* --seed, or one from the clock that reads back from a JSON number. */
uint64_t cb__cli_seed(int64_t asked);
/* CB_ISA_* of code for a device; NULL: for this machine's processor. */
unsigned cb__cli_isa(const char *device);

#endif
