/*
 * H5: GEMM results are within their error bounds.
 *
 * `tollens explain H5` prints the text below.
 */
#include "accuracy/accuracy.h"
#include "harness/attack.h"
#include "harness/claim.h"
#include "harness/sabotage.h"
#include "gemm/gemm_trial.h"

#include <math.h>
#include <string.h>

HYP_WORDS(
    5, .is_measured = true,
    .claim = "An fp32 matrix product is within 1e-3 of the same product computed in double, for k "
             "up to 4096, elements from -1 to 1, and alpha and beta up to 1 in magnitude. Outside "
             "that domain, and in tf32, fp16 and bf16, each element is within the error bound "
             "derived for it. fp32 products that are computed from parts on tensor cores have at "
             "most twice the error bound of chains of fused multiply-adds. Products of small "
             "whole numbers are exact in every precision. Products of groups of rows, including "
             "their epilogues, are within the bound derived for each element, and products of "
             "quantised weights within the bound of their arithmetic.",
    .prediction = "fp32, in the domain: at most 3e-4 for elements from -1 to 1 and k = 4096, and "
                  "1e-5 if they are divided by the square root of k. Errors grow with k: 16 x 16 x "
                  "65536 is off by 1.5e-3, which is outside the domain and within its bound.",
    .falsified_if = "an element of an fp32 product in the domain is off by 1e-3 or more, an "
                    "element of any product exceeds its bound or is never written, a product of "
                    "whole numbers has a wrong bit, a byte outside C changes, or C is read "
                    "although beta is 0.",
    .method = "Every kernel that supports the problem multiplies matrices with random shapes (1, "
              "primes, multiples of the tile size and their neighbours), transpositions, row "
              "padding, batch sizes, alpha and beta, and distributions, with and without a "
              "workspace. C is filled with NaN, has NaN between its rows, and lies between guard "
              "zones. The reference accumulates in double; for tf32, from factors rounded to "
              "tf32. Bounds for random data fail with a probability below 1e-9 in a whole run "
              "(gemm_oracle.c, chance.h); those for pairs that cancel are the worst case. A "
              "quarter of the products have small whole numbers: no rounding is possible, and "
              "every element is checked (gemm_exact.h). Of other products of 2^28 steps or more, "
              "the last row and eight others are compared. Products of groups "
              "(h05_groups_are_right.c) have uneven and empty groups, bias, scales, activations, "
              "residuals and 8-bit results; their bounds are the worst case (grouped_trial.h). "
              "Products of quantised weights (h05_quant_products_are_right.c) are made in floats, "
              "in halves and with x in bytes, from blocks of Q4_K, Q6_K and Q8_0, some with "
              "extreme or subnormal scales; their bounds are those of quant_product.h, and a NaN "
              "must stay in its row or column. The evidence has all deviations, and the number of "
              "elements compared, as CSV.",
    .control =
        "Thirty-one saboteurs: twenty-eight kernels with one defect, twenty of which are "
        "pipelines of compute capability 9.0, one flipped bit of one element, and two that lose "
        "launches; each must be noticed.",
    .confounders = "An absolute error means nothing without k and the distribution, so both are "
                   "stated, and relative bounds are checked as well. The seed is in the evidence.")

/* What describes a trial in the error table. */
static const char columns[] =
    "distribution,scale,transpose,m,n,k,batch,gap,align,skew,alpha,beta,c,"
    "workspace,compared,seed";

/* A defect of a pipeline, which devices of compute capability 9.0 have, and the precision that its
 * kernel supports, without transpositions. */
struct pipeline {
    const char *mistake;
    enum kn_gemm_precision precision;
};

static const struct pipeline *pipeline_of(const char *mistake) {
    static const struct pipeline pipelines[] = {
        {"early_release", KN_GEMM_BF16},  {"lost_consumer", KN_GEMM_BF16},
        {"wrong_stage", KN_GEMM_BF16},    {"lost_stage", KN_GEMM_BF16},
        {"lost_block", KN_GEMM_BF16},     {"wrong_words", KN_GEMM_TF32},
        {"lost_part", KN_GEMM_F32_TENSOR}};
    for (size_t i = 0; i < sizeof pipelines / sizeof pipelines[0]; i++) {
        if (strcmp(mistake, pipelines[i].mistake) == 0) return &pipelines[i];
    }
    return NULL;
}

