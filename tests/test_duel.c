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

#include <dlfcn.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/pool.h"
#include "measure/duel.h"
#include "measure/fill.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

/* ---- the allocator ---- */

static volatile int within; /* between the first mark of a block and its last slot */
static volatile int allocations;

#if !SANITIZED
void *malloc(size_t size)
{
    static void *(*next)(size_t);
    if (!next) {
        void *symbol = dlsym(RTLD_NEXT, "malloc");
        memcpy(&next, &symbol, sizeof next);
    }
    allocations += within;
    return next(size);
}

void free(void *address)
{
    static void (*next)(void *);
    if (!next) {
        void *symbol = dlsym(RTLD_NEXT, "free");
        memcpy(&next, &symbol, sizeof next);
    }
    allocations += within;
    next(address);
}
#endif

/* ---- a device that notes where blocks begin and end ---- */

enum { SENTRY_BEGIN = 0x5eed0, SENTRY_END = 0x5eed1, ARMS = 3, BLOCKS = 12 };

static bool traced;
static int slots_marked;

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

/* Allocates in every slot, or enters the kernel in it: seeded, to be found. */
static int misbehaves;
static cb_status (*real_sync)(cb__device *device, cb_error *err);

static cb_status misbehaving_sync(cb__device *device, cb_error *err)
{
    static void *volatile kept; /* or the compiler leaves both out */
    if (misbehaves == 1) {
        kept = malloc(100);
        free(kept);
    }
    if (misbehaves == 2)
        syscall(SYS_getppid);
    return real_sync(device, err);
}

static void setup(fixture *f, const char *variant, const char *shape, bool cold)
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
    assert_int_equal(f->ops.open("", 1, CB__COMPACT, &f->target.device, &err), CB_OK);
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
        f->arms[i] = (cb__duelist){&f->c[i], &f->plans[i], f->ring.fd, filled.digest};
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

static int allocations_of(const char *variant, const char *shape, bool cold, cb__submit submit)
{
    cb_error err = CB_ERROR_INIT;
    setup(&f, variant, shape, cold);
    f.request.submit = submit;
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
    for (int submit = 0; submit < 2; submit++) {
        assert_int_equal(allocations_of("stream_read/portable", "24KiB", false, (cb__submit)submit),
                         0);
        assert_int_equal(allocations_of("stream_read/portable", "24KiB", true, (cb__submit)submit),
                         0);
        assert_int_equal(allocations_of("alu_chain/portable", NULL, false, (cb__submit)submit), 0);
    }
    misbehaves = 1;
    assert_true(allocations_of("alu_chain/portable", NULL, false, CB__BATCHED) > 0);
    misbehaves = 0;
}

/* ---- system calls ---- */

static _Noreturn void traced_child(void)
{
    cb_error err = CB_ERROR_INIT;
    setup(&f, "stream_read/portable", "24KiB", false);
    traced = true;
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
        _exit(77);
    raise(SIGSTOP);
    _exit(cb__duel_run(f.target, &f.request, &f.result, &err) == CB_OK ? 0 : 1);
}

typedef struct counts {
    int blocks, calls;
    int status;
} counts;

/* Counts the calls that the child makes between the sentries. */
static counts trace(pid_t child)
{
    counts c = {0, 0, -1};
    bool inside = false, entering = true;
    int status;
    for (;;) {
        if (waitpid(child, &status, 0) < 0 || WIFSIGNALED(status))
            return c;
        if (WIFEXITED(status)) {
            c.status = WEXITSTATUS(status);
            return c;
        }
        if (WSTOPSIG(status) == (SIGTRAP | 0x80)) {
            struct __ptrace_syscall_info info;
            if (entering &&
                ptrace(PTRACE_GET_SYSCALL_INFO, child, (void *)sizeof info, &info) > 0) {
                bool begin = info.entry.nr == SENTRY_BEGIN, end = info.entry.nr == SENTRY_END;
                c.blocks += begin;
                c.calls += inside && !begin && !end;
                inside = begin || (inside && !end);
            }
            entering = !entering;
        } else {
            ptrace(PTRACE_SETOPTIONS, child, NULL, (void *)PTRACE_O_TRACESYSGOOD);
        }
        ptrace(PTRACE_SYSCALL, child, NULL, NULL);
    }
}

static counts traced_run(int misbehaviour)
{
    misbehaves = misbehaviour;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        traced_child();
    counts c = trace(child);
    misbehaves = 0;
    return c;
}

static void no_slot_enters_the_kernel(void **state)
{
    (void)state;
    if (SANITIZED) {
        print_message("    a sanitizer makes calls of its own\n");
        skip();
    }
    counts c = traced_run(0);
    if (c.status == 77) {
        print_message("    this process may not trace another\n");
        skip();
    }
    assert_int_equal(c.status, 0);
    assert_int_equal(c.blocks, BLOCKS + 1);
    assert_int_equal(c.calls, 0);
    counts seeded = traced_run(2);
    assert_int_equal(seeded.status, 0);
    assert_true(seeded.calls >= ARMS * BLOCKS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_slot_allocates),
        cmocka_unit_test(no_slot_enters_the_kernel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
