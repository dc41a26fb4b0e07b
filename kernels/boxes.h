/*
 * Tensor map: describes matrices in device memory to a kernel that copies boxes of them. The kernel
 * takes it by value. Thread-safe.
 */
#ifndef KN_BOXES_H
#define KN_BOXES_H

#include "number.h"

/* Matrices stored row by row, and if groups is not 0, groups of them. */
struct kn_tensor {
    const char *name; /* for messages */
    CUdeviceptr address;
    enum kn_type type;
    int columns, rows, matrices; /* at least 1 */
    long long leading, stride;   /* from row to row and from matrix to matrix, in elements */
    int groups;
    long long group_stride;
    bool is_bytes; /* elements have 8 bits, whatever type says */
    bool is_tf32;  /* floats are rounded to the nearest tf32 while they are copied, ties to even */
    int box_rows;  /* a box has 128 bytes of each of this many rows, 1 to 256 */
    /* If it is not 0, a box has this many bytes of each row instead, a multiple of 16 and at most
     * 256 elements, and is not swizzled. A box begins at a multiple of 16 bytes of a row. */
    int plain_bytes;
};

/* Whether the driver of the context makes tensor maps. */
bool kn_tensor_map_has(const struct tol_context *context);

/* Whether a map can say this stride. Of elements of 8 bits it can say one that it can say of 16. */
bool kn_tensor_map_takes(enum kn_type type, long long stride);

/* Makes the map: dimensions columns, rows, matrices and, if there are, groups; boxes of one matrix,
 * swizzled by 128 bytes unless they are plain, and zeros for what is outside. The address and the
 * strides must be multiples of 16 bytes. TOL_DRIVER_ERROR: the driver refuses. Source: CUDA Driver
 * API, cuTensorMapEncodeTiled. */
tol_status kn_tensor_map_make(struct tol_context *context, const struct kn_tensor *tensor,
                              CUtensorMap *map);

#endif
