/*
 * What attention's backward pass costs, beside that of a peer in another process, such as cuDNN's.
 * Operations are counted as usual: five products of each row with each key that it sees.
 */
#include "attention/backward/attention_backward.h"
#include "bench_check.h"

#include "core/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { Q, K, V, OUT, D_OUT, D_Q, D_K, D_V, KINDS };

struct gradients {
    struct kn_bench *bench;
    struct kn_attention_backward backward;
    struct tol_buffer *buffers[KN_BENCH_SETS_MAX][KINDS];
    struct tol_buffer *lse[KN_BENCH_SETS_MAX];
    struct tol_buffer *workspace;
    size_t sets;
};

static void take_set(struct gradients *g, size_t set) {
    struct tol_buffer **buffers = g->buffers[set];
    struct kn_attention *x = &g->backward.forward;
    x->q.buffer = buffers[Q], x->k.buffer = buffers[K], x->v.buffer = buffers[V];
    x->out.buffer = buffers[OUT], x->lse = g->lse[set];
    g->backward.d_out.buffer = buffers[D_OUT], g->backward.d_q.buffer = buffers[D_Q];
    g->backward.d_k.buffer = buffers[D_K], g->backward.d_v.buffer = buffers[D_V];
}

static tol_status attention_backward_bench_launch(void *user, size_t turn) {
    struct gradients *g = user;
    take_set(g, turn % g->sets);
    return kn_attention_backward(g->bench->kernels, g->bench->stream, &g->backward);
}

static tol_status attention_backward_bench_make_buffers(struct gradients *g) {
    tol_status status = TOL_OK;
    const struct kn_attention *x = &g->backward.forward;
    const size_t q = x->batch * x->heads * x->q_length * x->head_size;
    const size_t k = x->batch * x->kv_heads * x->kv_length * x->head_size;
    g->sets = kn_bench_sets(g->bench, 4 * (q + k) * kn_type_bytes(x->type));
    TOL_TRY(tol_buffer_create(g->bench->context, kn_attention_backward_workspace_of(&g->backward),
                              1, &g->workspace));
    g->backward.workspace = g->workspace;
    for (size_t i = 0; i < g->sets; i++) {
        for (size_t j = 0; j < KINDS; j++) {
            const bool of_keys = j == K || j == V || j == D_K || j == D_V;
            TOL_TRY(kn_bench_buffer(g->bench, x->type, of_keys ? k : q, KINDS * i + j,
                                    &g->buffers[i][j]));
        }
        TOL_TRY(tol_buffer_create(g->bench->context, q / x->head_size, sizeof(float), &g->lse[i]));
        take_set(g, i);
        TOL_TRY(kn_attention(g->bench->kernels, g->bench->stream, x));
    }
out:
    return status;
}

static double attention_backward_bench_operations_of(const struct kn_attention *x) {
    const double rows = (double)x->q_length, keys = (double)x->kv_length;
    const double seen = x->causal ? rows * keys - rows * (rows - 1) / 2 : rows * keys;
    return 10 * (double)(x->batch * x->heads * x->head_size) * seen;
}

/* ---- a row and a key, after they were timed -------------------------------------------------- */

/* The first heads of the last batch: those of q that share one of k and v. The row is the last of
 * the first head, which sees all keys, and the key is the first, which all rows see. The whole
 * oracle would take minutes; here lse and out are taken as the forward pass left them. */
struct shared_heads {
    float *q, *out, *d_out, *lse, *k, *v;
    double *d_q, *d_k, *d_v;
    size_t rows, keys, elements; /* rows: of all these heads of q */
    double scale;
};

static double attention_bench_dot(const float *a, const float *b, size_t count) {
    double sum = 0;
    for (size_t i = 0; i < count; i++) sum += (double)a[i] * (double)b[i];
    return sum;
}

/* The probability, and the gradient of the score. */
static double score_of(const struct shared_heads *s, size_t row, size_t key, double *d_score) {
    const size_t d = s->elements;
    const float *d_out = s->d_out + row * d;
    const double p = exp(s->scale * attention_bench_dot(s->q + row * d, s->k + key * d, d) -
                         (double)s->lse[row]);
    *d_score = p * (attention_bench_dot(d_out, s->v + key * d, d) -
                    attention_bench_dot(d_out, s->out + row * d, d));
    return p;
}

