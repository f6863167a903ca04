/* What every round needs and no round may change: operands, expected outputs, module files. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "compare/session.h"
#include "device/digest.h"

/* Each dimension's multiple times these: all ones; odd ones; few rows and wide, and the other way
 * round. */
static const int64_t ragged[CB__RAGGED_MAX][CB_DIMS_MAX] = {
    {1, 1, 1, 1, 1, 1},
    {3, 7, 5, 3, 3, 3},
    {37, 131, 41, 3, 3, 3},
    {517, 9, 43, 5, 3, 3},
};

cb__work cb__compare_work(const cb__comparing *s, const cb__stage *stage, const char *op)
{
    const cb__compare_request *r = s->request;
    const cb__device_info *info = &s->out->device;
    return (cb__work){.op = op,
                      .device = r->device,
                      .threads = info->threads,
                      .shape = stage->shape,
                      .cold = stage->cold,
                      .ring_fd = -1,
                      .reference_fd = -1,
                      .exchange_fd = -1,
                      .beyond_bytes = r->beyond_bytes,
                      .seed = r->seed,
                      .known = {info->processors, r->isa},
                      .duel = {.layout = stage->layout, .poison_seed = r->seed}};
}

/* ---- files ---- */

static void shape_text(const cb_kernel *k, const int64_t *times, char *text, size_t size)
{
    size_t at = 0;
    text[0] = '\0';
    for (int i = 0; i < k->ndims && at < size; i++) {
        int64_t value = k->dims[i].multiple_of * times[i];
        if (value > k->dims[i].max)
            value = k->dims[i].multiple_of;
        at += (size_t)snprintf(text + at, size - at, "%s%" PRId64, i ? "x" : "", value);
    }
}

static int head_sets(const cb__stage *stage)
{
    return stage->cold ? cb__plan_verified(&stage->plans[0]) : 1;
}

/* Launches are timed on it, so that it is worth huge pages: on the rings where they are cold. */
static bool is_timed(const cb__comparing *s, const cb__stage *stage)
{
    return stage == &s->stages[0] && !stage->cold;
}

static cb_status stage_files(const cb__comparing *s, cb__stage *stage, cb_error *err)
{
    int nsides = s->request->nsides;
    cb_status status = cb__region_shared_small(
        "coldbench-exchange",
        CB__EXCHANGE_HEAD + cb__duel_exchange_bytes(&stage->plans[0], nsides + 1), &stage->exchange,
        err);
    for (int i = 0; i < nsides && status == CB_OK; i++) {
        const cb__case *c = &stage->cases[i];
        cb__plan head = cb__plan_head(&stage->plans[i], head_sets(stage));
        int sets = c->kernel->rotates ? 1 : head.sets;
        uint64_t n = cb__reference_elements(c);
        status = is_timed(s, stage) ? cb__region_shared("coldbench-operands", head.file_bytes,
                                                        &stage->heads[i], err)
                                    : cb__region_shared_small("coldbench-operands", head.file_bytes,
                                                              &stage->heads[i], err);
        if (status == CB_OK && n > 0)
            status = cb__region_shared_small("coldbench-reference", n * (uint64_t)sets * 16,
                                             &stage->references[i], err);
        const double *values = stage->references[i].base;
        stage->expected[i] =
            (cb__reference){values, values ? values + n * (uint64_t)sets : NULL, n, sets};
    }
    return status;
}

/* The same sides with another shape. A rule of a kernel's own may forbid it: then there is none. */
static bool stage_plan(const cb__comparing *s, cb__stage *stage)
{
    const cb__compare_request *r = s->request;
    for (int i = 0; i < r->nsides; i++)
        if (cb__case_parse(cb__side_suite(r, i), r->variants[i], stage->shape,
                           cb__isa_of(&s->out->device, r->isa), &stage->cases[i], NULL) != CB_OK)
            return false;
    return cb__plan_arms(stage->cases, r->nsides, &s->out->device, false, stage->plans,
                         &stage->layout, NULL) == CB_OK;
}

