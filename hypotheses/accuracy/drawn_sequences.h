/*
 * Drawn sequences: the problems of attacks on attention over sequences, packed or in pages.
 */
#ifndef HYP_DRAWN_SEQUENCES_H
#define HYP_DRAWN_SEQUENCES_H

#include "harness/attack.h"
#include "attention/packed/packed_sequences.h"

enum { HYP_SEQUENCES_MAX = 6 };

/* The pointers of trial point into the struct: do not copy it. */
struct hyp_sequences {
    struct kn_attention_packed_trial trial;
    int q_begins[HYP_SEQUENCES_MAX + 1], kv_begins[HYP_SEQUENCES_MAX + 1];
    bool is_poisoned[HYP_SEQUENCES_MAX];
};

/* How long the first sequence is, in rows of q and in keys. */
struct hyp_sequence_lengths {
    size_t rows, keys;
};

/*
 * Draws a problem that the kernel of this name supports (NULL: the chosen one): up to
 * HYP_SEQUENCES_MAX sequences of 0 to 200 rows and keys, some of NaN and infinities; rows before
 * the first and after the last belong to no sequence. If first is not NULL, the problem is one that
 * kernels with a defect need: heads of 64, not causal, a first sequence of these lengths, and a
 * second of NaN and infinities.
 */
void hyp_sequences_draw(struct hyp_attack *attack, enum kn_type type, const char *variant,
                        const struct hyp_sequence_lengths *first, struct hyp_sequences *drawn);

#endif
