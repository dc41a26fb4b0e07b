/*
 * Times operations on rows, beside two copies: a large one, and one of as many bytes; and beside a
 * peer in another process, such as PyTorch.
 */
#include "alike.h"
#include "bench_check.h"
#include "row/argmax.h"
#include "norm/norm.h"
#include "row/pair.h"
#include "row/top_k.h"
#include "softmax/softmax.h"

#include "core/check.h"

#include <stdio.h>
#include <stdlib.h>

enum operation { SOFTMAX, LAYERNORM, RMSNORM, SWIGLU, ADD, ARGMAX, TOP_K, OPERATIONS };

static const char *const names[OPERATIONS] = {"softmax", "layernorm", "rmsnorm", "swiglu",
                                              "add",     "argmax",    "top_64"};

struct rows {
    struct kn_bench *bench;
    enum operation operation;
    enum kn_type type;
    size_t rows, columns;
    const char *variant;
    struct tol_buffer *buffers[KN_BENCH_SETS_MAX][3]; /* in, with, out */
    struct tol_buffer *weight;
    size_t sets;
    double *copy_us; /* of a copy of as many bytes; 0: it was not measured yet */
};

static tol_status row_bench_launch(void *user, size_t turn) {
    const struct rows *r = user;
    struct tol_buffer *const *set = r->buffers[turn % r->sets];
    const struct kn_rows in = {set[0], 0, 0}, with = {set[1], 0, 0}, out = {set[2], 0, 0};
    struct kn_kernels *kernels = r->bench->kernels;
    switch (r->operation) {
    case SOFTMAX:
        return kn_softmax(kernels, r->bench->stream,
                          &(struct kn_softmax){.type = r->type,
                                               .rows = r->rows,
                                               .columns = r->columns,
                                               .in = in,
                                               .out = out,
                                               .variant = r->variant});
    case LAYERNORM:
    case RMSNORM:
        return kn_norm(
            kernels, r->bench->stream,
            &(struct kn_norm){.kind = r->operation == RMSNORM ? KN_RMSNORM : KN_LAYERNORM,
                              .type = r->type,
                              .affine_type = r->type,
                              .rows = r->rows,
                              .columns = r->columns,
                              .in = in,
                              .out = out,
                              .weight = {r->weight, 0, 0},
                              .epsilon = 1e-5f,
                              .variant = r->variant});
    case SWIGLU:
    case ADD:
        return kn_pair(kernels, r->bench->stream,
                       &(struct kn_pair){.kind = r->operation == ADD ? KN_ADD : KN_SWIGLU,
                                         .type = r->type,
                                         .rows = r->rows,
                                         .columns = r->columns,
                                         .in = in,
                                         .with = with,
                                         .out = out});
    case TOP_K:
        return kn_top_k(kernels, r->bench->stream,
                        &(struct kn_top_k){.type = r->type,
                                           .rows = r->rows,
                                           .columns = r->columns,
                                           .k = 64,
                                           .in = in,
                                           .indices = out,
                                           .variant = r->variant});
    case ARGMAX:
    case OPERATIONS:
        break;
    }
    return kn_argmax(kernels, r->bench->stream,
                     &(struct kn_argmax){.type = r->type,
                                         .rows = r->rows,
                                         .columns = r->columns,
                                         .in = in,
                                         .out = out,
                                         .variant = r->variant});
}

static bool has_second(enum operation operation) {
    return operation == SWIGLU || operation == ADD;
}

static bool only_reads(enum operation operation) {
    return operation == ARGMAX || operation == TOP_K;
}

/* Of matrices that are read or written. */
static size_t moves_of(enum operation operation) {
    return only_reads(operation) ? 1 : has_second(operation) ? 3 : 2;
}

