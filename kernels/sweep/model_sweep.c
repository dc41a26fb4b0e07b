/*
 * Cases of linear, embed, heads and paged attention: every format with one column and several,
 * and for each kernel its number of heads that share a key.
 */
#include "choose/choose.h"
#include "core/check.h"
#include "decode/embed.h"
#include "decode/gated.h"
#include "decode/paged.h"
#include "inputs.h"
#include "quantised/linear/linear.h"
#include "quantised/product/product_table.h"
#include "sweep_matrix.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 3, COLUMNS = 5, K = 512, POSITIONS = 2 };

static struct kn_place model_sweep_place_of(const struct sweep_matrix *matrix) {
    const struct kn_guarded *guarded = &matrix->guarded;
    return (struct kn_place){tol_buffer_address(guarded->buffer) + guarded->offset, guarded->bytes};
}

/* Bytes that are weights of every format: as fp16, bf16 and fp32 they are from 0.5 to 2. */
static void model_sweep_draw(struct sweep *sweep, enum kn_weight_format format, uint8_t *weights,
                             size_t bytes) {
    for (size_t i = 0; i < bytes; i += 2) {
        const uint16_t bits = (uint16_t)(kn_random(&sweep->random) & 0x3ff);
        const uint16_t half = format == KN_WEIGHT_BF16 || format == KN_WEIGHT_F32
                                  ? (uint16_t)(0x3f80 | (bits & 0x7f))
                                  : (uint16_t)(0x3c00 | bits);
        memcpy(weights + i, &half, 2);
    }
}

struct product {
    struct sweep_matrix x, y;
    struct tol_buffer *weights, *tokens, *workspace;
    uint8_t *bytes;
    float *values;
    double *oracle;
    double absolute; /* what is allowed if more than 1e-2, besides 1e-4 of the value */
};

static tol_status model_sweep_begin(struct sweep *sweep, enum kn_weight_format format, size_t rows,
                                    size_t columns, struct product *p) {
    tol_status status = TOL_OK;
    const size_t bytes = rows * kn_weight_row_bytes(format, K);
    TOL_TRY(sweep_matrix_make(sweep, KN_F32, columns, K, 4, 0, 1, &p->x));
    TOL_TRY(sweep_matrix_make(sweep, KN_F32, columns, rows, 2, 1, 0, &p->y));
    TOL_TRY(tol_buffer_create(kn_kernels_context(sweep->kernels), bytes, 1, &p->weights));
    p->bytes = malloc(bytes);
    p->values = malloc(rows * K * sizeof *p->values);
    p->oracle = calloc(columns * K, sizeof *p->oracle);
    TOL_CHECK(p->bytes != NULL && p->values != NULL && p->oracle != NULL, TOL_OUT_OF_HOST_MEMORY,
              "%zu bytes", bytes);
    model_sweep_draw(sweep, format, p->bytes, bytes);
    kn_weight_values(format, p->bytes, rows * K, p->values);
    status = tol_buffer_write(p->weights, p->bytes, bytes);
out:
    return status;
}

static void model_sweep_finish(struct sweep *sweep, tol_status status,
                               const struct sweep_matrix *out, struct product *p) {
    struct kn_deviation deviation = {.first = KN_NOWHERE, .worst = KN_NOWHERE};
    size_t touched = 0;
    if (status == TOL_OK) {
        status = sweep_matrix_judge(sweep, out, p->oracle,
                                    (struct kn_tolerance){fmax(1e-2, p->absolute), 1e-4},
                                    &deviation, &touched);
    }
    sweep_judge(sweep, status, &deviation, touched);
    sweep_matrix_end(&p->x);
    sweep_matrix_end(&p->y);
    tol_buffer_destroy(p->weights);
    tol_buffer_destroy(p->workspace);
    tol_buffer_destroy(p->tokens);
    free(p->bytes), free(p->values), free(p->oracle);
}

