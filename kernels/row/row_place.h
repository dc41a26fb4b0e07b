/*
 * Row place: the address range of a matrix of rows, the checks that every operation on rows makes
 * before it queues work, and its launch.
 * Internal to the operations: not installed. Thread-safe.
 */
#ifndef KN_ROW_PLACE_H
#define KN_ROW_PLACE_H

#include "row/rows.h"

struct kn_rows_place {
    const char *name; /* for messages: "in" */
    size_t rows, columns, element_bytes;
    bool may_repeat;   /* rows may overlap; a stride of 0 then repeats one row */
    size_t stride;     /* this and the next two are set by kn_rows_locate */
    CUdeviceptr begin; /* 0 if there are no elements */
    CUdeviceptr end;   /* the address after the last element */
};

/*
 * Computes the address range of a matrix. TOL_INVALID_ARGUMENT: no buffer, rows that overlap, an
 * address that is not aligned to an element. TOL_OUT_OF_RANGE: the matrix does not fit its buffer,
 * or its size overflows. TOL_OVER_LIMIT: 2^31 rows or columns, or more.
 */
tol_status kn_rows_locate(const struct kn_rows *rows, struct kn_rows_place *place);

/* TOL_INVALID_ARGUMENT: the two overlap and are not the same matrix. */
tol_status kn_rows_apart(const struct kn_rows_place *written, const struct kn_rows_place *read);

/*
 * Finds where "in" and "out" of an operation lie, two matrices of one type and shape. Fails as
 * kn_rows_type, kn_rows_locate and kn_rows_apart.
 */
tol_status kn_rows_locate_in_out(enum kn_type type, size_t rows, size_t columns,
                                 const struct kn_rows *in, const struct kn_rows *out,
                                 struct kn_rows_place *in_place, struct kn_rows_place *out_place);

/* TOL_INVALID_ARGUMENT: kernels, stream or problem is NULL. */
tol_status kn_rows_given(const char *operation, const void *kernels, const void *stream,
                         const void *problem);
/* TOL_INVALID_ARGUMENT: the type does not exist. */
tol_status kn_rows_type(enum kn_type type);

/* tol_launch of a kernel with one parameter, a struct. */
tol_status kn_rows_launch(struct tol_stream *stream, const struct tol_kernel *kernel,
                          struct tol_launch_shape shape, const void *argument, size_t bytes);
/* tol_launch_programmatic of it: the kernel may begin before the previous kernel has ended. */
tol_status kn_rows_launch_early(struct tol_stream *stream, const struct tol_kernel *kernel,
                                struct tol_launch_shape shape, const void *argument, size_t bytes);

#endif
