/*
 * attention: out = softmax(scale q k^T) v for each head, by the online softmax: the matrix of
 * scores is never in memory.
 *
 * q and out are batch x heads x q_length rows of head_size elements, k and v batch x kv_heads x
 * kv_length. heads / kv_heads heads of q share one head of k and v (grouped-query attention).
 * Strides are free, so heads may be stored inside rows or around them. Causal attention is aligned
 * to the end: row r sees the keys 0 to r + kv_length - q_length. So the last row sees all keys, and
 * if there are more rows than keys, the first rows see none. A window keeps the last of these keys:
 * row r sees the keys from r + kv_length - q_length - window + 1 on. Sums are in float.
 *
 * A row that sees no key, or only scores of -infinity, becomes zeros, and its logarithm -infinity.
 * A NaN in q, or in a key that a row sees, makes the row NaN, and so does a score of +infinity. NaN
 * and infinities in v reach the rows that see them. A row that does not see their key may become
 * NaN too, since 0 times them is NaN.
 * Source: spec 004 section 2.3, H6; Dao et al., FlashAttention (arXiv 2205.14135), algorithm 1;
 * FlashAttention-2 (arXiv 2307.08691).
 */
#ifndef KN_ATTENTION_H
#define KN_ATTENTION_H

#include "choose/kernel_set.h"
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
    size_t window; /* with causal: a row sees only the last `window` of its keys; 0: all */
    float scale;   /* of scores; positive; 0: 1 / sqrt(head_size) */
    struct kn_heads q, k, v, out;
    /* May be NULL. Receives the natural logarithm of each row's sum of exponentials, as floats from
     * the beginning of the buffer on, [batch][heads][q_length]. */
    const struct tol_buffer *lse;
    /* May be NULL. If few rows of q have many keys, a workspace lets more blocks split the keys: up
     * to kn_attention_workspace bytes are used. Calls that may run concurrently need one each. */
    const struct tol_buffer *workspace;
    const char *variant;                /* forces the variant of this name; NULL: the best */
    const struct kn_variants *variants; /* another table; NULL: kn_attention_variants */
};

/*
 * Queues it. If batch, heads or q_length is 0 it queues nothing and returns TOL_OK.
 *
 * TOL_INVALID_ARGUMENT: an argument is NULL, the type is unknown, heads is no multiple of kv_heads,
 * a head has 0 or more than 256 elements, there is a window without causal, the scale is not
 * positive and finite, a buffer is missing, rows of out overlap, or out overlaps another operand.
 * TOL_OUT_OF_RANGE: an operand is not inside its buffer, or its size overflows; the message has the
 * numbers. TOL_OVER_LIMIT: batch or heads above 65535, or a length of 2^31 - 256 or more.
 * TOL_WRONG_CONTEXT: stream and kernels belong to different contexts. TOL_UNSUPPORTED,
 * TOL_NOT_FOUND: as kn_variant_pick. Else fails as tol_launch does.
 */
TOL_API tol_status kn_attention(struct kn_kernels *kernels, struct tol_stream *stream,
                                const struct kn_attention *attention);

/* The bytes of workspace that the problem can use; 0 if it needs none. Fails as kn_attention
 * does. */
TOL_API tol_status kn_attention_workspace(struct kn_kernels *kernels,
                                          const struct kn_attention *attention, size_t *bytes);

/* The variant that kn_attention would pick. Fails as kn_attention does. */
TOL_API tol_status kn_attention_pick(struct kn_kernels *kernels,
                                     const struct kn_attention *attention,
                                     const struct kn_variant **variant);

/* The key of the problem in a tuning: type, shape, mask and alignment. Fails as kn_attention
 * does. */
TOL_API tol_status kn_attention_key(const struct kn_attention *attention,
                                    struct kn_tuning_key *key);

/* "grouped": fp16 and bf16, up to 16 rows that share a head of k and v; "decode": a few rows;
 * "wgmma": fp16 and bf16 on compute capability 9.0; "tensor": both; "tiled": fp32; "naive": all. */
extern const struct kn_variants kn_attention_variants;

/* Kernels with one planted defect each, for sabotage: fp16 with heads of 64 elements. */
extern const struct kn_variants kn_attention_defects;

#endif
