/*
 * Making matrices, and judging one.
 */
#include "gemm_trial.h"

#include "check.h"
#include "gemm_oracle.h"
#include "guarded.h"

#include <math.h>
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

/* Everything is NaN, and then the elements are numbers. */
static tol_status fill(struct tol_context *context, struct side *side, uint64_t *state,
                       const struct kn_gemm_trial *trial, bool with_numbers) {
    tol_status status = TOL_OK;
    const size_t element = kn_type_bytes(side->type), bytes = side->elements * element;
    const double scale = trial->scale != 0 ? trial->scale : 1;
    float *row = malloc((side->columns + 1) * sizeof *row);
    side->host = malloc(bytes + 1);
    TOL_CHECK(row != NULL && side->host != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu bytes", bytes);
    memset(side->host, 0xff, bytes);
    for (size_t i = 0; with_numbers && i < side->batch * side->rows; i++) {
        const size_t at = i / side->rows * side->stride + i % side->rows * side->leading;
        kn_inputs_draw(trial->distribution, state, scale, row, side->columns);
        kn_numbers_store(side->type, row, side->columns, side->host + at * element);
    }
    TOL_TRY(kn_guarded_create(context, bytes, trial->skew * element, &side->device));
    status = kn_guarded_write(&side->device, side->host);
out:
    free(row);
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

/* One row of C: against the oracle, or only against never having been written. */
static struct kn_deviation judge_row(const struct kn_gemm_trial *trial, const struct side sides[3],
                                     const unsigned char *now, size_t batch, size_t row,
                                     bool with_oracle, double *result, double *allowed) {
    const struct kn_gemm *gemm = &trial->gemm;
    const struct side *c = &sides[2];
    const unsigned char *at = now + (batch * c->stride + row * c->leading) * kn_type_bytes(c->type);
    const struct kn_gemm_oracle_matrix a = oracle_matrix_of(&sides[0]),
                                       b = oracle_matrix_of(&sides[1]), old = oracle_matrix_of(c);
    if (with_oracle) {
        kn_gemm_oracle(gemm, batch, row, &a, &b, &old, result, allowed);
    } else {
        for (size_t j = 0; j < gemm->n; j++) result[j] = 0, allowed[j] = INFINITY;
    }
    struct kn_deviation d =
        kn_deviation_of(c->type, at, result, gemm->n, (struct kn_tolerance){0, 0}, allowed);
    if (!with_oracle) d.absolute = d.relative = d.ulp = d.root_mean_square = 0;
    return d;
}

static tol_status judge(const struct kn_gemm_trial *trial, const struct side sides[3],
                        const unsigned char *now, uint64_t *state, struct kn_deviation *deviation) {
    enum { ORACLE_ROWS = 8 };
    const struct kn_gemm *gemm = &trial->gemm;
    const struct side *c = &sides[2];
    const bool is_large = (double)gemm->m * (double)gemm->n * (double)gemm->k >= 0x1p28;
    const size_t every = is_large && gemm->m > ORACLE_ROWS ? gemm->m / ORACLE_ROWS : 1;
    const size_t first = kn_random(state) % every; /* all are taken where every is 1 */
    double *result = malloc(2 * (gemm->n + 1) * sizeof *result);
    struct kn_deviation all = {.first = KN_NOWHERE, .worst = KN_NOWHERE};
    if (result == NULL) {
        return tol_fail(__FILE__, __LINE__, TOL_OUT_OF_HOST_MEMORY, "%zu columns", gemm->n);
    }
    for (size_t row = 0; row < c->batch * c->rows; row++) {
        const size_t inner = row % c->rows;
        const bool with_oracle = inner % every == first || inner + 1 == c->rows;
        all = kn_deviation_join(all, judge_row(trial, sides, now, row / c->rows, inner, with_oracle,
                                               result, result + gemm->n));
    }
    free(result);
    *deviation = all;
    return TOL_OK;
}

tol_status kn_gemm_try(struct kn_kernels *kernels, struct tol_stream *stream,
                       const struct kn_gemm_trial *trial, struct kn_gemm_outcome *outcome) {
    tol_status status = TOL_OK;
    struct tol_context *context = kn_kernels_context(kernels);
    struct kn_gemm gemm = trial->gemm;
    const enum kn_type type = kn_gemm_input_type(gemm.precision);
    struct kn_gemm_outcome found = {0};
    unsigned char *now = NULL;
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
    for (int i = 0; i < 3; i++) {
        kn_guarded_destroy(&sides[i].device);
        free(sides[i].host);
    }
    free(now);
    return status;
}
