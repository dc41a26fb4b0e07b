/*
 * gemm: every kernel over shapes that divide nothing, and every refusal.
 */
#include "gemm/gemm_trial.h"

#include "parallel.h"
#include "test/test_device.h"

#include <math.h>
#include <string.h>

TestSuite(gemm, .fini = test_end);

static struct kn_kernels *kernels;
static struct tol_stream *stream;

static void begin(void) {
    MUST(kn_kernels_create(test_context(), &kernels));
    MUST(tol_stream_create(test_context(), NULL, &stream));
}

static void end(void) {
    tol_stream_destroy(stream);
    kn_kernels_destroy(kernels);
}

/* Gives the bytes of workspace; of a trial that is not taken, SIZE_MAX. */
static size_t must_be_right(const struct kn_gemm_trial *trial) {
    char text[400];
    const struct kn_gemm *g = &trial->gemm;
    struct kn_gemm_outcome outcome;
    if (!test_takes_trial()) return SIZE_MAX;
    MUST(kn_gemm_try(kernels, stream, trial, &outcome));
    cr_assert(outcome.deviation.count == g->m * g->n * (g->batch != 0 ? g->batch : 1));
    cr_assert(outcome.deviation.failed == 0,
              "%s %s%s, %zu x %zu x %zu, batch %zu, variant %s, seed %llu: %s",
              kn_gemm_precision_name(g->precision), g->transpose_a ? "t" : "n",
              g->transpose_b ? "t" : "n", g->m, g->n, g->k, g->batch,
              g->variant != NULL ? g->variant : "of its choice", (unsigned long long)trial->seed,
              kn_deviation_text(&outcome.deviation, text, sizeof text));
    cr_assert(outcome.touched == 0, "%zu x %zu x %zu: %zu bytes outside of c changed", g->m, g->n,
              g->k, outcome.touched);
    return outcome.workspace;
}

/* One variant in one precision: all transpositions and types of C, with gaps and without. */
static void try_shape(const char *variant, enum kn_gemm_precision precision, size_t m, size_t n,
                      size_t k) {
    for (unsigned way = 0; way < 4; way++) {
        const bool is_aligned = way % 2 == 0 && m % 8 == 0 && n % 8 == 0 && k % 8 == 0;
        struct kn_gemm_trial trial = {
            .gemm = {.precision = precision,
                     .c_type = way % 2 == 0 ? KN_F32 : kn_gemm_input_type(precision),
                     .transpose_a = way / 2 == 1,
                     .transpose_b = way % 2 == 1,
                     .m = m,
                     .n = n,
                     .k = k,
                     .alpha = way == 0 ? 1 : -0.75f,
                     .beta = way < 2 ? 0 : 1.5f,
                     .variant = variant},
            .distribution = way == 3 ? KN_NORMAL : KN_UNIFORM,
            .gap = is_aligned ? 8 : 3,
            .skew = is_aligned ? 0 : 1,
            .seed = m * 1000003 + n * 1009 + k + way};
        must_be_right(&trial);
    }
}

static const size_t shapes[][3] = {
    {1, 1, 1},   {4, 4, 4},    {1, 7, 5},    {17, 1, 33},  {16, 16, 16}, {31, 37, 41},
    {64, 64, 8}, {65, 63, 67}, {130, 5, 19}, {3, 131, 50}, {33, 65, 1},  {48, 40, 96},
};

struct kind {
    const char *variant;
    enum kn_gemm_precision precision;
};

static void try_kind(struct kind kind) {
    begin();
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        try_shape(kind.variant, kind.precision, shapes[i][0], shapes[i][1], shapes[i][2]);
    }
    end();
}

Test(gemm, naive_is_right) {
    try_kind((struct kind){"naive", KN_GEMM_F32});
    try_kind((struct kind){"naive", KN_GEMM_F16});
    try_kind((struct kind){"naive", KN_GEMM_BF16});
}

