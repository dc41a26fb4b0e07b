/*
 * Makes operands, runs a kernel, and judges the result.
 */
#include "grouped_trial.h"

#include "core/check.h"
#include "guarded.h"
#include "parallel.h"
#include "swapped.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum operand { A, B, C, RESIDUAL, BIAS, A_SCALE, B_SCALE, BEGINS, OPERANDS };

/* An operand on both sides. values are what the device reads, as floats, row by row. */
struct trial_side {
    enum kn_grouped_type type;
    size_t rows, columns, leading, bytes;
    float *values;
    unsigned char *host; /* what the device had before the kernel */
    struct kn_guarded device;
};

struct scene {
    const struct kn_grouped_trial *trial;
    size_t groups;
    struct trial_side sides[OPERANDS];
    unsigned char *now; /* C after the kernel */
    bool by_bytes;      /* Hopper's products of e4m3 */
    struct kn_deviation *rows;
    atomic_bool failed;
};

static void grouped_trial_store(enum kn_grouped_type type, float value, unsigned char *to) {
    const uint16_t half = type == KN_GROUPED_BF16 ? kn_bf16_of(value) : kn_f16_of(value);
    const uint8_t byte = kn_e4m3_of(value);
    const int8_t number = (int8_t)fminf(fmaxf(nearbyintf(value), -127), 127);
    const size_t bytes = kn_grouped_type_bytes(type);
    const void *from = type == KN_GROUPED_F32    ? (const void *)&value
                       : bytes == 2              ? (const void *)&half
                       : type == KN_GROUPED_E4M3 ? (const void *)&byte
                                                 : (const void *)&number;
    memcpy(to, from, bytes);
}

static float grouped_trial_load(enum kn_grouped_type type, const unsigned char *from) {
    float value;
    uint16_t half;
    switch (type) {
    case KN_GROUPED_F32:
        memcpy(&value, from, sizeof value);
        return value;
    case KN_GROUPED_F16:
    case KN_GROUPED_BF16:
        memcpy(&half, from, sizeof half);
        return type == KN_GROUPED_F16 ? kn_f16_value(half) : kn_bf16_value(half);
    case KN_GROUPED_E4M3:
        return kn_e4m3_value(*from);
    case KN_GROUPED_S8:
    case KN_GROUPED_TYPES:
        break;
    }
    return (float)(int8_t)*from;
}

static float grouped_trial_draw(const struct kn_grouped_trial *trial, enum operand operand,
                                uint64_t *state) {
    const double unit = kn_random_unit(state), sign = kn_random(state) % 2 == 0 ? 1 : -1;
    if (operand == A_SCALE || operand == B_SCALE) return ldexpf(0.5f, (int)(unit * 3));
    if (operand > B) return (float)(sign * unit * 4);
    if (trial->is_whole) return (float)((trial->is_positive ? 1 : sign) * (1 + floor(unit * 4)));
    return (float)(sign * unit * (trial->scale != 0 ? trial->scale : 1));
}

/* Rows and the gaps after them are NaN, and then, but in C, rows are numbers. */
static tol_status grouped_trial_make(struct scene *scene, enum operand operand, size_t rows,
                                     size_t columns, enum kn_grouped_type type,
                                     struct tol_context *context) {
    tol_status status = TOL_OK;
    const struct kn_grouped_trial *trial = scene->trial;
    struct trial_side *side = &scene->sides[operand];
    uint64_t state = trial->seed * OPERANDS + operand;
    const size_t element = kn_grouped_type_bytes(type);
    const size_t align = trial->align != 0 ? trial->align : 1;
    const size_t gap = operand <= RESIDUAL ? trial->gap : 0;
    side->type = type, side->rows = rows, side->columns = columns;
    side->leading = operand <= RESIDUAL ? (columns + gap + align - 1) / align * align : columns;
    side->bytes = rows * side->leading * element;
    side->values = malloc((rows * columns + 1) * sizeof *side->values);
    side->host = malloc(side->bytes + 1);
    TOL_CHECK(side->values != NULL && side->host != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu bytes",
              side->bytes);
    memset(side->host, 0xff, side->bytes);
    for (size_t i = 0; i < rows * columns && (operand != C || trial->is_in_place); i++) {
        unsigned char *at = side->host + (i / columns * side->leading + i % columns) * element;
        grouped_trial_store(type, grouped_trial_draw(trial, operand, &state), at);
        side->values[i] = grouped_trial_load(type, at);
    }
    if (operand == BEGINS) memcpy(side->host, trial->begins, side->bytes);
    TOL_TRY(kn_guarded_create(context, side->bytes, trial->skew * element, &side->device));
    status = kn_guarded_write(&side->device, side->host);
out:
    return status;
}

