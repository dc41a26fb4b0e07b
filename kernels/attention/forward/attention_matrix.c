/*
 * Rows between gaps and guard zones.
 */
#include "attention/forward/attention_matrix.h"

#include "core/check.h"

#include <stdlib.h>
#include <string.h>

size_t attention_matrix_count(const struct attention_matrix *matrix) {
    return matrix->batch * matrix->head_count * matrix->length * matrix->width;
}

size_t attention_matrix_place(const struct attention_matrix *matrix, size_t row) {
    const size_t batch = row / matrix->length / matrix->head_count;
    const size_t head = row / matrix->length % matrix->head_count, inside = row % matrix->length;
    return (batch * matrix->heads.batch_stride + head * matrix->heads.head_stride +
            inside * matrix->heads.row_stride) *
           matrix->element;
}

tol_status attention_matrix_make(struct kn_kernels *kernels, const struct kn_attention *x,
                                 bool is_of_q, struct attention_layout layout,
                                 struct attention_matrix *matrix) {
    tol_status status = TOL_OK;
    *matrix = (struct attention_matrix){.type = x->type,
                                        .batch = x->batch,
                                        .head_count = is_of_q ? x->heads : x->kv_heads,
                                        .length = is_of_q ? x->q_length : x->kv_length,
                                        .width = x->head_size,
                                        .element = kn_type_bytes(x->type)};
    const size_t step = matrix->width + layout.gap, count = attention_matrix_count(matrix);
    struct kn_heads *heads = &matrix->heads;
    heads->row_stride = layout.heads_inside ? step * matrix->head_count : step;
    heads->head_stride = layout.heads_inside ? step : step * matrix->length;
    heads->batch_stride = step * matrix->head_count * matrix->length;
    const size_t last = count == 0 ? 0 : count / matrix->width * step - layout.gap;
    TOL_TRY(kn_guarded_create(kn_kernels_context(kernels), last * matrix->element,
                              layout.skew * matrix->element, &matrix->guarded));
    heads->buffer = matrix->guarded.buffer;
    heads->offset = matrix->guarded.offset / matrix->element;
    matrix->values = calloc(count + 1, sizeof *matrix->values);
    TOL_CHECK(matrix->values != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu values", count);
out:
    return status;
}

void attention_matrix_destroy(struct attention_matrix *matrix) {
    kn_guarded_destroy(&matrix->guarded);
    free(matrix->values);
    matrix->values = NULL;
}

tol_status attention_matrix_fill(struct attention_matrix *matrix, unsigned char *bytes) {
    const size_t count = attention_matrix_count(matrix), width = matrix->width;
    memset(bytes, 0xff, matrix->guarded.bytes);
    for (size_t row = 0; row < count / width; row++) {
        unsigned char *at = bytes + attention_matrix_place(matrix, row);
        kn_numbers_store(matrix->type, matrix->values + row * width, width, at);
        kn_numbers_load(matrix->type, at, width, matrix->values + row * width);
    }
    return count > 0 ? kn_guarded_write(&matrix->guarded, bytes) : TOL_OK;
}

size_t attention_matrix_gaps_touched(const struct attention_matrix *matrix, unsigned char *bytes) {
    size_t touched = 0;
    for (size_t row = 0; row < attention_matrix_count(matrix) / matrix->width; row++) {
        memset(bytes + attention_matrix_place(matrix, row), 0xff, matrix->width * matrix->element);
    }
    for (size_t i = 0; i < matrix->guarded.bytes; i++) touched += bytes[i] != 0xff;
    return touched;
}
