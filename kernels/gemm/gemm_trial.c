/*
 * Makes matrices, runs a kernel, and judges the result.
 */
#include "gemm_trial.h"

#include "core/check.h"
#include "gemm_oracle.h"
#include "guarded.h"
#include "parallel.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* A matrix of the trial on both sides. */
struct side {
    size_t rows, columns, leading, stride, batch, elements;
    enum kn_type type;
    unsigned char *host;
    struct kn_guarded device;
};

static void shape(struct side *side, size_t rows, size_t columns, enum kn_type type,
                  const struct kn_gemm_trial *trial) {
    side->rows = rows, side->columns = columns, side->type = type;
    side->batch = trial->gemm.batch != 0 ? trial->gemm.batch : 1;
    const size_t align = trial->align != 0 ? trial->align : 1;
    side->leading = (columns + trial->gap + align - 1) / align * align;
    side->stride = rows * side->leading + (trial->gap + align - 1) / align * align;
    side->elements = side->batch * side->stride;
}

static size_t row_begin(const struct side *side, size_t row) {
    return row / side->rows * side->stride + row % side->rows * side->leading;
}

struct filling {
    struct side *side;
    const struct kn_gemm_trial *trial;
    uint64_t state; /* of the first row */
    bool with_numbers;
    atomic_bool failed;
};

/* A row and the gap behind it are NaN, and then the row is numbers. */
static void fill_row(void *user, size_t row) {
    struct filling *f = user;
    const struct side *side = f->side;
    const double scale = f->trial->scale != 0 ? f->trial->scale : 1;
    const size_t element = kn_type_bytes(side->type), at = row_begin(side, row);
    const bool is_last = row + 1 == side->batch * side->rows;
    const size_t end = is_last ? side->elements : row_begin(side, row + 1);
    uint64_t state = f->state;
    float *values = malloc((side->columns + 1) * sizeof *values);
    if (values == NULL) {
        atomic_store(&f->failed, true);
        return;
    }
    memset(side->host + at * element, 0xff, (end - at) * element);
    if (f->with_numbers) {
        kn_inputs_skip(f->trial->distribution, &state, row * side->columns);
        kn_inputs_draw(f->trial->distribution, &state, scale, values, side->columns);
        kn_numbers_store(side->type, values, side->columns, side->host + at * element);
    }
    free(values);
}

