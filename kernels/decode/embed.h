/*
 * embed: row r of out is row tokens[r] of a table, as floats, bit for bit as kn_weight_values says;
 * NaN if the table has no such row.
 *
 * Queues one kernel and waits for nothing. Thread-safe, as tol_launch is.
 */
#ifndef KN_EMBED_H
#define KN_EMBED_H

#include "choose/kernel_set.h"
#include "place.h"
#include "quantised/formats/weight_format.h"

struct kn_embed {
    enum kn_weight_format format;
    size_t rows, columns, table_rows;
    struct kn_place table;  /* table_rows rows of columns elements, in whole grains */
    struct kn_place tokens; /* rows int32 */
    struct kn_place out;    /* floats */
    size_t out_stride;      /* in elements; at least columns */
};

/*
 * Without rows it does nothing. TOL_INVALID_ARGUMENT: an argument is NULL or misaligned, the format
 * is unknown, columns is not whole grains, out_stride is below columns, or the table has no row.
 * TOL_OUT_OF_RANGE: a place is too small. TOL_OVER_LIMIT: 2^31 rows or columns, or more. A refused
 * call queues nothing.
 */
TOL_API tol_status kn_embed(struct kn_kernels *kernels, struct tol_stream *stream,
                            const struct kn_embed *embed);

#endif
