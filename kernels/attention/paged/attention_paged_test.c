/*
 * attention over paged sequences: each sequence has the bits that it has from keys and values in
 * rows, and those are the definition's, wherever its pages are and whatever is beside them.
 */
#include "attention/forward/attention_oracle.h"
#include "attention/paged/pages_scene.h"
#include "kernel_scene.h"
#include "test/test_device.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

TestSuite(attention_paged, .init = kernel_scene_begin, .fini = kernel_scene_end);

enum { SEQUENCES = SEQUENCES_COUNT };

/* The rows of one head, without gaps; the caller frees them. */
static float *head_of(const struct pages_scene *s, const float *values, size_t pitch, size_t first,
                      size_t rows, size_t head) {
    float *to = malloc((rows + 1) * s->rows.head_size * sizeof *to);
    cr_assert(to != NULL);
    for (size_t row = 0; row < rows; row++) {
        memcpy(to + row * s->rows.head_size,
               values + (first + row) * pitch + head * s->rows.head_size,
               s->rows.head_size * sizeof *to);
    }
    return to;
}

static void compare_row(const struct pages_scene *s, const struct kn_attention *x,
                        const struct kn_attention_head *head, size_t h, size_t row, size_t place) {
    double expected[256], allowed[256];
    float got[256];
    struct kn_attention_row to = {.out = expected, .allowed = allowed};
    const size_t pitch = SEQUENCES_HEADS * s->rows.head_size + 16 / kn_type_bytes(s->rows.type);
    const size_t from = (place * pitch + h * s->rows.head_size) * kn_type_bytes(s->rows.type);
    const double lse = (double)s->rows.got_lse[h * SEQUENCES_Q_ROWS + place];
    kn_numbers_load(s->rows.type, s->rows.got + from, s->rows.head_size, got);
    cr_assert(kn_attention_oracle(x, KN_ATTENTION_ANY, head, row, &to));
    for (size_t i = 0; i < s->rows.head_size; i++) {
        cr_assert(fabs((double)got[i] - expected[i]) <= allowed[i],
                  "heads of %zu: row %zu, element %zu is %g, not %g", s->rows.head_size, place, i,
                  (double)got[i], expected[i]);
    }
    cr_assert(isinf(to.lse) ? lse == to.lse : fabs(lse - to.lse) <= to.lse_allowed,
              "the logarithm of row %zu is %g, not %g", place, lse, to.lse);
}

static void compare_with_oracle(const struct pages_scene *s,
                                const struct kn_attention_paged *wish) {
    const size_t q_pitch = SEQUENCES_HEADS * s->rows.head_size + 16 / kn_type_bytes(s->rows.type);
    const size_t kv_pitch = s->rows.kv_heads * s->rows.head_size;
    for (int i = 0; i < SEQUENCES; i++) {
        struct kn_attention x = wish->attention;
        const size_t from = (size_t)sequences_q_begins[i], first = pages_scene_first(i);
        x.batch = 1, x.q_length = (size_t)sequences_q_begins[i + 1] - from;
        x.kv_length = (size_t)pages_positions[i];
        for (size_t h = 0; h < SEQUENCES_HEADS; h++) {
            const size_t kv_head = h / (SEQUENCES_HEADS / s->rows.kv_heads);
            float *q = head_of(s, s->rows.values[0], q_pitch, from, x.q_length, h);
            float *k = head_of(s, s->rows.values[1], kv_pitch, first, x.kv_length, kv_head);
            float *v = head_of(s, s->rows.values[2], kv_pitch, first, x.kv_length, kv_head);
            const struct kn_attention_head head = {q, k, v};
            for (size_t row = 0; row < x.q_length; row++) {
                compare_row(s, &x, &head, h, row, from + row);
            }
            free(q);
            free(k);
            free(v);
        }
    }
}

static void check_bits(struct pages_scene *s, const struct kn_attention_paged *wish) {
    const size_t row = (SEQUENCES_HEADS * s->rows.head_size + 16 / kn_type_bytes(s->rows.type)) *
                       kn_type_bytes(s->rows.type);
    pages_scene_solve_alone(s, wish);
    const size_t at = sequences_scene_differs(&s->rows);
    cr_assert(at == SIZE_MAX,
              "%s %s, heads of %zu, pages of %zu, layout %d, a window of %zu: row %zu of %d, "
              "byte %zu",
              wish->variant, kn_type_name(s->rows.type), s->rows.head_size, s->page_positions,
              (int)s->layout, wish->attention.window, at / row, SEQUENCES_Q_ROWS, at % row);
}

