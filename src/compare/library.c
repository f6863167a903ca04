/* The comparison of a program's own functions, and what an answer of the library says. */
#include "compare/library.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coldbench/random.h"
#include "host/clock.h"
#include "stats/block_signs.h"

/* ---- words ---- */

_Static_assert(CB_COMPARE_SLOWER == (int)CB__SLOWER && CB_COMPARE_FASTER == (int)CB__FASTER &&
                   CB_COMPARE_TIE == (int)CB__TIE && CB_COMPARE_UNSTABLE == (int)CB__UNSTABLE &&
                   CB_COMPARE_INCOMPARABLE == (int)CB__INCOMPARABLE &&
                   CB_COMPARE_INCONCLUSIVE == (int)CB__INCONCLUSIVE,
               "the public decisions are the internal ones");

const char *cb_compare_decision_name(cb_compare_decision decision)
{
    return cb__decision_name((cb__decision)decision);
}

const char *cb_compare_scope_text(cb_compare_scope scope)
{
    static const char *const texts[] = {
        [CB_HOLDS_FOR_CODE] = "holds for the code, whatever its layout",
        [CB_HOLDS_FOR_LINK_LAYOUT] = "holds for this program's link layout",
        [CB_HOLDS_FOR_IMAGE] = "holds for this process image only"};
    return (size_t)scope < sizeof texts / sizeof *texts ? texts[scope] : "unknown scope";
}

/* ---- limits ---- */

static cb_status in_range(const char *name, double value, double min, double max, cb_error *err)
{
    if (value >= min && value <= max)
        return CB_OK;
    return cb_error_set(err, CB_USAGE, "%s %g is not in [%g, %g]", name, value, min, max);
}

cb_status cb__limits_of(const cb_compare_limits *asked, bool cold, cb_compare_limits *out,
                        cb_error *err)
{
    *out = *asked;
    struct {
        const char *name;
        double *value, preset, min, max;
    } table[] = {{"budget_s", &out->budget_s, 10, 0, 86400},
                 {"alpha", &out->alpha, 0.01, 1e-9, 0.5},
                 {"margin", &out->margin, cold ? 0.02 : 0.01, 1e-6, 10},
                 {"silence_s", &out->silence_s, 10, 1e-3, 86400}};
    cb_status status = CB_OK;
    for (size_t i = 0; i < sizeof table / sizeof *table && status == CB_OK; i++) {
        if (*table[i].value == 0)
            *table[i].value = table[i].preset;
        status = in_range(table[i].name, *table[i].value, table[i].min, table[i].max, err);
    }
    if (!out->seed)
        out->seed = cb_random_mix(cb__clock_ns() + (uint64_t)getpid());
    out->seed >>= 1; /* a seed travels as a signed number */
    return status;
}

cb__compare_request cb__library_request(const cb_compare_limits *limits)
{
    return (cb__compare_request){.device = "cpu",
                                 .nsides = 2,
                                 .alpha = limits->alpha,
                                 .margin = limits->margin,
                                 .claims = 1,
                                 .seed = limits->seed,
                                 .asker = {.stop = limits->stop, .silence_s = limits->silence_s}};
}

/* ---- the answer ---- */

/* An empty function is called 1.7 empty dispatches long (5.9 to 6.7 ns for 3.5, a Zen 4 in a
 * virtual machine, November 2026). */
#define CALL_FLOORS (1.25 * 1.7)

static bool mostly_calling(const cb__comparison *c)
{
    return fmax(c->sides[0].time_ns.mid, c->sides[1].time_ns.mid) <= CALL_FLOORS * c->floor_ns;
}

static cb_compare_ratio ratio_of(cb__interval x)
{
    return (cb_compare_ratio){x.lo, x.mid, x.hi};
}

__attribute__((format(printf, 2, 3))) static void note(cb_compare_result *result,
                                                       const char *format, ...)
{
    size_t at = strlen(result->note);
    va_list args;
    if (at > 0)
        at += (size_t)snprintf(result->note + at, sizeof result->note - at, "; ");
    if (at >= sizeof result->note)
        return;
    va_start(args, format);
    vsnprintf(result->note + at, sizeof result->note - at, format, args);
    va_end(args);
}

