/*
 * layernorm and RMSNorm: every variant against the definition, over rows that divide nothing.
 */
#include "norm/norm.h"
#include "row/row_stage_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

TestSuite(norm, .fini = test_end);

struct trial {
    const char *variant; /* NULL: the best */
    enum kn_norm_kind kind;
    enum kn_type type, affine_type;
    size_t rows, columns, gap, skew;
    size_t out_gap; /* 0: gap + 1 */
    enum kn_distribution distribution;
    double magnitude;
    bool weight, bias, in_place;
};

/*
 * Sums of n terms are off by at most this number of roundoffs of the sum of their sizes; the mean
 * by that of the largest element, which the deviation divides; the factor by half of the squares'.
 * Then weight, bias and the type.
 */
static void allow(const struct trial *t, const float *in, const float *weight, const float *bias,
                  double epsilon, const double *oracle, double *allowed) {
    const double chain = 0x1p-24 * ((double)t->columns / 32 + 24);
    double mean = 0, square = 0, largest = 0;
    for (size_t c = 0; c < t->columns; c++) {
        if (t->kind == KN_LAYERNORM) mean += (double)in[c] / (double)t->columns;
        largest = fmax(largest, fabs((double)in[c]));
    }
    for (size_t c = 0; c < t->columns; c++) {
        square += pow((double)in[c] - mean, 2) / (double)t->columns;
    }
    const double deviation = sqrt(square + epsilon);
    const double shift = t->kind == KN_LAYERNORM ? chain * largest / deviation : 0;
    for (size_t c = 0; c < t->columns; c++) {
        const double w = weight != NULL ? fabs((double)weight[c]) : 1;
        const double b = bias != NULL ? fabs((double)bias[c]) : 0;
        const double y = fabs((double)in[c] - mean) / deviation;
        allowed[c] = w * (shift + y * (chain + shift * shift)) + 0x1p-22 * (w * y + b) +
                     kn_type_roundoff(t->type) * fabs(oracle[c]) +
                     (t->type == KN_F16 ? 0x1p-24 : 0x1p-126);
    }
}

static void run(struct row_stage *stage, const struct trial *t) {
    const float epsilon = 1e-5f;
    const size_t row = t->columns;
    struct row_matrix in = row_matrix_make(t->type, t->rows, row, t->gap, t->skew);
    const size_t out_gap = t->out_gap != 0 ? t->out_gap : t->gap + 1;
    struct row_matrix out = row_matrix_make(t->type, t->rows, row, out_gap, t->skew / 2);
    struct row_matrix weight = row_matrix_make(t->affine_type, 1, row, 0, t->skew / 3);
    struct row_matrix bias = row_matrix_make(t->affine_type, 1, row, 0, t->skew);
    double *oracle = malloc(t->rows * row * sizeof *oracle);
    double *allowed = malloc(t->rows * row * sizeof *allowed);
    const float *w = t->weight ? weight.values : NULL, *b = t->bias ? bias.values : NULL;
    cr_assert(oracle != NULL && allowed != NULL);
    row_draw(stage, &in, t->distribution, t->magnitude);
    row_draw(stage, &weight, KN_NORMAL, 1);
    row_draw(stage, &bias, KN_UNIFORM, 1);
    MUST(kn_norm(
        stage->kernels, stage->stream,
        &(struct kn_norm){.kind = t->kind,
                          .type = t->type,
                          .affine_type = t->affine_type,
                          .rows = t->rows,
                          .columns = row,
                          .in = row_matrix_rows(&in),
                          .out = row_matrix_rows(t->in_place ? &in : &out),
                          .weight = t->weight ? row_matrix_rows(&weight) : (struct kn_rows){0},
                          .bias = t->bias ? row_matrix_rows(&bias) : (struct kn_rows){0},
                          .epsilon = epsilon,
                          .variant = t->variant}));
    for (size_t r = 0; r < t->rows; r++) {
        const float *values = in.values + r * row;
        kn_norm_oracle(t->kind, values, w, b, row, (double)epsilon, oracle + r * row);
        allow(t, values, w, b, (double)epsilon, oracle + r * row, allowed + r * row);
    }
    row_expect(stage, t->in_place ? &in : &out, oracle, (struct kn_tolerance){0, 0}, allowed,
               "%s %s, gap %zu, skew %zu, %s", t->variant != NULL ? t->variant : "best",
               t->kind == KN_LAYERNORM ? "layernorm" : "RMSNorm", t->gap, t->skew,
               kn_distribution_name(t->distribution));
    row_matrix_end(&in);
    row_matrix_end(&out);
    row_matrix_end(&weight);
    row_matrix_end(&bias);
    free(oracle);
    free(allowed);
}

