/* probe.h: what the sweeps of a probe brought home, before anything was made of it; and the pure
 * step from that to a machine model with its controls.
 *
 * A sweep is one pass over everything, in fresh processes, sizes in random order. A group is what
 * one process of a sweep does: one number of threads, one placement, one kind of pages. */
#ifndef CB_PROBE_PROBE_H
#define CB_PROBE_PROBE_H

#include "device/device.h"
#include "model/model.h"

enum {
    CB__SWEEPS = 6, /* at most; six are the fewest whose range covers a median with 0.95 */
    CB__SIZES_MAX = 96,
    CB__GROUPS_MAX = 40,
    CB__PROBE_SERIES_MAX = 120,
    CB__SCALARS_MAX = 200,
    CB__VARIANTS_MAX = 64,
    CB__SCRATCH_MAX = 6 /* two paths, three widths */
};

/* One size in one sweep. */
typedef struct cb__reading {
    double value;     /* GB/s or ns a load; NaN: not measured */
    double folded;    /* time of three times the traffic over three times the time; NaN: latency */
    double clock_hz;  /* of the core, between the readings; NaN: unknown */
    double edge_gain; /* value of the variant with most in flight over the best of the others; NaN:
                         there is one variant */
    int variant;      /* index into cb__probe.variants of the fastest; -1: none */
    int covered;      /* 1: every line was met (checksum, contents, end of the chain), 0: not,
                         -1: not looked */
    double low, high; /* of the places on a chip that `value` is the median of; NaN: one place */
} cb__reading;

/* Of what was not measured. */
static inline cb__reading cb__no_reading(void)
{
    const double none = (double)__builtin_nan("");
    return (cb__reading){none, none, none, none, -1, -1, none, none};
}

typedef struct cb__probe_series {
    cb__series_kind kind;
    char what[16];
    int group;
    int n;
    int64_t bytes[CB__SIZES_MAX];                    /* rise */
    cb__reading readings[CB__SWEEPS][CB__SIZES_MAX]; /* by sweep, then as bytes */
} cb__probe_series;

/* A figure that has no size. */
typedef enum cb__scalar_kind {
    CB__FLOOR,   /* what: submit mode; ns a launch */
    CB__COMPUTE, /* what: "f32" "f64" "int8"; 1e9 operations a second */
    CB__CONTENT  /* what: "random" "constant" "untouched"; GB/s of reading the largest set */
} cb__scalar_kind;

typedef struct cb__scalar {
    cb__scalar_kind kind;
    char what[16];
    int group;
    double values[CB__SWEEPS]; /* NaN: not measured */
} cb__scalar;

/* Reading an array on the chip, or through the caches, at a stride. */
typedef struct cb__probe_scratch {
    char what[16]; /* "shared/16", "global/4": path, bytes a lane */
    int n;
    int strides[CB__SIZES_MAX];               /* bytes; rise */
    double values[CB__SWEEPS][CB__SIZES_MAX]; /* GB/s that lanes ask for; NaN: not measured */
    int missed;                               /* readings whose sum was wrong */
} cb__probe_scratch;

typedef struct cb__group {
    int threads;
    bool scattered;
    bool base_pages; /* base pages were asked for; else huge ones */
    /* of each sweep */
    cb__pages pages[CB__SWEEPS];
    uint64_t sampled_words[CB__SWEEPS], distinct_words[CB__SWEEPS];
    double steal_s[CB__SWEEPS], wall_s[CB__SWEEPS];
    int64_t involuntary[CB__SWEEPS];
} cb__group;

typedef struct cb__probe {
    cb__device_info device;
    char variants[CB__VARIANTS_MAX][96];
    int nvariants;
    cb__group groups[CB__GROUPS_MAX];
    int ngroups;
    cb__probe_series series[CB__PROBE_SERIES_MAX];
    int nseries;
    cb__scalar scalars[CB__SCALARS_MAX];
    int nscalars;
    cb__probe_scratch scratch[CB__SCRATCH_MAX];
    int nscratch;
    int planned; /* sweeps */
    int sweeps;  /* completed of all that was planned; the last one may be partly there */
    bool quick, complete;
    char dropped[200]; /* what the budget had no room for; "" nothing */
    cb_error
        failure; /* of the first worker that died, hung or launched what failed; the rest went on */
    /* found by judging */
    double clock_hz; /* of one core, beside its best reading of the first cache; 0: unknown */
    double port_bound_gb_per_s; /* load ports x width x that clock; 0: unknown */
    double wall_s, measure_s;
} cb__probe;

/* Fills model's levels, series, knees, ceilings, floors, computes, checks, threads, sweeps, quick
 * and complete. Provenance is the caller's. */
cb_status cb__probe_judge(cb__probe *probe, cb_model *model, cb_error *err);

#endif
