#include "stats/block_signs.h"

#include <math.h>

/* Jeffreys' prior, which finds small and large shares alike. */
static const double prior = 0.5;

/* The mixture predicts the next sign with chance (same + prior) / (n + 2 prior). */
static void add(cb__block_signs *signs, size_t *same)
{
    double n = (double)(signs->slower + signs->faster);
    signs->log_e += log(2 * ((double)*same + prior) / (n + 2 * prior));
    signs->peak = fmax(signs->peak, signs->log_e);
    ++*same;
}

void cb__block_signs_add(cb__block_signs *signs, double a_ns, double b_ns)
{
    if (b_ns > a_ns)
        add(signs, &signs->slower);
    else if (b_ns < a_ns)
        add(signs, &signs->faster);
    else
        signs->equal++;
}

bool cb__block_signs_differ(const cb__block_signs *signs, double alpha)
{
    return signs->peak >= -log(alpha);
}
