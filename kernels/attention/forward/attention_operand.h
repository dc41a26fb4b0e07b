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

/* TOL_INVALID_ARGUMENT: out overlaps these addresses, of what has this name. */
tol_status attention_operand_is_apart(const struct attention_operand *out, const char *name,
                                      CUdeviceptr begin, CUdeviceptr end);

/* Checks another input of the call, so many bytes at a place. written: the bytes of out and of lse.
 * TOL_INVALID_ARGUMENT: it is missing or misaligned, or one of these overlaps it. TOL_OUT_OF_RANGE:
 * the place is too small. */
tol_status attention_operand_check_place(const char *name, struct kn_place place, size_t bytes,
                                         size_t alignment, const struct kn_place written[2]);

/* Whether each row begins at a multiple of 16 bytes. */
bool attention_operand_is_aligned(const struct kn_attention *x,
                                  const struct attention_operand *operand);

#endif
