/* twins.h: the short list of twins from which each case picks its fastest. */
#ifndef CB_RUN_TWINS_H
#define CB_RUN_TWINS_H

#include "kernel/module.h"
#include "worker/work.h"

/* Variants of `kernel` ("twin_read" ...) for a machine with these instruction sets, into
 * texts[n][96]. The count. */
int cb__twin_candidates(const cb__suite *suite, const char *kernel, unsigned isa,
                        char (*texts)[96]);

#endif