static struct kn_matrix grouped_trial_matrix_of(const struct trial_side *side, size_t stride) {
    return (struct kn_matrix){.buffer = side->device.buffer,
                              .offset = side->device.offset / kn_grouped_type_bytes(side->type),
                              .leading = side->leading,
                              .batch_stride = stride};
}

static struct kn_vector vector_of(const struct trial_side *side) {
    return (struct kn_vector){side->device.buffer, side->device.offset / sizeof(float),
                              side->columns};
}

static tol_status make_all(struct scene *scene, struct tol_context *context, struct kn_grouped *g) {
    tol_status status = TOL_OK;
    const struct kn_grouped_trial *trial = scene->trial;
    struct trial_side *sides = scene->sides;
    const size_t across = g->transpose_b ? g->k : g->n, down = g->transpose_b ? g->n : g->k;
    TOL_TRY(grouped_trial_make(scene, A, g->m, g->k, g->type, context));
    TOL_TRY(grouped_trial_make(scene, B, scene->groups * down, across, g->type, context));
    TOL_TRY(grouped_trial_make(scene, C, g->m, g->n, g->c_type, context));
    g->a = grouped_trial_matrix_of(&sides[A], 0), g->c = grouped_trial_matrix_of(&sides[C], 0);
    g->b = grouped_trial_matrix_of(&sides[B], down * sides[B].leading);
    if (trial->has_residual) {
        TOL_TRY(grouped_trial_make(scene, RESIDUAL, g->m, g->n, g->residual_type, context));
        g->residual = grouped_trial_matrix_of(&sides[RESIDUAL], 0);
    }
    if (trial->is_in_place) g->residual = g->c, g->residual_type = g->c_type;
    if (trial->has_bias) {
        TOL_TRY(grouped_trial_make(scene, BIAS, scene->groups, g->n, KN_GROUPED_F32, context));
        g->bias = vector_of(&sides[BIAS]);
    }
    if (trial->has_b_scale) {
        TOL_TRY(grouped_trial_make(scene, B_SCALE, scene->groups, g->n, KN_GROUPED_F32, context));
        g->b_scale = vector_of(&sides[B_SCALE]);
    }
    if (trial->has_a_scale) {
        TOL_TRY(grouped_trial_make(scene, A_SCALE, 1, g->m, KN_GROUPED_F32, context));
        g->a_scale = vector_of(&sides[A_SCALE]);
    }
    if (trial->begins != NULL) {
        TOL_TRY(grouped_trial_make(scene, BEGINS, 1, scene->groups + 1, KN_GROUPED_F32, context));
        g->begins = vector_of(&sides[BEGINS]);
    }
out:
    return status;
}

/* The group of a row; groups: it is in none. */
static size_t grouped_trial_group_of(const struct scene *scene, size_t row) {
    const int32_t *begins = scene->trial->begins, m = (int32_t)scene->trial->grouped.m;
    int32_t begin = 0;
    if (begins == NULL) return 0;
    for (size_t i = 0; i <= scene->groups; i++) {
        const int32_t raised = begins[i] > begin ? begins[i] : begin;
        begin = raised < m ? raised : m;
        if ((int32_t)row < begin) return i == 0 ? scene->groups : i - 1;
    }
    return scene->groups;
}

