/*
 * Quant product by wgmma: when steps 8 and 9 serve, what they need, and the two launches of each.
 * Internal to the operation. Thread-safe.
 */
#ifndef KN_QUANT_PRODUCT_WGMMA_H
#define KN_QUANT_PRODUCT_WGMMA_H

#include "quant_product.h"
#include "quant_product_arguments.h"

/* What variants of the operation are picked by. */
struct kn_quant_problem {
    struct kn_quant_product product; /* strides filled in; the first member, for the others */
    bool has_maps;                   /* the driver makes tensor maps */
};

/* The third number of the tile of a kernel of step 9; 0 is step 8. */
enum { KN_QUANT_WGMMA_SPLIT = 16 };

/* A row of a table of variants: what the operation launches by kn_quant_wgmma_launch. Last come the
 * columns of a tile, and KN_QUANT_WGMMA_SPLIT for step 9. */
#define KN_QUANT_WGMMA_ROW(of, kernel, file, refuses, ...)                                         \
    {                                                                                              \
        .name = of, .entry = kernel, .images = file, .compute_capability_min = 90,                 \
        .refuse = refuses, .threads = KN_QUANT_WGMMA_THREADS,                                      \
        .shared_bytes = KN_QUANT_WGMMA_BYTES, .tile = {KN_QUANT_WGMMA_ROWS, __VA_ARGS__},          \
        .cluster = 1                                                                               \
    }

/* Bytes of x as halves, with which step 8 serves. */
size_t kn_quant_wgmma_workspace(size_t columns, size_t k);

/* These, and behind them tickets and the sums of shares for any number of rows: step 9. */
size_t kn_quant_split_workspace(size_t columns, size_t k);

/* The shares of k that a product of so many tiles and chunks of k has, at least 1 of either; from 1
 * to KN_QUANT_SPLIT_SHARES. Each has as many chunks, rounded up, and the last what is left, which
 * is not nothing. The same on every device, as the order of sums is. */
unsigned kn_quant_split_shares(size_t tiles, size_t chunks);

/* As struct kn_variant.refuse, of a struct kn_quant_problem. */
const char *kn_quant_wgmma_refuses(const struct kn_variant *row, const void *problem);

/* So too, of step 9 with tiles of so many columns. */
const char *kn_quant_split_32_refuses(const struct kn_variant *row, const void *problem);
const char *kn_quant_split_64_refuses(const struct kn_variant *row, const void *problem);
const char *kn_quant_split_refuses(const struct kn_variant *row, const void *problem);

/* So too, and refuses what another kernel made faster on an H100. Of step 9: fewer than 9 columns,
 * and k in one share. */
const char *kn_quant_split_32_is_slower(const struct kn_variant *row, const void *problem);
const char *kn_quant_split_64_is_slower(const struct kn_variant *row, const void *problem);
const char *kn_quant_split_is_slower(const struct kn_variant *row, const void *problem);

/* Of step 8: up to 32 columns, and by tiles of 256 columns what has at most 132 tiles of 128. */
const char *kn_quant_wgmma_is_slower(const struct kn_variant *row, const void *problem);
const char *kn_quant_wgmma_256_is_slower(const struct kn_variant *row, const void *problem);

/* Queues the kernel that rounds x, and the product behind it, by the kernel of a variant that
 * serves. Fails as kn_tensor_map_make, kn_kernels_find and tol_launch do. */
tol_status kn_quant_wgmma_launch(struct kn_kernels *kernels, struct tol_stream *stream,
                                 const struct kn_variant *variant, const struct tol_kernel *kernel,
                                 const struct kn_quant_problem *problem,
                                 struct kn_quant_product_arguments arguments);

#endif
