/*
 * Seal rows: plain rows without gaps, and the bytes that are sealed, whose rows begin at multiples
 * of 64. Internal. Pure.
 */
#ifndef TOLLENS_SEAL_ROWS_H
#define TOLLENS_SEAL_ROWS_H

#include "seal.h"
#include "seal/seal_arguments.h"

#include <stdint.h>

/* Checks a shape: something, and not more than a counter of 32 bits has units for. */
tol_status seal_rows_check(struct tol_seal_shape shape);

/* From row to row, and of all, once the shape was checked. */
size_t seal_row_pitch(struct tol_seal_shape shape);
size_t seal_rows_bytes(struct tol_seal_shape shape);

/* Copies bytes from offset on of what is sealed, out of plain rows, with zeros in gaps; and
 * back. */
void seal_rows_take(struct tol_seal_shape shape, const void *plain, size_t offset, void *out,
                    size_t bytes);
void seal_rows_put(struct tol_seal_shape shape, const void *in, size_t offset, size_t bytes,
                   void *plain);

#endif
