/*
 * attention over packed sequences: each sequence has the bits that it has alone, whatever lies
 * beside it; begins that make no sense; and what is refused.
 */
#include "attention/packed/packed_scene.h"

#include "kernel_scene.h"
#include "test/test_device.h"

#include <string.h>

TestSuite(attention_packed, .init = kernel_scene_begin, .fini = kernel_scene_end);

enum { SEQUENCES = SEQUENCES_COUNT, KV_ROWS = PACKED_KV_ROWS };

static void check(const char *variant, enum kn_type type, size_t head_size, size_t window) {
    struct packed_scene s;
    if (!test_takes_trial()) return;
    packed_scene_begin(&s, type, head_size, PACKED_ALL_CLEAN, 10 * head_size + window);
    const struct kn_attention_packed wish = packed_scene_wish(&s, variant, window);
    packed_scene_run(&s, &wish);
    sequences_scene_solve_alone(&s.rows, &wish.attention, variant);
    const size_t row = s.rows.pitch * kn_type_bytes(type), at = sequences_scene_differs(&s.rows);
    cr_assert(at == SIZE_MAX, "%s %s, heads of %zu, a window of %zu: row %zu of %d, byte %zu",
              variant, kn_type_name(type), head_size, window, at / row, SEQUENCES_Q_ROWS, at % row);
    packed_scene_end(&s);
}

/* Full, causal, and with windows of less than a tile and of more. */
static void check_masks(const char *variant, enum kn_type type, size_t head_size) {
    static const size_t windows[] = {0, KV_ROWS, 20, 150};
    for (int i = 0; i < 4; i++) check(variant, type, head_size, windows[i]);
}

Test(attention_packed, naive_gives_each_sequence_what_it_gets_alone) {
    for (enum kn_type type = 0; type < KN_TYPES; type++) check_masks("naive", type, 24);
}

Test(attention_packed, tensor_gives_each_sequence_what_it_gets_alone) {
    static const size_t sizes[] = {64, 96, 128, 256};
    if (tol_context_device(test_context())->compute_capability < 80) cr_skip_test("before 8.0");
    for (enum kn_type type = KN_F16; type < KN_TYPES; type++) {
        for (int i = 0; i < 4; i++) check_masks("tensor", type, sizes[i]);
    }
}

/* For each kernel heads of its size, and smaller ones that TMA fills up with zeros. */
Test(attention_packed, wgmma_gives_each_sequence_what_it_gets_alone) {
    static const size_t sizes[] = {64, 40, 128, 96, 256, 200};
    if (tol_context_device(test_context())->compute_capability != 90) cr_skip_test("not 9.0");
    for (enum kn_type type = KN_F16; type < KN_TYPES; type++) {
        for (int i = 0; i < 6; i++) check_masks("wgmma", type, sizes[i]);
    }
}

/* Whatever the device has in begins: no byte but out's rows is written, and none outside is read,
 * which the soft device would refuse. */
Test(attention_packed, begins_that_make_no_sense_reach_no_further) {
    static const int all[][SEQUENCES + 1] = {
        {-5, 40, 20, 1000, 3, 2, 1, 0},
        {INT32_MIN, INT32_MAX, INT32_MIN, 7, 400, -1, 339, INT32_MAX},
        {0, 340, 340, 340, 340, 340, 340, 340}};
    static const char *const variants[] = {"naive", "tensor", "wgmma"};
    const int capability = tol_context_device(test_context())->compute_capability;
    for (unsigned i = 0; i < 9; i++) {
        struct packed_scene s;
        if ((i / 3 == 1 && capability < 80) || (i / 3 == 2 && capability != 90)) continue;
        packed_scene_begin(&s, KN_F16, 64, PACKED_ALL_CLEAN, i);
        const struct kn_attention_packed wish =
            packed_scene_wish(&s, variants[i / 3], i % 2 == 0 ? 30 : 0);
        MUST(tol_buffer_write(s.rows.q_begins, all[i % 3], sizeof all[0]));
        MUST(tol_buffer_write(s.kv_begins, all[(i + 1) % 3], sizeof all[0]));
        packed_scene_run(&s, &wish);
        packed_scene_end(&s);
    }
}

Test(attention_packed, what_cannot_be_is_refused) {
    struct packed_scene s;
    packed_scene_begin(&s, KN_F16, 64, PACKED_ALL_CLEAN, 1);
    const struct kn_attention_packed good = packed_scene_wish(&s, NULL, 0);
    struct kn_attention_packed bad;
    MUST(kn_attention_packed(kernels, stream, &good));
    MUST_FAIL(kn_attention_packed(kernels, stream, NULL), TOL_INVALID_ARGUMENT, "a problem");
    bad = good, bad.kv_begins = NULL;
    MUST_FAIL(kn_attention_packed(kernels, stream, &bad), TOL_INVALID_ARGUMENT,
              "kv_begins is missing");
    bad = good, bad.attention.batch = SEQUENCES + 1;
    MUST_FAIL(kn_attention_packed(kernels, stream, &bad), TOL_OUT_OF_RANGE,
              "q_begins needs 36 bytes, and there are 32");
    bad = good, bad.q_rows = SEQUENCES_LONGEST_Q - 1;
    MUST_FAIL(kn_attention_packed(kernels, stream, &bad), TOL_OUT_OF_RANGE,
              "a sequence of 189 rows");
    bad = good, bad.kv_rows = KV_ROWS + 1000;
    MUST_FAIL(kn_attention_packed(kernels, stream, &bad), TOL_OUT_OF_RANGE, "k ");
    bad = good, bad.attention.batch = 65536;
    MUST_FAIL(kn_attention_packed(kernels, stream, &bad), TOL_OVER_LIMIT, "65536 sequences");
    bad = good, bad.q_begins = s.rows.lse;
    MUST_FAIL(kn_attention_packed(kernels, stream, &bad), TOL_INVALID_ARGUMENT,
              "lse overlaps q_begins");
    bad = good, bad.q_begins = s.rows.out.buffer;
    MUST_FAIL(kn_attention_packed(kernels, stream, &bad), TOL_INVALID_ARGUMENT,
              "out overlaps q_begins");
    bad = good, bad.attention.window = 3;
    MUST_FAIL(kn_attention_packed(kernels, stream, &bad), TOL_INVALID_ARGUMENT, "not causal");
    bad = good, bad.variant = "cudnn";
    MUST_FAIL(kn_attention_packed(kernels, stream, &bad), TOL_NOT_FOUND, "cudnn");
    bad = good, bad.attention.batch = 0, bad.q_begins = NULL;
    MUST(kn_attention_packed(kernels, stream, &bad));
    packed_scene_end(&s);
}
