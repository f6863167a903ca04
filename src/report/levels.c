#include "report/levels.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

int cb__read_curve(const cb_model *model, int workers)
{
    const cb__series *s = cb__model_series(model, CB__BANDWIDTH, "read", workers);
    return s ? (int)(s - model->series) : -1;
}

int cb__random_curve(const cb_model *model, bool base_pages)
{
    const cb__series *most = cb__model_series(model, CB__LATENCY, "random", 1);
    if (!most || !base_pages)
        return most ? (int)(most - model->series) : -1;
    for (int i = 0; i < model->nseries; i++) {
        const cb__series *s = &model->series[i];
        if (s->kind == CB__LATENCY && strcmp(s->what, "random") == 0 &&
            s->page_bytes < most->page_bytes)
            return i;
    }
    return -1;
}

int cb__knees_of(const cb_model *model, int series, const cb__model_knee *knees[CB__KNEES_MAX])
{
    int n = 0;
    for (int i = 0; i < model->nknees && n < CB__KNEES_MAX; i++) {
        const cb__model_knee *k = &model->knees[i];
        if (k->series != series)
            continue;
        int at = n++;
        for (; at > 0 && knees[at - 1]->lo_bytes > k->lo_bytes; at--)
            knees[at] = knees[at - 1];
        knees[at] = k;
    }
    return n;
}

const cb__model_knee *cb__level_knee(const cb_model *model, int level, cb_pattern pattern,
                                     int workers)
{
    cb_error ignored = CB_ERROR_INIT;
    cb_figure capacity;
    const cb__model_knee *knees[CB__KNEES_MAX];
    if (cb_model_capacity(model, level, pattern, workers, &capacity, &ignored) != CB_OK)
        return NULL;
    int curve = pattern == CB_STREAM_PATTERN ? cb__read_curve(model, workers)
                                             : cb__random_curve(model, false);
    int n = cb__knees_of(model, curve, knees);
    for (int i = 0; i < n; i++)
        if ((double)knees[i]->lo_bytes == capacity.lo) /* knees of a curve do not overlap */
            return knees[i];
    return NULL;
}

void cb__knee_name(const cb_model *model, const cb__model_knee *knee, char text[24])
{
    const cb__series *s = &model->series[knee->series];
    cb_pattern pattern = s->kind == CB__BANDWIDTH ? CB_STREAM_PATTERN : CB_RANDOM_PATTERN;
    size_t used = 0;
    *text = '\0';
    for (int i = 0; i < model->nlevels && used < 16; i++)
        if (cb__level_knee(model, model->levels[i].level, pattern, s->workers) == knee)
            used += (size_t)snprintf(text + used, 24 - used, "%sL%d", used ? "/" : "",
                                     model->levels[i].level % 100);
}

void cb__figure_text(double value, char text[16])
{
    double size = fabs(value);
    if (!isfinite(value))
        snprintf(text, 16, "-");
    else if (size >= 1e5 || (size < 1e-3 && size > 0))
        snprintf(text, 16, "%.2e", value);
    else
        snprintf(text, 16, size >= 99.95 ? "%.0f" : size >= 9.995 ? "%.1f" : "%.2f", value);
}
