/*
 * FNV-1a (Fowler, Noll, Vo): a hash of 64 bits of a sequence of bytes. Whoever wants two sequences
 * with the same hash can find them.
 */
#ifndef KN_FNV_H
#define KN_FNV_H

#include <stddef.h>
#include <stdint.h>

/* The hash of no bytes. */
#define KN_FNV_BEGIN UINT64_C(0xcbf29ce484222325)

/* The hash of a sequence with this hash, followed by `count` bytes. */
static inline uint64_t kn_fnv(uint64_t hash, const void *bytes, size_t count) {
    const unsigned char *byte = bytes;
    for (size_t i = 0; i < count; i++) hash = (hash ^ byte[i]) * UINT64_C(0x100000001b3);
    return hash;
}

#endif
