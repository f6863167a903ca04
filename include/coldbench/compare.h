/* compare.h: which of two is faster, by how much, how sure; for a program's own functions and for
 * kernels in shared objects. examples/compare_functions.c is the whole of it in use.
 *
 *     int main(int argc, char **argv)
 *     {
 *         int worker = cb_worker_entry(argc, argv);            (coldbench/worker.h)
 *         if (worker >= 0)
 *             return worker;
 *         cb_compare_request request = {.a = one, .b = other, .state = &data};
 *         cb_compare_result result;
 *         cb_error err = CB_ERROR_INIT;
 *         if (cb_compare(&request, &result, &err) == CB_OK)
 *             puts(result.text);
 *     }
 *
 * What luck of layout does (which addresses and physical pages code and data got) stays the same as
 * long as a process lives and can be some percent. So how much a result claims depends on how it
 * was measured, and `scope` says it:
 *
 *   CB_HOLDS_FOR_LINK_LAYOUT   main began with cb_worker_entry. Every round executes a fresh copy
 *       of the program, in a memory file of its own, with the same arguments. The copy runs main
 *       again up to the same call of cb_compare, measures there, and ends: whatever main does
 *       before that call happens once more in every round, with standard input and output on
 *       /dev/null. Earlier comparisons return in the copy what they returned in the program, so
 *       main takes the same way as long as that depends on its arguments, its results and files.
 *   CB_HOLDS_FOR_IMAGE   it did not. The functions are measured in one forked copy of the process
 *       as it is, from one thread: what holds of this image may be its layout.
 *   CB_HOLDS_FOR_CODE    kernels in shared objects, loaded anew in every round.
 *
 * The functions never run in the calling process. They see everything that was set up before the
 * call, and nothing of what they write comes back. One that crashes or hangs costs the comparison
 * its decision (`incomparable`, the note names it) and is CB_OK.
 *
 * Nothing here prints or ends the program. All comparisons of a program are made from one thread.
 */
#ifndef COLDBENCH_COMPARE_H
#define COLDBENCH_COMPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "coldbench/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How long and how strict; every field may be left 0. */
typedef struct cb_compare_limits {
    double budget_s;  /* wall seconds at most, start-up included; it ends as soon as the answer is
                         known, after 6 to 40 rounds. 0: 10 */
    double alpha;     /* chance that the interval leaves the truth out, at most, however often it
                         was looked at; 0: 0.01. An alarm takes a tenth of it. */
    double margin;    /* what an estimate must exceed, beside an interval that leaves 1 out, to be
                         told as slower or faster: 0.01 for 1 %. 0: 0.01, cold 0.02 */
    double silence_s; /* a side that says nothing for this long hangs; 0: 10 */
    uint64_t seed;    /* of orders and paddings; 0: from the clock */
    const volatile int *stop; /* may be NULL; nonzero, at any time: CB_INTERRUPTED */
} cb_compare_limits;

/* Two functions of this program. All pointers are borrowed until cb_compare returns. */
typedef struct cb_compare_request {
    void (*a)(void *state); /* the same work at each call; runs on one pinned thread */
    void (*b)(void *state); /* may be a itself: an A/A run */
    void *state;            /* passed to both: they share their data as they share the machine */
    const char *a_name, *b_name; /* in texts; NULL: "a", "b" */
    /* What every call writes in full, whichever side it is of: poisoned before a call of each side
     * and looked at after it, before and after timing. A byte that stays unwritten makes the side
     * wrong; equal bytes make the two bit-identical. NULL: not looked at. */
    void *output;
    size_t output_bytes;
    /* Called after an untimed call of each side, before and after timing: 0, or a code of the
     * program's own: that side's output is wrong. NULL: not checked. */
    int (*check)(void *state);
    cb_compare_limits limits;
} cb_compare_request;

typedef enum cb_compare_cache { CB_COMPARE_COLD, CB_COMPARE_WARM } cb_compare_cache;
typedef enum cb_compare_submit { CB_COMPARE_BATCHED, CB_COMPARE_SOLO } cb_compare_submit;

