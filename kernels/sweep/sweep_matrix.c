/*
 * Creates, fills and checks the matrices of cases on rows.
 */
#include "sweep_matrix.h"

#include "core/check.h"
#include "inputs.h"

#include <stdlib.h>
#include <string.h>

enum { POISON = 0xff };

static tol_status sweep_matrix_draw(struct sweep *sweep, struct sweep_matrix *matrix,
                                    double scale) {
    tol_status status = TOL_OK;
    const size_t element = kn_type_bytes(matrix->type), row = matrix->columns;
    unsigned char *bytes = malloc(matrix->guarded.bytes);
    TOL_CHECK(bytes != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu bytes", matrix->guarded.bytes);
    memset(bytes, POISON, matrix->guarded.bytes);
    kn_inputs_draw(KN_NORMAL, &sweep->random, scale, matrix->values, matrix->rows * row);
    for (size_t r = 0; r < matrix->rows; r++) {
        unsigned char *at = bytes + r * matrix->stride * element;
        kn_numbers_store(matrix->type, matrix->values + r * row, row, at);
        kn_numbers_load(matrix->type, at, row, matrix->values + r * row);
    }
    status = kn_guarded_write(&matrix->guarded, bytes);
out:
    free(bytes);
    return status;
}

tol_status sweep_matrix_make(struct sweep *sweep, enum kn_type type, size_t rows, size_t columns,
                             size_t gap, size_t skew, double scale, struct sweep_matrix *matrix) {
    tol_status status = TOL_OK;
    const size_t element = kn_type_bytes(type), stride = columns + gap;
    *matrix =
        (struct sweep_matrix){.type = type, .rows = rows, .columns = columns, .stride = stride};
    TOL_TRY(kn_guarded_create(kn_kernels_context(sweep->kernels),
                              ((rows - 1) * stride + columns) * element, skew * element,
                              &matrix->guarded));
    matrix->values = calloc(rows * columns, sizeof *matrix->values);
    TOL_CHECK(matrix->values != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu values", rows * columns);
    if (scale != 0) status = sweep_matrix_draw(sweep, matrix, scale);
out:
    return status;
}

void sweep_matrix_end(struct sweep_matrix *matrix) {
    kn_guarded_destroy(&matrix->guarded);
    free(matrix->values);
}

struct kn_rows sweep_matrix_rows(const struct sweep_matrix *matrix) {
    return (struct kn_rows){.buffer = matrix->guarded.buffer,
                            .offset = matrix->guarded.offset / kn_type_bytes(matrix->type),
                            .stride = matrix->stride};
}

tol_status sweep_matrix_judge(struct sweep *sweep, const struct sweep_matrix *matrix,
                              const double *oracle, struct kn_tolerance tolerance,
                              struct kn_deviation *deviation, size_t *touched) {
    tol_status status = TOL_OK;
    const size_t element = kn_type_bytes(matrix->type), row = matrix->columns;
    size_t around = 0;
    unsigned char *bytes = malloc(matrix->guarded.bytes);
    TOL_CHECK(bytes != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu bytes", matrix->guarded.bytes);
    TOL_TRY(tol_stream_synchronize(sweep->stream));
    TOL_TRY(kn_guarded_read(&matrix->guarded, bytes));
    TOL_TRY(kn_guarded_check(&matrix->guarded, &around));
    *touched += around;
    for (size_t r = 0; r < matrix->rows; r++) {
        unsigned char *at = bytes + r * matrix->stride * element;
        *deviation = kn_deviation_join(
            *deviation, kn_deviation_of(matrix->type, at, oracle + r * row, row, tolerance, NULL));
        memset(at, POISON, row * element);
    }
    for (size_t i = 0; i < matrix->guarded.bytes; i++) *touched += bytes[i] != POISON;
out:
    free(bytes);
    return status;
}

tol_status sweep_ints(struct sweep *sweep, const int *values, size_t count,
                      struct tol_buffer **buffer) {
    tol_status status = TOL_OK;
    TOL_TRY(tol_buffer_create(kn_kernels_context(sweep->kernels), count, sizeof *values, buffer));
    status = tol_buffer_write(*buffer, values, count * sizeof *values);
out:
    return status;
}
