/* data.c: sizes, random contents and the f64 reference of gemv_q4. */
#include <string.h>

#include "gemv_q4.h"

uint64_t gemv_q4__bytes(const cb_problem *problem, int operand)
{
    uint64_t rows = (uint64_t)problem->shape[GEMV_ROWS], cols = (uint64_t)problem->shape[GEMV_COLS];
    uint64_t tokens = (uint64_t)problem->params[GEMV_TOKENS];
    int64_t act = problem->params[GEMV_ACT];
    switch (operand) {
    case GEMV_W:
        return rows * cols / 2;
    case GEMV_W_SCALE:
        return rows * (cols / GEMV_GROUP) * sizeof(uint16_t);
    case GEMV_X:
        return act == GEMV_ACT_F32 ? tokens * cols * sizeof(float) : 0;
    case GEMV_XQ:
        return act == GEMV_ACT_Q8 ? tokens * cols : 0;
    case GEMV_X_SCALE:
        return act == GEMV_ACT_Q8 ? tokens * (cols / GEMV_GROUP) * sizeof(float) : 0;
    case GEMV_XB:
        return act == GEMV_ACT_BF16 ? tokens * cols * sizeof(uint16_t) : 0;
    default:
        return rows * tokens * sizeof(float);
    }
}

float gemv_q4__f16(uint16_t bits)
{
    uint32_t exponent = bits >> 10 & 31u, mantissa = bits & 1023u;
    uint32_t sign = (uint32_t)(bits & 0x8000u) << 16, word;
    float value;
    if (exponent == 0) {
        value = (float)mantissa * (1.0f / 16777216.0f);
        memcpy(&word, &value, sizeof word);
        word |= sign;
    } else if (exponent == 31) {
        word = sign | 0x7f800000u | mantissa << 13;
    } else {
        word = sign | (exponent + 112) << 23 | mantissa << 13;
    }
    memcpy(&value, &word, sizeof value);
    return value;
}

/* The upper 8 bits of an f32 in [-1, 1), rounded to even. */
static uint16_t bf16_of(float value)
{
    uint32_t word;
    memcpy(&word, &value, sizeof word);
    return (uint16_t)((word + 0x7fffu + (word >> 16 & 1u)) >> 16);
}

/* The elements that one random word makes. */
static void fill_word(int operand, uint64_t word, uint8_t *w, uint16_t *out16, float *x, int8_t *xq)
{
    /* f16 patterns of 0.001 and 0.02; patterns between them are spread evenly. */
    enum { SCALE_LOW = 0x1419, SCALE_HIGH = 0x251f };
    switch (operand) {
    case GEMV_W:
        for (int i = 0; i < 8; i++)
            w[i] = (uint8_t)(word >> (8 * i));
        break;
    case GEMV_W_SCALE:
        for (int i = 0; i < 4; i++) {
            uint32_t bits = (uint32_t)(word >> (16 * i)) & 0xffffu;
            uint32_t pattern = SCALE_LOW + ((bits >> 3) * (SCALE_HIGH - SCALE_LOW + 1) >> 13);
            out16[i] = (uint16_t)(pattern | ((bits & 7u) == 0 ? 0x8000u : 0));
        }
        break;
    case GEMV_X:
        *x = 2.0f * cb_random_f32(word) - 1.0f;
        break;
    case GEMV_XB:
        out16[0] = bf16_of(2.0f * cb_random_f32(word) - 1.0f);
        break;
    case GEMV_X_SCALE:
        *x = 0.004f + 0.008f * cb_random_f32(word);
        break;
    default:
        for (int i = 0; i < 8; i++)
            xq[i] = (int8_t)((int)((word >> (8 * i) & 255u) * 255u >> 8) - 127);
    }
}

/* Bytes that fill_word() makes. */
static uint64_t bytes_of_word(int operand)
{
    switch (operand) {
    case GEMV_X:
    case GEMV_X_SCALE:
        return sizeof(float);
    case GEMV_XB:
        return sizeof(uint16_t);
    default:
        return 8;
    }
}

void gemv_q4__fill(const cb_problem *problem, uint64_t seed, int operand, uint64_t set,
                   void *logical, int part, int parts)
{
    uint64_t key = cb_random_key(seed, (uint64_t)operand, set);
    uint64_t bytes = gemv_q4__bytes(problem, operand);
    uint64_t step = bytes_of_word(operand);
    uint64_t words = (bytes + step - 1) / step;
    uint64_t first = words * (uint64_t)part / (uint64_t)parts;
    uint64_t end = words * ((uint64_t)part + 1) / (uint64_t)parts;
    uint8_t *out = logical;
    for (uint64_t i = first; i < end; i++) {
        union {
            uint8_t w[8];
            uint16_t out16[4];
            float x;
            int8_t xq[8];
        } made;
        fill_word(operand, cb_random_word(key, i), made.w, made.out16, &made.x, made.xq);
        uint64_t left = bytes - i * step;
        memcpy(out + i * step, &made, (size_t)(left < step ? left : step));
    }
}

