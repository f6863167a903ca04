#include <math.h>
#include <string.h>

#include "record/envelope.h"

static void variant(cb__json_writer *w, const char *key, const cb__case *c)
{
    cb__buf text = CB__BUF_INIT;
    cb__case_variant_text(c, &text);
    if (key)
        cb__json_put_text(w, key, cb__buf_text(&text));
    else
        cb__json_string(w, cb__buf_text(&text));
    cb__buf_fini(&text);
}

static int arm_of(const cb__compare_round *r, int side)
{
    for (int i = 0; i < r->arms; i++)
        if (r->side[i] == side)
            return i;
    return -1;
}

/* The arms of a round that a pair's result holds: A, its second copy where there is one, B. */
static int arms_of(const cb__compare_round *r, const cb__compare_pair *p, int arms[3])
{
    int n = 0, a = arm_of(r, p->a), b = arm_of(r, p->b);
    if (a < 0 || b < 0)
        return 0;
    arms[n++] = a;
    if (p->a == 0 && r->arms > 1 && r->side[1] == 0)
        arms[n++] = 1;
    arms[n++] = b;
    return n;
}

static void thetas(cb__json_writer *w, const cb__comparison *c, const cb__compare_pair *p)
{
    cb__json_key(w, "thetas");
    cb__json_array(w);
    for (int i = 0; i < c->nrounds; i++) {
        const cb__compare_round *r = c->rounds[i];
        int arms[3], n = arms_of(r, p, arms);
        if (!n)
            continue;
        int a = arms[0], b = arms[n - 1];
        cb__json_object(w);
        cb__json_put_real(w, "theta_aa2", n == 3 ? r->estimate.theta[a][1] : (double)NAN);
        cb__json_put_real(w, "theta_ab", r->estimate.theta[a][b]);
        cb__json_put_real(w, "theta_a2b", n == 3 ? r->estimate.theta[1][b] : (double)NAN);
        cb__json_end(w);
    }
    cb__json_end(w);
}

/* By round, by block: times of A, its second copy, B; and who ran when, as indices of those. */
static void samples(cb__json_writer *w, const cb__comparison *c, const cb__compare_pair *p)
{
    cb__json_key(w, "samples_ns");
    cb__json_array(w);
    for (int i = 0; i < c->nrounds; i++) {
        const cb__duel_result *d = &c->rounds[i]->answer.result;
        int arms[3], n = arms_of(c->rounds[i], p, arms);
        if (!n)
            continue;
        cb__json_array(w);
        for (int b = 0; b < d->blocks; b++) {
            double ns[3];
            for (int k = 0; k < n; k++)
                ns[k] = d->ns[b * c->rounds[i]->arms + arms[k]];
            cb__json_numbers(w, ns, (size_t)n);
        }
        cb__json_end(w);
    }
    cb__json_end(w);
}

static void order(cb__json_writer *w, const cb__comparison *c, const cb__compare_pair *p)
{
    cb__json_key(w, "order");
    cb__json_array(w);
    for (int i = 0; i < c->nrounds; i++) {
        const cb__duel_result *d = &c->rounds[i]->answer.result;
        int arms[3], n = arms_of(c->rounds[i], p, arms), all = c->rounds[i]->arms;
        if (!n)
            continue;
        cb__json_array(w);
        for (int b = 0; b < d->blocks; b++) {
            int64_t who[3];
            int seen = 0;
            for (int place = 0; place < all; place++)
                for (int k = 0; k < n; k++)
                    if (d->order[b * all + place] == arms[k])
                        who[seen++] = k;
            cb__json_ints(w, who, (size_t)seen);
        }
        cb__json_end(w);
    }
    cb__json_end(w);
}

