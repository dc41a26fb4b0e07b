/*
 * rope: rotary position embedding of rows of heads.
 *
 * Row r has heads of head_size elements each. The first `rotated` elements of each head are rotated
 * in pairs, and the others copied. Pair i is rotated by the angle scale * position[r] / base^(2 i /
 * rotated), computed as a float with a relative error of up to 2^-20. out may be in, and may not
 * overlap it otherwise.
 * Source: Su et al., RoFormer (arXiv 2104.09864), section 3.2.
 */
#ifndef KN_ROPE_H
#define KN_ROPE_H

#include "row/rows.h"

enum kn_rope_pairs {
    KN_ROPE_NEIGHBOURS, /* elements 2 i and 2 i + 1: GGUF's "llama" */
    KN_ROPE_HALVES      /* elements i and i + rotated / 2: GPT-NeoX, Qwen */
};

struct kn_rope {
    enum kn_type type; /* of in and out */
    enum kn_rope_pairs pairs;
    size_t rows, heads, head_size;
    size_t rotated; /* of each head; even; 0: all */
    struct kn_rows in, out;
    struct kn_rows positions; /* rows values of int32 */
    float base;               /* of the frequencies; 0 is 10000 */
    float scale;              /* of the position; 0 is 1 */
};

/*
 * Queues it. Without elements to rotate or copy it returns TOL_OK. TOL_INVALID_ARGUMENT: an
 * argument is NULL, the pairs or the type are unknown, `rotated` is odd or too large, base or scale
 * is not finite and positive; also as rows.h says. Else fails as kn_softmax does.
 */
TOL_API tol_status kn_rope(struct kn_kernels *kernels, struct tol_stream *stream,
                           const struct kn_rope *rope);

extern const struct kn_variants kn_rope_variants;

/* The definition, in double, of one row. Pure. */
TOL_API void kn_rope_oracle(const struct kn_rope *rope, const float *in, int position, double *out);

#endif
