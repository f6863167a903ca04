/* From rounds to decisions. */
#include <math.h>
#include <string.h>

#include "compare/session.h"

#define DISPATCH_MULTIPLE 1.25 /* both sides within this many empty launches */

static bool same_code(const cb__case *a, const cb__case *b)
{
    return a->kernel == b->kernel && a->impl == b->impl &&
           !memcmp(a->params, b->params, sizeof a->params) &&
           !memcmp(a->tunables, b->tunables, sizeof a->tunables);
}

void cb__pairs_init(cb__comparing *s)
{
    cb__comparison *c = s->out;
    c->npairs = 0;
    cb__rank_rule_init(&c->gate, CB__TWO_COPIES, c->alpha, c->claims);
    for (int a = 0; a < c->nsides; a++)
        for (int b = a + 1; b < c->nsides; b++) {
            cb__compare_pair *p = &c->pairs[c->npairs++];
            *p = (cb__compare_pair){.a = a, .b = b, .decision = CB__ANOTHER_ROUND};
            p->aa = same_code(&c->sides[a].c, &c->sides[b].c);
            /* The first side alone has a second copy. */
            cb__rank_rule_init(&p->rule, a == 0 ? CB__THREE_COPIES : CB__TWO_COPIES, c->alpha,
                               c->claims);
        }
}

/* The first arm of a side; the second copy comes after it. -1: it is not in this round. */
static int arm_of(const cb__compare_round *r, int side)
{
    for (int i = 0; i < r->arms; i++)
        if (r->side[i] == side)
            return i;
    return -1;
}

void cb__pairs_add(cb__comparing *s, const cb__compare_round *r)
{
    cb__comparison *c = s->out;
    bool copied = r->arms > 1 && r->side[0] == 0 && r->side[1] == 0;
    if (copied)
        cb__rank_rule_add_pair(&c->gate, r->estimate.theta[0][1]);
    for (int i = 0; i < c->npairs; i++) {
        cb__compare_pair *p = &c->pairs[i];
        int a = arm_of(r, p->a), b = arm_of(r, p->b);
        if (a < 0 || b < 0)
            continue;
        if (p->a == 0 && copied)
            cb__rank_rule_add(&p->rule, r->estimate.theta[0][1], r->estimate.theta[0][b],
                              r->estimate.theta[1][b]);
        else if (p->a != 0)
            cb__rank_rule_add_pair(&p->rule, r->estimate.theta[a][b]);
    }
}

static bool invalid(const cb__compare_side *side)
{
    return side->verdict == CB_VERDICT_WRONG || side->verdict == CB_VERDICT_IMPOSSIBLE;
}

static bool unclear(const cb__compare_side *side)
{
    return side->evidence.unclear.status != CB_OK;
}

static bool dispatch(const cb__comparison *c, const cb__compare_pair *p)
{
    double slower = fmax(c->sides[p->a].time_ns.mid, c->sides[p->b].time_ns.mid);
    return c->floor_ns > 0 && slower <= DISPATCH_MULTIPLE * c->floor_ns;
}

bool cb__pairs_judge(cb__comparing *s, bool spent)
{
    cb__comparison *c = s->out;
    cb__claim aa = cb__rank_rule_claim(&c->gate);
    bool decided = true;
    c->gate_closed = cb__aa_gate_closed(&aa, c->margin);
    for (int i = 0; i < c->npairs; i++) {
        cb__compare_pair *p = &c->pairs[i];
        const cb__compare_side *a = &c->sides[p->a], *b = &c->sides[p->b];
        p->claim = cb__rank_rule_claim(&p->rule);
        cb__decision_facts facts = {.side_invalid = invalid(a) || invalid(b),
                                    .gate_closed = c->gate_closed,
                                    .claim = p->claim,
                                    .margin = c->margin,
                                    .spent = spent};
        p->decision = cb__decide(&facts);
        if (unclear(a) || unclear(b))
            p->decision = p->decision == CB__INCOMPARABLE ? CB__INCOMPARABLE : CB__INCONCLUSIVE;
        p->dispatch = dispatch(c, p);
        p->bit_identical = a->steady && b->steady && a->digest == b->digest;
        decided = decided && p->decision != CB__ANOTHER_ROUND;
    }
    return decided;
}

/* ---- sides ---- */

static double clock_of(const cb__comparison *c)
{
    double hz = 0;
    for (int i = 0; i < c->nrounds; i++)
        hz = fmax(hz, c->rounds[i]->answer.clock_hz);
    return hz;
}

#define CLOCK_WITHIN 1.02 /* the clock is measured, and moves between its measurements */

static double peak_gb_per_s(const cb__comparison *c)
{
    const cb__device_info *d = &c->device;
    double peak = d->peak_bytes_per_s;
    if (d->peak_bytes_per_cycle > 0)
        peak = fmax(peak, d->peak_bytes_per_cycle * clock_of(c) * d->threads) * CLOCK_WITHIN;
    return peak * 1e-9;
}

