/*
 * Where rows are in memory, and the checks and launches that all operations on rows share.
 */
#include "row/row_place.h"

#include "core/check.h"
#include "operand.h"

#include <assert.h>

tol_status kn_rows_locate(const struct kn_rows *rows, struct kn_rows_place *place) {
    tol_status status = TOL_OK;
    const size_t element = place->element_bytes;
    size_t first = 0, extent = 0, last = rows->offset;
    place->begin = place->end = 0;
    place->stride = rows->stride != 0 || place->may_repeat ? rows->stride : place->columns;
    TOL_CHECK(place->rows <= INT32_MAX && place->columns <= INT32_MAX, TOL_OVER_LIMIT,
              "%s has %zu rows of %zu elements", place->name, place->rows, place->columns);
    if (place->rows == 0 || place->columns == 0) return TOL_OK;
    TOL_CHECK(place->may_repeat || place->stride >= place->columns || place->rows == 1,
              TOL_INVALID_ARGUMENT, "%s has rows of %zu elements, and the next begins after %zu",
              place->name, place->columns, place->stride);
    TOL_CHECK(rows->buffer != NULL, TOL_INVALID_ARGUMENT, "%s has no buffer", place->name);
    const size_t bytes = tol_buffer_bytes(rows->buffer);
    const bool fits = kn_add_product(&last, place->rows - 1, place->stride) &&
                      kn_add_product(&last, place->columns, 1) &&
                      kn_add_product(&extent, last, element) &&
                      kn_add_product(&first, rows->offset, element);
    TOL_CHECK(fits && extent <= bytes, TOL_OUT_OF_RANGE,
              "%s is %zu rows of %zu elements of %zu bytes, %zu apart, from element %zu on, and "
              "its buffer has %zu bytes",
              place->name, place->rows, place->columns, element, place->stride, rows->offset,
              bytes);
    status = kn_operand_locate(place->name, rows->buffer, first, extent, element, &place->begin,
                               &place->end);
out:
    return status;
}

tol_status kn_rows_apart(const struct kn_rows_place *written, const struct kn_rows_place *read) {
    tol_status status = TOL_OK;
    const bool meet = written->begin < read->end && read->begin < written->end;
    const bool same = written->begin == read->begin && written->columns == read->columns &&
                      written->element_bytes == read->element_bytes &&
                      (written->stride == read->stride || written->rows == 1);
    TOL_CHECK(!meet || same, TOL_INVALID_ARGUMENT, "%s overlaps %s and is not the same",
              written->name, read->name);
out:
    return status;
}

tol_status kn_rows_locate_in_out(enum kn_type type, size_t rows, size_t columns,
                                 const struct kn_rows *in, const struct kn_rows *out,
                                 struct kn_rows_place *in_place, struct kn_rows_place *out_place) {
    tol_status status = TOL_OK;
    TOL_TRY(kn_rows_type(type));
    const size_t element = kn_type_bytes(type);
    *in_place = (struct kn_rows_place){"in", rows, columns, element, false, 0, 0, 0};
    *out_place = (struct kn_rows_place){"out", rows, columns, element, false, 0, 0, 0};
    TOL_TRY(kn_rows_locate(in, in_place));
    TOL_TRY(kn_rows_locate(out, out_place));
    status = kn_rows_apart(out_place, in_place);
out:
    return status;
}

tol_status kn_rows_given(const char *operation, const void *kernels, const void *stream,
                         const void *problem) {
    tol_status status = TOL_OK;
    TOL_CHECK(kernels != NULL && stream != NULL && problem != NULL, TOL_INVALID_ARGUMENT,
              "%s needs a set of kernels, a stream and a problem", operation);
out:
    return status;
}

tol_status kn_rows_type(enum kn_type type) {
    tol_status status = TOL_OK;
    TOL_CHECK((unsigned)type < KN_TYPES, TOL_INVALID_ARGUMENT, "type %d does not exist", (int)type);
out:
    return status;
}

tol_status kn_rows_launch(struct tol_stream *stream, const struct tol_kernel *kernel,
                          struct tol_launch_shape shape, const void *argument, size_t bytes) {
    void *value = (void *)(uintptr_t)argument; /* the driver's signature is not const */
    const unsigned value_bytes = (unsigned)bytes;
    assert(shape.grid_x > 0 && shape.block_x > 0);
    return tol_launch(stream, kernel, shape, (struct tol_arguments){1, &value, &value_bytes});
}

tol_status kn_rows_launch_early(struct tol_stream *stream, const struct tol_kernel *kernel,
                                struct tol_launch_shape shape, const void *argument, size_t bytes) {
    void *value = (void *)(uintptr_t)argument; /* the driver's signature is not const */
    const unsigned value_bytes = (unsigned)bytes;
    assert(shape.grid_x > 0 && shape.block_x > 0);
    return tol_launch_programmatic(stream, kernel, shape,
                                   (struct tol_arguments){1, &value, &value_bytes});
}