/* Under a saboteur called gemm_DEFECT, all products that the kernel of that defect supports are
 * made by it. Devices without step 10 get a defect of step 1 in place of its own: steps are
 * lost. */
static void gemm_plant(const struct hyp_attack *attack, struct kn_gemm_trial *trial) {
    const char *sabotage = attack->session.sabotage;
    const char *mistake = hyp_sabotage_mistake(sabotage, "gemm");
    trial->swaps_last = hyp_sabotage_turn(sabotage, "gemm_swap_one_in");
    trial->flips_bit = hyp_sabotage_turn(sabotage, "gemm_flip_one_in");
    if (mistake == NULL) return;
    if (strcmp(mistake, "flipped_bit") == 0) {
        trial->flips_bit = true; /* of the result: no kernel needs to have this defect */
        return;
    }
    const struct pipeline *pipeline = pipeline_of(mistake);
    if (pipeline != NULL) {
        const struct kn_gemm *g = &trial->gemm;
        const bool has_parts = pipeline->precision == KN_GEMM_F32_TENSOR;
        const bool is_served = g->precision == pipeline->precision && !g->transpose_a &&
                               !g->transpose_b &&
                               (has_parts || (trial->align == 8 && trial->skew == 0));
        if (tol_context_device(attack->context)->compute_capability != 90) {
            mistake = "lost_step";
        } else if (!is_served) {
            return;
        } else if (has_parts) {
            trial->workspace = true;
        }
    }
    trial->gemm.variants = &kn_gemm_planted_variants;
    trial->gemm.variant = mistake;
}

/* Whether the claim's threshold applies to a product. */
static bool gemm_is_in_domain(const struct kn_gemm_trial *trial) {
    const struct kn_gemm *g = &trial->gemm;
    const bool is_small = trial->distribution == KN_UNIFORM || trial->distribution == KN_SPARSE ||
                          trial->distribution == KN_TINY || trial->distribution == KN_DENORMAL;
    return is_small && g->precision == KN_GEMM_F32 && !trial->is_exact && g->k <= 4096 &&
           trial->scale <= 1 && fabsf(g->alpha) <= 1 && fabsf(g->beta) <= 1;
}

/* The worst error in the domain of an attack's products; each attack has its own process. */
static double worst_in_domain = -1;

static void gemm_measure_domain(struct hyp_attack *attack) {
    if (worst_in_domain >= 0 && isfinite(worst_in_domain)) {
        hyp_attack_measure(attack, worst_in_domain, "f32, -1 to 1, any shape, k up to 4096");
    }
}

/* Tries a product with the seed of the trial. false: it could not be computed, or an element was
 * wrong. */
static bool try_again(struct hyp_accuracy *accuracy, struct kn_gemm_trial *trial,
                      struct kn_gemm_outcome *outcome) {
    char path[32];
    const struct kn_gemm *g = &trial->gemm;
    snprintf(path, sizeof path, "%s %s", kn_gemm_precision_name(g->precision),
             g->variant != NULL ? g->variant : "chosen");
    gemm_plant(accuracy->attack, trial);
    if (!HYP_OK(accuracy->attack,
                kn_gemm_try(accuracy->kernels, accuracy->stream, trial, outcome))) {
        return false;
    }
    hyp_error_table_add(&accuracy->errors, path, &outcome->deviation,
                        "%s,%g,%c%c,%zu,%zu,%zu,%zu,%zu,%zu,%zu,%g,%g,%s,%zu,%zu,%llu",
                        trial->is_exact ? "whole" : kn_distribution_name(trial->distribution),
                        trial->scale, g->transpose_a ? 't' : 'n', g->transpose_b ? 't' : 'n', g->m,
                        g->n, g->k, g->batch, trial->gap, trial->align, trial->skew,
                        (double)g->alpha, (double)g->beta, kn_type_name(g->c_type),
                        outcome->workspace, outcome->compared, (unsigned long long)trial->seed);
    if (gemm_is_in_domain(trial))
        worst_in_domain = fmax(worst_in_domain, outcome->deviation.absolute);
    return HYP_CHECK(
        accuracy->attack, outcome->touched == 0,
        "%s: %zu bytes outside C changed (C is %zu x %zu, with %zu elements between rows)", path,
        outcome->touched, g->m, g->n, trial->gap);
}

