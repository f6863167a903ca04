/* fake.h: the scripted device. Kernels run for real, on one thread, so that verification is exact;
 * time is computed.
 *
 * A launch takes   floor + bytes / bandwidth   where bandwidth is `dram_gbs`, or `cache_gbs` if the
 * set that it streams was among the `cache` bytes touched last; times `kernel_factor` for every
 * kernel but the twins; times the drifts and noise below. */
#ifndef CB_DEVICE_FAKE_FAKE_H
#define CB_DEVICE_FAKE_FAKE_H

#include <stddef.h>
#include <stdint.h>

#include "coldbench/status.h"

typedef struct cb__fake_script {
    int64_t llc;    /* bytes of last-level cache that the device admits to */
    int64_t cache;  /* bytes of cache that it has; 0: as `llc` says */
    int64_t memory; /* bytes that can be taken */
    double dram_gbs, cache_gbs;
    double dram_ns, cache_ns; /* of a dependent load */
    double peak_gbs;          /* the physical ceiling that it reports; 0: unknown */
    double peak_dram_gbs;     /* the same of its memory; 0: unknown */
    double solo_ns;           /* floor of one launch and wait */
    double batched_ns;        /* floor of one launch within a batch */
    double kernel_factor;     /* kernels but the twins take this many times longer */
    double noise;             /* each launch: times 1 + noise * u, u uniform in [-1, 1) */
    double drift;             /* everything: slower by this fraction each second of device time */
    double arm_drift;         /* the same for kernels but the twins alone */
    double place;             /* the first slot of a block: slower by this fraction */
    int64_t process_arm;  /* arm of a comparison (A, A2, B ...: 0, 1, 2 ...) whose launches ... */
    double process;       /* ... are slower by this fraction ... */
    double process_share; /* ... in this share of the rounds, drawn by their seed */
    int64_t fail_launch;  /* the kernel's launch of this number fails; 0: none does */
    int64_t queued;       /* 1: it says that launches are queued to it */
} cb__fake_script;

/* "cache=64MiB,dram_gbs=40": the defaults where left out. CB_USAGE names the unknown key and the
 * valid ones. */
cb_status cb__fake_parse(const char *text, cb__fake_script *out, cb_error *err);

#endif
