#include "step.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "coldbench/random.h"
#include "host/clock.h"
#include "host/topology.h"

/* Shapes as in src/kernel/shapes.c. `tiny` is for tests. */
static const step_model models[] = {
    {"llama-3-8b",
     32,
     {{"q", "4096x4096"},
      {"k", "1024x4096"},
      {"v", "1024x4096"},
      {"o", "4096x4096"},
      {"gate", "14336x4096"},
      {"up", "14336x4096"},
      {"down", "4096x14336"}}},
    {"tiny",
     3,
     {{"q", "64x256"},
      {"k", "32x256"},
      {"v", "32x256"},
      {"o", "64x256"},
      {"gate", "96x256"},
      {"up", "96x256"},
      {"down", "64x384"}}},
};

enum { MODELS = sizeof models / sizeof *models };

cb_status model_find(const char *name, const step_model **out, cb_error *err)
{
    const char *valid[MODELS];
    for (int i = 0; i < MODELS; i++) {
        valid[i] = models[i].name;
        *out = &models[i];
        if (strcmp(models[i].name, name) == 0)
            return CB_OK;
    }
    return cb__unknown(err, "model", name, valid, MODELS);
}

int model_matrices(const step_model *m)
{
    int n = 0;
    while (n < MATRICES_MAX && m->matrices[n].name)
        n++;
    return n;
}

/* ---- what is in it ---- */

/* What is private to a launch, or restored before it, a step in one batch would share. */
static cb_status check_roles(const cb__case *c, cb_error *err)
{
    for (int i = 0; i < c->kernel->noperands; i++) {
        cb_role role = c->kernel->operands[i].role;
        if (role == CB_SCRATCH || role == CB_INOUT)
            return cb_error_set(err, CB_USAGE,
                                "%s has operand %s of role %s, which a step cannot have",
                                c->kernel->name, c->kernel->operands[i].name, cb__role_name(role));
    }
    return CB_OK;
}

/* The layout is that of a ring, with as many sets as the step has matrices of this shape. */
static cb_status part_plan(step_part *p, const cb__device_info *info, cb_error *err)
{
    cb__device_info plenty = *info;
    cb__layout layout;
    plenty.memory_bytes =
        UINT64_MAX; /* the ring that is planned here is not the one that is made */
    cb_status status = cb__plan_arms(&p->c, 1, &plenty, true, &p->plan, &layout, err);
    layout.k = p->count;
    layout.batch = 1;
    return status == CB_OK ? cb__plan_lay(&p->c, &layout, true, &p->plan, err) : status;
}

static cb_status add_matrix(step *s, int which, const char *variant, unsigned isa, cb_error *err)
{
    const step_matrix *m = &s->model->matrices[which];
    cb__case c;
    cb_status status = cb__case_parse(&s->suite, variant, m->shape, isa, &c, err);
    if (status == CB_OK)
        status = check_roles(&c, err);
    if (status != CB_OK)
        return status;
    int i = 0;
    while (i < s->nparts && memcmp(s->parts[i].c.shape, c.shape, sizeof c.shape) != 0)
        i++;
    step_part *p = &s->parts[i];
    if (i == s->nparts) {
        *p = (step_part){.c = c, .ring = CB__REGION_INIT};
        s->nparts++;
    }
    size_t used = strlen(p->names);
    snprintf(p->names + used, sizeof p->names - used, "%s%s", used ? ", " : "", m->name);
    p->count += s->model->layers;
    s->part_of[which] = i;
    s->launches += s->model->layers;
    s->bytes_read += (uint64_t)s->model->layers * c.cost.bytes_read;
    s->bytes_written += (uint64_t)s->model->layers * c.cost.bytes_written;
    return CB_OK;
}

cb_status step_open(step *s, const step_model *m, const char *variant, const char *kernel,
                    const cb__device_info *info, unsigned isa, uint64_t seed, cb_error *err)
{
    *s = (step){.model = m, .seed = seed};
    cb_status status = cb__suite_open(&kernel, kernel != NULL, true, &s->suite, err);
    int n = model_matrices(m);
    for (int i = 0; i < n && status == CB_OK; i++)
        status = add_matrix(s, i, variant, isa, err);
    for (int i = 0; i < s->nparts && status == CB_OK; i++)
        status = part_plan(&s->parts[i], info, err);
    return status;
}

void step_close(step *s)
{
    for (int i = 0; i < s->nparts; i++) {
        cb__region_fini(&s->parts[i].ring);
        free(s->parts[i].values);
        free(s->parts[i].bounds);
    }
    s->nparts = 0;
    cb__suite_close(&s->suite);
}

/* ---- filling ---- */

static cb_status check_memory(const step *s, cb_error *err)
{
    uint64_t needed = 0, there = cb__memory_available("");
    for (int i = 0; i < s->nparts; i++)
        needed += s->parts[i].plan.file_bytes;
    if (needed <= there)
        return CB_OK;
    return cb_error_set(
        err, CB_NO_MEMORY, "the %d matrices of %s take %.0f MiB, and %.0f MiB are available",
        s->launches, s->model->name, (double)needed / 1048576, (double)there / 1048576);
}

static void touch_share(void *arg, int worker, int workers)
{
    cb__region_touch(arg, worker, workers);
}

static void no_progress(void *arg, double done)
{
    (void)arg, (void)done;
}

static cb_status part_fill(step_part *p, cb__pool *pool, uint64_t seed, cb_error *err)
{
    int sets = cb__fill_reference_sets(&p->c, &p->plan);
    uint64_t elements = cb__reference_elements(&p->c);
    cb__filled filled = {0};
    p->values = calloc(elements * (uint64_t)sets, sizeof *p->values);
    p->bounds = calloc(elements * (uint64_t)sets, sizeof *p->bounds);
    if (!p->values || !p->bounds)
        return cb_error_set(err, CB_NO_MEMORY, "no memory for the reference of %s", p->names);
    p->reference = (cb__reference){p->values, p->bounds, elements, sets};
    cb_status status = cb__region_shared("matrices", p->plan.file_bytes, &p->ring, err);
    if (status != CB_OK)
        return status;
    cb__pool_run(pool, touch_share, &p->ring);
    status = cb__fill(&p->c, &p->plan, pool, seed, p->ring.base, p->values, p->bounds, sets,
                      no_progress, NULL, &filled, err);
    free(filled.checksums);
    p->digest = filled.digest;
    return status;
}

cb_status step_fill(step *s, cb_error *err)
{
    static cb__topology topology;
    cb__pool *pool = NULL;
    uint64_t start = cb__clock_ns();
    cb_status status = check_memory(s, err);
    if (status == CB_OK)
        status = cb__topology_read("", &topology, err);
    if (status == CB_OK)
        status = cb__pool_new(NULL, cb__default_threads(&topology), &pool, err);
    /* Contents of their own for each shape: of one seed, a small matrix is the start of a large. */
    for (int i = 0; i < s->nparts && status == CB_OK; i++)
        status =
            part_fill(&s->parts[i], pool, cb_random(s->seed, 0x73746570u, 0, (uint64_t)i), err);
    cb__pool_free(pool);
    s->fill_s = (double)(cb__clock_ns() - start) * 1e-9;
    return status;
}
