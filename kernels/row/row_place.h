/*
 * Rows: a matrix in a device buffer, row after row, and the checks that all operations on rows make
 * before anything is queued.
 */
#ifndef KN_ROW_PLACE_H
#define KN_ROW_PLACE_H

#include "kernel_set.h"
#include "number.h"

struct kn_rows {
    const struct tol_buffer *buffer;
    size_t offset; /* of the first element, in elements */
    size_t stride; /* from row to row, in elements; 0: rows without gaps */
};

/* A matrix as it lies in memory. Internal to the operations. */
struct kn_rows_place {
    const char *name; /* "in" */
    size_t rows, columns, element_bytes;
    bool may_repeat;   /* the rows may overlap, and stride 0 is the same row for all */
    size_t stride;     /* found here, as what follows */
    CUdeviceptr begin; /* 0 where there are no elements */
    CUdeviceptr end;   /* behind the last element */
};

/*
 * Finds where a matrix lies. TOL_INVALID_ARGUMENT: no buffer, rows that overlap, an address that is
 * no multiple of the element's size. TOL_OUT_OF_RANGE: it does not lie inside its buffer, or its
 * size overflows. TOL_OVER_LIMIT: 2^31 rows or columns, or more.
 */
tol_status kn_rows_locate(const struct kn_rows *rows, struct kn_rows_place *place);

/* What is written must be all of what is read, element for element, or none of it.
 * TOL_INVALID_ARGUMENT: they overlap otherwise. */
tol_status kn_rows_apart(const struct kn_rows_place *written, const struct kn_rows_place *read);

/* TOL_INVALID_ARGUMENT: kernels, stream or problem is NULL. */
tol_status kn_rows_given(const char *operation, const void *kernels, const void *stream,
                         const void *problem);
/* TOL_INVALID_ARGUMENT: there is no such type. */
tol_status kn_rows_type(enum kn_type type);

/* tol_launch of a kernel whose one parameter is a struct. */
tol_status kn_rows_launch(struct tol_stream *stream, const struct tol_kernel *kernel,
                          struct tol_launch_shape shape, const void *argument, size_t bytes);
/* tol_launch_programmatic of it: the kernel may begin before the one in front of it has ended. */
tol_status kn_rows_launch_early(struct tol_stream *stream, const struct tol_kernel *kernel,
                                struct tol_launch_shape shape, const void *argument, size_t bytes);

/*
 * How a row is spread over registers: what the tables of variants of softmax and norm look at.
 * Internal to the operations.
 */
struct kn_row_fit {
    enum kn_type type;
    size_t pieces;    /* of 16 bytes that a row may touch */
    size_t row_bytes; /* of its elements */
    /* Why rows do not consist of pieces of 16 bytes that begin at multiples of 16, as a clause;
     * NULL: they do. Asked for with kn_row_whole. */
    const char *not_whole;
};

struct kn_row_fit kn_row_fit_of(enum kn_type type, const struct kn_rows_place *in);

/* As kn_variant.refuse. */
const char *kn_row_only_f32(const void *fit);
const char *kn_row_only_f16(const void *fit);
const char *kn_row_only_bf16(const void *fit);
/* The registers of so many pieces a thread hold the row. */
const char *kn_row_f32_1(const void *fit);
const char *kn_row_f32_2(const void *fit);
const char *kn_row_f32_4(const void *fit);
const char *kn_row_f32_8(const void *fit);
const char *kn_row_f16_1(const void *fit);
const char *kn_row_f16_2(const void *fit);
const char *kn_row_f16_4(const void *fit);
const char *kn_row_bf16_1(const void *fit);
const char *kn_row_bf16_2(const void *fit);
const char *kn_row_bf16_4(const void *fit);

/* The shape of a launch. tile[0] is the rows of a block that has a warp for each, or 0 where a
 * block has one row; tile[1] the pieces of a thread, or 0 where a thread takes as many as come. */
struct tol_launch_shape kn_row_shape(const struct kn_variant *variant, const struct kn_row_fit *fit,
                                     size_t rows);

#endif
