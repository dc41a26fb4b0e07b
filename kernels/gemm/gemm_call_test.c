/*
 * What a call of gemm means at its edges, what it refuses, and which kernel it takes.
 */
#include "gemm/gemm.h"

#include "test/test_device.h"

#include "inputs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

TestSuite(gemm_call, .fini = test_end);

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

static void write_all(struct tol_buffer *buffer, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    MUST(tol_buffer_fill_at(buffer, 0, bits, sizeof bits, ELEMENTS));
}

/* Milestone M6 of specification 004: a 4 x 4 matrix times the identity is itself. */
Test(gemm_call, m6_a_matrix_times_the_identity_is_itself) {
    const float identity[ELEMENTS] = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};
    float values[ELEMENTS], result[ELEMENTS];
    begin();
    for (int i = 0; i < ELEMENTS; i++) values[i] = (float)(i + 1) * 1.1f;
    MUST(tol_buffer_write(a, values, sizeof values));
    MUST(tol_buffer_write(b, identity, sizeof identity));
    struct kn_gemm gemm = square();
    for (unsigned way = 0; way < 4; way++) {
        static const char *const variants[] = {NULL, "naive", "shared", "registers"};
        write_all(c, NAN);
        gemm.variant = variants[way];
        run(&gemm, result);
        for (int i = 0; i < ELEMENTS; i++) {
            cr_assert(result[i] == values[i], "element %d is %g", i, (double)result[i]);
        }
    }
    end();
}

Test(gemm_call, without_a_product_c_becomes_beta_c) {
    float result[ELEMENTS];
    begin();
    write_all(a, NAN);
    write_all(b, INFINITY);
    const float alphas[] = {0, 1, INFINITY};
    for (int i = 0; i < 6; i++) {
        struct kn_gemm gemm = square();
        gemm.precision = i < 3 ? KN_GEMM_F32 : KN_GEMM_TF32;
        gemm.alpha = alphas[i % 3];
        gemm.k = gemm.alpha == 0 ? SIDE : 0; /* A and B are not read in either case */
        gemm.beta = -2;
        write_all(c, 3);
        run(&gemm, result);
        for (int j = 0; j < ELEMENTS; j++) cr_assert(result[j] == -6, "%g", (double)result[j]);
        gemm.beta = 0;
        write_all(c, NAN);
        run(&gemm, result);
        for (int j = 0; j < ELEMENTS; j++) cr_assert(result[j] == 0, "%g", (double)result[j]);
    }
    end();
}

Test(gemm_call, nothing_to_write_is_no_launch_and_no_error) {
    begin();
    struct kn_gemm gemm = {.n = 5, .k = 5, .alpha = 1};
    MUST(kn_gemm(kernels, stream, &gemm));
    gemm.m = 7, gemm.n = 0;
    MUST(kn_gemm(kernels, stream, &gemm));
    end();
}

Test(gemm_call, nan_and_infinity_go_where_ieee_sends_them) {
    float values[ELEMENTS] = {0}, ones[ELEMENTS], result[ELEMENTS];
    begin();
    for (int i = 0; i < ELEMENTS; i++) ones[i] = 1;
    values[0] = NAN, values[SIDE] = INFINITY;
    values[2 * SIDE] = INFINITY, values[2 * SIDE + 1] = -INFINITY;
    MUST(tol_buffer_write(a, values, sizeof values));
    MUST(tol_buffer_write(b, ones, sizeof ones));
    static const char *const variants[] = {NULL, NULL, "naive", "tensor", "async_128", "async_256"};
    const bool has_tensors = tol_context_device(test_context())->compute_capability >= 80;
    for (int i = 0; i < (has_tensors ? 6 : 3); i++) {
        struct kn_gemm gemm = square();
        gemm.precision = i == 0 ? KN_GEMM_F32 : KN_GEMM_TF32;
        gemm.variant = variants[i];
        run(&gemm, result);
        for (int j = 0; j < SIDE; j++) {
            cr_assert(isnan(result[j]) && result[SIDE + j] == INFINITY);
            cr_assert(isnan(result[2 * SIDE + j]) && result[3 * SIDE + j] == 0);
        }
    }
    end();
}

