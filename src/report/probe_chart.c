#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/levels.h"
#include "report/report.h"

enum { WIDTH = 60, SIDE = 29, HEIGHT_MAX = 16, CURVES_MAX = 2 };

typedef struct axis {
    double lo, hi; /* logarithms */
    int cells;
} axis;

typedef struct curve {
    char mark;
    int series; /* index into the model's; -1: none */
} curve;

typedef struct plot {
    const cb_model *model;
    curve curves[CURVES_MAX];
    axis x, y;
    char grid[HEIGHT_MAX][WIDTH];
    char side[HEIGHT_MAX][SIDE + 1]; /* what is named right of a row */
} plot;

static int cell(axis a, double value)
{
    double at = (log(value) - a.lo) / (a.hi - a.lo) * (a.cells - 1);
    if (!(at > 0))
        return 0;
    return at > a.cells - 1 ? a.cells - 1 : (int)(at + 0.5);
}

/* A size that could not be resolved has no height. */
static bool has_height(double value)
{
    return value >= 1e-9 && value <= 1e15;
}

static bool drawable(const cb__point *point)
{
    return point->bytes > 0 && has_height(point->value.mid);
}

/* The next of 1, 2, 5, 10, 20, ... from value on, down or up. */
static double nice(double value, bool up)
{
    static const double steps[] = {1, 2, 5, 10};
    double unit = pow(10, floor(log10(value))), found = up ? 10 * unit : unit;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        if (up && steps[i] * unit >= value * (1 - 1e-9))
            return steps[i] * unit;
        if (!up && steps[i] * unit <= value * (1 + 1e-9))
            found = steps[i] * unit;
    }
    return found;
}

/* False where there is nothing to span. */
static bool span(plot *p, int height)
{
    double least = (double)INFINITY, most = 0, first = (double)INFINITY, last = 0;
    for (int c = 0; c < CURVES_MAX; c++) {
        if (p->curves[c].series < 0)
            continue;
        const cb__series *s = &p->model->series[p->curves[c].series];
        for (int i = 0; i < s->n; i++) {
            if (!drawable(&s->points[i]))
                continue;
            least = fmin(least, s->points[i].value.mid);
            most = fmax(most, s->points[i].value.mid);
            first = fmin(first, (double)s->points[i].bytes);
            last = fmax(last, (double)s->points[i].bytes);
        }
    }
    if (!(last > first))
        return false;
    p->x = (axis){log(first), log(last), WIDTH};
    p->y = (axis){log(nice(least, false)), log(nice(fmax(most, least * 1.01), true)), height};
    return true;
}

/* Dots lead from point to point, straight in logarithms, as queries read a curve between them. */
static void lead(plot *p, const cb__point *a, const cb__point *b)
{
    double from = log((double)a->bytes), to = log((double)b->bytes);
    int end = cell(p->x, (double)b->bytes);
    for (int at = cell(p->x, (double)a->bytes) + 1; at < end; at++) {
        double x = p->x.lo + (p->x.hi - p->x.lo) * at / (p->x.cells - 1);
        double rise = log(b->value.mid / a->value.mid) * (x - from) / (to - from);
        char *cross = &p->grid[cell(p->y, a->value.mid * exp(rise))][at];
        *cross = *cross == ' ' ? '.' : *cross;
    }
}

static void draw(plot *p, const curve *c)
{
    const cb__series *s = &p->model->series[c->series];
    const cb__point *last = NULL;
    for (int i = 0; i < s->n; i++) {
        const cb__point *point = &s->points[i];
        if (!drawable(point))
            continue;
        char *at = &p->grid[cell(p->y, point->value.mid)][cell(p->x, (double)point->bytes)];
        *at = *at == ' ' || *at == '.' || *at == c->mark ? c->mark : '*';
        if (last)
            lead(p, last, point);
        last = point;
    }
}

