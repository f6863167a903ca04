#include "measure/fill.h"

#include <stdlib.h>
#include <string.h>

#include "coldbench/random.h"
#include "device/digest.h"
#include "host/clock.h"
#include "stats/order.h"

enum { SAMPLES = 4096 };

typedef struct filling {
    const cb__case *c;
    const cb__plan *plan;
    cb__pool *pool;
    uint64_t seed;
    unsigned char *base;
    void *logical[CB_OPERANDS_MAX]; /* set 0, or the set in work where rows do not rotate */
    void *rotated[CB_OPERANDS_MAX]; /* the set in work, where they do */
    double *values, *bounds;
    double prepare_ns;
} filling;

static bool is_filled(const filling *f, int operand)
{
    return cb__role_is_read(f->c->kernel->operands[operand].role) &&
           f->c->logical_bytes[operand] > 0;
}

/* ---- one operand on all workers ---- */

typedef struct share {
    filling *f;
    int operand;
    uint64_t set;
    const void *from;
    void *to;
} share;

static void fill_share(void *arg, int worker, int workers)
{
    share *s = arg;
    cb_problem problem = cb__case_problem(s->f->c);
    s->f->c->kernel->fill(&problem, s->f->seed, s->operand, s->set, s->to, worker, workers);
}

static void rotate_share(void *arg, int worker, int workers)
{
    share *s = arg;
    uint64_t rows = cb__plan_rows(s->f->c);
    uint64_t row_bytes = s->f->c->logical_bytes[s->operand] / rows;
    uint64_t shift = cb__plan_rotation(s->set, rows);
    uint64_t end = rows * (uint64_t)(worker + 1) / (uint64_t)workers;
    for (uint64_t row = rows * (uint64_t)worker / (uint64_t)workers; row < end; row++) {
        uint64_t from = row + shift < rows ? row + shift : row + shift - rows;
        memcpy((char *)s->to + row * row_bytes, (const char *)s->from + from * row_bytes,
               row_bytes);
    }
}

static void pack_share(void *arg, int worker, int workers)
{
    share *s = arg;
    const cb__case *c = s->f->c;
    cb_problem problem = cb__case_problem(c);
    if (c->impl->packed_bytes) {
        c->impl->prepare(&problem, c->tunables, s->operand, s->from, s->to, worker, workers);
        return;
    }
    uint64_t bytes = c->logical_bytes[s->operand];
    uint64_t first = bytes * (uint64_t)worker / (uint64_t)workers;
    uint64_t end = bytes * (uint64_t)(worker + 1) / (uint64_t)workers;
    memcpy((char *)s->to + first, (const char *)s->from + first, end - first);
}

static void pack(filling *f, int operand, const void *from, void *to)
{
    share s = {f, operand, 0, from, to};
    uint64_t start = cb__clock_ns();
    cb__pool_run(f->pool, pack_share, &s);
    f->prepare_ns += (double)(cb__clock_ns() - start);
}

/* ---- one set ---- */

static void pad_set(filling *f, int set)
{
    const cb__plan *plan = f->plan;
    uint64_t used = 0;
    for (int i = 0; i < f->c->kernel->noperands; i++)
        if (plan->rotating[i] && plan->offset[i] + f->c->packed_bytes[i] > used)
            used = plan->offset[i] + f->c->packed_bytes[i];
    unsigned char *at = f->base + (uint64_t)set * plan->set_bytes;
    uint64_t key = cb_random_key(f->seed, 0x706164u, (uint64_t)set);
    for (uint64_t i = used; i < plan->set_bytes; i += 8) {
        uint64_t word = cb_random_word(key, i);
        memcpy(at + i, &word, plan->set_bytes - i < 8 ? plan->set_bytes - i : 8);
    }
}

static void fill_set(filling *f, int set)
{
    bool rotates = f->c->kernel->rotates != NULL;
    for (int i = 0; i < f->c->kernel->noperands; i++) {
        if (!f->plan->rotating[i])
            continue;
        share s = {f, i, (uint64_t)set, f->logical[i], f->logical[i]};
        const void *from = f->logical[i];
        if (!rotates) {
            cb__pool_run(f->pool, fill_share, &s);
        } else if (set > 0) {
            s.to = f->rotated[i];
            cb__pool_run(f->pool, rotate_share, &s);
            from = f->rotated[i];
        }
        pack(f, i, from, f->base + (uint64_t)set * f->plan->set_bytes + f->plan->offset[i]);
    }
    pad_set(f, set);
}

/* ---- the reference ---- */

static void reference_share(void *arg, int worker, int workers)
{
    share *s = arg;
    const cb__case *c = s->f->c;
    cb_problem problem = cb__case_problem(c);
    const void *logical[CB_OPERANDS_MAX];
    for (int i = 0; i < CB_OPERANDS_MAX; i++)
        logical[i] = s->f->logical[i];
    uint64_t at = s->set * cb__reference_elements(c);
    for (int i = 0; i < c->kernel->noperands; i++) {
        if (!cb__role_is_written(c->kernel->operands[i].role))
            continue;
        uint64_t n = c->logical_bytes[i] / cb__type_bytes(c->kernel->operands[i].type);
        uint64_t first = n * (uint64_t)worker / (uint64_t)workers;
        uint64_t end = n * (uint64_t)(worker + 1) / (uint64_t)workers;
        if (end > first)
            c->kernel->reference(&problem, logical, i, first, end - first,
                                 s->f->values + at + first, s->f->bounds + at + first);
        at += n;
    }
}