Test(gemm_call, bad_problems_are_refused) {
    begin();
    struct kn_gemm gemm = square();
    MUST_FAIL(kn_gemm(kernels, stream, NULL), TOL_INVALID_ARGUMENT, "needs a problem");
    MUST_FAIL(kn_gemm(NULL, stream, &gemm), TOL_INVALID_ARGUMENT, "set of kernels");
    MUST_FAIL(kn_gemm(kernels, NULL, &gemm), TOL_INVALID_ARGUMENT, "a stream");
    gemm.precision = (enum kn_gemm_precision)7;
    MUST_FAIL(kn_gemm(kernels, stream, &gemm), TOL_INVALID_ARGUMENT, "precision 7 does not exist");
    gemm = square(), gemm.c_type = KN_BF16;
    MUST_FAIL(kn_gemm(kernels, stream, &gemm), TOL_INVALID_ARGUMENT, "type bf16");
    gemm = square(), gemm.a.buffer = NULL;
    MUST_FAIL(kn_gemm(kernels, stream, &gemm), TOL_INVALID_ARGUMENT, "a has no buffer");
    gemm = square(), gemm.c.buffer = a;
    MUST_FAIL(kn_gemm(kernels, stream, &gemm), TOL_INVALID_ARGUMENT, "c overlaps a");
    gemm = square(), gemm.c.buffer = b;
    MUST_FAIL(kn_gemm(kernels, stream, &gemm), TOL_INVALID_ARGUMENT, "c overlaps b");
    gemm = square(), gemm.b.leading = SIDE - 1;
    MUST_FAIL(kn_gemm(kernels, stream, &gemm), TOL_INVALID_ARGUMENT, "the next begins after 3");
    gemm = square(), gemm.m = 2, gemm.batch = 2, gemm.c.batch_stride = SIDE;
    MUST_FAIL(kn_gemm(kernels, stream, &gemm), TOL_INVALID_ARGUMENT, "4 elements apart, overlap");
    gemm = square(), gemm.variant = "swift";
    MUST_FAIL(kn_gemm(kernels, stream, &gemm), TOL_NOT_FOUND,
              "there are wgmma_k4, wgmma_64_k2, wgmma_64, wgmma_256, wgmma_128, packed_256, "
              "packed_128");
    gemm = square(), gemm.variant = "tensor";
    MUST_FAIL(kn_gemm(kernels, stream, &gemm), TOL_UNSUPPORTED, "tensor (gemm_tensor_f16): ");
    end();
}

Test(gemm_call, what_lies_outside_of_a_buffer_is_refused) {
    begin();
    struct kn_gemm gemm = square();
    gemm.k = SIDE + 1;
    MUST_FAIL(kn_gemm(kernels, stream, &gemm), TOL_OUT_OF_RANGE, "its buffer has 64 bytes");
    gemm = square(), gemm.c.offset = 1;
    MUST_FAIL(kn_gemm(kernels, stream, &gemm), TOL_OUT_OF_RANGE, "c is 1 matrices of 4 x 4");
    gemm = square(), gemm.b.leading = SIDE + 1;
    MUST_FAIL(kn_gemm(kernels, stream, &gemm), TOL_OUT_OF_RANGE, "rows 5 apart");
    gemm = square(), gemm.batch = 2, gemm.c.batch_stride = ELEMENTS;
    MUST_FAIL(kn_gemm(kernels, stream, &gemm), TOL_OUT_OF_RANGE, "c is 2 matrices");
    gemm = square(), gemm.a.offset = SIZE_MAX - 3;
    MUST_FAIL(kn_gemm(kernels, stream, &gemm), TOL_OUT_OF_RANGE, "from element");
    gemm = square(), gemm.a.leading = SIZE_MAX / 2;
    MUST_FAIL(kn_gemm(kernels, stream, &gemm), TOL_OUT_OF_RANGE, "a is 1 matrices");
    gemm = square(), gemm.n = (size_t)1 << 31;
    MUST_FAIL(kn_gemm(kernels, stream, &gemm), TOL_OVER_LIMIT, "2147483648");
    gemm = square(), gemm.m = 0, gemm.k = 2147479550; /* 2^31 - 4098 */
    MUST(kn_gemm(kernels, stream, &gemm));
    gemm.k++;
    MUST_FAIL(kn_gemm(kernels, stream, &gemm), TOL_OVER_LIMIT, "k = 2147479551");
    end();
}

