/*
 * All from the attack's random numbers. Kernels other than "naive" need rows at multiples of 16
 * bytes.
 */
#include "drawn_sequences.h"

#include <string.h>

/* Where sequences begin. Up to three rows before the first and three after the last belong to no
 * sequence. The first sequence has `first` rows, unless that is 0. */
static void draw_lengths(struct hyp_attack *attack, size_t sequences, size_t first, int *begins,
                         size_t *longest, size_t *rows) {
    static const int lengths[] = {0, 1, 2, 9, 31, 48, 63, 64, 65, 100, 127, 128, 129, 150, 200};
    enum { LENGTHS = sizeof lengths / sizeof lengths[0] };
    begins[0] = (int)hyp_random_below(attack, 4), *longest = 0;
    for (size_t i = 0; i < sequences; i++) {
        const int length =
            i == 0 && first > 0 ? (int)first : lengths[hyp_random_below(attack, LENGTHS)];
        begins[i + 1] = begins[i] + length;
        if ((size_t)length > *longest) *longest = (size_t)length;
    }
    *rows = (size_t)begins[sequences] + 3;
}

static size_t drawn_sequences_draw_head_size(struct hyp_attack *attack, const char *variant) {
    static const size_t sizes[] = {64, 96, 128, 256};
    if (variant != NULL && strcmp(variant, "naive") == 0) return 1 + hyp_random_below(attack, 130);
    if (variant != NULL && strcmp(variant, "wgmma") == 0 && hyp_random_below(attack, 2) == 0) {
        return 8 * (1 + hyp_random_below(attack, 16));
    }
    return sizes[hyp_random_below(attack, 4)];
}

void hyp_sequences_draw(struct hyp_attack *attack, enum kn_type type, const char *variant,
                        const struct hyp_sequence_lengths *first, struct hyp_sequences *drawn) {
    static const struct hyp_sequence_lengths any = {0, 0};
    const struct hyp_sequence_lengths lengths = first != NULL ? *first : any;
    const bool is_naive = variant != NULL && strcmp(variant, "naive") == 0;
    const size_t kv_heads = 1 + hyp_random_below(attack, 2);
    const size_t sequences = first != NULL ? 2 : 1 + hyp_random_below(attack, HYP_SEQUENCES_MAX);
    const bool causal = first == NULL && hyp_random_below(attack, 2) == 0;
    const bool is_aligned = first != NULL || !is_naive || hyp_random_below(attack, 2) == 0;
    const enum kn_distribution distribution =
        first != NULL ? KN_NORMAL : hyp_random_below(attack, KN_DISTRIBUTIONS);
    const enum kn_distribution values = first != NULL ? KN_UNIFORM : distribution;
    size_t longest_q, longest_kv, q_rows, kv_rows;
    *drawn = (struct hyp_sequences){.is_poisoned[0] = false};
    draw_lengths(attack, sequences, lengths.rows, drawn->q_begins, &longest_q, &q_rows);
    draw_lengths(attack, sequences, lengths.keys, drawn->kv_begins, &longest_kv, &kv_rows);
    for (size_t i = 0; i < sequences; i++) {
        drawn->is_poisoned[i] = first != NULL ? i == 1 : hyp_random_below(attack, 3) == 0;
    }
    drawn->trial = (struct kn_attention_packed_trial){
        .packed = {.attention = {.type = type,
                                 .batch = sequences,
                                 .heads = kv_heads *
                                          (first != NULL ? 1 : 1 + hyp_random_below(attack, 2)),
                                 .kv_heads = kv_heads,
                                 .q_length = longest_q,
                                 .kv_length = longest_kv,
                                 .head_size = first != NULL
                                                  ? 64
                                                  : drawn_sequences_draw_head_size(attack, variant),
                                 .causal = causal,
                                 .window = causal && hyp_random_below(attack, 2) == 0
                                               ? 1 + hyp_random_below(attack, 150)
                                               : 0,
                                 .scale = hyp_random_below(attack, 3) == 0 ? 0.31f : 0},
                   .q_rows = q_rows,
                   .kv_rows = kv_rows,
                   .variant = variant},
        .q_begins = drawn->q_begins,
        .kv_begins = drawn->kv_begins,
        .is_poisoned = drawn->is_poisoned,
        .distribution = distribution,
        .values = values,
        .scale = distribution == KN_LARGE                            ? 0x1p-5
                 : first == NULL && hyp_random_below(attack, 3) == 0 ? 3
                                                                     : 1,
        .values_scale = values == KN_LARGE ? 0x1p-8 : 1,
        .heads_inside = hyp_random_below(attack, 2) == 0,
        .gap = is_aligned ? 8 * hyp_random_below(attack, 3) : hyp_random_below(attack, 5),
        .skew = is_aligned ? 0 : hyp_random_below(attack, 9)};
}
