/*
 * Cases of attention over paged sequences: a whole tile of rows and part of one, a single row,
 * sequences without rows or without positions, pages in no order, and rows of no sequence, which
 * must stay as they were.
 */
#include "attention/paged/attention_paged.h"
#include "attention/forward/attention_oracle.h"
#include "core/check.h"
#include "sweep_matrix.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A page is rows of keys, and after them as many of values. */
enum { SEQUENCES = 5, ROWS = 150, LONGEST = 170, PAGE = 16, PAGES = 23, PAGES_MAX = 11 };
static const int q_begins[SEQUENCES + 1] = {1, 132, 132, 133, 140, 148};
static const int positions[SEQUENCES] = {140, 8, LONGEST, 0, 9};
static const int slots[SEQUENCES] = {4, 0, 3, 1, 2};

/* The number of a page in the pool. */
static size_t pages_sweep_page_of(int sequence, size_t index) {
    size_t before = index;
    for (int i = 0; i < sequence; i++) before += ((size_t)positions[i] + PAGE - 1) / PAGE;
    return (before * 5 + 3) % PAGES;
}

static void pages_sweep_gather(const struct sweep_matrix *pool, int sequence, bool values,
                               float *rows) {
    const size_t d = pool->columns;
    for (size_t i = 0; i < (size_t)positions[sequence]; i++) {
        const size_t page = 2 * pages_sweep_page_of(sequence, i / PAGE) + values;
        memcpy(rows + i * d, pool->values + (page * PAGE + i % PAGE) * d, d * sizeof *rows);
    }
}

/* The definition, for one head; NaN for the rows of no sequence. false: there is no memory. */
static bool pages_sweep_solve(const struct kn_attention *paged, const struct sweep_matrix *q,
                              const struct sweep_matrix *pool, double *oracle) {
    const size_t d = paged->head_size;
    double *allowed = malloc(d * sizeof *allowed);
    float *k = malloc(2 * LONGEST * d * sizeof *k), *v = k + LONGEST * d;
    bool ok = allowed != NULL && k != NULL;
    for (size_t i = 0; i < ROWS * d; i++) oracle[i] = NAN;
    for (int s = 0; ok && s < SEQUENCES; s++) {
        struct kn_attention x = *paged;
        const struct kn_attention_head head = {q->values + (size_t)q_begins[s] * d, k, v};
        x.q_length = (size_t)(q_begins[s + 1] - q_begins[s]);
        x.kv_length = (size_t)positions[s];
        pages_sweep_gather(pool, s, false, k);
        pages_sweep_gather(pool, s, true, v);
        for (size_t row = 0; ok && row < x.q_length; row++) {
            struct kn_attention_row to = {.out = oracle + ((size_t)q_begins[s] + row) * d,
                                          .allowed = allowed};
            ok = kn_attention_oracle(&x, KN_ATTENTION_ANY, &head, row, &to);
        }
    }
    free(k);
    free(allowed);
    return ok;
}

static tol_status make_tables(struct sweep *sweep, CUdeviceptr pool, size_t page_bytes,
                              struct tol_buffer **tables) {
    tol_status status = TOL_OK;
    uint64_t table[SEQUENCES * PAGES_MAX];
    memset(table, 0, sizeof table);
    for (int s = 0; s < SEQUENCES; s++) {
        for (size_t i = 0; i * PAGE < (size_t)positions[s]; i++) {
            table[(size_t)slots[s] * PAGES_MAX + i] = pool + pages_sweep_page_of(s, i) * page_bytes;
        }
    }
    TOL_TRY(tol_buffer_create(kn_kernels_context(sweep->kernels), sizeof table, 1, tables));
    status = tol_buffer_write(*tables, table, sizeof table);
out:
    return status;
}

static struct kn_heads pages_sweep_heads_of(const struct sweep_matrix *matrix) {
    const struct kn_rows rows = sweep_matrix_rows(matrix);
    return (struct kn_heads){.buffer = rows.buffer,
                             .offset = rows.offset,
                             .head_stride = rows.stride * matrix->rows,
                             .row_stride = rows.stride};
}

