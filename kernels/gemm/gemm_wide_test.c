/*
 * Step 15 of gemm: each of its kernels over shapes that divide nothing, and its bits beside those
 * of another step.
 */
#include "gemm/gemm_trial.h"

#include "inputs.h"
#include "test/test_device.h"

#include <stdlib.h>
#include <string.h>

TestSuite(gemm_wide, .fini = test_end);

static const char *const variants[] = {"wide_128", "wide_short", "wide_256", "wide_square"};
enum { VARIANTS = sizeof variants / sizeof variants[0] };

static struct kn_kernels *kernels;
static struct tol_stream *stream;

static bool begin(void) {
    if (tol_context_device(test_context())->compute_capability < 80) return false;
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

/* All transpositions of a shape, with drawn data or whole numbers, gaps behind rows or none. */
static void try_shape(const char *variant, const struct shape *shape, bool has_room) {
    for (unsigned way = 0; way < 4; way++) {
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
    if (!begin()) cr_skip_test("before 8.0");
    for (unsigned i = 0; i < VARIANTS * 5; i++) {
        try_shape(variants[i % VARIANTS], &shapes[i / VARIANTS], false);
    }
    end();
}

Test(gemm_wide, split_steps_are_right) {
    static const struct shape shapes[] = {{67, 5, 777, 1}, {1, 1, 523, 3}};
    if (!begin()) cr_skip_test("before 8.0");
    for (unsigned i = 0; i < VARIANTS * 2; i++) {
        try_shape(variants[i % VARIANTS], &shapes[i / VARIANTS], true);
    }
    end();
}

/* Goal: an element is one chain of FMAs in the order of the steps, as in step 4. */
Test(gemm_wide, each_kernel_has_the_bits_of_vector) {
    enum { M = 260, N = 132, K = 148 };
    float *drawn = malloc(M * K * sizeof *drawn), *right = malloc(M * N * sizeof *right),
          *made = malloc(M * N * sizeof *made);
    struct tol_buffer *a = NULL, *c = NULL;
    uint64_t state = 15;
    cr_assert(drawn != NULL && right != NULL && made != NULL);
    if (!begin()) cr_skip_test("before 8.0");
    kn_inputs_draw(KN_NORMAL, &state, 1, drawn, M * K);
    MUST(tol_buffer_create(test_context(), M * K, sizeof(float), &a));
    MUST(tol_buffer_create(test_context(), M * N, sizeof(float), &c));
    MUST(tol_buffer_write(a, drawn, M * K * sizeof *drawn));
    for (unsigned op = 0; op < 4; op++) {
        struct kn_gemm gemm = {.precision = KN_GEMM_F32_STRICT,
                               .transpose_a = op / 2 == 1,
                               .transpose_b = op % 2 == 1,
                               .m = M,
                               .n = N,
                               .k = K,
                               .alpha = 1,
                               .a = {.buffer = a},
                               .b = {.buffer = a},
                               .c = {.buffer = c},
                               .variant = "vector"};
        MUST(kn_gemm(kernels, stream, &gemm));
        MUST(tol_stream_synchronize(stream));
        MUST(tol_buffer_read(c, right, M * N * sizeof *right));
        for (unsigned i = 0; i < VARIANTS; i++) {
            gemm.variant = variants[i];
            memset(made, 0xff, M * N * sizeof *made);
            MUST(tol_buffer_write(c, made, M * N * sizeof *made));
            MUST(kn_gemm(kernels, stream, &gemm));
            MUST(tol_stream_synchronize(stream));
            MUST(tol_buffer_read(c, made, M * N * sizeof *made));
            /* NOLINTNEXTLINE(bugprone-*,cert-exp42-c,cert-flp37-c): to the bit */
            cr_assert(memcmp(made, right, M * N * sizeof *made) == 0, "%s, %u", variants[i], op);
        }
    }
    tol_buffer_destroy(a);
    tol_buffer_destroy(c);
    end();
    free(drawn), free(right), free(made);
}
