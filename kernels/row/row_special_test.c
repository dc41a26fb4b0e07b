/*
 * NaN and infinities in rows: what norm.h and softmax.h say becomes of them, asked of every kernel
 * in their tables, each alone in a table of its own.
 *
 * Rows of nine kinds repeat, so that a kernel whose blocks stay goes from one kind to another, and
 * what is left of a NaN in shared memory would show. What a kernel refuses is passed by; what none
 * of its shapes is for fails.
 */
#include "norm/norm.h"
#include "softmax/softmax.h"

#include "row/row_stage_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The soft device looks for races as well, and ends the launch of a kernel that has one. */
static void begin(void) {
    setenv("TOLLENS_SOFT_CHECK", "memory,init,sync,race,fatal", 1);
}

TestSuite(row_special, .init = begin, .fini = test_end);

/* The special values are in column FIRST, in the last one, or everywhere. */
enum { FIRST = 3, KINDS = 9 };

/* A warp per row, one or two pieces per lane; a block per row; and rows at any address. Two
 * shapes have more rows than the persistent blocks of the soft device take in one turn. */
static const struct {
    size_t rows, columns, skew;
} shapes[] = {{72, 40, 0}, {9, 264, 0}, {24, 1160, 0}, {9, 45, 1}};
enum { SHAPES = sizeof shapes / sizeof shapes[0], MOST = 24 * 1160 };

/* large comes with alternating signs, so that the mean is 0 and the squares are what they are. */
static void draw(float *values, size_t rows, size_t columns, double large) {
    for (size_t r = 0; r < rows; r++) {
        float *row = values + r * columns;
        for (size_t c = 0; c < columns; c++) row[c] = (float)(c % 5);
        switch (r % KINDS) {
        case 0:
            row[FIRST] = NAN;
            break;
        case 1:
            row[columns - 1] = INFINITY;
            break;
        case 2:
            row[FIRST] = -INFINITY;
            break;
        case 3:
            row[columns - 1] = NAN;
            break;
        case 4:
            row[FIRST] = -INFINITY, row[columns - 1] = INFINITY;
            break;
        case 5:
            for (size_t c = 0; c < columns; c++) row[c] = -INFINITY;
            break;
        case 6:
            for (size_t c = 0; c < columns; c++) row[c] = (float)(c % 2 == 0 ? large : -large);
            break;
        case 7:
            row[12] = NAN;
            break;
        }
    }
}

/* Holds out against oracle, and says which kernel failed. */
static void judge(struct row_stage *stage, const struct row_matrix *out, const double *oracle,
                  const char *entry) {
    const double unit = 2 * kn_type_roundoff(out->type) + 2e-6;
    const struct kn_deviation deviation =
        row_compare(stage, out, oracle, (struct kn_tolerance){unit, unit}, NULL);
    char text[400];
    cr_assert(deviation.failed == 0, "%s, %zu columns, row %lld: %s", entry, out->columns,
              (long long)deviation.first / (long long)out->columns,
              kn_deviation_text(&deviation, text, sizeof text));
}

/* Whether the device could run it at all. */
static bool is_for_this_device(const struct kn_variant *row) {
    return tol_context_device(test_context())->compute_capability >= row->compute_capability_min;
}

/* ---- norm ------------------------------------------------------------------------------------ */

static size_t count_of(const float *row, size_t columns, bool of_nan) {
    size_t count = 0;
    for (size_t c = 0; c < columns; c++) count += of_nan ? isnan(row[c]) != 0 : isinf(row[c]) != 0;
    return count;
}

static void norm_outcome(enum kn_norm_kind kind, const float *row, size_t columns, double *out) {
    const bool nan = count_of(row, columns, true) > 0, inf = count_of(row, columns, false) > 0;
    kn_norm_oracle(kind, row, NULL, NULL, columns, 1e-5, out);
    for (size_t c = 0; c < columns; c++) {
        if (nan || (inf && kind == KN_LAYERNORM))
            out[c] = NAN;
        else if (inf)
            out[c] = isinf(row[c]) ? NAN : 0;
        else if (fabs((double)row[c]) > 0x1p63)
            out[c] = 0;
    }
}

/* Column 5 of weight is NaN and column 9 of bias infinite: these alone get it. */
static bool norm_runs(struct row_stage *stage, const struct kn_variant *kernel, enum kn_type type,
                      size_t shape, enum kn_norm_kind kind) {
    static float values[MOST];
    static double oracle[MOST];
    const struct kn_variants alone = {"norm", kernel, 1};
    const size_t rows = shapes[shape].rows, columns = shapes[shape].columns;
    struct row_matrix in = row_matrix_make(type, rows, columns, 0, shapes[shape].skew);
    struct row_matrix out = row_matrix_make(type, rows, columns, 0, 0);
    struct row_matrix weight = row_matrix_make(type, 1, columns, 0, 0);
    struct row_matrix bias = row_matrix_make(type, 1, columns, 0, 0);
    for (size_t c = 0; c < columns; c++) values[c] = c == 5 ? NAN : 2;
    row_fill(&weight, values);
    for (size_t c = 0; c < columns; c++) values[c] = c == 9 ? INFINITY : 0.5f;
    row_fill(&bias, values);
    draw(values, rows, columns, type == KN_F16 ? 60000 : 1e30);
    row_fill(&in, values);
    const tol_status status = kn_norm(stage->kernels, stage->stream,
                                      &(struct kn_norm){.kind = kind,
                                                        .type = type,
                                                        .affine_type = type,
                                                        .rows = rows,
                                                        .columns = columns,
                                                        .in = row_matrix_rows(&in),
                                                        .out = row_matrix_rows(&out),
                                                        .weight = row_matrix_rows(&weight),
                                                        .bias = row_matrix_rows(&bias),
                                                        .epsilon = 1e-5f,
                                                        .variants = &alone});
    if (status != TOL_UNSUPPORTED) MUST(status);
    for (size_t r = 0; r < rows; r++) {
        double *row = oracle + r * columns;
        norm_outcome(kind, in.values + r * columns, columns, row);
        for (size_t c = 0; c < columns; c++) {
            row[c] = row[c] * (double)weight.values[c] + (double)bias.values[c];
        }
    }
    row_matrix_end(&weight);
    row_matrix_end(&bias);
    if (status == TOL_OK) judge(stage, &out, oracle, kernel->entry);
    row_matrix_end(&in);
    row_matrix_end(&out);
    return status == TOL_OK;
}

