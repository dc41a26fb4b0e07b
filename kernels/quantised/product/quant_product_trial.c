/*
 * The oracle, its bounds, and the run.
 */
#include "quant_product_trial.h"

#include "choose/choose.h"
#include "core/check.h"
#include "guarded.h"
#include "parallel.h"
#include "quantised/product/product_table.h"
#include "swapped.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* All that a trial needs of the host. */
struct host {
    char *blocks;
    float *x, *y;             /* with gaps */
    double *weights, *spread; /* W, and d sc q + |dmin| m */
    double *exact, *allowed;  /* of y, without gaps */
    double *rounded, *rounded_allowed;
    float *made;
};

static void free_host(struct host *h) {
    free(h->blocks), free(h->x), free(h->y), free(h->weights), free(h->spread);
    free(h->exact), free(h->allowed), free(h->rounded), free(h->rounded_allowed), free(h->made);
}

/* How much an element's parts are, before they are taken from each other. */
static void spread_of(const struct kn_quant_trial *t, const struct host *h, size_t count) {
    for (size_t i = 0; i < count; i++) {
        h->spread[i] = fabs(h->weights[i]);
        if (t->quant != KN_Q4_K) continue;
        struct kn_block_q4_k block;
        uint8_t scale, minimum;
        memcpy(&block, h->blocks + i / 256 * sizeof block, sizeof block);
        kn_q4_k_scale(block.scales, (int)(i % 256 / 32), &scale, &minimum);
        h->spread[i] += 2 * fabs((double)kn_f16_value(block.dmin)) * minimum;
    }
}

static void poison_row(const struct kn_quant_trial *t, const struct host *h) {
    static const uint16_t nan_f16 = 0x7e00;
    const size_t bytes = kn_quant_block_bytes(t->quant);
    char *block =
        h->blocks + (t->poisoned_row * t->k / kn_quant_block_elements(t->quant) - 1) * bytes;
    const size_t at = t->quant == KN_Q6_K ? offsetof(struct kn_block_q6_k, d) : 0;
    memcpy(block + at, &nan_f16, sizeof nan_f16);
}

static tol_status make_host(const struct kn_quant_trial *t, struct host *h) {
    tol_status status = TOL_OK;
    uint64_t state = t->seed;
    const size_t count = t->rows * t->k, outputs = t->rows * t->columns;
    const size_t blocks = count / kn_quant_block_elements(t->quant);
    const size_t x_stride = t->k + t->x_gap, y_stride = t->rows + t->y_gap;
    h->blocks = calloc(blocks + 1, kn_quant_block_bytes(t->quant));
    h->x = calloc(t->columns * x_stride + 1, sizeof *h->x);
    h->y = calloc(t->columns * y_stride + 1, sizeof *h->y);
    h->made = calloc(outputs + 1, sizeof *h->made);
    h->weights = calloc(count + 1, sizeof *h->weights);
    h->spread = calloc(count + 1, sizeof *h->spread);
    h->exact = calloc(outputs + 1, sizeof *h->exact);
    h->allowed = calloc(outputs + 1, sizeof *h->allowed);
    h->rounded = calloc(outputs + 1, sizeof *h->rounded);
    h->rounded_allowed = calloc(outputs + 1, sizeof *h->rounded_allowed);
    TOL_CHECK(h->blocks && h->x && h->y && h->made && h->weights && h->spread && h->exact &&
                  h->allowed && h->rounded && h->rounded_allowed,
              TOL_OUT_OF_HOST_MEMORY, "no memory for a trial of %zu weights", count);
    kn_quant_draw(t->quant, t->kind, &state, blocks, h->blocks);
    if (t->poisoned_row > 0) poison_row(t, h);
    kn_quant_values_exact(t->quant, h->blocks, blocks, h->weights);
    spread_of(t, h, count);
    for (size_t n = 0; n < t->columns; n++) {
        kn_inputs_draw(t->distribution, &state, t->scale, h->x + n * x_stride, t->k);
        for (size_t l = t->k; l < x_stride; l++) h->x[n * x_stride + l] = NAN; /* nobody's */
    }
    if (t->poison_at > 0) {
        const size_t at = t->poison_at - 1;
        h->x[at / t->k * x_stride + at % t->k] = t->poison;
    }
out:
    return status;
}

