/*
 * Cases of what the decoder rounds to bytes, and of the largest logit. A tile of one chunk of 256
 * elements is read back and its numbers are multiplied by their scales again.
 */
#include "core/check.h"
#include "decode/best.h"
#include "decode/paged_step.h"
#include "quantised/formats/linear_arguments.h"
#include "quantised/linear/linear_pair.h"
#include "quantised/formats/rounded.h"
#include "row/argmax.h"
#include "sweep_matrix.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 5, CHUNK = 256, ROWS = 3, LONG = 700 };

static struct kn_place rounded_sweep_place_of(const struct sweep_matrix *matrix) {
    const struct kn_guarded *guarded = &matrix->guarded;
    return (struct kn_place){tol_buffer_address(guarded->buffer) + guarded->offset, guarded->bytes};
}

/* Element i of a column of a tile: where linear_arguments.h says that it is, times its scale. */
static float rounded_sweep_value_of(const uint8_t *tile, size_t column, size_t i, float *scale) {
    const size_t sub = i / 32, at = i % 32;
    const int number = (int8_t)
        tile[sub / 2 * 512 + (column * 4 + at % 16 / 4) * 16 + sub % 2 * 8 + at / 16 * 4 + at % 4];
    memcpy(scale, tile + ROUNDED_UNITS_AT + 64 * column + 8, sizeof *scale);
    return (float)number * *scale;
}

/* Reads the tile of this number of columns, and compares it with the oracle. */
static tol_status judge_tile(struct sweep *sweep, struct tol_buffer *out, size_t columns,
                             const double *oracle, struct kn_deviation *deviation) {
    tol_status status = TOL_OK;
    uint8_t tile[ROUNDED_CHUNK];
    float values[COLUMNS * CHUNK];
    double allowed[COLUMNS * CHUNK];
    TOL_TRY(tol_stream_synchronize(sweep->stream));
    TOL_TRY(tol_buffer_read(out, tile, sizeof tile));
    for (size_t i = 0; i < columns * CHUNK; i++) {
        float scale = 0;
        values[i] = rounded_sweep_value_of(tile, i / CHUNK, i % CHUNK, &scale);
        /* half a scale, and what a norm or a mean is off by in floats */
        allowed[i] = (double)scale * 0.5001 + 1e-5 * fabs(oracle[i]);
    }
    *deviation = kn_deviation_of(KN_F32, values, oracle, columns * CHUNK,
                                 (struct kn_tolerance){0, 0}, allowed);
out:
    return status;
}

/* ---- rounded --------------------------------------------------------------------------------- */

static void run_rounded(struct sweep *sweep, const char *variant, bool has_norm) {
    tol_status status = TOL_OK;
    struct sweep_matrix x = {0}, weight = {0};
    struct tol_buffer *out = NULL;
    struct kn_deviation deviation = {.first = KN_NOWHERE, .worst = KN_NOWHERE};
    double oracle[COLUMNS * CHUNK];
    if (!sweep_begin(sweep, "rounded %s %d columns%s", variant, COLUMNS, has_norm ? " norm" : "")) {
        return;
    }
    TOL_TRY(sweep_matrix_make(sweep, KN_F32, COLUMNS, CHUNK, 4, 0, 1, &x));
    TOL_TRY(sweep_matrix_make(sweep, KN_F32, 1, CHUNK, 0, 0, 1, &weight));
    TOL_TRY(tol_buffer_create(kn_kernels_context(sweep->kernels), kn_rounded_bytes(COLUMNS, CHUNK),
                              1, &out));
    for (size_t c = 0; c < COLUMNS; c++) {
        const float *column = x.values + c * CHUNK;
        double squares = 0;
        for (size_t i = 0; i < CHUNK; i++) squares += (double)column[i] * (double)column[i];
        const double root = sqrt(squares / CHUNK + 1e-5);
        for (size_t i = 0; i < CHUNK; i++) {
            oracle[c * CHUNK + i] = (double)column[i];
            if (has_norm) oracle[c * CHUNK + i] *= (double)weight.values[i] / root;
        }
    }
    TOL_TRY(kn_rounded(sweep->kernels, sweep->stream,
                       &(struct kn_rounded){.columns = COLUMNS,
                                            .k = CHUNK,
                                            .x = rounded_sweep_place_of(&x),
                                            .x_stride = x.stride,
                                            .norm = has_norm ? rounded_sweep_place_of(&weight)
                                                             : (struct kn_place){0, 0},
                                            .epsilon = 1e-5f,
                                            .out = kn_place_of(out, 0),
                                            .variant = variant}));
    status = judge_tile(sweep, out, COLUMNS, oracle, &deviation);
out:
    sweep_judge(sweep, status, &deviation, 0);
    sweep_matrix_end(&x);
    sweep_matrix_end(&weight);
    tol_buffer_destroy(out);
}

/* ---- the largest logit ----------------------------------------------------------------------- */

