/*
 * Product table: the kernels of all products of quantised weights, best first, and when each can
 * compute a problem. A problem is a struct kn_product.
 * Internal to the operations: not installed. Thread-safe: all is constant.
 */
#ifndef KN_PRODUCT_TABLE_H
#define KN_PRODUCT_TABLE_H

#include "quantised/product/product_problem.h"
#include "quantised/product/quant_product_arguments.h"

/* The third number of a row's tile: which prologue, arguments and grid a kernel has. */
enum kn_product_kind {
    KN_PRODUCT_PLAIN,   /* one kernel, one block per tile */
    KN_PRODUCT_ALONE,   /* so too, and one thread per element, which adds its products in order */
    KN_PRODUCT_APART,   /* the prologue rounds x to bytes in the workspace */
    KN_PRODUCT_STAGED,  /* each block rounds x to bytes in its shared memory */
    KN_PRODUCT_BULK,    /* so too, and persistent thread blocks copy weights into rings */
    KN_PRODUCT_COLUMNS, /* prologue as APART with scales beside the bytes; persistent blocks */
    KN_PRODUCT_WGMMA,   /* the prologue rounds x to halves; tensor maps of weights and x */
    KN_PRODUCT_SPLIT,   /* so too, with split-K */
    KN_PRODUCT_TILES,   /* kn_linear: floats, one block per tile */
    KN_PRODUCT_WIDE,    /* kn_linear: the prologue splits x into two bfloat16 numbers */
    KN_PRODUCT_BYTES,   /* kn_linear: x as kn_rounded leaves it, one block per tile */
    KN_PRODUCT_STAY,    /* so too, two persistent thread blocks per multiprocessor */
    KN_PRODUCT_MANY     /* so too, one per multiprocessor; a rounded y is an epilogue kernel */
};

/* Bits of struct kn_variant.needs. Its `size` is the most columns, or 0. */
enum {
    KN_PRODUCT_WEIGHTS_16 = 1 << 0, /* Q4_K begins at a multiple of 16 bytes */
    KN_PRODUCT_X_16 = 1 << 1,       /* each column of x begins at a multiple of 16 bytes */
    KN_PRODUCT_WORDS = 1 << 2,      /* Q6_K and its gate begin at a multiple of 4 bytes */
    KN_PRODUCT_FITS = 1 << 3,       /* x as bytes fits the row's shared memory */
    KN_PRODUCT_SEVERAL = 1 << 4,    /* there are two columns or more */
    KN_PRODUCT_OVER_8 = 1 << 5,     /* there are more than 8 columns */
    KN_PRODUCT_MAPS = 1 << 6,       /* tensor maps of weights and x can be made */
    KN_PRODUCT_HALVES = 1 << 7,     /* the workspace fits x as halves */
    KN_PRODUCT_SHARES = 1 << 8,     /* so too, and the partial sums of split-K */
    KN_PRODUCT_WORKSPACE = 1 << 9,  /* there is a workspace */
    KN_PRODUCT_FLOATS = 1 << 10,    /* x is not rounded yet */
    KN_PRODUCT_WHOLE = 1 << 11,     /* rows of W are whole tiles */
    KN_PRODUCT_SHORT = 1 << 12,     /* the units of a column of x fit a block */
    KN_PRODUCT_Y_16 = 1 << 13       /* a y that is rounded is aligned to 16 bytes */
};

/* A row whose kernel takes tensor maps. */
#define KN_PRODUCT_MAPS_ROW(name_, entry_, images_, needs_, most, columns, kind)                   \
    .name = name_, .entry = entry_, .images = images_, .compute_capability_min = 90,               \
    .needs = KN_PRODUCT_WEIGHTS_16 | KN_PRODUCT_X_16 | KN_PRODUCT_MAPS | (needs_), .size = most,   \
    .refuse = kn_product_refuse, .threads = KN_QUANT_WGMMA_THREADS,                                \
    .shared_bytes = KN_QUANT_WGMMA_BYTES, .tile = {KN_QUANT_WGMMA_ROWS, columns, kind},            \
    .cluster = 1, .pdl = true

/* As struct kn_variant has it. */
const char *kn_product_refuse(const struct kn_variant *row, const void *product);

/* The rows of a way and a format; without rows for a format that the way does not have. */
const struct kn_variants *kn_product_rows(enum kn_product_way way, enum kn_weight_format format);

/* The bytes of shared memory that x takes as bytes, with 16 more per 64 of them. */
static inline size_t kn_product_staged_bytes(size_t k) {
    return k + k / 64 * 16;
}

#endif