/* The step of x's rounding, as the kernel has it. */
static float step_of(const float *group) {
    float most = 0;
    for (int i = 0; i < 32; i++) most = fmaxf(most, fabsf(group[i]));
    return most / 127;
}

static double rounded_x(float x, float step) {
    return step > 0 ? (double)step * fmin(fmax(rintf(x / step), -127), 127) : 0;
}

/* Whether the trial names a kernel that adds the products of an element in order. */
static bool product_trial_is_in_order(const struct kn_quant_trial *t) {
    const struct kn_variants *own = kn_quant_product_variants(t->quant, t->arithmetic);
    const struct kn_variant *row =
        kn_variants_find(t->variants != NULL ? t->variants : own, t->variant);
    return row != NULL && row->tile[2] == KN_PRODUCT_ALONE;
}

/* One element of y, with what it may be off by: quant_product.h. */
static void product_trial_judge(const struct kn_quant_trial *t, const struct host *h,
                                bool is_in_order, size_t row, size_t column) {
    const double u = 0x1p-24, k = (double)t->k;
    const float *x = h->x + column * (t->k + t->x_gap);
    const double *w = h->weights + row * t->k, *spread = h->spread + row * t->k;
    double sum = 0, rounded = 0, parts = 0, products = 0, steps = 0, of_w = 0, of_x = 0;
    float step = 0;
    for (size_t l = 0; l < t->k; l++) {
        if (l % 32 == 0) step = step_of(x + l);
        sum += w[l] * (double)x[l];
        rounded += w[l] * rounded_x(x[l], step);
        parts += spread[l] * (fabs((double)x[l]) + (double)step);
        products += fabs(w[l] * (double)x[l]);
        /* A subnormal step is itself off by a half of the least number. */
        steps += fabs(w[l]) * (0.5 * (double)step * (1 + 0x1p-20) + 128 * 0x1p-149);
        of_w += fabs(w[l]), of_x += fabs((double)x[l]);
    }
    /* What is subnormal is off by its least bit, scales before they meet their quants. */
    const double least = t->arithmetic == KN_QUANT_Q8_1 ? k * 0x1p-135 : (k + 64) * 0x1p-149;
    const double sums = (is_in_order ? k + 2 : 64 + k / 64) * u * parts + least;
    const size_t i = column * t->rows + row;
    h->exact[i] = sum;
    h->rounded[i] = rounded;
    h->rounded_allowed[i] = sums;
    h->allowed[i] = t->arithmetic == KN_QUANT_F32 ? sums
                    : t->arithmetic == KN_QUANT_Q8_1
                        ? sums + steps
                        : 0x1p-10 * products + (8 + k / 16) * 4 * u * products +
                              0x1p-25 * (of_w + of_x) + k * 0x1p-50;
}

