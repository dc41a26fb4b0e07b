/*
 * H5's attacks on products of quantised weights (kernels/quantised): in each of the three
 * arithmetics, by every kernel of each format of blocks.
 */
#include "accuracy/accuracy.h"
#include "harness/attack.h"
#include "harness/claim.h"
#include "harness/sabotage.h"
#include "quantised/product/quant_product_planted.h"
#include "quantised/product/quant_product_trial.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* What describes a trial in the error table. */
static const char columns[] =
    "weights,blocks,distribution,rows,columns,k,x_gap,y_gap,weights_skew,x_skew,y_skew,seed";

/* A kernel of an arithmetic, and what it requires. */
struct quant_subject {
    const char *variant; /* NULL: the library chooses */
    enum kn_quant_arithmetic arithmetic;
    int capability;
    size_t fewest, most; /* columns, for Q4_K only; 0: any number and any weights */
};

static const struct quant_subject subjects[] = {
    {NULL, KN_QUANT_F32, 0, 0, 0},           {"naive", KN_QUANT_F32, 0, 0, 0},
    {"rows", KN_QUANT_F32, 0, 0, 0},         {NULL, KN_QUANT_F16, 80, 0, 0},
    {"tensor", KN_QUANT_F16, 80, 0, 0},      {"wgmma", KN_QUANT_F16, 90, 0, 0},
    {"wgmma_256", KN_QUANT_F16, 90, 0, 0},   {"wgmma_split", KN_QUANT_F16, 90, 0, 0},
    {NULL, KN_QUANT_Q8_1, 0, 0, 0},          {"integers", KN_QUANT_Q8_1, 0, 0, 0},
    {"staged_1", KN_QUANT_Q8_1, 0, 1, 1},    {"early_1", KN_QUANT_Q8_1, 90, 1, 1},
    {"bulk_early", KN_QUANT_Q8_1, 90, 1, 1}, {"columns", KN_QUANT_Q8_1, 90, 2, 8}};
enum { SUBJECTS = sizeof subjects / sizeof subjects[0] };

static int capability_of(const struct hyp_attack *attack) {
    return tol_context_device(attack->context)->compute_capability;
}

static bool is_wgmma(const struct quant_subject *subject) {
    return subject->variant != NULL && strncmp(subject->variant, "wgmma", 5) == 0;
}

/* Under a saboteur called quant_DEFECT, all products that the kernel of that defect supports are
 * made by it. Its kernels are of compute capability 9.0; elsewhere an index is wrong instead. */
static void quant_plant(const struct hyp_attack *attack, struct kn_quant_trial *trial) {
    const char *mistake = hyp_sabotage_mistake(attack->session.sabotage, "quant");
    if (mistake == NULL) return;
    if (capability_of(attack) != 90) {
        trial->swaps_last = true;
        return;
    }
    if (trial->quant != KN_Q4_K || trial->arithmetic != KN_QUANT_F16) return;
    if (strcmp(mistake, "lost_share") == 0 && trial->columns > 32) return; /* its limit */
    trial->variants = &kn_quant_product_planted, trial->variant = mistake;
}

/* A NaN is in all elements that depend on it, and in no other. */
static void check_poison(struct hyp_attack *attack, const char *path,
                         const struct kn_quant_trial *trial,
                         const struct kn_quant_finding *finding) {
    const size_t reached = trial->poisoned_row > 0 ? trial->columns : trial->rows;
    HYP_CHECK(attack, finding->not_finite == reached,
              "%s, %zu x %zu, k %zu, NaN in %s: %zu elements are not finite, expected %zu", path,
              trial->rows, trial->columns, trial->k,
              trial->poisoned_row > 0 ? "a row of weights" : "a column of x", finding->not_finite,
              reached);
}

static void quant_try_one(struct hyp_accuracy *accuracy, struct kn_quant_trial *trial) {
    char path[48], text[400];
    struct hyp_attack *attack = accuracy->attack;
    struct kn_quant_finding finding;
    snprintf(path, sizeof path, "%s %s", kn_quant_arithmetic_name(trial->arithmetic),
             trial->variant != NULL ? trial->variant : "chosen");
    trial->seed = hyp_random(attack);
    quant_plant(attack, trial);
    if (!HYP_OK(attack, kn_quant_trial(accuracy->kernels, accuracy->stream, trial, &finding))) {
        return;
    }
    HYP_CHECK(attack, finding.changed == 0 && finding.gaps_changed == 0,
              "%s: %zu bytes outside y changed, and %zu elements between its columns", path,
              finding.changed, finding.gaps_changed);
    if (trial->poisoned_row > 0 || trial->poison_at > 0) {
        check_poison(attack, path, trial, &finding);
        return;
    }
    hyp_error_table_add(&accuracy->errors, path, &finding.deviation,
                        "%s,%s,%s,%zu,%zu,%zu,%zu,%zu,%zu,%zu,%zu,%llu",
                        kn_quant_name(trial->quant), kn_quant_blocks_name(trial->kind),
                        kn_distribution_name(trial->distribution), trial->rows, trial->columns,
                        trial->k, trial->x_gap, trial->y_gap, trial->weights_skew, trial->x_skew,
                        trial->y_skew, (unsigned long long)trial->seed);
    HYP_CHECK(attack, trial->arithmetic != KN_QUANT_Q8_1 || finding.rounded.failed == 0,
              "%s, %zu x %zu, k %zu, from the product of x as bytes: %s", path, trial->rows,
              trial->columns, trial->k, kn_deviation_text(&finding.rounded, text, sizeof text));
}

