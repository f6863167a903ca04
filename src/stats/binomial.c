#include "stats/binomial.h"

#include <math.h>

/* The chance of first to last events, 0 < rate < 1. In logs: (1 - rate)^n alone may underflow. */
static double between(int first, int last, int n, double rate)
{
    double log_ways = 0, sum = 0; /* of choosing i of n */
    for (int i = 0; i <= last; i++) {
        if (i >= first)
            sum += exp(log_ways + i * log(rate) + (n - i) * log1p(-rate));
        log_ways += log((double)(n - i) / (i + 1));
    }
    return sum < 1 ? sum : 1;
}

double cb__binomial_tail(int k, int n, double rate)
{
    if (k <= 0)
        return 1;
    if (k > n || rate <= 0)
        return 0;
    return rate >= 1 ? 1 : between(k, n, n, rate);
}

double cb__binomial_upper(int k, int n, double confidence)
{
    if (k < 0 || k > n || !(confidence > 0 && confidence < 1))
        return (double)NAN;
    if (k == n)
        return 1;
    double low = 0, high = 1;
    for (int i = 0; i < 60; i++) { /* halvings: to the last bits of a double near 1 */
        double middle = (low + high) / 2;
        if (between(0, k, n, middle) > 1 - confidence)
            low = middle;
        else
            high = middle;
    }
    return high;
}
