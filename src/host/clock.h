/* clock.h: host time and what it is worth. */
#ifndef CB_HOST_CLOCK_H
#define CB_HOST_CLOCK_H

#include <stdint.h>

/* CLOCK_MONOTONIC in nanoseconds. */
uint64_t cb__clock_ns(void);

typedef struct cb__clock_facts {
    double resolution_ns; /* smallest nonzero step seen between two reads */
    double cost_ns;       /* of one read, median */
    int backwards;        /* steps back seen: must be 0 */
} cb__clock_facts;
/* About `reads` reads of the clock. */
cb__clock_facts cb__clock_test(int reads);

/* Core clock of the calling thread's CPU in Hz, from a chain of dependent 1-cycle operations that
 * the compiler cannot shorten (inline assembly on x86-64 and aarch64), best of several runs of
 * about `run_ns` each. 0 where unknown (other architectures). On a core with neighbours this is the
 * effective clock. */
double cb__core_hz(uint64_t run_ns, int runs);

#endif
