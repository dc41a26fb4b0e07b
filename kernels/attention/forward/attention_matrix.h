/*
 * Matrices of attention's trials: the rows of q, k, v, out or a gradient, on the host without gaps
 * and on the device with them, between guard zones. Internal to the operation. Not thread-safe.
 */
#ifndef KN_ATTENTION_MATRIX_H
#define KN_ATTENTION_MATRIX_H

#include "attention/forward/attention.h"
#include "guarded.h"

struct attention_matrix {
    struct kn_guarded guarded;
    struct kn_heads heads;
    enum kn_type type;
    size_t batch, head_count, length, width, element;
    float *values; /* as the type has them */
};

struct attention_layout {
    bool heads_inside; /* [batch][row][head][element], else [batch][head][row][element] */
    size_t gap;        /* elements after each row */
    size_t skew;       /* elements by which it begins past a multiple of 256 bytes */
};

/* Makes one for the heads of q, or for those of k. The device's rows begin as NaN, with their gaps.
 * Fails as kn_guarded_create does, or for lack of host memory. */
tol_status attention_matrix_make(struct kn_kernels *kernels, const struct kn_attention *x,
                                 bool is_of_q, struct attention_layout layout,
                                 struct attention_matrix *matrix);

/* {0} is a no-op. */
void attention_matrix_destroy(struct attention_matrix *matrix);

size_t attention_matrix_count(const struct attention_matrix *matrix); /* of elements */

/* Where a row begins in the device's middle, in bytes; rows are numbered as on the host. */
size_t attention_matrix_place(const struct attention_matrix *matrix, size_t row);

/* Rounds the values to the type, and copies them to the device. bytes: the size of the middle. */
tol_status attention_matrix_fill(struct attention_matrix *matrix, unsigned char *bytes);

/* How many bytes between the rows are no longer 0xff; the rows themselves are made so. */
size_t attention_matrix_gaps_touched(const struct attention_matrix *matrix, unsigned char *bytes);

#endif
