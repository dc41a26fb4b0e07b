/*
 * gather and argmax: what is chosen, and where there is nothing to choose.
 */
#include "row/gather.h"
#include "row/argmax.h"
#include "row/row_stage_test.h"

#include <math.h>
#include <stdlib.h>

TestSuite(gather, .fini = test_end);
TestSuite(argmax, .fini = test_end);

Test(gather, rows_are_copied_and_unknown_ones_are_nan) {
    enum { ROWS = 7, TABLE = 5 };
    static const int indices[ROWS] = {4, 0, 4, -1, 2, 5, 2147483647};
    static const size_t widths[] = {1, 7, 8, 63, 1030};
    struct row_stage stage = row_stage_begin(1);
    tol_auto_buffer struct tol_buffer *buffer = NULL;
    MUST(tol_buffer_create(test_context(), ROWS, sizeof(int), &buffer));
    MUST(tol_buffer_write(buffer, indices, sizeof indices));
    for (size_t w = 0; w < 5; w++) {
        for (enum kn_type type = 0; type < KN_TYPES; type++) {
            const size_t columns = widths[w];
            struct row_matrix table = row_matrix_make(type, TABLE, columns, w, w + 1);
            struct row_matrix out = row_matrix_make(type, ROWS, columns, 1, w);
            double *oracle = malloc(ROWS * columns * sizeof *oracle);
            cr_assert(oracle != NULL);
            row_draw(&stage, &table, KN_LARGE, 1);
            for (size_t i = 0; i < ROWS * columns; i++) {
                const int row = indices[i / columns];
                const bool known = row >= 0 && row < TABLE;
                oracle[i] = known ? (double)table.values[(size_t)row * columns + i % columns] : NAN;
            }
            MUST(kn_gather(stage.kernels, stage.stream,
                           &(struct kn_gather){.type = type,
                                               .rows = ROWS,
                                               .columns = columns,
                                               .table_rows = TABLE,
                                               .table = row_matrix_rows(&table),
                                               .out = row_matrix_rows(&out),
                                               .indices = {buffer, 0, 0}}));
            /* NaN outside is what a kernel that wrote nothing leaves as well: the gaps are whole,
             * and the row after an unknown one has its values. */
            const struct kn_deviation deviation =
                row_compare(&stage, &out, oracle, (struct kn_tolerance){0, 0}, NULL);
            cr_assert(deviation.failed == 0, "%s, %zu columns: element %lld", kn_type_name(type),
                      columns, (long long)deviation.first);
            row_matrix_end(&table);
            row_matrix_end(&out);
            free(oracle);
        }
    }
    row_stage_end(&stage);
}

Test(gather, what_cannot_be_is_refused) {
    struct row_stage stage = row_stage_begin(2);
    tol_auto_buffer struct tol_buffer *buffer = NULL, *indices = NULL;
    MUST(tol_buffer_create(test_context(), 128, 4, &buffer));
    MUST(tol_buffer_create(test_context(), 2, 4, &indices));
    MUST(tol_buffer_write(indices, (int[]){0, 1}, 8));
    const struct kn_gather good = {.rows = 2,
                                   .columns = 32,
                                   .table_rows = 2,
                                   .table = {buffer, 0, 0},
                                   .out = {buffer, 64, 0},
                                   .indices = {indices, 0, 0}};
    struct kn_gather bad = good;
    MUST(tol_buffer_fill_at(buffer, 0, 0, 4, 128));
    MUST(kn_gather(stage.kernels, stage.stream, &good));
    bad.out.offset = 32;
    MUST_FAIL(kn_gather(stage.kernels, stage.stream, &bad), TOL_INVALID_ARGUMENT,
              "out overlaps table");
    bad = good, bad.table_rows = 0;
    MUST_FAIL(kn_gather(stage.kernels, stage.stream, &bad), TOL_INVALID_ARGUMENT, "no rows");
    bad = good, bad.table_rows = 5;
    MUST_FAIL(kn_gather(stage.kernels, stage.stream, &bad), TOL_OUT_OF_RANGE, "table is 5 rows");
    bad = good, bad.indices.offset = 1;
    MUST_FAIL(kn_gather(stage.kernels, stage.stream, &bad), TOL_OUT_OF_RANGE, "indices");
    row_stage_end(&stage);
}

