/*
 * attention over numbers of 8 bits: attention.h for q, k and v in e4m3 (number.h), each head with a
 * scale; out is fp16 or bf16.
 *
 * The value of an element is its number times the scale of its head. Scores and sums are in float.
 * The scales of q and k are factors of the scale of scores; the scale of v is a factor of the sums,
 * which are rounded once, to the type of out. Hopper's tensor cores add products of e4m3 with 13
 * bits of fraction: attention_e4m3_oracle.c has the bounds. "wgmma" rounds weights to fp16. If
 * scores need no more digits, such as those of small whole numbers, and scales are powers of two,
 * "wgmma" gives the bits that "wgmma" of kn_attention gives for the same numbers in fp16. Masks,
 * GQA, strides, logarithms and NaN are as attention.h says. e4m3 has no infinities.
 * Source: Micikevicius et al., FP8 Formats for Deep Learning (arXiv 2209.05433); Shah et al.,
 * FlashAttention-3 (arXiv 2407.08608).
 */
#ifndef KN_ATTENTION_E4M3_H
#define KN_ATTENTION_E4M3_H

#include "attention/forward/attention.h"
#include "place.h"

struct kn_attention_e4m3 {
    /* type: of out, KN_F16 or KN_BF16. Elements of q, k and v are a byte. workspace, variant and
     * variants are ignored. */
    struct kn_attention attention;
    /* Floats, [batch][heads], for k and v [batch][kv_heads]; positive and finite, which the host
     * cannot check. address 0: all are 1. */
    struct kn_place q_scales, k_scales, v_scales;
    const char *variant;                /* forces the variant of this name; NULL: the best */
    const struct kn_variants *variants; /* another table; NULL: kn_attention_e4m3_variants */
};

/*
 * Queues it. If batch, heads or q_length is 0 it queues nothing and returns TOL_OK.
 *
 * TOL_INVALID_ARGUMENT: as kn_attention; the type is KN_F32; or scales are misaligned, or out or
 * lse overlaps them. TOL_OUT_OF_RANGE: as kn_attention, or scales do not fit their place. Else
 * fails as kn_attention does. Thread-safe, as kernels and streams are.
 */
TOL_API tol_status kn_attention_e4m3(struct kn_kernels *kernels, struct tol_stream *stream,
                                     const struct kn_attention_e4m3 *attention);

/* "wgmma": heads of up to 128 or of 208 to 256 elements, in multiples of 16, in rows that begin at
 * multiples of 16 bytes, on compute capability 9.0 alone; "naive": all. */
extern const struct kn_variants kn_attention_e4m3_variants;

/* Kernels as "wgmma" with one planted defect each, for sabotage: results in fp16, and heads of up
 * to 64 elements. */
extern const struct kn_variants kn_attention_e4m3_defects;

#endif
