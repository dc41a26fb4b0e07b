/*
 * Matrices of a tour: rows on the device that begin as NaN, with watched zones around and gaps
 * between them, as the operations on rows take them. One thread. Internal: not installed.
 */
#ifndef KN_TOUR_MATRIX_H
#define KN_TOUR_MATRIX_H

#include "guarded.h"
#include "row/row_place.h"
#include "tour.h"

struct tour_matrix {
    struct kn_guarded guarded;
    enum kn_type type;
    size_t rows, columns, stride;
    float *values; /* rows * columns of them, as the type has them; 0 where none were drawn */
};

/* gap: elements between rows; skew: elements behind a multiple of 256 bytes. The rows get normally
 * distributed values, times scale, or none where that is 0. End it, whatever came. */
tol_status tour_matrix_make(struct tour *tour, enum kn_type type, size_t rows, size_t columns,
                            size_t gap, size_t skew, double scale, struct tour_matrix *matrix);
void tour_matrix_end(struct tour_matrix *matrix);
struct kn_rows tour_matrix_rows(const struct tour_matrix *matrix);

/* Waits, and adds to *deviation how far the rows are from the oracle, and to *touched what was
 * written between and around them. */
tol_status tour_matrix_judge(struct tour *tour, const struct tour_matrix *matrix,
                             const double *oracle, struct kn_tolerance tolerance,
                             struct kn_deviation *deviation, size_t *touched);

/* A buffer of ints. Destroy it. */
tol_status tour_ints(struct tour *tour, const int *values, size_t count,
                     struct tol_buffer **buffer);

#endif