static void run_best(struct sweep *sweep, const char *variant) {
    tol_status status = TOL_OK;
    int found[ROWS];
    float values[ROWS];
    double oracle[ROWS];
    struct sweep_matrix in = {0};
    struct tol_buffer *out = NULL, *workspace = NULL;
    struct tol_context *context = kn_kernels_context(sweep->kernels);
    struct kn_deviation deviation = {.first = KN_NOWHERE, .worst = KN_NOWHERE};
    if (!sweep_begin(sweep, "best %s %d x %d", variant, ROWS, LONG)) return;
    TOL_TRY(sweep_matrix_make(sweep, KN_F32, ROWS, LONG, 3, 1, 1, &in));
    TOL_TRY(tol_buffer_create(context, ROWS, sizeof(int), &out));
    TOL_TRY(tol_buffer_create(context, kn_best_workspace(ROWS), 1, &workspace));
    TOL_TRY(kn_best(sweep->kernels, sweep->stream,
                    &(struct kn_best){.rows = ROWS,
                                      .columns = LONG,
                                      .in = rounded_sweep_place_of(&in),
                                      .in_stride = in.stride,
                                      .out = kn_place_of(out, 0),
                                      .workspace = kn_place_of(workspace, 0),
                                      .variant = variant}));
    TOL_TRY(tol_stream_synchronize(sweep->stream));
    TOL_TRY(tol_buffer_read(out, found, sizeof found));
    for (size_t r = 0; r < ROWS; r++) {
        values[r] = (float)found[r];
        oracle[r] = kn_argmax_oracle(in.values + r * LONG, LONG);
    }
    deviation = kn_deviation_of(KN_F32, values, oracle, ROWS, (struct kn_tolerance){0, 0}, NULL);
out:
    sweep_judge(sweep, status, &deviation, 0);
    sweep_matrix_end(&in);
    tol_buffer_destroy(out);
    tol_buffer_destroy(workspace);
}

/* ---- attention that rounds its rows ---------------------------------------------------------- */

/* One position, which sees itself alone: its row is its value, whatever the score. "step" is the
 * kernel that is heads and attention. */
static void rounded_sweep_run_paged(struct sweep *sweep, const char *variant, size_t heads,
                                    enum kn_cache cache) {
    static const int numbers[2] = {0, 0}; /* the position and the slot */
    tol_status status = TOL_OK;
    const bool is_step = strcmp(variant, "step") == 0;
    const size_t size = CHUNK / heads, width = (heads + 2) * size;
    const struct kn_paged_heads shape = {heads, 1, size, cache};
    struct sweep_matrix x = {0}, y = {0};
    struct tol_buffer *page = NULL, *table = NULL, *workspace = NULL, *out = NULL, *ints = NULL;
    struct tol_context *context = kn_kernels_context(sweep->kernels);
    struct kn_deviation deviation = {.first = KN_NOWHERE, .worst = KN_NOWHERE};
    double oracle[CHUNK];
    if (!sweep_begin(sweep, "paged attention %s of %zu heads, cache %d, rounded", variant, heads,
                     (int)cache)) {
        return;
    }
    TOL_TRY(sweep_matrix_make(sweep, KN_F32, 1, width, 0, 0, 1, &x));
    TOL_TRY(sweep_matrix_make(sweep, KN_F32, 1, CHUNK, 0, 0, 0, &y));
    TOL_TRY(sweep_ints(sweep, numbers, 2, &ints));
    TOL_TRY(tol_buffer_create(context, kn_paged_layer_bytes(&shape), 1, &page));
    TOL_TRY(tol_buffer_create(context, 1, sizeof(uint64_t), &table));
    TOL_TRY(tol_buffer_create(context, kn_paged_workspace(&shape, 1, 1), 1, &workspace));
    TOL_TRY(tol_buffer_create(context, kn_rounded_bytes(1, CHUNK), 1, &out));
    const uint64_t address = tol_buffer_address(page);
    TOL_TRY(tol_buffer_write(table, &address, sizeof address));
    for (size_t i = 0; i < CHUNK; i++) {
        oracle[i] = sweep_cached(x.values + (heads + 1) * size, i % size, cache);
    }
    const struct kn_paged_rows batch = {.rows = 1,
                                        .positions = kn_place_of(ints, 0),
                                        .slots = kn_place_of(ints, sizeof(int)),
                                        .tables = kn_place_of(table, 0),
                                        .pages_max = 1};
    const struct kn_heads_ready ready = {.batch = batch,
                                         .shape = shape,
                                         .qkv = rounded_sweep_place_of(&x),
                                         .qkv_stride = width,
                                         .magnitude = 1,
                                         .variant = is_step ? NULL : variant};
    const struct kn_paged paged = {.batch = batch,
                                   .shape = shape,
                                   .q = rounded_sweep_place_of(&x),
                                   .out = rounded_sweep_place_of(&y),
                                   .q_stride = width,
                                   .out_stride = CHUNK,
                                   .rounded = kn_place_of(out, 0),
                                   .splits = 1,
                                   .workspace = kn_place_of(workspace, 0),
                                   .variant = is_step ? NULL : variant};
    if (is_step) {
        TOL_TRY(kn_paged_step(sweep->kernels, sweep->stream, &ready, &paged));
    } else {
        TOL_TRY(kn_heads(sweep->kernels, sweep->stream, &ready));
        TOL_TRY(kn_paged_attention(sweep->kernels, sweep->stream, &paged));
    }
    status = judge_tile(sweep, out, 1, oracle, &deviation);
out:
    sweep_judge(sweep, status, &deviation, 0);
    sweep_matrix_end(&x);
    sweep_matrix_end(&y);
    tol_buffer_destroy(page);
    tol_buffer_destroy(table);
    tol_buffer_destroy(workspace);
    tol_buffer_destroy(out);
    tol_buffer_destroy(ints);
}