static void find_by(struct row_stage *stage, struct row_matrix *in, const char *variant) {
    const size_t rows = in->rows;
    int got[16];
    struct kn_guarded out = {0};
    size_t changed = 1;
    cr_assert(rows <= 16);
    MUST(kn_guarded_create(test_context(), rows * sizeof(int), 4, &out));
    MUST(kn_argmax(stage->kernels, stage->stream,
                   &(struct kn_argmax){.type = in->type,
                                       .rows = rows,
                                       .columns = in->columns,
                                       .in = row_matrix_rows(in),
                                       .out = {out.buffer, out.offset / sizeof(int), 0},
                                       .variant = variant}));
    MUST(tol_stream_synchronize(stage->stream));
    MUST(kn_guarded_read(&out, got));
    MUST(kn_guarded_check(&out, &changed));
    cr_assert(changed == 0);
    for (size_t r = 0; r < rows; r++) {
        const int expected = kn_argmax_oracle(in->values + r * in->columns, in->columns);
        cr_assert(got[r] == expected, "%s, %s, %zu columns, row %zu: %d and not %d",
                  variant != NULL ? variant : "best", kn_type_name(in->type), in->columns, r,
                  got[r], expected);
    }
    kn_guarded_destroy(&out);
}

static void find(struct row_stage *stage, struct row_matrix *in) {
    find_by(stage, in, NULL);
}

Test(argmax, the_first_of_the_largest_is_found) {
    static const size_t widths[] = {1, 7, 8, 63, 1030, 5003};
    struct row_stage stage = row_stage_begin(3);
    for (size_t w = 0; w < 6; w++) {
        for (enum kn_type type = 0; type < KN_TYPES; type++) {
            for (enum kn_distribution d = 0; d < KN_DISTRIBUTIONS; d++) {
                struct row_matrix in = row_matrix_make(type, 3, widths[w], w, w + 1);
                row_draw(&stage, &in, d, d == KN_LARGE ? -1 : 1);
                find(&stage, &in);
                row_matrix_end(&in);
            }
        }
    }
    row_stage_end(&stage);
}

/* Rows of one piece; of as many as a warp asks for at once and of one more; and of more than a
 * block does. */
Test(argmax, whole_rows_are_the_definition_too) {
    static const size_t widths[] = {8, 136, 1024, 1032, 4096, 40000};
    if (tol_context_device(test_context())->compute_capability < 90) cr_skip_test("before 9.0");
    struct row_stage stage = row_stage_begin(6);
    for (size_t i = 0; i < 2 * 6 * KN_TYPES; i++) {
        const size_t columns = widths[i / 2 % 6];
        if (i % 2 == 0 && columns * kn_type_bytes(i / 12) > 2048) continue;
        for (enum kn_distribution d = 0; d < KN_DISTRIBUTIONS; d++) {
            struct row_matrix in = row_matrix_make(i / 12, 5, columns, 8, d % 2 * 8);
            row_draw(&stage, &in, d, d == KN_LARGE ? -1 : 1);
            find_by(&stage, &in, i % 2 == 0 ? "warp" : "whole");
            row_matrix_end(&in);
        }
    }
    row_stage_end(&stage);
}

