/*
 * What attention over paged sequences costs, beside the call for the same keys and values in rows.
 */
#include "attention/paged/attention_paged.h"
#include "kernel_bench.h"

#include "core/check.h"

#include <stdio.h>
#include <stdlib.h>

enum { SEQUENCES = 4, ROWS = 4096 };
enum { Q, K, V, OUT, POOL, KINDS };

/* Each of the sequences has as many rows as positions, as a prompt has. */
struct paged_heads {
    struct kn_bench *bench;
    struct kn_attention rows; /* all sequences, as a batch */
    struct kn_attention_paged paged;
    struct tol_buffer *buffers[KN_BENCH_SETS_MAX][KINDS];
    struct tol_buffer *numbers, *tables[KN_BENCH_SETS_MAX];
    size_t sets, page_bytes;
};

static struct kn_heads attention_bench_rows_of(const struct kn_attention *x,
                                               struct tol_buffer *buffer, size_t heads) {
    return (struct kn_heads){.buffer = buffer,
                             .batch_stride = x->q_length * heads * x->head_size,
                             .head_stride = x->head_size,
                             .row_stride = heads * x->head_size};
}

static tol_status launch_paged(void *user, size_t turn) {
    struct paged_heads *h = user;
    const size_t set = turn % h->sets;
    struct kn_attention *x = &h->paged.attention;
    x->q = attention_bench_rows_of(x, h->buffers[set][Q], x->heads);
    x->out = attention_bench_rows_of(x, h->buffers[set][OUT], x->heads);
    h->paged.pool = kn_place_of(h->buffers[set][POOL], 0);
    h->paged.tables = kn_place_of(h->tables[set], 0);
    return kn_attention_paged(h->bench->kernels, h->bench->stream, &h->paged);
}

static tol_status launch_rows(void *user, size_t turn) {
    struct paged_heads *h = user;
    struct tol_buffer *const *set = h->buffers[turn % h->sets];
    struct kn_attention *x = &h->rows;
    x->q = attention_bench_rows_of(x, set[Q], x->heads),
    x->out = attention_bench_rows_of(x, set[OUT], x->heads);
    x->k = attention_bench_rows_of(x, set[K], x->kv_heads),
    x->v = attention_bench_rows_of(x, set[V], x->kv_heads);
    return kn_attention(h->bench->kernels, h->bench->stream, x);
}