static tol_status product_trial_run(struct kn_kernels *kernels, struct tol_stream *stream,
                                    const struct kn_quant_trial *t, struct host *h,
                                    struct kn_quant_finding *finding) {
    tol_status status = TOL_OK;
    struct tol_context *context = kn_kernels_context(kernels);
    const size_t blocks = t->rows * t->k / kn_quant_block_elements(t->quant);
    const size_t x_stride = t->k + t->x_gap, y_stride = t->rows + t->y_gap;
    /* The last column of y ends where its last row does. */
    const size_t y_count = (t->columns - 1) * y_stride + t->rows;
    const size_t workspace = kn_quant_product_workspace(t->arithmetic, t->columns, t->k);
    struct kn_guarded w = {0}, x = {0}, y = {0}, space = {0};
    TOL_TRY(
        kn_guarded_create(context, blocks * kn_quant_block_bytes(t->quant), t->weights_skew, &w));
    TOL_TRY(kn_guarded_create(context, t->columns * x_stride * sizeof(float), t->x_skew, &x));
    TOL_TRY(kn_guarded_create(context, y_count * sizeof(float), t->y_skew, &y));
    TOL_TRY(kn_guarded_create(context, workspace, 0, &space));
    TOL_TRY(kn_guarded_write(&w, h->blocks));
    TOL_TRY(kn_guarded_write(&x, h->x));
    const struct kn_quant_product problem = {
        .quant = t->quant,
        .arithmetic = t->arithmetic,
        .rows = t->rows,
        .columns = t->columns,
        .k = t->k,
        .weights = {tol_buffer_address(w.buffer) + w.offset, w.bytes},
        .x = {tol_buffer_address(x.buffer) + x.offset, x.bytes},
        .y = {tol_buffer_address(y.buffer) + y.offset, y.bytes},
        .workspace = {tol_buffer_address(space.buffer) + space.offset, space.bytes},
        .x_stride = x_stride,
        .y_stride = y_stride,
        .variant = t->variant,
        .variants = t->variants};
    TOL_TRY(kn_quant_product(kernels, stream, &problem));
    TOL_TRY(tol_stream_synchronize_for(stream, KN_PATIENCE_MS));
    TOL_TRY(kn_guarded_read(&y, h->y));
    size_t changed[4] = {0};
    TOL_TRY(kn_guarded_check(&y, &changed[0]));
    TOL_TRY(kn_guarded_check(&space, &changed[1]));
    TOL_TRY(kn_guarded_check(&w, &changed[2]));
    TOL_TRY(kn_guarded_check(&x, &changed[3]));
    finding->changed = changed[0] + changed[1] + changed[2] + changed[3];
out:
    kn_guarded_destroy(&w), kn_guarded_destroy(&x);
    kn_guarded_destroy(&y), kn_guarded_destroy(&space);
    return status;
}

struct quant_judging {
    const struct kn_quant_trial *trial;
    const struct host *host;
    bool is_in_order;
};

static void product_trial_judge_element(void *user, size_t i) {
    const struct quant_judging *j = user;
    const size_t rows = j->trial->rows;
    product_trial_judge(j->trial, j->host, j->is_in_order, i % rows, i / rows);
}

static void product_trial_compare(const struct kn_quant_trial *t, const struct host *h,
                                  struct kn_quant_finding *finding) {
    const double product_ns = 6;
    const size_t stride = t->rows + t->y_gap, count = t->rows * t->columns;
    for (size_t n = 0; n < t->columns; n++) {
        for (size_t i = 0; i < t->rows; i++) {
            h->made[n * t->rows + i] = h->y[n * stride + i];
            if (!isfinite(h->y[n * stride + i])) finding->not_finite++;
        }
        for (size_t i = t->rows; n + 1 < t->columns && i < stride; i++) {
            uint32_t bits;
            memcpy(&bits, &h->y[n * stride + i], sizeof bits);
            finding->gaps_changed += bits != UINT32_MAX;
        }
    }
    if (t->swaps_last) (void)kn_swap_last(h->made, sizeof *h->made, count);
    kn_parallel_for(count, product_ns * (double)count * (double)t->k, product_trial_judge_element,
                    &(struct quant_judging){t, h, product_trial_is_in_order(t)});
    const struct kn_tolerance none = {0, 0};
    finding->deviation = kn_deviation_of(KN_F32, h->made, h->exact, count, none, h->allowed);
    finding->rounded =
        kn_deviation_of(KN_F32, h->made, h->rounded, count, none, h->rounded_allowed);
}

tol_status kn_quant_trial(struct kn_kernels *kernels, struct tol_stream *stream,
                          const struct kn_quant_trial *trial, struct kn_quant_finding *finding) {
    struct host host = {0};
    *finding = (struct kn_quant_finding){0};
    tol_status status = make_host(trial, &host);
    if (status == TOL_OK) status = product_trial_run(kernels, stream, trial, &host, finding);
    if (status == TOL_OK) product_trial_compare(trial, &host, finding);
    free_host(&host);
    return status;
}
