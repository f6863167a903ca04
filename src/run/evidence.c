/* From rounds to evidence: every interval of a row, and the verdict. */
#include <math.h>
#include <string.h>

#include "run/session.h"

typedef double (*per_round)(const cb__session *s, int row, const cb__round_answer *round);

static cb__interval over_rounds(const cb__session *s, int row, per_round value)
{
    double values[CB__ROUNDS_MAX];
    size_t n = 0;
    for (int i = 0; i < s->nrounds; i++) {
        double v = value(s, row, s->rounds[i]);
        if (isfinite(v))
            values[n++] = v;
    }
    return cb__interval_of(values, n);
}

static double median_of(const double *values, int n)
{
    double copy[CB__BLOCKS_MAX];
    memcpy(copy, values, (size_t)n * sizeof *copy);
    return cb__median(copy, (size_t)n);
}

static double kernel_time(const cb__session *s, int row, const cb__round_answer *round)
{
    (void)s;
    const cb__blocks *b = &round->modes[row].blocks;
    return median_of(b->kernel_ns, b->n);
}

static double host_time(const cb__session *s, int row, const cb__round_answer *round)
{
    (void)s;
    const cb__blocks *b = &round->modes[row].blocks;
    return median_of(b->host_ns, b->n);
}

static double bandwidth(const cb__session *s, int row, const cb__round_answer *round)
{
    const cb_cost *cost = &s->out->c.cost;
    return (double)(cost->bytes_read + cost->bytes_written) / kernel_time(s, row, round);
}

static double rate(const cb__session *s, int row, const cb__round_answer *round)
{
    return s->out->c.cost.flops / kernel_time(s, row, round);
}

/* Median over blocks [from, to) of twin time over kernel time, paired. */
static double ratio(const cb__blocks *b, int from, int to)
{
    double values[CB__BLOCKS_MAX];
    for (int i = from; i < to; i++)
        values[i - from] = b->twin_ns[i] / b->kernel_ns[i];
    return to > from ? cb__median(values, (size_t)(to - from)) : (double)NAN;
}

static double of_twin(const cb__session *s, int row, const cb__round_answer *round)
{
    (void)s;
    const cb__blocks *b = &round->modes[row].blocks;
    return ratio(b, 0, b->n);
}

static double trend(const cb__session *s, int row, const cb__round_answer *round)
{
    (void)s;
    const cb__blocks *b = &round->modes[row].blocks;
    return ratio(b, b->n / 2, b->n) / ratio(b, 0, b->n / 2) - 1;
}

static double floor_time(const cb__session *s, int row, const cb__round_answer *round)
{
    (void)s;
    return round->modes[row].floor_ns;
}

static double proof_value(const cb__round_answer *round, double value)
{
    return round->has_proof ? value : (double)NAN;
}

static double kernel_doubling(const cb__session *s, int row, const cb__round_answer *round)
{
    (void)s, (void)row;
    return proof_value(round, round->proof.kernel_2k_ns / round->proof.kernel_k_ns);
}

static double twin_doubling(const cb__session *s, int row, const cb__round_answer *round)
{
    (void)s, (void)row;
    return proof_value(round, round->proof.twin_2k_ns / round->proof.twin_k_ns);
}

static double moved(const cb__session *s)
{
    return (double)(s->out->c.cost.bytes_read + s->out->c.cost.bytes_written);
}

static double kernel_2k(const cb__session *s, int row, const cb__round_answer *round)
{
    (void)row;
    return proof_value(round, moved(s) / round->proof.kernel_2k_ns);
}

static double over_twin_2k(const cb__session *s, int row, const cb__round_answer *round)
{
    return proof_value(round, round->proof.twin_2k_ns / kernel_time(s, row, round));
}

static double kernel_over_twin_2k(const cb__session *s, int row, const cb__round_answer *round)
{
    (void)s, (void)row;
    return proof_value(round, round->proof.twin_2k_ns / round->proof.kernel_2k_ns);
}

