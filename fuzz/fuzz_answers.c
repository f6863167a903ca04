/* Any line through every reader of requests and answers: refused with a message, or within what was
 * asked. */
#include <stdlib.h>

#include "measure/plan.h"
#include "worker/work.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static const cb__work asked = {.exchange_bytes = 1 << 20,
                               .modes = {{CB__COLD, CB__SOLO, 2}, {CB__WARM, CB__BATCHED, 2}},
                               .nmodes = 2};
static const cb__plan plan = {.k = 4, .sets = 8, .slots = 8, .slot_bytes = 8192};

static void round_answer(const cb__json *json, cb__arena *arena)
{
    cb__round_answer a;
    cb_error err = CB_ERROR_INIT;
    cb_status status = cb__round_answer_read(json, &asked, &plan, arena, &a, &err);
    require(status == err.status && (status == CB_OK || status == CB_GARBAGE));
    for (int i = 0; status == CB_OK && i < a.nmodes; i++) {
        const cb__mode_answer *m = &a.modes[i];
        require(m->blocks.n == 2 || (m->blocks.n == 0 && m->launch.status != CB_OK));
        require(m->twin_set < plan.sets);
        for (int j = 0; j < m->blocks.n; j++)
            require(m->blocks.kernel_ns[j] > 0);
        for (int j = 0; j < m->nentries; j++)
            require(m->entries[j].offset + plan.slot_bytes <= asked.exchange_bytes);
    }
}

static void others(const cb__json *json, cb__arena *arena)
{
    cb__work work;
    cb__fill_answer fill;
    cb__pick_answer pick;
    cb__sweep_answer sweep;
    cb__device_info info;
    cb__buf line = CB__BUF_INIT;
    if (cb__work_read(json, arena, &work, NULL) == CB_OK) {
        require(work.nmodes <= CB__MODES_MAX && work.ntwins <= CB__TWINS_MAX);
        cb__work_write(&work, &line);
        require(!line.failed);
    }
    cb__buf_fini(&line);
    if (cb__fill_answer_read(json, arena, &fill, NULL) == CB_OK)
        require(fill.distinct_words <= fill.sampled_words);
    if (cb__pick_answer_read(json, &pick, NULL) == CB_OK)
        require(pick.best[0] >= 0 && pick.best[1] < CB__TWINS_MAX);
    static const cb__job job = {
        .kind = CB__JOB_BANDWIDTH, .what = "read", .nvariants = 2, .bytes = {4096, 8192}, .n = 2};
    const cb__work swept = {.jobs = &job, .njobs = 1};
    if (cb__sweep_answer_read(json, &swept, arena, &sweep, NULL) == CB_OK && sweep.jobs[0].done)
        require(sweep.jobs[0].n == 2 && sweep.jobs[0].readings[0].variant < 2);
    if (cb__describe_answer_read(json, &info, NULL) == CB_OK)
        require(info.threads >= 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cb__json *json = NULL;
    cb__arena arena = CB__ARENA_INIT;
    if (cb__json_parse((const char *)data, size, "fuzz", &json, NULL) == CB_OK) {
        round_answer(json, &arena);
        others(json, &arena);
    }
    cb__json_free(json);
    cb__arena_fini(&arena);
    return 0;
}