/* Beside the row of the value, or the nearest that has room. */
static void name_value(plot *p, char mark, const char *name, double value)
{
    char figure[16], text[48];
    if (!has_height(value))
        return;
    cb__figure_text(value, figure);
    int length = snprintf(text, sizeof text, "%c %s%s%s", mark, name, *name ? " " : "", figure);
    int row = cell(p->y, value);
    for (int distance = 0; distance < p->y.cells; distance++)
        for (int sign = -1; sign <= 1; sign += 2) {
            int at = row + sign * distance;
            if (at < 0 || at >= p->y.cells)
                continue;
            size_t used = strlen(p->side[at]);
            if (used + (used ? 2 : 0) + (size_t)length > SIDE)
                continue;
            snprintf(p->side[at] + used, SIDE + 1 - used, "%s%s", used ? ", " : "", text);
            return;
        }
}

static void name_plateaus(plot *p, const curve *c)
{
    const cb__model_knee *knees[CB__KNEES_MAX];
    int n = cb__knees_of(p->model, c->series, knees);
    char name[24];
    for (int i = 0; i < n; i++) {
        cb__knee_name(p->model, knees[i], name);
        name_value(p, c->mark, name, knees[i]->from);
    }
    if (n > 0)
        name_value(p, c->mark, knees[n - 1]->last ? "memory" : "", knees[n - 1]->to);
}

static void name_ceiling(plot *p, const curve *c)
{
    const cb__series *s = &p->model->series[c->series];
    for (int i = 0; s->kind == CB__BANDWIDTH && i < p->model->nceilings; i++) {
        const cb__model_ceiling *ceiling = &p->model->ceilings[i];
        if (ceiling->workers == s->workers && strcmp(ceiling->mix, s->what) == 0)
            name_value(p, c->mark, "ceiling", ceiling->gb_per_s.mid);
    }
}

static void put_trimmed(cb__buf *out, const char *left, const char *line, int length)
{
    while (length > 0 && line[length - 1] == ' ')
        length--;
    cb__buf_printf(out, "%8s%.*s\n", left, length, line);
}

static void put_rows(const plot *p, cb__buf *out)
{
    char ticks[HEIGHT_MAX][16] = {{0}};
    double top = exp(p->y.hi) * 1.01;
    for (double value = exp(p->y.lo); value <= top; value = nice(value * 1.5, true))
        snprintf(ticks[cell(p->y, value)], sizeof *ticks, "%.3g", value);
    for (int row = p->y.cells - 1; row >= 0; row--) {
        char line[2 + WIDTH + 1 + SIDE + 1];
        int length = snprintf(line, sizeof line, " |%.*s %s", WIDTH, p->grid[row], p->side[row]);
        put_trimmed(out, ticks[row], line, length);
    }
}

static void put_sizes(const plot *p, cb__buf *out)
{
    char line[WIDTH + 32], rule[2 + WIDTH];
    memset(line, ' ', sizeof line);
    memset(rule, '-', sizeof rule);
    memcpy(rule, " +", 2);
    int free_from = 0;
    for (double size = exp(p->x.lo); size <= exp(p->x.hi) * 1.01; size *= 8) {
        char text[24];
        cb__bytes_text(round(size), text);
        int at = cell(p->x, size);
        if (at < free_from)
            continue;
        rule[2 + at] = '+';
        memcpy(line + 2 + at, text, strlen(text));
        free_from = at + (int)strlen(text) + 2;
    }
    put_trimmed(out, "", rule, sizeof rule);
    put_trimmed(out, "", line, sizeof line);
}