static const size_t windows[] = {0, PAGES_POSITIONS, 20, 150};
enum { WINDOWS = 4 };

/* A trial: pages of every size and layout meet every mask; in_rows: a row is one piece. */
static void check(const char *variant, enum kn_type type, size_t head_size, int trial,
                  bool in_rows) {
    static const size_t sizes[] = {16, 32, 64, 128, 256};
    struct pages_scene s = {
        .rows = {.type = type, .head_size = head_size, .kv_heads = trial % 2 == 0 ? 2 : 1},
        .page_positions = sizes[trial % 5],
        .layout = trial % (in_rows ? PAGES_PIECES : PAGES_LAYOUTS)};
    if (!test_takes_trial()) return;
    pages_scene_begin(&s, 10 * head_size + (size_t)trial);
    const struct kn_attention_paged wish =
        pages_scene_wish(&s, variant, windows[(trial + trial / 4) % WINDOWS]);
    pages_scene_run(&s, &wish);
    compare_with_oracle(&s, &wish);
    check_bits(&s, &wish);
    pages_scene_end(&s);
}

Test(attention_paged, naive_gives_each_sequence_what_it_gets_from_rows) {
    for (enum kn_type type = 0; type < KN_TYPES; type++) {
        for (int i = 0; i < 10; i++) check("naive", type, 24, i, false);
    }
}

Test(attention_paged, tensor_gives_each_sequence_what_it_gets_from_rows) {
    static const size_t sizes[] = {64, 96, 128, 256};
    if (tol_context_device(test_context())->compute_capability < 80) cr_skip_test("before 8.0");
    for (enum kn_type type = KN_F16; type < KN_TYPES; type++) {
        for (int i = 0; i < 24; i++) check("tensor", type, sizes[i % 4], i + (int)type, false);
    }
}

/* For each kernel heads of its size, and smaller ones that TMA fills up with zeros. */
Test(attention_paged, wgmma_gives_each_sequence_what_it_gets_from_rows) {
    static const size_t sizes[] = {64, 40, 128, 96, 256, 200};
    if (tol_context_device(test_context())->compute_capability != 90) cr_skip_test("not 9.0");
    for (enum kn_type type = KN_F16; type < KN_TYPES; type++) {
        for (int i = 0; i < 30; i++) check("wgmma", type, sizes[i % 6], i / 6 + i % 6, true);
    }
}

static const char *const variants[] = {"naive", "tensor", "wgmma"};

static bool is_there(int variant) {
    const int capability = tol_context_device(test_context())->compute_capability;
    return variant == 0 || (variant == 1 && capability >= 80) || capability == 90;
}

/* The tests above can fail: a page of other keys, and a position too many, which is NaN. */
Test(attention_paged, a_wrong_page_and_a_wrong_length_show) {
    for (int variant = 0; variant < 3; variant++) {
        struct pages_scene s = {.rows = {.type = KN_BF16, .head_size = 64, .kv_heads = 1},
                                .page_positions = 16};
        if (!is_there(variant)) continue;
        pages_scene_begin(&s, 7);
        const struct kn_attention_paged wish = pages_scene_wish(&s, variants[variant], 0);
        pages_scene_run(&s, &wish);
        check_bits(&s, &wish);
        const uint64_t two[] = {s.table[pages_scene_entry(&s, 3, 0)],
                                s.table[pages_scene_entry(&s, 6, 1)]};
        MUST(tol_buffer_write_at(s.tables, pages_scene_entry(&s, 3, 1) * sizeof *two, two,
                                 sizeof *two));
        pages_scene_run(&s, &wish);
        cr_assert(sequences_scene_differs(&s.rows) != SIZE_MAX);
        MUST(tol_buffer_write(s.tables, s.table, tol_buffer_bytes(s.tables)));
        pages_scene_run(&s, &wish);
        cr_assert(sequences_scene_differs(&s.rows) == SIZE_MAX);
        const int longer = pages_positions[2] + 1;
        MUST(tol_buffer_write_at(s.positions, 2 * sizeof longer, &longer, sizeof longer));
        pages_scene_run(&s, &wish);
        cr_assert(sequences_scene_differs(&s.rows) != SIZE_MAX);
        pages_scene_end(&s);
    }
}
