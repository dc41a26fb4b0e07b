/*
 * softmax: every variant against the definition, over rows that divide nothing.
 */
#include "softmax/softmax.h"
#include "row/row_stage_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

TestSuite(softmax, .fini = test_end);

struct trial {
    const char *variant; /* NULL: the best */
    enum kn_type type;
    size_t rows, columns, gap, skew;
    size_t out_gap; /* 0: gap + 1 */
    enum kn_distribution distribution;
    double magnitude;
    float scale; /* 0: 1 */
    int masked;  /* 1: a byte an element, 2: one row for all */
    bool in_place;
};

/* exp's argument is rounded by half a unit of its size, which is at most 104 where exp is not 0;
 * the scaled element by another of its own; then exp, a chain of sums, a quotient and the type. */
static struct kn_tolerance tolerance_of(const struct trial *t, double largest) {
    const double scaled = t->scale == 0 ? 0 : 2 * largest * fabs((double)t->scale);
    const double chain = (double)t->columns / 32 + 16;
    const double least = t->type == KN_F16 ? 0x1p-25 : t->type == KN_BF16 ? 0x1p-134 : 0x1p-148;
    return (struct kn_tolerance){.absolute = least,
                                 .relative = 0x1p-24 * (104 + scaled + chain + 8) +
                                             kn_type_roundoff(t->type)};
}

static void run(struct row_stage *stage, const struct trial *t) {
    struct row_matrix in = row_matrix_make(t->type, t->rows, t->columns, t->gap, t->skew);
    const size_t out_gap = t->out_gap != 0 ? t->out_gap : t->gap + 1;
    struct row_matrix out = row_matrix_make(t->type, t->rows, t->columns, out_gap, t->skew / 2);
    const size_t mask_rows = t->masked == 2 ? 1 : t->rows;
    unsigned char *mask = calloc(mask_rows * t->columns, 1);
    double *oracle = malloc(t->rows * t->columns * sizeof *oracle), largest = 0;
    tol_auto_buffer struct tol_buffer *mask_buffer = NULL;
    cr_assert(mask != NULL && oracle != NULL);
    row_draw(stage, &in, t->distribution, t->magnitude);
    for (size_t i = 0; i < mask_rows * t->columns; i++) {
        mask[i] = kn_random(&stage->random) % 3 != 0 ? (unsigned char)(1 << i % 8) : 0;
    }
    MUST(tol_buffer_create(test_context(), mask_rows * t->columns, 1, &mask_buffer));
    MUST(tol_buffer_write(mask_buffer, mask, mask_rows * t->columns));
    const struct kn_softmax softmax = {.type = t->type,
                                       .rows = t->rows,
                                       .columns = t->columns,
                                       .in = row_matrix_rows(&in),
                                       .out = row_matrix_rows(t->in_place ? &in : &out),
                                       .mask = {.buffer = t->masked ? mask_buffer : NULL,
                                                .stride = t->masked == 1 ? t->columns : 0},
                                       .scale = t->scale,
                                       .variant = t->variant};
    MUST(kn_softmax(stage->kernels, stage->stream, &softmax));
    for (size_t r = 0; r < t->rows; r++) {
        const unsigned char *row = mask + (t->masked == 1 ? r * t->columns : 0);
        kn_softmax_oracle(in.values + r * t->columns, t->masked ? row : NULL, t->columns,
                          t->scale != 0 ? (double)t->scale : 1, oracle + r * t->columns);
    }
    for (size_t i = 0; i < t->rows * t->columns; i++) {
        largest = fmax(largest, fabs((double)in.values[i]));
    }
    row_expect(stage, t->in_place ? &in : &out, oracle, tolerance_of(t, largest), NULL,
               "%s, gap %zu, skew %zu, %s", t->variant != NULL ? t->variant : "best", t->gap,
               t->skew, kn_distribution_name(t->distribution));
    row_matrix_end(&in);
    row_matrix_end(&out);
    free(mask);
    free(oracle);
}

static const char *const names[] = {"registers", "online", "naive"};

