#include "worker/functions.h"

#include <math.h>
#include <string.h>

#include "coldbench/random.h"
#include "device/digest.h"
#include "host/clock.h"

const char *const cb__function_modules[2] = {"side a", "side b"};

/* ---- a function as a kernel ---- */

/* One code path for all sides: which function it is travels where a kernel has its tunables. */
static int call(const cb_launch *launch)
{
    const cb__function *f = (const cb__function *)(uintptr_t)launch->tunables[0];
    f->run(f->state);
    return 0;
}

static void no_cost(const cb_problem *problem, cb_cost *cost)
{
    (void)problem;
    *cost = (cb_cost){0};
}

static const cb_impl caller = {.name = "c", .help = "a function of the program", .run = call};

static const cb_kernel function_kernel = {.name = "function",
                                          .summary = "a function of the program",
                                          .formula = "its own",
                                          .cost = no_cost,
                                          .no_twin = 1,
                                          .impls = &caller,
                                          .nimpls = 1};

void cb__function_case(const cb__function *function, cb__case *c)
{
    *c = (cb__case){
        .kernel = &function_kernel, .impl = &caller, .tunables = {(int64_t)(uintptr_t)function}};
}

/* ---- outputs ---- */

/* Two poisons that differ in every byte: one that is equal to its poison both times was never
 * written. */
static unsigned char poison(size_t at, int phase)
{
    unsigned char byte = (unsigned char)(cb_random_mix(at) >> 7);
    return phase == 1 ? (unsigned char)~byte : byte;
}

static void lay_poison(void *arg, int phase)
{
    cb__functions *f = arg;
    for (size_t i = 0; i < f->output_bytes; i++)
        f->output[i] = poison(i, phase);
    f->start_ns = cb__clock_ns();
}

/* What six rounds cannot do with less: in each 10 blocks, in the first 20, of three arms, and the
 * calls around them. */
enum { CALLS_MIN = 400 };

static cb_status fits_budget(cb__functions *f, int phase, uint64_t call_ns, cb_error *err)
{
    f->call_ns = phase == 0 || call_ns < f->call_ns ? call_ns : f->call_ns;
    double call_s = (double)f->call_ns * 1e-9, needed_s = CALLS_MIN * call_s;
    if (phase != 1 || !f->hurry || needed_s <= f->budget_s)
        return CB_OK;
    return cb_error_set(err, CB_USAGE,
                        "budget_s %g is too small for calls of %.3g s; the minimum is %.0f",
                        f->budget_s, call_s, ceil(needed_s));
}

static cb_status all_written(const cb__functions *f, cb_error *err)
{
    size_t untouched = 0, first = 0;
    for (size_t i = f->output_bytes; i-- > 0;)
        if (f->first[i] == poison(i, 0) && f->output[i] == poison(i, 1)) {
            untouched++;
            first = i;
        }
    if (untouched == 0)
        return CB_OK;
    return cb_error_set(err, CB_WRONG, "%zu of %zu bytes of the output never written, first at %zu",
                        untouched, f->output_bytes, first);
}

static cb_status look(void *arg, int phase, uint64_t *digest, cb_error *err)
{
    cb__functions *f = arg;
    cb_status status = fits_budget(f, phase, cb__clock_ns() - f->start_ns, err);
    if (status != CB_OK)
        return status;
    int code = f->check ? f->check(f->side[0].state) : 0;
    if (code)
        return cb_error_set(err, CB_WRONG, "the check of its output gave %d", code);
    /* Where nothing is looked at no two are alike: nothing is said of them. */
    *digest = f->output_bytes ? cb__digest(f->output, f->output_bytes) : (uint64_t)phase;
    if (phase == 0 && f->output_bytes)
        memcpy(f->first, f->output, f->output_bytes);
    if (phase == 1)
        status = all_written(f, err);
    return status;
}

/* ---- arms ---- */

cb_status cb__functions_arms(const cb__work *work, cb__functions *functions, cb__arms *arms,
                             cb_error *err)
{
    cb_status status = CB_OK;
    arms->n = work->duel.narms;
    functions->hurry = work->duel.look; /* asked of the first round alone */
    for (int i = 0; i < arms->n && status == CB_OK; i++) {
        const char *module = work->duel.arms[i].module;
        int side = strcmp(module, cb__function_modules[1]) == 0;
        if (strcmp(module, cb__function_modules[side]) != 0)
            return cb_error_set(err, CB_USAGE, "request: '%.40s' is no function", module);
        cb__function_case(&functions->side[side], &arms->cases[i]);
        arms->own[i] = (cb__duel_own){lay_poison, look, functions};
        status =
            cb__plan_lay(&arms->cases[i], &work->duel.layout, work->cold, &arms->plans[i], err);
    }
    return status;
}
