/*
 * Products of floats on Hopper's tensor cores, steps 13 and 14 of gemm: every form of them, NaN and
 * infinities, and when they are taken.
 */
#include "gemm/gemm_trial.h"

#include "test/test_device.h"

#include <math.h>

TestSuite(gemm_float, .fini = test_end);

enum { SIDE = 4, ELEMENTS = SIDE * SIDE };

static struct kn_kernels *kernels;
static struct tol_stream *stream;
static struct tol_buffer *a, *b, *c;

static void begin(void) {
    MUST(kn_kernels_create(test_context(), &kernels));
    MUST(tol_stream_create(test_context(), NULL, &stream));
    MUST(tol_buffer_create(test_context(), ELEMENTS, sizeof(float), &a));
    MUST(tol_buffer_create(test_context(), ELEMENTS, sizeof(float), &b));
    MUST(tol_buffer_create(test_context(), ELEMENTS, sizeof(float), &c));
}

static void end(void) {
    tol_buffer_destroy(a);
    tol_buffer_destroy(b);
    tol_buffer_destroy(c);
    tol_stream_destroy(stream);
    kn_kernels_destroy(kernels);
}

static void must_be_right(const struct kn_gemm_trial *trial) {
    char text[400];
    const struct kn_gemm *g = &trial->gemm;
    struct kn_gemm_outcome outcome;
    if (!test_takes_trial()) return;
    MUST(kn_gemm_try(kernels, stream, trial, &outcome));
    cr_assert(outcome.deviation.failed == 0 && outcome.touched == 0,
              "%s %s %s%s, %zu x %zu x %zu, batch %zu, seed %llu: %zu bytes outside of c; %s",
              kn_gemm_precision_name(g->precision), g->variant, g->transpose_a ? "t" : "n",
              g->transpose_b ? "t" : "n", g->m, g->n, g->k, g->batch,
              (unsigned long long)trial->seed, outcome.touched,
              kn_deviation_text(&outcome.deviation, text, sizeof text));
}

/* A product of three 4 x 4 matrices of floats. */
static struct kn_gemm square(void) {
    return (struct kn_gemm){.m = SIDE,
                            .n = SIDE,
                            .k = SIDE,
                            .alpha = 1,
                            .a = {.buffer = a},
                            .b = {.buffer = b},
                            .c = {.buffer = c}};
}

static void run(const struct kn_gemm *gemm, float *result) {
    MUST(kn_gemm(kernels, stream, gemm));
    MUST(tol_stream_synchronize(stream));
    MUST(tol_buffer_read(c, result, ELEMENTS * sizeof *result));
}

/* Floats as tf32: the four ways to read them, with C in pairs and not, and both kinds of copies. */
Test(gemm_float, wgmma_of_tf32_is_right) {
    static const size_t sizes[][3] = {{131, 259, 70}, {3, 1, 5}, {128, 256, 128}, {133, 58, 333}};
    if (tol_context_device(test_context())->compute_capability != 90) cr_skip_test("not 9.0");
    begin();
    for (unsigned i = 0; i < 64; i++) {
        const unsigned op = i % 4, is_copied = i / 4 % 2;
        const bool has_copies = is_copied || op == 2; /* tn */
        const size_t *size = sizes[i / 16];
        const struct kn_gemm_trial trial = {
            .gemm = {.precision = KN_GEMM_TF32,
                     .transpose_a = op >= 2,
                     .transpose_b = op % 2 == 1,
                     .m = size[0],
                     .n = size[1],
                     .k = size[2],
                     .batch = 1 + i % 3,
                     .alpha = i % 5 == 0 ? -2 : 1,
                     .beta = i % 7 < 4 ? 0 : -1,
                     .variant = has_copies  ? i / 8 % 2 ? "packed_256" : "packed_128"
                                : i / 8 % 2 ? "wgmma_256"
                                            : "wgmma_128"},
            .gap = is_copied ? 3 : 0,
            .align = is_copied ? 0 : 4,
            .skew = is_copied ? 1 + i % 3 : 0,
            .workspace = has_copies,
            .is_exact = i % 3 != 0,
            .seed = 170 + i};
        must_be_right(&trial);
    }
    end();
}

