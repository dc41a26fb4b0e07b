/*
 * The parameters of the kernels of linear and rounded, one struct per kernel, and the layout of x
 * between them: the same on host and device. Addresses are of device memory.
 * Internal to the operations.
 */
#ifndef KN_LINEAR_ARGUMENTS_H
#define KN_LINEAR_ARGUMENTS_H

#include <stdint.h>

struct linear_arguments {
    uint64_t weights, gate;      /* gate: of a second matrix, for the gated kernels */
    uint64_t x, y, bias;         /* floats; bias 0: none */
    uint64_t split;              /* x in two parts, for the wide kernels */
    uint64_t x_stride, y_stride; /* from column to column, in elements */
    uint32_t rows, columns, k;
    uint32_t adds; /* 1: y += */
};

/* x as two bfloat16 numbers: of a chunk of 256 elements of a column, and of the sums of its
 * sub-blocks. */
enum { LINEAR_CHUNK = 256, LINEAR_CHUNK_BYTES = 1024, LINEAR_SUMS_BYTES = 32 };

/* The tensor kernels have x of a pass in shared memory. */
enum {
    LINEAR_TENSOR_THREADS = 256,
    LINEAR_TENSOR_NUMBERS = 64 << 10,
    LINEAR_TENSOR_SUMS = LINEAR_TENSOR_NUMBERS / LINEAR_CHUNK_BYTES * LINEAR_SUMS_BYTES,
    LINEAR_TENSOR_BYTES = LINEAR_TENSOR_NUMBERS + LINEAR_TENSOR_SUMS
};

/* The wide kernels read it from device memory, where a prologue has stored it: of a tile of
 * columns, chunk by chunk, the numbers and then the sums. They have four quarters of chunks in
 * shared memory, the sums of two chunks, and the totals of each warp. */
enum {
    LINEAR_WIDE_COLUMNS = 64,
    LINEAR_WIDE_WARPS = 8, /* at most */
    LINEAR_WIDE_ROWS = 32, /* of a warp; 16 of each matrix for the gated ones */
    LINEAR_WIDE_STAGES = 4,
    LINEAR_WIDE_NUMBERS = LINEAR_WIDE_COLUMNS * LINEAR_CHUNK_BYTES,
    LINEAR_WIDE_SUMS = LINEAR_WIDE_COLUMNS * LINEAR_SUMS_BYTES,
    LINEAR_WIDE_CHUNK = LINEAR_WIDE_NUMBERS + LINEAR_WIDE_SUMS,
    LINEAR_WIDE_TOTALS = LINEAR_WIDE_ROWS * LINEAR_WIDE_COLUMNS,    /* of a warp, 4 bytes each */
    LINEAR_WIDE_BYTES = LINEAR_WIDE_NUMBERS + 2 * LINEAR_WIDE_SUMS, /* and the totals */
    LINEAR_SPLIT_THREADS = 256
};

/* x as bytes, for the bytes kernels: of a tile of eight columns, chunk by chunk, the numbers as
 * fragments of mma.m16n8k32, two sub-blocks in the 16 bytes of a lane; and one unit of 16 bytes per
 * lane: the lower bytes of the sums of four times 16 neighbours, the upper ones, and the column's
 * scale. */
enum {
    ROUNDED_COLUMNS = 8,
    ROUNDED_UNITS_AT = ROUNDED_COLUMNS * LINEAR_CHUNK,
    ROUNDED_CHUNK = ROUNDED_UNITS_AT + 64 * ROUNDED_COLUMNS,
    ROUNDED_THREADS = 512,
    ROUNDED_NORM_CHUNKS = 4, /* of a warp */
    LINEAR_BYTES_WARPS = 8
};

/* A warp's ring in shared memory: each stage has a chunk of tiles of 16 rows, STRIDE bytes per row
 * and, if there are several tiles of columns, a chunk of the numbers of x. */
enum { LINEAR_STRIDE_Q4_K = 144, LINEAR_STRIDE_Q5_K = 176, LINEAR_STRIDE_Q6_K = 240 };
#define LINEAR_BYTES_STAGES(stride) ((stride) > 200 ? 3 : 4)
#define LINEAR_BYTES_TILES(stride) ((stride) > 200 ? 1 : 2) /* with four tiles of columns */
#define LINEAR_BYTES_SHARED(stride, tiles, columns, stages)                                        \
    (LINEAR_BYTES_WARPS * (stages) *                                                               \
     ((tiles)*16 * (stride) + ((columns) > 1 ? (columns) * (int)ROUNDED_UNITS_AT : 0)))

enum { LINEAR_STAY_COLUMNS = 4 }; /* at most, unless the variant is named */

/* The same for a persistent thread block, which also has the totals of two tiles. */
#define LINEAR_STAY_SHARED(stride)                                                                 \
    (LINEAR_BYTES_SHARED(stride, 1, 1, LINEAR_BYTES_STAGES(stride)) +                              \
     2 * LINEAR_BYTES_WARPS * (int)ROUNDED_COLUMNS * 16 * 4)

/* Of the bytes kernels. The gated ones round y to bytes as well, where `rounded` is not 0: tickets
 * has an uint32 for each tile of columns and chunk of rows. */
struct linear_bytes_arguments {
    struct linear_arguments linear;
    uint64_t rounded, tickets;
};

/* Of two products of the same x by persistent thread blocks; the first blocks have the first
 * product. */
struct linear_pair_arguments {
    struct linear_bytes_arguments of[2];
    uint32_t first_blocks;
};

struct rounded_arguments {
    uint64_t x, weight, out; /* floats; weight: of a norm by the root mean square, 0: none */
    uint64_t x_stride;
    uint32_t k;
    float epsilon;
};

#endif
