/* kernel.h: how a kernel is defined and how code for it is brought to coldbench.
 *
 * A module is a shared object that exports one function, `cb_module_entry`, and needs nothing of
 * coldbench at link time. It returns kernels; each kernel is *defined* once (shape, parameters,
 * operands, bytes, flops, data, f64 reference with error bound) and has one or more CPU
 * implementations, and may have code for GPUs. examples/skeleton.c is an annotated one.
 *
 *     cc -O3 -shared -fPIC -I include -o mine.so mine.c
 *
 *     coldbench run --kernel ./mine.so mine --shape 1000
 *
 * Words: a *parameter* is part of the definition (it changes what is computed); a *tunable* belongs
 * to an implementation (it changes speed only). Both are integers here; a parameter with `words` is
 * spelled by word. All pointers in these tables are borrowed from the module and must stay valid
 * and constant while it is loaded. Functions must be re-entrant: several threads and processes call
 * them.
 */
#ifndef COLDBENCH_KERNEL_H
#define COLDBENCH_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#include "coldbench/random.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CB_KERNEL_ABI 3u /* changes whenever a struct or a signature below does */

enum { CB_DIMS_MAX = 6, CB_PARAMS_MAX = 8, CB_TUNABLES_MAX = 8, CB_OPERANDS_MAX = 10 };

typedef enum cb_role {
    CB_WEIGHT, /* streamed, read once a launch; rotated when cold */
    CB_STREAM, /* activations streamed once a launch; rotated when cold */
    CB_INPUT,  /* small and shared by launches; stays where production has it */
    CB_OUTPUT, /* written by every launch */
    CB_INOUT,  /* read and written; restored outside the timed region */
    CB_SCRATCH /* private to the launch; no defined contents */
} cb_role;

typedef enum cb_type {
    CB_U8,
    CB_I8,
    CB_U16,
    CB_F16,
    CB_BF16,
    CB_I32,
    CB_U32,
    CB_F32,
    CB_F64,
    CB_U64
} cb_type;

/* One dimension of the shape, in the kernel's own order ("11008x4096" fills them left to right). */
typedef struct cb_dim {
    const char *name;    /* "rows" */
    const char *help;    /* "rows of W, outputs" */
    int64_t multiple_of; /* the value must be a positive multiple of this; 1: any positive value */
    int64_t max;         /* largest value accepted */
} cb_dim;

/* A parameter or a tunable. Exactly one of: `words` (value = index of the word), `values` (value =
 * one of the listed integers), or neither (value = any integer in [min, max]). */
typedef struct cb_choice {
    const char *name;
    const char *help;
    const char *const *words; /* NULL-terminated, or NULL */
    const int64_t *values;    /* `count` integers, or NULL */
    int count;                /* of values */
    int64_t min, max;         /* when neither words nor values */
    int64_t preset;           /* the value (word index) when it is omitted */
} cb_choice;

/* What is computed: a definition with shape and parameters filled in. */
typedef struct cb_problem {
    const int64_t *shape; /* ndims values, checked against dims and check() before any other call */
    const int64_t *params; /* nparams values */
} cb_problem;

typedef struct cb_operand {
    const char *name;
    cb_role role;
    cb_type type;       /* element type of the logical layout */
    const char *layout; /* the logical layout in one line, shown by `coldbench kernels NAME` */
    double lo, hi;      /* plausible range of the values: poison is drawn from it */
} cb_operand;

typedef struct cb_cost {
    uint64_t bytes_read;    /* distinct bytes one launch must read, logical layout; under 64 TiB */
    uint64_t bytes_written; /* distinct bytes it must write */
    double flops;           /* operations, a multiply-add counted as two; 0 to 1e18 */
} cb_cost;

/* One launch as one worker thread sees it. */
typedef struct cb_launch {
    cb_problem problem;
    const int64_t *tunables;
    void *const *
        operands; /* noperands addresses, 64-byte aligned, packed layout; NULL where bytes() is 0 */
    int worker, workers; /* this thread's share: worker in [0, workers) */
    /* Waits until all workers of this launch have come here. `team` is passed back. */
    void (*barrier)(void *team, int worker);
    void *team;
} cb_launch;

/* What an implementation needs of processor or device, as bits; checked before it is offered. */
enum {
    CB_ISA_PORTABLE = 0,
    CB_ISA_AVX2 = 1 << 0,        /* AVX2, FMA and F16C */
    CB_ISA_AVX512 = 1 << 1,      /* AVX-512 F, BW, DQ, VL, and CB_ISA_AVX2 */
    CB_ISA_AVX512_VNNI = 1 << 2, /* VNNI, and CB_ISA_AVX512 */
    CB_ISA_CUDA = 1 << 8         /* an NVIDIA GPU: `device` is set, and `run` is NULL */
};

/* How many threads run one launch. */
typedef struct cb_geometry {
    uint32_t grid[3], block[3]; /* all at least 1 */
    uint32_t shared_bytes;      /* of dynamic shared memory a block */
} cb_geometry;