/* Floats in parts: all transpositions, more steps than there are stages, any alignment. */
Test(gemm_float, parts_are_right) {
    static const size_t sizes[][3] = {{131, 259, 70}, {3, 1, 5}, {128, 128, 64}, {133, 58, 333}};
    if (tol_context_device(test_context())->compute_capability != 90) cr_skip_test("not 9.0");
    begin();
    for (unsigned i = 0; i < 48; i++) {
        const size_t *size = sizes[i / 12];
        const bool is_aligned = i / 4 % 3 == 0;
        const struct kn_gemm_trial trial = {.gemm = {.precision = KN_GEMM_F32_TENSOR,
                                                     .transpose_a = i / 2 % 2 == 1,
                                                     .transpose_b = i % 2 == 1,
                                                     .m = size[0],
                                                     .n = size[1],
                                                     .k = size[2],
                                                     .batch = 1 + i % 3,
                                                     .alpha = i % 5 == 0 ? -2 : 1,
                                                     .beta = i % 7 < 4 ? 0 : -1,
                                                     .variant = "parts_128"},
                                            .distribution = i % KN_DISTRIBUTIONS,
                                            .gap = is_aligned ? 0 : 3,
                                            .align = is_aligned ? 4 : 0,
                                            .skew = is_aligned ? 0 : 1 + i % 3,
                                            .workspace = true,
                                            .is_exact = i % 3 == 0,
                                            .seed = 270 + i};
        must_be_right(&trial);
    }
    end();
}

/* By tensor maps, copies and parts. A factor at the end of the range has no first part. */
Test(gemm_float, hopper_sends_nan_and_infinity_where_ieee_does) {
    static const struct {
        enum kn_gemm_precision precision;
        const char *variant;
        bool transpose_a, transpose_b;
    } ways[] = {{KN_GEMM_TF32, "wgmma_128", 0, 0},       {KN_GEMM_TF32, "wgmma_256", 0, 1},
                {KN_GEMM_TF32, "wgmma_128", 1, 1},       {KN_GEMM_TF32, "packed_128", 1, 0},
                {KN_GEMM_F32_TENSOR, "parts_128", 0, 0}, {KN_GEMM_F32_TENSOR, "parts_128", 1, 1}};
    float values[ELEMENTS] = {0}, ones[ELEMENTS], result[ELEMENTS], turned[ELEMENTS];
    struct tol_buffer *workspace = NULL;
    if (tol_context_device(test_context())->compute_capability != 90) cr_skip_test("not 9.0");
    begin();
    for (int i = 0; i < ELEMENTS; i++) ones[i] = 1 + (float)(i % 3) * 0x1p-12f;
    values[0] = NAN, values[SIDE] = -INFINITY;
    values[2 * SIDE] = INFINITY, values[2 * SIDE + 1] = -INFINITY;
    values[3 * SIDE] = 0x1.ffp127f, values[3 * SIDE + 1] = -0x1p127f;
    for (int i = 0; i < ELEMENTS; i++) turned[i % SIDE * SIDE + i / SIDE] = values[i];
    MUST(tol_buffer_create(test_context(), 4096, 1, &workspace));
    MUST(tol_buffer_write(b, ones, sizeof ones));
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        struct kn_gemm gemm = square();
        gemm.precision = ways[i].precision, gemm.variant = ways[i].variant;
        gemm.transpose_a = ways[i].transpose_a, gemm.transpose_b = ways[i].transpose_b;
        gemm.workspace = workspace;
        MUST(tol_buffer_write(a, gemm.transpose_a ? turned : values, sizeof values));
        run(&gemm, result);
        for (int j = 0; j < SIDE; j++) {
            cr_assert(isnan(result[j]) && result[SIDE + j] == -INFINITY, "way %zu", i);
            cr_assert(isnan(result[2 * SIDE + j]), "way %zu", i);
            const float last = result[3 * SIDE + j];
            cr_assert(last > 0x1.fcp126f && last < 0x1.fff8p126f, "way %zu: %g", i, (double)last);
        }
    }
    struct kn_gemm planted = square(); /* the test would notice */
    planted.precision = KN_GEMM_F32_TENSOR, planted.workspace = workspace;
    planted.variants = &kn_gemm_planted_variants, planted.variant = "lost_mend";
    MUST(tol_buffer_write(a, values, sizeof values));
    run(&planted, result);
    cr_assert(result[SIDE] != -INFINITY);
    tol_buffer_destroy(workspace);
    end();
}

