/*
 * Pattern: bytes that say where they belong. Each depends on a seed, which names the pair and the
 * trial, and on its position, so bytes of another pair, of another trial or from another place do
 * not pass for it.
 */
#ifndef HYP_PEER_PATTERN_H
#define HYP_PEER_PATTERN_H

#include <stddef.h>
#include <stdint.h>

/* Eight bytes of the pattern, from byte 8 * index on. */
static inline uint64_t peer_word(uint64_t seed, uint64_t index) {
    uint64_t x = (seed + index) * 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9u;
    return x ^ x >> 32;
}

static inline unsigned char peer_byte(uint64_t seed, uint64_t at) {
    return (unsigned char)(peer_word(seed, at / 8) >> (8 * (at % 8)));
}

/* Writes bytes of the pattern from position first on. Several threads share a large piece. */
void peer_pattern_write(uint64_t seed, uint64_t first, unsigned char *to, size_t bytes);

/* The first position in [first, first + bytes) whose byte differs, or first + bytes. */
uint64_t peer_pattern_difference(uint64_t seed, uint64_t first, const unsigned char *found,
                                 size_t bytes);

#endif
