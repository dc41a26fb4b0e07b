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
