/*
 * Makes rows, runs a kernel, and judges the result.
 */
#include "attention/forward/attention_trial.h"

#include "attention/forward/attention_matrix.h"
#include "attention/forward/attention_oracle.h"
#include "core/check.h"
#include "guarded.h"
#include "parallel.h"
#include "swapped.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { Q, K, V, OUT, KINDS };

struct stage {
    struct attention_matrix rows[KINDS];
    struct kn_guarded lse;
    struct tol_buffer *workspace;
    unsigned char *bytes; /* room for any of the rows with their gaps, or for lse */
};

static tol_status attention_trial_fill_rows(const struct kn_attention_trial *trial, int kind,
                                            uint64_t *random, unsigned char *bytes,
                                            struct attention_matrix *rows) {
    const size_t count = attention_matrix_count(rows);
    const double scale = kind == V ? trial->values_scale : trial->scale;
    if (trial->given[kind] != NULL) {
        memcpy(rows->values, trial->given[kind], count * sizeof *rows->values);
    } else {
        kn_inputs_draw(kind == V ? trial->values : trial->distribution, random,
                       scale != 0 ? scale : 1, rows->values, count);
    }
    return attention_matrix_fill(rows, bytes);
}

struct judging {
    const struct kn_attention *problem;
    const struct stage *stage;
    enum kn_attention_data data;
    const float *lse;               /* NULL: not requested */
    struct kn_deviation (*rows)[2]; /* of a row of out, and of its logarithm */
    atomic_bool failed;
};

static void attention_trial_judge_row(void *user, size_t i) {
    struct judging *j = user;
    const struct kn_attention *x = j->problem;
    const struct stage *stage = j->stage;
    const struct kn_tolerance none = {0, 0};
    const size_t width = x->head_size, group = x->heads / (x->kv_heads != 0 ? x->kv_heads : 1);
    const size_t head = i / x->q_length, kv_head = head / group; /* heads of all batches */
    const struct kn_attention_head rows = {stage->rows[Q].values + head * x->q_length * width,
                                           stage->rows[K].values + kv_head * x->kv_length * width,
                                           stage->rows[V].values + kv_head * x->kv_length * width};
    double *expected = malloc(2 * width * sizeof *expected);
    struct kn_attention_row row = {.out = expected};
    if (expected != NULL) row.allowed = expected + width;
    if (expected == NULL || !kn_attention_oracle(x, j->data, &rows, i % x->q_length, &row)) {
        atomic_store(&j->failed, true);
        free(expected);
        return;
    }
    const unsigned char *got = stage->bytes + attention_matrix_place(&stage->rows[OUT], i);
    kn_numbers_load(x->type, got, width, stage->rows[OUT].values + i * width);
    j->rows[i][0] = kn_deviation_of(x->type, got, row.out, width, none, row.allowed);
    if (j->lse != NULL) {
        j->rows[i][1] = kn_deviation_of(KN_F32, j->lse + i, &row.lse, 1, none, &row.lse_allowed);
    }
    free(expected);
}

static enum kn_attention_data data_of(const struct kn_attention_trial *trial) {
    const bool is_given =
        trial->given[Q] != NULL || trial->given[K] != NULL || trial->given[V] != NULL;
    return !is_given && kn_distribution_has_signs(trial->distribution) &&
                   kn_distribution_has_signs(trial->values)
               ? KN_ATTENTION_DRAWN
               : KN_ATTENTION_ANY;
}