Test(softmax, every_variant_is_the_definition) {
    struct row_stage stage = row_stage_begin(1);
    for (size_t v = 0; v < 3; v++) {
        for (enum kn_type type = 0; type < KN_TYPES; type++) {
            for (size_t s = 0; s < ROW_SHAPES; s++) {
                struct trial t = {.variant = names[v],
                                  .type = type,
                                  .rows = row_shapes[s][0],
                                  .columns = row_shapes[s][1],
                                  .distribution = KN_NORMAL,
                                  .magnitude = 3};
                run(&stage, &t);
                t.gap = 3, t.skew = 1 + s % 7, t.masked = (int)(s % 3), t.scale = 0.3f;
                run(&stage, &t);
                t.in_place = true;
                run(&stage, &t);
            }
        }
    }
    row_stage_end(&stage);
}

/* exp overflows where the largest is not taken off; sums of tiny ones; subnormal elements. */
Test(softmax, every_distribution_is_survived) {
    struct row_stage stage = row_stage_begin(2);
    for (size_t v = 0; v < 3; v++) {
        for (enum kn_distribution d = 0; d < KN_DISTRIBUTIONS; d++) {
            for (enum kn_type type = 0; type < KN_TYPES; type++) {
                run(&stage, &(struct trial){.variant = names[v],
                                            .type = type,
                                            .rows = 3,
                                            .columns = 301,
                                            .distribution = d,
                                            .magnitude = 1,
                                            .masked = (int)d % 3});
            }
        }
    }
    row_stage_end(&stage);
}

/* Two, four or two, and eight blocks per row. */
enum { CLUSTERS = 6 };
static const char *const clusters[CLUSTERS] = {"cluster_2", "cluster_4", "cluster_8",
                                               "behind_2",  "behind_2",  "behind_8"};

static bool has_clusters(void) {
    return tol_context_device(test_context())->compute_capability >= 90;
}

/* Rows of one piece, so that most blocks have none; of a few pieces; and the vocabularies of
 * models, the longer of which only eight blocks hold. */
Test(softmax, rows_of_clusters_are_the_definition_too) {
    static const size_t columns[] = {8, 304, 32000, 128256};
    if (!has_clusters()) cr_skip_test("before 9.0");
    struct row_stage stage = row_stage_begin(8);
    for (size_t i = 0; i < CLUSTERS * 4 * KN_TYPES; i++) {
        const size_t v = i % CLUSTERS, c = i / CLUSTERS % 4;
        const enum kn_type type = i / (CLUSTERS * 4);
        if ((c == 3 && v % 3 < 2) || (type == KN_F32 && v == 0) || !test_takes_trial()) continue;
        run(&stage, &(struct trial){.variant = clusters[v],
                                    .type = type,
                                    .rows = c < 2 ? 5 : 2,
                                    .columns = columns[c],
                                    .gap = 8,
                                    .out_gap = 16,
                                    .skew = 16,
                                    .distribution = c == 1 ? i % KN_DISTRIBUTIONS : KN_NORMAL,
                                    .magnitude = 3,
                                    .scale = v % 3 == 1 ? -0.3f : 0,
                                    .in_place = v % 3 == 2});
    }
    row_stage_end(&stage);
}

/* Goal: where a block's own largest element is far below the row's, its share of the sum is tiny,
 * and the small probabilities keep the digits of the type. */
