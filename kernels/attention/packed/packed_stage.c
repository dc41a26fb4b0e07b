/*
 * Makes the rows of sequences, one after the other, and judges each sequence alone.
 */
#include "attention/packed/packed_stage.h"

#include "attention/forward/attention_oracle.h"
#include "core/check.h"
#include "parallel.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { Q = PACKED_Q, V = PACKED_V, OUT = PACKED_OUT, KINDS = PACKED_KINDS, NO_SEQUENCE = -1 };

/* Logarithms after the last: a tile of rows, which a kernel with a defect may write. */
enum { LSE_AFTER = 256 };

static int sequence_of(const struct kn_attention_packed_trial *trial, bool is_of_q, size_t row) {
    const int *begins = is_of_q ? trial->q_begins : trial->kv_begins;
    for (size_t i = 0; i < trial->packed.attention.batch; i++) {
        if ((size_t)begins[i] <= row && row < (size_t)begins[i + 1]) return (int)i;
    }
    return NO_SEQUENCE;
}

static bool is_clean(const struct kn_attention_packed_trial *trial, int sequence) {
    return sequence != NO_SEQUENCE && (trial->is_poisoned == NULL || !trial->is_poisoned[sequence]);
}

/* NaN, infinity and -infinity, in turn. */
static void packed_stage_poison(const struct kn_attention_packed_trial *trial, bool is_of_q,
                                struct attention_matrix *matrix) {
    static const float poisons[] = {NAN, INFINITY, -INFINITY};
    for (size_t row = 0; row < matrix->head_count * matrix->length; row++) {
        if (is_clean(trial, sequence_of(trial, is_of_q, row % matrix->length))) continue;
        for (size_t i = 0; i < matrix->width; i++) {
            matrix->values[row * matrix->width + i] = poisons[row % 3];
        }
    }
}

/* The rows of all sequences as one problem, which the matrices have. */
static struct kn_attention packed_stage_whole_of(const struct kn_attention_packed *p) {
    struct kn_attention whole = p->attention;
    whole.batch = 1, whole.q_length = p->q_rows, whole.kv_length = p->kv_rows;
    return whole;
}

/* The logarithms, which begin as NaN, and where sequences begin. */
static tol_status packed_stage_make_numbers(struct kn_kernels *kernels,
                                            const struct kn_attention_packed_trial *trial,
                                            struct packed_stage *stage) {
    tol_status status = TOL_OK;
    const struct kn_attention_packed *p = &trial->packed;
    struct tol_context *context = kn_kernels_context(kernels);
    const int *const begins[2] = {trial->q_begins, trial->kv_begins};
    const size_t rows = p->attention.heads * p->q_rows + LSE_AFTER;
    const size_t count = p->attention.batch + 1;
    TOL_TRY(tol_buffer_create(context, rows, sizeof(float), &stage->lse));
    TOL_TRY(tol_buffer_fill_at(stage->lse, 0, 0xff, 1, rows * sizeof(float)));
    for (int i = 0; i < 2; i++) {
        TOL_TRY(tol_buffer_create(context, count, sizeof(int), &stage->begins[i]));
        TOL_TRY(tol_buffer_write(stage->begins[i], begins[i], count * sizeof(int)));
    }
out:
    return status;
}

