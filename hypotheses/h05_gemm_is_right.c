/*
 * H5: gemm is right.
 *
 * The words below say how; `tollens explain H5` prints them.
 */
#include "harness/attack.h"
#include "harness/claim.h"
#include "attack/error_table.h"
#include "harness/sabotage.h"
#include "gemm/gemm_trial.h"

#include <math.h>
#include <string.h>

HYP_WORDS(
    5, .is_measured = true,
    .claim = "A product of matrices in fp32 is within 1e-3 of the same product in double, and one "
             "in tf32, fp16 or bf16 within the bound that is derived for it.",
    .prediction = "fp32: at most 2e-4 for elements drawn from -1 to 1 and k up to 4096, and 1e-5 "
                  "where they are divided by the root of k. Others: within their bounds.",
    .falsified_if = "an element of an fp32 product is off by 1e-3 or more, an element of any "
                    "product by more than its bound, or is never written; or a byte outside of C "
                    "changes, or C is read where beta is 0.",
    .method = "Every kernel that serves multiplies matrices of random shapes (1, primes, multiples "
              "of tiles and neighbours of them), orders, gaps, batches, factors and distributions, "
              "with a workspace and without; "
              "C begins as NaN, lies between guard zones and has NaN between its rows. The oracle "
              "adds in double; bounds are derived from k and the sums of magnitudes "
              "(gemm_oracle.c). All deviations are in the evidence, as CSV.",
    .control = "Ten saboteurs, eight of them kernels with one defect; each is noticed.",
    .confounders = "An absolute error says nothing without k and the distribution, so both are "
                   "stated, and relative bounds are held beside it. The seed is in the evidence.")

struct bench {
    struct hyp_attack *attack;
    struct kn_kernels *kernels;
    struct tol_stream *stream;
    struct hyp_error_table errors;
};

static bool begin(struct hyp_attack *attack, struct bench *bench) {
    *bench = (struct bench){.attack = attack};
    hyp_error_table_begin(&bench->errors, attack,
                          "distribution,scale,transpose,m,n,k,batch,gap,align,skew,alpha,beta,c,"
                          "workspace,seed");
    return HYP_OK(attack, kn_kernels_create(attack->context, &bench->kernels)) &&
           HYP_OK(attack, tol_stream_create(attack->context, NULL, &bench->stream));
}

static void end(struct bench *bench) {
    hyp_error_table_end(&bench->errors);
    tol_stream_destroy(bench->stream);
    kn_kernels_destroy(bench->kernels);
}

/* Under a saboteur called gemm_DEFECT all products are made by the kernel of that defect. */
static void plant(const struct hyp_attack *attack, struct kn_gemm *gemm) {
    const char *mistake = hyp_sabotage_mistake(attack->session.sabotage, "gemm");
    if (mistake == NULL) return;
    gemm->variants = &kn_gemm_planted_variants;
    gemm->variant = mistake;
}

/* Tries a product. false: it could not be made, or not all of it was right. */
static bool try_one(struct bench *bench, struct kn_gemm_trial *trial,
                    struct kn_gemm_outcome *outcome) {
    char path[32];
    const struct kn_gemm *g = &trial->gemm;
    trial->seed = hyp_random(bench->attack);
    snprintf(path, sizeof path, "%s %s", kn_gemm_precision_name(g->precision),
             g->variant != NULL ? g->variant : "chosen");
    plant(bench->attack, &trial->gemm);
    if (!HYP_OK(bench->attack, kn_gemm_try(bench->kernels, bench->stream, trial, outcome))) {
        return false;
    }
    hyp_error_table_add(&bench->errors, path, &outcome->deviation,
                        "%s,%g,%c%c,%zu,%zu,%zu,%zu,%zu,%zu,%zu,%g,%g,%s,%zu,%llu",
                        kn_distribution_name(trial->distribution), trial->scale,
                        g->transpose_a ? 't' : 'n', g->transpose_b ? 't' : 'n', g->m, g->n, g->k,
                        g->batch, trial->gap, trial->align, trial->skew, (double)g->alpha,
                        (double)g->beta, kn_type_name(g->c_type), outcome->workspace,
                        (unsigned long long)trial->seed);
    return HYP_CHECK(bench->attack, outcome->touched == 0,
                     "%s: %zu bytes outside of C changed: %zu x %zu, rows %zu longer", path,
                     outcome->touched, g->m, g->n, trial->gap);
}