/* The definition and the bound of an element, from the sums of its products and of their sizes. */
static void grouped_trial_judge_element(const struct scene *scene, size_t row, size_t column,
                                        size_t group, double sum, double sizes, double *result,
                                        double *allowed) {
    const struct kn_grouped_trial *trial = scene->trial;
    const struct kn_grouped *g = &trial->grouped;
    const struct trial_side *sides = scene->sides;
    const double u = 0x1p-24, k = (double)g->k;
    const size_t at = group * g->n + column;
    double scale = (double)g->alpha, v, off = 0;
    if (!trial->is_whole) {
        off = scene->by_bytes ? (136 * 0x1p-13 + (k / 128 + 2) * u) * sizes
                              : (k + 32) * 0x1p-22 * sizes;
        off += (k + 2) * 0x1p-126;
    }
    if (trial->has_a_scale) scale *= (double)sides[A_SCALE].values[row];
    if (trial->has_b_scale) scale *= (double)sides[B_SCALE].values[at];
    const double bias = trial->has_bias ? (double)sides[BIAS].values[at] : 0;
    v = scale * sum + bias;
    off = off * fabs(scale) + 4 * u * (fabs(scale * sum) + fabs(bias));
    if (g->activation != KN_NO_ACTIVATION) {
        off = 1.13 * off + 16 * u * fabs(v) + 0x1p-100;
        v = kn_activation_oracle(g->activation, v);
    }
    if (trial->has_residual || trial->is_in_place) {
        const struct trial_side *residual = &sides[trial->is_in_place ? C : RESIDUAL];
        const double more = (double)residual->values[row * g->n + column];
        off += 2 * u * (fabs(v) + fabs(more));
        v += more;
    }
    const double c_scale = g->c_scale != 0 ? (double)g->c_scale : 1;
    v /= c_scale, off = off / c_scale + 3 * u * fabs(v);
    switch (g->c_type) {
    case KN_GROUPED_F32:
        break;
    case KN_GROUPED_F16:
    case KN_GROUPED_BF16:
        off += kn_type_roundoff(g->c_type == KN_GROUPED_F16 ? KN_F16 : KN_BF16) * (fabs(v) + off) +
               0x1p-25;
        break;
    case KN_GROUPED_E4M3:
        off += 0x1p-4 * fmin(fabs(v) + off, 448) + 0x1p-10;
        v = fmin(fmax(v, -448), 448);
        break;
    case KN_GROUPED_S8:
    case KN_GROUPED_TYPES:
        off += 0.5;
        v = fmin(fmax(v, -127), 127);
        break;
    }
    *result = v, *allowed = off;
}

static void grouped_trial_judge_row(void *user, size_t row) {
    struct scene *scene = user;
    const struct kn_grouped *g = &scene->trial->grouped;
    const struct trial_side *c = &scene->sides[C];
    const size_t n = g->n, k = g->k, group = grouped_trial_group_of(scene, row);
    const size_t b_step = g->transpose_b ? 1 : n, b_column = g->transpose_b ? k : 1;
    scene->rows[row] = (struct kn_deviation){.first = KN_NOWHERE, .worst = KN_NOWHERE};
    if (group == scene->groups) return;
    double *result = malloc(2 * n * sizeof *result);
    float *got = malloc(n * sizeof *got);
    if (result == NULL || got == NULL) {
        atomic_store(&scene->failed, true);
        free(result);
        free(got);
        return;
    }
    const float *a = scene->sides[A].values + row * k;
    const float *b = scene->sides[B].values + group * k * n;
    for (size_t j = 0; j < n; j++) {
        double sum = 0, sizes = 0;
        for (size_t l = 0; l < k; l++) {
            const double product = (double)a[l] * (double)b[l * b_step + j * b_column];
            sum += product, sizes += fabs(product);
        }
        grouped_trial_judge_element(scene, row, j, group, sum, sizes, &result[j], &result[n + j]);
        const size_t element = kn_grouped_type_bytes(c->type);
        got[j] = grouped_trial_load(c->type, scene->now + (row * c->leading + j) * element);
    }
    scene->rows[row] =
        kn_deviation_of(KN_F32, got, result, n, (struct kn_tolerance){0, 0}, result + n);
    free(result);
    free(got);
}

