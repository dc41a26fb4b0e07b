/*
 * The parameter of every kernel of attention's backward pass: the same struct on host and device.
 * Internal to the operation.
 */
#ifndef KN_ATTENTION_BACKWARD_ARGUMENTS_H
#define KN_ATTENTION_BACKWARD_ARGUMENTS_H

#include "../forward/attention_arguments.h"

/* Rows of q whose figures are computed at once. The figures of a head are padded to a multiple. */
#define ATTENTION_FIGURES_STEP 128

/* Rows of q in a tile that blocks of "ordered" add to in turn. */
#define ATTENTION_TURN_ROWS 64

struct attention_backward_arguments {
    struct attention_arguments x; /* of the forward pass; part is not used */
    ATTENTION_ADDRESS d_out;
    ATTENTION_ADDRESS d_q;
    ATTENTION_ADDRESS d_k;
    ATTENTION_ADDRESS d_v;
    /* Pairs of floats, [batch][heads][figures_pitch], of each row of q: the binary logarithm of its
     * sum of exponentials, or infinity where that is 0 and after the last row; and the product of
     * out and d_out, or 0 after the last row. Begins at a multiple of 16 bytes. */
    ATTENTION_ADDRESS figures;
    struct attention_strides d_out_strides, d_q_strides, d_k_strides, d_v_strides;
    int figures_pitch;
    int q_tiles, k_tiles; /* of the rows of q, and of keys, that a block owns; naive: 0 */
    float scale;
    /* Of "ordered"; else null. With tiles the tiles of ATTENTION_TURN_ROWS rows in figures_pitch:
     * sums has the floats of d_q before the scale, [batch][heads][tiles][head_size / 8][128][4], as
     * attention_backward_ordered.cuh says; it begins at a multiple of 16 bytes. turns has words,
     * [batch][heads][tiles]: one more than the last tile of keys that was added to the tile, or 0.
     * The word after them counts the blocks that have begun. */
    ATTENTION_ADDRESS sums;
    ATTENTION_ADDRESS turns;
};

#endif
