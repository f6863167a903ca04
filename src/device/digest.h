/* digest.h: a 64-bit digest of bytes that many threads, or a GPU, can compute in pieces.
 *
 * The range is read as little-endian 64-bit words w[i], the last one padded with zero bytes. The
 * digest is the sum over i of mix(w[i] + (i + 1) * G), modulo 2^64, G and mix being those of
 * coldbench/random.h: every word counts with its place, and the order of summation does not matter.
 */
#ifndef CB_DEVICE_DIGEST_H
#define CB_DEVICE_DIGEST_H

#include <stddef.h>
#include <stdint.h>

/* Share `part` of `parts` of the digest; the sum over parts is the digest. */
uint64_t cb__digest_part(const void *bytes, size_t size, int part, int parts);
uint64_t cb__digest(const void *bytes, size_t size);

#endif
