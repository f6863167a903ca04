/* Any bytes as a model file: refused with a message, or a model that writes and reads back equal
 * and whose every query, with odd sizes and worker counts, answers in order or refuses with a
 * reason. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

/* An answer is finite and in order; a refusal has its status and words. */
static void judge(cb_status status, const cb_figure *x, cb_error *err)
{
    require(status == err->status && (status == CB_OK) == !*err->message);
    if (status == CB_OK) {
        require(isfinite(x->lo) && isfinite(x->mid) && isfinite(x->hi) && x->lo >= 0);
        require(x->lo <= x->mid && x->mid <= x->hi);
        require((unsigned)x->verdict <= CB_VERDICT_OK);
    } else {
        require(status == CB_UNDECIDED);
    }
    cb_error_clear(err);
}

static const char *const names[] = {
    "read",    "write",  "write_nt", "copy",
    "copy_nt", "f32",    "f64",      "int8",
    "solo",    "stream", "batched",  "raed",
    "",        "random", "local",    "a name that is longer than any"};

enum { NAMES = sizeof names / sizeof *names };

static void ask_by_size(const cb_model *m, uint64_t bytes, int workers)
{
    cb_error err = CB_ERROR_INIT;
    cb_figure x = {0};
    cb_resident resident = CB_RESIDENT_NO;
    for (int i = 0; i < NAMES; i++)
        judge(cb_model_bandwidth(m, names[i], bytes, workers, &x, &err), &x, &err);
    judge(cb_model_latency(m, bytes, &x, &err), &x, &err);
    judge(cb_model_tiling_gain(m, bytes, bytes / 3, workers, &x, &err), &x, &err);
    judge(cb_model_tiling_gain(m, bytes / 7, bytes, workers, &x, &err), &x, &err);
    judge(cb_model_scratch_cost(m, bytes, 4, &x, &err), &x, &err);
    judge(cb_model_best_pad(m, bytes, 4, &x, &err), &x, &err);
    for (int pattern = CB_STREAM_PATTERN; pattern <= CB_RANDOM_PATTERN; pattern++) {
        cb_status status =
            cb_model_resident(m, bytes, (cb_pattern)pattern, workers, &resident, &x, &err);
        if (status == CB_OK)
            require((resident == CB_RESIDENT_YES) == ((double)bytes <= x.lo) || bytes > UINT64_C(1)
                                                                                            << 53);
        judge(status, &x, &err);
    }
}

static void ask_without_size(const cb_model *m, int workers)
{
    cb_error err = CB_ERROR_INIT;
    cb_figure x = {0};
    for (int i = 0; i < NAMES; i++) {
        judge(cb_model_ceiling(m, names[i], workers, &x, &err), &x, &err);
        judge(cb_model_compute(m, names[i], workers, &x, &err), &x, &err);
        judge(cb_model_floor(m, names[i], workers, &x, &err), &x, &err);
    }
    for (int level = -1; level <= CB__LEVELS_MAX + 1; level++)
        for (int pattern = CB_STREAM_PATTERN; pattern <= CB_RANDOM_PATTERN; pattern++)
            judge(cb_model_capacity(m, level, (cb_pattern)pattern, workers, &x, &err), &x, &err);
}

static void ask_everything(const cb_model *m)
{
    static const uint64_t sizes[] = {
        0,         1,         2,        63,        4095,     4096,       4097,
        65536,     1u << 20,  3u << 20, 100000000, 1u << 30, 1ull << 53, (1ull << 53) + 1,
        INT64_MAX, UINT64_MAX};
    static const int workers[] = {0, 1, 2, 3, 65536, -1, INT32_MAX, INT32_MIN};
    for (size_t w = 0; w < sizeof workers / sizeof *workers; w++) {
        ask_without_size(m, workers[w]);
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            ask_by_size(m, sizes[i], workers[w]);
    }
    /* Around every measured size and knee. */
    for (int s = 0; s < m->nseries; s++)
        for (int i = 0; i < m->series[s].n; i += 1 + m->series[s].n / 4)
            for (uint64_t d = 0; d < 3; d++)
                ask_by_size(m, m->series[s].points[i].bytes - 1 + d, m->series[s].workers);
    for (int k = 0; k < m->nknees && k < 16; k++)
        ask_by_size(m, m->knees[k].lo_bytes + 1, m->series[m->knees[k].series].workers);
    for (int level = -1; level <= CB__LEVELS_MAX + 1; level++)
        require(cb_model_nominal(m, level) <= INT64_MAX);
    require(cb_model_workers(m) >= 0);
}

static void read_back(const cb_model *m)
{
    cb__buf text = CB__BUF_INIT, again = CB__BUF_INIT;
    cb_error err = CB_ERROR_INIT;
    cb_model *second = NULL;
    cb__model_write_text(m, &text);
    require(!text.failed);
    require(cb__model_read_text(text.text, text.size, "again", m->identity, &second, &err) ==
            CB_OK);
    cb__model_write_text(second, &again);
    require(strcmp(text.text, again.text) == 0);
    cb_model_free(second);
    cb__buf_fini(&text);
    cb__buf_fini(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cb_model *model = NULL;
    cb_error err = CB_ERROR_INIT;
    cb_status status =
        cb__model_read_text((const char *)data, size, "model fuzz", NULL, &model, &err);
    require(status == err.status && (status == CB_OK) == (model != NULL));
    if (model) {
        ask_everything(model);
        read_back(model);
    } else {
        require(status == CB_UNAVAILABLE && strstr(err.message, "; run coldbench probe"));
        require(strncmp(err.message, "model fuzz", 10) == 0);
    }
    cb_model_free(model);
    return 0;
}