static const char *const names[] = {"registers", "naive"};

Test(norm, every_variant_is_the_definition) {
    struct row_stage stage = row_stage_begin(1);
    for (size_t v = 0; v < 2; v++) {
        for (enum kn_type type = 0; type < KN_TYPES; type++) {
            for (size_t s = 0; s < ROW_SHAPES; s++) {
                struct trial t = {.variant = names[v],
                                  .kind = s % 2 == 0 ? KN_LAYERNORM : KN_RMSNORM,
                                  .type = type,
                                  .affine_type = s % 3 == 0 ? KN_F32 : type,
                                  .rows = row_shapes[s][0],
                                  .columns = row_shapes[s][1],
                                  .distribution = KN_NORMAL,
                                  .magnitude = 3};
                run(&stage, &t);
                t.gap = 3, t.skew = 1 + s % 7, t.weight = true, t.bias = s % 2 == 0;
                run(&stage, &t);
                t.kind = t.kind == KN_LAYERNORM ? KN_RMSNORM : KN_LAYERNORM, t.in_place = true;
                run(&stage, &t);
            }
        }
    }
    row_stage_end(&stage);
}

Test(norm, every_distribution_is_survived) {
    struct row_stage stage = row_stage_begin(2);
    for (size_t v = 0; v < 2; v++) {
        for (enum kn_distribution d = 0; d < KN_DISTRIBUTIONS; d++) {
            for (enum kn_type type = 0; type < KN_TYPES; type++) {
                run(&stage, &(struct trial){.variant = names[v],
                                            .kind = d % 2 == 0 ? KN_LAYERNORM : KN_RMSNORM,
                                            .type = type,
                                            .affine_type = KN_F32,
                                            .rows = 3,
                                            .columns = 301,
                                            .distribution = d,
                                            .magnitude = 1,
                                            .weight = true});
            }
        }
    }
    run(&stage, &(struct trial){.type = KN_F32,
                                .affine_type = KN_F32,
                                .rows = 1,
                                .columns = 20011,
                                .distribution = KN_NORMAL,
                                .magnitude = 5});
    row_stage_end(&stage);
}

/* Two, four or two, and eight blocks per row. */
enum { CLUSTERS = 6 };
static const char *const clusters[CLUSTERS] = {"cluster_2", "cluster_4", "cluster_8",
                                               "behind_2",  "behind_2",  "behind_8"};

/* Floats have no variant of two blocks: one block, and slices_2, are faster. */
static bool has_variant(enum kn_type type, size_t cluster) {
    return type != KN_F32 || strstr(clusters[cluster], "_2") == NULL;
}

/* As in softmax's test. */
Test(norm, rows_of_clusters_are_the_definition_too) {
    static const size_t columns[] = {8, 304, 32000, 128256};
    if (tol_context_device(test_context())->compute_capability < 90) cr_skip_test("before 9.0");
    struct row_stage stage = row_stage_begin(8);
    for (size_t i = 0; i < CLUSTERS * 4 * KN_TYPES * 2; i++) {
        const size_t v = i % CLUSTERS, c = i / CLUSTERS % 4;
        const enum kn_type type = i / (CLUSTERS * 4) % KN_TYPES;
        if ((c == 3 && v % 3 < 2) || !has_variant(type, v) || !test_takes_trial()) continue;
        run(&stage, &(struct trial){.variant = clusters[v],
                                    .kind = i / (CLUSTERS * 12) == 0 ? KN_LAYERNORM : KN_RMSNORM,
                                    .type = type,
                                    .affine_type = type,
                                    .rows = c < 2 ? 5 : 2,
                                    .columns = columns[c],
                                    .gap = 8,
                                    .out_gap = 16,
                                    .skew = 48,
                                    .distribution = c == 1 ? i % KN_DISTRIBUTIONS : KN_NORMAL,
                                    .magnitude = 3,
                                    .weight = v % 3 != 1,
                                    .bias = v % 3 != 2,
                                    .in_place = v % 3 == 2});
    }
    row_stage_end(&stage);
}

