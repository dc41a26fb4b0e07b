/*
 * The parameter of every kernel of the quant product: the same struct on host and device. Internal
 * to the operation.
 */
#ifndef KN_QUANT_PRODUCT_ARGUMENTS_H
#define KN_QUANT_PRODUCT_ARGUMENTS_H

#include <stdint.h>

struct kn_quant_product_arguments {
    uint64_t weights, x, y;      /* addresses */
    uint64_t quants, scales;     /* of x rounded to bytes, and of their scales, one for each 32; or
                                  * quants of x rounded to halves, without scales, but with tickets
                                  * and sums of shares of k there (KN_QUANT_SPLIT_TICKETS); or
                                  * quants of both, as quant_product_columns reads them */
    uint64_t x_stride, y_stride; /* from column to column, in elements */
    uint32_t rows, columns;
    uint32_t blocks; /* of a row of weights */
    uint32_t k;      /* elements of a row of weights */
};

/* quant_product_bulk: the rows of a warp at a time, and the slots of the ring of each of its 16
 * warps. The rings come before x in dynamic shared memory. A slot holds eight blocks of each
 * row. */
enum {
    KN_QUANT_BULK_ROWS = 2,
    KN_QUANT_BULK_SLOTS = 5,
    KN_QUANT_BULK_RING_BYTES = 16 * KN_QUANT_BULK_SLOTS * KN_QUANT_BULK_ROWS * 8 * 144
};

/* quant_product_columns: columns of x at most, rows of a tile at least and at most, the warps that
 * multiply, those that copy, and the slots of the block's ring. A slot holds eight blocks of
 * each row, with 32 bytes between rows and 16 more between fours of them, 320 bytes for each
 * column and block of x, and two mbarriers. The ring comes before 1 KiB for each warp in dynamic
 * shared memory.
 * quant_product_columns_x: its threads, and dynamic shared memory that it does not use: it asks for
 * some, so that a multiprocessor has its memory as shared memory then already. To turn cache into
 * shared memory, the multiprocessor would have to be empty. */
enum {
    KN_QUANT_COLUMNS_MOST = 8,
    KN_QUANT_COLUMNS_ROWS_LEAST = 8,
    KN_QUANT_COLUMNS_ROWS = 32,
    KN_QUANT_COLUMNS_WARPS = 16,
    KN_QUANT_COLUMNS_COPIERS = 4,
    KN_QUANT_COLUMNS_THREADS = (KN_QUANT_COLUMNS_WARPS + KN_QUANT_COLUMNS_COPIERS) * 32,
    KN_QUANT_COLUMNS_SLOTS = 3,
    KN_QUANT_COLUMNS_SLOT_BYTES =
        KN_QUANT_COLUMNS_ROWS * (8 * 144 + 32 + 4) + 8 * KN_QUANT_COLUMNS_MOST * 320 + 16,
    KN_QUANT_COLUMNS_BYTES =
        KN_QUANT_COLUMNS_SLOTS * KN_QUANT_COLUMNS_SLOT_BYTES + KN_QUANT_COLUMNS_WARPS * 1024,
    KN_QUANT_COLUMNS_X_THREADS = 128,
    KN_QUANT_COLUMNS_X_BYTES = 16 << 10
};

/* quant_product_wgmma: rows of a block, elements of a row that it loads at once, its threads, and
 * its dynamic shared memory, which only one block of a multiprocessor has. */
enum {
    KN_QUANT_WGMMA_ROWS = 128,
    KN_QUANT_WGMMA_CHUNK = 256,
    KN_QUANT_WGMMA_THREADS = 384,
    KN_QUANT_WGMMA_BYTES = 226 << 10
};

/* quant_product_split: the most blocks of a product with split-K, which therefore run at once; the
 * most shares, since one block adds them up; tickets, one per 64 rows of a tile, before the
 * sums. */
enum { KN_QUANT_SPLIT_BLOCKS = 132, KN_QUANT_SPLIT_SHARES = 16, KN_QUANT_SPLIT_TICKETS = 512 };

#endif