/* Code for a GPU, compiled when it is needed. `source` is one self-contained text (CUDA C for
 * CB_ISA_CUDA, without a vendor's header) with the kernel
 *
 *     extern "C" __global__ void ENTRY(operand pointers..., long long numbers...)
 *
 * whose arguments are all operands in the order of the definition (NULL where bytes() is 0), then
 * all dimensions, then those parameters that may be any integer of a range. The other parameters
 * and all tunables are macros, CB_ and the name in capitals (of words: the index): another value
 * is other code.
 *
 * Launches follow each other, and each may use what the one before it wrote. Code that `overlaps`
 * waits for that itself, so that a launch may begin while the one before it still runs. It must
 *   - execute `griddepcontrol.wait` (PTX, from 9.0 on) in every thread before that reads an input,
 *     inout or scratch operand, or writes anything that is not the block's own;
 *   - before it read operands of role weight and stream alone, which no launch writes;
 *   - read inputs by plain loads, never by ones for what is constant (`ld.global.nc`): they may be
 *     written after the launch has begun.
 * Best it executes `griddepcontrol.launch_dependents` at once: the next launch begins when all
 * blocks have, or have ended. Waiting where nothing is ahead costs nothing: where device or driver
 * cannot overlap, after anything but a launch, and first in a batch, it is launched as other code.
 * A batch of it is still a chain of launches that depend on each other, as production has it. */
typedef struct cb_device_code {
    const char *source;
    const char *entry;
    int least; /* compute capability that it needs, 75 for 7.5 */
    /* processors: multiprocessors of the device. 0, or nonzero: this shape cannot be launched. */
    int (*geometry)(const cb_problem *problem, const int64_t *tunables, int processors,
                    cb_geometry *out);
    int overlaps; /* 1: launched before the launch ahead of it has ended, by the rules above */
} cb_device_code;

/* Code for a kernel, on the CPU or on a GPU. */
typedef struct cb_impl {
    const char *name; /* "avx2" */
    const char *help;
    unsigned isa;
    const cb_choice *tunables;
    int ntunables;
    /* Whether this implementation covers these parameters; NULL: all. */
    int (*covers)(const cb_problem *problem);
    /* Bytes of operand `operand` as this implementation wants it packed; NULL: the logical layout
     * for all. */
    uint64_t (*packed_bytes)(const cb_problem *problem, const int64_t *tunables, int operand);
    /* Packs one operand from the logical layout, part `part` of `parts` (disjoint shares, run in
     * parallel; every byte of the packed operand is written by exactly one of them). Called only
     * where packed_bytes is not NULL and only for weight, stream and input operands. Timed apart
     * from the kernel. */
    void (*prepare)(const cb_problem *problem, const int64_t *tunables, int operand,
                    const void *logical, void *packed, int part, int parts);
    /* Does this worker's share of one launch. 0, or a code of the implementation's own: the launch
     * failed. */
    int (*run)(const cb_launch *launch);
    const cb_device_code *device; /* NULL: code for the CPU */
} cb_impl;

/* The definition. */
typedef struct cb_kernel {
    const char *name;
    const char *summary; /* one line */
    const char *formula; /* the mathematical definition, exact, as text */
    const cb_dim *dims;
    int ndims; /* 0: the kernel has no shape and --shape is refused */
    const cb_choice *params;
    int nparams;
    const cb_operand *operands;
    int noperands;
    /* The rule across dimensions and parameters; 0, or nonzero with the rule and the value in
     * `why`. NULL: none. */
    int (*check)(const cb_problem *problem, char *why, size_t why_bytes);
    /* Bytes of one operand in the logical layout; 0: absent with these parameters. Must not
     * overflow for shapes that dims[].max and check() let through. */
    uint64_t (*bytes)(const cb_problem *problem, int operand);
    void (*cost)(const cb_problem *problem, cb_cost *cost);
    /* Writes the logical contents of `operand` in set `set`, part `part` of `parts` (disjoint
     * shares), from cb_random(seed, operand, set, index). Called for weight, stream, input and
     * inout operands. */
    void (*fill)(const cb_problem *problem, uint64_t seed, int operand, uint64_t set, void *logical,
                 int part, int parts);
    /* Elements [first, first + count) of output or inout operand `operand`, in f64, and the error
     * bound of each, from the logical inputs. The bound is absolute: c * u * growth(k) *
     * sum(|a||b|) for the accuracy class. Never in the same order or precision as an
     * implementation. */
    void (*reference)(const cb_problem *problem, const void *const *logical, int operand,
                      uint64_t first, uint64_t count, double *value, double *bound);
    /* "rows" where every weight, stream and output operand has this dimension outermost in its
     * logical layout, and row r of the output depends on row r of those alone: then set s of a ring
     * is set 0 with its rows rotated, filled and referenced once. NULL: each set is filled and
     * referenced by itself. */
    const char *rotates;
    /* What the twin of this kernel reads and writes follows from cost(). A control kernel
     * (`alu_chain`) that moves no memory has none and sets this. */
    int no_twin;
    const cb_impl *impls; /* best first; 1 to 32 */
    int nimpls;
} cb_kernel;

typedef struct cb_module {
    uint32_t abi;          /* CB_KERNEL_ABI */
    uint32_t struct_bytes; /* sizeof(cb_kernel), a second guard against a mismatched header */
    const cb_kernel *const *kernels;
    int nkernels;
} cb_module;

/* The one symbol a module exports. */
#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
const cb_module *
cb_module_entry(void);

#ifdef __cplusplus
}
#endif
#endif
