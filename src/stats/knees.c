/* knees.c: plateaus of a curve over sizes, and the steps between them.
 *
 * Plateaus and the gaps between them are found together: a gap may hold sizes, at a price, so a
 * transition of any shape is no plateau. docs/decisions/0008-knees.md says what that is worth and
 * where the constants come from. */
#include "stats/knees.h"

#include <math.h>
#include <string.h>

#include "stats/isotonic.h"
#include "stats/order.h"

enum {
    SIZES = CB__KNEE_SIZES_MAX,
    SWEEPS = CB__KNEE_SWEEPS_MAX,
    POINTS = 3, /* the sizes of the shortest plateau */
};

/* What the partition pays: a size's squared distance from its plateau in units, so much for each
 * plateau, so much for each size in a gap. Three sizes in a gap must cost more than a plateau, or a
 * plateau of three is never worth it. */
static const double plateau_cost = 5, gap_cost = 4;
/* Of logarithms. Following the noise of the curve instead was right no more often. */
static const double unit = 0.035;
/* A gap falls so many times as steeply as what it separates: else both are one long slope. */
static const double sharpness = 2;
/* Of a step, what a plateau's end may have lost. */
static const double end_share = 0.1;

/* The sizes that some sweep measured; values as logarithms, turned so that the curve falls. */
typedef struct curve {
    size_t n, sweeps;
    size_t at[SIZES]; /* index among the caller's sizes */
    double octave[SIZES];
    double y[SWEEPS][SIZES]; /* NaN: not measured */
    double middle[SIZES];    /* median over sweeps */
    double fit[SIZES];       /* never rises */
} curve;

typedef struct span {
    size_t first, last;
} span;

typedef struct spans {
    span of[SIZES / POINTS];
    size_t n;
} spans;

static bool measured(double value)
{
    return isfinite(value) && value > 0;
}

/* values: of the first sweep; the next ones lie `stride` apart. */
static void gather(curve *c, const double *sizes, size_t stride, const double *values,
                   size_t sweeps, bool falling)
{
    c->n = 0;
    c->sweeps = sweeps;
    for (size_t i = 0; i < stride; i++) {
        bool any = false;
        for (size_t s = 0; s < sweeps; s++) {
            double value = values[s * stride + i];
            bool there = measured(value);
            c->y[s][c->n] = there ? (falling ? log(value) : -log(value)) : (double)NAN;
            any |= there;
        }
        c->at[c->n] = i;
        c->octave[c->n] = log2(sizes[i]);
        c->n += any;
    }
}

static void find_middle(curve *c)
{
    for (size_t i = 0; i < c->n; i++) {
        double points[SWEEPS];
        size_t count = 0;
        for (size_t s = 0; s < c->sweeps; s++) {
            if (!isnan(c->y[s][i]))
                points[count++] = c->y[s][i];
        }
        c->middle[i] = cb__median(points, count);
    }
}

/* Takes out what a whole sweep is off by: the median of its distances from the middle. Twice, since
 * the middle moves too. */
static void align_sweeps(curve *c)
{
    for (int pass = 0; pass < 2; pass++) {
        find_middle(c);
        for (size_t s = 0; s < c->sweeps; s++) {
            double distance[SIZES];
            size_t count = 0;
            for (size_t i = 0; i < c->n; i++) {
                if (!isnan(c->y[s][i]))
                    distance[count++] = c->y[s][i] - c->middle[i];
            }
            double off = cb__median(distance, count);
            for (size_t i = 0; i < c->n; i++)
                c->y[s][i] -= off;
        }
    }
    find_middle(c);
}

/* A running median of three leaves alone what is monotone and drops what stands alone. (One over
 * sizes and sweeps at once is smoother, but a sweep that missed a step would move it.) */
static void fit_monotone(curve *c)
{
    for (size_t i = 0; i < c->n; i++) {
        bool inner = i > 0 && i + 1 < c->n;
        c->fit[i] =
            inner ? cb__median((double[]){c->middle[i - 1], c->middle[i], c->middle[i + 1]}, 3)
                  : c->middle[i];
    }
    cb__isotonic(c->fit, NULL, c->n, true, c->fit);
}

/* best[j]: least cost of sizes 0 to j where a plateau ends at j, and start[j]: where it starts.
 * open[i]: least cost of what lies before a plateau that starts at i. */
static void extend(const curve *c, size_t j, const double *open, double *best, size_t *start)
{
    double sum = 0, squares = 0;
    best[j] = (double)INFINITY;
    start[j] = 0;
    for (size_t i = j + 1; i-- > 0;) {
        /* From c->fit[j]: a sum of squares far from 0 would cancel. */
        double d = (c->fit[i] - c->fit[j]) / unit;
        double count = (double)(j - i + 1);
        sum += d;
        squares += d * d;
        double cost = open[i] + plateau_cost + squares - sum * sum / count;
        if (count >= POINTS && cost < best[j]) {
            best[j] = cost;
            start[j] = i;
        }
    }
}

/* The cheapest alternation of plateaus and gaps, from the first size to the last. */
static void partition(const curve *c, spans *out)
{
    double best[SIZES], open[SIZES];
    size_t start[SIZES], end[SIZES];
    out->n = 0;
    if (c->n < POINTS)
        return;
    for (size_t j = 0; j < c->n; j++) {
        /* The plateau before one that starts here ends just before, or is further off by one. */
        bool widen = j > 0 && open[j - 1] + gap_cost < best[j - 1] && j > 1;
        open[j] = j == 0 ? 0 : widen ? open[j - 1] + gap_cost : best[j - 1];
        end[j] = j == 0 ? 0 : widen ? end[j - 1] : j - 1;
        extend(c, j, open, best, start);
    }
    for (size_t j = c->n - 1;; j = end[start[j]]) {
        memmove(&out->of[1], &out->of[0], out->n++ * sizeof out->of[0]);
        out->of[0] = (span){start[j], j};
        if (start[j] == 0)
            return;
    }
}

