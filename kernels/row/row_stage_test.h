/*
 * What the tests of rows share: a set of kernels with a stream, and guarded matrices with gaps.
 */
#ifndef KN_ROW_STAGE_TEST_H
#define KN_ROW_STAGE_TEST_H

#include "deviation.h"
#include "guarded.h"
#include "inputs.h"
#include "row/rows.h"

#include "test_device.h"

struct row_stage {
    struct kn_kernels *kernels;
    struct tol_stream *stream;
    uint64_t random;
};

struct row_stage row_stage_begin(uint64_t seed);
void row_stage_end(struct row_stage *stage);

/* A matrix on the device that begins as NaN, gaps and surroundings too. */
struct row_matrix {
    struct kn_guarded guarded;
    enum kn_type type;
    size_t rows, columns, stride;
    float *values; /* rows * columns of them: what row_fill put in, as the type has it */
};

struct row_matrix row_matrix_make(enum kn_type type, size_t rows, size_t columns, size_t gap,
                                  size_t skew);
void row_matrix_end(struct row_matrix *matrix);
struct kn_rows row_matrix_rows(const struct row_matrix *matrix);

/* Puts values there; the gaps stay NaN. */
void row_fill(struct row_matrix *matrix, const float *values);
void row_draw(struct row_stage *stage, struct row_matrix *matrix, enum kn_distribution distribution,
              double scale);

/* Waits, holds the matrix against the oracle, and asserts that gaps and surroundings are as they
 * were. As kn_deviation_of. */
struct kn_deviation row_compare(struct row_stage *stage, const struct row_matrix *matrix,
                                const double *oracle, struct kn_tolerance tolerance,
                                const double *allowed);

#endif