static tol_status fill(struct tol_context *context, struct side *side, uint64_t *state,
                       const struct kn_gemm_trial *trial, bool with_numbers) {
    tol_status status = TOL_OK;
    const double element_ns = 10; /* drawn and stored */
    const size_t element = kn_type_bytes(side->type), bytes = side->elements * element;
    const size_t rows = side->batch * side->rows;
    struct filling filling = {
        .side = side, .trial = trial, .state = *state, .with_numbers = with_numbers};
    side->host = malloc(bytes + 1);
    TOL_CHECK(side->host != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu bytes", bytes);
    if (rows == 0) memset(side->host, 0xff, bytes); /* gaps are all there is */
    kn_parallel_for(rows, element_ns * (double)side->elements, fill_row, &filling);
    TOL_CHECK(!filling.failed, TOL_OUT_OF_HOST_MEMORY, "%zu columns", side->columns);
    if (with_numbers) kn_inputs_skip(trial->distribution, state, rows * side->columns);
    TOL_TRY(kn_guarded_create(context, bytes, trial->skew * element, &side->device));
    status = kn_guarded_write(&side->device, side->host);
out:
    return status;
}

static struct kn_matrix matrix_of(const struct side *side) {
    return (struct kn_matrix){.buffer = side->device.buffer,
                              .offset = side->device.offset / kn_type_bytes(side->type),
                              .leading = side->leading,
                              .batch_stride = side->stride};
}

static struct kn_gemm_oracle_matrix oracle_matrix_of(const struct side *side) {
    return (struct kn_gemm_oracle_matrix){side->host, side->leading, side->stride};
}

/* How many bytes between the rows are not what they were. */
static size_t count_touched(const struct side *c, const unsigned char *now) {
    const size_t element = kn_type_bytes(c->type);
    size_t touched = 0, at = 0;
    for (size_t batch = 0; batch < c->batch; batch++) {
        for (size_t row = 0; row < c->rows; row++) {
            const size_t first = (batch * c->stride + row * c->leading) * element;
            for (; at < first; at++) touched += now[at] != 0xff;
            at = first + c->columns * element;
        }
    }
    for (; at < c->elements * element; at++) touched += now[at] != 0xff;
    return touched;
}

struct gemm_judging {
    const struct kn_gemm_trial *trial;
    const struct side *sides;
    const unsigned char *now;
    size_t every, first; /* which rows of each matrix the oracle looks at */
    double *never;       /* n zeroes and n infinities: what any number is within, and no NaN */
    struct kn_deviation *rows;
    atomic_bool failed;
};

static struct kn_deviation compare_row(const struct gemm_judging *j, size_t row,
                                       const double *result, const double *allowed) {
    const struct side *c = &j->sides[2];
    return kn_deviation_of(c->type, j->now + row_begin(c, row) * kn_type_bytes(c->type), result,
                           c->columns, (struct kn_tolerance){0, 0}, allowed);
}

/* One row of C: against the oracle, or only against never having been written. */
static void judge_row(void *user, size_t row) {
    struct gemm_judging *j = user;
    const struct side *c = &j->sides[2];
    const struct kn_gemm_oracle_matrix a = oracle_matrix_of(&j->sides[0]),
                                       b = oracle_matrix_of(&j->sides[1]),
                                       old = oracle_matrix_of(c);
    const size_t n = c->columns, inner = row % c->rows;
    if (inner % j->every != j->first && inner + 1 != c->rows) {
        struct kn_deviation *d = &j->rows[row];
        *d = compare_row(j, row, j->never, j->never + n);
        d->absolute = d->relative = d->ulp = d->root_mean_square = 0;
        return;
    }
    double *result = malloc(2 * (n + 1) * sizeof *result);
    if (result == NULL) {
        atomic_store(&j->failed, true);
        return;
    }
    kn_gemm_oracle(&j->trial->gemm, row / c->rows, inner, &a, &b, &old, result, result + n);
    j->rows[row] = compare_row(j, row, result, result + n);
    free(result);
}

static tol_status judge(const struct kn_gemm_trial *trial, const struct side sides[3],
                        const unsigned char *now, uint64_t *state, struct kn_deviation *deviation) {
    enum { ORACLE_ROWS = 8 };
    const double product_ns = 0.5, element_ns = 12; /* of the oracle, and of the comparison */
    tol_status status = TOL_OK;
    const struct kn_gemm *gemm = &trial->gemm;
    const size_t rows = sides[2].batch * sides[2].rows, n = gemm->n;
    const bool is_large = (double)gemm->m * (double)n * (double)gemm->k >= 0x1p28;
    struct gemm_judging judging = {.trial = trial, .sides = sides, .now = now};
    judging.every = is_large && gemm->m > ORACLE_ROWS ? gemm->m / ORACLE_ROWS : 1;
    judging.first = kn_random(state) % judging.every; /* all are taken where every is 1 */
    struct kn_deviation all = {.first = KN_NOWHERE, .worst = KN_NOWHERE};
    judging.never = malloc(2 * (n + 1) * sizeof *judging.never);
    judging.rows = malloc((rows + 1) * sizeof *judging.rows);
    TOL_CHECK(judging.never != NULL && judging.rows != NULL, TOL_OUT_OF_HOST_MEMORY,
              "%zu rows of %zu columns", rows, n);
    for (size_t i = 0; i < n; i++) judging.never[i] = 0, judging.never[n + i] = INFINITY;
    kn_parallel_for(rows,
                    (double)rows * (double)n *
                        (element_ns + product_ns * (double)gemm->k / (double)judging.every),
                    judge_row, &judging);
    TOL_CHECK(!judging.failed, TOL_OUT_OF_HOST_MEMORY, "%zu columns", n);
    for (size_t row = 0; row < rows; row++) all = kn_deviation_join(all, judging.rows[row]);
    *deviation = all;
out:
    free(judging.never);
    free(judging.rows);
    return status;
}

tol_status kn_gemm_try(struct kn_kernels *kernels, struct tol_stream *stream,
                       const struct kn_gemm_trial *trial, struct kn_gemm_outcome *outcome) {
    tol_status status = TOL_OK;
    struct tol_context *context = kn_kernels_context(kernels);
    struct kn_gemm gemm = trial->gemm;
    const enum kn_type type = kn_gemm_input_type(gemm.precision);
    struct kn_gemm_outcome found = {0};
    unsigned char *now = NULL;
    struct tol_buffer *workspace = NULL;
    uint64_t state = trial->seed;
    struct side sides[3] = {0};
    struct side *a = &sides[0], *b = &sides[1], *c = &sides[2];
    shape(a, gemm.transpose_a ? gemm.k : gemm.m, gemm.transpose_a ? gemm.m : gemm.k, type, trial);
    shape(b, gemm.transpose_b ? gemm.n : gemm.k, gemm.transpose_b ? gemm.k : gemm.n, type, trial);
    shape(c, gemm.m, gemm.n, gemm.c_type, trial);
    TOL_TRY(fill(context, a, &state, trial, true));
    TOL_TRY(fill(context, b, &state, trial, true));
    TOL_TRY(fill(context, c, &state, trial, gemm.beta != 0));
    gemm.a = matrix_of(a), gemm.b = matrix_of(b), gemm.c = matrix_of(c);
    if (trial->workspace) TOL_TRY(kn_gemm_workspace(kernels, &gemm, &found.workspace));
    if (found.workspace > 0) {
        TOL_TRY(tol_buffer_create(context, found.workspace, 1, &workspace));
        TOL_TRY(tol_buffer_fill_at(workspace, 0, 0xff, 1, found.workspace));
        gemm.workspace = workspace;
    }
    TOL_TRY(kn_gemm(kernels, stream, &gemm));
    TOL_TRY(tol_stream_synchronize_for(stream, 60000));
    now = malloc(c->device.bytes + 1);
    TOL_CHECK(now != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu bytes", c->device.bytes);
    TOL_TRY(kn_guarded_read(&c->device, now));
    TOL_TRY(kn_guarded_check(&c->device, &found.touched));
    found.touched += count_touched(c, now);
    TOL_TRY(judge(trial, sides, now, &state, &found.deviation));
    *outcome = found;
out:
    tol_buffer_destroy(workspace);
    for (int i = 0; i < 3; i++) {
        kn_guarded_destroy(&sides[i].device);
        free(sides[i].host);
    }
    free(now);
    return status;
}
