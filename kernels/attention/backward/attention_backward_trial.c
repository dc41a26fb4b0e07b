/*
 * Makes rows, runs the forward kernel and a backward one, and judges the gradients.
 */
#include "attention/backward/attention_backward_trial.h"

#include "attention/backward/attention_backward_oracle.h"
#include "attention/forward/attention_matrix.h"
#include "core/check.h"
#include "parallel.h"
#include "swapped.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { Q, K, V, D_OUT, OUT, D_Q, D_K, D_V, KINDS, GRADIENTS = KINDS - D_Q };

struct backward_stage {
    struct attention_matrix matrices[KINDS];
    struct tol_buffer *lse, *workspace, *forward_workspace;
    unsigned char *bytes;        /* room for any of the matrices with its gaps */
    double *expected[GRADIENTS]; /* the oracle's gradients, then what is allowed */
};

static bool is_of_keys(int kind) {
    return kind == K || kind == V || kind == D_K || kind == D_V;
}

static tol_status backward_trial_make(struct kn_kernels *kernels,
                                      const struct kn_attention_backward_trial *trial,
                                      struct backward_stage *stage) {
    tol_status status = TOL_OK;
    const struct kn_attention *x = &trial->backward.forward;
    const struct attention_layout layout = {trial->heads_inside, trial->gap, trial->skew};
    uint64_t random = trial->seed;
    size_t most = 0;
    for (int kind = 0; kind < KINDS; kind++) {
        TOL_TRY(
            attention_matrix_make(kernels, x, !is_of_keys(kind), layout, &stage->matrices[kind]));
        const size_t bytes = stage->matrices[kind].guarded.bytes;
        if (bytes > most) most = bytes;
    }
    stage->bytes = malloc(most + 1);
    TOL_CHECK(stage->bytes != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu bytes", most);
    for (int kind = Q; kind <= D_OUT; kind++) {
        struct attention_matrix *matrix = &stage->matrices[kind];
        const bool is_value = kind == V || kind == D_OUT;
        const double scale = is_value ? trial->values_scale : trial->scale;
        kn_inputs_draw(is_value ? trial->values : trial->distribution, &random,
                       scale != 0 ? scale : 1, matrix->values, attention_matrix_count(matrix));
        TOL_TRY(attention_matrix_fill(matrix, stage->bytes));
    }
    for (int i = 0; i < GRADIENTS; i++) {
        const size_t count = attention_matrix_count(&stage->matrices[D_Q + i]);
        stage->expected[i] = malloc((2 * count + 1) * sizeof *stage->expected[i]);
        TOL_CHECK(stage->expected[i] != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu gradients", count);
    }
out:
    return status;
}

static void backward_trial_destroy(struct backward_stage *stage) {
    for (int kind = 0; kind < KINDS; kind++) attention_matrix_destroy(&stage->matrices[kind]);
    for (int i = 0; i < GRADIENTS; i++) free(stage->expected[i]);
    tol_buffer_destroy(stage->lse);
    tol_buffer_destroy(stage->workspace);
    tol_buffer_destroy(stage->forward_workspace);
    free(stage->bytes);
}

static tol_status backward_trial_run(struct kn_kernels *kernels, struct tol_stream *stream,
                                     const struct kn_attention_backward_trial *trial,
                                     struct backward_stage *stage) {
    tol_status status = TOL_OK;
    struct kn_attention_backward b = trial->backward;
    struct kn_attention *x = &b.forward;
    struct tol_context *context = kn_kernels_context(kernels);
    const size_t bytes = kn_attention_backward_workspace_of(&b);
    size_t forward_bytes = 0;
    TOL_TRY(
        tol_buffer_create(context, x->batch * x->heads * x->q_length, sizeof(float), &stage->lse));
    TOL_TRY(tol_buffer_create(context, bytes, 1, &stage->workspace));
    TOL_TRY(tol_buffer_fill_at(stage->workspace, 0, 0xff, 1, bytes));
    x->q = stage->matrices[Q].heads, x->k = stage->matrices[K].heads;
    x->v = stage->matrices[V].heads, x->out = stage->matrices[OUT].heads;
    x->lse = stage->lse, x->workspace = NULL;
    TOL_TRY(kn_attention_workspace(kernels, x, &forward_bytes));
    if (forward_bytes > 0) {
        TOL_TRY(tol_buffer_create(context, forward_bytes, 1, &stage->forward_workspace));
        x->workspace = stage->forward_workspace;
    }
    TOL_TRY(kn_attention(kernels, stream, x));
    b.d_out = stage->matrices[D_OUT].heads, b.d_q = stage->matrices[D_Q].heads;
    b.d_k = stage->matrices[D_K].heads, b.d_v = stage->matrices[D_V].heads;
    b.workspace = stage->workspace;
    TOL_TRY(kn_attention_backward(kernels, stream, &b));
    status = tol_stream_synchronize_for(stream, KN_PATIENCE_MS);
out:
    return status;
}

struct backward_judging {
    const struct kn_attention *problem;
    const struct backward_stage *stage;
    enum kn_attention_data data;
    atomic_bool failed;
};

/* Makes the oracle's gradients of head i of k and v, of all batches. */
static void solve_head(void *user, size_t i) {
    struct backward_judging *j = user;
    const struct kn_attention *x = j->problem;
    const struct attention_matrix *m = j->stage->matrices;
    const size_t of_keys = x->kv_length * x->head_size;
    const size_t of_rows = x->heads / x->kv_heads * x->q_length * x->head_size;
    const struct kn_attention_backward_heads heads = {
        m[Q].values + i * of_rows, m[K].values + i * of_keys, m[V].values + i * of_keys,
        m[D_OUT].values + i * of_rows};
    struct kn_attention_gradient gradients[GRADIENTS];
    for (int k = 0; k < GRADIENTS; k++) {
        double *values = j->stage->expected[k] + i * (k == 0 ? of_rows : of_keys);
        gradients[k] =
            (struct kn_attention_gradient){values, values + attention_matrix_count(&m[D_Q + k])};
    }
    if (!kn_attention_backward_oracle(
            x, j->data, &heads,
            &(struct kn_attention_gradients){gradients[0], gradients[1], gradients[2]})) {
        atomic_store(&j->failed, true);
    }
}

static tol_status backward_trial_judge(const struct kn_attention_backward_trial *trial,
                                       struct backward_stage *stage,
                                       struct kn_attention_backward_outcome *outcome) {
    const double product_ns = 8; /* of a pair's element */
    tol_status status = TOL_OK;
    const struct kn_attention *x = &trial->backward.forward;
    const bool is_drawn =
        kn_distribution_has_signs(trial->distribution) && kn_distribution_has_signs(trial->values);
    struct backward_judging judging = {
        .problem = x, .stage = stage, .data = is_drawn ? KN_ATTENTION_DRAWN : KN_ATTENTION_ANY};
    struct kn_deviation *const found[GRADIENTS] = {&outcome->d_q, &outcome->d_k, &outcome->d_v};
    const struct kn_tolerance none = {0, 0};
    kn_parallel_for(x->batch * x->kv_heads,
                    product_ns * (double)(x->batch * x->heads * x->q_length) *
                        (double)(x->kv_length * x->head_size),
                    solve_head, &judging);
    TOL_CHECK(!judging.failed, TOL_OUT_OF_HOST_MEMORY, "the gradients of %zu keys", x->kv_length);
    for (int i = 0; i < GRADIENTS; i++) {
        struct attention_matrix *matrix = &stage->matrices[D_Q + i];
        const size_t count = attention_matrix_count(matrix), width = matrix->width;
        size_t around = 0;
        TOL_TRY(kn_guarded_read(&matrix->guarded, stage->bytes));
        TOL_TRY(kn_guarded_check(&matrix->guarded, &around));
        if (trial->swaps_last && i == 1) {
            kn_swap_last(stage->bytes + attention_matrix_place(matrix, count / width - 1),
                         matrix->element, width);
        }
        for (size_t row = 0; row < count / width; row++) {
            const unsigned char *got = stage->bytes + attention_matrix_place(matrix, row);
            const double *expected = stage->expected[i] + row * width;
            kn_numbers_load(x->type, got, width, matrix->values + row * width);
            *found[i] = kn_deviation_join(
                *found[i], kn_deviation_of(x->type, got, expected, width, none, expected + count));
        }
        if (trial->results[i] != NULL) {
            memcpy(trial->results[i], matrix->values, count * sizeof *matrix->values);
        }
        outcome->touched += around + attention_matrix_gaps_touched(matrix, stage->bytes);
    }
out:
    return status;
}

tol_status kn_attention_backward_try(struct kn_kernels *kernels, struct tol_stream *stream,
                                     const struct kn_attention_backward_trial *trial,
                                     struct kn_attention_backward_outcome *outcome) {
    const struct kn_deviation nothing = {.first = KN_NOWHERE, .worst = KN_NOWHERE};
    tol_status status = TOL_OK;
    struct backward_stage stage = {0};
    *outcome = (struct kn_attention_backward_outcome){nothing, nothing, nothing, 0};
    TOL_TRY(backward_trial_make(kernels, trial, &stage));
    TOL_TRY(backward_trial_run(kernels, stream, trial, &stage));
    status = backward_trial_judge(trial, &stage, outcome);
out:
    backward_trial_destroy(&stage);
    return status;
}
