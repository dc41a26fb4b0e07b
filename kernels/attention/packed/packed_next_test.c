/*
 * attention over packed sequences: what the next sequence holds does not matter, and it is left as
 * it was. NaN and infinities beside a sequence, its rows against the definition, and kernels with
 * one planted defect each.
 */
#include "attention/forward/attention_oracle.h"
#include "attention/packed/packed_scene.h"
#include "kernel_scene.h"
#include "test/test_device.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

TestSuite(packed_next, .init = kernel_scene_begin, .fini = kernel_scene_end);

/* The rows of one head, without gaps; the caller frees them. */
static float *head_of(const struct packed_scene *s, int operand, int first, size_t rows,
                      size_t head) {
    float *values = malloc((rows + 1) * s->rows.head_size * sizeof *values);
    cr_assert(values != NULL);
    for (size_t row = 0; row < rows; row++) {
        memcpy(values + row * s->rows.head_size,
               s->rows.values[operand] + ((size_t)first + row) * s->rows.pitch +
                   head * s->rows.head_size,
               s->rows.head_size * sizeof *values);
    }
    return values;
}

static void compare_row(const struct packed_scene *s, const char *variant,
                        const struct kn_attention *x, const struct kn_attention_head *head,
                        size_t h, size_t row, size_t place) {
    double expected[256], allowed[256];
    float got[256];
    struct kn_attention_row to = {.out = expected, .allowed = allowed};
    const size_t from = place * s->rows.pitch + h * s->rows.head_size;
    const double lse = (double)s->rows.got_lse[h * SEQUENCES_Q_ROWS + place];
    kn_numbers_load(s->rows.type, s->rows.got + from * kn_type_bytes(s->rows.type),
                    s->rows.head_size, got);
    cr_assert(kn_attention_oracle(x, KN_ATTENTION_ANY, head, row, &to));
    for (size_t i = 0; i < s->rows.head_size; i++) {
        cr_assert(fabs((double)got[i] - expected[i]) <= allowed[i],
                  "%s %s, heads of %zu: row %zu, element %zu is %g, not %g", variant,
                  kn_type_name(s->rows.type), s->rows.head_size, place, i, (double)got[i],
                  expected[i]);
    }
    cr_assert(isinf(to.lse) ? lse == to.lse : fabs(lse - to.lse) <= to.lse_allowed,
              "%s: the logarithm of row %zu is %g, not %g", variant, place, lse, to.lse);
}

/* Sequences without poison against the definition. */
static void compare_with_oracle(const struct packed_scene *s,
                                const struct kn_attention_packed *wish) {
    for (int i = 0; i < SEQUENCES_COUNT; i++) {
        struct kn_attention x = wish->attention;
        const int rows = sequences_q_begins[i + 1] - sequences_q_begins[i];
        x.batch = 1, x.q_length = (size_t)rows;
        x.kv_length = (size_t)(packed_kv_begins[i + 1] - packed_kv_begins[i]);
        for (size_t h = 0; h < SEQUENCES_HEADS && !packed_scene_is_poisoned(s, i); h++) {
            float *q = head_of(s, 0, sequences_q_begins[i], x.q_length, h);
            float *k = head_of(s, 1, packed_kv_begins[i], x.kv_length, 0);
            float *v = head_of(s, 2, packed_kv_begins[i], x.kv_length, 0);
            const struct kn_attention_head head = {q, k, v};
            for (int row = 0; row < rows; row++) {
                compare_row(s, wish->variant, &x, &head, h, (size_t)row,
                            (size_t)sequences_q_begins[i] + (size_t)row);
            }
            free(q);
            free(k);
            free(v);
        }
    }
}

/* Also the sequences of poison: their bits are those that they have alone. */
static void check(const char *variant, enum kn_type type, size_t head_size) {
    static const size_t windows[] = {0, PACKED_KV_ROWS, 20};
    for (int i = 0; i < 6; i++) {
        struct packed_scene s;
        if (!test_takes_trial()) continue;
        packed_scene_begin(&s, type, head_size,
                           i % 2 == 0 ? PACKED_EVEN_POISONED : PACKED_ODD_POISONED,
                           3 * head_size + (size_t)i);
        const struct kn_attention_packed wish = packed_scene_wish(&s, variant, windows[i / 2]);
        packed_scene_run(&s, &wish);
        compare_with_oracle(&s, &wish);
        sequences_scene_solve_alone(&s.rows, &wish.attention, variant);
        const size_t row = s.rows.pitch * kn_type_bytes(type),
                     at = sequences_scene_differs(&s.rows);
        cr_assert(at == SIZE_MAX, "%s %s, heads of %zu, trial %d: row %zu of %d, byte %zu", variant,
                  kn_type_name(type), head_size, i, at / row, SEQUENCES_Q_ROWS, at % row);
        packed_scene_end(&s);
    }
}

Test(packed_next, naive_is_the_definition_beside_poison) {
    for (enum kn_type type = 0; type < KN_TYPES; type++) check("naive", type, 24);
}

Test(packed_next, tensor_is_the_definition_beside_poison) {
    if (tol_context_device(test_context())->compute_capability < 80) cr_skip_test("before 8.0");
    for (enum kn_type type = KN_F16; type < KN_TYPES; type++) {
        check("tensor", type, 64);
        check("tensor", type, 128);
    }
}

Test(packed_next, wgmma_is_the_definition_beside_poison) {
    static const size_t sizes[] = {64, 40, 128, 96, 256, 200};
    if (tol_context_device(test_context())->compute_capability != 90) cr_skip_test("not 9.0");
    for (enum kn_type type = KN_F16; type < KN_TYPES; type++) {
        for (int i = 0; i < 6; i++) check("wgmma", type, sizes[i]);
    }
}

/* The end of a sequence is where these kernels err: out differs from what each sequence gets alone,
 * or the logarithms alone do. */
Test(packed_next, planted_defects_are_found) {
    if (tol_context_device(test_context())->compute_capability != 90) cr_skip_test("not 9.0");
    for (size_t i = 0; i < kn_attention_packed_defects.count; i++) {
        struct packed_scene s;
        const char *name = kn_attention_packed_defects.rows[i].name;
        packed_scene_begin(&s, KN_F16, 64, PACKED_ODD_POISONED, 1 + i);
        const size_t out_bytes = SEQUENCES_Q_ROWS * s.rows.pitch * kn_type_bytes(KN_F16);
        struct kn_attention_packed wish = packed_scene_wish(&s, "wgmma", 0);
        packed_scene_run(&s, &wish);
        sequences_scene_solve_alone(&s.rows, &wish.attention, "wgmma");
        cr_assert(sequences_scene_differs(&s.rows) == SIZE_MAX);
        wish.variants = &kn_attention_packed_defects, wish.variant = name;
        packed_scene_run(&s, &wish);
        const size_t at = sequences_scene_differs(&s.rows);
        cr_assert(at != SIZE_MAX, "%s is not found", name);
        cr_assert((at >= out_bytes) == (strcmp(name, "next_lse_written") == 0),
                  "%s is found in byte %zu of %zu of out", name, at, out_bytes);
        packed_scene_end(&s);
    }
}