static void run_linear(struct sweep *sweep, enum kn_weight_format format, const char *variant,
                       size_t columns, bool gated) {
    tol_status status = TOL_OK;
    const struct kn_variant *kernel = kn_variants_find(
        kn_product_rows(gated ? KN_PRODUCT_GATED : KN_PRODUCT_LINEAR, format), variant);
    assert(kernel != NULL); /* the cases below name what the table has */
    const bool is_whole = (kernel->needs & KN_PRODUCT_WHOLE) != 0;
    const size_t rows = is_whole ? kernel->tile[0] * (gated ? 2U : 1U) : ROWS;
    struct product p = {0};
    if (!sweep_begin(sweep, "linear %s %s %zu x %zu%s", kn_weight_name(format), variant, rows,
                     columns, gated ? " gated" : "")) {
        return;
    }
    TOL_TRY(model_sweep_begin(sweep, format, rows, columns, &p));
    TOL_TRY(tol_buffer_create(kn_kernels_context(sweep->kernels), kn_linear_workspace(columns, K),
                              1, &p.workspace));
    for (size_t i = 0; i < columns * rows; i++) {
        const float *row = p.values + i % rows * K, *x = p.x.values + i / rows * K;
        double sum = 0, magnitude = 0;
        for (size_t k = 0; k < K; k++) {
            sum += (double)row[k] * (double)x[k];
            magnitude += fabs((double)row[k] * (double)x[k]);
        }
        p.oracle[i] = gated ? sum / (1 + exp(-sum)) * sum : sum;
        /* x has 17 bits on tensor cores, where fma rounds K / 32 + 16 times, and bytes are off by
         * 1/254 of the largest x; a gate multiplies the error of each sum by the other */
        const double each = kernel->tile[2] >= KN_PRODUCT_BYTES   ? 0x1p-4
                            : kernel->compute_capability_min < 80 ? 0x1p-19
                                                                  : 0x1p-17;
        p.absolute = fmax(p.absolute, each * magnitude * (gated ? 2.2 * fabs(sum) : 1));
    }
    status = kn_linear(
        sweep->kernels, sweep->stream,
        &(struct kn_linear){.format = format,
                            .rows = rows,
                            .columns = columns,
                            .k = K,
                            .weights = kn_place_of(p.weights, 0),
                            .gate = gated ? kn_place_of(p.weights, 0) : (struct kn_place){0, 0},
                            .x = model_sweep_place_of(&p.x),
                            .y = model_sweep_place_of(&p.y),
                            .x_stride = p.x.stride,
                            .y_stride = p.y.stride,
                            .workspace = kn_place_of(p.workspace, 0),
                            .variant = variant});
out:
    model_sweep_finish(sweep, status, &p.y, &p);
}

static void run_embed(struct sweep *sweep, enum kn_weight_format format) {
    static const int tokens[ROWS] = {2, 0, 1};
    tol_status status = TOL_OK;
    struct product p = {0};
    if (!sweep_begin(sweep, "embed %s", kn_weight_name(format))) return;
    TOL_TRY(model_sweep_begin(sweep, format, ROWS, ROWS, &p));
    TOL_TRY(sweep_ints(sweep, tokens, ROWS, &p.tokens));
    for (size_t i = 0; i < ROWS * K; i++) {
        p.oracle[i] = (double)p.values[(size_t)tokens[i / K] * K + i % K];
    }
    status = kn_embed(sweep->kernels, sweep->stream,
                      &(struct kn_embed){.format = format,
                                         .rows = ROWS,
                                         .columns = K,
                                         .table_rows = ROWS,
                                         .table = kn_place_of(p.weights, 0),
                                         .tokens = kn_place_of(p.tokens, 0),
                                         .out = model_sweep_place_of(&p.x),
                                         .out_stride = p.x.stride});
out:
    model_sweep_finish(sweep, status, &p.x, &p);
}

/* x is its own gate: an element is read by the thread that writes it. */
static void model_sweep_run_gated(struct sweep *sweep) {
    tol_status status = TOL_OK;
    struct product p = {0};
    if (!sweep_begin(sweep, "gated")) return;
    TOL_TRY(model_sweep_begin(sweep, KN_WEIGHT_F32, ROWS, COLUMNS, &p));
    for (size_t i = 0; i < COLUMNS * K; i++) {
        const double x = (double)p.x.values[i];
        p.oracle[i] = x * x / (1 + exp(-x));
    }
    status = kn_gated(sweep->kernels, sweep->stream,
                      &(struct kn_gated){.rows = COLUMNS,
                                         .columns = K,
                                         .gate = model_sweep_place_of(&p.x),
                                         .y = model_sweep_place_of(&p.x),
                                         .gate_stride = p.x.stride,
                                         .y_stride = p.x.stride});
out:
    model_sweep_finish(sweep, status, &p.x, &p);
}

double sweep_cached(const float *values, size_t i, enum kn_cache cache) {
    float largest = 0;
    if (cache == KN_CACHE_F16) return (double)kn_f16_value(kn_f16_of(values[i]));
    for (size_t j = i / 32 * 32; j < i / 32 * 32 + 32; j++) {
        largest = fmaxf(largest, fabsf(values[j]));
    }
    const float scale = largest / 127;
    return (double)kn_f16_value(kn_f16_of(scale)) * (double)roundf(values[i] / scale);
}

