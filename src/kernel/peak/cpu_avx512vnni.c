#include <immintrin.h>

#include "peak.h"

int cb__peak_dot_avx512vnni(const cb_launch *launch)
{
    const int32_t *start = launch->operands[DOT_START];
    const __m512i *u = launch->operands[DOT_U];
    __m512i s[CB__PEAK_VECTORS], v[CB__PEAK_VECTORS];
#pragma GCC unroll 12
    for (int i = 0; i < CB__PEAK_VECTORS; i++)
        s[i] = ((const __m512i *)launch->operands[DOT_S])[i];
    cb__peak_share share = cb__peak_share_of(launch);
    for (int64_t block = share.first; block < share.end; block++) {
        const int32_t *from = start + block % CB__PEAK_DOT_LANES;
        __m512i *to = (__m512i *)launch->operands[DOT_RESULT] + block * CB__PEAK_VECTORS;
#pragma GCC unroll 12
        for (int i = 0; i < CB__PEAK_VECTORS; i++)
            v[i] = _mm512_loadu_si512(from + i * 16);
        for (int turn = 0; turn < CB__PEAK_STEPS / CB__PEAK_DOT_LINES; turn++)
#pragma GCC unroll 4
            for (int line = 0; line < CB__PEAK_DOT_LINES; line++)
#pragma GCC unroll 12
                for (int i = 0; i < CB__PEAK_VECTORS; i++)
                    v[i] = _mm512_dpbusd_epi32(v[i], u[line], s[i]);
#pragma GCC unroll 12
        for (int i = 0; i < CB__PEAK_VECTORS; i++)
            to[i] = v[i];
    }
    return 0;
}
