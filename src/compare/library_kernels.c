/* The comparison of kernels in shared objects: what the verb does, for a program. */
#include <stdlib.h>
#include <string.h>

#include "compare/library.h"
#include "host/clock.h"
#include "host/topology.h"
#include "model/model.h"
#include "model/query.h"

typedef struct library {
    cb_compare_limits limits;
    cb__suite suites[2];
    cb__topology topology;
    cb__comparison comparison;
    uint64_t start_ns;
} library;

static cb_status open_suite(const char *module, cb__suite *suite, cb_error *err)
{
    return module ? cb__suite_open_file(module, true, suite, err)
                  : cb__suite_open(NULL, 0, false, suite, err);
}

/* One suite for both where it is one file: then the same variant is the same code. */
static cb_status open_suites(library *l, const cb_compare_kernels_request *q,
                             cb__compare_request *request, cb_error *err)
{
    const char *a = q->a_module ? q->a_module : "", *b = q->b_module ? q->b_module : "";
    bool one = strcmp(a, b) == 0;
    cb_status status = open_suite(q->a_module, &l->suites[0], err);
    if (status == CB_OK && !one)
        status = open_suite(q->b_module, &l->suites[1], err);
    request->suite = request->suites[0] = &l->suites[0];
    request->suites[1] = &l->suites[!one];
    return status;
}

/* Bytes behind which these threads stream from memory, as probed; 0: not known. */
static uint64_t beyond_bytes(const cb__device_info *info)
{
    cb_model *model = NULL;
    uint64_t bytes = 0;
    if (cb__model_load(NULL, info->identity, &model, NULL) == CB_OK)
        bytes = cb__model_beyond_bytes(model, info->threads);
    cb_model_free(model);
    return bytes;
}

static cb_status compare(library *l, const cb_compare_kernels_request *q, cb_compare_result *result,
                         cb_error *err)
{
    cb__device_info info;
    cb__compare_request request = cb__library_request(&l->limits);
    request.variants[0] = q->a;
    request.variants[1] = q->b;
    request.shape = q->shape;
    request.threads = q->threads;
    request.cache = q->cache == CB_COMPARE_WARM ? CB__WARM : CB__COLD;
    request.submit = q->submit == CB_COMPARE_SOLO ? CB__SOLO : CB__BATCHED;
    cb_status status = cb__topology_read("", &l->topology, err);
    request.isa = l->topology.isa;
    if (status == CB_OK)
        status = open_suites(l, q, &request, err);
    if (status == CB_OK)
        status = cb__describe(&request.asker, request.device, request.threads, &info, err);
    if (status == CB_OK) {
        request.beyond_bytes = beyond_bytes(&info);
        status = cb__compare_plan(&request, &info, &l->comparison, err);
    }
    return status == CB_OK ? cb__library_measure(&request, &l->limits, l->start_ns,
                                                 CB_HOLDS_FOR_CODE, &l->comparison, result, err)
                           : status;
}

static cb_status kernels(const cb_compare_kernels_request *q, cb_compare_result *result,
                         cb_error *err)
{
    if (!q->a || !q->b)
        return cb_error_set(err, CB_USAGE, "variant %s of the comparison is NULL",
                            q->a ? "b" : "a");
    if (!cb__main_entry_get()->argv)
        return cb_error_set(err, CB_USAGE,
                            "kernels are compared in processes that are this program again: main "
                            "must begin with cb_worker_entry");
    if (cb__main_entry_get()->round) {
        const char *const names[2] = {q->a, q->b};
        cb__story_round(NULL, names);
    }
    library *l = calloc(1, sizeof *l);
    if (!l)
        return cb_error_set(err, CB_NO_MEMORY, "no memory for a comparison");
    l->start_ns = cb__clock_ns();
    cb_status status = cb__limits_of(&q->limits, q->cache == CB_COMPARE_COLD, &l->limits, err);
    if (status == CB_OK)
        status = compare(l, q, result, err);
    for (int i = 0; i < 2; i++)
        cb__suite_close(&l->suites[i]);
    free(l);
    return status;
}

cb_status cb_compare_kernels(const cb_compare_kernels_request *request, cb_compare_result *result,
                             cb_error *err)
{
    cb_error own = CB_ERROR_INIT;
    *result = (cb_compare_result){.decision = CB_COMPARE_INCONCLUSIVE};
    if (!cb__story_knows(result, &own)) {
        kernels(request, result, &own);
        cb__story_add(result, &own);
    }
    return own.status == CB_OK ? CB_OK : cb_error_set(err, own.status, "%s", own.message);
}
