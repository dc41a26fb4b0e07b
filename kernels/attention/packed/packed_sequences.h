/*
 * A trial of attention over sequences: what it is made of, and its result. For tests and claims.
 */
#ifndef KN_PACKED_SEQUENCES_H
#define KN_PACKED_SEQUENCES_H

#include "attention/packed/attention_packed.h"
#include "deviation.h"
#include "inputs.h"

struct kn_attention_packed_trial {
    /* Buffers are ignored: the trial makes its own. */
    struct kn_attention_packed packed;
    const int *q_begins, *kv_begins; /* batch + 1 each, in order, up to q_rows and kv_rows */
    /* Which sequences hold NaN and infinities; they are not judged. NULL: none does. The rows of no
     * sequence always do. */
    const bool *is_poisoned;
    enum kn_distribution distribution; /* of q and k; values: of v */
    enum kn_distribution values;
    double scale, values_scale; /* of the elements; 0 is 1 */
    bool heads_inside;          /* [row][head][element], else [head][row][element] */
    size_t gap;                 /* elements after each row */
    size_t skew;                /* elements by which each begins past a multiple of 256 bytes */
    uint64_t seed;              /* of the elements */
    bool loses_row; /* a planted fault: on the device the second sequence begins a row early */
};

struct kn_attention_packed_outcome {
    struct kn_deviation out, lse; /* by the oracle's own bounds */
    size_t touched;               /* bytes of no sequence that were changed, in out and around it */
};

#endif