/* What else was seen of each round. */
static void covariates(cb__json_writer *w, const cb__comparison *c)
{
    cb__json_key(w, "covariates");
    cb__json_array(w);
    for (int i = 0; i < c->nrounds; i++) {
        const cb__compare_round *r = c->rounds[i];
        const cb__duel_result *d = &r->answer.result;
        int64_t slot[3] = {d->readings, d->repeats, c->submit == CB__BATCHED ? d->batch : 1};
        cb__json_object(w);
        cb__json_put_int(w, "seed", (int64_t)r->seed);
        cb__json_put_int(w, "arms", r->arms);
        cb__json_key(w, "slot");
        cb__json_ints(w, slot, 3);
        cb__json_put_real(w, "clock_hz", r->answer.clock_hz > 0 ? r->answer.clock_hz : (double)NAN);
        cb__json_put_text(w, "telemetry", *r->answer.telemetry ? r->answer.telemetry : NULL);
        cb__json_put_real(w, "steal_s", r->answer.steal_s);
        double measure_s = (double)d->measured_ns * 1e-9;
        cb__json_put_real(w, "startup_s", fmax(r->wall_s - measure_s, 0));
        cb__json_put_real(w, "measure_s", measure_s);
        cb__json_put_real(w, "wall_s", r->answer.wall_s);
        cb__json_put_int(w, "involuntary", r->answer.involuntary);
        cb__json_put_real(w, "gap_ns", d->gap_ns);
        cb__json_key(w, "block_involuntary");
        cb__json_ints(w, d->involuntary, (size_t)d->blocks);
        cb__json_end(w);
    }
    cb__json_end(w);
}

/* Of both sides; a name tells whose. */
static void checks(cb__json_writer *w, const cb__comparison *c, const cb__compare_pair *p)
{
    const int sides[2] = {p->a, p->b};
    cb__json_key(w, "checks");
    cb__json_array(w);
    for (int i = 0; i < 2; i++) {
        const cb__compare_side *side = &c->sides[sides[i]];
        for (int k = 0; k < side->nchecks; k++)
            cb__put_check(w, i ? "b" : "a", &side->checks[k]);
    }
    cb__json_end(w);
}

void cb__put_pair(cb__json_writer *w, const cb__comparison *c, const cb__compare_pair *p)
{
    const cb__compare_side *a = &c->sides[p->a], *b = &c->sides[p->b];
    int64_t blocks = 0;
    for (int i = 0; i < c->nrounds; i++)
        blocks += c->rounds[i]->answer.result.blocks;
    cb__json_object(w);
    variant(w, "a", &a->c);
    variant(w, "b", &b->c);
    cb__put_shape(w, &a->c);
    cb__json_put_text(w, "cache", cb__cache_name(c->cache));
    cb__json_put_text(w, "submit", cb__submit_name(c->submit));
    cb__json_put_bool(w, "a_overlaps",
                      c->submit != CB__SOLO && cb__case_overlaps(&a->c, &c->device));
    cb__json_put_bool(w, "b_overlaps",
                      c->submit != CB__SOLO && cb__case_overlaps(&b->c, &c->device));
    cb__json_put_int(w, "threads", c->device.threads);
    cb__json_put_text(w, "clock", c->submit == CB__SOLO ? "host" : c->device.clock);
    cb__json_put_bool(w, "complete", c->complete);
    cb__json_put_text(w, "why", c->why[0] ? c->why : NULL);
    cb__put_interval(w, "ratio", cb__compare_ratio(c, p));
    cb__put_interval(w, "aa_ratio", cb__compare_aa_ratio(c));
    cb__json_put_real(w, "position_effect", c->position_effect);
    cb__json_put_real(w, "alpha", c->alpha);
    cb__json_put_int(w, "claims", c->claims);
    cb__json_put_real(w, "margin", c->margin);
    cb__json_put_int(w, "blocks", blocks);
    cb__json_put_int(w, "rounds", c->nrounds);
    thetas(w, c, p);
    samples(w, c, p);
    order(w, c, p);
    covariates(w, c);
    cb__put_interval(w, "a_time_ns", a->time_ns);
    cb__put_interval(w, "b_time_ns", b->time_ns);
    cb__json_put_real(w, "floor_ns", c->floor_ns);
    double detectable = expm1(cb__compare_detectable(p));
    cb__json_put_real(w, "detectable", detectable);
    cb__json_put_bool(w, "same_code", p->aa);
    cb__json_put_bool(w, "bit_identical", p->bit_identical);
    cb__json_put_bool(w, "dispatch", p->dispatch);
    cb__json_put_bool(w, "shared_ring", a->ring == b->ring);
    cb__json_put_real(w, "startup_s", fmax(c->wall_s - c->measure_s, 0));
    cb__json_put_real(w, "measure_s", c->measure_s);
    cb__json_put_real(w, "wall_s", c->wall_s);
    cb__json_put_text(w, "decision", cb__decision_name(p->decision));
    checks(w, c, p);
    cb__json_end(w);
}