/* ---- the number of the claim ---------------------------------------------------------------- */

static const char *const float_variants[] = {NULL, "naive", "shared", "registers", "vector"};

/* The worst of all fp32 kernels with one k. */
static void measure_float(struct bench *bench, size_t m, size_t n, size_t k, double scale) {
    double worst = 0;
    for (size_t i = 0; i < sizeof float_variants / sizeof float_variants[0]; i++) {
        struct kn_gemm_outcome outcome;
        struct kn_gemm_trial trial = {
            .gemm = {.m = m, .n = n, .k = k, .alpha = 1, .variant = float_variants[i]},
            .scale = scale,
            .align = 4};
        if (!try_one(bench, &trial, &outcome)) return;
        worst = fmax(worst, outcome.deviation.absolute);
    }
    if (isfinite(worst)) {
        hyp_attack_measure(bench->attack, worst, "f32, %s, k = %zu",
                           scale == 1 ? "-1 to 1" : "-1 to 1 by root of k", k);
    }
}

HYP_ATTACK(h05, fp32_is_within_a_thousandth) {
    static const size_t quick[] = {1, 17, 64, 257, 1000, 4096};
    static const size_t full[] = {1, 17, 64, 257, 1000, 2048, 4093, 4096};
    const size_t *k = attack->session.full ? full : quick;
    const size_t count =
        attack->session.full ? sizeof full / sizeof full[0] : sizeof quick / sizeof quick[0];
    struct bench bench;
    if (begin(attack, &bench)) {
        for (size_t i = 0; i < count; i++) {
            const size_t side = attack->session.full ? 509 : k[i] > 300 ? 13 : 67;
            measure_float(&bench, side, side + 3, k[i], 1);
            measure_float(&bench, side, side + 3, k[i], 1 / sqrt((double)k[i]));
            hyp_attack_progress(attack, (double)(i + 1) / (double)count);
        }
    }
    end(&bench);
}

/* ---- everything else ------------------------------------------------------------------------- */

static size_t draw_size(struct hyp_attack *attack) {
    static const size_t sizes[] = {1,  2,  3,  7,  8,  13,  16,  17,  31,  32,  33,  47, 61,
                                   64, 65, 67, 96, 97, 127, 128, 129, 131, 160, 257, 300};
    const size_t count = sizeof sizes / sizeof sizes[0];
    /* Small ones are cheap to try; all come. */
    return sizes[hyp_random_below(attack, hyp_random_below(attack, 4) == 0 ? count : 17)];
}

static float draw_factor(struct hyp_attack *attack, float usual) {
    static const float factors[] = {1, -1, 0.5f, -1.75f, 3.0e-3f};
    return hyp_random_below(attack, 2) == 0 ? usual : factors[hyp_random_below(attack, 5)];
}

/* A product drawn at random, for a kernel that may ask for rows at multiples of 16 bytes. */
static struct kn_gemm_trial draw_trial(struct hyp_attack *attack, enum kn_gemm_precision precision,
                                       const char *variant, bool is_aligned) {
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
    if (hyp_random_below(attack, 4) == 0) trial.gemm.n = trial.gemm.k = trial.gemm.m;
    if (hyp_random_below(attack, 2) == 0) trial.gemm.c_type = kn_gemm_input_type(precision);
    /* At the end of fp16's range a result may be infinite or not by a rounding. */
    if (trial.gemm.c_type == KN_F16 && trial.distribution == KN_LARGE) {
        trial.distribution = KN_NORMAL;
    }
    return trial;
}

static void try_kernel(struct hyp_attack *attack, struct bench *bench,
                       enum kn_gemm_precision precision, const char *variant, bool is_aligned) {
    const int trials = attack->session.full ? 200 : 10;
    for (int i = 0; i < trials; i++) {
        struct kn_gemm_outcome outcome;
        struct kn_gemm_trial trial = draw_trial(attack, precision, variant, is_aligned);
        try_one(bench, &trial, &outcome);
    }
}

static void try_precision(struct hyp_attack *attack, enum kn_gemm_precision precision,
                          const char *const *variants, size_t count, bool needs_tensors) {
    struct bench bench;
    const int capability = tol_context_device(attack->context)->compute_capability;
    if (begin(attack, &bench)) {
        for (size_t i = 0; i < count; i++) {
            const bool is_aligned = variants[i] != NULL && (strcmp(variants[i], "vector") == 0 ||
                                                            strncmp(variants[i], "async", 5) == 0);
            if (needs_tensors && capability < 80 && variants[i] != NULL &&
                strcmp(variants[i], "naive") != 0 && strcmp(variants[i], "shared") != 0) {
                continue;
            }
            try_kernel(attack, &bench, precision, variants[i], is_aligned);
            hyp_attack_progress(attack, (double)(i + 1) / (double)count);
        }
    }
    end(&bench);
}

