/*
 * Cases of attention over packed sequences: a whole tile of rows and part of one, a single row,
 * sequences without rows or without keys, and rows of none, which must stay as they were.
 */
#include "attention/packed/attention_packed.h"
#include "attention/forward/attention_oracle.h"
#include "core/check.h"
#include "sweep_matrix.h"

#include <math.h>
#include <stdlib.h>

enum { SEQUENCES = 5, ROWS = 150, KEYS = 330 };
static const int q_begins[SEQUENCES + 1] = {1, 132, 132, 133, 140, 148};
static const int kv_begins[SEQUENCES + 1] = {2, 142, 150, 320, 320, 329};

/* The definition, for one head; NaN for the rows of no sequence. false: there is no memory. */
static bool packed_sweep_solve(const struct kn_attention *packed,
                               const struct sweep_matrix *const in[3], double *oracle) {
    const size_t d = packed->head_size;
    double *allowed = malloc(d * sizeof *allowed);
    bool ok = allowed != NULL;
    for (size_t i = 0; i < ROWS * d; i++) oracle[i] = NAN;
    for (int s = 0; ok && s < SEQUENCES; s++) {
        struct kn_attention x = *packed;
        const struct kn_attention_head head = {in[0]->values + (size_t)q_begins[s] * d,
                                               in[1]->values + (size_t)kv_begins[s] * d,
                                               in[2]->values + (size_t)kv_begins[s] * d};
        x.q_length = (size_t)(q_begins[s + 1] - q_begins[s]);
        x.kv_length = (size_t)(kv_begins[s + 1] - kv_begins[s]);
        for (size_t row = 0; ok && row < x.q_length; row++) {
            struct kn_attention_row to = {.out = oracle + ((size_t)q_begins[s] + row) * d,
                                          .allowed = allowed};
            ok = kn_attention_oracle(&x, KN_ATTENTION_ANY, &head, row, &to);
        }
    }
    free(allowed);
    return ok;
}

static struct kn_heads packed_sweep_heads_of(const struct sweep_matrix *matrix) {
    const struct kn_rows rows = sweep_matrix_rows(matrix);
    return (struct kn_heads){.buffer = rows.buffer,
                             .offset = rows.offset,
                             .head_stride = rows.stride * matrix->rows,
                             .row_stride = rows.stride};
}

static void packed_sweep_run_case(struct sweep *sweep, const char *variant, enum kn_type type,
                                  size_t head_size, int mask) {
    tol_status status = TOL_OK;
    struct sweep_matrix q = {0}, k = {0}, v = {0}, out = {0};
    const struct sweep_matrix *const in[3] = {&q, &k, &v};
    struct tol_buffer *of_q = NULL, *of_kv = NULL;
    struct kn_deviation deviation = {.first = KN_NOWHERE, .worst = KN_NOWHERE};
    double *oracle = malloc(ROWS * head_size * sizeof *oracle);
    size_t touched = 0;
    const size_t gap = head_size % 8 == 0 ? 8 : 3, skew = head_size % 8 == 0 ? 0 : 1;
    const double error = type == KN_F32 ? 1e-4 : 8 * kn_type_roundoff(type);
    if (!sweep_begin(sweep, "attention packed %s %s heads of %zu%s", variant, kn_type_name(type),
                     head_size,
                     mask == 0   ? ""
                     : mask == 1 ? ", causal"
                                 : ", a window")) {
        free(oracle);
        return;
    }
    TOL_CHECK(oracle != NULL, TOL_OUT_OF_HOST_MEMORY, "%d rows", ROWS);
    TOL_TRY(sweep_matrix_make(sweep, type, ROWS, head_size, gap, skew, 1, &q));
    TOL_TRY(sweep_matrix_make(sweep, type, KEYS, head_size, gap, skew, 1, &k));
    TOL_TRY(sweep_matrix_make(sweep, type, KEYS, head_size, gap, skew, 1, &v));
    TOL_TRY(sweep_matrix_make(sweep, type, ROWS, head_size, gap, skew, 0, &out));
    TOL_TRY(sweep_ints(sweep, q_begins, SEQUENCES + 1, &of_q));
    TOL_TRY(sweep_ints(sweep, kv_begins, SEQUENCES + 1, &of_kv));
    const struct kn_attention_packed packed = {.attention = {.type = type,
                                                             .batch = SEQUENCES,
                                                             .heads = 1,
                                                             .kv_heads = 1,
                                                             .q_length = 131,
                                                             .kv_length = 170,
                                                             .head_size = head_size,
                                                             .causal = mask > 0,
                                                             .window = mask == 2 ? 50 : 0,
                                                             .q = packed_sweep_heads_of(&q),
                                                             .k = packed_sweep_heads_of(&k),
                                                             .v = packed_sweep_heads_of(&v),
                                                             .out = packed_sweep_heads_of(&out)},
                                               .q_rows = ROWS,
                                               .kv_rows = KEYS,
                                               .q_begins = of_q,
                                               .kv_begins = of_kv,
                                               .variant = variant};
    TOL_CHECK(packed_sweep_solve(&packed.attention, in, oracle), TOL_OUT_OF_HOST_MEMORY,
              "a row's bound");
    TOL_TRY(kn_attention_packed(sweep->kernels, sweep->stream, &packed));
    status = sweep_matrix_judge(sweep, &out, oracle, (struct kn_tolerance){error, error},
                                &deviation, &touched);
out:
    sweep_judge(sweep, status, &deviation, touched);
    sweep_matrix_end(&q);
    sweep_matrix_end(&k);
    sweep_matrix_end(&v);
    sweep_matrix_end(&out);
    tol_buffer_destroy(of_q);
    tol_buffer_destroy(of_kv);
    free(oracle);
}

void sweep_packed(struct sweep *sweep) {
    static const size_t sizes[] = {64, 96, 128, 256};
    for (enum kn_type type = 0; type < KN_TYPES; type++) {
        for (int mask = 0; mask < 3; mask++) packed_sweep_run_case(sweep, "naive", type, 7, mask);
        for (int i = 0; i < (type == KN_F32 ? 0 : 4); i++) {
            packed_sweep_run_case(sweep, "tensor", type, sizes[i], (i + (int)type) % 3);
            packed_sweep_run_case(sweep, "wgmma", type, sizes[i], (i + (int)type) % 3);
        }
    }
}
