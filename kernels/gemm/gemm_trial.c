/*
 * Makes matrices, runs a kernel, and judges the result.
 */
#include "gemm_trial.h"

#include "core/check.h"
#include "gemm_exact.h"
#include "guarded.h"
#include "parallel.h"
#include "swapped.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* A matrix of the trial on both sides. */
struct side {
    char name; /* A, B or C */
    size_t rows, columns, leading, stride, batch, elements;
    enum kn_type type;
    unsigned char *host;
    struct kn_guarded device;
};

static void gemm_trial_shape(struct side *side, char name, size_t rows, size_t columns,
                             enum kn_type type, const struct kn_gemm_trial *trial) {
    side->name = name, side->rows = rows, side->columns = columns, side->type = type;
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

static enum kn_distribution distribution_of(const struct kn_gemm_trial *trial) {
    return trial->is_exact ? KN_UNIFORM : trial->distribution;
}

/* The whole numbers of a stored row. */
static void make_whole(const struct kn_gemm_trial *trial, const struct side *side, size_t row,
                       float *values) {
    const struct kn_gemm_whole whole = kn_gemm_whole_of(&trial->gemm);
    kn_gemm_whole_values(whole, values, side->columns);
    for (size_t i = 0; side->name == 'A' && i < side->columns; i++) {
        if ((row + i) % whole.apart != 0) values[i] = 0; /* row and step, or step and row */
    }
}

/* A row and the gap after it are NaN; then the row is filled with numbers. */
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
        const enum kn_distribution distribution = distribution_of(f->trial);
        kn_inputs_skip(distribution, &state, row * side->columns);
        kn_inputs_draw(distribution, &state, f->trial->is_exact ? 1 : scale, values, side->columns);
        if (f->trial->is_exact) make_whole(f->trial, side, row % side->rows, values);
        kn_numbers_store(side->type, values, side->columns, side->host + at * element);
    }
    free(values);
}

static tol_status gemm_trial_fill(struct tol_context *context, struct side *side, uint64_t *state,
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
    if (with_numbers) kn_inputs_skip(distribution_of(trial), state, rows * side->columns);
    TOL_TRY(kn_guarded_create(context, bytes, trial->skew * element, &side->device));
    status = kn_guarded_write(&side->device, side->host);
out:
    return status;
}

static struct kn_matrix gemm_trial_matrix_of(const struct side *side) {
    return (struct kn_matrix){.buffer = side->device.buffer,
                              .offset = side->device.offset / kn_type_bytes(side->type),
                              .leading = side->leading,
                              .batch_stride = side->stride};
}

static struct kn_gemm_oracle_matrix oracle_matrix_of(const struct side *side) {
    return (struct kn_gemm_oracle_matrix){side->host, side->leading, side->stride};
}