Test(gemm, shared_is_right) {
    try_kind((struct kind){"shared", KN_GEMM_F32});
    try_kind((struct kind){"shared", KN_GEMM_F16});
    try_kind((struct kind){"shared", KN_GEMM_BF16});
}

Test(gemm, registers_is_right) {
    try_kind((struct kind){"registers", KN_GEMM_F32});
}

Test(gemm, tensor_is_right) {
    if (tol_context_device(test_context())->compute_capability < 80) cr_skip_test("before 8.0");
    try_kind((struct kind){"tensor", KN_GEMM_F16});
    try_kind((struct kind){"tensor", KN_GEMM_BF16});
    try_kind((struct kind){"tensor", KN_GEMM_TF32});
}

Test(gemm, gathered_is_right) {
    if (tol_context_device(test_context())->compute_capability < 80) cr_skip_test("before 8.0");
    try_kind((struct kind){"gathered", KN_GEMM_F16});
    try_kind((struct kind){"gathered", KN_GEMM_BF16});
    try_kind((struct kind){"gathered", KN_GEMM_TF32});
}

Test(gemm, what_it_chooses_is_right) {
    for (enum kn_gemm_precision p = 0; p < KN_GEMM_PRECISIONS; p++)
        try_kind((struct kind){NULL, p});
}

/* Rows that begin at multiples of 16 bytes, as fast kernels ask for, of any length. */
static void try_aligned(const char *variant, enum kn_gemm_precision precision, size_t m, size_t n,
                        size_t k, size_t batch) {
    for (unsigned way = 0; way < 4; way++) {
        const struct kn_gemm_trial trial = {
            .gemm = {.precision = precision,
                     .c_type = way % 2 == 0 ? KN_F32 : kn_gemm_input_type(precision),
                     .transpose_a = way / 2 == 1,
                     .transpose_b = way % 2 == 1,
                     .m = m,
                     .n = n,
                     .k = k,
                     .batch = batch,
                     .alpha = way == 0 ? 1 : 1.25f,
                     .beta = way == 1 ? 0.5f : 0,
                     .variant = variant},
            .align = 8,
            .gap = way == 2 ? 8 : 0,
            .seed = m + n + k + way};
        must_be_right(&trial);
    }
}

Test(gemm, vector_is_right) {
    begin();
    try_aligned("vector", KN_GEMM_F32, 1, 1, 1, 1);
    try_aligned("vector", KN_GEMM_F32, 131, 259, 23, 1);
    try_aligned("vector", KN_GEMM_F32, 128, 128, 64, 3);
    try_aligned("vector", KN_GEMM_F32, 7, 35, 99, 2);
    end();
}

/* Few rows or columns and many steps: they are split, for the last share into an odd number. */
static void try_split(const char *variant, enum kn_gemm_precision precision, size_t m, size_t n,
                      size_t k, size_t batch, bool is_aligned) {
    for (unsigned way = 0; way < 4; way++) {
        const struct kn_gemm_trial trial = {
            .gemm = {.precision = precision,
                     .c_type = way == 3 ? KN_F32 : kn_gemm_input_type(precision),
                     .transpose_a = way / 2 == 1,
                     .transpose_b = way % 2 == 1,
                     .m = m,
                     .n = n,
                     .k = k,
                     .batch = batch,
                     .alpha = way == 0 ? 1 : -0.75f,
                     .beta = way == 1 ? 0.5f : 0,
                     .variant = variant},
            .align = is_aligned ? 8 : 0,
            .gap = way == 2 ? 5 : 0,
            .skew = is_aligned ? 0 : 1,
            .workspace = true,
            .seed = m + n + k + way};
        cr_assert(must_be_right(&trial) >= 2 * batch * m * n * sizeof(float), "%s: it is not split",
                  variant);
    }
}

