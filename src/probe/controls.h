/* controls.h: the controls of a probe: what the raw sweeps say about how far they can be believed.
 * Pure. A control accuses a point only where the sweeps agree: where some do and some do not, the
 * point is `unstable`. */
#ifndef CB_PROBE_CONTROLS_H
#define CB_PROBE_CONTROLS_H

#include "probe/probe.h"
#include "stats/knees.h"

enum { CB__CONTROLS = 10 };

/* A figure over the sweeps that have it. */
typedef struct cb__swept {
    cb__interval over;
    int n;
} cb__swept;

/* Work of judging; every index as in the probe. On the heap: it is large. */
typedef struct cb__judging {
    cb__probe *probe;
    cb_model *model; /* its ceilings are there, with verdicts of their own */
    cb__swept values[CB__PROBE_SERIES_MAX][CB__SIZES_MAX];
    cb_verdict points[CB__PROBE_SERIES_MAX][CB__SIZES_MAX];
    cb__knees knees[CB__PROBE_SERIES_MAX]; /* by index among the sizes that have a value */
    cb_verdict steps[CB__PROBE_SERIES_MAX][CB__KNEES_MAX]; /* what the sweeps say of each knee */
    cb_verdict groups[CB__GROUPS_MAX];                     /* of everything in it */
    int64_t page_bytes[CB__GROUPS_MAX]; /* what its latencies are labelled with */
    double clocks[CB__PROBE_SERIES_MAX * CB__SIZES_MAX * CB__SWEEPS]; /* scratch */
} cb__judging;

/* ---- figures (judge.c) ---- */

/* Nothing of a host is smaller than a base page, and 2 MiB is what a huge one is there. */
enum { CB__BASE_PAGE_BYTES = 4096, CB__HUGE_PAGE_BYTES = 2097152 };

/* Values that are not finite are left out. */
cb__swept cb__over_sweeps(const double values[CB__SWEEPS]);
/* hi / lo - 1 against `within`; fewer than two sweeps say nothing: `unknown`. */
cb_verdict cb__steady(cb__swept figure, double within);
/* Whether a reading was made at all. */
bool cb__measured(const cb__reading *reading);
/* Whether a set of that size lies so far beyond the caches that it is memory's: 4x. */
bool cb__beyond_caches(const cb__device_info *device, double bytes);
/* Whether the curve ends in memory: a last step that the sweeps tell apart, and sizes far enough
 * beyond the caches. */
bool cb__reaches_memory(const cb__judging *j, int series);
/* The head of a model's series, without points. */
cb__series cb__series_of(const cb__judging *j, int series);

/* The largest size that the caches can hold and that is as good as any of those, of a curve of a
 * device that launches are queued to: smaller ones are bound by what a pass over them costs, and
 * say nothing of a cache. 0 of any other curve. Indices among the sizes. */
int cb__best_cached(const cb__judging *j, int series);
/* The first of those that are as good: where the plateau begins; 0 likewise. */
int cb__plateau_start(const cb__judging *j, int series);
/* The model's scratch rows and banks (judge_scratch.c). */
cb_status cb__judge_scratch(cb__judging *j);

/* ---- parts of controls (controls.c) ---- */

typedef enum cb__agreement { CB__HOLDS, CB__DISPUTED, CB__BROKEN } cb__agreement;

/* Broken only where at least two sweeps, all there are, lie outside on one side; disputed where
 * only their median does. */
cb__agreement cb__agree(cb__swept x, double lo, double hi);
/* A lone sweep cannot accuse, so it cannot acquit; where sweeps disagree nothing is claimed. */
cb__check_status cb__status_of(cb__agreement a, int sweeps);
/* Why a control that was looked at was not decided; "" where it was. */
const char *cb__doubt_text(cb__agreement a, int sweeps);
/* "s" of what there is one or several of, and of what one does. */
const char *cb__plural(int n);
const char *cb__verb(int n);
__attribute__((format(printf, 6, 7))) void cb__control_add(cb__judging *j, const char *name,
                                                           cb_verdict verdict, bool required,
                                                           cb__check_status status,
                                                           const char *format, ...);
const cb__group *cb__group_of(const cb__judging *j, int series);
bool cb__is_read(const cb__judging *j, int series);
/* What the first caches of so many threads hold together; 0: unknown. */
double cb__first_cache(const cb__device_info *device, int threads);
/* A read curve of one core, which is what the first cache and the load ports are judged on. */
bool cb__is_lone_read(const cb__judging *j, int series);

typedef struct cb__label {
    char text[80];
} cb__label;

/* "read/1 at 16 KiB" */
cb__label cb__point_label(const cb__judging *j, int series, int size);
void cb__worsen(cb__judging *j, int series, int size, cb_verdict verdict);
void cb__worsen_series(cb__judging *j, int series, double up_to_bytes, cb_verdict verdict);
void cb__worsen_kind(cb__judging *j, int group, cb__series_kind kind, cb_verdict verdict);

/* ---- controls; each adds its check ---- */

/* Of every point (controls_curve.c). */
void cb__control_drive(cb__judging *j);
void cb__control_folding(cb__judging *j);
void cb__control_monotonicity(cb__judging *j);
void cb__control_coverage(cb__judging *j);
/* Of the load ports (controls_port.c). */
void cb__control_port_bound(cb__judging *j);

/* All, CB__CONTROLS of them: the caller allocated the model's checks. Worsens verdicts of points,
 * groups and ceilings; fills the probe's clock and port bound. */
void cb__controls_run(cb__judging *j);

#endif