/* The first product of a kernel is one that defects of the pipeline need: more rows than a
 * warpgroup has, more chunks of weights than one, and more stages of x than the ring has. */
static struct kn_quant_trial quant_draw_trial(struct hyp_attack *attack,
                                              const struct quant_subject *subject, bool is_first) {
    static const size_t sizes[] = {1, 2, 5, 17, 33, 37, 64, 66, 100, 127, 128, 129, 140};
    enum { SIZES = sizeof sizes / sizeof sizes[0] };
    const bool is_odd = subject->variant != NULL && strcmp(subject->variant, "naive") == 0;
    const bool is_four = is_first || subject->most > 0;
    const enum kn_quant quant = is_four ? KN_Q4_K : hyp_random_below(attack, KN_QUANTS);
    const size_t several = sizes[hyp_random_below(attack, SIZES)];
    const size_t units = is_first ? 3 : 1 + hyp_random_below(attack, 4);
    struct kn_quant_trial trial = {
        .quant = quant,
        .arithmetic = subject->arithmetic,
        .rows =
            is_first ? 66 + hyp_random_below(attack, 70) : sizes[hyp_random_below(attack, SIZES)],
        .columns =
            subject->most > 0
                ? subject->fewest + hyp_random_below(attack, subject->most - subject->fewest + 1)
            : is_first ? 3 + hyp_random_below(attack, 40)
                       : several,
        .k = 256 * units,
        .variant = subject->variant,
        .kind = is_first || hyp_random_below(attack, 3) > 0 ? KN_BLOCKS_USUAL
                : subject->arithmetic != KN_QUANT_F16 && hyp_random_below(attack, 2) == 0
                    ? KN_BLOCKS_EXTREME
                    : KN_BLOCKS_SUBNORMAL,
        .distribution = is_first ? KN_NORMAL : hyp_random_below(attack, KN_DISTRIBUTIONS),
        .scale = 1,
        .x_gap = is_odd ? hyp_random_below(attack, 9) : 4 * hyp_random_below(attack, 3),
        .y_gap = hyp_random_below(attack, 6),
        .weights_skew = is_odd ? 2 * hyp_random_below(attack, 9) : 0,
        .x_skew = is_odd ? 4 * hyp_random_below(attack, 5) : 0,
        .y_skew = 4 * hyp_random_below(attack, 5)};
    if (is_wgmma(subject) && quant == KN_Q6_K) trial.k = 2048; /* rows at multiples of 16 bytes */
    if (!is_wgmma(subject) && quant == KN_Q8_0) trial.k -= 32 * hyp_random_below(attack, 8);
    if (is_first || hyp_random_below(attack, 5) > 0) return trial;
    static const float poisons[] = {NAN, INFINITY, -INFINITY};
    trial.kind = KN_BLOCKS_USUAL, trial.distribution = KN_NORMAL;
    if (hyp_random_below(attack, 2) == 0) {
        trial.poisoned_row = 1 + hyp_random_below(attack, trial.rows);
    } else {
        trial.poison = poisons[hyp_random_below(attack, 3)];
        trial.poison_at = 1 + hyp_random_below(attack, trial.columns * trial.k);
    }
    return trial;
}

HYP_ATTACK(h05, products_of_quantised_weights_are_within_their_bounds) {
    const int turns = attack->session.full ? 60 : 2;
    struct hyp_accuracy accuracy;
    if (hyp_accuracy_begin(&accuracy, attack, "quant", columns)) {
        for (int i = 0; i < SUBJECTS * turns; i++) {
            const struct quant_subject *subject = &subjects[i / turns];
            if (capability_of(attack) < subject->capability) continue;
            struct kn_quant_trial trial = quant_draw_trial(attack, subject, i % turns == 0);
            quant_try_one(&accuracy, &trial);
            hyp_attack_progress(attack, (i + 1.0) / (SUBJECTS * turns));
        }
    }
    hyp_accuracy_end(&accuracy);
}