static void say_faults(const cb__comparison *c, cb_compare_result *result)
{
    for (int i = 0; i < c->nsides; i++) {
        if (c->sides[i].evidence.unclear.status != CB_OK)
            note(result, "'%s' was not judged: %s", c->sides[i].name,
                 c->sides[i].evidence.unclear.message);
        for (int j = 0; j < c->sides[i].nchecks; j++) {
            const cb__check *check = &c->sides[i].checks[j];
            if (check->status == CB__FAIL)
                note(result, "'%s': %s", c->sides[i].name, check->detail);
        }
    }
    if (c->gate_closed)
        note(result, "'%s' differs from its own second copy", c->sides[0].name);
    if (!c->complete)
        note(result, "it was interrupted");
    else if (result->decision == CB_COMPARE_INCONCLUSIVE && c->nrounds < CB__ROUNDS_MIN)
        note(result, "the budget was spent after %d of the %d rounds that an answer needs",
             c->nrounds, CB__ROUNDS_MIN);
    if (result->dispatch)
        note(result, "mostly the cost of a call");
}

/* Arm 0 is the first side, arm 1 its second copy, arm 2 the other side. */
static bool signs_differ(const cb__comparison *c)
{
    cb__block_signs signs = {0};
    for (int i = 0; i < c->nrounds; i++) {
        const cb__duel_result *r = &c->rounds[i]->answer.result;
        for (int b = 0; b < r->blocks; b++)
            cb__block_signs_add(&signs, r->ns[3 * b], r->ns[3 * b + 2]);
    }
    return cb__block_signs_differ(&signs, c->alpha);
}

static void say_text(const cb__comparison *c, cb_compare_result *r)
{
    int at = snprintf(r->text, sizeof r->text, "'%s' against '%s'%s: %s", c->sides[1].name,
                      c->sides[0].name, r->aa ? " (the same code)" : "",
                      cb_compare_decision_name(r->decision));
    if (r->rounds > 0)
        at += snprintf(r->text + at, sizeof r->text - (size_t)at,
                       ", ratio %.4f [%.4f, %.4f], A/A %.4f, detects %.2f %%, %d rounds, %d blocks",
                       r->ratio.mid, r->ratio.lo, r->ratio.hi, r->aa_ratio.mid, 100 * r->detectable,
                       r->rounds, r->blocks);
    if (r->bit_identical)
        at += snprintf(r->text + at, sizeof r->text - (size_t)at, ", outputs bit-identical");
    at += snprintf(r->text + at, sizeof r->text - (size_t)at, ", %.2f s; %s", r->seconds,
                   cb_compare_scope_text(r->scope));
    if (r->note[0])
        snprintf(r->text + at, sizeof r->text - (size_t)at, "; %s", r->note);
}

static void tell(const cb__comparison *c, cb_compare_scope scope, double seconds,
                 cb_compare_result *result)
{
    const cb__compare_pair *pair = &c->pairs[0];
    *result = (cb_compare_result){
        .decision = pair->decision == CB__ANOTHER_ROUND ? CB_COMPARE_INCONCLUSIVE
                                                        : (cb_compare_decision)pair->decision,
        .scope = scope,
        .ratio = ratio_of(cb__compare_ratio(c, pair)),
        .aa_ratio = ratio_of(cb__compare_aa_ratio(c)),
        .a_ns = c->sides[0].time_ns.mid,
        .b_ns = c->sides[1].time_ns.mid,
        .detectable = expm1(cb__compare_detectable(pair)),
        .position_effect = expm1(c->position_effect),
        .seconds = seconds,
        .rounds = c->nrounds,
        .aa = pair->aa,
        .dispatch = scope == CB_HOLDS_FOR_CODE ? pair->dispatch : mostly_calling(c),
        .differs_in_image = scope == CB_HOLDS_FOR_IMAGE && signs_differ(c)};
    for (int i = 0; i < c->nrounds; i++)
        result->blocks += c->rounds[i]->answer.result.blocks;
    result->bit_identical = pair->bit_identical && c->nrounds > 0;
    say_faults(c, result);
    say_text(c, result);
}

static double seconds_since(uint64_t start_ns)
{
    return (double)(cb__clock_ns() - start_ns) * 1e-9;
}

cb_status cb__library_measure(cb__compare_request *request, const cb_compare_limits *limits,
                              uint64_t start_ns, cb_compare_scope scope, cb__comparison *c,
                              cb_compare_result *result, cb_error *err)
{
    double minimum_s = cb__compare_budget_min(c);
    if (limits->budget_s < minimum_s)
        return cb_error_set(err, CB_USAGE, "budget_s %g is too small; the minimum is %.1f",
                            limits->budget_s, minimum_s);
    cb__arena arena = CB__ARENA_INIT;
    request->budget_s = fmax(limits->budget_s - seconds_since(start_ns), 0);
    cb_status status = cb__compare_measure(request, &arena, c, err);
    if (status == CB_OK || status == CB_INTERRUPTED)
        tell(c, scope, seconds_since(start_ns), result);
    cb__arena_fini(&arena);
    return status;
}

