/*
 * The host's side of layernorm and RMSNorm, and their oracle.
 */
#include "norm/norm.h"

#include "core/check.h"
#include "row/row_arguments.h"
#include "row/row_variant.h"

#include <math.h>

KN_IMAGES(norm_1_naive);
KN_IMAGES(norm_2_registers);
KN_IMAGES(norm_3_whole);
KN_IMAGES(norm_4_ring);
KN_IMAGES(norm_5_ahead);
KN_IMAGES(norm_6_early);
KN_IMAGES(norm_7_cluster);
KN_IMAGES(norm_8_cluster_ring);

#define NORM(...) KN_ROW_REFUSE(__VA_ARGS__)
#define NORM_CLUSTER(...) KN_ROW_CLUSTER_REFUSE(__VA_ARGS__)
#define NORM_CLUSTER_RING(...) KN_ROW_CLUSTER_REFUSE(__VA_ARGS__)
#include "norm/norm_variants.def"
#undef NORM
#undef NORM_CLUSTER
#undef NORM_CLUSTER_RING

static const struct kn_variant variants[] = {
#define NORM(...) KN_ROW_VARIANT(norm, __VA_ARGS__)
#define NORM_CLUSTER(...) KN_ROW_CLUSTER_VARIANT(norm, __VA_ARGS__)
#define NORM_CLUSTER_RING(...) KN_ROW_CLUSTER_RING_VARIANT(norm, __VA_ARGS__)
#include "norm/norm_variants.def"
#undef NORM
#undef NORM_CLUSTER
#undef NORM_CLUSTER_RING
};

const struct kn_variants kn_norm_variants = {"norm", variants,
                                             sizeof variants / sizeof variants[0]};

static tol_status check(const struct kn_norm *x) {
    tol_status status = TOL_OK;
    TOL_TRY(kn_rows_type(x->type));
    TOL_CHECK((unsigned)x->kind <= KN_RMSNORM, TOL_INVALID_ARGUMENT,
              "kind of norm %d does not exist", (int)x->kind);
    TOL_CHECK(x->affine_type == KN_F32 || x->affine_type == x->type, TOL_INVALID_ARGUMENT,
              "weight and bias of type %s do not go with rows of %s", kn_type_name(x->affine_type),
              kn_type_name(x->type));
    TOL_CHECK(isfinite(x->epsilon) && x->epsilon >= 0, TOL_INVALID_ARGUMENT, "an epsilon of %g",
              (double)x->epsilon);
out:
    return status;
}

/* Shared memory for the pieces of weight and bias that each thread loads ahead. */
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
    const size_t affine = kn_type_bytes(x->affine_type);
    struct kn_rows_place in, out;
    struct kn_rows_place weight = {"weight", 1, x->columns, affine, false, 0, 0, 0};
    struct kn_rows_place bias = {"bias", 1, x->columns, affine, false, 0, 0, 0};
    TOL_TRY(kn_rows_locate_in_out(x->type, x->rows, x->columns, &x->in, &x->out, &in, &out));
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
    fit.parameters = (weight.begin != 0 ? 1u : 0u) + (bias.begin != 0 ? 1u : 0u);
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
    const struct tol_device *device = tol_context_device(kn_kernels_context(kernels));
    status =
        launch(stream, variant, kernel, kn_row_shape(variant, &fit, x->rows, device), arguments);
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
