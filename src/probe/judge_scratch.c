/* What the strides over on-chip memory say: figures, and the banks that explain them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probe/controls.h"

#define STRIDE_WITHIN 0.10 /* hi / lo - 1 over sweeps */

static void rows_add(cb__judging *j, const cb__probe_scratch *s)
{
    const char *slash = strchr(s->what, '/');
    for (int i = 0; slash && i < s->n; i++) {
        double values[CB__SWEEPS];
        for (int sweep = 0; sweep < CB__SWEEPS; sweep++)
            values[sweep] = s->values[sweep][i] > 0 ? s->values[sweep][i] : (double)NAN;
        cb__swept figure = cb__over_sweeps(values);
        if (figure.n == 0)
            continue;
        cb__model_scratch *row = &j->model->scratch[j->model->nscratch++];
        *row = (cb__model_scratch){.width = atoi(slash + 1),
                                   .stride = s->strides[i],
                                   .gb_per_s = figure.over,
                                   .verdict = s->missed ? CB_VERDICT_WRONG
                                                        : cb__steady(figure, STRIDE_WITHIN)};
        snprintf(row->path, sizeof row->path, "%.*s", (int)(slash - s->what), s->what);
    }
}

static double fastest(const cb_model *m, int width)
{
    double best = 0;
    for (int i = 0; i < m->nscratch; i++)
        if (m->scratch[i].width == width && strcmp(m->scratch[i].path, "shared") == 0)
            best = fmax(best, m->scratch[i].gb_per_s.mid);
    return best;
}

static cb_status fit(cb__judging *j)
{
    cb_model *m = j->model;
    cb__bank_point *points = cb__arena_array(&m->arena, (size_t)m->nscratch + 1, sizeof *points);
    size_t n = 0;
    if (!points)
        return CB_NO_MEMORY;
    for (int i = 0; i < m->nscratch; i++) {
        const cb__model_scratch *s = &m->scratch[i];
        if (strcmp(s->path, "shared") == 0)
            points[n++] =
                (cb__bank_point){s->width, s->stride, fastest(m, s->width) / s->gb_per_s.mid};
    }
    m->has_banks = cb__banks_fit(points, n, &m->banks);
    return CB_OK;
}

cb_status cb__judge_scratch(cb__judging *j)
{
    const cb__probe *p = j->probe;
    size_t most = 0;
    for (int i = 0; i < p->nscratch; i++)
        most += (size_t)p->scratch[i].n;
    if (most == 0)
        return CB_OK;
    j->model->scratch = cb__arena_array(&j->model->arena, most, sizeof *j->model->scratch);
    if (!j->model->scratch)
        return CB_NO_MEMORY;
    for (int i = 0; i < p->nscratch; i++)
        rows_add(j, &p->scratch[i]);
    return fit(j);
}
