#include "device/digest.h"

#include <string.h>

#include "coldbench/random.h"

uint64_t cb__digest_part(const void *bytes, size_t size, int part, int parts)
{
    const unsigned char *from = bytes;
    size_t words = size / 8;
    size_t first = words / (size_t)parts * (size_t)part;
    size_t end = part == parts - 1 ? words : words / (size_t)parts * (size_t)(part + 1);
    uint64_t sum = 0;
    for (size_t i = first; i < end; i++) {
        uint64_t word;
        memcpy(&word, from + i * 8, 8);
        sum += cb_random_mix(word + (i + 1) * CB_RANDOM_STEP);
    }
    if (part == parts - 1 && size % 8) {
        uint64_t word = 0;
        memcpy(&word, from + words * 8, size % 8);
        sum += cb_random_mix(word + (words + 1) * CB_RANDOM_STEP);
    }
    return sum;
}

uint64_t cb__digest(const void *bytes, size_t size)
{
    return cb__digest_part(bytes, size, 0, 1);
}