static double level_of(const curve *c, span p)
{
    double points[SIZES];
    size_t count = 0;
    for (size_t i = p.first; i <= p.last; i++)
        points[count++] = c->fit[i];
    return cb__median(points, count);
}

/* Fall an octave, by least squares. */
static double slope_of(const curve *c, span p)
{
    double count = (double)(p.last - p.first + 1), x = 0, y = 0, xx = 0, xy = 0;
    for (size_t i = p.first; i <= p.last; i++) {
        x += c->octave[i] / count;
        y += c->fit[i] / count;
    }
    for (size_t i = p.first; i <= p.last; i++) {
        xx += (c->octave[i] - x) * (c->octave[i] - x);
        xy += (c->octave[i] - x) * (c->fit[i] - y);
    }
    return -xy / xx;
}

/* The tail of a long transition looks like short plateaus, but does not bend again. What ends the
 * curve may still be on its way down. */
static bool bends(const curve *c, span upper, span lower)
{
    double fall = c->fit[upper.last] - c->fit[lower.first];
    double slope = slope_of(c, upper);
    if (lower.last + 1 < c->n)
        slope = fmax(slope, slope_of(c, lower));
    return fall / (c->octave[lower.first] - c->octave[upper.last]) >= sharpness * slope;
}

/* Plateaus k and k + 1, and what lies between them, become one. */
static void join(spans *p, size_t k)
{
    p->of[k].last = p->of[k + 1].last;
    p->n--;
    memmove(&p->of[k + 1], &p->of[k + 2], (p->n - k - 1) * sizeof p->of[0]);
}

/* Joins at the smallest step that is no knee until all are. */
static void join_weak(const curve *c, spans *p)
{
    for (;;) {
        size_t at = p->n;
        double least = (double)INFINITY;
        for (size_t k = 0; k + 1 < p->n; k++) {
            double step = level_of(c, p->of[k]) - level_of(c, p->of[k + 1]);
            bool knee = step >= log(1 + CB__KNEE_STEP) && bends(c, p->of[k], p->of[k + 1]) &&
                        p->n <= CB__KNEES_MAX + 1;
            if (!knee && step < least) {
                least = step;
                at = k;
            }
        }
        if (at == p->n)
            return;
        join(p, at);
    }
}

/* A size at a plateau's end that has made its share of the step lies in the transition. */
static void narrow(const curve *c, spans *p)
{
    double level[SIZES / POINTS];
    for (size_t k = 0; k < p->n; k++)
        level[k] = level_of(c, p->of[k]);
    for (size_t k = 0; k + 1 < p->n; k++) {
        double reached = end_share * (level[k] - level[k + 1]);
        span *upper = &p->of[k], *lower = &p->of[k + 1];
        while (upper->last - upper->first >= POINTS && level[k] - c->fit[upper->last] > reached)
            upper->last--;
        while (lower->last - lower->first >= POINTS &&
               c->fit[lower->first] - level[k + 1] > reached)
            lower->first++;
    }
}

static void find_plateaus(curve *c, spans *p)
{
    align_sweeps(c);
    fit_monotone(c);
    partition(c, p);
    join_weak(c, p);
    narrow(c, p);
}

static double value_of(const cb__plateau *p, size_t n, const double *values, size_t sweeps)
{
    double points[SWEEPS * SIZES];
    size_t count = 0;
    for (size_t s = 0; s < sweeps; s++) {
        for (size_t i = p->first; i <= p->last; i++) {
            if (measured(values[s * n + i]))
                points[count++] = values[s * n + i];
        }
    }
    return cb__median(points, count);
}

static void find_residual(const curve *c, cb__knees *out)
{
    for (size_t i = 0; i < c->n; i++) {
        double residual = fabs(expm1(c->middle[i] - c->fit[i]));
        if (residual > out->residual) {
            out->residual = residual;
            out->residual_at = c->at[i];
        }
    }
}

/* c, p: of the sweep; the knees of `out` that overlap one of its own. */
static void count_seen(const curve *c, const spans *p, cb__knees *out)
{
    for (int i = 0; i < out->nknees; i++) {
        bool seen = false;
        for (size_t k = 0; k + 1 < p->n; k++) {
            size_t lo = c->at[p->of[k].last], hi = c->at[p->of[k + 1].first];
            seen |= lo <= out->knees[i].hi && out->knees[i].lo <= hi;
        }
        out->knees[i].seen += seen;
    }
}

void cb__knees_find(const double *sizes, size_t n, const double *values, size_t sweeps,
                    bool falling, cb__knees *out)
{
    curve c;
    spans p;
    memset(out, 0, sizeof *out);
    if (n > SIZES || sweeps > SWEEPS)
        return;
    gather(&c, sizes, n, values, sweeps, falling);
    find_plateaus(&c, &p);
    find_residual(&c, out);
    for (size_t k = 0; k < p.n; k++) {
        cb__plateau *plateau = &out->plateaus[out->nplateaus++];
        plateau->first = c.at[p.of[k].first];
        plateau->last = c.at[p.of[k].last];
        plateau->value = value_of(plateau, n, values, sweeps);
        if (k > 0)
            out->knees[out->nknees++] = (cb__knee){.lo = plateau[-1].last,
                                                   .hi = plateau->first,
                                                   .from = plateau[-1].value,
                                                   .to = plateau->value};
    }
    for (size_t s = 0; s < sweeps && out->nknees > 0; s++) {
        gather(&c, sizes, n, values + s * n, 1, falling);
        find_plateaus(&c, &p);
        count_seen(&c, &p, out);
    }
}
