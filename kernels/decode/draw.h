/*
 * Draw: a token of each row of logits, by chance: penalties, temperature, top-k, top-p, min-p.
 *
 * In this order: tokens of the row's list are made less likely; the top_k largest are kept; of
 * these the fewest whose weights reach the share; of these the ones of at least the least weight;
 * then 64 bits of chance pick one, in the order of tokens. A weight is e to the logit over the
 * temperature, as draw_arguments.h defines it: on the host and on every device the token is the
 * same, and it depends on its row alone.
 *
 * kn_draw queues five kernels and waits for nothing. Thread-safe, as tol_launch is; kn_draw_on_host
 * too, with workspaces of their own.
 */
#ifndef KN_DRAW_H
#define KN_DRAW_H

#include "choose/kernel_set.h"
#include "decode/draw_arguments.h"
#include "place.h"

struct kn_draw {
    size_t rows, columns;
    struct kn_place in;        /* floats; logits of penalised tokens are replaced */
    size_t in_stride;          /* from row to row, in elements */
    struct kn_place by;        /* one draw_device_row per row, at a multiple of 8 */
    struct kn_place out;       /* rows int32: a token, DRAW_NONE, or DRAW_BAD - column */
    struct kn_place workspace; /* kn_draw_workspace bytes at a multiple of 8 */
    const char *variant;       /* "early" or "parts"; NULL: the best */
};

TOL_API size_t kn_draw_workspace(size_t rows);

/*
 * Without rows it does nothing. Of a list of more than DRAW_TOKENS tokens the first DRAW_TOKENS
 * count, and tokens outside the row are ignored. TOL_INVALID_ARGUMENT: an argument is NULL or
 * misaligned, there are no columns, or a stride is below them. TOL_OUT_OF_RANGE: a place is too
 * small. TOL_OVER_LIMIT: more than DRAW_COLUMNS columns, or 2^16 rows. TOL_UNSUPPORTED,
 * TOL_NOT_FOUND: as kn_variant_pick. A refused call queues nothing.
 */
TOL_API tol_status kn_draw(struct kn_kernels *kernels, struct tol_stream *stream,
                           const struct kn_draw *draw);

/* What kn_draw leaves in `out` for one row, drawn on the host: tokens has row->penalised, any
 * number; logits are not changed. workspace: kn_draw_host_bytes(columns) bytes as malloc gives
 * them. */
TOL_API size_t kn_draw_host_bytes(size_t columns);
TOL_API int kn_draw_on_host(const struct draw_row *row, const uint32_t *tokens, const float *logits,
                            size_t columns, void *workspace);

#endif
