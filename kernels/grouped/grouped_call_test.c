/*
 * What a call of grouped means at its edges, what it refuses, and which kernel it takes.
 */
#include "grouped.h"

#include "kernel_scene.h"
#include "test/test_device.h"

#include <math.h>

enum { SIDE = 4, ELEMENTS = SIDE * SIDE };

static struct tol_buffer *a, *b, *c, *floats, *numbers;

static void begin(void) {
    kernel_scene_begin();
    struct tol_context *context = test_context();
    MUST(tol_buffer_create(context, ELEMENTS, 2, &a));
    MUST(tol_buffer_create(context, 2 * ELEMENTS, 2, &b));
    MUST(tol_buffer_create(context, ELEMENTS, 4, &c));
    MUST(tol_buffer_create(context, 2 * SIDE, 4, &floats));
    MUST(tol_buffer_create(context, 3, 4, &numbers));
    MUST(tol_buffer_write(numbers, (const int32_t[]){0, 2, SIDE}, 12));
}

static void end(void) {
    struct tol_buffer *all[] = {a, b, c, floats, numbers};
    for (int i = 0; i < 5; i++) tol_buffer_destroy(all[i]);
    kernel_scene_end();
}

TestSuite(grouped_call, .init = begin, .fini = end);

static struct kn_grouped square(void) {
    return (struct kn_grouped){.type = KN_GROUPED_BF16,
                               .m = SIDE,
                               .n = SIDE,
                               .k = SIDE,
                               .alpha = 1,
                               .a = {.buffer = a},
                               .b = {.buffer = b},
                               .c = {.buffer = c}};
}

static void must_refuse(const struct kn_grouped *g, tol_status status, const char *text) {
    MUST_FAIL(kn_grouped(kernels, stream, g), status, text);
}

Test(grouped_call, bad_problems_are_refused) {
    struct kn_grouped g = square();
    must_refuse(NULL, TOL_INVALID_ARGUMENT, "needs a problem");
    MUST_FAIL(kn_grouped(NULL, stream, &g), TOL_INVALID_ARGUMENT, "set of kernels");
    MUST_FAIL(kn_grouped(kernels, NULL, &g), TOL_INVALID_ARGUMENT, "a stream");
    MUST_FAIL(kn_grouped_pick(NULL, &g, &(const struct kn_variant *){NULL}), TOL_INVALID_ARGUMENT,
              "set of kernels");
    g.type = KN_GROUPED_F32;
    must_refuse(&g, TOL_INVALID_ARGUMENT, "a and b of type f32");
    g = square(), g.c_type = KN_GROUPED_TYPES;
    must_refuse(&g, TOL_INVALID_ARGUMENT, "type 5 of c does not exist");
    g = square(), g.activation = KN_ACTIVATIONS;
    must_refuse(&g, TOL_INVALID_ARGUMENT, "activation 4 does not exist");
    g = square(), g.residual.buffer = a, g.residual_type = KN_GROUPED_S8;
    must_refuse(&g, TOL_INVALID_ARGUMENT, "a residual of type s8");
    g = square(), g.c_scale = -1;
    must_refuse(&g, TOL_INVALID_ARGUMENT, "c_scale is -1");
    g = square(), g.c_scale = NAN;
    must_refuse(&g, TOL_INVALID_ARGUMENT, "c_scale is nan");
    g = square(), g.groups = 2, g.b.batch_stride = ELEMENTS;
    must_refuse(&g, TOL_INVALID_ARGUMENT, "2 groups need the rows where they begin");
    g.groups = 65536;
    must_refuse(&g, TOL_OVER_LIMIT, "65536 groups");
    g = square(), g.k = (size_t)1 << 31;
    must_refuse(&g, TOL_OVER_LIMIT, "k = 2147483648");
    g = square(), g.b.buffer = NULL;
    must_refuse(&g, TOL_INVALID_ARGUMENT, "b has no buffer");
    g = square(), g.c.buffer = a, g.c_type = KN_GROUPED_BF16;
    must_refuse(&g, TOL_INVALID_ARGUMENT, "c overlaps a");
    g = square(), g.bias.buffer = c;
    must_refuse(&g, TOL_INVALID_ARGUMENT, "c overlaps bias");
    g = square(), g.residual.buffer = c, g.residual_type = KN_GROUPED_F16;
    must_refuse(&g, TOL_INVALID_ARGUMENT, "c overlaps residual and is another matrix");
    g = square(), g.a.leading = SIDE - 1;
    must_refuse(&g, TOL_INVALID_ARGUMENT, "the next begins after 3");
    g = square(), g.variant = "swift";
    must_refuse(&g, TOL_NOT_FOUND,
                "there are wgmma_256, wgmma_128, wgmma_192, tensor, naive, "
                "wgmma_pair");
}

Test(grouped_call, what_lies_outside_of_a_buffer_is_refused) {
    struct kn_grouped g = square();
    g.k = SIDE + 1;
    must_refuse(&g, TOL_OUT_OF_RANGE, "its buffer has 32 bytes");
    g = square(), g.c.offset = 1;
    must_refuse(&g, TOL_OUT_OF_RANGE, "c is 1 matrices of 4 x 4");
    g = square(), g.groups = 2, g.begins.buffer = numbers, g.b.batch_stride = ELEMENTS + 1;
    must_refuse(&g, TOL_OUT_OF_RANGE, "b is 2 matrices of 4 x 4 elements of 2 bytes, rows 4 apart");
    g.b.batch_stride = ELEMENTS, g.bias.buffer = floats, g.bias.stride = SIDE + 1;
    must_refuse(&g, TOL_OUT_OF_RANGE, "bias is 2 matrices of 1 x 4");
    g.bias.stride = SIDE, g.begins.offset = 1;
    must_refuse(&g, TOL_OUT_OF_RANGE, "begins is 1 matrices of 1 x 3");
    g.begins.offset = 0, g.a_scale.buffer = floats, g.a_scale.offset = SIZE_MAX - 1;
    must_refuse(&g, TOL_OUT_OF_RANGE, "a_scale");
}

