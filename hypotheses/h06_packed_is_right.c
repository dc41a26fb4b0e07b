/*
 * H6's attacks on attention over packed sequences (kernels/attention_packed): sequences of any
 * lengths behind each other, some of NaN and infinities, which must have no effect on the others.
 */
#include "attack/accuracy.h"
#include "harness/attack.h"
#include "harness/claim.h"
#include "harness/sabotage.h"
#include "attention_packed/attention_packed_trial.h"

#include <stdio.h>
#include <string.h>

/* What describes a trial in the error table. */
static const char columns[] =
    "distribution,values,scale,causal,window,sequences,heads,kv_heads,rows,keys,head_size,inside,"
    "gap,skew,seed";

enum { SEQUENCES_MAX = 6 };

/* A problem with the places that its pointers name. */
struct packed_problem {
    struct kn_attention_packed_trial trial;
    int q_begins[SEQUENCES_MAX + 1], kv_begins[SEQUENCES_MAX + 1];
    bool is_poisoned[SEQUENCES_MAX];
};

static bool is_hopper(const struct hyp_attack *attack) {
    return tol_context_device(attack->context)->compute_capability == 90;
}

/* Under a saboteur called packed_DEFECT all problems that the kernel of that defect serves are
 * solved by it. On devices other than those of compute capability 9.0 sequences lose a row. */
static void plant(const struct hyp_attack *attack, struct kn_attention_packed_trial *trial) {
    const char *mistake = hyp_sabotage_mistake(attack->session.sabotage, "packed");
    const struct kn_attention *x = &trial->packed.attention;
    if (mistake == NULL || x->type != KN_F16 || x->head_size != 64) return;
    if (trial->skew != 0 || trial->gap % 8 != 0) return;
    trial->loses_row = !is_hopper(attack);
    if (trial->loses_row) return;
    trial->packed.variants = &kn_attention_packed_defects, trial->packed.variant = mistake;
}

static void try_one(struct hyp_accuracy *accuracy, struct kn_attention_packed_trial *trial) {
    char path[40], text[400];
    struct hyp_attack *attack = accuracy->attack;
    struct kn_attention_packed_outcome outcome;
    const struct kn_attention *x = &trial->packed.attention;
    snprintf(path, sizeof path, "%s packed %s", kn_type_name(x->type),
             trial->packed.variant != NULL ? trial->packed.variant : "chosen");
    trial->seed = hyp_random(attack);
    plant(attack, trial);
    if (!HYP_OK(attack,
                kn_attention_packed_try(accuracy->kernels, accuracy->stream, trial, &outcome))) {
        return;
    }
    hyp_error_table_add(&accuracy->errors, path, &outcome.out,
                        "%s,%s,%g,%d,%zu,%zu,%zu,%zu,%zu,%zu,%zu,%d,%zu,%zu,%llu",
                        kn_distribution_name(trial->distribution),
                        kn_distribution_name(trial->values), trial->scale, (int)x->causal,
                        x->window, x->batch, x->heads, x->kv_heads, trial->packed.q_rows,
                        trial->packed.kv_rows, x->head_size, (int)trial->heads_inside, trial->gap,
                        trial->skew, (unsigned long long)trial->seed);
    HYP_CHECK(attack, outcome.lse.failed == 0, "%s, %zu sequences: logarithms: %s", path, x->batch,
              kn_deviation_text(&outcome.lse, text, sizeof text));
    HYP_CHECK(attack, outcome.touched == 0, "%s, %zu sequences: %zu bytes of none changed", path,
              x->batch, outcome.touched);
}

/* Begins of sequences of drawn lengths, behind up to three rows of none; three of none follow. */
static void draw_lengths(struct hyp_attack *attack, size_t sequences, bool is_first, int *begins,
                         size_t *longest, size_t *rows) {
    static const int lengths[] = {0, 1, 2, 9, 31, 63, 64, 65, 100, 127, 128, 129, 150, 200};
    enum { LENGTHS = sizeof lengths / sizeof lengths[0] };
    begins[0] = (int)hyp_random_below(attack, 4), *longest = 0;
    for (size_t i = 0; i < sequences; i++) {
        const int length = is_first ? 30 + (int)hyp_random_below(attack, 30)
                                    : lengths[hyp_random_below(attack, LENGTHS)];
        begins[i + 1] = begins[i] + length;
        if ((size_t)length > *longest) *longest = (size_t)length;
    }
    *rows = (size_t)begins[sequences] + 3;
}

