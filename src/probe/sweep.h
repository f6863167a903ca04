/* sweep.h: one process's part of one sweep: a list of jobs, most valuable first. Runs in a worker.
 */
#ifndef CB_PROBE_SWEEP_H
#define CB_PROBE_SWEEP_H

#include "kernel/case.h"
#include "probe/probe.h"
#include "timing/slot.h"

enum { CB__JOBS_MAX = 20, CB__JOB_VARIANTS_MAX = 16, CB__VISITS_MAX = 5 };

typedef enum cb__job_kind {
    CB__JOB_BANDWIDTH, /* "read" "read_l1" "write" "write_nt" "copy" "copy_nt" */
    CB__JOB_LATENCY,   /* "random" "local" */
    CB__JOB_FLOOR,     /* "solo" "stream" "batched" */
    CB__JOB_COMPUTE,   /* "f32" "f64" "int8"; of tensor cores "bf16" "tf32" "int8" */
    CB__JOB_CONTENT,   /* reading "random" "constant" "untouched" words */
    CB__JOB_SCRATCH,   /* "shared/16" "global/4": path, bytes a lane */
    CB__JOB_KINDS
} cb__job_kind;

/* Texts are borrowed. */
typedef struct cb__job {
    cb__job_kind kind;
    const char *what;
    /* Bandwidth, content: variants of a twin without `passes`; latency and compute: variants
     * without steps and blocks. The fastest counts. */
    const char *variants[CB__JOB_VARIANTS_MAX];
    int nvariants;
    /* Sizes of the whole working set in the order in which they are measured: multiples of 4096
     * (latency) or 128. Scratch: strides, multiples of its bytes a lane. Floors and computes have
     * none. */
    int64_t bytes[CB__SIZES_MAX];
    int n;
    /* Bandwidth: how many times each size is come back to within the sweep; the median counts. */
    int visits;
} cb__job;

typedef struct cb__sweep {
    const cb__suite *suite;
    unsigned isa;
    const cb__job *jobs;
    int njobs;
    cb__page_kind pages; /* UNTOUCHED: a fault to seed, nothing is filled */
    uint64_t limit_ns;   /* no job begins after this; 0: none */
    uint64_t seed;
} cb__sweep;

typedef struct cb__job_answer {
    bool done;
    cb__reading *readings; /* one a size; one of floors and computes */
    int n;
} cb__job_answer;

/* The readings of a job without sizes. */
int cb__job_readings(const cb__job *job);

typedef struct cb__sweep_answer {
    cb__job_answer jobs[CB__JOBS_MAX];
    int njobs;
    cb__pages pages; /* behind the set */
    uint64_t sampled_words, distinct_words;
    double steal_s, wall_s;
    int64_t involuntary;
} cb__sweep_answer;

/* Readings lie in the arena. A launch that fails is CB_WRONG. */
cb_status cb__sweep_run(cb__target target, const cb__sweep *sweep, cb__arena *arena,
                        cb__sweep_answer *answer, void (*progress)(void *, double), void *arg,
                        cb_error *err);

#endif