static void reference(filling *f, int set)
{
    share s = {f, 0, (uint64_t)set, NULL, NULL};
    cb__pool_run(f->pool, reference_share, &s);
}

int cb__fill_reference_sets(const cb__case *c, const cb__plan *plan)
{
    /* Without rotation each set in the ring has outputs of its own; timed calls are looked at on
     * any of the first k. */
    return c->kernel->rotates ? 1 : plan->k;
}

/* ---- what is told of the contents ---- */

/* Of the definition's own contents, before any packing: what a packing pads with says nothing. Few
 * enough words are drawn that hardly any is drawn twice. */
static void sample(const filling *f, cb__filled *out)
{
    double words[SAMPLES];
    size_t n = 0;
    for (int i = 0; i < f->c->kernel->noperands; i++) {
        uint64_t in_operand = f->plan->rotating[i] ? f->c->logical_bytes[i] / 8 : 0;
        uint64_t samples = in_operand / 16;
        for (uint64_t j = 0; j < samples && n < SAMPLES / 2 * (i ? 2u : 1u); j++) {
            uint64_t at = cb_random(f->seed, 0x73616d70u, (uint64_t)i, j) % in_operand;
            uint64_t word;
            memcpy(&word, (const unsigned char *)f->logical[i] + at * 8, 8);
            words[n++] = (double)(word >> 12);
        }
    }
    cb__sort(words, n);
    out->sampled_words = n;
    for (size_t i = 0; i < n; i++)
        out->distinct_words += i == 0 || words[i] != words[i - 1];
}

typedef struct checking {
    const filling *f;
    uint32_t *checksums;
} checking;

/* As the reading twin takes it, over all words of a set's share of the ring. */
static void checksum_share(void *arg, int worker, int workers)
{
    const checking *c = arg;
    for (int set = worker; set < c->f->plan->sets; set += workers) {
        const unsigned char *at = c->f->base + (uint64_t)set * c->f->plan->set_bytes;
        uint32_t checksum = 0;
        for (uint64_t i = 0; i < c->f->plan->twin_bytes; i += 4) {
            uint32_t word;
            memcpy(&word, at + i, 4);
            checksum ^= word;
        }
        c->checksums[set] = checksum;
    }
}

static cb_status buffers(filling *f, cb_error *err)
{
    for (int i = 0; i < f->c->kernel->noperands; i++) {
        uint64_t bytes = f->c->logical_bytes[i];
        if (!is_filled(f, i))
            continue;
        f->logical[i] = malloc(bytes + 64);
        if (f->plan->rotating[i] && f->c->kernel->rotates)
            f->rotated[i] = malloc(bytes + 64);
        if (!f->logical[i] || (f->plan->rotating[i] && f->c->kernel->rotates && !f->rotated[i]))
            return cb_error_set(err, CB_NO_MEMORY, "filling operand %s: no memory for %llu bytes",
                                f->c->kernel->operands[i].name, (unsigned long long)bytes);
    }
    return CB_OK;
}

static void fill_statics(filling *f)
{
    for (int i = 0; i < f->c->kernel->noperands; i++) {
        if (!is_filled(f, i) || (f->plan->rotating[i] && !f->c->kernel->rotates))
            continue;
        share s = {f, i, 0, NULL, f->logical[i]};
        cb__pool_run(f->pool, fill_share, &s);
        if (!f->plan->rotating[i])
            pack(f, i, f->logical[i],
                 f->base + f->plan->static_offset +
                     (f->c->kernel->operands[i].role == CB_INOUT ? f->plan->initial[i]
                                                                 : f->plan->offset[i]));
    }
}

typedef struct digesting {
    const void *base;
    uint64_t bytes;
    _Atomic uint64_t sum;
} digesting;

static void digest_share(void *arg, int worker, int workers)
{
    digesting *d = arg;
    d->sum += cb__digest_part(d->base, d->bytes, worker, workers);
}

cb_status cb__fill(const cb__case *c, const cb__plan *plan, cb__pool *pool, uint64_t seed,
                   void *base, double *values, double *bounds, int reference_sets,
                   cb__fill_progress progress, void *arg, cb__filled *out, cb_error *err)
{
    filling f = {.c = c,
                 .plan = plan,
                 .pool = pool,
                 .seed = seed,
                 .base = base,
                 .values = values,
                 .bounds = bounds};
    *out = (cb__filled){0};
    cb_status status = buffers(&f, err);
    out->checksums = calloc((size_t)plan->sets, sizeof *out->checksums);
    if (status == CB_OK && !out->checksums)
        status = cb_error_set(err, CB_NO_MEMORY, "filling: no memory");
    if (status != CB_OK)
        goto out;
    fill_statics(&f);
    for (int set = 0; set < plan->sets; set++) {
        fill_set(&f, set);
        if (set < reference_sets)
            reference(&f, set);
        if (set == 0)
            sample(&f, out);
        progress(arg, (set + 1.0) / plan->sets);
    }
    if (strcmp(plan->twin_kernel, "twin_read") == 0)
        cb__pool_run(pool, checksum_share, &(checking){&f, out->checksums});
    digesting d = {base, plan->file_bytes, 0};
    cb__pool_run(pool, digest_share, &d);
    out->digest = d.sum;
    out->prepare_ns = f.prepare_ns;
out:
    for (int i = 0; i < CB_OPERANDS_MAX; i++) {
        free(f.logical[i]);
        free(f.rotated[i]);
    }
    return status;
}
