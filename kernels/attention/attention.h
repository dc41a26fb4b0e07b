/*
 * attention: out = softmax(scale q k^T) v, head by head, with the online softmax: no matrix of
 * scores is ever in memory.
 *
 * q and out are batch x heads x q_length rows of head_size elements, k and v batch x kv_heads x
 * kv_length; heads / kv_heads heads of q share one of k and v (grouped-query attention). Strides
 * are free, so heads may lie between rows or around them. Causal is aligned to the end: row r sees
 * the keys 0 to r + kv_length - q_length, so the last row sees all, and with more rows than keys
 * the first see none. Sums are in float.
 *
 * A row that sees no key, or only scores of -infinity, becomes zeros, with -infinity as its
 * logarithm. A NaN in q, or in a key that a row sees, makes the row NaN, and so does a score of
 * +infinity. NaN and infinities in v go to the rows that see them; a row that does not see their
 * key may become NaN by them, as 0 times them is NaN.
 * Source: spec 004 section 2.3, H6; Dao et al., FlashAttention (arXiv 2205.14135), algorithm 1;
 * FlashAttention-2 (arXiv 2307.08691).
 */
#ifndef KN_ATTENTION_H
#define KN_ATTENTION_H

#include "kernel_set.h"
#include "number.h"

struct kn_heads {
    const struct tol_buffer *buffer;
    size_t offset; /* of the first element, in elements */
    /* In elements; all three 0: [batch][head][row][element] without gaps. */
    size_t batch_stride, head_stride, row_stride;
};

struct kn_attention {
    enum kn_type type; /* of q, k, v and out */
    size_t batch, heads, kv_heads, q_length, kv_length;
    size_t head_size; /* up to 256; 64, 80, 96, 128 and 256 are fast */
    bool causal;
    float scale; /* of scores; positive; 0: 1 / sqrt(head_size) */
    struct kn_heads q, k, v, out;
    /* Wanted or NULL: the natural logarithm of each row's sum of exponentials, floats from the
     * beginning on, [batch][heads][q_length]. */
    const struct tol_buffer *lse;
    /* Or NULL: where few rows of q share many keys, memory to share the keys among more blocks, as
     * much as kn_attention_workspace says or less. Two calls that may run at once need two. */
    const struct tol_buffer *workspace;
    const char *variant;                /* a name, to force it; NULL: the best */
    const struct kn_variants *variants; /* another table; NULL: kn_attention_variants */
};

/*
 * Queues it. No rows (batch, heads or q_length is 0) are TOL_OK.
 *
 * TOL_INVALID_ARGUMENT: NULL, an unknown type, heads that are no multiple of kv_heads, a head of 0
 * or more than 256 elements, a scale that is not positive and finite, no buffer, rows of out that
 * overlap, out overlapping anything. TOL_OUT_OF_RANGE: something does not lie inside its buffer, or
 * its size overflows; the message has the numbers. TOL_OVER_LIMIT: batch or heads above 65535, or
 * lengths of 2^31 - 256 and more. TOL_WRONG_CONTEXT: stream and kernels belong to different ones.
 * TOL_UNSUPPORTED, TOL_NOT_FOUND: kn_variant_pick. Else as tol_launch.
 */
TOL_API tol_status kn_attention(struct kn_kernels *kernels, struct tol_stream *stream,
                                const struct kn_attention *attention);

/* How many bytes of workspace the problem can use; 0 where it needs none. Same failures. */
TOL_API tol_status kn_attention_workspace(struct kn_kernels *kernels,
                                          const struct kn_attention *attention, size_t *bytes);

/* Which variant kn_attention would take. Same failures. */
TOL_API tol_status kn_attention_pick(struct kn_kernels *kernels,
                                     const struct kn_attention *attention,
                                     const struct kn_variant **variant);

/* "grouped": fp16 and bf16, up to 16 rows that share a head of k and v; "decode": a few rows;
 * "tensor": fp16 and bf16; "tiled": fp32; "naive": all. */
extern const struct kn_variants kn_attention_variants;

/* Variants of which each has one mistake, planted for sabotage: fp16 with heads of 64 elements. */
extern const struct kn_variants kn_attention_defects;

#endif