HYP_ATTACK(h05, fp32_of_any_shape_is_within_its_bound) {
    try_precision(attack, KN_GEMM_F32, float_variants,
                  sizeof float_variants / sizeof float_variants[0], false);
}

HYP_ATTACK(h05, tf32_of_any_shape_is_within_its_bound) {
    static const char *const variants[] = {NULL, "tensor", "gathered", "async_128", "async_256"};
    try_precision(attack, KN_GEMM_TF32, variants, sizeof variants / sizeof variants[0], true);
}

static const char *const half_variants[] = {NULL,       "naive",     "shared",   "tensor",
                                            "gathered", "async_128", "async_256"};

HYP_ATTACK(h05, fp16_of_any_shape_is_within_its_bound) {
    try_precision(attack, KN_GEMM_F16, half_variants,
                  sizeof half_variants / sizeof half_variants[0], true);
}

HYP_ATTACK(h05, bf16_of_any_shape_is_within_its_bound) {
    try_precision(attack, KN_GEMM_BF16, half_variants,
                  sizeof half_variants / sizeof half_variants[0], true);
}

/* Few tiles and many steps, with a workspace: blocks share the steps. */
HYP_ATTACK(h05, split_steps_are_within_their_bounds) {
    static const char *const variants[] = {NULL, "vector", "async_128"};
    static const size_t sizes[][3] = {{1, 5, 1031}, {16, 67, 2050}, {131, 3, 777}};
    struct bench bench;
    const bool has_tensors = tol_context_device(attack->context)->compute_capability >= 80;
    if (begin(attack, &bench)) {
        for (int i = 0; i < (attack->session.full ? 60 : 12); i++) {
            const enum kn_gemm_precision p = (enum kn_gemm_precision)(i % KN_GEMM_PRECISIONS);
            const size_t *size = sizes[i / KN_GEMM_PRECISIONS % 3];
            struct kn_gemm_outcome outcome;
            struct kn_gemm_trial trial =
                draw_trial(attack, p, variants[p == KN_GEMM_F32 ? i % 2 : has_tensors * 2], true);
            trial.gemm.m = size[0], trial.gemm.n = size[1];
            trial.gemm.k = size[2] + hyp_random_below(attack, 100);
            trial.workspace = true;
            if (try_one(&bench, &trial, &outcome)) {
                HYP_CHECK(attack, outcome.workspace > 0, "%zu x %zu x %zu was not split", size[0],
                          size[1], trial.gemm.k);
            }
        }
    }
    end(&bench);
}

/* Sizes that real programs use; the oracle looks at rows drawn at random. */
HYP_ATTACK(h05, large_products_are_within_their_bounds) {
    static const size_t sizes[][3] = {{4096, 4096, 4096},
                                      {8192, 1024, 4096},
                                      {1, 32000, 4096},
                                      {4097, 4095, 1031},
                                      {16, 16, 65536}};
    struct bench bench;
    if (!attack->session.full || attack->kind == HYP_DEVICE_SOFT) {
        hyp_attack_note(attack, "large products are for GPUs in full mode: one of 200 x 300 x 260");
    }
    const bool is_small = !attack->session.full || attack->kind == HYP_DEVICE_SOFT;
    if (begin(attack, &bench)) {
        for (size_t i = 0; i < (is_small ? 1 : sizeof sizes / sizeof sizes[0]); i++) {
            for (enum kn_gemm_precision p = 0; p < KN_GEMM_PRECISIONS; p++) {
                struct kn_gemm_outcome outcome;
                struct kn_gemm_trial trial = {.gemm = {.precision = p,
                                                       .m = is_small ? 200 : sizes[i][0],
                                                       .n = is_small ? 300 : sizes[i][1],
                                                       .k = is_small ? 260 : sizes[i][2],
                                                       .alpha = 1},
                                              .scale = 1,
                                              .align = 8};
                try_one(&bench, &trial, &outcome);
            }
            hyp_attack_progress(attack, (double)(i + 1) / 5);
        }
    }
    end(&bench);
}
