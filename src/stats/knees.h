/* knees.h: where a curve over sizes steps from one plateau to the next, as intervals, from whole
 * sweeps. Pure: no clock, no I/O; allocates nothing.
 *
 * The curve is the logarithm of the values. Isotonic fit over all sweeps, optimal partition into
 * plateaus (dynamic programming), plateaus of at least three points, steps under 8 % merged. */
#ifndef CB_STATS_KNEES_H
#define CB_STATS_KNEES_H

#include <stdbool.h>
#include <stddef.h>

enum { CB__KNEES_MAX = 8, CB__KNEE_SIZES_MAX = 128, CB__KNEE_SWEEPS_MAX = 16 };
#define CB__KNEE_STEP 0.08 /* a smaller step is no knee */

/* One knee: sizes[lo] is the end of the upper plateau, sizes[hi] the start of the lower one (upper
 * and lower as the curve falls; for latency the faster and the slower). */
typedef struct cb__knee {
    size_t lo, hi;
    double from, to; /* values of the two plateaus */
    int seen;        /* sweeps that, each by itself, have a knee overlapping [lo, hi] */
} cb__knee;

typedef struct cb__plateau {
    size_t first, last; /* indices of sizes, inclusive; at least three points */
    double value;       /* median over its points and all sweeps */
} cb__plateau;

typedef struct cb__knees {
    cb__plateau plateaus[CB__KNEES_MAX + 1];
    int nplateaus;
    cb__knee knees[CB__KNEES_MAX]; /* knee i lies between plateaus i and i + 1 */
    int nknees;
    /* The largest relative distance of the median over sweeps from the isotonic fit, and where. */
    double residual;
    size_t residual_at;
} cb__knees;

/* values[s * n + i]: sweep s at sizes[i]; sizes rise; NaN or a value not above 0: not measured
 * there. `falling`: bandwidth; else latency. n up to CB__KNEE_SIZES_MAX, sweeps up to
 * CB__KNEE_SWEEPS_MAX; more is a caller's error and gives no knees. */
void cb__knees_find(const double *sizes, size_t n, const double *values, size_t sweeps,
                    bool falling, cb__knees *out);

#endif
