/* binomial.h: what k events in n trials say of their rate. Pure: no clock, no I/O, no allocation.
 */
#ifndef CB_STATS_BINOMIAL_H
#define CB_STATS_BINOMIAL_H

/* Exact upper bound of the rate after k events in n trials (Clopper and Pearson, Biometrika 26,
 * 1934), one-sided: the rate at which so few would be seen with a chance of 1 - confidence. 1 where
 * k = n, n = 0 included. NaN for k or confidence out of range. */
double cb__binomial_upper(int k, int n, double confidence);
/* The chance of k events or more in n trials at that rate. 1 for k <= 0, 0 for k > n. */
double cb__binomial_tail(int k, int n, double rate);

#endif