/* Floats as tf32 by wgmma: as they are, with b turned in the workspace, and copied. */
Test(gemm_float, tf32_takes_the_workspace_for_what_wgmma_cannot_read) {
    enum { LARGE = 2048 };
    static const struct {
        bool transpose_a, transpose_b, has_room;
        size_t side;
        const char *name, *entry;
    } ways[] = {{0, 0, 0, LARGE, "wgmma_256", "gemm_wgmma_256_tf32_nn"},
                {0, 1, 0, LARGE, "wgmma_256", "gemm_wgmma_256_tf32_nt"},
                {1, 1, 0, LARGE, "wgmma_256", "gemm_wgmma_256_tf32_tt"},
                {1, 0, 1, LARGE, "packed_256", "gemm_wgmma_256_tf32_tt"},
                {1, 0, 0, LARGE, "async_128", "gemm_async_128_tf32_tn"},
                {0, 0, 1, LARGE - 1, "packed_256", "gemm_wgmma_256_tf32_nn"},
                {0, 0, 0, LARGE - 1, "gathered", "gemm_gathered_tf32"}};
    const struct kn_variant *variant = NULL;
    struct tol_buffer *all = NULL, *result = NULL, *room = NULL;
    size_t bytes = 0;
    if (tol_context_device(test_context())->compute_capability != 90) cr_skip_test("not 9.0");
    begin();
    MUST(tol_buffer_create(test_context(), (size_t)LARGE * LARGE, 4, &all));
    MUST(tol_buffer_create(test_context(), (size_t)LARGE * LARGE, 4, &result));
    MUST(tol_buffer_create(test_context(), (size_t)2 * LARGE * LARGE, 4, &room));
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        const size_t side = ways[i].side;
        const struct kn_gemm gemm = {.precision = KN_GEMM_TF32,
                                     .transpose_a = ways[i].transpose_a,
                                     .transpose_b = ways[i].transpose_b,
                                     .m = side,
                                     .n = side,
                                     .k = side,
                                     .alpha = 1,
                                     .a = {.buffer = all},
                                     .b = {.buffer = all},
                                     .c = {.buffer = result},
                                     .workspace = ways[i].has_room ? room : NULL};
        MUST(kn_gemm_pick(kernels, &gemm, &variant));
        cr_assert_str_eq(variant->name, ways[i].name, "way %zu", i);
        cr_assert_str_eq(variant->entry, ways[i].entry, "way %zu", i);
        MUST(kn_gemm_workspace(kernels, &gemm, &bytes));
        const size_t copies = side != LARGE ? 2 : ways[i].transpose_a && !ways[i].transpose_b;
        cr_assert(bytes == copies * side * LARGE * 4, "way %zu: %zu bytes", i, bytes);
    }
    tol_buffer_destroy(all);
    tol_buffer_destroy(result);
    tol_buffer_destroy(room);
    end();
}

/* Floats on tensor cores, where the caller allows it and gives room, and where that is sooner. */
Test(gemm_float, floats_are_split_into_parts_where_that_is_sooner) {
    enum { LARGE = 1024, ROOM = 2 * 3 * LARGE * LARGE * 2 };
    static const struct {
        enum kn_gemm_precision precision;
        size_t m, k;
        bool has_room;
        const char *name;
    } ways[] = {{KN_GEMM_F32_TENSOR, LARGE, LARGE, true, "parts_128"},
                {KN_GEMM_F32_TENSOR, LARGE, LARGE, false, "wide_64"},
                {KN_GEMM_F32_TENSOR, LARGE, 63, true, "wide_64"},
                {KN_GEMM_F32_TENSOR, 64, LARGE, true, "vector"},
                {KN_GEMM_F32_STRICT, LARGE, LARGE, true, "wide_64"}};
    const struct kn_variant *variant = NULL;
    struct tol_buffer *all = NULL, *result = NULL, *room = NULL;
    size_t bytes = 0;
    if (tol_context_device(test_context())->compute_capability != 90) cr_skip_test("not 9.0");
    begin();
    MUST(tol_buffer_create(test_context(), (size_t)LARGE * LARGE, 4, &all));
    MUST(tol_buffer_create(test_context(), (size_t)LARGE * LARGE, 4, &result));
    MUST(tol_buffer_create(test_context(), ROOM, 1, &room));
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        const struct kn_gemm gemm = {.precision = ways[i].precision,
                                     .m = ways[i].m,
                                     .n = LARGE,
                                     .k = ways[i].k,
                                     .alpha = 1,
                                     .a = {.buffer = all, .leading = LARGE},
                                     .b = {.buffer = all},
                                     .c = {.buffer = result},
                                     .workspace = ways[i].has_room ? room : NULL};
        MUST(kn_gemm_pick(kernels, &gemm, &variant));
        cr_assert_str_eq(variant->name, ways[i].name, "way %zu: %s", i, variant->name);
        if (i == 0) MUST(kn_gemm_workspace(kernels, &gemm, &bytes));
    }
    cr_assert(bytes == ROOM, "%zu bytes", bytes);
    tol_buffer_destroy(all);
    tol_buffer_destroy(result);
    tol_buffer_destroy(room);
    end();
}
