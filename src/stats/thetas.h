/* thetas.h: what one round says: the log ratio of every two arms, and what the place in a block
 * does. Pure: no clock, no I/O, no allocation. */
#ifndef CB_STATS_THETAS_H
#define CB_STATS_THETAS_H

#include <stddef.h>

enum { CB__ARMS_MAX = 16 };

/* The slots of a round, borrowed. Both tables are [block * arms + arm]. */
typedef struct cb__round_slots {
    int arms; /* 2 to CB__ARMS_MAX */
    size_t blocks;
    const double *ns;              /* slot time, positive */
    const unsigned char *position; /* the arm's slot in its block: 0 ran first */
} cb__round_slots;

typedef struct cb__round_estimate {
    /* theta[i][j] estimates log(time of j / time of i); theta[j][i] is exactly its negative. */
    double theta[CB__ARMS_MAX][CB__ARMS_MAX];
    double position_effect; /* in logs; positive: earlier slots are slower */
} cb__round_estimate;

/* theta(i,j) = half of [median log(tj/ti) over the blocks where i ran before j + the same where it
 * ran after], so that what a place in the block costs cancels. Where all blocks have the same
 * order of the two, theta is the median over them: it then holds the position effect, with the sign
 * that the coin gave it, which a rule over rounds bears. The position effect is the mean over the
 * pairs that have both orders of half of [median with i after - median with i before]; NaN where no
 * pair has. Without blocks, and for a pair with a time that is no number, theta is NaN.
 * scratch: room for `blocks` doubles. */
void cb__thetas_of(const cb__round_slots *round, double *scratch, cb__round_estimate *estimate);

#endif
