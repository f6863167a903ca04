#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "fault_scale.h"

/* One worker's share of [0, n). */
typedef struct span {
    const float *x;
    float factor, *y;
    int64_t n, from, to;
    bool last; /* it has the last element */
} span;

static span span_of(const cb_launch *launch)
{
    int64_t n = launch->problem.shape[0];
    const float *factor = launch->operands[FACTOR];
    return (span){.x = launch->operands[X],
                  .y = launch->operands[Y],
                  .factor = *factor,
                  .n = n,
                  .from = n * launch->worker / launch->workers,
                  .to = n * (launch->worker + 1) / launch->workers,
                  .last = launch->worker == launch->workers - 1};
}

static span scale(const cb_launch *launch)
{
    span s = span_of(launch);
    for (int64_t i = s.from; i < s.to; i++)
        s.y[i] = s.factor * s.x[i];
    return s;
}

static float bf16_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits = (bits + 0x8000) & 0xffff0000u;
    memcpy(&value, &bits, sizeof bits);
    return value;
}

int cb__fault_scale_clean(const cb_launch *launch)
{
    scale(launch);
    return 0;
}

int cb__fault_scale_unwritten(const cb_launch *launch)
{
    span s = span_of(launch);
    int64_t end = s.n - (s.n + 7) / 8;
    for (int64_t i = s.from; i < s.to && i < end; i++)
        s.y[i] = s.factor * s.x[i];
    return 0;
}

int cb__fault_scale_short_grid(const cb_launch *launch)
{
    span s = span_of(launch);
    for (int64_t i = s.from; i < s.from + (s.to - s.from) / 2; i++)
        s.y[i] = s.factor * s.x[i];
    return 0;
}

int cb__fault_scale_beyond(const cb_launch *launch)
{
    span s = scale(launch);
    if (s.last)
        s.y[s.n] = s.factor;
    return 0;
}

int cb__fault_scale_before(const cb_launch *launch)
{
    span s = scale(launch);
    if (s.last)
        s.y[-1] = s.factor;
    return 0;
}

int cb__fault_scale_wrong(const cb_launch *launch)
{
    span s = scale(launch);
    if (s.last)
        s.y[s.n - 1] *= 1.01f;
    return 0;
}

int cb__fault_scale_imprecise(const cb_launch *launch)
{
    span s = span_of(launch);
    for (int64_t i = s.from; i < s.to; i++)
        s.y[i] = bf16_of(s.factor * s.x[i]);
    return 0;
}

int cb__fault_scale_nan(const cb_launch *launch)
{
    span s = scale(launch);
    if (s.last)
        s.y[s.n - 1] = NAN;
    return 0;
}

int cb__fault_scale_edits(const cb_launch *launch)
{
    span s = scale(launch);
    if (s.last)
        ((float *)launch->operands[X])[s.n - 1] = 0.5f;
    return 0;
}

int cb__fault_scale_fails(const cb_launch *launch)
{
    scale(launch);
    return 1;
}