/* The same with another seed. */
static bool gemm_try_one(struct hyp_accuracy *accuracy, struct kn_gemm_trial *trial,
                         struct kn_gemm_outcome *outcome) {
    trial->seed = hyp_random(accuracy->attack);
    return try_again(accuracy, trial, outcome);
}

static bool gemm_is_kind(const char *variant, const char *kind) {
    return variant != NULL && strncmp(variant, kind, strlen(kind)) == 0;
}

/* ---- the number of the claim ---------------------------------------------------------------- */

static const char *const float_variants[] = {NULL,     "naive",   "shared",    "registers",
                                             "vector", "wide_64", "wide_short"};

/* Measures the worst error of all fp32 kernels without transpositions, with one k. */
static void measure_float(struct hyp_accuracy *accuracy, size_t m, size_t n, size_t k,
                          double scale) {
    double worst = 0;
    const bool is_90 = tol_context_device(accuracy->attack->context)->compute_capability == 90;
    for (size_t i = 0; i < sizeof float_variants / sizeof float_variants[0]; i++) {
        if (gemm_is_kind(float_variants[i], "wide_short")) continue;
        if (gemm_is_kind(float_variants[i], "wide") && !is_90) continue;
        struct kn_gemm_outcome outcome;
        struct kn_gemm_trial trial = {
            .gemm = {.m = m, .n = n, .k = k, .alpha = 1, .variant = float_variants[i]},
            .scale = scale,
            .align = 4};
        if (!gemm_try_one(accuracy, &trial, &outcome)) return;
        worst = fmax(worst, outcome.deviation.absolute);
    }
    if (isfinite(worst)) {
        hyp_attack_measure(accuracy->attack, worst, "f32, %s, k = %zu",
                           scale == 1 ? "-1 to 1" : "-1 to 1 divided by the root of k", k);
    }
}

HYP_ATTACK(h05, fp32_is_within_a_thousandth) {
    static const size_t quick[] = {1, 17, 64, 257, 1000, 4096};
    static const size_t full[] = {1, 17, 64, 257, 1000, 2048, 4093, 4096};
    const size_t *k = attack->session.full ? full : quick;
    const size_t count =
        attack->session.full ? sizeof full / sizeof full[0] : sizeof quick / sizeof quick[0];
    struct hyp_accuracy accuracy;
    if (hyp_accuracy_begin(&accuracy, attack, "gemm", columns)) {
        for (size_t i = 0; i < count; i++) {
            const size_t side = attack->session.full ? 509 : k[i] > 300 ? 13 : 67;
            measure_float(&accuracy, side, side + 3, k[i], 1);
            measure_float(&accuracy, side, side + 3, k[i], 1 / sqrt((double)k[i]));
            hyp_attack_progress(attack, (double)(i + 1) / (double)count);
        }
    }
    hyp_accuracy_end(&accuracy);
}

/* ---- everything else ------------------------------------------------------------------------- */

static size_t draw_size(struct hyp_attack *attack) {
    static const size_t sizes[] = {1,  2,  3,  7,  8,  13,  16,  17,  31,  32,  33,  47, 61,
                                   64, 65, 67, 96, 97, 127, 128, 129, 131, 160, 257, 300};
    const size_t count = sizeof sizes / sizeof sizes[0];
    /* Mostly small sizes, which are cheap to try. */
    return sizes[hyp_random_below(attack, hyp_random_below(attack, 4) == 0 ? count : 17)];
}

static float draw_factor(struct hyp_attack *attack, float usual) {
    static const float factors[] = {1, -1, 0.5f, -1.75f, 3.0e-3f};
    return hyp_random_below(attack, 2) == 0 ? usual : factors[hyp_random_below(attack, 5)];
}

/* Turns a product into one of whole numbers. */
static void make_exact(struct hyp_attack *attack, struct kn_gemm_trial *trial) {
    static const float factors[] = {1, -1, 2, -2};
    trial->is_exact = true;
    trial->gemm.alpha = factors[hyp_random_below(attack, 4)];
    trial->gemm.beta = hyp_random_below(attack, 2) == 0 ? 0 : factors[hyp_random_below(attack, 4)];
}