/* How many bytes of C changed that are not of an element of a row in a group. */
static size_t grouped_trial_count_touched(const struct scene *scene) {
    const struct trial_side *c = &scene->sides[C];
    const size_t row_bytes = c->leading * kn_grouped_type_bytes(c->type);
    const size_t own = c->columns * kn_grouped_type_bytes(c->type);
    size_t touched = 0;
    for (size_t row = 0; row < c->rows; row++) {
        const size_t first = grouped_trial_group_of(scene, row) == scene->groups ? 0 : own;
        for (size_t i = row * row_bytes + first; i < (row + 1) * row_bytes; i++) {
            touched += scene->now[i] != c->host[i];
        }
    }
    return touched;
}

static void grouped_trial_swap_last(struct scene *scene) {
    const struct trial_side *c = &scene->sides[C];
    const size_t element = kn_grouped_type_bytes(c->type);
    size_t row = c->rows;
    while (row > 0 && grouped_trial_group_of(scene, row - 1) == scene->groups) row--;
    if (row == 0) return;
    kn_swap_last(scene->now + (row - 1) * c->leading * element, element, c->columns);
}

static tol_status grouped_trial_judge(struct scene *scene, struct kn_grouped_outcome *found) {
    const double product_ns = 1.5;
    tol_status status = TOL_OK;
    const struct trial_side *c = &scene->sides[C];
    struct kn_deviation all = {.first = KN_NOWHERE, .worst = KN_NOWHERE};
    scene->rows = malloc((c->rows + 1) * sizeof *scene->rows);
    TOL_CHECK(scene->rows != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu rows", c->rows);
    kn_parallel_for(c->rows,
                    product_ns * (double)(c->rows * c->columns) *
                        (double)(scene->trial->grouped.k + 16),
                    grouped_trial_judge_row, scene);
    TOL_CHECK(!scene->failed, TOL_OUT_OF_HOST_MEMORY, "%zu columns", c->columns);
    for (size_t row = 0; row < c->rows; row++) all = kn_deviation_join(all, scene->rows[row]);
    found->deviation = all;
    found->touched += grouped_trial_count_touched(scene);
out:
    return status;
}

tol_status kn_grouped_try(struct kn_kernels *kernels, struct tol_stream *stream,
                          const struct kn_grouped_trial *trial,
                          struct kn_grouped_outcome *outcome) {
    tol_status status = TOL_OK;
    struct kn_grouped g = trial->grouped;
    struct kn_grouped_outcome found = {0};
    struct scene scene = {.trial = trial, .groups = g.groups != 0 ? g.groups : 1};
    struct trial_side *c = &scene.sides[C];
    TOL_TRY(make_all(&scene, kn_kernels_context(kernels), &g));
    TOL_TRY(kn_grouped_pick(kernels, &g, &found.variant));
    scene.by_bytes = g.type == KN_GROUPED_E4M3 && found.variant->cluster != 0;
    TOL_TRY(kn_grouped(kernels, stream, &g));
    TOL_TRY(tol_stream_synchronize_for(stream, KN_PATIENCE_MS));
    scene.now = malloc(c->bytes + 1);
    TOL_CHECK(scene.now != NULL, TOL_OUT_OF_HOST_MEMORY, "%zu bytes", c->bytes);
    TOL_TRY(kn_guarded_read(&c->device, scene.now));
    TOL_TRY(kn_guarded_check(&c->device, &found.touched));
    if (trial->swaps_last) grouped_trial_swap_last(&scene);
    TOL_TRY(grouped_trial_judge(&scene, &found));
    *outcome = found;
out:
    for (int i = 0; i < OPERANDS; i++) {
        kn_guarded_destroy(&scene.sides[i].device);
        free(scene.sides[i].values);
        free(scene.sides[i].host);
    }
    free(scene.rows);
    free(scene.now);
    return status;
}
