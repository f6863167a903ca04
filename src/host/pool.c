#include "host/pool.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "host/clock.h"

/* Two lines: x86 prefetchers fetch lines in pairs, so neighbours a line apart still disturb. */
enum { LINE_BYTES = 128 };

/* Pauses before a waiter gives up its CPU once: 40 to 100 us where every worker has a CPU of its
 * own, almost at once where workers share CPUs, as then only a yield makes progress. */
enum { SPINS_ALONE = 2048, SPINS_SHARED = 16 };

static const uint64_t sleep_after_ns = 1000000;

/* Every worker counts the meetings it has come to in `epoch`; all counts advance alike, so equality
 * of two epochs is the whole protocol and wrapping does no harm. */
typedef struct worker {
    _Alignas(LINE_BYTES) atomic_uint arrived; /* written by its worker, read by worker 0 */
    unsigned epoch;                           /* its worker's own */
    int index;
    cb__pool *pool;
    pthread_t thread;
} worker;

struct cb__pool {
    /* The line every idle worker spins on; written once a run. */
    _Alignas(LINE_BYTES) atomic_uint generation;
    cb__pool_fn fn;
    void *arg;
    bool quit;
    _Alignas(LINE_BYTES) atomic_uint released; /* epoch that worker 0 lets pass */
    _Alignas(LINE_BYTES) atomic_int sleepers;
    atomic_bool hold;
    int workers, started;
    int spins;
    bool pinned;
    cpu_set_t caller_mask;
    worker *worker;
};

static void cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}

static void futex_wait(atomic_uint *word, unsigned seen)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

static void futex_wake_all(atomic_uint *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

static void wait_until(atomic_uint *word, unsigned value, int spins)
{
    for (;;) {
        for (int i = 0; i < spins; i++) {
            if (atomic_load_explicit(word, memory_order_acquire) == value)
                return;
            cpu_relax();
        }
        sched_yield();
    }
}

/* Every worker says that it is here; worker 0 returns when all have. The others do not wait. */
static void gather(cb__pool *pool, int index)
{
    worker *self = &pool->worker[index];
    unsigned epoch = ++self->epoch;
    if (index != 0) {
        atomic_store_explicit(&self->arrived, epoch, memory_order_release);
        return;
    }
    for (int w = 1; w < pool->workers; w++)
        wait_until(&pool->worker[w].arrived, epoch, pool->spins);
}

void cb__pool_barrier(cb__pool *pool, int index)
{
    gather(pool, index);
    unsigned epoch = pool->worker[index].epoch;
    if (index == 0)
        atomic_store_explicit(&pool->released, epoch, memory_order_release);
    else
        wait_until(&pool->released, epoch, pool->spins);
}

/* The sleeper count goes up before the futex looks at the generation, and cb__pool_run looks at the
 * count after it changed the generation, both in the one order of seq_cst: a wake-up cannot be
 * missed. The same holds between the count and `hold`. */
static void sleep_on_generation(cb__pool *pool, unsigned seen)
{
    atomic_fetch_add(&pool->sleepers, 1);
    if (!atomic_load(&pool->hold))
        futex_wait(&pool->generation, seen);
    atomic_fetch_sub(&pool->sleepers, 1);
}

static unsigned next_generation(cb__pool *pool, unsigned seen)
{
    uint64_t since = cb__clock_ns();
    for (;;) {
        for (int i = 0; i < pool->spins; i++) {
            unsigned now = atomic_load_explicit(&pool->generation, memory_order_acquire);
            if (now != seen)
                return now;
            cpu_relax();
        }
        if (!atomic_load(&pool->hold) && cb__clock_ns() - since > sleep_after_ns) {
            sleep_on_generation(pool, seen);
            since = cb__clock_ns();
        } else {
            sched_yield();
        }
    }
}

static void *worker_main(void *arg)
{
    worker *self = arg;
    cb__pool *pool = self->pool;
    for (unsigned seen = 0;;) {
        seen = next_generation(pool, seen);
        if (pool->quit)
            return NULL;
        cb__pool_barrier(pool, self->index);
        pool->fn(pool->arg, self->index, pool->workers);
        gather(pool, self->index);
    }
}

static void publish_generation(cb__pool *pool)
{
    atomic_fetch_add(&pool->generation, 1);
    if (atomic_load(&pool->sleepers) > 0)
        futex_wake_all(&pool->generation);
}

void cb__pool_run(cb__pool *pool, cb__pool_fn fn, void *arg)
{
    pool->fn = fn;
    pool->arg = arg;
    publish_generation(pool);
    cb__pool_barrier(pool, 0);
    fn(arg, 0, pool->workers);
    gather(pool, 0);
}

void cb__pool_hold(cb__pool *pool, bool spinning)
{
    atomic_store(&pool->hold, spinning);
    while (spinning && atomic_load(&pool->sleepers) > 0) {
        futex_wake_all(&pool->generation);
        sched_yield();
    }
}

int cb__pool_workers(const cb__pool *pool)
{
    return pool->workers;
}

static int distinct_cpus(const int *cpus, int workers)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (cpus) {
        for (int w = 0; w < workers; w++)
            CPU_SET(cpus[w], &set);
    } else if (sched_getaffinity(0, sizeof set, &set) != 0) {
        return workers;
    }
    return CPU_COUNT(&set);
}

