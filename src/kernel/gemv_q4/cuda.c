/* cuda.c: what the host does for cuda.cu: packing and geometry.
 *
 * Rows are taken in tiles of 16, columns in steps of 256; what is past the last row and column is
 * filled up with q = 8 and scale 0, which add nothing. Tiles follow each other, in a tile its
 * steps. No tunable changes the layout.
 *
 *     w        2048 bytes a tile and step: for each half of the step (128 columns) and of the tile
 *              (8 rows), 16 bytes a lane. Lane l has row l / 4 of the half in four words, word j of
 *              columns 8 * (l % 4) + 0..7 of group j: column i of them in the low nibble of byte i,
 *              4 + i in the high one, each as the four bits of q - 8
 *     w_scale  256 bytes a tile and step: [8 rows of a half tile][shared][2 halves][8 / shared]
 * f16, of which the last is of group shared * last + second. `shared` groups have an accumulator in
 * common, see shared_groups() */
#include <string.h>

#include "gemv_q4.h"

enum {
    TILE_ROWS = 16,
    STEP = 256,
    STEP_GROUPS = STEP / GEMV_GROUP,
    GROUP_BYTES = GEMV_GROUP / 2,
    LANES = 32,
    STEP_W_BYTES = TILE_ROWS * STEP / 2,
    STEP_SCALES = TILE_ROWS * STEP_GROUPS,
    COLUMNS = 8 /* of the second operand of a tensor core */
};

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static int64_t tile_count(const cb_problem *problem)
{
    return ceil_div(problem->shape[GEMV_ROWS], TILE_ROWS);
}

static int64_t step_count(const cb_problem *problem)
{
    return ceil_div(problem->shape[GEMV_COLS], STEP);
}

/* GROUPS of cuda.cu: q8 takes a column a token, two at least, the others one for each of the four
 * digits of x. */
static int shared_groups(const cb_problem *problem)
{
    int q8 = problem->params[GEMV_ACT] == GEMV_ACT_Q8;
    return COLUMNS / (q8 ? 2 : 4 * (int)problem->params[GEMV_TOKENS]);
}

uint64_t gemv_q4__cuda_packed_bytes(const cb_problem *problem, const int64_t *tunables, int operand)
{
    (void)tunables;
    if (operand != GEMV_W && operand != GEMV_W_SCALE)
        return gemv_q4__bytes(problem, operand);
    return (uint64_t)(tile_count(problem) * step_count(problem)) *
           (operand == GEMV_W ? STEP_W_BYTES : STEP_SCALES * sizeof(uint16_t));
}

/* Eight columns: four in the low nibbles, four in the high ones. */
static uint32_t pack_word(const uint8_t in[4])
{
    uint32_t word = 0;
    for (int i = 0; i < 8; i++) {
        uint32_t q = in[i / 2] >> (i % 2 * 4) & 15u;
        word |= (q ^ 8u) << (i % 4 * 8 + i / 4 * 4);
    }
    return word;
}

/* A tile and step in the logical layout, filled up. */
typedef struct patch {
    uint8_t w[TILE_ROWS][STEP_GROUPS][GROUP_BYTES];
    uint16_t scale[TILE_ROWS][STEP_GROUPS];
} patch;

static void patch_read(const cb_problem *problem, int operand, int64_t tile, int64_t step,
                       const void *logical, patch *out)
{
    const int64_t rows = problem->shape[GEMV_ROWS], groups = problem->shape[GEMV_COLS] / GEMV_GROUP;
    const int64_t first = step * STEP_GROUPS, left = groups - first;
    const size_t count = (size_t)(left < STEP_GROUPS ? left : STEP_GROUPS);
    memset(out->w, 0x88, sizeof out->w);
    memset(out->scale, 0, sizeof out->scale);
    for (int r = 0; r < TILE_ROWS && tile * TILE_ROWS + r < rows; r++) {
        int64_t at = (tile * TILE_ROWS + r) * groups + first;
        if (operand == GEMV_W)
            memcpy(out->w[r], (const uint8_t *)logical + at * GROUP_BYTES, count * GROUP_BYTES);
        else
            memcpy(out->scale[r], (const uint16_t *)logical + at, count * sizeof(uint16_t));
    }
}

static void pack_w(const patch *in, uint8_t *out)
{
    for (int part = 0; part < 4; part++) {
        for (int lane = 0; lane < LANES; lane++) {
            const uint8_t(*row)[GROUP_BYTES] = &in->w[part % 2 * 8 + lane / 4][part / 2 * 4];
            uint32_t words[4];
            for (int j = 0; j < 4; j++)
                words[j] = pack_word(row[j] + lane % 4 * 4);
            memcpy(out + (size_t)(part * LANES + lane) * sizeof words, words, sizeof words);
        }
    }
}

