/* banks.h: memory in banks, each of which serves one word of its own a cycle: how long lanes take
 * that read at a stride, which banks explain a curve over strides, and the padding that helps.
 *
 * The model is that of NVIDIA's shared memory: 32 lanes ask at once; lanes whose bytes together are
 * more than all banks give in a cycle are served in so many parts, and each part takes as many
 * cycles as the bank with the most different words asked for. */
#ifndef CB_STATS_BANKS_H
#define CB_STATS_BANKS_H

#include <stdbool.h>
#include <stddef.h>

/* Beyond these nothing is fitted, or asked of the functions below. */
enum {
    CB__BANK_LANES = 32,
    CB__BANKS_MAX = 128,
    CB__BANK_BYTES_MAX = 16,
    CB__WIDTH_MAX = 16,
    CB__STRIDE_MAX = 1 << 20
};

typedef struct cb__banks {
    int banks;      /* 0: every stride costs the same */
    int bank_bytes; /* of one bank's word */
    double misfit;  /* root mean square of log(measured cost / cost by these banks) */
} cb__banks;

/* What `stride` bytes between lanes of `width` bytes cost, over what the best stride costs. */
typedef struct cb__bank_point {
    int width, stride;
    double cost;
} cb__bank_point;

/* Of the same by the banks alone: 1 without conflicts. */
double cb__banks_cost(const cb__banks *banks, int width, int stride);
/* False: no number of banks comes within CB__BANKS_MISFIT of the points; *out is the nearest. */
#define CB__BANKS_MISFIT 0.10
bool cb__banks_fit(const cb__bank_point *points, size_t n, cb__banks *out);
/* The fewest bytes, whole widths, behind rows of `row` bytes (a multiple of width) that make lanes
 * a row apart as cheap as any stride. */
int cb__banks_pad(const cb__banks *banks, int row, int width);

#endif
