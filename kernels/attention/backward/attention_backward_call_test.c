/*
 * What a call of attention's backward pass refuses, and what it takes.
 */
#include "attention/backward/attention_backward.h"

#include "attention/backward/attention_backward_maps.h"
#include "kernel_scene.h"
#include "test/test_device.h"

#include <stdint.h>

TestSuite(attention_backward_call, .init = kernel_scene_begin, .fini = kernel_scene_end);

enum { ROWS = 16, KEYS = 32, WIDTH = 64, OF_ROWS = 2 * ROWS * WIDTH, OF_KEYS = KEYS * WIDTH };

/* q, out, d_out and d_q lie one after the other in one buffer, k, v, d_k and d_v in another. */
static struct tol_buffer *of_rows, *of_keys, *lse, *workspace;

static struct kn_attention_backward begin(void) {
    MUST(tol_buffer_create(test_context(), (size_t)4 * OF_ROWS, 2, &of_rows));
    MUST(tol_buffer_create(test_context(), (size_t)4 * OF_KEYS, 2, &of_keys));
    MUST(tol_buffer_create(test_context(), 2 * ROWS, sizeof(float), &lse));
    MUST(tol_buffer_fill_at(of_rows, 0, 0, 2, (size_t)4 * OF_ROWS));
    MUST(tol_buffer_fill_at(of_keys, 0, 0, 2, (size_t)4 * OF_KEYS));
    MUST(tol_buffer_fill_at(lse, 0, 0, 4, (size_t)2 * ROWS));
    const struct kn_attention_backward good = {
        .forward = {.type = KN_F16,
                    .batch = 1,
                    .heads = 2,
                    .kv_heads = 1,
                    .q_length = ROWS,
                    .kv_length = KEYS,
                    .head_size = WIDTH,
                    .q = {.buffer = of_rows},
                    .k = {.buffer = of_keys},
                    .v = {.buffer = of_keys, .offset = OF_KEYS},
                    .out = {.buffer = of_rows, .offset = OF_ROWS},
                    .lse = lse},
        .d_out = {.buffer = of_rows, .offset = 2 * OF_ROWS},
        .d_q = {.buffer = of_rows, .offset = 3 * OF_ROWS},
        .d_k = {.buffer = of_keys, .offset = 2 * OF_KEYS},
        .d_v = {.buffer = of_keys, .offset = 3 * OF_KEYS}};
    MUST(tol_buffer_create(test_context(), kn_attention_backward_workspace(&good.forward), 1,
                           &workspace));
    struct kn_attention_backward made = good;
    made.workspace = workspace;
    return made;
}

static void end(void) {
    MUST(tol_stream_synchronize(stream));
    tol_buffer_destroy(of_rows);
    tol_buffer_destroy(of_keys);
    tol_buffer_destroy(lse);
    tol_buffer_destroy(workspace);
}

#define REFUSED(expected, text)                                                                    \
    do {                                                                                           \
        MUST_FAIL(kn_attention_backward(kernels, stream, &bad), expected, text);                   \
        bad = good;                                                                                \
    } while (0)

Test(attention_backward_call, what_makes_no_sense_is_refused) {
    const struct kn_attention_backward good = begin();
    struct kn_attention_backward bad = good;
    MUST(kn_attention_backward(kernels, stream, &good));
    bad.forward.window = 2;
    REFUSED(TOL_INVALID_ARGUMENT, "a window of 2 keys");
    bad.forward.kv_length = 0;
    REFUSED(TOL_INVALID_ARGUMENT, "the gradients of 16 rows and 0 keys");
    bad.forward.q_length = 0;
    REFUSED(TOL_INVALID_ARGUMENT, "the gradients of 0 rows and 32 keys");
    bad.forward.lse = NULL;
    REFUSED(TOL_INVALID_ARGUMENT, "needs lse and a workspace");
    bad.workspace = NULL;
    REFUSED(TOL_INVALID_ARGUMENT, "needs lse and a workspace");
    bad.workspace = lse;
    REFUSED(TOL_OUT_OF_RANGE, "the workspace has 128 bytes, and needs 2048");
    bad.variant = "fastest";
    REFUSED(TOL_NOT_FOUND, "there are ordered, wgmma, tensor, naive");
    bad.variant = "tensor", bad.d_k.row_stride = WIDTH + 1, bad.d_k.offset = 0;
    bad.d_k.buffer = of_rows, bad.forward.kv_length = 1, bad.d_k.offset = 3 * OF_ROWS;
    bad.d_q = (struct kn_heads){.buffer = of_keys, .offset = OF_KEYS * 2};
    bad.d_v.buffer = of_rows, bad.d_v.offset = 3 * OF_ROWS + WIDTH;
    bad.forward.q_length = 1;
    REFUSED(TOL_UNSUPPORTED, "a row does not begin at a multiple of 16 bytes");
    MUST_FAIL(kn_attention_backward(kernels, stream, NULL), TOL_INVALID_ARGUMENT, "a problem");
    MUST_FAIL(kn_attention_backward(NULL, stream, &good), TOL_INVALID_ARGUMENT, "set of kernels");
    MUST_FAIL(kn_attention_backward(kernels, NULL, &good), TOL_INVALID_ARGUMENT, "a stream");
    end();
}