/* Draws a product, for a kernel that may require rows at multiples of 16 bytes. */
static struct kn_gemm_trial gemm_draw_trial(struct hyp_attack *attack,
                                            enum kn_gemm_precision precision, const char *variant,
                                            bool is_aligned) {
    struct kn_gemm_trial trial = {
        .gemm = {.precision = precision,
                 .transpose_a = hyp_random_below(attack, 2) != 0,
                 .transpose_b = hyp_random_below(attack, 2) != 0,
                 .m = draw_size(attack),
                 .n = draw_size(attack),
                 .k = draw_size(attack),
                 .batch = hyp_random_below(attack, 4) == 0 ? 3 : 1,
                 .alpha = draw_factor(attack, 1),
                 .beta = draw_factor(attack, 0),
                 .variant = variant},
        .distribution = (enum kn_distribution)hyp_random_below(attack, KN_DISTRIBUTIONS),
        .scale = 1,
        .align = is_aligned ? 8 : 0,
        .gap = hyp_random_below(attack, 3) == 0 ? 0 : 1 + hyp_random_below(attack, 9),
        .skew = is_aligned ? 0 : hyp_random_below(attack, 3),
        .workspace = hyp_random_below(attack, 2) != 0};
    if (hyp_random_below(attack, 4) == 0) make_exact(attack, &trial);
    if (hyp_random_below(attack, 4) == 0) trial.gemm.n = trial.gemm.k = trial.gemm.m;
    if (hyp_random_below(attack, 2) == 0) trial.gemm.c_type = kn_gemm_input_type(precision);
    /* At the end of fp16's range, rounding decides whether a result is infinite. */
    if (trial.gemm.c_type == KN_F16 && trial.distribution == KN_LARGE) {
        trial.distribution = KN_NORMAL;
    }
    return trial;
}

static void try_kernel(struct hyp_attack *attack, struct hyp_accuracy *accuracy,
                       enum kn_gemm_precision precision, const char *variant, bool is_aligned) {
    const int trials = attack->session.full ? 200 : 9;
    for (int i = 0; i < trials; i++) {
        struct kn_gemm_outcome outcome;
        struct kn_gemm_trial trial = gemm_draw_trial(attack, precision, variant, is_aligned);
        if (gemm_is_kind(variant, "packed"))
            trial.workspace = true, trial.skew = 1; /* for copies */
        if (gemm_is_kind(variant, "parts")) trial.workspace = true;
        if (gemm_is_kind(variant, "wide_short")) {
            trial.gemm.transpose_a = false, trial.gemm.transpose_b = true;
        }
        /* With floats, wgmma supports at most one operand that is not contiguous along k. */
        if (gemm_is_kind(variant, "wgmma") && precision == KN_GEMM_TF32 &&
            !trial.gemm.transpose_b) {
            trial.gemm.transpose_a = false;
        }
        gemm_try_one(accuracy, &trial, &outcome);
    }
}

static void try_precision(struct hyp_attack *attack, enum kn_gemm_precision precision,
                          const char *const *variants, size_t count, bool needs_tensors) {
    struct hyp_accuracy accuracy;
    const int capability = tol_context_device(attack->context)->compute_capability;
    if (hyp_accuracy_begin(&accuracy, attack, "gemm", columns)) {
        for (size_t i = 0; i < count; i++) {
            const bool is_wide = gemm_is_kind(variants[i], "wide");
            const bool is_hopper = is_wide || gemm_is_kind(variants[i], "wgmma") ||
                                   gemm_is_kind(variants[i], "packed");
            const bool is_aligned = is_wide || gemm_is_kind(variants[i], "vector") ||
                                    gemm_is_kind(variants[i], "async") ||
                                    gemm_is_kind(variants[i], "wgmma");
            if (is_hopper && capability != 90) continue;
            if (needs_tensors && capability < 80 && variants[i] != NULL &&
                strcmp(variants[i], "naive") != 0 && strcmp(variants[i], "shared") != 0) {
                continue;
            }
            try_kernel(attack, &accuracy, precision, variants[i], is_aligned);
            hyp_attack_progress(attack, (double)(i + 1) / (double)count);
        }
    }
    hyp_accuracy_end(&accuracy);
}

HYP_ATTACK(h05, fp32_of_any_shape_is_within_its_bound) {
    try_precision(attack, KN_GEMM_F32, float_variants,
                  sizeof float_variants / sizeof float_variants[0], false);
    gemm_measure_domain(attack);
}

HYP_ATTACK(h05, tf32_of_any_shape_is_within_its_bound) {
    static const char *const variants[] = {NULL,        "tensor",     "gathered",
                                           "async_128", "async_256",  "wgmma_128",
                                           "wgmma_256", "packed_128", "packed_256"};
    try_precision(attack, KN_GEMM_TF32, variants, sizeof variants / sizeof variants[0], true);
}

