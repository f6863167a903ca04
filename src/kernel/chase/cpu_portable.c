#include "chase.h"

/* An offset from the base, so that a chain means the same wherever it lies; adding the base is part
 * of the load's address and costs nothing where there is such an address. */
static inline uint64_t next_of(const char *chain, uint64_t offset)
{
    return *(const uint64_t *)(const void *)(chain + offset);
}

/* Loads that wait for no other. */
static void lead_in(const char *chain, const cb__chase_order *order, uint64_t hops, uint64_t start)
{
    hops = hops < order->lines ? hops : order->lines;
    uint64_t hop = (start + order->lines - hops) % order->lines;
    for (; hops > 0; hops--) {
        *(const volatile uint64_t *)(const void *)(chain +
                                                   cb__chase_line(order, hop) * CB__CHASE_LINE);
        hop = hop + 1 < order->lines ? hop + 1 : 0;
    }
}

static int walks(const cb_launch *launch)
{
    int64_t place = launch->problem.params[CHASE_PLACE];
    return launch->worker == (place ? (place - 1) % launch->workers : 0);
}

int cb__chase_portable(const cb_launch *launch)
{
    if (!walks(launch))
        return 0;
    const char *chain = launch->operands[CHASE_CHAIN];
    const int64_t *params = launch->problem.params;
    uint64_t key = ((const uint64_t *)(const void *)chain)[CB__CHASE_KEY];
    cb__chase_order order = cb__chase_order_of(&launch->problem, key);
    uint64_t steps = (uint64_t)params[CHASE_STEPS];
    uint64_t start = (uint64_t)params[CHASE_START] % order.lines;
    uint64_t offset = cb__chase_line(&order, start) * CB__CHASE_LINE;
    lead_in(chain, &order, (uint64_t)params[CHASE_LEAD], start);
    for (uint64_t turns = steps / 16; turns > 0; turns--)
#pragma GCC unroll 16
        for (int i = 0; i < 16; i++)
            offset = next_of(chain, offset);
    for (uint64_t rest = steps % 16; rest > 0; rest--)
        offset = next_of(chain, offset);
    *(uint64_t *)launch->operands[CHASE_END] = offset;
    return 0;
}
