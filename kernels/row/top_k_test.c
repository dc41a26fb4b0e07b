/*
 * top_k: what is chosen and in which order, rows that are made to overflow the candidates, and what
 * is refused.
 */
#include "row/top_k.h"
#include "row/row_stage_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

TestSuite(top_k, .fini = test_end);

/* The k largest of a matrix, into guarded outputs with a gap, and compares them with the oracle:
 * columns, and values to the bit. */
static void find_by(struct row_stage *stage, struct row_matrix *in, size_t k, const char *variant,
                    const char *what) {
    const size_t stride = k + 3, count = (in->rows - 1) * stride + k;
    struct row_matrix values = row_matrix_make(in->type, in->rows, k, 2, 1);
    struct kn_guarded indices = {0};
    int *got = malloc((count + in->rows * k) * sizeof *got), *expected = got + count;
    double *oracle = malloc(in->rows * k * sizeof *oracle);
    size_t changed = 1;
    cr_assert(got != NULL && oracle != NULL);
    MUST(kn_guarded_create(test_context(), count * sizeof(int), 4, &indices));
    MUST(kn_top_k(stage->kernels, stage->stream,
                  &(struct kn_top_k){.type = in->type,
                                     .rows = in->rows,
                                     .columns = in->columns,
                                     .k = k,
                                     .in = row_matrix_rows(in),
                                     .values = row_matrix_rows(&values),
                                     .indices = {indices.buffer, indices.offset / 4, stride},
                                     .variant = variant}));
    MUST(tol_stream_synchronize(stage->stream));
    MUST(kn_guarded_read(&indices, got));
    MUST(kn_guarded_check(&indices, &changed));
    cr_assert(changed == 0);
    for (size_t r = 0; r < in->rows; r++) {
        const float *row = in->values + r * in->columns;
        cr_assert(kn_top_k_oracle(row, in->columns, k, expected + r * k));
        for (size_t i = 0; i < k; i++) {
            const int column = expected[r * k + i];
            cr_assert(got[r * stride + i] == column,
                      "%s, %s, %s, %zu columns, row %zu, place %zu of %zu: %d and not %d",
                      variant != NULL ? variant : "best", what, kn_type_name(in->type), in->columns,
                      r, i, k, got[r * stride + i], column);
            oracle[r * k + i] = (double)row[column];
        }
    }
    row_expect(stage, &values, oracle, (struct kn_tolerance){0, 0}, NULL, "%s, values", what);
    row_matrix_end(&values);
    kn_guarded_destroy(&indices);
    free(got);
    free(oracle);
}

static void find(struct row_stage *stage, struct row_matrix *in, size_t k, const char *what) {
    find_by(stage, in, k, NULL, what);
}

Test(top_k, the_largest_are_found_in_order) {
    static const size_t widths[] = {1, 7, 8, 63, 300, 1030, 5003};
    static const size_t wanted[] = {1, 2, 8, 50, 513, 1024};
    struct row_stage stage = row_stage_begin(1);
    for (size_t w = 0; w < 7; w++) {
        for (size_t i = 0; i < 6 && wanted[i] <= widths[w]; i++) {
            for (enum kn_type type = 0; type < KN_TYPES; type++) {
                const enum kn_distribution d = (enum kn_distribution)((w + i) % KN_DISTRIBUTIONS);
                struct row_matrix in = row_matrix_make(type, 3, widths[w], w, w + 1);
                row_draw(&stage, &in, d, 1);
                find(&stage, &in, wanted[i], kn_distribution_name(d));
                row_matrix_end(&in);
            }
        }
    }
    row_stage_end(&stage);
}

/* All of a row, in order. */
Test(top_k, as_many_as_there_are_is_sorting) {
    struct row_stage stage = row_stage_begin(2);
    for (enum kn_type type = 0; type < KN_TYPES; type++) {
        struct row_matrix in = row_matrix_make(type, 2, 777, 1, 1);
        row_draw(&stage, &in, KN_NORMAL, 1);
        find(&stage, &in, 777, "all");
        row_matrix_end(&in);
    }
    row_stage_end(&stage);
}

enum { LONG = 20011, ROWS = 6 };

/* Goal: rows that leave more candidates than there is room for: in order, against it, all equal,
 * few values, and the large ones all with one thread. */
static void fill_against(float *values) {
    for (size_t c = 0; c < LONG; c++) {
        values[c] = (float)c;
        values[LONG + c] = -(float)c;
        values[2 * LONG + c] = -3;
        values[3 * LONG + c] = (float)(c % 3);
        values[4 * LONG + c] = c / 4 % 512 < 2 ? 100 + (float)(c % 89) : -(float)(c % 97);
        values[5 * LONG + c] = c % 2 == 0 ? 0.0f : -0.0f;
    }
}

