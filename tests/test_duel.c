/* Between two adjacent slots of a block nothing allocates and nothing enters the kernel: counted on
 * the real device, by an allocator in front of the system's and by tracing the process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/clock.h"
#include "host/pool.h"
#include "measure/duel.h"
#include "measure/fill.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

/* ---- the allocator ---- */

static atomic_int within; /* between the first mark of a block and its last slot */
static atomic_int allocations;

#if !SANITIZED
/* The system's allocator by its other names: looking them up would allocate. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *address, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *address);

void *malloc(size_t size)
{
    allocations += within;
    return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    allocations += within;
    return __libc_calloc(n, size);
}

void *realloc(void *address, size_t size)
{
    allocations += within;
    return __libc_realloc(address, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    allocations += within;
    return __libc_memalign(alignment, size);
}

void free(void *address)
{
    allocations += within;
    __libc_free(address);
}
#endif

/* ---- a device that notes where blocks begin and end ---- */

enum { SENTRY_BEGIN = 0x5eed0, SENTRY_END = 0x5eed1, ARMS = 3, BLOCKS = 12 };

static bool traced;
static int slots_marked;
static bool slot_begins;

/* A system call that does not exist tells the tracer. */
static void sentry(long which)
{
    if (traced)
        syscall(which);
}

static void mark(cb__device *device, int arm, int place)
{
    (void)device, (void)arm;
    if (place == 0) {
        sentry(SENTRY_BEGIN);
        within = 1;
    } else if (place < 0 && within) {
        within = 0;
        sentry(SENTRY_END);
    }
    slots_marked += place >= 0;
    slot_begins = place >= 0;
}

typedef struct fixture {
    cb__suite suite;
    cb__case c[ARMS];
    cb__plan plans[ARMS];
    cb__duelist arms[ARMS];
    cb__region ring;
    cb__backend ops;
    cb__target target;
    cb__duel_request request;
    cb__duel_result result;
    unsigned char exchange[1 << 20];
    double ns[ARMS * BLOCKS];
    int64_t order[ARMS * BLOCKS], involuntary[BLOCKS];
    cb__duel_entry entries[256];
} fixture;

static void nothing(void *arg, double done)
{
    (void)arg, (void)done;
}

/* Seeded, to be found: every slot allocates, or enters the kernel, or keeps the other threads
 * waiting for longer than they stay awake by themselves. */
static enum { BEHAVES, ALLOCATES, ENTERS, DAWDLES } misbehaves;
static uint64_t dawdle_ns;
static cb_status (*real_sync)(cb__device *device, cb_error *err);

static cb_status misbehaving_sync(cb__device *device, cb_error *err)
{
    static void *volatile kept; /* or the compiler leaves both out */
    if (misbehaves == ALLOCATES) {
        kept = malloc(100);
        free(kept);
    }
    if (misbehaves == ENTERS)
        syscall(SYS_getppid);
    uint64_t start = misbehaves == DAWDLES && slot_begins ? cb__clock_ns() : 0;
    while (start && cb__clock_ns() - start < dawdle_ns) {
    }
    slot_begins = false;
    return real_sync(device, err);
}

static void setup(fixture *f, const char *variant, const char *shape, bool cold, int threads)
{
    cb_error err = CB_ERROR_INIT;
    cb__device_info info;
    cb__layout layout;
    cb__pool *pool = NULL;
    cb__filled filled;
    memset(f, 0, sizeof *f);
    f->ops = cb__backend_cpu;
    f->ops.mark = mark;
    real_sync = f->ops.sync;
    f->ops.sync = misbehaving_sync;
    f->target.ops = &f->ops;
    assert_int_equal(cb__suite_open(NULL, 0, false, &f->suite, &err), CB_OK);
    assert_int_equal(f->ops.open("", threads, CB__COMPACT, &f->target.device, &err), CB_OK);
    f->ops.info(f->target.device, &info);
    info.llc_bytes = 1 << 20; /* a small ring is cold enough for this */
    for (int i = 0; i < ARMS; i++)
        assert_int_equal(cb__case_parse(&f->suite, variant, shape, 0, &f->c[i], &err), CB_OK);
    assert_int_equal(cb__plan_arms(f->c, ARMS, &info, cold, f->plans, &layout, &err), CB_OK);
    assert_int_equal(cb__region_shared("ring", f->plans[0].file_bytes, &f->ring, &err), CB_OK);
    assert_int_equal(cb__pool_new(NULL, 1, &pool, &err), CB_OK);
    assert_int_equal(cb__fill(&f->c[0], &f->plans[0], pool, 1, f->ring.base, NULL, NULL, 0, nothing,
                              NULL, &filled, &err),
                     CB_OK);
    free(filled.checksums);
    cb__pool_free(pool);
    for (int i = 0; i < ARMS; i++)
        f->arms[i] = (cb__duelist){.c = &f->c[i],
                                   .plan = &f->plans[i],
                                   .ring_fd = f->ring.fd,
                                   .ring_digest = filled.digest};
    f->result = (cb__duel_result){
        .entries = f->entries, .ns = f->ns, .order = f->order, .involuntary = f->involuntary};
    f->request = (cb__duel_request){.arms = f->arms,
                                    .narms = ARMS,
                                    .cache = cold ? CB__COLD : CB__WARM,
                                    .submit = CB__BATCHED,
                                    .seed = 1,
                                    .poison_seed = 1,
                                    .blocks = BLOCKS,
                                    .exchange = f->exchange,
                                    .exchange_bytes = sizeof f->exchange};
}

