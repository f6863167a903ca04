/* order.h: order statistics. Pure: no clock, no I/O, no allocation but where said.
 *
 * A NaN among the values is a fault upstream that no figure may hide: it sorts last, and a median,
 * a quantile or an interval of values with a NaN is NaN throughout. */
#ifndef CB_STATS_ORDER_H
#define CB_STATS_ORDER_H

#include <stddef.h>

/* A figure over rounds: mid is the median, [lo, hi] the narrowest pair of order statistics whose
 * coverage of the median is at least 0.95 (min and max where none is), coverage what that pair
 * attains. NaN throughout when n is 0; coverage 0 for n = 1. With an infinite value: min and max.
 */
typedef struct cb__interval {
    double lo, mid, hi, coverage;
} cb__interval;

/* Sorts in place; an even count takes the mean of the middle two. NaN for n = 0. */
double cb__median(double *values, size_t n);
/* Quantile q in [0, 1] by linear interpolation (type 7), sorts in place. NaN for n = 0 and for
 * q outside [0, 1]. */
double cb__quantile(double *values, size_t n, double q);
/* Sorts in place. The coverage of order statistics (i, j), 1-based i < j, for the median of a
 * continuous distribution is sum_{m=i}^{j-1} C(n, m) / 2^n (David & Nagaraja, Order
 * Statistics, 7.1). Narrowest by hi - lo; equal widths: the one with the larger coverage, then the
 * lower one. */
cb__interval cb__interval_of(double *values, size_t n);
void cb__sort(double *values, size_t n);

#endif