static double asymptote(const cb__session *s, int row, const cb__round_answer *round)
{
    (void)s, (void)row;
    return proof_value(round, round->asymptote.all_gb_per_s);
}

static double asymptote_doubling(const cb__session *s, int row, const cb__round_answer *round)
{
    (void)s, (void)row;
    return proof_value(round, round->asymptote.all_gb_per_s / round->asymptote.k_gb_per_s);
}

/* Paired within the round: both are of the same seconds. */
static double of_ceiling(const cb__session *s, int row, const cb__round_answer *round)
{
    return proof_value(round, bandwidth(s, row, round) / round->asymptote.all_gb_per_s);
}

/* ---- what is the same for all rows ---- */

static double clock_spread(const cb__session *s)
{
    double clocks[CB__ROUNDS_MAX];
    size_t n = 0;
    for (int i = 0; i < s->nrounds; i++)
        if (s->rounds[i]->clock_hz > 0)
            clocks[n++] = s->rounds[i]->clock_hz;
    if (n < 2)
        return (double)NAN;
    double median = cb__median(clocks, n); /* sorts */
    return (clocks[n - 1] - clocks[0]) / median;
}

#define CLOCK_WITHIN 1.02 /* the clock is measured, and moves between its measurements */

static double peak_gb_per_s(const cb__session *s)
{
    const cb__device_info *d = &s->out->device;
    double peak = d->peak_bytes_per_s;
    for (int i = 0; i < s->nrounds && d->peak_bytes_per_cycle > 0; i++)
        peak = fmax(peak, d->peak_bytes_per_cycle * s->rounds[i]->clock_hz * d->threads);
    return peak * 1e-9 * (d->peak_bytes_per_cycle > 0 ? CLOCK_WITHIN : 1);
}

static void surroundings(const cb__session *s, cb__evidence *e)
{
    double steal = 0, wall = 0;
    e->involuntary = 0;
    for (int i = 0; i < s->nrounds; i++) {
        steal += s->rounds[i]->steal_s;
        wall += s->rounds[i]->wall_s;
        e->involuntary += s->rounds[i]->involuntary;
    }
    e->steal_share = wall > 0 ? steal / wall / s->out->device.threads : (double)NAN;
    e->clock_spread = clock_spread(s);
}

static void judge_row(cb__session *s, int row)
{
    cb__run_row *r = &s->out->rows[row];
    cb__evidence *e = &r->evidence;
    e->rounds = s->nrounds;
    e->has_twin = *s->out->twins[e->cache] != '\0';
    e->twin_candidates = s->ncandidates;
    e->sampled_words = s->filled.sampled_words;
    e->distinct_words = s->filled.distinct_words;
    e->time_ns = over_rounds(s, row, kernel_time);
    e->gb_per_s = over_rounds(s, row, bandwidth);
    e->of_twin = over_rounds(s, row, of_twin);
    cb__interval trends = over_rounds(s, row, trend);
    e->trend = isfinite(trends.mid) ? trends.mid : 0;
    e->floor_ns = over_rounds(s, row, floor_time).mid;
    e->proofs = 0;
    for (int i = 0; i < s->nrounds; i++)
        e->proofs += s->rounds[i]->has_proof && s->rounds[i]->proof.kernel_k_ns > 0;
    e->kernel_2k_over_k = over_rounds(s, row, kernel_doubling);
    e->twin_2k_over_k = over_rounds(s, row, twin_doubling);
    e->kernel_2k_gb_per_s = over_rounds(s, row, kernel_2k);
    e->over_twin_2k = over_rounds(s, row, over_twin_2k);
    e->kernel_over_twin_2k = over_rounds(s, row, kernel_over_twin_2k);
    e->asymptote_gb_per_s = over_rounds(s, row, asymptote);
    e->asymptote_2k_over_k = over_rounds(s, row, asymptote_doubling);
    surroundings(s, e);
    e->peak_gb_per_s = peak_gb_per_s(s);
    if (s->nrounds)
        e->pages = s->rounds[s->nrounds - 1]->pages;
    r->gflop_per_s = over_rounds(s, row, rate);
    r->of_ceiling = over_rounds(s, row, of_ceiling);
    r->host_ns = over_rounds(s, row, host_time);
    r->verdict = cb__judge(e, r->checks, &r->nchecks);
    cb__residency_text(e, r->residency, sizeof r->residency);
}