/* Compares all results with the oracle, head by head and row by row. */
static tol_status attention_trial_judge(const struct kn_attention_trial *trial, struct stage *stage,
                                        const float *lse, struct kn_attention_outcome *outcome) {
    const double product_ns = 0.8; /* of a key's element: the score's and the value's */
    tol_status status = TOL_OK;
    const struct kn_attention *x = &trial->attention;
    const size_t rows = x->batch * x->heads * x->q_length;
    struct judging judging = {
        .problem = x, .stage = stage, .data = data_of(trial), .lse = trial->lse ? lse : NULL};
    judging.rows = malloc((rows + 1) * sizeof *judging.rows);
    TOL_CHECK(judging.rows != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu rows", rows);
    kn_parallel_for(rows,
                    product_ns * (double)rows * (double)x->head_size * (double)(x->kv_length + 16),
                    attention_trial_judge_row, &judging);
    TOL_CHECK(!judging.failed, TOL_OUT_OF_HOST_MEMORY, "the weights of %zu keys", x->kv_length);
    for (size_t i = 0; i < rows; i++) {
        outcome->deviation = kn_deviation_join(outcome->deviation, judging.rows[i][0]);
        if (trial->lse) outcome->lse = kn_deviation_join(outcome->lse, judging.rows[i][1]);
    }
out:
    free(judging.rows);
    return status;
}

static tol_status attention_trial_run(struct kn_kernels *kernels, struct tol_stream *stream,
                                      const struct kn_attention_trial *trial, struct stage *stage) {
    tol_status status = TOL_OK;
    struct kn_attention x = trial->attention;
    size_t bytes = 0;
    x.q = stage->rows[Q].heads, x.k = stage->rows[K].heads, x.v = stage->rows[V].heads;
    x.out = stage->rows[OUT].heads;
    x.lse = x.workspace = NULL;
    if (trial->workspace) TOL_TRY(kn_attention_workspace(kernels, &x, &bytes));
    if (bytes > 0) {
        TOL_TRY(tol_buffer_create(kn_kernels_context(kernels), bytes, 1, &stage->workspace));
        x.workspace = stage->workspace;
    }
    struct tol_buffer *lse = NULL;
    if (trial->lse) {
        /* lse begins where its buffer begins: this one has no zone before it. */
        const size_t rows = x.batch * x.heads * x.q_length;
        TOL_TRY(tol_buffer_create(kn_kernels_context(kernels), rows + 1, sizeof(float), &lse));
        stage->lse = (struct kn_guarded){.buffer = lse, .bytes = rows * sizeof(float)};
        TOL_TRY(tol_buffer_fill_at(lse, 0, 0xff, 1, (rows + 1) * sizeof(float)));
        x.lse = lse;
    }
    TOL_TRY(kn_attention(kernels, stream, &x));
    status = tol_stream_synchronize_for(stream, KN_PATIENCE_MS);
out:
    return status;
}

tol_status kn_attention_try(struct kn_kernels *kernels, struct tol_stream *stream,
                            const struct kn_attention_trial *trial,
                            struct kn_attention_outcome *outcome) {
    tol_status status = TOL_OK;
    const struct kn_attention *x = &trial->attention;
    const size_t rows = x->batch * x->heads * x->q_length;
    struct stage stage = {0};
    uint64_t random = trial->seed;
    const struct attention_layout layout = {trial->heads_inside, trial->gap, trial->skew};
    size_t most = 0;
    float *lse = calloc(rows + 1, sizeof *lse);
    *outcome =
        (struct kn_attention_outcome){.deviation = {.first = KN_NOWHERE, .worst = KN_NOWHERE},
                                      .lse = {.first = KN_NOWHERE, .worst = KN_NOWHERE}};
    TOL_CHECK(lse != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu logarithms", rows);
    for (int kind = 0; kind < KINDS; kind++) {
        TOL_TRY(
            attention_matrix_make(kernels, x, kind == Q || kind == OUT, layout, &stage.rows[kind]));
        if (stage.rows[kind].guarded.bytes > most) most = stage.rows[kind].guarded.bytes;
    }
    stage.bytes = malloc(most + 1);
    TOL_CHECK(stage.bytes != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu bytes", most);
    for (int kind = Q; kind <= V; kind++) {
        TOL_TRY(attention_trial_fill_rows(trial, kind, &random, stage.bytes, &stage.rows[kind]));
    }
    TOL_TRY(attention_trial_run(kernels, stream, trial, &stage));
    if (rows == 0) goto out;
    if (trial->lse) {
        TOL_TRY(tol_buffer_read_at(stage.lse.buffer, 0, lse, (rows + 1) * sizeof *lse));
        const unsigned char *after = (const unsigned char *)(lse + rows);
        for (size_t i = 0; i < sizeof *lse; i++) outcome->touched += after[i] != 0xff;
    }
    struct attention_matrix *out_rows = &stage.rows[OUT];
    size_t around = 0;
    TOL_TRY(kn_guarded_read(&out_rows->guarded, stage.bytes));
    TOL_TRY(kn_guarded_check(&out_rows->guarded, &around));
    for (size_t row = trial->swaps_last ? rows : 0; row-- > 0;) {
        if (kn_swap_last(stage.bytes + attention_matrix_place(out_rows, row), out_rows->element,
                         out_rows->width)) {
            break;
        }
    }
    TOL_TRY(attention_trial_judge(trial, &stage, lse, outcome));
    if (trial->result != NULL) {
        memcpy(trial->result, out_rows->values,
               attention_matrix_count(out_rows) * sizeof *trial->result);
    }
    outcome->touched += around + attention_matrix_gaps_touched(out_rows, stage.bytes);
out:
    for (int kind = 0; kind < KINDS; kind++) attention_matrix_destroy(&stage.rows[kind]);
    tol_buffer_destroy(stage.lse.buffer);
    tol_buffer_destroy(stage.workspace);
    free(stage.bytes);
    free(lse);
    return status;
}
