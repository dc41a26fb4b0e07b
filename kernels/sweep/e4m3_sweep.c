/*
 * Cases of attention over numbers of 8 bits: two heads that share one of k and v, each with its
 * scale, a tile of rows and part of another.
 */
#include "attention/e4m3/attention_e4m3.h"
#include "attention/e4m3/attention_e4m3_oracle.h"
#include "core/check.h"
#include "inputs.h"
#include "sweep_matrix.h"

#include <math.h>
#include <stdlib.h>

enum { HEADS = 2, ROWS = 150, KEYS = 170 };
static const float scales[] = {0.5f, 1.25f, 0.75f, 2}; /* of q, k and v */

/* Numbers of e4m3, on the device and as floats. */
struct bytes {
    struct tol_buffer *buffer;
    float *values;
};

static tol_status e4m3_sweep_make(struct sweep *sweep, size_t count, struct bytes *bytes) {
    tol_status status = TOL_OK;
    uint8_t *elements = malloc(count);
    bytes->values = malloc(count * sizeof *bytes->values);
    TOL_CHECK(elements != NULL && bytes->values != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu numbers",
              count);
    kn_inputs_draw(KN_NORMAL, &sweep->random, 1, bytes->values, count);
    for (size_t i = 0; i < count; i++) {
        elements[i] = kn_e4m3_of(bytes->values[i]);
        bytes->values[i] = kn_e4m3_value(elements[i]);
    }
    TOL_TRY(tol_buffer_create(kn_kernels_context(sweep->kernels), count, 1, &bytes->buffer));
    status = tol_buffer_write(bytes->buffer, elements, count);
out:
    free(elements);
    return status;
}

static void e4m3_sweep_end(struct bytes *bytes) {
    tol_buffer_destroy(bytes->buffer);
    free(bytes->values);
}

static bool e4m3_sweep_solve(const struct kn_attention *x, const struct bytes in[3],
                             double *oracle) {
    const size_t d = x->head_size;
    double *allowed = malloc(d * sizeof *allowed);
    bool ok = allowed != NULL;
    for (size_t i = 0; ok && i < HEADS * ROWS; i++) {
        const size_t head = i / ROWS;
        const struct kn_attention_head rows = {in[0].values + head * ROWS * d, in[1].values,
                                               in[2].values};
        const struct kn_e4m3_scales of = {scales[head], scales[2], scales[3]};
        struct kn_attention_row to = {.out = oracle + i * d, .allowed = allowed};
        ok = kn_attention_e4m3_oracle(x, &of, &rows, i % ROWS, &to);
    }
    free(allowed);
    return ok;
}

static void e4m3_sweep_run_case(struct sweep *sweep, const char *variant, enum kn_type type,
                                size_t head_size, int mask) {
    tol_status status = TOL_OK;
    struct bytes in[3] = {{0}, {0}, {0}};
    struct sweep_matrix out = {0};
    struct tol_buffer *of_heads = NULL;
    struct kn_deviation deviation = {.first = KN_NOWHERE, .worst = KN_NOWHERE};
    double *oracle = malloc(HEADS * ROWS * head_size * sizeof *oracle);
    size_t touched = 0;
    /* Scores are off by 2^-10 or so, since Hopper adds products with 13 bits. */
    const double error = 0x1p-7 + 8 * kn_type_roundoff(type);
    if (!sweep_begin(sweep, "attention e4m3 %s %s heads of %zu%s", variant, kn_type_name(type),
                     head_size,
                     mask == 0   ? ""
                     : mask == 1 ? ", causal"
                                 : ", a window")) {
        free(oracle);
        return;
    }
    TOL_CHECK(oracle != NULL, TOL_OUT_OF_HOST_MEMORY, "%d rows", ROWS);
    TOL_TRY(e4m3_sweep_make(sweep, HEADS * ROWS * head_size, &in[0]));
    TOL_TRY(e4m3_sweep_make(sweep, KEYS * head_size, &in[1]));
    TOL_TRY(e4m3_sweep_make(sweep, KEYS * head_size, &in[2]));
    TOL_TRY(sweep_matrix_make(sweep, type, HEADS * ROWS, head_size, 8, 0, 0, &out));
    TOL_TRY(tol_buffer_create(kn_kernels_context(sweep->kernels), sizeof scales, 1, &of_heads));
    TOL_TRY(tol_buffer_write(of_heads, scales, sizeof scales));
    const struct kn_rows rows = sweep_matrix_rows(&out);
    const struct kn_attention_e4m3 wish = {.attention = {.type = type,
                                                         .batch = 1,
                                                         .heads = HEADS,
                                                         .kv_heads = 1,
                                                         .q_length = ROWS,
                                                         .kv_length = KEYS,
                                                         .head_size = head_size,
                                                         .causal = mask > 0,
                                                         .window = mask == 2 ? 50 : 0,
                                                         .q = {.buffer = in[0].buffer},
                                                         .k = {.buffer = in[1].buffer},
                                                         .v = {.buffer = in[2].buffer},
                                                         .out = {.buffer = rows.buffer,
                                                                 .offset = rows.offset,
                                                                 .head_stride = ROWS * rows.stride,
                                                                 .row_stride = rows.stride}},
                                           .q_scales = kn_place_of(of_heads, 0),
                                           .k_scales = kn_place_of(of_heads, 2 * sizeof *scales),
                                           .v_scales = kn_place_of(of_heads, 3 * sizeof *scales),
                                           .variant = variant};
    TOL_CHECK(e4m3_sweep_solve(&wish.attention, in, oracle), TOL_OUT_OF_HOST_MEMORY,
              "a row's bound");
    TOL_TRY(kn_attention_e4m3(sweep->kernels, sweep->stream, &wish));
    status = sweep_matrix_judge(sweep, &out, oracle, (struct kn_tolerance){error, error},
                                &deviation, &touched);
out:
    sweep_judge(sweep, status, &deviation, touched);
    for (int i = 0; i < 3; i++) e4m3_sweep_end(&in[i]);
    sweep_matrix_end(&out);
    tol_buffer_destroy(of_heads);
    free(oracle);
}

void sweep_e4m3(struct sweep *sweep) {
    static const size_t sizes[] = {64, 128, 256, 112};
    for (enum kn_type type = KN_F16; type < KN_TYPES; type++) {
        for (int mask = 0; mask < 3; mask++) e4m3_sweep_run_case(sweep, "naive", type, 7, mask);
        for (int i = 0; i < 4; i++)
            e4m3_sweep_run_case(sweep, "wgmma", type, sizes[i], (i + (int)type) % 3);
    }
}
