/*
 * Sweep matrix: the rows of one operand on the device. They begin as NaN, with gaps between them
 * and guard zones around them. One thread. Internal: not installed.
 */
#ifndef KN_SWEEP_MATRIX_H
#define KN_SWEEP_MATRIX_H

#include "guarded.h"
#include "row/rows.h"
#include "kernel_sweep.h"

struct sweep_matrix {
    struct kn_guarded guarded;
    enum kn_type type;
    size_t rows, columns, stride;
    float *values; /* rows * columns values, rounded to the type; 0 if none were drawn */
};

/* gap: elements between rows. skew: elements past a multiple of 256 bytes. scale: of the normally
 * distributed values, or 0 to draw none. Call sweep_matrix_end even if this fails. */
tol_status sweep_matrix_make(struct sweep *sweep, enum kn_type type, size_t rows, size_t columns,
                             size_t gap, size_t skew, double scale, struct sweep_matrix *matrix);
void sweep_matrix_end(struct sweep_matrix *matrix);
struct kn_rows sweep_matrix_rows(const struct sweep_matrix *matrix);

/* Waits for the stream. Adds the deviation of the rows from the oracle to *deviation, and the bytes
 * written between and around them to *touched. */
tol_status sweep_matrix_judge(struct sweep *sweep, const struct sweep_matrix *matrix,
                              const double *oracle, struct kn_tolerance tolerance,
                              struct kn_deviation *deviation, size_t *touched);

/* Creates a buffer of ints. The caller destroys it. */
tol_status sweep_ints(struct sweep *sweep, const int *values, size_t count,
                      struct tol_buffer **buffer);

#endif
