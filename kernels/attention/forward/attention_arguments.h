/*
 * The parameter of every kernel of attention: the same struct on host and device. Internal to the
 * operation.
 */
#ifndef KN_ATTENTION_ARGUMENTS_H
#define KN_ATTENTION_ARGUMENTS_H

#ifdef __CUDACC__
#define ATTENTION_ADDRESS void *
#else
#include "tollens.h"
#define ATTENTION_ADDRESS CUdeviceptr
#endif

/* From batch to batch, head to head and row to row, in elements; a row is head_size elements. */
struct attention_strides {
    long long batch, head, row;
};

struct attention_arguments {
    ATTENTION_ADDRESS q;
    ATTENTION_ADDRESS k;
    ATTENTION_ADDRESS v;
    ATTENTION_ADDRESS out;
    ATTENTION_ADDRESS lse;  /* floats, [batch][heads][q_length], or null */
    ATTENTION_ADDRESS part; /* floats, [splits][batch][heads][q_length][head_size + 1] */
    struct attention_strides q_strides, k_strides, v_strides, out_strides;
    int batch, heads, group; /* group heads of q share one of k and v */
    int q_length, kv_length, head_size;
    int causal;       /* row r sees keys up to r + kv_length - q_length, else all */
    int window;       /* with causal: the last `window` of these; kv_length: all */
    int splits;       /* of the keys, among blocks */
    float scale_log2; /* the scale of scores, times the binary logarithm of e */
};

#endif
