/*
 * Collective stage: the ranks of a test, with buffers of drawn values and NaN in all outputs, and
 * what comes of a call, computed on the host. Internal to the tests.
 */
#ifndef KN_COLLECTIVE_STAGE_H
#define KN_COLLECTIVE_STAGE_H

#include "collective/collective.h"
#include "test/test_device.h"

enum {
    STAGE_COUNT_MAX = 70000,
    STAGE_BYTES = (STAGE_COUNT_MAX * KN_COLLECTIVE_RANKS_MAX + 64) * 4
};

struct collective_stage {
    unsigned ranks;
    struct kn_collective *collective;
    struct tol_context *contexts[KN_COLLECTIVE_RANKS_MAX];
    struct tol_stream *streams[KN_COLLECTIVE_RANKS_MAX];
    struct tol_buffer *in[KN_COLLECTIVE_RANKS_MAX], *out[KN_COLLECTIVE_RANKS_MAX];
    struct kn_collective_part parts[KN_COLLECTIVE_RANKS_MAX];
    float *values[KN_COLLECTIVE_RANKS_MAX]; /* of each in, as its type has them */
};

/* Devices for a number of ranks; skips the test where a machine has fewer. */
void stage_begin(struct collective_stage *stage, unsigned ranks,
                 const struct kn_collective_options *options);
void stage_end(struct collective_stage *stage);

/* Draws `count` elements for each in, offset elements after its beginning; with in_place outputs
 * are inputs, otherwise they are NaN. */
void stage_fill(struct collective_stage *stage, size_t count, size_t offset, enum kn_type type,
                bool in_place, uint64_t seed);

/* Checks that out of a rank is `expected` to the bit, and that what follows it is untouched
 * unless it is in_place. */
void stage_check(struct collective_stage *stage, unsigned rank, const float *expected, size_t count,
                 enum kn_type type, bool in_place, const char *what);

/* The sum of element i in the order of the ranks, rounded once; and in a ring's. */
float stage_sum(const struct collective_stage *stage, size_t i, enum kn_type type);
float stage_ring_sum(const struct collective_stage *stage, size_t i, size_t count,
                     enum kn_type type);

#endif