/* Rounds load from a file that nobody edits meanwhile. */
static cb_status copy_module(const char *path, int *out, cb_error *err)
{
    char chunk[65536];
    int from = open(path, O_RDONLY | O_CLOEXEC);
    int to = from >= 0 ? memfd_create("coldbench-module", MFD_CLOEXEC | MFD_ALLOW_SEALING) : -1;
    ssize_t got = to >= 0 ? 1 : -1;
    while (got > 0) {
        got = read(from, chunk, sizeof chunk);
        if (got > 0 && write(to, chunk, (size_t)got) != got)
            got = -1;
    }
    int failed = errno;
    if (got == 0) /* the code under test has this descriptor too */
        fcntl(to, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW);
    if (from >= 0)
        close(from);
    *out = to;
    return got == 0 ? CB_OK
                    : cb_error_set(err, CB_IO, "cannot read module %s: %s", path, strerror(failed));
}

static cb_status copy_modules(cb__comparing *s, cb_error *err)
{
    cb_status status = CB_OK;
    for (int i = 0; i < s->request->nsides && status == CB_OK; i++) {
        const cb__module *module = s->out->sides[i].c.module;
        for (int j = 0; j < i && !module->builtin; j++)
            if (s->out->sides[j].c.module == module)
                s->module_fds[i] = s->module_fds[j];
        if (!module->builtin && s->module_fds[i] < 0)
            status = copy_module(module->origin, &s->module_fds[i], err);
    }
    return status;
}

cb_status cb__stages_open(cb__comparing *s, cb_error *err)
{
    const cb__compare_request *r = s->request;
    const cb_kernel *k = s->out->sides[0].c.kernel;
    cb__stage *main = &s->stages[0];
    for (int i = 0; i < r->nsides; i++)
        s->module_fds[i] = -1;
    for (int i = 0; i < 1 + CB__RAGGED_MAX; i++) {
        s->stages[i].exchange = (cb__region)CB__REGION_INIT;
        for (int j = 0; j < CB__SIDES_MAX; j++)
            s->stages[i].heads[j] = s->stages[i].references[j] = s->rings[j] =
                (cb__region)CB__REGION_INIT;
    }
    cb_status status = copy_modules(s, err);
    snprintf(main->shape, sizeof main->shape, "%s", s->out->shape);
    main->cold = s->out->cache == CB__COLD;
    main->layout = s->out->layout;
    for (int i = 0; i < r->nsides; i++) {
        main->cases[i] = s->out->sides[i].c;
        main->plans[i] = s->out->sides[i].plan;
    }
    s->nstages = 1;
    if (status == CB_OK)
        status = stage_files(s, main, err);
    /* Parked processes are started before anything is filled: the rings must be there to be handed
     * to them, those too that turn out to be another side's. */
    for (int i = 0; i < r->nsides && main->cold && cb__parks(s) && status == CB_OK; i++)
        status = cb__region_shared("coldbench-ring", main->plans[i].file_bytes, &s->rings[i], err);
    for (int i = 0; i < CB__RAGGED_MAX && k->ndims > 0 && status == CB_OK; i++) {
        cb__stage *stage = &s->stages[s->nstages];
        shape_text(k, ragged[i], stage->shape, sizeof stage->shape);
        if (!stage_plan(s, stage))
            continue;
        s->nstages++;
        status = stage_files(s, stage, err);
    }
    s->out->ragged = s->nstages - 1;
    return status;
}

void cb__stages_close(cb__comparing *s)
{
    for (int i = 0; i < s->nstages; i++) {
        cb__region_fini(&s->stages[i].exchange);
        for (int j = 0; j < s->request->nsides; j++) {
            cb__region_fini(&s->stages[i].heads[j]);
            cb__region_fini(&s->stages[i].references[j]);
        }
    }
    for (int i = 0; i < s->request->nsides; i++) {
        bool shared = false;
        for (int j = 0; j < i; j++)
            shared = shared || s->module_fds[j] == s->module_fds[i];
        if (s->module_fds[i] >= 0 && !shared)
            close(s->module_fds[i]);
        cb__region_fini(&s->rings[i]);
    }
}

int cb__ring_fd(const cb__comparing *s, const cb__stage *stage, int side)
{
    int ring = stage->ring[side];
    return stage->cold ? s->rings[ring].fd : stage->heads[ring].fd;
}

