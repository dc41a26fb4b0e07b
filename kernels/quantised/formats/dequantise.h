/*
 * Dequantise: converts blocks of Q4_K, Q6_K or Q8_0 on the device to floats or halves.
 *
 * Floats are, bit for bit, those of kn_quant_values; halves are these, rounded to nearest even. A
 * block with an infinite or NaN d or dmin gives what IEEE arithmetic gives.
 * Queues one kernel and waits for nothing. Thread-safe, as tol_launch is.
 */
#ifndef KN_DEQUANTISE_H
#define KN_DEQUANTISE_H

#include "choose/kernel_set.h"
#include "place.h"
#include "quant_block.h"

struct kn_dequantise {
    enum kn_quant quant;
    enum kn_type type;      /* of the values: KN_F32 or KN_F16 */
    size_t count;           /* of elements, in whole blocks; 0 does nothing */
    struct kn_place blocks; /* count / kn_quant_block_elements blocks, at an even address */
    struct kn_place values; /* count elements, at a multiple of their size; must not overlap */
    const char *variant;    /* NULL: the best; "wide" needs values and Q4_K aligned to 16 bytes */
    /* NULL: the operation's own. Another table has kernels with the same arguments: planted
     * defects. */
    const struct kn_variants *variants;
};

/*
 * TOL_INVALID_ARGUMENT: an argument is NULL or misaligned, count is not whole blocks, the type is
 * not supported, or places overlap. TOL_OUT_OF_RANGE: a place is too small. TOL_NOT_FOUND and
 * TOL_UNSUPPORTED: as kn_variant_pick. TOL_OVER_LIMIT: more blocks than a grid can have. A refused
 * call queues nothing.
 */
TOL_API tol_status kn_dequantise(struct kn_kernels *kernels, struct tol_stream *stream,
                                 const struct kn_dequantise *problem);

/* The kernels for a format of blocks and a type of values, best first. */
TOL_API const struct kn_variants *kn_dequantise_variants(enum kn_quant quant, enum kn_type type);

#endif
