/* plan.h: where everything of a case lies: the ring's file, the output slots, the twin; how many
 * sets, how large a batch.
 *
 * A pure function of case and device, computed alike by the process that fills the ring and by
 * those that measure on it.
 *
 *   ring file   [set 0][set 1]...[set sets-1][inputs]     set = its rotating operands, packed, each
 * 64-byte aligned, then random padding output slot [guard][output][guard]... for each written
 * operand; one slot a set, so that every launch of a rotation has its own */
#ifndef CB_MEASURE_PLAN_H
#define CB_MEASURE_PLAN_H

#include "device/device.h"
#include "kernel/case.h"

enum {
    CB__GUARD_BYTES = 4096,
    CB__BATCH_MAX = 256 /* sets of one batch */
};

typedef struct cb__plan {
    bool streams; /* some operand rotates: there is a cold state */
    int k;        /* sets of a cold rotation, a multiple of batch */
    int sets;     /* in the file: 2k, or `batch` slots' worth of set 0 where only warm is asked */
    int batch;    /* sets of one batch */
    int passes;   /* how often a timed batch goes over its sets: more than once where a device asks
                     for batches that are longer than the whole rotation */
    uint64_t touched_bytes; /* distinct bytes of one set that a launch reads or writes */
    uint64_t llc_bytes;     /* of the last-level caches; 64 MiB where they are unknown */
    uint64_t needed_bytes;  /* a ring must touch this many for coldness: 4x the last-level caches,
                               and  what was probed to be beyond them */
    uint64_t set_bytes;     /* from one set to the next */
    uint64_t static_offset; /* of the inputs in the file */
    uint64_t file_bytes;
    bool rotating[CB_OPERANDS_MAX];
    /* Of each operand: in its set (rotating), among the inputs, or in its slot (written). */
    uint64_t offset[CB_OPERANDS_MAX];
    bool restores; /* some operand is inout: each verified call finds it as it was */
    uint64_t initial[CB_OPERANDS_MAX]; /* of an inout operand's contents, among the inputs */
    int slots;
    uint64_t slot_bytes;
    uint64_t memory_bytes; /* all that will be taken, at the worst moment */
    char twin_kernel[16];  /* "twin_read", "twin_write", "twin_copy"; "" without a twin */
    uint64_t twin_bytes;   /* shape of the twin */
} cb__plan;

/* cold: a ring is needed; else set 0 alone. CB_NO_MEMORY says needed and available; CB_USAGE when
 * cold is asked of a kernel that streams nothing. */
cb_status cb__plan_make(const cb__case *c, const cb__device_info *info, bool cold, cb__plan *out,
                        cb_error *err);

/* What cases that are measured side by side have alike, whatever each of them needs by itself. */
typedef struct cb__layout {
    int k, batch;
    uint64_t set_bytes, slot_bytes, static_bytes;
} cb__layout;

/* Plans of cases that are measured side by side: the same sets at the same places, as many as the
 * one that needs most, and slots that hold the outputs of any. No twin, and k sets alone: nothing
 * is proven on 2k. A launch's output slot is the number of its set, or of its place in a batch. */
cb_status cb__plan_arms(const cb__case *cases, int n, const cb__device_info *info, bool cold,
                        cb__plan *plans, cb__layout *layout, cb_error *err);
/* The plan of one of them, in a process that has not all. CB_USAGE where the layout does not hold
 * the case. */
cb_status cb__plan_lay(const cb__case *c, const cb__layout *layout, bool cold, cb__plan *plan,
                       cb_error *err);
/* How many sets (cold) and slots such plans verify: the first ones. */
int cb__plan_verified(const cb__plan *plan);
/* The file that holds the first `sets` sets of a plan, and its inputs. */
cb__plan cb__plan_head(const cb__plan *plan, int sets);

/* Row that set `set` puts first where the kernel rotates rows: (set * 40503) mod rows, or set mod
 * rows where rows divides 40503: distinct for neighbours unless there is one row. */
uint64_t cb__plan_rotation(uint64_t set, uint64_t rows);
/* The value of the rotating dimension; 0 when the kernel does not rotate rows. */
uint64_t cb__plan_rows(const cb__case *c);
/* Output slots that a worker hands over at a time: as many as take 2 MiB, at least one, at most a
 * batch. */
int cb__plan_handed_slots(const cb__plan *plan);
bool cb__role_is_written(cb_role role);
bool cb__role_is_read(cb_role role); /* weight, stream, input, inout */

#endif
