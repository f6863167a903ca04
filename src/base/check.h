/* check.h: a named test of a figure, with what it saw. */
#ifndef CB_BASE_CHECK_H
#define CB_BASE_CHECK_H

#include <stdbool.h>

#include "coldbench/verdict.h"

typedef enum cb__check_status { CB__PASS, CB__FAIL, CB__SKIP } cb__check_status;
const char *cb__check_status_name(cb__check_status status);

enum { CB__CHECKS_MAX = 24 };

typedef struct cb__check {
    const char *name;
    cb__check_status status;
    bool required;
    cb_verdict verdict; /* what failing it means */
    char detail[240];
} cb__check;

/* The verdict of that name; -1 when there is none. */
int cb__verdict_named(const char *name);
/* The more serious of two: the one that applies first. */
cb_verdict cb__verdict_worse(cb_verdict a, cb_verdict b);

#endif
