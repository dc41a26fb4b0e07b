/*
 * Dequantise: blocks of Q4_K, Q6_K or Q8_0 on the device to floats or halves.
 *
 * Floats are, bit for bit, those of kn_quant_values; halves are these, rounded to nearest even. A
 * block whose d or dmin is infinite or no number gives what IEEE arithmetic gives.
 * Queues one kernel and waits for nothing. Thread-safe, as tol_launch is.
 */
#ifndef KN_DEQUANTISE_H
#define KN_DEQUANTISE_H

#include "kernel_set.h"
#include "place.h"
#include "quant_block.h"

struct kn_dequantise {
    enum kn_quant quant;
    enum kn_type type;      /* of the values: KN_F32 or KN_F16 */
    size_t count;           /* of elements, whole blocks; 0 does nothing */
    struct kn_place blocks; /* count / kn_quant_block_elements blocks, on an even address */
    struct kn_place values; /* count elements, on a multiple of their size; must not overlap */
    const char *variant;    /* NULL: the best; "wide" wants 16-byte alignment of values and Q4_K */
    /* NULL: the operation's own; others have the same arguments: for faults made on purpose. */
    const struct kn_variants *variants;
};

/*
 * TOL_INVALID_ARGUMENT: something is NULL, not aligned, not whole blocks or of a type that is not
 * made, or places overlap. TOL_OUT_OF_RANGE: a place has fewer bytes than are read or written.
 * TOL_NOT_FOUND and TOL_UNSUPPORTED as kn_variant_pick. TOL_OVER_LIMIT: more than a grid can have.
 * Nothing has been queued then.
 */
TOL_API tol_status kn_dequantise(struct kn_kernels *kernels, struct tol_stream *stream,
                                 const struct kn_dequantise *problem);

/* The kernels for blocks and values of a kind, best first. */
TOL_API const struct kn_variants *kn_dequantise_variants(enum kn_quant quant, enum kn_type type);

#endif