Test(top_k, no_row_overflows_the_candidates) {
    static const size_t wanted[] = {1, 4, 64, 512, 513, 1024};
    float *values = malloc(ROWS * LONG * sizeof *values);
    struct row_stage stage = row_stage_begin(3);
    cr_assert(values != NULL);
    fill_against(values);
    for (enum kn_type type = 0; type < KN_TYPES; type++) {
        struct row_matrix in = row_matrix_make(type, ROWS, LONG, 0, type == KN_F32 ? 0 : 1);
        row_fill(&in, values);
        for (size_t i = 0; i < 6; i++) {
            if (test_takes_trial()) find(&stage, &in, wanted[i], "against it");
        }
        row_matrix_end(&in);
    }
    row_stage_end(&stage);
    free(values);
}

/* ---- whole rows ------------------------------------------------------------------------------ */

static const char *const of_whole[] = {"warp", "pass"};

static bool has_whole(void) {
    return tol_context_device(test_context())->compute_capability >= 90;
}

/* Rows of one piece, of as many as the lanes of a warp hold at most, and of one more. */
Test(top_k, whole_rows_are_the_definition_too) {
    static const size_t widths[] = {8, 136, 1024, 1032, 4096, 4104, 40000};
    static const size_t wanted[] = {1, 7, 50, 63, 64};
    if (!has_whole()) cr_skip_test("before 9.0");
    struct row_stage stage = row_stage_begin(7);
    for (size_t i = 0; i < 2 * 7 * 5 * KN_TYPES; i++) {
        const size_t columns = widths[i / 2 % 7], k = wanted[i / 14 % 5];
        const enum kn_distribution d = (enum kn_distribution)(i / 2 % KN_DISTRIBUTIONS);
        if ((columns > 4096 && i % 2 == 0) || k > columns || !test_takes_trial()) continue;
        const size_t skew = i % 4 < 2 ? 0 : 8;
        struct row_matrix in = row_matrix_make(i / 70, columns > 4104 ? 2 : 5, columns, 8, skew);
        row_draw(&stage, &in, d, 1);
        find_by(&stage, &in, k, of_whole[i % 2], kn_distribution_name(d));
        row_matrix_end(&in);
    }
    row_stage_end(&stage);
}

/* Goal: rows of which more elements reach a threshold than a warp sorts, or than there is room for:
 * in order, against it, equal, a few values, large ones in one lane, zeros, NaNs and infinities,
 * fewer and more of each than are wanted. */
enum { KINDS = 14 };
static float of_kind(size_t kind, size_t c, size_t columns) {
    switch (kind) {
    case 0:
        return (float)c;
    case 1:
        return -(float)c;
    case 2:
        return -3;
    case 3:
        return (float)(c % 3);
    case 4:
        return c / 8 % 32 == 5 ? 100 + (float)(c % 89) : -(float)(c % 97);
    case 5:
        return c % 2 == 0 ? -0.0f : 0.0f;
    case 6:
        return -INFINITY;
    case 7:
        return c % 3 == 0 ? NAN : (float)c;
    case 8:
        return c < 40 || c + 100 > columns ? INFINITY : -(float)c;
    case 9:
        return c % 31 == 7 && c < 500 ? NAN : c % 5 == 0 ? INFINITY : -INFINITY;
    case 10:
        return c % 2 == 0 ? NAN : INFINITY;
    case 11:
        return c % 50 == 3 ? 2 : c % 7 == 0 ? 1 : 0;
    case 12:
        return c < 20 ? 1 : -INFINITY;
    default:
        return c % 400 == 1 ? 5 : -0.0f;
    }
}

Test(top_k, no_whole_row_overflows_what_it_is_kept_in) {
    static const size_t widths[] = {256, 1024, 4096, 33000};
    static const size_t wanted[] = {1, 20, 64};
    if (!has_whole()) cr_skip_test("before 9.0");
    struct row_stage stage = row_stage_begin(8);
    for (size_t i = 0; i < 2 * 4 * KN_TYPES; i++) {
        const size_t columns = widths[i / 2 % 4];
        if ((columns > 4096 && i % 2 == 0) || !test_takes_trial()) continue;
        float *values = malloc(KINDS * columns * sizeof *values);
        struct row_matrix in = row_matrix_make(i / 8, KINDS, columns, 0, 0);
        cr_assert(values != NULL);
        for (size_t c = 0; c < KINDS * columns; c++) {
            values[c] = of_kind(c / columns, c % columns, columns);
        }
        row_fill(&in, values);
        for (size_t w = 0; w < 3; w++) {
            find_by(&stage, &in, wanted[w], of_whole[i % 2], "against it");
        }
        row_matrix_end(&in);
        free(values);
    }
    row_stage_end(&stage);
}

