/* session.h: a case in work: its memory files, its workers, its rounds. Shared by run.c (order of
 * work) and evidence.c (what follows). */
#ifndef CB_RUN_SESSION_H
#define CB_RUN_SESSION_H

#include "host/memory.h"
#include "run/run.h"

typedef struct cb__session {
    const cb__run_request *request;
    cb__run_case *out;
    cb__arena *arena;
    cb__region ring, reference, exchange;
    cb__reference expected;
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

/* Rows and memory files; close frees the files, samples stay in the arena. */
cb_status cb__session_open(cb__session *s, const cb__run_request *request, cb__arena *arena,
                           cb__run_case *out, cb_error *err);
void cb__session_close(cb__session *s);
cb_status cb__session_fill(cb__session *s, cb_error *err);
cb_status cb__session_round(cb__session *s, cb_error *err);

/* Verifies the same variant on shapes that bite (one row, odd counts, wide ones), warm, in every
 * submit mode asked, and adds what it finds to each row's evidence. With widths under 64 a deleted
 * inner loop once left every test green. */
cb_status cb__session_ragged(cb__session *s, cb_error *err);

/* Looks at the outputs that round `r` handed over, and adds what it found to each row's evidence.
 */
void cb__session_verify(cb__session *s, const cb__round_answer *round, uint64_t seed);
/* Intervals, checks and verdicts of every row from all rounds so far. */
void cb__session_judge(cb__session *s);

#endif
