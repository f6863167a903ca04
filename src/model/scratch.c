/* Queries about on-chip scratch memory: what a stride costs, and which padding was seen to help. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/query.h"

#define CONFIRMED_WITHIN 1.10 /* of a timed cost, from what the banks say */

static cb_status no_scratch(const cb_model *model, cb_error *err)
{
    return cb_error_set(err, CB_UNDECIDED,
                        "not applicable: %s has no on-chip scratch memory of its own",
                        model->device);
}

static const cb__model_scratch *row_at(const cb_model *m, uint64_t width, uint64_t stride)
{
    for (int i = 0; i < m->nscratch; i++)
        if (strcmp(m->scratch[i].path, "shared") == 0 && (uint64_t)m->scratch[i].width == width &&
            (uint64_t)m->scratch[i].stride == stride)
            return &m->scratch[i];
    return NULL;
}

/* The fastest stride of a width; NULL: the width was not measured. */
static const cb__model_scratch *best_of(const cb_model *m, uint64_t width)
{
    const cb__model_scratch *best = NULL;
    for (int i = 0; i < m->nscratch; i++) {
        const cb__model_scratch *s = &m->scratch[i];
        if (strcmp(s->path, "shared") == 0 && (uint64_t)s->width == width &&
            (!best || s->gb_per_s.mid > best->gb_per_s.mid))
            best = s;
    }
    return best;
}

static void widths_text(const cb_model *m, char *text, size_t size)
{
    size_t used = 0;
    *text = '\0';
    for (int i = 0; i < m->nscratch && used < size; i++) {
        bool first = strcmp(m->scratch[i].path, "shared") == 0;
        for (int k = 0; k < i && first; k++)
            first = m->scratch[k].width != m->scratch[i].width;
        if (first)
            used += (size_t)snprintf(text + used, size - used, "%s%d", used ? ", " : "",
                                     m->scratch[i].width);
    }
}

static void strides_text(const cb_model *m, uint64_t width, char *text, size_t size)
{
    size_t used = 0;
    *text = '\0';
    for (int i = 0; i < m->nscratch && used < size; i++)
        if (strcmp(m->scratch[i].path, "shared") == 0 && (uint64_t)m->scratch[i].width == width)
            used += (size_t)snprintf(text + used, size - used, "%s%d", used ? ", " : "",
                                     m->scratch[i].stride);
}

static cb_status refuse_width(const cb_model *m, uint64_t width, cb_error *err)
{
    char list[64];
    widths_text(m, list, sizeof list);
    return cb_error_set(err, CB_UNDECIDED, "width %llu was not measured; measured: %s",
                        (unsigned long long)width, list);
}

cb_status cb_model_scratch_cost(const cb_model *model, uint64_t stride, uint64_t width,
                                cb_figure *out, cb_error *err)
{
    if (model->nscratch == 0)
        return no_scratch(model, err);
    const cb__model_scratch *best = best_of(model, width), *at = row_at(model, width, stride);
    if (!best)
        return refuse_width(model, width, err);
    if (!at) {
        char list[400];
        strides_text(model, width, list, sizeof list);
        return cb_error_set(err, CB_UNDECIDED, "stride %llu was not timed at width %llu; timed: %s",
                            (unsigned long long)stride, (unsigned long long)width, list);
    }
    const cb__interval *b = &best->gb_per_s, *a = &at->gb_per_s;
    *out = (cb_figure){fmax(b->lo / a->hi, 1), b->mid / a->mid, b->hi / a->lo,
                       cb__verdict_worse(best->verdict, at->verdict)};
    return CB_OK;
}

/* Whether a stride was timed and costs what the banks say. */
static bool confirmed(const cb_model *m, int stride, int width, cb_figure *cost)
{
    if (cb_model_scratch_cost(m, (uint64_t)stride, (uint64_t)width, cost, NULL) != CB_OK)
        return false;
    double off = cost->mid / cb__banks_cost(&m->banks, width, stride);
    return off <= CONFIRMED_WITHIN && off >= 1 / CONFIRMED_WITHIN;
}

cb_status cb_model_best_pad(const cb_model *model, uint64_t row, uint64_t width, cb_figure *out,
                            cb_error *err)
{
    cb_figure bare, padded;
    if (model->nscratch == 0)
        return no_scratch(model, err);
    if (!best_of(model, width))
        return refuse_width(model, width, err);
    if (row == 0 || row % width || row > CB__STRIDE_MAX)
        return cb_error_set(err, CB_UNDECIDED,
                            "a row of %llu bytes is no whole number of accesses of %llu, up to %d "
                            "bytes of them",
                            (unsigned long long)row, (unsigned long long)width, CB__STRIDE_MAX);
    if (!model->has_banks)
        return cb_error_set(err, CB_UNDECIDED,
                            "no number of banks explains the strides that were timed");
    int pad = cb__banks_pad(&model->banks, (int)row, (int)width);
    if (!confirmed(model, (int)row, (int)width, &bare) ||
        !confirmed(model, (int)row + pad, (int)width, &padded))
        return cb_error_set(err, CB_UNDECIDED,
                            "%d banks of %d bytes would have a padding of %d, but rows of %llu and "
                            "of %llu bytes were not both timed so",
                            model->banks.banks, model->banks.bank_bytes, pad,
                            (unsigned long long)row, (unsigned long long)row + (unsigned)pad);
    *out = (cb_figure){pad, pad, pad, cb__verdict_worse(bare.verdict, padded.verdict)};
    return CB_OK;
}
