/*
 * The descriptors of cublasLt: what the program's opaque structures hold.
 *
 * A descriptor is made by Create in memory of the library, or by Init in the program's own, of the
 * size that the opaque structures of cublasLt.h have. Not thread-safe, as cublasLt's.
 */
#ifndef CUBLAS_LT_DESCRIPTOR_H
#define CUBLAS_LT_DESCRIPTOR_H

#include "base/cublas_types.h"

#include <stdbool.h>

struct lt_layout { /* of a matrix */
    int32_t type, order;
    uint64_t rows, columns;
    int64_t leading, stride, plane;
    int32_t batch, batch_mode;
};

struct lt_matmul {
    int32_t compute, scale_type, pointer_mode, op_a, op_b, op_c, fill;
    uint32_t epilogue;
    uint64_t bias;
    int64_t bias_stride;
    int32_t bias_type;
    int32_t sm_count;
    int64_t alpha_stride;
    uint64_t scales[4]; /* of A, B, C and D */
    uint64_t aux;       /* a second matrix of an epilogue; others ignore it */
    int64_t aux_leading, aux_stride;
    int32_t aux_type;
    /* What no kernel here does: a program that sets any of them is refused. */
    struct {
        uint64_t pointers[4];
        int32_t modes[6];
        int8_t fast_accumulation, filler[7]; /* no byte is padding: it is compared as a whole */
    } rest;
};

struct lt_preference {
    uint32_t search_mode, reductions, alignment[4];
    uint64_t workspace, implementations;
    float waves;
};

enum { LT_ORDER_COLUMNS = 0, LT_ORDER_ROWS = 1 };
enum { LT_BATCH_STRIDED = 0, LT_BATCH_ARRAY = 1 };
/* cublasLtPointerMode_t after those of cuBLAS. */
enum {
    LT_POINTER_DEVICE_VECTORS = 2,
    LT_POINTER_ALPHA_VECTOR_BETA_ZERO = 3,
    LT_POINTER_ALPHA_VECTOR_BETA_HOST = 4
};
/* cublasLtEpilogue_t: sums of these bits. */
enum { LT_EPILOGUE_NONE = 1, LT_EPILOGUE_RELU = 2, LT_EPILOGUE_BIAS = 4, LT_EPILOGUE_GELU = 32 };

bool lt_matmul_has_scales(const struct lt_matmul *matmul);
/* Whether anything in rest differs from the defaults. */
bool lt_matmul_has_rest(const struct lt_matmul *matmul);

#endif
