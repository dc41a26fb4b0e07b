/*
 * Gather columns: each rank of a collective has some columns of a matrix, and all get all of them.
 *
 * It moves bytes and computes nothing. By flags it is one launch per rank, up to
 * KN_COLLECTIVE_FLAGS_BYTES of a rank each, and can be captured; directly it is one kernel between
 * two meetings of the streams by events. Flags are taken where the collective has them and the
 * columns are few, and for any columns in a capture.
 *
 * Capture: between kn_columns_capture_begin and _end gathers are for graphs, one per rank. A call
 * differs from earlier ones by its number, so a graph has numbers that count from a word in the
 * memory of each device: before each launch of the graphs the caller takes as many numbers as
 * the capture had, and writes the first to these words.
 *
 * Threads and errors: as of the other calls of a collective (collective.h).
 */
#ifndef KN_GATHER_COLUMNS_H
#define KN_GATHER_COLUMNS_H

#include "collective/collective.h"

/* All strides and sizes are in bytes, multiples of 8. */
struct kn_columns_part {
    struct kn_place in;  /* the rank's own columns; may be their place in out */
    size_t in_stride;    /* from row to row, at least part_bytes */
    struct kn_place out; /* the matrix; rank r has the columns from r * part_bytes on */
    struct tol_stream *stream;
    struct kn_place number; /* of a capture: a word of the device (above) */
};

struct kn_columns {
    size_t rows;
    size_t part_bytes; /* of a row of a rank; 0: nothing is done */
    size_t stride;     /* of out, from row to row; at least ranks * part_bytes */
};

/* parts has an entry for each rank. in and out must be apart, or in be its place in out. */
TOL_API tol_status kn_gather_columns(struct kn_collective *collective,
                                     const struct kn_columns_part *parts,
                                     const struct kn_columns *columns);

/* Whether the collective has flags, without which there is no capture. */
TOL_API bool kn_columns_can_capture(const struct kn_collective *collective);

/* TOL_UNSUPPORTED: the collective has no flags. */
TOL_API tol_status kn_columns_capture_begin(struct kn_collective *collective);
/* The numbers that the captured gathers need. */
TOL_API unsigned kn_columns_capture_end(struct kn_collective *collective);

/* Takes `count` numbers and returns the first. Once in 2^32 it waits for the streams of all ranks
 * and clears the inboxes; fails as kn_collective_wait does. */
TOL_API tol_status kn_columns_take(struct kn_collective *collective, unsigned numbers,
                                   unsigned *first);

#endif
