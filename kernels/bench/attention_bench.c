/*
 * What attention costs, beside that of a peer in another process, such as cuDNN's.
 */
#include "attention/forward/attention_oracle.h"
#include "bench_check.h"

#include "core/check.h"

#include <stdio.h>
#include <stdlib.h>

struct heads {
    struct kn_bench *bench;
    struct kn_attention attention;
    struct tol_buffer *buffers[KN_BENCH_SETS_MAX][4]; /* q, k, v, out */
    struct tol_buffer *workspace;
    size_t sets;
};

static tol_status attention_bench_launch(void *user, size_t turn) {
    struct heads *h = user;
    struct tol_buffer **set = h->buffers[turn % h->sets];
    h->attention.q.buffer = set[0], h->attention.k.buffer = set[1];
    h->attention.v.buffer = set[2], h->attention.out.buffer = set[3];
    return kn_attention(h->bench->kernels, h->bench->stream, &h->attention);
}

static tol_status attention_bench_make_buffers(struct heads *h) {
    tol_status status = TOL_OK;
    struct kn_attention *x = &h->attention;
    const size_t q = x->batch * x->heads * x->q_length * x->head_size;
    const size_t k = x->batch * x->kv_heads * x->kv_length * x->head_size;
    size_t bytes = 0;
    h->sets = kn_bench_sets(h->bench, 2 * (q + k) * kn_type_bytes(x->type));
    for (size_t i = 0; i < h->sets; i++) {
        for (size_t j = 0; j < 4; j++) {
            TOL_TRY(kn_bench_buffer(h->bench, x->type, j == 0 || j == 3 ? q : k, 4 * i + j,
                                    &h->buffers[i][j]));
        }
    }
    x->q.buffer = h->buffers[0][0], x->k.buffer = h->buffers[0][1];
    x->v.buffer = h->buffers[0][2], x->out.buffer = h->buffers[0][3];
    TOL_TRY(kn_attention_workspace(h->bench->kernels, x, &bytes));
    if (bytes > 0) TOL_TRY(tol_buffer_create(h->bench->context, bytes, 1, &h->workspace));
    x->workspace = h->workspace;
out:
    return status;
}

/* Two products of each row with each key that it sees: four operations an element. */
static double attention_bench_operations_of(const struct kn_attention *x) {
    const double rows = (double)x->q_length, keys = (double)x->kv_length;
    double seen = x->causal ? rows * keys - rows * (rows - 1) / 2 : rows * keys;
    const double window = (double)x->window; /* of as many rows as keys */
    if (window != 0) seen = rows * window - window * (window - 1) / 2;
    return 4 * (double)(x->batch * x->heads * x->head_size) * seen;
}

/* The last row, which sees all keys, of one head of q in the last batch. */
static tol_status check_head(struct heads *h, const struct kn_bench_row *row, size_t head,
                             float *floats, double *doubles) {
    tol_status status = TOL_OK;
    const struct kn_attention *x = &h->attention;
    const size_t d = x->head_size, shared = head / (x->heads / x->kv_heads);
    const size_t keys = ((x->batch - 1) * x->kv_heads + shared) * x->kv_length * d;
    const size_t last = (((x->batch - 1) * x->heads + head) * x->q_length + x->q_length - 1) * d;
    /* The oracle finds the row by its index: the ones before it are not read. */
    struct kn_attention_head one = {.k = floats, .v = floats + x->kv_length * d};
    float *const q = floats + 2 * x->kv_length * d;
    struct kn_attention_row found = {.out = doubles, .allowed = doubles + d};
    one.q = q;
    TOL_TRY(kn_bench_read(x->type, h->buffers[0][1], keys, x->kv_length * d, floats));
    TOL_TRY(kn_bench_read(x->type, h->buffers[0][2], keys, x->kv_length * d,
                          floats + x->kv_length * d));
    TOL_TRY(kn_bench_read(x->type, h->buffers[0][0], last, d, q + (x->q_length - 1) * d));
    TOL_CHECK(kn_attention_oracle(x, KN_ATTENTION_DRAWN, &one, x->q_length - 1, &found),
              TOL_OUT_OF_HOST_MEMORY, "an oracle");
    const struct kn_bench_right right = {found.out, found.allowed, {0, 0}, d};
    status = kn_bench_check(h->bench, row, row->variant, x->type, h->buffers[0][3], last, &right);
out:
    return status;
}