Test(argmax, whole_rows_have_the_stated_outcomes_too) {
    enum { COLUMNS = 1200, SHORT = 400, ROWS = 8 };
    static float values[ROWS * COLUMNS], drawn[ROWS * SHORT];
    if (tol_context_device(test_context())->compute_capability < 90) cr_skip_test("before 9.0");
    struct row_stage stage = row_stage_begin(7);
    for (size_t c = 0; c < COLUMNS; c++) {
        values[c] = 5;
        values[COLUMNS + c] = c == 10 ? 0.0f : -0.0f;
        values[2 * COLUMNS + c] = -INFINITY;
        values[3 * COLUMNS + c] = c == 1199 ? INFINITY : 1;
        values[4 * COLUMNS + c] = c >= 777 ? NAN : INFINITY;
        values[5 * COLUMNS + c] = c == 1198 || c == 901 ? -1 : c % 2 == 0 ? -2 : -INFINITY;
        values[6 * COLUMNS + c] = c % 300 == 299 ? 7 : (float)(c % 7);
        values[7 * COLUMNS + c] = c == 0 ? -0.0f : c == 600 ? 0.0f : -1;
    }
    for (enum kn_type type = 0; type < KN_TYPES; type++) {
        struct row_matrix in = row_matrix_make(type, ROWS, COLUMNS, 0, 0);
        row_fill(&in, values);
        find_by(&stage, &in, "whole");
        row_matrix_end(&in);
        for (size_t c = 0; c < SHORT; c++) { /* rows of every third column, or nearly */
            for (size_t r = 0; r < ROWS; r++) {
                drawn[r * SHORT + c] = values[r * COLUMNS + c * (COLUMNS - 1) / (SHORT - 1)];
            }
        }
        in = row_matrix_make(type, ROWS, SHORT, 0, 0);
        row_fill(&in, drawn);
        find_by(&stage, &in, "warp");
        row_matrix_end(&in);
    }
    row_stage_end(&stage);
}

Test(argmax, equals_zeros_infinities_and_nans_have_stated_outcomes) {
    enum { COLUMNS = 300, ROWS = 5 };
    static float values[ROWS * COLUMNS];
    struct row_stage stage = row_stage_begin(4);
    struct row_matrix in = row_matrix_make(KN_F32, ROWS, COLUMNS, 0, 1);
    for (size_t c = 0; c < COLUMNS; c++) {
        values[c] = 5;                                       /* the first of equals: 0 */
        values[COLUMNS + c] = c == 10 ? 0.0f : -0.0f;        /* equal zeros: 0 */
        values[2 * COLUMNS + c] = -INFINITY;                 /* nothing is larger: 0 */
        values[3 * COLUMNS + c] = c == 299 ? INFINITY : 1;   /* the last */
        values[4 * COLUMNS + c] = c >= 200 ? NAN : INFINITY; /* the first NaN */
    }
    row_fill(&in, values);
    find(&stage, &in);
    cr_assert(kn_argmax_oracle(values + 4 * COLUMNS, COLUMNS) == 200);
    row_matrix_end(&in);
    row_stage_end(&stage);
}

Test(argmax, what_cannot_be_is_refused) {
    struct row_stage stage = row_stage_begin(5);
    tol_auto_buffer struct tol_buffer *buffer = NULL;
    MUST(tol_buffer_create(test_context(), 128, 4, &buffer));
    const struct kn_argmax good = {
        .rows = 2, .columns = 32, .in = {buffer, 0, 0}, .out = {buffer, 64, 0}};
    struct kn_argmax bad = good;
    MUST(tol_buffer_fill_at(buffer, 0, 0, 4, 128));
    MUST(kn_argmax(stage.kernels, stage.stream, &good));
    bad.columns = 0;
    MUST_FAIL(kn_argmax(stage.kernels, stage.stream, &bad), TOL_INVALID_ARGUMENT, "no elements");
    bad = good, bad.out.offset = 63;
    MUST_FAIL(kn_argmax(stage.kernels, stage.stream, &bad), TOL_INVALID_ARGUMENT, "out overlaps");
    bad = good, bad.out.offset = 127;
    MUST_FAIL(kn_argmax(stage.kernels, stage.stream, &bad), TOL_OUT_OF_RANGE, "out");
    bad = good, bad.variant = "whole", bad.columns = 31;
    MUST_FAIL(kn_argmax(stage.kernels, stage.stream, &bad), TOL_UNSUPPORTED, "multiple of 16");
    row_stage_end(&stage);
}