tol_status packed_stage_make(struct kn_kernels *kernels,
                             const struct kn_attention_packed_trial *trial,
                             struct packed_stage *stage) {
    tol_status status = TOL_OK;
    const struct kn_attention whole = packed_stage_whole_of(&trial->packed);
    const struct attention_layout layout = {trial->heads_inside, trial->gap, trial->skew};
    uint64_t random = trial->seed;
    size_t most = 0;
    for (int kind = 0; kind < KINDS; kind++) {
        struct attention_matrix *matrix = &stage->matrices[kind];
        TOL_TRY(attention_matrix_make(kernels, &whole, kind == Q || kind == OUT, layout, matrix));
        if (matrix->guarded.bytes > most) most = matrix->guarded.bytes;
    }
    stage->bytes = malloc(most + 1);
    stage->logarithms =
        malloc((whole.heads * whole.q_length + LSE_AFTER) * sizeof *stage->logarithms);
    TOL_CHECK(stage->bytes != NULL && stage->logarithms != NULL, TOL_OUT_OF_HOST_MEMORY,
              "%zu bytes", most);
    for (int kind = Q; kind <= V; kind++) {
        struct attention_matrix *matrix = &stage->matrices[kind];
        const double scale = kind == V ? trial->values_scale : trial->scale;
        kn_inputs_draw(kind == V ? trial->values : trial->distribution, &random,
                       scale != 0 ? scale : 1, matrix->values, attention_matrix_count(matrix));
        packed_stage_poison(trial, kind == Q, matrix);
        TOL_TRY(attention_matrix_fill(matrix, stage->bytes));
    }
    status = packed_stage_make_numbers(kernels, trial, stage);
out:
    return status;
}

void packed_stage_destroy(struct packed_stage *stage) {
    for (int kind = 0; kind < KINDS; kind++) attention_matrix_destroy(&stage->matrices[kind]);
    tol_buffer_destroy(stage->lse);
    for (int i = 0; i < 2; i++) tol_buffer_destroy(stage->begins[i]);
    free(stage->bytes);
    free(stage->logarithms);
}

struct kn_attention_packed packed_stage_wish(const struct kn_attention_packed_trial *trial,
                                             const struct packed_stage *stage) {
    struct kn_attention_packed p = trial->packed;
    p.attention.q = stage->matrices[Q].heads, p.attention.k = stage->matrices[PACKED_K].heads;
    p.attention.v = stage->matrices[V].heads, p.attention.out = stage->matrices[OUT].heads;
    p.attention.lse = stage->lse;
    p.q_begins = stage->begins[0], p.kv_begins = stage->begins[1];
    return p;
}

static tol_status read_results(struct tol_stream *stream,
                               const struct kn_attention_packed_trial *trial,
                               struct packed_stage *stage) {
    tol_status status = TOL_OK;
    const size_t rows = trial->packed.attention.heads * trial->packed.q_rows + LSE_AFTER;
    TOL_TRY(tol_stream_synchronize_for(stream, KN_PATIENCE_MS));
    TOL_TRY(kn_guarded_read(&stage->matrices[OUT].guarded, stage->bytes));
    status = tol_buffer_read(stage->lse, stage->logarithms, rows * sizeof(float));
out:
    return status;
}

struct packed_judging {
    const struct kn_attention_packed_trial *trial;
    const struct packed_stage *stage;
    enum kn_attention_data data;
    struct kn_deviation (*rows)[2]; /* of out, and of the logarithm */
    atomic_bool failed;
};

/* Row i of [head][row]; that of no sequence has no deviation. */
static void packed_stage_judge_row(void *user, size_t i) {
    struct packed_judging *j = user;
    const struct kn_attention_packed_trial *t = j->trial;
    const struct attention_matrix *m = j->stage->matrices;
    struct kn_attention x = t->packed.attention;
    const size_t head = i / t->packed.q_rows, row = i % t->packed.q_rows, d = x.head_size;
    const int s = sequence_of(t, true, row);
    j->rows[i][0] = j->rows[i][1] = (struct kn_deviation){.first = KN_NOWHERE, .worst = KN_NOWHERE};
    if (!is_clean(t, s)) return;
    const size_t first = (size_t)t->q_begins[s], key = (size_t)t->kv_begins[s];
    const size_t kv_head = head / (x.heads / x.kv_heads);
    x.batch = 1, x.q_length = (size_t)t->q_begins[s + 1] - first;
    x.kv_length = (size_t)t->kv_begins[s + 1] - key;
    const struct kn_attention_head operands = {
        m[Q].values + (head * t->packed.q_rows + first) * d,
        m[PACKED_K].values + (kv_head * t->packed.kv_rows + key) * d,
        m[V].values + (kv_head * t->packed.kv_rows + key) * d};
    double out[2 * 256];
    struct kn_attention_row expected = {.out = out, .allowed = out + d};
    const struct kn_tolerance none = {0, 0};
    if (!kn_attention_oracle(&x, j->data, &operands, row - first, &expected)) {
        atomic_store(&j->failed, true);
        return;
    }
    j->rows[i][0] = kn_deviation_of(x.type, j->stage->bytes + attention_matrix_place(&m[OUT], i),
                                    expected.out, d, none, expected.allowed);
    j->rows[i][1] = kn_deviation_of(KN_F32, &j->stage->logarithms[i], &expected.lse, 1, none,
                                    &expected.lse_allowed);
}

