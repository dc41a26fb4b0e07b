/*
 * Cases of softmax and norm: rows held by a warp, rows held by a block, and unaligned rows. Kernels
 * with persistent blocks get more rows than their rings hold. They run one block per multiprocessor
 * instead of eight, so that fewer rows are enough.
 */
#include "core/check.h"
#include "norm/norm.h"
#include "softmax/softmax.h"
#include "sweep_matrix.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct rows_case {
    const char *variant;
    enum kn_type type;
    size_t rows, columns, gap, skew;
    bool masked; /* softmax: a mask; norm: weight and bias of floats */
};

enum { VARIANTS_MAX = 80 };

/* A copy of the table in which persistent kernels run one block per multiprocessor. It must outlive
 * the kernel set, which keeps pointers into it. */
static const struct kn_variants *with_few_blocks(const struct kn_variants *table,
                                                 struct kn_variant *rows,
                                                 struct kn_variants *changed) {
    *changed = (struct kn_variants){table->operation, rows, table->count};
    for (size_t i = 0; i < table->count && i < VARIANTS_MAX; i++) {
        rows[i] = table->rows[i];
        if (rows[i].tile[2] != 0) rows[i].tile[2] = 1;
    }
    return table->count <= VARIANTS_MAX ? changed : table;
}

static struct kn_tolerance rows_sweep_tolerance_of(enum kn_type type, double size) {
    return (struct kn_tolerance){type == KN_F32 ? 1e-5 * size : 1e-3 * size,
                                 type == KN_F32 ? 1e-5 : 3 * kn_type_roundoff(type)};
}

/* ---- softmax --------------------------------------------------------------------------------- */