/* How many bytes between the rows are not what they were. */
static size_t gemm_trial_count_touched(const struct side *c, const unsigned char *now) {
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

enum { ORACLE_ROWS = 8 };

/* What is done with a row of C. */
enum look {
    LOOK_ORACLE, /* compares it with the oracle */
    LOOK_NAN,    /* checks that it was written */
    LOOK_RIGHT,  /* nothing: it is known to be exact */
    LOOK_WRONG   /* nothing: it is known to have a wrong element */
};

struct gemm_judging {
    const struct kn_gemm_trial *trial;
    const struct side *sides;
    const unsigned char *now;
    unsigned char *looks; /* for each row an enum look */
    double *never;        /* n zeroes and n infinities: what any number is within, and no NaN */
    struct kn_deviation *rows;
    atomic_bool failed;
};

static struct kn_deviation compare_row(const struct gemm_judging *j, size_t row,
                                       const double *result, const double *allowed) {
    const struct side *c = &j->sides[2];
    return kn_deviation_of(c->type, j->now + row_begin(c, row) * kn_type_bytes(c->type), result,
                           c->columns, (struct kn_tolerance){0, 0}, allowed);
}

/* A row that the oracle does not look at. */
static struct kn_deviation pass_row(const struct gemm_judging *j, size_t row, enum look look) {
    struct kn_deviation d = compare_row(j, row, j->never, j->never + j->sides[2].columns);
    d.absolute = d.relative = d.ulp = d.root_mean_square = 0;
    if (look == LOOK_RIGHT) d.exact = d.count;
    if (look == LOOK_WRONG) d.failed = d.count, d.first = 0;
    return d;
}

/* One row of C: against the oracle, or only against never having been written. */
static void gemm_trial_judge_row(void *user, size_t row) {
    struct gemm_judging *j = user;
    const struct kn_gemm_trial *trial = j->trial;
    const struct side *c = &j->sides[2];
    const struct kn_gemm_oracle_matrix a = oracle_matrix_of(&j->sides[0]),
                                       b = oracle_matrix_of(&j->sides[1]),
                                       old = oracle_matrix_of(c);
    const size_t n = c->columns;
    if (j->looks[row] != LOOK_ORACLE) {
        j->rows[row] = pass_row(j, row, (enum look)j->looks[row]);
        return;
    }
    double *result = malloc(2 * (n + 1) * sizeof *result);
    if (result == NULL) {
        atomic_store(&j->failed, true);
        return;
    }
    kn_gemm_oracle(&trial->gemm,
                   kn_distribution_has_signs(trial->distribution) ? KN_GEMM_DRAWN : KN_GEMM_ANY,
                   row / c->rows, row % c->rows, &a, &b, &old, result, result + n);
    for (size_t i = 0; trial->is_exact && i < n; i++) result[n + i] = 0;
    j->rows[row] = compare_row(j, row, result, result + n);
    free(result);
}

/* Which rows of a product the oracle looks at: all, or some at random and the last of each. */
static void choose_rows(struct gemm_judging *j, size_t rows, uint64_t *state) {
    const struct kn_gemm *g = &j->trial->gemm;
    const bool is_large = (double)g->m * (double)g->n * (double)g->k >= 0x1p28;
    const size_t every = is_large && g->m > ORACLE_ROWS ? g->m / ORACLE_ROWS : 1;
    const size_t first = kn_random(state) % every;
    for (size_t row = 0; row < rows; row++) {
        const size_t inner = row % g->m;
        const bool is_chosen = inner % every == first || inner + 1 == g->m;
        j->looks[row] = is_chosen ? LOOK_ORACLE : LOOK_NAN;
    }
}

/* Finds the rows of an exact product that are wrong. */
static bool find_wrong_rows(struct gemm_judging *j, size_t rows, uint64_t *state) {
    const struct side *c = &j->sides[2];
    const struct kn_gemm_oracle_matrix a = oracle_matrix_of(&j->sides[0]),
                                       b = oracle_matrix_of(&j->sides[1]),
                                       old = oracle_matrix_of(c),
                                       now = {j->now, c->leading, c->stride};
    bool *right = malloc((rows + 1) * sizeof *right);
    if (right == NULL ||
        !kn_gemm_exact_rows(&j->trial->gemm, &a, &b, &old, &now, kn_random(state), right)) {
        free(right);
        return false;
    }
    for (size_t row = 0, wrong = 0; row < rows; row++) {
        j->looks[row] = right[row] ? LOOK_RIGHT : wrong < ORACLE_ROWS ? LOOK_ORACLE : LOOK_WRONG;
        wrong += !right[row];
    }
    free(right);
    return true;
}

static tol_status gemm_trial_judge(const struct kn_gemm_trial *trial, const struct side sides[3],
                                   const unsigned char *now, uint64_t *state,
                                   struct kn_gemm_outcome *outcome) {
    const double product_ns = 0.7, element_ns = 12; /* of the oracle, and of the comparison */
    tol_status status = TOL_OK;
    const struct kn_gemm *gemm = &trial->gemm;
    const size_t rows = sides[2].batch * sides[2].rows, n = gemm->n;
    struct gemm_judging judging = {.trial = trial, .sides = sides, .now = now};
    struct kn_deviation all = {.first = KN_NOWHERE, .worst = KN_NOWHERE};
    size_t looked = 0;
    judging.never = malloc(2 * (n + 1) * sizeof *judging.never);
    judging.rows = malloc((rows + 1) * sizeof *judging.rows);
    judging.looks = malloc(rows + 1);
    TOL_CHECK(judging.never != NULL && judging.rows != NULL && judging.looks != NULL,
              TOL_OUT_OF_HOST_MEMORY, "%zu rows of %zu columns", rows, n);
    for (size_t i = 0; i < n; i++) judging.never[i] = 0, judging.never[n + i] = INFINITY;
    if (trial->is_exact) {
        TOL_CHECK(find_wrong_rows(&judging, rows, state), TOL_OUT_OF_HOST_MEMORY, "%zu rows", rows);
    } else {
        choose_rows(&judging, rows, state);
    }
    for (size_t row = 0; row < rows; row++) {
        looked += judging.looks[row] == LOOK_ORACLE;
        outcome->compared += judging.looks[row] == LOOK_NAN ? 0 : n;
    }
    kn_parallel_for(rows,
                    (double)n *
                        (element_ns * (double)rows + product_ns * (double)gemm->k * (double)looked),
                    gemm_trial_judge_row, &judging);
    TOL_CHECK(!judging.failed, TOL_OUT_OF_HOST_MEMORY, "%zu columns", n);
    for (size_t row = 0; row < rows; row++) all = kn_deviation_join(all, judging.rows[row]);
    outcome->deviation = all;
out:
    free(judging.never);
    free(judging.rows);
    free(judging.looks);
    return status;
}

/* The planted fault: the lowest bit of an element of C. */
static void gemm_trial_flip_bit(const struct side *c, uint64_t *state, unsigned char *now) {
    if (c->rows == 0 || c->columns == 0) return;
    const size_t row = kn_random(state) % (c->batch * c->rows);
    const size_t at = row_begin(c, row) + kn_random(state) % c->columns;
    now[at * kn_type_bytes(c->type)] ^= 1;
}

/* The planted fault: two elements of the last row that has two different ones. */
static void gemm_trial_swap_last(const struct side *c, unsigned char *now) {
    const size_t element = kn_type_bytes(c->type);
    for (size_t row = c->batch * c->rows; row-- > 0;) {
        if (kn_swap_last(now + row_begin(c, row) * element, element, c->columns)) return;
    }
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
    gemm_trial_shape(a, 'A', gemm.transpose_a ? gemm.k : gemm.m, gemm.transpose_a ? gemm.m : gemm.k,
                     type, trial);
    gemm_trial_shape(b, 'B', gemm.transpose_b ? gemm.n : gemm.k, gemm.transpose_b ? gemm.k : gemm.n,
                     type, trial);
    gemm_trial_shape(c, 'C', gemm.m, gemm.n, gemm.c_type, trial);
    TOL_TRY(gemm_trial_fill(context, a, &state, trial, true));
    TOL_TRY(gemm_trial_fill(context, b, &state, trial, true));
    TOL_TRY(gemm_trial_fill(context, c, &state, trial, gemm.beta != 0));
    gemm.a = gemm_trial_matrix_of(a), gemm.b = gemm_trial_matrix_of(b),
    gemm.c = gemm_trial_matrix_of(c);
    if (trial->workspace) TOL_TRY(kn_gemm_workspace(kernels, &gemm, &found.workspace));
    if (found.workspace > 0) {
        TOL_TRY(tol_buffer_create(context, found.workspace, 1, &workspace));
        TOL_TRY(tol_buffer_fill_at(workspace, 0, 0xff, 1, found.workspace));
        gemm.workspace = workspace;
    }
    TOL_TRY(kn_gemm(kernels, stream, &gemm));
    TOL_TRY(tol_stream_synchronize_for(stream, KN_PATIENCE_MS));
    now = malloc(c->device.bytes + 1);
    TOL_CHECK(now != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu bytes", c->device.bytes);
    TOL_TRY(kn_guarded_read(&c->device, now));
    TOL_TRY(kn_guarded_check(&c->device, &found.touched));
    found.touched += gemm_trial_count_touched(c, now);
    if (trial->flips_bit) gemm_trial_flip_bit(c, &state, now);
    if (trial->swaps_last) gemm_trial_swap_last(c, now);
    TOL_TRY(gemm_trial_judge(trial, sides, now, &state, &found));
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