/* Median over a round's blocks of one arm. */
static double round_time(const cb__compare_round *r, int arm)
{
    double ns[CB__COMPARE_BLOCKS_MAX];
    int n = r->answer.result.blocks;
    for (int b = 0; b < n; b++)
        ns[b] = r->answer.result.ns[b * r->arms + arm];
    return cb__median(ns, (size_t)n);
}

void cb__sides_judge(cb__comparing *s)
{
    cb__comparison *c = s->out;
    for (int i = 0; i < c->nsides; i++) {
        cb__compare_side *side = &c->sides[i];
        cb__evidence *e = &side->evidence;
        double ns[CB__ROUNDS_MAX], gb[CB__ROUNDS_MAX];
        double moved = (double)(side->c.cost.bytes_read + side->c.cost.bytes_written);
        size_t n = 0;
        for (int r = 0; r < c->nrounds; r++) {
            int arm = arm_of(c->rounds[r], i);
            if (arm < 0)
                continue;
            ns[n] = round_time(c->rounds[r], arm);
            gb[n] = moved / ns[n];
            n++;
        }
        e->time_ns = side->time_ns = cb__interval_of(ns, n);
        e->gb_per_s = cb__interval_of(gb, n);
        e->peak_gb_per_s = peak_gb_per_s(c);
        e->rounds = (int)n;
        e->complete = c->complete;
        side->verdict = cb__judge_side(e, side->checks, &side->nchecks);
    }
    double effects[CB__ROUNDS_MAX], gaps[CB__ROUNDS_MAX];
    size_t neffects = 0;
    for (int r = 0; r < c->nrounds; r++) {
        gaps[r] = c->rounds[r]->answer.result.gap_ns;
        if (isfinite(c->rounds[r]->estimate.position_effect))
            effects[neffects++] = c->rounds[r]->estimate.position_effect;
    }
    c->position_effect = cb__median(effects, neffects);
    c->gap_ns = cb__median(gaps, (size_t)c->nrounds);
}

/* ---- more than two ---- */

static const cb__compare_pair *pair_of(const cb__comparison *c, int a, int b)
{
    for (int i = 0; i < c->npairs; i++)
        if ((c->pairs[i].a == a && c->pairs[i].b == b) ||
            (c->pairs[i].a == b && c->pairs[i].b == a))
            return &c->pairs[i];
    return NULL;
}

static bool left_out(const cb__compare_side *side)
{
    return invalid(side) || unclear(side);
}

/* Log time against the first side's, paired; of itself, without that side. */
static double standing(const cb__comparison *c, int side)
{
    if (left_out(&c->sides[0]))
        return log(c->sides[side].time_ns.mid);
    return side == 0 ? 0 : pair_of(c, 0, side)->claim.estimate;
}

/* Tied with the best is who was not shown to be slower. */
void cb__best_of(cb__comparison *c)
{
    c->best = -1;
    for (int i = 0; i < c->nsides && c->nsides > 2 && c->nrounds >= CB__ROUNDS_MIN; i++)
        if (!left_out(&c->sides[i]) && isfinite(standing(c, i)) &&
            (c->best < 0 || standing(c, i) < standing(c, c->best)))
            c->best = i;
    for (int i = 0; i < c->nsides; i++) {
        c->tied[i] = false;
        if (c->best < 0 || i == c->best || left_out(&c->sides[i]))
            continue;
        const cb__compare_pair *p = pair_of(c, c->best, i);
        c->tied[i] = p->decision != (p->a == c->best ? CB__SLOWER : CB__FASTER);
    }
}

double cb__compare_detectable(const cb__compare_pair *p)
{
    if (p->decision == CB__UNSTABLE)
        return (double)INFINITY;
    if (p->decision == CB__SLOWER || p->decision == CB__FASTER)
        return (p->claim.interval.upper - p->claim.interval.lower) / 2;
    return cb__detectable(&p->claim);
}

cb__interval cb__compare_ratio(const cb__comparison *c, const cb__compare_pair *p)
{
    const cb__bounds open = {-(double)INFINITY, (double)INFINITY};
    const cb__bounds bounds = p->decision == CB__UNSTABLE ? open : p->claim.interval;
    return (cb__interval){exp(bounds.lower), exp(p->claim.estimate), exp(bounds.upper),
                          1 - c->alpha};
}

cb__interval cb__compare_aa_ratio(const cb__comparison *c)
{
    double ratios[CB__ROUNDS_MAX];
    for (int i = 0; i < c->gate.rounds; i++)
        ratios[i] = exp(c->gate.effect[i]);
    return cb__interval_of(ratios, (size_t)c->gate.rounds);
}

int cb__compare_gate_rounds(const cb__comparison *c)
{
    int n = CB__ROUNDS_MIN;
    while (n < CB__ROUNDS_MAX && cb__rank_threshold(CB__TWO_COPIES, n, c->gate.bar) == 0)
        n++;
    return n;
}
