/*
 * Place: a range of device memory that an operation reads or writes, wherever it comes from.
 *
 * An operation checks that what it touches lies inside the place, and that the place is aligned to
 * what it needs. Pure; thread-safe.
 */
#ifndef KN_PLACE_H
#define KN_PLACE_H

#include "tollens.h"

struct kn_place {
    CUdeviceptr address; /* 0 only where nothing is touched */
    size_t bytes;        /* from there on */
};

/* A whole buffer, and what of it lies from an offset on; nothing, where the offset is beyond. */
static inline struct kn_place kn_place_of(const struct tol_buffer *buffer, size_t offset) {
    const size_t bytes = tol_buffer_bytes(buffer);
    if (offset > bytes) return (struct kn_place){0, 0};
    return (struct kn_place){tol_buffer_address(buffer) + offset, bytes - offset};
}

/* Whether the first a_bytes of a and the first b_bytes of b have a byte in common. */
static inline bool kn_place_overlap(struct kn_place a, size_t a_bytes, struct kn_place b,
                                    size_t b_bytes) {
    return a_bytes > 0 && b_bytes > 0 && a.address < b.address + b_bytes &&
           b.address < a.address + a_bytes;
}

#endif