Test(gemm, split_steps_are_right) {
    begin();
    try_split("naive", KN_GEMM_F16, 1, 7, 523, 2, false);
    try_split("shared", KN_GEMM_F32, 5, 3, 769, 1, false);
    try_split("registers", KN_GEMM_F32, 3, 67, 777, 1, false);
    try_split("vector", KN_GEMM_F32, 67, 5, 777, 1, true);
    try_split("vector", KN_GEMM_F32, 1, 1, 1031, 3, true);
    if (tol_context_device(test_context())->compute_capability >= 80) {
        try_split("tensor", KN_GEMM_TF32, 7, 66, 530, 1, false);
        try_split("tensor", KN_GEMM_BF16, 17, 1, 1030, 2, false);
        try_split("gathered", KN_GEMM_TF32, 9, 130, 530, 1, false);
        try_split("gathered", KN_GEMM_F16, 129, 3, 777, 2, false);
        try_split("async_128", KN_GEMM_TF32, 16, 67, 777, 1, true);
        try_split("async_256", KN_GEMM_TF32, 1, 5, 530, 1, true);
        try_split("async_128", KN_GEMM_F16, 65, 16, 530, 1, true);
        try_split("async_256", KN_GEMM_BF16, 3, 67, 530, 1, true);
    }
    end();
}

Test(gemm, async_is_right) {
    if (tol_context_device(test_context())->compute_capability < 80) cr_skip_test("before 8.0");
    begin();
    for (enum kn_gemm_precision p = KN_GEMM_TF32; p <= KN_GEMM_BF16; p++) {
        try_aligned("async_256", p, 1, 1, 1, 1);
        try_aligned("async_256", p, 131, 259, 70, 1);
        try_aligned("async_256", p, 100, 300, 200, 2);
        try_aligned("async_128", p, 1, 7, 5, 1);
        try_aligned("async_128", p, 128, 128, 192, 2);
        try_aligned("async_128", p, 133, 59, 261, 1);
    }
    end();
}

/* Tiles and parts of them in each dimension, a ring that is gone round, and clusters of which a
 * block has no step. */
Test(gemm, wgmma_is_right) {
    if (tol_context_device(test_context())->compute_capability != 90) cr_skip_test("not 9.0");
    begin();
    for (enum kn_gemm_precision p = KN_GEMM_F16; p <= KN_GEMM_BF16; p++) {
        try_aligned("wgmma_256", p, 128, 256, 128, 1);
        try_aligned("wgmma_256", p, 1, 1, 1, 1);
        try_aligned("wgmma_256", p, 131, 259, 70, 1);
        try_aligned("wgmma_256", p, 300, 100, 460, 2);
        try_aligned("wgmma_128", p, 1, 7, 5, 1);
        try_aligned("wgmma_128", p, 128, 128, 192, 2);
        try_aligned("wgmma_128", p, 133, 59, 461, 1);
        try_aligned("wgmma_k4", p, 3, 131, 330, 2);
        try_aligned("wgmma_k4", p, 130, 5, 130, 1);
        try_aligned("wgmma_64", p, 130, 67, 10 * 64 + 3, 1);
        try_aligned("wgmma_64", p, 17, 200, 65, 2);
        try_aligned("wgmma_64_k2", p, 5, 131, 1100, 1);
        try_aligned("wgmma_64_k2", p, 133, 64, 60, 2);
    }
    end();
}

/* Rows of any alignment, which are copied. */
Test(gemm, packed_is_right) {
    static const size_t sizes[][3] = {{131, 259, 70}, {3, 1, 5}, {133, 59, 461}};
    if (tol_context_device(test_context())->compute_capability != 90) cr_skip_test("not 9.0");
    begin();
    for (unsigned i = 0; i < 48; i++) {
        const enum kn_gemm_precision precision = i % 2 == 0 ? KN_GEMM_F16 : KN_GEMM_BF16;
        const size_t *size = sizes[i / 16];
        const struct kn_gemm_trial trial = {
            .gemm = {.precision = precision,
                     .c_type = i / 2 % 2 == 0 ? KN_F32 : kn_gemm_input_type(precision),
                     .transpose_a = i / 4 % 2 == 1,
                     .transpose_b = i / 8 % 2 == 1,
                     .m = size[0],
                     .n = size[1],
                     .k = size[2],
                     .batch = 1 + i % 3,
                     .alpha = i % 5 == 0 ? -2 : 1,
                     .beta = i % 7 < 4 ? 0 : -1,
                     .variant = i % 4 < 2 ? "packed_256" : "packed_128"},
            .gap = 3,
            .skew = 1 + i % 5,
            .workspace = true,
            .is_exact = true,
            .seed = 70 + i};
        must_be_right(&trial);
    }
    end();
}