static void attention_bench_know(const struct shared_heads *s, size_t last) {
    const size_t d = s->elements;
    double d_score = 0;
    for (size_t key = 0; key < s->keys; key++) {
        score_of(s, last, key, &d_score);
        for (size_t i = 0; i < d; i++) s->d_q[i] += s->scale * d_score * (double)s->k[key * d + i];
    }
    for (size_t row = 0; row < s->rows; row++) {
        const double p = score_of(s, row, 0, &d_score);
        for (size_t i = 0; i < d; i++) {
            s->d_k[i] += s->scale * d_score * (double)s->q[row * d + i];
            s->d_v[i] += p * (double)s->d_out[row * d + i];
        }
    }
}

/* A tenth of what its elements are on the average: the probabilities were rounded to 16 bits. */
static tol_status check_gradient(struct gradients *g, const struct kn_bench_row *row, size_t kind,
                                 size_t first, const double *values) {
    const struct kn_attention *x = &g->backward.forward;
    double squares = 0;
    for (size_t i = 0; i < x->head_size; i++) squares += values[i] * values[i];
    const struct kn_bench_right right = {
        values,
        NULL,
        {0.1 * sqrt(squares / (double)x->head_size), kn_type_roundoff(x->type)},
        x->head_size};
    return kn_bench_check(g->bench, row, row->variant, x->type, g->buffers[0][kind], first, &right);
}

