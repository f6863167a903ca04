#include "stats/banks.h"

#include <math.h>

#define TIE 1e-3 /* of misfits */

/* Cycles of the lanes [first, first + n), which are served together. */
static int part_cycles(const cb__banks *b, int first, int n, int width, int stride)
{
    long words[CB__BANK_LANES * CB__WIDTH_MAX];
    int used[CB__BANKS_MAX] = {0}, count = 0, most = 0;
    for (int lane = first; lane < first + n; lane++)
        for (long at = (long)lane * stride; at < (long)lane * stride + width; at++) {
            long word = at / b->bank_bytes;
            bool seen = false;
            for (int i = 0; i < count && !seen; i++)
                seen = words[i] == word;
            if (seen)
                continue;
            words[count++] = word;
            int *bank = &used[word % b->banks];
            most = ++*bank > most ? *bank : most;
        }
    return most;
}

static int cycles(const cb__banks *b, int width, int stride)
{
    int together = b->banks * b->bank_bytes / width, sum = 0;
    together = together < 1 ? 1 : together > CB__BANK_LANES ? CB__BANK_LANES : together;
    for (int first = 0; first < CB__BANK_LANES; first += together)
        sum += part_cycles(b, first, together, width, stride);
    return sum;
}

double cb__banks_cost(const cb__banks *b, int width, int stride)
{
    return b->banks ? (double)cycles(b, width, stride) / cycles(b, width, width) : 1;
}

static double misfit_of(const cb__banks *b, const cb__bank_point *points, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        double off = log(points[i].cost / cb__banks_cost(b, points[i].width, points[i].stride));
        sum += off * off;
    }
    return sqrt(sum / (double)n);
}

bool cb__banks_fit(const cb__bank_point *points, size_t n, cb__banks *out)
{
    *out = (cb__banks){0, 0, HUGE_VAL};
    if (n == 0)
        return false;
    int narrowest = points[0].width;
    for (size_t i = 1; i < n; i++)
        narrowest = points[i].width < narrowest ? points[i].width : narrowest;
    out->misfit = misfit_of(out, points, n);
    /* The narrowest of those that fit as well; accesses do not tell banks that are narrower. */
    for (int bytes = narrowest; bytes <= CB__BANK_BYTES_MAX; bytes *= 2)
        for (int banks = 2; banks <= CB__BANKS_MAX; banks *= 2) {
            cb__banks b = {banks, bytes, 0};
            b.misfit = misfit_of(&b, points, n);
            if (b.misfit < out->misfit - TIE)
                *out = b;
        }
    return out->misfit <= CB__BANKS_MISFIT;
}

int cb__banks_pad(const cb__banks *b, int row, int width)
{
    int best = 0;
    double least = cb__banks_cost(b, width, row);
    /* Strides that all banks apart divide are alike. */
    for (int pad = width; b->banks && pad < b->banks * b->bank_bytes; pad += width) {
        double cost = cb__banks_cost(b, width, row + pad);
        if (cost < least - 1e-9) {
            least = cost;
            best = pad;
        }
    }
    return best;
}