/* Pages in no order: the sequences draw them in turn, from the last on. */
static tol_status make_table(struct paged_heads *h, size_t set) {
    tol_status status = TOL_OK;
    const size_t pages = h->paged.pages_max, count = SEQUENCES * pages;
    const CUdeviceptr pool = tol_buffer_address(h->buffers[set][POOL]);
    uint64_t *table = malloc(count * sizeof *table);
    TOL_CHECK(table != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu pages", count);
    for (size_t i = 0; i < count; i++) {
        table[i % SEQUENCES * pages + i / SEQUENCES] = pool + (count - 1 - i) * h->page_bytes;
    }
    TOL_TRY(tol_buffer_create(h->bench->context, count, sizeof *table, &h->tables[set]));
    status = tol_buffer_write(h->tables[set], table, count * sizeof *table);
out:
    free(table);
    return status;
}

/* One buffer has q_begins, positions and slots. */
static tol_status attention_bench_make_numbers(struct paged_heads *h) {
    tol_status status = TOL_OK;
    int numbers[3 * SEQUENCES + 1];
    const int rows = (int)h->rows.q_length;
    for (int i = 0; i < SEQUENCES; i++) {
        numbers[i + 1] = (i + 1) * rows;
        numbers[SEQUENCES + 1 + i] = rows, numbers[2 * SEQUENCES + 1 + i] = i;
    }
    numbers[0] = 0;
    TOL_TRY(tol_buffer_create(h->bench->context, sizeof numbers, 1, &h->numbers));
    TOL_TRY(tol_buffer_write(h->numbers, numbers, sizeof numbers));
    h->paged.q_begins = kn_place_of(h->numbers, 0);
    h->paged.positions = kn_place_of(h->numbers, (SEQUENCES + 1) * sizeof *numbers);
    h->paged.slots = kn_place_of(h->numbers, (2 * SEQUENCES + 1) * sizeof *numbers);
out:
    return status;
}

static tol_status attention_paged_bench_make_buffers(struct paged_heads *h) {
    tol_status status = TOL_OK;
    const struct kn_attention *x = &h->rows;
    const size_t q = SEQUENCES * x->q_length * x->heads * x->head_size;
    const size_t k = SEQUENCES * x->q_length * x->kv_heads * x->head_size;
    const size_t counts[KINDS] = {q, k, k, q, 2 * k};
    TOL_TRY(attention_bench_make_numbers(h));
    h->sets = kn_bench_sets(h->bench, 2 * (q + k) * kn_type_bytes(x->type));
    for (size_t i = 0; i < h->sets; i++) {
        for (size_t j = 0; j < KINDS; j++) {
            TOL_TRY(
                kn_bench_buffer(h->bench, x->type, counts[j], KINDS * i + j, &h->buffers[i][j]));
        }
        TOL_TRY(make_table(h, i));
    }
out:
    return status;
}

static tol_status attention_paged_bench_measure(struct paged_heads *h) {
    tol_status status = TOL_OK;
    const struct kn_attention *x = &h->rows;
    const double rows = (double)x->q_length;
    /* Two products of each row with each key that it sees: four operations an element. */
    struct kn_bench_row row = {.operation = "attention",
                               .operations = 2 * SEQUENCES * (double)(x->heads * x->head_size) *
                                             rows * (rows + 1)};
    snprintf(row.shape, sizeof row.shape, "%s %d x %zu, %zu/%zu x %zu causal, pages of %zu",
             kn_type_name(x->type), SEQUENCES, x->q_length, x->heads, x->kv_heads, x->head_size,
             h->paged.page_positions);
    const struct kn_bench_peer in_rows = {"in rows", launch_rows, h};
    snprintf(row.variant, sizeof row.variant, "paged %s",
             h->paged.variant != NULL ? h->paged.variant : "chosen");
    if (!kn_bench_wants(h->bench, &row)) return TOL_OK;
    TOL_TRY(attention_paged_bench_make_buffers(h));
    status = kn_bench_compare(h->bench, &row, launch_paged, h, &in_rows);
out:
    return status;
}

static tol_status attention_paged_bench_run_size(struct kn_bench *bench, const char *variant,
                                                 size_t head_size, size_t page_positions) {
    const size_t rows = bench->is_small ? ROWS / 16 : ROWS;
    const size_t kv_heads = bench->is_small ? 1 : 8;
    const struct kn_attention x = {.type = KN_BF16,
                                   .batch = SEQUENCES,
                                   .heads = bench->is_small ? 1 : 32,
                                   .kv_heads = kv_heads,
                                   .q_length = rows,
                                   .kv_length = rows,
                                   .head_size = head_size,
                                   .causal = true};
    const size_t row = kv_heads * head_size;
    const struct kn_paged_part part = {.head_stride = head_size, .row_stride = row};
    struct paged_heads h = {.bench = bench,
                            .rows = x,
                            .paged = {.attention = x,
                                      .q_rows = SEQUENCES * rows,
                                      .pages_max = rows / page_positions,
                                      .page_positions = page_positions,
                                      .k = part,
                                      .v = part,
                                      .variant = variant},
                            .page_bytes = 2 * page_positions * row * kn_type_bytes(KN_BF16)};
    h.paged.v.at = h.page_bytes / 2;
    const tol_status status = attention_paged_bench_measure(&h);
    tol_buffer_destroy(h.numbers);
    for (size_t i = 0; i < h.sets; i++) {
        for (int j = 0; j < KINDS; j++) tol_buffer_destroy(h.buffers[i][j]);
        tol_buffer_destroy(h.tables[i]);
    }
    return status;
}

static tol_status attention_paged_bench_run(struct kn_bench *bench) {
    static const char *const variants[] = {"wgmma", "tensor", NULL};
    static const size_t pages[] = {16, 64, 128};
    const bool is_hopper = tol_context_device(bench->context)->compute_capability == 90;
    tol_status status = TOL_OK;
    for (int v = is_hopper ? 0 : 2; v < (is_hopper ? 2 : 3); v++) {
        for (size_t head_size = 64; head_size <= 128; head_size *= 2) {
            for (int i = 0; i < 3; i++) {
                TOL_TRY(attention_paged_bench_run_size(bench, variants[v], head_size, pages[i]));
            }
        }
    }
out:
    return status;
}

KN_BENCH(attention_paged, attention_paged_bench_run)
