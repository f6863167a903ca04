/* isotonic.c: pool adjacent violators. */
#include "stats/isotonic.h"

#include <math.h>

typedef struct {
    double mean, weight;
    size_t end; /* one past the block's last value */
} block;

void cb__isotonic(const double *values, const double *weights, size_t n, bool falling, double *fit)
{
    block blocks[CB__ISOTONIC_MAX];
    size_t count = 0;
    if (n > CB__ISOTONIC_MAX) {
        for (size_t i = 0; i < n; i++)
            fit[i] = (double)NAN;
        return;
    }
    for (size_t i = 0; i < n; i++) {
        block next = {values[i], weights ? weights[i] : 1, i + 1};
        while (count > 0 && (falling ? blocks[count - 1].mean < next.mean
                                     : blocks[count - 1].mean > next.mean)) {
            block last = blocks[--count];
            double weight = last.weight + next.weight;
            next.mean += (last.mean - next.mean) * (last.weight / weight);
            next.weight = weight;
        }
        blocks[count++] = next;
    }
    for (size_t b = 0, i = 0; b < count; b++) {
        for (; i < blocks[b].end; i++)
            fit[i] = blocks[b].mean;
    }
}
