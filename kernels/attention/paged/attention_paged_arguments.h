/*
 * The parameter of every kernel of attention over paged sequences: the same struct on host and
 * device. Internal to the operation.
 */
#ifndef KN_ATTENTION_PAGED_ARGUMENTS_H
#define KN_ATTENTION_PAGED_ARGUMENTS_H

#include "../forward/attention_arguments.h"

/* A page may begin at each multiple of this number of bytes from the beginning of the pool. */
enum { ATTENTION_PAGE_UNIT = 128 };

struct attention_paged_arguments {
    /* batch: sequences; q_length and kv_length: the most rows and positions of one; lse: floats,
     * [heads][q_rows]; strides of k and v: in a page. k, v, batch strides and part are not used. */
    struct attention_arguments x;
    ATTENTION_ADDRESS q_begins;  /* batch + 1 ints: the first row of each sequence, and the end */
    ATTENTION_ADDRESS positions; /* batch ints: how many each sequence has */
    ATTENTION_ADDRESS slots;     /* batch ints */
    ATTENTION_ADDRESS tables;    /* for each slot pages_max addresses of 64 bits */
    long long pages_max;
    long long k_at, v_at;       /* bytes from the beginning of a page */
    long long k_piece, v_piece; /* from piece to piece of 8 elements, in elements */
    ATTENTION_ADDRESS pool;     /* of kernels that take maps, as what follows */
    long long units;            /* of the pool: the maps describe a page at each */
    int q_rows;                 /* of all sequences */
    int page_shift;             /* a page has 1 << page_shift positions */
};

#endif
