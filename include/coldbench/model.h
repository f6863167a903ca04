/* model.h: what `coldbench probe` learned about a machine, as answers to questions.
 *
 * Every answer is an interval with a verdict. Nothing is extrapolated: a size outside what was
 * measured, a mix, worker count or pattern that was not measured is CB_UNDECIDED with the reason;
 * the only answer about any size is whether it can be resident. A model is read-only once opened
 * and may be shared by threads. No function prints or exits.
 *
 * Sizes are bytes of the whole working set of all workers together (a copy counts source and
 * destination). Bandwidths are in GB/s, 1e9 bytes a second, bytes read plus bytes written. Between
 * two measured sizes: `mid` by linear interpolation of logarithms, `lo` and `hi` those that enclose
 * both neighbours, the worse of their verdicts.
 */
#ifndef COLDBENCH_MODEL_H
#define COLDBENCH_MODEL_H

#include <stdint.h>

#include "coldbench/status.h"
#include "coldbench/verdict.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cb_model cb_model;

typedef struct cb_figure {
    double lo, mid, hi;
    cb_verdict verdict;
} cb_figure;

typedef enum cb_resident { CB_RESIDENT_NO, CB_RESIDENT_MAYBE, CB_RESIDENT_YES } cb_resident;
/* "no", "maybe", "yes". */
const char *cb_resident_name(cb_resident resident);

/* How memory is met: CB_STREAM_PATTERN in order (bandwidth), CB_RANDOM_PATTERN by dependent loads
 * (latency). */
typedef enum cb_pattern { CB_STREAM_PATTERN, CB_RANDOM_PATTERN } cb_pattern;

/* The stored model of `device` ("cpu") on this machine. CB_UNAVAILABLE where there is none, or the
 * file is damaged, of another schema or another machine's, with the command that makes a new one.
 * The caller frees *out. */
cb_status cb_model_open(const char *device, cb_model **out, cb_error *err);
/* The same from a file of the caller's; still refused where it is another machine's. */
cb_status cb_model_open_file(const char *path, const char *device, cb_model **out, cb_error *err);
void cb_model_free(cb_model *model); /* NULL is fine */

/* The most workers whose curves the model has. Everywhere below workers = 0 means this many. */
int cb_model_workers(const cb_model *model);

/* Bandwidth of `workers` threads over a set of `bytes`; mix: "read", "write", "write_nt"
 * (non-temporal stores), "copy", "copy_nt"; of a GPU "read" goes past its first caches, and
 * "read_l1" stays in them. GB/s. */
cb_status cb_model_bandwidth(const cb_model *model, const char *mix, uint64_t bytes, int workers,
                             cb_figure *out, cb_error *err);
/* Nanoseconds a dependent load takes on a set of `bytes`, in random order over all of it, huge
 * pages where they were granted. */
cb_status cb_model_latency(const cb_model *model, uint64_t bytes, cb_figure *out, cb_error *err);
/* Whether a set of any size stays in the caches: yes up to the low end of the last knee before
 * memory, no from its high end, else maybe. *knee (may be NULL): that knee in bytes, lo to hi, with
 * the verdict that the answer has too. Latency is one worker's: CB_RANDOM_PATTERN takes workers 0
 * or 1. CB_UNDECIDED where no knee was resolved. */
cb_status cb_model_resident(const cb_model *model, uint64_t bytes, cb_pattern pattern, int workers,
                            cb_resident *out, cb_figure *knee, cb_error *err);
/* The knee that ends cache level `level` (1: nearest; 0: the last one before memory), in bytes.
 * Knees and levels are matched in order, as close as they come. */
cb_status cb_model_capacity(const cb_model *model, int level, cb_pattern pattern, int workers,
                            cb_figure *out, cb_error *err);
/* What the system says that level (0: the last one) holds, all instances that the model's threads
 * reach; 0: it does not say. */
uint64_t cb_model_nominal(const cb_model *model, int level);
/* How many times faster a tile of `tile` bytes is read again and again than the full set. */
cb_status cb_model_tiling_gain(const cb_model *model, uint64_t full, uint64_t tile, int workers,
                               cb_figure *out, cb_error *err);
/* On-chip scratch memory, devices that have it: time of an access pattern over that without
 * conflicts, `width` bytes a lane, `stride` bytes between lanes; and the padding in bytes that
 * makes rows of `row` bytes conflict-free. CB_UNDECIDED "not applicable" on a cpu, and where the
 * stride, the row or the padded row was not timed. */
cb_status cb_model_scratch_cost(const cb_model *model, uint64_t stride, uint64_t width,
                                cb_figure *out, cb_error *err);
cb_status cb_model_best_pad(const cb_model *model, uint64_t row, uint64_t width, cb_figure *out,
                            cb_error *err);
/* Asymptotic bandwidth of sets far beyond the caches, GB/s; mix as above, where "write" and "copy"
 * are the better of plain and non-temporal stores. */
cb_status cb_model_ceiling(const cb_model *model, const char *mix, int workers, cb_figure *out,
                           cb_error *err);
/* Billions of operations a second, a multiply-add counted as two; type: "f32", "f64", "int8"; of a
 * GPU's tensor cores "bf16", "tf32" and "int8". */
cb_status cb_model_compute(const cb_model *model, const char *type, int workers, cb_figure *out,
                           cb_error *err);
/* Nanoseconds of one empty launch; submit: "solo", "batched", of a GPU "stream" (queued
 * one after the other). */
cb_status cb_model_floor(const cb_model *model, const char *submit, int workers, cb_figure *out,
                         cb_error *err);

#ifdef __cplusplus
}
#endif
#endif
