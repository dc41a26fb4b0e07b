/*
 * The host's side of softmax, and its oracle.
 */
#include "row/softmax.h"

#include "core/check.h"
#include "row/row_arguments.h"
#include "row/row_whole.h"

#include <math.h>

KN_IMAGES(softmax_1_naive);
KN_IMAGES(softmax_2_registers);
KN_IMAGES(softmax_3_online);
KN_IMAGES(softmax_4_whole);
KN_IMAGES(softmax_5_ring);

/* clang-format off */
#define WHOLE(type, pieces)                                                                        \
    {.name = "whole", .entry = "softmax_whole_" #type "_" #pieces,                                 \
     .images = kn_images_softmax_4_whole, .compute_capability_min = 75,                            \
     .refuse = kn_row_whole_##type##_##pieces, .threads = 32, .tile = {4, pieces}}
#define WIDE(type)                                                                                 \
    {.name = "wide", .entry = "softmax_whole_" #type "_2",                                         \
     .images = kn_images_softmax_4_whole, .compute_capability_min = 75,                            \
     .refuse = kn_row_wide_##type##_2, .threads = 32, .tile = {4, 2}}
#define RING(type, refuses, pieces)                                                                \
    {.name = "ring", .entry = "softmax_ring_" #type "_" #pieces,                                   \
     .images = kn_images_softmax_5_ring, .compute_capability_min = 80,                             \
     .refuse = kn_row_##refuses, .threads = 32, .tile = {4, pieces, 8}}
#define REGISTERS(type, pieces)                                                                    \
    {.name = "registers", .entry = "softmax_" #type "_" #pieces,                                   \
     .images = kn_images_softmax_2_registers, .compute_capability_min = 75,                        \
     .refuse = kn_row_##type##_##pieces, .threads = 32, .tile = {4, pieces}}
#define ONLINE(type)                                                                               \
    {.name = "online", .entry = "softmax_online_" #type, .images = kn_images_softmax_3_online,     \
     .compute_capability_min = 75, .refuse = kn_row_only_##type, .threads = 512}
#define NAIVE(type)                                                                                \
    {.name = "naive", .entry = "softmax_naive_" #type, .images = kn_images_softmax_1_naive,        \
     .compute_capability_min = 75, .refuse = kn_row_only_##type, .threads = 32, .tile = {4}}
/* clang-format on */

static const struct kn_variant variants[] = {WHOLE(f16, 1),
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
                                             ONLINE(f32),
                                             ONLINE(f16),
                                             ONLINE(bf16),
                                             NAIVE(f32),
                                             NAIVE(f16),
                                             NAIVE(bf16)};

const struct kn_variants kn_softmax_variants = {"softmax", variants,
                                                sizeof variants / sizeof variants[0]};

tol_status kn_softmax(struct kn_kernels *kernels, struct tol_stream *stream,
                      const struct kn_softmax *x) {
    tol_status status = TOL_OK;
    const struct kn_variant *variant = NULL;
    const struct tol_kernel *kernel = NULL;
    TOL_TRY(kn_rows_given("softmax", kernels, stream, x));
    TOL_TRY(kn_rows_type(x->type));
    TOL_CHECK(isfinite(x->scale), TOL_INVALID_ARGUMENT, "a scale of %g", (double)x->scale);
    const size_t element = kn_type_bytes(x->type);
    struct kn_rows_place in = {"in", x->rows, x->columns, element, false, 0, 0, 0};
    struct kn_rows_place out = {"out", x->rows, x->columns, element, false, 0, 0, 0};
    struct kn_rows_place mask = {"mask", x->rows, x->columns, 1, true, 0, 0, 0};
    TOL_TRY(kn_rows_locate(&x->in, &in));
    TOL_TRY(kn_rows_locate(&x->out, &out));
    TOL_TRY(kn_rows_apart(&out, &in));
    if (x->mask.buffer != NULL) {
        TOL_TRY(kn_rows_locate(&x->mask, &mask));
        TOL_TRY(kn_rows_apart(&out, &mask));
    }
    if (x->rows == 0 || x->columns == 0) return TOL_OK;
    struct kn_row_fit fit = kn_row_fit_of(x->type, &in);
    fit.not_whole = kn_row_whole(&in) != NULL ? kn_row_whole(&in) : kn_row_whole(&out);
    if (x->mask.buffer != NULL) fit.not_whole = "there is a mask";
    TOL_TRY(kn_kernels_pick(kernels, x->variants != NULL ? x->variants : &kn_softmax_variants,
                            x->variant, &fit, &variant, &kernel));
    const struct softmax_arguments arguments = {.in = in.begin,
                                                .out = out.begin,
                                                .mask = mask.begin,
                                                .rows = (long long)x->rows,
                                                .columns = (long long)x->columns,
                                                .in_stride = (long long)in.stride,
                                                .out_stride = (long long)out.stride,
                                                .mask_stride = (long long)mask.stride,
                                                .scale = x->scale != 0 ? x->scale : 1};
    const struct tol_device *device = tol_context_device(kn_kernels_context(kernels));
    status = kn_rows_launch(stream, kernel, kn_row_shape_that_stays(variant, &fit, x->rows, device),
                            &arguments, sizeof arguments);
out:
    return status;
}

void kn_softmax_oracle(const float *in, const unsigned char *mask, size_t columns, double scale,
                       double *out) {
    double largest = -INFINITY, sum = 0;
    for (size_t c = 0; c < columns; c++) {
        const bool counts = mask == NULL || mask[c] != 0;
        out[c] = counts ? scale * (double)in[c] : -INFINITY;
        /* isgreater would pass over a NaN, which must reach the sum. */
        if (!(out[c] <= largest)) largest = out[c];
    }
    for (size_t c = 0; c < columns; c++) {
        out[c] = largest == -INFINITY ? 0 : exp(out[c] - largest);
        sum += out[c];
    }
    for (size_t c = 0; c < columns; c++) out[c] = sum == 0 ? 0 : out[c] / sum;
}
