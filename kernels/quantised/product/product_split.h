/*
 * Product split: how wgmma and split-K use the workspace, and into how many shares they split k.
 * Internal to the operations: not installed. Pure; thread-safe.
 */
#ifndef KN_PRODUCT_SPLIT_H
#define KN_PRODUCT_SPLIT_H

#include <stddef.h>

/* The bytes of x as halves, which "wgmma" needs. */
size_t kn_quant_wgmma_workspace(size_t columns, size_t k);

/* What "wgmma_split" needs: x as halves, then tickets, then the partial sums of all shares for any
 * number of rows. */
size_t kn_quant_split_workspace(size_t columns, size_t k);

/* The columns of the narrowest tile of "wgmma_split" that has all columns, else of the widest. */
size_t kn_quant_split_columns(size_t columns);

/* The shares of k of a product with this number of tiles and of chunks of k, each at least 1: from
 * 1 to KN_QUANT_SPLIT_SHARES. All shares have the same number of chunks, rounded up, but the last,
 * which has what is left, at least one. Devices do not differ in it, since the order of sums
 * depends on it. */
unsigned kn_quant_split_shares(size_t tiles, size_t chunks);

#endif
