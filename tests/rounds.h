/* rounds.h: synthetic rounds whose truth is known, for tests of the statistics over rounds.
 *
 * A round has blocks of one slot an arm in random order, on a machine that is noisy in the ways
 * that its plan says; everything is a log time. Everything follows from (seed, round), by
 * coldbench/random.h: the same rounds everywhere, and with one thing changed in the plan the same
 * noise besides. */
#ifndef CB_TESTS_ROUNDS_H
#define CB_TESTS_ROUNDS_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "coldbench/random.h"
#include "stats/thetas.h"

enum { ROUND_BLOCKS_MAX = 120 };

typedef struct round_plan {
    const char *name;
    int arms;
    size_t blocks;
    double effect[CB__ARMS_MAX];
    double noise;             /* sd of a slot, white */
    double ar, ar_sd;         /* AR(1) from slot to slot: correlation, sd */
    double drift;             /* over the round, up or down by lot */
    double step_chance, step; /* a slot: the machine is faster or slower from here on */
    double spike_chance, spike;
    double tail;       /* a slot: times a Pareto variable of shape 1.2 (no variance), less 1 */
    double tick;       /* readings are whole multiples of this */
    double first_slot; /* the first slot of a block is slower by this */
    double offset_chance, offset; /* a round: one arm by lot is off by this */
    double unlucky; /* a loaded copy: off by 1 to 7 % for the round, 4 times in 5 slower */
    double luck;    /* sd of what every loaded copy is off by */
} round_plan;

/* 18 % of processes have one of three copies off by over 1 %. */
#define ROUND_LUCK .unlucky = 0.064, .luck = 0.001

typedef struct round_sample {
    double ns[ROUND_BLOCKS_MAX * CB__ARMS_MAX];
    unsigned char position[ROUND_BLOCKS_MAX * CB__ARMS_MAX];
} round_sample;

/* What a round draws from: a stream each for the coin, the copies and the machine. */
typedef struct round_stream {
    uint64_t key, drawn;
} round_stream;

static double round_uniform(round_stream *s)
{
    return cb_random_f64(cb_random_word(s->key, s->drawn++));
}

static double round_normal(round_stream *s)
{
    double u = 1 - round_uniform(s);
    return sqrt(-2 * log(u)) * cos(2 * acos(-1.0) * round_uniform(s));
}

static double round_sign(round_stream *s, double share)
{
    return round_uniform(s) < share ? 1 : -1;
}

/* What each loaded copy is off by, for its whole life. */
static void round_draw_copies(const round_plan *plan, round_stream *s, double *level)
{
    for (int arm = 0; arm < plan->arms; arm++) {
        double size = 0.01 * pow(7, round_uniform(s)) * round_sign(s, 0.8);
        double unlucky = round_uniform(s) < plan->unlucky ? size : 0;
        level[arm] = plan->effect[arm] + unlucky + plan->luck * round_normal(s);
    }
    double off = round_uniform(s) < plan->offset_chance ? plan->offset * round_sign(s, 0.5) : 0;
    level[(int)(round_uniform(s) * plan->arms)] += off;
}

typedef struct round_machine {
    double state, wander, slope;
} round_machine;

/* The log of what the machine makes of one slot. The number of draws does not depend on the plan's
 * sizes, only on what it has at all. */
static double round_machine_slot(const round_plan *plan, round_stream *s, round_machine *m)
{
    m->state += m->slope;
    if (plan->step_chance > 0 && round_uniform(s) < plan->step_chance)
        m->state += plan->step * round_sign(s, 0.5);
    if (plan->ar_sd > 0)
        m->wander =
            plan->ar * m->wander + sqrt(1 - plan->ar * plan->ar) * plan->ar_sd * round_normal(s);
    double slot = m->state + m->wander + plan->noise * round_normal(s);
    if (plan->spike_chance > 0 && round_uniform(s) < plan->spike_chance)
        slot += plan->spike * round_uniform(s);
    if (plan->tail > 0)
        slot += log1p(plan->tail * (pow(1 - round_uniform(s), -1 / 1.2) - 1));
    return slot;
}

static void round_draw(const round_plan *plan, uint64_t seed, uint64_t number, round_sample *out)
{
    round_stream coin = {cb_random_key(seed, 0, number), 0};
    round_stream copies = {cb_random_key(seed, 1, number), 0};
    round_stream noise = {cb_random_key(seed, 2, number), 0};
    double level[CB__ARMS_MAX];
    round_draw_copies(plan, &copies, level);
    round_machine machine = {.slope = plan->drift * round_sign(&noise, 0.5) /
                                      (double)(plan->blocks * (size_t)plan->arms)};
    for (size_t block = 0; block < plan->blocks; block++) {
        int order[CB__ARMS_MAX];
        for (int i = 0; i < plan->arms; i++) {
            int j = (int)(round_uniform(&coin) * (i + 1));
            order[i] = i;
            order[i] = order[j];
            order[j] = i;
        }
        for (int slot = 0; slot < plan->arms; slot++) {
            size_t at = block * (size_t)plan->arms + (size_t)order[slot];
            double ns = 10000 * exp(level[order[slot]] + (slot == 0 ? plan->first_slot : 0) +
                                    round_machine_slot(plan, &noise, &machine));
            out->position[at] = (unsigned char)slot;
            out->ns[at] = plan->tick > 0 ? plan->tick * round(ns / plan->tick) : ns;
        }
    }
}

static void round_estimate_of(const round_plan *plan, const round_sample *sample,
                              cb__round_estimate *estimate)
{
    double scratch[ROUND_BLOCKS_MAX];
    cb__round_slots slots = {plan->arms, plan->blocks, sample->ns, sample->position};
    cb__thetas_of(&slots, scratch, estimate);
}

#endif
