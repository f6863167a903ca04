#include "host/clock.h"

#include <stdlib.h>
#include <time.h>

uint64_t cb__clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

cb__clock_facts cb__clock_test(int reads)
{
    enum { BATCHES = 257 };
    cb__clock_facts facts = {0};
    double cost[BATCHES];
    int batch = reads / BATCHES > 1 ? reads / BATCHES : 1;
    for (int b = 0; b < BATCHES; b++) {
        uint64_t start = cb__clock_ns(), last = start;
        for (int i = 0; i < batch; i++) {
            uint64_t now = cb__clock_ns();
            double step = (double)(int64_t)(now - last);
            if (now < last)
                facts.backwards++;
            else if (now > last && (facts.resolution_ns <= 0 || step < facts.resolution_ns))
                facts.resolution_ns = step;
            last = now;
        }
        cost[b] = (double)(int64_t)(last - start) / batch;
    }
    qsort(cost, BATCHES, sizeof *cost, by_value);
    facts.cost_ns = cost[BATCHES / 2];
    return facts;
}

enum { CHAIN_ADDS = 256 };

/* `loops` x CHAIN_ADDS adds, each waiting for the one before. The addend is a register: Golden Cove
 * and later fold an add of a constant away in rename, at zero cycles. The loop's own two operations
 * run beside the chain and cost nothing. */
#if defined(__x86_64__)
static void chain(uint64_t loops)
{
    uint64_t sum = 0;
    __asm__ volatile("1:\n\t"
                     ".rept 256\n\t"
                     "add %2, %0\n\t"
                     ".endr\n\t"
                     "dec %1\n\t"
                     "jnz 1b"
                     : "+&r"(sum), "+&r"(loops)
                     : "r"((uint64_t)3)
                     : "cc");
}
#elif defined(__aarch64__)
static void chain(uint64_t loops)
{
    uint64_t sum = 0;
    __asm__ volatile("1:\n\t"
                     ".rept 256\n\t"
                     "add %0, %0, %2\n\t"
                     ".endr\n\t"
                     "subs %1, %1, #1\n\t"
                     "b.ne 1b"
                     : "+&r"(sum), "+&r"(loops)
                     : "r"((uint64_t)3)
                     : "cc");
}
#endif

double cb__core_hz(uint64_t run_ns, int runs)
{
#if defined(__x86_64__) || defined(__aarch64__)
    double best = 0;
    uint64_t loops = 64; /* about 5 us at 3 GHz */
    for (int run = 0; run < runs;) {
        uint64_t start = cb__clock_ns();
        chain(loops);
        uint64_t elapsed = cb__clock_ns() - start;
        if (elapsed < run_ns / 2) {
            loops *= 2;
            continue;
        }
        double hz = elapsed ? (double)(loops * CHAIN_ADDS) * 1e9 / (double)elapsed : 0;
        best = hz > best ? hz : best;
        run++;
    }
    return best;
#else
    (void)run_ns;
    (void)runs;
    return 0;
#endif
}