Test(gemm_call, a_stream_of_another_context_is_refused) {
    struct tol_driver *driver = NULL;
    struct tol_context *context = NULL;
    struct tol_stream *other = NULL;
    begin();
    MUST(tol_driver_open(test_library(), &driver));
    MUST(tol_context_create(driver, 0, &context));
    MUST(tol_stream_create(context, NULL, &other));
    struct kn_gemm gemm = square();
    MUST_FAIL(kn_gemm(kernels, other, &gemm), TOL_WRONG_CONTEXT, "");
    tol_stream_destroy(other);
    tol_context_destroy(context);
    tol_driver_close(driver);
    end();
}

Test(gemm_call, a_batch_may_share_matrices_and_lie_side_by_side) {
    float values[ELEMENTS], result[ELEMENTS];
    begin();
    for (int i = 0; i < ELEMENTS; i++) values[i] = (float)i;
    MUST(tol_buffer_write(a, values, sizeof values));
    write_all(b, 1);
    write_all(c, NAN);
    /* Two products of 4 x 2 by 2 x 2, of the same B, into the halves of C's rows. */
    struct kn_gemm gemm = square();
    gemm.n = 2, gemm.k = 2, gemm.batch = 2;
    gemm.a.leading = SIDE, gemm.a.batch_stride = 2;
    gemm.c.leading = SIDE, gemm.c.batch_stride = 2;
    run(&gemm, result);
    for (int i = 0; i < ELEMENTS; i++) {
        const float first = values[i / 2 * 2];
        cr_assert(result[i] == 2 * first + 1, "element %d is %g", i, (double)result[i]);
    }
    end();
}

static void fill_normal(struct tol_buffer *buffer, size_t count, uint64_t seed) {
    float *values = malloc(count * sizeof *values);
    kn_inputs_draw(KN_NORMAL, &seed, 1, values, count);
    MUST(tol_buffer_write(buffer, values, count * sizeof *values));
    free(values);
}