static tol_status row_bench_make_buffers(struct rows *r) {
    tol_status status = TOL_OK;
    const size_t count = r->rows * r->columns;
    r->sets = kn_bench_sets(r->bench, moves_of(r->operation) * count * kn_type_bytes(r->type));
    TOL_TRY(kn_bench_buffer(r->bench, r->type, r->columns, 1, &r->weight));
    for (size_t i = 0; i < r->sets; i++) {
        TOL_TRY(kn_bench_buffer(r->bench, r->type, count, 2 * i + 2, &r->buffers[i][0]));
        if (has_second(r->operation)) {
            TOL_TRY(kn_bench_buffer(r->bench, r->type, count, 2 * i + 3, &r->buffers[i][1]));
        }
        TOL_TRY(tol_buffer_create(r->bench->context, count, sizeof(float), &r->buffers[i][2]));
    }
out:
    return status;
}

static void row_bench_destroy_buffers(struct rows *r) {
    tol_buffer_destroy(r->weight);
    for (size_t i = 0; i < r->sets; i++) {
        for (int j = 0; j < 3; j++) tol_buffer_destroy(r->buffers[i][j]);
    }
}

/* Of one matrix. Measured once for a type and shape. */
static tol_status row_bench_measure_copy(struct rows *r, const struct kn_bench_row *row,
                                         double matrix) {
    tol_status status = TOL_OK;
    struct tol_buffer *from[KN_BENCH_SETS_MAX], *to[KN_BENCH_SETS_MAX];
    struct kn_bench_row copy = *row;
    if (*r->copy_us > 0) return TOL_OK;
    copy.operation = "copy", copy.bytes = 2 * matrix;
    copy.problem[0] = '\0';
    snprintf(copy.variant, sizeof copy.variant, "driver's");
    for (size_t i = 0; i < r->sets; i++) from[i] = r->buffers[i][0], to[i] = r->buffers[i][2];
    TOL_TRY(kn_bench_copying(r->bench, &copy, from, to, r->sets, (size_t)matrix));
    *r->copy_us = copy.us;
out:
    return status;
}

/* ---- two rows, after they were timed --------------------------------------------------------- */

struct given {
    float *in, *with, *weight;
    double *out;
};

static struct kn_tolerance row_bench_tolerance_of(const struct rows *r) {
    const double roundoff = kn_type_roundoff(r->type);
    /* Elements of softmax are positive; sums of others may cancel. */
    return (struct kn_tolerance){r->operation == SOFTMAX ? 1e-12 : 1e-5, 2e-5 + 1.01 * roundoff};
}

static void row_bench_know(const struct rows *r, const struct given *g) {
    const double epsilon = (double)1e-5f;
    if (r->operation == SOFTMAX) {
        kn_softmax_oracle(g->in, NULL, r->columns, 1, g->out);
    } else if (r->operation == LAYERNORM || r->operation == RMSNORM) {
        kn_norm_oracle(r->operation == RMSNORM ? KN_RMSNORM : KN_LAYERNORM, g->in, g->weight, NULL,
                       r->columns, epsilon, g->out);
    } else {
        for (size_t i = 0; i < r->columns; i++) {
            g->out[i] = kn_pair_oracle(r->operation == ADD ? KN_ADD : KN_SWIGLU, (double)g->in[i],
                                       (double)g->with[i]);
        }
    }
}

/* The columns that argmax and top-k give. */
static tol_status check_columns(const struct rows *r, const struct kn_bench_row *row,
                                const struct given *g, size_t index) {
    enum { K = 64 };
    tol_status status = TOL_OK;
    const size_t count = r->operation == TOP_K ? K : 1;
    int right[K], found[K];
    char how[120];
    TOL_TRY(tol_buffer_read_at(r->buffers[0][2], index * count * sizeof *found, found,
                               count * sizeof *found));
    if (r->operation == ARGMAX) right[0] = kn_argmax_oracle(g->in, r->columns);
    TOL_CHECK(r->operation == ARGMAX || kn_top_k_oracle(g->in, r->columns, count, right),
              TOL_OUT_OF_HOST_MEMORY, "an oracle");
    for (size_t i = 0; i < count; i++) {
        if (found[i] == right[i]) continue;
        snprintf(how, sizeof how, "column %d of row %zu in place %zu, and not %d", found[i], index,
                 i, right[i]);
        kn_bench_wrong(r->bench, row, row->variant, how);
        break;
    }
out:
    return status;
}

