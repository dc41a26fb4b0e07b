/*
 * top_k: the k largest elements of each row, the largest first, and their columns. Equal elements
 * are in the order of their columns; +0 and -0 are equal. A NaN is larger than every number, as in
 * argmax, so the NaNs of a row come first, in the order of their columns. The same row gives the
 * same result on every device, run after run.
 */
#ifndef KN_TOP_K_H
#define KN_TOP_K_H

#include "row/rows.h"

enum { KN_TOP_K_MOST = 1024 };

struct kn_top_k {
    enum kn_type type; /* of in and values */
    size_t rows, columns;
    size_t k; /* 1 to KN_TOP_K_MOST, and at most columns */
    struct kn_rows in;
    struct kn_rows
        values; /* rows x k: the elements, to the bit; buffer NULL: they are not wanted */
    struct kn_rows indices; /* rows x k int32: their columns; buffer NULL: they are not wanted */
    const char *variant;    /* forces the variant of this name; NULL: the best */
};

/* Queues it. Without rows it returns TOL_OK. TOL_INVALID_ARGUMENT: k is 0 or above columns, or
 * neither values nor indices are wanted. TOL_OVER_LIMIT: k is above KN_TOP_K_MOST. Else fails as
 * kn_softmax does. Thread-safe, as kernels and streams are. */
TOL_API tol_status kn_top_k(struct kn_kernels *kernels, struct tol_stream *stream,
                            const struct kn_top_k *top_k);

/* For k of up to 64 and whole rows, which begin at a multiple of 16 bytes and consist of pieces of
 * 16 bytes: "warp", a warp per row of up to 4,096 elements; "pass", a block per row, which is
 * read once. "block": any k and rows, which are read twice. */
extern const struct kn_variants kn_top_k_variants;

/* The definition, of one row: writes k columns. false: there is no memory. Pure. */
TOL_API bool kn_top_k_oracle(const float *in, size_t columns, size_t k, int *indices);

#endif
