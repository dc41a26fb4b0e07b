// What the kernels of attention's backward pass share.
//
// With P = softmax(scale q k^T), row by row, and out = P v:
//     d_v = P^T d_out
//     d_p = d_out v^T
//     d_s = P (d_p - delta), with delta = the product of a row of out and of d_out
//     d_q = scale d_s k, d_k = scale d_s^T q
// P is computed again from the scores and the logarithm of each row's sum, so no matrix of scores
// is written to memory. d_k and d_v add up the heads of q that share keys.
#pragma once

#include "../forward/attention.cuh"
#include "attention_backward_arguments.h"

// The rows of q that see a key of `first` to `last`: from `begin` on, and before `end`.
struct rows_that_see {
    int begin, end;
};

__device__ inline rows_that_see rows_of_keys(const attention_arguments &x, int first, int last) {
    if (!x.causal) return {0, x.q_length};
    const long long past = (long long)x.kv_length - x.q_length;
    const long long begin = first - past, end = last - past + x.window;
    return {(int)(begin > 0 ? begin : 0), (int)(end < x.q_length ? end : x.q_length)};
}

// Blocks own tiles of keys or of rows of q (OF_KEYS), and stream tiles of the others. Only streamed
// keys are compared with the number of keys: what is after the end of an owned tile is not stored,
// and rows of q after the last have no weight.
template <bool OF_KEYS>
__device__ inline bool pair_is_seen(const attention_arguments &x, int row, int key) {
    // One comparison: as an unsigned number, the distance of a key after the row's last is huge.
    const unsigned back = row + (x.kv_length - x.q_length) - key;
    return (OF_KEYS || key < x.kv_length) && (!x.causal || back < (unsigned)x.window);
}

// Whether that is so of all pairs of these rows and keys. Of most tiles it is.
template <bool OF_KEYS>
__device__ inline bool pairs_are_seen(const attention_arguments &x, int row, int rows, int key,
                                      int keys) {
    const int past = x.kv_length - x.q_length;
    if (!OF_KEYS && key + keys > x.kv_length) return false;
    return !x.causal || (row + past >= key + keys - 1 && row + rows - 1 + past - key < x.window);
}

// Which tiles a block walks over: `count` of them from `begin` on, of each of `heads`.
struct gradient_walk {
    int begin, count, heads;
};

template <bool OF_KEYS, int FIXED, int MOVING>
__device__ inline gradient_walk gradient_walk_of(const attention_arguments &x, int first) {
    int begin, end;
    if (OF_KEYS) {
        const rows_that_see rows = rows_of_keys(x, first, min(first + FIXED, x.kv_length) - 1);
        begin = rows.begin / MOVING, end = ceil_div(rows.end, MOVING);
    } else {
        begin = first_key_seen(x, first) / MOVING;
        end = ceil_div(keys_seen(x, min(first + FIXED, x.q_length) - 1), MOVING);
    }
    return {begin, max(0, end - begin), OF_KEYS ? x.group : 1};
}
