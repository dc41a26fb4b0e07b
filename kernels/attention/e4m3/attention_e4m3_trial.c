/*
 * Makes rows of e4m3 and their scales, runs a kernel, and judges the result. Strides and gaps are
 * counted in elements, so a matrix of out's type places the rows of q, k and v as well; their
 * elements take a byte each.
 */
#include "attention/e4m3/attention_e4m3_trial.h"

#include "attention/forward/attention_matrix.h"
#include "attention/e4m3/attention_e4m3_oracle.h"
#include "core/check.h"
#include "parallel.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { Q, K, V, OUT, KINDS, INPUTS = OUT, LSE_AFTER = 1 };

struct e4m3_stage {
    struct attention_matrix rows[KINDS]; /* on the device of OUT alone is used */
    struct kn_guarded numbers[INPUTS];
    float *scales[INPUTS]; /* [batch][head]; all 1 if they are left out */
    struct tol_buffer *scale[INPUTS], *lse;
    unsigned char *bytes; /* room for any of the rows with their gaps */
    float *logarithms;
};

static size_t e4m3_trial_heads_of(const struct kn_attention *x, int kind) {
    return x->batch * (kind == Q ? x->heads : x->kv_heads);
}

static size_t e4m3_trial_rows_of(const struct kn_attention *x) {
    return x->batch * x->heads * x->q_length;
}

/* Rounds drawn values to e4m3, and gives them to the device, with NaN between rows. */
static tol_status e4m3_trial_fill_rows(struct kn_kernels *kernels,
                                       const struct kn_attention_e4m3_trial *t, int kind,
                                       uint64_t *random, struct e4m3_stage *stage) {
    tol_status status = TOL_OK;
    struct attention_matrix *rows = &stage->rows[kind];
    const size_t count = attention_matrix_count(rows), width = rows->width;
    const size_t bytes = rows->guarded.bytes / rows->element;
    const double scale = kind == V ? t->values_scale : t->scale;
    kn_inputs_draw(kind == V ? t->values : t->distribution, random, scale != 0 ? scale : 1,
                   rows->values, count);
    memset(stage->bytes, 0xff, bytes);
    for (size_t i = 0; i < count; i++) {
        const size_t at = attention_matrix_place(rows, i / width) / rows->element + i % width;
        stage->bytes[at] = kn_e4m3_of(rows->values[i]);
        rows->values[i] = kn_e4m3_value(stage->bytes[at]);
    }
    TOL_TRY(kn_guarded_create(kn_kernels_context(kernels), bytes, t->skew, &stage->numbers[kind]));
    status = count > 0 ? kn_guarded_write(&stage->numbers[kind], stage->bytes) : TOL_OK;
out:
    return status;
}

