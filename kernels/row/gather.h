/*
 * gather: row r of out is row indices[r] of a table, as in an embedding, bit for bit except for
 * NaNs.
 *
 * The host does not see the indices. An index outside the table gives a row of NaN and reads
 * nothing. out may not overlap the table.
 */
#ifndef KN_GATHER_H
#define KN_GATHER_H

#include "row/rows.h"

struct kn_gather {
    enum kn_type type; /* of table and out */
    size_t rows, columns, table_rows;
    struct kn_rows table, out;
    struct kn_rows indices; /* rows values of int32 */
};

/* Queues it. Without rows or columns it returns TOL_OK. Fails as kn_softmax does. */
TOL_API tol_status kn_gather(struct kn_kernels *kernels, struct tol_stream *stream,
                             const struct kn_gather *gather);

extern const struct kn_variants kn_gather_variants;

#endif
