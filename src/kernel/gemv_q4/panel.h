/* panel.h: the packed layout of the implementations with vectors, and where its parts begin.
 *
 * The rows of a block and the columns of some groups share vectors, so that the integer dot
 * products of a group are finished in the lanes of one accumulator and every dot product takes the
 * same activations, broadcast. A vector has `lanes` lanes of 4 bytes (16 or 8); a block is as many
 * vectors as rows, but at most lanes / 4. A vector then holds one row or some, and of each row
 * `groups` groups: row r of the vector and group g meet in lane r * groups + g. So many groups are
 * a step. Columns are cut into tiles of 64 groups, whose activations stay in L1 beside the weights,
 * in the form the dot products take (panel_x.h).
 * Tiles follow each other, in a tile its blocks, in a block its steps:
 *
 *     w        four times a line of each vector: byte i (0..3) of a lane of line j (0..3) holds
 *              column 8*j + i of its group in its low nibble and 8*j + 4 + i in its high nibble
 *     w_scale  an f16 a lane, vector after vector
 *
 * The last block and step are filled up with q = 8 and scale 0, which add nothing.
 */
#ifndef CB_GEMV_Q4_PANEL_H
#define CB_GEMV_Q4_PANEL_H

#include "gemv_q4.h"

enum {
    PANEL_TILE = 64,            /* groups */
    PANEL_W = GEMV_GROUP / 2,   /* bytes of a group of one row */
    PANEL_DOTS = GEMV_GROUP / 4 /* of a group: a dot product takes 4 columns */
};

static inline __attribute__((always_inline)) int panel_vectors(int lanes, int block_rows)
{
    return block_rows < lanes / 4 ? block_rows : lanes / 4;
}

static inline __attribute__((always_inline)) int panel_groups(int lanes, int block_rows)
{
    return lanes * panel_vectors(lanes, block_rows) / block_rows;
}

/* Groups of `cols` columns, the last step filled up. */
static inline int64_t panel_all_groups(int64_t cols, int step_groups)
{
    int64_t groups = cols / GEMV_GROUP;
    return (groups + step_groups - 1) / step_groups * step_groups;
}

/* Groups of this tile, of all_groups. */
static inline int64_t panel_tile_groups(int64_t all_groups, int64_t tile)
{
    int64_t left = all_groups - tile * PANEL_TILE;
    return left < PANEL_TILE ? left : PANEL_TILE;
}

/* Where `block` begins in `tile`, in groups of one row. */
static inline int64_t panel_at(int64_t blocks, int64_t all_groups, int64_t block_rows, int64_t tile,
                               int64_t block)
{
    return (blocks * tile * PANEL_TILE + block * panel_tile_groups(all_groups, tile)) * block_rows;
}

uint64_t gemv_q4__panel8_bytes(const cb_problem *problem, const int64_t *tunables, int operand);
void gemv_q4__panel8_prepare(const cb_problem *problem, const int64_t *tunables, int operand,
                             const void *logical, void *packed, int part, int parts);
uint64_t gemv_q4__panel16_bytes(const cb_problem *problem, const int64_t *tunables, int operand);
void gemv_q4__panel16_prepare(const cb_problem *problem, const int64_t *tunables, int operand,
                              const void *logical, void *packed, int part, int parts);

#endif