static size_t draw_head_size(struct hyp_attack *attack, const char *variant) {
    static const size_t sizes[] = {64, 96, 128, 256};
    const bool any = variant != NULL && strcmp(variant, "naive") == 0;
    if (any) return 1 + hyp_random_below(attack, 130);
    if (variant != NULL && variant[0] == 'w' && hyp_random_below(attack, 2) == 0) {
        return 8 * (1 + hyp_random_below(attack, 16));
    }
    return sizes[hyp_random_below(attack, 4)];
}

/* The first problem of a kernel is one that its defects need: two sequences of tiles that are not
 * full, of which the second holds NaN and infinities, and rows of none behind them. */
static void draw(struct hyp_attack *attack, enum kn_type type, const char *variant, bool is_first,
                 struct packed_problem *p) {
    const bool any = variant != NULL && strcmp(variant, "naive") == 0;
    const size_t kv_heads = 1 + hyp_random_below(attack, 2);
    const size_t sequences = is_first ? 2 : 1 + hyp_random_below(attack, SEQUENCES_MAX);
    const bool causal = !is_first && hyp_random_below(attack, 2) == 0;
    const bool is_aligned = is_first || !any || hyp_random_below(attack, 2) == 0;
    const enum kn_distribution distribution =
        is_first ? KN_NORMAL : hyp_random_below(attack, KN_DISTRIBUTIONS);
    const enum kn_distribution values = is_first ? KN_UNIFORM : distribution;
    size_t longest_q, longest_kv, q_rows, kv_rows;
    *p = (struct packed_problem){.is_poisoned[0] = false};
    draw_lengths(attack, sequences, is_first, p->q_begins, &longest_q, &q_rows);
    draw_lengths(attack, sequences, is_first, p->kv_begins, &longest_kv, &kv_rows);
    for (size_t i = 0; i < sequences; i++) {
        p->is_poisoned[i] = is_first ? i == 1 : hyp_random_below(attack, 3) == 0;
    }
    p->trial = (struct kn_attention_packed_trial){
        .packed = {.attention = {.type = type,
                                 .batch = sequences,
                                 .heads = kv_heads * (1 + hyp_random_below(attack, 2)),
                                 .kv_heads = kv_heads,
                                 .q_length = longest_q,
                                 .kv_length = longest_kv,
                                 .head_size = is_first ? 64 : draw_head_size(attack, variant),
                                 .causal = causal,
                                 .window = causal && hyp_random_below(attack, 2) == 0
                                               ? 1 + hyp_random_below(attack, 150)
                                               : 0,
                                 .scale = hyp_random_below(attack, 3) == 0 ? 0.31f : 0},
                   .q_rows = q_rows,
                   .kv_rows = kv_rows,
                   .variant = variant},
        .q_begins = p->q_begins,
        .kv_begins = p->kv_begins,
        .is_poisoned = p->is_poisoned,
        .distribution = distribution,
        .values = values,
        .scale = distribution == KN_LARGE           ? 0x1p-5
                 : hyp_random_below(attack, 3) == 0 ? 3
                                                    : 1,
        .values_scale = values == KN_LARGE ? 0x1p-8 : 1,
        .heads_inside = hyp_random_below(attack, 2) == 0,
        .gap = is_aligned ? 8 * hyp_random_below(attack, 3) : hyp_random_below(attack, 5),
        .skew = is_aligned ? 0 : hyp_random_below(attack, 9)};
}

HYP_ATTACK(h06, packed_sequences_are_within_their_bounds) {
    static const char *const variants[] = {NULL, "naive", "tensor", "wgmma"};
    const int capability = tol_context_device(attack->context)->compute_capability;
    const int turns = attack->session.full ? 60 : 2;
    struct hyp_accuracy accuracy;
    const bool begins = hyp_accuracy_begin(&accuracy, attack, "packed", columns);
    for (enum kn_type type = 0; begins && type < KN_TYPES; type++) {
        const int kernels = type == KN_F32 || capability < 80 ? 2 : is_hopper(attack) ? 4 : 3;
        for (int i = 0; i < kernels * turns; i++) {
            struct packed_problem problem;
            draw(attack, type, variants[i / turns], i % turns == 0, &problem);
            try_one(&accuracy, &problem.trial);
        }
        hyp_attack_progress(attack, (type + 1.0) / KN_TYPES);
    }
    hyp_accuracy_end(&accuracy);
}
