/*
 * The host's side of layernorm and RMSNorm, and their oracle.
 */
#include "row/norm.h"

#include "core/check.h"
#include "row/row_arguments.h"
#include "row/row_whole.h"

#include <math.h>

KN_IMAGES(norm_1_naive);
KN_IMAGES(norm_2_registers);
KN_IMAGES(norm_3_whole);
KN_IMAGES(norm_4_ring);
KN_IMAGES(norm_5_ahead);
KN_IMAGES(norm_6_early);

/* clang-format off */
#define WHOLE(type, pieces)                                                                        \
    {.name = "whole", .entry = "norm_whole_" #type "_" #pieces,                                    \
     .images = kn_images_norm_3_whole, .compute_capability_min = 75,                               \
     .refuse = kn_row_whole_##type##_##pieces, .threads = 32, .tile = {4, pieces}}
#define WIDE(type)                                                                                 \
    {.name = "wide", .entry = "norm_whole_" #type "_2",                                            \
     .images = kn_images_norm_3_whole, .compute_capability_min = 75,                               \
     .refuse = kn_row_wide_##type##_2, .threads = 32, .tile = {4, 2}}
#define RING(type, refuses, pieces)                                                                \
    {.name = "ring", .entry = "norm_ring_" #type "_" #pieces,                                      \
     .images = kn_images_norm_4_ring, .compute_capability_min = 80,                                \
     .refuse = kn_row_##refuses, .threads = 32, .tile = {4, pieces, 8}}
#define AHEAD(type, pieces)                                                                        \
    {.name = "ahead", .entry = "norm_ahead_" #type "_" #pieces,                                    \
     .images = kn_images_norm_5_ahead, .compute_capability_min = 80,                               \
     .refuse = kn_row_whole_##type##_##pieces, .threads = 32, .tile = {4, pieces}}
#define EARLY(type, pieces)                                                                        \
    {.name = "early", .entry = "norm_early_" #type "_" #pieces,                                    \
     .images = kn_images_norm_6_early, .compute_capability_min = 90,                               \
     .refuse = kn_row_whole_##type##_##pieces, .threads = 32, .tile = {4, pieces}}
#define REGISTERS(type, pieces)                                                                    \
    {.name = "registers", .entry = "norm_" #type "_" #pieces,                                      \
     .images = kn_images_norm_2_registers, .compute_capability_min = 75,                           \
     .refuse = kn_row_##type##_##pieces, .threads = 32, .tile = {4, pieces}}
#define NAIVE(type)                                                                                \
    {.name = "naive", .entry = "norm_naive_" #type, .images = kn_images_norm_1_naive,              \
     .compute_capability_min = 75, .refuse = kn_row_only_##type, .threads = 32, .tile = {4}}
/* clang-format on */

/* The first that takes a call is chosen. */
static const struct kn_variant variants[] = {EARLY(f16, 1),
                                             EARLY(f16, 2),
                                             EARLY(f16, 4),
                                             EARLY(bf16, 1),
                                             EARLY(bf16, 2),
                                             EARLY(bf16, 4),
                                             AHEAD(f16, 1),
                                             AHEAD(f16, 2),
                                             AHEAD(f16, 4),
                                             AHEAD(bf16, 1),
                                             AHEAD(bf16, 2),
                                             AHEAD(bf16, 4),
                                             WHOLE(f16, 1),
                                             WHOLE(f16, 2),
                                             WHOLE(f16, 4),
                                             WHOLE(bf16, 1),
                                             WHOLE(bf16, 2),
                                             WHOLE(bf16, 4),
                                             RING(f16, whole_f16_1, 1),
                                             RING(f16, whole_f16_2, 2),
                                             RING(f16, ring_f16_4, 4),
                                             RING(bf16, whole_bf16_1, 1),
                                             RING(bf16, whole_bf16_2, 2),
                                             RING(bf16, ring_bf16_4, 4),
                                             WIDE(f16),
                                             WIDE(bf16),
                                             REGISTERS(f32, 1),
                                             REGISTERS(f32, 2),
                                             REGISTERS(f32, 8),
                                             REGISTERS(f32, 4),
                                             WHOLE(f32, 8),
                                             REGISTERS(f16, 1),
                                             REGISTERS(f16, 2),
                                             REGISTERS(f16, 4),
                                             REGISTERS(bf16, 1),
                                             REGISTERS(bf16, 2),
                                             REGISTERS(bf16, 4),
                                             NAIVE(f32),
                                             NAIVE(f16),
                                             NAIVE(bf16)};

const struct kn_variants kn_norm_variants = {"norm", variants,
                                             sizeof variants / sizeof variants[0]};

static tol_status check(const struct kn_norm *x) {
    tol_status status = TOL_OK;
    TOL_TRY(kn_rows_type(x->type));
    TOL_CHECK((unsigned)x->kind <= KN_RMSNORM, TOL_INVALID_ARGUMENT, "%d is no kind of norm",
              (int)x->kind);
    TOL_CHECK(x->affine_type == KN_F32 || x->affine_type == x->type, TOL_INVALID_ARGUMENT,
              "weight and bias of type %s do not go with rows of %s", kn_type_name(x->affine_type),
              kn_type_name(x->type));
    TOL_CHECK(isfinite(x->epsilon) && x->epsilon >= 0, TOL_INVALID_ARGUMENT, "an epsilon of %g",
              (double)x->epsilon);
out:
    return status;
}

/* A place in shared memory for each piece of weight and bias that a thread has on its way there. */
static unsigned ahead_bytes(const struct tol_launch_shape *shape, unsigned pieces,
                            const struct norm_arguments *x) {
    enum { PIECE_BYTES = 16 };
    const unsigned parameters = (x->weight != 0 ? 1u : 0u) + (x->bias != 0 ? 1u : 0u);
    return shape->block_x * shape->block_y * pieces * PIECE_BYTES * parameters;
}

static tol_status launch(struct tol_stream *stream, const struct kn_variant *variant,
                         const struct tol_kernel *kernel, struct tol_launch_shape shape,
                         struct norm_arguments arguments) {
    const bool is_early = variant->images == kn_images_norm_6_early;
    if (is_early || variant->images == kn_images_norm_5_ahead) {
        shape.shared_bytes = ahead_bytes(&shape, variant->tile[1], &arguments);
    }
    return (is_early ? kn_rows_launch_early : kn_rows_launch)(stream, kernel, shape, &arguments,
                                                              sizeof arguments);
}

tol_status kn_norm(struct kn_kernels *kernels, struct tol_stream *stream, const struct kn_norm *x) {
    tol_status status = TOL_OK;
    const struct kn_variant *variant = NULL;
    const struct tol_kernel *kernel = NULL;
    TOL_TRY(kn_rows_given("norm", kernels, stream, x));
    TOL_TRY(check(x));
    const size_t element = kn_type_bytes(x->type), affine = kn_type_bytes(x->affine_type);
    struct kn_rows_place in = {"in", x->rows, x->columns, element, false, 0, 0, 0};
    struct kn_rows_place out = {"out", x->rows, x->columns, element, false, 0, 0, 0};
    struct kn_rows_place weight = {"weight", 1, x->columns, affine, false, 0, 0, 0};
    struct kn_rows_place bias = {"bias", 1, x->columns, affine, false, 0, 0, 0};
    TOL_TRY(kn_rows_locate(&x->in, &in));
    TOL_TRY(kn_rows_locate(&x->out, &out));
    TOL_TRY(kn_rows_apart(&out, &in));
    if (x->weight.buffer != NULL) {
        TOL_TRY(kn_rows_locate(&x->weight, &weight));
        TOL_CHECK(out.end <= weight.begin || weight.end <= out.begin, TOL_INVALID_ARGUMENT,
                  "out overlaps weight");
    }
    if (x->bias.buffer != NULL) {
        TOL_TRY(kn_rows_locate(&x->bias, &bias));
        TOL_CHECK(out.end <= bias.begin || bias.end <= out.begin, TOL_INVALID_ARGUMENT,
                  "out overlaps bias");
    }
    if (x->rows == 0 || x->columns == 0) return TOL_OK;
    struct kn_row_fit fit = kn_row_fit_of(x->type, &in);
    const struct kn_rows_place *const places[] = {&in, &out, &weight, &bias};
    fit.not_whole = NULL;
    for (int i = 0; i < 4 && fit.not_whole == NULL; i++) fit.not_whole = kn_row_whole(places[i]);
    if (x->affine_type != x->type && (weight.begin != 0 || bias.begin != 0)) {
        fit.not_whole = "weight and bias are not of the type of the rows";
    }
    TOL_TRY(kn_kernels_pick(kernels, x->variants != NULL ? x->variants : &kn_norm_variants,
                            x->variant, &fit, &variant, &kernel));
    const struct norm_arguments arguments = {.in = in.begin,
                                             .out = out.begin,
                                             .weight = weight.begin,
                                             .bias = bias.begin,
                                             .rows = (long long)x->rows,
                                             .columns = (long long)x->columns,
                                             .in_stride = (long long)in.stride,
                                             .out_stride = (long long)out.stride,
                                             .epsilon = x->epsilon,
                                             .centred = x->kind == KN_LAYERNORM,
                                             .affine_f32 = x->affine_type == KN_F32};
    status = launch(stream, variant, kernel,
                    kn_row_shape_that_stays(variant, &fit, x->rows,
                                            tol_context_device(kn_kernels_context(kernels))),
                    arguments);
out:
    return status;
}

void kn_norm_oracle(enum kn_norm_kind kind, const float *in, const float *weight, const float *bias,
                    size_t columns, double epsilon, double *out) {
    double mean = 0, square = 0;
    if (kind == KN_LAYERNORM) {
        for (size_t c = 0; c < columns; c++) mean += (double)in[c] / (double)columns;
    }
    for (size_t c = 0; c < columns; c++) {
        out[c] = (double)in[c] - mean;
        square += out[c] * out[c] / (double)columns;
    }
    for (size_t c = 0; c < columns; c++) {
        out[c] = out[c] / sqrt(square + epsilon) * (weight != NULL ? (double)weight[c] : 1) +
                 (bias != NULL ? (double)bias[c] : 0);
    }
}
