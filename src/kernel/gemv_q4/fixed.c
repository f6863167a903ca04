/* fixed.c: packing into the layout of fixed.h. */
#include "fixed.h"

#include <string.h>

static int64_t min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t block_count(const cb_problem *problem, const int64_t *tunables)
{
    int64_t block_rows = tunables[GEMV_BLOCK_ROWS];
    return (problem->shape[GEMV_ROWS] + block_rows - 1) / block_rows;
}

static int64_t chunk_count(const cb_problem *problem)
{
    return (problem->shape[GEMV_COLS] + FIXED_CHUNK - 1) / FIXED_CHUNK;
}

static int64_t chunk_bytes(int operand)
{
    return operand == GEMV_W ? FIXED_CHUNK_BYTES : FIXED_LANES * (int64_t)sizeof(uint16_t);
}

int64_t gemv_q4__fixed_tile_chunks(int64_t chunks, int64_t tile)
{
    return min_i64(FIXED_TILE, chunks - tile * FIXED_TILE);
}

int64_t gemv_q4__fixed_at(int64_t blocks, int64_t chunks, int64_t block_rows, int64_t tile,
                          int64_t block)
{
    return (blocks * tile * FIXED_TILE + block * gemv_q4__fixed_tile_chunks(chunks, tile)) *
           block_rows;
}

static int is_weight(int operand)
{
    return operand == GEMV_W || operand == GEMV_W_SCALE;
}

uint64_t gemv_q4__fixed_packed_bytes(const cb_problem *problem, const int64_t *tunables,
                                     int operand)
{
    if (!is_weight(operand))
        return gemv_q4__packed_bytes(problem, tunables, operand);
    return (uint64_t)(block_count(problem, tunables) * chunk_count(problem) *
                      tunables[GEMV_BLOCK_ROWS] * chunk_bytes(operand));
}

static void pack_lanes(const uint8_t *in, uint8_t *out)
{
    for (int g = 0; g < FIXED_LANES; g++) {
        for (int j = 0; j < 4; j++) {
            const uint8_t *from = in + g * (GEMV_GROUP / 2) + 4 * j;
            uint8_t *to = out + j * 64 + 4 * g;
            for (int i = 0; i < 4; i++) {
                int low = from[i / 2] >> (i % 2 * 4) & 15;
                int high = from[2 + i / 2] >> (i % 2 * 4) & 15;
                to[i] = (uint8_t)(low | high << 4);
            }
        }
    }
}

/* One row's part of one chunk, of which `bytes` exist in the logical layout, possibly none. */
static void pack_chunk(int operand, const uint8_t *logical, int64_t bytes, uint8_t *out)
{
    uint8_t in[FIXED_CHUNK_BYTES];
    int64_t all = chunk_bytes(operand);
    memset(in, operand == GEMV_W ? 0x88 : 0, (size_t)all);
    if (bytes > 0)
        memcpy(in, logical, (size_t)min_i64(bytes, all));
    if (operand == GEMV_W)
        pack_lanes(in, out);
    else
        memcpy(out, in, (size_t)all);
}

void gemv_q4__fixed_prepare(const cb_problem *problem, const int64_t *tunables, int operand,
                            const void *logical, void *packed, int part, int parts)
{
    if (!is_weight(operand)) {
        gemv_q4__prepare(problem, tunables, operand, logical, packed, part, parts);
        return;
    }
    const uint8_t *in = logical;
    int64_t rows = problem->shape[GEMV_ROWS], block_rows = tunables[GEMV_BLOCK_ROWS];
    int64_t blocks = block_count(problem, tunables), chunks = chunk_count(problem);
    int64_t row_bytes = (int64_t)gemv_q4__bytes(problem, operand) / rows;
    int64_t step = chunk_bytes(operand);
    for (int64_t block = blocks * part / parts; block < blocks * (part + 1) / parts; block++) {
        for (int64_t c = 0; c < chunks; c++) {
            int64_t tile = c / FIXED_TILE;
            int64_t at = gemv_q4__fixed_at(blocks, chunks, block_rows, tile, block) +
                         (c - tile * FIXED_TILE) * block_rows;
            for (int64_t r = 0; r < block_rows; r++) {
                int64_t row = block * block_rows + r;
                int64_t left = row < rows ? row_bytes - c * step : 0;
                pack_chunk(operand, left > 0 ? in + row * row_bytes + c * step : NULL, left,
                           (uint8_t *)packed + (at + r) * step);
            }
        }
    }
}
