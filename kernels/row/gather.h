/*
 * gather: row r of out is row indices[r] of a table, bit for bit but for NaNs: an embedding.
 *
 * An index that the table does not have, or a negative one, gives a row of NaN and touches nothing:
 * the host does not see indices. out may not overlap the table.
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

/* Queues it. No rows or no columns are TOL_OK. Fails as kn_softmax. */
TOL_API tol_status kn_gather(struct kn_kernels *kernels, struct tol_stream *stream,
                             const struct kn_gather *gather);

extern const struct kn_variants kn_gather_variants;

#endif
