/*
 * The parameters of the kernels of best, embed, heads and paged, one struct per kernel: the same on
 * host and device. Addresses are of device memory. Internal to the operations.
 */
#ifndef KN_DECODE_ARGUMENTS_H
#define KN_DECODE_ARGUMENTS_H

#include <stdint.h>

enum { BEST_THREADS = 256, BEST_PARTS = 96 };
struct best_arguments {
    uint64_t in, keys, out; /* floats; BEST_PARTS keys per row; one int32 per row */
    uint64_t in_stride;     /* in elements */
    uint32_t columns;
};

struct embed_arguments {
    uint64_t table, tokens, out;
    uint64_t out_stride;
    uint32_t table_rows, columns;
};

struct gated_arguments {
    uint64_t gate, y;
    uint64_t gate_stride, y_stride; /* in elements */
    uint32_t columns;
};

/* Where the keys and values of a position are: page tables[slot][position / 16], and in it the
 * layer's keys as [head][element / 8][position % 16][element % 8] and values as
 * [head][position % 16][element], both fp16, or bytes whose scales, one for 32 elements, are fp16
 * in [head][position % 16][element / 32]. */
struct paged_cache {
    uint64_t tables;    /* addresses of pages, 64 bits each, pages_max per slot */
    uint64_t positions; /* one int32 per row */
    uint64_t slots;     /* one int32 per row */
    uint64_t keys_at;   /* of the layer, in bytes from the page's beginning */
    uint64_t values_at;
    uint64_t key_scales_at, value_scales_at; /* for bytes */
    uint32_t pages_max;
};

struct heads_arguments {
    struct paged_cache cache;
    uint64_t rows_at; /* floats: a row holds the heads of q, then of k, then of v */
    uint64_t row_stride;
    uint64_t q_norm, k_norm;  /* floats, head_size; 0: none */
    uint64_t frequencies;     /* floats, rotated / 2: radians per position */
    float epsilon, magnitude; /* of the norms; by which sines and cosines are multiplied */
    int32_t heads, kv_heads, head_size, rotated;
    int32_t halves; /* pairs are i and i + rotated / 2, else 2 i and 2 i + 1 */
    uint32_t layer;
    uint64_t notices; /* 64 bits per slot, as kn_notice has them; 0: none */
};

/* What the cache cannot hold (paged.h): the layer, the position, and one of these. The smallest is
 * kept. */
enum { NOTICE_LAYER_BIT = 40, NOTICE_POSITION_BIT = 4, NOTICE_VALUE = 2, NOTICE_NOT_FINITE = 1 };

enum { PAGED_SPAN = 128, PAGED_SPAN_THREADS = 256 }; /* positions of a block */

struct paged_arguments {
    struct paged_cache cache;
    uint64_t q, out; /* floats; q is not scaled yet. Or out as rounded.cuh has it */
    uint64_t q_stride, out_stride;
    uint64_t parts; /* of blocks: head_size sums, the largest score, the sum of weights */
    float scale_log2;
    int32_t heads, kv_heads, head_size;
    int32_t window; /* positions that a row sees, with its own; 0: all */
    int32_t splits;
};

/* Of both in one. Where splits is 1 the rows themselves go to paged.out. */
struct paged_step_arguments {
    struct heads_arguments heads;
    struct paged_arguments paged;
    uint32_t rounds; /* out is as rounded.cuh has it */
};

#endif
