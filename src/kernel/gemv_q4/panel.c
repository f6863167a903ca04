/* panel.c: packing into the layout of panel.h. */
#include "panel.h"

#include <string.h>

static int64_t block_count(const cb_problem *problem, const int64_t *tunables)
{
    int64_t block_rows = tunables[GEMV_BLOCK_ROWS];
    return (problem->shape[GEMV_ROWS] + block_rows - 1) / block_rows;
}

static int is_weight(int operand)
{
    return operand == GEMV_W || operand == GEMV_W_SCALE;
}

static uint64_t packed_bytes(const cb_problem *problem, const int64_t *tunables, int operand,
                             int lanes)
{
    if (!is_weight(operand))
        return gemv_q4__packed_bytes(problem, tunables, operand);
    int groups = panel_groups(lanes, (int)tunables[GEMV_BLOCK_ROWS]);
    return (uint64_t)(block_count(problem, tunables) * tunables[GEMV_BLOCK_ROWS] *
                      panel_all_groups(problem->shape[GEMV_COLS], groups)) *
           (operand == GEMV_W ? PANEL_W : sizeof(uint16_t));
}

/* One group of one row to its lane of four lines, the first at `out`; NULL: filling. */
static void pack_group(const uint8_t *in, uint8_t *out, int line_stride)
{
    for (int j = 0; j < 4; j++, out += line_stride) {
        for (int i = 0; i < 4; i++) {
            int low = in != NULL ? in[4 * j + i / 2] >> (i % 2 * 4) & 15 : 8;
            int high = in != NULL ? in[4 * j + 2 + i / 2] >> (i % 2 * 4) & 15 : 8;
            out[i] = (uint8_t)(low | high << 4);
        }
    }
}

/* One block of one tile: `groups` groups from group `first`. */
static void pack_block(const cb_problem *problem, int operand, int lanes, int block_rows,
                       int64_t row, int64_t first, int64_t groups, const void *logical, void *out)
{
    const int vectors = panel_vectors(lanes, block_rows), step = panel_groups(lanes, block_rows);
    const int64_t row_groups = problem->shape[GEMV_COLS] / GEMV_GROUP;
    for (int64_t at = 0; at < groups * block_rows; at++) { /* lanes of all steps and vectors */
        int lane = (int)(at % lanes), vector = (int)(at / lanes % vectors);
        int64_t g = first + at / lanes / vectors * step + lane % step;
        int64_t r = row + vector * (block_rows / vectors) + lane / step;
        int64_t from =
            r < problem->shape[GEMV_ROWS] && g < row_groups ? r * row_groups + g : INT64_C(-1);
        if (operand == GEMV_W)
            pack_group(from < 0 ? NULL : (const uint8_t *)logical + from * PANEL_W,
                       (uint8_t *)out + at / lanes / vectors * vectors * lanes * PANEL_W +
                           vector * 4 * lanes + lane * 4,
                       vectors * 4 * lanes);
        else
            ((uint16_t *)out)[at] = from < 0 ? 0 : ((const uint16_t *)logical)[from];
    }
}

static void prepare(const cb_problem *problem, const int64_t *tunables, int operand,
                    const void *logical, void *packed, int part, int parts, int lanes)
{
    if (!is_weight(operand)) {
        gemv_q4__prepare(problem, tunables, operand, logical, packed, part, parts);
        return;
    }
    int block_rows = (int)tunables[GEMV_BLOCK_ROWS];
    int64_t all = panel_all_groups(problem->shape[GEMV_COLS], panel_groups(lanes, block_rows));
    int64_t blocks = block_count(problem, tunables);
    int64_t bytes = operand == GEMV_W ? PANEL_W : (int64_t)sizeof(uint16_t);
    for (int64_t block = blocks * part / parts; block < blocks * (part + 1) / parts; block++)
        for (int64_t tile = 0; tile * PANEL_TILE < all; tile++)
            pack_block(problem, operand, lanes, block_rows, block * block_rows, tile * PANEL_TILE,
                       panel_tile_groups(all, tile), logical,
                       (uint8_t *)packed + panel_at(blocks, all, block_rows, tile, block) * bytes);
}

uint64_t gemv_q4__panel8_bytes(const cb_problem *problem, const int64_t *tunables, int operand)
{
    return packed_bytes(problem, tunables, operand, 8);
}

void gemv_q4__panel8_prepare(const cb_problem *problem, const int64_t *tunables, int operand,
                             const void *logical, void *packed, int part, int parts)
{
    prepare(problem, tunables, operand, logical, packed, part, parts, 8);
}

uint64_t gemv_q4__panel16_bytes(const cb_problem *problem, const int64_t *tunables, int operand)
{
    return packed_bytes(problem, tunables, operand, 16);
}

void gemv_q4__panel16_prepare(const cb_problem *problem, const int64_t *tunables, int operand,
                              const void *logical, void *packed, int part, int parts)
{
    prepare(problem, tunables, operand, logical, packed, part, parts, 16);
}
