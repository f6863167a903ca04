/* scripted.h: a scripted device whose figures are known, and the embedded suite. The device is
 * slow: kernels run for real, and readings of so many milliseconds then move little. */
#ifndef CB_TESTS_SCRIPTED_H
#define CB_TESTS_SCRIPTED_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernel/module.h"

#define SLOW "cache_gbs=4,dram_gbs=1,cache_ns=20,dram_ns=400,kernel_factor=1,solo_ns=1000"
#define EXACT "llc=256KiB,noise=0," SLOW
#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

enum { KNEE = 262144 };

static cb__suite suite;

static inline void is_near(const char *what, double value, double expected, double within)
{
    if (!(fabs(value / expected - 1) <= within))
        fail_msg("%s: %.9g, expected %.9g", what, value, expected);
}

static inline int open_suite(void **state)
{
    (void)state;
    cb_error err = CB_ERROR_INIT;
    return cb__suite_open(NULL, 0, false, &suite, &err) == CB_OK ? 0 : -1;
}

static inline int close_suite(void **state)
{
    (void)state;
    cb__suite_close(&suite);
    return 0;
}

#endif