/* After it was timed. */
static tol_status attention_bench_check(struct heads *h, const struct kn_bench_row *row) {
    tol_status status = TOL_OK;
    const struct kn_attention *x = &h->attention;
    const size_t rows = 2 * x->kv_length + x->q_length;
    float *floats = malloc(rows * x->head_size * sizeof *floats);
    double *doubles = malloc(2 * x->head_size * sizeof *doubles);
    TOL_CHECK(floats != NULL && doubles != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu rows", rows);
    TOL_TRY(check_head(h, row, 0, floats, doubles));
    status = check_head(h, row, x->heads - 1, floats, doubles);
out:
    free(floats);
    free(doubles);
    return status;
}

static tol_status attention_bench_measure(struct heads *h) {
    tol_status status = TOL_OK;
    const struct kn_variant *variant = NULL;
    const struct kn_attention *x = &h->attention;
    struct kn_bench_row row = {.operation = "attention",
                               .rate = x->type == KN_F32 ? KN_RATE_TF32 : KN_RATE_HALVES};
    snprintf(row.shape, sizeof row.shape, "%s %zu x %zu/%zu x %zu, %zu x %zu%s%s",
             kn_type_name(x->type), x->batch, x->heads, x->kv_heads, x->head_size, x->q_length,
             x->kv_length, x->causal ? " causal" : "", x->window != 0 ? " window" : "");
    if (!kn_bench_wants(h->bench, &row)) return TOL_OK;
    TOL_TRY(attention_bench_make_buffers(h));
    TOL_TRY(kn_attention_pick(h->bench->kernels, x, &variant));
    snprintf(row.variant, sizeof row.variant, "%s", variant->name);
    if (x->variant == NULL && x->window == 0) { /* no peer has it, or would time it twice */
        snprintf(row.problem, sizeof row.problem, "attention %s %zu %zu %zu %zu %zu %zu %d",
                 kn_type_name(x->type), x->batch, x->heads, x->kv_heads, x->q_length, x->kv_length,
                 x->head_size, x->causal);
    }
    if (x->q_length == 1) { /* keys and values come from memory, once */
        row.bytes = 2 * (double)(x->batch * x->kv_heads * x->kv_length * x->head_size *
                                 kn_type_bytes(x->type));
        row.turns = h->sets;
    } else {
        row.operations = attention_bench_operations_of(x);
    }
    TOL_TRY(kn_bench_measure(h->bench, &row, attention_bench_launch, h));
    status = attention_bench_check(h, &row);
out:
    tol_buffer_destroy(h->workspace);
    for (size_t i = 0; i < h->sets; i++) {
        for (int j = 0; j < 4; j++) tol_buffer_destroy(h->buffers[i][j]);
    }
    return status;
}

static tol_status attention_bench_run(struct kn_bench *bench) {
    static const struct {
        enum kn_type type;
        size_t batch, heads, kv_heads, q_length, kv_length, head_size;
        bool causal;
        const char *variant;
        size_t window;
    } problems[] = {{KN_F16, 4, 32, 32, 4096, 4096, 128, true, NULL, 0},
                    {KN_F16, 4, 32, 32, 4096, 4096, 128, true, "tensor", 0},
                    {KN_F16, 4, 32, 32, 4096, 4096, 128, false, NULL, 0},
                    {KN_F16, 4, 32, 32, 4096, 4096, 128, false, "tensor", 0},
                    {KN_BF16, 1, 64, 8, 4096, 4096, 128, true, NULL, 0},
                    {KN_BF16, 1, 16, 16, 16384, 16384, 128, true, NULL, 1024},
                    {KN_BF16, 1, 16, 16, 16384, 16384, 128, true, "tensor", 1024},
                    {KN_BF16, 1, 16, 16, 16384, 16384, 128, true, NULL, 0},
                    {KN_BF16, 1, 16, 16, 16384, 16384, 128, false, NULL, 0},
                    {KN_F16, 4, 32, 32, 4096, 4096, 64, true, NULL, 0},
                    {KN_F16, 4, 32, 32, 4096, 4096, 64, true, "tensor", 0},
                    {KN_F16, 4, 32, 32, 4096, 4096, 64, false, NULL, 0},
                    {KN_F16, 4, 32, 32, 2048, 2048, 96, true, NULL, 0},
                    {KN_F16, 4, 16, 16, 2048, 2048, 256, true, NULL, 0},
                    {KN_F16, 16, 32, 32, 512, 512, 128, true, NULL, 0},
                    {KN_F32, 1, 32, 32, 2048, 2048, 128, true, NULL, 0},
                    {KN_F32, 1, 8, 8, 1024, 1024, 128, true, "naive", 0},
                    {KN_F16, 1, 32, 8, 1, 8192, 128, true, NULL, 0},
                    {KN_F16, 1, 32, 8, 1, 8192, 128, true, "decode", 0},
                    {KN_F16, 16, 32, 8, 1, 8192, 128, true, NULL, 0},
                    {KN_F16, 16, 32, 8, 1, 8192, 128, true, "decode", 0},
                    {KN_F16, 4, 32, 32, 1, 8192, 128, true, NULL, 0},
                    {KN_F16, 4, 32, 32, 1, 8192, 128, true, "decode", 0}};
    tol_status status = TOL_OK;
    for (size_t i = 0; i < sizeof problems / sizeof problems[0]; i++) {
        const size_t least = bench->is_small ? 16 : 1; /* of the soft device, a sixteenth */
        const size_t rows = problems[i].q_length;
        struct heads h = {.bench = bench,
                          .attention = {.type = problems[i].type,
                                        .batch = bench->is_small ? 1 : problems[i].batch,
                                        .heads = bench->is_small ? 1 : problems[i].heads,
                                        .kv_heads = bench->is_small ? 1 : problems[i].kv_heads,
                                        .q_length = rows == 1 ? 1 : rows / least,
                                        .kv_length = problems[i].kv_length / least,
                                        .head_size = problems[i].head_size,
                                        .causal = problems[i].causal,
                                        .window = problems[i].window,
                                        .variant = problems[i].variant}};
        TOL_TRY(attention_bench_measure(&h));
    }
out:
    return status;
}

KN_BENCH(attention, attention_bench_run)
