#include "measure/verify.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coldbench/random.h"
#include "device/digest.h"
#include "measure/poison.h"

uint64_t cb__reference_elements(const cb__case *c)
{
    uint64_t n = 0;
    for (int i = 0; i < c->kernel->noperands; i++)
        if (cb__role_is_written(c->kernel->operands[i].role))
            n += c->logical_bytes[i] / cb__type_bytes(c->kernel->operands[i].type);
    return n;
}

static void compare(double got, double want, double bound, uint64_t index, cb__findings *f)
{
    double error = fabs(got - want);
    double multiple = isnan(error) ? (double)INFINITY
                      : error == 0 ? 0
                      : bound > 0  ? error / bound
                                   : (double)INFINITY;
    if (multiple > f->worst)
        f->worst = multiple;
    if (multiple <= 1)
        return;
    if (f->beyond++ == 0) {
        f->first_beyond = index;
        f->got = got;
        f->want = want;
        f->bound = bound;
    }
}

static void verify_operand(const cb__case *c, int operand, const cb__reference *reference, int set,
                           uint64_t first, const void *after, cb__findings *f)
{
    cb_type type = c->kernel->operands[operand].type;
    uint64_t n = c->logical_bytes[operand] / cb__type_bytes(type);
    double range = c->kernel->operands[operand].hi - c->kernel->operands[operand].lo;
    uint64_t rows = cb__plan_rows(c);
    uint64_t per_row = rows ? n / rows : 0;
    uint64_t shift = rows ? cb__plan_rotation((uint64_t)set, rows) * per_row : 0;
    uint64_t base = first + (rows ? 0 : (uint64_t)set * reference->elements);
    for (uint64_t i = 0; i < n; i++) {
        double got = cb__element_f64(type, after, i);
        uint64_t from = i + shift < n ? i + shift : i + shift - n;
        double want = reference->values[base + from];
        double bound = reference->bounds[base + from];
        f->vacuous += range > 0 && !(bound < range);
        /* A definition may itself give NaN or Inf; then the output must be the same. */
        bool defined = isfinite(want);
        if (!isfinite(got) && defined) {
            if (f->nonfinite++ == 0)
                f->first_nonfinite = i;
        } else if (defined) {
            compare(got, want, bound, i, f);
        } else if (!(isnan(want) ? isnan(got) : got == want)) {
            compare(got, want, 0, i, f);
        }
    }
    f->elements += n;
}

static void verify_guards(const unsigned char *expected, const unsigned char *after, uint64_t from,
                          uint64_t to, int64_t origin, cb__findings *f)
{
    for (uint64_t i = from; i < to; i++) {
        if (expected[i] == after[i])
            continue;
        if (f->guard_bytes++ == 0)
            f->first_guard = (int64_t)i - origin;
    }
}

void cb__verify_guards(const cb__case *c, const cb__plan *plan, uint64_t seed, int slot,
                       const void *after, cb__findings *f)
{
    unsigned char *expected = malloc(plan->slot_bytes);
    uint64_t at = 0;
    if (expected)
        cb__poison_guards(c, plan, seed, slot, expected);
    for (int i = 0; i < c->kernel->noperands && expected; i++) {
        if (!cb__role_is_written(c->kernel->operands[i].role))
            continue;
        int64_t end = (int64_t)(plan->offset[i] + c->packed_bytes[i]);
        verify_guards(expected, after, at, plan->offset[i], end, f);
        at = (uint64_t)end;
        uint64_t next = plan->slot_bytes;
        verify_guards(expected, after, at,
                      next < at + CB__GUARD_BYTES ? next : at + CB__GUARD_BYTES, end, f);
        at += CB__GUARD_BYTES;
    }
    if (!expected) /* what could not be looked at is not called clean */
        f->guard_bytes++;
    free(expected);
    f->slots++;
}

void cb__verify_slot(const cb__case *c, const cb__plan *plan, const cb__reference *reference,
                     uint64_t seed, int slot, int set, const void *after, cb__findings *f)
{
    uint64_t first = 0;
    cb__verify_guards(c, plan, seed, slot, after, f);
    for (int i = 0; i < c->kernel->noperands; i++) {
        if (!cb__role_is_written(c->kernel->operands[i].role))
            continue;
        verify_operand(c, i, reference, set, first, (const unsigned char *)after + plan->offset[i],
                       f);
        first += c->logical_bytes[i] / cb__type_bytes(c->kernel->operands[i].type);
    }
}

uint64_t cb__outputs_digest(const cb__case *c, const cb__plan *plan, const void *after)
{
    uint64_t digest = 0;
    for (int i = 0; i < c->kernel->noperands; i++)
        if (cb__role_is_written(c->kernel->operands[i].role))
            digest =
                cb_random_mix(digest + cb__digest((const unsigned char *)after + plan->offset[i],
                                                  c->packed_bytes[i]));
    return digest;
}

void cb__verify_written(const cb__case *c, const cb__plan *plan, uint64_t seed, int slot,
                        const void *after0, const void *after1, cb__findings *f)
{
    for (int i = 0; i < c->kernel->noperands; i++) {
        const cb_operand *operand = &c->kernel->operands[i];
        if (operand->role != CB_OUTPUT) /* what is read first cannot be poisoned; its bound tells */
            continue;
        size_t size = cb__type_bytes(operand->type);
        uint64_t bytes = c->packed_bytes[i];
        unsigned char *poison = malloc(2 * bytes + 1);
        if (!poison) {
            f->unwritten++;
            return;
        }
        cb__poison_fill(operand, seed, i, slot, 0, poison, bytes);
        cb__poison_fill(operand, seed, i, slot, 1, poison + bytes, bytes);
        const unsigned char *a = (const unsigned char *)after0 + plan->offset[i];
        const unsigned char *b = (const unsigned char *)after1 + plan->offset[i];
        for (uint64_t j = 0; j + size <= bytes; j += size) {
            if (memcmp(a + j, poison + j, size) || memcmp(b + j, poison + bytes + j, size))
                continue;
            if (f->unwritten++ == 0)
                f->first_unwritten = j / size;
        }
        free(poison);
    }
}

void cb__findings_merge(cb__findings *into, const cb__findings *from, const char *shape)
{
    bool bad =
        from->unwritten || from->guard_bytes || from->nonfinite || from->beyond || from->vacuous;
    bool was_bad =
        into->unwritten || into->guard_bytes || into->nonfinite || into->beyond || into->vacuous;
    uint64_t slots = into->slots + from->slots, elements = into->elements + from->elements;
    double worst = into->worst > from->worst ? into->worst : from->worst;
    int ragged = into->ragged + 1; /* a shape and a submit mode */
    if (bad && !was_bad) {
        *into = *from;
        snprintf(into->where, sizeof into->where, " with shape %s", shape);
    }
    into->slots = slots;
    into->elements = elements;
    into->worst = worst;
    into->ragged = ragged;
}