/* As in softmax's test; with weight and bias, one of them, and neither. */
Test(norm, clusters_that_stay_go_on_to_other_rows) {
    if (tol_context_device(test_context())->compute_capability < 90) cr_skip_test("before 9.0");
    const size_t blocks = (size_t)tol_context_device(test_context())->multiprocessors * 8;
    struct row_stage stage = row_stage_begin(9);
    for (size_t i = 0; i < 3 * 4 * 2; i++) {
        const enum kn_type type = i % KN_TYPES;
        if (!has_variant(type, 3 + i / 2 % 3)) continue;
        run(&stage, &(struct trial){.variant = clusters[3 + i / 2 % 3],
                                    .kind = i % 2 == 0 ? KN_LAYERNORM : KN_RMSNORM,
                                    .type = type,
                                    .affine_type = type,
                                    .rows = blocks / (2u << i / 2 % 3) * 4 + 3,
                                    .columns = 304,
                                    .gap = 8,
                                    .out_gap = 16,
                                    .distribution = KN_NORMAL,
                                    .magnitude = 3,
                                    .weight = i / 6 % 2 == 0,
                                    .bias = i / 12 == 0,
                                    .in_place = i % 2 == 0});
    }
    row_stage_end(&stage);
}

Test(norm, whole_rows_are_the_definition_too) {
    static const char *const whole[] = {"whole", "ahead", "early"};
    struct row_stage stage = row_stage_begin(6);
    for (size_t v = 0; v < 3; v++) {
        for (size_t s = 0; s < WHOLE_SHAPES; s++) {
            struct trial t = {.variant = whole[v],
                              .kind = s % 4 < 2 ? KN_LAYERNORM : KN_RMSNORM,
                              .type = s % 2 == 0 ? KN_F16 : KN_BF16,
                              .rows = whole_shapes[s][0],
                              .columns = whole_shapes[s][1],
                              .distribution = KN_NORMAL,
                              .magnitude = 3,
                              .weight = s % 3 != 0,
                              .bias = s % 3 == 1,
                              .in_place = true};
            t.affine_type = t.type;
            run(&stage, &t);
            if (s + 1 == WHOLE_SHAPES) continue;
            t.kind = t.kind == KN_LAYERNORM ? KN_RMSNORM : KN_LAYERNORM;
            t.affine_type = t.type = s % 2 == 0 ? KN_BF16 : KN_F16;
            t.gap = 8, t.out_gap = 16, t.in_place = false, t.weight = !t.weight, t.bias = !t.bias;
            run(&stage, &t);
        }
        for (enum kn_distribution d = 0; d < KN_DISTRIBUTIONS; d++) {
            for (enum kn_type type = KN_F16; type <= KN_BF16; type++) {
                run(&stage, &(struct trial){.variant = whole[v],
                                            .kind = d % 2 == 0 ? KN_LAYERNORM : KN_RMSNORM,
                                            .type = type,
                                            .affine_type = type,
                                            .rows = 3,
                                            .columns = 304,
                                            .distribution = d,
                                            .magnitude = 1,
                                            .weight = true,
                                            .in_place = true});
            }
        }
    }
    const bool slices = tol_context_device(test_context())->compute_capability >= 90;
    for (size_t i = 0; i < 4 * 3 * 2 && slices; i++) {
        run(&stage, &(struct trial){.variant = i < 18 ? "slices_1" : "slices_2",
                                    .kind = i % 2 == 0 ? KN_LAYERNORM : KN_RMSNORM,
                                    .type = i / 6 % KN_TYPES,
                                    .affine_type = i / 6 % KN_TYPES,
                                    .rows = (size_t[]){2, 60, 5}[i / 2 % 3],
                                    .columns = (size_t[]){16384, 304, 8}[i / 2 % 3],
                                    .gap = 8,
                                    .out_gap = 16,
                                    .distribution = KN_NORMAL,
                                    .magnitude = 3,
                                    .weight = i / 2 % 3 != 1,
                                    .bias = i / 2 % 3 != 2,
                                    .in_place = i % 2 == 0});
    }
    run(&stage, &(struct trial){.variant = "whole",
                                .type = KN_F32,
                                .affine_type = KN_F32,
                                .rows = 2,
                                .columns = 16388,
                                .distribution = KN_NORMAL,
                                .magnitude = 3,
                                .weight = true,
                                .bias = true,
                                .in_place = true});
    row_stage_end(&stage);
}

