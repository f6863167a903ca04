#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/chip.h"
#include "report/levels.h"
#include "report/report.h"

typedef struct table {
    const cb__probe *probe;
    const cb_model *model;
    int all; /* the most threads that were measured */
    bool color, verbose;
    cb__buf *out;
} table;

static const char *threads_text(const table *t, int n, char text[32])
{
    const char *what = t->probe->device.queued ? "multiprocessor" : "thread";
    snprintf(text, 32, "%d %s%s", n, what, n == 1 ? "" : "s");
    return text;
}

static void head(const table *t)
{
    const cb__probe *p = t->probe;
    char text[32];
    cb__buf_printf(t->out, "%s, %s, %s%d sweep%s in %.0f s",
                   *p->device.name ? p->device.name : "unnamed device",
                   threads_text(t, p->device.threads, text), p->quick ? "quick, " : "", p->sweeps,
                   p->sweeps == 1 ? "" : "s", p->wall_s);
    if (p->clock_hz > 0)
        cb__buf_printf(t->out, "; core %.2f GHz", p->clock_hz * 1e-9);
    if (p->port_bound_gb_per_s > 0)
        cb__buf_printf(t->out, ", port bound %.0f GB/s", p->port_bound_gb_per_s);
    cb__buf_puts(t->out, "\n");
}

static void knee_cell(const table *t, const cb__model_knee *knee)
{
    enum { WIDTH = 26 };
    char text[56];
    if (!knee) {
        cb__buf_printf(t->out, "%-*s", WIDTH, "not resolved");
        return;
    }
    cb__range_text((double)knee->lo_bytes, (double)knee->hi_bytes, text);
    int length = (int)strlen(text), rest = WIDTH - length - 1;
    cb__buf_printf(t->out, "%s ", text);
    if (knee->verdict == CB_VERDICT_OK)
        cb__buf_printf(t->out, "%*s", rest > 0 ? rest : 0, "");
    else
        cb__report_verdict(knee->verdict, t->color, rest > 0 ? rest : 0, t->out);
}

static void value_cell(const table *t, double value, int width)
{
    char text[16];
    cb__figure_text(value, text);
    cb__buf_printf(t->out, " %*s", width, text);
}

/* level 0: memory, which lies behind the last knee. */
static double row_value(const cb__model_knee *knee, int level)
{
    return !knee ? (double)NAN : level > 0 ? knee->from : knee->to;
}

static void level_row(const table *t, int level)
{
    const cb__model_knee *one = cb__level_knee(t->model, level, CB_STREAM_PATTERN, 1),
                         *all = cb__level_knee(t->model, level, CB_STREAM_PATTERN, t->all),
                         *random = cb__level_knee(t->model, level, CB_RANDOM_PATTERN, 1);
    if (level > 0) {
        knee_cell(t, all);
        knee_cell(t, random);
    } else {
        cb__buf_printf(t->out, "%52s", "");
    }
    value_cell(t, row_value(one, level), 7);
    if (t->all > 1)
        value_cell(t, row_value(all, level), 9);
    value_cell(t, row_value(random, level), 7);
    cb__buf_puts(t->out, "\n");
}

static void caches(const table *t)
{
    const cb_model *model = t->model;
    char knee[64], column[24], size[32];
    if (model->nseries == 0)
        return;
    bool all_work = t->probe->device.queued; /* so nothing needs to be said of how many */
    snprintf(knee, sizeof knee, "bandwidth knee%s%s", all_work ? "" : ", ",
             all_work ? "" : threads_text(t, t->all, size));
    snprintf(column, sizeof column, "GB/s, %d", t->all);
    cb__buf_printf(t->out, "\n%-8s %-11s %-26s%-26s %7s", "caches", "nominal", knee, "latency knee",
                   "GB/s, 1");
    if (t->all > 1)
        cb__buf_printf(t->out, " %9s", column);
    cb__buf_printf(t->out, " %7s\n", "ns");
    for (int i = 0; i < model->nlevels; i++) {
        const cb__level *l = &model->levels[i];
        char nominal[48];
        cb__bytes_text((double)l->bytes, size);
        snprintf(nominal, sizeof nominal, l->instances > 1 ? "%s x%d" : "%s", size, l->instances);
        cb__buf_printf(t->out, "  L%-5d %-11s ", l->level, l->bytes > 0 ? nominal : "-");
        level_row(t, l->level);
    }
    cb__buf_printf(t->out, "  %-6s %-11s ", "memory", "");
    level_row(t, 0);
}

