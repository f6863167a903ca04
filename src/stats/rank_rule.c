#include "stats/rank_rule.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "stats/order.h"

static const struct {
    double p, weight;
} mixture[] = {{0.5, 0.1}, {0.65, 0.2}, {0.8, 0.3}, {0.93, 0.4}};
enum { MIXED = sizeof mixture / sizeof *mixture };

int cb__rank_threshold(cb__copies copies, int n, double bar)
{
    const double c = copies;
    double terms[MIXED], down[MIXED]; /* of E(k, n); from k to k - 1 */
    for (size_t i = 0; i < MIXED; i++) {
        double hit = c * mixture[i].p, miss = c * (1 - mixture[i].p) / (c - 1);
        terms[i] = mixture[i].weight * pow(hit, n);
        down[i] = miss / hit;
    }
    int threshold = 0;
    /* E falls with k, to at most 1 at n/copies: the loop ends above it. */
    for (int k = n; k > 0; k--) {
        double e = 0;
        for (size_t i = 0; i < MIXED; i++) {
            e += terms[i];
            terms[i] *= down[i];
        }
        if (e < bar)
            break;
        threshold = k;
    }
    return threshold;
}

void cb__rank_rule_init(cb__rank_rule *rule, cb__copies copies, double alpha, int pairs)
{
    const cb__bounds open = {-(double)INFINITY, (double)INFINITY};
    const double bar = 2 * pairs / alpha;
    *rule = (cb__rank_rule){.copies = copies,
                            .bar = bar,
                            .alarm_bar = bar * CB__ALARM_SHARE,
                            .interval = open,
                            .alarm = open};
}

/* Into values[0..n), which rise by sign * value. */
static void insert(double *values, int n, double value, int sign)
{
    int at = 0;
    while (at < n && sign * values[at] < sign * value)
        at++;
    memmove(values + at + 1, values + at, (size_t)(n - at) * sizeof *values);
    values[at] = value;
}

static cb__bounds bounds_of(const cb__rank_rule *rule, double bar)
{
    int k = rule->rounds < CB__ROUNDS_MIN ? 0 : cb__rank_threshold(rule->copies, rule->rounds, bar);
    if (k == 0)
        return (cb__bounds){-(double)INFINITY, (double)INFINITY};
    return (cb__bounds){rule->least[k - 1], rule->most[k - 1]};
}

static void narrow(cb__bounds look, cb__bounds *bounds)
{
    bounds->lower = fmax(bounds->lower, look.lower);
    bounds->upper = fmin(bounds->upper, look.upper);
}

static bool add(cb__rank_rule *rule, double least, double most, double effect)
{
    if (rule->rounds == CB__ROUNDS_MAX || !isfinite(least) || !isfinite(most))
        return false;
    insert(rule->least, rule->rounds, least, -1);
    insert(rule->most, rule->rounds, most, 1);
    rule->effect[rule->rounds++] = effect;
    narrow(bounds_of(rule, rule->bar), &rule->interval);
    narrow(bounds_of(rule, rule->alarm_bar), &rule->alarm);
    return true;
}

bool cb__rank_rule_add(cb__rank_rule *rule, double theta_aa2, double theta_ab, double theta_a2b)
{
    /* Each copy's log time less the mean of the three. */
    double a = -(theta_aa2 + theta_ab) / 3;
    double a2 = (theta_aa2 - theta_a2b) / 3;
    double b = (theta_ab + theta_a2b) / 3;
    return add(rule, b - fmax(a, a2), b - fmin(a, a2), 1.5 * b);
}

bool cb__rank_rule_add_pair(cb__rank_rule *rule, double theta)
{
    return add(rule, theta, theta, theta);
}

cb__claim cb__rank_rule_claim(const cb__rank_rule *rule)
{
    double effect[CB__ROUNDS_MAX];
    memcpy(effect, rule->effect, (size_t)rule->rounds * sizeof *effect);
    return (cb__claim){rule->interval, rule->alarm, bounds_of(rule, rule->bar),
                       cb__median(effect, (size_t)rule->rounds), rule->rounds};
}
