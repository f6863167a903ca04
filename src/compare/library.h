/* library.h: what include/coldbench/compare.h needs beside the comparison itself. Shared by the
 * library_*.c of this folder. */
#ifndef CB_COMPARE_LIBRARY_H
#define CB_COMPARE_LIBRARY_H

#include "coldbench/compare.h"
#include "compare/compare.h"
#include "worker/entry.h"

/* ---- library.c ---- */

/* Fills in what was left 0, and refuses what makes no sense. `cold`: its margin. */
cb_status cb__limits_of(const cb_compare_limits *asked, bool cold, cb_compare_limits *out,
                        cb_error *err);
/* What all comparisons of the library have alike; the caller adds its sides. */
cb__compare_request cb__library_request(const cb_compare_limits *limits);
/* Measures what is planned, in what is left of the budget since start_ns, and tells it. */
cb_status cb__library_measure(cb__compare_request *request, const cb_compare_limits *limits,
                              uint64_t start_ns, cb_compare_scope scope, cb__comparison *c,
                              cb_compare_result *result, cb_error *err);

/* ---- library_round.c ---- */

/* The processes that rounds of functions are measured in. */
typedef struct cb__round_source {
    cb__functions *functions;
    const char *names[2];
    uint64_t seed;
    int copies;        /* of the program, made so far */
    int story;         /* for fresh copies; -1: the process forks */
    bool alive;        /* forked, and of use for another round: */
    cb__worker worker; /* that one */
} cb__round_source;

cb_status cb__round_source_open(cb__functions *functions, const char *const names[2], uint64_t seed,
                                cb__round_source *out, cb_error *err);
void cb__round_source_close(cb__round_source *source);
/* A request's `process`, for this source. */
cb__round_process cb__round_source_process(cb__round_source *source);
/* The device that such rounds are measured on, asked of a forked copy. */
cb_status cb__round_source_describe(cb__round_source *source, const cb__asker *asker,
                                    cb__device_info *info, cb_error *err);

/* ---- library_story.c: what a program's comparisons have answered so far ---- */

/* In a round: whether this call's answer is known already; then it is filled in. Every public call
 * asks once. */
bool cb__story_knows(cb_compare_result *result, cb_error *err);
/* Adds this call's answer. */
void cb__story_add(const cb_compare_result *result, const cb_error *err);
/* All of it as a sealed memory file, for the rounds of a comparison of two sides of these names. */
cb_status cb__story_file(const char *const names[2], int *fd, cb_error *err);
/* In a round, at a call without an answer yet, which should be the one that it is a round of:
 * measures, and ends the process. functions NULL: a call that no round is of. */
_Noreturn void cb__story_round(cb__functions *functions, const char *const names[2]);

#endif