/* ---- two products of one x ------------------------------------------------------------------- */

/* Weights are zeros, so y is the bias; the bits of products are the tests'. */
static void rounded_sweep_run_pair(struct sweep *sweep, enum kn_weight_format format) {
    enum { TILE = 16 };
    tol_status status = TOL_OK;
    struct sweep_matrix x = {0}, y = {0}, bias = {0};
    struct tol_buffer *weights = NULL, *workspace = NULL;
    struct tol_context *context = kn_kernels_context(sweep->kernels);
    struct kn_deviation deviation = {.first = KN_NOWHERE, .worst = KN_NOWHERE};
    const enum kn_weight_format formats[2] = {format, KN_WEIGHT_Q6_K};
    double oracle[2 * TILE];
    size_t touched = 0;
    if (!sweep_begin(sweep, "linear pair %s q6_k", kn_weight_name(format))) return;
    TOL_TRY(sweep_matrix_make(sweep, KN_F32, 1, CHUNK, 0, 0, 1, &x));
    TOL_TRY(sweep_matrix_make(sweep, KN_F32, 1, 2 * TILE, 0, 0, 1, &bias));
    TOL_TRY(sweep_matrix_make(sweep, KN_F32, 1, 2 * TILE, 2, 1, 0, &y));
    TOL_TRY(
        tol_buffer_create(context, TILE * kn_weight_row_bytes(KN_WEIGHT_Q6_K, CHUNK), 1, &weights));
    TOL_TRY(tol_buffer_fill_at(weights, 0, 0, 1, tol_buffer_bytes(weights)));
    TOL_TRY(tol_buffer_create(context, kn_rounded_bytes(1, CHUNK), 1, &workspace));
    TOL_TRY(kn_rounded(sweep->kernels, sweep->stream,
                       &(struct kn_rounded){.columns = 1,
                                            .k = CHUNK,
                                            .x = rounded_sweep_place_of(&x),
                                            .x_stride = x.stride,
                                            .out = kn_place_of(workspace, 0)}));
    struct kn_linear problems[2];
    for (size_t i = 0; i < 2; i++) {
        const size_t at = i * TILE * sizeof(float);
        problems[i] = (struct kn_linear){
            .format = formats[i],
            .rows = TILE,
            .columns = 1,
            .k = CHUNK,
            .weights = kn_place_of(weights, 0),
            .bias = {rounded_sweep_place_of(&bias).address + at, TILE * sizeof(float)},
            .y = {rounded_sweep_place_of(&y).address + at, TILE * sizeof(float)},
            .y_stride = TILE,
            .workspace = kn_place_of(workspace, 0),
            .is_rounded = true};
    }
    for (size_t i = 0; i < sizeof oracle / sizeof *oracle; i++) oracle[i] = (double)bias.values[i];
    TOL_TRY(kn_linear_pair(sweep->kernels, sweep->stream, &problems[0], &problems[1]));
    status =
        sweep_matrix_judge(sweep, &y, oracle, (struct kn_tolerance){0, 0}, &deviation, &touched);
out:
    sweep_judge(sweep, status, &deviation, touched);
    sweep_matrix_end(&x);
    sweep_matrix_end(&y);
    sweep_matrix_end(&bias);
    tol_buffer_destroy(weights);
    tol_buffer_destroy(workspace);
}

void sweep_rounded(struct sweep *sweep) {
    const bool has_early =
        tol_context_device(kn_kernels_context(sweep->kernels))->compute_capability >= 90;
    for (int norm = 0; norm <= 1; norm++) {
        run_rounded(sweep, "warp", norm == 1);
        if (has_early) run_rounded(sweep, "early", norm == 1);
    }
    run_best(sweep, "parts");
    rounded_sweep_run_paged(sweep, "plain", 4, KN_CACHE_F16);
    if (!has_early) return;
    rounded_sweep_run_pair(sweep, KN_WEIGHT_Q4_K);
    rounded_sweep_run_pair(sweep, KN_WEIGHT_Q5_K);
    run_best(sweep, "early");
    rounded_sweep_run_paged(sweep, "early", 4, KN_CACHE_F16);
    for (size_t heads = 1; heads <= 8; heads *= 2) {
        for (enum kn_cache cache = 0; cache < KN_CACHES; cache++) {
            rounded_sweep_run_paged(sweep, "step", heads, cache);
        }
    }
}
