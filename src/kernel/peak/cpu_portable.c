#include "peak.h"

/* The compilers' 16-byte vectors: SSE2, NEON, VSX, or scalar code where there is nothing. */
typedef float vec_f32 __attribute__((vector_size(16)));
typedef double vec_f64 __attribute__((vector_size(16)));
typedef int16_t vec_i16 __attribute__((vector_size(16)));
typedef uint16_t vec_u16 __attribute__((vector_size(16)));
typedef int32_t vec_i32 __attribute__((vector_size(16)));
typedef uint32_t vec_u32 __attribute__((vector_size(16)));

#define MULTIPLY_ADD(v, a, b) ((v) * (a) + (b)) /* modules are built without contraction */

#define FMA_RUN run_f32
#define FMA_NUMBER float
#define FMA_VECTOR vec_f32
#define FMA_STEP MULTIPLY_ADD
#define FMA_LANES CB__PEAK_F32_LANES
#define FMA_OPERAND FMA_F32_START
#include "fma.h"

#define FMA_RUN run_f64
#define FMA_NUMBER double
#define FMA_VECTOR vec_f64
#define FMA_STEP MULTIPLY_ADD
#define FMA_LANES CB__PEAK_F64_LANES
#define FMA_OPERAND FMA_F64_START
#include "fma.h"

int cb__peak_fma_portable(const cb_launch *launch)
{
    (launch->problem.params[FMA_TYPE] == FMA_F32 ? run_f32 : run_f64)(launch);
    return 0;
}

/* Four lanes: products of even and of odd bytes in 16 bits, their sums likewise (the ranges of u
 * and s never fill them), and the sums of two of those in 32. */
static vec_i32 dot_chains(vec_i32 v, const uint8_t *u, const int8_t *s)
{
    vec_i16 s_pairs;
    __builtin_memcpy(&s_pairs, s, sizeof s_pairs);
    const vec_i16 s_low = (vec_i16)((vec_u16)s_pairs << 8) >> 8, s_high = s_pairs >> 8;
    for (int t = 0; t < CB__PEAK_STEPS; t++) {
        vec_u16 u_pairs;
        __builtin_memcpy(&u_pairs, u + t % CB__PEAK_DOT_LINES * CB__PEAK_DOT_LINE, sizeof u_pairs);
        vec_i16 low = (vec_i16)(u_pairs & 255) * s_low, high = (vec_i16)(u_pairs >> 8) * s_high;
        vec_i32 sums = (vec_i32)(low + high);
        v += (vec_i32)((vec_u32)sums << 16) >> 16;
        v += sums >> 16;
    }
    return v;
}

int cb__peak_dot_portable(const cb_launch *launch)
{
    enum { WIDTH = sizeof(vec_i32) / sizeof(int32_t) };
    const int32_t *start = launch->operands[DOT_START];
    const uint8_t *u = launch->operands[DOT_U];
    const int8_t *s = launch->operands[DOT_S];
    cb__peak_share share = cb__peak_share_of(launch);
    for (int64_t block = share.first; block < share.end; block++)
        for (int lane = 0; lane < CB__PEAK_DOT_LANES; lane += WIDTH) {
            int32_t *to = (int32_t *)launch->operands[DOT_RESULT] + block * CB__PEAK_DOT_LANES;
            vec_i32 v;
            __builtin_memcpy(&v, start + block % CB__PEAK_DOT_LANES + lane, sizeof v);
            v = dot_chains(v, u + 4 * lane % CB__PEAK_DOT_LINE, s + 4 * lane);
            __builtin_memcpy(to + lane, &v, sizeof v);
        }
    return 0;
}
