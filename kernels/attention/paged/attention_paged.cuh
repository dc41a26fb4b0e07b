// What the kernels of attention over paged sequences share: one sequence as its own problem, and
// where its keys and values are.
#pragma once

#include "../packed/attention_packed.cuh"
#include "attention_paged_arguments.h"

// The problem of one sequence, for one of its heads: its rows of q and out, and its positions.
template <typename T>
__device__ inline attention_arguments paged_sequence_of(const attention_paged_arguments &p,
                                                        int sequence, int head) {
    attention_arguments x = p.x;
    const packed_rows rows = packed_rows_of(p.q_begins, sequence, p.q_rows, x.q_length);
    x.kv_length = min(max(((const int *)p.positions)[sequence], 0), x.kv_length);
    x.q = (T *)x.q + rows.begin * x.q_strides.row;
    x.out = (T *)x.out + rows.begin * x.out_strides.row;
    x.q_strides.batch = x.out_strides.batch = 0;
    x.q_length = rows.count;
    move_lse(x, rows, p.q_rows, sequence, head);
    return x;
}

// The addresses of the pages of a sequence.
__device__ inline const uint64_t *pages_of(const attention_paged_arguments &p, int sequence) {
    return (const uint64_t *)p.tables + ((const int *)p.slots)[sequence] * p.pages_max;
}

__device__ inline int inside_page(const attention_paged_arguments &p, int position) {
    return position & ((1 << p.page_shift) - 1);
}

// Element 0 of the key and of the value of a position, whose page this is.
template <typename T>
__device__ inline const T *paged_key(const attention_paged_arguments &p, uint64_t page, int head,
                                     int position) {
    return (const T *)(page + p.k_at) + head * p.x.k_strides.head +
           inside_page(p, position) * p.x.k_strides.row;
}
template <typename T>
__device__ inline const T *paged_value(const attention_paged_arguments &p, uint64_t page, int head,
                                       int position) {
    return (const T *)(page + p.v_at) + head * p.x.v_strides.head +
           inside_page(p, position) * p.x.v_strides.row;
}
