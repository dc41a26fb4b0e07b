/*
 * Paged cache: where keys and values lie, for the operations beside paged attention that read them.
 * Internal to the operations: not installed. Pure; thread-safe.
 */
#ifndef KN_PAGED_CACHE_H
#define KN_PAGED_CACHE_H

#include "decoder/decoder_arguments.h"
#include "decoder/paged.h"

struct paged_cache kn_paged_cache_of(const struct kn_paged_rows *batch,
                                     const struct kn_paged_heads *shape);

/* The checks of kn_paged_attention on both. */
tol_status kn_paged_check(const struct kn_paged_rows *batch, const struct kn_paged_heads *shape);

#endif
