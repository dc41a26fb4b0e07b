/*
 * Stops of the small kernels: vector_add, rope, swiglu, add, gather, argmax; rows that begin
 * anywhere, more elements than a block has threads.
 */
#include "core/check.h"
#include "row/argmax.h"
#include "row/gather.h"
#include "row/pair.h"
#include "row/rope.h"
#include "tour_matrix.h"

#include <math.h>
#include <stdlib.h>

KN_IMAGES(vector_add);

enum { ROWS = 5 };

/* What each stop has; freed by finish, which also judges. */
struct small {
    struct tour_matrix in, with, out;
    struct tol_buffer *ints;
    double *oracle;
};

static tol_status begin(struct tour *tour, enum kn_type type, size_t columns, const int *ints,
                        struct small *s) {
    tol_status status = TOL_OK;
    TOL_TRY(tour_matrix_make(tour, type, ROWS, columns, 3, 1, 2, &s->in));
    TOL_TRY(tour_matrix_make(tour, type, ROWS, columns, 2, 3, 2, &s->with));
    TOL_TRY(tour_matrix_make(tour, type, ROWS, columns, 1, 5, 0, &s->out));
    TOL_TRY(tour_ints(tour, ints, ROWS, &s->ints));
    s->oracle = calloc(ROWS * columns, sizeof *s->oracle);
    TOL_CHECK(s->oracle != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu elements", ROWS * columns);
out:
    return status;
}

static void finish(struct tour *tour, tol_status status, struct small *s) {
    struct kn_deviation deviation = {.first = KN_NOWHERE, .worst = KN_NOWHERE};
    const double error = s->out.type == KN_F32 ? 1e-5 : 3 * kn_type_roundoff(s->out.type);
    size_t touched = 0;
    if (status == TOL_OK) {
        status = tour_matrix_judge(tour, &s->out, s->oracle, (struct kn_tolerance){error, error},
                                   &deviation, &touched);
    }
    tour_judge(tour, status, &deviation, touched);
    tour_matrix_end(&s->in);
    tour_matrix_end(&s->with);
    tour_matrix_end(&s->out);
    tol_buffer_destroy(s->ints);
    free(s->oracle);
}

static void stop_pair(struct tour *tour, enum kn_pair_kind kind, enum kn_type type,
                      size_t columns) {
    static const int none[ROWS];
    struct small s = {0};
    if (!tour_stop(tour, "%s %s %d x %zu", kind == KN_ADD ? "add" : "swiglu", kn_type_name(type),
                   ROWS, columns)) {
        return;
    }
    tol_status status = begin(tour, type, columns, none, &s);
    for (size_t i = 0; status == TOL_OK && i < ROWS * columns; i++) {
        s.oracle[i] = kn_pair_oracle(kind, (double)s.in.values[i], (double)s.with.values[i]);
    }
    if (status == TOL_OK) {
        status = kn_pair(tour->kernels, tour->stream,
                         &(struct kn_pair){.kind = kind,
                                           .type = type,
                                           .rows = ROWS,
                                           .columns = columns,
                                           .in = tour_matrix_rows(&s.in),
                                           .with = tour_matrix_rows(&s.with),
                                           .out = tour_matrix_rows(&s.out)});
    }
    finish(tour, status, &s);
}

static void stop_rope(struct tour *tour, enum kn_rope_pairs pairs, enum kn_type type) {
    static const int positions[ROWS] = {0, 1, 17, 3, 40};
    const size_t heads = 3, head_size = 70, columns = heads * head_size;
    struct small s = {0};
    if (!tour_stop(tour, "rope %s %s", pairs == KN_ROPE_HALVES ? "halves" : "neighbours",
                   kn_type_name(type))) {
        return;
    }
    tol_status status = begin(tour, type, columns, positions, &s);
    const struct kn_rope rope = {.type = type,
                                 .pairs = pairs,
                                 .rows = ROWS,
                                 .heads = heads,
                                 .head_size = head_size,
                                 .rotated = 64,
                                 .in = tour_matrix_rows(&s.in),
                                 .out = tour_matrix_rows(&s.out),
                                 .positions = {s.ints, 0, 0}};
    for (size_t r = 0; status == TOL_OK && r < ROWS; r++) {
        kn_rope_oracle(&rope, s.in.values + r * columns, positions[r], s.oracle + r * columns);
    }
    if (status == TOL_OK) status = kn_rope(tour->kernels, tour->stream, &rope);
    finish(tour, status, &s);
}

/* An index that the table does not have makes a row NaN. */
static void stop_gather(struct tour *tour, enum kn_type type, size_t columns) {
    static const int indices[ROWS] = {4, 0, 5, -1, 2};
    struct small s = {0};
    if (!tour_stop(tour, "gather %s %d x %zu", kn_type_name(type), ROWS, columns)) return;
    tol_status status = begin(tour, type, columns, indices, &s);
    for (size_t i = 0; status == TOL_OK && i < ROWS * columns; i++) {
        const int row = indices[i / columns];
        const bool is_there = row >= 0 && row < ROWS;
        s.oracle[i] = is_there ? (double)s.in.values[(size_t)row * columns + i % columns] : NAN;
    }
    if (status == TOL_OK) {
        status = kn_gather(tour->kernels, tour->stream,
                           &(struct kn_gather){.type = type,
                                               .rows = ROWS,
                                               .columns = columns,
                                               .table_rows = ROWS,
                                               .table = tour_matrix_rows(&s.in),
                                               .out = tour_matrix_rows(&s.out),
                                               .indices = {s.ints, 0, 0}});
    }
    finish(tour, status, &s);
}

static void stop_argmax(struct tour *tour, enum kn_type type, size_t columns) {
    static const int none[ROWS] = {-1, -1, -1, -1, -1};
    int found[ROWS];
    float values[ROWS];
    double oracle[ROWS];
    struct small s = {0};
    struct kn_deviation deviation = {.first = KN_NOWHERE, .worst = KN_NOWHERE};
    if (!tour_stop(tour, "argmax %s %d x %zu", kn_type_name(type), ROWS, columns)) return;
    tol_status status = begin(tour, type, columns, none, &s);
    if (status == TOL_OK) {
        status = kn_argmax(tour->kernels, tour->stream,
                           &(struct kn_argmax){.type = type,
                                               .rows = ROWS,
                                               .columns = columns,
                                               .in = tour_matrix_rows(&s.in),
                                               .out = {s.ints, 0, 0}});
    }
    if (status == TOL_OK) status = tol_stream_synchronize(tour->stream);
    if (status == TOL_OK) status = tol_buffer_read(s.ints, found, sizeof found);
    for (size_t r = 0; status == TOL_OK && r < ROWS; r++) {
        values[r] = (float)found[r];
        oracle[r] = kn_argmax_oracle(s.in.values + r * columns, columns);
    }
    if (status == TOL_OK) {
        deviation =
            kn_deviation_of(KN_F32, values, oracle, ROWS, (struct kn_tolerance){0, 0}, NULL);
    }
    tour_judge(tour, status, &deviation, 0);
    tour_matrix_end(&s.in);
    tour_matrix_end(&s.with);
    tour_matrix_end(&s.out);
    tol_buffer_destroy(s.ints);
    free(s.oracle);
}

/* One row of the matrices: the kernel knows no strides. */
static void stop_vector_add(struct tour *tour) {
    static const struct kn_variant row = {.name = "vector_add",
                                          .entry = "vector_add",
                                          .images = kn_images_vector_add,
                                          .compute_capability_min = 75,
                                          .threads = 256};
    enum { COUNT = 1000 };
    const struct tol_kernel *kernel = NULL;
    struct tour_matrix a = {0}, b = {0}, sum = {0};
    double oracle[COUNT];
    struct kn_deviation deviation = {.first = KN_NOWHERE, .worst = KN_NOWHERE};
    size_t touched = 0;
    tol_status status = TOL_OK;
    if (!tour_stop(tour, "vector_add %d", COUNT)) return;
    TOL_TRY(tour_matrix_make(tour, KN_F32, 1, COUNT, 0, 0, 1, &a));
    TOL_TRY(tour_matrix_make(tour, KN_F32, 1, COUNT, 0, 0, 1, &b));
    TOL_TRY(tour_matrix_make(tour, KN_F32, 1, COUNT, 0, 0, 0, &sum));
    for (size_t i = 0; i < COUNT; i++) oracle[i] = (double)(a.values[i] + b.values[i]);
    TOL_TRY(kn_kernels_find(tour->kernels, &row, &kernel));
    CUdeviceptr at[3];
    const struct tour_matrix *const all[] = {&a, &b, &sum};
    for (int i = 0; i < 3; i++) {
        at[i] = tol_buffer_address(all[i]->guarded.buffer) + all[i]->guarded.offset;
    }
    TOL_TRY(tol_launch(tour->stream, kernel, tol_launch_linear(COUNT, row.threads),
                       TOL_ARGUMENTS(at[0], at[1], at[2], (unsigned)COUNT)));
    status =
        tour_matrix_judge(tour, &sum, oracle, (struct kn_tolerance){0, 0}, &deviation, &touched);
out:
    tour_judge(tour, status, &deviation, touched);
    tour_matrix_end(&a);
    tour_matrix_end(&b);
    tour_matrix_end(&sum);
}

void tour_decoder(struct tour *tour) {
    stop_vector_add(tour);
    for (enum kn_type type = 0; type < KN_TYPES; type++) {
        for (enum kn_pair_kind kind = 0; kind <= KN_ADD; kind++) {
            stop_pair(tour, kind, type, 61);
            stop_pair(tour, kind, type, 9001);
        }
        stop_rope(tour, KN_ROPE_NEIGHBOURS, type);
        stop_rope(tour, KN_ROPE_HALVES, type);
        stop_gather(tour, type, 7);
        stop_gather(tour, type, 1030);
        stop_argmax(tour, type, 3);
        stop_argmax(tour, type, 2500);
    }
}
