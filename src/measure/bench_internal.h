/* bench_internal.h: what bench.c (memory, arms) and bench_steps.c (the steps of a round) share. */
#ifndef CB_MEASURE_BENCH_INTERNAL_H
#define CB_MEASURE_BENCH_INTERNAL_H

#include "measure/bench.h"

enum { CB__TWIN_SUMS_MAX = 4096 }; /* checksums of a reading twin */

/* One side in both cache states. */
typedef struct cb__side {
    cb__case c; /* of a twin; the kernel's is the request's */
    cb__code code;
    cb__launch *launches[2]; /* cold: `sets` of them; warm: `batch` */
    cb__arm arms[2];         /* cold: the first k sets of `ring` */
    cb__arm ring;            /* all 2k sets; where a cold batch is several rotations, one batch of
                                half as many, of as many launches; without any where there is no
                                cold state */
    cb__launch *again[2], *again_ring; /* what batches of several passes are made of; else NULL */
} cb__side;

struct cb__bench {
    cb__target target;
    cb__bench_request request;
    const cb__case *c;
    const cb__plan *plan;
    cb__pages pages;
    unsigned char *ring, *slots;
    void *scratch[CB_OPERANDS_MAX];
    unsigned char *twin_dst;      /* written by a writing or copying twin */
    unsigned char *twin_small[3]; /* its checksums, its input, its scratch */
    cb__side kernel, twin[2];     /* twin[state]: the one picked for that state */
    bool has_twin;
    bool *visited; /* slots that the last block's call has written over poison */
    bool last_block;
    unsigned char *staging; /* one slot on the host */
    int last_twin_set;
    int cursor;     /* next set, or batch, of the rotation in work; all arms take from it */
    uint64_t draws; /* of the round's own coin */
};

/* The twin `variant` over the bench's memory, as launches and batches of both states. */
cb_status cb__bench_twin_side(cb__bench *bench, const char *variant, cb__side *side, cb_error *err);
void cb__bench_side_fini(cb__bench *bench, cb__side *side);
/* Binds the twin's operands: it reads at `src`, and writes `offset` bytes into what it has to write
 * to; one that only reads has its checksums in a place of their own. */
void cb__bench_twin_bind(cb__bench *bench, const cb__code *twin, void *src, uint64_t offset,
                         cb__launch *launch);
uint64_t cb__bench_draw(cb__bench *bench);
void cb__bench_alive(cb__bench *bench);

#endif