/* Floats in parts, which only devices of compute capability 9.0 support. */
HYP_ATTACK(h05, floats_in_parts_of_any_shape_are_within_their_bound) {
    static const char *const variants[] = {NULL, "registers", "parts_128"};
    const bool is_hopper = tol_context_device(attack->context)->compute_capability == 90;
    try_precision(attack, KN_GEMM_F32_TENSOR, variants, is_hopper ? 3 : 2, false);
}

/* The same data by chains and in parts: normal, uniform, over a wide range, and pairs that
 * cancel. */
HYP_ATTACK(h05, floats_in_parts_are_off_by_at_most_twice_as_much) {
    static const enum kn_distribution distributions[] = {KN_UNIFORM, KN_NORMAL, KN_LARGE,
                                                         KN_CANCEL};
    static const size_t quick[] = {64, 257, 1000}, full[] = {64, 257, 1000, 4096, 16384};
    const size_t *steps = attack->session.full ? full : quick;
    const size_t count = attack->session.full ? 5 : 3, side = attack->session.full ? 509 : 61;
    struct hyp_accuracy accuracy;
    if (tol_context_device(attack->context)->compute_capability != 90) {
        hyp_attack_note(attack, "parts need compute capability 9.0");
        return;
    }
    if (hyp_accuracy_begin(&accuracy, attack, "gemm", columns)) {
        for (size_t i = 0; i < 4 * count; i++) {
            struct kn_gemm_outcome chain, parts;
            struct kn_gemm_trial trial = {.gemm = {.m = side,
                                                   .n = side + 3,
                                                   .k = steps[i / 4],
                                                   .alpha = 1,
                                                   .variant = "vector"},
                                          .distribution = distributions[i % 4],
                                          .scale = 1,
                                          .align = 8};
            if (!gemm_try_one(&accuracy, &trial, &chain)) break;
            struct kn_gemm_trial other = trial;
            other.gemm.precision = KN_GEMM_F32_TENSOR;
            other.gemm.variant = "parts_128", other.workspace = true;
            if (!try_again(&accuracy, &other, &parts)) break;
            HYP_CHECK(attack, parts.deviation.absolute <= 2 * chain.deviation.absolute,
                      "%s, k = %zu: parts are off by %g, and a chain by %g",
                      kn_distribution_name(trial.distribution), steps[i / 4],
                      parts.deviation.absolute, chain.deviation.absolute);
            hyp_attack_progress(attack, (double)(i + 1) / (double)(4 * count));
        }
    }
    hyp_accuracy_end(&accuracy);
}

static const char *const half_variants[] = {
    NULL,        "naive",     "shared",   "tensor",      "gathered", "async_128",  "async_256",
    "wgmma_128", "wgmma_256", "wgmma_64", "wgmma_64_k2", "wgmma_k4", "packed_128", "packed_256"};

HYP_ATTACK(h05, fp16_of_any_shape_is_within_its_bound) {
    try_precision(attack, KN_GEMM_F16, half_variants,
                  sizeof half_variants / sizeof half_variants[0], true);
}

HYP_ATTACK(h05, bf16_of_any_shape_is_within_its_bound) {
    try_precision(attack, KN_GEMM_BF16, half_variants,
                  sizeof half_variants / sizeof half_variants[0], true);
}

/* Few tiles, a large k and a workspace: split-K. */
HYP_ATTACK(h05, split_steps_are_within_their_bounds) {
    static const char *const variants[] = {NULL, "vector", "async_128"};
    static const size_t sizes[][3] = {{1, 5, 1031}, {16, 67, 2050}, {131, 3, 777}};
    struct hyp_accuracy accuracy;
    const bool has_tensors = tol_context_device(attack->context)->compute_capability >= 80;
    if (hyp_accuracy_begin(&accuracy, attack, "gemm", columns)) {
        for (int i = 0; i < (attack->session.full ? 60 : 15); i++) {
            const enum kn_gemm_precision p = (enum kn_gemm_precision)(i % KN_GEMM_PRECISIONS);
            const bool is_chain = p == KN_GEMM_F32 || p == KN_GEMM_F32_TENSOR;
            const size_t *size = sizes[i / KN_GEMM_PRECISIONS % 3];
            struct kn_gemm_outcome outcome;
            struct kn_gemm_trial trial =
                gemm_draw_trial(attack, p, variants[is_chain ? i % 2 : has_tensors * 2], true);
            trial.gemm.m = size[0], trial.gemm.n = size[1];
            trial.gemm.k = size[2] + hyp_random_below(attack, 100);
            trial.workspace = true;
            trial.is_exact = false;
            if (i % 2 == 0) make_exact(attack, &trial);
            if (gemm_try_one(&accuracy, &trial, &outcome)) {
                HYP_CHECK(attack, outcome.workspace > 0, "%zu x %zu x %zu was not split", size[0],
                          size[1], trial.gemm.k);
            }
        }
    }
    hyp_accuracy_end(&accuracy);
}

