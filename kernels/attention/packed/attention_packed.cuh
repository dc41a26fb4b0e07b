// What the kernels of attention over packed sequences share: one sequence as a problem of its own.
#pragma once

#include "../forward/attention.cuh"
#include "attention_packed_arguments.h"

// The rows of a sequence. A beginning below its predecessor, or after the last row, is clamped to
// that, so no row outside is read or written, whatever the numbers are.
struct packed_rows {
    int begin, count;
};
__device__ inline packed_rows packed_rows_of(const void *begins, int sequence, int rows, int most) {
    const int *at = (const int *)begins + sequence;
    const int begin = min(max(at[0], 0), rows), end = min(max(at[1], begin), rows);
    return {begin, min(end - begin, most)};
}

// Moves lse so that a row's place in it is the one that [heads][q_rows] gives.
__device__ inline void move_lse(attention_arguments &x, const packed_rows &rows, int q_rows,
                                int sequence, int head) {
    if (x.lse != nullptr) {
        const long long wanted = (long long)head * q_rows + rows.begin;
        x.lse = (float *)x.lse + (wanted - ((long long)sequence * x.heads + head) * rows.count);
    }
}

// The problem of one sequence, for one of its heads: its rows and keys alone. The batch of the
// result is the number of the sequence, with batch strides of 0. A single row sees the last keys,
// and the others are left out, as attention_call.c does: the tiles of keys then begin at the same
// key.
template <typename T>
__device__ inline attention_arguments sequence_of(const attention_packed_arguments &p, int sequence,
                                                  int head) {
    attention_arguments x = p.x;
    const packed_rows rows = packed_rows_of(p.q_begins, sequence, p.q_rows, x.q_length);
    packed_rows keys = packed_rows_of(p.kv_begins, sequence, p.kv_rows, x.kv_length);
    if (x.causal && rows.count == 1) {
        const int seen = min(keys.count, x.window);
        keys = {keys.begin + keys.count - seen, seen};
        x.causal = false;
    }
    x.q = (T *)x.q + rows.begin * x.q_strides.row;
    x.out = (T *)x.out + rows.begin * x.out_strides.row;
    x.k = (T *)x.k + keys.begin * x.k_strides.row;
    x.v = (T *)x.v + keys.begin * x.v_strides.row;
    x.q_strides.batch = x.k_strides.batch = x.v_strides.batch = x.out_strides.batch = 0;
    x.q_length = rows.count, x.kv_length = keys.count;
    move_lse(x, rows, p.q_rows, sequence, head);
    return x;
}