static tol_status check_row(const struct rows *r, const struct kn_bench_row *row,
                            const struct given *g, size_t index) {
    tol_status status = TOL_OK;
    const size_t first = index * r->columns;
    const struct kn_bench_right right = {g->out, NULL, row_bench_tolerance_of(r), r->columns};
    TOL_TRY(kn_bench_read(r->type, r->buffers[0][0], first, r->columns, g->in));
    if (only_reads(r->operation)) return check_columns(r, row, g, index);
    if (has_second(r->operation)) {
        TOL_TRY(kn_bench_read(r->type, r->buffers[0][1], first, r->columns, g->with));
    }
    row_bench_know(r, g);
    status = kn_bench_check(r->bench, row, row->variant, r->type, r->buffers[0][2], first, &right);
out:
    return status;
}

static tol_status row_bench_check(const struct rows *r, const struct kn_bench_row *row) {
    tol_status status = TOL_OK;
    float *floats = malloc(3 * r->columns * sizeof *floats);
    const struct given g = {floats, floats + r->columns, floats + 2 * r->columns,
                            malloc(r->columns * sizeof *g.out)};
    TOL_CHECK(floats != NULL && g.out != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu columns", r->columns);
    TOL_TRY(kn_bench_read(r->type, r->weight, 0, r->columns, g.weight));
    TOL_TRY(check_row(r, row, &g, 0));
    status = check_row(r, row, &g, r->rows - 1);
out:
    free(floats);
    free(g.out);
    return status;
}

/* ---- rows of the bench ----------------------------------------------------------------------- */

static tol_status row_bench_measure(struct kn_bench *bench, struct rows *r) {
    tol_status status = TOL_OK;
    const double matrix = (double)(r->rows * r->columns * kn_type_bytes(r->type));
    const size_t moves = moves_of(r->operation);
    struct kn_bench_row row = {.operation = names[r->operation], .bytes = (double)moves * matrix};
    r->bench = bench;
    snprintf(row.shape, sizeof row.shape, "%s %zu x %zu", kn_type_name(r->type), r->rows,
             r->columns);
    snprintf(row.variant, sizeof row.variant, "%s", r->variant != NULL ? r->variant : "chosen");
    if (!kn_bench_wants(bench, &row)) return TOL_OK;
    if (r->variant == NULL) {
        snprintf(row.problem, sizeof row.problem, "row %s %s %zu %zu", row.operation,
                 kn_type_name(r->type), r->rows, r->columns);
    }
    TOL_TRY(row_bench_make_buffers(r));
    row.turns = r->sets;
    if (moves <= 2) {
        TOL_TRY(row_bench_measure_copy(r, &row, matrix));
        row.alike = only_reads(r->operation) ? "copying it" : "copying as much",
        row.alike_us = *r->copy_us;
    }
    TOL_TRY(kn_bench_measure(bench, &row, row_bench_launch, r));
    status = row_bench_check(r, &row);
out:
    row_bench_destroy_buffers(r);
    return status;
}

/* Which operations and shapes show a variant. */
static bool is_normalised(const struct rows *r) {
    return r->operation <= RMSNORM;
}
static bool four_thousand(const struct rows *r) {
    return r->columns == 4096 && r->operation <= RMSNORM;
}
static bool short_halves(const struct rows *r) {
    return r->type != KN_F32 && r->columns <= 4096 && r->operation <= RMSNORM;
}
static bool norm_halves(const struct rows *r) {
    return short_halves(r) && r->operation != SOFTMAX;
}

static bool row_bench_vocabularies(const struct rows *r) {
    return r->columns >= 32000 && r->operation <= RMSNORM;
}

static bool thirty_two_thousand(const struct rows *r) {
    return r->columns == 32000 && r->operation <= RMSNORM;
}

static bool short_tokens(const struct rows *r) {
    return thirty_two_thousand(r) && r->type != KN_F32;
}

static bool one_block(const struct rows *r) {
    return is_normalised(r) && (r->columns == 16384 || (r->columns == 32000 && r->type != KN_F32));
}

static bool long_floats(const struct rows *r) {
    return is_normalised(r) && r->columns == 32000 && r->type == KN_F32;
}

static bool long_norm_floats(const struct rows *r) {
    return long_floats(r) && r->operation != SOFTMAX;
}

static bool long_softmax_floats(const struct rows *r) {
    return long_floats(r) && r->operation == SOFTMAX;
}

static bool row_bench_longest(const struct rows *r) {
    return is_normalised(r) && r->columns == 128256;
}

static bool long_softmax(const struct rows *r) {
    return r->columns >= 32000 && r->operation == SOFTMAX;
}

static bool row_bench_choosing(const struct rows *r) {
    return only_reads(r->operation);
}
static bool warp_rows(const struct rows *r) {
    const size_t bytes = r->columns * kn_type_bytes(r->type);
    return row_bench_choosing(r) && (r->operation == TOP_K ? r->columns <= 4096 : bytes <= 2048);
}
static bool row_bench_argmax(const struct rows *r) {
    return r->operation == ARGMAX;
}
static bool top_k(const struct rows *r) {
    return r->operation == TOP_K;
}

static const struct {
    const char *name;
    bool (*takes)(const struct rows *r);
    int compute_capability_min;
} variants[] = {
    {"warp", warp_rows, 90},
    {"whole", row_bench_argmax, 90},
    {"pass", top_k, 90},
    {"block", row_bench_choosing, 75},
    {"whole", short_halves, 75},
    {"ahead", norm_halves, 80},
    {"early", norm_halves, 90},
    {"registers", short_halves, 75},
    {"naive", four_thousand, 75},
    {"cluster_2", short_tokens, 90},
    {"cluster_4", thirty_two_thousand, 90},
    {"cluster_8", row_bench_vocabularies, 90},
    {"slices_1", one_block, 90},
    {"slices_2", long_norm_floats, 90},
    {"behind_2", long_softmax_floats, 90},
    {"behind_8", row_bench_longest, 90},
    {"online", long_softmax, 75},
};

static tol_status row_bench_run(struct kn_bench *bench) {
    enum { SHAPES = 6 };
    const int capability = tol_context_device(bench->context)->compute_capability;
    double copies[SHAPES][KN_TYPES] = {{0}}; /* microseconds, as they are measured */
    static const size_t shapes[SHAPES][2] = {{8192, 4096},  {65536, 1024}, {2048, 4096},
                                             {2048, 16384}, {1024, 32000}, {256, 128256}};
    tol_status status = TOL_OK;
    for (enum operation operation = 0; operation < OPERATIONS; operation++) {
        for (size_t i = 0; i < SHAPES; i++) {
            for (enum kn_type type = 0; type < KN_TYPES; type++) {
                if (type == KN_F16) continue; /* it moves as many bytes as bf16 */
                struct rows r = {.operation = operation,
                                 .type = type,
                                 .rows = shapes[i][0] / (bench->is_small ? 256 : 1),
                                 .columns = shapes[i][1],
                                 .copy_us = &copies[i][type]};
                TOL_TRY(row_bench_measure(bench, &r));
                for (size_t v = 0; v < sizeof variants / sizeof variants[0]; v++) {
                    struct rows forced = {.operation = operation,
                                          .type = type,
                                          .rows = r.rows,
                                          .columns = r.columns,
                                          .variant = variants[v].name,
                                          .copy_us = &copies[i][type]};
                    if (variants[v].takes(&forced) &&
                        variants[v].compute_capability_min <= capability) {
                        TOL_TRY(row_bench_measure(bench, &forced));
                    }
                }
            }
        }
    }
out:
    return status;
}

KN_BENCH(row, row_bench_run)