static tol_status run_softmax(struct sweep *sweep, const struct rows_case *s,
                              struct kn_deviation *deviation, size_t *touched) {
    static struct kn_variant few[VARIANTS_MAX];
    static struct kn_variants table;
    tol_status status = TOL_OK;
    const size_t count = s->rows * s->columns;
    struct sweep_matrix in = {0}, out = {0};
    struct tol_buffer *mask = NULL;
    unsigned char *bytes = malloc(count);
    double *oracle = malloc(count * sizeof *oracle);
    TOL_CHECK(bytes != NULL && oracle != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu elements", count);
    TOL_TRY(sweep_matrix_make(sweep, s->type, s->rows, s->columns, s->gap, s->skew, 3, &in));
    TOL_TRY(sweep_matrix_make(sweep, s->type, s->rows, s->columns, 2 * s->gap, s->skew, 0, &out));
    for (size_t i = 0; i < count; i++) bytes[i] = (i * 7 + i / s->columns) % 3 != 0;
    TOL_TRY(tol_buffer_create(kn_kernels_context(sweep->kernels), count, 1, &mask));
    TOL_TRY(tol_buffer_write(mask, bytes, count));
    for (size_t r = 0; r < s->rows; r++) {
        const size_t at = r * s->columns;
        kn_softmax_oracle(in.values + at, s->masked ? bytes + at : NULL, s->columns, 0.5,
                          oracle + at);
    }
    TOL_TRY(kn_softmax(
        sweep->kernels, sweep->stream,
        &(struct kn_softmax){.type = s->type,
                             .rows = s->rows,
                             .columns = s->columns,
                             .in = sweep_matrix_rows(&in),
                             .out = sweep_matrix_rows(&out),
                             .mask = {s->masked ? mask : NULL, 0, s->columns},
                             .scale = 0.5f,
                             .variant = s->variant,
                             .variants = with_few_blocks(&kn_softmax_variants, few, &table)}));
    status = sweep_matrix_judge(sweep, &out, oracle, rows_sweep_tolerance_of(s->type, 1e-2),
                                deviation, touched);
out:
    sweep_matrix_end(&in);
    sweep_matrix_end(&out);
    tol_buffer_destroy(mask);
    free(bytes);
    free(oracle);
    return status;
}

/* ---- norm ------------------------------------------------------------------------------------ */

static tol_status rows_sweep_run_norm(struct sweep *sweep, const struct rows_case *s,
                                      enum kn_norm_kind kind, struct kn_deviation *deviation,
                                      size_t *touched) {
    static struct kn_variant few[VARIANTS_MAX];
    static struct kn_variants table;
    tol_status status = TOL_OK;
    const enum kn_type affine = s->masked ? KN_F32 : s->type;
    const size_t row = s->columns;
    struct sweep_matrix in = {0}, out = {0}, weight = {0}, bias = {0};
    double *oracle = malloc(s->rows * row * sizeof *oracle);
    TOL_CHECK(oracle != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu elements", s->rows * row);
    TOL_TRY(sweep_matrix_make(sweep, s->type, s->rows, row, s->gap, s->skew, 3, &in));
    TOL_TRY(sweep_matrix_make(sweep, s->type, s->rows, row, 2 * s->gap, s->skew, 0, &out));
    TOL_TRY(sweep_matrix_make(sweep, affine, 1, row, 0, s->skew, 1, &weight));
    TOL_TRY(sweep_matrix_make(sweep, affine, 1, row, 0, s->skew, 1, &bias));
    for (size_t r = 0; r < s->rows; r++) {
        kn_norm_oracle(kind, in.values + r * row, weight.values, bias.values, row, 1e-5,
                       oracle + r * row);
    }
    TOL_TRY(
        kn_norm(sweep->kernels, sweep->stream,
                &(struct kn_norm){.kind = kind,
                                  .type = s->type,
                                  .rows = s->rows,
                                  .columns = row,
                                  .in = sweep_matrix_rows(&in),
                                  .out = sweep_matrix_rows(&out),
                                  .affine_type = affine,
                                  .weight = sweep_matrix_rows(&weight),
                                  .bias = sweep_matrix_rows(&bias),
                                  .epsilon = 1e-5f,
                                  .variant = s->variant,
                                  .variants = with_few_blocks(&kn_norm_variants, few, &table)}));
    status = sweep_matrix_judge(sweep, &out, oracle, rows_sweep_tolerance_of(s->type, 1), deviation,
                                touched);
out:
    sweep_matrix_end(&in);
    sweep_matrix_end(&out);
    sweep_matrix_end(&weight);
    sweep_matrix_end(&bias);
    free(oracle);
    return status;
}

/* ---- the cases ------------------------------------------------------------------------------- */

/* Whether the table has a kernel of the case's name and type. */
static bool rows_sweep_has(const struct kn_variants *table, const struct rows_case *s) {
    for (size_t i = 0; i < table->count; i++) {
        const struct kn_variant *row = &table->rows[i];
        if ((row->types & 1U << s->type) != 0 && strcmp(row->name, s->variant) == 0) return true;
    }
    return false;
}

static void rows_sweep_run_case(struct sweep *sweep, const struct rows_case *s) {
    static const char *const names[] = {"layernorm", "rmsnorm", "softmax"};
    for (int i = 0; i < 3; i++) {
        struct kn_deviation deviation = {.first = KN_NOWHERE, .worst = KN_NOWHERE};
        size_t touched = 0;
        if (!rows_sweep_has(i < 2 ? &kn_norm_variants : &kn_softmax_variants, s)) continue;
        if (!sweep_begin(sweep, "%s %s %s %zu x %zu%s%s", names[i], s->variant,
                         kn_type_name(s->type), s->rows, s->columns,
                         s->skew > 0 ? ", anywhere" : "", s->masked ? ", masked" : "")) {
            continue;
        }
        const tol_status status =
            i < 2 ? rows_sweep_run_norm(sweep, s, i == 0 ? KN_LAYERNORM : KN_RMSNORM, &deviation,
                                        &touched)
                  : run_softmax(sweep, s, &deviation, &touched);
        sweep_judge(sweep, status, &deviation, touched);
    }
}

/* Unaligned rows of each number of pieces per thread, and rows too long for the registers. */
static void run_anywhere(struct sweep *sweep, enum kn_type type) {
    const size_t piece = 16 / kn_type_bytes(type);
    const size_t pieces[] = {9, 31, 61, 190, 1300};
    for (int i = 0; i < 5; i++) {
        rows_sweep_run_case(sweep, &(struct rows_case){.variant = "registers",
                                                       .type = type,
                                                       .rows = 5,
                                                       .columns = pieces[i] * piece + 3,
                                                       .gap = 1,
                                                       .skew = i % 2 == 0 ? 1 : 0,
                                                       .masked = i % 2 == 0});
    }
    for (int masked = 0; masked <= 1; masked++) {
        rows_sweep_run_case(sweep, &(struct rows_case){.variant = "online",
                                                       .type = type,
                                                       .rows = 3,
                                                       .columns = 1300 * piece + 3,
                                                       .gap = 1,
                                                       .skew = 1,
                                                       .masked = masked});
        rows_sweep_run_case(sweep, &(struct rows_case){.variant = "naive",
                                                       .type = type,
                                                       .rows = 7,
                                                       .columns = 333,
                                                       .gap = 1,
                                                       .skew = 1,
                                                       .masked = masked});
    }
}

/* Long rows by clusters; of the first some blocks have no pieces. */
static void run_clusters(struct sweep *sweep, enum kn_type type) {
    static const char *const variants[] = {"cluster_2", "cluster_4", "cluster_8"};
    static const size_t pieces[] = {3, 1001};
    for (int i = type == KN_F32 ? 2 : 0; i < 6; i++) {
        rows_sweep_run_case(sweep,
                            &(struct rows_case){.variant = variants[i / 2],
                                                .type = type,
                                                .rows = 3,
                                                .columns = pieces[i % 2] * 16 / kn_type_bytes(type),
                                                .gap = 8});
    }
}

/* Three pieces per row; and more rounds of the persistent blocks, alone or in clusters, than they
 * have slices. */
static void run_slices(struct sweep *sweep, enum kn_type type) {
    static const struct {
        const char *variant;
        size_t cluster;
    } kinds[] = {{"slices_1", 1}, {"slices_2", 2}, {"behind_2", 2}, {"behind_8", 8}};
    const size_t blocks =
        (size_t)tol_context_device(kn_kernels_context(sweep->kernels))->multiprocessors;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct rows_case s = {.variant = kinds[i].variant, .type = type, .gap = 8};
        if (i == 1 && type != KN_F32) continue; /* there is none */
        s.rows = 3, s.columns = (size_t)48 / kn_type_bytes(type);
        rows_sweep_run_case(sweep, &s);
        s.rows = blocks / kinds[i].cluster * 5 + 6;
        s.columns = 320 * kinds[i].cluster * 16 / kn_type_bytes(type);
        rows_sweep_run_case(sweep, &s);
    }
}

static void rows_sweep_run_whole(struct sweep *sweep, enum kn_type type) {
    static const size_t pieces[] = {20, 61, 100, 190, 1000};
    for (int i = 0; i < 5; i++) {
        struct rows_case s = {
            .variant = "whole", .type = type, .rows = 6, .columns = pieces[i] * 8, .gap = 8};
        rows_sweep_run_case(sweep, &s);
        s.variant = "ahead";
        rows_sweep_run_case(sweep, &s);
        s.variant = "early";
        rows_sweep_run_case(sweep, &s);
    }
}

void sweep_rows(struct sweep *sweep) {
    for (enum kn_type type = 0; type < KN_TYPES; type++) run_anywhere(sweep, type);
    for (enum kn_type type = 0; type < KN_TYPES; type++) run_clusters(sweep, type);
    for (enum kn_type type = 0; type < KN_TYPES; type++) run_slices(sweep, type);
    rows_sweep_run_whole(sweep, KN_F16);
    rows_sweep_run_whole(sweep, KN_BF16);
    rows_sweep_run_case(
        sweep, &(struct rows_case){
                   .variant = "whole", .type = KN_F32, .rows = 2, .columns = 16388, .gap = 4});
}