static void teardown(fixture *f)
{
    f->ops.close(f->target.device);
    cb__region_fini(&f->ring);
    cb__suite_close(&f->suite);
}

static fixture f;

static bool one_cpu(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0 || CPU_COUNT(&set) > 1)
        return false;
    print_message("    one CPU: no second thread\n");
    return true;
}

typedef struct way {
    const char *variant, *shape;
    bool cold;
    cb__submit submit;
    int threads;
} way;

static const way ways[] = {
    {"stream_read/portable", "24KiB", false, CB__BATCHED, 1},
    {"stream_read/portable", "24KiB", false, CB__SOLO, 1},
    {"stream_read/portable", "24KiB", true, CB__BATCHED, 1},
    {"stream_read/portable", "24KiB", true, CB__SOLO, 1},
    {"alu_chain/portable", NULL, false, CB__BATCHED, 1},
    {"stream_read/portable", "24KiB", false, CB__BATCHED, 2},
    {"stream_read/portable", "24KiB", true, CB__SOLO, 2},
};
enum { WAYS = sizeof ways / sizeof *ways };

static int allocations_of(const way *how)
{
    cb_error err = CB_ERROR_INIT;
    setup(&f, how->variant, how->shape, how->cold, how->threads);
    f.request.submit = how->submit;
    allocations = slots_marked = 0;
    if (cb__duel_run(f.target, &f.request, &f.result, &err) != CB_OK)
        fail_msg("%s", err.message);
    assert_int_equal(f.result.blocks, BLOCKS);
    assert_int_equal(slots_marked, ARMS * (BLOCKS + 1)); /* and the lead-in */
    print_message("    %.0f ns from slot to slot\n", f.result.gap_ns);
    teardown(&f);
    return allocations;
}

static void no_slot_allocates(void **state)
{
    (void)state;
    if (SANITIZED) {
        print_message("    a sanitizer has the allocator\n");
        skip();
    }
    for (int i = 0; i < WAYS; i++)
        if (ways[i].threads == 1 || !one_cpu())
            assert_int_equal(allocations_of(&ways[i]), 0);
    misbehaves = ALLOCATES;
    assert_true(allocations_of(&ways[0]) >= 2 * ARMS * (BLOCKS + 1));
    misbehaves = BEHAVES;
}

/* ---- system calls ---- */

static _Noreturn void traced_child(const way *how, bool held)
{
    cb_error err = CB_ERROR_INIT;
    /* Before there are threads, so that they are traced too. */
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
        _exit(77);
    raise(SIGSTOP);
    setup(&f, how->variant, how->shape, how->cold, how->threads);
    f.request.submit = how->submit;
    if (!held)
        f.ops.hold = NULL;
    traced = true;
    _exit(cb__duel_run(f.target, &f.request, &f.result, &err) == CB_OK ? 0 : 1);
}

typedef struct counts {
    int blocks, calls; /* calls: but for the clock and for giving up a CPU while waiting */
    int yields, status;
    bool inside;
} counts;

/* The clock is allowed what it needs: nothing, where the system has one outside the kernel. */
static void count(counts *c, long call)
{
    bool begin = call == SENTRY_BEGIN, end = call == SENTRY_END;
    c->blocks += begin;
    c->yields += c->inside && call == SYS_sched_yield;
    c->calls += c->inside && !begin && !end && call != SYS_sched_yield && call != SYS_clock_gettime;
    c->inside = begin || (c->inside && !end);
}

