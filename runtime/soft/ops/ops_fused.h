/*
 * Fused: two loads and the fma of their values as one handler. Nearly every loop of a matrix
 * product has them. The values go from memory to the fma without a slot in between; fuse.c makes
 * sure that nothing else reads that slot. If the addresses of a load are neither adjacent nor
 * equal, or are invalid, the first load is executed as usual and the rest follows.
 *
 * A template, included after ops_memory.h.
 */
#ifndef SOFT_OPS_FUSED_H
#define SOFT_OPS_FUSED_H

#include "ops_vector.h"

enum { VECTORS = SOFT_LANES / VECTOR };

/* Reads what a load would. false: it is not that simple. */
static inline bool read_floats(struct soft_warp *warp, const struct soft_instruction *in,
                               vector x[VECTORS]) {
    struct range range = RANGE(warp, in);
    const ADDRESS *address = SLOT(ADDRESS, in->a);
    ADDRESS first = first_offset(warp, in, &range);
    const float *from = (const float *)(const void *)(range.host + first);
    if (is_line(address, &range, first, 4, 4) && line_is_written(&range, first, 4)) {
        for (int i = 0; i < VECTORS; i++) x[i] = READ(from + i * VECTOR);
        return true;
    }
    if (is_line(address, &range, first, 0, 4) && one_is_written(&range, first, 4)) {
        for (int i = 0; i < VECTORS; i++) x[i] = ALL(*from);
        return true;
    }
    return false;
}

/* The product of sums is that of what the two instructions load; its c is another slot. */
#define LOAD_LOAD_FMA(op, load)                                                                    \
    HANDLER(SOFT_FULL(op)) {                                                                       \
        vector x[VECTORS], y[VECTORS];                                                             \
        if (!read_floats(warp, in, x) || !read_floats(warp, in + 1, y)) {                          \
            return SOFT_FULL(load)(warp, in);                                                      \
        }                                                                                          \
        const float *c = SLOT(float, in[2].c);                                                     \
        float *d = SLOT(float, in[2].d);                                                           \
        unsigned nan = 0;                                                                          \
        for (int i = 0; i < VECTORS; i++) {                                                        \
            x[i] = FMA(x[i], y[i], READ(c + i * VECTOR));                                          \
            WRITE(d + i * VECTOR, x[i]);                                                           \
            nan |= NAN_BITS(x[i]);                                                                 \
        }                                                                                          \
        if (__builtin_expect(nan != 0, 0)) make_canonical(d);                                      \
        in += 2;                                                                                   \
        return GO_ON;                                                                              \
    }                                                                                              \
    HANDLER(SOFT_PART(op)) {                                                                       \
        return SOFT_PART(load)(warp, in);                                                          \
    }

#endif