static tol_status make_scales(struct kn_kernels *kernels, const struct kn_attention_e4m3_trial *t,
                              int kind, uint64_t *random, struct e4m3_stage *stage) {
    tol_status status = TOL_OK;
    const size_t heads = e4m3_trial_heads_of(&t->e4m3.attention, kind);
    float *scales = stage->scales[kind] = malloc((heads + 1) * sizeof *scales);
    TOL_CHECK(scales != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu scales", heads);
    for (size_t i = 0; i < heads; i++) {
        scales[i] = t->has_scales ? 0.25f + 1.75f * (float)kn_random_unit(random) : 1;
    }
    TOL_TRY(tol_buffer_create(kn_kernels_context(kernels), heads + 1, sizeof *scales,
                              &stage->scale[kind]));
    TOL_TRY(tol_buffer_write_at(stage->scale[kind], 0, scales, heads * sizeof *scales));
    if (t->doubles_scale && kind == V) {
        const float twice = 2 * scales[0];
        status = tol_buffer_write_at(stage->scale[kind], 0, &twice, sizeof twice);
    }
out:
    return status;
}

static tol_status e4m3_trial_make(struct kn_kernels *kernels,
                                  const struct kn_attention_e4m3_trial *t,
                                  struct e4m3_stage *stage) {
    tol_status status = TOL_OK;
    const struct kn_attention *x = &t->e4m3.attention;
    const struct attention_layout layout = {t->heads_inside, t->gap, t->skew};
    const size_t logarithms = e4m3_trial_rows_of(x) + LSE_AFTER;
    uint64_t random = t->seed;
    size_t most = 0;
    for (int kind = 0; kind < KINDS; kind++) {
        struct attention_matrix *rows = &stage->rows[kind];
        TOL_TRY(attention_matrix_make(kernels, x, kind == Q || kind == OUT, layout, rows));
        if (rows->guarded.bytes > most) most = rows->guarded.bytes;
    }
    stage->bytes = malloc(most + 1);
    stage->logarithms = malloc(logarithms * sizeof *stage->logarithms);
    TOL_CHECK(stage->bytes != NULL && stage->logarithms != NULL, TOL_OUT_OF_HOST_MEMORY,
              "%zu bytes", most);
    for (int kind = 0; kind < INPUTS; kind++) {
        TOL_TRY(e4m3_trial_fill_rows(kernels, t, kind, &random, stage));
        TOL_TRY(make_scales(kernels, t, kind, &random, stage));
    }
    TOL_TRY(tol_buffer_create(kn_kernels_context(kernels), logarithms, sizeof(float), &stage->lse));
    status = tol_buffer_fill_at(stage->lse, 0, 0xff, 1, logarithms * sizeof(float));
out:
    return status;
}

static void e4m3_trial_destroy(struct e4m3_stage *stage) {
    for (int kind = 0; kind < KINDS; kind++) attention_matrix_destroy(&stage->rows[kind]);
    for (int kind = 0; kind < INPUTS; kind++) {
        kn_guarded_destroy(&stage->numbers[kind]);
        tol_buffer_destroy(stage->scale[kind]);
        free(stage->scales[kind]);
    }
    tol_buffer_destroy(stage->lse);
    free(stage->bytes);
    free(stage->logarithms);
}

static struct kn_heads e4m3_trial_operand_of(const struct e4m3_stage *stage, int kind) {
    struct kn_heads heads = stage->rows[kind].heads;
    heads.buffer = stage->numbers[kind].buffer, heads.offset = stage->numbers[kind].offset;
    return heads;
}

static tol_status e4m3_trial_run(struct kn_kernels *kernels, struct tol_stream *stream,
                                 const struct kn_attention_e4m3_trial *t,
                                 struct e4m3_stage *stage) {
    tol_status status = TOL_OK;
    struct kn_attention_e4m3 p = t->e4m3;
    const size_t logarithms = e4m3_trial_rows_of(&p.attention) + LSE_AFTER;
    p.attention.q = e4m3_trial_operand_of(stage, Q),
    p.attention.k = e4m3_trial_operand_of(stage, K);
    p.attention.v = e4m3_trial_operand_of(stage, V), p.attention.out = stage->rows[OUT].heads;
    p.attention.lse = stage->lse;
    p.q_scales = p.k_scales = p.v_scales = (struct kn_place){0, 0};
    if (t->has_scales) {
        p.q_scales = kn_place_of(stage->scale[Q], 0), p.k_scales = kn_place_of(stage->scale[K], 0);
        p.v_scales = kn_place_of(stage->scale[V], 0);
    }
    TOL_TRY(kn_attention_e4m3(kernels, stream, &p));
    TOL_TRY(tol_stream_synchronize_for(stream, KN_PATIENCE_MS));
    TOL_TRY(kn_guarded_read(&stage->rows[OUT].guarded, stage->bytes));
    status = tol_buffer_read(stage->lse, stage->logarithms, logarithms * sizeof(float));
out:
    return status;
}

struct e4m3_judging {
    const struct kn_attention *problem;
    const struct e4m3_stage *stage;
    struct kn_deviation (*rows)[2]; /* of a row of out, and of its logarithm */
    atomic_bool failed;
};

static void e4m3_trial_judge_row(void *user, size_t i) {
    struct e4m3_judging *j = user;
    const struct kn_attention *x = j->problem;
    const struct e4m3_stage *stage = j->stage;
    const struct kn_tolerance none = {0, 0};
    const size_t d = x->head_size, head = i / x->q_length; /* heads of all batches */
    const size_t kv_head = head / (x->heads / x->kv_heads);
    const struct kn_attention_head rows = {stage->rows[Q].values + head * x->q_length * d,
                                           stage->rows[K].values + kv_head * x->kv_length * d,
                                           stage->rows[V].values + kv_head * x->kv_length * d};
    const struct kn_e4m3_scales scales = {stage->scales[Q][head], stage->scales[K][kv_head],
                                          stage->scales[V][kv_head]};
    double out[2 * 256];
    struct kn_attention_row expected = {.out = out, .allowed = out + d};
    if (!kn_attention_e4m3_oracle(x, &scales, &rows, i % x->q_length, &expected)) {
        atomic_store(&j->failed, true);
        return;
    }
    const unsigned char *got = stage->bytes + attention_matrix_place(&stage->rows[OUT], i);
    j->rows[i][0] = kn_deviation_of(x->type, got, out, d, none, expected.allowed);
    j->rows[i][1] = kn_deviation_of(KN_F32, stage->logarithms + i, &expected.lse, 1, none,
                                    &expected.lse_allowed);
}

static tol_status e4m3_trial_judge(const struct kn_attention_e4m3_trial *t,
                                   struct e4m3_stage *stage,
                                   struct kn_attention_e4m3_outcome *outcome) {
    const double product_ns = 4; /* of a pair's element, in two oracles */
    tol_status status = TOL_OK;
    const struct kn_attention *x = &t->e4m3.attention;
    const size_t rows = e4m3_trial_rows_of(x);
    struct e4m3_judging judging = {
        .problem = x, .stage = stage, .rows = malloc((rows + 1) * sizeof *judging.rows)};
    size_t around = 0;
    TOL_CHECK(judging.rows != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu deviations", rows);
    kn_parallel_for(rows, product_ns * (double)rows * (double)(x->kv_length * x->head_size),
                    e4m3_trial_judge_row, &judging);
    TOL_CHECK(!judging.failed, TOL_OUT_OF_HOST_MEMORY, "a row of %zu keys", x->kv_length);
    for (size_t i = 0; i < rows; i++) {
        outcome->out = kn_deviation_join(outcome->out, judging.rows[i][0]);
        outcome->lse = kn_deviation_join(outcome->lse, judging.rows[i][1]);
    }
    const unsigned char *after = (const unsigned char *)(stage->logarithms + rows);
    for (size_t i = 0; i < LSE_AFTER * sizeof(float); i++) outcome->touched += after[i] != 0xff;
    TOL_TRY(kn_guarded_check(&stage->rows[OUT].guarded, &around));
    outcome->touched += around + attention_matrix_gaps_touched(&stage->rows[OUT], stage->bytes);
out:
    free(judging.rows);
    return status;
}

tol_status kn_attention_e4m3_try(struct kn_kernels *kernels, struct tol_stream *stream,
                                 const struct kn_attention_e4m3_trial *trial,
                                 struct kn_attention_e4m3_outcome *outcome) {
    const struct kn_deviation nothing = {.first = KN_NOWHERE, .worst = KN_NOWHERE};
    tol_status status = TOL_OK;
    struct e4m3_stage stage = {0};
    *outcome = (struct kn_attention_e4m3_outcome){nothing, nothing, 0};
    TOL_TRY(e4m3_trial_make(kernels, trial, &stage));
    TOL_TRY(e4m3_trial_run(kernels, stream, trial, &stage));
    status = e4m3_trial_judge(trial, &stage, outcome);
out:
    e4m3_trial_destroy(&stage);
    return status;
}
