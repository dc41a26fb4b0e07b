/*
 * The host's side of softmax, and its oracle.
 */
#include "softmax/softmax.h"

#include "core/check.h"
#include "row/row_arguments.h"
#include "row/row_variant.h"

#include <math.h>

KN_IMAGES(softmax_1_naive);
KN_IMAGES(softmax_2_registers);
KN_IMAGES(softmax_3_online);
KN_IMAGES(softmax_4_whole);
KN_IMAGES(softmax_5_ring);
KN_IMAGES(softmax_6_cluster);

#define SOFTMAX(...) KN_ROW_REFUSE(__VA_ARGS__)
#define SOFTMAX_CLUSTER(...) KN_ROW_CLUSTER_REFUSE(__VA_ARGS__)
#include "softmax/softmax_variants.def"
#undef SOFTMAX
#undef SOFTMAX_CLUSTER

static const struct kn_variant variants[] = {
#define SOFTMAX(...) KN_ROW_VARIANT(softmax, __VA_ARGS__)
#define SOFTMAX_CLUSTER(...) KN_ROW_CLUSTER_VARIANT(softmax, __VA_ARGS__)
#include "softmax/softmax_variants.def"
#undef SOFTMAX
#undef SOFTMAX_CLUSTER
};

const struct kn_variants kn_softmax_variants = {"softmax", variants,
                                                sizeof variants / sizeof variants[0]};

tol_status kn_softmax(struct kn_kernels *kernels, struct tol_stream *stream,
                      const struct kn_softmax *x) {
    tol_status status = TOL_OK;
    const struct kn_variant *variant = NULL;
    const struct tol_kernel *kernel = NULL;
    TOL_TRY(kn_rows_given("softmax", kernels, stream, x));
    TOL_CHECK(isfinite(x->scale), TOL_INVALID_ARGUMENT, "a scale of %g", (double)x->scale);
    struct kn_rows_place in, out;
    struct kn_rows_place mask = {"mask", x->rows, x->columns, 1, true, 0, 0, 0};
    TOL_TRY(kn_rows_locate_in_out(x->type, x->rows, x->columns, &x->in, &x->out, &in, &out));
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
    status = kn_rows_launch(stream, kernel, kn_row_shape(variant, &fit, x->rows, device),
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
