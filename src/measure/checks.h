/* checks.h: from evidence to checks to a verdict. Pure; every rule of the method about one figure
 * is in checks.c. */
#ifndef CB_MEASURE_CHECKS_H
#define CB_MEASURE_CHECKS_H

#include "base/check.h"
#include "coldbench/model.h"
#include "measure/bench.h"
#include "measure/verify.h"
#include "stats/order.h"

/* All that is known about one row (one cache state, one submit mode). Ratios and bandwidths are
 * intervals over rounds. */
typedef struct cb__evidence {
    const cb__case *c;
    const cb__plan *plan;
    const cb__device_info *device;
    cb__cache_state cache;
    cb__submit submit;
    int rounds;
    bool complete;           /* false: interrupted, or a worker failed */
    cb_error launch, worker; /* what the device or the process said, if anything */
    cb_error
        unclear; /* a process went wrong that this one shared, and whose fault it was is open */
    cb__findings findings; /* of all rounds; the pre-timing and the timed launches */
    bool inputs_changed;
    bool inputs_held; /* on other shapes, whatever became of this one */
    uint64_t sampled_words, distinct_words;
    cb__pages pages;
    bool has_twin;
    cb__interval time_ns, of_twin; /* of_twin: twin time / kernel time */
    cb__interval gb_per_s;
    double
        trend; /* of of_twin within rounds: second half over first half - 1, median over rounds */
    double peak_gb_per_s; /* the physical ceiling at the best clock seen; 0: unknown */
    double floor_ns;
    int twin_sums_seen, twin_sums_wrong;
    int twin_candidates;
    char kept[160];    /* what the device says of lines that it keeps in its caches; "": none */
    char unasked[160]; /* why it cannot say so; "": it can */
    /* the cold state's proof; intervals over rounds, n = 0 where none was made */
    int proofs;
    cb__interval kernel_2k_over_k, twin_2k_over_k;
    cb__interval kernel_2k_gb_per_s;
    cb__interval
        over_twin_2k; /* the figure's bandwidth over the twin's on 2k sets, paired by round */
    cb__interval kernel_over_twin_2k; /* the same of the kernel on 2k sets */
    cb__interval asymptote_gb_per_s;  /* over 2k sets, one launch */
    cb__interval asymptote_2k_over_k;
    /* what the machine model says about the touched bytes, where it knows the last knee */
    bool has_knee;
    cb_resident resident;
    cb_figure knee;
    double clock_spread; /* (max - min) / median over rounds; NaN unknown */
    double steal_share;  /* of the wall time of the rounds, per CPU; NaN unknown */
    int64_t involuntary;
} cb__evidence;

/* Fills checks (room for CB__CHECKS_MAX) and gives the verdict. */
cb_verdict cb__judge(const cb__evidence *e, cb__check *checks, int *nchecks);

/* Of one side of a comparison, by itself: launch, worker, written, guards, inputs, bound, finite,
 * ceiling. */
cb_verdict cb__judge_side(const cb__evidence *e, cb__check *checks, int *nchecks);

/* The share of a figure that is dispatch: floor / time, at most 1. */
double cb__floor_share(const cb__evidence *e);
/* The paired ratio has settled: hi / lo - 1 <= 5 %, no trend within rounds above 5 %. Without a
 * twin: of the time. */
bool cb__settled(const cb__evidence *e);
/* The plain answer "9.4 MB fit 32 MiB of last-level cache: this measures the cache" for a warm
 * figure; "" otherwise. */
void cb__residency_text(const cb__evidence *e, char *text, size_t size);

#endif