static void best(cb__json_writer *w, const cb__comparison *c)
{
    cb__json_key(w, "best");
    if (c->best < 0)
        cb__json_null(w);
    else
        variant(w, NULL, &c->sides[c->best].c);
    cb__json_key(w, "tie_set");
    cb__json_array(w);
    for (int i = 0; i < c->nsides; i++)
        if (c->tied[i] || i == c->best)
            variant(w, NULL, &c->sides[i].c);
    cb__json_end(w);
}

/* One shape: at the top, as the schema has it; several: an entry each. */
static void bests(cb__json_writer *w, const cb__comparison *comparisons, int n)
{
    if (n == 1) {
        best(w, comparisons);
        return;
    }
    cb__json_key(w, "shapes");
    cb__json_array(w);
    for (int i = 0; i < n; i++) {
        cb__json_object(w);
        cb__put_shape(w, &comparisons[i].sides[0].c);
        best(w, &comparisons[i]);
        cb__json_end(w);
    }
    cb__json_end(w);
}

void cb__record_compare(const cb__record *record, const cb__comparison *comparisons, int n,
                        cb__buf *out)
{
    cb__json_writer w;
    cb__json_begin(&w, out, true);
    cb__envelope_begin(&w, record);
    cb__put_checks(&w, NULL, 0);
    cb__json_key(&w, "results");
    cb__json_array(&w);
    for (int i = 0; i < n; i++)
        for (int p = 0; p < comparisons[i].npairs; p++)
            cb__put_pair(&w, &comparisons[i], &comparisons[i].pairs[p]);
    cb__json_end(&w);
    if (n > 0 && comparisons[0].nsides > 2)
        bests(&w, comparisons, n);
    if (n == 1 && comparisons[0].npairs == 1)
        cb__json_put_text(&w, "decision", cb__decision_name(comparisons[0].pairs[0].decision));
    cb__json_end(&w);
    cb__buf_puts(out, "\n");
}

void cb__record_compare_csv(const cb__comparison *comparisons, int n, cb__buf *out)
{
    cb__buf_puts(out, "a,b,shape,cache,submit,threads,rounds,ratio_lo,ratio_mid,ratio_hi,aa_ratio,"
                      "detectable,a_time_ns,b_time_ns,bit_identical,decision\n");
    for (int i = 0; i < n; i++)
        for (int j = 0; j < comparisons[i].npairs; j++) {
            const cb__comparison *c = &comparisons[i];
            const cb__compare_pair *p = &c->pairs[j];
            cb__interval ratio = cb__compare_ratio(c, p);
            cb__buf_puts(out, "\""); /* a variant holds commas, never quotes */
            cb__case_variant_text(&c->sides[p->a].c, out);
            cb__buf_puts(out, "\",\"");
            cb__case_variant_text(&c->sides[p->b].c, out);
            cb__buf_printf(out, "\",%s,%s,%s,%d,%d", c->shape, cb__cache_name(c->cache),
                           cb__submit_name(c->submit), c->device.threads, c->nrounds);
            const double numbers[] = {ratio.lo,
                                      ratio.mid,
                                      ratio.hi,
                                      cb__compare_aa_ratio(c).mid,
                                      expm1(cb__compare_detectable(p)),
                                      c->sides[p->a].time_ns.mid,
                                      c->sides[p->b].time_ns.mid};
            for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
                cb__csv_number(out, numbers[k]);
            cb__buf_printf(out, ",%d,%s\n", p->bit_identical, cb__decision_name(p->decision));
        }
}