Test(softmax, blocks_far_below_the_largest_keep_their_digits) {
    enum { DEPTHS = 9, COLUMNS = 1024 };
    static float values[DEPTHS * COLUMNS];
    static double oracle[DEPTHS * COLUMNS];
    if (!has_clusters()) cr_skip_test("before 9.0");
    struct row_stage stage = row_stage_begin(10);
    for (size_t i = 0; i < DEPTHS * COLUMNS; i++) {
        const size_t c = i % COLUMNS, depth = 40 + 6 * (i / COLUMNS); /* to 88: exp's end */
        values[i] = c >= COLUMNS - 100 ? 0 : -(float)depth - (float)(c % 3) * 0.5f;
    }
    for (size_t i = 0; i < CLUSTERS * KN_TYPES; i++) {
        const struct trial t = {
            .variant = clusters[i % CLUSTERS], .type = i / CLUSTERS, .columns = COLUMNS};
        if (t.type == KN_F32 && i % CLUSTERS == 0) continue;
        struct row_matrix in = row_matrix_make(t.type, DEPTHS, COLUMNS, 0, 0);
        struct row_matrix out = row_matrix_make(t.type, DEPTHS, COLUMNS, 0, 0);
        row_fill(&in, values);
        for (size_t r = 0; r < DEPTHS; r++) {
            kn_softmax_oracle(in.values + r * COLUMNS, NULL, COLUMNS, 1, oracle + r * COLUMNS);
        }
        MUST(kn_softmax(stage.kernels, stage.stream,
                        &(struct kn_softmax){.type = t.type,
                                             .rows = DEPTHS,
                                             .columns = COLUMNS,
                                             .in = row_matrix_rows(&in),
                                             .out = row_matrix_rows(&out),
                                             .variant = t.variant}));
        row_expect(&stage, &out, oracle, tolerance_of(&t, 90), NULL, "%s %s", t.variant,
                   kn_type_name(t.type));
        row_matrix_end(&in);
        row_matrix_end(&out);
    }
    row_stage_end(&stage);
}

KN_IMAGES(softmax_planted);
#define PLANTED(which)                                                                             \
    {                                                                                              \
        .name = #which, .entry = "softmax_" #which, .images = kn_images_softmax_planted,           \
        .compute_capability_min = 90, .threads = 512, .tile = {1, 4, 0}, .cluster = 4              \
    }

/* Goal: what can go wrong between the blocks of a row is found. */
Test(softmax, each_planted_defect_of_clusters_is_found) {
    static const struct kn_variant rows[] = {PLANTED(lost_block), PLANTED(own_base),
                                             PLANTED(own_largest)};
    static const struct kn_variants planted = {"softmax, with a defect", rows, 3};
    enum { COLUMNS = 3200 };
    if (!has_clusters()) cr_skip_test("before 9.0");
    struct row_stage stage = row_stage_begin(9);
    for (size_t i = 0; i < 3; i++) {
        struct row_matrix in = row_matrix_make(KN_BF16, 1, COLUMNS, 0, 0);
        struct row_matrix out = row_matrix_make(KN_BF16, 1, COLUMNS, 0, 0);
        double *oracle = malloc(COLUMNS * sizeof *oracle);
        float *rising = malloc(COLUMNS * sizeof *rising); /* the largest is in the last block */
        cr_assert(oracle != NULL && rising != NULL);
        for (int c = 0; c < COLUMNS; c++) rising[c] = (float)(c / 8) * 0.25f;
        row_fill(&in, rising);
        kn_softmax_oracle(in.values, NULL, COLUMNS, 1, oracle);
        MUST(kn_softmax(stage.kernels, stage.stream,
                        &(struct kn_softmax){.type = KN_BF16,
                                             .rows = 1,
                                             .columns = COLUMNS,
                                             .in = row_matrix_rows(&in),
                                             .out = row_matrix_rows(&out),
                                             .variant = rows[i].name,
                                             .variants = &planted}));
        const struct trial t = {.type = KN_BF16, .columns = COLUMNS};
        const struct kn_deviation deviation =
            row_compare(&stage, &out, oracle, tolerance_of(&t, 100), NULL);
        cr_assert(deviation.failed > 0, "%s", rows[i].name);
        row_matrix_end(&in);
        row_matrix_end(&out);
        free(rising);
        free(oracle);
    }
    row_stage_end(&stage);
}

/* More rows than the clusters that stay have stages: four rounds and part of a fifth. */
Test(softmax, clusters_that_stay_go_on_to_other_rows) {
    if (!has_clusters()) cr_skip_test("before 9.0");
    const size_t blocks = (size_t)tol_context_device(test_context())->multiprocessors * 8;
    struct row_stage stage = row_stage_begin(10);
    for (size_t i = 0; i < 3 * KN_TYPES; i++) {
        run(&stage, &(struct trial){.variant = clusters[3 + i % 3],
                                    .type = i / 3,
                                    .rows = blocks / (2u << i % 3) * 4 + 3,
                                    .columns = 304,
                                    .gap = 8,
                                    .out_gap = 16,
                                    .distribution = KN_NORMAL,
                                    .magnitude = 3,
                                    .in_place = i % 2 == 0});
    }
    row_stage_end(&stage);
}

