/* slot.h: one slot: the median of a few readings, each as short as the timer allows. Nothing here
 * allocates. */
#ifndef CB_TIMING_SLOT_H
#define CB_TIMING_SLOT_H

#include "device/device.h"

typedef struct cb__target {
    const cb__backend *ops;
    cb__device *device;
} cb__target;

/* One side of a block: its launches, one a set, and the same in batches of consecutive sets. */
typedef struct cb__arm {
    const cb__launch *launches;
    int n;
    cb__batch **batches;
    int nbatches;
    int batch_launches; /* of one batch, each on a set of its own */
    int passes;         /* how often a batch goes over them; 0: once */
} cb__arm;

typedef enum cb__submit { CB__SOLO, CB__BATCHED } cb__submit;

enum {
    CB__READING_NS = 10000,      /* a reading is this long, or one launch if that is longer */
    CB__READINGS = 3,            /* readings of a slot ... */
    CB__LONG_READING_NS = 50000, /* ... 1 from here */
    CB__REPEATS_MAX = 1024
};

typedef struct cb__slot_shape {
    cb__submit submit;
    int repeats;  /* launches (solo) or batches of one reading */
    int readings; /* 1 or 3 */
} cb__slot_shape;

/* The shape of slots for launches (or batches) that take about `estimate_ns`; all arms share it. */
cb__slot_shape cb__slot_shape_for(cb__submit submit, double estimate_ns);

/* Runs one slot of `arm`, taking sets (or batches) from *cursor on, which moves on: the ring is
 * shared by all arms. *device_ns: nanoseconds a launch by the slot's clock (solo: host, submit and
 * wait; batched: the device's span); *host_ns: a launch by the host. */
cb_status cb__slot_run(cb__target target, const cb__arm *arm, cb__slot_shape shape, int *cursor,
                       double *device_ns, double *host_ns, cb_error *err);

const char *cb__submit_name(cb__submit submit);

/* The backend's hooks of these names, where it has them. */
cb_status cb__target_build(cb__target target, cb__code *code, cb_error *err);
void cb__target_unbuild(cb__target target, cb__code *code);

#endif