static const char *const all_variants[] = {"naive",     "shared",   "registers", "vector",
                                           "tensor",    "gathered", "async_128", "async_256",
                                           "wgmma_128", "wgmma_256"};
enum { VARIANTS = sizeof all_variants / sizeof all_variants[0] };

/* Whether a kernel of this name multiplies in this precision, on this device. */
static bool serves(size_t variant, enum kn_gemm_precision precision) {
    const bool is_tensor = variant >= 4, is_hopper = variant >= 8;
    const int capability = tol_context_device(test_context())->compute_capability;
    if (is_tensor && capability < 80) return false;
    const bool is_half = precision == KN_GEMM_F16 || precision == KN_GEMM_BF16;
    if (is_hopper) return capability == 90 && is_half;
    if (variant == 2 || variant == 3) return precision == KN_GEMM_F32;
    return is_tensor ? is_half || precision == KN_GEMM_TF32 : is_half || precision == KN_GEMM_F32;
}

/* Goal: no bit of a product of whole numbers is wrong, in whatever precision and order. */
Test(gemm, whole_numbers_are_exact) {
    static const size_t sizes[][3] = {{37, 67, 260}, {130, 17, 33}, {3, 5, 1031}};
    begin();
    for (unsigned i = 0; i < VARIANTS * KN_GEMM_PRECISIONS * 3; i++) {
        const size_t variant = i % VARIANTS, *size = sizes[i / VARIANTS / KN_GEMM_PRECISIONS];
        const enum kn_gemm_precision precision = i / VARIANTS % KN_GEMM_PRECISIONS;
        if (!serves(variant, precision)) continue;
        const struct kn_gemm_trial trial = {
            .gemm = {.precision = precision,
                     .c_type = i % 3 == 0 ? KN_F32 : kn_gemm_input_type(precision),
                     .transpose_a = i / 3 % 2 == 1,
                     .transpose_b = i / 5 % 2 == 1,
                     .m = size[0],
                     .n = size[1],
                     .k = size[2],
                     .batch = 1 + i % 2,
                     .alpha = i % 5 == 0 ? -2 : 1,
                     .beta = i % 7 < 4 ? 0 : -1,
                     .variant = all_variants[variant]},
            .align = 8,
            .workspace = i % 4 != 0,
            .is_exact = true,
            .seed = 40 + i};
        must_be_right(&trial);
    }
    end();
}

/* Goal: the bound of drawn data holds where it is far below the worst case, over seeds. */
Test(gemm, many_steps_are_within_the_bound_of_drawn_data) {
    begin();
    for (unsigned i = 0; i < VARIANTS * KN_GEMM_PRECISIONS * 2; i++) {
        const size_t variant = i % VARIANTS;
        const enum kn_gemm_precision precision = i / VARIANTS % KN_GEMM_PRECISIONS;
        if (!serves(variant, precision)) continue;
        const struct kn_gemm_trial trial = {
            .gemm = {.precision = precision,
                     .transpose_b = i % 2 == 1,
                     .m = 5,
                     .n = 9,
                     .k = 2500,
                     .alpha = 1,
                     .variant = all_variants[variant]},
            .distribution = i / VARIANTS / KN_GEMM_PRECISIONS == 0 ? KN_UNIFORM : KN_NORMAL,
            .align = 8,
            .workspace = i % 3 == 0,
            .seed = 900 + i};
        must_be_right(&trial);
    }
    end();
}

