/* random.h: counter-based random data, the same on every device and in every lane.
 *
 * cb_random(seed, operand, set, index) is SplitMix64 finalised over a key. Written out, with all
 * arithmetic modulo 2^64 and G = 0x9E3779B97F4A7C15:
 *
 *     mix(z):  z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
 *              z = (z ^ z>>27) * 0x94D049BB133111EB
 *              return z ^ z>>31
 *
 *     key  = mix(mix(mix(seed + G) + operand*G) + set*G)
 *     word = mix(key + (index + 1)*G)
 *
 * So the words of one (seed, operand, set) are exactly the SplitMix64 stream started at `key`. Test
 * vectors: tests/test_random.c, and docs/random.md for other languages.
 */
#ifndef COLDBENCH_RANDOM_H
#define COLDBENCH_RANDOM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CB_RANDOM_STEP UINT64_C(0x9E3779B97F4A7C15)

static inline uint64_t cb_random_mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/* The stream of one operand of one set; hoist it out of loops. */
static inline uint64_t cb_random_key(uint64_t seed, uint64_t operand, uint64_t set)
{
    uint64_t key = cb_random_mix(seed + CB_RANDOM_STEP);
    key = cb_random_mix(key + operand * CB_RANDOM_STEP);
    return cb_random_mix(key + set * CB_RANDOM_STEP);
}

static inline uint64_t cb_random_word(uint64_t key, uint64_t index)
{
    return cb_random_mix(key + (index + 1) * CB_RANDOM_STEP);
}

static inline uint64_t cb_random(uint64_t seed, uint64_t operand, uint64_t set, uint64_t index)
{
    return cb_random_word(cb_random_key(seed, operand, set), index);
}

/* Uniform in [0, 1) from the top 24 bits: exact in f32. */
static inline float cb_random_f32(uint64_t word)
{
    return (float)(word >> 40) * (1.0f / 16777216.0f);
}

/* Uniform in [0, 1) from the top 53 bits: exact in f64. */
static inline double cb_random_f64(uint64_t word)
{
    return (double)(word >> 11) * (1.0 / 9007199254740992.0);
}

#ifdef __cplusplus
}
#endif
#endif
