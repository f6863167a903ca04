/* block_signs.h: whether two arms differ within one process image. A diagnostic, not a claim about
 * the code: layout luck differs within one image too. Pure: no clock, no I/O, no allocation.
 *
 * Order within a block is drawn by our coin, so if it made no difference which arm ran, B would be
 * the slower of the two with chance 1/2 in each block, whatever the earlier blocks were. After k of
 * n such blocks, the mixture over p ~ Beta(1/2, 1/2) of (2p)^k (2(1-p))^(n-k) is a likelihood
 * ratio; it ever reaches 1/alpha with probability at most alpha (Ville). It is symmetric: both
 * directions are covered. Blocks whose readings are equal say nothing about the coin and are passed
 * over. */
#ifndef CB_STATS_BLOCK_SIGNS_H
#define CB_STATS_BLOCK_SIGNS_H

#include <stdbool.h>
#include <stddef.h>

/* Starts as {0}. */
typedef struct cb__block_signs {
    size_t slower, faster, equal; /* blocks where B was */
    double log_e, peak;           /* log of the likelihood ratio: now, its maximum so far */
} cb__block_signs;

/* One block's slots. A time that is no number counts as equal. */
void cb__block_signs_add(cb__block_signs *signs, double a_ns, double b_ns);

/* "differs in this process image"; once true, true for good. */
bool cb__block_signs_differ(const cb__block_signs *signs, double alpha);

#endif
