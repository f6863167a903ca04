/* rank_rule.h: what rounds say about log(tB/tA), by ranks alone: exact whatever the noise, and
 * valid however often one looks. Pure: no clock, no I/O, no allocation.
 *
 * Each round is one draw of c identical copies if B is A, and by our own coin each of them is
 * equally likely to be the slowest. After n rounds in k of which B was, for any p
 * (cp)^k (c(1-p)/(c-1))^(n-k) is a likelihood ratio against chance 1/c, and so is their mixture E
 * over (p,w) in {(.5,.1) (.65,.2) (.8,.3) (.93,.4)}. By Ville's inequality E ever reaches 2/alpha
 * with probability at most alpha/2. The same counts, with B moved by a constant, bound that
 * constant from below (the k*-th largest) and from above. */
#ifndef CB_STATS_RANK_RULE_H
#define CB_STATS_RANK_RULE_H

#include <stdbool.h>

enum { CB__ROUNDS_MIN = 6, CB__ROUNDS_MAX = 40 };

/* CB__TWO_COPIES: pairs without a second copy (B against C), and A against A2. CB__THREE_COPIES:
 * A, A2 and B. The value is the number of copies among which B is one by lot. */
typedef enum cb__copies { CB__TWO_COPIES = 2, CB__THREE_COPIES = 3 } cb__copies;

/* An alarm (`slower`, `faster`) takes a tenth of alpha: docs/decisions/0009-compare-statistics.md.
 */
enum { CB__ALARM_SHARE = 10 };

/* A confidence sequence of log(tB/tA); infinite ends until there are rounds enough to say
 * anything. */
typedef struct cb__bounds {
    double lower, upper;
} cb__bounds;

typedef struct cb__claim {
    cb__bounds interval; /* at alpha */
    cb__bounds alarm;    /* at alpha / CB__ALARM_SHARE: not narrower */
    cb__bounds look;     /* at alpha, of all rounds but without the earlier looks: not narrower */
    double estimate;     /* of log(tB/tA); NaN without rounds */
    int rounds;
} cb__claim;

/* The rounds so far; read-only. */
typedef struct cb__rank_rule {
    cb__copies copies;
    double bar, alarm_bar; /* for E */
    cb__bounds interval, alarm;
    int rounds;
    double least[CB__ROUNDS_MAX];  /* by which B exceeds the slowest other copy; largest first */
    double most[CB__ROUNDS_MAX];   /* ... the fastest other copy; smallest first */
    double effect[CB__ROUNDS_MAX]; /* each round's estimate, in order */
} cb__rank_rule;

/* alpha in (0, 1) is divided over `pairs` >= 1 claims that are made side by side: the chance that
 * any of their intervals ever leaves the truth out is at most alpha. */
void cb__rank_rule_init(cb__rank_rule *rule, cb__copies copies, double alpha, int pairs);

/* One round of a rule of three copies, of two copies. False, and nothing is added, where a theta is
 * not finite or CB__ROUNDS_MAX rounds are there. */
bool cb__rank_rule_add(cb__rank_rule *rule, double theta_aa2, double theta_ab, double theta_a2b);
bool cb__rank_rule_add_pair(cb__rank_rule *rule, double theta);

cb__claim cb__rank_rule_claim(const cb__rank_rule *rule);

/* k*: the least k > n/copies with E >= bar; 0 where none is. bar = 2 / alpha. */
int cb__rank_threshold(cb__copies copies, int n, double bar);

#endif