static void knee_line(const table *t, const cb__model_knee *k)
{
    const cb__series *s = &t->model->series[k->series];
    char curve[48], range[56], from[16], to[16], level[24];
    cb__series_name(s, curve);
    cb__range_text((double)k->lo_bytes, (double)k->hi_bytes, range);
    cb__figure_text(k->from, from);
    cb__figure_text(k->to, to);
    cb__knee_name(t->model, k, level);
    cb__buf_printf(t->out, "  %-20s %-22s %s -> %s %s%s%s%s, ", curve, range, from, to,
                   s->kind == CB__BANDWIDTH ? "GB/s" : "ns", *level ? ", ends " : "", level,
                   k->last ? ", then memory" : "");
    cb__report_verdict(k->verdict, t->color, 0, t->out);
    cb__buf_puts(t->out, "\n");
}

/* verbose: all; else those of the curves above that end none of their levels. */
static void knees(const table *t)
{
    int shown[] = {cb__read_curve(t->model, t->all), cb__random_curve(t->model, false)};
    bool begun = false;
    for (int i = 0; i < t->model->nknees; i++) {
        const cb__model_knee *k = &t->model->knees[i];
        char level[24];
        cb__knee_name(t->model, k, level);
        if (!t->verbose && (*level || (k->series != shown[0] && k->series != shown[1])))
            continue;
        if (!begun)
            cb__buf_puts(t->out, t->verbose ? "\nknees\n" : "\nknees that end no level\n");
        begun = true;
        knee_line(t, k);
    }
}

/* What ceilings, floors and computes have in common. */
typedef struct figure {
    const char *what;
    int threads;
    cb__interval value;
    cb_verdict verdict;
} figure;

typedef figure figure_at(const cb_model *model, int i);

static figure ceiling_at(const cb_model *model, int i)
{
    const cb__model_ceiling *c = &model->ceilings[i];
    return (figure){c->mix, c->workers, c->gb_per_s, c->verdict};
}

static figure floor_at(const cb_model *model, int i)
{
    const cb__model_floor *f = &model->floors[i];
    return (figure){f->submit, f->threads, f->ns, f->verdict};
}

static figure compute_at(const cb_model *model, int i)
{
    const cb__model_compute *c = &model->computes[i];
    return (figure){c->type, c->threads, c->gflop_per_s, c->verdict};
}

typedef struct block {
    const char *title;
    figure_at *at;
    int n;
    void (*text)(double value, char text[24]);
} block;

static void plain_text(double value, char text[24])
{
    cb__figure_text(value, text);
}

static void figure_cell(const table *t, const block *b, const figure *f, bool more)
{
    char mid[24], lo[24], hi[24], range[56];
    if (!f) {
        cb__buf_printf(t->out, more ? "%7s %-34s" : "%7s", "-", "");
        return;
    }
    b->text(f->value.mid, mid);
    b->text(f->value.lo, lo);
    b->text(f->value.hi, hi);
    snprintf(range, sizeof range, "[%s, %s]", lo, hi);
    cb__buf_printf(t->out, "%7s %-20s ", mid, range);
    cb__report_verdict(f->verdict, t->color, more ? 13 : 0, t->out);
}

static int most_threads(const cb_model *model, figure_at *at, int n)
{
    int most = 0;
    for (int i = 0; i < n; i++) {
        int threads = at(model, i).threads;
        most = threads > most ? threads : most;
    }
    return most;
}

/* Those of the curves; where there are none, those of what has no size. */
static int all_threads(const cb_model *model)
{
    const int of[] = {most_threads(model, ceiling_at, model->nceilings),
                      most_threads(model, floor_at, model->nfloors),
                      most_threads(model, compute_at, model->ncomputes)};
    int all = cb_model_workers(model), most = 0;
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        most = of[i] > most ? of[i] : most;
    return all > 0 ? all : most;
}

static bool find(const table *t, const block *b, const char *what, int threads, figure *out)
{
    for (int i = 0; i < b->n; i++) {
        *out = b->at(t->model, i);
        if (out->threads == threads && strcmp(out->what, what) == 0)
            return true;
    }
    return false;
}

static void figure_row(const table *t, const block *b, const char *what)
{
    figure one, all;
    bool some = find(t, b, what, 1, &one);
    cb__buf_printf(t->out, "  %-14s", what);
    figure_cell(t, b, some ? &one : NULL, t->all > 1);
    if (t->all > 1)
        figure_cell(t, b, find(t, b, what, t->all, &all) ? &all : NULL, false);
    cb__buf_puts(t->out, "\n");
    for (int i = 0; t->verbose && i < b->n; i++) {
        figure f = b->at(t->model, i);
        char threads[32];
        if (strcmp(f.what, what) != 0 || f.threads == 1 || f.threads == t->all)
            continue;
        cb__buf_printf(t->out, "    %-11s ", threads_text(t, f.threads, threads));
        figure_cell(t, b, &f, false);
        cb__buf_puts(t->out, "\n");
    }
}