/* A product in which a kernel with this defect goes wrong. */
static struct kn_gemm_trial trial_for(const char *defect, enum kn_gemm_precision precision,
                                      bool is_exact) {
    const bool is_split = strcmp(defect, "lost_share") == 0,
               has_old = strcmp(defect, "lost_beta") == 0;
    return (struct kn_gemm_trial){.gemm = {.precision = precision,
                                           .transpose_a = strcmp(defect, "swapped") == 0,
                                           .m = is_split ? 3 : 67,
                                           .n = is_split ? 5 : 67,
                                           .k = is_split ? 1031 : 67,
                                           .alpha = 1,
                                           .beta = has_old ? 1 : 0,
                                           .variants = &kn_gemm_planted_variants,
                                           .variant = defect},
                                  .gap = 3,
                                  .workspace = is_split,
                                  .is_exact = is_exact,
                                  .seed = 77};
}

/* Goal: no precision is judged so mildly that a defect passes, with drawn data or whole numbers. */
Test(gemm, each_planted_defect_is_found_in_each_precision) {
    static const char *const defects[] = {"lost_step", "lost_tail", "lost_beta",  "reads_c",
                                          "swapped",   "half_sum",  "writes_gap", "lost_share"};
    begin();
    for (unsigned i = 0; i < 8 * KN_GEMM_PRECISIONS * 2; i++) {
        const enum kn_gemm_precision precision = i / 8 % KN_GEMM_PRECISIONS;
        const struct kn_gemm_trial trial =
            trial_for(defects[i % 8], precision, i / 8 / KN_GEMM_PRECISIONS == 1);
        struct kn_gemm_outcome outcome;
        if (!test_takes_trial()) continue;
        MUST(kn_gemm_try(kernels, stream, &trial, &outcome));
        cr_assert(outcome.deviation.failed > 0 || outcome.touched > 0, "%s in %s, %s",
                  defects[i % 8], kn_gemm_precision_name(precision),
                  trial.is_exact ? "whole numbers" : "drawn");
    }
    end();
}

/* Goal: what can go wrong in a pipeline of stages and clusters is found. */
Test(gemm, each_planted_defect_of_step_10_is_found) {
    static const char *const defects[] = {"early_release", "lost_consumer", "wrong_stage",
                                          "lost_stage", "lost_block"};
    if (tol_context_device(test_context())->compute_capability != 90) cr_skip_test("not 9.0");
    begin();
    for (unsigned i = 0; i < 2 * sizeof defects / sizeof defects[0]; i++) {
        const struct kn_gemm_trial trial = {.gemm = {.precision = KN_GEMM_BF16,
                                                     .m = 250,
                                                     .n = 200,
                                                     .k = 10 * 64,
                                                     .alpha = 1,
                                                     .variants = &kn_gemm_planted_variants,
                                                     .variant = defects[i / 2]},
                                            .align = 8,
                                            .is_exact = i % 2 == 1,
                                            .seed = 31 + i};
        struct kn_gemm_outcome outcome;
        MUST(kn_gemm_try(kernels, stream, &trial, &outcome));
        cr_assert(outcome.deviation.failed > 0, "%s, %s", defects[i / 2],
                  trial.is_exact ? "whole numbers" : "drawn");
    }
    end();
}

/* Goal: one wrong bit of one element of a product of whole numbers is found, and only there. */
Test(gemm, one_flipped_bit_is_found_in_each_precision) {
    begin();
    for (unsigned i = 0; i < KN_GEMM_PRECISIONS * 2 * 2; i++) {
        const enum kn_gemm_precision precision = i % KN_GEMM_PRECISIONS;
        const struct kn_gemm_trial trial = {
            .gemm = {.precision = precision,
                     .c_type = i / 4 % 2 == 0 ? KN_F32 : kn_gemm_input_type(precision),
                     .m = 61,
                     .n = 47,
                     .k = 35,
                     .batch = 1 + i / 8,
                     .alpha = 1},
            .is_exact = true,
            .flips_bit = true,
            .seed = 5 + i};
        struct kn_gemm_outcome outcome;
        MUST(kn_gemm_try(kernels, stream, &trial, &outcome));
        cr_assert(outcome.deviation.failed == 1 && outcome.compared == 61 * 47 * trial.gemm.batch,
                  "%zu fail of %zu", outcome.deviation.failed, outcome.compared);
    }
    end();
}