static cb_status pin(pthread_t thread, int index, int cpu, cb_error *err)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    int failed = pthread_setaffinity_np(thread, sizeof set, &set);
    if (failed)
        return cb_error_set(err, CB_UNAVAILABLE, "cannot pin worker %d to CPU %d: %s", index, cpu,
                            strerror(failed));
    return CB_OK;
}

/* Signals stay with the caller: a handler that ran on a worker would stretch a timed region. */
static cb_status start_threads(cb__pool *pool, cb_error *err)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int failed = 0;
    while (pool->started + 1 < pool->workers && !failed) {
        worker *next = &pool->worker[pool->started + 1];
        failed = pthread_create(&next->thread, NULL, worker_main, next);
        pool->started += failed ? 0 : 1;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (failed)
        return cb_error_set(err, CB_UNAVAILABLE, "cannot start worker %d of %d: %s",
                            pool->started + 1, pool->workers, strerror(failed));
    return CB_OK;
}

static cb_status pin_all(cb__pool *pool, const int *cpus, cb_error *err)
{
    int failed =
        pthread_getaffinity_np(pthread_self(), sizeof pool->caller_mask, &pool->caller_mask);
    if (failed)
        return cb_error_set(err, CB_UNAVAILABLE, "cannot read the affinity mask: %s",
                            strerror(failed));
    for (int w = 1; w < pool->workers; w++) {
        cb_status status = pin(pool->worker[w].thread, w, cpus[w], err);
        if (status != CB_OK)
            return status;
    }
    cb_status status = pin(pthread_self(), 0, cpus[0], err);
    pool->pinned = status == CB_OK;
    return status;
}

static void *aligned_zeros(size_t bytes)
{
    bytes = (bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
    void *memory = aligned_alloc(LINE_BYTES, bytes);
    return memory ? memset(memory, 0, bytes) : NULL;
}

cb_status cb__pool_new(const int *cpus, int workers, cb__pool **out, cb_error *err)
{
    *out = NULL;
    if (workers < 1)
        return cb_error_set(err, CB_USAGE, "a pool needs at least 1 worker, not %d", workers);
    for (int w = 0; cpus && w < workers; w++)
        if (cpus[w] < 0 || cpus[w] >= CPU_SETSIZE)
            return cb_error_set(err, CB_USAGE, "worker %d: no such CPU: %d", w, cpus[w]);
    cb__pool *pool = aligned_zeros(sizeof *pool);
    worker *all = aligned_zeros((size_t)workers * sizeof *all);
    if (!pool || !all) {
        free(pool);
        free(all);
        return cb_error_set(err, CB_NO_MEMORY, "no memory for a pool of %d workers", workers);
    }
    pool->worker = all;
    pool->workers = workers;
    pool->spins = workers > distinct_cpus(cpus, workers) ? SPINS_SHARED : SPINS_ALONE;
    for (int w = 0; w < workers; w++) {
        all[w].index = w;
        all[w].pool = pool;
    }
    cb_status status = start_threads(pool, err);
    if (status == CB_OK && cpus)
        status = pin_all(pool, cpus, err);
    if (status != CB_OK) {
        cb__pool_free(pool);
        return status;
    }
    *out = pool;
    return CB_OK;
}

void cb__pool_free(cb__pool *pool)
{
    if (!pool)
        return;
    pool->quit = true;
    publish_generation(pool);
    for (int w = 1; w <= pool->started; w++)
        pthread_join(pool->worker[w].thread, NULL);
    if (pool->pinned)
        pthread_setaffinity_np(pthread_self(), sizeof pool->caller_mask, &pool->caller_mask);
    free(pool->worker);
    free(pool);
}