Test(grouped_call, nothing_to_write_is_no_launch_and_no_error) {
    MUST(kn_grouped(kernels, stream, &(struct kn_grouped){.type = KN_GROUPED_F16, .n = 5, .k = 5}));
    MUST(kn_grouped(kernels, stream, &(struct kn_grouped){.type = KN_GROUPED_F16, .m = 5, .k = 5}));
}

/* A NaN and infinities in a row stay in it, and in 8 bits have a place. */
Test(grouped_call, nan_and_infinity_go_where_they_must) {
    static const enum kn_grouped_type types[] = {KN_GROUPED_F32, KN_GROUPED_E4M3, KN_GROUPED_S8};
    static const char *const variants[] = {"naive", "tensor"};
    const bool has_tensors = tol_context_device(test_context())->compute_capability >= 80;
    uint16_t left[ELEMENTS] = {0}, right[2 * ELEMENTS];
    left[0] = kn_bf16_of(NAN), left[SIDE] = kn_bf16_of(INFINITY);
    left[2 * SIDE] = kn_bf16_of(-1e30f);
    for (int i = 0; i < 2 * ELEMENTS; i++) right[i] = kn_bf16_of(1);
    MUST(tol_buffer_write(a, left, sizeof left));
    MUST(tol_buffer_write(b, right, sizeof right));
    for (int i = 0; i < (has_tensors ? 6 : 3); i++) {
        float result[ELEMENTS];
        struct kn_grouped g = square();
        g.groups = 2, g.begins.buffer = numbers, g.b.batch_stride = ELEMENTS;
        g.c_type = types[i % 3], g.variant = variants[i / 3];
        MUST(kn_grouped(kernels, stream, &g));
        MUST(tol_stream_synchronize(stream));
        MUST(tol_buffer_read(c, result, sizeof result));
        const uint8_t *bytes = (const uint8_t *)result;
        for (int j = 0; j < SIDE; j++) {
            if (g.c_type == KN_GROUPED_F32) {
                cr_assert(isnan(result[j]) && result[SIDE + j] == INFINITY);
                cr_assert(result[2 * SIDE + j] < -1e29f && result[3 * SIDE + j] == 0);
            } else if (g.c_type == KN_GROUPED_E4M3) {
                cr_assert(bytes[j] == 0x7f && bytes[SIDE + j] == 0x7e, "%#x", bytes[j]);
                cr_assert(bytes[2 * SIDE + j] == 0xfe && bytes[3 * SIDE + j] == 0);
            } else {
                cr_assert(bytes[j] == 0 && bytes[SIDE + j] == 127);
                cr_assert(bytes[2 * SIDE + j] == (uint8_t)-127 && bytes[3 * SIDE + j] == 0);
            }
        }
    }
}

static const char *picked(struct kn_grouped *g) {
    const struct kn_variant *variant = NULL;
    MUST(kn_grouped_pick(kernels, g, &variant));
    return variant->name;
}

Test(grouped_call, the_kernel_goes_by_the_rows_and_the_tiles) {
    struct tol_buffer *large = NULL, *out = NULL;
    if (tol_context_device(test_context())->compute_capability != 90) cr_skip_test("not 9.0");
    MUST(tol_buffer_create(test_context(), (size_t)4096 * 4096, 2, &large));
    MUST(tol_buffer_create(test_context(), (size_t)4096 * 4096, 4, &out));
    struct kn_grouped g = {.type = KN_GROUPED_BF16,
                           .transpose_b = true,
                           .m = 4096,
                           .n = 4096,
                           .k = 4096,
                           .alpha = 1,
                           .a = {.buffer = large},
                           .b = {.buffer = large},
                           .c = {.buffer = out}};
    cr_assert_str_eq(picked(&g), "wgmma_256");
    g.m = 128;
    cr_assert_str_eq(picked(&g), "wgmma_128");
    g.type = KN_GROUPED_E4M3;
    cr_assert_str_eq(picked(&g), "wgmma_128");
    g.m = g.n = 8192, g.c_type = KN_GROUPED_E4M3;
    cr_assert_str_eq(picked(&g), "wgmma_192");
    g.m = 128, g.n = 4096;
    g.transpose_b = false;
    cr_assert_str_eq(picked(&g), "tensor");
    g.transpose_b = true, g.k = 4095;
    cr_assert_str_eq(picked(&g), "tensor");
    tol_buffer_destroy(large);
    tol_buffer_destroy(out);
}

Test(grouped_call, activations_are_their_definitions) {
    cr_assert(kn_activation_oracle(KN_NO_ACTIVATION, -3) == -3);
    cr_assert(fabs(kn_activation_oracle(KN_SILU, 1) - 0.7310585786300049) < 1e-15);
    cr_assert(fabs(kn_activation_oracle(KN_GELU, 1) - 0.8413447460685429) < 1e-15);
    cr_assert(fabs(kn_activation_oracle(KN_GELU_TANH, 1) - 0.8411919906082768) < 1e-15);
    cr_assert_str_eq(kn_activation_name(KN_GELU_TANH), "gelu_tanh");
    cr_assert_str_eq(kn_activation_name(KN_ACTIVATIONS), "?");
    cr_assert_str_eq(kn_grouped_type_name(KN_GROUPED_E4M3), "e4m3");
}
