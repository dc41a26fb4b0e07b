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

/* The distance between the lanes' addresses of a load, in bytes: 4, or 0. */
static inline bool read_at(const struct range *range, ADDRESS first, unsigned step,
                           vector x[VECTORS]) {
    const float *from = (const float *)(const void *)(range->host + first);
    if (step == 4) {
        if (!line_is_written(range, first, 4)) return false;
        for (int i = 0; i < VECTORS; i++) x[i] = READ(from + i * VECTOR);
    } else {
        if (!one_is_written(range, first, 4)) return false;
        for (int i = 0; i < VECTORS; i++) x[i] = ALL(*from);
    }
    return true;
}

/* Executes a simple load. false: the load is not simple. */
static inline bool read_floats(struct soft_warp *warp, const struct soft_instruction *in,
                               vector x[VECTORS], unsigned *step) {
    struct range range = RANGE(warp, in);
    const ADDRESS *address = SLOT(ADDRESS, in->a);
    ADDRESS first = first_offset(warp, in, &range);
    *step = address[1] == address[0] ? 0 : 4;
    return is_line(address, &range, first, *step, 4) && read_at(&range, first, *step, x);
}

/* The same where the addresses' slot is one whose step is known. */
static inline bool read_again(struct soft_warp *warp, const struct soft_instruction *in,
                              vector x[VECTORS], unsigned step) {
    struct range range = RANGE(warp, in);
    ADDRESS first = first_offset(warp, in, &range), whole = step * (SOFT_LANES - 1) + 4;
    return range.span >= whole && first <= range.span - whole && (first + range.low) % 4 == 0 &&
           read_at(&range, first, step, x);
}

/* Whether a product that follows another has its addresses in the same slots, and nothing was
 * written to those. */
static inline bool is_alike(const struct soft_instruction *next,
                            const struct soft_instruction *in) {
    return next[0].run[0] == in[0].run[0] && next[0].a == in[0].a && next[1].a == in[1].a &&
           in[2].d != in[0].a && in[2].d != in[1].a;
}

/* The product of sums is that of what the two instructions load; its c is another slot. Products
 * that follow each other, as in a loop that was unrolled, are one run: only the offsets differ. */
#define LOAD_LOAD_FMA(op, load)                                                                    \
    HANDLER(SOFT_FULL(op)) {                                                                       \
        vector x[VECTORS], y[VECTORS], sum[VECTORS];                                               \
        unsigned step_x, step_y;                                                                   \
        if (!read_floats(warp, in, x, &step_x) || !read_floats(warp, in + 1, y, &step_y)) {        \
            return SOFT_FULL(load)(warp, in);                                                      \
        }                                                                                          \
        for (;;) {                                                                                 \
            const float *c = SLOT(float, in[2].c);                                                 \
            float *d = SLOT(float, in[2].d);                                                       \
            unsigned nan = 0;                                                                      \
            for (int i = 0; i < VECTORS; i++) {                                                    \
                sum[i] = FMA(x[i], y[i], READ(c + i * VECTOR));                                    \
                WRITE(d + i * VECTOR, sum[i]);                                                     \
                nan |= NAN_BITS(sum[i]);                                                           \
            }                                                                                      \
            if (__builtin_expect(nan != 0, 0)) make_canonical(d);                                  \
            if (!is_alike(in + 3, in) || !read_again(warp, in + 3, x, step_x) ||                   \
                !read_again(warp, in + 4, y, step_y)) {                                            \
                break;                                                                             \
            }                                                                                      \
            in += 3;                                                                               \
        }                                                                                          \
        in += 2;                                                                                   \
        return GO_ON;                                                                              \
    }                                                                                              \
    HANDLER(SOFT_PART(op)) {                                                                       \
        return SOFT_PART(load)(warp, in);                                                          \
    }

#endif
