#include "report/model_summary.h"

#include <stdio.h>
#include <string.h>

#include "report/chip.h"
#include "report/levels.h"
#include "report/report.h"

enum { WORKERS_SHOWN = 8 };

static void head(const cb_model *m, cb__buf *out)
{
    cb__buf_printf(out, "model of %s: %s\n", m->device, m->name);
    cb__buf_printf(out, "  identity   %s\n", m->identity);
    cb__buf_printf(out, "  measured   %s by coldbench %s (source %.12s), seed %llu\n", m->written,
                   m->version, m->source_id, (unsigned long long)m->seed);
    cb__buf_printf(out, "  probe      %s, %d sweeps, %d threads%s\n", m->quick ? "quick" : "full",
                   m->sweeps, m->threads, m->complete ? "" : ", cut short");
    if (*m->dropped)
        cb__buf_printf(out, "  without    %s\n", m->dropped);
}

/* "16 MiB to 64 MiB", with its verdict where that is not ok. */
static void knee_text(cb_status status, const cb_figure *knee, char text[64])
{
    char lo[24], hi[24];
    if (status != CB_OK) {
        snprintf(text, 64, "-");
        return;
    }
    cb__bytes_text(knee->lo, lo);
    cb__bytes_text(knee->hi, hi);
    bool ok = knee->verdict == CB_VERDICT_OK;
    snprintf(text, 64, "%s to %s%s%s", lo, hi, ok ? "" : " ",
             ok ? "" : cb_verdict_name(knee->verdict));
}

static void level_row(const cb_model *m, const cb__level *level, cb__buf *out)
{
    const int number = level ? level->level : 0;
    cb_figure stream = {0}, random = {0};
    char by_stream[64], by_random[64], nominal[40] = "", one[24], name[16] = "memory";
    knee_text(cb_model_capacity(m, number, CB_STREAM_PATTERN, 0, &stream, NULL), &stream,
              by_stream);
    knee_text(cb_model_capacity(m, number, CB_RANDOM_PATTERN, 0, &random, NULL), &random,
              by_random);
    if (level) {
        snprintf(name, sizeof name, "L%d", level->level);
        cb__bytes_text((double)level->bytes, one);
        snprintf(nominal, sizeof nominal, "%d x %s", level->instances, one);
    }
    cb__buf_printf(out, "  %-10s %-16s %-28s %s\n", name, nominal, by_stream, by_random);
}

static void levels(const cb_model *m, cb__buf *out)
{
    char stream[64], random[64];
    snprintf(stream, sizeof stream, "bandwidth knee (read/%d)", cb_model_workers(m));
    const cb__series *chase = cb__model_series(m, CB__LATENCY, "random", 1);
    char name[48] = "random";
    if (chase)
        cb__series_name(chase, name);
    snprintf(random, sizeof random, "latency knee (%.47s)", name);
    cb__buf_printf(out, "\n  %-10s %-16s %-28s %s\n", "level", "nominal", stream, random);
    for (int i = 0; i < m->nlevels; i++)
        level_row(m, &m->levels[i], out);
    level_row(m, NULL, out); /* where memory begins */
}

/* ---- figures by name and number of workers ---- */

typedef cb_status ask_figure(const cb_model *m, const char *name, int workers, cb_figure *x,
                             cb_error *err);

/* The numbers of workers that have curves, as they rise. */
static int workers_of(const cb_model *m, int workers[WORKERS_SHOWN])
{
    int n = 0;
    for (int next = 1; next && n < WORKERS_SHOWN;) {
        int last = n ? workers[n - 1] : 0;
        next = 0;
        for (int i = 0; i < m->nseries; i++) {
            int w = m->series[i].workers;
            if (m->series[i].kind == CB__BANDWIDTH && w > last && (!next || w < next))
                next = w;
        }
        if (next)
            workers[n++] = next;
    }
    return n;
}

static void figure_cell(cb_status status, const cb_figure *x, cb__buf *out)
{
    char number[16] = "-", cell[48];
    if (status == CB_OK)
        cb__figure_text(x->mid, number);
    bool plain = status != CB_OK || x->verdict == CB_VERDICT_OK;
    snprintf(cell, sizeof cell, "%s%s%s", number, plain ? "" : " ",
             plain ? "" : cb_verdict_name(x->verdict));
    cb__buf_printf(out, " %20s", cell);
}

static void figures(const cb_model *m, const char *title, const char *const *names, int n,
                    ask_figure *ask, cb__buf *out)
{
    int workers[WORKERS_SHOWN], nworkers = workers_of(m, workers);
    cb__buf_printf(out, "\n  %-16s", title);
    for (int w = 0; w < nworkers; w++)
        cb__buf_printf(out, " %12d worker%s", workers[w], workers[w] == 1 ? " " : "s");
    cb__buf_puts(out, "\n");
    for (int i = 0; i < n; i++) {
        cb__buf_printf(out, "  %-16s", names[i]);
        for (int w = 0; w < nworkers; w++) {
            cb_figure x = {0};
            cb_status status = ask(m, names[i], workers[w], &x, NULL);
            figure_cell(status, &x, out);
        }
        cb__buf_puts(out, "\n");
    }
}

static void failed_checks(const cb_model *m, bool color, cb__buf *out)
{
    int failed = 0, skipped = 0;
    for (int i = 0; i < m->nchecks; i++) {
        skipped += m->checks[i].status == CB__SKIP;
        if (m->checks[i].status != CB__FAIL)
            continue;
        cb__buf_puts(out, failed++ ? "" : "\nchecks that failed:\n");
        cb__buf_puts(out, "  ");
        cb__report_verdict(m->checks[i].verdict, color, 13, out);
        cb__buf_printf(out, " %s: %s%s\n", m->checks[i].name,
                       m->checks[i].required ? "" : "(informative) ", m->checks[i].detail);
    }
    if (!failed)
        cb__buf_printf(out, "\nof %d checks none failed", m->nchecks);
    if (!failed && skipped)
        cb__buf_printf(out, ", %d could not be made", skipped);
    if (!failed)
        cb__buf_puts(out, "\n");
}

void cb__report_model(const cb_model *model, bool color, cb__buf *out)
{
    static const char *const mixes[] = {"read", "write", "copy"};
    static const char *const modes[] = {"solo", "batched"};
    static const char *const types[] = {"f32", "f64", "int8"};
    head(model, out);
    levels(model, out);
    figures(model, "ceiling, GB/s", mixes, 3, cb_model_ceiling, out);
    figures(model, "compute, Gop/s", types, 3, cb_model_compute, out);
    figures(model, "floor, ns", modes, 2, cb_model_floor, out);
    cb__report_chip(model, out);
    failed_checks(model, color, out);
}
