/* curves.h: synthetic curves over working-set sizes whose knees are known, for test_knees.
 *
 * A curve has levels; from one to the next the share of the traffic that misses rises from 0 to 1
 * over a transition, as caches do that are shared or replace at random, and the capacity lies
 * somewhere within it. Mixing is of times or of logarithms. Everything follows from (family, seed),
 * by coldbench/random.h: the same curves everywhere. */
#ifndef CB_TESTS_CURVES_H
#define CB_TESTS_CURVES_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "coldbench/random.h"

/* CURVE_FLAT: no knee, noise of 1 to 5 %, a ramp of up to 5 %. CURVE_TAIL: 1 % noise, but past its
 * capacity c a level still serves c/bytes of the traffic, as random chases find it. */
enum curve_family {
    CURVE_QUIET,
    CURVE_NOISY,
    CURVE_HOSTILE,
    CURVE_FLAT,
    CURVE_TAIL,
    CURVE_FAMILIES,
};
enum { CURVE_SIZES = 100, CURVE_SWEEPS = 3, CURVE_KNEES = 4 };

typedef struct curve_case {
    size_t n;
    bool falling;
    double sizes[CURVE_SIZES];
    double values[CURVE_SWEEPS * CURVE_SIZES]; /* [sweep * n + i] */
    size_t knees;
    double capacity[CURVE_KNEES]; /* bytes */
} curve_case;

/* What one curve is made from; lengths in octaves above its smallest size. */
typedef struct curve_plan {
    uint64_t key, drawn;
    double octaves, per_octave;
    double start[CURVE_KNEES], width[CURVE_KNEES], step[CURVE_KNEES]; /* step: log of the ratio */
    double ramp; /* what each plateau loses from its start to its end */
    bool mixes_times, tails;
    double noise, tail_share, tail_loss, drift;
} curve_plan;

static double curve_uniform(curve_plan *p, double lo, double hi)
{
    return lo + (hi - lo) * cb_random_f64(cb_random_word(p->key, p->drawn++));
}

static bool curve_chance(curve_plan *p, double share)
{
    return curve_uniform(p, 0, 1) < share;
}

static size_t curve_integer(curve_plan *p, size_t lo, size_t hi)
{
    return lo + (size_t)curve_uniform(p, 0, (double)(hi - lo + 1));
}

/* Box and Muller. */
static double curve_normal(curve_plan *p)
{
    double radius = sqrt(-2 * log(1 - curve_uniform(p, 0, 1)));
    return radius * cos(6.283185307179586 * curve_uniform(p, 0, 1));
}

/* 4 KiB to 256 MiB or 2 GiB, 1 to 4 a octave, on whole cache lines. */
static void curve_grid(curve_plan *p, curve_case *c)
{
    p->octaves = curve_chance(p, 0.5) ? 16 : 19;
    p->per_octave = (double)curve_integer(p, 1, 4);
    c->n = (size_t)(p->octaves * p->per_octave) + 1;
    for (size_t i = 0; i < c->n; i++)
        c->sizes[i] = 64 * round(4096 / 64 * exp2((double)i / p->per_octave));
}

/* Places the transitions so that each plateau holds three sizes; the room left is dealt at random.
 * Fewer knees where there is no room. */
static void curve_place(curve_plan *p, curve_case *c, bool short_plateau, bool no_end)
{
    double least = 3 / p->per_octave, need;
    for (;; c->knees--) {
        need = (double)(c->knees + 1) * least;
        for (size_t k = 0; k < c->knees; k++)
            need += p->width[k];
        if (need <= p->octaves)
            break;
    }
    double share[CURVE_KNEES + 1], sum = 0, at = 0;
    for (size_t k = 0; k <= c->knees; k++)
        sum += share[k] = curve_uniform(p, 0, 1);
    if (c->knees > 1 && short_plateau) {
        size_t k = curve_integer(p, 1, c->knees - 1);
        sum -= share[k];
        share[k] = 0;
    }
    if (no_end) {
        sum -= share[c->knees];
        share[c->knees] = 0;
    }
    for (size_t k = 0; k < c->knees; k++) {
        at += least + (p->octaves - need) * share[k] / sum;
        p->start[k] = at;
        at += p->width[k];
        double within = p->tails ? 0 : p->width[k] * curve_uniform(p, 0, 1);
        c->capacity[k] = 4096 * exp2(p->start[k] + within);
    }
    /* The slowest level is reached only where the sizes end. */
    if (no_end && c->knees > 0) {
        size_t k = c->knees - 1;
        p->width[k] += least * curve_uniform(p, 0.4, 1);
    }
}

