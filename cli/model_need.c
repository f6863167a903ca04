/* The machine model that a measuring verb begins with. */
#include <stdlib.h>

#include "cli.h"
#include "host/clock.h"
#include "run/probe.h"
#include "worker/worker.h"

typedef struct needing {
    cb__progress progress;
} needing;

static void show(void *arg, const char *what, int sweep)
{
    needing *n = arg;
    char text[128];
    snprintf(text, sizeof text, "measuring the read curve: %.64s, %d of %d", what, sweep + 1,
             CB__PROBE_QUICK_SWEEPS);
    cb__progress_show(&n->progress, text);
}

static cb_status measure(const cb__common_options *o, const cb__suite *suite, uint64_t seed,
                         cb_model *model, cb_error *err)
{
    needing n;
    cb__probe *probe = calloc(1, sizeof *probe);
    if (!probe)
        return cb_error_set(err, CB_NO_MEMORY, "no memory for a model");
    cb__probe_request request = {.suite = suite,
                                 .isa = cb__cli_isa(o->device),
                                 .device = o->device,
                                 .quick = true,
                                 .read_only = true,
                                 .budget_s = CB__PROBE_NEEDED_S,
                                 .seed = seed,
                                 .asker = {.stop = &cb__stop, .silence_s = 10},
                                 .phase = show,
                                 .arg = &n};
    cb__progress_start(&n.progress, o);
    cb_status status = cb__probe_measure(&request, probe, model, err);
    cb__progress_end(&n.progress);
    free(probe);
    return status;
}

/* A device whose clock is scripted has no machine to learn about. */
static bool is_real(const cb__common_options *o)
{
    const cb__backend *backend = NULL;
    const char *script = NULL;
    return cb__backend_find(o->device, &backend, &script, NULL) == CB_OK &&
           !(backend->capabilities & CB__DEVICE_VIRTUAL_CLOCK);
}

/* What keeps a GPU from being used is the answer, and not a model that could not be made. */
static cb_status take_hold(const cb__planning *p, cb_error *err)
{
    const cb__asker asker = {.stop = &cb__stop, .silence_s = 10};
    const cb__work work = {.op = "open",
                           .device = p->options->device,
                           .ring_fd = -1,
                           .reference_fd = -1,
                           .exchange_fd = -1};
    cb__json *answer = NULL;
    if (!p->device->queued)
        return CB_OK;
    cb_status status = cb__ask(&asker, &work, "open", &answer, err);
    cb__json_free(answer);
    return status;
}

static cb_status make(const cb__planning *p, const char *why, cb_model **out, cb_error *err)
{
    const cb__common_options *o = p->options;
    cb_error trouble = CB_ERROR_INIT;
    cb_status held = take_hold(p, err);
    if (held != CB_OK)
        return held;
    if (!o->quiet)
        fprintf(stderr,
                "coldbench: %s\ncoldbench: measuring what is needed of it (outside the budget)\n",
                why);
    cb_model *model = cb__model_new();
    cb_status status = model ? measure(o, p->suite, p->seed, model, &trouble) : CB_NO_MEMORY;
    if (status == CB_OK)
        status = cb__model_store(model, NULL, &trouble);
    if (status != CB_OK && !o->quiet)
        fprintf(stderr, "coldbench: going on without a model: %s\n", trouble.message);
    /* One that could not be stored is still this run's. */
    if (status == CB_OK || status == CB_IO || status == CB_UNAVAILABLE)
        *out = model;
    else
        cb_model_free(model);
    return status == CB_INTERRUPTED ? cb_error_set(err, CB_INTERRUPTED, "interrupted") : CB_OK;
}

cb_status cb__cli_plan(const cb__planning *p, cb_model **model, uint64_t *model_ns, cb_error *err)
{
    cb_error why = CB_ERROR_INIT;
    *model = NULL;
    *model_ns = 0;
    bool real = is_real(p->options);
    if (real)
        cb__model_load(NULL, p->device->identity, model, &why);
    cb_status status = p->plan(p->arg, *model, err);
    if (status != CB_OK || *model || !real || p->options->threads)
        return status;
    uint64_t start_ns = cb__clock_ns();
    status = make(p, why.message, model, err);
    *model_ns = cb__clock_ns() - start_ns;
    return status == CB_OK && *model ? p->plan(p->arg, *model, err) : status;
}