static tol_status attention_backward_bench_check(struct gradients *g,
                                                 const struct kn_bench_row *row) {
    tol_status status = TOL_OK;
    const struct kn_attention *x = &g->backward.forward;
    const size_t d = x->head_size, rows = x->heads / x->kv_heads * x->q_length;
    const size_t keys = x->kv_length;
    const size_t first_q = (x->batch - 1) * x->heads * x->q_length * d;
    const size_t first_k = (x->batch - 1) * x->kv_heads * keys * d;
    float *floats = malloc((3 * rows * d + rows + 2 * keys * d) * sizeof *floats);
    double *doubles = calloc(3 * d, sizeof *doubles);
    TOL_CHECK(floats != NULL && doubles != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu rows", rows);
    const struct shared_heads s = {.q = floats,
                                   .out = floats + rows * d,
                                   .d_out = floats + 2 * rows * d,
                                   .lse = floats + 3 * rows * d,
                                   .k = floats + 3 * rows * d + rows,
                                   .v = floats + 3 * rows * d + rows + keys * d,
                                   .d_q = doubles,
                                   .d_k = doubles + d,
                                   .d_v = doubles + 2 * d,
                                   .rows = rows,
                                   .keys = keys,
                                   .elements = d,
                                   .scale = 1 / sqrt((double)d)};
    TOL_TRY(kn_bench_read(x->type, g->buffers[0][Q], first_q, rows * d, s.q));
    TOL_TRY(kn_bench_read(x->type, g->buffers[0][OUT], first_q, rows * d, s.out));
    TOL_TRY(kn_bench_read(x->type, g->buffers[0][D_OUT], first_q, rows * d, s.d_out));
    TOL_TRY(kn_bench_read(KN_F32, g->lse[0], first_q / d, rows, s.lse));
    TOL_TRY(kn_bench_read(x->type, g->buffers[0][K], first_k, keys * d, s.k));
    TOL_TRY(kn_bench_read(x->type, g->buffers[0][V], first_k, keys * d, s.v));
    attention_bench_know(&s, x->q_length - 1);
    TOL_TRY(check_gradient(g, row, D_Q, first_q + (x->q_length - 1) * d, s.d_q));
    TOL_TRY(check_gradient(g, row, D_K, first_k, s.d_k));
    status = check_gradient(g, row, D_V, first_k, s.d_v);
out:
    free(floats);
    free(doubles);
    return status;
}

static tol_status attention_backward_bench_measure(struct gradients *g) {
    tol_status status = TOL_OK;
    const struct kn_attention *x = &g->backward.forward;
    struct kn_bench_row row = {.operation = "attention_backward",
                               .operations = attention_backward_bench_operations_of(x),
                               .rate = KN_RATE_HALVES};
    snprintf(row.shape, sizeof row.shape, "%s %zu x %zu/%zu x %zu, %zu x %zu%s",
             kn_type_name(x->type), x->batch, x->heads, x->kv_heads, x->head_size, x->q_length,
             x->kv_length, x->causal ? " causal" : "");
    snprintf(row.variant, sizeof row.variant, "%s", g->backward.variant);
    snprintf(row.problem, sizeof row.problem, "attention_backward %s %zu %zu %zu %zu %zu %zu %d",
             kn_type_name(x->type), x->batch, x->heads, x->kv_heads, x->q_length, x->kv_length,
             x->head_size, x->causal);
    if (!kn_bench_wants(g->bench, &row)) return TOL_OK;
    TOL_TRY(attention_backward_bench_make_buffers(g));
    TOL_TRY(kn_bench_measure(g->bench, &row, attention_backward_bench_launch, g));
    status = attention_backward_bench_check(g, &row);
out:
    tol_buffer_destroy(g->workspace);
    for (size_t i = 0; i < g->sets; i++) {
        for (int j = 0; j < KINDS; j++) tol_buffer_destroy(g->buffers[i][j]);
        tol_buffer_destroy(g->lse[i]);
    }
    return status;
}

static tol_status attention_backward_bench_run(struct kn_bench *bench) {
    static const struct {
        enum kn_type type;
        size_t batch, heads, kv_heads, length, head_size;
        bool causal;
        const char *variant;
    } problems[] = {{KN_BF16, 4, 32, 32, 4096, 128, true, "ordered"},
                    {KN_BF16, 4, 32, 32, 4096, 128, true, "wgmma"},
                    {KN_BF16, 4, 32, 32, 4096, 128, true, "tensor"},
                    {KN_BF16, 4, 32, 32, 4096, 128, false, "ordered"},
                    {KN_BF16, 4, 32, 32, 4096, 128, false, "wgmma"},
                    {KN_BF16, 4, 32, 32, 4096, 128, false, "tensor"},
                    {KN_BF16, 4, 32, 32, 4096, 64, true, "ordered"},
                    {KN_BF16, 4, 32, 32, 4096, 64, true, "wgmma"},
                    {KN_BF16, 4, 32, 32, 4096, 64, true, "tensor"},
                    {KN_F16, 4, 32, 32, 4096, 64, false, "ordered"},
                    {KN_F16, 4, 32, 32, 4096, 64, false, "wgmma"},
                    {KN_F16, 4, 32, 32, 4096, 64, false, "tensor"},
                    {KN_BF16, 1, 16, 16, 16384, 128, true, "ordered"},
                    {KN_BF16, 1, 16, 16, 16384, 128, true, "wgmma"},
                    {KN_BF16, 1, 64, 8, 4096, 128, true, "ordered"},
                    {KN_BF16, 1, 64, 8, 4096, 128, true, "wgmma"},
                    {KN_BF16, 1, 64, 8, 4096, 128, true, "tensor"}};
    const bool is_hopper = tol_context_device(bench->context)->compute_capability == 90;
    tol_status status = TOL_OK;
    for (size_t i = 0; i < sizeof problems / sizeof problems[0]; i++) {
        const bool for_hopper = strcmp(problems[i].variant, "tensor") != 0;
        if (for_hopper && !is_hopper) continue;
        const bool is_small = bench->is_small;
        const size_t length = is_small ? problems[i].length / 32 : problems[i].length;
        struct gradients g = {
            .bench = bench,
            .backward = {.forward = {.type = problems[i].type,
                                     .batch = is_small ? 1 : problems[i].batch,
                                     .heads = is_small ? 1 : problems[i].heads,
                                     .kv_heads = is_small ? 1 : problems[i].kv_heads,
                                     .q_length = length,
                                     .kv_length = length,
                                     .head_size = problems[i].head_size,
                                     .causal = problems[i].causal},
                         .variant = problems[i].variant}};
        TOL_TRY(attention_backward_bench_measure(&g));
    }
out:
    return status;
}

KN_BENCH(attention_backward, attention_backward_bench_run)
