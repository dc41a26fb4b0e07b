/*
 * What attention over numbers of 8 bits costs, beside that over fp16.
 */
#include "attention/e4m3/attention_e4m3.h"
#include "kernel_bench.h"

#include "core/check.h"

#include <stdio.h>
#include <stdlib.h>

enum { Q, K, V, OUT, KINDS, INPUTS = OUT };

struct e4m3_heads {
    struct kn_bench *bench;
    struct kn_attention halves;
    struct kn_attention_e4m3 bytes;
    struct tol_buffer *buffers[KN_BENCH_SETS_MAX][KINDS], *eights[KN_BENCH_SETS_MAX][INPUTS];
    size_t sets;
};

static tol_status launch_bytes(void *user, size_t turn) {
    struct e4m3_heads *h = user;
    const size_t set = turn % h->sets;
    struct kn_attention *x = &h->bytes.attention;
    x->q.buffer = h->eights[set][Q], x->k.buffer = h->eights[set][K];
    x->v.buffer = h->eights[set][V], x->out.buffer = h->buffers[set][OUT];
    return kn_attention_e4m3(h->bench->kernels, h->bench->stream, &h->bytes);
}

static tol_status launch_halves(void *user, size_t turn) {
    struct e4m3_heads *h = user;
    struct tol_buffer *const *set = h->buffers[turn % h->sets];
    struct kn_attention *x = &h->halves;
    x->q.buffer = set[Q], x->k.buffer = set[K], x->v.buffer = set[V], x->out.buffer = set[OUT];
    return kn_attention(h->bench->kernels, h->bench->stream, x);
}

/* Numbers from -1.875 to 1.875. */
static tol_status make_eights(struct kn_bench *bench, size_t count, uint64_t seed,
                              struct tol_buffer **buffer) {
    tol_status status = TOL_OK;
    uint8_t *bytes = malloc(count);
    TOL_CHECK(bytes != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu numbers", count);
    for (size_t i = 0; i < count; i++) {
        seed = seed * 6364136223846793005 + 1442695040888963407;
        bytes[i] = (uint8_t)((seed >> 56 & 0x80) | (seed >> 33) % 0x40);
    }
    TOL_TRY(tol_buffer_create(bench->context, count, 1, buffer));
    status = tol_buffer_write(*buffer, bytes, count);
out:
    free(bytes);
    return status;
}

static tol_status attention_e4m3_bench_make_buffers(struct e4m3_heads *h) {
    tol_status status = TOL_OK;
    const struct kn_attention *x = &h->halves;
    const size_t q = x->batch * x->heads * x->q_length * x->head_size;
    const size_t k = x->batch * x->kv_heads * x->kv_length * x->head_size;
    const size_t counts[KINDS] = {q, k, k, q};
    h->sets = kn_bench_sets(h->bench, 2 * (q + k) * kn_type_bytes(x->type));
    for (size_t i = 0; i < h->sets; i++) {
        for (size_t j = 0; j < KINDS; j++) {
            TOL_TRY(
                kn_bench_buffer(h->bench, x->type, counts[j], KINDS * i + j, &h->buffers[i][j]));
        }
        for (size_t j = 0; j < INPUTS; j++) {
            TOL_TRY(make_eights(h->bench, counts[j], INPUTS * i + j + 1, &h->eights[i][j]));
        }
    }
out:
    return status;
}

static tol_status attention_e4m3_bench_measure(struct e4m3_heads *h) {
    tol_status status = TOL_OK;
    const struct kn_attention *x = &h->halves;
    const double rows = (double)x->q_length, seen = x->causal ? (rows + 1) / 2 : rows;
    /* Two products of each row with each key that it sees: four operations an element. */
    struct kn_bench_row row = {.operation = "attention",
                               .operations =
                                   4 * (double)(x->batch * x->heads * x->head_size) * rows * seen};
    snprintf(row.shape, sizeof row.shape, "e4m3 %zu x %zu, %zu/%zu x %zu%s", x->batch, x->q_length,
             x->heads, x->kv_heads, x->head_size, x->causal ? " causal" : "");
    const struct kn_bench_peer halves = {"fp16", launch_halves, h};
    snprintf(row.variant, sizeof row.variant, "e4m3 %s",
             h->bytes.variant != NULL ? h->bytes.variant : "chosen");
    if (!kn_bench_wants(h->bench, &row)) return TOL_OK;
    TOL_TRY(attention_e4m3_bench_make_buffers(h));
    status = kn_bench_compare(h->bench, &row, launch_bytes, h, &halves);
out:
    return status;
}

static tol_status attention_e4m3_bench_run_size(struct kn_bench *bench, size_t head_size,
                                                bool causal) {
    const size_t rows = bench->is_small ? 256 : 4096;
    const struct kn_attention x = {.type = KN_F16,
                                   .batch = bench->is_small ? 1 : 4,
                                   .heads = bench->is_small ? 1 : 32,
                                   .kv_heads = bench->is_small ? 1 : 8,
                                   .q_length = rows,
                                   .kv_length = rows,
                                   .head_size = head_size,
                                   .causal = causal};
    const bool is_hopper = tol_context_device(bench->context)->compute_capability == 90;
    struct e4m3_heads h = {.bench = bench,
                           .halves = x,
                           .bytes = {.attention = x, .variant = is_hopper ? "wgmma" : NULL}};
    const tol_status status = attention_e4m3_bench_measure(&h);
    for (size_t i = 0; i < h.sets; i++) {
        for (int j = 0; j < KINDS; j++) tol_buffer_destroy(h.buffers[i][j]);
        for (int j = 0; j < INPUTS; j++) tol_buffer_destroy(h.eights[i][j]);
    }
    return status;
}

static tol_status attention_e4m3_bench_run(struct kn_bench *bench) {
    tol_status status = TOL_OK;
    for (size_t head_size = 64; head_size <= 256; head_size *= 2) {
        TOL_TRY(attention_e4m3_bench_run_size(bench, head_size, false));
        TOL_TRY(attention_e4m3_bench_run_size(bench, head_size, true));
    }
out:
    return status;
}

KN_BENCH(attention_e4m3, attention_e4m3_bench_run)
