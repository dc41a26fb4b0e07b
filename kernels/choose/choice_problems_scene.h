/*
 * Choice problems: calls of the operations with drawn shapes, types, layouts and workspaces.
 * Internal to the dump of choices: not installed.
 */
#ifndef KN_CHOICE_PROBLEMS_H
#define KN_CHOICE_PROBLEMS_H

#include "choose/kernel_set.h"

enum { CHOICE_BUFFERS = 10 };

/* Where a drawn call runs: the buffers are as large as any problem. */
struct choice_place {
    struct kn_kernels *kernels;
    struct tol_stream *stream;
    const struct tol_buffer *buffers[CHOICE_BUFFERS];
    uint64_t state;  /* of the draws */
    bool is_regular; /* sizes and gaps are multiples of 8 elements: most rows are aligned */
};

/* Draws a problem from the state and calls its operation. *bytes is what the operation says of a
 * workspace; 0 where it says nothing. Fails as the operation does. */
typedef tol_status choice_call(struct choice_place *place, size_t *bytes);

choice_call choice_gemm, choice_grouped, choice_attention, choice_backward, choice_packed,
    choice_paged, choice_e4m3, choice_softmax, choice_norm, choice_argmax, choice_top_k,
    choice_quant, choice_linear;

#endif