/* The logarithm of the curve without noise, falling, from 0. */
static double curve_clean(const curve_plan *p, const curve_case *c, double octave)
{
    double log_value = 0, from = 0;
    for (size_t k = 0; k <= c->knees; k++) {
        double until = k < c->knees ? p->start[k] : p->octaves;
        if (until > from)
            log_value -= p->ramp * fmin(fmax((octave - from) / (until - from), 0), 1);
        if (k == c->knees)
            break;
        double t = fmin(fmax((octave - p->start[k]) / p->width[k], 0), 1);
        double miss = t * t * (3 - 2 * t);
        if (p->tails)
            miss = fmax(1 - exp2(p->start[k] - octave), 0);
        log_value -= p->mixes_times ? log(1 + miss * (exp(p->step[k]) - 1)) : miss * p->step[k];
        from = p->start[k] + p->width[k];
    }
    return log_value;
}

/* values: multiplies what sizes [first, first + count) read in a sweep. */
static void curve_scale(curve_case *c, size_t sweep, size_t first, size_t count, double factor)
{
    for (size_t i = first; i < first + count && i < c->n; i++)
        c->values[sweep * c->n + i] *= factor;
}

static void curve_measure(curve_plan *p, curve_case *c)
{
    for (size_t s = 0; s < CURVE_SWEEPS; s++) {
        double drift = p->drift * curve_uniform(p, -0.5, 0.5);
        for (size_t i = 0; i < c->n; i++) {
            double y = curve_clean(p, c, log2(c->sizes[i] / 4096)) + drift;
            y += p->noise * curve_normal(p);
            if (curve_chance(p, p->tail_share))
                y += log(1 - p->tail_loss);
            c->values[s * c->n + i] = 200 * exp(y);
        }
    }
}

/* Neighbours that were slow in one sweep, and sizes that are odd in all. */
static void curve_hostile_sizes(curve_plan *p, curve_case *c)
{
    if (curve_chance(p, 0.5)) {
        size_t sweep = curve_integer(p, 0, CURVE_SWEEPS - 1);
        size_t first = curve_integer(p, 0, c->n - 1), count = curve_integer(p, 3, 5);
        curve_scale(c, sweep, first, count, curve_uniform(p, 0.7, 0.9));
    }
    for (size_t bumps = curve_chance(p, 0.5) ? curve_integer(p, 1, 2) : 0; bumps > 0; bumps--) {
        size_t at = curve_integer(p, 0, c->n - 1);
        double factor = 1 + curve_uniform(p, -0.12, 0.12);
        for (size_t s = 0; s < CURVE_SWEEPS; s++)
            curve_scale(c, s, at, 1, factor);
    }
}

static void curve_draw(enum curve_family family, uint64_t seed, curve_case *c)
{
    curve_plan p = {.key = cb_random_key(seed, family, 0)};
    bool hostile = family == CURVE_HOSTILE;
    memset(c, 0, sizeof *c);
    c->falling = curve_chance(&p, 0.5);
    p.tails = family == CURVE_TAIL;
    p.mixes_times = p.tails || curve_chance(&p, 0.5);
    curve_grid(&p, c);
    c->knees = family == CURVE_FLAT || (hostile && curve_chance(&p, 0.1))
                   ? 0
                   : curve_integer(&p, 1, CURVE_KNEES);
    for (size_t k = 0; k < CURVE_KNEES; k++) {
        p.step[k] = curve_uniform(&p, log(1.1), log(6));
        if (hostile && curve_chance(&p, 0.3))
            p.step[k] = curve_uniform(&p, log(1.12), log(1.15));
        p.width[k] = curve_uniform(&p, 0.1, 1);
        if (hostile && curve_chance(&p, 0.5))
            p.width[k] = curve_uniform(&p, 1.5, 2.2);
        /* Until a tenth of the step is left. */
        if (p.tails)
            p.width[k] = fmax(log2(10 * (1 - exp(-p.step[k]))), 0.5);
    }
    p.ramp = 0.005;
    if (family == CURVE_FLAT)
        p.ramp = curve_uniform(&p, 0, 0.05);
    if (hostile && curve_chance(&p, 0.5))
        p.ramp = curve_uniform(&p, 0.03, 0.05);
    bool short_plateau = hostile && curve_chance(&p, 0.3);
    bool no_end = hostile && curve_chance(&p, 0.3);
    curve_place(&p, c, short_plateau, no_end);
    bool clean = family == CURVE_QUIET || family == CURVE_TAIL;
    p.noise = clean ? 0.01 : family == CURVE_NOISY ? 0.05 : curve_uniform(&p, 0.01, 0.05);
    p.tail_share = clean ? 0 : 0.02;
    p.tail_loss = 0.3;
    p.drift = clean ? 0.02 : hostile && curve_chance(&p, 0.5) ? 0.18 : 0.05;
    curve_measure(&p, c);
    if (hostile)
        curve_hostile_sizes(&p, c);
    for (size_t i = 0; i < CURVE_SWEEPS * c->n && !c->falling; i++)
        c->values[i] = 1 / c->values[i];
}

#endif
