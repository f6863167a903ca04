/* decision.h: from what is known of a pair of arms to one word. Pure: no clock, no I/O, no
 * allocation. */
#ifndef CB_STATS_DECISION_H
#define CB_STATS_DECISION_H

#include <stdbool.h>

#include "stats/rank_rule.h"

/* Name, text in records. */
#define CB__DECISIONS(X)                                                                           \
    X(CB__SLOWER, "slower")                                                                        \
    X(CB__FASTER, "faster")                                                                        \
    X(CB__TIE, "tie")                                                                              \
    X(CB__UNSTABLE, "unstable")                                                                    \
    X(CB__INCOMPARABLE, "incomparable")                                                            \
    X(CB__INCONCLUSIVE, "inconclusive")                                                            \
    X(CB__ANOTHER_ROUND, "another round")

typedef enum cb__decision {
#define CB__DECISION_ENUM(name, text) name,
    CB__DECISIONS(CB__DECISION_ENUM)
#undef CB__DECISION_ENUM
} cb__decision;

typedef struct cb__decision_facts {
    bool side_invalid; /* A or B is `wrong` or `impossible` */
    bool gate_closed;  /* cb__aa_gate_closed, of the arm that has a second copy */
    cb__claim claim;   /* log(tB/tA) */
    double margin;     /* a ratio less 1: 0.01 for 1 % */
    bool spent; /* no round fits the budget any more; CB__ROUNDS_MAX rounds are the end too */
} cb__decision_facts;

/* B against A, in this order: a side is invalid: `incomparable`; the interval is empty: `unstable`;
 * gate closed: `incomparable`; the estimate outside the interval: another round, or `unstable`
 * where none is left; the alarm's bounds above 0 and the estimate above log(1 + margin): `slower`;
 * below 0 and its negative: `faster`; the interval within the margin: `tie`; then another round, or
 * `inconclusive`. */
cb__decision cb__decide(const cb__decision_facts *facts);

/* Whether A and its second copy are told apart by more than the margin; `aa`: the claim of a rule
 * of two copies on theta(A,A2). With alpha 0.01 it cannot close before ten rounds. */
bool cb__aa_gate_closed(const cb__claim *aa, double margin);

/* The larger of |lower|, |upper| of the interval: the smallest effect that these rounds could have
 * seen. Infinite until the claim says something. */
double cb__detectable(const cb__claim *claim);

/* Static storage. */
const char *cb__decision_name(cb__decision decision);

#endif