static void figures(const table *t, block b)
{
    char threads[32];
    if (b.n == 0)
        return;
    cb__buf_printf(t->out, "\n%-16s%8s", b.title, "1 thread");
    if (t->all > 1)
        cb__buf_printf(t->out, "%34s%s", "", threads_text(t, t->all, threads));
    cb__buf_puts(t->out, "\n");
    for (int i = 0; i < b.n; i++) {
        figure f = b.at(t->model, i);
        bool first = true;
        for (int j = 0; j < i && first; j++)
            first = strcmp(b.at(t->model, j).what, f.what) != 0;
        if (first)
            figure_row(t, &b, f.what);
    }
}

static void points(const table *t)
{
    int counts[CB_VERDICT_OK + 1] = {0}, total = 0;
    for (int i = 0; i < t->model->nseries; i++)
        for (int j = 0; j < t->model->series[i].n; j++, total++)
            counts[t->model->series[i].points[j].verdict]++;
    cb__buf_puts(t->out, "\n");
    if (total == 0)
        cb__buf_puts(t->out, "no size was measured\n");
    else if (counts[CB_VERDICT_OK] == total)
        cb__buf_printf(t->out, "%d points: all ok\n", total);
    for (int v = 0; v < CB_VERDICT_OK; v++) {
        if (counts[v] == 0)
            continue;
        cb__buf_printf(t->out, "%d of %d points: ", counts[v], total);
        cb__report_verdict((cb_verdict)v, t->color, 0, t->out);
        cb__buf_puts(t->out, "\n");
    }
}

static void every_point(const table *t)
{
    for (int i = 0; i < t->model->nseries; i++) {
        const cb__series *s = &t->model->series[i];
        char name[48];
        cb__series_name(s, name);
        cb__buf_printf(t->out, "\n%s, %s\n", name, s->kind == CB__BANDWIDTH ? "GB/s" : "ns");
        for (int j = 0; j < s->n; j++) {
            char size[24], mid[16], lo[16], hi[16], range[40];
            cb__bytes_text((double)s->points[j].bytes, size);
            cb__figure_text(s->points[j].value.mid, mid);
            cb__figure_text(s->points[j].value.lo, lo);
            cb__figure_text(s->points[j].value.hi, hi);
            snprintf(range, sizeof range, "[%s, %s]", lo, hi);
            cb__buf_printf(t->out, "  %12s %8s %-20s ", size, mid, range);
            cb__report_verdict(s->points[j].verdict, t->color, 0, t->out);
            cb__buf_puts(t->out, "\n");
        }
    }
}

static void controls(const table *t)
{
    if (t->model->nchecks > 0)
        cb__buf_puts(t->out, "\ncontrols\n");
    for (int i = 0; i < t->model->nchecks; i++) {
        const cb__check *k = &t->model->checks[i];
        const char *status = cb__check_status_name(k->status);
        cb__buf_printf(t->out, "  %-14s ", k->name);
        if (t->color)
            cb__buf_printf(t->out, "\033[%sm%s\033[0m",
                           k->status == CB__PASS   ? "32"
                           : k->status == CB__FAIL ? "31"
                                                   : "33",
                           status);
        else
            cb__buf_puts(t->out, status);
        cb__buf_printf(t->out, "  %s%s\n", k->required ? "" : "(informative) ", k->detail);
    }
}

static void left_out(const table *t)
{
    if (*t->probe->dropped)
        cb__buf_printf(t->out, "not measured, or not in every sweep: %s\n", t->probe->dropped);
    if (!t->probe->complete)
        cb__buf_printf(t->out, "incomplete: %d of %d sweeps\n", t->probe->sweeps,
                       t->probe->planned);
}

void cb__report_probe_table(const cb__probe *probe, const cb_model *model, bool color, bool verbose,
                            cb__buf *out)
{
    table t = {probe, model, all_threads(model), color, verbose, out};
    head(&t);
    caches(&t);
    knees(&t);
    figures(&t, (block){"ceilings, GB/s", ceiling_at, model->nceilings, plain_text});
    figures(&t, (block){"floors", floor_at, model->nfloors, cb__time_text});
    figures(&t, (block){"compute, Gop/s", compute_at, model->ncomputes, plain_text});
    cb__report_chip(model, out);
    controls(&t);
    if (verbose)
        every_point(&t);
    points(&t);
    left_out(&t);
}
