#include "report/chip.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/levels.h"
#include "report/report.h"

enum { PADDED_ROW = 128 };

void cb__range_text(double lo, double hi, char text[56])
{
    char from[24], to[24];
    cb__bytes_text(lo, from);
    cb__bytes_text(hi, to);
    char *unit = strchr(from, ' ');
    if (unit && strcmp(unit, strchr(to, ' ')) == 0)
        *unit = '\0';
    if (lo < hi)
        snprintf(text, 56, "%s..%s", from, to);
    else
        snprintf(text, 56, "%s", to);
}

/* ---- latency ---- */

/* The points of a plateau together: the median of them, the ends over the chip. */
static void level_line(const cb__series *s, uint64_t from, uint64_t to, cb__buf *out)
{
    double mids[CB__SERIES_POINTS_MAX], lo = HUGE_VAL, hi = 0;
    char range[56], mid_text[16], lo_text[16], hi_text[16];
    size_t n = 0;
    for (int i = 0; i < s->n; i++) {
        const cb__point *p = &s->points[i];
        if (p->bytes < from || p->bytes > to)
            continue;
        mids[n++] = p->value.mid;
        lo = fmin(lo, p->high > 0 ? p->low : p->value.lo);
        hi = fmax(hi, p->high > 0 ? p->high : p->value.hi);
    }
    if (n == 0)
        return;
    cb__range_text((double)from, (double)to, range);
    cb__figure_text(cb__median(mids, n), mid_text);
    cb__figure_text(lo, lo_text);
    cb__figure_text(hi, hi_text);
    cb__buf_printf(out, "  %-22s %7s [%s, %s]\n", range, mid_text, lo_text, hi_text);
}

static bool has_places(const cb__series *s)
{
    for (int i = 0; i < s->n; i++)
        if (s->kind == CB__LATENCY && s->points[i].high > 0)
            return true;
    return false;
}

/* Between its knees. */
static void latency_levels(const cb_model *m, int series, cb__buf *out)
{
    const cb__series *s = &m->series[series];
    uint64_t from = s->points[0].bytes;
    cb__buf_puts(out, "\nlatency, ns           median [over multiprocessors and sweeps]\n");
    for (int i = 0; i < m->nknees; i++) {
        if (m->knees[i].series != series)
            continue;
        level_line(s, from, m->knees[i].lo_bytes, out);
        from = m->knees[i].hi_bytes;
    }
    level_line(s, from, s->points[s->n - 1].bytes, out);
}

/* ---- where plateaus begin ---- */

static void starts(const cb_model *m, cb__buf *out)
{
    if (m->nstarts)
        cb__buf_puts(out, "\nplateaus begin at\n");
    for (int i = 0; i < m->nstarts; i++) {
        const cb__model_start *s = &m->starts[i];
        char name[48], range[56], to[16];
        cb__series_name(&m->series[s->series], name);
        cb__range_text((double)s->lo_bytes, (double)s->hi_bytes, range);
        cb__figure_text(s->to, to);
        cb__buf_printf(out, "  %-12s %-20s %s GB/s\n", name, range, to);
    }
}

/* ---- shared memory ---- */

/* The fewest bytes behind rows of 128 that each width needs, and what they save, as timed. */
static void paddings(const cb_model *m, cb__buf *out)
{
    const cb__banks *b = &m->banks;
    bool begun = false;
    for (int width = 4; width <= 16; width *= 2) {
        cb_figure pad, bare, padded;
        if (cb_model_best_pad(m, PADDED_ROW, (uint64_t)width, &pad, NULL) != CB_OK ||
            cb_model_scratch_cost(m, PADDED_ROW, (uint64_t)width, &bare, NULL) != CB_OK ||
            cb_model_scratch_cost(m, PADDED_ROW + (uint64_t)pad.mid, (uint64_t)width, &padded,
                                  NULL) != CB_OK)
            continue;
        if (!begun)
            cb__buf_printf(out, "\nshared memory, %d banks of %d bytes (misfit %.1f %%)\n",
                           b->banks, b->bank_bytes, 100 * b->misfit);
        begun = true;
        cb__buf_printf(out,
                       "  rows of %d, %2d bytes a lane: padded by %.0f they are read %.1fx as fast "
                       "[%.1f, %.1f]\n",
                       PADDED_ROW, width, pad.mid, bare.mid / padded.mid, bare.lo / padded.hi,
                       bare.hi / padded.lo);
    }
    if (!begun && m->nscratch)
        cb__buf_puts(out, "\nshared memory: no padding of rows of 128 bytes was confirmed\n");
}

void cb__report_chip(const cb_model *model, cb__buf *out)
{
    for (int i = 0; i < model->nseries; i++)
        if (has_places(&model->series[i]))
            latency_levels(model, i, out);
    starts(model, out);
    paddings(model, out);
}