KN_IMAGES(softmax_8_slices);
KN_IMAGES(softmax_9_behind);
KN_IMAGES(softmax_slices_planted);
enum { SLICES_COLUMNS = 3200, SLICES_SHARE = SLICES_COLUMNS * 2 / 4 };
/* One block per multiprocessor, and three slices of rows. */
#define SLICES_OF(name_, entry_, image, pieces, blocks)                                            \
    {                                                                                              \
        .name = name_, .entry = "softmax_" entry_, .images = kn_images_softmax_##image,            \
        .compute_capability_min = 90, .threads = 512, .tile = {3, pieces, 1},                      \
        .shared_bytes = SLICES_SHARE * 4 / (blocks)*3, .cluster = blocks                           \
    }

/* The first of `rows` is right, and the others have a defect each. */
static void expect_defects(const char *table, const struct kn_variant *rows, size_t variants) {
    const struct kn_variants planted = {table, rows, variants};
    if (!has_clusters()) cr_skip_test("before 9.0");
    const size_t count = (size_t)tol_context_device(test_context())->multiprocessors * 2 + 3;
    struct row_stage stage = row_stage_begin(11);
    struct row_matrix in = row_matrix_make(KN_BF16, count, SLICES_COLUMNS, 0, 0);
    double *oracle = malloc(count * SLICES_COLUMNS * sizeof *oracle);
    cr_assert(oracle != NULL);
    row_draw(&stage, &in, KN_NORMAL, 3);
    for (size_t r = 0; r < count; r++) {
        kn_softmax_oracle(in.values + r * SLICES_COLUMNS, NULL, SLICES_COLUMNS, 1,
                          oracle + r * SLICES_COLUMNS);
    }
    for (size_t i = 0; i < variants; i++) {
        struct row_matrix out = row_matrix_make(KN_BF16, count, SLICES_COLUMNS, 0, 0);
        MUST(kn_softmax(stage.kernels, stage.stream,
                        &(struct kn_softmax){.type = KN_BF16,
                                             .rows = count,
                                             .columns = SLICES_COLUMNS,
                                             .in = row_matrix_rows(&in),
                                             .out = row_matrix_rows(&out),
                                             .variant = rows[i].name,
                                             .variants = &planted}));
        const struct trial t = {.type = KN_BF16, .columns = SLICES_COLUMNS};
        const struct kn_deviation deviation =
            row_compare(&stage, &out, oracle, tolerance_of(&t, 100), NULL);
        cr_assert((deviation.failed > 0) == (i > 0), "%s: %zu elements", rows[i].name,
                  deviation.failed);
        row_matrix_end(&out);
    }
    row_matrix_end(&in);
    free(oracle);
    row_stage_end(&stage);
}

/* Goal: what can go wrong in persistent blocks is found, and nothing where all is right. */
Test(softmax, each_planted_defect_of_slices_is_found) {
    static const struct kn_variant rows[] = {
        SLICES_OF("right", "slices_bf16_1", 8_slices, 8, 1),
        SLICES_OF("early refill", "slices_early_refill", slices_planted, 8, 2),
        SLICES_OF("early store", "slices_early_store", slices_planted, 8, 2),
        SLICES_OF("wrong phase", "slices_wrong_phase", slices_planted, 8, 2),
        SLICES_OF("no wait", "slices_no_wait", slices_planted, 8, 2),
        SLICES_OF("unheard", "slices_unheard", slices_planted, 8, 2)};
    expect_defects("softmax, with a defect in its slices", rows, 6);
}

/* The same where results are stored after the sums of the next row. */
Test(softmax, each_planted_defect_of_what_comes_behind_is_found) {
    static const struct kn_variant rows[] = {
        SLICES_OF("right", "behind_bf16_8", 9_behind, 8, 8),
        SLICES_OF("early before", "behind_early_before", slices_planted, 8, 8)};
    expect_defects("softmax, with a defect in the pipeline", rows, 2);
}