Test(top_k, equals_zeros_infinities_and_nans_have_stated_outcomes) {
    enum { COLUMNS = 300 };
    static float values[4 * COLUMNS];
    static const int nans[] = {200, 201, 202};
    int found[3];
    struct row_stage stage = row_stage_begin(4);
    struct row_matrix in = row_matrix_make(KN_F32, 4, COLUMNS, 0, 1);
    for (size_t c = 0; c < COLUMNS; c++) {
        values[c] = c == 10 ? 0.0f : -0.0f; /* equal zeros: the first columns */
        values[COLUMNS + c] = -INFINITY;    /* nothing is larger */
        values[2 * COLUMNS + c] = c == 299 ? INFINITY : 1;
        values[3 * COLUMNS + c] = c >= 200 ? NAN : INFINITY; /* the first NaNs */
    }
    row_fill(&in, values);
    for (size_t k = 1; k <= 300; k = k * 3 + 1) find(&stage, &in, k, "special");
    cr_assert(kn_top_k_oracle(values + 3 * COLUMNS, COLUMNS, 3, found));
    cr_assert(memcmp(found, nans, sizeof nans) == 0);
    row_matrix_end(&in);
    row_stage_end(&stage);
}

Test(top_k, one_of_the_two_outputs_is_enough) {
    struct row_stage stage = row_stage_begin(5);
    tol_auto_buffer struct tol_buffer *buffer = NULL;
    float values[6];
    int columns[2];
    MUST(tol_buffer_create(test_context(), 16, 4, &buffer));
    MUST(tol_buffer_write_at(buffer, 0, (float[]){1, 5, 2, 4, 3}, 20));
    struct kn_top_k wish = {
        .rows = 1, .columns = 5, .k = 2, .in = {buffer, 0, 0}, .values = {buffer, 6, 0}};
    MUST(kn_top_k(stage.kernels, stage.stream, &wish));
    wish.values.buffer = NULL, wish.indices = (struct kn_rows){buffer, 8, 0};
    MUST(kn_top_k(stage.kernels, stage.stream, &wish));
    MUST(tol_stream_synchronize(stage.stream));
    MUST(tol_buffer_read_at(buffer, 24, values, 2 * sizeof *values));
    MUST(tol_buffer_read_at(buffer, 32, columns, sizeof columns));
    cr_assert(values[0] == 5 && values[1] == 4 && columns[0] == 1 && columns[1] == 3);
    row_stage_end(&stage);
}

Test(top_k, what_cannot_be_is_refused) {
    struct row_stage stage = row_stage_begin(6);
    tol_auto_buffer struct tol_buffer *buffer = NULL;
    MUST(tol_buffer_create(test_context(), 4096, 4, &buffer));
    MUST(tol_buffer_fill_at(buffer, 0, 0, 4, 4096));
    const struct kn_top_k good = {.rows = 2,
                                  .columns = 32,
                                  .k = 4,
                                  .in = {buffer, 0, 0},
                                  .values = {buffer, 64, 0},
                                  .indices = {buffer, 72, 0}};
    struct kn_top_k bad = good;
    MUST(kn_top_k(stage.kernels, stage.stream, &good));
    bad.k = 0;
    MUST_FAIL(kn_top_k(stage.kernels, stage.stream, &bad), TOL_INVALID_ARGUMENT,
              "the largest 0 of rows of 32 elements");
    bad.k = 33;
    MUST_FAIL(kn_top_k(stage.kernels, stage.stream, &bad), TOL_INVALID_ARGUMENT,
              "the largest 33 of rows of 32 elements");
    bad.k = 1025, bad.columns = 2000;
    MUST_FAIL(kn_top_k(stage.kernels, stage.stream, &bad), TOL_OVER_LIMIT, "at most 1024");
    bad = good, bad.values.buffer = bad.indices.buffer = NULL;
    MUST_FAIL(kn_top_k(stage.kernels, stage.stream, &bad), TOL_INVALID_ARGUMENT, "neither");
    bad = good, bad.values.offset = 60;
    MUST_FAIL(kn_top_k(stage.kernels, stage.stream, &bad), TOL_INVALID_ARGUMENT,
              "values overlaps in");
    bad = good, bad.indices.offset = 71;
    MUST_FAIL(kn_top_k(stage.kernels, stage.stream, &bad), TOL_INVALID_ARGUMENT,
              "values overlaps indices");
    bad = good, bad.values.stride = 3;
    MUST_FAIL(kn_top_k(stage.kernels, stage.stream, &bad), TOL_INVALID_ARGUMENT, "values");
    bad = good, bad.indices.offset = 4090;
    MUST_FAIL(kn_top_k(stage.kernels, stage.stream, &bad), TOL_OUT_OF_RANGE, "indices");
    bad = good, bad.type = KN_TYPES;
    MUST_FAIL(kn_top_k(stage.kernels, stage.stream, &bad), TOL_INVALID_ARGUMENT, "type");
    bad = good, bad.rows = 0, bad.k = 0;
    MUST(kn_top_k(stage.kernels, stage.stream, &bad));
    bad = good, bad.variant = "pass", bad.in.offset = 1, bad.rows = 1;
    MUST_FAIL(kn_top_k(stage.kernels, stage.stream, &bad), TOL_UNSUPPORTED, "multiple of 16");
    bad = good, bad.variant = "warp", bad.columns = 1000, bad.k = 65, bad.rows = 1;
    bad.values.offset = 1000, bad.indices.offset = 1100;
    MUST_FAIL(kn_top_k(stage.kernels, stage.stream, &bad), TOL_UNSUPPORTED, "k is above 64");
    row_stage_end(&stage);
}
