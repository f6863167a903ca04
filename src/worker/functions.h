/* functions.h: two C functions of the running program as the sides of a comparison, in the process
 * that measures them. */
#ifndef CB_WORKER_FUNCTIONS_H
#define CB_WORKER_FUNCTIONS_H

#include "worker/arms.h"

typedef struct cb__function {
    void (*run)(void *state);
    void *state; /* borrowed */
} cb__function;

/* What both sides have alike is said once. All borrowed. */
typedef struct cb__functions {
    cb__function side[2];
    unsigned char *output; /* every byte of which each call writes; NULL: not looked at */
    size_t output_bytes;
    int (*check)(void *state); /* after a call: 0, or a code: the output is wrong; may be NULL */
    unsigned char *first;      /* room for output_bytes: what the first phase left; the library's */
    double budget_s;           /* of the whole comparison */
    bool hurry;                /* the first round: calls too long for the budget are refused */
    uint64_t start_ns, call_ns; /* of the call that is looked at; of a side's shortest so far */
} cb__functions;

/* What a request calls side 0 and 1 where a kernel's has its module. */
extern const char *const cb__function_modules[2];

/* A call of `function` as a case: a kernel without operands. Refers to `function` by address. */
void cb__function_case(const cb__function *function, cb__case *c);
/* Fills arms as cb__arms_open does, with the functions that the request names. */
cb_status cb__functions_arms(const cb__work *work, cb__functions *functions, cb__arms *arms,
                             cb_error *err);

#endif
