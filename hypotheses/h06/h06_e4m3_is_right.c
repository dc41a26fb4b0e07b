/*
 * H6's attacks on attention over 8-bit numbers (kernels/attention/e4m3), each head with its own
 * scales.
 */
#include "accuracy/accuracy.h"
#include "harness/attack.h"
#include "harness/claim.h"
#include "harness/sabotage.h"
#include "attention/e4m3/attention_e4m3_trial.h"

#include <stdio.h>
#include <string.h>

/* What describes a trial in the error table. */
static const char columns[] =
    "distribution,values,scale,scales,causal,window,batch,heads,kv_heads,rows,keys,head_size,"
    "inside,gap,skew,seed";

static bool e4m3_is_hopper(const struct hyp_attack *attack) {
    return tol_context_device(attack->context)->compute_capability == 90;
}

/* Under a saboteur called e4m3_DEFECT, all problems that the kernel of that defect supports are
 * solved by it. On devices other than those of compute capability 9.0 a scale is doubled. */
static void e4m3_plant(const struct hyp_attack *attack, struct kn_attention_e4m3_trial *trial) {
    const char *mistake = hyp_sabotage_mistake(attack->session.sabotage, "e4m3");
    const struct kn_attention *x = &trial->e4m3.attention;
    if (mistake == NULL || x->type != KN_F16 || x->head_size != 64) return;
    if (trial->skew != 0 || trial->gap % 16 != 0) return;
    trial->doubles_scale = trial->has_scales && !e4m3_is_hopper(attack);
    if (!e4m3_is_hopper(attack)) return;
    trial->e4m3.variants = &kn_attention_e4m3_defects, trial->e4m3.variant = mistake;
}

static void e4m3_try_one(struct hyp_accuracy *accuracy, struct kn_attention_e4m3_trial *trial) {
    char path[40], text[400];
    struct hyp_attack *attack = accuracy->attack;
    struct kn_attention_e4m3_outcome outcome;
    const struct kn_attention *x = &trial->e4m3.attention;
    snprintf(path, sizeof path, "%s e4m3 %s", kn_type_name(x->type),
             trial->e4m3.variant != NULL ? trial->e4m3.variant : "chosen");
    trial->seed = hyp_random(attack);
    e4m3_plant(attack, trial);
    if (!HYP_OK(attack,
                kn_attention_e4m3_try(accuracy->kernels, accuracy->stream, trial, &outcome))) {
        return;
    }
    hyp_error_table_add(&accuracy->errors, path, &outcome.out,
                        "%s,%s,%g,%d,%d,%zu,%zu,%zu,%zu,%zu,%zu,%zu,%d,%zu,%zu,%llu",
                        kn_distribution_name(trial->distribution),
                        kn_distribution_name(trial->values), trial->scale, (int)trial->has_scales,
                        (int)x->causal, x->window, x->batch, x->heads, x->kv_heads, x->q_length,
                        x->kv_length, x->head_size, (int)trial->heads_inside, trial->gap,
                        trial->skew, (unsigned long long)trial->seed);
    HYP_CHECK(attack, outcome.lse.failed == 0, "%s, %zu rows, %zu keys: logarithms: %s", path,
              x->q_length, x->kv_length, kn_deviation_text(&outcome.lse, text, sizeof text));
    HYP_CHECK(attack, outcome.touched == 0, "%s: %zu bytes outside the rows changed", path,
              outcome.touched);
}

static size_t e4m3_draw_head_size(struct hyp_attack *attack, const char *variant) {
    static const size_t sizes[] = {64, 128, 256, 208, 112};
    const bool any = variant == NULL || variant[0] == 'n';
    if (any && hyp_random_below(attack, 2) == 0) return 1 + hyp_random_below(attack, 130);
    return hyp_random_below(attack, 3) == 0 ? 16 * (1 + hyp_random_below(attack, 8))
                                            : sizes[hyp_random_below(attack, 5)];
}

/* The first problem of a kernel is one that its defects need: three tiles of keys, heads of other
 * scales, and scores so small that their bound, which the tensor cores' few digits decide, is
 * narrow. */
static struct kn_attention_e4m3_trial e4m3_draw(struct hyp_attack *attack, enum kn_type type,
                                                const char *variant, bool is_first) {
    static const size_t lengths[] = {1, 2, 9, 31, 63, 64, 65, 100, 127, 128, 129, 191, 193, 260};
    enum { LENGTHS = sizeof lengths / sizeof lengths[0] };
    const size_t kv_heads = is_first ? 2 : 1 + hyp_random_below(attack, 2);
    const bool causal = !is_first && hyp_random_below(attack, 2) == 0;
    const bool any = variant == NULL || variant[0] == 'n';
    /* The naive kernel is slow on the soft device. */
    const size_t rows = lengths[hyp_random_below(attack, any ? 7 : LENGTHS)];
    const size_t keys = lengths[hyp_random_below(attack, LENGTHS)];
    const bool is_aligned = is_first || !any || hyp_random_below(attack, 2) == 0;
    const enum kn_distribution distribution =
        is_first ? KN_NORMAL : hyp_random_below(attack, KN_DISTRIBUTIONS);
    const enum kn_distribution values = is_first ? KN_UNIFORM : distribution;
    return (struct kn_attention_e4m3_trial){
        .e4m3 = {.attention = {.type = type,
                               .batch = 1 + (!is_first && hyp_random_below(attack, 4) == 0),
                               .heads = kv_heads * (1 + hyp_random_below(attack, 2)),
                               .kv_heads = kv_heads,
                               .q_length = is_first ? 9 + hyp_random_below(attack, 30) : rows,
                               .kv_length = is_first ? 260 + hyp_random_below(attack, 40) : keys,
                               .head_size = is_first ? 64 : e4m3_draw_head_size(attack, variant),
                               .causal = causal,
                               .window = causal && hyp_random_below(attack, 2) == 0
                                             ? 1 + hyp_random_below(attack, keys)
                                             : 0,
                               .scale = !is_first && hyp_random_below(attack, 3) == 0 ? 0.11f : 0},
                 .variant = variant},
        .distribution = distribution,
        .values = values,
        .scale = distribution == KN_LARGE                       ? 0x1p-8
                 : is_first || hyp_random_below(attack, 2) == 0 ? 0.25
                                                                : 1,
        .values_scale = values == KN_LARGE ? 0x1p-8 : 1,
        .has_scales = is_first || hyp_random_below(attack, 3) > 0,
        .heads_inside = hyp_random_below(attack, 2) == 0,
        .gap = is_aligned ? 16 * hyp_random_below(attack, 3) : hyp_random_below(attack, 5),
        .skew = is_aligned ? 0 : hyp_random_below(attack, 9)};
}

HYP_ATTACK(h06, numbers_of_8_bits_are_within_their_bounds) {
    static const char *const variants[] = {NULL, "naive", "wgmma"};
    const int kernels = e4m3_is_hopper(attack) ? 3 : 2, turns = attack->session.full ? 60 : 3;
    struct hyp_accuracy accuracy;
    const bool begins = hyp_accuracy_begin(&accuracy, attack, "e4m3", columns);
    for (enum kn_type type = KN_F16; begins && type < KN_TYPES; type++) {
        for (int i = 0; i < kernels * turns; i++) {
            struct kn_attention_e4m3_trial trial =
                e4m3_draw(attack, type, variants[i / turns], i % turns == 0);
            e4m3_try_one(&accuracy, &trial);
        }
        hyp_attack_progress(attack, (double)type / (KN_TYPES - 1));
    }
    hyp_accuracy_end(&accuracy);
}
