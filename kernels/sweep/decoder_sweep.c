/*
 * Cases of vector_add, rope, swiglu, add, gather, argmax and top_k: rows at unaligned addresses,
 * with more elements than a block has threads.
 */
#include "choose/choose.h"
#include "core/check.h"
#include "row/argmax.h"
#include "row/gather.h"
#include "row/pair.h"
#include "row/rope.h"
#include "row/row_variant.h"
#include "row/top_k.h"
#include "sweep_matrix.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

KN_IMAGES(vector_add);

enum { ROWS = 5 };

/* The operands of a case. finish judges the case and frees them. */
struct small {
    struct sweep_matrix in, with, out;
    struct tol_buffer *ints;
    double *oracle;
};

/* The gap between the rows of in, with and out, and the elements before them. */
struct places {
    size_t gap[3], skew[3];
};
static const struct places apart = {{3, 2, 1}, {1, 3, 5}}, whole = {{8, 2, 1}, {0, 3, 5}},
                           joined = {{0, 0, 0}, {0, 0, 0}};

static tol_status begin_at(struct sweep *sweep, enum kn_type type, size_t columns,
                           const struct places *p, const int *ints, struct small *s) {
    tol_status status = TOL_OK;
    struct sweep_matrix *matrices[] = {&s->in, &s->with, &s->out};
    for (int i = 0; i < 3; i++) {
        TOL_TRY(sweep_matrix_make(sweep, type, ROWS, columns, p->gap[i], p->skew[i], i < 2 ? 2 : 0,
                                  matrices[i]));
    }
    TOL_TRY(sweep_ints(sweep, ints, ROWS, &s->ints));
    s->oracle = calloc(ROWS * columns, sizeof *s->oracle);
    TOL_CHECK(s->oracle != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu elements", ROWS * columns);
out:
    return status;
}

static tol_status decoder_sweep_begin(struct sweep *sweep, enum kn_type type, size_t columns,
                                      const int *ints, struct small *s) {
    return begin_at(sweep, type, columns, &apart, ints, s);
}

/* With whole rows, if the kernel needs them. */
static tol_status begin_for(struct sweep *sweep, const struct kn_variants *table,
                            const char *variant, enum kn_type type, size_t columns, const int *ints,
                            struct small *s) {
    const struct kn_variant *row = kn_variants_find(table, variant);
    const bool is_whole = row != NULL && (row->needs & KN_ROW_WHOLE) != 0;
    return begin_at(sweep, type, columns, is_whole ? &whole : &apart, ints, s);
}

static void decoder_sweep_finish(struct sweep *sweep, tol_status status, struct small *s) {
    struct kn_deviation deviation = {.first = KN_NOWHERE, .worst = KN_NOWHERE};
    const double error = s->out.type == KN_F32 ? 1e-5 : 3 * kn_type_roundoff(s->out.type);
    size_t touched = 0;
    if (status == TOL_OK) {
        status = sweep_matrix_judge(sweep, &s->out, s->oracle, (struct kn_tolerance){error, error},
                                    &deviation, &touched);
    }
    sweep_judge(sweep, status, &deviation, touched);
    sweep_matrix_end(&s->in);
    sweep_matrix_end(&s->with);
    sweep_matrix_end(&s->out);
    tol_buffer_destroy(s->ints);
    free(s->oracle);
}

static void decoder_sweep_run_pair(struct sweep *sweep, enum kn_pair_kind kind, enum kn_type type,
                                   size_t columns, bool is_whole) {
    static const int none[ROWS];
    struct small s = {0};
    if (!sweep_begin(sweep, "%s %s %d x %zu%s", kind == KN_ADD ? "add" : "swiglu",
                     kn_type_name(type), ROWS, columns, is_whole ? ", whole" : "")) {
        return;
    }
    tol_status status = begin_at(sweep, type, columns, is_whole ? &joined : &apart, none, &s);
    for (size_t i = 0; status == TOL_OK && i < ROWS * columns; i++) {
        s.oracle[i] = kn_pair_oracle(kind, (double)s.in.values[i], (double)s.with.values[i]);
    }
    if (status == TOL_OK) {
        status = kn_pair(sweep->kernels, sweep->stream,
                         &(struct kn_pair){.kind = kind,
                                           .type = type,
                                           .rows = ROWS,
                                           .columns = columns,
                                           .in = sweep_matrix_rows(&s.in),
                                           .with = sweep_matrix_rows(&s.with),
                                           .out = sweep_matrix_rows(&s.out)});
    }
    decoder_sweep_finish(sweep, status, &s);
}

static void run_rope(struct sweep *sweep, enum kn_rope_pairs pairs, enum kn_type type) {
    static const int positions[ROWS] = {0, 1, 17, 3, 40};
    const size_t heads = 3, head_size = 70, columns = heads * head_size;
    struct small s = {0};
    if (!sweep_begin(sweep, "rope %s %s", pairs == KN_ROPE_HALVES ? "halves" : "neighbours",
                     kn_type_name(type))) {
        return;
    }
    tol_status status = decoder_sweep_begin(sweep, type, columns, positions, &s);
    const struct kn_rope rope = {.type = type,
                                 .pairs = pairs,
                                 .rows = ROWS,
                                 .heads = heads,
                                 .head_size = head_size,
                                 .rotated = 64,
                                 .in = sweep_matrix_rows(&s.in),
                                 .out = sweep_matrix_rows(&s.out),
                                 .positions = {s.ints, 0, 0}};
    for (size_t r = 0; status == TOL_OK && r < ROWS; r++) {
        kn_rope_oracle(&rope, s.in.values + r * columns, positions[r], s.oracle + r * columns);
    }
    if (status == TOL_OK) status = kn_rope(sweep->kernels, sweep->stream, &rope);
    decoder_sweep_finish(sweep, status, &s);
}

/* An index that the table does not have makes a row NaN. */
static void run_gather(struct sweep *sweep, enum kn_type type, size_t columns) {
    static const int indices[ROWS] = {4, 0, 5, -1, 2};
    struct small s = {0};
    if (!sweep_begin(sweep, "gather %s %d x %zu", kn_type_name(type), ROWS, columns)) return;
    tol_status status = decoder_sweep_begin(sweep, type, columns, indices, &s);
    for (size_t i = 0; status == TOL_OK && i < ROWS * columns; i++) {
        const int row = indices[i / columns];
        const bool is_there = row >= 0 && row < ROWS;
        s.oracle[i] = is_there ? (double)s.in.values[(size_t)row * columns + i % columns] : NAN;
    }
    if (status == TOL_OK) {
        status = kn_gather(sweep->kernels, sweep->stream,
                           &(struct kn_gather){.type = type,
                                               .rows = ROWS,
                                               .columns = columns,
                                               .table_rows = ROWS,
                                               .table = sweep_matrix_rows(&s.in),
                                               .out = sweep_matrix_rows(&s.out),
                                               .indices = {s.ints, 0, 0}});
    }
    decoder_sweep_finish(sweep, status, &s);
}

static void run_argmax(struct sweep *sweep, enum kn_type type, size_t columns,
                       const char *variant) {
    static const int none[ROWS] = {-1, -1, -1, -1, -1};
    int found[ROWS];
    float values[ROWS];
    double oracle[ROWS];
    struct small s = {0};
    struct kn_deviation deviation = {.first = KN_NOWHERE, .worst = KN_NOWHERE};
    if (!sweep_begin(sweep, "argmax %s %s %d x %zu", variant, kn_type_name(type), ROWS, columns)) {
        return;
    }
    tol_status status = begin_for(sweep, &kn_argmax_variants, variant, type, columns, none, &s);
    if (status == TOL_OK) {
        status = kn_argmax(sweep->kernels, sweep->stream,
                           &(struct kn_argmax){.type = type,
                                               .rows = ROWS,
                                               .columns = columns,
                                               .in = sweep_matrix_rows(&s.in),
                                               .out = {s.ints, 0, 0},
                                               .variant = variant});
    }
    if (status == TOL_OK) status = tol_stream_synchronize(sweep->stream);
    if (status == TOL_OK) status = tol_buffer_read(s.ints, found, sizeof found);
    for (size_t r = 0; status == TOL_OK && r < ROWS; r++) {
        values[r] = (float)found[r];
        oracle[r] = kn_argmax_oracle(s.in.values + r * columns, columns);
    }
    if (status == TOL_OK) {
        deviation =
            kn_deviation_of(KN_F32, values, oracle, ROWS, (struct kn_tolerance){0, 0}, NULL);
    }
    sweep_judge(sweep, status, &deviation, 0);
    sweep_matrix_end(&s.in);
    sweep_matrix_end(&s.with);
    sweep_matrix_end(&s.out);
    tol_buffer_destroy(s.ints);
    free(s.oracle);
}

/* The columns of the k largest; the values too, which are not compared: they are read. */
static void run_top_k(struct sweep *sweep, enum kn_type type, size_t columns, size_t k,
                      const char *variant) {
    enum { MOST = 700 };
    static int found[ROWS * MOST];
    static float values[ROWS * MOST];
    static double oracle[ROWS * MOST];
    static const int none[ROWS];
    int expected[MOST];
    struct small s = {0};
    struct tol_buffer *indices = NULL;
    struct kn_deviation deviation = {.first = KN_NOWHERE, .worst = KN_NOWHERE};
    if (!sweep_begin(sweep, "top_k %s %s %d x %zu, %zu", variant, kn_type_name(type), ROWS, columns,
                     k)) {
        return;
    }
    tol_status status = begin_for(sweep, &kn_top_k_variants, variant, type, columns, none, &s);
    if (status == TOL_OK) {
        status =
            tol_buffer_create(kn_kernels_context(sweep->kernels), ROWS * k, sizeof(int), &indices);
    }
    if (status == TOL_OK) {
        status = kn_top_k(sweep->kernels, sweep->stream,
                          &(struct kn_top_k){.type = type,
                                             .rows = ROWS,
                                             .columns = columns,
                                             .k = k,
                                             .in = sweep_matrix_rows(&s.in),
                                             .values = sweep_matrix_rows(&s.out),
                                             .indices = {indices, 0, 0},
                                             .variant = variant});
    }
    if (status == TOL_OK) status = tol_stream_synchronize(sweep->stream);
    if (status == TOL_OK) status = tol_buffer_read(indices, found, ROWS * k * sizeof *found);
    for (size_t r = 0; status == TOL_OK && r < ROWS; r++) {
        if (!kn_top_k_oracle(s.in.values + r * columns, columns, k, expected)) {
            status = TOL_OUT_OF_HOST_MEMORY;
        }
        for (size_t i = 0; i < k; i++) {
            values[r * k + i] = (float)found[r * k + i], oracle[r * k + i] = expected[i];
        }
    }
    if (status == TOL_OK) {
        deviation =
            kn_deviation_of(KN_F32, values, oracle, ROWS * k, (struct kn_tolerance){0, 0}, NULL);
    }
    sweep_judge(sweep, status, &deviation, 0);
    sweep_matrix_end(&s.in);
    sweep_matrix_end(&s.with);
    sweep_matrix_end(&s.out);
    tol_buffer_destroy(s.ints);
    tol_buffer_destroy(indices);
    free(s.oracle);
}

/* One row of the matrices: the kernel knows no strides. */
static void run_vector_add(struct sweep *sweep) {
    static const struct kn_variant row = {.name = "vector_add",
                                          .entry = "vector_add",
                                          .images = kn_images_vector_add,
                                          .compute_capability_min = 75,
                                          .threads = 256};
    enum { COUNT = 1000 };
    const struct tol_kernel *kernel = NULL;
    struct sweep_matrix a = {0}, b = {0}, sum = {0};
    double oracle[COUNT];
    struct kn_deviation deviation = {.first = KN_NOWHERE, .worst = KN_NOWHERE};
    size_t touched = 0;
    tol_status status = TOL_OK;
    if (!sweep_begin(sweep, "vector_add %d", COUNT)) return;
    TOL_TRY(sweep_matrix_make(sweep, KN_F32, 1, COUNT, 0, 0, 1, &a));
    TOL_TRY(sweep_matrix_make(sweep, KN_F32, 1, COUNT, 0, 0, 1, &b));
    TOL_TRY(sweep_matrix_make(sweep, KN_F32, 1, COUNT, 0, 0, 0, &sum));
    for (size_t i = 0; i < COUNT; i++) oracle[i] = (double)(a.values[i] + b.values[i]);
    TOL_TRY(kn_kernels_find(sweep->kernels, &row, &kernel));
    CUdeviceptr at[3];
    const struct sweep_matrix *const all[] = {&a, &b, &sum};
    for (int i = 0; i < 3; i++) {
        at[i] = tol_buffer_address(all[i]->guarded.buffer) + all[i]->guarded.offset;
    }
    TOL_TRY(tol_launch(sweep->stream, kernel, tol_launch_linear(COUNT, row.threads),
                       TOL_ARGUMENTS(at[0], at[1], at[2], (unsigned)COUNT)));
    status =
        sweep_matrix_judge(sweep, &sum, oracle, (struct kn_tolerance){0, 0}, &deviation, &touched);
out:
    sweep_judge(sweep, status, &deviation, touched);
    sweep_matrix_end(&a);
    sweep_matrix_end(&b);
    sweep_matrix_end(&sum);
}

void sweep_decoder(struct sweep *sweep) {
    run_vector_add(sweep);
    for (enum kn_type type = 0; type < KN_TYPES; type++) {
        for (enum kn_pair_kind kind = 0; kind <= KN_ADD; kind++) {
            decoder_sweep_run_pair(sweep, kind, type, 61, false);
            decoder_sweep_run_pair(sweep, kind, type, 9001, false);
            decoder_sweep_run_pair(sweep, kind, type, 1032, true);
        }
        run_rope(sweep, KN_ROPE_NEIGHBOURS, type);
        run_rope(sweep, KN_ROPE_HALVES, type);
        run_gather(sweep, type, 7);
        run_gather(sweep, type, 1030);
        run_argmax(sweep, type, 3, "block");
        run_argmax(sweep, type, 2500, "block");
        run_top_k(sweep, type, 130, 8, "block");
        run_top_k(sweep, type, 9001, 700, "block");
        run_argmax(sweep, type, 512, "warp");
        run_argmax(sweep, type, 5000, "whole");
        run_top_k(sweep, type, 512, 8, "warp");
        run_top_k(sweep, type, 4000, 64, "warp");
        run_top_k(sweep, type, 5000, 50, "pass");
    }
}