/* Counts the calls that the child and its threads make between the sentries. */
static counts trace(pid_t child)
{
    enum { OPTIONS = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL };
    counts c = {.status = -1};
    int status;
    for (;;) {
        pid_t who = waitpid(-1, &status, __WALL);
        if (who < 0 || (who == child && WIFSIGNALED(status)))
            return c;
        if (who == child && WIFEXITED(status)) {
            c.status = WEXITSTATUS(status);
            return c;
        }
        if (!WIFSTOPPED(status))
            continue;
        int signal = WSTOPSIG(status);
        struct __ptrace_syscall_info info;
        if (signal == (SIGTRAP | 0x80) &&
            ptrace(PTRACE_GET_SYSCALL_INFO, who, (void *)sizeof info, &info) > 0 &&
            info.op == PTRACE_SYSCALL_INFO_ENTRY)
            count(&c, (long)info.entry.nr);
        if (signal == SIGSTOP)
            ptrace(PTRACE_SETOPTIONS, who, NULL, (void *)OPTIONS);
        /* What is not the tracer's doing is the child's to have. */
        bool ours = signal == SIGSTOP || (signal & 0x7f) == SIGTRAP;
        ptrace(PTRACE_SYSCALL, who, NULL, (void *)(intptr_t)(ours ? 0 : signal));
    }
}

static counts traced_run(const way *how, int misbehaviour, bool held)
{
    misbehaves = misbehaviour;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        traced_child(how, held);
    counts c = trace(child);
    misbehaves = BEHAVES;
    if (c.status == 77) {
        print_message("    this process may not trace another\n");
        skip();
    }
    assert_int_equal(c.status, 0);
    assert_int_equal(c.blocks, BLOCKS + 1);
    return c;
}

static void no_slot_enters_the_kernel(void **state)
{
    (void)state;
    if (SANITIZED) {
        print_message("    a sanitizer makes calls of its own\n");
        skip();
    }
    for (int i = 0; i < WAYS; i++) {
        if (ways[i].threads > 1 && one_cpu())
            continue;
        counts c = traced_run(&ways[i], BEHAVES, true);
        assert_int_equal(c.calls, 0);
        if (ways[i].threads == 1)
            assert_int_equal(c.yields, 0);
        else
            print_message("    %d times gave up a CPU while waiting\n", c.yields);
    }
    assert_true(traced_run(&ways[0], ENTERS, true).calls >= ARMS * BLOCKS);
}

/* Threads that nothing keeps awake sleep in the kernel, and are woken by it. */
static void threads_stay_awake_for_a_duel(void **state)
{
    (void)state;
    if (SANITIZED || one_cpu()) {
        print_message("    nothing to see here\n");
        skip();
    }
    const way *two = &ways[WAYS - 1];
    /* Where others have the CPUs it takes longer until a thread that may sleep gets to do so. */
    for (dawdle_ns = 3000000; dawdle_ns < 100000000; dawdle_ns *= 5)
        if (traced_run(two, DAWDLES, false).calls > 0) {
            assert_int_equal(traced_run(two, DAWDLES, true).calls, 0);
            return;
        }
    print_message("    the second thread has no CPU: it does not get to sleep either\n");
    skip();
}

/* ---- what comes first ---- */

static int made[2 * ARMS], nmade;

static cb_status noting_batch_new(cb__device *device, const cb__launch *launches, int n,
                                  cb__batch **out, cb_error *err)
{
    if (nmade < 2 * ARMS && (nmade == 0 || made[nmade - 1] != (int)launches[0].code->cost.flops))
        made[nmade++] = (int)launches[0].code->cost.flops;
    return cb__backend_cpu.batch_new(device, launches, n, out, err);
}

/* Which arm's code and batches are made first is drawn anew with each seed. */
static void any_arm_is_made_first(void **state)
{
    (void)state;
    bool first[ARMS] = {false}, last[ARMS] = {false};
    for (uint64_t seed = 1; seed <= 24; seed++) {
        cb_error err = CB_ERROR_INIT;
        setup(&f, "stream_read/portable", "24KiB", true, 1);
        for (int i = 0; i < ARMS; i++)
            f.c[i].cost.flops = (uint64_t)i + 1;
        f.ops.batch_new = noting_batch_new;
        f.request.seed = seed;
        nmade = 0;
        assert_int_equal(cb__duel_run(f.target, &f.request, &f.result, &err), CB_OK);
        teardown(&f);
        assert_int_equal(nmade, 2 * ARMS); /* what is verified, and what is timed */
        assert_memory_equal(made, made + ARMS, sizeof made / 2);
        unsigned seen = 0;
        for (int i = 0; i < ARMS; i++)
            seen |= 1u << made[i];
        assert_int_equal(seen, (1u << (ARMS + 1)) - 2);
        first[made[0] - 1] = last[made[ARMS - 1] - 1] = true;
    }
    for (int i = 0; i < ARMS; i++)
        assert_true(first[i] && last[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_arm_is_made_first),
        cmocka_unit_test(no_slot_allocates),
        cmocka_unit_test(no_slot_enters_the_kernel),
        cmocka_unit_test(threads_stay_awake_for_a_duel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