/* A vector of a matrix's four columns: with no workspace, with one for two shares, with all. */
Test(gemm_call, the_same_workspace_gives_the_same_bits) {
    enum { STEPS = 4099, COUNT = 3 };
    struct tol_buffer *row = NULL, *matrix = NULL, *all = NULL, *some = NULL;
    float first[COUNT][SIDE], again[SIDE];
    size_t bytes = 0;
    begin();
    MUST(tol_buffer_create(test_context(), STEPS, sizeof(float), &row));
    MUST(tol_buffer_create(test_context(), STEPS * SIDE, sizeof(float), &matrix));
    fill_normal(row, STEPS, 1);
    fill_normal(matrix, STEPS * SIDE, 2);
    struct kn_gemm gemm = square();
    gemm.m = 1, gemm.k = STEPS, gemm.a.buffer = row, gemm.b.buffer = matrix;
    MUST(kn_gemm_workspace(kernels, &gemm, &bytes));
    cr_assert(bytes >= 3 * SIDE * sizeof(float), "%zu", bytes);
    MUST(tol_buffer_create(test_context(), bytes, 1, &all));
    MUST(tol_buffer_create(test_context(), 3 * SIDE * sizeof(float) - 1, 1, &some));
    const struct tol_buffer *const workspaces[COUNT] = {NULL, some, all};
    for (int i = 0; i < 5 * COUNT; i++) {
        gemm.workspace = workspaces[i % COUNT];
        if (gemm.workspace != NULL) {
            const size_t space = tol_buffer_bytes(gemm.workspace);
            MUST(tol_buffer_fill_at(i % COUNT == 1 ? some : all, 0, 0xff, 1, space));
        }
        write_all(c, NAN);
        MUST(kn_gemm(kernels, stream, &gemm));
        MUST(tol_stream_synchronize(stream));
        MUST(tol_buffer_read_at(c, 0, i < COUNT ? first[i] : again, sizeof again));
        if (i >= COUNT) cr_assert_arr_eq(again, first[i % COUNT], sizeof again);
    }
    bool has_difference = false;
    for (int j = 0; j < SIDE; j++) {
        has_difference |= first[0][j] != first[2][j];
        cr_assert(fabsf(first[1][j] - first[0][j]) < 1e-2f, "%g", (double)first[1][j]);
        cr_assert(fabsf(first[2][j] - first[0][j]) < 1e-2f, "%g", (double)first[2][j]);
    }
    cr_assert(has_difference, "nothing was split");
    gemm.workspace = row;
    MUST_FAIL(kn_gemm(kernels, stream, &gemm), TOL_INVALID_ARGUMENT, "workspace overlaps a");
    gemm.workspace = c;
    MUST_FAIL(kn_gemm(kernels, stream, &gemm), TOL_INVALID_ARGUMENT, "workspace overlaps c");
    tol_buffer_destroy(row);
    tol_buffer_destroy(matrix);
    tol_buffer_destroy(all);
    tol_buffer_destroy(some);
    end();
}

Test(gemm_call, only_few_tiles_of_many_steps_want_a_workspace) {
    size_t bytes = 1;
    begin();
    struct kn_gemm gemm = square();
    MUST(kn_gemm_workspace(kernels, &gemm, &bytes));
    cr_assert(bytes == 0, "%zu bytes for four steps", bytes);
    bytes = 1, gemm.m = 0;
    MUST(kn_gemm_workspace(kernels, &gemm, &bytes));
    cr_assert(bytes == 0, "%zu bytes for nothing", bytes);
    MUST_FAIL(kn_gemm_workspace(kernels, &gemm, NULL), TOL_INVALID_ARGUMENT,
              "a pointer to the result");
    gemm = square(), gemm.k = SIDE + 1;
    MUST_FAIL(kn_gemm_workspace(kernels, &gemm, &bytes), TOL_OUT_OF_RANGE, "64 bytes");
    end();
}