/* Milestone M8. The mean is far from 0, where E[x^2] - E[x]^2 would lose the variance. */
Test(norm, a_row_gets_mean_zero_and_variance_one) {
    enum { ROWS = 4, COLUMNS = 1024 };
    static float values[ROWS * COLUMNS], got[ROWS * COLUMNS];
    struct row_stage stage = row_stage_begin(8);
    struct row_matrix in = row_matrix_make(KN_F32, ROWS, COLUMNS, 0, 0);
    struct row_matrix out = row_matrix_make(KN_F32, ROWS, COLUMNS, 0, 0);
    kn_inputs_draw(KN_NORMAL, &stage.random, 2, values, ROWS * COLUMNS);
    for (size_t i = 0; i < ROWS * COLUMNS; i++) values[i] += 1000;
    row_fill(&in, values);
    for (size_t v = 0; v < 2; v++) {
        MUST(kn_norm(stage.kernels, stage.stream,
                     &(struct kn_norm){.kind = KN_LAYERNORM,
                                       .type = KN_F32,
                                       .rows = ROWS,
                                       .columns = COLUMNS,
                                       .in = row_matrix_rows(&in),
                                       .out = row_matrix_rows(&out),
                                       .variant = names[v]}));
        MUST(tol_stream_synchronize(stage.stream));
        MUST(kn_guarded_read(&out.guarded, got));
        for (size_t r = 0; r < ROWS; r++) {
            double mean = 0, variance = 0;
            for (size_t c = 0; c < COLUMNS; c++) mean += (double)got[r * COLUMNS + c] / COLUMNS;
            for (size_t c = 0; c < COLUMNS; c++) {
                variance += pow((double)got[r * COLUMNS + c] - mean, 2) / COLUMNS;
            }
            cr_assert(!(fabs(mean) > 1e-4), "%s: row %zu has mean %g", names[v], r, mean);
            cr_assert(!(fabs(variance - 1) > 1e-4), "%s: row %zu has variance %g", names[v], r,
                      variance);
        }
        MUST(kn_guarded_poison(&out.guarded));
    }
    row_matrix_end(&in);
    row_matrix_end(&out);
    row_stage_end(&stage);
}

Test(norm, what_cannot_be_is_refused) {
    struct row_stage stage = row_stage_begin(5);
    tol_auto_buffer struct tol_buffer *buffer = NULL, *other = NULL;
    MUST(tol_buffer_create(test_context(), 1024, 4, &buffer));
    MUST(tol_buffer_create(test_context(), 1024, 4, &other));
    const struct kn_norm good = {
        .type = KN_F32, .rows = 4, .columns = 256, .in = {buffer, 0, 0}, .out = {other, 0, 0}};
    struct kn_norm bad = good;
#define REFUSED(expected, text)                                                                    \
    do {                                                                                           \
        MUST_FAIL(kn_norm(stage.kernels, stage.stream, &bad), expected, text);                     \
        bad = good;                                                                                \
    } while (0)
    MUST(tol_buffer_fill_at(buffer, 0, 0, 4, 1024));
    MUST(kn_norm(stage.kernels, stage.stream, &good));
    bad.variant = "whole", bad.type = KN_BF16, bad.columns = 252;
    REFUSED(TOL_UNSUPPORTED, "no multiple of 16");
    bad.rows = 5;
    REFUSED(TOL_OUT_OF_RANGE, "4096 bytes");
    bad.out.buffer = NULL;
    REFUSED(TOL_INVALID_ARGUMENT, "out has no buffer");
    bad.weight = (struct kn_rows){other, 0, 0};
    REFUSED(TOL_INVALID_ARGUMENT, "out overlaps weight");
    bad.bias = (struct kn_rows){other, 512, 0};
    REFUSED(TOL_INVALID_ARGUMENT, "out overlaps bias");
    bad.bias = (struct kn_rows){buffer, 1000, 0};
    REFUSED(TOL_OUT_OF_RANGE, "bias");
    bad.affine_type = KN_F16;
    REFUSED(TOL_INVALID_ARGUMENT, "f16 do not go with rows of f32");
    bad.epsilon = -1;
    REFUSED(TOL_INVALID_ARGUMENT, "epsilon of -1");
    bad.kind = (enum kn_norm_kind)2;
    REFUSED(TOL_INVALID_ARGUMENT, "does not exist");
    bad.variant = "registers", bad.rows = 1, bad.columns = 100000;
    REFUSED(TOL_OUT_OF_RANGE, "100000");
    bad.columns = 0;
    MUST(kn_norm(stage.kernels, stage.stream, &bad));
    MUST_FAIL(kn_norm(stage.kernels, stage.stream, NULL), TOL_INVALID_ARGUMENT, "a problem");
    row_stage_end(&stage);
}
