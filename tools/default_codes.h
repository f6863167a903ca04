/* default_codes.h: the device code that the verbs use without a constant being asked for: what the
 * program carries compiled. */
#ifndef CB_TOOLS_DEFAULT_CODES_H
#define CB_TOOLS_DEFAULT_CODES_H

#include "kernel/case.h"

/* Of the NVRTC that compiles it: its PTX is read by every driver that serves this version or a
 * later one, and it knows what the code needs (cp.async.bulk). */
enum { EMBEDDED_VERSION = 12000 };

/* `text` is the variant as one could spell it; NULL: the backend's own kernels, and `c` too. */
typedef cb_status default_code_fn(void *arg, const char *text, const cb__case *c, cb_error *err);

/* Calls fn for every implementation for CUDA of the embedded suite with its tunables at their
 * presets and each value of each parameter that is a constant of the code, for each twin that a
 * case may pick and for each variant that a probe tries; until one fails. The same code comes more
 * than once. */
cb_status each_default_code(const cb__suite *suite, default_code_fn *fn, void *arg, cb_error *err);

#endif
