/*
 * Step 15 of gemm: each of its kernels over shapes that divide nothing, and its bits beside those
 * of another step.
 */
#include "gemm/gemm_trial.h"

#include "gemm/gemm_arguments.h"
#include "inputs.h"
#include "test/test_device.h"

#include <stdlib.h>
#include <string.h>

TestSuite(gemm_wide, .fini = test_end);

static const char *const variants[] = {"wide_64", "wide_short"};
enum { VARIANTS = sizeof variants / sizeof variants[0], NT = 1 };

/* op: bit 1 for A, bit 0 for B. */
static bool serves(const char *variant, unsigned op) {
    return strcmp(variant, "wide_64") == 0 || op == NT;
}

static struct kn_kernels *kernels;
static struct tol_stream *stream;

static bool begin(void) {
    if (tol_context_device(test_context())->compute_capability != 90) return false;
    MUST(kn_kernels_create(test_context(), &kernels));
    MUST(tol_stream_create(test_context(), NULL, &stream));
    return true;
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
    cr_assert(outcome.deviation.count == g->m * g->n * g->batch);
    cr_assert(outcome.deviation.failed == 0 && outcome.touched == 0,
              "%s %s%s, %zu x %zu x %zu, batch %zu: %zu bytes outside of c changed; %s", g->variant,
              g->transpose_a ? "t" : "n", g->transpose_b ? "t" : "n", g->m, g->n, g->k, g->batch,
              outcome.touched, kn_deviation_text(&outcome.deviation, text, sizeof text));
    return outcome.workspace;
}

struct shape {
    size_t m, n, k, batch;
};

/* All transpositions of a shape, with drawn data or whole numbers, gaps after rows or none. */
static void try_shape(const char *variant, const struct shape *shape, bool has_room) {
    for (unsigned way = 0; way < 4; way++) {
        if (!serves(variant, way)) continue;
        const bool is_exact = (way + shape->m) % 2 == 1;
        const struct kn_gemm_trial trial = {.gemm = {.precision = KN_GEMM_F32,
                                                     .transpose_a = way / 2 == 1,
                                                     .transpose_b = way % 2 == 1,
                                                     .m = shape->m,
                                                     .n = shape->n,
                                                     .k = shape->k,
                                                     .batch = shape->batch,
                                                     .alpha = way == 0 ? 1 : -2,
                                                     .beta = way != 1   ? 0
                                                             : is_exact ? -1
                                                                        : 0.5f,
                                                     .variant = variant},
                                            .distribution = way == 3 ? KN_NORMAL : KN_UNIFORM,
                                            .align = 4,
                                            .gap = way == 2 ? 4 : 0,
                                            .workspace = has_room,
                                            .is_exact = is_exact,
                                            .seed = 7 * shape->k + way};
        const size_t shares = 2 * shape->batch * shape->m * shape->n * sizeof(float);
        cr_assert(must_be_right(&trial) >= (has_room ? shares : 0), "%s: not split", variant);
    }
}

/* Tiles and parts of them, a ring that is gone round with an odd number of steps left, and so few
 * steps that stages stay empty. */
Test(gemm_wide, each_kernel_is_right) {
    static const struct shape shapes[] = {{1, 1, 1, 1},
                                          {131, 259, 7 * 16 + 5, 1},
                                          {256, 128, 6 * 16, 2},
                                          {258, 35, 39, 2},
                                          {5, 9, 600, 1}};
    if (!begin()) cr_skip_test("not 9.0");
    for (unsigned i = 0; i < VARIANTS * 5; i++) {
        try_shape(variants[i % VARIANTS], &shapes[i / VARIANTS], false);
    }
    end();
}

Test(gemm_wide, split_steps_are_right) {
    static const struct shape shapes[] = {{67, 5, 777, 1}, {1, 1, 523, 3}};
    if (!begin()) cr_skip_test("not 9.0");
    for (unsigned i = 0; i < VARIANTS * 2; i++) {
        try_shape(variants[i % VARIANTS], &shapes[i / VARIANTS], true);
    }
    end();
}

enum { M = 260, N = 132, K = 148, MATRICES = 3 };

/* A batch of products: of the same elements as A and as B. */
struct batch {
    struct tol_buffer *a, *c;
    float right[MATRICES * M * N], made[MATRICES * M * N];
    struct kn_gemm gemm;
};