/* ---- filling ---- */

static cb_status start_filler(cb__comparing *s, const cb__asker *asker, cb__worker *worker,
                              cb_error *err)
{
    int fds[(1 + CB__RAGGED_MAX) * 2 * CB__SIDES_MAX + 2 * CB__SIDES_MAX], n = 0;
    for (int i = 0; i < s->nstages; i++)
        for (int j = 0; j < s->request->nsides; j++) {
            fds[n++] = s->stages[i].heads[j].fd;
            fds[n++] = s->stages[i].references[j].fd;
        }
    for (int j = 0; j < s->request->nsides; j++) {
        if (s->module_fds[j] >= 0)
            fds[n++] = s->module_fds[j];
        if (s->rings[j].fd >= 0)
            fds[n++] = s->rings[j].fd;
    }
    return cb__worker_start(asker, NULL, fds, n, worker, err);
}

/* `head`: the verified sets and their reference; else the whole ring of `side`. */
static cb_status fill_one(cb__comparing *s, cb__worker *worker, cb__stage *stage, int side,
                          bool head, cb_error *err)
{
    cb__work work = cb__compare_work(s, stage, "fill");
    int sides[CB__ARMS_MAX];
    int n = cb__arms_of(s, stage, false, &work, sides);
    for (int i = 0; i < n; i++)
        if (sides[i] == side)
            work.duel.arm = i;
    work.duel.head = head;
    /* Most other sides turn out to have the first one's operands. */
    work.pages = head && (side > 0 || !is_timed(s, stage)) ? CB__PAGES_BASE : CB__PAGES_HUGE;
    work.ring_fd = head ? stage->heads[side].fd : s->rings[side].fd;
    work.reference_fd = head ? stage->references[side].fd : -1;
    cb__json *answer = NULL;
    cb__fill_answer filled = {0};
    cb_status status = cb__worker_ask(worker, &work, "fill", &answer, err);
    if (status == CB_OK)
        status = cb__fill_answer_read(answer, s->arena, &filled, err);
    cb__json_free(answer);
    if (status == CB_OK && head != stage->cold)
        stage->ring_digests[side] = filled.digest;
    return status;
}

static bool own(cb_status status)
{
    return status == CB_CRASHED || status == CB_TIMEOUT || status == CB_GARBAGE;
}

static void take_fault(cb__comparing *s, const cb__asker *asker, int side, cb_error *err)
{
    cb__evidence *e = &s->out->sides[side].evidence;
    if (err->status == CB_TIMEOUT && (cb__asker_spent(asker) || cb__asker_hurried(s, asker)))
        cb_error_set(&e->unclear, CB_TIMEOUT, "filling its operands took more than the budget");
    else
        e->worker = *err;
    cb_error_clear(err);
}

/* The functions of a program bring their own operands. */
static cb_status nothing_to_fill(cb__comparing *s, int first, int last)
{
    for (int i = first; i <= last; i++)
        for (int side = 0; side < s->request->nsides; side++) {
            const cb__region *head = &s->stages[i].heads[side];
            s->stages[i].ring_digests[side] = cb__digest(head->base, head->bytes);
        }
    return CB_OK;
}

/* The heads of some stages, or the rings of the first, by one worker; a side that breaks it is out,
 * and another worker goes on without it. */
static cb_status fill_all(cb__comparing *s, int first, int last, bool head, cb_error *err)
{
    double memory_s = (double)s->out->sides[0].plan.memory_bytes / CB__SLOWEST_BYTES_PER_S;
    cb__asker asker = cb__asker_within(s, memory_s);
    cb__worker worker;
    bool running = false;
    cb_status status = CB_OK;
    if (s->out->sides[0].c.kernel->noperands == 0)
        return nothing_to_fill(s, first, last);
    for (int i = first; i <= last && status == CB_OK; i++)
        for (int side = 0; side < s->request->nsides && status == CB_OK; side++) {
            bool needed = head || (s->stages[0].ring[side] == side && s->rings[side].fd >= 0);
            if (!cb__side_in(s, side) || !needed)
                continue;
            if (!running)
                status = start_filler(s, &asker, &worker, err);
            running = status == CB_OK;
            if (running)
                status = fill_one(s, &worker, &s->stages[i], side, head, err);
            if (!own(status))
                continue;
            cb__worker_end(&worker, false);
            running = false;
            take_fault(s, &asker, side, err);
            status = CB_OK;
        }
    if (running)
        cb__worker_end(&worker, status == CB_OK);
    return status;
}

