/* case.h: a variant and a shape, parsed, checked and bound to code.
 *
 * A variant is spelled  kernel[@param=value,...][/implementation][:tunable=value,...] ; what is
 * left out is the definition's default, the best implementation that this machine runs, and the
 * tunables' defaults. */
#ifndef CB_KERNEL_CASE_H
#define CB_KERNEL_CASE_H

#include "base/buf.h"
#include "device/device.h"
#include "kernel/module.h"

typedef struct cb__case {
    const cb__module *module; /* borrowed */
    const cb_kernel *kernel;
    const cb_impl *impl;
    int64_t shape[CB_DIMS_MAX];
    int64_t params[CB_PARAMS_MAX];
    int64_t tunables[CB_TUNABLES_MAX];
    unsigned spelled; /* bit i: parameter i was written out */
    cb_cost cost;
    uint64_t logical_bytes[CB_OPERANDS_MAX];
    uint64_t packed_bytes[CB_OPERANDS_MAX];
} cb__case;

/* Points into `c`; valid as long as it is. */
cb_problem cb__case_problem(const cb__case *c);

/* The case as a device sees it; points into `c` likewise. */
cb__code cb__case_code(const cb__case *c);

/* Parses and binds. `shape` NULL or "": only right for a kernel without dimensions. isa: CB_ISA_*
 * bits of the machine. */
cb_status cb__case_parse(const cb__suite *suite, const char *variant, const char *shape,
                         unsigned isa, cb__case *out, cb_error *err);
/* Parses a variant without a shape, for its names alone: shape, cost and bytes stay zero. */
cb_status cb__case_parse_variant(const cb__suite *suite, const char *variant, unsigned isa,
                                 cb__case *out, cb_error *err);
/* Canonical: every parameter, the implementation and every tunable spelled. */
void cb__case_variant_text(const cb__case *c, cb__buf *out);
/* Whether some operand rotates when cold; one without has no cold state. */
bool cb__kernel_streams(const cb_kernel *kernel);
/* Whether its launches overlap on a device, in batches and streams. */
bool cb__case_overlaps(const cb__case *c, const cb__device_info *device);
/* "14336x4096"; "" for a kernel without dimensions. */
void cb__case_shape_text(const cb__case *c, cb__buf *out);
/* The word or the number of one value. */
void cb__choice_text(const cb_choice *choice, int64_t value, cb__buf *out);
const char *cb__type_name(cb_type type);
size_t cb__type_bytes(cb_type type);
const char *cb__role_name(cb_role role);
/* "avx2", "avx512+vnni", "portable" */
const char *cb__isa_name(unsigned isa);
/* Whether a device with these bits runs code of this implementation at all. */
bool cb__impl_runs(const cb_impl *impl, unsigned isa);
/* The bits of a device that has been described, where more is known of it than was asked with. */
unsigned cb__isa_of(const cb__device_info *device, unsigned asked);

#endif