Test(gemm_call, the_kernel_fits_the_problem) {
    const struct kn_variant *variant = NULL;
    begin();
    struct kn_gemm gemm = square();
    MUST(kn_gemm_pick(kernels, &gemm, &variant));
    cr_assert_str_eq(variant->entry, "gemm_vector_nn");
    gemm.transpose_a = true;
    MUST(kn_gemm_pick(kernels, &gemm, &variant));
    cr_assert_str_eq(variant->entry, "gemm_vector_tn");
    gemm.m = gemm.n = gemm.k = 3, gemm.a.offset = 1;
    MUST(kn_gemm_pick(kernels, &gemm, &variant));
    cr_assert_str_eq(variant->entry, "gemm_registers_f32");
    if (tol_context_device(test_context())->compute_capability >= 80) {
        gemm = square(), gemm.precision = KN_GEMM_TF32, gemm.transpose_b = true;
        MUST(kn_gemm_pick(kernels, &gemm, &variant));
        const bool is_hopper = tol_context_device(test_context())->compute_capability == 90;
        cr_assert_str_eq(variant->entry,
                         is_hopper ? "gemm_wgmma_128_tf32_nt" : "gemm_async_128_tf32_nt");
        gemm.m = gemm.k = 3, gemm.a.offset = 1;
        MUST(kn_gemm_pick(kernels, &gemm, &variant));
        cr_assert_str_eq(variant->entry, "gemm_tensor_tf32", "a begins at element 1");
        gemm = square(), gemm.precision = KN_GEMM_BF16, gemm.k = 8;
        MUST(kn_gemm_pick(kernels, &gemm, &variant));
        cr_assert_str_eq(variant->name, "tensor", "rows of 4 are 8 bytes apart");
        gemm.m = gemm.n = 1, gemm.b.leading = 1, gemm.transpose_b = true;
        gemm.b.leading = 8, gemm.c.leading = 4;
        MUST(kn_gemm_pick(kernels, &gemm, &variant));
        cr_assert_str_eq(variant->entry,
                         is_hopper ? "gemm_wgmma_128_bf16_nt" : "gemm_async_128_bf16_nt");
        gemm.alpha = 0;
        MUST(kn_gemm_pick(kernels, &gemm, &variant));
        cr_assert_str_eq(variant->entry, "gemm_async_128_bf16_nt", "a map needs a matrix");
    }
    end();
}

/* Rows that are not aligned are packed where that pays and the copies fit the workspace. */
Test(gemm_call, a_large_unaligned_product_takes_copies) {
    enum { LARGE = 2047, COPY = LARGE * (LARGE + 1) * 2 };
    const struct kn_variant *variant = NULL;
    struct tol_buffer *all = NULL, *result = NULL, *room = NULL, *less = NULL;
    size_t bytes = 0;
    if (tol_context_device(test_context())->compute_capability != 90) cr_skip_test("not 9.0");
    begin();
    MUST(tol_buffer_create(test_context(), (size_t)LARGE * (LARGE + 1), 2, &all));
    MUST(tol_buffer_create(test_context(), (size_t)LARGE * LARGE, 2, &result));
    MUST(tol_buffer_create(test_context(), (size_t)2 * COPY, 1, &room));
    MUST(tol_buffer_create(test_context(), (size_t)2 * COPY - 1, 1, &less));
    struct kn_gemm gemm = {.precision = KN_GEMM_BF16,
                           .c_type = KN_BF16,
                           .m = LARGE,
                           .n = LARGE,
                           .k = LARGE,
                           .alpha = 1,
                           .a = {.buffer = all},
                           .b = {.buffer = all},
                           .c = {.buffer = result}};
    MUST(kn_gemm_workspace(kernels, &gemm, &bytes));
    cr_assert(bytes == (size_t)2 * COPY, "%zu bytes", bytes);
    const struct tol_buffer *const workspaces[] = {NULL, less, room};
    for (int i = 0; i < 3; i++) {
        gemm.workspace = workspaces[i];
        MUST(kn_gemm_pick(kernels, &gemm, &variant));
        cr_assert_str_eq(variant->name, i == 2 ? "packed_256" : "gathered");
    }
    gemm.a.leading = LARGE + 1; /* one matrix is aligned */
    MUST(kn_gemm_workspace(kernels, &gemm, &bytes));
    cr_assert(bytes == COPY, "%zu bytes", bytes);
    gemm.variant = "packed_128", gemm.workspace = NULL;
    MUST_FAIL(kn_gemm(kernels, stream, &gemm), TOL_UNSUPPORTED, "do not fit the workspace");
    gemm = square(), gemm.precision = KN_GEMM_BF16, gemm.variant = "packed_128", gemm.n = 8;
    gemm.a.leading = gemm.b.leading = gemm.c.leading = 8, gemm.m = gemm.k = 2;
    MUST_FAIL(kn_gemm(kernels, stream, &gemm), TOL_UNSUPPORTED,
              "rows of a and b begin at multiples of 16 bytes");
    tol_buffer_destroy(all);
    tol_buffer_destroy(result);
    tol_buffer_destroy(room);
    tol_buffer_destroy(less);
    end();
}

