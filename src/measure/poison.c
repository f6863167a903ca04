#include "measure/poison.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "coldbench/random.h"

static float from_f16(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, fraction = h & 1023;
    if (exponent == 0)
        return (sign ? -1.0f : 1.0f) * ldexpf((float)fraction, -24);
    uint32_t bits = sign | (exponent == 31 ? 255u : exponent + 112) << 23 | fraction << 13;
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

/* Truncated: poison needs a plausible value, not the nearest one. */
static uint16_t to_f16(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, 4);
    int exponent = (int)(bits >> 23 & 255) - 112;
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    if (exponent <= 0)
        return sign;
    if (exponent > 30)
        return (uint16_t)(sign | 0x7bff);
    return (uint16_t)(sign | exponent << 10 | (bits >> 13 & 1023));
}

double cb__element_f64(cb_type type, const void *elements, uint64_t i)
{
    switch (type) {
    case CB_U8:
        return ((const uint8_t *)elements)[i];
    case CB_I8:
        return ((const int8_t *)elements)[i];
    case CB_U16:
        return ((const uint16_t *)elements)[i];
    case CB_F16:
        return (double)from_f16(((const uint16_t *)elements)[i]);
    case CB_BF16: {
        uint32_t bits = (uint32_t)((const uint16_t *)elements)[i] << 16;
        float value;
        memcpy(&value, &bits, 4);
        return (double)value;
    }
    case CB_I32:
        return ((const int32_t *)elements)[i];
    case CB_U32:
        return ((const uint32_t *)elements)[i];
    case CB_F32:
        return (double)((const float *)elements)[i];
    case CB_F64:
        return ((const double *)elements)[i];
    case CB_U64:
        return (double)((const uint64_t *)elements)[i];
    }
    return (double)NAN;
}

static void element(const cb_operand *operand, uint64_t word, void *to)
{
    double value = operand->lo + (operand->hi - operand->lo) * cb_random_f64(word);
    float single = (float)value;
    uint16_t half = to_f16(single);
    switch (operand->type) {
    case CB_F32:
        memcpy(to, &single, 4);
        break;
    case CB_F64:
        memcpy(to, &value, 8);
        break;
    case CB_F16:
        memcpy(to, &half, 2);
        break;
    case CB_BF16:
        memcpy(to, (const char *)&single + 2, 2); /* the upper half of a little-endian f32 */
        break;
    default: /* every pattern of an integer is a plausible value */
        memcpy(to, &word, cb__type_bytes(operand->type));
    }
}

static inline uint32_t bits_of(double lo, double width, bool real, uint64_t word)
{
    float value = (float)(lo + width * cb_random_f64(word));
    uint32_t bits;
    memcpy(&bits, &value, 4);
    return real ? bits : (uint32_t)word;
}

/* The common case without a call an element: outputs are large. */
static inline void fill_words(const cb_operand *operand, bool real, uint64_t key, uint32_t *to,
                              uint64_t n)
{
    double lo = operand->lo, width = operand->hi - operand->lo;
    for (uint64_t i = 0; i < n; i++)
        to[i] = bits_of(lo, width, real, cb_random_word(key, i));
}

/* No element has the bits that `before` gives it. */
static inline void fill_other_words(const cb_operand *operand, bool real, uint64_t key,
                                    uint64_t before, uint32_t *to, uint64_t n)
{
    double lo = operand->lo, width = operand->hi - operand->lo;
    for (uint64_t i = 0; i < n; i++) {
        uint32_t bits = bits_of(lo, width, real, cb_random_word(key, i));
        to[i] = bits ^ (bits == bits_of(lo, width, real, cb_random_word(before, i)));
    }
}

static void fill_32(const cb_operand *operand, uint64_t key, uint64_t before, int phase,
                    uint32_t *to, uint64_t n)
{
    bool real = operand->type == CB_F32;
    if (real && phase == 1)
        fill_other_words(operand, true, key, before, to, n);
    else if (real)
        fill_words(operand, true, key, to, n);
    else if (phase == 1)
        fill_other_words(operand, false, key, before, to, n);
    else
        fill_words(operand, false, key, to, n);
}

void cb__poison_fill(const cb_operand *operand, uint64_t seed, int index, int slot, int phase,
                     void *to, uint64_t bytes)
{
    size_t size = cb__type_bytes(operand->type);
    uint64_t key = cb_random_key(seed, 0x706f69736f6e0000u + (unsigned)index,
                                 (uint64_t)slot * CB__PHASES + (unsigned)phase);
    uint64_t before =
        cb_random_key(seed, 0x706f69736f6e0000u + (unsigned)index, (uint64_t)slot * CB__PHASES);
    if (operand->type == CB_F32 || operand->type == CB_U32 || operand->type == CB_I32) {
        fill_32(operand, key, before, phase, to, bytes / size);
        return;
    }
    for (uint64_t i = 0; i < bytes / size; i++) {
        unsigned char *at = (unsigned char *)to + i * size;
        element(operand, cb_random_word(key, i), at);
        unsigned char first[8];
        if (phase == 1) {
            element(operand, cb_random_word(before, i), first);
            if (memcmp(first, at, size) == 0)
                at[0] ^= 1;
        }
    }
}

static void guard(uint64_t seed, int slot, uint64_t from, uint64_t to, unsigned char *base)
{
    uint64_t key = cb_random_key(seed, 0x6775617264u, (uint64_t)slot);
    for (uint64_t i = from; i < to; i += 8) {
        uint64_t word = cb_random_word(key, i);
        memcpy(base + i, &word, to - i < 8 ? to - i : 8);
    }
}

void cb__poison_guards(const cb__case *c, const cb__plan *plan, uint64_t seed, int slot, void *to)
{
    uint64_t at = 0;
    for (int i = 0; i < c->kernel->noperands; i++) {
        if (!cb__role_is_written(c->kernel->operands[i].role))
            continue;
        guard(seed, slot, at, plan->offset[i], to);
        at = plan->offset[i] + c->packed_bytes[i];
    }
    guard(seed, slot, at, plan->slot_bytes, to);
}

void cb__poison_slot(const cb__case *c, const cb__plan *plan, uint64_t seed, int slot, int phase,
                     void *to)
{
    cb__poison_guards(c, plan, seed, slot, to);
    for (int i = 0; i < c->kernel->noperands; i++)
        if (cb__role_is_written(c->kernel->operands[i].role))
            cb__poison_fill(&c->kernel->operands[i], seed, i, slot, phase,
                            (unsigned char *)to + plan->offset[i], c->packed_bytes[i]);
}
