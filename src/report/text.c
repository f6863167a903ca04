#include <math.h>
#include <stdio.h>

#include "report/report.h"

void cb__bytes_text(double bytes, char text[24])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB"};
    int unit = 0;
    while (bytes >= 1024 && unit < 3) {
        bytes /= 1024;
        unit++;
    }
    snprintf(text, 24, bytes == floor(bytes) || bytes >= 100 ? "%.0f %s" : "%.1f %s", bytes,
             units[unit]);
}

void cb__time_text(double ns, char text[24])
{
    static const char *const units[] = {"ns", "us", "ms", "s"};
    int unit = 0;
    while (ns >= 1000 && unit < 3) {
        ns /= 1000;
        unit++;
    }
    if (isfinite(ns))
        snprintf(text, 24,
                 ns >= 100  ? "%.0f %s"
                 : ns >= 10 ? "%.1f %s"
                            : "%.2f %s",
                 ns, units[unit]);
    else
        snprintf(text, 24, "-");
}

void cb__report_percent(double share, cb__buf *out)
{
    double percent = 100 * share;
    cb__buf_printf(out, percent < 99.5 ? "%.2g %%" : "%.0f %%", percent);
}

static void ratio(cb__interval x, const char *of, cb__buf *out)
{
    if (!isfinite(x.mid))
        cb__buf_puts(out, "-");
    else if (!isfinite(x.lo) || !isfinite(x.hi))
        cb__buf_printf(out, "%.4fx%s", x.mid, of);
    else
        cb__buf_printf(out, "%.4fx%s [%.4f, %.4f]", x.mid, of, x.lo, x.hi);
}

void cb__report_ratio(cb__interval x, cb__buf *out)
{
    ratio(x, "", out);
}

void cb__report_times(cb__interval x, cb__buf *out)
{
    ratio(x, " the time", out);
}

void cb__report_verdict(cb_verdict verdict, bool color, int width, cb__buf *out)
{
    const char *code = verdict == CB_VERDICT_OK             ? "32"
                       : verdict <= CB_VERDICT_CONTAMINATED ? "31"
                                                            : "33";
    if (color)
        cb__buf_printf(out, "\033[%sm%-*s\033[0m", code, width, cb_verdict_name(verdict));
    else
        cb__buf_printf(out, "%-*s", width, cb_verdict_name(verdict));
}
