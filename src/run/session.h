/* session.h: a case in work: its memory files, its workers, its rounds. Shared by run.c (order of
 * work) and evidence.c (what follows). */
#ifndef CB_RUN_SESSION_H
#define CB_RUN_SESSION_H

#include "host/memory.h"
#include "run/processes.h"
#include "run/run.h"

/* Outputs that were found right, bit by bit those of `digest`, on a set. */
typedef struct cb__right {
    int set;
    uint64_t digest;
} cb__right;

enum { CB__RIGHT_MAX = 256 };

typedef struct cb__session {
    const cb__run_request *request;
    cb__run_case *out;
    cb__arena *arena;
    cb__processes *processes; /* borrowed */
    bool ragged;              /* one of the other shapes: verified, and not timed for a figure */
    cb__region ring, reference, exchange;
    cb__reference expected;
    cb__right right[CB__RIGHT_MAX];
    int nright;
    cb__fill_answer filled;
    cb__pick_answer picked;
    char candidates[CB__TWINS_MAX][96];
    int ncandidates;
    cb__mode modes[CB__MODES_MAX];
    int nmodes;
    cb__round_answer *rounds[CB__ROUNDS_MAX];
    int nrounds;
    uint64_t start_ns;
    uint64_t device_ns; /* of the device's clock, all rounds */
} cb__session;

/* Rows and memory files, of which the processes are told; close frees the files, samples stay in
 * the arena. */
cb_status cb__session_open(cb__session *s, const cb__run_request *request, cb__arena *arena,
                           cb__processes *processes, cb__run_case *out, cb_error *err);
void cb__session_close(cb__session *s);
cb__work cb__session_filling(const cb__session *s);
/* How long the filling may be without a word. */
double cb__session_patience_s(const cb__session *s);
cb_status cb__session_fill(cb__session *s, cb_error *err);
cb_status cb__session_round(cb__session *s, cb_error *err);

/* The same variant on shapes that bite (one row, odd counts, wide ones), warm, in every submit mode
 * asked. With widths under 64 a deleted inner loop once left every test green. */
enum { CB__RAGGED_SHAPES = 4 };
typedef struct cb__ragged {
    cb__session *sessions[CB__RAGGED_SHAPES];
    char shapes[CB__RAGGED_SHAPES][80];
    int n;
} cb__ragged;
cb_status cb__ragged_open(cb__session *s, cb__ragged *ragged, cb_error *err);
/* Adds what is found to each row's evidence. */
cb_status cb__ragged_verify(cb__session *s, cb__ragged *ragged, cb_error *err);
void cb__ragged_close(cb__ragged *ragged);

/* Looks at the outputs that round `r` handed over, and adds what it found to each row's evidence.
 */
void cb__session_verify(cb__session *s, const cb__round_answer *round, uint64_t seed);
/* Intervals, checks and verdicts of every row from all rounds so far. */
void cb__session_judge(cb__session *s);

#endif
