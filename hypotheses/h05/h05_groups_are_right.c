/*
 * H5's attacks on products of groups of rows (kernels/grouped) with their epilogues: bias, scales,
 * activation, residual and 8-bit results.
 */
#include "accuracy/accuracy.h"
#include "harness/attack.h"
#include "harness/claim.h"
#include "harness/sabotage.h"
#include "grouped/grouped_trial.h"

#include <string.h>

enum { GROUPS_MOST = 9 };

/* What describes a trial in the error table. */
static const char columns[] =
    "numbers,b,m,n,k,groups,c,activation,bias,a_scale,b_scale,residual,in_place,gap,skew,seed";

/* Under a saboteur called grouped_DEFECT, all products that the kernel of that defect supports are
 * made by it. Its kernels are of compute capability 9.0; elsewhere an index is wrong instead. */
static void groups_plant(const struct hyp_attack *attack, struct kn_grouped_trial *trial) {
    const char *sabotage = attack->session.sabotage;
    const char *mistake = hyp_sabotage_mistake(sabotage, "grouped");
    trial->swaps_last = hyp_sabotage_turn(sabotage, "grouped_swap_one_in");
    if (mistake == NULL) return;
    if (tol_context_device(attack->context)->compute_capability != 90) {
        trial->swaps_last = true;
        return;
    }
    const bool is_for_bytes = strcmp(mistake, "no_promotion") == 0 ||
                              strcmp(mistake, "lost_stage") == 0 ||
                              strcmp(mistake, "lost_half") == 0;
    struct kn_grouped *g = &trial->grouped;
    if (g->type != (is_for_bytes ? KN_GROUPED_E4M3 : KN_GROUPED_BF16)) return;
    if (!g->transpose_b || trial->align == 0 || trial->skew != 0) return;
    g->variants = &kn_grouped_planted_variants, g->variant = mistake;
}

static void groups_try_one(struct hyp_accuracy *accuracy, struct kn_grouped_trial *trial) {
    char path[32];
    struct kn_grouped_outcome outcome;
    const struct kn_grouped *g = &trial->grouped;
    trial->seed = hyp_random(accuracy->attack);
    snprintf(path, sizeof path, "%s %s", kn_grouped_type_name(g->type),
             g->variant != NULL ? g->variant : "chosen");
    groups_plant(accuracy->attack, trial);
    if (!HYP_OK(accuracy->attack,
                kn_grouped_try(accuracy->kernels, accuracy->stream, trial, &outcome))) {
        return;
    }
    hyp_error_table_add(&accuracy->errors, path, &outcome.deviation,
                        "%s,%s,%zu,%zu,%zu,%zu,%s,%s,%d,%d,%d,%d,%d,%zu,%zu,%llu",
                        trial->is_whole ? "whole" : "uniform", g->transpose_b ? "nt" : "nn", g->m,
                        g->n, g->k, g->groups, kn_grouped_type_name(g->c_type),
                        kn_activation_name(g->activation), trial->has_bias, trial->has_a_scale,
                        trial->has_b_scale, trial->has_residual, trial->is_in_place, trial->gap,
                        trial->skew, (unsigned long long)trial->seed);
    HYP_CHECK(accuracy->attack, outcome.touched == 0,
              "%s: %zu bytes outside of the rows in groups changed (C is %zu x %zu, in %zu groups)",
              path, outcome.touched, g->m, g->n, g->groups);
}

/* Where the groups begin: anywhere in the rows, in order, so that some are empty and the first and
 * the last rows may be in none. */
static void draw_begins(struct hyp_attack *attack, size_t m, size_t groups, int32_t *begins) {
    for (size_t i = 0; i <= groups; i++) {
        const int32_t at = (int32_t)hyp_random_below(attack, m + 1);
        size_t to = i;
        for (; to > 0 && begins[to - 1] > at; to--) begins[to] = begins[to - 1];
        begins[to] = at;
    }
}

/* A kernel, the type of its problems, and what it requires of them. */
struct subject {
    const char *variant; /* NULL: the library chooses */
    enum kn_grouped_type type;
    bool is_hopper; /* rows at multiples of 16 bytes; in 8 bits B as n x k */
};

