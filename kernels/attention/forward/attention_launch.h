/*
 * Launches a kernel of attention, of all operations: with tensor maps before its arguments or
 * without. Internal.
 */
#ifndef KN_ATTENTION_LAUNCH_H
#define KN_ATTENTION_LAUNCH_H

#include "attention/forward/attention.h"

/* One thread block for each tile of rows of q, head and batch. A variant without tiles has a warp
 * for each row, 4 warps per block. */
struct tol_launch_shape attention_tiles(const struct kn_variant *variant,
                                        const struct kn_attention *x);

/* The warps of a block of variants without tiles. */
enum { ATTENTION_WARPS = 4, ATTENTION_LAUNCH_MAPS_MAX = 7 };

/* What is launched. */
struct attention_launch {
    const struct tol_kernel *kernel;
    struct tol_launch_shape shape;
    CUtensorMap *maps; /* the first map_count parameters */
    unsigned map_count;
    bool is_programmatic; /* by programmatic dependent launch */
};

/* arguments: the last parameter, of `bytes` bytes. Fails as tol_launch does. */
tol_status attention_launch(struct tol_stream *stream, const struct attention_launch *launch,
                            void *arguments, unsigned bytes);

#endif