static void pack_scale(const patch *in, int shared, uint16_t *out)
{
    const int slots = STEP_GROUPS / shared;
    for (int i = 0; i < STEP_SCALES; i++) {
        int slot = i % slots, half = i / slots % 2, second = i / slots / 2 % shared;
        out[i] = in->scale[half * 8 + i / (2 * STEP_GROUPS)][slot * shared + second];
    }
}

void gemv_q4__cuda_prepare(const cb_problem *problem, const int64_t *tunables, int operand,
                           const void *logical, void *packed, int part, int parts)
{
    if (operand != GEMV_W && operand != GEMV_W_SCALE) {
        gemv_q4__prepare(problem, tunables, operand, logical, packed, part, parts);
        return;
    }
    const int64_t tiles = tile_count(problem), steps = step_count(problem);
    patch p;
    for (int64_t tile = tiles * part / parts; tile < tiles * (part + 1) / parts; tile++) {
        for (int64_t step = 0; step < steps; step++) {
            int64_t at = tile * steps + step;
            patch_read(problem, operand, tile, step, logical, &p);
            if (operand == GEMV_W)
                pack_w(&p, (uint8_t *)packed + at * STEP_W_BYTES);
            else
                pack_scale(&p, shared_groups(problem), (uint16_t *)packed + at * STEP_SCALES);
        }
    }
}

/* Steps of x that the warps hold at once, as WINDOW_TURNS of cuda.cu: under 48 KiB if there are not
 * more warps than that. */
static int64_t window_steps(const cb_problem *problem, int64_t warps)
{
    int q8 = problem->params[GEMV_ACT] == GEMV_ACT_Q8;
    int64_t turns = ceil_div(step_count(problem), warps);
    int64_t most = (q8 ? 160 : 44) / problem->params[GEMV_TOKENS] / warps;
    if (most == 0)
        most = 1;
    return warps * (turns < most ? turns : most);
}

/* Bytes of shared memory for them: a plane for each digit, and the scales. */
static int64_t x_bytes(const cb_problem *problem, int64_t steps)
{
    const int64_t gap = 64, tokens = problem->params[GEMV_TOKENS];
    const int64_t digits = problem->params[GEMV_ACT] == GEMV_ACT_Q8 ? 1 : 4;
    return tokens * (digits * (steps * STEP + gap) + steps * STEP_GROUPS * (int64_t)sizeof(float));
}

static int geometry(const cb_problem *problem, const int64_t *tunables, int processors,
                    int64_t ring_bytes, cb_geometry *out)
{
    /* SUM_BYTES: for the sums of all rounds; with x, under 64 KiB. WARPS_MOST: on one
     * multiprocessor; SHARED_MOST: a block of capability 9.0. */
    enum { SUM_BYTES = 15 * 1024, WARPS_MOST = 64, SHARED_MOST = 227 * 1024 };
    const int64_t warps = tunables[GEMV_CUDA_WARPS], block_rows = tunables[GEMV_CUDA_BLOCK_ROWS];
    const int64_t blocks = ceil_div(problem->shape[GEMV_ROWS], block_rows);
    const int64_t round_bytes =
        warps * block_rows * problem->params[GEMV_TOKENS] * (int64_t)sizeof(float);
    /* Also where there are fewer rows: launches overlap, and while a block without rows holds its
     * place, the blocks of the next launch are spread over all processors evenly. */
    int64_t grid = processors * tunables[GEMV_CUDA_BLOCKS];
    /* Blocks that stay for too many rounds to keep their sums: more of them instead. */
    if (ceil_div(blocks, grid) > SUM_BYTES / round_bytes)
        grid = ceil_div(blocks, SUM_BYTES / round_bytes);
    int64_t shared = ring_bytes + x_bytes(problem, window_steps(problem, warps)) +
                     ceil_div(blocks, grid) * round_bytes;
    if (warps * tunables[GEMV_CUDA_BLOCKS] > WARPS_MOST || shared > SHARED_MOST)
        return 1;
    *out = (cb_geometry){
        .grid = {(uint32_t)grid, 1, 1},
        .block = {(uint32_t)warps * LANES, 1, 1},
        .shared_bytes = (uint32_t)shared,
    };
    return 0;
}

int gemv_q4__cuda_geometry(const cb_problem *problem, const int64_t *tunables, int processors,
                           cb_geometry *out)
{
    return geometry(problem, tunables, processors, 0, out);
}

int gemv_q4__cuda_bulk_geometry(const cb_problem *problem, const int64_t *tunables, int processors,
                                cb_geometry *out)
{
    /* A stage: a step of each tile of a warp, and a barrier. */
    const int64_t tiles = tunables[GEMV_CUDA_BLOCK_ROWS] / TILE_ROWS, barrier = 8;
    const int64_t stage =
        tiles * (STEP_W_BYTES + STEP_SCALES * (int64_t)sizeof(uint16_t)) + barrier;
    return geometry(problem, tunables, processors,
                    tunables[GEMV_CUDA_WARPS] * tunables[GEMV_CUDA_AHEAD] * stage, out);
}
