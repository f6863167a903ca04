/* step.h: one decode step of a model as one batch: every matrix its own, filled as the rings of
 * `run` are, each met once a step. */
#ifndef DECODE_STEP_STEP_H
#define DECODE_STEP_STEP_H

#include "host/memory.h"
#include "kernel/case.h"
#include "measure/fill.h"

enum { MATRICES_MAX = 8, PARTS_MAX = 8, LAUNCHES_MAX = 1024 };

typedef struct step_matrix {
    const char *name;
    const char *shape; /* rows x cols */
} step_matrix;

typedef struct step_model {
    const char *name;
    int layers;
    step_matrix matrices[MATRICES_MAX]; /* of a layer, in the order of its launches; ends at NULL */
} step_model;

/* CB_USAGE with the valid names and the nearest. */
cb_status model_find(const char *name, const step_model **out, cb_error *err);
int model_matrices(const step_model *m);

/* The matrices of one shape. */
typedef struct step_part {
    char names[64]; /* "q, o" */
    int count;      /* in a step; set i of the ring is the i-th of them that is launched */
    cb__case c;
    cb__plan plan;
    cb__region ring;
    uint64_t digest; /* of the ring's file */
    cb__reference reference;
    double *values, *bounds; /* what it points to; owned */
} step_part;

typedef struct step {
    const step_model *model;
    cb__suite suite;
    uint64_t seed;
    step_part parts[PARTS_MAX];
    int nparts;
    int part_of[MATRICES_MAX]; /* of each matrix of a layer */
    int launches;
    uint64_t bytes_read, bytes_written;
    double fill_s;
} step;

/* What is in a step of `m`, before anything is filled. kernel: file of a module, or NULL. The step
 * is closed whatever this returns. */
cb_status step_open(step *s, const step_model *m, const char *variant, const char *kernel,
                    const cb__device_info *info, unsigned isa, uint64_t seed, cb_error *err);
/* Fills all matrices, on all processors, and their references. CB_NO_MEMORY says needed and
 * available. */
cb_status step_fill(step *s, cb_error *err);
void step_close(step *s);

#endif