/* More steps than a pipeline has stages, and persistent thread blocks with several tiles. */
HYP_ATTACK(h05, pipelines_go_round_within_their_bounds) {
    static const char *const hopper[] = {"wgmma_128", "wgmma_256", "wgmma_64", "wgmma_64_k2",
                                         "wgmma_k4"};
    static const char *const other[] = {"async_128", "async_256"};
    struct hyp_accuracy accuracy;
    const int capability = tol_context_device(attack->context)->compute_capability;
    const int hoppers = sizeof hopper / sizeof hopper[0];
    const int trials = attack->session.full ? 120 : 2 * hoppers;
    if (capability < 80) {
        hyp_attack_note(attack, "pipelines need compute capability 8.0");
        return;
    }
    if (hyp_accuracy_begin(&accuracy, attack, "gemm", columns)) {
        for (int i = 0; i < trials; i++) {
            struct kn_gemm_outcome outcome;
            const char *variant = capability == 90 ? hopper[i / 2 % hoppers] : other[i / 2 % 2];
            struct kn_gemm_trial trial =
                gemm_draw_trial(attack, i % 4 < 3 ? KN_GEMM_BF16 : KN_GEMM_F16, variant, true);
            if (i % 2 == 0) trial.gemm.transpose_a = trial.gemm.transpose_b = false;
            trial.gemm.m = 65 + hyp_random_below(attack, 120);
            trial.gemm.n = 1 + hyp_random_below(attack, 200);
            trial.gemm.k = 640 + hyp_random_below(attack, 400);
            trial.workspace = false;
            gemm_try_one(&accuracy, &trial, &outcome);
            hyp_attack_progress(attack, (double)(i + 1) / trials);
        }
    }
    hyp_accuracy_end(&accuracy);
}

/* Sizes from real programs: random data, of which the reference computes some rows, and whole
 * numbers, of which every element is checked. */
HYP_ATTACK(h05, large_products_are_within_their_bounds) {
    static const size_t sizes[][3] = {
        {4096, 4096, 4096}, {8192, 1024, 4096}, {1, 32000, 4096}, {4097, 4095, 1031},
        {16, 16, 65536},    {16, 16, 65536}}; /* the last by split-K */
    const bool is_small = !attack->session.full || attack->kind == HYP_DEVICE_SOFT;
    const size_t count = is_small ? 1 : sizeof sizes / sizeof sizes[0];
    struct hyp_accuracy accuracy;
    if (is_small) {
        hyp_attack_note(attack,
                        "large products need a GPU and full mode; tried 150 x 300 x 260 instead");
    }
    if (hyp_accuracy_begin(&accuracy, attack, "gemm", columns)) {
        for (size_t i = 0; i < 2 * KN_GEMM_PRECISIONS * count; i++) {
            const size_t *size = sizes[i / 2 / KN_GEMM_PRECISIONS];
            struct kn_gemm_outcome outcome;
            struct kn_gemm_trial trial = {
                .gemm = {.precision = (enum kn_gemm_precision)(i / 2 % KN_GEMM_PRECISIONS),
                         .m = is_small ? 150 : size[0],
                         .n = is_small ? 300 : size[1],
                         .k = is_small ? 260 : size[2],
                         .alpha = 1},
                .scale = 1,
                .align = 8,
                .workspace = size == sizes[5],
                .is_exact = i % 2 == 1};
            gemm_try_one(&accuracy, &trial, &outcome);
            hyp_attack_progress(attack, (double)(i + 1) / (double)(2 * KN_GEMM_PRECISIONS * count));
        }
        gemm_measure_domain(attack);
    }
    hyp_accuracy_end(&accuracy);
}