static void pages_sweep_run_case(struct sweep *sweep, const char *variant, enum kn_type type,
                                 size_t head_size, int mask) {
    tol_status status = TOL_OK;
    struct sweep_matrix q = {0}, pool = {0}, out = {0};
    struct tol_buffer *ints[3] = {NULL, NULL, NULL}, *tables = NULL;
    struct kn_deviation deviation = {.first = KN_NOWHERE, .worst = KN_NOWHERE};
    double *oracle = malloc(ROWS * head_size * sizeof *oracle);
    size_t touched = 0;
    const size_t gap = head_size % 8 == 0 ? 8 : 3, element = kn_type_bytes(type);
    const size_t stride = head_size + gap, page_bytes = 2 * PAGE * stride * element;
    const double error = type == KN_F32 ? 1e-4 : 8 * kn_type_roundoff(type);
    if (!sweep_begin(sweep, "attention paged %s %s heads of %zu%s", variant, kn_type_name(type),
                     head_size,
                     mask == 0   ? ""
                     : mask == 1 ? ", causal"
                                 : ", a window")) {
        free(oracle);
        return;
    }
    TOL_CHECK(oracle != NULL, TOL_OUT_OF_HOST_MEMORY, "%d rows", ROWS);
    TOL_TRY(sweep_matrix_make(sweep, type, ROWS, head_size, gap, 0, 1, &q));
    TOL_TRY(sweep_matrix_make(sweep, type, 2 * PAGE * PAGES, head_size, gap, 0, 1, &pool));
    TOL_TRY(sweep_matrix_make(sweep, type, ROWS, head_size, gap, 0, 0, &out));
    TOL_TRY(sweep_ints(sweep, q_begins, SEQUENCES + 1, &ints[0]));
    TOL_TRY(sweep_ints(sweep, positions, SEQUENCES, &ints[1]));
    TOL_TRY(sweep_ints(sweep, slots, SEQUENCES, &ints[2]));
    const CUdeviceptr at = tol_buffer_address(pool.guarded.buffer) + pool.guarded.offset;
    TOL_TRY(make_tables(sweep, at, page_bytes, &tables));
    const struct kn_attention_paged paged = {
        .attention = {.type = type,
                      .batch = SEQUENCES,
                      .heads = 1,
                      .kv_heads = 1,
                      .q_length = 131,
                      .kv_length = LONGEST,
                      .head_size = head_size,
                      .causal = mask > 0,
                      .window = mask == 2 ? 50 : 0,
                      .q = pages_sweep_heads_of(&q),
                      .out = pages_sweep_heads_of(&out)},
        .q_rows = ROWS,
        .q_begins = kn_place_of(ints[0], 0),
        .positions = kn_place_of(ints[1], 0),
        .slots = kn_place_of(ints[2], 0),
        .tables = kn_place_of(tables, 0),
        .pages_max = PAGES_MAX,
        .page_positions = PAGE,
        .k = {.head_stride = PAGE * stride, .row_stride = stride},
        .v = {.at = page_bytes / 2, .head_stride = PAGE * stride, .row_stride = stride},
        .pool = {at, pool.guarded.bytes},
        .variant = variant};
    TOL_CHECK(pages_sweep_solve(&paged.attention, &q, &pool, oracle), TOL_OUT_OF_HOST_MEMORY,
              "a row's bound");
    TOL_TRY(kn_attention_paged(sweep->kernels, sweep->stream, &paged));
    status = sweep_matrix_judge(sweep, &out, oracle, (struct kn_tolerance){error, error},
                                &deviation, &touched);
out:
    sweep_judge(sweep, status, &deviation, touched);
    sweep_matrix_end(&q);
    sweep_matrix_end(&pool);
    sweep_matrix_end(&out);
    for (int i = 0; i < 3; i++) tol_buffer_destroy(ints[i]);
    tol_buffer_destroy(tables);
    free(oracle);
}

void sweep_pages(struct sweep *sweep) {
    static const size_t sizes[] = {64, 96, 128, 256};
    for (enum kn_type type = 0; type < KN_TYPES; type++) {
        for (int mask = 0; mask < 3; mask++) pages_sweep_run_case(sweep, "naive", type, 7, mask);
        for (int i = 0; i < (type == KN_F32 ? 0 : 4); i++) {
            pages_sweep_run_case(sweep, "tensor", type, sizes[i], (i + (int)type) % 3);
            pages_sweep_run_case(sweep, "wgmma", type, sizes[i], (i + (int)type) % 3);
        }
    }
}