static struct kn_grouped_trial groups_draw_trial(struct hyp_attack *attack,
                                                 const struct subject *subject, int32_t *begins) {
    const bool is_bytes = subject->type == KN_GROUPED_E4M3;
    const bool is_aligned = subject->is_hopper || hyp_random_below(attack, 2) == 0;
    const enum kn_grouped_type c_type = hyp_random_below(attack, KN_GROUPED_TYPES);
    const size_t most = subject->is_hopper ? 300 : 140;
    struct kn_grouped_trial trial = {
        .grouped = {.type = subject->type,
                    .c_type = c_type,
                    .transpose_b =
                        (subject->is_hopper && is_bytes) || hyp_random_below(attack, 2) == 0,
                    .m = 1 + hyp_random_below(attack, most),
                    .n = 1 + hyp_random_below(attack, most),
                    .k = 1 + hyp_random_below(attack, subject->is_hopper ? 900 : 200),
                    .groups = hyp_random_below(attack, 4) == 0
                                  ? 0
                                  : 1 + hyp_random_below(attack, GROUPS_MOST),
                    .alpha = hyp_random_below(attack, 2) == 0 ? 1 : -0.75f,
                    .c_scale = c_type < KN_GROUPED_E4M3 ? 0 : 0.125f,
                    .activation = hyp_random_below(attack, KN_ACTIVATIONS),
                    .residual_type = hyp_random_below(attack, KN_GROUPED_BF16 + 1),
                    .variant = subject->variant},
        .begins = begins,
        .has_bias = hyp_random_below(attack, 2) == 0,
        .has_a_scale = hyp_random_below(attack, 2) == 0,
        .has_b_scale = hyp_random_below(attack, 2) == 0,
        .has_residual = hyp_random_below(attack, 2) == 0,
        .is_whole = hyp_random_below(attack, 2) == 0,
        .gap = hyp_random_below(attack, 20),
        .align = is_aligned ? 16 : 0,
        .skew = is_aligned ? 0 : hyp_random_below(attack, 3)};
    trial.is_in_place = c_type < KN_GROUPED_E4M3 && hyp_random_below(attack, 4) == 0;
    if (trial.grouped.groups == 0) trial.begins = NULL;
    draw_begins(attack, trial.grouped.m, trial.grouped.groups, begins);
    return trial;
}

static bool groups_supports(const struct hyp_attack *attack, const struct subject *subject) {
    const int capability = tol_context_device(attack->context)->compute_capability;
    if (subject->is_hopper) return capability == 90;
    return subject->variant == NULL || strcmp(subject->variant, "naive") == 0 || capability >= 80;
}

HYP_ATTACK(h05, groups_of_any_shape_are_within_their_bounds) {
    static const struct subject subjects[] = {
        {NULL, KN_GROUPED_F16, false},         {NULL, KN_GROUPED_BF16, false},
        {NULL, KN_GROUPED_E4M3, false},        {"naive", KN_GROUPED_F16, false},
        {"naive", KN_GROUPED_BF16, false},     {"naive", KN_GROUPED_E4M3, false},
        {"tensor", KN_GROUPED_F16, false},     {"tensor", KN_GROUPED_BF16, false},
        {"tensor", KN_GROUPED_E4M3, false},    {"wgmma_128", KN_GROUPED_F16, true},
        {"wgmma_128", KN_GROUPED_BF16, true},  {"wgmma_128", KN_GROUPED_E4M3, true},
        {"wgmma_256", KN_GROUPED_F16, true},   {"wgmma_256", KN_GROUPED_BF16, true},
        {"wgmma_pair", KN_GROUPED_E4M3, true}, {"wgmma_192", KN_GROUPED_E4M3, true}};
    enum { SUBJECTS = sizeof subjects / sizeof subjects[0] };
    const int turns = attack->session.full ? 100 : 3;
    struct hyp_accuracy accuracy;
    if (hyp_accuracy_begin(&accuracy, attack, "grouped", columns)) {
        for (int i = 0; i < SUBJECTS * turns; i++) {
            int32_t begins[GROUPS_MOST + 1];
            const struct subject *subject = &subjects[i / turns];
            if (!groups_supports(attack, subject)) continue;
            struct kn_grouped_trial trial = groups_draw_trial(attack, subject, begins);
            groups_try_one(&accuracy, &trial);
            hyp_attack_progress(attack, (i + 1.0) / (SUBJECTS * turns));
        }
    }
    hyp_accuracy_end(&accuracy);
}

/* More steps than the ring has stages, several tiles and groups, whole tiles and parts of them: in
 * 16 bits, some with nothing but a factor as epilogue, and in e4m3 positive whole numbers, whose
 * sums need more digits than Hopper's tensor cores accumulate. */
HYP_ATTACK(h05, pipelines_of_groups_go_round_within_their_bounds) {
    struct hyp_accuracy accuracy;
    const int turns = attack->session.full ? 60 : 8;
    if (tol_context_device(attack->context)->compute_capability != 90) {
        hyp_attack_note(attack, "pipelines of groups need compute capability 9.0");
        return;
    }
    if (hyp_accuracy_begin(&accuracy, attack, "grouped", columns)) {
        for (int i = 0; i < turns; i++) {
            const bool is_bytes = i % 4 == 3;
            const int32_t over = (int32_t)hyp_random_below(attack, 60);
            const int32_t begins[] = {3, 3, 76 + over, 77 + over, 206 + over, 209 + over};
            struct kn_grouped_trial trial = {
                .grouped = {.type = is_bytes ? KN_GROUPED_E4M3 : KN_GROUPED_BF16,
                            .c_type = i % 2 == 0 ? KN_GROUPED_F32 : KN_GROUPED_BF16,
                            .transpose_b = true,
                            .m = 212 + (size_t)over,
                            .n = 136,
                            .k = is_bytes ? 3200 : 9 * 64 + hyp_random_below(attack, 200),
                            .groups = sizeof begins / sizeof begins[0] - 1,
                            .alpha = 1,
                            .variant = i % 8 == 7 ? "wgmma_pair" : "wgmma_128"},
                .begins = begins,
                .has_b_scale = i % 4 != 1,
                .is_whole = is_bytes || i % 2 == 1,
                .is_positive = is_bytes,
                .align = 16};
            groups_try_one(&accuracy, &trial);
            hyp_attack_progress(attack, (i + 1.0) / turns);
        }
    }
    hyp_accuracy_end(&accuracy);
}
