/*
 * Operands of attention: the heads of q, k, v, out or a gradient, checked against their buffers.
 * Internal to the operation. Pure; thread-safe.
 */
#ifndef KN_ATTENTION_OPERAND_H
#define KN_ATTENTION_OPERAND_H

#include "attention/forward/attention.h"
#include "attention/forward/attention_arguments.h"
#include "place.h"

/* The layout and addresses of the heads of one operand. */
struct attention_operand {
    const char *name;
    size_t heads, rows;
    struct attention_strides strides;
    CUdeviceptr begin, end; /* end is past the last element; both are equal if there is none */
    size_t element;         /* the bytes of an element; 0: those of the type */
};

/* Finds strides and addresses; name, heads, rows and element are given. Nothing if there is no
 * element. TOL_INVALID_ARGUMENT: there is no buffer. TOL_OUT_OF_RANGE: it is not inside its
 * buffer. */
tol_status attention_operand_locate(const struct kn_attention *x, const struct kn_heads *heads,
                                    struct attention_operand *operand);

/* Whether no element is written twice. */
bool attention_operand_is_written_once(const struct kn_attention *x,
                                       const struct attention_operand *out);

/* Addresses that a call reads or writes, with their name in messages; equal if it does neither. */
struct attention_span {
    const char *name;
    CUdeviceptr begin, end;
};

struct attention_span attention_span_of(const struct attention_operand *operand);
/* All of a buffer; of NULL the empty span. */
struct attention_span attention_span_of_buffer(const char *name, const struct tol_buffer *buffer);

/* TOL_INVALID_ARGUMENT: one of the first `written` spans overlaps another one. */
tol_status attention_spans_check(const struct attention_span *spans, size_t written, size_t count);

/* Whether each row begins at a multiple of 16 bytes. */
bool attention_operand_is_aligned(const struct kn_attention *x,
                                  const struct attention_operand *operand);

#endif
