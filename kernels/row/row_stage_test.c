/*
 * Matrices for the tests of rows.
 */
#include "row/row_stage_test.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const size_t row_shapes[ROW_SHAPES][2] = {{1, 1},   {5, 2},   {3, 31},  {2, 33},   {7, 64},
                                          {1, 127}, {3, 257}, {1, 999}, {2, 1025}, {1, 4099}};
const size_t whole_shapes[WHOLE_SHAPES][2] = {{1, 8},    {5, 16},   {3, 256},  {7, 264},
                                              {2, 1024}, {3, 1160}, {1, 4096}, {5001, 16}};

struct row_stage row_stage_begin(uint64_t seed) {
    struct row_stage stage = {.random = seed};
    MUST(kn_kernels_create(test_context(), &stage.kernels));
    MUST(tol_stream_create(test_context(), NULL, &stage.stream));
    return stage;
}

void row_stage_end(struct row_stage *stage) {
    tol_stream_destroy(stage->stream);
    kn_kernels_destroy(stage->kernels);
}

struct row_matrix row_matrix_make(enum kn_type type, size_t rows, size_t columns, size_t gap,
                                  size_t skew) {
    struct row_matrix matrix = {
        .type = type, .rows = rows, .columns = columns, .stride = columns + gap};
    const size_t elements = (rows - 1) * matrix.stride + columns;
    MUST(kn_guarded_create(test_context(), elements * kn_type_bytes(type),
                           skew * kn_type_bytes(type), &matrix.guarded));
    matrix.values = calloc(rows * columns, sizeof *matrix.values);
    cr_assert(matrix.values != NULL);
    return matrix;
}

void row_matrix_end(struct row_matrix *matrix) {
    kn_guarded_destroy(&matrix->guarded);
    free(matrix->values);
}

struct kn_rows row_matrix_rows(const struct row_matrix *matrix) {
    return (struct kn_rows){.buffer = matrix->guarded.buffer,
                            .offset = matrix->guarded.offset / kn_type_bytes(matrix->type),
                            .stride = matrix->stride};
}

void row_fill(struct row_matrix *matrix, const float *values) {
    const size_t element = kn_type_bytes(matrix->type), row = matrix->columns;
    unsigned char *bytes = malloc(matrix->guarded.bytes);
    cr_assert(bytes != NULL);
    memset(bytes, 0xff, matrix->guarded.bytes);
    for (size_t r = 0; r < matrix->rows; r++) {
        unsigned char *at = bytes + r * matrix->stride * element;
        kn_numbers_store(matrix->type, values + r * row, row, at);
        kn_numbers_load(matrix->type, at, row, matrix->values + r * row);
    }
    MUST(kn_guarded_write(&matrix->guarded, bytes));
    free(bytes);
}

void row_draw(struct row_stage *stage, struct row_matrix *matrix, enum kn_distribution distribution,
              double scale) {
    float *values = malloc(matrix->rows * matrix->columns * sizeof *values);
    cr_assert(values != NULL);
    kn_inputs_draw(distribution, &stage->random, scale, values, matrix->rows * matrix->columns);
    row_fill(matrix, values);
    free(values);
}

struct kn_deviation row_compare(struct row_stage *stage, const struct row_matrix *matrix,
                                const double *oracle, struct kn_tolerance tolerance,
                                const double *allowed) {
    const size_t element = kn_type_bytes(matrix->type), row = matrix->columns;
    unsigned char *bytes = malloc(matrix->guarded.bytes);
    struct kn_deviation deviation = {.first = KN_NOWHERE, .worst = KN_NOWHERE};
    size_t changed = 1;
    cr_assert(bytes != NULL);
    MUST(tol_stream_synchronize(stage->stream));
    MUST(kn_guarded_read(&matrix->guarded, bytes));
    MUST(kn_guarded_check(&matrix->guarded, &changed));
    cr_assert(changed == 0, "%zu bytes around the matrix were changed", changed);
    for (size_t r = 0; r < matrix->rows; r++) {
        const unsigned char *at = bytes + r * matrix->stride * element;
        const struct kn_deviation one =
            kn_deviation_of(matrix->type, at, oracle + r * row, row, tolerance,
                            allowed == NULL ? NULL : allowed + r * row);
        deviation = kn_deviation_join(deviation, one);
        for (size_t i = row * element; r + 1 < matrix->rows && i < matrix->stride * element; i++) {
            cr_assert(at[i] == 0xff, "byte %zu of the gap after row %zu was written", i, r);
        }
    }
    free(bytes);
    return deviation;
}

void row_expect(struct row_stage *stage, const struct row_matrix *matrix, const double *oracle,
                struct kn_tolerance tolerance, const double *allowed, const char *format, ...) {
    char trial[200], text[400];
    va_list list;
    va_start(list, format);
    vsnprintf(trial, sizeof trial, format, list);
    va_end(list);
    const struct kn_deviation deviation = row_compare(stage, matrix, oracle, tolerance, allowed);
    cr_assert(deviation.failed == 0, "%s, %s, %zu x %zu: %s", trial, kn_type_name(matrix->type),
              matrix->rows, matrix->columns, kn_deviation_text(&deviation, text, sizeof text));
}
