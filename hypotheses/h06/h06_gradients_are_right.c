/*
 * H6's attacks on attention's backward pass (kernels/attention/backward): the gradients of q, k and
 * v of problems that the forward kernels have solved.
 */
#include "accuracy/accuracy.h"
#include "harness/attack.h"
#include "harness/claim.h"
#include "harness/sabotage.h"
#include "attention/backward/attention_backward_trial.h"

#include <string.h>

/* What describes a trial in the error table. */
static const char columns[] =
    "distribution,values,scale,causal,window,batch,heads,kv_heads,rows,keys,head_size,inside,gap,"
    "skew,seed";

static bool gradients_is_hopper(const struct hyp_attack *attack) {
    return tol_context_device(attack->context)->compute_capability == 90;
}

/* Whether the kernel of a defect is one of compute capability 9.0. */
static bool is_of_a_pipeline(const char *mistake) {
    static const char *const pipelines[] = {"lost_consumer", "lost_step", "wrong_head",
                                            "lost_part",     "lost_keys", "wrong_half"};
    for (size_t i = 0; i < sizeof pipelines / sizeof pipelines[0]; i++) {
        if (strcmp(mistake, pipelines[i]) == 0) return true;
    }
    return false;
}

/* Under a saboteur called gradients_DEFECT, all problems that the kernel of that defect supports
 * are solved by it. Devices without the pipelines of 9.0 get a defect of "tensor" instead. */
static void gradients_plant(const struct hyp_attack *attack,
                            struct kn_attention_backward_trial *trial) {
    const char *mistake = hyp_sabotage_mistake(attack->session.sabotage, "gradients");
    const struct kn_attention *x = &trial->backward.forward;
    trial->swaps_last = hyp_sabotage_turn(attack->session.sabotage, "gradients_swap_one_in");
    if (mistake == NULL) return;
    if (is_of_a_pipeline(mistake) && !gradients_is_hopper(attack)) mistake = "unscaled";
    const enum kn_type type = is_of_a_pipeline(mistake) ? KN_BF16 : KN_F16;
    if (x->type != type || x->head_size != 64 || trial->skew != 0 || trial->gap % 8 != 0) return;
    trial->backward.variants = &kn_attention_backward_defects, trial->backward.variant = mistake;
}

static void gradients_add(struct hyp_accuracy *accuracy,
                          const struct kn_attention_backward_trial *trial, const char *variant,
                          const char *gradient, const struct kn_deviation *deviation) {
    char path[32];
    const struct kn_attention *x = &trial->backward.forward;
    snprintf(path, sizeof path, "%s %s", variant, gradient);
    hyp_error_table_add(&accuracy->errors, path, deviation,
                        "%s,%s,%g,%d,%zu,%zu,%zu,%zu,%zu,%zu,%zu,%d,%zu,%zu,%llu",
                        kn_distribution_name(trial->distribution),
                        kn_distribution_name(trial->values), trial->scale, (int)x->causal,
                        x->window, x->batch, x->heads, x->kv_heads, x->q_length, x->kv_length,
                        x->head_size, (int)trial->heads_inside, trial->gap, trial->skew,
                        (unsigned long long)trial->seed);
}

static void gradients_try_one(struct hyp_accuracy *accuracy,
                              struct kn_attention_backward_trial *trial) {
    struct hyp_attack *attack = accuracy->attack;
    struct kn_attention_backward_outcome outcome;
    const char *variant = trial->backward.variant != NULL ? trial->backward.variant : "chosen";
    trial->seed = hyp_random(attack);
    gradients_plant(attack, trial);
    if (!HYP_OK(attack,
                kn_attention_backward_try(accuracy->kernels, accuracy->stream, trial, &outcome))) {
        return;
    }
    gradients_add(accuracy, trial, variant, "d_q", &outcome.d_q);
    gradients_add(accuracy, trial, variant, "d_k", &outcome.d_k);
    gradients_add(accuracy, trial, variant, "d_v", &outcome.d_v);
    HYP_CHECK(attack, outcome.touched == 0, "%s: %zu bytes outside the gradients changed", variant,
              outcome.touched);
}

/* The first two problems of a kernel are those that its defects need: heads of 64 elements that
 * share keys, tiles of rows and of keys that are not full, with and without a mask. */
