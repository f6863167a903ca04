/* verdict.h: what the checks of a figure add up to. */
#ifndef COLDBENCH_VERDICT_H
#define COLDBENCH_VERDICT_H

#ifdef __cplusplus
extern "C" {
#endif

/* Name, text in records. In the order in which they apply: the first that fits is the verdict; but
 * where what could not be looked at might have been one of the first four, it is "unknown" rather
 * than "floor-bound" or "lower-bound". */
#define CB_VERDICT_TABLE(X)                                                                        \
    X(WRONG, "wrong")                                                                              \
    X(IMPOSSIBLE, "impossible")                                                                    \
    X(CONTAMINATED, "contaminated")                                                                \
    X(UNSTABLE, "unstable")                                                                        \
    X(FLOOR_BOUND, "floor-bound")                                                                  \
    X(LOWER_BOUND, "lower-bound")                                                                  \
    X(UNKNOWN, "unknown")                                                                          \
    X(OK, "ok")

typedef enum cb_verdict {
#define CB_VERDICT_ENUM(name, text) CB_VERDICT_##name,
    CB_VERDICT_TABLE(CB_VERDICT_ENUM)
#undef CB_VERDICT_ENUM
} cb_verdict;

const char *cb_verdict_name(cb_verdict verdict);

#ifdef __cplusplus
}
#endif
#endif