Test(softmax, whole_rows_are_the_definition_too) {
    static const char *const whole[] = {"whole"};
    struct row_stage stage = row_stage_begin(6);
    for (size_t v = 0; v < 1; v++) {
        for (size_t s = 0; s < WHOLE_SHAPES; s++) {
            struct trial t = {.variant = whole[v],
                              .type = s % 2 == 0 ? KN_F16 : KN_BF16,
                              .rows = whole_shapes[s][0],
                              .columns = whole_shapes[s][1],
                              .distribution = KN_NORMAL,
                              .magnitude = 3,
                              .in_place = true};
            run(&stage, &t);
            if (s + 1 == WHOLE_SHAPES) continue;
            t.gap = 8, t.out_gap = 16, t.skew = 16, t.in_place = false, t.scale = -0.3f,
            t.type = s % 2 == 0 ? KN_BF16 : KN_F16;
            run(&stage, &t);
        }
        for (enum kn_distribution d = 0; d < KN_DISTRIBUTIONS; d++) {
            run(&stage, &(struct trial){.variant = whole[v],
                                        .type = d % 2 == 0 ? KN_BF16 : KN_F16,
                                        .rows = 3,
                                        .columns = 304,
                                        .distribution = d,
                                        .magnitude = 1,
                                        .in_place = true});
            run(&stage, &(struct trial){.variant = whole[v],
                                        .type = d % 2 == 0 ? KN_F16 : KN_BF16,
                                        .rows = 3,
                                        .columns = 304,
                                        .distribution = d,
                                        .magnitude = 1,
                                        .in_place = true});
        }
    }
    for (enum kn_type type = 0; type < KN_TYPES && has_clusters(); type++) {
        for (size_t s = 0; s < 3; s++) {
            run(&stage, &(struct trial){.variant = "slices_1",
                                        .type = type,
                                        .rows = (size_t[]){2, 60, 5}[s],
                                        .columns = (size_t[]){16384, 304, 8}[s],
                                        .gap = 8,
                                        .out_gap = 16,
                                        .distribution = KN_NORMAL,
                                        .magnitude = 3,
                                        .in_place = s == 1});
        }
    }
    run(&stage, &(struct trial){.variant = "whole",
                                .type = KN_F32,
                                .rows = 2,
                                .columns = 16388,
                                .distribution = KN_NORMAL,
                                .magnitude = 3,
                                .in_place = true});
    row_stage_end(&stage);
}

Test(softmax, rows_that_registers_do_not_hold_are_read_twice) {
    struct row_stage stage = row_stage_begin(3);
    run(&stage, &(struct trial){.type = KN_F32,
                                .rows = 1,
                                .columns = 40001,
                                .skew = 3,
                                .distribution = KN_NORMAL,
                                .magnitude = 5});
    run(&stage, &(struct trial){.type = KN_BF16,
                                .rows = 2,
                                .columns = 40001,
                                .distribution = KN_NORMAL,
                                .magnitude = 5});
    row_stage_end(&stage);
}

/* Milestone M7. */
Test(softmax, a_row_sums_to_one_and_keeps_its_largest) {
    enum { ROWS = 8, COLUMNS = 1000 };
    static float values[ROWS * COLUMNS], got[ROWS * COLUMNS];
    struct row_stage stage = row_stage_begin(7);
    struct row_matrix in = row_matrix_make(KN_F32, ROWS, COLUMNS, 0, 0);
    struct row_matrix out = row_matrix_make(KN_F32, ROWS, COLUMNS, 0, 0);
    kn_inputs_draw(KN_NORMAL, &stage.random, 10, values, ROWS * COLUMNS);
    for (size_t r = 0; r < ROWS; r++) values[r * COLUMNS + 97 * (r + 1)] = 100 + (float)r;
    row_fill(&in, values);
    MUST(kn_softmax(stage.kernels, stage.stream,
                    &(struct kn_softmax){.type = KN_F32,
                                         .rows = ROWS,
                                         .columns = COLUMNS,
                                         .in = row_matrix_rows(&in),
                                         .out = row_matrix_rows(&out)}));
    MUST(tol_stream_synchronize(stage.stream));
    MUST(kn_guarded_read(&out.guarded, got));
    for (size_t r = 0; r < ROWS; r++) {
        double sum = 0;
        size_t best = 0;
        for (size_t c = 0; c < COLUMNS; c++) {
            const float x = got[r * COLUMNS + c];
            cr_assert(x >= 0 && x <= 1, "row %zu, column %zu is %g", r, c, (double)x);
            sum += (double)x;
            if (x > got[r * COLUMNS + best]) best = c;
        }
        cr_assert(!(fabs(sum - 1) > 1e-5), "row %zu sums to %.9f", r, sum);
        cr_assert(best == 97 * (r + 1), "the largest of row %zu is at %zu", r, best);
    }
    row_matrix_end(&in);
    row_matrix_end(&out);
    row_stage_end(&stage);
}

