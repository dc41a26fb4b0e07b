/*
 * What the tests of rows share: a set of kernels with a stream, guarded matrices with gaps, and the
 * shapes that softmax and norm are tried with. Internal: not installed.
 */
#ifndef KN_ROW_STAGE_TEST_H
#define KN_ROW_STAGE_TEST_H

#include "deviation.h"
#include "guarded.h"
#include "inputs.h"
#include "row/rows.h"

#include "test/test_device.h"

struct row_stage {
    struct kn_kernels *kernels;
    struct tol_stream *stream;
    uint64_t random;
};

struct row_stage row_stage_begin(uint64_t seed);
void row_stage_end(struct row_stage *stage);

/* Rows and columns: of any rows, and of whole rows of 16-bit elements. The last of the whole shapes
 * has more rows than persistent blocks, so that these process a second row. */
enum { ROW_SHAPES = 10, WHOLE_SHAPES = 8 };
extern const size_t row_shapes[ROW_SHAPES][2], whole_shapes[WHOLE_SHAPES][2];

/* A matrix on the device. It begins as NaN, as do its gaps and guard zones. */
struct row_matrix {
    struct kn_guarded guarded;
    enum kn_type type;
    size_t rows, columns, stride;
    float *values; /* rows * columns of them: what row_fill wrote, rounded to the type */
};

struct row_matrix row_matrix_make(enum kn_type type, size_t rows, size_t columns, size_t gap,
                                  size_t skew);
void row_matrix_end(struct row_matrix *matrix);
struct kn_rows row_matrix_rows(const struct row_matrix *matrix);

/* Writes the values; the gaps stay NaN. */
void row_fill(struct row_matrix *matrix, const float *values);
void row_draw(struct row_stage *stage, struct row_matrix *matrix, enum kn_distribution distribution,
              double scale);

/* Waits for the stream, compares the matrix with the oracle as kn_deviation_of does, and asserts
 * that its gaps and guard zones were not written. */
struct kn_deviation row_compare(struct row_stage *stage, const struct row_matrix *matrix,
                                const double *oracle, struct kn_tolerance tolerance,
                                const double *allowed);

/* row_compare, and asserts that no element fails. The format describes the trial. */
void row_expect(struct row_stage *stage, const struct row_matrix *matrix, const double *oracle,
                struct kn_tolerance tolerance, const double *allowed, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

#endif