static struct kn_attention_backward_trial
gradients_draw_trial(struct hyp_attack *attack, enum kn_type type, const char *variant, int turn) {
    static const size_t lengths[] = {1, 2, 5, 17, 31, 33, 64, 65, 97, 128, 129, 150};
    enum { LENGTHS = sizeof lengths / sizeof lengths[0] };
    const bool any = variant != NULL && strcmp(variant, "naive") == 0, is_first = turn < 2;
    const size_t kv_heads = 1 + hyp_random_below(attack, 2);
    const size_t rows = lengths[hyp_random_below(attack, LENGTHS)];
    const size_t keys = lengths[hyp_random_below(attack, LENGTHS)];
    const bool causal = is_first ? turn % 2 == 1 : hyp_random_below(attack, 2) == 0;
    const bool is_aligned = is_first || !any || hyp_random_below(attack, 2) == 0;
    const enum kn_distribution distribution =
        is_first ? KN_NORMAL : hyp_random_below(attack, KN_DISTRIBUTIONS);
    const enum kn_distribution values = is_first ? KN_UNIFORM : distribution;
    return (struct kn_attention_backward_trial){
        .backward = {.forward = {.type = type,
                                 .batch = 1 + (hyp_random_below(attack, 4) == 0),
                                 .heads =
                                     kv_heads * (is_first ? 2 : 1 + hyp_random_below(attack, 3)),
                                 .kv_heads = kv_heads,
                                 .q_length = is_first && !any ? 90 + rows / 3 : rows,
                                 .kv_length = is_first && !any ? 100 + keys / 3 : keys,
                                 .head_size = is_first ? 64
                                              : any    ? 1 + hyp_random_below(attack, 130)
                                              : hyp_random_below(attack, 2) == 0 ? 64
                                                                                 : 128,
                                 .causal = causal,
                                 .window = causal && !is_first && hyp_random_below(attack, 2) == 0
                                               ? 1 + hyp_random_below(attack, keys)
                                               : 0,
                                 .scale = hyp_random_below(attack, 3) == 0 ? 0.31f : 0},
                     .variant = variant},
        .distribution = distribution,
        .values = values,
        .scale = distribution == KN_LARGE           ? 0x1p-6
                 : hyp_random_below(attack, 3) == 0 ? 3
                                                    : 1,
        .values_scale = values == KN_LARGE ? 0x1p-8 : 1,
        .heads_inside = hyp_random_below(attack, 2) == 0,
        .gap = is_aligned ? 8 * hyp_random_below(attack, 3) : hyp_random_below(attack, 5),
        .skew = is_aligned ? 0 : hyp_random_below(attack, 9)};
}

static void gradients_try_type(struct hyp_attack *attack, enum kn_type type) {
    static const char *const variants[] = {NULL, "naive", "tensor", "wgmma", "ordered"};
    const int capability = tol_context_device(attack->context)->compute_capability;
    const int kernels = type == KN_F32 || capability < 80 ? 2 : gradients_is_hopper(attack) ? 5 : 3;
    const int turns = attack->session.full ? 60 : 3;
    struct hyp_accuracy accuracy;
    if (hyp_accuracy_begin(&accuracy, attack, "gradients", columns)) {
        for (int i = 0; i < kernels * turns; i++) {
            struct kn_attention_backward_trial trial =
                gradients_draw_trial(attack, type, variants[i / turns], i % turns);
            gradients_try_one(&accuracy, &trial);
            hyp_attack_progress(attack, (i + 1.0) / (kernels * turns));
        }
    }
    hyp_accuracy_end(&accuracy);
}

HYP_ATTACK(h06, gradients_in_fp32_are_within_their_bounds) {
    gradients_try_type(attack, KN_F32);
}

HYP_ATTACK(h06, gradients_in_fp16_are_within_their_bounds) {
    gradients_try_type(attack, KN_F16);
}

HYP_ATTACK(h06, gradients_in_bf16_are_within_their_bounds) {
    gradients_try_type(attack, KN_BF16);
}

/* Lengths from real programs; one head of keys, because the reference is slow. */
HYP_ATTACK(h06, gradients_of_long_sequences_are_within_their_bounds) {
    const bool is_small = !attack->session.full || attack->kind == HYP_DEVICE_SOFT;
    struct hyp_accuracy accuracy;
    if (is_small) hyp_attack_note(attack, "long gradients need a GPU and full mode: tried 300");
    if (hyp_accuracy_begin(&accuracy, attack, "gradients", columns)) {
        for (int i = 0; i < 4; i++) {
            struct kn_attention_backward_trial trial = {
                .backward = {.forward = {.type = i % 2 == 0 ? KN_F16 : KN_BF16,
                                         .batch = 1,
                                         .heads = 2,
                                         .kv_heads = 1,
                                         .q_length = is_small ? 200 : 2048,
                                         .kv_length = is_small ? 300 : 4093,
                                         .head_size = i < 2 ? 64 : 128,
                                         .causal = i % 2 == 0},
                             .variant = !gradients_is_hopper(attack) ? NULL
                                        : i % 2 == 1                 ? "wgmma"
                                                                     : "ordered"},
                .distribution = KN_NORMAL,
                .values = KN_UNIFORM};
            if (is_small && i >= 2) break;
            gradients_try_one(&accuracy, &trial);
            hyp_attack_progress(attack, (i + 1.0) / 4);
        }
    }
    hyp_accuracy_end(&accuracy);
}