/* Sum of (q-8)*x and of |q-8|*|x| over one group, for x as given. */
typedef struct group_sum {
    double value, magnitude;
} group_sum;

static group_sum group_f32(const uint8_t *w, const float *x)
{
    double even = 0, odd = 0, even_abs = 0, odd_abs = 0;
    for (int i = 0; i < GEMV_GROUP / 2; i++) {
        double low = (double)((int)(w[i] & 15u) - 8) * (double)x[2 * i];
        double high = (double)((int)(w[i] >> 4) - 8) * (double)x[2 * i + 1];
        even += low;
        odd += high;
        even_abs += __builtin_fabs(low);
        odd_abs += __builtin_fabs(high);
    }
    return (group_sum){even + odd, even_abs + odd_abs};
}

static group_sum group_q8(const uint8_t *w, const int8_t *xq, double x_scale)
{
    int32_t value = 0, magnitude = 0;
    for (int i = 0; i < GEMV_GROUP / 2; i++) {
        int32_t low = ((int32_t)(w[i] & 15u) - 8) * xq[2 * i];
        int32_t high = ((int32_t)(w[i] >> 4) - 8) * xq[2 * i + 1];
        value += low + high;
        magnitude += (low < 0 ? -low : low) + (high < 0 ? -high : high);
    }
    return (group_sum){value * x_scale, magnitude * __builtin_fabs(x_scale)};
}

static group_sum group_bf16(const uint8_t *w, const uint16_t *xb)
{
    float x[GEMV_GROUP];
    for (int i = 0; i < GEMV_GROUP; i++)
        x[i] = gemv_q4__bf16(xb[i]);
    return group_f32(w, x);
}

/* The group of activations from element `at` on, with the weights at `w`. */
static group_sum group_any(const cb_problem *problem, const void *const *logical, const uint8_t *w,
                           uint64_t at)
{
    switch (problem->params[GEMV_ACT]) {
    case GEMV_ACT_F32:
        return group_f32(w, (const float *)logical[GEMV_X] + at);
    case GEMV_ACT_Q8:
        return group_q8(w, (const int8_t *)logical[GEMV_XQ] + at,
                        (double)((const float *)logical[GEMV_X_SCALE])[at / GEMV_GROUP]);
    default:
        return group_bf16(w, (const uint16_t *)logical[GEMV_XB] + at);
    }
}

static int ceil_log2(int64_t n)
{
    int bits = 0;
    while (INT64_C(1) << bits < n)
        bits++;
    return bits;
}

/* The bound is that of pairwise summation (Higham, Accuracy and Stability of Numerical Algorithms,
 * 2nd ed., 4.2): u * (ceil(log2(n)) + m) * sum |w||x|, where n terms are added and each carries m
 * roundings of its own. f32: n = cols, m = 2 (product, scale). bf16: m = 1, a product of 8 and 4
 * bits is exact. q8: the integer dot of a group is exact, so n = cols/32, and m = 4 (product of the
 * scales, conversion, product, one to spare for groups that are added in parts). Sums in another
 * order may exceed it in the worst case; on data of random sign their errors do not align, and
 * sequential ones stay below a tenth of it, while x rounded to f16 leaves about 2^-12 / sqrt(cols)
 * * sum |w||x|, beyond it up to 2^16 columns. */
static double growth(const cb_problem *problem)
{
    int64_t cols = problem->shape[GEMV_COLS];
    switch (problem->params[GEMV_ACT]) {
    case GEMV_ACT_F32:
        return ceil_log2(cols) + 2.0;
    case GEMV_ACT_Q8:
        return ceil_log2(cols / GEMV_GROUP) + 4.0;
    default:
        return ceil_log2(cols) + 1.0;
    }
}

void gemv_q4__reference(const cb_problem *problem, const void *const *logical, int operand,
                        uint64_t first, uint64_t count, double *value, double *bound)
{
    (void)operand; /* y is the only output */
    const double unit = 0x1p-24;
    uint64_t tokens = (uint64_t)problem->params[GEMV_TOKENS];
    uint64_t cols = (uint64_t)problem->shape[GEMV_COLS], groups = cols / GEMV_GROUP;
    double factor = unit * growth(problem);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t row = (first + i) / tokens, token = (first + i) % tokens;
        const uint8_t *w = (const uint8_t *)logical[GEMV_W] + row * (cols / 2);
        const uint16_t *scale = (const uint16_t *)logical[GEMV_W_SCALE] + row * groups;
        double sum = 0, magnitude = 0;
        for (uint64_t g = 0; g < groups; g++) {
            uint64_t at = token * cols + g * GEMV_GROUP;
            group_sum part = group_any(problem, logical, w + g * (GEMV_GROUP / 2), at);
            double s = (double)gemv_q4__f16(scale[g]);
            sum += s * part.value;
            magnitude += __builtin_fabs(s) * part.magnitude;
        }
        value[i] = sum;
        bound[i] = factor * magnitude;
    }
}
