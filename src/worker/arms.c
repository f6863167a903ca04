#include "worker/arms.h"

#include <alloca.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "coldbench/random.h"
#include "host/clock.h"
#include "host/environment.h"

enum { JUNK_PAGES_MAX = 32, STACK_STEPS = 256, STACK_STEP_BYTES = 16 };

/* ---- images ---- */

static cb_status load_file(const cb__work_arm *arm, cb__module **out, cb_error *err)
{
    struct stat info;
    if (fstat(arm->module_fd, &info) != 0 || info.st_size <= 0)
        return cb_error_set(err, CB_INTERNAL, "module %s: no file behind descriptor %d",
                            arm->module, arm->module_fd);
    size_t size = (size_t)info.st_size;
    void *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, arm->module_fd, 0);
    if (bytes == MAP_FAILED)
        return cb_error_set(err, CB_NO_MEMORY, "module %s: cannot be mapped", arm->module);
    cb_status status = cb__module_open_bytes(arm->module, bytes, size, false, out, err);
    munmap(bytes, size);
    return status;
}

static cb_status load(const cb__work_arm *arm, cb__suite *suite, cb_error *err)
{
    cb__module *module = NULL;
    cb_status status = arm->module_fd >= 0 ? load_file(arm, &module, err)
                                           : cb__module_open(arm->module, true, &module, err);
    if (status == CB_OK)
        suite->modules[suite->nmodules++] = module;
    return status;
}

/* Which physical pages and addresses the next image gets is left to chance. */
static void take_junk(cb__arms *arms, uint64_t word)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = word % JUNK_PAGES_MAX;
    if (!pages)
        return;
    char *junk =
        mmap(NULL, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (junk == MAP_FAILED)
        return;
    for (size_t i = 0; i < pages; i++)
        junk[i * page] = (char)i;
    arms->junk[arms->njunk] = junk;
    arms->junk_bytes[arms->njunk++] = pages * page;
}

static void shuffle(uint64_t seed, int n, int *order)
{
    for (int i = 0; i < n; i++) {
        int j = (int)(cb_random(seed, 0x6c6f6164u, 0, (uint64_t)i) % (unsigned)(i + 1));
        order[i] = order[j];
        order[j] = i;
    }
}

cb_status cb__arms_open(const cb__work *work, unsigned isa, cb__arms *arms, cb_error *err)
{
    int order[CB__DUEL_ARMS_MAX];
    int n = work->duel.narms;
    cb_status status =
        n > 0 ? CB_OK : cb_error_set(err, CB_USAGE, "request: %s without arms", work->op);
    shuffle(work->seed, n, order);
    for (int i = 0; i < n && status == CB_OK; i++) {
        take_junk(arms, cb_random(work->seed, 0x6a756e6bu, 0, (uint64_t)i));
        status = load(&work->duel.arms[order[i]], &arms->suites[order[i]], err);
    }
    arms->n = n;
    for (int i = 0; i < n && status == CB_OK; i++) {
        status = cb__case_parse(&arms->suites[i], work->duel.arms[i].variant, work->shape, isa,
                                &arms->cases[i], err);
        if (status == CB_OK)
            status =
                cb__plan_lay(&arms->cases[i], &work->duel.layout, work->cold, &arms->plans[i], err);
    }
    return status;
}

void cb__arms_close(cb__arms *arms)
{
    for (int i = 0; i < CB__DUEL_ARMS_MAX; i++)
        cb__suite_close(&arms->suites[i]);
    for (int i = 0; i < arms->njunk; i++)
        munmap(arms->junk[i], arms->junk_bytes[i]);
    *arms = (cb__arms){0};
}

/* ---- the round ---- */

static __attribute__((noinline)) cb_status run_deeper(size_t bytes, cb__target target,
                                                      const cb__duel_request *request,
                                                      cb__duel_result *result, cb_error *err)
{
    volatile char *padding = alloca(bytes + 1);
    padding[bytes] = 0;
    cb_status status = cb__duel_run(target, request, result, err);
    padding[0] = padding[bytes]; /* so that it is no tail call from a shallower frame */
    return status;
}

static cb_status measure(const cb__work *work, cb__target target, const cb__duel_request *request,
                         cb__duel_answer *a, cb_error *err)
{
    uint64_t start = cb__clock_ns();
    cb__interference before = cb__interference_now();
    if (target.ops->clock_hz && work->duel.timed)
        a->clock_hz = target.ops->clock_hz(target.device);
    size_t depth = cb_random(work->seed, 0x737461636bu, 0, 0) % STACK_STEPS * STACK_STEP_BYTES;
    cb_status status = run_deeper(depth, target, request, &a->result, err);
    if (target.ops->telemetry && work->duel.timed)
        target.ops->telemetry(target.device, a->telemetry, sizeof a->telemetry);
    cb__interference spent = cb__interference_since(&before);
    a->steal_s = spent.steal_s;
    a->involuntary = spent.involuntary;
    a->wall_s = (double)(cb__clock_ns() - start) * 1e-9;
    return status;
}

cb_status cb__arms_duel(const cb__work *work, cb__target target, const cb__arms *arms,
                        cb__arena *arena, void (*alive)(void *arg), void *alive_arg,
                        cb__duel_answer *answer, cb_error *err)
{
    const cb__duel_work *d = &work->duel;
    cb__duelist duelists[CB__DUEL_ARMS_MAX];
    uint64_t expected[CB__DUEL_ARMS_MAX];
    bool expects = true;
    if (work->nmodes != 1)
        return cb_error_set(err, CB_USAGE, "request: a duel has one mode");
    for (int i = 0; i < arms->n; i++) {
        duelists[i] =
            (cb__duelist){&arms->cases[i], &arms->plans[i], d->arms[i].ring_fd,
                          d->arms[i].ring_digest, arms->own[i].after ? &arms->own[i] : NULL};
        expected[i] = d->arms[i].expected;
        expects = expects && d->arms[i].expects;
    }
    cb__region exchange = CB__REGION_INIT;
    cb_status status = cb__duel_result_alloc(work, &arms->plans[0], arena, &answer->result, err);
    if (status == CB_OK)
        status = cb__region_map_untouched(work->exchange_fd, work->exchange_bytes, &exchange, err);
    if (status != CB_OK)
        return status;
    cb__duel_request request = {
        .arms = duelists,
        .narms = arms->n,
        .cache = work->modes[0].cache,
        .submit = work->modes[0].submit,
        .seed = work->seed,
        .poison_seed = d->poison_seed,
        .elapsed_ns = work->elapsed_ns,
        .blocks = d->timed ? work->modes[0].blocks : 0,
        .blocks_min = d->blocks_min,
        .limit_ns = work->limit_ns,
        .batch = d->batch,
        .repeats = d->repeats,
        .readings = d->readings,
        .expected = expects ? expected : NULL,
        .floor = d->floor,
        .digest = d->look,
        .alive = alive,
        .alive_arg = alive_arg,
        .at_work = (int32_t *)((char *)exchange.base + CB__EXCHANGE_AT_WORK),
        .exchange = (unsigned char *)exchange.base + CB__EXCHANGE_HEAD,
        .exchange_bytes = work->exchange_bytes - CB__EXCHANGE_HEAD,
    };
    status = measure(work, target, &request, answer, err);
    cb__region_fini(&exchange);
    return status;
}
