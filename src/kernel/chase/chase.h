/* chase.h: what kernel.c and cpu_portable.c of chase share: the order in which the chain goes
 * through its lines.
 *
 * Hop h of the chain is at line cb__chase_line(order, h), a bijection of [0, lines) that takes no
 * table and a few nanoseconds. So any part of a chain can be written by itself, a launch can begin
 * at any hop, and the line that it must end at is known without following the chain.
 */
#ifndef COLDBENCH_KERNEL_CHASE_H
#define COLDBENCH_KERNEL_CHASE_H

#include "coldbench/kernel.h"

/* The operands and the parameters, in the order of the tables in kernel.c. */
enum { CHASE_CHAIN, CHASE_END, CHASE_OPERANDS };
enum { CHASE_PATTERN, CHASE_STEPS, CHASE_START, CHASE_LEAD, CHASE_PLACE };
enum { CHASE_RANDOM, CHASE_LOCAL };

enum { CB__CHASE_LINE = 64, CB__CHASE_PAGE = 4096 };
enum { CB__CHASE_PAGE_LINES = CB__CHASE_PAGE / CB__CHASE_LINE };

/* The words of a line: the byte offset of the next line, then random ones; that of the first line
 * says which order the chain has. */
enum { CB__CHASE_NEXT, CB__CHASE_KEY, CB__CHASE_WORDS = CB__CHASE_LINE / 8 };

typedef struct cb__chase_order {
    uint64_t key;
    uint64_t lines;
    int64_t pattern;
} cb__chase_order;

static inline cb__chase_order cb__chase_order_of(const cb_problem *problem, uint64_t key)
{
    return (cb__chase_order){key, (uint64_t)problem->shape[0] / CB__CHASE_LINE,
                             problem->params[CHASE_PATTERN]};
}

/* A keyed bijection of [0, n): four Feistel rounds on the bits that n takes, again and again until
 * the result is below n. It gets there because the rounds are a bijection of a range that is less
 * than twice as large, and x itself is below n. */
static inline uint64_t cb__chase_permute(uint64_t key, uint64_t n, uint64_t x)
{
    int bits = n > 1 ? 64 - __builtin_clzll(n - 1) : 0;
    int low_bits = bits / 2;
    uint64_t low_mask = (UINT64_C(1) << low_bits) - 1;
    uint64_t high_mask = (UINT64_C(1) << (bits - low_bits)) - 1;
    do {
        uint64_t low = x & low_mask, high = x >> low_bits;
        for (uint64_t round = 0; round < 4; round += 2) {
            high ^= cb_random_word(key, 4 * low + round) & high_mask;
            low ^= cb_random_word(key, 4 * high + round + 1) & low_mask;
        }
        x = high << low_bits | low;
    } while (x >= n);
    return x;
}

/* The line of hop `hop`, which is below the number of lines. */
static inline uint64_t cb__chase_line(const cb__chase_order *order, uint64_t hop)
{
    if (order->pattern == CHASE_RANDOM)
        return cb__chase_permute(order->key, order->lines, hop);
    uint64_t page = cb__chase_permute(order->key, order->lines / CB__CHASE_PAGE_LINES,
                                      hop / CB__CHASE_PAGE_LINES);
    uint64_t line = cb__chase_permute(cb_random_mix(order->key + page), CB__CHASE_PAGE_LINES,
                                      hop % CB__CHASE_PAGE_LINES);
    return page * CB__CHASE_PAGE_LINES + line;
}

int cb__chase_portable(const cb_launch *launch);

#endif