/* The same bytes at the same places. */
static bool same_operands(const cb__stage *stage, int a, int b)
{
    const cb__plan *x = &stage->plans[a], *y = &stage->plans[b];
    const cb__case *c = &stage->cases[a], *d = &stage->cases[b];
    if (x->file_bytes != y->file_bytes || x->static_offset != y->static_offset)
        return false;
    for (int i = 0; i < c->kernel->noperands; i++)
        if (cb__role_is_read(c->kernel->operands[i].role) &&
            (c->packed_bytes[i] != d->packed_bytes[i] || x->offset[i] != y->offset[i] ||
             x->initial[i] != y->initial[i]))
            return false;
    return memcmp(stage->heads[a].base, stage->heads[b].base, stage->heads[a].bytes) == 0;
}

static void share_rings(cb__comparing *s, cb__stage *stage)
{
    for (int i = 0; i < s->request->nsides; i++) {
        stage->ring[i] = i;
        for (int j = 0; j < i && stage->ring[i] == i; j++)
            if (cb__side_in(s, i) && cb__side_in(s, j) && same_operands(stage, j, i))
                stage->ring[i] = j;
    }
}

static cb_status fill_stages(cb__comparing *s, int first, int last, cb_error *err)
{
    cb_status status = fill_all(s, first, last, true, err);
    for (int i = first; i <= last && status == CB_OK; i++)
        share_rings(s, &s->stages[i]);
    if (status != CB_OK || first > 0)
        return status;
    cb__stage *main = &s->stages[0];
    s->out->rings = 0;
    for (int side = 0; side < s->request->nsides && status == CB_OK; side++) {
        s->out->sides[side].ring = main->ring[side];
        if (!cb__side_in(s, side) || main->ring[side] != side)
            continue;
        s->out->rings++;
        if (main->cold && s->rings[side].fd < 0)
            status = cb__region_shared("coldbench-ring", main->plans[side].file_bytes,
                                       &s->rings[side], err);
    }
    return status == CB_OK && main->cold ? fill_all(s, 0, 0, false, err) : status;
}

cb_status cb__stages_fill(cb__comparing *s, cb_error *err)
{
    return fill_stages(s, 0, s->nstages - 1, err);
}

cb_status cb__stages_refill(cb__comparing *s, int first, int last, cb_error *err)
{
    return cb__sides_in(s) > 0 ? fill_stages(s, first, last, err) : CB_OK;
}

cb_status cb__stage_refill(cb__comparing *s, cb__stage *stage, cb_error *err)
{
    int which = (int)(stage - s->stages);
    return fill_stages(s, which, which, err);
}

/* The files are the parent's too; what any process wrote into them is there. */
bool cb__rings_intact(const cb__comparing *s, const cb__stage *stage)
{
    bool intact = true;
    for (int ring = 0; ring < s->request->nsides; ring++) {
        const cb__region *file = stage->cold ? &s->rings[ring] : &stage->heads[ring];
        bool used = false;
        for (int side = 0; side < s->request->nsides; side++)
            used = used || (cb__side_in(s, side) && stage->ring[side] == ring);
        if (used && file->base)
            intact = intact && cb__digest(file->base, file->bytes) == stage->ring_digests[ring];
    }
    return intact;
}

cb_status cb__stages_inputs(cb__comparing *s, cb_error *err)
{
    if (s->attempts == 0 || cb__sides_in(s) < 2 || cb__rings_intact(s, &s->stages[0]))
        return CB_OK;
    cb__work as = s->last;
    s->spent = true; /* nothing follows */
    cb_error_set(err, CB_WRONG, "the digest of the inputs changed while measuring");
    return cb__alone(s, 0, 0, &as, -1, err);
}
