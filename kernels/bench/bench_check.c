/*
 * Reads back, compares, counts.
 */
#include "bench_check.h"

#include "bench_state.h"

#include "core/check.h"

#include <stdio.h>
#include <stdlib.h>

static tol_status read_elements(enum kn_type type, const struct tol_buffer *buffer, size_t first,
                                size_t count, void **elements) {
    tol_status status = TOL_OK;
    const size_t element = kn_type_bytes(type);
    void *made = malloc(count * element);
    TOL_CHECK(made != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu bytes", count * element);
    TOL_TRY(tol_buffer_read_at(buffer, first * element, made, count * element));
    *elements = made;
    made = NULL;
out:
    free(made);
    return status;
}

tol_status kn_bench_read(enum kn_type type, const struct tol_buffer *buffer, size_t first,
                         size_t count, float *values) {
    tol_status status = TOL_OK;
    void *elements = NULL;
    TOL_TRY(read_elements(type, buffer, first, count, &elements));
    kn_numbers_load(type, elements, count, values);
out:
    free(elements);
    return status;
}

tol_status kn_bench_check(struct kn_bench *bench, const struct kn_bench_row *row, const char *by,
                          enum kn_type type, const struct tol_buffer *buffer, size_t first,
                          const struct kn_bench_right *right) {
    tol_status status = TOL_OK;
    void *elements = NULL;
    char text[300];
    TOL_TRY(read_elements(type, buffer, first, right->count, &elements));
    const struct kn_deviation deviation = kn_deviation_of(
        type, elements, right->values, right->count, right->tolerance, right->allowed);
    if (deviation.failed > 0) {
        kn_bench_wrong(bench, row, by, kn_deviation_text(&deviation, text, sizeof text));
    }
out:
    free(elements);
    return status;
}

void kn_bench_wrong(struct kn_bench *bench, const struct kn_bench_row *row, const char *by,
                    const char *how) {
    printf("%s %s %s is wrong: %s\n", row->operation, row->shape, by, how);
    bench->state->wrong++;
}
