/* model.h: the machine model's data: what the probe fills, the file holds and queries read.
 * Everything lies in the model's own arena. */
#ifndef CB_MODEL_MODEL_H
#define CB_MODEL_MODEL_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/check.h"
#include "base/json.h"
#include "coldbench/model.h"
#include "stats/banks.h"
#include "stats/order.h"

#define CB__MODEL_SCHEMA "coldbench-model/1"

enum { CB__LEVELS_MAX = 8, CB__SERIES_MAX = 128, CB__SERIES_POINTS_MAX = 128 };

/* One cache level as the system names it. */
typedef struct cb__level {
    int level;
    uint64_t bytes; /* of one instance */
    int instances;  /* that the model's threads reach */
} cb__level;

typedef struct cb__point {
    uint64_t bytes;     /* of the whole working set: copies count source and destination */
    cb__interval value; /* GB/s, or ns a load; over sweeps */
    cb_verdict verdict;
    double low,
        high; /* latency: of the multiprocessors that walked, in any sweep; 0: of one core */
} cb__point;

typedef enum cb__series_kind { CB__BANDWIDTH, CB__LATENCY } cb__series_kind;

/* One curve. */
typedef struct cb__series {
    cb__series_kind kind;
    char what[16];      /* mix "read" "read_l1" "write" "write_nt" "copy" "copy_nt"; pattern "local"
                           "random" */
    int workers;        /* latency: 1 */
    char placement[12]; /* "compact", "scattered" where that differs */
    int64_t page_bytes; /* latency: 4096 or what a huge page is; 0 for bandwidth */
    cb__point *points;  /* bytes rise */
    int n;
} cb__series;

typedef struct cb__model_knee {
    int series; /* index */
    uint64_t lo_bytes, hi_bytes;
    double from, to; /* value of the plateaus beside it */
    bool last;       /* nothing but memory lies behind it */
    cb_verdict verdict;
} cb__model_knee;

typedef struct cb__model_floor {
    char submit[12]; /* "solo", "batched", "stream" */
    int threads;
    cb__interval ns; /* of one empty launch */
    cb_verdict verdict;
} cb__model_floor;

/* Asymptotic bandwidth of the largest sets. */
typedef struct cb__model_ceiling {
    char mix[16];
    int workers;
    cb__interval gb_per_s;
    cb_verdict verdict;
} cb__model_ceiling;

typedef struct cb__model_compute {
    char type[12]; /* "f32", "f64" multiply-adds, "int8" dot products; on tensor cores "bf16" ... */
    int threads;
    cb__interval gflop_per_s; /* operations; a multiply-add is two */
    cb_verdict verdict;
} cb__model_compute;

/* On-chip memory, or the path through the caches, read at a stride. */
typedef struct cb__model_scratch {
    char path[8]; /* "shared", "global" */
    int width;    /* bytes a lane */
    int stride;   /* bytes between lanes */
    cb__interval gb_per_s;
    cb_verdict verdict;
} cb__model_scratch;

/* Where a plateau begins: a set smaller than lo_bytes is bound by what a pass over it costs. */
typedef struct cb__model_start {
    int series; /* index */
    uint64_t lo_bytes, hi_bytes;
    double to; /* value of the plateau */
} cb__model_start;

struct cb_model {
    cb__arena arena;
    /* provenance */
    char identity[64], device[32], name[128];
    char written[32];                /* UTC, ISO 8601 */
    char version[32], source_id[72]; /* of the program that measured */
    uint64_t seed;
    bool quick, complete; /* complete: every sweep was made, nobody cut it short */
    char dropped[200];    /* what the probe had no room for, in words; "" nothing */
    int threads;          /* the default of this device when it was measured */
    int sweeps;
    cb__level levels[CB__LEVELS_MAX]; /* nominal; by level */
    int nlevels;
    cb__series *series;
    int nseries;
    cb__model_knee *knees;
    int nknees;
    cb__model_ceiling *ceilings;
    int nceilings;
    cb__model_floor *floors;
    int nfloors;
    cb__model_compute *computes;
    int ncomputes;
    cb__model_start *starts;
    int nstarts;
    cb__model_scratch *scratch;
    int nscratch;
    bool has_banks; /* the strides of "shared" are explained by ... */
    cb__banks banks;
    cb__check *checks; /* the controls; names lie in the arena */
    int nchecks;
};

/* What the system says that `workers` threads reach of a level; 0: it does not say. */
uint64_t cb__model_nominal_for(const cb_model *model, int level, int workers);

cb_model *cb__model_new(void); /* NULL: no memory */

/* "read/2", "read/2/scattered", "random/4096": how records and messages name a curve. */
void cb__series_name(const cb__series *series, char text[48]);
/* The curve that answers: compact rather than scattered, huge pages rather than small ones. NULL:
 * not measured. */
const cb__series *cb__model_series(const cb_model *model, cb__series_kind kind, const char *what,
                                   int workers);
/* "write" and "copy" by the better of plain and non-temporal stores. NULL: not measured. */
const cb__model_ceiling *cb__model_ceiling_best(const cb_model *model, const char *mix,
                                                int workers);
/* The last knee of that curve; NULL: none was resolved. */
const cb__model_knee *cb__model_last_knee(const cb_model *model, const cb__series *series);

/* Writes the members of the record's "model" object: curves, latency, knees, ceilings, floors,
 * compute, scratch. The file is this plus provenance and checks. */
void cb__model_put(const cb_model *model, cb__json_writer *w);
void cb__model_write_text(const cb_model *model, cb__buf *out);
/* Refuses what is not whole: CB_UNAVAILABLE with place and reason. identity NULL: any machine's. */
cb_status cb__model_read_text(const char *text, size_t size, const char *what, const char *identity,
                              cb_model **out, cb_error *err);
/* Where the model of a device lies: $XDG_DATA_HOME/coldbench/models/IDENTITY.json or below
 * ~/.local/share; CB_UNAVAILABLE where there is no home. */
cb_status cb__model_path(const char *identity, char *path, size_t size, cb_error *err);
/* Whether a file could be written there, before the time is spent that fills it. Folders are made.
 */
cb_status cb__model_place_check(const char *path, cb_error *err);
/* Writes the file and puts it in place at once: a reader sees the old one or the new one. path
 * NULL: its place. Folders are made. */
cb_status cb__model_store(const cb_model *model, const char *path, cb_error *err);
/* path NULL: its place. */
cb_status cb__model_load(const char *path, const char *identity, cb_model **out, cb_error *err);

#endif