/* " |--| L1     |....| L2?": the first where it is, its label where there is room. */
static void put_knees(const plot *p, const curve *c, cb__buf *out)
{
    const cb__model_knee *knees[CB__KNEES_MAX];
    char line[2 + WIDTH + 32], left[16];
    int n = cb__knees_of(p->model, c->series, knees);
    if (n == 0)
        return;
    memset(line, ' ', sizeof line);
    for (int i = 0; i < n; i++) {
        bool sure = knees[i]->verdict == CB_VERDICT_OK;
        int lo = 2 + cell(p->x, (double)knees[i]->lo_bytes);
        int hi = 2 + cell(p->x, (double)knees[i]->hi_bytes);
        int end = i + 1 < n ? 1 + cell(p->x, (double)knees[i + 1]->lo_bytes) : (int)sizeof line;
        char name[24], label[40];
        cb__knee_name(p->model, knees[i], name);
        int length = snprintf(label, sizeof label, "%s%s%s", name, sure ? "" : "?",
                              knees[i]->last ? "   memory" : "");
        memset(line + lo, sure ? '-' : '.', (size_t)(hi - lo + 1));
        line[lo] = line[hi] = '|';
        if (hi + 2 + length <= end)
            memcpy(line + hi + 2, label, (size_t)length);
    }
    snprintf(left, sizeof left, "knees %c", c->mark);
    put_trimmed(out, left, line, sizeof line);
}

static bool plotted(plot *p, int height)
{
    memset(p->grid, ' ', sizeof p->grid);
    memset(p->side, 0, sizeof p->side);
    if (!span(p, height))
        return false;
    for (int i = 0; i < CURVES_MAX; i++)
        if (p->curves[i].series >= 0)
            draw(p, &p->curves[i]);
    for (int i = 0; i < CURVES_MAX; i++)
        if (p->curves[i].series >= 0)
            name_plateaus(p, &p->curves[i]);
    for (int i = 0; i < CURVES_MAX; i++)
        if (p->curves[i].series >= 0)
            name_ceiling(p, &p->curves[i]);
    return true;
}

static void put_plot(const plot *p, cb__buf *out)
{
    put_rows(p, out);
    put_sizes(p, out);
    for (int i = 0; i < CURVES_MAX; i++)
        if (p->curves[i].series >= 0)
            put_knees(p, &p->curves[i], out);
}

static void bandwidth(const cb__probe *probe, const cb_model *model, cb__buf *out)
{
    int all = cb_model_workers(model);
    plot p = {.model = model,
              .curves = {{'N', all > 1 ? cb__read_curve(model, all) : -1},
                         {'1', cb__read_curve(model, 1)}}};
    if (!plotted(&p, HEIGHT_MAX))
        return;
    if (p.curves[1].series >= 0)
        name_value(&p, '1', "port bound", probe->port_bound_gb_per_s);
    cb__buf_puts(out, "read bandwidth, GB/s, over the set; 1: one thread");
    if (p.curves[0].series >= 0)
        cb__buf_printf(out, ", N: %d threads, *: both", all);
    cb__buf_puts(out, "\n");
    put_plot(&p, out);
}

static void latency(const cb_model *model, cb__buf *out)
{
    plot p = {
        .model = model,
        .curves = {{'b', cb__random_curve(model, true)}, {'h', cb__random_curve(model, false)}}};
    char pages[24];
    if (!plotted(&p, 10))
        return;
    cb__bytes_text((double)model->series[p.curves[1].series].page_bytes, pages);
    cb__buf_printf(out, "\nlatency of random loads, ns, over the set; h: %s pages", pages);
    if (p.curves[0].series >= 0) {
        cb__bytes_text((double)model->series[p.curves[0].series].page_bytes, pages);
        cb__buf_printf(out, ", b: %s pages, *: both", pages);
    }
    cb__buf_puts(out, "\n");
    put_plot(&p, out);
}

void cb__report_probe_chart(const cb__probe *probe, const cb_model *model, cb__buf *out)
{
    bandwidth(probe, model, out);
    latency(model, out);
    bool unsure = false;
    for (int i = 0; i < model->nknees; i++)
        unsure |= model->knees[i].verdict != CB_VERDICT_OK;
    if (unsure)
        cb__buf_puts(out, "|..| ?: a knee whose verdict is not ok\n");
}
