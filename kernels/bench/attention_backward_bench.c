/*
 * What attention's backward pass costs, beside that of a peer in another process, such as cuDNN's.
 * Operations are counted as usual: five products of each row with each key that it sees.
 */
#include "attention_backward/attention_backward.h"
#include "kernel_bench.h"

#include "core/check.h"

#include <stdio.h>

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

static tol_status launch(void *user, size_t turn) {
    struct gradients *g = user;
    take_set(g, turn % g->sets);
    return kn_attention_backward(g->bench->kernels, g->bench->stream, &g->backward);
}

static tol_status make_buffers(struct gradients *g) {
    tol_status status = TOL_OK;
    const struct kn_attention *x = &g->backward.forward;
    const size_t q = x->batch * x->heads * x->q_length * x->head_size;
    const size_t k = x->batch * x->kv_heads * x->kv_length * x->head_size;
    g->sets = kn_bench_sets(g->bench, 4 * (q + k) * kn_type_bytes(x->type));
    TOL_TRY(
        tol_buffer_create(g->bench->context, kn_attention_backward_workspace(x), 1, &g->workspace));
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

static double operations_of(const struct kn_attention *x) {
    const double rows = (double)x->q_length, keys = (double)x->kv_length;
    const double seen = x->causal ? rows * keys - rows * (rows - 1) / 2 : rows * keys;
    return 10 * (double)(x->batch * x->heads * x->head_size) * seen;
}

static tol_status measure(struct gradients *g) {
    tol_status status = TOL_OK;
    const struct kn_attention *x = &g->backward.forward;
    struct kn_bench_row row = {
        .operation = "attention_backward", .operations = operations_of(x), .rate = KN_RATE_HALVES};
    snprintf(row.shape, sizeof row.shape, "%s %zu x %zu/%zu x %zu, %zu x %zu%s",
             kn_type_name(x->type), x->batch, x->heads, x->kv_heads, x->head_size, x->q_length,
             x->kv_length, x->causal ? " causal" : "");
    snprintf(row.variant, sizeof row.variant, "%s", g->backward.variant);
    snprintf(row.problem, sizeof row.problem, "attention_backward %s %zu %zu %zu %zu %zu %zu %d",
             kn_type_name(x->type), x->batch, x->heads, x->kv_heads, x->q_length, x->kv_length,
             x->head_size, x->causal);
    if (!kn_bench_wants(g->bench, &row)) return TOL_OK;
    TOL_TRY(make_buffers(g));
    status = kn_bench_measure(g->bench, &row, launch, g);
out:
    tol_buffer_destroy(g->workspace);
    for (size_t i = 0; i < g->sets; i++) {
        for (int j = 0; j < KINDS; j++) tol_buffer_destroy(g->buffers[i][j]);
        tol_buffer_destroy(g->lse[i]);
    }
    return status;
}

static tol_status run(struct kn_bench *bench) {
    static const struct {
        enum kn_type type;
        size_t batch, heads, kv_heads, length, head_size;
        bool causal;
        const char *variant;
    } problems[] = {{KN_BF16, 4, 32, 32, 4096, 128, true, "wgmma"},
                    {KN_BF16, 4, 32, 32, 4096, 128, true, "tensor"},
                    {KN_BF16, 4, 32, 32, 4096, 128, false, "wgmma"},
                    {KN_BF16, 4, 32, 32, 4096, 128, false, "tensor"},
                    {KN_BF16, 4, 32, 32, 4096, 64, true, "wgmma"},
                    {KN_BF16, 4, 32, 32, 4096, 64, true, "tensor"},
                    {KN_F16, 4, 32, 32, 4096, 64, false, "wgmma"},
                    {KN_F16, 4, 32, 32, 4096, 64, false, "tensor"},
                    {KN_BF16, 1, 16, 16, 16384, 128, true, "wgmma"},
                    {KN_BF16, 1, 64, 8, 4096, 128, true, "wgmma"},
                    {KN_BF16, 1, 64, 8, 4096, 128, true, "tensor"}};
    const bool is_hopper = tol_context_device(bench->context)->compute_capability == 90;
    tol_status status = TOL_OK;
    for (size_t i = 0; i < sizeof problems / sizeof problems[0]; i++) {
        if (problems[i].variant[0] == 'w' && !is_hopper) continue;
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
        TOL_TRY(measure(&g));
    }
out:
    return status;
}

KN_BENCH(attention_backward, run)
