/*
 * What attention over packed sequences costs, beside a call for each of the sequences.
 */
#include "attention/packed/attention_packed.h"
#include "kernel_bench.h"

#include "core/check.h"

#include <stdio.h>

/* A padded batch would have four times as many rows. */
enum { SEQUENCES = 12 };
static const int lengths[SEQUENCES] = {4096, 1024, 256,  512, 2048, 384,
                                       640,  256,  1536, 320, 768,  448};

struct packed_heads {
    struct kn_bench *bench;
    struct kn_attention_packed packed;
    struct tol_buffer *buffers[KN_BENCH_SETS_MAX][4]; /* q, k, v, out */
    struct tol_buffer *begins;
    int at[SEQUENCES + 1];
    size_t sets;
};

static struct kn_heads attention_bench_rows_from(const struct kn_attention *x,
                                                 struct tol_buffer *buffer, size_t row,
                                                 size_t heads) {
    return (struct kn_heads){.buffer = buffer,
                             .offset = row * heads * x->head_size,
                             .head_stride = x->head_size,
                             .row_stride = heads * x->head_size};
}

static void attention_bench_place(struct kn_attention *x, struct tol_buffer *const set[4],
                                  size_t row) {
    x->q = attention_bench_rows_from(x, set[0], row, x->heads),
    x->k = attention_bench_rows_from(x, set[1], row, x->kv_heads);
    x->v = attention_bench_rows_from(x, set[2], row, x->kv_heads),
    x->out = attention_bench_rows_from(x, set[3], row, x->heads);
}

static tol_status launch_packed(void *user, size_t turn) {
    struct packed_heads *h = user;
    attention_bench_place(&h->packed.attention, h->buffers[turn % h->sets], 0);
    return kn_attention_packed(h->bench->kernels, h->bench->stream, &h->packed);
}

static tol_status launch_each(void *user, size_t turn) {
    struct packed_heads *h = user;
    for (int i = 0; i < SEQUENCES; i++) {
        struct kn_attention x = h->packed.attention;
        x.batch = 1, x.q_length = x.kv_length = (size_t)(h->at[i + 1] - h->at[i]);
        attention_bench_place(&x, h->buffers[turn % h->sets], (size_t)h->at[i]);
        const tol_status status = kn_attention(h->bench->kernels, h->bench->stream, &x);
        if (status != TOL_OK) return status;
    }
    return TOL_OK;
}

static tol_status attention_packed_bench_make_buffers(struct packed_heads *h) {
    tol_status status = TOL_OK;
    const struct kn_attention *x = &h->packed.attention;
    const size_t q = h->packed.q_rows * x->heads * x->head_size;
    const size_t k = h->packed.kv_rows * x->kv_heads * x->head_size;
    h->sets = kn_bench_sets(h->bench, 2 * (q + k) * kn_type_bytes(x->type));
    for (size_t i = 0; i < h->sets; i++) {
        for (size_t j = 0; j < 4; j++) {
            TOL_TRY(kn_bench_buffer(h->bench, x->type, j == 0 || j == 3 ? q : k, 4 * i + j,
                                    &h->buffers[i][j]));
        }
    }
    TOL_TRY(tol_buffer_create(h->bench->context, sizeof h->at, 1, &h->begins));
    TOL_TRY(tol_buffer_write(h->begins, h->at, sizeof h->at));
    h->packed.q_begins = h->packed.kv_begins = h->begins;
out:
    return status;
}

/* Two products of each row with each key that it sees: four operations an element. */
static double attention_packed_bench_operations_of(const struct packed_heads *h) {
    const struct kn_attention *x = &h->packed.attention;
    double seen = 0;
    for (int i = 0; i < SEQUENCES; i++) {
        const double rows = h->at[i + 1] - h->at[i];
        seen += x->causal ? rows * (rows + 1) / 2 : rows * rows;
    }
    return 4 * (double)(x->heads * x->head_size) * seen;
}

static tol_status attention_packed_bench_measure(struct packed_heads *h) {
    const struct kn_attention *x = &h->packed.attention;
    struct kn_bench_row row = {.operation = "attention",
                               .operations = attention_packed_bench_operations_of(h)};
    snprintf(row.shape, sizeof row.shape, "%s %d of %zu rows, %zu/%zu x %zu%s",
             kn_type_name(x->type), SEQUENCES, h->packed.q_rows, x->heads, x->kv_heads,
             x->head_size, x->causal ? " causal" : "");
    const struct kn_bench_peer each = {"a call each", launch_each, h};
    snprintf(row.variant, sizeof row.variant, "packed %s",
             h->packed.variant != NULL ? h->packed.variant : "chosen");
    if (!kn_bench_wants(h->bench, &row)) return TOL_OK;
    return kn_bench_compare(h->bench, &row, launch_packed, h, &each);
}

static tol_status attention_packed_bench_run_size(struct kn_bench *bench, const char *variant,
                                                  size_t head_size) {
    tol_status status = TOL_OK;
    struct packed_heads h = {.bench = bench, .packed.variant = variant};
    const int least = bench->is_small ? 16 : 1; /* of the soft device, a sixteenth */
    for (int i = 0; i < SEQUENCES; i++) h.at[i + 1] = h.at[i] + lengths[i] / least;
    h.packed.q_rows = h.packed.kv_rows = (size_t)h.at[SEQUENCES];
    h.packed.attention = (struct kn_attention){.type = KN_BF16,
                                               .batch = SEQUENCES,
                                               .heads = bench->is_small ? 1 : 32,
                                               .kv_heads = bench->is_small ? 1 : 8,
                                               .q_length = (size_t)(lengths[0] / least),
                                               .kv_length = (size_t)(lengths[0] / least),
                                               .head_size = head_size,
                                               .causal = true};
    status = attention_packed_bench_make_buffers(&h);
    if (status == TOL_OK) status = attention_packed_bench_measure(&h);
    tol_buffer_destroy(h.begins);
    for (size_t i = 0; i < h.sets; i++) {
        for (int j = 0; j < 4; j++) tol_buffer_destroy(h.buffers[i][j]);
    }
    return status;
}

static tol_status attention_packed_bench_run(struct kn_bench *bench) {
    static const char *const variants[] = {"wgmma", "tensor", NULL};
    const bool is_hopper = tol_context_device(bench->context)->compute_capability == 90;
    tol_status status = TOL_OK;
    for (int v = is_hopper ? 0 : 2; v < (is_hopper ? 2 : 3); v++) {
        for (size_t head_size = 64; head_size <= 128; head_size *= 2) {
            TOL_TRY(attention_packed_bench_run_size(bench, variants[v], head_size));
        }
    }
out:
    return status;
}

KN_BENCH(attention_packed, attention_packed_bench_run)
