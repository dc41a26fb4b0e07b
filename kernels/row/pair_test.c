/*
 * swiglu and add against their definitions.
 */
#include "row/pair.h"
#include "row/row_stage_test.h"

#include <math.h>
#include <stdlib.h>

TestSuite(pair, .fini = test_end);

static void run(struct row_stage *stage, enum kn_pair_kind kind, enum kn_type type,
                enum kn_distribution distribution, size_t rows, size_t columns, size_t gap,
                size_t skew, bool in_place) {
    struct row_matrix in = row_matrix_make(type, rows, columns, 3 * gap, skew);
    struct row_matrix with = row_matrix_make(type, rows, columns, 2 * gap, skew / 2);
    struct row_matrix out = row_matrix_make(type, rows, columns, gap, skew / 3);
    struct row_matrix *target = in_place ? &with : &out;
    double *oracle = malloc(rows * columns * sizeof *oracle);
    cr_assert(oracle != NULL);
    row_draw(stage, &in, distribution, 4);
    row_draw(stage, &with, distribution, 1);
    for (size_t i = 0; i < rows * columns; i++) {
        oracle[i] = kn_pair_oracle(kind, (double)in.values[i], (double)with.values[i]);
    }
    MUST(kn_pair(stage->kernels, stage->stream,
                 &(struct kn_pair){.kind = kind,
                                   .type = type,
                                   .rows = rows,
                                   .columns = columns,
                                   .in = row_matrix_rows(&in),
                                   .with = row_matrix_rows(&with),
                                   .out = row_matrix_rows(target)}));
    /* exp's argument is exact; exp, sum, quotient and product round once each. Where exp overflows
     * the result is 0, and should be less than 2^-120 times with. */
    const struct kn_tolerance tolerance = {type == KN_F16 ? 0x1p-25 : 0x1p-108,
                                           0x1p-24 * 8 + kn_type_roundoff(type)};
    const struct kn_deviation deviation = row_compare(stage, target, oracle, tolerance, NULL);
    char text[400];
    cr_assert(deviation.failed == 0, "%s %s %s, %zu x %zu: %s", kind == KN_ADD ? "add" : "swiglu",
              kn_type_name(type), kn_distribution_name(distribution), rows, columns,
              kn_deviation_text(&deviation, text, sizeof text));
    row_matrix_end(&in);
    row_matrix_end(&with);
    row_matrix_end(&out);
    free(oracle);
}

Test(pair, both_kinds_are_their_definitions) {
    struct row_stage stage = row_stage_begin(1);
    for (enum kn_pair_kind kind = 0; kind <= KN_ADD; kind++) {
        for (enum kn_type type = 0; type < KN_TYPES; type++) {
            for (enum kn_distribution d = 0; d < KN_DISTRIBUTIONS; d++) {
                run(&stage, kind, type, d, 3, 61, 1, d, d % 2 == 0);
            }
            run(&stage, kind, type, KN_NORMAL, 1, 1, 1, 1, false);
            run(&stage, kind, type, KN_NORMAL, 2, 9001, 1, 0, false);
            /* Without gaps, whole and with every kind of end. */
            run(&stage, kind, type, KN_NORMAL, 70, 264, 0, 0, false);
            run(&stage, kind, type, KN_NORMAL, 70, 263, 0, 0, true);
            run(&stage, kind, type, KN_NORMAL, 7, 129, 0, 5, false);
        }
    }
    row_stage_end(&stage);
}

Test(pair, special_values_go_where_arithmetic_sends_them) {
    static const float a[6] = {NAN, INFINITY, -INFINITY, -200, 200, 0};
    static const float b[6] = {1, 2, 3, 4, 5, INFINITY};
    struct row_stage stage = row_stage_begin(2);
    for (enum kn_pair_kind kind = 0; kind <= KN_ADD; kind++) {
        double oracle[6];
        struct row_matrix in = row_matrix_make(KN_F32, 1, 6, 0, 0);
        struct row_matrix with = row_matrix_make(KN_F32, 1, 6, 0, 0);
        row_fill(&in, a);
        row_fill(&with, b);
        for (int i = 0; i < 6; i++) oracle[i] = kn_pair_oracle(kind, (double)a[i], (double)b[i]);
        MUST(kn_pair(stage.kernels, stage.stream,
                     &(struct kn_pair){.kind = kind,
                                       .rows = 1,
                                       .columns = 6,
                                       .in = row_matrix_rows(&in),
                                       .with = row_matrix_rows(&with),
                                       .out = row_matrix_rows(&in)}));
        const struct kn_deviation deviation =
            row_compare(&stage, &in, oracle, (struct kn_tolerance){1e-30, 1e-6}, NULL);
        cr_assert(deviation.failed == 0, "kind %d: element %lld", (int)kind,
                  (long long)deviation.first);
        row_matrix_end(&in);
        row_matrix_end(&with);
    }
    row_stage_end(&stage);
}

Test(pair, what_cannot_be_is_refused) {
    struct row_stage stage = row_stage_begin(3);
    tol_auto_buffer struct tol_buffer *buffer = NULL;
    MUST(tol_buffer_create(test_context(), 128, 4, &buffer));
    const struct kn_pair good = {.rows = 1,
                                 .columns = 64,
                                 .in = {buffer, 0, 0},
                                 .with = {buffer, 0, 0},
                                 .out = {buffer, 64, 0}};
    struct kn_pair bad = good;
    MUST(tol_buffer_fill_at(buffer, 0, 0, 4, 128));
    MUST(kn_pair(stage.kernels, stage.stream, &good));
    bad.out.offset = 63;
    MUST_FAIL(kn_pair(stage.kernels, stage.stream, &bad), TOL_INVALID_ARGUMENT, "out overlaps in");
    bad = good, bad.out.offset = 65;
    MUST_FAIL(kn_pair(stage.kernels, stage.stream, &bad), TOL_OUT_OF_RANGE, "out is 1 rows of 64");
    bad = good, bad.with.buffer = NULL;
    MUST_FAIL(kn_pair(stage.kernels, stage.stream, &bad), TOL_INVALID_ARGUMENT, "with has no");
    bad = good, bad.kind = (enum kn_pair_kind)2;
    MUST_FAIL(kn_pair(stage.kernels, stage.stream, &bad), TOL_INVALID_ARGUMENT, "does not exist");
    row_stage_end(&stage);
}
