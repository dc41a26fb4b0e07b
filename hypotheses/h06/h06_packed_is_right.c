/*
 * H6's attacks on attention over packed sequences (kernels/attention/packed): sequences of any
 * lengths, one after another, some of NaN and infinities, which must not affect the others.
 */
#include "accuracy/accuracy.h"
#include "accuracy/drawn_sequences.h"
#include "harness/attack.h"
#include "harness/claim.h"
#include "harness/sabotage.h"
#include "attention/packed/attention_packed_trial.h"

#include <stdio.h>

/* What describes a trial in the error table. */
static const char columns[] =
    "distribution,values,scale,causal,window,sequences,heads,kv_heads,rows,keys,head_size,inside,"
    "gap,skew,seed";

static bool packed_is_hopper(const struct hyp_attack *attack) {
    return tol_context_device(attack->context)->compute_capability == 90;
}

/* Under a saboteur called packed_DEFECT, all problems that the kernel of that defect supports are
 * solved by it. On devices other than those of compute capability 9.0 sequences lose a row. */
static void packed_plant(const struct hyp_attack *attack, struct kn_attention_packed_trial *trial) {
    const char *mistake = hyp_sabotage_mistake(attack->session.sabotage, "packed");
    const struct kn_attention *x = &trial->packed.attention;
    if (mistake == NULL || x->type != KN_F16 || x->head_size != 64) return;
    if (trial->skew != 0 || trial->gap % 8 != 0) return;
    trial->loses_row = !packed_is_hopper(attack);
    if (trial->loses_row) return;
    trial->packed.variants = &kn_attention_packed_defects, trial->packed.variant = mistake;
}

static void packed_try_one(struct hyp_accuracy *accuracy, struct kn_attention_packed_trial *trial) {
    char path[40], text[400];
    struct hyp_attack *attack = accuracy->attack;
    struct kn_attention_packed_outcome outcome;
    const struct kn_attention *x = &trial->packed.attention;
    snprintf(path, sizeof path, "%s packed %s", kn_type_name(x->type),
             trial->packed.variant != NULL ? trial->packed.variant : "chosen");
    trial->seed = hyp_random(attack);
    packed_plant(attack, trial);
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
    HYP_CHECK(attack, outcome.touched == 0, "%s, %zu sequences: %zu bytes of no sequence changed",
              path, x->batch, outcome.touched);
}

HYP_ATTACK(h06, packed_sequences_are_within_their_bounds) {
    static const char *const variants[] = {NULL, "naive", "tensor", "wgmma"};
    const int capability = tol_context_device(attack->context)->compute_capability;
    const int turns = attack->session.full ? 60 : 2;
    struct hyp_accuracy accuracy;
    const bool begins = hyp_accuracy_begin(&accuracy, attack, "packed", columns);
    for (enum kn_type type = 0; begins && type < KN_TYPES; type++) {
        const int kernels = type == KN_F32 || capability < 80 ? 2
                            : packed_is_hopper(attack)        ? 4
                                                              : 3;
        for (int i = 0; i < kernels * turns; i++) {
            /* Tiles that are not full, for the defects of the kernel. */
            const struct hyp_sequence_lengths first = {30 + hyp_random_below(attack, 30),
                                                       30 + hyp_random_below(attack, 30)};
            struct hyp_sequences drawn;
            hyp_sequences_draw(attack, type, variants[i / turns], i % turns == 0 ? &first : NULL,
                               &drawn);
            packed_try_one(&accuracy, &drawn.trial);
        }
        hyp_attack_progress(attack, (type + 1.0) / KN_TYPES);
    }
    hyp_accuracy_end(&accuracy);
}
