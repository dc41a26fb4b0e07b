/*
 * The parameter of every kernel of attention over packed sequences: the same struct on host and
 * device. Internal to the operation.
 */
#ifndef KN_ATTENTION_PACKED_ARGUMENTS_H
#define KN_ATTENTION_PACKED_ARGUMENTS_H

#include "../forward/attention_arguments.h"

struct attention_packed_arguments {
    /* batch: sequences; q_length and kv_length: the most rows and keys of one; lse: floats,
     * [heads][q_rows]. Batch strides and part are not used. */
    struct attention_arguments x;
    ATTENTION_ADDRESS q_begins;  /* batch + 1 ints: the first row of each sequence, and the end */
    ATTENTION_ADDRESS kv_begins; /* the same of k and v */
    int q_rows, kv_rows;         /* of all sequences */
};

#endif
