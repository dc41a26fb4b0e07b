/*
 * Place: a range of device memory that an operation reads or writes, from any allocation.
 *
 * The operation checks that its accesses are inside the place, and the alignment that it needs.
 * Pure; thread-safe.
 */
#ifndef KN_PLACE_H
#define KN_PLACE_H

#include "tollens.h"

struct kn_place {
    CUdeviceptr address; /* 0 only if nothing is accessed */
    size_t bytes;        /* from there on */
};

/* The part of a buffer from an offset on; empty if the offset is past its end. */
static inline struct kn_place kn_place_of(const struct tol_buffer *buffer, size_t offset) {
    const size_t bytes = tol_buffer_bytes(buffer);
    if (offset > bytes) return (struct kn_place){0, 0};
    return (struct kn_place){tol_buffer_address(buffer) + offset, bytes - offset};
}

/* Whether the first a_bytes of a and the first b_bytes of b overlap. */
static inline bool kn_place_overlap(struct kn_place a, size_t a_bytes, struct kn_place b,
                                    size_t b_bytes) {
    return a_bytes > 0 && b_bytes > 0 && a.address < b.address + b_bytes &&
           b.address < a.address + a_bytes;
}

#endif