/* Goal: an index that is wrong once, in the last row, is found in drawn data and whole numbers. */
Test(gemm, two_swapped_elements_are_found_in_each_precision) {
    begin();
    for (unsigned i = 0; i < KN_GEMM_PRECISIONS * 2; i++) {
        const struct kn_gemm_trial trial = {
            .gemm = {.precision = i % KN_GEMM_PRECISIONS, .m = 61, .n = 47, .k = 35, .alpha = 1},
            .is_exact = i >= KN_GEMM_PRECISIONS,
            .gap = 3,
            .swaps_last = true,
            .seed = 5 + i};
        struct kn_gemm_outcome outcome;
        if (!test_takes_trial()) continue;
        MUST(kn_gemm_try(kernels, stream, &trial, &outcome));
        cr_assert(outcome.deviation.failed == 2 && outcome.touched == 0, "%u: %zu fail", i,
                  outcome.deviation.failed);
    }
    end();
}

/* Goal: of a large product it is said how much of it was compared. */
Test(gemm, a_large_product_says_how_many_elements_were_compared) {
    enum { SIDE = 646 }; /* its cube is just above 2^28; with an alpha of 0 no kernel multiplies */
    begin();
    for (int exact = 0; exact <= 1; exact++) {
        const struct kn_gemm_trial trial = {
            .gemm = {.m = SIDE, .n = SIDE, .k = SIDE, .alpha = 0, .variant = "naive"},
            .is_exact = exact,
            .seed = 3};
        struct kn_gemm_outcome outcome;
        if (!test_takes_trial()) break;
        MUST(kn_gemm_try(kernels, stream, &trial, &outcome));
        const size_t rows = outcome.compared / SIDE;
        cr_assert(outcome.deviation.count == SIDE * SIDE && outcome.deviation.failed == 0);
        cr_assert(exact ? rows == SIDE : rows >= 8 && rows <= 10, "%zu rows", rows);
    }
    end();
}

/* Goal: what is said of a product depends on it alone, and not on the machine that judged it. */
Test(gemm, any_number_of_threads_finds_the_same) {
    begin();
    for (unsigned i = 0; i < 8; i++) {
        struct kn_gemm_outcome one, many;
        struct kn_gemm_trial trial = {
            .gemm = {.precision = i / 2 % 2 == 0 ? KN_GEMM_F32 : KN_GEMM_F16,
                     .transpose_b = i % 2 == 1,
                     .m = 37,
                     .n = 45,
                     .k = 31,
                     .batch = 2,
                     .alpha = 0.5f,
                     .beta = 1,
                     .variant = "naive"},
            .distribution = KN_NORMAL,
            .gap = 3,
            .seed = 5 + i};
        if (i >= 4) { /* elements fail, and it is said which */
            trial.gemm.variants = &kn_gemm_planted_variants;
            trial.gemm.variant = "lost_tail";
        }
        kn_parallel_force(1);
        MUST(kn_gemm_try(kernels, stream, &trial, &one));
        kn_parallel_force(7);
        MUST(kn_gemm_try(kernels, stream, &trial, &many));
        cr_assert((one.deviation.failed > 0) == (i >= 4), "%zu fail", one.deviation.failed);
        /* NOLINTNEXTLINE(bugprone-*,cert-exp42-c,cert-flp37-c): to the bit */
        cr_assert(memcmp(&one, &many, sizeof one) == 0, "way %u", i);
    }
    kn_parallel_force(0);
    end();
}
