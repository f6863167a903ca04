/* layout.c: packing into the layout of gemv_q4.h, and the walk over a worker's share. */
#include <string.h>

#include "gemv_q4.h"

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static int64_t block_count(const cb_problem *problem, const int64_t *tunables)
{
    return ceil_div(problem->shape[GEMV_ROWS], tunables[GEMV_BLOCK_ROWS]);
}

static int64_t chunk_count(const cb_problem *problem)
{
    return ceil_div(problem->shape[GEMV_COLS], GEMV_CHUNK);
}

static uint64_t chunk_bytes(int operand)
{
    return operand == GEMV_W ? GEMV_CHUNK_BYTES : GEMV_CHUNK_GROUPS * sizeof(uint16_t);
}

uint64_t gemv_q4__packed_bytes(const cb_problem *problem, const int64_t *tunables, int operand)
{
    if (operand != GEMV_W && operand != GEMV_W_SCALE)
        return gemv_q4__bytes(problem, operand);
    return (uint64_t)block_count(problem, tunables) * (uint64_t)chunk_count(problem) *
           (uint64_t)tunables[GEMV_BLOCK_ROWS] * chunk_bytes(operand);
}

static void pack_words(const uint8_t *in, uint8_t *out)
{
    uint32_t words[GEMV_GROUP] = {0};
    for (int k = 0; k < GEMV_CHUNK_GROUPS; k++) {
        for (int i = 0; i < GEMV_GROUP / 2; i++) {
            uint32_t byte = in[k * (GEMV_GROUP / 2) + i];
            words[2 * i] |= (byte & 15u) << (4 * k);
            words[2 * i + 1] |= (byte >> 4) << (4 * k);
        }
    }
    memcpy(out, words, sizeof words);
}

static void pack_bytes(const uint8_t *in, uint8_t *out)
{
    for (int j = 0; j < 2; j++) {
        for (int i = 0; i < 32; i++) {
            uint8_t low = in[64 * j + i], high = in[64 * j + 32 + i];
            out[64 * j + 2 * i] = (uint8_t)((low & 15u) | (uint8_t)(high << 4));
            out[64 * j + 2 * i + 1] = (uint8_t)((low >> 4) | (high & 0xf0u));
        }
    }
}

/* One row's part of one chunk: `bytes` of it exist in the logical layout, possibly none. */
static void pack_chunk(int act, int operand, const uint8_t *logical, size_t bytes, uint8_t *out)
{
    if (operand == GEMV_W_SCALE) {
        memset(out, 0, (size_t)chunk_bytes(operand));
        if (bytes > 0)
            memcpy(out, logical, bytes);
        return;
    }
    uint8_t in[GEMV_CHUNK_BYTES];
    memset(in, 0x88, sizeof in);
    if (bytes > 0)
        memcpy(in, logical, bytes);
    if (act == GEMV_ACT_Q8)
        pack_bytes(in, out);
    else
        pack_words(in, out);
}

static void prepare_weight(const cb_problem *problem, const int64_t *tunables, int operand,
                           const uint8_t *logical, uint8_t *packed, int part, int parts)
{
    int64_t rows = problem->shape[GEMV_ROWS], chunks = chunk_count(problem);
    int64_t block_rows = tunables[GEMV_BLOCK_ROWS];
    int64_t blocks = block_count(problem, tunables);
    int64_t out_bytes = (int64_t)chunk_bytes(operand);
    int64_t row_bytes = (int64_t)gemv_q4__bytes(problem, operand) / rows;
    for (int64_t block = blocks * part / parts; block < blocks * (part + 1) / parts; block++) {
        for (int64_t r = 0; r < block_rows; r++) {
            int64_t row = block * block_rows + r;
            for (int64_t c = 0; c < chunks; c++) {
                int64_t bytes = row_bytes - c * out_bytes;
                if (row >= rows)
                    bytes = 0;
                else if (bytes > out_bytes)
                    bytes = out_bytes;
                pack_chunk((int)problem->params[GEMV_ACT], operand,
                           bytes > 0 ? logical + row * row_bytes + c * out_bytes : NULL,
                           (size_t)bytes,
                           packed + ((block * chunks + c) * block_rows + r) * out_bytes);
            }
        }
    }
}

void gemv_q4__prepare(const cb_problem *problem, const int64_t *tunables, int operand,
                      const void *logical, void *packed, int part, int parts)
{
    if (operand == GEMV_W || operand == GEMV_W_SCALE) {
        prepare_weight(problem, tunables, operand, logical, packed, part, parts);
        return;
    }
    /* Activations change with every launch of a real program: nothing is done to them here. */
    if (part == 0)
        memcpy(packed, logical, (size_t)gemv_q4__bytes(problem, operand));
}

static void fill_tail(gemv_q4_work *work)
{
    int64_t first = work->full_chunks * GEMV_CHUNK;
    size_t left = (size_t)(work->cols - first);
    if (left == 0)
        return;
    memset(&work->tail, 0, sizeof work->tail);
    for (int t = 0; t < work->tokens; t++) {
        int64_t from = t * work->cols + first;
        if (work->x != NULL) {
            memcpy(work->tail.x[t], work->x + from, left * sizeof(float));
        } else if (work->xb != NULL) {
            memcpy(work->tail.xb[t], work->xb + from, left * sizeof(uint16_t));
        } else {
            memcpy(work->tail.xq[t], work->xq + from, left);
            memcpy(work->tail.x_scale[t], work->x_scale + from / GEMV_GROUP,
                   left / GEMV_GROUP * sizeof(float));
        }
    }
}

static void work_init(gemv_q4_work *work, const cb_launch *launch)
{
    const cb_problem *problem = &launch->problem;
    work->rows = problem->shape[GEMV_ROWS];
    work->cols = problem->shape[GEMV_COLS];
    work->tokens = (int)problem->params[GEMV_TOKENS];
    work->block_rows = (int)launch->tunables[GEMV_BLOCK_ROWS];
    work->blocks = block_count(problem, launch->tunables);
    work->chunks = chunk_count(problem);
    work->full_chunks = work->cols / GEMV_CHUNK;
    work->w = launch->operands[GEMV_W];
    work->w_scale = launch->operands[GEMV_W_SCALE];
    work->x = launch->operands[GEMV_X];
    work->xq = launch->operands[GEMV_XQ];
    work->x_scale = launch->operands[GEMV_X_SCALE];
    work->xb = launch->operands[GEMV_XB];
    work->y = launch->operands[GEMV_Y];
    fill_tail(work);
}

static void deal(gemv_q4_work *work, const cb_launch *launch)
{
    int64_t grain_rows = launch->tunables[GEMV_GRAIN_ROWS];
    if (grain_rows == 0) {
        work->first = work->blocks * launch->worker / launch->workers;
        work->grain = work->blocks * (launch->worker + 1) / launch->workers - work->first;
        work->stride = work->blocks;
    } else {
        work->grain = ceil_div(grain_rows, work->block_rows);
        work->first = work->grain * launch->worker;
        work->stride = work->grain * launch->workers;
    }
}

int gemv_q4__run(const cb_launch *launch, gemv_q4_loops loops, int64_t prefetch)
{
    gemv_q4_work work;
    work_init(&work, launch);
    work.prefetch = prefetch;
    int size = work.block_rows == 8 ? 3 : work.block_rows / 2; /* log2 */
    gemv_q4_blocks *loop =
        loops[launch->problem.params[GEMV_ACT]][size][launch->problem.params[GEMV_TOKENS] - 1];
    if (loop == NULL)
        return 1;
    deal(&work, launch);
    loop(&work);
    return 0;
}
