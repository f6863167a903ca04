/* fixed.h: the packed layout for avx512fixed, act=f32 by integer dot products (cpu_avx512vnni.c).
 *
 * A vector has 16 lanes of 4 bytes, and a lane belongs to one group, so 8 dot products finish 16
 * groups in the lanes of one accumulator. Chunks are 512 columns; columns are cut into tiles of 4
 * chunks, so that the activations of a tile, 9.5 KB in the form the dot products take, stay in L1
 * beside the weights: without prefetch, block_rows=4 had 0.52 of a plain read with 8 chunks and
 * 0.92 with 4 (medians of 15 cold slots, Zen 4, 2-core VM, 2026-11-29).
 * Tiles follow each other, in a tile its blocks, in a block its chunks, in a chunk its rows:
 *
 *     w        256 bytes a row and chunk: byte i (0..3) of lane g (0..15) of line j (0..3) holds
 *              column 32*g + 8*j + i in its low nibble and 32*g + 8*j + 4 + i in its high nibble
 *     w_scale  16 f16 a row and chunk, in the order of the groups
 *
 * The last block and chunk are filled up with q = 8 and scale 0.
 */
#ifndef CB_GEMV_Q4_FIXED_H
#define CB_GEMV_Q4_FIXED_H

#include "gemv_q4.h"

enum {
    FIXED_LANES = 16,
    FIXED_CHUNK = FIXED_LANES * GEMV_GROUP,
    FIXED_CHUNK_BYTES = FIXED_CHUNK / 2,
    FIXED_TILE = 4 /* chunks */
};

/* Where the rows of chunk 0 of `block` in `tile` begin, in row-chunks; chunk c follows `block_rows
 * * c` later. */
int64_t gemv_q4__fixed_at(int64_t blocks, int64_t chunks, int64_t block_rows, int64_t tile,
                          int64_t block);
/* Chunks of this tile. */
int64_t gemv_q4__fixed_tile_chunks(int64_t chunks, int64_t tile);

uint64_t gemv_q4__fixed_packed_bytes(const cb_problem *problem, const int64_t *tunables,
                                     int operand);
void gemv_q4__fixed_prepare(const cb_problem *problem, const int64_t *tunables, int operand,
                            const void *logical, void *packed, int part, int parts);

#endif
