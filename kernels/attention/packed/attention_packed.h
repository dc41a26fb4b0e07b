/*
 * attention over packed sequences: sequences of different lengths, one after the other, without
 * padding. Where each begins is data on the device, so a graph with this call serves any lengths.
 *
 * Rows q_begins[s] to q_begins[s + 1] of q and out are those of sequence s, and keys kv_begins[s]
 * to kv_begins[s + 1] of k and v are its keys. Each sequence is its own problem of attention.h:
 * causal is aligned to the end of its keys, a window counts its keys, and its results are the bits
 * that kn_attention gives for it alone with the variant of the same name. If it has no keys, they
 * are zeros and -infinity. Rows and keys of other sequences and of none have no effect, NaN and
 * infinities included, but may be read; rows of no sequence are not written. A beginning below its
 * predecessor, or after the last row, is clamped to that. If a sequence has more rows or keys than
 * q_length or kv_length, the first ones count.
 */
#ifndef KN_ATTENTION_PACKED_H
#define KN_ATTENTION_PACKED_H

#include "attention/forward/attention.h"

struct kn_attention_packed {
    /* batch: the number of sequences; q_length and kv_length: the rows and keys of the longest, for
     * which blocks are launched. Batch strides are not used; all three strides 0:
     * [head][row][element]. lse: [heads][q_rows]. workspace, variant and variants are ignored. */
    struct kn_attention attention;
    size_t q_rows, kv_rows;                        /* of all sequences */
    const struct tol_buffer *q_begins, *kv_begins; /* int32, batch + 1, from the beginning on */
    const char *variant;                /* forces the variant of this name; NULL: the best */
    const struct kn_variants *variants; /* another table; NULL: kn_attention_packed_variants */
};

/*
 * Queues it. If there is no sequence, head or row it queues nothing and returns TOL_OK.
 *
 * TOL_INVALID_ARGUMENT: as kn_attention; begins are missing, or out or lse overlaps them.
 * TOL_OUT_OF_RANGE: as kn_attention for the rows of all sequences, or begins do not fit their
 * buffer. TOL_OVER_LIMIT: more than 65,535 sequences or heads, or 2^31 - 256 rows or keys. Else
 * fails as kn_attention does. Thread-safe, as kernels and streams are.
 */
TOL_API tol_status kn_attention_packed(struct kn_kernels *kernels, struct tol_stream *stream,
                                       const struct kn_attention_packed *packed);

/* "wgmma": fp16 and bf16 with heads of up to 128 or of 200 to 256 elements, in multiples of 8, in
 * aligned rows, on compute capability 9.0 alone; "tensor": fp16 and bf16 with heads of 64, 96, 128
 * and 256 elements in aligned rows, on 8.0 or later; "naive": all. */
extern const struct kn_variants kn_attention_packed_variants;

/* Kernels as "wgmma" with one planted defect each, for sabotage: fp16 with heads of up to 64
 * elements. */
extern const struct kn_variants kn_attention_packed_defects;

#endif
