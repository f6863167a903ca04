/* sweep_internal.h: what the jobs of a sweep share. */
#ifndef CB_PROBE_SWEEP_INTERNAL_H
#define CB_PROBE_SWEEP_INTERNAL_H

#include "probe/sweep.h"

enum { CB__PASSES_MAX = 1365, CB__KEPT_MAX = 96, CB__SWEEP_READINGS_MAX = 101, CB__TURNS_MAX = 5 };
#define CB__WORTH_NS 60e6 /* of all readings of one size together, where it can be helped */

/* Code that was built, for every launch of it. */
typedef struct cb__kept {
    cb__code code; /* without problem and tunables */
    int64_t params[CB_PARAMS_MAX], tunables[CB_TUNABLES_MAX];
} cb__kept;

typedef struct cb__sweeping {
    cb__target target;
    const cb__sweep *sweep;
    cb__arena *arena;
    cb__device_info info;
    void *set; /* of the largest size of any job */
    uint64_t set_bytes;
    void *output, *scratch, *input; /* small ones; scratch: as the kernels leave it */
    bool random;                    /* the set holds the words that expected checksums are of */
    bool summed;                    /* `prefix` is made */
    uint32_t *prefix;               /* xor of the words before every CB__CHUNK_BYTES of the set */
    cb__kept kept[CB__KEPT_MAX];
    int nkept;
    double empty_ns; /* an empty launch */
    void (*progress)(void *arg, double done);
    void *arg;
    double done, share; /* of the whole sweep: before this job, of this job */
} cb__sweeping;

/* A launch, bound, and how many of it one after the other are the work; stays where it is while it
 * is launched. All zero: the empty kernel, once. */
typedef struct cb__bound {
    cb__case c;
    cb__code code;
    cb__launch launch;
    int times;
} cb__bound;

/* `params`: added to the variant's own ("passes=3"); operands by role: stream, input, output,
 * scratch. */
cb_status cb__sweep_bind(cb__sweeping *s, const char *variant, const char *params, uint64_t shape,
                         void *stream, void *input, void *output, cb__bound *to, cb_error *err);
/* After the last launch of anything that was bound. */
void cb__sweep_unbuild(cb__sweeping *s);
/* On a device that launches are queued to: by its own clock. */
cb_status cb__sweep_time(cb__sweeping *s, const cb__bound *work, double *ns, cb_error *err);
cb_status cb__sweep_times(cb__sweeping *s, const cb__bound *work, int readings, double *ns,
                          cb_error *err);
cb_status cb__sweep_time_median(cb__sweeping *s, const cb__bound *work, int readings, double *ns,
                                cb_error *err);

/* Up to CB__TURNS_MAX works one after the other, each once. All are made ready before the first:
 * making a batch writes to a device's memory, and what one work leaves in the caches must be there
 * for the next. */
cb_status cb__sweep_in_turn(cb__sweeping *s, const cb__bound *work, int n, double *ns,
                            cb_error *err);

/* Times of some work and of three times as much, in turn, so that what drifts drifts for both; and
 * the clock between, as it is under this load (NaN: unknown). */
typedef struct cb__pair {
    double few_ns, many_ns, clock_hz;
} cb__pair;
cb_status cb__sweep_pair(cb__sweeping *s, const cb__bound *few, const cb__bound *many, int readings,
                         cb__pair *pair, cb_error *err);
/* How many pairs of readings are worth making of work that takes this long once and thrice. */
int cb__sweep_pairs(double few_ns, int visits);
/* Units of work for a reading of about `ns`, when one takes unit_ns: 1 to max. */
int64_t cb__sweep_repeats(double ns, double unit_ns, int64_t max);
/* Value and folding from a pair: `amount` is what the few took (bytes, loads, operations). */
double cb__pair_rate(const cb__pair *pair, double amount);
double cb__pair_folded(const cb__sweeping *s, const cb__pair *pair);

/* The set holds random words again. */
cb_status cb__sweep_fill(cb__sweeping *s, cb_error *err);
/* The xor of the first `bytes` of those. */
uint32_t cb__sweep_expected(const cb__sweeping *s, uint64_t bytes);
void cb__sweep_say(cb__sweeping *s, double of_job);

cb_status cb__sweep_bandwidth(cb__sweeping *s, const cb__job *job, cb__reading *out, cb_error *err);
cb_status cb__sweep_content(cb__sweeping *s, const cb__job *job, cb__reading *out, cb_error *err);
cb_status cb__sweep_latency(cb__sweeping *s, const cb__job *job, cb__reading *out, cb_error *err);
cb_status cb__sweep_floor(cb__sweeping *s, const cb__job *job, cb__reading *out, cb_error *err);
cb_status cb__sweep_compute(cb__sweeping *s, const cb__job *job, cb__reading *out, cb_error *err);
cb_status cb__sweep_scratch(cb__sweeping *s, const cb__job *job, cb__reading *out, cb_error *err);

#endif