Test(row_special, every_kernel_of_norm_has_the_stated_outcomes) {
    struct row_stage stage = row_stage_begin(1);
    for (size_t i = 0; i < kn_norm_variants.count; i++) {
        const struct kn_variant *kernel = &kn_norm_variants.rows[i];
        size_t ran = 0;
        for (size_t s = 0; s < SHAPES * KN_TYPES; s++) {
            const enum kn_type type = (enum kn_type)(s / SHAPES);
            ran += norm_runs(&stage, kernel, type, s % SHAPES, KN_LAYERNORM);
            ran += norm_runs(&stage, kernel, type, s % SHAPES, KN_RMSNORM);
        }
        cr_assert(ran >= 2 || !is_for_this_device(kernel), "no shape is for %s", kernel->entry);
    }
    row_stage_end(&stage);
}

/* ---- softmax --------------------------------------------------------------------------------- */

static void softmax_outcome(const float *row, const unsigned char *mask, size_t columns,
                            double scale, double *out) {
    bool undefined = false;
    for (size_t c = 0; c < columns; c++) {
        const double x = scale * (double)row[c];
        undefined |= (mask == NULL || mask[c] != 0) && (isnan(x) || x == INFINITY);
    }
    kn_softmax_oracle(row, mask, columns, scale, out);
    for (size_t c = 0; c < columns && undefined; c++) out[c] = NAN;
}

/* A mask, where there is one, leaves out what is special in kinds 0 to 4. */
static bool softmax_runs(struct row_stage *stage, const struct kn_variant *kernel,
                         enum kn_type type, size_t shape, double scale, bool masked) {
    static float values[MOST];
    static double oracle[MOST];
    unsigned char mask[1160];
    const struct kn_variants alone = {"softmax", kernel, 1};
    const size_t rows = shapes[shape].rows, columns = shapes[shape].columns;
    tol_auto_buffer struct tol_buffer *mask_buffer = NULL;
    struct row_matrix in = row_matrix_make(type, rows, columns, 0, shapes[shape].skew);
    struct row_matrix out = row_matrix_make(type, rows, columns, 0, 0);
    memset(mask, 1, sizeof mask);
    mask[FIRST] = mask[columns - 1] = 0;
    MUST(tol_buffer_create(test_context(), columns, 1, &mask_buffer));
    MUST(tol_buffer_write(mask_buffer, mask, columns));
    draw(values, rows, columns, type == KN_F16 ? 30000 : 1e30);
    for (size_t i = 0; i < rows * columns; i++) values[i] /= (float)scale;
    row_fill(&in, values);
    const tol_status status =
        kn_softmax(stage->kernels, stage->stream,
                   &(struct kn_softmax){.type = type,
                                        .rows = rows,
                                        .columns = columns,
                                        .in = row_matrix_rows(&in),
                                        .out = row_matrix_rows(&out),
                                        .mask = {.buffer = masked ? mask_buffer : NULL},
                                        .scale = (float)scale,
                                        .variants = &alone});
    if (status != TOL_UNSUPPORTED) MUST(status);
    for (size_t r = 0; r < rows; r++) {
        softmax_outcome(in.values + r * columns, masked ? mask : NULL, columns, scale,
                        oracle + r * columns);
    }
    if (status == TOL_OK) judge(stage, &out, oracle, kernel->entry);
    row_matrix_end(&in);
    row_matrix_end(&out);
    return status == TOL_OK;
}

/* A negative scale turns infinities around. */
Test(row_special, every_kernel_of_softmax_has_the_stated_outcomes) {
    struct row_stage stage = row_stage_begin(2);
    size_t masked = 0;
    for (size_t i = 0; i < kn_softmax_variants.count; i++) {
        const struct kn_variant *kernel = &kn_softmax_variants.rows[i];
        size_t ran = 0;
        for (size_t s = 0; s < SHAPES * KN_TYPES; s++) {
            const enum kn_type type = (enum kn_type)(s / SHAPES);
            ran += softmax_runs(&stage, kernel, type, s % SHAPES, 1, false);
            ran += softmax_runs(&stage, kernel, type, s % SHAPES, -0.5, false);
            masked += softmax_runs(&stage, kernel, type, s % SHAPES, -2, true);
        }
        cr_assert(ran >= 2 || !is_for_this_device(kernel), "no shape is for %s", kernel->entry);
    }
    cr_assert(masked > 0);
    row_stage_end(&stage);
}
