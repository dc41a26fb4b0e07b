/*
 * H6's attacks on attention over paged sequences (kernels/attention/paged): prompts whose keys and
 * values are in pages of every size and layout, in no order, some of NaN and infinities, which must
 * not affect the others.
 */
#include "accuracy/accuracy.h"
#include "accuracy/drawn_sequences.h"
#include "harness/attack.h"
#include "harness/claim.h"
#include "harness/sabotage.h"
#include "attention/paged/attention_paged_trial.h"

#include <stdio.h>
#include <string.h>

/* What describes a trial in the error table. */
static const char columns[] =
    "distribution,values,scale,causal,window,sequences,heads,kv_heads,rows,keys,head_size,inside,"
    "gap,skew,page,layout,seed";

static bool paged_is_hopper(const struct hyp_attack *attack) {
    return tol_context_device(attack->context)->compute_capability == 90;
}

/* Under a saboteur called paged_DEFECT, all problems that the kernel of that defect supports are
 * solved by it. On devices other than those of compute capability 9.0 a table repeats a page. */
static void paged_plant(const struct hyp_attack *attack, struct kn_attention_paged_trial *trial) {
    const char *mistake = hyp_sabotage_mistake(attack->session.sabotage, "paged");
    const struct kn_attention_packed_trial *t = &trial->sequences;
    const struct kn_attention *x = &t->packed.attention;
    if (mistake == NULL || x->type != KN_F16 || x->head_size != 64) return;
    if (t->skew != 0 || t->gap % 8 != 0 || trial->layout == KN_PAGED_PIECES) return;
    if (!paged_is_hopper(attack)) {
        trial->repeats_page = (size_t)(t->kv_begins[1] - t->kv_begins[0]) > trial->page_positions;
        return;
    }
    trial->variants = &kn_attention_paged_defects, trial->variant = mistake;
}

static void paged_try_one(struct hyp_accuracy *accuracy, struct kn_attention_paged_trial *trial) {
    static const char *const layouts[KN_PAGED_LAYOUTS] = {"around", "inside", "pieces"};
    char path[40], text[400];
    struct hyp_attack *attack = accuracy->attack;
    struct kn_attention_packed_outcome outcome;
    struct kn_attention_packed_trial *t = &trial->sequences;
    const struct kn_attention *x = &t->packed.attention;
    snprintf(path, sizeof path, "%s paged %s", kn_type_name(x->type),
             trial->variant != NULL ? trial->variant : "chosen");
    t->seed = hyp_random(attack);
    paged_plant(attack, trial);
    if (!HYP_OK(attack,
                kn_attention_paged_try(accuracy->kernels, accuracy->stream, trial, &outcome))) {
        return;
    }
    hyp_error_table_add(&accuracy->errors, path, &outcome.out,
                        "%s,%s,%g,%d,%zu,%zu,%zu,%zu,%zu,%zu,%zu,%d,%zu,%zu,%zu,%s,%llu",
                        kn_distribution_name(t->distribution), kn_distribution_name(t->values),
                        t->scale, (int)x->causal, x->window, x->batch, x->heads, x->kv_heads,
                        t->packed.q_rows, t->packed.kv_rows, x->head_size, (int)t->heads_inside,
                        t->gap, t->skew, trial->page_positions, layouts[trial->layout],
                        (unsigned long long)t->seed);
    HYP_CHECK(attack, outcome.lse.failed == 0, "%s, %zu sequences: logarithms: %s", path, x->batch,
              kn_deviation_text(&outcome.lse, text, sizeof text));
    HYP_CHECK(attack, outcome.touched == 0, "%s, %zu sequences: %zu bytes of no sequence changed",
              path, x->batch, outcome.touched);
}

/* The first problem of a kernel is one that its defects need: a sequence whose rows are for two
 * warpgroups, and whose keys fill two stages and begin a third tile, which ends inside a page. */
static void paged_draw(struct hyp_attack *attack, enum kn_type type, const char *variant,
                       bool is_first, struct hyp_sequences *drawn,
                       struct kn_attention_paged_trial *trial) {
    const bool takes_maps = variant != NULL && strcmp(variant, "wgmma") == 0;
    const struct hyp_sequence_lengths first = {66 + hyp_random_below(attack, 20),
                                               260 + 16 * hyp_random_below(attack, 3) +
                                                   hyp_random_below(attack, 8)};
    hyp_sequences_draw(attack, type, variant, is_first ? &first : NULL, drawn);
    *trial = (struct kn_attention_paged_trial){
        .sequences = drawn->trial,
        .page_positions = (size_t)16 << hyp_random_below(attack, is_first ? 3 : 5),
        .layout =
            hyp_random_below(attack, takes_maps || is_first ? KN_PAGED_PIECES : KN_PAGED_LAYOUTS),
        .variant = variant};
    struct kn_attention *x = &trial->sequences.packed.attention;
    if (takes_maps && x->kv_length == 0) x->kv_length = 1; /* else it refuses */
}

HYP_ATTACK(h06, sequences_in_pages_are_within_their_bounds) {
    static const char *const variants[] = {NULL, "naive", "tensor", "wgmma"};
    const int capability = tol_context_device(attack->context)->compute_capability;
    const int turns = attack->session.full ? 60 : 2;
    struct hyp_accuracy accuracy;
    const bool begins = hyp_accuracy_begin(&accuracy, attack, "paged", columns);
    for (enum kn_type type = 0; begins && type < KN_TYPES; type++) {
        const int kernels = type == KN_F32 || capability < 80 ? 2 : paged_is_hopper(attack) ? 4 : 3;
        for (int i = 0; i < kernels * turns; i++) {
            struct hyp_sequences drawn;
            struct kn_attention_paged_trial trial;
            paged_draw(attack, type, variants[i / turns], i % turns == 0, &drawn, &trial);
            paged_try_one(&accuracy, &trial);
        }
        hyp_attack_progress(attack, (type + 1.0) / KN_TYPES);
    }
    hyp_accuracy_end(&accuracy);
}
