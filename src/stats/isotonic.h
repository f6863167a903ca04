/* isotonic.h: the monotone sequence nearest to a sequence, by pooling adjacent violators. Pure. */
#ifndef CB_STATS_ISOTONIC_H
#define CB_STATS_ISOTONIC_H

#include <stdbool.h>
#include <stddef.h>

/* fit[i]: the weighted least-squares fit of values that never rises (`falling`) or never falls, in
 * time O(n) (Barlow et al., Statistical Inference under Order Restrictions, 1.2). weights,
 * positive; NULL: all equal. No NaN among the values. fit may be values. Allocates nothing: n up to
 * CB__ISOTONIC_MAX, more is a caller's error and fits NaN throughout. */
enum { CB__ISOTONIC_MAX = 1024 };

void cb__isotonic(const double *values, const double *weights, size_t n, bool falling, double *fit);

#endif