void cb__session_judge(cb__session *s)
{
    for (int row = 0; row < s->out->nrows; row++)
        judge_row(s, row);
}

/* ---- verification ---- */

static const cb__entry *same_slot(const cb__mode_answer *m, int slot, int phase)
{
    for (int i = 0; i < m->nentries; i++)
        if (m->entries[i].slot == slot && m->entries[i].phase == phase)
            return &m->entries[i];
    return NULL;
}

static bool is_right(const cb__session *s, int set, uint64_t digest)
{
    for (int i = 0; i < s->nright; i++)
        if (s->right[i].set == set && s->right[i].digest == digest)
            return true;
    return false;
}

static bool is_clean(const cb__findings *f)
{
    return !f->unwritten && !f->guard_bytes && !f->nonfinite && !f->beyond && !f->vacuous;
}

/* Bits that were compared with the reference once are not compared with it again: large outputs
 * take longer to compare than to compute. */
static void verify_entry(cb__session *s, const cb__entry *e, int set, uint64_t digest,
                         uint64_t seed, const void *after, cb__findings *f)
{
    const cb__case *c = &s->out->c;
    const cb__plan *plan = &s->out->plan;
    if (is_right(s, set, digest)) {
        cb__verify_guards(c, plan, seed, e->slot, after, f);
        f->elements += s->expected.elements;
        return;
    }
    cb__verify_slot(c, plan, &s->expected, seed, e->slot, set, after, f);
    if (is_clean(f) && s->nright < CB__RIGHT_MAX)
        s->right[s->nright++] = (cb__right){set, digest};
}

static void verify_mode(cb__session *s, const cb__mode_answer *m, uint64_t seed, cb__findings *f)
{
    const cb__case *c = &s->out->c;
    const cb__plan *plan = &s->out->plan;
    const unsigned char *base = s->exchange.base;
    for (int i = 0; i < m->nentries; i++) {
        const cb__entry *e = &m->entries[i];
        uint64_t digest = cb__outputs_digest(c, plan, base + e->offset);
        int set = c->kernel->rotates || e->set < s->expected.sets ? e->set : -1;
        if (set >= 0)
            verify_entry(s, e, set, digest, seed, base + e->offset, f);
        const cb__entry *second = e->phase == 0 ? same_slot(m, e->slot, 1) : NULL;
        /* The two poisons differ in every element: where the outputs are equal, all are written. */
        if (second && cb__outputs_digest(c, plan, base + second->offset) != digest)
            cb__verify_written(c, plan, seed, e->slot, base + e->offset, base + second->offset, f);
    }
}

void cb__session_verify(cb__session *s, const cb__round_answer *round, uint64_t seed)
{
    for (int i = 0; i < round->nmodes; i++) {
        const cb__mode_answer *m = &round->modes[i];
        cb__evidence *e = &s->out->rows[i].evidence;
        verify_mode(s, m, seed, &e->findings);
        if (m->launch.status != CB_OK && e->launch.status == CB_OK)
            e->launch = m->launch;
        if (round->has_digest && round->digest != s->filled.digest)
            e->inputs_changed = true;
        if (*round->kept)
            memcpy(e->kept, round->kept, sizeof e->kept);
        if (*round->unasked)
            memcpy(e->unasked, round->unasked, sizeof e->unasked);
        if (m->twin_set < 0)
            continue;
        e->twin_sums_seen++;
        if (m->twin_set >= s->filled.sets || s->filled.checksums[m->twin_set] != m->twin_sum)
            e->twin_sums_wrong++;
    }
}
