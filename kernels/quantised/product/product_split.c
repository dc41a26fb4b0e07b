/*
 * The workspace of wgmma and split-K, and the shares of k.
 */
#include "quantised/product/product_split.h"

#include "quantised/product/quant_product_arguments.h"

#include <assert.h>

enum { HALF_BYTES = 2 };

size_t kn_quant_wgmma_workspace(size_t columns, size_t k) {
    return columns * k * HALF_BYTES;
}

size_t kn_quant_split_columns(size_t columns) {
    return columns <= 32 ? 32 : columns <= 64 ? 64 : 128;
}

size_t kn_quant_split_workspace(size_t columns, size_t k) {
    const size_t tile = KN_QUANT_WGMMA_ROWS * kn_quant_split_columns(columns);
    const size_t sums = KN_QUANT_SPLIT_BLOCKS * tile * sizeof(float);
    return kn_quant_wgmma_workspace(columns, k) + KN_QUANT_SPLIT_TICKETS * sizeof(uint32_t) + sums;
}

static size_t product_split_smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

unsigned kn_quant_split_shares(size_t tiles, size_t chunks) {
    assert(tiles > 0 && chunks > 0);
    const size_t at_once = KN_QUANT_SPLIT_BLOCKS / tiles;
    if (at_once <= 1) return 1;
    const size_t most =
        product_split_smaller(product_split_smaller(at_once, KN_QUANT_SPLIT_SHARES), chunks);
    const size_t each = (chunks - 1) / most + 1;
    const size_t shares = (chunks - 1) / each + 1;
    assert(shares <= KN_QUANT_SPLIT_SHARES && (shares - 1) * each < chunks);
    return (unsigned)shares;
}
