/*
 * Where rows lie, and how many threads they get.
 */
#include "row/row_place.h"

#include "core/check.h"

enum { WARP = 32, PIECE_BYTES = 16 };

/* *sum += a * b, or false. */
static bool add_product(size_t *sum, size_t a, size_t b) {
    size_t product;
    return !__builtin_mul_overflow(a, b, &product) && !__builtin_add_overflow(*sum, product, sum);
}

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
    const bool fits = add_product(&last, place->rows - 1, place->stride) &&
                      add_product(&last, place->columns, 1) &&
                      add_product(&extent, last, element) &&
                      add_product(&first, rows->offset, element);
    TOL_CHECK(fits && extent <= bytes, TOL_OUT_OF_RANGE,
              "%s is %zu rows of %zu elements of %zu bytes, %zu apart, from element %zu on, and "
              "its buffer has %zu bytes",
              place->name, place->rows, place->columns, element, place->stride, rows->offset,
              bytes);
    place->begin = tol_buffer_address(rows->buffer) + first;
    place->end = tol_buffer_address(rows->buffer) + extent;
    TOL_CHECK(place->begin % element == 0, TOL_INVALID_ARGUMENT,
              "%s begins at %#llx, which is no multiple of an element's %zu bytes", place->name,
              (unsigned long long)place->begin, element);
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
    TOL_CHECK((unsigned)type < KN_TYPES, TOL_INVALID_ARGUMENT, "%d is no type", (int)type);
out:
    return status;
}

tol_status kn_rows_launch(struct tol_stream *stream, const struct tol_kernel *kernel,
                          struct tol_launch_shape shape, const void *argument, size_t bytes) {
    void *value = (void *)(uintptr_t)argument; /* the driver's signature is not const */
    const unsigned value_bytes = (unsigned)bytes;
    return tol_launch(stream, kernel, shape, (struct tol_arguments){1, &value, &value_bytes});
}

tol_status kn_rows_launch_early(struct tol_stream *stream, const struct tol_kernel *kernel,
                                struct tol_launch_shape shape, const void *argument, size_t bytes) {
    void *value = (void *)(uintptr_t)argument; /* the driver's signature is not const */
    const unsigned value_bytes = (unsigned)bytes;
    return tol_launch_programmatic(stream, kernel, shape,
                                   (struct tol_arguments){1, &value, &value_bytes});
}

/* ---- how many threads ------------------------------------------------------------------------ */

struct kn_row_fit kn_row_fit_of(enum kn_type type, const struct kn_rows_place *in) {
    const size_t bytes = in->columns * in->element_bytes;
    const bool aligned = in->begin % PIECE_BYTES == 0 &&
                         (in->rows == 1 || in->stride * in->element_bytes % PIECE_BYTES == 0);
    const size_t before = aligned ? 0 : PIECE_BYTES - in->element_bytes;
    return (struct kn_row_fit){.type = type,
                               .pieces = (before + bytes + PIECE_BYTES - 1) / PIECE_BYTES,
                               .row_bytes = bytes,
                               .not_whole = "rows are taken at any address"};
}

static const char *only(const void *fit, enum kn_type type) {
    static const char *const clauses[KN_TYPES] = {"the type is not f32", "the type is not f16",
                                                  "the type is not bf16"};
    return ((const struct kn_row_fit *)fit)->type == type ? NULL : clauses[type];
}

static const char *holds(const void *fit, enum kn_type type, size_t pieces) {
    if (only(fit, type) != NULL) return only(fit, type);
    return ((const struct kn_row_fit *)fit)->pieces <= pieces ? NULL
                                                              : "the registers do not hold a row";
}

const char *kn_row_only_f32(const void *fit) {
    return only(fit, KN_F32);
}
const char *kn_row_only_f16(const void *fit) {
    return only(fit, KN_F16);
}
const char *kn_row_only_bf16(const void *fit) {
    return only(fit, KN_BF16);
}

enum { BLOCK_MAX = 1024 };
const char *kn_row_f32_1(const void *fit) {
    return holds(fit, KN_F32, WARP);
}
const char *kn_row_f32_2(const void *fit) {
    return holds(fit, KN_F32, 2 * WARP);
}
const char *kn_row_f32_4(const void *fit) {
    return holds(fit, KN_F32, 4 * BLOCK_MAX);
}
const char *kn_row_f32_8(const void *fit) {
    return holds(fit, KN_F32, 8 * WARP);
}
const char *kn_row_f16_1(const void *fit) {
    return holds(fit, KN_F16, WARP);
}
const char *kn_row_f16_2(const void *fit) {
    return holds(fit, KN_F16, 2 * WARP);
}
const char *kn_row_f16_4(const void *fit) {
    return holds(fit, KN_F16, 4 * BLOCK_MAX);
}
const char *kn_row_bf16_1(const void *fit) {
    return holds(fit, KN_BF16, WARP);
}
const char *kn_row_bf16_2(const void *fit) {
    return holds(fit, KN_BF16, 2 * WARP);
}
const char *kn_row_bf16_4(const void *fit) {
    return holds(fit, KN_BF16, 4 * BLOCK_MAX);
}

struct tol_launch_shape kn_row_shape(const struct kn_variant *variant, const struct kn_row_fit *fit,
                                     size_t rows) {
    unsigned threads = variant->threads, abreast = variant->tile[0];
    const unsigned pieces = variant->tile[1];
    if (pieces != 0 && fit->pieces > (size_t)WARP * pieces) {
        threads = (unsigned)((fit->pieces + pieces - 1) / pieces + WARP - 1) / WARP * WARP;
        abreast = 1;
    }
    if (abreast == 0) abreast = 1;
    return (struct tol_launch_shape){.grid_x = (unsigned)((rows + abreast - 1) / abreast),
                                     .grid_y = 1,
                                     .grid_z = 1,
                                     .block_x = threads,
                                     .block_y = abreast,
                                     .block_z = 1};
}