/* Of rows of no sequence, which out and the logarithms must keep; and after the logarithms. */
static size_t packed_stage_count_touched(const struct kn_attention_packed_trial *trial,
                                         const struct packed_stage *stage) {
    const struct attention_matrix *out = &stage->matrices[OUT];
    const size_t rows = out->head_count * out->length;
    const unsigned char *after = (const unsigned char *)&stage->logarithms[rows];
    size_t touched = 0;
    for (size_t i = 0; i < LSE_AFTER * sizeof(float); i++) touched += after[i] != 0xff;
    for (size_t i = 0; i < rows; i++) {
        const unsigned char *row = stage->bytes + attention_matrix_place(out, i);
        const unsigned char *lse = (const unsigned char *)&stage->logarithms[i];
        if (sequence_of(trial, true, i % out->length) != NO_SEQUENCE) continue;
        for (size_t b = 0; b < out->width * out->element; b++) touched += row[b] != 0xff;
        for (size_t b = 0; b < sizeof(float); b++) touched += lse[b] != 0xff;
    }
    return touched;
}

tol_status packed_stage_judge(struct tol_stream *stream,
                              const struct kn_attention_packed_trial *trial,
                              struct packed_stage *stage,
                              struct kn_attention_packed_outcome *outcome) {
    const double product_ns = 4; /* of a pair's element */
    tol_status status = TOL_OK;
    const struct kn_attention_packed *p = &trial->packed;
    const size_t rows = p->attention.heads * p->q_rows;
    const bool is_drawn =
        kn_distribution_has_signs(trial->distribution) && kn_distribution_has_signs(trial->values);
    struct packed_judging judging = {.trial = trial,
                                     .stage = stage,
                                     .data = is_drawn ? KN_ATTENTION_DRAWN : KN_ATTENTION_ANY,
                                     .rows = malloc((rows + 1) * sizeof *judging.rows)};
    size_t around = 0;
    const struct kn_deviation nothing = {.first = KN_NOWHERE, .worst = KN_NOWHERE};
    *outcome = (struct kn_attention_packed_outcome){nothing, nothing, 0};
    TOL_CHECK(judging.rows != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu deviations", rows);
    TOL_TRY(read_results(stream, trial, stage));
    kn_parallel_for(
        rows, product_ns * (double)rows * (double)(p->attention.kv_length * p->attention.head_size),
        packed_stage_judge_row, &judging);
    TOL_CHECK(!judging.failed, TOL_OUT_OF_HOST_MEMORY, "a row of %zu keys", p->attention.kv_length);
    for (size_t i = 0; i < rows; i++) {
        outcome->out = kn_deviation_join(outcome->out, judging.rows[i][0]);
        outcome->lse = kn_deviation_join(outcome->lse, judging.rows[i][1]);
    }
    TOL_TRY(kn_guarded_check(&stage->matrices[OUT].guarded, &around));
    outcome->touched = around + packed_stage_count_touched(trial, stage) +
                       attention_matrix_gaps_touched(&stage->matrices[OUT], stage->bytes);
out:
    free(judging.rows);
    return status;
}