/* Tiles of 128 x 256 are for products that fill a large device with them; where there are few of
 * 128 x 128, blocks share the steps. */
Test(gemm_call, the_tiles_fit_the_product) {
    enum { LARGE = 2048 };
    static const struct {
        size_t m, n, k;
        const char *hopper, *other;
    } sizes[] = {{LARGE, LARGE, 8, "wgmma_256", "async_128"},
                 {LARGE, LARGE / 2, 8, "wgmma_128", "async_128"},
                 {LARGE / 2, LARGE, LARGE, "wgmma_128", "async_128"},
                 {LARGE / 2, LARGE / 2, LARGE, "wgmma_64", "async_128"},
                 {LARGE / 2, LARGE / 2, 255, "wgmma_128", "async_128"},
                 {LARGE / 2, LARGE / 4, 512, "wgmma_64_k2", "async_128"},
                 {LARGE / 2, LARGE / 4, 511, "wgmma_64", "async_128"},
                 {128, LARGE, 1024, "wgmma_k4", "async_128"},
                 {16, LARGE, 1023, "wgmma_64_k2", "async_128"}};
    const struct kn_variant *variant = NULL;
    struct tol_buffer *all = NULL, *result = NULL;
    const int capability = tol_context_device(test_context())->compute_capability;
    if (capability < 80) cr_skip_test("before 8.0");
    begin();
    MUST(tol_buffer_create(test_context(), (size_t)LARGE * LARGE, 2, &all));
    MUST(tol_buffer_create(test_context(), (size_t)LARGE * LARGE, 2, &result));
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const struct kn_gemm gemm = {.precision = KN_GEMM_BF16,
                                     .c_type = KN_BF16,
                                     .transpose_b = true,
                                     .m = sizes[i].m,
                                     .n = sizes[i].n,
                                     .k = sizes[i].k,
                                     .alpha = 1,
                                     .a = {.buffer = all, .leading = LARGE},
                                     .b = {.buffer = all, .leading = LARGE},
                                     .c = {.buffer = result}};
        MUST(kn_gemm_pick(kernels, &gemm, &variant));
        cr_assert_str_eq(variant->name, capability == 90 ? sizes[i].hopper : sizes[i].other);
    }
    tol_buffer_destroy(all);
    tol_buffer_destroy(result);
    end();
}

/* Tiles of 256 columns are chosen where those of 128 take three fifths of their time or more, as
 * they do in TF32 where one factor comes from registers. */
Test(gemm_call, wide_tiles_are_chosen_by_the_time_of_narrow_ones) {
    enum { M = 2048, N = 4608, K = 64 }; /* 3 turns of 132 blocks, or 5 */
    const struct kn_variant *variant = NULL;
    struct tol_buffer *all = NULL, *result = NULL;
    if (tol_context_device(test_context())->compute_capability != 90) cr_skip_test("9.0 alone");
    begin();
    MUST(tol_buffer_create(test_context(), (size_t)N * K, 4, &all));
    MUST(tol_buffer_create(test_context(), (size_t)M * N, 4, &result));
    for (int i = 0; i < 2; i++) {
        const struct kn_gemm gemm = {.precision = KN_GEMM_TF32,
                                     .transpose_b = i == 1,
                                     .m = M,
                                     .n = N,
                                     .k = K,
                                     .alpha = 1,
                                     .a = {.buffer = all},
                                     .b = {.buffer = all},
                                     .c = {.buffer = result}};
        MUST(kn_gemm_pick(kernels, &gemm, &variant));
        cr_assert_str_eq(variant->name, i == 1 ? "wgmma_128" : "wgmma_256");
    }
    tol_buffer_destroy(all);
    tol_buffer_destroy(result);
    end();
}