/* 2 heads, 128 rows each with padding: 8 bytes of figures and 64 floats for a row, and a word for
 * 64 rows, and one more. */
Test(attention_backward_call, ordered_needs_room_for_its_sums) {
    const struct kn_attention_backward good = begin();
    struct kn_attention_backward bad = good;
    const size_t needed = 256 * (8 + 64 * 4) + 5 * 4;
    bad.variant = "ordered";
    cr_assert(kn_attention_backward_workspace_of(&bad) == needed, "%zu",
              kn_attention_backward_workspace_of(&bad));
    cr_assert(kn_attention_backward_workspace_of(&good) ==
              kn_attention_backward_workspace(&good.forward));
    REFUSED(TOL_OUT_OF_RANGE, "the workspace has 2048 bytes, and needs 67604");
    bad.variant = "ordered", bad.forward.head_size = SIZE_MAX / 8;
    cr_assert(kn_attention_backward_workspace_of(&bad) == SIZE_MAX);
    end();
}

/* What is chosen for a number of tiles of 128 keys, with sums in the workspace or without. */
static const char *chosen(size_t tiles, bool has_room) {
    const struct attention_strides rows = {.batch = WIDTH};
    const struct attention_strides keys = {.batch = 128 * WIDTH, .row = WIDTH};
    const struct kn_attention_backward b = {.forward = {.type = KN_F16,
                                                        .batch = tiles,
                                                        .heads = 1,
                                                        .kv_heads = 1,
                                                        .q_length = 1,
                                                        .kv_length = 128,
                                                        .head_size = WIDTH}};
    const struct attention_backward_problem problem = {
        .backward = &b,
        .arguments = {.x = {.q_strides = rows, .k_strides = keys, .v_strides = keys},
                      .d_out_strides = rows,
                      .d_q_strides = rows,
                      .d_k_strides = keys,
                      .d_v_strides = keys,
                      .sums = has_room},
        .is_aligned = true,
        .has_maps = kn_tensor_map_has(test_context())};
    const struct kn_variant *variant = NULL;
    const struct tol_kernel *kernel = NULL;
    const size_t least = kn_attention_backward_workspace(&b.forward);
    cr_assert((kn_attention_backward_workspace_of(&b) > least) == (tiles >= 528), "%zu tiles",
              tiles);
    MUST(kn_kernels_pick(kernels, &kn_attention_backward_variants, NULL, &problem, &variant,
                         &kernel));
    return variant->name;
}

Test(attention_backward_call, ordered_is_chosen_for_many_tiles_of_keys) {
    if (tol_context_device(test_context())->compute_capability != 90) cr_skip_test("not 9.0");
    cr_assert_str_eq(chosen(528, true), "ordered");
    cr_assert_str_eq(chosen(528, false), "wgmma");
    cr_assert_str_eq(chosen(527, true), "wgmma");
}

Test(attention_backward_call, gradients_that_overlap_are_refused) {
    const struct kn_attention_backward good = begin();
    struct kn_attention_backward bad = good;
    bad.d_q.offset = OF_ROWS;
    REFUSED(TOL_INVALID_ARGUMENT, "d_q overlaps out");
    bad.d_q.offset = 3 * OF_ROWS + 1;
    REFUSED(TOL_OUT_OF_RANGE, "d_q is");
    bad.d_v.offset = bad.d_k.offset;
    REFUSED(TOL_INVALID_ARGUMENT, "d_k overlaps d_v");
    bad.d_k.offset = OF_KEYS;
    REFUSED(TOL_INVALID_ARGUMENT, "d_k overlaps v");
    bad.d_k.row_stride = WIDTH - 8, bad.d_k.head_stride = OF_KEYS;
    REFUSED(TOL_INVALID_ARGUMENT, "rows of d_k overlap");
    bad.d_out.buffer = NULL;
    REFUSED(TOL_INVALID_ARGUMENT, "d_out has no buffer");
    bad.forward.lse = of_rows;
    REFUSED(TOL_INVALID_ARGUMENT, "overlaps lse");
    bad.workspace = of_keys;
    REFUSED(TOL_INVALID_ARGUMENT, "overlaps workspace");
    end();
}

Test(attention_backward_call, nothing_to_write_is_no_failure) {
    const struct kn_attention_backward good = begin();
    struct kn_attention_backward none = good;
    none.forward.batch = 0;
    MUST(kn_attention_backward(kernels, stream, &none));
    none = good, none.forward.heads = none.forward.kv_heads = 0;
    MUST(kn_attention_backward(kernels, stream, &none));
    none.forward.batch = SIZE_MAX, none.forward.heads = 2;
    cr_assert(kn_attention_backward_workspace(&none.forward) == SIZE_MAX);
    end();
}
