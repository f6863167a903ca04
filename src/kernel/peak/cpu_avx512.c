#include <immintrin.h>

#include "peak.h"

#define FMA_RUN run_f32
#define FMA_NUMBER float
#define FMA_VECTOR __m512
#define FMA_STEP _mm512_fmadd_ps
#define FMA_LANES CB__PEAK_F32_LANES
#define FMA_OPERAND FMA_F32_START
#include "fma.h"

#define FMA_RUN run_f64
#define FMA_NUMBER double
#define FMA_VECTOR __m512d
#define FMA_STEP _mm512_fmadd_pd
#define FMA_LANES CB__PEAK_F64_LANES
#define FMA_OPERAND FMA_F64_START
#include "fma.h"

int cb__peak_fma_avx512(const cb_launch *launch)
{
    (launch->problem.params[FMA_TYPE] == FMA_F32 ? run_f32 : run_f64)(launch);
    return 0;
}
