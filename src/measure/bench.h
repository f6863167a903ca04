/* bench.h: one process measuring one case: its memory on the device, its arms, and the steps of a
 * round. Runs in a worker. */
#ifndef CB_MEASURE_BENCH_H
#define CB_MEASURE_BENCH_H

#include "measure/plan.h"
#include "timing/slot.h"

typedef enum cb__cache_state { CB__COLD, CB__WARM } cb__cache_state;
const char *cb__cache_name(cb__cache_state state);

typedef struct cb__bench cb__bench;

typedef struct cb__bench_request {
    const cb__suite *suite;
    const cb__case *c;            /* borrowed */
    const cb__plan *plan;         /* borrowed */
    const char *twin_variants[2]; /* by cache state, without shape; NULL or "": no twin */
    int ring_fd;                  /* filled already */
    uint64_t seed;                /* of this round */
    uint64_t elapsed_ns;          /* device time of earlier rounds */
    unsigned isa;
    bool looks; /* nothing is timed for a figure, and the device not warmed up for it */
    void (*alive)(
        void *arg); /* called between slots, never within one: the process is still at work */
    void *alive_arg;
} cb__bench_request;

cb_status cb__bench_open(cb__target target, const cb__bench_request *request, cb__bench **out,
                         cb_error *err);
void cb__bench_close(cb__bench *bench);
cb__pages cb__bench_pages(const cb__bench *bench);
/* Of the whole ring file; after the last launch. */
cb_status cb__bench_digest(cb__bench *bench, uint64_t *digest, cb_error *err);

/* A slot as handed over for verification: where it lies in the exchange, and what it was. */
typedef struct cb__entry {
    int phase, slot, set;
    uint64_t offset;
} cb__entry;

typedef struct cb__exchange {
    unsigned char *base;
    uint64_t bytes, used;
    cb__entry *entries;
    int n, capacity;
} cb__exchange;

/* The two verified launches before timing, through the path that will be timed. Fills the exchange.
 */
cb_status cb__bench_verify(cb__bench *bench, cb__cache_state state, cb__submit submit,
                           cb__exchange *exchange, cb_error *err);

typedef struct cb__blocks {
    int n;             /* in: how many (arrays have room); out: how many were run */
    double *kernel_ns; /* a launch, by the slot's clock */
    double *twin_ns;   /* NaN where there is no twin */
    double *host_ns;   /* the kernel's, by the host's clock */
    int64_t *order;    /* 0: kernel first, 1: twin first */
    int repeats, readings;
} cb__blocks;

/* Warm-up, an untimed lead-in block, then the blocks; afterwards hands the outputs of timed calls
 * to the exchange. */
cb_status cb__bench_blocks(cb__bench *bench, cb__cache_state state, cb__submit submit,
                           cb__blocks *blocks, cb__exchange *exchange, cb_error *err);

/* Rotations of k and 2k sets, kernel and twin, interleaved: nanoseconds a launch. */
typedef struct cb__proof {
    double kernel_k_ns, kernel_2k_ns, twin_k_ns, twin_2k_ns; /* medians over `pairs` */
    int pairs;
} cb__proof;
cb_status cb__bench_proof(cb__bench *bench, int pairs, cb__proof *proof, cb_error *err);

/* The twin over k and over 2k sets as one single launch: the asymptote of plain reading, writing or
 * copying. */
typedef struct cb__asymptote {
    double k_gb_per_s, all_gb_per_s;
} cb__asymptote;
cb_status cb__bench_asymptote(cb__bench *bench, cb__asymptote *out, cb_error *err);

/* An empty kernel through the submit mode: nanoseconds a launch, median of many. */
cb_status cb__bench_floor(cb__bench *bench, cb__submit submit, double *ns, cb_error *err);

/* What the reading twin last wrote as its checksum, and the set that it had read; *set is -1
 * without a reading twin. */
cb_status cb__bench_twin_checksum(cb__bench *bench, int *set, uint32_t *sum, cb_error *err);

/* Times every candidate (variants of the twin) in `rounds` interleaved rounds and gives the index
 * of the fastest by median. */
cb_status cb__bench_pick_twin(cb__target target, const cb__bench_request *request,
                              cb__cache_state state, const char *const *candidates, int n,
                              int rounds, int *best, double *kernel_ns, double *twin_ns,
                              cb_error *err);

#endif