Test(softmax, what_cannot_be_is_refused) {
    struct row_stage stage = row_stage_begin(5);
    tol_auto_buffer struct tol_buffer *buffer = NULL, *other = NULL;
    MUST(tol_buffer_create(test_context(), 1024, 4, &buffer));
    MUST(tol_buffer_create(test_context(), 1024, 4, &other));
    const struct kn_softmax good = {
        .type = KN_F32, .rows = 4, .columns = 256, .in = {buffer, 0, 0}, .out = {other, 0, 0}};
    struct kn_softmax bad = good;
#define REFUSED(expected, text)                                                                    \
    do {                                                                                           \
        MUST_FAIL(kn_softmax(stage.kernels, stage.stream, &bad), expected, text);                  \
        bad = good;                                                                                \
    } while (0)
    MUST(tol_buffer_fill_at(buffer, 0, 0, 4, 1024));
    MUST(kn_softmax(stage.kernels, stage.stream, &good));
    bad.variant = "whole", bad.type = KN_BF16, bad.columns = 252;
    REFUSED(TOL_UNSUPPORTED, "no multiple of 16");
    bad.rows = 5;
    REFUSED(TOL_OUT_OF_RANGE, "4096 bytes");
    bad.in.offset = 1;
    REFUSED(TOL_OUT_OF_RANGE, "in is 4 rows of 256");
    bad.in.stride = SIZE_MAX / 2;
    REFUSED(TOL_OUT_OF_RANGE, "in is");
    bad.out.stride = 255;
    REFUSED(TOL_INVALID_ARGUMENT, "the next begins after 255");
    bad.in.buffer = NULL;
    REFUSED(TOL_INVALID_ARGUMENT, "in has no buffer");
    bad.out.buffer = NULL;
    REFUSED(TOL_INVALID_ARGUMENT, "out has no buffer");
    bad.out = (struct kn_rows){buffer, 0, 0}, bad.rows = 2, bad.out.offset = 256;
    REFUSED(TOL_INVALID_ARGUMENT, "out overlaps in");
    bad.mask = (struct kn_rows){buffer, 4096 - 255, 0};
    REFUSED(TOL_OUT_OF_RANGE, "mask");
    bad.type = KN_TYPES;
    REFUSED(TOL_INVALID_ARGUMENT, "does not exist");
    bad.scale = NAN;
    REFUSED(TOL_INVALID_ARGUMENT, "scale");
    bad.columns = (size_t)1 << 40;
    REFUSED(TOL_OVER_LIMIT, "1099511627776");
    bad.variant = "fastest";
    REFUSED(TOL_NOT_FOUND, "cluster_8, online, naive");
    bad.rows = 0;
    bad.in.buffer = NULL;
    MUST(kn_softmax(stage.kernels, stage.stream, &bad));
    MUST_FAIL(kn_softmax(NULL, stage.stream, &good), TOL_INVALID_ARGUMENT, "set of kernels");
    MUST_FAIL(kn_softmax(stage.kernels, NULL, &good), TOL_INVALID_ARGUMENT, "a stream");
    MUST_FAIL(kn_softmax(stage.kernels, stage.stream, NULL), TOL_INVALID_ARGUMENT, "a problem");
    row_stage_end(&stage);
}
