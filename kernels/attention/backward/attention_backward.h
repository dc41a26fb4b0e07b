/*
 * attention_backward: the gradients of q, k and v, from that of out.
 *
 * With P = softmax(scale q k^T), delta the product of a row of out and of d_out, and . by element:
 *     d_v = P^T d_out        d_s = P . (d_out v^T - delta)
 *     d_q = scale d_s k      d_k = scale d_s^T q
 * for each head; d_k and d_v add up the heads of q that share keys. Shapes, layouts and masks are
 * those of attention.h, windows included. P is computed again from lse, so no matrix of scores is
 * in memory. Sums are in float. With fp16 and bf16, P and d_s are rounded to the type before they
 * are multiplied, so in fp16 an element of d_s of 65520 or more becomes an infinity.
 *
 * It is deterministic: all sums have one order, and the same problem gives the same bits.
 *
 * The gradient of a row that saw no key is zero, and so is that of a key that no row sees. A NaN in
 * a row of q, out or d_out, or an lse of NaN or +infinity, makes NaN of the gradient of that row
 * and of the keys that it sees. A NaN in a key or its value makes NaN of the gradients of the rows
 * that see it. Pairs that do not see each other may take part, since 0 times NaN is NaN.
 * Source: Dao et al., FlashAttention (arXiv 2205.14135), algorithm 4; FlashAttention-2 (arXiv
 * 2307.08691), algorithm 2. The error bound: attention_backward_oracle.c.
 */
#ifndef KN_ATTENTION_BACKWARD_H
#define KN_ATTENTION_BACKWARD_H

#include "attention/forward/attention.h"

struct kn_attention_backward {
    /* What kn_attention was called with: q, k, v, out and lse are read; lse is required. Its
     * workspace and variants are ignored. */
    struct kn_attention forward;
    struct kn_heads d_out, d_q; /* shaped like q */
    struct kn_heads d_k, d_v;   /* shaped like k */
    /* At least kn_attention_backward_workspace bytes, or kn_attention_backward_workspace_of those
     * that the fastest kernel takes. Calls that may run concurrently need one each. */
    const struct tol_buffer *workspace;
    const char *variant;                /* forces the variant of this name; NULL: the best */
    const struct kn_variants *variants; /* another table; NULL: kn_attention_backward_variants */
};

/*
 * Queues it. If batch or heads is 0 it queues nothing and returns TOL_OK.
 *
 * TOL_INVALID_ARGUMENT: as kn_attention; there is no row or no key; lse, the workspace or a buffer
 * is missing; rows of a gradient overlap, or a gradient overlaps another operand. TOL_OUT_OF_RANGE:
 * an operand is not inside its buffer, or the workspace is too small; the message has the numbers.
 * TOL_OVER_LIMIT: as kn_attention, or more than 2^31 - 1 blocks. Else fails as kn_attention does.
 * Thread-safe, as kernels and streams are.
 */
TOL_API tol_status kn_attention_backward(struct kn_kernels *kernels, struct tol_stream *stream,
                                         const struct kn_attention_backward *backward);

/* The bytes of workspace that a problem needs at least: 8 for each row of q, with the rows of each
 * head rounded up to 128. Only the shape counts. SIZE_MAX if that overflows. Pure. */
TOL_API size_t kn_attention_backward_workspace(const struct kn_attention *forward);

/* The bytes of workspace with which a call may take the fastest kernel. "ordered" needs besides a
 * float for each element of q, with rows rounded up as above, and a word per 64 rows. This size is
 * returned if the call names "ordered", or names no variant and has at least 528 tiles of 128 keys;
 * else the result is that of kn_attention_backward_workspace. Only the shape, variant and variants
 * of the call count. SIZE_MAX if that overflows. Pure. */
TOL_API size_t kn_attention_backward_workspace_of(const struct kn_attention_backward *backward);

/* "ordered": as "wgmma", with a workspace of its own size; the first choice for problems with many
 * tiles of keys. "wgmma": fp16 and bf16 with heads of 64 or 128 elements in aligned rows that
 * tensor maps can describe, on compute capability 9.0. "tensor": the same without tensor maps, from
 * 8.0 on. "naive": all. */
extern const struct kn_variants kn_attention_backward_variants;

/* Kernels with one planted defect each, for sabotage: heads of 64 elements, fp16 of "tensor" and
 * bf16 of "wgmma" and "ordered". */
extern const struct kn_variants kn_attention_backward_defects;

#endif
