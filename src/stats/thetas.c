#include "stats/thetas.h"

#include <math.h>
#include <stdbool.h>

#include "stats/order.h"

typedef struct {
    double median; /* of log(tj/ti) */
    size_t blocks;
} side;

static side side_of(const cb__round_slots *round, int i, int j, bool i_first, double *scratch)
{
    size_t n = 0;
    for (size_t block = 0; block < round->blocks; block++) {
        const double *ns = round->ns + block * (size_t)round->arms;
        const unsigned char *position = round->position + block * (size_t)round->arms;
        if ((position[i] < position[j]) == i_first)
            scratch[n++] = log(ns[j] / ns[i]);
    }
    return (side){cb__median(scratch, n), n};
}

static double theta(side before, side after)
{
    if (!before.blocks)
        return after.median;
    if (!after.blocks)
        return before.median;
    return (before.median + after.median) / 2;
}

void cb__thetas_of(const cb__round_slots *round, double *scratch, cb__round_estimate *estimate)
{
    double effects = 0;
    int pairs = 0;
    for (int i = 0; i < round->arms; i++) {
        estimate->theta[i][i] = 0;
        for (int j = i + 1; j < round->arms; j++) {
            side before = side_of(round, i, j, true, scratch);
            side after = side_of(round, i, j, false, scratch);
            estimate->theta[i][j] = theta(before, after);
            estimate->theta[j][i] = -estimate->theta[i][j];
            if (before.blocks && after.blocks) {
                effects += (after.median - before.median) / 2;
                pairs++;
            }
        }
    }
    estimate->position_effect = pairs ? effects / pairs : (double)NAN;
}