static struct batch *make_batch(void) {
    static float drawn[MATRICES * M * K];
    struct batch *batch = malloc(sizeof *batch);
    uint64_t state = 15;
    cr_assert(batch != NULL);
    kn_inputs_draw(KN_NORMAL, &state, 1, drawn, MATRICES * M * K);
    MUST(tol_buffer_create(test_context(), MATRICES * M * K, sizeof(float), &batch->a));
    MUST(tol_buffer_create(test_context(), MATRICES * M * N, sizeof(float), &batch->c));
    MUST(tol_buffer_write(batch->a, drawn, sizeof drawn));
    batch->gemm = (struct kn_gemm){.precision = KN_GEMM_F32_STRICT,
                                   .m = M,
                                   .n = N,
                                   .k = K,
                                   .batch = MATRICES,
                                   .alpha = 1,
                                   .a = {.buffer = batch->a, .batch_stride = M * K},
                                   .b = {.buffer = batch->a, .batch_stride = M * K},
                                   .c = {.buffer = batch->c, .batch_stride = M * N}};
    return batch;
}

static void destroy_batch(struct batch *batch) {
    tol_buffer_destroy(batch->a);
    tol_buffer_destroy(batch->c);
    free(batch);
}

/* Solves the batch as `op` says, for those that must have the same bits, and spoils C. */
static void solve_by_vector(struct batch *batch, unsigned op) {
    batch->gemm.transpose_a = op / 2 == 1, batch->gemm.transpose_b = op % 2 == 1;
    batch->gemm.variant = "vector";
    MUST(kn_gemm(kernels, stream, &batch->gemm));
    MUST(tol_stream_synchronize(stream));
    MUST(tol_buffer_read(batch->c, batch->right, sizeof batch->right));
    MUST(tol_buffer_fill_at(batch->c, 0, ~0U, sizeof(float), MATRICES * M * N));
}

static void must_have_its_bits(struct batch *batch, unsigned op) {
    MUST(tol_stream_synchronize(stream));
    MUST(tol_buffer_read(batch->c, batch->made, sizeof batch->made));
    /* NOLINTNEXTLINE(bugprone-*,cert-exp42-c,cert-flp37-c): to the bit */
    cr_assert(memcmp(batch->made, batch->right, sizeof batch->made) == 0, "%s, %u",
              batch->gemm.variant, op);
}

/* Goal: an element is one chain of FMAs in the order of the steps, as in step 4. */
Test(gemm_wide, each_kernel_has_the_bits_of_vector) {
    if (!begin()) cr_skip_test("not 9.0");
    struct batch *batch = make_batch();
    for (unsigned i = 0; i < VARIANTS * 4; i++) {
        if (!serves(variants[i % VARIANTS], i / VARIANTS)) continue;
        solve_by_vector(batch, i / VARIANTS);
        batch->gemm.variant = variants[i % VARIANTS];
        MUST(kn_gemm(kernels, stream, &batch->gemm));
        must_have_its_bits(batch, i / VARIANTS);
    }
    destroy_batch(batch);
    end();
}

/* Goal: blocks that walk several matrices, as in a batch of more than 65535, do not meet in shared
 * memory. Here they walk three. */
Test(gemm_wide, blocks_walk_a_batch) {
    if (!begin()) cr_skip_test("not 9.0");
    struct batch *batch = make_batch();
    for (unsigned i = 0; i < VARIANTS; i++) {
        const struct kn_variant *variant = NULL;
        const struct tol_kernel *kernel = NULL;
        solve_by_vector(batch, i);
        batch->gemm.variant = variants[i];
        MUST(kn_gemm_pick(kernels, &batch->gemm, &variant));
        MUST(kn_kernels_find(kernels, variant, &kernel));
        const bool transpose_a = batch->gemm.transpose_a, transpose_b = batch->gemm.transpose_b;
        struct gemm_arguments x = {.a = tol_buffer_address(batch->a),
                                   .b = tol_buffer_address(batch->a),
                                   .c = tol_buffer_address(batch->c),
                                   .lda = transpose_a ? M : K,
                                   .ldb = transpose_b ? K : N,
                                   .ldc = N,
                                   .batch_a = M * K,
                                   .batch_b = M * K,
                                   .batch_c = M * N,
                                   .m = M,
                                   .n = N,
                                   .k = K,
                                   .batch = MATRICES,
                                   .splits = 1,
                                   .span = K,
                                   .transpose_a = transpose_a,
                                   .transpose_b = transpose_b,
                                   .alpha = 1};
        const unsigned rows = (M + variant->tile[0] - 1) / variant->tile[0];
        const unsigned columns = (N + variant->tile[1] - 1) / variant->tile[1];
        const struct tol_launch_shape shape = {rows * columns,       1, 1, variant->threads, 1, 1,
                                               variant->shared_bytes};
        void *value = &x;
        const unsigned bytes = sizeof x;
        MUST(tol_launch(stream, kernel, shape, (struct tol_arguments){1, &value, &bytes}));
        must_have_its_bits(batch, i);
    }
    destroy_batch(batch);
    end();
}