/* Two kernels (coldbench/kernel.h), as `coldbench compare` takes them. The program must have begun
 * with cb_worker_entry. */
typedef struct cb_compare_kernels_request {
    const char *a, *b; /* variants: kernel[@param=value,...][/implementation][:tunable=value,...] */
    const char *a_module, *b_module; /* shared objects that have them; NULL: the built-in suite */
    const char *shape;               /* "11008x4096"; NULL for a kernel without one */
    cb_compare_cache cache;
    cb_compare_submit submit;
    int threads; /* 0: one a physical core that the process may use */
    cb_compare_limits limits;
} cb_compare_kernels_request;

typedef enum cb_compare_decision {
    CB_COMPARE_SLOWER, /* b than a */
    CB_COMPARE_FASTER,
    CB_COMPARE_TIE,
    CB_COMPARE_UNSTABLE,     /* the rounds contradict each other */
    CB_COMPARE_INCOMPARABLE, /* a side is wrong, crashed or hung; or a differs from itself */
    CB_COMPARE_INCONCLUSIVE  /* the budget was spent; `detectable` is what would have been seen */
} cb_compare_decision;
/* "slower". Static storage. */
const char *cb_compare_decision_name(cb_compare_decision decision);

typedef enum cb_compare_scope {
    CB_HOLDS_FOR_CODE,
    CB_HOLDS_FOR_LINK_LAYOUT,
    CB_HOLDS_FOR_IMAGE
} cb_compare_scope;
/* "holds for this program's link layout". Static storage. */
const char *cb_compare_scope_text(cb_compare_scope scope);

/* A time over a time. [lo, hi] leaves the truth out with chance alpha at most. Before enough rounds
 * were made lo is 0 and hi infinite, and likewise where the decision is unstable; mid is NaN where
 * there is no figure. */
typedef struct cb_compare_ratio {
    double lo, mid, hi;
} cb_compare_ratio;

/* Plain data: nothing to free. */
typedef struct cb_compare_result {
    cb_compare_decision decision;
    cb_compare_scope scope;
    cb_compare_ratio ratio; /* time of b over time of a */
    /* Of a second copy of a over a, measured beside; lo and hi: the middle of the rounds, with
     * coverage 0.95 or all of them. */
    cb_compare_ratio aa_ratio;
    double a_ns, b_ns;      /* of one call: median of the rounds' medians */
    double detectable;      /* smallest effect these rounds could have told: 0.004 for 0.4 % */
    double position_effect; /* how much slower the earlier slot of a block is; 0.01 for 1 % */
    double seconds;         /* wall time of the comparison */
    int rounds, blocks;     /* rounds that count, and blocks of them all */
    bool aa;                /* the same code on both sides */
    bool bit_identical;     /* equal outputs, where they were looked at */
    bool dispatch;          /* both within 1.25x of calling what does nothing */
    /* CB_HOLDS_FOR_IMAGE: the signs of all blocks say that b differs in this image, be it by
     * less than the margin. A diagnostic; it may be layout. */
    bool differs_in_image;
    char note[400]; /* why it is not the whole story: who crashed, what was short; "": nothing */
    char text[800]; /* one line that says all this */
} cb_compare_result;

/* *result always says something that can be printed once the status is CB_OK or CB_INTERRUPTED
 * (what was measured until then); with another status it is empty. err may be NULL. CB_USAGE: a
 * request that is not valid, a budget below the minimum (which is named), or a main that does not
 * come to the same call again in its copies, within silence_s. CB_UNAVAILABLE, CB_NO_MEMORY: the
 * system does not give what is needed. Anything else is a fault of this library. */
cb_status cb_compare(const cb_compare_request *request, cb_compare_result *result, cb_error *err);
/* The same answer as the verb's: outputs verified against the definition's f64 reference, cold
 * rings sized by the stored machine model (without one, by the caches as the system names them).
 * CB_USAGE also for what the verb refuses, and without cb_worker_entry. */
cb_status cb_compare_kernels(const cb_compare_kernels_request *request, cb_compare_result *result,
                             cb_error *err);

#ifdef __cplusplus
}
#endif
#endif
