/* embedded.h: code that the program carries compiled, so that a machine with only a driver has it.
 *
 * It is PTX, of the suite's kernels with default constants and of the backend's own, and lies in
 * the tree as src/kernel/NAME/cuda.ptx and src/device/cuda/support.ptx, which scripts/embed_cuda.sh
 * writes. Each entry begins with a line
 *
 *     //@ DIGEST CAPABILITY VERSION NAME CONSTANTS...
 *
 * of the digest of what was compiled (16 hex digits), the compute capability from which on it runs
 * (75 for 7.5) and the CUDA version from which on a driver reads it (12000 for 12.0); the rest is
 * for people. An entry whose source has changed is never found. */
#ifndef CB_DEVICE_CUDA_EMBEDDED_H
#define CB_DEVICE_CUDA_EMBEDDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One text with its constants; all borrowed. */
typedef struct cb__cuda_source {
    const char *name; /* in messages, NAME.cu(line): "gemv_q4" */
    const char *text;
    const char *const *macros; /* "CB_BLOCK_ROWS=4", ..., NULL; or NULL */
} cb__cuda_source;

/* Entries one after the other; borrowed. All zero: none. */
typedef struct cb__cuda_table {
    const char *text;
    size_t size;
} cb__cuda_table;

typedef struct cb__cuda_entry {
    uint64_t digest;
    int capability, version;
    const char *ptx; /* `size` bytes, no NUL */
    size_t size;
} cb__cuda_entry;

/* What this program carries. */
cb__cuda_table cb__cuda_embedded(void);

/* Of the text and of those of its macros that it names: others make no other code. */
uint64_t cb__cuda_source_digest(const cb__cuda_source *source);

/* The first entry at *at or behind it, and *at behind that one. false: there is none left. */
bool cb__cuda_entry_next(const cb__cuda_table *table, size_t *at, cb__cuda_entry *out);

/* The entry of this source for the highest capability that is not above `capability`. */
bool cb__cuda_entry_find(const cb__cuda_table *table, const cb__cuda_source *source, int capability,
                         cb__cuda_entry *out);

#endif
