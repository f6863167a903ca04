#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/report.h"

enum { HEIGHT = 14, COLUMNS_MAX = 120 };

typedef struct axis {
    double lo, hi; /* logarithms */
    int cells;
} axis;

static int cell(axis a, double value)
{
    double at = (log(value) - a.lo) / (a.hi - a.lo) * (a.cells - 1);
    if (!(at > 0)) /* NaN too: a figure that is none, or an axis without an extent */
        return 0;
    return at > a.cells - 1 ? a.cells - 1 : (int)(at + 0.5);
}

static void ranges(const cb__curve *c, axis *x, axis *y)
{
    double most = 0, least = (double)INFINITY;
    for (int i = 0; i < c->n; i++) {
        double value = c->points[i].gb_per_s.mid;
        most = fmax(most, value);
        if (value > 0) /* a size that could not be resolved has no height */
            least = fmin(least, value);
    }
    if (!(most > 0))
        most = least = 1;
    *x = (axis){log((double)c->points[0].bytes), log((double)c->points[c->n - 1].bytes), 72};
    *y = (axis){log(least / 1.15), log(most * 1.15), HEIGHT};
}

static void size_labels(axis x, cb__buf *out)
{
    char line[COLUMNS_MAX + 32];
    memset(line, ' ', sizeof line);
    int free_from = 0, end = 0;
    for (double size = exp(x.lo); size <= exp(x.hi) * 1.01; size *= 8) {
        char text[24];
        cb__bytes_text(size, text);
        int at = cell(x, size);
        if (at < free_from)
            continue;
        memcpy(line + at, text, strlen(text));
        end = at + (int)strlen(text);
        free_from = end + 2;
    }
    cb__buf_printf(out, "          %.*s\n", end, line);
}

void cb__report_curve_chart(const cb__curve *c, cb__buf *out)
{
    if (c->n < 2)
        return;
    axis x, y;
    ranges(c, &x, &y);
    char grid[HEIGHT][COLUMNS_MAX];
    memset(grid, ' ', sizeof grid);
    for (int i = 0; i < c->n; i++) {
        const cb__curve_point *p = &c->points[i];
        if (!(p->gb_per_s.mid > 0))
            continue;
        char *at = &grid[cell(y, p->gb_per_s.mid)][cell(x, (double)p->bytes)];
        char mark = p->threads == 1 ? '1' : 'N';
        *at = *at == ' ' || *at == mark ? mark : '*';
    }
    cb__buf_printf(
        out, "read bandwidth, GB/s (log) over the set; 1: one thread, N: %d threads, *: both\n",
        c->device.threads);
    for (int row = HEIGHT - 1; row >= 0; row--) {
        double value = exp(y.lo + (y.hi - y.lo) * row / (HEIGHT - 1));
        int end = x.cells;
        while (end > 0 && grid[row][end - 1] == ' ')
            end--;
        cb__buf_printf(out, "%8.1f |%.*s\n", value, end, grid[row]);
    }
    size_labels(x, out);
}

void cb__report_curve_table(const cb__curve *c, bool color, cb__buf *out)
{
    cb__buf_printf(out, "%10s %8s %8s %20s %7s  %s\n", "set", "threads", "GB/s", "over sweeps",
                   "folded", "verdict");
    for (int i = 0; i < c->n; i++) {
        const cb__curve_point *p = &c->points[i];
        char size[24];
        cb__bytes_text((double)p->bytes, size);
        cb__buf_printf(out, "%10s %8d %8.1f [%8.1f,%9.1f] %7.3f  ", size, p->threads,
                       p->gb_per_s.mid, p->gb_per_s.lo, p->gb_per_s.hi, p->folded.mid);
        cb__report_verdict(p->verdict, color, 0, out);
        cb__buf_puts(out, "\n");
    }
    for (int i = 0; i < c->nchecks; i++)
        cb__buf_printf(out, "%-12s %s%s: %s\n", c->checks[i].name,
                       cb__check_status_name(c->checks[i].status),
                       c->checks[i].required ? "" : " (informative)", c->checks[i].detail);
}
