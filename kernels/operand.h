/*
 * Operand: the bytes of a buffer that a matrix of an operation occupies.
 * Internal to the operations: not installed. Pure; thread-safe.
 */
#ifndef KN_OPERAND_H
#define KN_OPERAND_H

#include "tollens.h"

/* *sum += a * b. false if that overflows; *sum is unchanged then. */
bool kn_add_product(size_t *sum, size_t a, size_t b);

/*
 * The addresses of the first byte and of the byte after the last, for an operand that occupies the
 * bytes from first to end of its buffer. name is used in the message.
 * TOL_INVALID_ARGUMENT: the first byte is not aligned to an element.
 */
tol_status kn_operand_locate(const char *name, const struct tol_buffer *buffer, size_t first,
                             size_t end, size_t element_bytes, CUdeviceptr *begin_address,
                             CUdeviceptr *end_address);

#endif