/* Two positions of one session. q is 0, so a row is the mean of the values that it sees. */
static void model_sweep_run_paged(struct sweep *sweep, size_t group, enum kn_cache cache,
                                  const char *variant) {
    static const int numbers[2 * POSITIONS] = {0, 1, 0, 0}; /* positions, slots */
    tol_status status = TOL_OK;
    struct product p = {0};
    struct tol_buffer *page = NULL, *table = NULL, *workspace = NULL;
    const size_t size = cache == KN_CACHE_F16 ? 40 : 64;
    const struct kn_paged_heads shape = {group, 1, size, cache};
    const size_t width = (group + 2) * size;
    if (!sweep_begin(sweep, "paged attention %s of %zu heads, cache %d", variant, group,
                     (int)cache)) {
        return;
    }
    struct tol_context *context = kn_kernels_context(sweep->kernels);
    TOL_TRY(sweep_matrix_make(sweep, KN_F32, POSITIONS, width, 0, 0, 1, &p.x));
    TOL_TRY(sweep_matrix_make(sweep, KN_F32, POSITIONS, group * size, 3, 1, 0, &p.y));
    TOL_TRY(sweep_ints(sweep, numbers, 2 * POSITIONS, &p.tokens));
    TOL_TRY(tol_buffer_create(context, kn_paged_layer_bytes(&shape), 1, &page));
    TOL_TRY(tol_buffer_create(context, 1, sizeof(uint64_t), &table));
    TOL_TRY(tol_buffer_create(context, kn_paged_workspace(&shape, POSITIONS, 1), 1, &workspace));
    const uint64_t address = tol_buffer_address(page);
    TOL_TRY(tol_buffer_write(table, &address, sizeof address));
    p.oracle = calloc(POSITIONS * group * size, sizeof *p.oracle);
    TOL_CHECK(p.oracle != NULL, TOL_OUT_OF_HOST_MEMORY, "an oracle");
    for (size_t i = 0; i < POSITIONS * group * size; i++) {
        const float *values = p.x.values + (group + 1) * size;
        const double first = sweep_cached(values, i % size, cache);
        const double second = sweep_cached(values + width, i % size, cache);
        p.oracle[i] = i < group * size ? first : (first + second) / 2;
    }
    for (size_t row = 0; row < POSITIONS; row++) {
        TOL_TRY(tol_buffer_fill_at(p.x.guarded.buffer, p.x.guarded.offset + row * width * 4, 0, 4,
                                   group * size));
    }
    const struct kn_paged_rows batch = {.rows = POSITIONS,
                                        .positions = kn_place_of(p.tokens, 0),
                                        .slots = kn_place_of(p.tokens, POSITIONS * sizeof(int)),
                                        .tables = kn_place_of(table, 0),
                                        .pages_max = 1};
    TOL_TRY(kn_heads(sweep->kernels, sweep->stream,
                     &(struct kn_heads_ready){.batch = batch,
                                              .shape = shape,
                                              .qkv = model_sweep_place_of(&p.x),
                                              .qkv_stride = width,
                                              .magnitude = 1,
                                              .variant = variant}));
    status = kn_paged_attention(sweep->kernels, sweep->stream,
                                &(struct kn_paged){.batch = batch,
                                                   .shape = shape,
                                                   .q = model_sweep_place_of(&p.x),
                                                   .out = model_sweep_place_of(&p.y),
                                                   .q_stride = width,
                                                   .out_stride = p.y.stride,
                                                   .splits = 1,
                                                   .workspace = kn_place_of(workspace, 0),
                                                   .variant = variant});
out:
    model_sweep_finish(sweep, status, &p.y, &p);
    tol_buffer_destroy(page);
    tol_buffer_destroy(table);
    tol_buffer_destroy(workspace);
}

void sweep_model(struct sweep *sweep) {
    const struct tol_device *device = tol_context_device(kn_kernels_context(sweep->kernels));
    for (enum kn_weight_format format = 0; format < KN_WEIGHT_FORMATS; format++) {
        for (int gated = 0; gated <= 1; gated++) {
            run_linear(sweep, format, "fma", 1, gated == 1);
            run_linear(sweep, format, "fma", COLUMNS, gated == 1);
            if (format >= KN_WEIGHT_Q8_0 && device->compute_capability >= 80) {
                run_linear(sweep, format, "tensor", COLUMNS, gated == 1);
                run_linear(sweep, format, "wide", COLUMNS, gated == 1);
            }
            for (int many = 0; many <= 1 && format >= KN_WEIGHT_Q4_K; many++) {
                const size_t columns = many ? 9 : 1;
                if (device->compute_capability < 80) break;
                run_linear(sweep, format, "bytes", columns, gated == 1);
                if (device->compute_capability < 90) continue;
                run_linear(sweep, format, "early", columns, gated == 1);
                if (!many) run_linear(sweep, format, "stay", columns, gated == 1);
                if (many) run_linear(sweep, format, "kept", columns, gated == 1);
                if (many) run_linear(sweep, format, "long", columns, gated == 1);
            }
        }
        run_embed(sweep, format);
        if (format == KN_WEIGHT_F32) model_sweep_run_gated(sweep);
    }
    for (size_t group = 1; group <= 8; group *= 2) {
        for (enum kn_cache cache = 0; cache < KN_CACHES; cache++) {
            model_sweep_run_paged(sweep, group, cache, "plain");
            if (device->compute_capability >= 90)
                model_sweep_run_paged(sweep, group, cache, "early");
        }
    }
    sweep_rounded(sweep);
    sweep_draw(sweep);
}