/* ---- functions ---- */

typedef struct library {
    cb_compare_limits limits;
    cb__functions functions;
    cb__function *sides[2]; /* of those; the same one in an A/A run */
    const char *names[2];
    cb__round_source source;
    cb__module modules[2]; /* what a round knows the sides by */
    cb__comparison comparison;
    uint64_t start_ns;
} library;

static cb_status take_functions(library *l, const cb_compare_request *r, cb_error *err)
{
    if (!r->a || !r->b)
        return cb_error_set(err, CB_USAGE, "function %s of the comparison is NULL",
                            r->a ? "b" : "a");
    if (!r->output != !r->output_bytes)
        return cb_error_set(err, CB_USAGE, "an output of %zu bytes at %p: both or neither",
                            r->output_bytes, r->output);
    l->names[0] = r->a_name ? r->a_name : "a";
    l->names[1] = r->b_name ? r->b_name : "b";
    l->functions = (cb__functions){.side = {{r->a, r->state}, {r->b, r->state}},
                                   .output = (unsigned char *)r->output,
                                   .output_bytes = r->output_bytes,
                                   .check = r->check,
                                   .budget_s = l->limits.budget_s};
    l->sides[0] = &l->functions.side[0];
    l->sides[1] = &l->functions.side[r->a != r->b];
    l->functions.first = malloc(r->output_bytes + 1);
    return l->functions.first ? CB_OK
                              : cb_error_set(err, CB_NO_MEMORY, "no memory for %zu bytes of output",
                                             r->output_bytes);
}

static cb_status plan(library *l, cb__compare_request *request, cb_error *err)
{
    cb__case cases[2];
    cb__device_info info;
    cb_status status = cb__round_source_describe(&l->source, &request->asker, &info, err);
    for (int i = 0; i < 2; i++) {
        snprintf(l->modules[i].origin, sizeof l->modules[i].origin, "%s", cb__function_modules[i]);
        l->modules[i].builtin = true;
        cb__function_case(l->sides[i], &cases[i]);
        cases[i].module = &l->modules[i];
        request->variants[i] = l->names[i];
    }
    return status == CB_OK ? cb__compare_plan_cases(request, &info, cases, &l->comparison, err)
                           : status;
}

static cb_status compare(library *l, cb_compare_result *result, cb_error *err)
{
    bool fresh = cb__main_entry_get()->argv;
    cb__compare_request request = cb__library_request(&l->limits);
    request.cache = CB__WARM;
    request.submit = CB__BATCHED;
    cb_status status =
        cb__round_source_open(&l->functions, l->names, l->limits.seed, &l->source, err);
    cb__round_process process = cb__round_source_process(&l->source);
    request.process = &process;
    if (status == CB_OK)
        status = plan(l, &request, err);
    if (status == CB_OK)
        status = cb__library_measure(&request, &l->limits, l->start_ns,
                                     fresh ? CB_HOLDS_FOR_LINK_LAYOUT : CB_HOLDS_FOR_IMAGE,
                                     &l->comparison, result, err);
    cb__round_source_close(&l->source);
    return status;
}

static cb_status functions(const cb_compare_request *request, cb_compare_result *result,
                           cb_error *err)
{
    library *l = calloc(1, sizeof *l);
    if (!l)
        return cb_error_set(err, CB_NO_MEMORY, "no memory for a comparison");
    l->start_ns = cb__clock_ns();
    cb_status status = cb__limits_of(&request->limits, false, &l->limits, err);
    if (status == CB_OK)
        status = take_functions(l, request, err);
    if (status == CB_OK && cb__main_entry_get()->round)
        cb__story_round(&l->functions, l->names);
    if (status == CB_OK)
        status = compare(l, result, err);
    free(l->functions.first);
    free(l);
    return status;
}

cb_status cb_compare(const cb_compare_request *request, cb_compare_result *result, cb_error *err)
{
    cb_error own = CB_ERROR_INIT;
    *result = (cb_compare_result){.decision = CB_COMPARE_INCONCLUSIVE};
    if (!cb__story_knows(result, &own)) {
        functions(request, result, &own);
        cb__story_add(result, &own);
    }
    return own.status == CB_OK ? CB_OK : cb_error_set(err, own.status, "%s", own.message);
}
